"""The control on plain means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from algorithm_two import USUAL, means_rule, told
from together import of_each

import surepick as sp
from surepick.core.observations import Observations


def test_plain_means_are_measured_equally_often():
    """tau = 2 |S|: N_1 = ceil(4 * 1.1 * 2 * 5 * log(25 / .00625)) = 365, 73 each."""
    policy = means_rule(5)
    plan = policy.ask(policy.init())
    assert plan.counts.tolist() == [73] * 5
    assert (plan.dim, plan.design_value, plan.lower_bound) == (5, 10.0, 10.0)
    state = told(policy, policy.init(), [0.9, 0.85, 0.1, 0.2, 0.3])
    assert state.active.tolist() == [0, 1]
    total = 16 * 1.1 * 4 * math.log(25 * 32 / 0.05)
    assert policy.ask(state).counts.tolist() == [math.ceil(math.ceil(total) / 2)] * 2 + [0] * 3


@of_each("missing", [[0], [1], [0, 1], [0, 3]])
def test_an_arm_without_a_mean_is_neither_dropped_nor_recommended(missing):
    """Means .9, .85, .1, .2 all lowered by 5: a mean of 0 for what is missing would win."""
    policy = means_rule(4)
    means, plan = np.array([0.9, 0.85, 0.1, 0.2]) - 5.0, policy.ask(policy.init())
    counts = np.where(np.isin(np.arange(4), missing), 0, plan.counts)
    state = policy.tell(policy.init(), plan, Observations(counts, counts * means)).state
    left = np.delete(means, missing)
    assert set(missing) <= set(state.active.tolist())
    assert state.leader not in missing
    assert means[state.leader] == left.max()
    assert {arm for arm in state.active.tolist() if arm not in missing} == {
        arm for arm in range(4) if arm not in missing and left.max() - means[arm] < 0.1
    }


def test_nothing_at_all_is_asked_for_again():
    policy = means_rule(4)
    state = policy.tell(policy.init(), policy.ask(policy.init()), Observations.nothing(4)).state
    assert state.active.tolist() == [0, 1, 2, 3]
    assert policy.ask(state) == policy.ask(policy.init())


def test_the_control_does_not_look_at_features():
    policies = [means_rule(4), sp.make_policy("means-neural-rule", sp.Arms(ids=list("abcd")), **USUAL)]
    assert policies[0] == policies[1]
    with pytest.raises(sp.InvalidInput, match="has no option 'width'"):
        means_rule(4, width=16)
