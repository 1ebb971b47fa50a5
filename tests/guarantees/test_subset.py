"""The best candidate leaves a list too long for memory at most as often as was promised, however hostile the list.

All rivals are as good as the best one, or worse by just over the slack. It is lost if it is beaten after any of nine
batches, since a list may be short enough after each, unless it was a candidate itself: these stay.
"""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from bounds import failures_allowed, trials_to_notice, until_clear
from subset_studies import Hostile, biased, circle, simplex, tolerated

from surepick.policies.subset.evidence import Rule

CELLS: dict[str, Callable[[], Hostile]] = {
    "two alike on a circle": lambda: circle(12, 0.3),
    "thirty alike": lambda: simplex(30),
    "five alike that share nothing": lambda: simplex(5),
    "hidden by a bias": lambda: biased(12, 0.05),
    "better by just over the slack": lambda: tolerated(0.2),
}


FEW = trials_to_notice(0.05, 0.3)  # the milder saboteur is wrong in .3 of the runs


@pytest.mark.parametrize(
    ("runs", "delta"), [(FEW, 0.05), *(pytest.param(5000, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3))]
)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.cases(4)
def test_the_best_one_stays_on_the_list(cell, runs, delta):
    hostile = CELLS[cell]()
    policy = hostile.policy(delta)
    lost = until_clear((hostile.loses(policy, policy.rule, seed) for seed in range(runs)), runs, delta)
    print(f"\n{cell}, delta {delta:g}: {lost} of {runs} lost, {failures_allowed(runs, delta)} allowed")
    assert lost <= failures_allowed(runs, delta)


class LessNoise(Rule):
    """A saboteur: it takes the variance of the noise for a tenth of what it is."""

    def gains(self, bet, rows):
        gains, granted = super().gains(bet, rows)
        return 10.0 * gains, granted


class PeekingBets(Rule):
    """A saboteur: bets follow the batch that they are placed on."""

    def gains(self, bet, rows):
        return super().gains(replace(bet, guess=2.0 * bet.slope), rows)


@pytest.mark.parametrize("saboteur", [LessNoise, PeekingBets])
def test_the_bound_would_notice(saboteur):
    hostile, runs = simplex(30), FEW
    policy = hostile.policy(0.05)
    rule = saboteur(*(getattr(policy.rule, each.name) for each in fields(Rule)))
    lost = until_clear((hostile.loses(policy, rule, seed) for seed in range(runs)), runs, 0.05)
    assert lost > failures_allowed(runs, 0.05)
