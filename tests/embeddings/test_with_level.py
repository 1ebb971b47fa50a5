"""The coordinate that all arms have alike: it changes no difference, and lets designs count no level as known."""

import numpy as np
import pytest

from surepick.embeddings import LinearEmbedding
from surepick.embeddings.base import CentredWithinBlocks
from surepick.errors import InvalidInput

FEATURES = np.random.default_rng(2).normal(0.0, 1.0, (9, 4))


def test_it_has_the_features_of_one_dimension_less_and_a_constant():
    inner = LinearEmbedding(FEATURES, norm_bound=2.0)
    levelled = CentredWithinBlocks(inner)
    assert levelled.max_dim == inner.max_dim + 1
    assert levelled.norm_bound == 2.0
    for dim in range(2, levelled.max_dim + 1):
        found = levelled.at(dim)
        assert np.array_equal(found.features[:, :-1], inner.at(dim - 1).features)
        assert np.ptp(found.features[:, -1]) == 0.0
        assert found.features[0, -1] == pytest.approx(np.linalg.norm(inner.at(dim - 1).features, axis=1).max())
        assert found.misspecification == levelled.misspecification(dim) == inner.misspecification(dim - 1)


def test_the_level_alone_tells_nothing_apart():
    levelled = CentredWithinBlocks(LinearEmbedding(FEATURES, norm_bound=2.0))
    assert levelled.misspecification(1) == np.inf
    assert np.array_equal(levelled.at(1).features, np.ones((9, 1)))
    with pytest.raises(InvalidInput):
        levelled.at(levelled.max_dim + 1)


def test_differences_cost_what_one_block_tells():
    """y'A^-1 y with the coordinate is y'M^-1 y with M = sum w z z' - sum w z sum w z' / sum w."""
    inner, weights = LinearEmbedding(FEATURES, norm_bound=2.0), np.random.default_rng(3).uniform(0.1, 1.0, 9)
    plain, levelled = inner.at(inner.max_dim).features, CentredWithinBlocks(inner).at(inner.max_dim + 1).features
    centred = plain - weights @ plain / weights.sum()
    within = np.linalg.inv(centred.T * weights @ centred)
    whole = np.linalg.inv(levelled.T * weights @ levelled)
    y, padded = plain[1] - plain[0], levelled[1] - levelled[0]
    assert padded @ whole @ padded == pytest.approx(y @ within @ y)
