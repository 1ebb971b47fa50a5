"""Laws of kernel and Mercer embeddings that hold whatever the arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.embeddings import GaussianKernel, KernelEmbedding, MaternKernel, NeuralTangentKernel, PolynomialKernel
from surepick_bench.mercer import MercerEmbedding
from surepick_bench.mercer.kernels import Expansion

KERNELS = [
    GaussianKernel(0.05),
    GaussianKernel(3.0),
    MaternKernel(1.5, 2.0),
    MaternKernel(0.8, 0.5),
    PolynomialKernel(2),
    PolynomialKernel(1, 0.0),
    NeuralTangentKernel(3),
    NeuralTangentKernel(2, "H"),
]
EXPANSIONS = ["sine", "hermite:2.0:0.5", "fourier:polynomial:1.5", "fourier:geometric:0.5"]


@st.composite
def arms(draw) -> tuple[np.ndarray, np.random.Generator]:
    """Spread, clustered, tied or nearly flat unit vectors, and a generator."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_arms, dim = draw(st.integers(1, 40)), draw(st.integers(2, 5))
    features = rng.standard_normal((num_arms, dim))
    kind = draw(st.sampled_from(["spread", "clusters", "ties", "flat"]))
    if kind == "clusters":
        features = features[rng.integers(0, max(num_arms // 8, 1), num_arms)] + 1e-4 * features
    elif kind == "ties":
        features = features[rng.integers(0, num_arms, num_arms)]
    elif kind == "flat":
        features[:, 1:] *= 1e-5
    return features / np.linalg.norm(features, axis=1)[:, None], rng


def random_reward(kernel, features: np.ndarray, norm: float, rng: np.random.Generator) -> np.ndarray:
    """Values at the arms of a function of exactly this norm: a sum of kernels around arms and around other points."""
    others = rng.standard_normal((5, features.shape[1]))
    centres = np.vstack([features, others / np.linalg.norm(others, axis=1)[:, None]])
    weights = rng.standard_normal(len(centres)) * (rng.random(len(centres)) < rng.random())
    weights[rng.integers(len(centres))] += 1.0
    squared = float(weights @ kernel.gram(centres, centres) @ weights)
    values = kernel.gram(features, centres) @ weights
    return norm * values / math.sqrt(squared) if squared > 1e-8 else np.zeros(len(features))


def hardest_reward(kernel, features: np.ndarray, psi: np.ndarray, norm: float) -> np.ndarray:
    """A function of this norm that lies outside the embedding as far as the gram matrix of the arms allows."""
    gram = kernel.gram(features, features)
    rest = gram - psi @ psi.T
    worst = int(np.argmax(np.diagonal(rest)))
    return norm * rest[worst] / math.sqrt(max(rest[worst, worst], 1e-300))


def first_coordinates(embedding: KernelEmbedding, reward: np.ndarray) -> np.ndarray:
    """theta_j = <h, u_j>/sqrt(s_j) for every j; the first d of them are theta_d."""
    psi = embedding.at(embedding.max_dim).features
    return psi.T @ reward / np.sum(psi**2, axis=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.spec)
@settings(max_examples=budget(25))
@given(drawn=arms())
def test_the_embedding_rebuilds_the_gram_and_its_bounds_are_ordered(kernel, drawn):
    features, _ = drawn
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=1.7)
    paper = KernelEmbedding(features, kernel=kernel, norm_bound=1.7, bound="paper")
    psi = embedding.at(embedding.max_dim).features
    gram = kernel.gram(features, features)
    np.testing.assert_allclose(psi @ psi.T, gram, atol=1e-10 * np.diagonal(gram).max() * len(gram))
    bounds = [embedding.misspecification(dim) for dim in range(1, embedding.max_dim + 1)]
    assert np.all(np.diff(bounds) <= 0)
    for dim, bound in enumerate(bounds, start=1):
        assert bound <= paper.misspecification(dim) * (1 + 1e-12)
        np.testing.assert_array_equal(embedding.at(dim).features, psi[:, :dim])
    if embedding.max_dim == len(np.unique(features, axis=0)):
        assert bounds[-1] == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.spec)
@settings(max_examples=budget(25))
@given(drawn=arms(), norm=st.floats(0.1, 100.0))
def test_rewards_of_the_declared_norm_stay_within_the_bound(kernel, drawn, norm):
    features, rng = drawn
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=norm)
    noise = 1e-6 * norm  # of the check itself: theta divides by eigenvalues down to rounding
    for reward in (random_reward(kernel, features, norm, rng), random_reward(kernel, features, norm, rng)):
        theta = first_coordinates(embedding, reward)
        for dim in range(1, embedding.max_dim + 1):
            psi = embedding.at(dim).features
            assert np.abs(reward - psi @ theta[:dim]).max() <= embedding.misspecification(dim) + noise


