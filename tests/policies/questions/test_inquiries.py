"""The rules of each question: when an arm is on a list, what is bet on, and what is looked at next."""

import itertools
import math

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.estimators.e_values import EProcesses, processes_of, with_processes
from surepick.estimators.posterior import NUMBER, Posterior
from surepick.policies.base import Problem
from surepick.policies.registry import make_policy
from surepick.questions import Above, AllGood, TopM
from surepick.questions.above import classified, discoveries
from surepick.questions.protocol import Bet, Lists, View, bet_threshold

EPSILON, DELTA = 0.5, 0.1
ASKED = {"epsilon": 0.1, "delta": 0.1, "noise": "subgaussian:0.2"}
seeds = st.integers(0, 10**6)


def outlook(scores, number: float = 0.0, error: float = 0.1) -> Posterior:
    scores = np.array(scores, float)
    return Posterior(scores, lambda _: np.full(len(scores), error), number)


def sheet(name, values, peaks=None) -> EProcesses:
    values = np.array(values, float)
    return EProcesses(str(name), values, values if peaks is None else np.array(peaks, float))


def lists_of(num_arms: int, inside=(), outside=()) -> Lists:
    arms = np.arange(num_arms)
    return Lists(np.isin(arms, inside), np.isin(arms, outside))


def problem_of(num_arms: int, epsilon: float = EPSILON) -> Problem:
    return Problem(num_arms, epsilon, DELTA, sp.SubGaussian(1.0), arms=sp.Arms(ids=range(num_arms)))


def view_of(scores, sheets=(), lists: Lists | None = None, **more) -> View:
    lists = Lists.empty(len(scores)) if lists is None else lists
    return View(problem_of(len(scores)), DELTA, tuple(sheets), lists, outlook(scores, **more))


# --- lists of which no arm is wrong


@given(seeds)
def test_an_arm_is_on_a_list_once_its_process_has_reached_k_over_delta(seed):
    rng = np.random.default_rng(seed)
    num_arms, delta = int(rng.integers(1, 9)), float(rng.uniform(0.01, 0.99))
    asked = rng.random(num_arms) < 0.8
    asked[0] = True
    place = np.where(asked, rng.integers(0, 3, num_arms), 0)
    before = Lists(place == 1, place == 2)
    highs, lows = (rng.normal(2.0, 2.0, num_arms) for _ in range(2))
    found = classified(highs, lows, before, asked, delta)
    enough = asked.sum() / delta
    for arm in range(num_arms):
        reached = [asked[arm] and math.exp(log) >= enough for log in (highs[arm], lows[arm])]
        if before.decided[arm] or not any(reached):
            assert (found.inside[arm], found.outside[arm]) == (before.inside[arm], before.outside[arm])
        else:
            assert found.inside[arm] == (reached[0] and (highs[arm] >= lows[arm] or not reached[1]))
            assert found.outside[arm] == (not found.inside[arm])
    assert not np.any(found.inside & found.outside)


def test_a_decision_lowers_no_threshold():
    """An arm that is rightly below may still have a true null, that of the list above: it has spent its share."""
    asked, close = np.ones(4, bool), bet_threshold(4, DELTA) - 0.01
    lists = lists_of(4, outside=[0, 1, 2])
    found = classified(np.full(4, close), np.full(4, 99.0) * [1, 1, 1, 0], lists, asked, DELTA)
    assert not found.decided[3]
    assert found == lists


# --- lists of which a share may be wrong


def by_definition(values, allowed, total: int, delta: float) -> set[int]:
    """The largest k for which k of the allowed arms have e-values of at least K / (delta k), and these k."""
    arms = [arm for arm in range(len(values)) if allowed[arm]]
    for k in range(len(arms), 0, -1):
        best = sorted(arms, key=lambda arm: -values[arm])[:k]
        if all(math.exp(values[arm]) >= total / (delta * k) for arm in best):
            return set(best)
    return set()


@settings(max_examples=budget(300))
@given(seeds)
def test_discoveries_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    num_arms, delta = int(rng.integers(1, 12)), float(rng.uniform(0.01, 0.99))
    allowed = rng.random(num_arms) < rng.choice([0.3, 0.8, 1.0])
    values, total = rng.normal(2.5, 1.5, num_arms), num_arms + int(rng.integers(0, 3))
    found = discoveries(values, allowed, total, delta)
    assert set(np.flatnonzero(found).tolist()) == by_definition(values, allowed, total, delta)


