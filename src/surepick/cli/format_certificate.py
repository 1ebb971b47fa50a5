"""Answers as people read them, and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from surepick.cli.output import Text
from surepick.core.certificate import Certificate
from surepick.core.step import RoundRecord
from surepick.noise import Noise, informative
from surepick.policies.base import Policy
from surepick.simulation import Run

MOST_ROWS = 20
VERDICT_STYLES = {"certified": "bold green", "heuristic": "bold yellow"}


def certificate_json(answer: Certificate) -> dict[str, Any]:
    """The certificate as the published JSON fields."""
    return {
        "best_arm": answer.best_arm,
        "epsilon": answer.epsilon,
        "delta": answer.delta,
        "pulls": answer.pulls,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "certified_gap": answer.certified_gap,
        "minimize": answer.minimize,
        "assumptions": list(answer.assumptions),
        "rounds": [round_json(row) for row in answer.rounds],
    }


def round_json(row: RoundRecord) -> dict[str, Any]:
    """One round of the trace; `active` is how many candidates are left."""
    return {
        "round": row.round,
        "dim": row.dim,
        "design_value": row.design_value,
        "predicted_pulls": row.predicted_pulls,
        "lower_bound": row.lower_bound,
        "misspecification": row.misspecification,
        "pulls": row.pulls,
        "total_pulls": row.total_pulls,
        "active": len(row.active),
        "certified_gap": row.certified_gap,
        "alarms": list(row.alarms),
    }


def run_json(run: Run) -> dict[str, Any]:
    """A rehearsal: the certificate, and what only the truth can tell."""
    return {
        **certificate_json(run.certificate),
        "success": run.success,
        "oracle_pulls": run.oracle_pulls,
        "true_gap": run.true_gap,
        "seconds": run.seconds,
    }


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table of rounds shows: the headers, the cells of round number `position`, and what needs explaining."""

    headers: tuple[str, ...]
    cells: Callable[[tuple[RoundRecord, ...], int], list[str]]
    legend: str = ""


def print_rounds(rounds: tuple[RoundRecord, ...], policy: Policy[Any]) -> None:
    """The table of rounds; of very many rounds a selection, the first and the last among them."""
    if not rounds:
        return
    console = Console(highlight=False)
    predicts = policy.traits.certifies == "candidate"
    columns = _candidate_columns(rounds, policy) if predicts else _plain_columns(rounds, policy.problem.noise)
    table = Table(
        title=f"{policy.problem.num_arms:,} candidates, round by round",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
    )
    for header in columns.headers:
        table.add_column(header, justify="right", no_wrap=True)
    shown = _selection(len(rounds))
    for position in shown:
        table.add_row(*columns.cells(rounds, position))
    console.print(table)
    if len(shown) < len(rounds):
        console.print(f"({len(shown)} of {len(rounds)} rounds shown)", style="dim")
    if columns.legend:
        Console(highlight=False, soft_wrap=True).print(Text(columns.legend))


def _selection(num_rounds: int) -> list[int]:
    if num_rounds <= MOST_ROWS:
        return list(range(num_rounds))
    return sorted({round(step * (num_rounds - 1) / (MOST_ROWS - 1)) for step in range(MOST_ROWS)})


def _plain_columns(rounds: tuple[RoundRecord, ...], noise: Noise) -> Columns:
    """Rounds that rule candidates out for good."""
    designed = any(row.dim for row in rounds)
    design = ("dims", "design", "gap") if designed else ()

    def cells(rounds: tuple[RoundRecord, ...], position: int) -> list[str]:
        row, solved = rounds[position], []
        if designed:
            value = row.design_value
            excess = "" if not value or not row.lower_bound else f"{value / row.lower_bound - 1:.2%}"
            solved = [str(row.dim), "" if value is None else f"{value:.4g}", excess]
        gap = informative(row.certified_gap, noise)
        worse = "?" if gap is None else f"{gap:.4g}"
        return [str(row.round), *solved, f"{row.pulls:,}", f"{row.total_pulls:,}", f"{len(row.active):,}", worse]

    return Columns(("round", *design, "measured", "total", "left", "off by at most"), cells)


def _candidate_columns(rounds: tuple[RoundRecord, ...], policy: Policy[Any]) -> Columns:
    """Rounds that each predict what certifying a candidate will still take."""
    compressed = any(row.dim < policy.problem.num_arms for row in rounds)

    def cells(rounds: tuple[RoundRecord, ...], position: int) -> list[str]:
        row = rounds[position]
        dims = [str(row.dim)] if compressed else []
        possible = f"{len(row.active):,}"
        return [str(row.round), *dims, f"{row.pulls:,}", f"{row.total_pulls:,}", possible, _to_come(rounds, position)]

    return Columns(
        ("round", *(["dims"] if compressed else []), "measured", "total", "still possible", "to come"),
        cells,
        f"still possible: the best so far, and all that may yet be better by more than {policy.problem.epsilon:g}; "
        "to come: a rough prediction",
    )


def _to_come(rounds: tuple[RoundRecord, ...], position: int) -> str:
    """What the next round predicted before it measured, to two digits; "?" where the study ended without an answer."""
    if position + 1 < len(rounds):
        predicted = rounds[position + 1].predicted_pulls
        return "?" if predicted is None else f"{float(f'{predicted:.2g}'):,.0f}"
    return "0" if len(rounds[position].active) == 1 else "?"


def print_certificate(answer: Certificate, noise: Noise) -> None:
    """The verdict in words that need no statistics; a bound that the range of the rewards gives anyway is left out."""
    answer = replace(answer, certified_gap=informative(answer.certified_gap, noise))
    console = Console(highlight=False, soft_wrap=True)
    if answer.pulls == 0 and answer.verdict not in VERDICT_STYLES:
        console.print(
            Text.assemble("No round is complete, so there is no answer yet.   ", (answer.verdict, "bold red"))
        )
        console.print(Text(answer.reason))
        return
    headline = "Recommended" if answer.verdict in VERDICT_STYLES else "Best guess so far, nothing proved"
    first, *rest = str(answer).splitlines()
    name, verdict = first[: -len(answer.verdict)], answer.verdict
    console.print(Text.assemble(f"{headline}: ", (name, "bold"), (verdict, VERDICT_STYLES.get(verdict, "bold red"))))
    for line in rest:
        console.print(Text(line))


def print_registration(code: str | None) -> None:
    """The registration code, under an answer."""
    shown = "none: the policy has parts without a name" if code is None else code
    Console(highlight=False, soft_wrap=True).print(Text(f"Registration code: {shown}"))
