"""Expansions against their kernels, tails against long sums, products against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from together import of_each

from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick_bench.mercer import (
    ExpansionRecord,
    FourierExpansion,
    HermiteExpansion,
    MercerEmbedding,
    ProductExpansion,
    SineExpansion,
    parse_expansion,
)

EXACT = [
    SineExpansion(),
    HermiteExpansion(1.0, 0.5),
    HermiteExpansion(0.2, 2.0),
    FourierExpansion("polynomial", 1.0),
    FourierExpansion("polynomial", 2.0),
    FourierExpansion("geometric", 0.6),
    ProductExpansion((SineExpansion(), FourierExpansion("geometric", 0.3))),
]


def bernoulli(order: int, t: np.ndarray) -> np.ndarray:
    return {2: t**2 - t + 1 / 6, 4: t**4 - 2 * t**3 + t**2 - 1 / 30}[order]


def closed_form(expansion, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The kernel by the formula that its source states, columns of arms in, shape (n, m) out."""
    if isinstance(expansion, ProductExpansion):
        parts = [closed_form(part, x[:, [i]], z[:, [i]]) for i, part in enumerate(expansion.factors)]
        return np.prod(parts, axis=0)
    apart = x - z.T
    if isinstance(expansion, SineExpansion):
        return np.minimum(x, z.T)
    if isinstance(expansion, HermiteExpansion):
        return np.exp(-expansion.gamma * apart**2)
    if expansion.decay_of == "geometric":
        r = expansion.rate
        return (1 - r**2) / (1 - 2 * r * np.cos(2 * np.pi * apart) + r**2)
    s = int(expansion.rate)
    return 1 + (-1) ** (s - 1) * (2 * np.pi) ** (2 * s) * bernoulli(2 * s, apart % 1.0) / math.factorial(2 * s)


