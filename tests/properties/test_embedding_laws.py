"""Laws of the linear embedding: it keeps what it promises about every function of the declared norm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp


@st.composite
def matrices(draw):
    """Features of any shape and rank, with singular values over several orders of magnitude."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_arms, columns = draw(st.integers(1, 9)), draw(st.integers(1, 7))
    rank = draw(st.integers(1, min(num_arms, columns)))
    spread = 10.0 ** rng.uniform(-draw(st.sampled_from([0, 2, 5])), 0, rank)
    scale = draw(st.sampled_from([1e-8, 1.0, 1e8]))
    return scale * (rng.normal(size=(num_arms, rank)) * spread) @ rng.normal(size=(rank, columns))


cases = settings(max_examples=120, deadline=None)


@cases
@given(matrices())
def test_the_full_embedding_keeps_every_inner_product(features):
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    scores = embedding.at(embedding.max_dim).features
    gram = features @ features.T
    assert np.allclose(scores @ scores.T, gram, rtol=0, atol=1e-12 * np.abs(gram).max())


@cases
@given(matrices(), st.floats(1e-3, 1e3), st.sampled_from(["row-tail", "paper"]), st.integers(0, 2**32 - 1))
def test_every_function_of_the_declared_norm_is_within_the_bound(features, norm_bound, bound, seed):
    embedding = sp.LinearEmbedding(features, norm_bound=norm_bound, bound=bound)
    full = embedding.at(embedding.max_dim).features
    directions = np.linalg.lstsq(features, full, rcond=1e-13)[0]  # V with psi = X V
    theta = np.random.default_rng(seed).normal(size=(features.shape[1], 20))
    theta *= norm_bound / np.linalg.norm(theta, axis=0)
    rounding = 1e-11 * norm_bound * np.abs(features).max() * features.size
    for dim in range(1, embedding.max_dim + 1):
        error = features @ theta - full[:, :dim] @ (directions[:, :dim].T @ theta)
        assert np.abs(error).max() <= embedding.misspecification(dim) * (1 + 1e-9) + rounding


@cases
@given(matrices())
def test_the_row_tail_is_reached_by_a_function_of_the_declared_norm(features):
    """A smaller bound would be wrong: the function along the longest lost row attains it at that arm."""
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    full = embedding.at(embedding.max_dim).features
    for dim in range(1, embedding.max_dim):
        longest = np.linalg.norm(full[:, dim:], axis=1).max()
        assert embedding.misspecification(dim) == pytest.approx(longest, rel=1e-6, abs=1e-13 * np.abs(features).max())


@cases
@given(matrices())
def test_the_row_tail_is_never_above_the_papers_bound_and_neither_grows(features):
    tail, paper = (sp.LinearEmbedding(features, norm_bound=1.0, bound=bound) for bound in ("row-tail", "paper"))
    assert tail.max_dim == paper.max_dim
    values = np.array([[each.misspecification(dim) for dim in range(1, tail.max_dim + 1)] for each in (tail, paper)])
    assert np.all(values[0] <= values[1] * (1 + 1e-12))
    assert np.all(np.diff(values, axis=1) <= 0)
    assert np.all(values >= 0)


@cases
@given(matrices(), st.floats(1e-3, 1e3))
def test_the_bound_is_proportional_to_the_norm(features, norm_bound):
    one, many = sp.LinearEmbedding(features, norm_bound=1.0), sp.LinearEmbedding(features, norm_bound=norm_bound)
    for dim in range(1, one.max_dim + 1):
        assert many.misspecification(dim) == pytest.approx(norm_bound * one.misspecification(dim))


@cases
@given(matrices(), st.integers(0, 2**32 - 1))
def test_rotating_the_features_changes_nothing_that_matters(features, seed):
    columns = features.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(columns, columns)))[0]
    plain, turned = (sp.LinearEmbedding(matrix, norm_bound=1.0) for matrix in (features, features @ rotation))
    assert plain.max_dim == turned.max_dim
    size = np.abs(features).max()
    for dim in range(1, plain.max_dim):
        gap = np.linalg.svd(features, compute_uv=False)[dim - 1 : dim + 1]
        if gap[1] > 0.5 * gap[0]:  # the leading space is not well defined
            continue
        assert turned.misspecification(dim) == pytest.approx(plain.misspecification(dim), rel=1e-6, abs=1e-11 * size)
