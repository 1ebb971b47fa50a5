"""Least squares, arm means and widths, against explicit inverses and exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.plans import IndependentArms
from surepick.estimators import anytime_radius, arm_means, estimate, least_squares
from surepick.linalg.factorisations import whitened

EPS = np.finfo(np.float64).eps


def fitted_distances(features, counts):
    everybody = np.arange(len(features))
    seen = sp.Observations(counts, np.zeros(len(features)))
    return least_squares(sp.Embedding(features, 0.0), seen).distances(everybody, everybody)


def exact_variance(features, counts, left, right):
    """y'A^-1 y in rational arithmetic, y the difference of two rows: no digit is lost."""
    rows = [[Fraction(float(entry)) for entry in row] for row in features]
    difference = [a - b for a, b in zip(rows[left], rows[right], strict=True)]
    size = len(difference)
    table = [
        [sum(int(n) * row[i] * row[j] for n, row in zip(counts, rows, strict=True)) for j in range(size)]
        + [difference[i]]
        for i in range(size)
    ]
    for column in range(size):
        pivot = next(row for row in range(column, size) if table[row][column] != 0)
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [entry / table[column][column] for entry in table[column]]
        for row in set(range(size)) - {column}:
            table[row] = [a - table[row][column] * b for a, b in zip(table[row], table[column], strict=True)]
    return sum(a * row[-1] for a, row in zip(difference, table, strict=True))


@of_each("seed", range(20))
@of_each("scale", [1e-8, 1.0, 1e8])
def test_least_squares_is_the_explicit_inverse(seed, scale):
    rng = np.random.default_rng(seed)
    num_arms, dim = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    features, counts = scale * rng.normal(size=(num_arms, dim)), rng.integers(1, 30, num_arms)
    sums = counts * rng.normal(size=num_arms)
    fitted = least_squares(sp.Embedding(features, 0.0), sp.Observations(counts, sums))
    inverse = np.linalg.inv(features.T @ (counts[:, None] * features))
    scores = features @ inverse @ features.T @ sums
    pairs = features[:, None] - features[None]
    expected = np.sqrt(np.einsum("abi,ij,abj->ab", pairs, inverse, pairs))
    assert np.allclose(fitted.scores, scores, rtol=1e-9, atol=1e-9)
    assert np.allclose(fitted.distances(np.arange(num_arms), np.arange(num_arms)), expected, rtol=1e-9, atol=1e-6)
    assert fitted.comparable.all()
    assert fitted.total == counts.sum()


def test_a_literal_case():
    """Arms 1 and 2 on a line, 2 and 1 pulls: A = 2 + 4 = 6, b = 3 + 2 * 4 = 11; differences have length 1/sqrt 6."""
    fitted = least_squares(sp.Embedding([[1.0], [2.0]], 0.0), sp.Observations([2, 1], [3.0, 4.0]))
    assert fitted.scores == pytest.approx([11 / 6, 22 / 6])
    assert fitted.distances(np.array([0]), np.array([1]))[0, 0] == pytest.approx(1 / math.sqrt(6))


@pytest.mark.parametrize("seed", range(5))
def test_the_squared_distance_is_the_variance_of_the_estimate(seed):
    """score_a - score_b is linear in the rewards; sum over single pulls of the squared weights is the variance."""
    rng = np.random.default_rng(seed)
    features, counts = rng.normal(size=(5, 3)), rng.integers(1, 6, 5)
    embedding, everybody = sp.Embedding(features, 0.0), np.arange(5)
    weights = np.array([least_squares(embedding, sp.Observations(counts, unit)).scores for unit in np.eye(5)])
    differences = weights[:, :, None] - weights[:, None, :]
    variance = np.einsum("x,xab->ab", counts, differences**2)
    distances = least_squares(embedding, sp.Observations(counts, np.zeros(5))).distances(everybody, everybody)
    assert np.allclose(distances**2, variance, rtol=1e-9)


def test_noiseless_linear_rewards_are_found_exactly():
    features = np.random.default_rng(0).normal(size=(6, 3))
    means, counts = features @ [1.0, -2.0, 0.5], np.array([2, 1, 0, 3, 0, 1])
    fitted = least_squares(sp.Embedding(features, 0.0), sp.Observations(counts, counts * means))
    assert fitted.scores == pytest.approx(means)


