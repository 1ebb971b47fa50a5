"""`surepick forecast`: what a study will cost, before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Option

from surepick.blocks.rows import RowBlocks
from surepick.cli import options
from surepick.cli.output import Text, note, picked, print_json, print_table, say
from surepick.cli.policy_options import PolicyOptions, declared_noise
from surepick.cli.table_options import SourceArgument, TableOptions, example_named, in_files
from surepick.cli.tolerances import advice_for, advice_from
from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.json import encode
from surepick.environments.noise_checks import quieter_records
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.forecasts import Forecast, ForecastRow, advice, compare, noise_to_draw
from surepick.forecasts.long_lists import USUAL_STUDIES, forecast_of_rows
from surepick.linalg.blas_threads import one_thread
from surepick.noise import Noise, largest_scale, parse_noise
from surepick.policies.base import Spec, spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.policies.registry import make_policy, rehearsed
from surepick.reports import forecast_figure
from surepick.text import about

MOST_ROUNDS = 6
WHY_NOISE = "The cost is proportional to the square of SIGMA."


@dataclass(frozen=True, slots=True)
class Subject:
    """What the forecast is about: arms, noise, and the guess of the means if there is one."""

    arms: Arms
    noise: Noise
    means: FloatArray | None
    minimize: bool
    norm_bound: str = ""
    assume_scale: float | None = None

    @property
    def drawn(self) -> Noise:
        """What measurements are made up with."""
        return noise_to_draw(self.noise, self.assume_scale, self.arms.num_arms)


def forecast(
    source: SourceArgument,
    *,
    reward: Annotated[str | None, Option(help="A column of measurements, whose means are the guess.")] = None,
    table: TableOptions,
    minimize: options.MinimizeOption = False,
    asked: options.AskedGoal,
    noise: options.NoiseOption = "",
    assume_scale: Annotated[
        float | None, Option(help="With --noise normal: a guess of the standard deviation, to make measurements up.")
    ] = None,
    policy: PolicyOptions,
    seed: options.SeedOption = 0,
    rehearsals: Annotated[int, Option(min=1, help="Most studies to simulate under the guess.")] = 200,
    figure: Annotated[Path | None, Option(help="Draw the comparison into this file.")] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Forecast what a study will cost; compare policies and settings.

    --policy, --norm-bound, --norm-estimate, --gamma, --kernel and --expansion take lists with commas, e.g. "0.1,1", and
    every combination is compared. Nothing is measured and nothing is stored.
    """
    if in_files(source):
        if reward is not None or figure is not None or assume_scale is not None or minimize:
            raise InvalidInput(
                "a forecast of candidates in files makes rewards up: leave out --reward, --figure, --assume-scale and "
                "--minimize."
            )
        listed, assumed = table.with_features.rows(source), declared_noise(noise, WHY_NOISE)
        goal = asked.settled(advice_for(listed.num_rows, assumed))
        _of_rows(listed, assumed, goal, policy, seed, rehearsals, output)
        return
    if noise:
        noise_to_draw(parse_noise(noise), assume_scale, 1)
    example = example_named(source, table, reward, minimize=minimize)
    reader = table.with_features if example is not None else table.of(name for name, _ in policy.grid().values())
    if example is not None:
        world = example.make(seed)
        assumed = parse_noise(noise) if noise else world.noise
        goal = asked.settled(advice_from(replace(world, noise=assumed)))
        subject = Subject(world.arms, assumed, world.means, world.minimize, example.norm_bound, assume_scale)
    elif reward is None:
        assumed = declared_noise(noise, WHY_NOISE)
        subject = Subject(reader.arms(source), assumed, None, minimize, assume_scale=assume_scale)
        goal = asked.settled(advice_for(subject.arms.num_arms, subject.drawn))
    else:
        world = reader.recorded(source, reward, declared_noise(noise, WHY_NOISE), minimize=minimize)
        goal = asked.settled(advice_from(world))
        subject = Subject(world.arms, world.noise, world.means, world.minimize, assume_scale=assume_scale)
        note(*quieter_records(world))
    note(*reader.not_used)
    grid = policy.grid(subject.norm_bound)
    if figure is not None and policy.asks_several:
        raise InvalidInput("a figure shows options for one question; give one --question.")
    forecasts: list[tuple[ForecastRow, Spec | None]] = []
    with Console(stderr=True).status("forecasting ...") as status:
        for label, (chosen, settings) in grid.items():
            status.update(Text(f"forecasting {label} ..."))
            forecasts.append(_row(label, chosen, settings, subject, goal, seed, rehearsals))
    rows = [row for row, _ in forecasts]
    uniform = None if policy.asks_several else _uniform(rows, subject, goal)
    counsel = advice(tuple(rows), uniform)
    if figure is not None and uniform is not None:
        title = f"{subject.arms.num_arms:,} candidates, epsilon {goal.epsilon:g}, delta {goal.delta:g}"
        forecast_figure(rows, uniform, figure, title=title)
    if output is options.Format.text:
        _print(subject, rows, uniform, policy.asked(goal, by_segment=table.segments is not None))
        say()
        say((counsel, "bold"))
        return
    print_json(
        {
            "num_arms": subject.arms.num_arms,
            **picked(goal, "epsilon", "delta"),
            "noise": subject.noise.spec,
            **({} if assume_scale is None else {"assume_scale": assume_scale}),
            "minimize": subject.minimize,
            "uniform_pulls": uniform,
            "rows": [_row_json(row, *grid[row.name], spec) for row, spec in forecasts],
            "advice": counsel,
        }
    )


