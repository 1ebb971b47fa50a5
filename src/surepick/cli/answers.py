"""Answers as people read them, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surepick.experiments import Run
from surepick.records import Certificate, RoundRecord

MOST_ROWS = 14
VERDICT_STYLES = {"certified": "bold green", "heuristic": "bold yellow"}


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False))


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
        "value": row.value,
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


def print_rounds(rounds: tuple[RoundRecord, ...], num_arms: int) -> None:
    """The table of rounds; of very many rounds a selection, the first and the last among them."""
    if not rounds:
        return
    console = Console(highlight=False)
    shown = _selection(rounds)
    designed = any(row.dim for row in rounds)
    table = Table(
        title=f"{num_arms:,} candidates, round by round", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    headers = [
        "round",
        *(["dims", "design", "gap"] if designed else []),
        "measured",
        "total",
        "left",
        "off by at most",
    ]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for row in shown:
        table.add_row(*_cells(row, designed))
    console.print(table)
    if len(shown) < len(rounds):
        console.print(f"({len(shown)} of {len(rounds)} rounds shown)", style="dim")


def _selection(rounds: tuple[RoundRecord, ...]) -> list[RoundRecord]:
    if len(rounds) <= MOST_ROWS:
        return list(rounds)
    wanted = {round(position * (len(rounds) - 1) / (MOST_ROWS - 1)) for position in range(MOST_ROWS)}
    return [row for position, row in enumerate(rounds) if position in wanted]


def _cells(row: RoundRecord, designed: bool) -> list[str]:
    design = []
    if designed:
        gap = "" if not row.value or not row.lower_bound else f"{row.value / row.lower_bound - 1:.2%}"
        design = [str(row.dim), "" if row.value is None else f"{row.value:.4g}", gap]
    worse = "?" if row.certified_gap is None else f"{row.certified_gap:.4g}"
    return [str(row.round), *design, f"{row.pulls:,}", f"{row.total_pulls:,}", f"{len(row.active):,}", worse]


def print_certificate(answer: Certificate) -> None:
    """The verdict in words that need no statistics."""
    console = Console(highlight=False, soft_wrap=True)
    if answer.pulls == 0 and answer.verdict not in VERDICT_STYLES:
        headline = "Nothing was measured; the first candidate"
    else:
        headline = "Recommended" if answer.verdict in VERDICT_STYLES else "Best guess so far, nothing proved"
    first, *rest = str(answer).splitlines()
    name, verdict = first[: -len(answer.verdict)], answer.verdict
    console.print(Text.assemble(f"{headline}: ", (name, "bold"), (verdict, VERDICT_STYLES.get(verdict, "bold red"))))
    for line in rest:
        console.print(Text(line))
