"""Progress on standard error: one bar, which tells the round, who is left, and how much of the work is in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from surepick.core.plan import Plan
from surepick.studies import Study


@contextmanager
def round_bars() -> Iterator[Callable[[Plan, Study], None]]:
    """A callback for `simulate`; silent when standard error is not a terminal.

    The bar measures the looks of a round, or, where the plan predicts how many pulls are still to come, all pulls.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task("round 1", total=None, note="")

        def show(plan: Plan, study: Study) -> None:
            trace = study.trace
            left = len(trace[-1].active) if trace else study.arms.num_arms
            spent = trace[-1].total_pulls if trace else 0
            note = f"{left:,} of {study.arms.num_arms:,} candidates left, {spent:,} measurements"
            total, completed = float(plan.looks), plan.look - 1
            if plan.predicted_pulls is not None:
                total, completed = spent + plan.predicted_pulls, spent
                note = f"{left:,} of {study.arms.num_arms:,} possible, {spent:,} of about {total:,.0f} measured"
            progress.update(bar, description=f"round {plan.round}", total=total, completed=completed, note=note)

        yield show
