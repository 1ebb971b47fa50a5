"""E-processes on test items: their exact law over all orders of small sets, and what each forbidden step does to it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from item_tables import all_orders, as_asked, bold, everybody, guessed, last_value, played, reaches, restless

from surepick.estimators.item_processes import ItemBets, ItemProcesses, after_items, with_late_answers

EVEN = np.array([[1, 1, 1, 0, 1], [0, 1, 0, 0, 1]], float)  # two arms, .8 and .4
FOUR = np.array([[0.6, 1, 0, 1, 1], [1, 0, 0.2, 0.4, 0], [0, 1, 0, 1, 0], [0.6, 0.9, 0, 1, 1]])
THREE = np.array([[1, 1, 0, 1, 0.5, 0.9], [0, 1, 0.5, 0, 0.2, 0], [0.3, 0, 1, 0, 0, 0.4]])
TABLES = {"even": (EVEN, (1, 1, 1, 1, 1)), "four": (FOUR, (1, 2, 1))}
CHOICES = {"guessed": guessed(0.1), "bold": bold(1), "restless": restless(1), "wild": restless(2)}
DELTAS = (0.05, 0.3, 0.5, 0.8)
SURE = 1e-9


def out_late(answers: np.ndarray, batch: int) -> np.ndarray:
    """The best arm is not asked in the second batch if it answered well, the last one never after the first."""
    asked = np.ones(len(answers), bool)
    asked[0] = batch != 1 or not np.nansum(answers[0]) > 0.5
    asked[-1] = batch == 0 or len(asked) == 2
    return asked


def hidden_when_good(scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Every full score gets lost: what is missing depends on its value, in the worst way."""
    came = as_asked(scores, asked)
    return np.where(came == 1.0, np.nan, came)


MANNERS = {"all answer": (everybody, as_asked), "some are out, and good answers get lost": (out_late, hidden_when_good)}


@pytest.mark.cases(4)
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("table", TABLES)
def test_over_all_orders_a_true_null_has_mean_one_at_most_and_reaches_its_level_seldom(table, chosen, manner):
    (scores, sizes), (who, answer) = TABLES[table], MANNERS[manner]
    gaps = scores[0].mean() - scores.mean(axis=1)
    runs = [played(one, sizes, CHOICES[chosen], who=who, answer=answer) for one in all_orders(scores)]
    for candidate in range(1, len(scores)):
        worst = gaps[candidate] - SURE  # the largest shortfall for which the null is true
        assert np.mean([last_value(run, 0, candidate, worst) for run in runs]) <= 1.0 + 1e-12
        reached = np.array([run.log_against(candidate, np.full(len(gaps), worst))[0] for run in runs])
        for delta in DELTAS:
            assert np.mean(reached >= math.log(1.0 / delta) - 1e-12) <= delta
    for delta in DELTAS:  # whatever the candidate is: one event for all
        assert np.mean([wrongly_used(run, gaps, delta) for run in runs]) <= delta


def wrongly_used(run: ItemProcesses, gaps: np.ndarray, delta: float) -> bool:
    """Whether the best arm was beaten, or rejected against a candidate that is worse by more than was tolerated."""
    return run.beaten(delta)[0] or any(reaches(run, 0, c, gaps[c] - SURE, delta) for c in range(1, len(gaps)))


@pytest.mark.slow
@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("answer", [as_asked, hidden_when_good])
def test_the_same_over_the_orders_of_six_items(chosen, answer):
    gaps = THREE[0].mean() - THREE.mean(axis=1)
    for who in (everybody, out_late):
        runs = [played(one, (1, 2, 1, 1, 1), CHOICES[chosen], who=who, answer=answer) for one in all_orders(THREE)]
        for candidate in (1, 2):
            values = [last_value(run, 0, candidate, gaps[candidate] - SURE) for run in runs]
            assert np.mean(values) <= 1.0 + 1e-12
        for delta in DELTAS:
            assert np.mean([wrongly_used(run, gaps, delta) for run in runs]) <= delta


