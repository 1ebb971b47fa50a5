"""One policy against one environment, from the first ask to its own stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from surepick.core.arrays import record
from surepick.core.certificate import Certificate
from surepick.core.plan import Plan
from surepick.core.random_streams import stream
from surepick.core.step import RoundRecord
from surepick.environments import Environment
from surepick.errors import InvalidInput
from surepick.policies.base import Policy
from surepick.studies import Study


@record
class Run:
    """What one simulated study spent, and whether its answer was right.

    Args:
        best_arm: id of the arm returned at the policy's own stop.
        arm: its index.
        pulls: measurements until the policy stopped by itself: the number that a user pays.
        success: the arm is epsilon-best, and the policy stopped by itself.
        oracle_pulls: pulls when the active set first held only epsilon-best arms. Needs the truth: computed after the
            fact from the trace, never available to a user. None if never, and for policies that do not eliminate.
        verdict: of the certificate; "budget-exhausted" when the next plan would have passed max_pulls.
        true_gap: how much worse than the best arm the returned one is, in reward units.
        rounds: the trace, one record a round.
        certificate: the answer as the user would see it.
        seconds: wall-clock time.
    """

    best_arm: str
    arm: int
    pulls: int
    success: bool
    oracle_pulls: int | None
    verdict: str
    true_gap: float
    rounds: tuple[RoundRecord, ...]
    certificate: Certificate
    seconds: float


def simulate(
    policy: Policy[Any],
    environment: Environment,
    *,
    seed: int = 0,
    max_pulls: int = 10_000_000,
    on_plan: Callable[[Plan, Study], None] | None = None,
) -> Run:
    """Run a study on simulated rewards until the policy stops by itself or the budget ends.

    Args:
        policy: the algorithm, for the arms of the environment.
        environment: the hidden truth, of which the policy sees only the rewards that it asks for.
        seed: rewards are a function of it and of the number of the plan.
        max_pulls: a plan that would pass it is not pulled.
        on_plan: called with each plan before it is pulled, for progress displays.

    Returns:
        A `Run`; it depends on (policy, environment, seed, max_pulls) only, but for `seconds`.

    Raises:
        InvalidInput: max_pulls is negative, or the policy is for another number of arms.
    """
    if max_pulls < 0:
        raise InvalidInput(f"max_pulls is {max_pulls}; it must be zero or more.")
    if not isinstance(environment, Environment) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"simulate(policy, environment) was given a {type(policy).__name__} and a {type(environment).__name__}."
        )
    started = time.perf_counter()
    study = Study(environment.arms, policy, minimize=environment.minimize)
    pulls, number, exhausted = 0, 0, False
    while (plan := study.ask()) is not None:
        if pulls + plan.total > max_pulls:
            exhausted = True
            break
        if on_plan is not None:
            on_plan(plan, study)
        seen = environment.pull(plan.counts, stream(seed, "rewards", number))
        study.tell_sums(seen.counts, seen.sums, seen.squares)
        pulls, number = pulls + plan.total, number + 1
    answer = study.certificate()
    if exhausted:
        answer = replace(
            answer,
            verdict="budget-exhausted",
            reason=f"The next plan would have passed the budget of {max_pulls:,} pulls. {answer.reason}",
        )
    return Run(
        best_arm=answer.best_arm,
        arm=answer.arm,
        pulls=pulls,
        success=not exhausted and environment.is_epsilon_best(answer.arm, policy.problem.epsilon),
        oracle_pulls=oracle_pulls(study.trace, environment, policy) if policy.traits.eliminates else None,
        verdict=answer.verdict,
        true_gap=float(environment.gaps[answer.arm]),
        rounds=study.trace,
        certificate=answer,
        seconds=time.perf_counter() - started,
    )


def oracle_pulls(trace: tuple[RoundRecord, ...], environment: Environment, policy: Policy[Any]) -> int | None:
    """Pulls when the active set first held only epsilon-best arms; 0 if all arms are, None if never."""
    good = environment.epsilon_best(policy.problem.epsilon)
    if good.all():
        return 0
    return next((row.total_pulls for row in trace if good[row.active].all()), None)
