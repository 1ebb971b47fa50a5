"""Segments share delta: no segment at all has a wrong answer, except with probability delta.

In each segment the second arm is worse by hardly more than is allowed. Counts are held against exact binomial bounds;
the saboteur gives every segment all of delta.
"""

from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed, until_clear
from budgets import STUDIES

import surepick as sp
from surepick.environments import Environment
from surepick.questions import by_segment
from surepick.questions.by_segment import of_segments

SEGMENTS, SIGMA = 10, 1.0
QUESTIONS = {"best": {}, "all-good": {"question": "all-good"}}
RUNS = [(6, 0.05), *(pytest.param(STUDIES, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3))]


def wrong_studies(kind: str, runs: int, delta: float, *, epsilon: float) -> int:
    """Studies in which some segment has an arm on a wrong list."""
    allowed = epsilon if kind == "best" else 2.0 * epsilon
    arms = sp.Arms(ids=range(2 * SEGMENTS), segments=[arm // 2 for arm in range(2 * SEGMENTS)])
    noise = sp.SubGaussian(SIGMA)
    means = np.tile([0.0, 1.001 * allowed], SEGMENTS)
    policy = sp.make_policy("certified-independent", arms, epsilon=epsilon, delta=delta, noise=noise, **QUESTIONS[kind])
    world = Environment(arms=arms, means=means, noise=noise)
    return until_clear((not sp.simulate(policy, world, seed=seed).success for seed in range(runs)), runs, delta)


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize(("runs", "delta"), RUNS)
def test_a_wrong_answer_in_any_segment_is_rare(kind, delta, runs):
    wrong = wrong_studies(kind, runs, delta, epsilon=1.0)
    print(f"\n{kind}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


def test_all_of_delta_for_every_segment_is_noticed(monkeypatch):
    monkeypatch.setattr(
        by_segment, "of_segments", lambda *given: replace(made := of_segments(*given), shares=np.ones_like(made.shares))
    )
    wrong = wrong_studies("best", 40, 0.3, epsilon=0.3)
    print(f"\n{wrong} of 40, {failures_allowed(40, 0.3)} allowed")
    assert wrong > failures_allowed(40, 0.3)
