"""Sums of money are exact, whatever the prices."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import surepick as sp
from surepick.policies.prices import Costs, added, checked_budget, cost_of
from surepick.text import money

ASKED = {"epsilon": 0.1, "delta": 0.1, "noise": "subgaussian:1"}
CENTS = st.integers(1, 10**7).map(lambda cents: cents / 100)


def test_three_times_a_tenth_is_three_tenths():
    prices = Costs(np.array([0.1, 0.7]), batch=0.2)
    assert prices.total([3, 0], batches=0) == 0.3
    assert prices.total([3, 1], batches=2) == 1.4
    assert added(0.1, 0.2) == 0.3
    assert cost_of(0.1, 3) == 0.3


@given(st.lists(st.tuples(CENTS, st.integers(0, 10**6)), min_size=1, max_size=20), CENTS, st.integers(0, 50))
def test_sums_are_those_of_whole_cents(rows, batch, batches):
    costs, pulls = zip(*rows, strict=True)
    cents = sum(round(100 * cost) * number for cost, number in rows) + round(100 * batch) * batches
    total = Costs(np.array(costs), batch).total(np.array(pulls), batches=batches)
    assert total == float(Fraction(cents, 100))
    taken = {place: number for place, number in enumerate(pulls) if number}
    assert Costs(np.array(costs), batch).spent(taken, len(rows), batches=batches) == total


def test_prices_are_those_of_the_arms_and_of_the_policy():
    plain, priced = sp.Arms(ids=list("abc")), sp.Arms(ids=list("abc"), costs=[1.0, 2.0, 4.0])
    assert Costs.of(sp.make_policy("certified-independent", plain, **ASKED)) is None
    assert Costs.of(sp.make_policy("lucb", priced, **ASKED)) == Costs(priced.costs)
    dear = Costs.of(sp.make_policy("certified-independent", plain, batch_cost=5.0, **ASKED))
    assert dear == Costs(None, 5.0)
    assert dear.total([1, 2, 0], batches=2) == 13.0  # a measurement costs 1 where only batches have a price


def test_a_budget_without_prices_or_without_meaning_is_refused():
    prices = Costs(np.array([1.0]))
    assert checked_budget(None, None) is None
    assert checked_budget(5, prices) == 5.0
    with pytest.raises(sp.InvalidInput, match=r"nothing says what a measurement costs\. Give the candidates costs"):
        checked_budget(5.0, None)
    for wrong in (-1.0, math.inf, math.nan, "5"):
        with pytest.raises(sp.InvalidInput, match="max_cost is"):
            checked_budget(wrong, prices)


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0.0, "0"), (0.0035, "0.0035"), (7.5, "7.5"), (412.5, "412.50"), (1204.0, "1,204"), (9999.999, "10,000")],
)
def test_amounts_as_people_write_them(amount, words):
    assert money(amount) == words
