"""Arms that are withdrawn: what is known of the others then, and where the next batch measures."""

from dataclasses import replace

import numpy as np
import pytest
from changing_lists import policy_of, world_of
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Step
from surepick.errors import InvalidInput
from surepick.estimators.running_processes import Flow
from surepick.policies.sequential import state as states
from surepick.policies.sequential.state import stop_if_decided

WORLD = world_of(3, 2)
POLICY = policy_of(WORLD, 0.05)
WHO = np.array([0])
YES, NO = np.array([True]), np.array([False])


def after(batches: int, policy=POLICY, world=WORLD) -> Step:
    rng, state = np.random.default_rng(5), policy.init()
    for _ in range(batches):
        plan = policy.ask(state)
        step = policy.tell(state, plan, world.pull(plan.counts, rng))
        state = step.state
    return step


def shown_by(step: Step, candidate: int, bounds: list[float]) -> Step:
    """The step, where that candidate shows these bounds and no other arm was tested."""
    found = states.UpperBounds(candidate, np.array(bounds))
    return replace(step, state=replace(step.state, tested=(found,), beaten=found.bounds < 0.0))


def test_who_was_beaten_by_one_who_is_dropped_is_a_rival_again():
    step = shown_by(after(2), 0, [0.0, 5.0, 5.0, -0.1, 5.0])
    assert 3 not in step.state.active
    assert POLICY.withdraw(step, WHO, YES).state.active.tolist() == [1, 2, 3, 4]
    assert POLICY.withdraw(step, WHO, NO).state.active.tolist() == [0, 1, 2, 4]  # 0 is one of those compared


def test_what_others_show_stays():
    step = shown_by(after(2), 1, [-0.1, 0.0, 5.0, -0.1, 5.0])
    assert POLICY.withdraw(step, WHO, YES).state.active.tolist() == [1, 2, 4]


def test_a_rival_that_went_counts_until_it_is_ruled_out():
    state = POLICY.withdraw(after(2), WHO, NO).state
    enough = replace(state, tested=(states.UpperBounds(1, np.array([0.9, 0.0, 0.9, 0.9, 0.9])),))
    lacking = replace(state, tested=(states.UpperBounds(1, np.array([1.1, 0.0, 0.9, 0.9, 0.9])),))
    assert (stop_if_decided(enough, 1.0).finished, stop_if_decided(enough, 1.0).leader) == ("certified", 1)
    assert stop_if_decided(lacking, 1.0).finished == "withdrawn"
    assert POLICY.claim(stop_if_decided(lacking, 1.0)).gap == pytest.approx(1.1)


def test_who_went_is_not_the_answer_however_good():
    state = POLICY.withdraw(after(2), WHO, NO).state
    best = states.UpperBounds(0, np.array([0.0, 0.1, 0.1, 0.1, 0.1]))
    assert stop_if_decided(replace(state, tested=(best,)), 1.0).finished == ""


def test_the_certified_one_goes_in_the_very_batch():
    step = shown_by(after(2), 0, [0.0, 0.1, 0.1, 0.1, 0.1])
    step = replace(step, state=stop_if_decided(step.state, 1.0))
    assert step.state.finished == "certified"
    state = POLICY.withdraw(step, WHO, YES).state
    assert (state.finished, state.leader == 0) == ("", False)


def test_nobody_left_is_refused():
    with pytest.raises(InvalidInput, match="all candidates"):
        POLICY.withdraw(after(1), np.arange(5), np.ones(5, bool))


def test_a_bet_on_pulls_of_one_who_went_starts_anew():
    """Its flow on them can never be matched."""
    step = after(6)
    means = replace(step.state.means, given=(Flow(0, np.array([0.0, 0.3, 0.2, 0.1, 0.1])),))
    state = POLICY.withdraw(replace(step, state=replace(step.state, means=means)), WHO, YES).state
    plan = replace(POLICY.ask(state), candidate=1)
    counts = np.array([0, 20, 20, 20, 20])
    told = POLICY.tell(state, replace(plan, counts=counts), Observations(counts, 0.0 * counts)).state
    assert not told.means.given_to(0)[2:].any()
    assert (told.means.starts[2:] > state.means.starts[2:]).all()


@of_each(
    ("name", "options"),
    [
        ("certified-independent", {}),
        ("certified-independent", {"batch_size": 6}),
        ("certified-linear", {"norm_bound": 2.0}),
        ("certified-linear", {"norm_bound": 2.0, "batch_size": 4}),
        ("certified-kernel", {"norm_bound": 3.0, "kernel": "gaussian:0.5"}),
    ],
)
def test_nobody_who_went_is_asked_for(name, options):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(12, 3))
    world = sp.environments.Environment(
        arms=sp.Arms(features), means=features @ [0.5, 0.2, -0.1], noise=sp.SubGaussian(0.5)
    )
    policy = sp.make_policy(name, world.arms, epsilon=0.2, delta=0.05, noise=world.noise, **options)
    best = np.argsort(-world.means)
    state = policy.withdraw(after(2, policy, world), best[:4], np.ones(4, bool)).state
    while not policy.claim(state).finished and state.round < 2_000:
        plan = policy.ask(state)
        assert plan.total > 0
        assert not plan.counts[best[:4]].any()
        if "batch_size" in options:
            assert plan.total == options["batch_size"]
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    assert policy.claim(state).finished == "certified"
    assert world.means[best[4]] - world.means[state.leader] <= 0.2
