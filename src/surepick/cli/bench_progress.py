"""Progress of experiments on standard error, and what failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from surepick.experiments import Experiment, Results

QUIET_SECONDS = 30.0  # between two lines of progress where there is no terminal
MOST_FAILURES = 5


def report_failures(results: Results) -> None:
    """On standard error: which replicates failed, and why; they are in the results."""
    failed = [row for row in results.replicates if row["failure"]]
    if not failed:
        return
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    errors.print(f"{len(failed):,} of {len(results.replicates):,} replicates failed; they count as not right:")
    for row in failed[:MOST_FAILURES]:
        errors.print(f"  {row['key']}: {row['failure']}", markup=False)
    if len(failed) > MOST_FAILURES:
        errors.print(f"  and {len(failed) - MOST_FAILURES:,} more, in the column 'failure'.")


@contextmanager
def progress(chosen: tuple[Experiment, ...]) -> Iterator[Callable[[int, int, dict[str, Any]], None]]:
    """A callback for `run_experiments`: a bar with the time left, or a line now and then where there is no terminal."""
    for each in chosen:
        typer.echo(f"{each.name}: {each.title}", err=True)
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def show(done: int, total: int, row: dict[str, Any]) -> None:
            label = f"{row['environment']} {row['policy']}" if row else "starting"
            progress.update(bar, description=f"{label:40.40s}", total=total, completed=done)

        yield show


def _lines() -> Callable[[int, int, dict[str, Any]], None]:
    started = printed = time.monotonic()
    first = 0

    def show(done: int, total: int, row: dict[str, Any]) -> None:
        nonlocal printed, first
        now = time.monotonic()
        if not row:
            first = done
            typer.echo(
                f"{done:,} of {total:,} replicates are there already." if done else f"{total:,} replicates.", err=True
            )
        elif now - printed >= QUIET_SECONDS or done == total:
            printed = now
            left = (now - started) / (done - first) * (total - done)
            typer.echo(f"{done:,} of {total:,} replicates, {_minutes(left)} left", err=True)

    return show


def _minutes(seconds: float) -> str:
    return f"about {seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
