"""Every policy keeps the protocol: the same tests for each name in the registry."""

import copy

import numpy as np
import pytest
from named_policies import FEATURES, MEANS, NAMES, make

import surepick as sp
from surepick.core.json import from_json, to_json
from surepick.core.observations import Observations
from surepick.policies.base import Policy, name_of, stopped
from surepick.policies.certificate import certificate_of

HEURISTIC = {  # they end without a certificate
    "unknown-misspecification",
    "neural-embedding",
    "means-neural-rule",
    "sequential-halving",
}


def noiseless(plan, means=MEANS) -> Observations:
    return Observations(plan.counts, plan.counts * means, plan.counts * means**2)


def play(policy: Policy, means=MEANS, most: int = 5000, asked: list[sp.Plan] | None = None):
    """Until its own stop; a policy that never stops is told to after 12 plans. `asked` is given the plans."""
    state = policy.init()
    for number in range(most):
        if stopped(policy, state) or (policy.traits.stops == "never" and number == 12):
            return state
        plan = policy.ask(state)
        if asked is not None:
            asked.append(plan)
        state = policy.tell(state, plan, noiseless(plan, means)).state
    raise AssertionError(f"{name_of(policy)} did not stop")


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


def test_it_is_a_policy(name):
    policy = make(name, sp.Arms(FEATURES))
    assert isinstance(policy, Policy)
    assert policy.traits.stops in ("own", "never", "budget")


def test_ask_is_repeatable_and_changes_nothing(name):
    policy = make(name, sp.Arms(FEATURES))
    state = policy.init()
    before = copy.deepcopy(state)
    assert policy.ask(state) == policy.ask(state)
    assert state == before


def test_tell_is_repeatable_and_changes_nothing(name):
    policy = make(name, sp.Arms(FEATURES))
    state = policy.init()
    plan = policy.ask(state)
    before = copy.deepcopy((state, plan))
    first, second = (policy.tell(state, plan, noiseless(plan)) for _ in range(2))
    assert first.state == second.state
    assert first.record == second.record
    assert (state, plan) == before


def test_the_state_survives_json_at_every_step(name):
    policy = make(name, sp.Arms(FEATURES))
    state = policy.init()
    for _ in range(12):
        if stopped(policy, state):
            break
        assert from_json(type(policy.init()), to_json(state)) == state
        plan = policy.ask(state)
        assert from_json(sp.Plan, to_json(plan)) == plan
        state = policy.tell(state, plan, noiseless(plan)).state
    assert from_json(type(policy.init()), to_json(state)) == state


def test_the_spec_rebuilds_an_equal_policy(name):
    arms = sp.Arms(FEATURES)
    policy = make(name, arms)
    assert policy.spec["name"] == name
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    assert from_json(dict, to_json(policy.spec)) == policy.spec
    other = make(name, arms, delta=0.1)
    assert sp.make_policy(arms=arms, **other.spec) != policy


def test_active_only_shrinks_and_never_empties(name):
    policy = make(name, sp.Arms(FEATURES))
    state, active = policy.init(), set(range(4))
    for _ in range(300):
        if stopped(policy, state):
            break
        plan = policy.ask(state)
        step = policy.tell(state, plan, noiseless(plan))
        state, left = step.state, set(step.record.active.tolist())
        assert left
        if policy.traits.eliminates:
            assert left <= active
        active = left


def test_noiseless_rewards_find_the_best_arm(name):
    policy = make(name, sp.Arms(FEATURES))
    state = play(policy)
    assert policy.claim(state).leader == int(np.argmax(MEANS))
    assert certificate_of(policy, state).verdict == ("heuristic" if name in HEURISTIC else "certified")


def test_its_traits_are_true(name):
    policy = make(name, sp.Arms(FEATURES))
    traits = policy.traits
    assert traits.uses_features == (policy != make(name, sp.Arms(2.0 * FEATURES)))
    asked: list[sp.Plan] = []
    state = play(policy, asked=asked)
    assert (traits.certifies == "candidate") == any(plan.candidate is not None for plan in asked)
    assert (traits.certifies == "nothing") == (certificate_of(policy, state).verdict != "certified")


def test_one_arm_needs_no_pull(name):
    policy = make(name, sp.Arms([[1.0, 2.0]]))
    state = policy.init()
    answer = certificate_of(policy, state)
    assert stopped(policy, state)
    assert (answer.arm, answer.pulls, answer.verdict, answer.certified_gap) == (0, 0, "certified", 0.0)


def test_two_identical_arms_do_not_rule_out_each_other(name):
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    means = np.array([0.9, 0.9, 0.1])
    policy = make(name, sp.Arms(features))
    state = play(policy, means)
    assert policy.claim(state).leader in (0, 1)
    if policy.traits.eliminates:
        assert {0, 1} <= set(state.active.tolist())


def test_a_gap_bound_below_epsilon_needs_no_pull(name):
    policy = make(name, sp.Arms(FEATURES), gap_bound=0.05)
    if policy.traits.stops == "never":
        assert not stopped(policy, policy.init())
        return
    answer = certificate_of(policy, policy.init())
    assert stopped(policy, policy.init())
    assert (answer.pulls, answer.verdict) == (0, "certified")
    assert "every arm is epsilon-best" in answer.reason


def test_an_unfinished_study_says_so(name):
    policy = make(name, sp.Arms(FEATURES))
    answer = certificate_of(policy, policy.init())
    assert answer.verdict == ("heuristic" if policy.traits.stops == "never" else "not-yet")


def test_a_plan_that_comes_back_short_goes_on(name):
    """Missing results never end in a false certificate: the widths are those of what came."""
    policy = make(name, sp.Arms(FEATURES))
    state = policy.init()
    plan = policy.ask(state)
    nothing = Observations.nothing(4)
    step = policy.tell(state, plan, nothing)
    assert not stopped(policy, step.state)
    assert certificate_of(policy, step.state).verdict != "certified"
    assert policy.ask(step.state).total > 0


def test_a_constant_added_to_every_reward_changes_nothing_without_features():
    policy = make("action-elimination", sp.Arms(FEATURES))
    plain, shifted = play(policy), play(policy, MEANS + 10.0)
    assert policy.claim(plain).leader == policy.claim(shifted).leader
    assert np.array_equal(plain.active, shifted.active)


@pytest.mark.parametrize("settings", [True, False])
def test_paper_settings_are_options(name, settings):
    arms = sp.Arms(FEATURES)
    chosen = sp.paper_settings(name)
    assert not {"norm_bound", "gamma", "dim"} & set(chosen)
    policy = make(name, arms, **chosen) if settings else make(name, arms)
    assert policy.claim(play(policy)).leader == int(np.argmax(MEANS))


def test_unknown_options_are_refused_with_the_known(name):
    with pytest.raises(sp.InvalidInput, match=r"no option 'colour'; it knows .*gap_bound"):
        make(name, sp.Arms(FEATURES), colour="red")
