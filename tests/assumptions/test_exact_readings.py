"""Every outcome of sequences of batches enumerated: no class that holds is read too boldly, whoever chooses it.

A class, an arm and a batch are chosen by the outcome: the worst of all counts. Each saboteur does what line 41 forbids.
"""

import functools

import numpy as np
import pytest
from read_outcomes import (
    DELTAS,
    Truth,
    bet_with,
    chances_of,
    drawn_weights,
    failing,
    largest_evidence,
    largest_so_far,
    log_martingales,
    paths_of,
    policy_for,
    rows_of,
    told_to,
    truth,
)

from surepick.assumptions import Linear
from surepick.estimators.flows import BatchWeights

POLICIES = ("certified-linear", "certified-kernel", "certified-independent")
sizes = pytest.mark.parametrize(
    ("name", "batches", "seeds"),
    [*((name, 3, 1) for name in POLICIES), *(pytest.param(name, 3, 8, marks=pytest.mark.slow) for name in POLICIES)],
)
SIGNIFICANT = 1e-6  # above rounding


@functools.lru_cache(8)
def ends_of(seed: int, name: str, batches: int, shift: float = 0.0):
    law = truth(seed, shift=shift)
    policy = policy_for(law, name)
    dims = {"certified-linear": (1, 2), "certified-kernel": (2, 3)}.get(name, (4,))
    return paths_of(law, policy.init(), told_to(policy), batches, seed, dims=dims)


def synthetic(law: Truth, weights=drawn_weights, *, batches: int = 3, seed: int = 0):
    step = bet_with(weights, float(law.law.noise.sigma), seed)
    return paths_of(law, np.zeros(4), step, batches, seed, pulls=2)


@sizes
def test_the_processes_that_a_replay_finds_have_expectations_of_at_most_one(name, batches, seeds):
    for seed in range(seeds):
        law = truth(seed)
        for paths in ends_of(seed, name, batches):
            values = np.exp([log_martingales(law, path, batches) for path in paths])
            expected = chances_of(paths) @ values
            assert expected.max() <= 1.0 + 1e-9
        print(f"\n{name}: E M at most {expected.max():.6f}, M up to {values.max():.3g}")
        assert values[values > 0.0].std() > 0.01  # they bet


@sizes
@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_all_true_classes_together_fail_with_probability_at_most_delta(name, batches, seeds, shift):
    """Of the best arm, U of some class against some arm after some batch is below the truth: the outcome chooses."""
    for seed in range(seeds):
        law = truth(seed, shift=shift)
        ends = ends_of(seed, name, batches, shift)
        found = largest_so_far(law, ends, batches, law.best)
        fails = failing(chances_of(ends[-1]), found)
        print(f"\n{name}, shift {shift}, {len(found)} outcomes: evidence up to {found.max():.2f}; {fails} at {DELTAS}")
        assert all(failed <= delta + 1e-12 for failed, delta in zip(fails, DELTAS, strict=True))
        assert chances_of(ends[-1]) @ np.exp(largest_evidence(law, ends[-1], batches, law.best)) <= 1.0 + 1e-9


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))])
def test_weights_from_the_past_give_no_class_too_much_evidence(seed):
    law = truth(seed, declared=1.0)
    ends = synthetic(law, seed=seed)
    chances, last = chances_of(ends[-1]), largest_evidence(law, ends[-1], 3, law.best)
    fails = failing(chances, largest_so_far(law, ends, 3, law.best))
    print(f"\n{len(last)} outcomes: E exp at the end {chances @ np.exp(last):.3f}; {fails} at {DELTAS}")
    assert chances @ np.exp(last) <= 1.0 + 1e-9
    assert all(failed <= delta + 1e-12 for failed, delta in zip(fails, DELTAS, strict=True))


# --- saboteurs


def most(found) -> float:
    print(f"\n{found}")
    return max(found)


SEEDS = range(5)


def test_weights_that_look_at_the_batch_are_noticed():
    """Of two draws, each arm takes that which its rewards speak for."""

    def in_hindsight(rng, path, seen):
        draws = [drawn_weights(rng, path, seen, size=0.8) for _ in range(2)]
        residuals = [(one.weights * one.counts) @ (seen.means - law.means)[one.measured] for one in draws]
        better = (residuals[0] > residuals[1])[:, None]
        weights = np.where(better, draws[0].weights, draws[1].weights)
        return BatchWeights(draws[0].arms, draws[0].measured, draws[0].counts, weights)

    found = []
    for seed in SEEDS:
        law = truth(seed, declared=1.0)
        paths = synthetic(law, in_hindsight, batches=2, seed=seed)[-1]
        found.append(chances_of(paths) @ np.exp(largest_evidence(law, paths, 2, law.best)))
    assert most(found) > 1.0 + SIGNIFICANT


def test_a_list_of_arms_that_a_class_chose_is_noticed():
    """All means are equal. Two arms are kept: that with the most evidence under some class, and one against which."""
    found = []
    for seed in SEEDS:
        law = truth(seed, declared=1.0, steep=0.0)
        paths = synthetic(law, batches=2, seed=seed)[-1]
        each = [largest_evidence(law, paths, 2, arm) for arm in range(4)]
        assert max(chances_of(paths) @ np.exp(one) for one in each) <= 1.0 + 1e-9  # of any list fixed beforehand
        found.append(chances_of(paths) @ np.exp(np.max(each, axis=0)))
    assert most(found) > 1.0 + SIGNIFICANT


def test_a_running_minimum_with_a_delta_that_is_chosen_afterwards_is_noticed():
    """E [1{the claim is false} / delta] with the delta at which it is just made."""
    found = []
    for seed in SEEDS:
        law = truth(seed, declared=1.0)
        ends = synthetic(law, batches=3, seed=seed)
        found.append(chances_of(ends[-1]) @ np.exp(np.maximum(largest_so_far(law, ends, 3, law.best), 0.0)))
    assert most(found) > 1.0 + SIGNIFICANT


def test_the_fitted_norm_in_place_of_the_upper_one_is_noticed():
    """After few results the fit is flat and its norm small: U of that class is below the truth nearly always."""
    law = truth(1)
    ends = ends_of(1, "certified-linear", 2)
    chances, wrong = chances_of(ends[-1]), {"fitted": 0.0, "true": 0.0}
    for chance, path in zip(chances, ends[-1], strict=True):
        held = rows_of(law, path, 2)
        if len(held.arms) == 0:
            continue
        for name, norm in (("fitted", fitted_norm(law, path)), ("true", law.classes[0].norm)):
            bold = largest_evidence(law, [path], 2, law.best, [Linear(norm)])[0] >= -np.log(0.1)
            wrong[name] += chance * bold
    print(f"\n{wrong}")
    assert wrong["true"] <= 0.1 < wrong["fitted"]


def fitted_norm(law: Truth, path) -> float:
    """|theta| of a ridge whose penalty is that of a prior of scale epsilon."""
    counts = sum((np.bincount(one.batch.measured, one.batch.counts, 4) for one, _ in path.told), np.zeros(4))
    weights = counts / float(law.law.noise.sigma) ** 2
    means = sum((means * np.bincount(one.batch.measured, one.batch.counts, 4) for one, means in path.told), np.zeros(4))
    means = np.divide(means, counts, out=np.zeros(4), where=counts > 0)
    level = weights @ means / weights.sum()
    rows = law.features
    theta = np.linalg.solve((rows.T * weights) @ rows + np.eye(2) / 0.03**2, rows.T @ (weights * (means - level)))
    return max(float(np.linalg.norm(theta)), 1e-9)
