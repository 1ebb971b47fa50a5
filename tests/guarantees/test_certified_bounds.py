"""Line 10 of docs/certified-elimination.md: the bounds of the intervals that decide hold at all batches at once."""

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import at_each_delta
from certified_studies import RIVALS, known_candidate

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.base import stopped
from surepick.policies.certified import elimination as conclusion


def bounds_passed(true_difference: float, *, delta: float, scale: float = 1.0, seed: int = 0) -> int:
    """Rivals of arm 0, all better than it by the same, of which some batch's bound said less than that.

    Every rival is an experiment of its own: arm 0 is known exactly, and rewards of different rivals are independent.

    Args:
        scale: what the policy is told of the noise, whose scale is 1.
    """
    world = known_candidate(sp.SubGaussian(1.0), true_difference)
    noise = sp.SubGaussian((1e-9, *[scale] * RIVALS))
    asked = {"epsilon": 1.0, "delta": delta, "noise": noise, "evidence": "epochs"}
    policy = sp.make_policy("certified-independent", world.arms, **asked)
    rng, state, intervals = np.random.default_rng([seed, 73]), policy.init(), None
    smallest = np.full(RIVALS, np.inf)
    for batch in range(60):
        counts = np.ones(world.num_arms, np.int64)
        plan = Plan(
            round=batch + 1, counts=counts, dim=len(counts), predicted_pulls=0.0, candidate=0 if batch else None
        )
        step = policy.tell(state, plan, world.pull(counts, rng))
        state, intervals = step.state, step.deciding(intervals)
        if state.collected:
            (bounds,) = intervals.candidates
            smallest = np.minimum(smallest, bounds.bounds[1:])
    assert np.isfinite(smallest).mean() > 0.5
    return int(np.sum(smallest < true_difference))


@at_each_delta
@pytest.mark.parametrize("true_difference", [-1.0, 0.0, 1.02])
def test_no_bound_is_passed_more_often_than_promised(true_difference, delta):
    """The first epoch may spend half of delta."""
    assert bounds_passed(true_difference, delta=delta) <= failures_allowed(RIVALS, delta / 2)


def test_half_the_noise_is_noticed():
    assert bounds_passed(0.0, delta=0.05, scale=0.5) > failures_allowed(RIVALS, 0.025)


def test_bounds_without_the_weight_of_the_epoch_are_noticed(monkeypatch):
    """With delta near 1, where half of it is all that there is to notice."""
    honest, threshold_of = conclusion._tightened, conclusion.threshold_of

    def generous(problem, known, found):
        with monkeypatch.context() as patch:
            patch.setattr(conclusion, "threshold_of", lambda asked: threshold_of(asked) - 3.0)
            return honest(problem, known, found)

    monkeypatch.setattr(conclusion, "_tightened", generous)
    assert bounds_passed(0.0, delta=0.05) > failures_allowed(RIVALS, 0.025)


@pytest.mark.parametrize("name", ["certified-linear", "certified-independent"])
def test_a_rival_is_settled_exactly_when_its_bound_is_at_most_epsilon(name):
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.5], [-0.4, 0.3], [0.9, 0.2]])
    options = {"evidence": "epochs"} | ({"norm_bound": 2.0} if name == "certified-linear" else {})
    policy = sp.make_policy(name, sp.Arms(features), epsilon=0.2, delta=0.05, noise=sp.SubGaussian(0.5), **options)
    rng, settled = np.random.default_rng(5), 0
    for _ in range(5):
        state, intervals = policy.init(), None
        while not stopped(policy, state):
            plan = policy.ask(state)
            sums = plan.counts * (features @ [0.9, 0.5]) + np.sqrt(plan.counts) * rng.normal(0.0, 0.5, 5)
            step = policy.tell(state, plan, Observations(plan.counts, sums))
            state, intervals = step.state, step.deciding(intervals)
            for epoch, bounds in zip(state.collected, intervals.candidates, strict=True):
                rejected = epoch.rejected(conclusion.threshold_of(policy.problem))
                assert (bounds.bounds <= policy.problem.epsilon).tolist() == rejected.tolist()
                settled += int(rejected.sum())
    assert settled > 25
