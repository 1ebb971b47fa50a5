"""Pairs within blocks: effects change no decision, evidence is that of the weights written out, plans fill blocks."""

import math

import numpy as np
import pytest
from budgets import few_and_all
from paired_studies import alike, drawn, played, policy_of, seen_of, where
from together import of_each

import surepick as sp
from surepick.core.observations import BlockTotals, Observations
from surepick.errors import InvalidInput
from surepick.estimators.pairs import alone, pairs_with
from surepick.estimators.running_processes import UNKNOWN, MeanProcesses
from surepick.policies.base import stopped
from surepick.policies.paired import rule
from surepick.policies.paired.rule import spread_of_differences, spread_of_streams
from surepick.policies.sequential.state import OpenComparisons

MEANS = np.array([0.0, 1.0, 0.4, 0.1, 0.6])
ROOT = alike([0.4, 0.8, 0.5, 1.0, 0.6], 0.7)
KINDS = ["blocks", "streams"]


# --- decisions


def test_effects_of_any_size_change_no_plan_and_no_bound():
    policy = policy_of(5, "blocks", delta=0.1, epsilon=0.3)
    plain, states = played(policy, MEANS, ROOT, seed=3)
    moved, after = played(policy, MEANS, ROOT, seed=3, effects=lambda rng, size: 1e4 * rng.standard_normal(size))
    assert [plan.counts.tolist() for plan in plain] == [plan.counts.tolist() for plan in moved]
    assert [plan.candidate for plan in plain] == [plan.candidate for plan in moved]
    for one, other in zip(states, after, strict=True):
        assert one.bounds_of(one.leader) == pytest.approx(other.bounds_of(one.leader), rel=1e-5)


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_it_ends_with_a_good_arm_and_fewer_pulls_than_without_pairs(kind, seed):
    root = alike(np.ones(5), 0.9)
    policy = policy_of(5, kind, delta=0.1, epsilon=0.3)
    _, states = played(policy, MEANS, root, seed=seed)
    assert policy.claim(states[-1]).finished == "certified"
    assert MEANS[policy.claim(states[-1]).leader] >= 0.7
    asked = {"epsilon": 0.3, "delta": 0.1, "noise": sp.Normal()}
    usual = sp.make_policy("certified-independent", sp.Arms(ids=range(5)), **asked)
    state, rng = usual.init(), np.random.default_rng([seed, 44])
    while not stopped(usual, state):
        plan = usual.ask(state)
        counts = plan.counts
        sums = counts * MEANS + np.sqrt(counts) * rng.standard_normal(5)
        squares = np.divide(sums**2, counts, out=np.zeros(5), where=counts > 0)
        squares += np.where(counts > 1, rng.chisquare(np.maximum(counts - 1, 1)), 0.0)
        state = usual.tell(state, plan, Observations(counts, sums, squares)).state
    assert states[-1].pulls < 2.0 * state.pulls


@pytest.mark.parametrize("kind", KINDS)
def test_plans_put_the_candidate_in_every_block_and_an_arm_once(kind):
    policy = policy_of(5, kind, delta=0.1, epsilon=0.3)
    plans, _ = played(policy, MEANS, ROOT, seed=1)
    assert plans[0].counts.tolist() == [5] * 5
    for plan in plans:
        table = where(policy, plan)
        assert np.array_equal(table.sum(axis=0), plan.counts)
        if plan.candidate is not None:
            assert table[:, plan.candidate].all()


def test_two_measurements_in_a_block_and_blocks_without_the_candidate_are_no_pairs():
    blocks = BlockTotals(
        np.array([0, 0, 1, 1, 2]),
        np.array([0, 1, 0, 1, 1]),
        np.array([1, 1, 1, 2, 1]),
        np.array([1.0, 4.0, 2.0, 9.0, 7.0]),
    )
    pairs = pairs_with(blocks, 0, 3)
    assert pairs.counts.tolist() == [0, 1, 0]
    assert pairs.sums.tolist() == [0.0, 3.0, 0.0]
    assert alone(blocks, 0) == (2, 3.0, 5.0)


