"""`surepick forecast`: what a study will cost, before it starts."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

from surepick.chunks.sources import RowBlocks
from surepick.cli import options
from surepick.cli.answers import advice_for, advice_from
from surepick.cli.options import opt
from surepick.cli.output import Text, note, picked, print_either, print_json, print_table, say
from surepick.cli.policy_options import PolicyOptions, declared_noise
from surepick.cli.tables import SourceArgument, TableOptions, example_named, in_files
from surepick.core.arms import Arms
from surepick.core.plans import Design, DesignOfRows
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, encode
from surepick.designs import solve_design
from surepick.drawings.terminal import signs_for
from surepick.environments import Environment, RecordedRewards
from surepick.environments.environment import quieter_records
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.forecasts import (
    Forecast,
    ForecastRow,
    advice,
    compare_settings,
    forecast_gap,
    forecast_ranges,
    noise_to_draw,
)
from surepick.forecasts.simulated_studies import USUAL_STUDIES, forecast_of_rows
from surepick.linalg.rows import one_thread
from surepick.noise import Noise, largest_scale, parse_noise
from surepick.policies.base import Spec, spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.policies.registry import make_policy, rehearsed
from surepick.reports import forecast_figure
from surepick.text import about
from surepick.tuning.kernel import KernelChoice, choose_kernel
from surepick.tuning.noise_pilot import repeated_pulls

MOST_ROUNDS = 6
RANGES_SECONDS = 10.0  # of processor time, for 60 simulated studies
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
    reward: str | None = opt("A column of measurements, whose means are the guess."),
    table: TableOptions,
    minimize: bool = options.MINIMIZE,
    asked: options.AskedGoal,
    noise: options.NoiseOption = "",
    assume_scale: float | None = opt(
        "With --noise normal: a guess of the standard deviation, to make measurements up."
    ),
    policy: PolicyOptions,
    seed: options.SeedOption = 0,
    rehearsals: int = opt("Most studies to simulate under the guess.", default=200, min=1),
    figure: Path | None = opt("Draw the comparison into this file."),
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
        _, settings = policy.single()
        promised = {**picked(goal, "epsilon", "delta"), "noise": assumed, **settings}
        with one_thread(), Console(stderr=True).status("forecasting ..."):
            found = forecast_of_rows(listed, seed=seed, rehearsals=min(rehearsals, USUAL_STUDIES), **promised)
        print_either(output, encode(found), str(found), *found.warnings)
        return
    if noise:
        noise_to_draw(parse_noise(noise), assume_scale, 1)
    example = example_named(source, table, reward, minimize=minimize)
    reader = table.with_features if example is not None else table.of(name for name, _ in policy.grid().values())
    if example is not None:
        make, norm_bound = example
        world = make(seed)
        assumed = parse_noise(noise) if noise else world.noise
        goal = asked.settled(advice_from(replace(world, noise=assumed)), budget=policy.budget)
        subject = Subject(world.arms, assumed, world.means, world.minimize, norm_bound, assume_scale)
    elif reward is None:
        assumed = declared_noise(noise, WHY_NOISE)
        subject = Subject(reader.arms(source), assumed, None, minimize, assume_scale=assume_scale)
        goal = asked.settled(advice_for(subject.arms.num_arms, subject.drawn), budget=policy.budget)
    else:
        world = reader.recorded(source, reward, declared_noise(noise, WHY_NOISE), minimize=minimize)
        goal = asked.settled(advice_from(world), budget=policy.budget)
        subject = Subject(world.arms, world.noise, world.means, world.minimize, assume_scale=assume_scale)
        note(*quieter_records(world))
    note(*reader.not_used)
    if policy.budget is not None:
        _forecast_gap(policy, subject, goal, seed, output)
        return
    grid = policy.grid(subject.norm_bound)
    if figure is not None and policy.asks_several:
        raise InvalidInput("a figure shows options for one question; give one --question.")
    with Console(stderr=True).status("forecasting ...") as status:
        forecasts = []
        for label, (chosen, settings) in grid.items():
            status.update(Text(f"forecasting {label} ..."))
            forecasts.append(_row(label, chosen, settings, subject, goal, seed, rehearsals))
    rows = [row for row, _ in forecasts]
    uniform = None if policy.asks_several else _uniform(rows, subject, goal)
    counsel = advice(tuple(rows), uniform)
    if figure is not None and uniform is not None:
        forecast_figure(rows, uniform, figure, title=f"{subject.arms.num_arms:,} candidates, {goal}")
    if output is options.Format.text:
        _print_forecast(subject, rows, uniform, policy.asked(goal, by_segment=table.segments is not None))
        say((counsel, "bold"))
        _print_ranges(subject, [spec for _, spec in forecasts], seed)
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


def _forecast_gap(
    policy: PolicyOptions, subject: Subject, goal: options.Goal, seed: int, output: options.Format
) -> None:
    """What a budget can show, in place of what a tolerance costs."""
    how: dict[str, Any] = {"seed": seed, **picked(subject, "minimize", "assume_scale")}
    with one_thread(), Console(stderr=True).status("forecasting ..."):
        gap = forecast_gap(policy.chosen(subject.arms, subject.noise, goal), subject.means, **how)
    print_either(output, encode(gap), *str(gap).splitlines())


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
        promised = {**picked(goal, "epsilon", "delta"), "noise": subject.noise, **rehearsed(chosen, settings, seed)}
        built = make_policy(chosen, subject.arms, **promised)
    except (ContractError, NotConverged) as refusal:
        return ForecastRow(label, None, None, str(refusal)), None
    with one_thread():
        how: dict[str, Any] = {"seed": seed, "rehearsals": rehearsals, **picked(subject, "minimize", "assume_scale")}
        (row,) = compare_settings({label: built}, subject.means, **how)
    return row, spec_of(built)


def _row_json(row: ForecastRow, policy: str, settings: dict[str, Any], spec: Spec | None) -> dict[str, Any]:
    about = {"policy": policy, "options": settings, "spec": spec, "refusal": row.refusal or None}
    return about | picked(row, "name", "worst", "guess", "warnings", "believable")


def _print_forecast(subject: Subject, rows: Sequence[ForecastRow], uniform: int | None, asked: str) -> None:
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
    say()


def _print_ranges(subject: Subject, specs: Sequence[Spec | None], seed: int) -> None:
    """What a study takes where candidates differ clearly, as usual, and hardly; nothing where several are compared,
    means are guessed, or something else is asked."""
    spec = specs[0] if len(specs) == 1 and subject.means is None else None
    if spec is None or spec.get("question") is not None or "items" in spec:
        return
    policy = make_policy(arms=subject.arms, **spec)
    with one_thread(), Console(stderr=True).status("simulating 60 studies ..."):
        how = picked(subject, "minimize", "assume_scale")
        found = forecast_ranges(policy, seed=seed, most_seconds=RANGES_SECONDS, **how)
    for line in ("", *found.lines(signs_for(sys.stdout.encoding))):
        say(line)


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


# --- `surepick tune`: the Gaussian kernel's gamma and an estimate of the norm, from a pilot that no certificate reuses.

MOST_SCORES = 12
NOT_REUSED = (
    "The pilot's measurements are extra: the study that follows does not use them, because they decided gamma and the "
    "norm."
)


def tune(
    source: SourceArgument,
    *,
    pulls: int = opt("Measurements of the pilot, two or more a candidate.", default=200, min=6),
    reward: str | None = options.REWARD,
    table: TableOptions,
    minimize: bool = options.MINIMIZE,
    noise: options.NoiseOption = "",
    criterion: Literal["marginal-likelihood", "cross-validation"] = opt(
        "How to compare gammas.", default="marginal-likelihood"
    ),
    seed: options.SeedOption = 0,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Choose a kernel's gamma and estimate the norm from a pilot.

    The pilot is rehearsed, without looking at the true means. The norm is an estimate: a certificate that uses it is
    heuristic unless you can vouch for it.
    """
    example = example_named(source, table, reward, minimize=minimize)
    if example is None:
        world = table.with_features.recorded(
            source, reward, declared_noise(noise, "What noise explains is not taken for signal.")
        )
    else:
        world = example[0](seed)
    counts = repeated_pulls(np.arange(world.num_arms), pulls, world.num_arms, stream(seed, "tune"))
    seen = world.pull(counts, stream(seed, "tune", "rewards"))
    assumed = parse_noise(noise) if noise else world.noise
    with one_thread():
        choice = choose_kernel(world.arms.features, seen, assumed, criterion=criterion)
    words = [*options.given(table), *(["--reward", reward] if reward is not None else [])]
    words += [*(["--noise", noise] if noise else []), *(["--minimize"] if minimize else [])]
    start = ["run", source] if example is None else ["forecast", source, "--seed", str(seed)]
    found = ["--policy", "certified-kernel", "--gamma", f"{choice.gamma:.4g}"]
    found += ["--norm-estimate", f"{choice.norm_estimate:.4g}"]
    command = "" if choice.norm_estimate == 0.0 else shlex.join(["surepick", *start, *words, *found])
    candidates, notes = int(np.count_nonzero(counts)), (*choice.warnings, *_doubts(world))
    if output is options.Format.json:
        spent = {"pilot_pulls": pulls, "pilot_candidates": candidates}
        print_json({**_choice_json(choice), **spent, "warnings": notes, "command": command or None})
        return
    say(
        f"Pilot: {pulls:,} measurements on {candidates:,} of {world.num_arms:,} candidates, "
        f"{world.arms.features.shape[1]} features."
    )
    _print_scores(choice)
    say((choice.sentence, "bold"))
    for sentence in notes:
        say(("note: ", "bold yellow"), sentence)
    say(NOT_REUSED)
    if command:
        say()
        say("The study, to which you add --epsilon: how much worse than the best the answer may be.")
        say(command)


