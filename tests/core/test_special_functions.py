"""The normal distribution without scipy is that of scipy, in both tails."""

import numpy as np
import scipy.special

from surepick.core.special_functions import log_ndtr

PLACES = np.concatenate([np.linspace(-37.0, 37.0, 2001), [0.0, -0.0, -1e-300, 1e-300]])


def test_log_ndtr_is_that_of_scipy():
    far = np.concatenate([PLACES, [-1e3, -1e8]])
    np.testing.assert_allclose(log_ndtr(far), scipy.special.log_ndtr(far), rtol=1e-12, atol=0.0)


def test_more_cannot_be_more_than_one():
    assert np.all(log_ndtr(np.array([50.0, 1e9])) == 0.0)
