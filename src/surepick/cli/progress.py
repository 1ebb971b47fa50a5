"""Progress on standard error: one bar, which tells the round, who is left, and how much of the round is in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from surepick.records import Plan
from surepick.studies import Study


@contextmanager
def round_bars() -> Iterator[Callable[[Plan, Study], None]]:
    """A callback for `simulate`; silent when standard error is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task("round 1", total=None, note="")

        def show(plan: Plan, study: Study) -> None:
            trace = study.trace
            left = len(trace[-1].active) if trace else study.arms.num_arms
            spent = trace[-1].total_pulls if trace else 0
            progress.update(
                bar,
                description=f"round {plan.round}",
                total=plan.looks,
                completed=plan.look - 1,
                note=f"{left:,} of {study.arms.num_arms:,} candidates left, {spent:,} measurements",
            )

        yield show
