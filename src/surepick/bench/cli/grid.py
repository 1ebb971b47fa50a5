"""`surepick bench grid`: the paper's search for its constants, which uses the truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from surepick.bench.cli.progress import end_if_all_failed, run_with_progress
from surepick.bench.cli.tables import number, share_text, summary_json, table_of, wide_console
from surepick.bench.grid import AXES, grid_experiment, ranked
from surepick.bench.paper_experiments import experiment
from surepick.bench.summary import CellSummary, summarize
from surepick.cli import options
from surepick.cli.output import print_json, say
from surepick.errors import InvalidInput

WARNING = "THIS SEARCH USES THE TRUTH: it judges constants by whether the answers are right, which no user can know."
MOST_ROWS = 20


def grid(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Whose environment, e.g. mnist or yahoo-like.")],
    policy: Annotated[str, typer.Option("--policy", help="Whose constants, e.g. fixed-kernel. Needed.")] = "",
    environment: Annotated[str, typer.Option("--environment", help='One of several, e.g. "K=250, D=20".')] = "",
    norm_bounds: Annotated[str, typer.Option("--norm-bounds", help='C, e.g. "1e-5,1e-4"; none: 1e-5 to 1e3.')] = "",
    gammas: Annotated[str, typer.Option("--gammas", help="The kernel's; none: 1e-5 to 1e3.")] = "",
    tolerances: Annotated[str, typer.Option("--tolerances", help="eps-bar; none: 1e-5 to 1e-1.")] = "",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Seeds for each combination.")] = 5,
    out: Annotated[Path, typer.Option("--out", help="Where the results go: NAME.parquet.")] = Path("grid.parquet"),
    jobs: options.JobsOption = -1,
    seed: options.SeedOption = 0,
    data: options.DataOption = Path(options.DATA),
    answer_format: options.FormatOption = options.Format.text,
) -> None:
    """The paper's grid search for its constants, by the true success rate; for what a user can do: `surepick tune`."""
    given = {"norm_bound": norm_bounds, "gamma": gammas, "error_tolerance": tolerances}
    if name == "paper":
        raise InvalidInput("paper stands for five experiments; name one of them, e.g. mnist.")
    base = experiment(name)
    if not policy:
        raise InvalidInput(f"whose constants? Give --policy with one of {', '.join(base.policies)}.")
    chosen = grid_experiment(base, policy, environment=environment or None, axes=_axes(given))
    say(WARNING, err=True)
    results = run_with_progress((chosen,), out=out, runs=runs, first_seed=seed, jobs=jobs, data=data)
    if answer_format is options.Format.json:
        print_json({"uses_the_truth": True, **summary_json(results)})
    else:
        _print_ranking(ranked(summarize(results)))
    end_if_all_failed(results)


def _axes(given: dict[str, str]) -> dict[str, list[float]]:
    """What was given; the paper's grids for what was not."""
    return {name: _numbers(text) if text else list(AXES[name]) for name, text in given.items()}


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values or not all(math.isfinite(value) for value in values):
        raise InvalidInput(f"{text!r} is not a list of numbers such as 1e-3,1e-2.")
    return values


def _print_ranking(cells: tuple[CellSummary, ...]) -> None:
    console = wide_console()
    console.print(table_of(WARNING, [_row(cell) for cell in cells[:MOST_ROWS]], style="bold yellow"))
    if len(cells) > MOST_ROWS:
        console.print(f"and {len(cells) - MOST_ROWS} worse ones")


def _row(cell: CellSummary) -> dict[str, str]:
    return {
        "constants": cell.policy,
        "reached (95 %), ORACLE": share_text(cell.reached),
        "oracle pulls, median": number(cell.oracle.median if cell.oracle else None),
        "own stop: right": f"{cell.right.count}/{cell.right.total}",
        "own-stop pulls, median": number(cell.own.median if cell.own else None),
        "failed": str(cell.failures) if cell.failures else "",
    }
