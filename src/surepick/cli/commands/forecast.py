"""`surepick forecast`: what a study will cost, before it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from surepick.cli import options
from surepick.cli.commands.run import warn
from surepick.cli.output import Text, print_json
from surepick.cli.policy_options import check_one_norm, policy_grid
from surepick.cli.table_options import given_options, reads_tables
from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.files import is_file
from surepick.embeddings.norm_bound import ESTIMATED
from surepick.environments import Environment, RecordedRewards, digits, table, two_clusters
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.forecasts import Forecast, ForecastRow, advice, compare
from surepick.linalg.blas_threads import one_thread
from surepick.noise import Noise, largest_scale, parse_noise, scales
from surepick.policies.base import Spec, spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.policies.registry import make_policy
from surepick.reports import forecast_figure
from surepick.tables import ReadOptions, read_arms

MOST_ROUNDS = 6
QUIET = 0.7  # of the assumed standard deviation; a replay that varies less spends clearly less than the guess


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """An environment that has a name, and a norm bound that is known to hold there."""

    make: Callable[[int], Environment]
    norm_bound: str


BUILT_IN = {
    "two-clusters": BuiltIn(lambda seed: two_clusters(seed=seed), "1"),
    "digits": BuiltIn(digits, "2"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What the forecast is about: arms, noise, and the guess of the means if there is one."""

    arms: Arms
    noise: Noise
    means: FloatArray | None
    minimize: bool
    norm_bound: str
    notes: tuple[str, ...] = ()


