"""Bets on a part of a batch: on what it sees, and nothing on what it does not."""

from dataclasses import replace

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators import noise_mgf_after
from surepick.estimators.running_processes import Flow, MeanProcesses
from surepick.policies.carried import means_rule
from surepick.policies.sequential.state import OpenComparisons

SIGMA = 0.6
NOISE_MGF = noise_mgf_after(sp.SubGaussian(SIGMA), Observations.nothing(3))


def nearly_matched() -> tuple[MeanProcesses, OpenComparisons]:
    """Arm 1 has all the evidence that it needs against arm 0, but for a flow of 1e-7 to the former candidate 2."""
    given = (Flow(2, np.array([0.0, 1e-7, 0.0])), Flow(0, np.array([0.0, 11.0, 0.0])))
    processes = MeanProcesses(np.array([0.0, -5.0, 0.0]), np.ones(3, np.int64), np.array([0.0, 11.0, 0.0]), given)
    scores, scales = np.array([0.0, -1.0, -1.0]), np.full(3, SIGMA)
    return processes, OpenComparisons(0, np.array([1]), np.array([2.0]), 1.0, np.log(10.0), scores, scales)


def test_a_flow_that_is_nearly_zero_is_planned_to_end():
    processes, goal = nearly_matched()
    assert means_rule.means_remaining(processes, goal).pulls[2] >= 1.0


def test_a_part_without_the_candidate_ends_it():
    processes, goal = nearly_matched()
    counts = np.array([0, 0, 2])
    bets = means_rule.place_bets(processes, goal, np.array([2.0]), counts, np.zeros(3), NOISE_MGF)
    after = processes.after(bets.arms, bets.taken, bets.given, Observations(counts, np.zeros(3)), NOISE_MGF)
    assert after.upper_bounds(0, goal.threshold)[1] <= 1.0 < processes.upper_bounds(0, goal.threshold)[1]


def test_a_part_without_the_candidate_bets_on_the_pulls_of_its_rivals():
    processes, goal = MeanProcesses.started(3, 0.0), nearly_matched()[1]
    counts, future = np.array([0, 4, 0]), np.array([8.0, 4.0, 0.0])
    bets = means_rule.place_bets(processes, goal, np.array([2.0]), counts, future, NOISE_MGF)
    assert bets.taken[0] > 0.0
    assert bets.given == {}


def test_nothing_is_bet_on_a_direction_that_a_part_does_not_see():
    """One pull of an arm that is orthogonal to the difference of the candidate and a rival."""
    half = np.sqrt(0.5)
    arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [half, half], [half, -half]])
    asked = {"epsilon": 0.2, "delta": 0.1, "noise": sp.SubGaussian(0.5), "norm_bound": 1.0, "evidence": "carried"}
    policy = sp.make_policy("certified-linear", arms, **asked)
    state = policy.init()
    opening = policy.ask(state)
    whole = np.full(4, 3)
    state = policy.tell(state, opening, Observations(whole, whole * (arms.features @ [1.0, 0.0]))).state
    for arm in (2, 3, 0):
        plan = replace(policy.ask(state), counts=whole, candidate=0, predicted_pulls=12.0)
        one = np.bincount([arm], minlength=4)
        state = policy.tell(state, plan, Observations(one, one * (arms.features @ [1.0, 0.0]))).state
        assert np.all(np.abs(state.vectors.log_values) < 100.0)
        assert np.all(np.abs(state.vectors.flows) < 100.0)