def test_the_law_is_sharp_for_two_arms():
    """With nothing missing the process of a pair is a martingale: nothing is given away."""
    gap = EVEN[0].mean() - EVEN[1].mean()
    for chosen in ("guessed", "bold", "wild"):
        values = [last_value(played(one, (1, 2, 2), CHOICES[chosen]), 0, 1, gap) for one in all_orders(EVEN)]
        assert np.mean(values) == pytest.approx(1.0, abs=1e-12)


def test_a_bet_of_y_is_the_bet_of_x():
    """lambda (y - mu) = 2 lambda (x - m), with x = (1 + r_c - r_j) / 2 and m as it is usually written."""
    processes = played(EVEN, (1, 1, 2), bold(1))
    epsilon, num_items, total, value = 0.2, EVEN.shape[1], 0.0, 1.0
    stakes = np.concatenate([one.stakes[0] for one in processes.played])
    for drawn in range(4):
        x = (1.0 + EVEN[1, drawn] - EVEN[0, drawn]) / 2.0
        m = (num_items * (1.0 - epsilon) / 2.0 - total) / (num_items - drawn)
        value *= 1.0 + 2.0 * stakes[drawn] * (x - m)
        total += x
    assert last_value(processes, 0, 1, epsilon) == pytest.approx(value, rel=1e-12)


def test_an_unanswered_item_counts_with_the_least_that_it_can_be():
    answers = np.array([[np.nan, 0.4], [0.6, np.nan]])
    processes = after_items(ItemProcesses.start(2, 10), bold(1)(answers, None, 1.0), np.ones(2, bool), answers)
    assert processes.least.tolist() == [0.4, 0.6]
    assert processes.most.tolist() == [1.4, 1.6]
    assert processes.surplus(1)[0] == pytest.approx((1.4 - 0.6 + 8) / 10)


def test_all_items_used_are_the_exact_answer():
    processes = played(THREE, (2, 4), guessed(0.1))
    assert processes.left == 0
    assert processes.upper_bounds(0, 1e-9, epsilon=0.1).tolist() == [0.0, 0.0, 0.0]
    assert processes.beaten(1e-9).tolist() == [False, True, True]
    assert processes.surplus(1)[0] == pytest.approx(THREE[0].mean() - THREE[1].mean())
    gap = THREE[0].mean() - THREE[1].mean()
    assert processes.rejected(1, gap + 0.01, 1e-9).tolist() == [True, True, True]
    assert processes.rejected(1, gap - 0.01, 1e-9).tolist() == [False, True, True]


def test_what_is_left_settles_a_pair_before_the_end():
    scores = np.array([[1.0] * 10, [0.0] * 10])
    processes = played(scores, (5,), guessed(0.1))
    assert not processes.beaten(1e-9)[1]  # 5 points behind with 5 items left: equal is possible
    assert played(scores, (6,), guessed(0.1)).beaten(1e-9)[1]


def test_equal_arms_are_told_to_be_equal():
    rng = np.random.default_rng(3)
    answers = rng.binomial(1, 0.6, 200).astype(float)
    processes = played(np.array([answers, answers]), (2, 8, 30, 60), guessed(0.05))
    assert processes.rejected(0, 0.05, 0.05)[1]
    assert not processes.beaten(0.05).any()


def test_the_upper_bound_is_the_least_shortfall_that_is_rejected():
    rng = np.random.default_rng(5)
    scores = rng.binomial(1, np.array([[0.8], [0.6], [0.5]]), (3, 120)).astype(float)
    processes = played(scores, (2, 8, 30), guessed(0.05))
    bounds = processes.upper_bounds(0, 0.05, epsilon=0.3)
    assert np.all(bounds[1:] > 0.0)
    assert processes.rejected(0, float(bounds[1]), 0.05)[1]
    assert not processes.rejected(0, float(bounds[1]) - 1e-6, 0.05)[1]


