"""What the checks of an embedding make of extreme settings; their error is measured in tests/guarantees."""

import numpy as np

import surepick as sp
from surepick.estimators import norm_contradicted


def test_a_norm_bound_as_large_as_floats_contradicts_nothing():
    """Its limits overflow, which would warn."""
    embedded = sp.Embedding(10.0 * np.eye(3), 0.0)
    seen = sp.Observations([2, 3, 4], [0.5, 1.0, -2.0])
    assert norm_contradicted(embedded, seen, norm_bound=1e308, sigma=0.5, level=0.001) == ""


def test_a_norm_bound_that_is_too_small_is_contradicted():
    embedded = sp.Embedding(np.eye(2), 0.0)
    seen = sp.Observations([1000, 1000], [1000.0, -1000.0])
    assert "norm_bound is too small" in norm_contradicted(embedded, seen, norm_bound=0.1, sigma=0.5, level=0.001)
