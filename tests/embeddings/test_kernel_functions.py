"""Kernels against scikit-learn, direct formulas, quadrature, and wide random networks."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from together import of_each

from surepick.embeddings import (
    CallableKernel,
    GaussianKernel,
    KernelEmbedding,
    MaternKernel,
    NeuralTangentKernel,
    PolynomialKernel,
    make_kernel,
    parse_kernel,
)
from surepick.errors import InvalidInput

NAMED = [
    GaussianKernel(0.37),
    MaternKernel(0.5, 2.0),
    MaternKernel(1.5),
    MaternKernel(2.5, 0.3),
    MaternKernel(1.3, 0.7),
    PolynomialKernel(3, 0.5, 2.0),
    PolynomialKernel(1, 0.0),
    NeuralTangentKernel(2),
    NeuralTangentKernel(4, "H"),
]


def unit_rows(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def relative_error(approximation: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(approximation - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("kernel", NAMED, ids=lambda kernel: kernel.spec)
def test_the_text_of_a_kernel_rebuilds_it_and_its_diagonal_is_that_of_its_gram(kernel):
    assert parse_kernel(kernel.spec) == kernel
    arms = unit_rows((12, 4))
    gram = kernel.gram(arms, arms)
    assert gram.shape == (12, 12)
    assert kernel.gram(arms[:3], arms).shape == (3, 12)
    np.testing.assert_allclose(np.diagonal(gram), kernel.diagonal(arms), rtol=1e-14)
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] > -1e-13 * len(arms)


def test_gaussian_and_polynomial_kernels_are_their_formulas():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    for i, x in enumerate(left):
        for j, z in enumerate(right):
            assert GaussianKernel(0.3).gram(left, right)[i, j] == pytest.approx(math.exp(-0.3 * np.sum((x - z) ** 2)))
            assert PolynomialKernel(3, 0.5, 2.0).gram(left, right)[i, j] == pytest.approx((2 * x @ z + 0.5) ** 3)


def test_the_gaussian_kernel_keeps_the_digits_of_a_tight_cluster_far_from_the_origin():
    arms = np.array([[1e3], [1e3 + 2.0**-20]])
    assert 1 - GaussianKernel(1e6).gram(arms, arms)[0, 1] == pytest.approx(-math.expm1(-1e6 * 2.0**-40), rel=1e-9)
    assert GaussianKernel(1e9).gram(arms, arms)[0, 0] == 1.0


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 0.3, 1.0, 1.3, 7.1])
def test_matern_agrees_with_scikit_learn(nu):
    reference = pytest.importorskip("sklearn.gaussian_process.kernels")
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal((20, 3)), rng.standard_normal((15, 3))
    expected = reference.Matern(length_scale=0.8, nu=nu)(left, right)
    np.testing.assert_allclose(MaternKernel(nu, 0.8).gram(left, right), expected, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("nu", [0.05, 0.3, 2.0, 10.2, 25.0, 29.5, 29.9])
def test_matern_is_one_at_distance_zero_falls_with_distance_and_vanishes_far_away(nu):
    points = np.concatenate([[0.0], 10.0 ** np.arange(-140.0, 140.0, 0.5)])[:, None]
    values = MaternKernel(nu).gram(points[:1], points)[0]
    assert values[0] == 1.0
    assert np.all(np.diff(values) <= 1e-9)
    assert values[-1] == 0.0


def angle_expectations(cosine: float) -> tuple[float, float]:
    """(E max(u, 0) max(v, 0), P(u >= 0, v >= 0)) on a grid of two independent normals."""
    grid = (np.arange(1600) + 0.5) * (18 / 1600) - 9
    weights = np.exp(-(grid**2) / 2)
    weights /= weights.sum()
    u, v = grid[:, None], cosine * grid[:, None] + math.sqrt(1 - cosine**2) * grid[None, :]
    joint = weights[:, None] * weights[None, :]
    return float(np.sum(joint * np.maximum(u, 0) * np.maximum(v, 0))), float(np.sum(joint * ((u >= 0) & (v >= 0))))


@pytest.mark.cases(5)
@pytest.mark.parametrize("cosine", [-0.9, -0.2, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_neural_tangent_recursion_agrees_with_quadrature(cosine, depth):
    sigma = tangent = cosine
    for _ in range(depth - 1):
        product, both = angle_expectations(sigma)
        sigma, tangent = 2 * product, 2 * tangent * both + 2 * product
    arms = np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]])
    assert NeuralTangentKernel(depth).gram(arms, arms)[0, 1] == pytest.approx(tangent, abs=2e-3)
    assert NeuralTangentKernel(depth, "H").gram(arms, arms)[0, 1] == pytest.approx((tangent + sigma) / 2, abs=2e-3)


def test_the_neural_tangent_kernel_is_exact_where_arms_nearly_agree_or_nearly_oppose():
    for angle in (1e-12, 1e-9, 1e-6, 1e-3):
        arms = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)], [-math.cos(angle), math.sin(angle)]])
        gram = NeuralTangentKernel(2).gram(arms, arms)
        lack = 1 - (1 - angle / math.pi) + 1 - 1 + angle**2  # 2 - k = t/pi + t^2 to first orders
        assert 2 - gram[0, 1] == pytest.approx(lack, rel=1e-2, abs=1e-15)
        assert gram[0, 2] == pytest.approx(-angle / math.pi, rel=1e-2, abs=1e-15)
    twins = np.repeat(unit_rows((4, 7), 5), 2, axis=0)
    gram = NeuralTangentKernel(6).gram(twins, twins)
    np.testing.assert_array_equal(gram[::2], gram[1::2])
    assert gram[0, 1] == 6.0


def gradient_gram(arms: np.ndarray, *, depth: int, width: int, last_variance: float, seed: int) -> np.ndarray:
    """G G' / m of f = sqrt(m) W_L relu(... relu(W_1 x)), hidden entries N(0, 2/m), last ones N(0, last_variance/m)."""
    rng = np.random.default_rng(seed)
    sizes = [arms.shape[1], *[width] * (depth - 1)]
    layers = [
        rng.standard_normal((out, into), dtype=np.float32) * np.float32(math.sqrt(2 / width))
        for into, out in itertools.pairwise(sizes)
    ]
    last = rng.standard_normal(width) * math.sqrt(last_variance / width)
    inputs, masks = [arms], []
    for layer in layers:
        before = inputs[-1] @ layer.T
        masks.append(before > 0)
        inputs.append(np.maximum(before, 0))
    gram = inputs[-1] @ inputs[-1].T  # by W_L
    backward = last * masks[-1]
    for level in reversed(range(len(layers))):
        gram += (inputs[level] @ inputs[level].T) * (backward @ backward.T)
        if level:
            backward = (backward @ layers[level]) * masks[level - 1]
    return gram


