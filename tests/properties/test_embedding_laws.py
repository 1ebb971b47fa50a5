"""Laws of the linear embedding: it keeps what it promises about every function of the declared norm."""

import numpy as np
import pytest
from budgets import budget
from hypothesis import example, given, settings, strategies as st

import surepick as sp
from surepick.embeddings import linear


@st.composite
def matrices(draw):
    """Features of any shape and rank, with singular values over several orders of magnitude."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_arms, columns = draw(st.integers(1, 9)), draw(st.integers(1, 7))
    rank = draw(st.integers(1, min(num_arms, columns)))
    spread = 10.0 ** rng.uniform(-draw(st.sampled_from([0, 2, 5])), 0, rank)
    scale = draw(st.sampled_from([1e-8, 1.0, 1e8]))
    return scale * (rng.normal(size=(num_arms, rank)) * spread) @ rng.normal(size=(rank, columns))


cases = settings(max_examples=budget(120))


@cases
@given(matrices())
def test_the_full_embedding_keeps_every_inner_product(features):
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    scores = embedding.at(embedding.max_dim).features
    gram = features @ features.T
    assert np.allclose(scores @ scores.T, gram, rtol=0, atol=1e-12 * np.abs(gram).max())


def directions_of(features: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """V, shape (D, r), with X = psi V' but for rounding of the size eps s_1.

    The column X' psi_i / |psi_i|^2 is known to eps s_1 / s_i, and it is multiplied by scores of the size s_i. (V from
    the least squares psi = X V is known to eps s_1 / s_r, all of it: of nearly collinear features the error of the
    first column, times scores of the size s_1, is larger than what the last direction holds.)
    """
    columns = features.T @ scores / (scores**2).sum(axis=0)
    basis, triangle = np.linalg.qr(columns)
    return basis * np.sign(np.diagonal(triangle))


def worst_deviation(features: np.ndarray, scores: np.ndarray, dim: int) -> float:
    """The largest |<x, theta> - <psi_d(x), V_d' theta>| of all arms and theta of norm 1: max_x ||x - V_d psi_d(x)||."""
    basis = directions_of(features, scores).astype(np.longdouble)
    rest = features.astype(np.longdouble) - scores[:, :dim].astype(np.longdouble) @ basis[:, :dim].T
    return float(np.sqrt((rest**2).sum(axis=1).max()))


COLLINEAR = np.array([[-1.60269325e-08, 1.10602273e-08], [4.40797535e-08, -3.04194965e-08]])


@cases
@given(matrices(), st.floats(1e-3, 1e3), st.sampled_from(["row-tail", "paper"]))
@example(COLLINEAR, 1.0, "row-tail")
@example(np.outer([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]), 1.0, "row-tail")  # what one direction leaves is all rounding
def test_every_function_of_the_declared_norm_is_within_the_bound(features, norm_bound, bound):
    embedding = sp.LinearEmbedding(features, norm_bound=norm_bound, bound=bound)
    scores = embedding.at(embedding.max_dim).features
    for dim in range(1, embedding.max_dim + 1):
        worst = norm_bound * worst_deviation(features, scores, dim)
        if dim < min(embedding.num_distinct, features.shape[1]):
            assert worst <= embedding.misspecification(dim)
        else:  # a basis of all that the rows span
            assert embedding.misspecification(dim) == 0.0
            assert worst <= 1e-13 * norm_bound * np.linalg.norm(features, 2)


def test_without_the_allowance_for_rounding_the_bound_would_be_too_small(monkeypatch):
    monkeypatch.setattr(linear, "rounding_share", lambda basis: 0.0)
    monkeypatch.setattr(linear, "row_norms", lambda rows: np.zeros(len(rows)))
    rng = np.random.default_rng(0)
    short = 0
    for _ in range(50):
        features = rng.normal(size=(9, 7))
        embedding = sp.LinearEmbedding(features, norm_bound=1.0)
        scores = embedding.at(7).features
        short += any(worst_deviation(features, scores, dim) > embedding.misspecification(dim) for dim in range(1, 7))
    assert short > 0


def test_what_equal_arms_span_is_left_out_by_nothing():
    """Three different arms, five columns: three directions hold every list of means, and two do not."""
    features = np.random.default_rng(4).normal(size=(3, 5))[[0, 1, 2, 1, 0, 2, 2]]
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    assert embedding.max_dim == embedding.num_distinct == 3
    assert embedding.misspecification(2) > 0.1
    assert embedding.misspecification(3) == 0.0


@cases
@given(matrices())
def test_the_row_tail_is_reached_by_a_function_of_the_declared_norm(features):
    """A smaller bound would be wrong: the function along the longest lost row attains it at that arm."""
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    full = embedding.at(embedding.max_dim).features
    for dim in range(1, embedding.max_dim):
        longest = np.linalg.norm(full[:, dim:], axis=1).max()
        size = np.linalg.norm(features, 2)
        assert embedding.misspecification(dim) == pytest.approx(longest, rel=1e-6, abs=1e-12 * size)


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
