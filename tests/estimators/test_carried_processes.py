"""Lines 11 to 14 of docs/certified-elimination.md, all outcomes enumerated: the law of the processes, and their bounds.

Weights, counts and new starts of a batch are functions of the outcomes before it, drawn at random.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from budgets import budget
from carried_outcomes import (
    TRUTHS,
    Held,
    bet_on_means,
    bet_on_vectors,
    drawn_vectors,
    least_bound,
    nothing_on_means,
    nothing_on_vectors,
    played_to_the_end,
)
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.estimators.running_processes import UNKNOWN, ArmVectors, MeanProcesses, VectorProcesses
from surepick.policies.sequential import state

SEEDS = st.integers(0, 10**6)
BATCHES = st.integers(1, 3)


def expectations(ends: list[Held], means: np.ndarray) -> np.ndarray:
    """E of the process of each arm, with the weight of its last start, shape (K,)."""
    assert sum(end.chance for end in ends) == pytest.approx(1.0)
    return np.sum([end.chance * np.exp(end.log_martingales(means)) for end in ends], axis=0)


def means_played(seed: int, kind: str, batches: int, **told) -> tuple[list[Held], np.ndarray]:
    truth = TRUTHS[kind](np.random.default_rng([seed, 0]), 3)
    told = {name: make(truth) for name, make in told.items()}
    return played_to_the_end(truth, nothing_on_means(3), bet_on_means, batches=batches, seed=seed, **told), truth.means


def vectors_played(
    seed: int, kind: str, batches: int, gamma: float = 0.0, **told
) -> tuple[list[Held], np.ndarray, ArmVectors]:
    rng = np.random.default_rng([seed, 0])
    num_arms, dim = int(rng.integers(3, 5)), int(rng.integers(1, 3))
    truth, vectors = TRUTHS[kind](rng, num_arms), drawn_vectors(rng, num_arms, dim, gamma)
    told = {name: make(truth) for name, make in told.items()}
    first = nothing_on_vectors(vectors)
    ends = played_to_the_end(truth, first, bet_on_vectors(vectors), batches=batches, seed=seed, **told)
    return ends, truth.means, vectors


# --- line 11 and 13: E M_j is at most 1, with the weight of a new start


@pytest.mark.parametrize("kind", TRUTHS)
@settings(max_examples=budget(12))
@given(seed=SEEDS, batches=BATCHES)
def test_a_process_of_means_has_expectation_at_most_one(kind, seed, batches):
    assert np.all(expectations(*means_played(seed, kind, batches)) <= 1.0 + 1e-9)


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", TRUTHS)
@settings(max_examples=budget(12))
@given(seed=SEEDS, batches=BATCHES)
def test_a_process_of_vectors_has_expectation_at_most_one(kind, seed, batches):
    """Whatever the means are: the features are no part of the law."""
    ends, means, _ = vectors_played(seed, kind, batches)
    assert np.all(expectations(ends, means) <= 1.0 + 1e-9)


def half_the_scales(truth):
    return sp.SubGaussian(tuple(0.5 * sigma for sigma in truth.noise.sigma))


@pytest.mark.parametrize("played", [means_played, vectors_played])
def test_half_the_noise_is_noticed(played):
    spoilt = [expectations(*played(seed, "a scale per arm", 2, noise=half_the_scales)[:2]).max() for seed in range(10)]
    assert sum(largest > 1.01 for largest in spoilt) >= 3


@pytest.mark.parametrize("played", [means_played, vectors_played])
def test_a_new_start_with_weight_one_is_noticed(played, monkeypatch):
    honest = state.start_weights
    monkeypatch.setattr(state, "start_weights", lambda starts: np.where(starts == 1, honest(starts), 0.0))
    spoilt = (expectations(*played(seed, "a scale per arm", 3)[:2]).max() for seed in range(40))
    assert any(largest > 1.01 for largest in spoilt)


def with_the_better(after):
    """The saboteur: an arm's bets stand only where they raised the evidence."""

    def spoilt(self, *given):
        honest = after(self, *given)
        better = honest.log_values > self.log_values
        return replace(honest, log_values=np.where(better, honest.log_values, self.log_values))

    return spoilt


@pytest.mark.parametrize(("processes", "played"), [(MeanProcesses, means_played), (VectorProcesses, vectors_played)])
def test_weights_that_look_at_the_rewards_are_noticed(processes, played, monkeypatch):
    monkeypatch.setattr(processes, "after", with_the_better(processes.after))
    spoilt = [expectations(*played(seed, "a scale per arm", 2)[:2]).max() for seed in range(10)]
    assert sum(largest > 1.01 for largest in spoilt) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("played", [means_played, vectors_played])
def test_after_four_batches_an_expectation_is_at_most_one(played, kind):
    found = [expectations(*played(seed, kind, 4)[:2]).max() for seed in range(100)]
    print(f"\n{kind}, {played.__name__}: largest expectation {max(found):.6f}")
    assert max(found) <= 1.0 + 1e-9


# --- line 12 and 14: no bound is below what is true, and without misspecification none is above it

THRESHOLD = math.log(10.0)


def exact_bounds_of_means(end: Held, candidate: int) -> np.ndarray:
    """Without structure a flow must be T on the candidate, -T on the arm itself, and nothing elsewhere; T > 0."""
    found = np.full(len(end.flows), UNKNOWN)
    for arm, flow in enumerate(end.flows):
        amount, rest_of_it = -flow[arm], np.delete(flow, [arm, candidate])
        if amount > 0.0 and np.allclose(rest_of_it, 0.0, atol=1e-12) and math.isclose(flow[candidate], amount):
            found[arm] = (THRESHOLD - end.processes.log_values[arm]) / amount
    found[candidate] = 0.0
    return found


