"""rho* and its relatives, the critical round and the upper bounds: literal cases and other implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from together import of_each

from surepick.core.plans import Embedding, IndependentArms
from surepick.designs import solve_target_design
from surepick.embeddings import LinearEmbedding
from surepick.environments import soare, sphere, two_clusters
from surepick.errors import ContractError, InvalidInput
from surepick.policies.dimension import effective_dimension, embedding_design, worst_gap
from surepick_bench.theory.complexity import (
    achievable_gap,
    critical_round,
    hardness,
    least_critical_round,
    linear_hardness,
    pac_complexity,
    reference_pulls,
    relaxation_bound,
)
from surepick_bench.theory.upper_bounds import upper_bound_adaptive, upper_bound_fixed, upper_bound_unknown


def instance(seed: int, num_arms: int = 12, dim: int = 3, misspecification: float = 0.0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_arms, dim))
    means = features @ rng.standard_normal(dim)
    means = means / np.ptp(means) + misspecification * rng.uniform(-1, 1, num_arms)
    return Embedding(features, misspecification), means


@of_each("epsilon", [0.0, 0.2])
@of_each("seed", range(4))
def test_rho_star_is_the_design_of_its_definition(seed, epsilon):
    embedded, means = instance(seed)
    best = int(means.argmax())
    others = np.delete(np.arange(12), best)
    gaps = np.maximum(means[best] - means[others], epsilon)
    expected = solve_target_design(
        embedded.features, (embedded.features[best] - embedded.features[others]) / gaps[:, None], tolerance=1e-3
    )
    found = hardness(embedded, means, epsilon)
    assert found.lower_bound <= expected.value * (1 + 1e-9)
    assert expected.lower_bound <= found.value * (1 + 1e-9)
    assert found.value <= 1.01 * found.lower_bound
    assert found.reason == ""
    assert found.design is not None
    assert found.design.value == found.value


def test_two_arms_without_structure():
    found = hardness(IndependentArms(2), [0.0, 0.5], 0.0)
    assert found.value == pytest.approx(4.0 / 0.25)
    assert hardness(IndependentArms(2), [0.0, 0.5], 2.0).value == pytest.approx(1.0)
    assert hardness(IndependentArms(1), [3.0], 0.0).value == 0.0


def test_ties_are_infinite_without_epsilon_only():
    found = hardness(IndependentArms(3), [1.0, 0.0, 1.0], 0.0)
    assert math.isinf(found.value)
    assert math.isinf(found.lower_bound)
    assert found.design is None
    assert "Arm 2 is as good as arm 0" in found.reason
    assert math.isfinite(hardness(IndependentArms(3), [1.0, 0.0, 1.0], 0.1).value)
    assert reference_pulls(math.inf, sigma=1.0, delta=0.05) == math.inf


def test_the_linear_part_by_least_squares_and_by_hand():
    embedded, means = instance(5, misspecification=0.05)
    theta = np.linalg.lstsq(embedded.features, means)[0]
    fitted = linear_hardness(embedded, means, 0.1)
    assert linear_hardness(embedded, means, 0.1, theta=theta).value == pytest.approx(fitted.value, rel=1e-6)
    straight = hardness(embedded, embedded.features @ theta, 0.1)
    assert straight.value == pytest.approx(fitted.value, rel=0.01)  # the best arm is the same here
    assert linear_hardness(IndependentArms(3), [1.0, 0.5, 0.0], 0.1).value == pytest.approx(
        hardness(IndependentArms(3), [1.0, 0.5, 0.0], 0.1).value
    )
    swapped = linear_hardness(IndependentArms(2), [1.0, 0.5], 0.0, theta=[0.0, 1.0])  # the linear part prefers arm 1
    assert math.isinf(swapped.value)
    assert linear_hardness(IndependentArms(2), [1.0, 0.5], 0.5, theta=[0.0, 1.0]).value == pytest.approx(16.0)
    with pytest.raises(InvalidInput, match="theta"):
        linear_hardness(embedded, means, 0.1, theta=[1.0])


def test_the_relation_is_refused_where_it_is_not_proved():
    embedded, means = instance(6, misspecification=0.3)
    with pytest.raises(ContractError, match=r"9 rho-tilde\*"):
        relaxation_bound(embedded, means, 1e-3)


def test_reference_pulls():
    assert reference_pulls(10.0, sigma=0.5, delta=0.05) == pytest.approx(2 * 0.25 * 10 * math.log(1 / 0.12))
    assert reference_pulls(10.0, sigma=0.5, delta=0.5) == 0.0


def reference(embedded, means, sigma):
    return reference_pulls(hardness(embedded, means, 0.1).value, sigma=sigma, delta=0.05)


def test_reference_pulls_of_known_instances():
    arms = soare(10, 0.6)
    assert reference(Embedding(arms.arms.features, 0.0), arms.means, 1.0) == pytest.approx(120, rel=0.02)
    clusters = two_clusters(num_arms=250, dim=25, seed=0)
    embedded = LinearEmbedding(clusters.arms.features, norm_bound=0.9).at(2)
    assert reference(embedded, clusters.means, 0.5) == pytest.approx(26, rel=0.06)
    values = [reference(Embedding(e.arms.features, 0.0), e.means, 1.0) for e in (sphere(100, 10, s) for s in range(6))]
    assert 200 < min(values) < max(values) < 5000  # hard to tell arms make it vary


def brute_pac(embedded, means, epsilon, sigma):
    values = []
    for arm in range(len(means)):
        others = np.delete(np.arange(len(means)), arm)
        scales = means[arm] - means[others] + epsilon
        if scales.min() > 0:
            targets = (embedded.features[arm] - embedded.features[others]) / scales[:, None]
            values.append(2 * sigma**2 * solve_target_design(embedded.features, targets, tolerance=1e-3).value)
    return min(values)


@of_each("seed", range(4))
def test_the_pac_complexity_is_the_cheapest_candidate(seed):
    embedded, means = instance(seed)
    found = pac_complexity(embedded, means, 0.3, sigma=0.7)
    expected = brute_pac(embedded, means, 0.3, 0.7)
    assert found.lower_bound <= expected * (1 + 1e-9)
    assert found.value >= expected / 1.0011
    assert found.value <= found.lower_bound * 1.0101
    assert not found.truncated
    assert means[found.arm] > means.max() - 0.3


def test_the_pac_complexity_at_its_edges():
    embedded, means = instance(1)
    sharp = pac_complexity(embedded, means, 0.0, sigma=1.0)
    assert sharp.value == pytest.approx(2 * hardness(embedded, means, 0.0).value, rel=0.02)
    assert sharp.num_candidates == 1
    tied = pac_complexity(IndependentArms(2), [1.0, 1.0], 0.0, sigma=1.0)
    assert math.isinf(tied.value)
    assert tied.design is None
    many = pac_complexity(IndependentArms(40), np.zeros(40), 0.5, sigma=1.0, most_candidates=3)
    assert many.truncated
    assert many.num_candidates == 3
    assert many.arm == 0
    assert pac_complexity(IndependentArms(1), [0.0], 0.0, sigma=1.0).value == 0.0


def test_the_critical_round_by_enumeration():
    embedded, means = instance(2, num_arms=20, misspecification=0.002)
    gaps, slack = means.max() - means, 0.1
    expected = 0
    for k in range(1, 40):
        active = np.arange(20) if k == 1 else np.flatnonzero(gaps < 4 * 2.0**-k)
        tau = embedding_design(embedded, active).value
        if (2 + math.sqrt((1 + slack) * tau)) * 0.002 > 2.0**-k / 2:
            break
        expected = k
    assert critical_round(embedded, means) == expected > 0
    assert achievable_gap(expected) == 2 * 2.0**-expected


def test_the_critical_round_at_its_edges():
    embedded, means = instance(2)
    assert critical_round(embedded, means) == math.inf
    assert achievable_gap(math.inf) == 0.0
    assert least_critical_round(0.0, 4.0, 0.1) == math.inf
    hopeless = Embedding(embedded.features, 5.0)
    assert critical_round(hopeless, means) == 0.0
    assert achievable_gap(0.0, gap_bound=3.0) == 3.0
    assert least_critical_round(5.0, 4.0, 0.1) == 0.0
    assert least_critical_round(math.inf, 4.0, 0.1) == 0.0
    single = critical_round(Embedding(embedded.features, 1e-300), means)  # one arm is left long before
    assert math.isfinite(single)
    assert least_critical_round(0.01, 8.0, 0.125) == math.floor(math.log2(1 / (2 * 5 * 0.01)))


def test_the_upper_bound_of_one_round_by_hand():
    arms = IndependentArms(4)
    means = [0.5, 0.0, 0.0, 0.0]
    bound = upper_bound_fixed(arms, means, delta=0.1, sigma=0.5, epsilon=1.0, gap_bound=2.0, tolerance=0.01)
    rho = hardness(arms, means, 1.0).value
    assert bound.num_rounds == 1
    assert bound.accuracy == 1.0
    assert bound.pulls == pytest.approx(512 * 1.1 * 1.01 * 0.25 * rho * math.log(3 * 2 / 0.1) + 5)


def test_the_fixed_bound_promises_what_misspecification_allows():
    embedded, means = instance(3, misspecification=0.001)
    forced = worst_gap(0.001, embedding_design(embedded).value, 0.1)
    bound = upper_bound_fixed(embedded, means, delta=0.05, sigma=1.0)
    assert bound.accuracy == forced
    assert bound.num_rounds == math.ceil(math.log2(2 / forced))
    coarse = upper_bound_fixed(embedded, means, delta=0.05, sigma=1.0, epsilon=0.5)
    assert coarse.accuracy == 0.5
    assert coarse.pulls < bound.pulls
    trivial = upper_bound_fixed(embedded, means, delta=0.05, sigma=1.0, epsilon=2.0)
    assert trivial.pulls == trivial.num_rounds == 0.0
    assert trivial.accuracy == 2.0
    with pytest.raises(InvalidInput, match="number of rounds"):
        upper_bound_fixed(IndependentArms(3), [0.0, 0.1, 0.2], delta=0.05, sigma=1.0)
    with pytest.raises(InvalidInput, match="number of rounds"):
        upper_bound_fixed(Embedding(embedded.features, math.inf), means, delta=0.05, sigma=1.0)


def test_the_unknown_bound():
    embedded, means = instance(3, misspecification=0.001)
    bound = upper_bound_unknown(embedded, means, delta=0.05, sigma=1.0)
    assert bound.num_rounds == critical_round(embedded, means)
    assert bound.accuracy == achievable_gap(bound.num_rounds)
    endless = upper_bound_unknown(instance(3)[0], means, delta=0.05, sigma=1.0)
    assert math.isinf(endless.pulls)
    wanted = upper_bound_unknown(instance(3)[0], means, delta=0.05, sigma=1.0, epsilon=0.3)
    assert math.isfinite(wanted.pulls)
    assert wanted.accuracy <= 0.3
    nothing = upper_bound_unknown(Embedding(embedded.features, 5.0), means, delta=0.05, sigma=1.0)
    assert nothing.pulls == 0.0
    assert nothing.accuracy == 2.0


def test_the_adaptive_bound_adds_its_rounds():
    clusters = two_clusters(num_arms=50, dim=6, seed=1)
    family = LinearEmbedding(clusters.arms.features, norm_bound=0.9)
    bound = upper_bound_adaptive(family, clusters.means, epsilon=0.1, delta=0.05, sigma=0.5, gap_bound=1.0)
    assert bound.num_rounds == 4 == len(bound.dims) == len(bound.complexities)
    assert bound.dims == tuple(effective_dimension(family, 2.0 * 2.0**-k) for k in range(1, 5))
    doubled = upper_bound_adaptive(family, clusters.means, epsilon=0.1, delta=0.05, sigma=1.0, gap_bound=1.0)
    spread = bound.pulls - doubled.pulls / 4
    assert 0 < spread < 0.05 * bound.pulls  # only rounding does not grow with sigma^2
    one = upper_bound_adaptive(family, clusters.means, epsilon=0.1, delta=0.05, sigma=0.5, gap_bound=1.0, looks=8)
    assert one.pulls > bound.pulls
    trivial = upper_bound_adaptive(family, clusters.means, epsilon=1.0, delta=0.05, sigma=0.5, gap_bound=1.0)
    assert trivial.pulls == 0.0
    assert trivial.dims == ()


def test_bad_input_is_refused():
    embedded, means = instance(0)
    for wrong in (means[:-1], [math.nan] * 12, ["a"] * 12):
        with pytest.raises(InvalidInput, match="mean"):
            hardness(embedded, wrong, 0.1)
    for epsilon in (-0.1, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="epsilon"):
            hardness(embedded, means, epsilon)
    with pytest.raises(InvalidInput, match="delta"):
        reference_pulls(1.0, sigma=1.0, delta=0.0)
    with pytest.raises(InvalidInput, match="sigma"):
        reference_pulls(1.0, sigma=0.0, delta=0.1)
    with pytest.raises(InvalidInput, match=r"gap_bound is 0\.5"):
        critical_round(embedded, means, gap_bound=0.5)
    with pytest.raises(InvalidInput, match="most_candidates"):
        pac_complexity(embedded, means, 0.1, sigma=1.0, most_candidates=0)
