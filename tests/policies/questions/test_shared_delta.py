"""How many nulls share delta: as many as there are arms, however many of them are on a list already."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from bounds import failures_allowed, until_clear

from surepick.questions.above import classified
from surepick.questions.protocol import Lists

ARMS, DELTA, STUDIES = 20, 0.1, 400
STEP = 0.1  # of the log likelihood ratio's drift, times two: small, so that processes hardly overshoot
Rule = Callable[[np.ndarray, np.ndarray, Lists, np.ndarray, float], Lists]


def holm(highs: np.ndarray, lows: np.ndarray, lists: Lists, asked: np.ndarray, delta: float) -> Lists:
    """The saboteur: only arms that are not on a list yet share delta."""
    left = int(np.count_nonzero(asked & ~lists.decided))
    return classified(highs, lows, lists, asked, delta * np.count_nonzero(asked) / max(left, 1))


def wrong_studies(rule: Rule) -> int:
    """How many of `studies`, `until_clear`."""
    return until_clear(studies(rule), STUDIES, DELTA)


def studies(rule: Rule) -> Iterator[bool]:
    """Whether an arm is on the wrong list, in studies where one arm after the other is measured until it is on one.

    The means are exactly epsilon below the threshold, and both processes of an arm bet all that they may: the log of
    the first is a walk that drifts down, the second is its mirror image.
    """
    rng, asked = np.random.default_rng(20), np.ones(ARMS, bool)
    for _ in range(STUDIES):
        lists, highs, lows = Lists.empty(ARMS), np.zeros(ARMS), np.zeros(ARMS)
        for arm in range(ARMS):
            walk = np.cumsum(rng.normal(-STEP / 2, math.sqrt(STEP), 1200))
            for threshold in np.log(np.arange(ARMS - arm, ARMS + 1) / DELTA):  # nothing happens below or between
                if lists.decided[arm]:
                    break
                first = int(np.argmax(np.abs(walk) >= threshold))
                highs[arm] = max(walk[: first + 1].max(), 0.0)
                lows[arm] = max(-walk[: first + 1].min(), 0.0)
                lists = rule(highs, lows, lists, asked, DELTA)
        assert lists.decided.all()
        yield bool(lists.inside.any())


def test_arms_that_are_measured_one_after_another_share_delta():
    assert wrong_studies(classified) <= failures_allowed(STUDIES, DELTA)


def test_a_threshold_that_falls_as_arms_get_on_lists_is_caught():
    assert wrong_studies(holm) > failures_allowed(STUDIES, DELTA)


def test_an_arm_stays_where_it_is_and_is_on_one_list_only():
    high = np.array([9.0, 9.0, 0.0, 9.0])
    before = Lists(np.zeros(4, bool), np.array([True, False, False, False]))
    asked = np.array([True, True, True, False])
    after = classified(high, np.array([9.0, 8.0, 9.0, 9.0]), before, asked, 0.1)
    assert after.inside.tolist() == [False, True, False, False]
    assert after.outside.tolist() == [True, False, True, False]