def test_answers_that_come_late_replace_the_range():
    scores = np.array([[0.2, 0.8, 0.5], [0.9, 0.1, 0.4]])
    came = scores.copy()
    came[0, 1] = np.nan
    before = after_items(ItemProcesses.start(2, 3), bold(1)(came, None, 1.0), np.ones(2, bool), came)
    after = with_late_answers(before, np.array([0]), np.array([0.8]))
    assert after.least == pytest.approx(scores.sum(axis=1))
    assert after.most == pytest.approx(scores.sum(axis=1))
    assert np.array_equal(after.log_values, before.log_values)


# what is not allowed, and what it would do: each breaks the law that the tests above check


def mean_value(runs: list[ItemProcesses], candidate: int, gap: float) -> float:
    return float(np.mean([last_value(run, 0, candidate, gap) for run in runs]))


GAP = EVEN[0].mean() - EVEN[1].mean()


def test_items_drawn_by_their_scores_break_the_law():
    """The items on which the best arm is worst come first, in every run."""
    sorted_ones = EVEN[:, np.argsort(EVEN[0] - EVEN[1], kind="stable")]
    assert last_value(played(sorted_ones, (1, 1, 1, 1), bold(1)), 0, 1, GAP) > 1.5


def test_stakes_that_see_the_order_break_the_law():
    """Bets on the next item by somebody who knows which one it is."""

    def peeking(scores: np.ndarray) -> ItemProcesses:
        processes = ItemProcesses.start(2, scores.shape[1])
        for place in range(4):
            good = scores[1, place] >= scores[0, place]
            bets = ItemBets(np.array([0.0, 1.0]), np.full(2, 1.0 if good else -1.0), np.full(2, 0.1))
            processes = after_items(processes, bets, np.ones(2, bool), scores[:, place : place + 1])
        return processes

    assert mean_value([peeking(one) for one in all_orders(EVEN)], 1, GAP) > 1.5


def test_an_unanswered_item_counted_0_breaks_the_law():
    def without_best(scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
        came = scores.copy()
        came[0] = 0.0  # was not asked, and is taken to have failed
        return came

    runs = [played(one, (1, 2, 2), bold(1), answer=without_best) for one in all_orders(EVEN)]
    assert mean_value(runs, 1, GAP) > 1.5


def test_an_unanswered_item_left_out_of_the_sums_breaks_the_law():
    """The full scores of the best arm get lost, and are passed over as if the items had not been drawn."""

    def passed_over(scores: np.ndarray) -> ItemProcesses:
        kept = scores[:, ~((scores[0] == 1.0) & (scores[1] == 0.0))]
        processes = ItemProcesses.start(2, scores.shape[1])
        return after_items(processes, bold(1)(kept[:, :0], None, 1.0), np.ones(2, bool), kept)

    assert mean_value([passed_over(one) for one in all_orders(EVEN)], 1, GAP) > 1.5


def test_evidence_against_one_candidate_used_for_another_breaks_the_law():
    """Bets against a good candidate, counted as if it were the bad one for which the shortfall is claimed."""
    scores = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 1], [0, 0, 0, 1, 0]], float)  # .8, .8, .2
    gap = scores[0].mean() - scores[2].mean()

    def counted(run: ItemProcesses) -> ItemProcesses:
        swapped = tuple(replace(one, weights=one.weights[[0, 2, 1]]) for one in run.played)
        return replace(run, played=swapped)

    runs = [played(one, (1, 1, 1), bold(1)) for one in all_orders(scores)]
    assert mean_value(runs, 2, gap) <= 1.0
    assert mean_value([counted(run) for run in runs], 2, gap) > 1.5


def test_a_stake_larger_than_allowed_can_be_lost_twice():
    """Why stakes are capped: without line 3 a factor is negative, and two of them make evidence of two losses."""
    processes = played(EVEN, (1, 1, 1, 1, 1), bold(1))
    for one in processes.played:
        factors = 1.0 + one.gains
        assert np.all(factors >= 0.1 - 1e-12)
    assert math.isfinite(processes.log_values.sum())
