"""The gap that is certified within a budget is hardly ever too small, whoever looks, whenever, and for any candidate.

docs/budget.md, lines 51 to 53. A study is wrong here if after any batch the bound of the best arm against any other is
below what it is better by: more than a certificate says. The saboteur gives all weight to
who turns out best, and is noticed; that of intervals is in tests/estimators/test_student_intervals.py.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed

import surepick as sp
from surepick.core.random_streams import streams
from surepick.core.records import rows_of
from surepick.noise import Normal
from surepick.policies.mixture_rules import MixtureRules, Rows
from surepick.studies.rehearsal import received_as_drawn

DELTA = 0.1
QUICK_AND_ALL = [400, pytest.param(10_000, marks=pytest.mark.slow)]


def world(means, noise) -> sp.environments.Environment:
    return sp.environments.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=noise)


SPREAD = (1.0, 0.1, 3.0, 0.3, 1.0, 1.0)
HOSTILE = {  # name: (what is drawn, what is declared, the budget); arm 0 is the best
    "two alike": (world([0.0, 0.0], sp.SubGaussian(1.0)), sp.SubGaussian(1.0), 60),
    "ten, one a little better": (world([0.2, *[0.0] * 9], sp.SubGaussian(1.0)), sp.SubGaussian(1.0), 120),
    "0 and 1, near 0": (world([0.1, 0.02, 0.02], sp.Bernoulli()), sp.Bernoulli(), 600),
    "0 and 1, few": (world([0.6, 0.4, 0.4, 0.2], sp.Bernoulli()), sp.Bernoulli(), 60),
    "normal, nobody knows how": (world([0.3, 0.2, 0.0, 0.0, -0.5, 0.1], sp.SubGaussian(SPREAD)), Normal(), 90),
}


def rules_of(name: str, rules: type[MixtureRules] = MixtureRules) -> MixtureRules:
    environment, noise, budget = HOSTILE[name]
    arms = environment.arms
    policy = sp.make_policy("certified-independent", arms, delta=DELTA, noise=noise, budget=budget)
    return rules(policy.problem, None, budget)


def ever_too_small(name: str, runs: int, rules: type[MixtureRules] = MixtureRules) -> int:
    """In how many studies the best arm's bound is ever below the truth, of any candidate and after any batch."""
    environment, play = HOSTILE[name][0], rules_of(name, rules)
    seeds, rows, planned, wrong = np.arange(runs), None, play.first(runs), np.zeros(runs, bool)
    for number in itertools.count():
        drawn = environment.law.draw_many(planned.counts, streams(seeds.tolist(), "rewards", number))
        rows = play.tell(rows, planned, received_as_drawn(drawn, minimize=False))
        wrong[seeds] |= (rows.bounds[:, 0] < environment.gaps).any(axis=1) | rows.beaten[:, 0]
        left = np.flatnonzero(~rows.finished)
        if len(left) == 0:
            return int(np.count_nonzero(wrong))
        rows, seeds = rows_of(rows, left), seeds[left]
        planned = play.ask(rows)
    raise AssertionError


@pytest.mark.parametrize("runs", QUICK_AND_ALL)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_bound_is_too_small(name, runs):
    wrong = ever_too_small(name, runs)
    print(f"\n{name}: {wrong} of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


class ChosenAfterwards(MixtureRules):
    """The comparator that holds most gets all of the weight."""

    def upper_bounds(self, rows: Rows, rivals):
        whole = math.log(rows.log_values.shape[1] - 1)
        return MixtureRules.upper_bounds(self, replace(rows, log_values=rows.log_values + whole), rivals)


def test_a_comparator_that_is_chosen_afterwards_is_noticed():
    runs = 400
    wrong = ever_too_small("ten, one a little better", runs, ChosenAfterwards)
    assert wrong > failures_allowed(runs, DELTA)
