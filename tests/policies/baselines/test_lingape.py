"""LinGapE pulls in the proportions of the smallest one-norm."""

import numpy as np
import pytest
from linear_baselines import SEEDS, drawn, make
from scipy.optimize import linprog
from together import of_each


@of_each("seed", SEEDS)
def test_the_proportions_are_those_of_the_smallest_one_norm(seed):
    features, _ = drawn(seed)
    found = make("lingape", features, selection="ratio")._proportions(0, 1)
    wanted = features[0] - features[1]
    both = linprog(np.ones(14), A_eq=np.hstack([features.T, -features.T]), b_eq=wanted)
    support = np.flatnonzero(found)
    value = wanted @ np.linalg.pinv(features[support].T @ np.diag(found[support]) @ features[support]) @ wanted
    assert value == pytest.approx(both.fun**2, rel=0.011)  # Elfving: the best design's value is the squared 1-norm
