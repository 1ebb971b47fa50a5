"""Lists keep delta in blocks whose effects somebody chooses: ten times the noise, pulls in blocks as they come.

Means lie just beyond what may be said of them. Counts are held against exact binomial bounds; weights that do not sum
to 0 within blocks are noticed.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from block_studies import GAP, against_the_best, as_one_block, drawn, seen_of, shuffled, unbalanced
from bounds import counted, failures_allowed
from budgets import STUDIES, few_and_all_studies
from paired_studies import alike, drawn as normal_in_blocks, seen_of as seen_of_rewards, where

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies import tuning
from surepick.policies.base import stopped
from surepick.policies.questions import outlook
from surepick.questions import lists_of, wrongly_listed

QUESTIONS = {
    "control": ({"question": "above", "control": "0"}, [0.0, *[-GAP] * 4]),
    "top": ({"question": "top", "m": 2}, [0.0, 0.0, *[-GAP] * 3]),
    "good": ({"question": "all-good"}, [0.0, *[-2.0 * GAP] * 4]),
}


MOST_BATCHES = 60  # for saboteurs, whose studies may never end


HEIGHTS = [0.0, 1.0, -1.0, 0.5, -0.3]  # a coordinate that has no effect


def policy_of(kind: str, delta: float, *, features: bool = False, **asked):
    """Five arms, whose features are their means and a coordinate that has no effect."""
    question, truth = QUESTIONS[kind]
    name, more = ("certified-linear", {"norm_bound": 1.1}) if features else ("certified-independent", {})
    arms = sp.Arms(np.column_stack([truth, HEIGHTS]), ids=range(5))
    return sp.make_policy(name, arms, epsilon=1.0, delta=delta, **question, **more, **asked)


def is_wrong(policy, state, means) -> bool:
    lists = lists_of(policy.problem, policy.claim(state).lists)
    assert lists is not None
    return bool(wrongly_listed(policy.problem, lists, policy.problem.arms, means).any())


@counted()
def wrong_studies(kind: str, runs: int, delta: float, *, features: bool = False) -> Iterator[bool]:
    """Studies with an arm on a wrong list."""
    means = np.array(QUESTIONS[kind][1])
    more = {"batch_size": 16} if features else {}  # of four blocks: with features fewer would do
    policy = policy_of(kind, delta, features=features, noise=sp.SubGaussian(0.5), blocks="day", **more)
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, 5]), policy.init()
        while not stopped(policy, state) and state.round <= MOST_BATCHES:
            counts = shuffled(rng, policy.ask(state), 4)
            sums = drawn(rng, counts, means, 0.5) + counts * against_the_best(rng, counts)[:, None]
            state = policy.tell(state, policy.ask(state), seen_of(counts, sums)).state
        yield is_wrong(policy, state, means)


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


# --- with features


@pytest.mark.parametrize("kind", QUESTIONS)
@few_and_all_studies(11, STUDIES)
def test_no_arm_is_on_a_wrong_list_with_features(kind, delta, runs):
    wrong = wrong_studies(kind, runs, delta, features=True)
    print(f"\n{kind}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


def test_vectors_that_are_not_centred_within_blocks_are_noticed(monkeypatch):
    monkeypatch.setattr(Observations, "in_blocks", property(as_one_block))
    runs, delta = 11, 0.05
    assert wrong_studies("control", runs, delta, features=True) > failures_allowed(runs, delta)


# --- where nobody knows how much differences vary


@counted()
def wrong_of_pairs(kind: str, name: str, runs: int, delta: float, *, best: str = "noisiest") -> Iterator[bool]:
    """The same of normal rewards whose standard deviations go from .2 to 2 and whose correlations are .8; in blocks
    there are effects ten times as large."""
    scales, means = 0.2 * 10.0 ** np.linspace(0.0, 1.0, 5), np.array(QUESTIONS[kind][1])
    root = alike(scales[::-1] if best == "noisiest" else scales, 0.8)
    policy = policy_of(kind, delta, noise=sp.Normal(), **{name: "block"})
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, 6]), policy.init()
        while not stopped(policy, state) and state.round <= 4 * MOST_BATCHES:
            plan = policy.ask(state)
            asked = where(policy, plan)
            effects = against_the_best(rng, asked.astype(int)) if name == "blocks" else 0.0
            rewards = normal_in_blocks(rng, asked, means, root, 2.0 * effects)
            state = policy.tell(state, plan, seen_of_rewards(rewards)).state
        yield is_wrong(policy, state, means)


@pytest.mark.cases(4)
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.parametrize("name", ["blocks", "streams"])
@pytest.mark.parametrize("kind", QUESTIONS)
@few_and_all_studies(8, STUDIES)
def test_no_arm_is_on_a_wrong_list_of_pairs(kind, name, best, delta, runs):
    wrong = wrong_of_pairs(kind, name, runs, delta, best=best)
    print(f"\n{kind}, {name}, {best}, delta {delta:g}: {wrong} of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


def plug_in(known, failure, usual=outlook.mgf_of_differences):
    """The differences' own variances, taken for the truth."""
    own = np.maximum(known.squares - known.sums**2 / np.maximum(known.counts, 1), 1e-12)
    own = own / np.maximum(known.counts - 1, 1)
    return replace(usual(known, failure), bounds=own, joint_bounds=own, variances=own)


def test_a_plug_in_scale_of_differences_is_noticed(monkeypatch):
    monkeypatch.setattr(outlook, "mgf_of_differences", plug_in)
    monkeypatch.setattr(tuning, "HEURISTIC_REPEATS", 2)
    assert wrong_of_pairs("control", "blocks", 100, 0.01, best="noisiest") > failures_allowed(100, 0.01)