def _doubts(environment: Environment) -> list[str]:
    law = environment.law
    if isinstance(law, RecordedRewards) and int(law.repeats.max()) == 1:
        return [
            "Every candidate has one measured value, so measuring it again gives the same number: this pilot saw less "
            "noise than a real one would."
        ]
    return []


def _choice_json(choice: KernelChoice) -> dict[str, Any]:
    found = picked(choice, "gamma", "plausible", "silent", "norm_estimate", "norm_of_fit", "criterion", "sentence")
    columns = zip(choice.gammas, choice.scores, choice.norms_of_fit, strict=True)
    scores = [dict(zip(("gamma", "score", "norm_of_fit"), row, strict=True)) for row in columns]
    return found | {"scores": scores}


def _print_scores(choice: KernelChoice) -> None:
    """The gammas that were compared: the best, the first, the last, and some between."""
    best, total = int(np.argmax(choice.scores)), len(choice.gammas)
    shown = spaced(total, MOST_SCORES) if total <= MOST_SCORES else sorted({*spaced(total, MOST_SCORES - 1), best})
    rows = []
    for row in shown:
        below, norm = choice.scores[best] - choice.scores[row], choice.norms_of_fit[row]
        rows.append((f"{choice.gammas[row]:.4g}", f"{below:.1f}", f"{norm:.4g}", "chosen" * (row == best)))
    print_table(("gamma", "below the best", "norm of the fit", ""), rows)
    say(f"Compared by {choice.criterion}, in nats; less than 3 below the best is no difference.")


