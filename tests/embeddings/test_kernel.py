"""The kernel embedding on small cases, against the exact gram matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.embeddings import ArmEmbedding, GaussianKernel, KernelEmbedding, MaternKernel
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import pivoted_cholesky, symmetric_spectrum


def arms(num_arms: int = 40, dim: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_arms, dim))


def exact_worst(embedding: KernelEmbedding, dim: int) -> float:
    """max_x sqrt((G - psi psi')_xx): the error of a unit ball around the embedding, from the whole gram matrix."""
    gram = embedding.kernel.gram(embedding.features, embedding.features)
    psi = embedding.at(dim).features
    return math.sqrt(max(float(np.max(np.diagonal(gram) - np.sum(psi**2, axis=1))), 0.0))


def test_the_two_arm_embedding_is_the_one_computed_by_hand():
    c = math.exp(-1.0)
    embedding = KernelEmbedding([[0.0], [1.0]], kernel=GaussianKernel(1.0), norm_bound=3.0)
    # eigenvalues 1 + c and 1 - c with eigenvectors (1, 1)/sqrt 2 and (1, -1)/sqrt 2
    np.testing.assert_allclose(np.abs(embedding.at(1).features[:, 0]), math.sqrt((1 + c) / 2))
    np.testing.assert_allclose(np.abs(embedding.at(2).features[:, 1]), math.sqrt((1 - c) / 2))
    assert embedding.misspecification(1) == pytest.approx(3 * math.sqrt((1 - c) / 2))
    assert embedding.misspecification(2) == 0.0
    paper = KernelEmbedding([[0.0], [1.0]], kernel=GaussianKernel(1.0), norm_bound=3.0, bound="paper")
    assert paper.misspecification(1) == pytest.approx(3 * math.sqrt(1 - c))


def test_it_keeps_the_protocol_and_its_spec_rebuilds_it():
    embedding = KernelEmbedding(arms(), kernel="matern:1.5:2.0", norm_bound=2.0, bound="paper", max_rank=7)
    assert isinstance(embedding, ArmEmbedding)
    assert (embedding.traits.family, embedding.num_arms, embedding.max_dim) == ("kernel", 40, 40)
    assert KernelEmbedding(embedding.features, **embedding.traits.spec) == embedding
    assert embedding.kernel == MaternKernel(1.5, 2.0)
    assert "matern:1.5:2.0" in embedding.traits.assumptions[0]
    assert (embedding.traits.caveats, embedding.traits.heuristic) == ((), "")
    assert KernelEmbedding(arms(), kernel=lambda x, z: x @ z.T, norm_bound=1.0).traits.spec is None


def test_the_gram_matrix_is_formed_once_and_never_beyond_the_limit():
    calls = []

    def linear(left, right):
        calls.append((len(left), len(right)))
        return left @ right.T

    embedding = KernelEmbedding(arms(300), kernel=linear, norm_bound=1.0)
    embedding.at(2), embedding.misspecification(3)
    assert calls == [(300, 300)]
    calls.clear()
    KernelEmbedding(arms(300), kernel=linear, norm_bound=1.0, nystrom_above=100)
    assert max(left * right for left, right in calls) <= 64 * 64


def test_equal_arms_get_equal_vectors_and_the_embedding_is_that_of_the_full_gram():
    features = arms(30)[np.random.default_rng(1).integers(0, 12, 30)]
    distinct = len(np.unique(features, axis=0))
    embedding = KernelEmbedding(features, kernel=GaussianKernel(0.5), norm_bound=1.0)
    assert embedding.max_dim == distinct
    assert embedding.misspecification(distinct) == 0.0
    values = np.linalg.eigvalsh(embedding.kernel.gram(features, features))[::-1]
    np.testing.assert_allclose(np.sum(embedding.at(distinct).features ** 2, axis=0), values[:distinct], rtol=1e-10)
    for dim in range(1, distinct):
        assert embedding.misspecification(dim) == pytest.approx(exact_worst(embedding, dim), rel=1e-6, abs=1e-6)
    _, first, inverse = np.unique(features, axis=0, return_index=True, return_inverse=True)
    psi = embedding.at(distinct).features
    np.testing.assert_array_equal(psi, psi[first[inverse.reshape(-1)]])


def test_directions_below_rounding_are_cut_and_count_as_misspecification():
    features = arms(60, 2)
    embedding = KernelEmbedding(features, kernel="polynomial:2", norm_bound=1.0)
    assert embedding.max_dim == 6
    assert 0 < embedding.misspecification(6) < 1e-4
    assert "60 distinct arms but only 6" in embedding.traits.caveats[0]
    coarse = KernelEmbedding(features, kernel=GaussianKernel(0.05), norm_bound=1.0, rounding=1e-6)
    fine = KernelEmbedding(features, kernel=GaussianKernel(0.05), norm_bound=1.0)
    assert coarse.max_dim < fine.max_dim
    assert coarse.misspecification(coarse.max_dim) >= exact_worst(coarse, coarse.max_dim)


@of_each("kernel", [GaussianKernel(0.1), MaternKernel(2.5, 2.0)])
@of_each("bound", ["row-tail", "paper"])
def test_the_nystrom_bound_covers_the_exact_error_and_the_row_tail_is_tight(kernel, bound):
    features = np.repeat(arms(150, 3, 2), 2, axis=0)
    embedding = KernelEmbedding(features, kernel=kernel, norm_bound=1.0, bound=bound, nystrom_above=20, max_rank=40)
    assert embedding.approximate
    assert embedding.max_dim == 40
    for dim in range(1, 41):
        exact = exact_worst(embedding, dim)
        assert embedding.misspecification(dim) >= exact
        if bound == "row-tail":
            assert embedding.misspecification(dim) == pytest.approx(exact, rel=1e-6)
    assert "40 directions approximate the kernel on 150 distinct arms" in embedding.traits.caveats[0]


def test_one_rule_from_a_thousand_distinct_arms_on():
    features = np.random.default_rng(0).standard_normal((1_000, 1))
    made = [KernelEmbedding(rows, kernel="gaussian:1", norm_bound=1.0) for rows in (features, features[1:])]
    assert [one.approximate for one in made] == [True, False]
    assert [one.max_rank for one in made] == [707, 707]
    assert made[0].misspecification(10) == pytest.approx(exact_worst(made[0], 10), rel=1e-6)
    assert KernelEmbedding(np.resize(features, (20_000, 1)), kernel="gaussian:1", norm_bound=1.0).max_rank == 707
    many = np.random.default_rng(1).standard_normal((20_000, 1))
    assert KernelEmbedding(many, kernel="gaussian:1", norm_bound=1.0).max_rank == 200


def test_where_columns_are_left_out_nothing_is_assumed_in_as_many_dimensions_as_arms():
    few = {"kernel": GaussianKernel(30.0), "norm_bound": 1.0, "nystrom_above": 20, "max_rank": 5}
    embedding = KernelEmbedding(arms(60), **few)
    assert (embedding.max_dim, embedding.free_dim) == (5, 60)
    assert embedding.misspecification(5) > 0.5
    assert embedding.misspecification(60) == 0.0
    assert not embedding.at(60).structured
    for dim in (6, 59, 61):
        with pytest.raises(InvalidInput, match=r"use 1 \.\. 5"):
            embedding.at(dim)
    for whole in (
        KernelEmbedding(np.repeat(arms(30), 2, axis=0), **few),
        KernelEmbedding(arms(60), **few | {"max_rank": 60}),
        KernelEmbedding(arms(60), kernel=GaussianKernel(30.0), norm_bound=1.0),
    ):
        assert whole.free_dim == 0
        with pytest.raises(InvalidInput, match="dimension 0"):
            whole.at(0)


@pytest.mark.parametrize("name", ["certified-kernel", "fixed-kernel", "kernel-embedding"])
def test_a_kernel_that_few_columns_do_not_show_is_certified_without_it(name):
    options = {"kernel": "gaussian:30", "norm_bound": 2.0, "nystrom_above": 20, "max_rank": 5}
    features, truth = arms(60), np.linspace(0.0, 1.0, 60)
    policy = sp.make_policy(name, sp.Arms(features), epsilon=0.3, delta=0.05, noise="subgaussian:0.2", **options)
    study, random = sp.Study(policy), np.random.default_rng(0)
    assert study.ask().dim == 60
    result = study.run(lambda ids: truth[[int(one) for one in ids]] + 0.2 * random.standard_normal(len(ids)))
    assert result.verdict == "certified"
    assert truth[int(result.best_arm)] >= 0.7
    assert sp.verify_certificate(certificate_document(study)).holds


def test_nystrom_with_every_column_is_the_whole_kernel():
    features = arms(50, 2, 3)
    embedding = KernelEmbedding(features, kernel=GaussianKernel(5.0), norm_bound=1.0, nystrom_above=10, max_rank=50)
    psi = embedding.at(embedding.max_dim).features
    np.testing.assert_allclose(psi @ psi.T, embedding.kernel.gram(features, features), atol=1e-12)
    assert embedding.misspecification(embedding.max_dim) < 1e-5


@of_each(
    ("kernel", "message"),
    [
        (lambda left, right: -(left @ right.T), "not positive semi-definite"),
        (lambda left, right: np.tanh(left @ right.T - 2.0), "not positive semi-definite"),
        (lambda left, right: np.add.outer(left[:, 0], 2 * right[:, 0]), "not symmetric"),
        (lambda left, right: np.zeros((len(left), len(right))), "is zero"),
    ],
)
def test_functions_that_are_no_kernel_are_refused(kernel, message):
    with pytest.raises(InvalidInput, match=message):
        KernelEmbedding(arms(), kernel=kernel, norm_bound=1.0)


def three_for_others(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """1 for an arm with itself, 3 for two arms: |k(x, z)| exceeds sqrt(k(x, x) k(z, z))."""
    return np.where(np.all(left[:, None] == right[None], axis=2), 1.0, 3.0)


def test_a_function_that_is_not_symmetric_is_refused_beyond_the_limit_too():
    with pytest.raises(InvalidInput, match="not symmetric"):
        KernelEmbedding(
            arms(),
            kernel=lambda left, right: np.exp(-((left[:, None, 0] - 1.01 * right[None, :, 0]) ** 2)),
            norm_bound=1.0,
            nystrom_above=10,
        )


@pytest.mark.parametrize("kernel", [lambda left, right: -(left @ right.T), three_for_others])
def test_functions_that_are_no_kernel_are_refused_beyond_the_limit_too(kernel):
    with pytest.raises(InvalidInput, match="not positive semi-definite"):
        KernelEmbedding(arms(), kernel=kernel, norm_bound=1.0, nystrom_above=10)


@of_each(
    "options",
    [
        {"norm_bound": 0.0},
        {"norm_bound": math.inf},
        {"bound": "row_tail"},
        {"nystrom_above": -1},
        {"max_rank": 0},
        {"rounding": 1.0},
        {"kernel": "gaussian:0"},
        {"features": np.empty((3, 0))},
        {"features": np.array([[1.0], [math.nan]])},
    ],
)
def test_arguments_without_meaning_are_refused(options):
    arguments = {"features": arms(), "kernel": GaussianKernel(1.0), "norm_bound": 1.0, **options}
    with pytest.raises(InvalidInput):
        KernelEmbedding(arguments.pop("features"), **arguments)


@pytest.mark.parametrize("dim", [0, 41])
def test_a_dimension_that_is_not_there_is_refused(dim):
    embedding = KernelEmbedding(arms(), kernel=GaussianKernel(1.0), norm_bound=1.0)
    with pytest.raises(InvalidInput, match=r"use 1 \.\. 40"):
        embedding.at(dim)
    with pytest.raises(InvalidInput, match=r"use 1 \.\. 40"):
        embedding.misspecification(dim)


def test_the_spectrum_is_in_decreasing_order_and_rebuilds_the_matrix():
    matrix = arms(9, 9) @ arms(9, 9).T
    spectrum = symmetric_spectrum(matrix.copy())
    assert np.all(np.diff(spectrum.values) <= 0)
    np.testing.assert_allclose((spectrum.vectors * spectrum.values) @ spectrum.vectors.T, matrix, atol=1e-12)


def test_pivoted_cholesky_reports_the_residual_and_stops_at_the_rank():
    root = arms(20, 4)
    gram = root @ root.T
    partial = pivoted_cholesky(np.diagonal(gram), lambda pivot: gram[:, pivot], max_rank=20, tolerance=1e-9)
    assert partial.factor.shape == (20, 4)
    np.testing.assert_allclose(partial.factor @ partial.factor.T, gram, atol=1e-10)
    two = pivoted_cholesky(np.diagonal(gram), lambda pivot: gram[:, pivot], max_rank=2, tolerance=1e-9)
    np.testing.assert_allclose(two.residual, np.diagonal(gram - two.factor @ two.factor.T), atol=1e-12)
    assert pivoted_cholesky(np.array([1.0, 1.0]), lambda _: np.array([1.0, 3.0]), max_rank=2, tolerance=0.0).lowest < -7


@pytest.mark.slow
def test_twenty_thousand_arms_are_embedded_in_bounded_memory():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    embedding = KernelEmbedding(arms(20_000, 20), kernel=GaussianKernel(0.02), norm_bound=1.0)
    assert embedding.max_dim == 200
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20 < 2.0  # GiB; the gram would take 3
