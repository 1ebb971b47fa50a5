"""Lists keep delta in blocks whose effects somebody chooses: ten times the noise, pulls in blocks as they come.

Means lie just beyond what may be said of them. Counts are held against exact binomial bounds; weights that do not sum
to 0 within blocks are noticed.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from block_studies import GAP, against_the_best, drawn, seen_of, shuffled, unbalanced
from bounds import counted, failures_allowed
from budgets import STUDIES, few_and_all_studies

import surepick as sp
from surepick.policies.base import stopped
from surepick.policies.questions import outlook
from surepick.questions import lists_of, wrongly_listed

QUESTIONS = {
    "control": ({"question": "above", "control": "0"}, [0.0, *[-GAP] * 4]),
    "top": ({"question": "top", "m": 2}, [0.0, 0.0, *[-GAP] * 3]),
    "good": ({"question": "all-good"}, [0.0, *[-2.0 * GAP] * 4]),
}


MOST_BATCHES = 60  # for saboteurs, whose studies may never end


@counted()
def wrong_studies(kind: str, runs: int, delta: float) -> Iterator[bool]:
    """Studies with an arm on a wrong list."""
    question, truth = QUESTIONS[kind]
    arms, means = sp.Arms(ids=range(5)), np.array(truth)
    asked = {"epsilon": 1.0, "delta": delta, "noise": sp.SubGaussian(0.5), "blocks": "day"}
    policy = sp.make_policy("certified-independent", arms, **asked, **question)
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, 5]), policy.init()
        while not stopped(policy, state) and state.round <= MOST_BATCHES:
            counts = shuffled(rng, policy.ask(state), 4)
            sums = drawn(rng, counts, means, 0.5) + counts * against_the_best(rng, counts)[:, None]
            state = policy.tell(state, policy.ask(state), seen_of(counts, sums)).state
        lists = lists_of(policy.problem, policy.claim(state).lists)
        assert lists is not None
        yield bool(wrongly_listed(policy.problem, lists, arms, means).any())


@pytest.mark.parametrize("kind", QUESTIONS)
@few_and_all_studies(11, STUDIES)
def test_no_arm_is_on_a_wrong_list(kind, delta, runs):
    wrong = wrong_studies(kind, runs, delta)
    print(f"\n{kind}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.parametrize("kind", ["control", "good"])
def test_weights_that_do_not_sum_to_zero_within_blocks_are_noticed(kind, monkeypatch):
    monkeypatch.setattr(outlook, "equations", unbalanced)
    runs, delta = 11, 0.05
    wrong = wrong_studies(kind, runs, delta)
    print(f"\n{kind}: {wrong} of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong > failures_allowed(runs, delta)