@pytest.mark.parametrize("kernel", KERNELS[:4], ids=lambda kernel: kernel.spec)
@settings(max_examples=budget(25))
@given(drawn=arms())
def test_the_row_tail_is_attained_so_that_no_smaller_bound_would_hold(kernel, drawn):
    features, _ = drawn
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=2.0)
    for dim in range(1, embedding.max_dim):
        if embedding.misspecification(dim) < 1e-3:
            break
        psi = embedding.at(dim).features
        reward = hardest_reward(kernel, features, psi, 2.0)
        theta = first_coordinates(embedding, reward)[:dim]
        assert np.abs(reward - psi @ theta).max() == pytest.approx(embedding.misspecification(dim), rel=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.spec)
@settings(max_examples=budget(25))
@given(drawn=arms(), max_rank=st.integers(1, 12))
def test_the_nystrom_bound_covers_what_the_exact_gram_says(kernel, drawn, max_rank):
    features, rng = drawn
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=1.0, nystrom_above=0, max_rank=max_rank)
    paper = KernelEmbedding(features, kernel=kernel, norm_bound=1.0, nystrom_above=0, max_rank=max_rank, bound="paper")
    gram = kernel.gram(features, features)
    spectrum = np.linalg.eigvalsh(gram)[::-1]
    bounds = [embedding.misspecification(dim) for dim in range(1, embedding.max_dim + 1)]
    assert np.all(np.diff(bounds) <= 0)
    for dim, bound in enumerate(bounds, start=1):
        psi = embedding.at(dim).features
        left_over = np.diagonal(gram) - np.sum(psi**2, axis=1)
        assert bound >= math.sqrt(max(left_over.max(), 0.0))
        assert bound <= paper.misspecification(dim) * (1 + 1e-12)
        assert paper.misspecification(dim) >= math.sqrt(max(math.fsum(spectrum[dim:]), 0.0))
        weights = rng.standard_normal(len(features))
        weights /= math.sqrt(max(weights @ gram @ weights, 1e-12))  # sum_i w_i k(x_i, .) has norm 1
        assert np.abs(gram @ weights - psi @ (psi.T @ weights)).max() <= bound + 1e-9


@settings(max_examples=budget(25))
@given(drawn=arms(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_arms_does_not_matter(drawn, seed):
    features, _ = drawn
    order = np.random.default_rng(seed).permutation(len(features))
    one = KernelEmbedding(features, kernel=GaussianKernel(0.7), norm_bound=1.0)
    other = KernelEmbedding(features[order], kernel=GaussianKernel(0.7), norm_bound=1.0)
    np.testing.assert_array_equal(one.at(one.max_dim).features[order], other.at(other.max_dim).features)


@pytest.mark.parametrize("text", EXPANSIONS)
@settings(max_examples=budget(25))
@given(seed=st.integers(0, 2**32 - 1), num_arms=st.integers(1, 40), norm=st.floats(0.1, 10.0))
def test_rewards_with_known_coefficients_stay_within_the_mercer_bounds(text, seed, num_arms, norm):
    rng = np.random.default_rng(seed)
    features = rng.random((num_arms, 1))
    embeddings = [MercerEmbedding(features, expansion=text, norm_bound=norm, max_dim=30)]
    if not text.startswith("hermite"):
        embeddings.append(MercerEmbedding(features, expansion=text, norm_bound=norm, max_dim=30, bound="paper"))
    expansion: Expansion = embeddings[0].expansion
    scaled = expansion.eigenfunctions(features, 200) * np.sqrt(expansion.eigenvalues(200))
    hidden = rng.standard_normal(200) * rng.random(200) ** rng.integers(1, 30)
    worst = np.where(np.arange(200) >= 3, scaled[0], 0.0)  # aims at one arm with what lies beyond the third
    for theta in (hidden, worst):
        theta = theta * (norm / max(np.linalg.norm(theta), 1e-300))  # noqa: PLW2901
        reward = scaled @ theta
        for embedding in embeddings:
            bounds = [embedding.misspecification(dim) for dim in range(1, embedding.max_dim + 1)]
            assert np.all(np.diff(bounds) <= 0)
            for dim, bound in enumerate(bounds, start=1):
                error = np.abs(reward - embedding.at(dim).features @ theta[:dim]).max()
                assert error <= bound * (1 + 1e-12) + 1e-12 * norm