@settings(max_examples=budget(100))
@given(seeds)
def test_of_any_e_values_the_wrong_share_is_at_most_delta_times_their_mean(seed):
    """What the theorem rests on: share of true nulls found <= sum over them of delta E_i / K, for every outcome."""
    rng = np.random.default_rng(seed)
    num_arms, delta = int(rng.integers(1, 12)), float(rng.uniform(0.01, 0.99))
    values, nulls = rng.normal(2.0, 2.0, num_arms), rng.random(num_arms) < 0.5
    found = discoveries(values, rng.random(num_arms) < 0.7, num_arms, delta)
    share = np.count_nonzero(found & nulls) / max(np.count_nonzero(found), 1)
    assert share <= delta / num_arms * np.exp(values)[nulls].sum() * (1.0 + 1e-9)


def test_many_discoveries_are_cheaper_and_what_is_not_allowed_counts_in_k():
    values = np.full(10, math.log(1.0 / DELTA) + 1e-9)
    assert discoveries(values, np.ones(10, bool), 10, DELTA).all()
    assert not discoveries(values, np.arange(10) < 9, 10, DELTA).any()
    assert discoveries(values + math.log(10 / 9), np.arange(10) < 9, 10, DELTA).sum() == 9


# --- above a number or an arm


def test_above_bets_on_both_sides_of_what_is_undecided():
    asked = Above(control="1", by=0.2)
    lists = lists_of(4, inside=[3])
    above, below = asked.bets(view_of([0.0, 0.0, 1.0, 2.0], [sheet("above", [0.0, 0.0, 2.5, 9.0])], lists))
    assert (above.name, above.high, above.margin) == ("above", True, EPSILON - 0.2)
    assert (below.name, below.high, below.margin) == ("below", False, EPSILON + 0.2)
    for bet in (above, below):
        assert bet.centre == 1
        assert bet.arms.tolist() == [True, False, True, False]
    threshold = math.log(3 / DELTA)
    assert above.needs == pytest.approx([threshold, threshold, threshold - 2.5, 0.0])
    assert asked.asked(problem_of(4)).tolist() == [True, False, True, True]


def test_discoveries_bet_on_arms_that_are_on_a_list_until_their_evidence_is_enough():
    asked = Above(0.0, errors="discovery")
    lists, enough = lists_of(4, inside=[0, 1]), math.log(4 / (DELTA * 2))
    above, below = asked.bets(view_of([1.0, 1.0, -1.0, -1.0], [sheet("above", [enough + 1, 1.0, 0.0, 0.0])], lists))
    assert above.arms.tolist() == [False, True, True, True]
    assert above.needs == pytest.approx([0.0, enough - 1.0, enough, enough])
    assert below.arms.all()


def test_values_that_have_fallen_take_a_discovery_back_and_peaks_keep_a_decision():
    high = [math.log(2 / DELTA)] * 2
    sheets = [sheet("above", [0.0, high[1]], peaks=high), sheet("below", [0.0, 0.0])]
    lists = lists_of(2, inside=[0, 1])
    family, discovery = (Above(0.0, errors=each) for each in ("family", "discovery"))
    assert family.decided(view_of([1.0, 1.0], sheets, lists)).inside.tolist() == [True, True]
    assert discovery.decided(view_of([1.0, 1.0], sheets, lists)).inside.tolist() == [False, True]


def test_an_arm_with_evidence_on_both_sides_is_discovered_on_the_stronger():
    enough = math.log(1 / DELTA)
    asked = Above(0.0, errors="discovery")
    sheets = [sheet("above", [enough + 2, enough]), sheet("below", [enough + 1, enough + 2])]
    found = asked.decided(view_of([0.0, 0.0], sheets))
    assert (found.inside.tolist(), found.outside.tolist()) == ([True, False], [False, True])


