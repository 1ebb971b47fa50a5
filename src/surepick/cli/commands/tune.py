"""`surepick tune`: the Gaussian kernel's gamma and an estimate of the norm, from a pilot that no certificate reuses."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from surepick.cli import options
from surepick.cli.commands.forecast import BUILT_IN
from surepick.cli.output import Text, print_json
from surepick.cli.table_options import given_options, reads_tables
from surepick.core.arrays import IntArray
from surepick.core.files import is_file
from surepick.core.random_streams import stream
from surepick.environments import Environment, RecordedRewards, table
from surepick.errors import InvalidInput
from surepick.linalg.blas_threads import one_thread
from surepick.noise import parse_noise
from surepick.tables import ReadOptions
from surepick.tuning.kernel import KernelChoice, choose_kernel

MOST_ROWS = 12
NOT_REUSED = (
    "The pilot's measurements are extra: the study that follows does not use them, because gamma and the norm were "
    "chosen by looking at them."
)


class Criterion(StrEnum):
    """How gammas are compared."""

    likelihood = "marginal-likelihood"
    left_out = "cross-validation"


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found, from how many measurements, and the command that uses it ("" where there is none)."""

    choice: KernelChoice
    pulls: int
    candidates: int
    command: str


@reads_tables
def tune(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A CSV, Excel, Parquet, Arrow or JSON file, an Olympus folder, or an example: two-clusters, digits.",
        ),
    ],
    pulls: Annotated[
        int, typer.Option("--pulls", min=6, help="Measurements of the pilot, two or more of each candidate it takes.")
    ] = 200,
    reward: Annotated[str | None, typer.Option("--reward", help="Column that holds the measurements.")] = None,
    name: options.IdOption = None,
    features: options.FeaturesOption = None,
    noise: options.NoiseOption = "",
    criterion: Annotated[
        Criterion, typer.Option("--criterion", help="How gammas are compared.")
    ] = Criterion.likelihood,
    minimize: Annotated[bool, typer.Option("--minimize", help="Small measurements are good.")] = False,
    standardize: options.StandardizeOption = False,
    intercept: options.InterceptOption = False,
    *,
    reading: ReadOptions,
    seed: options.SeedOption = 0,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Which gamma and which norm for a kernel? Rehearses a pilot and says what it shows, without looking at the truth.

    The norm is an estimate: a certificate that uses it is heuristic unless you can vouch for it.
    """
    built_in = source in BUILT_IN and not is_file(Path(source))
    if built_in:
        if any((name, features, reward, minimize, standardize, intercept, given_options(reading))):
            raise InvalidInput(
                f"{source} is a built-in example: --id, --features, --reward, --minimize, --standardize, --intercept, "
                "--sheet, --percent and --drop-missing are for tables."
            )
        environment = BUILT_IN[source].make(seed)
    else:
        environment = _recorded(source, name, reward, features, noise, standardize, intercept, reading)
    counts = _spread(environment.num_arms, pulls, stream(seed, "tune"))
    with np.errstate(over="ignore"):  # rewards whose squares overflow are refused by choose_kernel
        seen = environment.pull(counts, stream(seed, "tune", "rewards"))
    assumed = parse_noise(noise) if noise else environment.noise
    with one_thread():
        choice = choose_kernel(environment.arms.features, seen, assumed, criterion=criterion.value)
    words = {"--id": name, "--reward": reward, "--features": features, "--noise": noise or None}
    words |= {"--seed": str(seed)} if built_in else {}
    words |= {"--sheet": reading.get("sheet")}
    flags = {"--minimize": minimize, "--standardize": standardize, "--intercept": intercept}
    flags |= {flag: True for flag, value in given_options(reading).items() if value is True}
    start = ["surepick", "forecast" if built_in else "run", source]
    command = "" if choice.norm_estimate == 0.0 else _command(start, words, flags, choice)
    tuned = Tuned(choice, pulls, int(np.count_nonzero(counts)), command)
    notes = (*choice.warnings, *_doubts(environment))
    if output is options.Format.json:
        print_json(_json(tuned, notes))
    else:
        _print(tuned, notes, environment)


def _recorded(
    source: str,
    name: str | None,
    reward: str | None,
    features: str | None,
    noise: str,
    standardize: bool,
    intercept: bool,
    reading: ReadOptions,
) -> Environment:
    if not noise:
        raise InvalidInput(
            "say what is known of a single measurement with --noise: bernoulli, bounded:LOW:HIGH, or subgaussian:SIGMA "
            "(normal noise of standard deviation SIGMA). What noise explains is not taken for signal."
        )
    return table(
        source,
        id=name,
        reward=reward,
        features=features,
        noise=parse_noise(noise),
        standardize=standardize,
        intercept=intercept,
        **reading,
    )


def _spread(num_arms: int, pulls: int, rng: np.random.Generator) -> IntArray:
    """Pulls of each candidate, shape (K,): at most pulls / 2 of them, chosen at random, two or more each."""
    taken = rng.choice(num_arms, size=min(pulls // 2, num_arms), replace=False)
    counts = np.zeros(num_arms, dtype=np.int64)
    counts[taken] = pulls // len(taken)
    counts[taken[: pulls % len(taken)]] += 1
    return counts


def _command(start: list[str], words: dict[str, str | None], flags: dict[str, bool], choice: KernelChoice) -> str:
    """The command line that uses what was found, with the options that were given."""
    given = [part for flag, value in words.items() if value is not None for part in (flag, value)]
    given += [flag for flag, wanted in flags.items() if wanted]
    found = ["--gamma", f"{choice.gamma:.4g}", "--norm-estimate", f"{choice.norm_estimate:.4g}"]
    return shlex.join([*start, *given, "--policy", "certified-kernel", *found])


def _doubts(environment: Environment) -> list[str]:
    law = environment.law
    if isinstance(law, RecordedRewards) and int(law.repeats.max()) == 1:
        return [
            "Every candidate has one measured value, so measuring it again gives the same number: this pilot saw less "
            "noise than a real one would."
        ]
    return []


def _json(tuned: Tuned, notes: tuple[str, ...]) -> dict[str, Any]:
    choice = tuned.choice
    return {
        "gamma": choice.gamma,
        "plausible": list(choice.plausible),
        "silent": choice.silent,
        "norm_estimate": choice.norm_estimate,
        "norm_of_fit": choice.norm_of_fit,
        "criterion": choice.criterion,
        "scores": [
            {"gamma": gamma, "score": score, "norm_of_fit": norm}
            for gamma, score, norm in zip(
                choice.gammas.tolist(), choice.scores.tolist(), choice.norms_of_fit.tolist(), strict=True
            )
        ],
        "pilot_pulls": tuned.pulls,
        "pilot_candidates": tuned.candidates,
        "sentence": choice.sentence,
        "warnings": list(notes),
        "command": tuned.command or None,
    }


def _print(tuned: Tuned, notes: tuple[str, ...], environment: Environment) -> None:
    choice = tuned.choice
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        Text(
            f"Pilot: {tuned.pulls:,} measurements on {tuned.candidates:,} of {environment.num_arms:,} candidates, "
            f"{environment.arms.features.shape[1]} features."
        )
    )
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("gamma", "below the best", "norm of the fit", ""):
        shown.add_column(header, justify="right", no_wrap=True)
    best = int(np.argmax(choice.scores))
    for row in _rows(len(choice.gammas), best):
        short = f"{choice.scores[best] - choice.scores[row]:.1f}"
        norm = f"{choice.norms_of_fit[row]:.4g}"
        shown.add_row(f"{choice.gammas[row]:.4g}", short, norm, "chosen" if row == best else "")
    Console(highlight=False).print(shown)
    console.print(Text(f"Compared by {choice.criterion}, in nats; less than 3 below the best is no difference."))
    console.print(Text(choice.sentence, style="bold"))
    for sentence in notes:
        console.print(Text.assemble(("note: ", "bold yellow"), sentence))
    console.print(Text(NOT_REUSED))
    if tuned.command:
        console.print()
        console.print(Text(tuned.command))


def _rows(total: int, best: int) -> list[int]:
    """The rows that are shown: the best, the first, the last, and some between."""
    if total <= MOST_ROWS:
        return list(range(total))
    spaced = {round(step * (total - 1) / (MOST_ROWS - 2)) for step in range(MOST_ROWS - 1)}
    return sorted(spaced | {best})
