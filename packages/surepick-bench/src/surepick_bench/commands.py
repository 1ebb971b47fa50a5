"""`surepick bench`: experiments over many seeds, their tables and their figures."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from surepick.cli import options
from surepick.cli.app import Suggesting
from surepick.cli.output import Text, print_json, say
from surepick.core.records import encode
from surepick.errors import InvalidInput
from surepick.tables import read_table
from surepick_bench.experiments import QUESTIONS, experiment, experiment_names, experiments, ratio_lines, read_off
from surepick_bench.results import Results, read_results
from surepick_bench.runner import RANKING, OnResult, procedures_for, right_in_the_long_run, run_experiments
from surepick_bench.spec import Experiment, restricted, smoke
from surepick_bench.summary import AXES, AtLeast, CellSummary, Share, Spread, grid_experiment, ranked, summarize

JobsOption = Annotated[int, typer.Option("--jobs", help="Number of processes; -1: one per processor.")]
DATA = "../shared/data"
DataOption = Annotated[Path, typer.Option("--data", envvar="SUREPICK_DATA", help="The folder of the data sets.")]
# --- Experiments with progress on standard error, and a list of what failed.

QUIET_SECONDS = 30.0  # between two lines of progress where there is no terminal
MOST_FAILURES = 5


def run_with_progress(chosen: Sequence[Experiment], *, out: Path, **settings: Any) -> Results:
    """Run experiments, show progress, and list what failed."""
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
    about = TextColumn("{task.description}", markup=False)
    columns = (about, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
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


# --- The tables of experiments as people read them, and as JSON.

WIDTH = 215  # of the tables, which are too wide for most terminals; narrower, their numbers would be cut
OWN = "own stop: pulls until the policy stopped by itself, which is what a user pays"
ORACLE = "ORACLE: pulls until only epsilon-best arms were left; needs the truth, so that nobody can stop there"
ROUNDS = (
    "rounds: mean dimension d_k, and share s_k of runs whose active set held only epsilon-best arms (needs the truth)"
)
OTHERS = "published totals of other procedures, which assume and promise something else: no ratio is made of them"
TEXTS = ("environment", "policy", "constants", "procedure", "assumes", "promises")
LEGEND = (
    "x reference: median over 2 sigma^2 rho* log(1/(2.4 delta)). expected: measured with the published settings by "
    "another implementation; ratio: ours over it.\nbest out: runs that ruled out the best arm, the first of equals. "
    "(95 %): exact intervals. stopped: runs that ended at their own\nstop, if a budget ended others; those count as "
    "not right and are not in the numbers beside. -: no run. median of all: with those, as more pulls than they had.\n"
    "stop: proved, or a heuristic. budget-exhausted, out of time: ended by the budget of pulls or of seconds.\n"
    "listed, wrong share: of answers by lists, arms on the first list, and the share of the worse list that is wrong."
)
NEEDS_THE_TRUTH = (
    *("oracle", "oracle_to_expected", "oracle_median_to_expected", "reached", "best_eliminated"),
    *("right", "wrong", "wrong_share", "reference", "own_to_reference", "rounds.done"),
)


def summary_json(results: Results) -> dict[str, Any]:
    """All cells with all numbers; the names of those that need the truth are listed."""
    ratios = ("oracle_to_expected", "oracle_median_to_expected", "own_to_expected")
    cells = [encode(cell) | {name: getattr(cell, name) for name in ratios} for cell in summarize(results)]
    places = dict.fromkeys((cell["experiment"], cell["environment"]) for cell in cells)
    return {
        "needs_the_truth": list(NEEDS_THE_TRUTH),
        "notes": {name: experiment(name).note for name in results.experiments if _note(name)},
        "cells": cells,
        "published_procedures": [
            {"experiment": name, "environment": place, **encode(each)}
            for name, place in places
            for each in procedures_for(name, place)
        ],
    }


def print_summary(results: Results) -> None:
    """For each experiment: own stop, oracle's stop, rounds; each table says which it is."""
    console = wide_console()
    cells = summarize(results)
    for name in results.experiments:
        mine = [cell for cell in cells if cell.experiment == name]
        title = experiment(name).title if name in experiment_names() else ""
        console.print()
        console.print(Text.assemble((name, "bold"), f"   {title}"))
        if _note(name):
            console.print(Text(_note(name), "yellow"))
        tables = {
            OWN: [own_row(cell) for cell in mine],
            ORACLE: [oracle_row(cell) for cell in mine if cell.reached is not None],
            ROUNDS: [row for cell in mine if cell.rounds for row in rounds_rows(cell)],
            OTHERS: published_rows(mine),
        }
        for heading, rows in tables.items():
            if rows:
                console.print(table_of(heading, rows))
        if name == RANKING:
            console.print(long_run_line(results))
        if name == QUESTIONS.name:
            done = [cell for cell in mine if cell.own is not None and not cell.cut and not cell.failures]
            for line in ratio_lines({(cell.environment, cell.policy): cell.own.mean for cell in done if cell.own}):
                console.print(line)
    console.print(LEGEND, style="dim")


