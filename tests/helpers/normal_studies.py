"""Normal noise of unknown scale on known truths: how often an arm that is worse than epsilon seems good enough."""

from collections.abc import Iterator

import numpy as np
from bounds import counted
from quick_leaders import quick_leaders

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.base import stopped

GAP = 1.002  # just over epsilon = 1
CANDIDATE = (10**6, 3.0, 1e-6)  # pulls a batch, mean and variance of a candidate that is hardly in doubt


@quick_leaders
def settled_wrongly(runs: int, *, delta: float, scale: float, repeats: int, looks: int, seed: int = 0) -> int:
    """Rivals that a study believes not to be better than the candidate by more than epsilon, though all of them are.

    Each rival is a trial of its own: a process that nobody else's rewards enter, but for the candidate's, which are
    nearly constant.

    Args:
        scale: standard deviation of a rival's reward; epsilon is 1.
        repeats: of each rival in each batch.
        looks: batches.
    """
    many, mean, variance = CANDIDATE
    arms = sp.Arms(ids=range(runs + 1))
    policy = sp.make_policy("certified-independent", arms, epsilon=1.0, delta=delta, noise=sp.Normal())
    rng, state = np.random.default_rng([seed, 20_310]), policy.init()
    counts = np.append(many, np.full(runs, repeats))
    for look in range(looks):
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=counts, dim=len(counts), **given)
        sums = repeats * (mean + GAP) + scale * np.sqrt(repeats) * rng.standard_normal(runs)
        squares = sums**2 / repeats + scale**2 * (rng.chisquare(repeats - 1, runs) if repeats > 1 else 0.0)
        seen = Observations(counts, np.append(many * mean, sums), np.append(many * (mean**2 + variance), squares))
        state = policy.tell(state, plan, seen).state
    return int(np.sum(state.bounds_of(0)[1:] <= 1.0))


def five_arms(best: str) -> sp.environments.Environment:
    """The best arm, and four worse by just over epsilon = 1; variances from 1 to 100, the best one's at an end."""
    scales = 0.2 * 10.0 ** np.linspace(0.0, 1.0, 5)
    scales = scales[::-1] if best == "noisiest" else scales
    means = np.append(0.0, np.full(4, -GAP))
    return sp.environments.Environment(arms=sp.Arms(ids=range(5)), means=means, noise=sp.SubGaussian(scales))


def wrong_answers(world: sp.environments.Environment, runs: int, *, delta: float, **options) -> tuple[int, int]:
    """(studies that stop by themselves with an arm that is worse than epsilon, pulls of all)."""
    policy = sp.make_policy("certified-independent", world.arms, epsilon=1.0, delta=delta, noise=sp.Normal(), **options)
    return _counted(world, policy, runs, 20_311)


def _counted(world: sp.environments.Environment, policy, runs: int, stream: int) -> tuple[int, int]:
    """(studies of a policy that stop with an arm that is worse than epsilon = 1, pulls of all)."""
    wrong = pulls = 0
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, stream]), policy.init()
        while not stopped(policy, state):
            plan = policy.ask(state)
            state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
        wrong += not world.is_epsilon_best(policy.claim(state).leader, 1.0)
        pulls += state.pulls
    return wrong, pulls


# --- with features

PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, -0.8], [-0.6, 0.8]])
SLOPE = np.array([0.0, GAP])  # the mean of the second arm is that of the first and just over epsilon = 1


def plane(scales: list[float]) -> sp.environments.Environment:
    """Five arms in two dimensions, the second the best; arm 0 is worse by just over epsilon = 1."""
    return sp.environments.Environment(arms=sp.Arms(PLANE), means=PLANE @ SLOPE, noise=sp.SubGaussian(scales))


def linear_policy(arms: sp.Arms, delta: float, **options):
    """Certified elimination with the arms' features, epsilon 1, scales unknown."""
    return sp.make_policy(
        "certified-linear", arms, epsilon=1.0, delta=delta, noise=sp.Normal(), norm_bound=1.1, **options
    )


@counted()
def believed_wrongly(
    runs: int, *, delta: float, scale: float, repeats: int, looks: int, seed: int = 0
) -> Iterator[bool]:
    """Studies with features that believe, after any of some equal batches for arm 0, that arm 1 is not better than it
    by more than epsilon."""
    world = plane([scale * factor for factor in (1.0, 3.0, 0.3, 1.0, 0.5)])
    policy = linear_policy(world.arms, delta)
    for run in range(runs):
        rng, state = np.random.default_rng([seed, run, 20_312]), policy.init()
        for look in range(looks):
            counts = np.full(5, repeats)
            given = {"predicted_pulls": 5.0 * repeats, "candidate": 0} if look else {}
            plan = Plan(round=state.round, counts=counts, dim=2, **given)
            state = policy.tell(state, plan, world.pull(counts, rng)).state
        yield bool(state.bounds_of(0)[1] <= 1.0)


def wrong_answers_with_features(runs: int, *, delta: float, best: str) -> tuple[int, int]:
    """(studies that stop with an arm that is worse than epsilon, pulls of all); variances from 1 to 100."""
    scales = [0.5, 0.2, 1.0, 0.4, 2.0] if best == "quietest" else [0.5, 2.0, 0.2, 0.4, 1.0]
    world = plane(scales)
    return _counted(world, linear_policy(world.arms, delta), runs, 20_313)