def test_a_singular_batch_knows_the_differences_in_its_range_and_no_other():
    """Arms 0 and 1 are pulled, in the plane x_3 = 0; arm 2 lies in it and arm 3 does not."""
    features = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    seen = sp.Observations([4, 1, 0, 0], [8.0, 3.0, 0.0, 0.0])
    fitted = least_squares(sp.Embedding(features, 0.0), seen)
    distances = fitted.distances(np.arange(4), np.arange(4))
    assert fitted.comparable.tolist() == [True, True, True, False]
    assert fitted.scores[:3] - fitted.scores[0] == pytest.approx([0.0, 1.0, 5.0])
    assert distances[:3, :3] ** 2 == pytest.approx(np.array([[0, 1.25, 1.25], [1.25, 0, 1.0], [1.25, 1.0, 0]]))
    assert np.isinf(distances[3, :3]).all()
    assert np.isinf(distances[:3, 3]).all()
    assert distances[3, 3] == 0.0


def test_a_common_direction_outside_the_range_does_not_matter():
    """Only differences need to be in the range: the intercept of all arms is never measured when it cannot be."""
    features = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 1.0]])
    seen = sp.Observations([0, 0, 5], [0.0, 0.0, 5.0])
    fitted = least_squares(sp.Embedding(features, 0.0), seen)
    assert np.isinf(fitted.distances(np.array([0]), np.array([1, 2]))).all()
    both = least_squares(sp.Embedding(features, 0.0), sp.Observations([2, 0, 2], [0.0, 0.0, 6.0]))
    assert both.comparable.all()
    assert both.scores - both.scores[0] == pytest.approx([0.0, 1.0, 3.0])


def test_comparable_is_relative_to_the_reference():
    seen = sp.Observations([5, 5, 0], [1.0, 1.0, 0.0])
    embedding = sp.Embedding(np.eye(3), 0.0)
    assert least_squares(embedding, seen, reference=0).comparable.tolist() == [True, True, False]
    assert least_squares(embedding, seen, reference=2).comparable.tolist() == [False, False, True]


def test_nothing_measured_compares_nothing():
    fitted = least_squares(sp.Embedding(np.eye(2), 0.0), sp.Observations.nothing(2))
    assert np.isinf(fitted.distances(np.array([0]), np.array([1]))).all()
    means = arm_means(sp.Observations.nothing(2))
    assert not means.comparable.any()
    assert np.isinf(means.distances(np.array([0]), np.array([1]))).all()


def clusters(perturbation):
    """Two clusters of two arms that differ by `perturbation` in the third direction."""
    return np.array([[1.0, 0.0, 0.0], [1.0, 0.0, perturbation], [0.0, 1.0, 0.0], [0.0, 1.0, perturbation]])


@pytest.mark.parametrize("perturbation", [1e-3, 1e-9])
def test_two_clusters_of_which_one_arm_each_is_pulled(perturbation):
    """A pseudo-inverse says N ||y||^2 = 4.00 for any two arms of different clusters; the third direction is unknown."""
    features, counts = clusters(perturbation), np.array([50, 0, 50, 0])
    pulled = features.T @ (counts[:, None] * features)
    difference = features[1] - features[2]
    assert 100 * difference @ np.linalg.pinv(pulled) @ difference == pytest.approx(4.0)
    distances = fitted_distances(features, counts)
    assert 100 * distances[0, 2] ** 2 == pytest.approx(4.0)
    assert np.isinf(distances[1, 2])
    assert np.isinf(distances[0, 1])


def test_two_clusters_with_a_perturbation_far_below_the_rounding_of_a():
    """A holds the perturbation squared, 1e-18: an inverse of A has lost it, and a pseudo-inverse says 4.00."""
    features = np.vstack([clusters(1e-9), [[1.0, 0.0, 40e-9]]])
    counts = np.array([25, 25, 50, 0, 0])
    difference = features[4] - features[2]
    lossy = difference @ np.linalg.pinv(features.T @ (counts[:, None] * features)) @ difference
    assert 100 * lossy == pytest.approx(4.0, rel=1e-3)
    truth = float(exact_variance(features, counts, 4, 2))
    assert 100 * truth > 10_000
    assert fitted_distances(features, counts)[4, 2] ** 2 == pytest.approx(truth, rel=1e-5)


