"""The decay of eigenvalues against the eigenvalues, and the dimensions that follow from it against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from together import of_each

from surepick.errors import InvalidInput
from surepick.policies.dimension import effective_dimension
from surepick_bench.mercer import FourierExpansion, HermiteExpansion, MercerEmbedding, SineExpansion
from surepick_bench.theory import ExponentialDecay, PolynomialDecay, decay_of, effective_dimension_of_tails

EXPANSIONS = [
    SineExpansion(),
    HermiteExpansion(1.0, 0.5),
    HermiteExpansion(0.2, 2.0),
    FourierExpansion("polynomial", 1.0),
    FourierExpansion("polynomial", 2.0),
    FourierExpansion("geometric", 0.6),
]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PolynomialDecay(1.0, 1.0), "rate above 1"),
        (lambda: ExponentialDecay(0.0, 1.0), "scale"),
        (lambda: ExponentialDecay(1.0, 1.0).effective_dimension_bound(0.0), "positive"),
    ],
)
def test_what_has_no_meaning_is_refused(build, message):
    with pytest.raises(InvalidInput, match=message):
        build()


@of_each("expansion", EXPANSIONS, ids=lambda expansion: expansion.spec)
def test_the_declared_decay_covers_the_eigenvalues(expansion):
    j = np.arange(1, 501)
    decay = decay_of(expansion)
    law = j**-decay.rate if isinstance(decay, PolynomialDecay) else np.exp(-decay.rate * j)
    assert np.all(expansion.eigenvalues(500) <= decay.scale * law * (1 + 1e-9))
    assert np.all(expansion.tails(300) <= decay.tails(300) * (1 + 1e-9))


@of_each(
    "decay",
    [PolynomialDecay(0.7, 3.5), PolynomialDecay(2.0, 6.0), ExponentialDecay(0.5, 0.05), ExponentialDecay(3.0, 1.5)],
)
@of_each("epsilon", [0.05, 1.0, 1e4])
def test_the_bound_on_the_effective_dimension_holds(decay, epsilon):
    numeric = effective_dimension_of_tails(decay.tails(200_000), epsilon, norm_bound=0.5, eigenfunction_bound=1.4)
    bound = decay.effective_dimension_bound(epsilon, norm_bound=0.5, eigenfunction_bound=1.4)
    assert numeric <= bound
    if math.isfinite(numeric) and epsilon <= 1:
        assert bound <= 40 * numeric
    # gamma at the bound is at most epsilon: the definition itself, with g = 5 d
    if bound <= 200_000:
        gamma = (16 + 8 * math.sqrt(5 * bound)) * 0.5 * 1.4 * math.sqrt(decay.tails(int(bound))[-1])
        assert gamma <= epsilon * (1 + 1e-9)


def test_the_sine_example_has_no_finite_bound_and_never_falls_below_seven_and_a_half():
    decay = decay_of(SineExpansion())
    assert decay.effective_dimension_bound(0.1) == math.inf
    dims = np.arange(1, 50_001)
    gamma = (
        (16 + 8 * np.sqrt(4.4 * dims))
        * SineExpansion().eigenfunction_bound
        * np.sqrt(SineExpansion().tails(50_000)[1:])
    )
    assert 7.5 < gamma.min() < 7.7
    assert (
        effective_dimension_of_tails(SineExpansion().tails(50_000), 7.5, eigenfunction_bound=math.sqrt(2)) == math.inf
    )


def test_the_numeric_dimension_of_tails_is_that_of_the_papers_embedding():
    x = np.linspace(0, 1, 100)[:, None]
    expansion = FourierExpansion("geometric", 0.5)
    embedding = MercerEmbedding(x, expansion=expansion, norm_bound=1.0, bound="paper")
    numeric = effective_dimension_of_tails(
        expansion.tails(100), 0.5, eigenfunction_bound=expansion.eigenfunction_bound, slack=0.1
    )
    assert effective_dimension(embedding, 0.5, slack=0.1) == numeric
