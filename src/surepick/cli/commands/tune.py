"""`surepick tune`: the Gaussian kernel's gamma and an estimate of the norm, from a pilot that no certificate reuses."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from typer import Option

from surepick.cli import options
from surepick.cli.format_certificate import spaced
from surepick.cli.output import picked, print_json, print_table, say
from surepick.cli.policy_options import declared_noise
from surepick.cli.table_options import SourceArgument, TableOptions, example_named
from surepick.core.random_streams import stream
from surepick.environments import Environment, RecordedRewards
from surepick.linalg.blas_threads import one_thread
from surepick.noise import parse_noise
from surepick.tuning.kernel import KernelChoice, choose_kernel
from surepick.tuning.noise_pilot import spread_pulls

MOST_ROWS = 12
NOT_REUSED = (
    "The pilot's measurements are extra: the study that follows does not use them, because they decided gamma and the "
    "norm."
)


class Criterion(StrEnum):
    """How gammas are compared."""

    likelihood = "marginal-likelihood"
    left_out = "cross-validation"


def tune(
    source: SourceArgument,
    *,
    pulls: Annotated[int, Option(min=6, help="Measurements of the pilot, two or more a candidate.")] = 200,
    reward: options.RewardOption = None,
    table: TableOptions,
    minimize: options.MinimizeOption = False,
    noise: options.NoiseOption = "",
    criterion: Annotated[Criterion, Option(help="How to compare gammas.")] = Criterion.likelihood,
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
        world = example.make(seed)
    counts = spread_pulls(np.arange(world.num_arms), pulls, world.num_arms, stream(seed, "tune"))
    seen = world.pull(counts, stream(seed, "tune", "rewards"))
    assumed = parse_noise(noise) if noise else world.noise
    with one_thread():
        choice = choose_kernel(world.arms.features, seen, assumed, criterion=criterion.value)
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
    shown = spaced(total, MOST_ROWS) if total <= MOST_ROWS else sorted({*spaced(total, MOST_ROWS - 1), best})
    rows = [
        (
            f"{choice.gammas[row]:.4g}",
            f"{choice.scores[best] - choice.scores[row]:.1f}",
            f"{choice.norms_of_fit[row]:.4g}",
            "chosen" if row == best else "",
        )
        for row in shown
    ]
    print_table(("gamma", "below the best", "norm of the fit", ""), rows)
    say(f"Compared by {choice.criterion}, in nats; less than 3 below the best is no difference.")
