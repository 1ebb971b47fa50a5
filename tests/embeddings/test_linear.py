"""The linear and the independent embedding: literal cases, and what they refuse."""

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.plans import IndependentArms
from surepick.embeddings import ArmEmbedding
from surepick.estimators import estimate, least_squares

DIAGONAL = np.diag([5.0, 3.0, 1.0])


def test_both_are_embeddings():
    assert isinstance(sp.LinearEmbedding(DIAGONAL, norm_bound=1.0), ArmEmbedding)
    assert isinstance(sp.IndependentEmbedding(2), ArmEmbedding)


@pytest.mark.parametrize(
    ("bound", "expected"), [("row-tail", [6.0, 2.0, 0.0]), ("paper", [8.0, 2.0, 0.0])], ids=["row-tail", "paper"]
)
def test_misspecification_of_a_diagonal_matrix(bound, expected):
    """Singular values 5, 3, 1; C = 2: the row tail at d = 1 is 2 * 3, the paper's 2 * (3 + 1)."""
    embedding = sp.LinearEmbedding(DIAGONAL, norm_bound=2.0, bound=bound)
    assert [embedding.misspecification(dim) for dim in (1, 2, 3)] == pytest.approx(expected, abs=1e-12)
    assert embedding.traits.spec == {"norm_bound": 2.0, "bound": bound, "norm_source": "declared"}


def test_the_row_tail_adds_squares_within_a_row():
    """At d = 1 the second arm keeps nothing of (0, 3, 4), of length 5; the paper's bound is 3 + 4."""
    features = np.array([[9.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    mixed = np.array([[9.0, 0.0, 0.0], [0.0, 3.0, 4.0], [0.0, 4.0, -3.0]])
    assert sp.LinearEmbedding(features, norm_bound=1.0).misspecification(1) == pytest.approx(4.0)
    assert sp.LinearEmbedding(mixed, norm_bound=1.0).misspecification(1) == pytest.approx(5.0)
    assert sp.LinearEmbedding(features, norm_bound=1.0, bound="paper").misspecification(1) == pytest.approx(7.0)


def test_the_features_of_a_dimension_are_its_leading_columns():
    rng = np.random.default_rng(0)
    embedding = sp.LinearEmbedding(rng.normal(size=(6, 4)), norm_bound=1.0)
    full = embedding.at(4)
    for dim in (1, 2, 3):
        part = embedding.at(dim)
        assert np.array_equal(part.features, full.features[:, :dim])
        assert part.misspecification == embedding.misspecification(dim)
        assert (part.dim, part.num_arms) == (dim, 6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_rank_of_deficient_features_is_their_largest_dimension(scale):
    rng = np.random.default_rng(1)
    features = scale * rng.normal(size=(9, 3)) @ rng.normal(size=(3, 7))
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    assert embedding.max_dim == 3
    assert embedding.misspecification(3) <= 1e-12 * scale
    with pytest.raises(sp.InvalidInput, match=r"rank 3; use 1 \.\. 3"):
        embedding.at(4)


@pytest.mark.parametrize("dim", [0, -1, 3])
def test_a_dimension_that_does_not_exist_is_refused(dim):
    embedding = sp.LinearEmbedding(np.eye(2), norm_bound=1.0)
    for call in (embedding.at, embedding.misspecification):
        with pytest.raises(sp.InvalidInput, match=f"dimension {dim} .* use 1 .. 2"):
            call(dim)


@of_each(
    ("features", "options", "message"),
    [
        (np.empty((3, 0)), {}, "no feature column"),
        (np.zeros((3, 2)), {}, "all features are zero"),
        ([[1.0], [np.nan]], {}, "NaN or infinite features: '1'"),
        (np.eye(2), {"norm_bound": 0.0}, "norm_bound is 0.0"),
        (np.eye(2), {"norm_bound": -1.0}, "norm_bound is -1.0"),
        (np.eye(2), {"norm_bound": np.inf}, "norm_bound is inf"),
        (np.eye(2), {"norm_bound": np.nan}, "norm_bound is nan"),
        (np.eye(2), {"bound": "loose"}, "bound is 'loose'; choose one of 'row-tail', 'paper'"),
    ],
)
def test_embeddings_that_mean_nothing_are_refused(features, options, message):
    with pytest.raises(sp.InvalidInput, match=message):
        sp.LinearEmbedding(features, **({"norm_bound": 1.0} | options))


def test_more_arms_than_directions_is_an_assumption_that_is_said():
    many, few = np.random.default_rng(2).normal(size=(5, 2)), np.eye(3)
    assert "5 distinct arms but only 2 independent" in sp.LinearEmbedding(many, norm_bound=1.0).traits.caveats[0]
    assert sp.LinearEmbedding(few, norm_bound=1.0).traits.caveats == ()
    (equal,) = sp.LinearEmbedding(np.repeat(few, 3, axis=0), norm_bound=1.0).traits.caveats
    assert "equal features" in equal
    assert "norm at most 1.5" in sp.LinearEmbedding(few, norm_bound=1.5).traits.assumptions[0]


def test_independent_arms_know_one_dimension():
    embedding = sp.IndependentEmbedding(4)
    assert embedding.max_dim == embedding.num_arms == 4
    assert embedding.at(4) == IndependentArms(4)
    assert [embedding.misspecification(dim) for dim in (1, 3, 4)] == [np.inf, np.inf, 0.0]
    with pytest.raises(sp.InvalidInput, match="use 4"):
        embedding.at(3)
    with pytest.raises(sp.InvalidInput, match="num_arms is 0"):
        sp.IndependentEmbedding(0)


def test_independent_arms_equal_least_squares_on_the_identity():
    rng = np.random.default_rng(3)
    seen = sp.Observations([3, 1, 0, 7], rng.normal(size=4) * [1, 1, 0, 1])
    plain, linear = estimate(IndependentArms(4), seen), least_squares(sp.Embedding(np.eye(4), 0.0), seen)
    arms = np.array([0, 1, 3])
    assert plain.comparable.tolist() == linear.comparable.tolist() == [True, True, False, True]
    assert plain.scores[arms] == pytest.approx(linear.scores[arms], abs=1e-14)
    assert np.allclose(plain.distances(np.arange(4), np.arange(4)), linear.distances(np.arange(4), np.arange(4)))
    assert plain.total == linear.total == 11


def test_equal_arms_are_equal_in_the_embedding():
    """Rounding must not make a difference of equal rows that a design would then try to measure."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(3, 8))[rng.integers(0, 3, 12)]
    embedded = sp.LinearEmbedding(features, norm_bound=1.0).at(2).features
    for row in range(12):
        twins = np.flatnonzero((features == features[row]).all(axis=1))
        assert np.array_equal(embedded[twins], np.broadcast_to(embedded[row], (len(twins), 2)))
