"""The effective dimension by hand, by direct sums, and under rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tangent_kernels import random_gram, unit_rows
from together import of_each

import surepick as sp
from surepick.embeddings import NeuralTangentKernel, unit_rows_with_norm
from surepick_bench.theory.neural import neural_effective_dimension
from surepick_bench.theory.spectra import neural_gram, spectrum_effective_dimension


@pytest.mark.parametrize(
    ("tolerance", "dim"), [(0.0, 4), (0.4999, 4), (0.5, 3), (1.4999, 3), (1.5, 2), (3.5, 1), (100.0, 1), (math.inf, 1)]
)
def test_the_dimension_of_four_eigenvalues(tolerance, dim):
    assert spectrum_effective_dimension([4.0, 2.0, 1.0, 0.5], tolerance) == dim
    assert spectrum_effective_dimension([0.5, 1.0, 4.0, 2.0], tolerance) == dim


@of_each("seed", range(20))
def test_the_dimension_against_direct_sums_and_its_monotonicity(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(10.0 ** rng.uniform(-6, 1, int(rng.integers(1, 12))))[::-1]
    last = len(values)
    for tolerance in np.sort(10.0 ** rng.uniform(-8, 1.5, 30)):
        direct = min(d for d in range(1, len(values) + 1) if sum(sorted(values)[: len(values) - d]) <= tolerance)
        assert spectrum_effective_dimension(values, tolerance) == direct <= last
        last = direct


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_gram_matrix_and_its_eigenvalues_have_the_same_dimension(rank):
    gram = random_gram(8, rank)
    exact = np.linalg.svd(gram, compute_uv=False)
    for tolerance in (1.0, 1e-2, 1e-4, 1e-9):
        assert spectrum_effective_dimension(gram, tolerance) == spectrum_effective_dimension(exact, tolerance)


def test_rounding_never_makes_a_dimension_too_small():
    """Three equal arms: eigenvalues 3, 0, 0, computed as 3 and two numbers of either sign near 1e-16."""
    same = np.ones((3, 3))
    assert spectrum_effective_dimension(same, 1e-12) == 1
    assert spectrum_effective_dimension(same, 1e-18) == 3  # cannot be told from 0
    assert spectrum_effective_dimension(same, 1e-6, rounding=1e-6) == 2
    assert spectrum_effective_dimension([3.0, 0.0, -1e-17], 0.0) == 1
    assert spectrum_effective_dimension([[2.0]], 0.0) == 1


def test_two_orthogonal_arms():
    """L = 2, angle pi/2: Sigma = 1/pi and H-tilde = 1/pi off the diagonal, so H has the eigenvalues 1.5 +- 1/pi."""
    gram = neural_gram(np.eye(2), depth=2)
    np.testing.assert_allclose(gram, [[1.5, 1 / math.pi], [1 / math.pi, 1.5]], rtol=1e-14)
    edge = 1.5 - 1 / math.pi
    assert neural_effective_dimension(np.eye(2), edge + 1e-9, depth=2) == 1
    assert neural_effective_dimension(np.eye(2), edge - 1e-9, depth=2) == 2
    assert neural_effective_dimension(np.eye(2), edge + 1e-9, depth=2, form="H-tilde") == 2
    assert neural_effective_dimension(np.eye(3), 1.0 + 1e-9, depth=1) == 2  # the linear kernel


def test_doubled_coordinates_leave_the_kernel_alone():
    arms = unit_rows((5, 3))
    np.testing.assert_allclose(neural_gram(np.hstack([arms, arms]) / math.sqrt(2)), neural_gram(arms), rtol=1e-12)


def test_rows_of_any_norm_can_be_normalised():
    rows = 3.0 * np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(sp.InvalidInput, match="do not have unit norm"):
        neural_effective_dimension(rows, 1e-3)
    lifted = unit_rows_with_norm(rows)
    kernel = NeuralTangentKernel(4, "H-tilde")
    np.testing.assert_array_equal(
        neural_gram(rows, depth=4, form="H-tilde", inputs="normalized"), kernel.gram(lifted, lifted)
    )
    assert neural_effective_dimension(rows, 1e-3, inputs="normalized") == neural_effective_dimension(lifted, 1e-3)


def test_two_clusters_have_two_directions_at_a_tolerance_that_matters():
    arms = sp.environments.two_clusters(num_arms=60).arms.features
    assert neural_effective_dimension(arms, 0.01, inputs="normalized") == 2
    assert neural_effective_dimension(arms, 1e-12, inputs="normalized") == 60


@pytest.mark.parametrize(
    ("spectrum", "message"),
    [
        ([1.0, -0.1], "the smallest eigenvalue is -0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], "the smallest eigenvalue is -1"),
        ([[1.0, 2.0], [0.0, 1.0]], "not symmetric: two entries differ by 2"),
        ([1.0, math.nan], "eigenvalue 1 is not finite"),
        ([[1.0, math.inf], [math.inf, 1.0]], "entries that are not finite"),
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        ([], r"shape \(0,\)"),
        ("much", "not an array of numbers"),
    ],
)
def test_what_is_no_spectrum(spectrum, message):
    with pytest.raises(sp.InvalidInput, match=message):
        spectrum_effective_dimension(spectrum, 0.1)


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, "small"])
def test_what_is_no_tolerance(tolerance):
    with pytest.raises(sp.InvalidInput, match="tolerance is"):
        spectrum_effective_dimension([1.0], tolerance)


def test_what_is_no_rounding_and_no_choice_of_inputs():
    with pytest.raises(sp.InvalidInput, match="rounding is -1"):
        spectrum_effective_dimension([1.0], 0.1, rounding=-1)
    with pytest.raises(sp.InvalidInput, match="inputs is 'doubled'"):
        neural_gram(np.eye(2), inputs="doubled")
