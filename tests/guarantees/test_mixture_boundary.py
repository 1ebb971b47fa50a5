"""The mixture boundary holds at all times at once, and is tighter than the union where it is tuned."""

import math

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import few_and_all

import surepick as sp
from surepick.core.random_streams import stream
from surepick.estimators import anytime_radius
from surepick_bench.policies.widths import mixture_radius

WALKS, STEPS, DELTA = 2_000, 4_000, 0.2


def crossings(factor: float) -> int:
    """Walks of normal steps that leave the boundary at any time."""
    counts = np.arange(1, STEPS + 1)
    radius = factor * mixture_radius(counts, np.ones(STEPS), delta=DELTA, num_arms=1, accuracy=0.2)
    left = 0
    for block in range(10):
        steps = stream(block, "mixture boundary").standard_normal((WALKS // 10, STEPS))
        left += int((np.abs(np.cumsum(steps, axis=1)) / counts > radius).any(axis=1).sum())
    return left


def test_no_more_walks_leave_it_than_may():
    assert crossings(1.0) <= failures_allowed(WALKS, DELTA)


def test_a_boundary_of_three_quarters_would_be_noticed():
    assert crossings(0.75) > failures_allowed(WALKS, DELTA)


def test_the_formula():
    """By hand: sigma 2, two arms, delta .1, accuracy 1, so log(1/a^2) = 2 log 20 = 5.99146, tightest at 23.9659."""
    r = 4 * 2 * math.log(20) / (2 * math.log(20) + math.log(1 + 2 * math.log(20)))
    expected = 2.0 * math.sqrt((9 + r) * math.log((9 + r) / (r * 0.05**2))) / 9
    found = mixture_radius(np.array([9, 0]), np.array([2.0, 2.0]), delta=0.1, num_arms=2, accuracy=1.0)
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert found[1] == math.inf


@pytest.mark.parametrize("num_arms", [2, 100, 10_000])
def test_it_is_narrower_than_the_union_where_it_decides(num_arms):
    given = {"delta": 0.05, "num_arms": num_arms}
    counts = np.array([2_000, 10_000, 100_000])
    union = anytime_radius(counts, np.ones(3), **given)
    mixture = mixture_radius(counts, np.ones(3), **given, accuracy=0.05)
    assert (mixture < union).all()


@few_and_all("seeds", 1, 5)
def test_action_elimination_with_it_is_certified_and_takes_fewer_pulls(seeds):
    arms = sp.Arms(np.eye(20))
    world = sp.environments.Environment(arms=arms, means=np.linspace(0.0, 1.0, 20), noise=sp.SubGaussian(1.0))
    spent = {}
    for boundary in ("union", "mixture"):
        policy = sp.make_policy(
            "action-elimination", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(1.0), boundary=boundary
        )
        assert sp.make_policy(arms=arms, **policy.spec) == policy
        runs = [sp.simulate(policy, world, seed=seed) for seed in range(seeds)]
        assert all(run.success and run.verdict == "certified" for run in runs)
        spent[boundary] = sum(run.pulls for run in runs)
    assert spent["mixture"] < 0.9 * spent["union"]


def test_another_boundary_is_refused():
    with pytest.raises(sp.InvalidInput, match="boundary"):
        sp.make_policy(
            "action-elimination", sp.Arms(np.eye(3)), epsilon=0.1, delta=0.05, noise="bernoulli", boundary="best"
        )