# --- `surepick design`: the optimal design alone, with its certificate.

MOST_SHARES = 20


def design(
    source: options.TableArgument,
    *,
    table: TableOptions,
    reward: str | None = opt("A column of measurements; rows of one id are repeats."),
    tolerance: float = opt("Relative gap to the optimum to prove.", default=0.01),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Compute where to measure to know every difference of two candidates equally well: the optimal design.

    Its value is the largest variance of a difference, times the number of measurements, over the noise variance.
    """
    reader = table.with_features
    arms = reader.candidates(source) if reward is None else reader.grouped_arms(source, reward)
    if isinstance(arms, RowBlocks):
        _design_of_rows(arms, tolerance, output)
        return
    if arms.features.shape[1] == 0:
        raise InvalidInput(f"{source} has no feature column; a design needs features. Name them with --features.")
    found = solve_design(arms.features, tolerance=tolerance)
    supported = np.flatnonzero(found.weights)
    if output is options.Format.json:
        weights = {arms.ids[arm]: found.weights[arm] for arm in supported}
        print_json(picked(found, "value", "lower_bound", "gap", "rank") | {"weights": weights})
        return
    shares = [(arms.ids[arm], float(found.weights[arm])) for arm in supported.tolist()]
    _print_design(shares, arms.num_arms, found, found.rank)


def _design_of_rows(rows: RowBlocks, tolerance: float, output: options.Format) -> None:
    """The design of candidates in files."""
    found = solve_design(rows, tolerance=tolerance)
    shares = list(zip(rows.ids(found.rows), found.weights.tolist(), strict=True))
    if output is options.Format.json:
        print_json(picked(found, "value", "lower_bound", "gap", "exact", "passes") | {"weights": dict(shares)})
        return
    _print_design(shares, rows.num_rows, found, found.features.shape[1])
    say(f"{found.passes} passes over the files.")


def _print_design(shares: Sequence[tuple[str, float]], number: int, found: Design | DesignOfRows, rank: int) -> None:
    ranked = sorted(shares, key=lambda one: -one[1])
    rows = [(name, f"{share:.4f}") for name, share in ranked[:MOST_SHARES]]
    print_table(("candidate", "share"), rows, left=("candidate",), title="share of the measurements")
    if len(ranked) > MOST_SHARES:
        say((f"({MOST_SHARES} of {len(ranked)} candidates with a share shown)", "dim"))
    say(
        f"Measure {len(ranked):,} of {number:,} candidates. Design value {found.value:.6g}; no design in "
        f"these {rank} dimensions goes below {found.lower_bound:.6g} (proved gap {found.gap:.3%})."
    )


def spaced(total: int, most: int) -> list[int]:
    """At most so many of the positions 0, 1, ..., total - 1, evenly spaced, the first and the last among them."""
    if total <= most:
        return list(range(total))
    return sorted({round(step * (total - 1) / (most - 1)) for step in range(most)})