def test_an_arm_on_a_list_is_not_waited_for_on_the_other():
    """Arms 2 and 3 are on the first list and look below by now; arm 0 must not wait for them with its place below."""
    values = {"above": [3.1, 5.0, 5.0, 5.0], "below": [3.2, 0.0, 0.0, 0.0]}
    assert math.log(4 / 0.1 / 2) < 3.1  # enough as one of two on a list
    assert math.log(4 / 0.1) > 3.2  # not enough alone
    sheets = tuple(EProcesses(name, np.array(each), np.array(each)) for name, each in values.items())
    lists = Lists(np.array([False, True, True, True]), np.zeros(4, bool))
    outlook = Posterior(np.array([0.01, 0.1, -0.01, -0.01]), lambda _: np.full(4, 0.05), 0.0)
    asked = Above(0.0, errors="discovery")
    assert not asked.decided(View(problem_of(4, 0.1), 0.1, sheets, lists, outlook)).decided[0]
    assert any(bet.arms[0] for bet in asked.bets(View(problem_of(4, 0.1), 0.1, sheets, lists, outlook)))


# --- the m best


def test_one_of_the_m_best_is_listed_when_fewer_than_m_others_may_beat_it():
    asked = TopM(2)
    assert asked.threshold(view_of(np.zeros(4))) == pytest.approx(math.log(4 / DELTA))
    enough, scores = asked.threshold(view_of(np.zeros(4))), [3.0, 1.0, 2.0, 0.0]
    whole = [sheet(0, [0, enough, 0, enough]), sheet(2, [0, enough, 0, enough])]
    found = asked.decided(view_of(scores, whole))
    assert (found.inside.tolist(), found.outside.tolist()) == ([True, False, True, False], [False, True, False, True])
    for place, arm in itertools.product((0, 1), (1, 3)):
        short = [np.array(one.peaks) for one in whole]
        short[place][arm] -= 1e-9
        sheets = [sheet(one.name, peaks) for one, peaks in zip(whole, short, strict=True)]
        listed = asked.decided(view_of(scores, sheets))
        assert np.flatnonzero(listed.decided).tolist() == np.flatnonzero(listed.inside).tolist() == [2 - 2 * place]
    assert np.flatnonzero(asked.decided(view_of(scores, whole[:1])).decided).tolist() == [0]
    assert asked.decided(view_of([3.0, 2.0, 1.0, 0.0], whole)) == found  # what it looks like decides nothing
    three = [*whole, sheet(1, [enough, 0, 0, enough])]
    assert asked.decided(view_of([0.0, 3.0, 2.0, 1.0], three)).inside.tolist() == [False, True, True, False]
    fallen = [sheet(one.name, np.zeros(4), one.peaks) for one in whole]
    assert asked.decided(view_of(scores, fallen)) == found


def test_the_guess_is_compared_with_the_others_and_a_former_one_with_all():
    asked = TopM(2)
    bets = {int(bet.name): bet for bet in asked.bets(view_of([3.0, 1.0, 2.0, 0.0], [sheet(3, [0, 99, 0, 0])]))}
    assert set(bets) == {0, 2, 3}
    assert bets[0].arms.tolist() == bets[2].arms.tolist() == [False, True, False, True]
    assert bets[3].arms.tolist() == [True, False, True, False]
    assert all((bet.centre, bet.margin, bet.high) == (arm, EPSILON, False) for arm, bet in bets.items())


# --- all that are good


def test_good_arms_are_those_that_nobody_left_can_beat_and_bad_ones_those_below_a_witness():
    asked = AllGood(0.2)
    enough, scores = asked.threshold(view_of(np.zeros(3))), [1.0, 0.9, 0.0]
    out = sheet("out", [0, 0, enough])
    found = asked.decided(view_of(scores, [out, sheet(0, [0, enough, 0]), sheet(1, [enough, 0, enough])]))
    assert (found.inside.tolist(), found.outside.tolist()) == ([True, True, False], [False, False, True])
    found = asked.decided(view_of(scores, [sheet(0, [0, enough, 0]), sheet(1, [enough, 0, enough])]))
    assert (found.inside.tolist(), found.outside.tolist()) == ([False, True, False], [False] * 3)
    kept = lists_of(3, inside=[2])
    assert asked.decided(view_of(scores, [out], kept)) == kept  # it was decided once


