"""`surepick demo`: the main job on real handwritten digits, without a download."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from surepick.cli import options
from surepick.cli.format_certificate import print_answer, print_truth, run_json
from surepick.cli.output import end_by, print_json, say
from surepick.cli.policy_options import PolicyOptions
from surepick.environments import digits
from surepick.linalg.blas_threads import one_thread
from surepick.policies.base import spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.simulation import simulate
from surepick.studies.closed_loop import round_bars

NORM_BOUND = "2"


def demo(
    *,
    epsilon: Annotated[float, Option(help=options.EPSILON)] = 0.1,
    delta: options.DeltaOption = 0.05,
    seed: options.SeedOption = 0,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Find a seven among 60 real handwritten digits under heavy noise (no download)."""
    goal, environment = options.Goal(epsilon, delta), digits(seed)
    policy = PolicyOptions(norm_bound=NORM_BOUND).chosen(environment.arms, environment.noise, goal)
    if output is options.Format.text:
        say(
            f"{environment.num_arms} images of handwritten digits. Measuring an image gives its worth plus noise of "
            "standard deviation 1: a 7 is worth 1, a 1, 2 or 9 is worth 0.8, any other digit 0.5. The policy sees the "
            f"pixels and the noisy measurements. Asked: an image whose worth is within {goal.epsilon:g} of the best."
        )
        say()
    with one_thread(), round_bars() as show:
        run = simulate(policy, environment, seed=seed, on_plan=show)
    uniform = uniform_pulls(environment.num_arms, sigma=1.0, epsilon=goal.epsilon, delta=goal.delta)
    if output is options.Format.json:
        print_json({**run_json(run), "uniform_pulls": uniform, "policy": spec_of(policy)})
    else:
        print_answer(run.certificate, policy)
        say(_against_uniform(run.pulls, uniform))
        print_truth(run, environment, goal.epsilon)
    end_by(run.verdict)


def _against_uniform(pulls: int, uniform: int) -> str:
    sentence = f"Uniform sampling would need {uniform:,} for the same certificate"
    if uniform >= pulls:
        return f"{sentence}, {uniform / max(pulls, 1):.1f} times as many."
    return f"{sentence}: fewer, because choosing where to measure gains nothing for so coarse an epsilon."
