"""The chance of being within epsilon of the best, against draws."""

import numpy as np
import pytest
from together import of_each

from surepick.estimators.posterior import HEURISTIC_RIVALS, chances_of_means, chances_of_vectors

DRAWS = 20_000
RNG = np.random.default_rng(3)


def drawn(means: np.ndarray, epsilon: float) -> np.ndarray:
    """The share of draws, shape (draws, K), in which each arm is within epsilon of the best."""
    return np.mean(means >= means.max(axis=1, keepdims=True) - epsilon, axis=0)


@of_each(("num_arms", "spread"), [(2, 1.0), (8, 0.3), (60, 1.0)])
@of_each("epsilon", [0.01, 0.3])
def test_chances_of_means_are_those_of_draws(num_arms, spread, epsilon):
    scores, errors = RNG.normal(size=num_arms) * spread, RNG.uniform(0.05, 0.8, size=num_arms)
    draws = scores + errors * RNG.standard_normal((DRAWS, num_arms))
    assert chances_of_means(scores, errors, epsilon) == pytest.approx(drawn(draws, epsilon), abs=0.03)


def test_chances_of_vectors_are_those_of_other_draws():
    scores, factors = RNG.normal(size=30) * 0.3, RNG.normal(size=(30, 4)) * 0.2
    draws = scores + RNG.standard_normal((DRAWS, 4)) @ factors.T
    assert chances_of_vectors(scores, factors, 0.1) == pytest.approx(drawn(draws, 0.1), abs=0.1)
    assert np.array_equal(chances_of_vectors(scores, factors, 0.1), chances_of_vectors(scores, factors, 0.1))


def test_an_arm_that_is_hardly_known_takes_its_chance_from_the_others():
    scores, errors = np.array([0.60, 0.62, 0.0]), np.array([0.01, 1.0, 0.01])
    chances = chances_of_means(scores, errors, 0.5)
    assert chances == pytest.approx([0.684, 0.698, 0.0], abs=0.02)  # Phi(.48) and Phi(.52)
    assert chances_of_means(scores, np.array([0.01, 0.4, 0.01]), 0.5)[0] > 0.85


def test_many_arms_are_sampled_and_the_best_of_them_is_still_found():
    scores, errors = np.zeros(4 * HEURISTIC_RIVALS), np.full(4 * HEURISTIC_RIVALS, 0.1)
    scores[5000] = 1.0
    chances = chances_of_means(scores, errors, 0.05)
    assert int(np.argmax(chances)) == 5000
    assert chances[5000] > 0.9