def points(expansion, num_arms: int = 25, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((num_arms, expansion.num_columns))


@pytest.mark.parametrize("expansion", EXACT, ids=lambda expansion: expansion.spec)
def test_the_series_sums_to_the_kernel(expansion):
    x = points(expansion)
    count = 3000
    functions = expansion.eigenfunctions(x, count)
    series = (functions * expansion.eigenvalues(count)) @ functions.T
    left_over = expansion.tails(count)[count] * min(expansion.eigenfunction_bound, 2.0) ** 2
    np.testing.assert_allclose(series, closed_form(expansion, x, x), atol=left_over + 1e-12)
    np.testing.assert_allclose(expansion.diagonal(x), np.diagonal(closed_form(expansion, x, x)), rtol=1e-12)
    if math.isfinite(expansion.eigenfunction_bound):
        assert np.abs(functions).max() <= expansion.eigenfunction_bound * (1 + 1e-12)


@pytest.mark.cases(4)
@pytest.mark.parametrize("expansion", EXACT, ids=lambda expansion: expansion.spec)
def test_eigenvalues_decrease_and_tails_are_at_least_every_longer_sum(expansion):
    count = 1000 if isinstance(expansion, ProductExpansion) else 4000
    values = expansion.eigenvalues(count)
    assert np.all(np.diff(values) <= 0)
    assert np.all(values[:100] > 0)
    tails = expansion.tails(40)
    assert tails.shape == (41,)
    for dim in range(41):
        partial = math.fsum(values[dim:])
        assert tails[dim] >= partial
        assert tails[dim] <= partial + expansion.tails(count)[count] + 1e-11  # and not loose: the remainder is the rest


@pytest.mark.parametrize("expansion", EXACT, ids=lambda expansion: expansion.spec)
def test_the_text_of_an_expansion_rebuilds_it(expansion):
    assert parse_expansion(expansion.spec) == expansion


def test_the_sine_tail_is_the_trigamma_function():
    # trigamma(1/2) = pi^2/2, so the trace is 1/2 = integral of min(x, x); trigamma(3/2) = pi^2/2 - 4
    np.testing.assert_allclose(SineExpansion().tails(1), [0.5, 0.5 - 4 / math.pi**2], rtol=1e-11)


@pytest.mark.parametrize("expansion", [SineExpansion(), FourierExpansion("geometric", 0.5)])
def test_eigenfunctions_on_the_interval_are_orthonormal(expansion):
    grid = ((np.arange(4000) + 0.5) / 4000)[:, None]
    functions = expansion.eigenfunctions(grid, 9)
    np.testing.assert_allclose(functions.T @ functions / 4000, np.eye(9), atol=1e-9)


def test_hermite_functions_are_orthonormal_for_the_gaussian_measure():
    expansion = HermiteExpansion(0.7, 1.3)
    grid = np.linspace(-12, 12, 8001)
    density = np.exp(-(grid**2) / (2 * 1.3**2)) / (1.3 * math.sqrt(2 * math.pi))
    functions = expansion.eigenfunctions(grid[:, None], 12)
    np.testing.assert_allclose((functions.T * density) @ functions * (grid[1] - grid[0]), np.eye(12), atol=1e-9)


def test_products_come_in_the_order_of_their_eigenvalues():
    expansion = ProductExpansion((SineExpansion(), FourierExpansion("geometric", 0.5), HermiteExpansion(1.0)))
    each = [part.eigenvalues(60) for part in expansion.factors]
    brute = np.sort([math.prod(chosen) for chosen in itertools.product(*each)])[::-1]
    np.testing.assert_allclose(expansion.eigenvalues(300), brute[:300], rtol=1e-13)
    chosen = expansion.indices(300)
    assert len(np.unique(chosen, axis=0)) == 300
    np.testing.assert_allclose(
        math.prod(part[column] for part, column in zip(each, chosen.T, strict=True)), brute[:300], rtol=1e-13
    )


@pytest.mark.parametrize("expansion", EXACT, ids=lambda expansion: expansion.spec)
def test_the_pointwise_bound_is_the_exact_tail_at_the_worst_arm_and_below_the_papers(expansion):
    x = points(expansion)
    embedding = MercerEmbedding(x, expansion=expansion, norm_bound=2.0, max_dim=20)
    kernel = np.diagonal(closed_form(expansion, x, x))
    for dim in range(1, embedding.max_dim + 1):
        psi = embedding.at(dim).features
        assert psi.shape == (25, dim)
        exact = 2.0 * math.sqrt(max(np.max(kernel - np.sum(psi**2, axis=1)), 0.0))
        assert embedding.misspecification(dim) == pytest.approx(exact, rel=1e-5, abs=5e-6)
    if math.isfinite(expansion.eigenfunction_bound):
        paper = MercerEmbedding(x, expansion=expansion, norm_bound=2.0, max_dim=20, bound="paper")
        values = expansion.eigenvalues(4000)
        for dim in range(1, embedding.max_dim + 1):
            assert embedding.misspecification(dim) <= paper.misspecification(dim) + 1e-6
            tail = math.fsum(values[dim:])
            assert paper.misspecification(dim) >= 2.0 * expansion.eigenfunction_bound * math.sqrt(tail)


def test_the_bound_is_never_zero_where_the_difference_is_rounding():
    embedding = MercerEmbedding(np.linspace(0, 1, 50)[:, None], expansion="hermite:1.0:0.5", norm_bound=1.0)
    assert embedding.max_dim < 40  # further functions would not lower the bound
    assert 1e-8 < embedding.misspecification(embedding.max_dim) < 1e-6


def test_it_keeps_the_protocol_and_its_spec_rebuilds_it():
    x = np.linspace(0, 1, 9)[:, None]
    embedding = MercerEmbedding(x, expansion="sine", norm_bound=1.0, bound="paper")
    assert isinstance(embedding, ArmEmbedding)
    assert (embedding.traits.family, embedding.num_arms, embedding.max_dim, embedding.traits.heuristic) == (
        "mercer",
        9,
        9,
        "",
    )
    assert MercerEmbedding(x, **embedding.traits.spec) == embedding
    longer = MercerEmbedding(x, expansion="sine", norm_bound=1.0, max_dim=500)
    assert MercerEmbedding(x, **longer.traits.spec) == longer
    assert longer.misspecification(500) < embedding.misspecification(9)
    assert "sine" in embedding.traits.assumptions[0]
    assert "may still be wrong" in embedding.traits.caveats[0]


def record_of(expansion, count: int, **options) -> ExpansionRecord:
    return ExpansionRecord(expansion.eigenvalues(count), expansion.eigenfunctions, expansion.diagonal, **options)


def test_eigenfunctions_given_by_hand_are_heuristic_unless_declared_exact():
    x = np.linspace(0, 1, 30)[:, None]
    sine = SineExpansion()
    numeric = MercerEmbedding(x, expansion=record_of(sine, 12), norm_bound=1.0)
    assert "approximated numerically" in numeric.traits.heuristic
    assert (numeric.traits.spec, numeric.max_dim) == (None, 12)
    assert "given by hand belong to one kernel" in numeric.traits.assumptions[1]
    exact = record_of(sine, 12, approximate=False, c_phi=math.sqrt(2), remainder=float(sine.tails(12)[12]))
    for bound in ("pointwise", "paper"):
        by_hand = MercerEmbedding(x, expansion=exact, norm_bound=1.0, bound=bound)
        known = MercerEmbedding(x, expansion=sine, norm_bound=1.0, bound=bound)
        assert by_hand.traits.heuristic == ""
        for dim in (1, 5, 12):
            assert by_hand.misspecification(dim) == pytest.approx(known.misspecification(dim))


def test_terms_that_exceed_the_kernel_are_refused_and_only_an_approximation_may():
    x = np.linspace(0, 1, 30)[:, None]
    sine = SineExpansion()

    def louder(features, count):
        return 1.1 * sine.eigenfunctions(features, count)

    with pytest.raises(InvalidInput, match="not that of its kernel"):
        MercerEmbedding(
            x, expansion=ExpansionRecord(sine.eigenvalues(30), louder, sine.diagonal, approximate=False), norm_bound=1.0
        )
    rough = MercerEmbedding(x, expansion=ExpansionRecord(sine.eigenvalues(30), louder, sine.diagonal), norm_bound=1.0)
    assert rough.traits.heuristic


@of_each(
    ("build", "message"),
    [
        (lambda x: MercerEmbedding(x, expansion="hermite:1.0:0.5", norm_bound=1.0, bound="paper"), "finite C_phi"),
        (
            lambda x: MercerEmbedding(
                x, expansion=record_of(SineExpansion(), 5, c_phi=1.5), norm_bound=1, bound="paper"
            ),
            "proved tail",
        ),
        (lambda x: MercerEmbedding(x, expansion="sine", norm_bound=0.0), "norm_bound"),
        (lambda x: MercerEmbedding(x, expansion="sine", norm_bound=1.0, bound="row-tail"), "bound is"),
        (lambda x: MercerEmbedding(x, expansion="sine", norm_bound=1.0, max_dim=0), "max_dim"),
        (lambda x: MercerEmbedding(x + 0.5, expansion="sine", norm_bound=1.0), "outside"),
        (lambda x: MercerEmbedding(x - 0.5, expansion="fourier:geometric:0.5", norm_bound=1.0), "outside"),
        (lambda x: MercerEmbedding(np.hstack([x, x]), expansion="sine", norm_bound=1.0), "2 feature columns"),
        (lambda x: MercerEmbedding(x, expansion="sine*sine", norm_bound=1.0), "1 feature columns"),
        (lambda x: MercerEmbedding(x, expansion=3, norm_bound=1.0), "expansion is a int"),
        (lambda x: MercerEmbedding(1e3 * x, expansion="hermite:1.0:0.5", norm_bound=1.0), "underflow"),
        (lambda x: SineExpansion().diagonal(np.hstack([x, x])), "of one variable"),
        (lambda x: ProductExpansion((SineExpansion(),)).diagonal(np.hstack([x, x])), "1 factors"),
        (lambda x: ProductExpansion(()), "at least one factor"),
        (lambda x: ProductExpansion((record_of(SineExpansion(), 5),)), "at least one factor"),
        (lambda x: HermiteExpansion(0.0), "gamma"),
        (lambda x: HermiteExpansion(1.0, -1.0), "spread"),
        (lambda x: FourierExpansion("cubic"), "decay_of"),
        (lambda x: FourierExpansion("polynomial", 0.5), "rate"),
        (lambda x: FourierExpansion("geometric", 1.0), "rate"),
        (lambda x: ExpansionRecord([1.0, 2.0], np.sin, np.sin), "decreasing"),
        (lambda x: ExpansionRecord([1.0], np.sin, np.sin, c_phi=0.0), "c_phi"),
        (
            lambda x: MercerEmbedding(x, expansion=ExpansionRecord([1.0], lambda f, n: f[:3], np.sin), norm_bound=1),
            "eigenfunctions gave",
        ),
        (lambda x: parse_expansion("cosine"), "not understood"),
        (lambda x: parse_expansion("hermite:wide"), "not understood"),
    ],
)
def test_what_has_no_meaning_is_refused(build, message):
    with pytest.raises(InvalidInput, match=message):
        build(np.linspace(0, 1, 9)[:, None])
