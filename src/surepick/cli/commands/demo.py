"""`surepick demo`: the main job on real handwritten digits, without a download."""

from __future__ import annotations

import typer
from rich.console import Console

from surepick.cli import options
from surepick.cli.commands.run import print_truth
from surepick.cli.format_certificate import print_certificate, print_rounds, run_json
from surepick.cli.output import NOT_CERTIFIED, Text, print_json, say
from surepick.cli.progress import round_bars
from surepick.environments import digits
from surepick.linalg.blas_threads import one_thread
from surepick.policies.base import spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.policies.registry import make_policy
from surepick.simulation import simulate

NORM_BOUND = 2.0


def demo(
    epsilon: options.EpsilonOption = 0.1,
    delta: options.DeltaOption = 0.05,
    seed: options.SeedOption = 0,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Find a seven among 60 real handwritten digits, each measured with heavy noise (no download)."""
    environment = digits(seed)
    policy = make_policy(
        "certified-linear",
        environment.arms,
        epsilon=epsilon,
        delta=delta,
        noise=environment.noise,
        norm_bound=NORM_BOUND,
    )
    if output is options.Format.text:
        _explain(environment.num_arms, epsilon)
    with one_thread(), round_bars() as show:
        run = simulate(policy, environment, seed=seed, on_plan=show)
    uniform = uniform_pulls(environment.num_arms, sigma=1.0, epsilon=epsilon, delta=delta)
    if output is options.Format.json:
        print_json({**run_json(run), "uniform_pulls": uniform, "policy": spec_of(policy)})
    else:
        print_rounds(run.rounds, policy)
        print_certificate(run.certificate, policy.problem.noise)
        Console(highlight=False, soft_wrap=True).print(Text(_against_uniform(run.pulls, uniform)))
        print_truth(run, environment, policy)
    if run.verdict != "certified":
        raise typer.Exit(NOT_CERTIFIED)


def _against_uniform(pulls: int, uniform: int) -> str:
    sentence = f"Measuring all candidates equally often would need {uniform:,} for the same certificate"
    if uniform >= pulls:
        return f"{sentence}, {uniform / max(pulls, 1):.1f} times as many."
    return f"{sentence}: fewer, because so coarse an epsilon leaves nothing to gain by looking between."


def _explain(num_arms: int, epsilon: float) -> None:
    Console(highlight=False, soft_wrap=True).print(
        Text(
            f"{num_arms} images of handwritten digits. Measuring an image gives its worth plus noise of standard "
            "deviation 1: a 7 is worth 1, a 1, 2 or 9 is worth 0.8, any other digit 0.5. Only pixels and noisy "
            f"measurements are seen. Asked: an image whose worth is within {epsilon:g} of the best."
        )
    )
    say()