def _of_rows(
    rows: RowBlocks,
    noise: Noise,
    goal: options.Goal,
    policy: PolicyOptions,
    seed: int,
    rehearsals: int,
    output: options.Format,
) -> None:
    """The forecast of candidates in files."""
    _, settings = policy.single()
    asked = {"epsilon": goal.epsilon, "delta": goal.delta, "noise": noise, **settings}
    with one_thread(), Console(stderr=True).status("forecasting ..."):
        found = forecast_of_rows(rows, seed=seed, rehearsals=min(rehearsals, USUAL_STUDIES), **asked)
    if output is options.Format.json:
        print_json(encode(found))
        return
    say(str(found))
    for sentence in found.warnings:
        say(sentence)


def _uniform(rows: Sequence[ForecastRow], subject: Subject, goal: options.Goal) -> int:
    """Pulls of sampling all arms equally often."""
    found = [row.worst.uniform for row in rows if row.worst is not None]
    if found:
        return found[0]
    sigma = largest_scale(subject.drawn)
    return uniform_pulls(subject.arms.num_arms, sigma=sigma, epsilon=goal.epsilon, delta=goal.delta)


def _row(
    label: str, chosen: str, settings: dict[str, Any], subject: Subject, goal: options.Goal, seed: int, rehearsals: int
) -> tuple[ForecastRow, Spec | None]:
    """One line of the comparison; a policy that cannot reach epsilon says so in its row."""
    try:
        built = make_policy(
            chosen,
            subject.arms,
            epsilon=goal.epsilon,
            delta=goal.delta,
            noise=subject.noise,
            **rehearsed(chosen, settings, seed),
        )
    except (ContractError, NotConverged) as refusal:
        return ForecastRow(label, None, None, str(refusal)), None
    with one_thread():
        (row,) = compare(
            {label: built},
            subject.means,
            minimize=subject.minimize,
            seed=seed,
            rehearsals=rehearsals,
            assume_scale=subject.assume_scale,
        )
    return row, spec_of(built)


def _row_json(row: ForecastRow, policy: str, settings: dict[str, Any], spec: Spec | None) -> dict[str, Any]:
    about = {"policy": policy, "options": settings, "spec": spec, "refusal": row.refusal or None}
    return about | picked(row, "name", "worst", "guess", "warnings", "believable")


def _print(subject: Subject, rows: Sequence[ForecastRow], uniform: int | None, asked: str) -> None:
    noise = subject.drawn
    scale = noise.spec if isinstance(noise.sigma, float) else f"subgaussian, scale at most {largest_scale(noise):g}"
    if subject.assume_scale is not None:
        scale = f"{subject.noise.spec}, made up with the guessed standard deviation {subject.assume_scale:g}"
    features = subject.arms.features.shape[1]
    say(f"{subject.arms.num_arms:,} candidates, {features} features, noise {scale}. Asked: {asked}")
    if features and subject.arms.columns is not None:
        say(subject.arms.features_said)
    guessed = any(row.guess is not None for row in rows)
    notes: dict[str, int] = {}  # sentence -> its number
    evenly = next((row.worst.uniform_cost for row in rows if row.worst is not None), None)
    cells = [_cells(row, guessed, evenly is not None, notes) for row in rows]
    paid = [] if evenly is None else [about(evenly)]
    if uniform is not None:
        cells.append(["uniform sampling", "", *([f"{uniform:,}"] if guessed else []), f"{uniform:,}", "1", *paid, ""])
    money_header = [] if evenly is None else ["money"]
    headers = ("policy", "dims", *(["guess"] if guessed else []), "at worst", "batches", *money_header, "notes")
    print_table(headers, cells, left=("policy", "notes"), fold="policy")
    if not all(row.believable for row in rows):
        say("[!] Not credible as it stands, at any cost: see its notes.")
    for sentence, number in notes.items():
        say(f"[{number}] {sentence}")
    norms = sorted({f"{row.guess.guess_norm:.3g}" for row in rows if row.guess and row.guess.guess_norm is not None})
    if norms:
        say(f"Norm that the guessed means need: {', '.join(norms)}.")


def _cells(row: ForecastRow, guessed: bool, priced: bool, notes: dict[str, int]) -> list[str | Text]:
    sentences = (*row.warnings, *([f"It refuses to run: {row.refusal}"] if row.refusal else []))
    numbers = [notes.setdefault(sentence, len(notes) + 1) for sentence in sentences]
    marks = ([] if row.believable else ["!"]) + [str(number) for number in numbers]
    noted = Text(" ".join(marks), style="" if row.believable else "bold red")
    if row.worst is None:
        return [row.name, "", *(["refused"] if guessed else []), "refused", "", *[""] * priced, noted]
    shown = row.guess.total_said if row.guess is not None else ""
    found, counts = row.guess or row.worst, ([shown] if guessed else [])
    paid = [about(found.cost or 0.0)] if priced else []
    return [row.name, _dims(row.worst), *counts, row.worst.total_said, _batches(found), *paid, noted]


def _batches(found: Forecast) -> str:
    """The median of the simulated studies, and their range; under the guess if there is one."""
    fewest, most = found.fewest_batches, found.most_batches
    return f"{most:,}" if fewest == most else f"{found.batches:,} ({fewest:,}-{most:,})"


def _dims(found: Forecast) -> str:
    """The dimension of each round, "2" when it is always the same."""
    dims = [row.dim for row in found.rounds]
    if not any(dims):
        return "-"
    if len(set(dims)) == 1:
        return f"{dims[0]}"
    return " ".join(map(str, dims[:MOST_ROUNDS])) + (" ..." if len(dims) > MOST_ROUNDS else "")