def bounds_of_means_are_exact(seeds: range) -> tuple[bool, int]:
    """(whether every bound of every outcome is the exact one, how many say something)."""
    right, telling = True, 0
    for seed in seeds:
        ends, _ = means_played(seed, list(TRUTHS)[seed % len(TRUTHS)], 1 + seed % 3)
        for end in ends:
            for candidate in range(3):
                exact = exact_bounds_of_means(end, candidate)
                right &= np.allclose(end.processes.upper_bounds(candidate, THRESHOLD), exact, rtol=1e-9, atol=1e-9)
                telling += int(np.sum(exact < UNKNOWN)) - 1
    return bool(right), telling


def test_the_bounds_of_means_are_exact():
    right, telling = bounds_of_means_are_exact(range(24))
    assert right
    assert telling > 40


def of_either_sign(upper_bounds, mirrored):
    """The saboteur: T < 0 is allowed, as if the flows were the negative ones."""

    def spoilt(self, *given):
        bounds, other = upper_bounds(self, *given), upper_bounds(mirrored(self), *given)
        return np.where(other < UNKNOWN, np.minimum(bounds, -other), bounds)

    return spoilt


def negative(given):
    return tuple(replace(one, flows=-one.flows) for one in given)


def mirrored_means(held: MeanProcesses) -> MeanProcesses:
    return replace(held, taken=-held.taken, given=negative(held.given))


def mirrored_vectors(held: VectorProcesses) -> VectorProcesses:
    return replace(held, flows=-held.flows, own=-held.own, given=negative(held.given))


def test_a_negative_flow_towards_the_candidate_is_noticed(monkeypatch):
    monkeypatch.setattr(MeanProcesses, "upper_bounds", of_either_sign(MeanProcesses.upper_bounds, mirrored_means))
    assert not bounds_of_means_are_exact(range(24))[0]


def passed(seed: int, gamma: float, *, tight: bool = False) -> tuple[int, int]:
    """(bounds that say less than some truth of the model that is still possible, outcomes with such a truth).

    A truth is possible while M_j is below the threshold. The one that is tried is the worst for a threshold that is
    hardly lower, so that a bound that is too small by a little is passed.

    Args:
        tight: bounds must also be at most the infimum.
    """
    ends, _, vectors = vectors_played(seed, "a scale per arm", 1 + seed % 3, gamma)
    low = possible = 0
    for end in ends[:: max(1, len(ends) // 4)]:
        for candidate in range(len(end.flows)):
            bounds = end.processes.upper_bounds(vectors, candidate, THRESHOLD)
            for arm in set(range(len(end.flows))) - {candidate}:
                value, flow = float(end.processes.log_values[arm]), end.flows[arm]
                worst = least_bound(vectors, flow, value, arm, candidate, THRESHOLD - 1e-4)
                truth = vectors.embedded.features @ worst.theta + worst.eta
                if value - flow @ truth < THRESHOLD:
                    possible += 1
                    low += bool(truth[arm] - truth[candidate] > bounds[arm] + 1e-9)
                least = least_bound(vectors, flow, value, arm, candidate, THRESHOLD).value
                low += bool(bounds[arm] < least - 1e-6 * (1.0 + abs(least)))
                if tight and np.isfinite(least):
                    assert bounds[arm] <= least + 1e-5 * (1.0 + abs(least))
    return low, possible


@settings(max_examples=budget(15))
@given(seed=SEEDS, gamma=st.sampled_from([0.0, 0.02, 0.3]))
def test_no_bound_is_passed_by_a_truth_that_is_still_possible(seed, gamma):
    low, _ = passed(seed, gamma, tight=gamma == 0.0)
    assert low == 0


def test_nearly_every_outcome_has_a_worst_truth_that_is_still_possible():
    both = np.sum([passed(seed, 0.1) for seed in range(10)], axis=0)
    assert both[0] == 0
    assert both[1] > 100


def no_norm(self, vectors, candidate, missed, amount, rows):
    return vectors.embedded.misspecification * self.unmatched(candidate, amount, rows)


def no_misspecification(self, candidate, amount, rows):
    return np.zeros_like(amount)


def only_what_is_matched(self, candidate, amount, rows):
    """The flows to arms that are neither the candidate nor the arm itself are forgotten."""
    there = next((one.flows[rows] for one in self.given if one.arm == candidate), np.zeros_like(amount))
    return np.abs(there - amount) + np.abs(self.own[rows] + amount)


@pytest.mark.parametrize(
    ("name", "spoilt"), [("_penalty", no_norm), ("unmatched", no_misspecification), ("unmatched", only_what_is_matched)]
)
def test_an_omitted_bias_is_noticed(name, spoilt, monkeypatch):
    monkeypatch.setattr(VectorProcesses, name, spoilt)
    assert sum(passed(seed, 0.3)[0] > 0 for seed in range(6)) >= 2


def test_a_negative_flow_of_vectors_is_noticed(monkeypatch):
    monkeypatch.setattr(VectorProcesses, "upper_bounds", of_either_sign(VectorProcesses.upper_bounds, mirrored_vectors))
    assert sum(passed(seed, 0.0)[0] > 0 for seed in range(6)) >= 2
