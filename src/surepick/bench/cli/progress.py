"""Experiments with progress on standard error, and a list of what failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from surepick.bench.results import Results
from surepick.bench.runner import OnResult, run_experiments
from surepick.bench.spec import Experiment
from surepick.cli.output import Text, say
from surepick.errors import InvalidInput

QUIET_SECONDS = 30.0  # between two lines of progress where there is no terminal
MOST_FAILURES = 5


def run_with_progress(chosen: Sequence[Experiment], *, out: Path, **settings: Any) -> Results:
    """Run experiments, show progress, and list what failed.

    Args:
        chosen, out, settings: of `run_experiments`.

    Raises:
        InvalidInput: as `run_experiments`, or Ctrl-C was pressed; finished replicates are kept.
    """
    for each in chosen:
        say(f"{each.name}: {each.title}", err=True)
    try:
        with _progress() as show:
            results = run_experiments(chosen, out=out, on_result=show, **settings)
    except KeyboardInterrupt:
        raise InvalidInput(
            f"interrupted. {out.with_suffix('.parts')} keeps what is finished; the same command goes on from it."
        ) from None
    report_failures(results)
    return results


def report_failures(results: Results) -> None:
    """On standard error: which replicates failed, and why; they are in the results."""
    failed = [row for row in results.replicates if row["failure"]]
    if not failed:
        return
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    errors.print(
        f"{len(failed):,} of {len(results.replicates):,} replicates failed; they count as not right, and the same "
        "command tries them again:"
    )
    for row in failed[:MOST_FAILURES]:
        errors.print(Text(f"  {row['key']}: {row['failure']}"))
    if len(failed) > MOST_FAILURES:
        errors.print(f"  and {len(failed) - MOST_FAILURES:,} more, in the column 'failure'.")


def end_if_all_failed(results: Results) -> None:
    """Exit code 1 when no replicate has a result."""
    if all(row["failure"] for row in results.replicates):
        raise typer.Exit(1)


@contextmanager
def _progress() -> Iterator[OnResult]:
    """A callback for `run_experiments`: a bar with the time left, or a line now and then where there is no terminal."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
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


def _lines() -> OnResult:
    started = printed = time.monotonic()
    first = 0

    def show(done: int, total: int, row: dict[str, Any]) -> None:
        nonlocal printed, first
        now = time.monotonic()
        if not row:
            first = done
            there = f"{done:,} of {total:,} replicates are there already."
            say(there if done else f"{total:,} replicate{'s' * (total > 1)}.", err=True)
        elif now - printed >= QUIET_SECONDS or done == total:
            printed = now
            left = (now - started) / (done - first) * (total - done)
            wait = f"about {left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
            say(f"{done:,} of {total:,} replicates, {wait} left", err=True)

    return show
