"""Mixtures over comparators and margins: their law enumerated, costs, and bounds beside a search."""

import math

import numpy as np
import pytest
from carried_outcomes import TRUTHS, TwoValued, bernoulli, few_pulls
from hypothesis import given, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators.margin_mixtures import PairBets, PullCosts, margin_grid, margin_weights, upper_bounds
from surepick.estimators.running_processes import UNKNOWN

EPSILON = 0.3
BOUNDED = sp.Bounded(0.0, 1.0)


def rows(counts, sums, squares=None) -> Observations:
    """One study as a row."""
    squares = None if squares is None else np.asarray(squares, float)[None]
    return Observations(np.asarray(counts, np.int64)[None], np.asarray(sums, float)[None], squares)


class Held:
    """What the parts hold after some batches of one outcome."""

    def __init__(self, truth: TwoValued, noise, epsilon: float = EPSILON) -> None:
        self.truth, self.noise, num_arms = truth, noise, len(truth.means)
        self.epsilon = epsilon
        self.seen = rows(np.zeros(num_arms), np.zeros(num_arms), np.zeros(num_arms))
        self.grid = margin_grid(noise, epsilon)
        self.log_values = self.flows = np.zeros((1, num_arms, num_arms, len(self.grid)))

    def after(self, seen: Observations) -> "Held":
        found = Held(self.truth, self.noise, self.epsilon)
        seen = rows(seen.counts, seen.sums, seen.squares)
        bets = PairBets.of(self.grid, seen.counts, PullCosts.after(self.noise, self.seen))
        found.log_values = self.log_values + bets.gained(self.noise, seen)
        found.flows, found.seen = self.flows + bets.flows, self.seen.plus(seen)
        return found

    @property
    def parts(self) -> np.ndarray:
        """Each part of M_j with its true means, without its weight, (K, K, S); 0 where there is none."""
        means, num_arms = self.truth.means, len(self.truth.means)
        lead = means[:, None] - means[None, :]  # h_j - h_a
        found = np.exp(self.log_values[0] + self.flows[0] * lead[:, :, None])
        return np.where(np.eye(num_arms, dtype=bool)[:, :, None], 0.0, found)

    @property
    def martingales(self) -> np.ndarray:
        """M_j, (K,)."""
        return self.parts @ np.exp(margin_weights(len(self.grid))) @ np.ones(len(self.parts)) / (len(self.parts) - 1)

    @property
    def claimed(self) -> float:
        """The largest 1/delta at which x* is beaten, or some bound of it is below the truth."""
        means, best = self.truth.means, int(np.argmax(self.truth.means))
        weighed = np.exp(self.log_values[0, best] + margin_weights(len(self.grid))) / (len(means) - 1)
        weighed[best] = 0.0
        gaps = np.exp(self.flows[0, best] * (means[best] - means)[:, None])
        return max(float(weighed.sum() + (weighed[c] * (gaps[c] - 1.0)).sum()) for c in range(len(means)))


def outcomes(truth: TwoValued, noise, seed: int, batches: int, epsilon: float = EPSILON):
    """(probability, what is held) of every outcome; counts of later batches are drawn anew after each past."""
    rng, num_arms = np.random.default_rng(seed), len(truth.means)
    ends = [(1.0, Held(truth, noise, epsilon))]
    for number in range(batches):
        found = []
        for chance, held in ends:
            counts = np.ones(num_arms, np.int64) if number == 0 else few_pulls(rng, num_arms, 2)
            found += [(chance * own, held.after(seen)) for own, seen in truth.outcomes(counts) if own > 0.0]
        ends = found
    return ends


NOISES = [*TRUTHS, "0 and 1 in a range"]


def truth_of(kind: str, seed: int, num_arms: int) -> tuple[TwoValued, object]:
    rng = np.random.default_rng([seed, num_arms])
    if kind in TRUTHS:
        found = TRUTHS[kind](rng, num_arms)
        return found, found.noise
    return bernoulli(rng.uniform(0.02, 0.98, num_arms)), BOUNDED


@pytest.mark.parametrize("num_arms", [2, 3])
@pytest.mark.parametrize("kind", NOISES)
def test_every_process_has_a_mean_of_at_most_one(kind, num_arms):
    """Line 44; and line 45: what is claimed of the best arm is never more than its process."""
    for seed in range(3):
        truth, noise = truth_of(kind, seed, num_arms)
        ends = outcomes(truth, noise, seed, 4 if num_arms == 2 else 3)
        assert sum(chance for chance, _ in ends) == pytest.approx(1.0)
        mean = sum(chance * held.martingales for chance, held in ends)
        assert mean.max() <= 1.0 + 1e-9
        assert mean.min() > 0.2  # they bet at all
        best = int(np.argmax(truth.means))
        assert all(held.claimed <= held.martingales[best] * (1.0 + 1e-9) for _, held in ends)