def mean_gradient_gram(arms: np.ndarray, *, depth: int, last_variance: float) -> np.ndarray:
    grams = [
        gradient_gram(arms, depth=depth, width=4096, last_variance=last_variance, seed=100 + seed) for seed in range(8)
    ]
    return np.mean(grams, axis=0)


def test_gradients_of_wide_networks_of_two_layers_approach_the_kernel():
    arms = unit_rows((20, 6), 3)
    mean = mean_gradient_gram(arms, depth=2, last_variance=2)
    assert relative_error(mean, NeuralTangentKernel(2).gram(arms, arms)) < 0.05
    assert relative_error(mean, NeuralTangentKernel(2, "H").gram(arms, arms)) > 0.2  # the test can tell them apart


@pytest.mark.slow
@pytest.mark.parametrize(("last_variance", "form"), [(2, "H-tilde"), (1, "H")])
@pytest.mark.parametrize("depth", [3, 4])
def test_gradients_of_wide_deep_networks_approach_the_kernel(depth, last_variance, form):
    arms = unit_rows((20, 6), 4)
    mean = mean_gradient_gram(arms, depth=depth, last_variance=last_variance)
    other = "H" if form == "H-tilde" else "H-tilde"
    assert relative_error(mean, NeuralTangentKernel(depth, form).gram(arms, arms)) < 0.05
    assert relative_error(mean, NeuralTangentKernel(depth, other).gram(arms, arms)) > 0.2


def test_rows_that_are_not_of_unit_norm_are_named():
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .* 1 \(norm 2\).*append"):
        NeuralTangentKernel(2).gram(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 0.0]]))


@of_each(
    "build",
    [
        lambda: GaussianKernel(0.0),
        lambda: GaussianKernel(math.inf),
        lambda: GaussianKernel("wide"),
        lambda: MaternKernel(-1.0),
        lambda: MaternKernel(31.0),
        lambda: MaternKernel(1.5, math.nan),
        lambda: PolynomialKernel(0),
        lambda: PolynomialKernel(1.5),
        lambda: PolynomialKernel(2, -1.0),
        lambda: PolynomialKernel(2, 1.0, 0.0),
        lambda: NeuralTangentKernel(0),
        lambda: NeuralTangentKernel(2, "Sigma"),
        lambda: NeuralTangentKernel(2, norm_tolerance=1.0),
        lambda: CallableKernel(3.0),
        lambda: parse_kernel("gauss:1"),
        lambda: parse_kernel("gaussian"),
        lambda: parse_kernel("gaussian:1:2"),
        lambda: parse_kernel("polynomial:two"),
        lambda: parse_kernel("gaussian:-1"),
        lambda: make_kernel(None),
    ],
)
def test_parameters_without_meaning_are_refused(build):
    with pytest.raises(InvalidInput):
        build()


def test_a_function_or_a_scikit_learn_kernel_serves_as_a_kernel():
    reference = pytest.importorskip("sklearn.gaussian_process.kernels")
    arms = np.random.default_rng(7).standard_normal((70, 3))
    noisy = reference.RBF(1.0) + reference.WhiteKernel(0.5)  # white noise is no part of the reward function
    wrapped = make_kernel(noisy)
    np.testing.assert_allclose(wrapped.gram(arms, arms), GaussianKernel(0.5).gram(arms, arms), rtol=1e-12)
    linear = make_kernel(lambda left, right: left @ right.T)
    np.testing.assert_allclose(linear.diagonal(arms), np.sum(arms**2, axis=1))
    assert wrapped.spec is None


@pytest.mark.parametrize("function", [lambda left, right: np.ones(3), lambda left, right: left @ right.T * np.nan])
def test_a_function_that_gives_the_wrong_shape_or_no_numbers_is_refused(function):
    with pytest.raises(InvalidInput, match="kernel function gave"):
        KernelEmbedding(np.eye(4), kernel=function, norm_bound=1.0)


def test_importing_the_embeddings_loads_neither_scipy_special_nor_scikit_learn():
    code = (
        "import sys, surepick.embeddings; "
        "heavy = {'scipy.special', 'scipy.spatial', 'scipy.stats', 'sklearn'} & set(sys.modules); "
        "sys.exit(str(heavy or 0))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert loaded.stderr.strip() in ("", "0")