def test_two_results_of_an_arm_in_a_block_are_refused():
    policy = policy_of(3, "streams", delta=0.1)
    state = policy.init()
    twice = BlockTotals(np.array([0, 0]), np.array([0, 1]), np.array([2, 1]), np.array([1.0, 4.0]))
    seen = Observations(np.array([2, 1, 0]), np.array([1.0, 4.0, 0.0]), np.array([1.0, 16.0, 0.0]), blocks=twice)
    with pytest.raises(InvalidInput, match="two results in one block"):
        policy.tell(state, policy.ask(state), seen)


def test_missing_results_leave_a_study_that_goes_on():
    policy, rng = policy_of(4, "streams", delta=0.1, epsilon=0.3), np.random.default_rng(9)
    state = policy.init()
    for _ in range(300):
        if stopped(policy, state):
            break
        plan = policy.ask(state)
        asked = where(policy, plan)
        rewards = drawn(rng, asked, MEANS[:4], ROOT[:4, :4])
        rewards[rng.random(asked.shape) < 0.3] = np.nan
        state = policy.tell(state, plan, seen_of(rewards)).state
    assert policy.claim(state).leader == 1


def test_a_plan_without_results_changes_nothing_but_the_trace():
    policy = policy_of(3, "streams", delta=0.1)
    state = policy.init()
    step = policy.tell(state, policy.ask(state), Observations.nothing(3))
    assert step.state == state


# --- the evidence