def test_a_weight_that_is_chosen_afterwards_is_noticed():
    """The largest part at its full weight, in place of the mixture."""
    truth = bernoulli([0.5, 0.5])
    ends = outcomes(truth, truth.noise, 0, 4, epsilon=0.05)
    assert sum(chance * held.martingales[0] for chance, held in ends) <= 1.0
    assert sum(chance * held.parts[0].max() for chance, held in ends) > 1.05


def test_a_part_that_is_not_closed_is_noticed():
    """What a comparator was given counts, and nothing was taken from the arm itself: its pulls are missing."""
    truth, counts = bernoulli([0.5, 0.5]), np.array([2, 2])
    held = Held(truth, truth.noise)
    bets = PairBets.of(held.grid, counts[None], PullCosts.after(truth.noise, held.seen))
    theirs, mean = (slice(None), None, slice(None), None), 0.0
    for chance, seen in truth.outcomes(counts):
        given = bets.costs.gains(bets.flows / 2, rows(seen.counts, seen.sums), theirs, up=True)
        mean += chance * float(np.exp(given[0, 0, 1, -1]))
    assert mean > 1.05
    short = PairBets.of(held.grid, np.array([[0, 2]]), bets.costs)
    assert not short.flows.any()


@given(
    st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    st.integers(0, 40),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 0.3),
)
def test_a_pull_costs_what_line_47_and_48_allow(values, weights, pulls, middle, steep, spread):
    """Any reward in a range, any past, and any weight that is not too steep."""
    values, chances = np.array(values), np.array(weights) / np.sum(weights)
    mean = float(chances @ values)
    sums, squares = pulls * middle, pulls * (middle**2 + min(spread, middle * (1.0 - middle)))
    costs = PullCosts.after(BOUNDED, rows([pulls, pulls], [sums, sums], [squares, squares]))
    for up, sign in ((True, 1.0), (False, -1.0)):
        weight = np.full((1, 2, 1, 1), 0.7 * steep / costs.reach(up=up)[0, 0])
        total = 0.0
        for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
            told = rows([1, 1], [value, value], [value**2, value**2])
            gain = costs.gains(weight, told, (slice(None), slice(None), None, None), up=up)[0, 0, 0, 0]
            total += chance * math.exp(float(gain) - sign * float(weight[0, 0, 0, 0]) * mean)
        assert total <= 1.0 + 1e-9


@given(st.integers(2, 5), st.integers(0, 10_000), st.floats(-8.0, 2.0))
def test_bounds_are_those_of_a_search(num_arms, seed, level):
    """U lies above the root, by next to nothing; arms are beaten where the sum says so."""
    rng = np.random.default_rng(seed)
    shape = (1, num_arms, num_arms, 6)
    values, flows = rng.normal(level, 3.0, shape), rng.exponential(1.0, shape) * 2.0 ** np.arange(6)
    flows *= rng.random((1, num_arms, num_arms, 1)) < 0.8
    threshold, rivals = math.log(20.0), np.ones((1, num_arms), bool)
    bounds, beaten = upper_bounds(values, flows, threshold, rivals)
    weights = np.exp(margin_weights(6)) / (num_arms - 1)

    def evidence(arm: int, c: int, m: float) -> float:
        given = np.where(np.arange(num_arms) == c, m, 0.0)[:, None] * flows[0, arm]
        parts = weights * np.exp(values[0, arm] + given)
        return float(np.delete(parts, arm, axis=0).sum())

    for arm in range(num_arms):
        assert beaten[0, arm] == (evidence(arm, arm, 0.0) >= 20.0)
        for c in (each for each in range(num_arms) if each != arm and not beaten[0, arm]):
            found = bounds[0, arm, c]
            if found >= UNKNOWN:
                assert not flows[0, arm, c].any()
                continue
            assert evidence(arm, c, found) >= 20.0
            assert evidence(arm, c, found * (1.0 - 1e-6)) < 20.0
    assert (bounds[0][beaten[0]] <= 0.0).all()


def test_parts_with_an_arm_that_is_dropped_do_not_count():
    values = np.full((1, 3, 3, 4), 30.0)
    flows = np.ones_like(values)
    _, beaten = upper_bounds(values, flows, 3.0, np.array([[True, True, False]]))
    assert beaten.tolist() == [[True, True, True]]
    values[0, 0, 1] = values[0, 1, 0] = -30.0
    _, beaten = upper_bounds(values, flows, 3.0, np.array([[True, True, False]]))
    assert beaten.tolist() == [[False, False, True]]


def test_margins_reach_from_epsilon_to_twice_the_scale():
    grid = margin_grid(sp.SubGaussian((0.1, 2.0)), 0.5)
    assert grid.tolist() == [0.5, 1.0, 2.0, 4.0]
    assert margin_grid(sp.SubGaussian(0.1), 3.0).tolist() == [3.0, 6.0]
    assert np.exp(margin_weights(4)).sum() == pytest.approx(1.0)
    assert np.diff(margin_weights(4)).min() > 0.0
