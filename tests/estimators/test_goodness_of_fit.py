"""What the checks of an embedding make of extreme settings; their error is measured in tests/guarantees."""

from dataclasses import replace

import numpy as np

import surepick as sp
from surepick.estimators import lack_of_fit, least_squares, norm_contradicted


def test_a_norm_bound_as_large_as_floats_contradicts_nothing():
    """Its limits overflow, which would warn."""
    embedded = sp.Embedding(10.0 * np.eye(3), 0.0)
    seen = sp.Observations([2, 3, 4], [0.5, 1.0, -2.0])
    assert norm_contradicted(embedded, seen, norm_bound=1e308, sigma=0.5, level=0.001) == ""


def test_a_norm_bound_that_is_too_small_is_contradicted():
    embedded = sp.Embedding(np.eye(2), 0.0)
    seen = sp.Observations([1000, 1000], [1000.0, -1000.0])
    assert "norm_bound is too small" in norm_contradicted(embedded, seen, norm_bound=0.1, sigma=0.5, level=0.001)


def test_one_scale_and_the_same_scale_for_each_arm_are_the_same():
    rng = np.random.default_rng(2)
    embedded, counts = sp.Embedding(rng.normal(size=(6, 2)), 0.01), rng.integers(1, 9, 6)
    seen = sp.Observations(counts, counts * rng.normal(0.0, 9.0, 6))
    fitted, each = least_squares(embedded, seen), np.full(6, 0.5)
    said = [lack_of_fit(fitted, seen, misspecification=0.01, sigma=one, level=0.01) for one in (0.5, each)]
    assert said[0] == said[1] != ""
    said = [norm_contradicted(embedded, seen, norm_bound=0.1, sigma=one, level=0.01) for one in (0.5, each)]
    assert said[0] == said[1] != ""


def test_only_the_scale_of_a_noisy_arm_excuses_it():
    embedded, counts = sp.Embedding(np.ones((3, 1)), 0.0), np.array([10, 10, 10])
    seen = sp.Observations(counts, [10.0, 10.0, 90.0])
    for sigma, excused in (([0.1, 0.1, 10.0], True), ([10.0, 0.1, 0.1], False)):
        each = np.array(sigma)
        weighted = least_squares(sp.Embedding(1.0 / each[:, None], 0.0), sp.Observations(counts, seen.sums / each))
        fitted = replace(weighted, scores=each * weighted.scores)
        assert (lack_of_fit(fitted, seen, misspecification=0.0, sigma=each, level=0.01) == "") == excused
        assert (norm_contradicted(embedded, seen, norm_bound=2.0, sigma=each, level=0.01) == "") == excused
