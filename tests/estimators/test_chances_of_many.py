"""Chances among more arms than the short list: as if each was added up, and of each study by itself."""

import numpy as np
import pytest

from surepick.core.special_functions import log_ndtr
from surepick.estimators.posterior import (
    HEURISTIC_PLACED,
    HEURISTIC_PLACES,
    HEURISTIC_SHORT_LIST,
    chances_in_rows,
    chances_of_means,
)

ARMS, EPSILON = 1_500, 0.1


def guesses(seed: int, error: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.uniform(0.0, 1.0, ARMS), error * random.uniform(0.5, 1.5, ARMS)


def added_up(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The rule of `chances_in_rows` with every arm at every place."""
    order = np.argsort(-(scores + 2.0 * errors), kind="stable")
    short, beside = order[:HEURISTIC_SHORT_LIST], order[:HEURISTIC_PLACED]
    places = (scores[beside, None] + np.array(HEURISTIC_PLACES) * errors[beside, None]).ravel()
    rows = np.sort(np.concatenate([places, places - EPSILON]))
    reached = np.exp(log_ndtr((rows[:, None] - scores[short]) / errors[short]))
    logs = log_ndtr((rows[:, None] + EPSILON - scores) / errors)
    product = np.exp(np.minimum(logs.sum(axis=1, keepdims=True) - logs[:, short], 0.0))
    between = ((reached[1:] - reached[:-1]) * 0.5 * (product[1:] + product[:-1])).sum(axis=0)
    chances = np.zeros(len(scores))
    chances[short] = between + reached[0] * product[0] + (1.0 - reached[-1]) * product[-1]
    return chances


@pytest.mark.parametrize("error", [0.5, 0.1, 0.02])
def test_they_are_what_all_arms_at_all_places_give(error):
    scores, errors = guesses(1, error)
    np.testing.assert_allclose(chances_of_means(scores, errors, EPSILON), added_up(scores, errors), rtol=0, atol=1e-12)


def test_a_study_s_chances_are_the_same_bits_whoever_is_beside_it():
    rows = [guesses(seed, error) for seed, error in ((1, 0.5), (2, 0.1), (3, 0.02))]
    together = chances_in_rows(*(np.array(column) for column in zip(*rows, strict=True)), EPSILON)
    for row, alone in zip(together, rows, strict=True):
        np.testing.assert_array_equal(row, chances_of_means(*alone, EPSILON))


def test_long_arrays_have_the_same_bits_as_their_entries():
    x = np.random.default_rng(0).normal(0.0, 8.0, (5, 9_001))
    np.testing.assert_array_equal(log_ndtr(x), np.array([log_ndtr(row) for row in x]))
