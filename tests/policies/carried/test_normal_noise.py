"""Certified elimination where scales are unknown: right answers, what is refused, and the alarm for far results."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.json import from_json, to_json
from surepick.estimators import normal_mgf_after
from surepick.policies.base import Problem, stopped
from surepick.policies.model_checks import spread_of_repeats, with_failed_checks

ARMS = sp.Arms(ids=range(6))
SCALES = np.array([1.0, 0.1, 0.3, 0.2, 0.6, 0.4])
WORLD = sp.environments.Environment(
    arms=ARMS, means=np.array([0.0, -0.5, -0.6, -1.0, -0.8, -3.0]), noise=sp.SubGaussian(SCALES)
)
ASKED = {"epsilon": 0.2, "delta": 0.05, "noise": sp.Normal()}


def test_the_best_arm_is_certified_with_what_the_scales_cost_in_words():
    policy = sp.make_policy("certified-independent", ARMS, **ASKED)
    run = sp.simulate(policy, WORLD, seed=1)
    assert run.verdict == "certified"
    assert run.success
    assert "normally distributed with a standard deviation of the candidate's own" in run.certificate.assumptions[-1]
    assert "0.001, which is part of delta" in run.certificate.assumptions[-1]


def test_a_study_begins_with_repeats_and_then_measures_what_is_noisy():
    policy = sp.make_policy("certified-independent", ARMS, **ASKED)
    state, rng = policy.init(), np.random.default_rng(2)
    first = policy.ask(state).counts
    assert first.tolist() == [5] * 6
    while not stopped(policy, state):
        plan = policy.ask(state)
        state = policy.tell(state, plan, WORLD.pull(plan.counts, rng)).state
    assert state.seen.counts[0] > 3 * state.seen.counts[1]


def test_units_do_not_matter():
    """A thousand times larger rewards and epsilon: the same plans."""
    plans = []
    for factor in (1.0, 1000.0):
        policy = sp.make_policy("certified-independent", ARMS, **{**ASKED, "epsilon": 0.2 * factor})
        rng, state = np.random.default_rng(3), policy.init()
        for _ in range(5):
            plan = policy.ask(state)
            seen = WORLD.pull(plan.counts, rng)
            told = sp.Observations(seen.counts, factor * seen.sums, factor**2 * seen.squares)
            state = policy.tell(state, plan, told).state
        plans.append(state.seen.counts)
    assert plans[0].tolist() == plans[1].tolist()


def test_batches_of_a_given_size_repeat_every_arm_first():
    policy = sp.make_policy("certified-independent", ARMS, **ASKED, batch_size=4)
    state, rng = policy.init(), np.random.default_rng(4)
    for _ in range(8):
        plan = policy.ask(state)
        assert plan.counts.sum() == 4
        state = policy.tell(state, plan, WORLD.pull(plan.counts, rng)).state
    assert state.seen.counts.min() >= 5
    assert from_json(type(state), to_json(state)) == state


def rewards_of(tails: str, rng: np.random.Generator, counts: np.ndarray) -> sp.Observations:
    """Sums and squares of rewards of variance 1: normal ones, or a far one in every 50."""
    sums, squares = np.zeros(len(counts)), np.zeros(len(counts))
    for arm, number in enumerate(counts):
        rewards = rng.normal(WORLD.means[arm], 0.3, number)
        if tails == "heavy":
            rewards = rewards + 6.0 * (rng.random(number) < 0.02)
        sums[arm], squares[arm] = rewards.sum(), (rewards**2).sum()
    return sp.Observations(counts, sums, squares)


@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_results_that_are_far_outside_are_an_alarm(tails):
    policy = sp.make_policy("certified-independent", ARMS, **{**ASKED, "epsilon": 0.02})
    noticed = 0
    for seed in range(10):
        state, rng = policy.init(), np.random.default_rng([seed, 5])
        for _ in range(25):
            plan = policy.ask(state)
            state = policy.tell(state, plan, rewards_of(tails, rng, plan.counts)).state
            if stopped(policy, state):
                break
        noticed += len(state.alarms)
        said = sp.policies.verdict.certificate_of(policy, state)
        assert not state.alarms or said.verdict in {"heuristic", "not-yet"}
        assert ("speak against normal noise" in said.reason) == bool(state.alarms and said.verdict == "heuristic")
    assert noticed == 0 if tails == "normal" else noticed >= 5


@pytest.mark.parametrize("known", [True, False])
def test_the_alarm_names_the_candidate_once(known):
    """By its id, or by its number where nobody knows the ids."""
    arms = sp.Arms(ids=["left", "middle", "right"])
    problem = Problem(3, 0.1, 0.05, sp.Normal(), arms=arms if known else None)
    past = sp.Observations([50] * 3, [0.0] * 3, [50.0] * 3)
    mgf, alarms = normal_mgf_after(past, 1e-3), ()
    for arm, name in ((1, "'middle'" if known else "number 1"), (2, "'right'" if known else "number 2")):
        sums = np.where(np.arange(3) == arm, 50.0, 0.0)
        said = spread_of_repeats(problem, mgf, past, sp.Observations([1] * 3, sums, sums**2))
        assert f"given those before them, of {name}:" in said
        alarms = with_failed_checks(alarms, (said,))
    assert len(alarms) == 1
    everybody = spread_of_repeats(problem, mgf, past, sp.Observations([1] * 3, [50.0] * 3, [2500.0] * 3))
    assert "of 3 candidates, most of all of " in everybody


def test_totals_without_squares_are_refused():
    policy = sp.make_policy("certified-independent", ARMS, **ASKED)
    study = sp.Study(policy)
    batch = study.ask()
    with pytest.raises(sp.InvalidInput, match="come without squares"):
        study.tell_totals(list(batch.ids), batch.counts, np.ones(6))
