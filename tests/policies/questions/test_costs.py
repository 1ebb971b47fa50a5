"""Plans of questions weigh what measurements cost; what is proved does not depend on it."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.base import stopped
from surepick.questions import Above

MEANS = np.array([0.0] + [0.5] * 5 + [-0.5] * 5)
COSTS = np.array([1.0] + [1.0, 4.0, 9.0, 16.0, 25.0] * 2)


def money_of(costs, seed):
    """(money at COSTS, plans) of a study that decides who is better than the first arm."""
    arms = sp.Arms(ids=range(len(MEANS)), costs=costs)
    asked = {"epsilon": 0.2, "delta": 0.05, "noise": "subgaussian:1.0"}
    policy = sp.make_policy("certified-independent", arms, **asked, question=Above(control="0"))
    rng, state, plans = np.random.default_rng(seed), policy.init(), []
    while not stopped(policy, state):
        plans.append(policy.ask(state))
        counts = plans[-1].counts
        sums = counts * MEANS + np.sqrt(counts) * rng.standard_normal(len(MEANS))
        state = policy.tell(state, plans[-1], Observations(counts, sums)).state
    return float(state.seen.counts @ COSTS), plans


def test_a_study_that_knows_the_costs_spends_less_money():
    blind = np.mean([money_of(None, seed)[0] for seed in range(12)])
    aware = np.mean([money_of(COSTS, seed)[0] for seed in range(12)])
    assert aware < 0.95 * blind


def test_plans_say_what_the_rest_costs_and_no_bound_on_its_pulls():
    _, plans = money_of(COSTS, 0)
    assert all(plan.lower_bound is None and plan.predicted_cost > plan.predicted_pulls for plan in plans[1:])
    _, plans = money_of(None, 0)
    assert all(plan.predicted_cost is None and plan.lower_bound <= plan.predicted_pulls for plan in plans[1:])


@pytest.mark.parametrize("price", [1.0, 7.0])
def test_equal_costs_change_nothing_that_is_asked(price):
    _, plain = money_of(None, 1)
    _, priced = money_of(np.full(len(MEANS), price), 1)
    assert [plan.counts.tolist() for plan in plain] == [plan.counts.tolist() for plan in priced]