def _note(name: str) -> str:
    return experiment(name).note if name in experiment_names() else ""


def _cell_names(cell: CellSummary) -> dict[str, str]:
    return {"environment": cell.environment, "policy": cell.policy, "delta": f"{cell.delta:g}"}


def own_row(cell: CellSummary) -> dict[str, str]:
    """What a user pays: column -> text."""
    stopped = 0 if cell.own is None else cell.own.count
    return {
        **_cell_names(cell),
        "right (95 %)": share_text(cell.right),
        "stop": _proof(cell.proved),
        "verdict": _verdicts(cell),
        "stopped": "" if stopped == cell.runs else f"{stopped} of {cell.runs}",
        **_spread(cell.own),
        "listed": number(cell.listed),
        "wrong share": "" if cell.wrong_share is None else f"{cell.wrong_share:.2%}",
        "median of all": _at_least(cell.median_of_all),
        "x reference": _ratio(cell.own_to_reference),
        "expected": number(cell.published.own),
        "ratio": _ratio(cell.own_to_expected),
        "seconds": "" if cell.seconds is None else f"{cell.seconds:.2f}",
    }


def oracle_row(cell: CellSummary) -> dict[str, str]:
    """The paper's metric, beside what was published: column -> text."""
    known, out = cell.published, cell.best_eliminated
    return {
        **_cell_names(cell),
        "reached (95 %)": share_text(cell.reached),
        "paper's success": "" if known.success is None else f"{known.success:.0%}",
        **_spread(cell.oracle),
        "paper's figure": known.figure,
        "expected": number(known.expected),
        "mean ratio": _ratio(cell.oracle_to_expected),
        "median ratio": _ratio(cell.oracle_median_to_expected),
        "best out": "" if out is None else f"{out.count}/{out.total}",
    }


def published_rows(cells: Sequence[CellSummary]) -> list[dict[str, str]]:
    """What procedures of others are published with on these environments: column -> text."""
    places = dict.fromkeys((cell.experiment, cell.environment) for cell in cells)
    return [
        {
            "environment": place,
            "procedure": each.name,
            "observations": number(each.total),
            "assumes": each.assumes,
            "promises": each.promises,
        }
        for experiment, place in places
        for each in procedures_for(experiment, place)
    ]


def long_run_line(results: Results) -> str:
    """How many answers of `ranking-and-selection` are right by the throughput too, in a sentence."""
    right, ended = right_in_the_long_run([each.replicate for each in results.played])
    said = "right by the throughput of the exact chain too, within epsilon of the best one"
    return f"{said}: {right} of {ended} own stops."


def rounds_rows(cell: CellSummary) -> list[dict[str, str]]:
    """(d_k, s_k) of the cell, and in a second row the paper's where it has them: column -> text."""
    ours = [(row.mean_dim, row.done) for row in cell.rounds]
    several = [(cell.policy, ours), ("  (the paper's)", list(cell.published.rounds))]
    return [
        _cell_names(cell)
        | {"policy": name}
        | {f"d_{k}, s_{k}": f"{dim:.4g}, {done:.0%}" for k, (dim, done) in enumerate(pairs, start=1)}
        for name, pairs in several
        if pairs
    ]