@of_each("digits", [0, 3, 6, 9])
@of_each("seed", range(6))
def test_distances_of_nearly_equal_arms_are_not_below_the_truth(seed, digits):
    """No Gram cancellation: the distance of arms that agree to `digits` digits is right to the data's own condition."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 3))
    features[1] = features[0] + 10.0**-digits * rng.normal(size=3)
    if seed % 2:
        features = np.repeat(features[:2], 3, axis=0) + 10.0**-digits * rng.normal(size=(6, 3))
    counts = rng.integers(1, 2000, 6)
    fitted = least_squares(sp.Embedding(features, 0.0), sp.Observations(counts, np.zeros(6)))
    distances = fitted.distances(np.arange(6), np.arange(6))
    lengths = np.linalg.norm(fitted.coordinates, axis=1)
    condition = whitened(features).condition
    for left in range(6):
        for right in range(left):
            truth = math.sqrt(exact_variance(features, counts, left, right))
            rounding = 64 * EPS * condition * (lengths[left] + lengths[right])
            assert rounding < 1e-3 * truth or digits > 6
            assert truth - rounding <= min(distances[left, right], distances[right, left])
            assert max(distances[left, right], distances[right, left]) <= truth * (1 + 1e-5) + rounding


def test_an_arm_has_no_distance_to_itself_and_equal_arms_hardly_any():
    features = np.random.default_rng(0).normal(size=(4, 2))[[0, 1, 1, 2, 3]]
    distances = fitted_distances(features, np.array([5, 1, 4, 2, 3]))
    assert np.all(np.diag(distances) == 0.0)
    assert distances[1, 2] <= 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_arm_means_are_least_squares_on_the_identity(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, 5)
    seen, everybody = sp.Observations(counts, rng.normal(size=5)), np.arange(5)
    plain, linear = arm_means(seen), least_squares(sp.Embedding(np.eye(5), 0.0), seen)
    assert plain.scores == pytest.approx(linear.scores)
    assert plain.scores == pytest.approx(seen.sums / counts)
    assert np.allclose(plain.distances(everybody, everybody), linear.distances(everybody, everybody), rtol=1e-9)
    assert plain.distances(everybody, everybody)[1, 2] ** 2 == pytest.approx(1 / counts[1] + 1 / counts[2])


def test_arm_means_do_not_compare_what_was_never_measured():
    fitted = arm_means(sp.Observations([4, 0, 1], [2.0, 0.0, 3.0]))
    assert fitted.scores.tolist() == [0.5, 0.0, 3.0]
    assert fitted.comparable.tolist() == [True, False, True]
    distances = fitted.distances(np.array([0, 1]), np.array([0, 1, 2]))
    assert distances[0].tolist() == [0.0, np.inf, math.sqrt(1.25)]
    assert distances[1].tolist() == [np.inf, 0.0, np.inf]


def test_the_estimator_fits_the_structure():
    seen = sp.Observations([1, 1], [0.0, 1.0])
    assert type(estimate(IndependentArms(2), seen)) is type(arm_means(seen))
    assert estimate(sp.Embedding(np.eye(2), 0.0), seen) == least_squares(sp.Embedding(np.eye(2), 0.0), seen)


def test_the_anytime_radius():
    radius = anytime_radius(np.array([0, 1, 100]), np.array([1.0, 1.0, 0.5]), delta=0.1, num_arms=3)
    assert radius[0] == np.inf
    assert radius[1] == pytest.approx(math.sqrt(2 * math.log(4 * 3 / 0.1)))
    assert radius[2] == pytest.approx(0.5 * math.sqrt(2 * math.log(4 * 3 * 100**2 / 0.1) / 100))


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_the_anytime_radius_spends_less_than_delta(delta):
    counts = np.arange(1, 20_001)
    radius = anytime_radius(counts, np.ones(len(counts)), delta=delta, num_arms=7)
    spent = 7 * np.sum(2 * np.exp(-counts * radius**2 / 2))
    assert 0.8 * delta < spent < delta * math.pi**2 / 12 * (1 + 1e-12)
