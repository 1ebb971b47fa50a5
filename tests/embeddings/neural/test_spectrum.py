"""The spectrum of the gradients, and the dimension that is read from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_networks import KINDS, SPECTRUM, elsewhere, make, normal_rows, relative
from together import of_each

from surepick.embeddings.network import ARCHITECTURES, ArmNetwork


@of_each("num_arms", [6, 60])
@of_each(("architecture", "depth"), KINDS)
def test_the_spectrum_is_that_of_the_gradients_by_either_path(architecture, depth, num_arms):
    arms = make(normal_rows(num_arms, 3), architecture, depth, width=4)
    theta = elsewhere(arms)
    direct, squared = arms.spectrum(theta, path="jacobian"), arms.spectrum(theta, path="gram")
    smaller = min(num_arms, arms.num_parameters)
    assert direct.values.shape == (smaller,)
    assert direct.vectors.shape == (num_arms, smaller)
    assert np.all(np.diff(direct.values) <= 0)
    assert np.all(np.diff(squared.values) <= 0)
    assert np.max(np.abs(direct.values - squared.values[:smaller])) <= 1e-5 * direct.values[0]
    assert np.max(squared.values[smaller:], initial=0.0) <= 1e-5 * direct.values[0]
    for spectrum in (direct, squared):
        psi = spectrum.vectors_of(smaller)
        assert relative(psi @ psi.T, arms.gram(theta) / 4.0) < 1e-12
        assert spectrum.vectors_of(2) == pytest.approx(psi[:, :2])


@pytest.mark.parametrize(("num_arms", "direct"), [(5, False), (6, True), (20, True)])
def test_the_path_is_chosen_by_size(num_arms, direct, monkeypatch):
    """p = 6 weights: G itself where it has no more columns than rows."""
    arms = make(normal_rows(num_arms, 2), "standard", depth=2, width=2)
    assert arms.num_parameters == 6
    monkeypatch.setattr(ArmNetwork, "gram" if direct else "gradients", None)
    assert len(arms.spectrum(arms.start).values) == min(num_arms, 6)


def test_equal_arms_have_equal_vectors():
    features = normal_rows(6, 3)[[0, 1, 2, 0, 1, 2]]
    arms = make(features, width=16)
    assert (arms.num_arms, arms.num_distinct) == (6, 3)
    psi = arms.spectrum(arms.start).vectors_of(3)
    assert psi[:3] == pytest.approx(psi[3:], abs=1e-7)


@of_each(
    ("scale", "tolerance", "dim"),
    [
        ("paper", 0.25, 3),  # unit sqrt(4): the tail may be .5
        ("paper", 0.24, 4),
        ("paper", 0.75, 2),
        ("paper", 1.75, 1),
        ("paper", 100.0, 1),
        ("published", 0.05, 3),  # unit 10
        ("published", 0.0499, 4),
        ("published", 0.15, 2),
        ("relative", 0.0625, 4),  # unit 7.5
        ("relative", 0.067, 3),
        ("relative", 0.2, 2),
        ("relative", 0.99, 1),
    ],
)
def test_the_dimension_of_four_values(scale, tolerance, dim):
    assert SPECTRUM.dimension(tolerance, scale) == dim


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_tolerance_on_the_published_scale_is_one_of_p_over_sqrt_m_times_as_much(architecture):
    arms = make(normal_rows(30, 5), architecture, width=16)
    spectrum = arms.spectrum(arms.start)
    factor = spectrum.num_parameters / math.sqrt(spectrum.width)
    total = float(spectrum.values.sum())
    dims = []
    for tolerance in 10.0 ** np.random.default_rng(0).uniform(-6, 0, 50):
        tail = tolerance * spectrum.num_parameters
        dims.append(spectrum.dimension(tolerance, "published"))
        assert dims[-1] == spectrum.dimension(tolerance * factor, "paper")
        assert dims[-1] == spectrum.dimension(tail / total, "relative")
        direct = [d for d in range(1, 31) if spectrum.values[d:].sum() <= tail]
        assert dims[-1] == direct[0]
    assert len(set(dims)) > 10


def test_the_vectors_by_hand():
    assert SPECTRUM.vectors_of(2) == pytest.approx(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]))
