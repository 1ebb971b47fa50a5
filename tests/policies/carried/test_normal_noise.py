"""Certified elimination where scales are unknown: right answers, what is refused, and the alarm for far results."""

from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.core.records import from_json, to_json
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


@pytest.mark.parametrize(("tails", "studies"), [("normal", 10), ("heavy", 25)])
def test_results_that_are_far_outside_are_an_alarm(tails, studies):
    """In about a quarter of studies: most have too few results to show it."""
    policy = sp.make_policy("certified-independent", ARMS, **{**ASKED, "epsilon": 0.001})
    noticed = 0
    for seed in range(studies):
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
    assert noticed == 0 if tails == "normal" else noticed >= 4


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


# --- with features

FEATURES = sp.Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, -0.8], [0.9, 0.1], [-0.3, 0.7]]))
THETA = np.array([1.0, -0.2])
FEATURED = sp.environments.Environment(arms=FEATURES, means=FEATURES.features @ THETA, noise=sp.SubGaussian(SCALES))


def with_features(**options):
    given = {"norm_bound": 1.1, "epsilon": 0.2, "delta": 0.05, "noise": sp.Normal(), **options}
    return sp.make_policy("certified-linear", FEATURES, **given)


def test_with_features_few_arms_have_repeats_and_single_pulls_no_weight():
    policy = with_features()
    state, rng = policy.init(), np.random.default_rng(6)
    first = policy.ask(state).counts
    assert np.count_nonzero(first) == 2  # they span the plane
    assert first[first > 0].tolist() == [9, 9]
    for looks in range(60):
        plan = policy.ask(state)
        state = policy.tell(state, plan, FEATURED.pull(plan.counts, rng)).state
        if stopped(policy, state):
            break
        flows = state.vectors.lengths
        assert (looks == 0) == (not flows.any())  # the first batch has no bound to be weighed with
    said = sp.policies.verdict.certificate_of(policy, state)
    assert said.verdict == "certified"
    assert FEATURED.is_epsilon_best(said.arm, 0.2)
    assert "normally distributed with a standard deviation of the candidate's own" in said.assumptions[-1]
    assert from_json(type(state), to_json(state)) == state


@pytest.mark.cases(4)
@pytest.mark.parametrize("kernel", [{}, {"kernel": "gaussian:0.01", "dim": 3}])
@pytest.mark.parametrize("options", [{"batch_size": 4}, {"largest_batch": 7}, {"max_batches": 4}, {"batch_cost": 30.0}])
def test_sizes_of_batches_hold_where_scales_are_unknown(kernel, options):
    name = "certified-kernel" if kernel else "certified-linear"
    policy = sp.make_policy(name, FEATURES, norm_bound=12.0, **{**ASKED, "epsilon": 0.5}, **kernel, **options)
    state, rng, totals = policy.init(), np.random.default_rng(7), []
    while not stopped(policy, state) and len(totals) < 200:
        plan = policy.ask(state)
        totals.append(plan.total)
        state = policy.tell(state, plan, FEATURED.pull(plan.counts, rng)).state
    assert state.finished in {"certified", "budget"}
    if "batch_size" in options:
        assert set(totals) == {4}
    if "largest_batch" in options:
        assert max(totals) <= 7
    if "max_batches" in options:
        assert len(totals) <= 4
    if state.finished == "certified":
        assert FEATURED.is_epsilon_best(policy.claim(state).leader, 0.5)


@pytest.mark.parametrize("options", [{"max_batches": 3}, {"batch_cost": 500.0}])
def test_without_features_few_batches_begin_with_enough_repeats_for_a_bound_on_candidates(options):
    policy = sp.make_policy("certified-independent", ARMS, **ASKED, **options)
    state, rng = policy.init(), np.random.default_rng(8)
    first = policy.ask(state).counts
    assert first.min() >= 9
    assert first.sum() == (54 if "max_batches" in options else 250)  # half of what a batch costs
    plans = 0
    while not stopped(policy, state):
        plan = policy.ask(state)
        plans += 1
        state = policy.tell(state, plan, WORLD.pull(plan.counts, rng)).state
    assert plans <= 5
    assert state.finished in {"certified", "budget"}


def test_repeats_that_are_lost_are_asked_for_again():
    policy = with_features()
    state, rng = policy.init(), np.random.default_rng(9)
    plan = policy.ask(state)
    came = np.array(plan.counts)
    lost = int(np.flatnonzero(came)[0])
    came[lost] = 1
    state = policy.tell(state, plan, FEATURED.pull(came, rng)).state
    again = policy.ask(state)
    assert again.candidate is None
    assert again.counts[lost] == plan.counts[lost] - 1
    assert again.counts.sum() == again.counts[lost]


@pytest.mark.parametrize("bent", [0.0, 8.0])
def test_a_lack_of_fit_is_an_alarm_where_scales_are_unknown(bent):
    """A mean that is not linear in the features, by many of its own standard deviations."""
    means = FEATURES.features @ THETA + bent * np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    world = sp.environments.Environment(arms=FEATURES, means=means, noise=sp.SubGaussian(SCALES))
    policy = with_features(epsilon=0.05, norm_bound=20.0)
    found = 0
    for seed in range(4):
        state, rng = policy.init(), np.random.default_rng([seed, 10])
        for counts in (np.full(6, 30), np.full(6, 30)):
            plan = replace(policy.ask(state), counts=counts)
            state = policy.tell(state, plan, world.pull(counts, rng)).state
        found += any("does not describe these rewards" in alarm for alarm in state.alarms)
    assert found == (4 if bent else 0)