def filled(rows: Sequence[dict[str, str]]) -> tuple[list[str], list[list[str]]]:
    """The columns in which some row has a text, and the rows in them; "delta" only where it varies."""
    heads = [head for head in dict.fromkeys(head for row in rows for head in row) if any(row.get(head) for row in rows)]
    if len({row.get("delta") for row in rows}) == 1:
        heads = [head for head in heads if head != "delta"]
    return heads, [[row.get(head, "") for head in heads] for row in rows]


def wide_console() -> Console:
    """Standard output, as wide as the tables need."""
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    return console


def table_of(title: str, rows: Sequence[dict[str, str]], *, style: str = "italic") -> Table:
    """Rows as a table, each environment named once."""
    table = Table(title=title, title_justify="left", title_style=style, box=box.SIMPLE_HEAD, pad_edge=False)
    heads, cells = filled(rows)
    for head in heads:
        table.add_column(head, justify="left" if head in TEXTS else "right", no_wrap=True)
    above = None
    for row in cells:
        table.add_row(*(Text(cell) for cell in ("" if row[0] == above else row[0], *row[1:])))
        above = row[0]
    return table


def _verdicts(cell: CellSummary) -> str:
    counts = dict(cell.verdicts)
    if late := cell.cut.get("seconds", 0):
        counts |= {"budget-exhausted": counts["budget-exhausted"] - late, "out of time": late}
    counts = {name: count for name, count in counts.items() if count} | (
        {"failed": cell.failures} if cell.failures else {}
    )
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts.items())


def share_text(share: Share | None) -> str:
    """49/50 (89%-100%); "" for None."""
    return "" if share is None else f"{share.count}/{share.total} ({share.low:.0%}-{share.high:.0%})"


def _spread(spread: Spread | None) -> dict[str, str]:
    if spread is None:
        return {"mean": "-", "median": "-", "quartiles": "-"}
    quartiles = f"{number(spread.lower)}-{number(spread.upper)}"
    return {"mean": number(spread.mean), "median": number(spread.median), "quartiles": quartiles}


def _proof(proved: Share | None) -> str:
    if proved is None:
        return ""
    if proved.count == proved.total:
        return "proved"
    return "heuristic" if proved.count == 0 else f"{proved.count} of {proved.total} proved"


def _at_least(bound: AtLeast | None) -> str:
    if bound is None:
        return ""
    return number(bound.pulls) if bound.exact else f"> {number(bound.pulls)}"


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


# --- `surepick bench grid`: the paper's search for its constants, which uses the truth.

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
    jobs: JobsOption = -1,
    seed: options.SeedOption = 0,
    data: DataOption = Path(DATA),
    answer_format: options.FormatOption = options.Format.text,
) -> None:
    """The paper's grid search for its constants, by the true success rate; for what a user can do: `surepick tune`."""
    given = {"norm_bound": norm_bounds, "gamma": gammas, "error_tolerance": tolerances}
    if name == "paper":
        raise InvalidInput("paper stands for five experiments; name one of them, e.g. mnist.")
    base = experiment(name)
    if not policy:
        raise InvalidInput(f"whose constants? Give --policy with one of {', '.join(base.policies)}.")
    axes = {name: _numbers(text) if text else list(AXES[name]) for name, text in given.items()}
    chosen = grid_experiment(base, policy, environment=environment or None, axes=axes)
    say(WARNING, err=True)
    results = run_with_progress((chosen,), out=out, runs=runs, first_seed=seed, jobs=jobs, data=data)
    if answer_format is options.Format.json:
        print_json({"uses_the_truth": True, **summary_json(results)})
    else:
        _print_ranking(ranked(summarize(results)))
    end_if_all_failed(results)


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
    jobs: JobsOption = -1,
    policies: Annotated[str, typer.Option("--policies", help='Only these, e.g. "rage,certified-linear".')] = "",
    seed: options.SeedOption = 0,
    data: DataOption = Path(DATA),
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
    from surepick_bench.figures.figures import experiment_figures  # noqa: PLC0415 (only here)

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
