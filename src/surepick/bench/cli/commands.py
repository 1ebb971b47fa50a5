"""`surepick bench`: experiments over many seeds, their tables and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from surepick.bench.cli.grid import grid
from surepick.bench.cli.progress import end_if_all_failed, report_failures, run_with_progress
from surepick.bench.cli.tables import print_summary, summary_json
from surepick.bench.paper_experiments import experiments
from surepick.bench.published_numbers import read_off
from surepick.bench.results import Results, read_results
from surepick.bench.spec import restricted, smoke
from surepick.cli import options
from surepick.cli.groups import Suggesting
from surepick.cli.output import print_json, say
from surepick.errors import InvalidInput
from surepick.tables import read_table

bench = typer.Typer(
    cls=Suggesting, no_args_is_help=True, help="Experiments over many seeds: run them, sum them up, draw them."
)
ResultsArgument = Annotated[Path, typer.Argument(metavar="RESULTS", help="The Parquet file that `bench run` wrote.")]
NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="EXPERIMENT...",
        help="paper-linear, paper-nonlinear, mnist, yahoo-like, high-dimensional (paper: these five), peers "
        "(with it: small-epsilon and slippage), ranking-and-selection (with slippage), questions, error-rate, or a "
        "file NAME.json that describes one.",
    ),
]
bench.command("grid")(grid)


@bench.command("run")
def run(
    names: NamesArgument,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Seeds for each policy in each environment.")] = 50,
    out: Annotated[Path, typer.Option("--out", help="Where the results go: NAME.parquet.")] = Path("results.parquet"),
    jobs: options.JobsOption = -1,
    policies: Annotated[str, typer.Option("--policies", help='Only these, e.g. "rage,certified-linear".')] = "",
    seed: options.SeedOption = 0,
    data: options.DataOption = Path(options.DATA),
    smoke_test: Annotated[
        bool, typer.Option("--smoke", help="One seed, few pulls, two seconds a study: shows that everything works.")
    ] = False,
    dask: Annotated[
        str, typer.Option("--dask", help="Address of a Dask scheduler whose workers do the work: tcp://HOST:PORT.")
    ] = "",
    answer_format: options.FormatOption = options.Format.text,
) -> None:
    """Run experiments. Every replicate is kept as it finishes: the same command goes on after any interruption."""
    wanted = [label.strip() for label in policies.split(",") if label.strip()]
    chosen = restricted(experiments(names), wanted)
    if smoke_test:
        chosen, runs = tuple(map(smoke, chosen)), 1
    with _workers(dask):
        results = run_with_progress(chosen, out=out, runs=runs, first_seed=seed, jobs=None if dask else jobs, data=data)
    _print(results, answer_format)
    if answer_format is options.Format.text:
        say(f"Replicates: {out}   rounds: {out.with_suffix('.rounds.parquet')}")
    end_if_all_failed(results)


@bench.command("summary")
def summary(results: ResultsArgument, answer_format: options.FormatOption = options.Format.text) -> None:
    """The tables of an experiment: what a user pays, what an oracle's stop would have paid, and what was published."""
    found = read_results(results)
    report_failures(found)
    _print(found, answer_format)


@bench.command("figures")
def figures(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option("--out", help="The folder that the figures go to.")] = Path("figures"),
) -> None:
    """The paper's figures, and the two that it does not show: own-stop pulls, and wrong answers against delta."""
    from surepick.bench.figures.figures import experiment_figures  # noqa: PLC0415 (only here)

    found = read_results(results)  # refuses other tables
    rounds = read_table(results.with_suffix(".rounds.parquet")) if found.rounds else None
    for path in experiment_figures(read_table(results), rounds, out, published=read_off()):
        say(str(path))


def _print(results: Results, answer_format: options.Format) -> None:
    if answer_format is options.Format.json:
        print_json(summary_json(results))
    else:
        print_summary(results)


@contextmanager
def _workers(address: str) -> Iterator[None]:
    """Run replicates on the workers of a Dask scheduler; here where the address is ""."""
    if not address:
        yield
        return
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
        from joblib import parallel_config  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput('--dask needs Dask, which is absent: pip install "surepick[dask]".') from error
    try:
        client: Any = Client(address, timeout=5)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"there is no Dask scheduler at {address}: {error}.") from error
    with client, parallel_config(backend="dask"):
        yield