def written_out(weights: np.ndarray, rewards: np.ndarray) -> float:
    """sum of weight x reward."""
    return float(np.nansum(np.where(np.isfinite(rewards), weights * rewards, 0.0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_gain_is_that_of_the_weights_written_out(kind, seed, monkeypatch):
    rng = np.random.default_rng([seed, 45])
    early = drawn(rng, np.ones((12, 3), bool), MEANS[:3], ROOT[:3, :3])
    asked = rng.random((15, 3)) < 0.7
    asked[:, 0] = True
    late = drawn(rng, asked, MEANS[:3], ROOT[:3, :3])
    before = pairs_with(seen_of(early).blocks, 0, 3)
    spread = (
        spread_of_differences(before, 1e-3) if kind == "blocks" else spread_of_streams(before, seen_of(early), 1e-3)
    )
    margins = np.array([0.4, 0.9])
    goal = OpenComparisons(
        0, np.array([1, 2]), margins, 0.3, 3.0, np.zeros(3), spread.noise_scales(np.array([0.3, 0.4, 0.9]))
    )
    blocks, number = seen_of(late).blocks, len(late)
    news = pairs_with(blocks, 0, 3)
    monkeypatch.setattr(rule, "_cost", lambda mgf, seen: np.zeros(len(seen.counts)))
    bets = rule.pair_bets(goal, margins, news.counts, number, spread, np.array([], np.int64))
    processes = bets.told(MeanProcesses.started(3, 0.0), blocks, news)
    for arm in (1, 2):
        flow, both = processes.given_to(0)[arm], asked[:, arm]
        weights = np.zeros((15, 3))
        weights[both, arm] = -flow / both.sum()
        everywhere = (1.0 - spread.slopes[arm]) * flow / number
        weights[:, 0] = everywhere + np.where(both, spread.slopes[arm] * flow / both.sum(), 0.0)
        assert weights.sum() == pytest.approx(0.0, abs=1e-9)
        assert processes.log_values[arm] == pytest.approx(written_out(weights, late), rel=1e-9, abs=1e-9)
        assert processes.taken[arm] == flow
        if kind == "blocks":
            assert weights.sum(axis=1) == pytest.approx(np.zeros(15), abs=1e-12)


@pytest.mark.cases(2)
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.6, 0.95])
@pytest.mark.parametrize("kind", KINDS)
@few_and_all("batches", 500, 3_000)
def test_the_factor_of_a_batch_has_mean_at_most_one_if_the_bounds_hold(kind, correlation, batches):
    rng, root = np.random.default_rng([46, int(100 * correlation) % 97]), alike([1.0, 1.4], correlation)
    early = drawn(rng, np.ones((40, 2), bool), np.zeros(2), root)
    before = pairs_with(seen_of(early).blocks, 0, 2)
    spread = (
        spread_of_differences(before, 1e-3) if kind == "blocks" else spread_of_streams(before, seen_of(early), 1e-3)
    )
    covariance = root @ root.T
    assert spread.difference_bounds[1] >= covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    margins, both = np.array([1.5]), np.repeat([True, False], [6, 9 if kind == "streams" else 0])
    goal = OpenComparisons(0, np.array([1]), margins, 0.3, 3.0, np.zeros(2), spread.noise_scales(np.array([1.5, 1.5])))
    gains = []
    for _ in range(batches):
        late = drawn(rng, np.stack([np.ones_like(both), both], axis=1), np.zeros(2), root)
        blocks = seen_of(late).blocks
        news = pairs_with(blocks, 0, 2)
        bets = rule.pair_bets(goal, margins, news.counts, len(late), spread, np.array([], np.int64))
        gains.append(bets.told(MeanProcesses.started(2, 0.0), blocks, news).log_values[1])
    factors = np.exp(gains)
    assert np.std(gains) > 0.3
    assert factors.mean() <= 1.0 + 4.0 * factors.std() / math.sqrt(len(factors))


@pytest.mark.parametrize("seed", range(3))
def test_minkowski_bounds_what_a_contrast_varies(seed):
    rng = np.random.default_rng([seed, 47])
    root = rng.standard_normal((2, 2))
    covariance = root @ root.T
    early = drawn(rng, np.ones((200, 2), bool), np.zeros(2), root)
    spread = spread_of_streams(pairs_with(seen_of(early).blocks, 0, 2), seen_of(early), 1e-6)
    for own, beside in rng.standard_normal((20, 2)):
        weights = np.array([beside, own])
        found = spread.bounds_for(np.array([0.0, own]), np.array([0.0, beside]))[1]
        assert found >= weights @ covariance @ weights


def test_what_was_bet_against_a_former_candidate_counts_as_it_is():
    held = MeanProcesses.started(3, 0.0).with_flows(
        np.array([1]), np.array([2.0]), {2: np.array([2.0])}, np.array([2.5])
    )
    bounds = rule.upper_bounds(held, 0, 3.0)
    assert bounds[1] == UNKNOWN
    more = held.with_flows(np.array([1]), np.array([2.5]), {0: np.array([0.5])}, np.array([2.8]))
    assert rule.upper_bounds(more, 0, 3.0)[1] == pytest.approx((3.0 - 2.8) / 0.5)
    over = held.with_flows(np.array([1]), np.array([2.0]), {}, np.array([3.5]))
    assert rule.upper_bounds(over, 0, 3.0)[1] < 0.0


# --- what is refused


@of_each(
    ("options", "words"),
    [
        ({"noise": "normal", "blocks": "day", "streams": "run"}, "both given; name one"),
        ({"noise": "subgaussian:1", "streams": "run"}, "measured, not declared"),
        ({"noise": "normal", "streams": "run", "batch_size": 8}, "has no option 'batch_size'"),
        ({"noise": "normal", "streams": "reward"}, "other columns"),
        ({"noise": "normal", "evidence": "paired"}, "nothing says what goes together"),
        ({"noise": "normal", "blocks": "day", "evidence": "carried"}, "compared without features"),
    ],
)
def test_what_has_no_meaning_is_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        sp.make_policy("certified-independent", sp.Arms(ids=[*"abc"]), epsilon=0.1, delta=0.1, **options)


def test_other_policies_have_no_streams():
    with pytest.raises(InvalidInput, match="no option 'streams'"):
        sp.make_policy("lucb", sp.Arms(ids=[*"abc"]), epsilon=0.1, delta=0.1, noise="subgaussian:1", streams="run")