def test_witness_and_bets_of_all_that_are_good():
    asked = AllGood(0.2)
    bets = asked.bets(view_of([1.0, 0.9, 0.0, 2.0], [sheet(2, np.zeros(4))], lists_of(4, outside=[3])))
    found = {bet.name: bet for bet in bets}
    assert set(found) == {"out", "0", "1", "2"}  # 2 looked good once
    assert (found["out"].centre, found["out"].margin, found["out"].high) == (0, -EPSILON, False)
    assert found["out"].arms.tolist() == [False, True, True, False]
    assert found["1"].arms.tolist() == [True, False, True, False]
    assert (found["1"].centre, found["1"].margin, found["1"].high) == (1, EPSILON + 0.2, False)


# --- all of them


def inquiry(kind: str, num_arms: int):
    return {
        "number": Above(0.0),
        "control": Above(control="0", by=0.1),
        "top": TopM(1 + num_arms // 3),
        "good": AllGood(0.3),
    }[kind]


def is_bet_on(bets: tuple[Bet, ...], arm: int, centre: int) -> bool:
    return any(bet.centre == centre and bet.arms[arm] for bet in bets)


@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@settings(max_examples=budget(100))
@given(seeds)
def test_while_anything_is_undecided_there_are_aims_and_all_of_them_are_bet_on(kind, seed):
    """Else a study would measure for ever. Evidence grows by random gains on what is bet, whatever the guesses say."""
    rng = np.random.default_rng(seed)
    asked = inquiry(kind, num_arms := int(rng.integers(2, 7)))
    sheets, lists, view = (), Lists.empty(num_arms), view_of(rng.normal(0.0, 0.5, num_arms))
    for _ in range(12):
        if np.all(lists.decided | ~asked.asked(problem_of(num_arms))):
            break
        bets, aims = asked.bets(view), asked.aims(view)
        assert len({bet.name for bet in bets}) == len(bets)
        assert len(aims.first) == len(aims.second) == len(aims.leads) == len(aims.needs) > 0
        assert np.all(aims.leads > 0.0)
        assert np.all(aims.needs > 0.0)
        for arm, centre in zip(aims.first.tolist(), aims.second.tolist(), strict=True):
            assert arm != centre
            assert is_bet_on(bets, arm, centre)
        for bet in bets:
            assert bet.centre == NUMBER or not bet.arms[bet.centre]
            assert np.all(bet.needs[bet.arms] > 0.0)
            gains = np.where(bet.arms, rng.normal(1.0, 1.0, num_arms), 0.0)
            sheets = with_processes(sheets, processes_of(sheets, bet.name, num_arms, bet.start).after(gains))
        guesses = outlook(rng.normal(0.0, 0.5, num_arms))
        after = asked.decided(View(problem_of(num_arms), DELTA, sheets, lists, guesses))
        assert not np.any(after.inside & after.outside)
        assert np.all(after.inside[lists.inside])
        assert np.all(after.outside[lists.outside])
        assert not np.any(after.decided & ~asked.asked(problem_of(num_arms)))
        lists, view = after, View(problem_of(num_arms), DELTA, sheets, after, guesses)


def test_sheets_keep_the_largest_value_and_are_written_once_each():
    first = processes_of((), "a", 2, -1.0)
    assert (first.values.tolist(), first.peaks.tolist()) == ([-1.0, -1.0], [-1.0, -1.0])
    up = first.after(np.array([2.0, -1.0]))
    down = up.after(np.array([-5.0, 0.0]))
    assert (down.values.tolist(), down.peaks.tolist()) == ([-4.0, -2.0], [1.0, -1.0])
    both = with_processes(with_processes((first,), sheet("b", [0.0, 0.0])), down)
    assert [one.name for one in both] == ["a", "b"]
    assert processes_of(both, "a", 2) == down


# --- one arm


def test_one_arm_is_not_compared_with_itself():
    one = sp.Arms(np.ones((1, 1)), ["alone"])
    for question in ({"question": "all-good"}, {"question": "top", "m": 1}, {"question": "above", "control": "alone"}):
        with pytest.raises(sp.InvalidInput):
            make_policy("certified-independent", one, **ASKED, **question)


def test_one_arm_and_a_threshold_rest_on_the_noise():
    found = sp.find_best(
        sp.Arms(np.ones((1, 1)), ["alone"]),
        lambda ids: [1.0 for _ in ids],
        policy="certified-independent",
        question="above",
        threshold=0.0,
        **ASKED,
    )
    assert any("sub-Gaussian" in one for one in found.certificate.assumptions)
