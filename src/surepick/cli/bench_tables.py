"""The tables of experiments as people read them, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from surepick.codec import encode
from surepick.experiments import CellSummary, Results, experiment, experiment_names, summarize
from surepick.experiments.summary import Share, Spread

WIDTH = 170  # of the tables, which are too wide for most terminals; narrower, their numbers would be cut
OWN = "own stop: pulls until the policy stopped by itself, which is what a user pays"
ORACLE = "ORACLE: pulls until only epsilon-best arms were left; needs the truth, so that nobody can stop there"
ROUNDS = (
    "rounds: mean dimension d_k, and share s_k of runs whose active set held only epsilon-best arms (needs the truth)"
)


NEEDS_THE_TRUTH = (
    *("oracle", "oracle_to_expected", "oracle_median_to_expected", "reached", "best_eliminated"),
    *("right", "wrong", "reference", "own_to_reference", "rounds.done"),
)


def summary_json(results: Results) -> dict[str, Any]:
    """All cells with all numbers; the names of those that need the truth are listed."""
    cells = [
        {
            **encode(cell),
            "oracle_to_expected": cell.oracle_to_expected,
            "oracle_median_to_expected": cell.oracle_median_to_expected,
            "own_to_expected": cell.own_to_expected,
        }
        for cell in summarize(results)
    ]
    return {
        "needs_the_truth": list(NEEDS_THE_TRUTH),
        "notes": {name: experiment(name).note for name in results.experiments if _note(name)},
        "cells": cells,
    }


def print_summary(results: Results) -> None:
    """For each experiment: own stop, oracle's stop, rounds; each table says which it is."""
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    cells = summarize(results)
    for name in results.experiments:
        mine = [cell for cell in cells if cell.experiment == name]
        title = experiment(name).title if name in experiment_names() else ""
        console.print(f"\n[bold]{name}[/bold]   {title}")
        if _note(name):
            console.print(f"[yellow]{_note(name)}[/yellow]")
        console.print(_own_table(mine))
        if any(cell.reached is not None for cell in mine):
            console.print(_oracle_table([cell for cell in mine if cell.reached is not None]))
        if any(cell.rounds for cell in mine):
            console.print(_rounds_table([cell for cell in mine if cell.rounds]))


def _note(name: str) -> str:
    return experiment(name).note if name in experiment_names() else ""


def _own_table(cells: Sequence[CellSummary]) -> Table:
    deltas = len({cell.delta for cell in cells}) > 1
    table = _table(OWN, "environment", "policy", *(["delta"] if deltas else []))
    for head in (
        "right (95 %)",
        "verdict",
        "mean",
        "median",
        "quartiles",
        "x reference",
        "expected",
        "ratio",
        "seconds",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for cell, first in _grouped(cells):
        table.add_row(
            first,
            cell.policy,
            *([f"{cell.delta:g}"] if deltas else []),
            share_text(cell.right),
            _verdicts(cell),
            *_spread(cell.own),
            _ratio(cell.own_to_reference),
            number(cell.published.own),
            _ratio(cell.own_to_expected),
            "" if cell.seconds is None else f"{cell.seconds:.2f}",
        )
    return table


def _oracle_table(cells: Sequence[CellSummary]) -> Table:
    table = _table(ORACLE, "environment", "policy")
    heads = (
        "reached (95 %)",
        "paper's success",
        "mean",
        "median",
        "quartiles",
        "paper's figure",
        "expected",
        "mean ratio",
        "median ratio",
        "best out",
    )
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for cell, first in _grouped(cells):
        known = cell.published
        table.add_row(
            first,
            cell.policy,
            share_text(cell.reached),
            "" if known.success is None else f"{known.success:.0%}",
            *_spread(cell.oracle),
            known.figure,
            number(known.expected),
            _ratio(cell.oracle_to_expected),
            _ratio(cell.oracle_median_to_expected),
            "" if cell.best_eliminated is None else f"{cell.best_eliminated.count}/{cell.best_eliminated.total}",
        )
    return table


def _rounds_table(cells: Sequence[CellSummary]) -> Table:
    table = _table(ROUNDS, "environment", "policy")
    most = max(len(cell.rounds) for cell in cells)
    for number in range(1, most + 1):
        table.add_column(f"d_{number}, s_{number}", justify="right", no_wrap=True)
    for cell, first in _grouped(cells):
        shown = [f"{row.mean_dim:.4g}, {row.done:.0%}" for row in cell.rounds]
        table.add_row(first, cell.policy, *shown, *[""] * (most - len(shown)))
        if cell.published.rounds:
            paper = [f"{dim:g}, {done:.0%}" for dim, done in cell.published.rounds]
            table.add_row("", "  (the paper's)", *paper, *[""] * (most - len(paper)), style="dim")
    return table


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def _grouped(cells: Sequence[CellSummary]) -> list[tuple[CellSummary, str]]:
    """Each cell with the label of its environment where that changes, else with nothing."""
    labels = [cell.environment for cell in cells]
    return [
        (cell, label if number == 0 or labels[number - 1] != label else "")
        for number, (cell, label) in enumerate(zip(cells, labels, strict=True))
    ]


def _verdicts(cell: CellSummary) -> str:
    most = [*cell.verdicts, *(["failed"] if cell.failures else [])]
    counts = {**cell.verdicts, "failed": cell.failures}
    return most[0] if len(most) == 1 else ", ".join(f"{counts[name]} {name}" for name in most)


def share_text(share: Share | None) -> str:
    """49/50 (89%-100%); "" for None."""
    return "" if share is None else f"{share.count}/{share.total} ({share.low:.0%}-{share.high:.0%})"


def _spread(spread: Spread | None) -> list[str]:
    if spread is None:
        return ["-", "-", "-"]
    return [number(spread.mean), number(spread.median), f"{number(spread.lower)}-{number(spread.upper)}"]


def number(value: float | None) -> str:
    """A number of pulls in at most five characters: 3,215, 60.2k, 2.88M; "" for None."""
    if value is None:
        return ""
    for unit, letter, least in ((1e6, "M", 999_500), (1e3, "k", 9_999.5)):
        if value >= least:
            return f"{value / unit:.3g}{letter}" if value < 999.5 * unit else f"{value / unit:,.0f}{letter}"
    return f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    if value is None:
        return ""
    return number(value) if value >= 100 else f"{value:.3g}"