@reads_tables
def forecast(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A CSV, Excel, Parquet, Arrow or JSON file, an Olympus folder, or an example: two-clusters, digits.",
        ),
    ],
    reward: Annotated[
        str | None,
        typer.Option("--reward", help="A column of measurements; their means are the guess. None: worst case only."),
    ] = None,
    name: options.IdOption = None,
    features: options.FeaturesOption = None,
    epsilon: options.EpsilonOption = 0.1,
    delta: options.DeltaOption = 0.05,
    noise: options.NoiseOption = "",
    policy: Annotated[
        str | None, typer.Option("--policy", help='One or several, "a,b"; none: those that the options speak of.')
    ] = None,
    norm_bound: Annotated[
        str | None, typer.Option("--norm-bound", help='Largest norm that the reward can have, one or several: "1,2".')
    ] = None,
    norm_estimate: Annotated[
        str | None,
        typer.Option(
            "--norm-estimate", help="In place of --norm-bound: estimated norms (surepick tune); heuristic if used."
        ),
    ] = None,
    gamma: Annotated[
        str | None, typer.Option("--gamma", help='Of the Gaussian kernel, one or several: "0.01,0.1,1".')
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", help='One or several: "gaussian:0.1,matern:2.5:1".')] = None,
    expansion: Annotated[
        str | None,
        typer.Option(
            "--expansion", help='Kernels by their eigenfunctions, one or several: "sine,fourier:geometric:0.5".'
        ),
    ] = None,
    gap_bound: options.GapBoundOption = None,
    minimize: Annotated[bool, typer.Option("--minimize", help="Small measurements are good.")] = False,
    standardize: options.StandardizeOption = False,
    intercept: options.InterceptOption = False,
    *,
    reading: ReadOptions,
    seed: options.SeedOption = 0,
    rehearsals: Annotated[
        int, typer.Option("--rehearsals", min=1, help="Most studies to simulate under the guess; fewer are quicker.")
    ] = 200,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw the comparison into this file.")] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """What will a study cost? Compares policies and settings before a single measurement is made.

    Lists with commas are compared in every combination. Nothing is measured and nothing is stored.
    """
    if source in BUILT_IN and not is_file(Path(source)):
        _refuse_table_options(source, name, features, reward, minimize, standardize, intercept, given_options(reading))
        subject = _built_in(source, noise, seed)
    else:
        subject = _from_table(source, name, reward, features, noise, minimize, standardize, intercept, reading)
    lists: dict[str, Sequence[Any]] = {
        **_norms(norm_bound, norm_estimate, subject.norm_bound if policy is None else None),
        "gamma": _numbers("--gamma", gamma),
        "kernel": _words(kernel),
        "expansion": _words(expansion),
        "gap_bound": [] if gap_bound is None else [gap_bound],
    }
    grid = policy_grid(_words(policy), lists)
    warn(subject.notes)
    rows = []
    specs = {}
    with Console(stderr=True).status("forecasting ...") as status:
        for label, (chosen, settings) in grid.items():
            status.update(Text(f"forecasting {label} ..."))
            row, specs[label] = _row(label, chosen, settings, subject, epsilon, delta, seed, rehearsals)
            rows.append(row)
    uniform = uniform_pulls(subject.arms.num_arms, sigma=largest_scale(subject.noise), epsilon=epsilon, delta=delta)
    counsel = advice(tuple(rows), uniform)
    if figure is not None:
        title = f"{subject.arms.num_arms:,} candidates, epsilon {epsilon:g}, delta {delta:g}"
        forecast_figure(rows, uniform, figure, title=title)
    if output is options.Format.json:
        print_json(
            {
                "num_arms": subject.arms.num_arms,
                "epsilon": epsilon,
                "delta": delta,
                "noise": subject.noise.spec,
                "minimize": subject.minimize,
                "uniform_pulls": uniform,
                "rows": [_row_json(row, *grid[row.name], specs[row.name]) for row in rows],
                "advice": counsel,
            }
        )
    else:
        _print(subject, rows, uniform, counsel, epsilon, delta)


def _built_in(source: str, noise: str, seed: int) -> Subject:
    environment = BUILT_IN[source].make(seed)
    assumed = parse_noise(noise) if noise else environment.noise
    return Subject(environment.arms, assumed, environment.means, environment.minimize, BUILT_IN[source].norm_bound)


def _refuse_table_options(source: str, *given: object) -> None:
    if any(given):
        raise InvalidInput(
            f"{source} is a built-in example: --id, --features, --reward, --minimize, --standardize, --intercept, "
            "--sheet, --percent and --drop-missing are for tables."
        )


def _from_table(
    source: str,
    name: str | None,
    reward: str | None,
    features: str | None,
    noise: str,
    minimize: bool,
    standardize: bool,
    intercept: bool,
    reading: ReadOptions,
) -> Subject:
    if not noise:
        raise InvalidInput(
            "say what is known of a single measurement with --noise: bernoulli, bounded:LOW:HIGH, or subgaussian:SIGMA "
            "(normal noise of standard deviation SIGMA). The cost is proportional to its square."
        )
    assumed = parse_noise(noise)
    if reward is None:
        arms = read_arms(source, id=name, features=features, standardize=standardize, intercept=intercept, **reading)
        return Subject(arms, assumed, None, minimize, "")
    recorded = table(
        source,
        id=name,
        reward=reward,
        features=features,
        noise=assumed,
        minimize=True if minimize else None,
        standardize=standardize,
        intercept=intercept,
        **reading,
    )
    return Subject(recorded.arms, assumed, recorded.means, recorded.minimize, "", quieter(recorded))


def quieter(recorded: Environment) -> tuple[str, ...]:
    """What to know where measurements drawn from the table vary clearly less than the noise that the guess assumes."""
    if not isinstance(recorded.law, RecordedRewards):
        return ()
    assumed = scales(recorded.noise, recorded.num_arms) ** 2
    if recorded.noise.support is not None:  # simulated rewards are low or high, the widest law with that mean
        low, high = recorded.noise.support
        assumed = (recorded.means - low) * (high - recorded.means)
    drawn, simulated = (float(np.sqrt(np.mean(variances))) for variances in (recorded.law.variances, assumed))
    if drawn >= QUIET * simulated:
        return ()
    return (
        f"the guess simulates measurements with the declared noise (standard deviation {simulated:.3g}); repeats in "
        f"this table vary by {drawn:.3g}. surepick run draws from the table, so it may end after half as many "
        "measurements or fewer. Expect the guess where the noise is as declared; if it is smaller, declare less.",
    )


def _row(
    label: str,
    chosen: str,
    settings: dict[str, Any],
    subject: Subject,
    epsilon: float,
    delta: float,
    seed: int,
    rehearsals: int,
) -> tuple[ForecastRow, Spec | None]:
    """One line of the comparison; a policy that cannot reach epsilon says so in its row."""
    try:
        built = make_policy(chosen, subject.arms, epsilon=epsilon, delta=delta, noise=subject.noise, **settings)
    except (ContractError, NotConverged) as refusal:
        return ForecastRow(label, None, None, str(refusal)), None
    with one_thread():
        (row,) = compare({label: built}, subject.means, minimize=subject.minimize, seed=seed, rehearsals=rehearsals)
    return row, spec_of(built)


def _words(text: str | None) -> list[str]:
    return [] if not text else [word.strip() for word in text.split(",")]


def _norms(bounds: str | None, estimates: str | None, otherwise: str | None) -> dict[str, Sequence[Any]]:
    """Values of the options that --norm-bound or --norm-estimate mean; `otherwise` are bounds, for where none is."""
    check_one_norm(bounds, estimates)
    if estimates is None:
        return {"norm_bound": _numbers("--norm-bound", bounds or otherwise)}
    return {"norm_source": [ESTIMATED], "norm_bound": _numbers("--norm-estimate", estimates)}


def _numbers(flag: str, text: str | None) -> list[float]:
    try:
        return [float(word) for word in _words(text)]
    except ValueError as error:
        raise InvalidInput(f'{flag} is {text!r}; give a number, or several with commas between: "1,2".') from error


def _row_json(row: ForecastRow, policy: str, settings: dict[str, Any], spec: Spec | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "policy": policy,
        "options": settings,
        "spec": spec,
        "worst": None if row.worst is None else asdict(row.worst),
        "guess": None if row.guess is None else asdict(row.guess),
        "warnings": list(row.warnings),
        "believable": row.believable,
        "refusal": row.refusal or None,
    }


def _print(
    subject: Subject, rows: Sequence[ForecastRow], uniform: int, counsel: str, epsilon: float, delta: float
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        Text(
            f"{subject.arms.num_arms:,} candidates, {subject.arms.features.shape[1]} features, noise "
            f"{_short(subject.noise)}. Asked: one within {epsilon:g} of the best, wrong with probability at most "
            f"{delta:g}."
        )
    )
    guessed = any(row.guess is not None for row in rows)
    notes: dict[str, int] = {}
    table_ = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table_.add_column("choice", overflow="fold")
    table_.add_column("dims", justify="right", no_wrap=True)
    if guessed:
        table_.add_column("guess", justify="right", no_wrap=True)
    table_.add_column("at worst", justify="right", no_wrap=True)
    table_.add_column("notes", no_wrap=True)
    for row in rows:
        table_.add_row(*_cells(row, guessed, notes))
    table_.add_row("all equally often", "", *([f"{uniform:,}"] if guessed else []), f"{uniform:,}", "")
    Console(highlight=False).print(table_)
    if not all(row.believable for row in rows):
        console.print(Text("[!] Not to be believed as it stands, whatever it costs: see its notes."))
    for sentence, number in notes.items():
        console.print(Text(f"[{number}] {sentence}"))
    norms = sorted({f"{row.guess.guess_norm:.3g}" for row in rows if row.guess and row.guess.guess_norm is not None})
    if norms:
        console.print(Text(f"Norm that the guessed means need: {', '.join(norms)}."))
    console.print()
    console.print(Text(counsel, style="bold"))


def _cells(row: ForecastRow, guessed: bool, notes: dict[str, int]) -> list[str | Text]:
    sentences = (*row.warnings, *([f"It refuses to run: {row.refusal}"] if row.refusal else []))
    numbers = [notes.setdefault(sentence, len(notes) + 1) for sentence in sentences]
    marks = ([] if row.believable else ["!"]) + [str(number) for number in numbers]
    noted = Text(" ".join(marks), style="" if row.believable else "bold red")
    if row.worst is None:
        return [Text(row.name), "", *(["refused"] if guessed else []), "refused", noted]
    shown = f"{row.guess.total:,}" if row.guess is not None else ""
    return [Text(row.name), _dims(row.worst), *([shown] if guessed else []), f"{row.worst.total:,}", noted]


def _dims(found: Forecast) -> str:
    """The dimension of each round, "2" when it is always the same."""
    dims = [row.dim for row in found.rounds]
    if not any(dims):
        return "-"
    if len(set(dims)) == 1:
        return f"{dims[0]}"
    return " ".join(map(str, dims[:MOST_ROUNDS])) + (" ..." if len(dims) > MOST_ROUNDS else "")


def _short(noise: Noise) -> str:
    return noise.spec if isinstance(noise.sigma, float) else f"subgaussian, scale at most {largest_scale(noise):g}"
