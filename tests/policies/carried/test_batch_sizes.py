"""Batches of a given size, and few of them: what is asked, and what is said when they are over."""

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.certificates.document import write_certificate
from surepick.certificates.verify import verify_certificate
from surepick.core.random_streams import stream
from surepick.errors import InvalidInput
from surepick.policies.sequential.batches import batches_of_a_list, listed_sizes, rounded_batch
from surepick.policies.sequential.engine import BatchSizes, Grid

WORLDS = {
    "independent": (lambda seed: sp.environments.one_better(25, 0.5, seed), "certified-independent", {}),
    "linear": (lambda seed: sp.environments.soare(6, 0.5, seed), "certified-linear", {"norm_bound": 1.0}),
    "equal features": (
        lambda seed: sp.environments.two_clusters(num_arms=60, dim=12, seed=seed),
        "certified-linear",
        {"norm_bound": 0.9},
    ),
}


def policy_for(kind: str, seed: int, **options):
    make, name, own = WORLDS[kind]
    world = make(seed)
    return world, sp.make_policy(name, world.arms, epsilon=0.2, delta=0.05, noise=world.noise, **own, **options)


@pytest.mark.cases(3)
@pytest.mark.parametrize("size", [6, 96])
@pytest.mark.parametrize("kind", WORLDS)
def test_every_batch_has_exactly_the_pulls_that_were_asked_for(kind, size):
    world, policy = policy_for(kind, 1, batch_size=size)
    run = sp.simulate(policy, world, seed=1, max_pulls=20_000)
    assert {row.pulls for row in run.rounds} == {size}
    assert run.verdict == "certified"
    assert run.success


@pytest.mark.cases(3)
@pytest.mark.parametrize("reserve", [0.0, 0.05, 0.99])
@pytest.mark.parametrize("size", [4, 17])
def test_pulls_that_check_the_embedding_are_within_the_batch(size, reserve):
    world, policy = policy_for("equal features", 2, batch_size=size, reserve=reserve)
    state = policy.init()
    for number in range(3):
        plan = policy.ask(state)
        assert plan.counts.sum() == size
        state = policy.tell(state, plan, world.pull(plan.counts, stream(2, "rewards", number))).state


def test_without_features_each_arm_has_its_turn_before_any_has_a_second():
    world, policy = policy_for("independent", 3, batch_size=10)
    state, seen = policy.init(), np.zeros(25, np.int64)
    for number in range(3):
        plan = policy.ask(state)
        assert plan.candidate is None
        assert plan.counts.max() == 1
        assert np.diff(np.flatnonzero(plan.counts)).max() <= 5  # spread over the list
        seen += plan.counts
        state = policy.tell(state, plan, world.pull(plan.counts, stream(3, "rewards", number))).state
    assert seen.min() == 1


def test_arms_that_never_answer_do_not_hold_up_the_others():
    world, policy = policy_for("independent", 4, batch_size=5)
    state, asked = policy.init(), np.zeros(25, np.int64)
    for number in range(12):
        plan = policy.ask(state)
        came = np.where(np.arange(25) < 8, 0, plan.counts)
        asked += plan.counts
        state = policy.tell(state, plan, world.pull(came, stream(4, "rewards", number))).state
    assert asked[8:].sum() > 20


@pytest.mark.cases(3)
@pytest.mark.parametrize("most", [2, 3, 6])
@pytest.mark.parametrize("kind", WORLDS)
def test_a_study_has_no_more_batches_than_it_is_allowed(kind, most):
    certified = 0
    for seed in range(6):
        world, policy = policy_for(kind, seed, max_batches=most)
        run = sp.simulate(policy, world, seed=seed)
        assert len(run.rounds) <= most
        assert run.verdict in ("certified", "budget-exhausted")
        assert (run.ended_by == "policy") == (run.verdict == "certified")
        certified += run.verdict == "certified"
    assert certified >= 3


def test_few_batches_are_larger_and_many_are_as_usual():
    pulls = {}
    for most in (2, 5, 40):
        runs = [policy_for("independent", seed, max_batches=most) for seed in range(3)]
        pulls[most] = np.mean([sp.simulate(policy, world, seed=0).pulls for world, policy in runs])
    usual = np.mean([sp.simulate(*reversed(policy_for("independent", seed)), seed=0).pulls for seed in range(3)])
    assert pulls[2] > 1.5 * pulls[5] > 1.5 * usual
    assert pulls[40] == pytest.approx(usual, rel=0.3)


def test_batches_that_are_over_end_the_study_without_a_certificate_and_say_so(tmp_path):
    world, policy = policy_for("independent", 5, batch_size=30, max_batches=2)
    run = sp.simulate(policy, world, seed=5)
    assert (run.verdict, run.ended_by, run.success, run.pulls) == ("budget-exhausted", "batches", False, 60)
    assert run.study.ask() is None
    assert "All that the study was allowed to measure is measured" in run.certificate.reason
    assert run.certificate.promise.startswith("Not certified")
    progress = str(run.study.progress())
    assert progress.startswith("not certified within the batches that were allowed, after 2 rounds and 60 measurements")
    assert "is the answer" not in progress
    checked = verify_certificate(write_certificate(run.study, tmp_path / "certificate.json"))
    assert (checked.holds, checked.verdict) == (True, "budget-exhausted")


def test_a_batch_of_which_nothing_came_is_none_of_those_that_are_allowed():
    world, policy = policy_for("linear", 6, max_batches=3)
    state = policy.init()
    plan = policy.ask(state)
    state = policy.tell(state, plan, sp.Observations(0 * plan.counts, 0.0 * plan.counts)).state
    assert policy.ask(state).counts.sum() == plan.counts.sum()
    state = policy.tell(state, plan, world.pull(plan.counts, stream(6, "rewards", 0))).state
    assert state.round == 2
    assert policy.claim(state).finished == ""


def test_the_database_keeps_the_sizes_and_goes_on_by_them(tmp_path):
    world, policy = policy_for("linear", 7, batch_size=12, max_batches=40)
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    study = sp.create_study(url, "plates", policy)
    study.tell(study.ask(), np.repeat(world.means, study.ask().counts))
    again = sp.open_study(url, "plates")
    assert again.policy.spec["batch_size"] == 12
    assert again.policy.spec["max_batches"] == 40
    assert again.ask().total == 12


def test_a_study_without_them_has_the_settings_that_it_always_had():
    _, policy = policy_for("linear", 8)
    assert not {"batch_size", "max_batches"} & set(policy.spec)


@of_each(
    ("options", "said"),
    [
        ({"batch_size": 96, "largest_batch": 50}, "give one of the two"),
        ({"batch_size": 3}, "4 or more: smaller batches tell a candidate"),
        ({"max_batches": 1}, "2 or more: the first batch finds a candidate"),
        ({"batch_size": 9.5}, "whole number"),
        ({"batch_size": 96, "evidence": "epochs"}, "evidence is 'epochs'; choose one of 'carried'"),
    ],
)
def test_what_has_no_meaning_is_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        policy_for("independent", 0, **options)


@of_each("name", ["action-elimination", "lucb", "linear-embedding", "certified-neural"])
def test_policies_whose_batches_are_their_own_say_so(name):
    with pytest.raises(InvalidInput, match=rf"{name} has no option 'batch_size'"):
        sp.make_policy(name, sp.Arms(np.eye(3)), epsilon=0.1, delta=0.1, noise="bernoulli", batch_size=96)


# --- counts


def test_pulls_fewer_than_the_arms_of_a_design_reach_all_of_them_in_turn():
    weights = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    batches = np.array([rounded_batch(weights, 3, number) for number in range(1, 41)])
    assert (batches.sum(axis=1) == 3).all()
    assert (np.abs(batches - 3 * weights) < 1.0).all()  # each share rounded up or down
    assert batches.sum(axis=0) / 120 == pytest.approx(weights, abs=0.02)


def test_pulls_enough_for_a_design_measure_each_of_its_arms():
    assert (rounded_batch(np.array([0.97, 0.01, 0.0, 0.02]), 4, 1) > 0).tolist() == [True, True, False, True]


@of_each(("num_arms", "total"), [(7, 3), (7, 7), (7, 20), (100, 96), (5, 1)])
def test_the_first_batches_go_through_the_list(num_arms, total):
    batches = batches_of_a_list(num_arms, total)
    assert (batches - 1) * total < num_arms <= batches * total
    counts = [listed_sizes(num_arms, total, number) for number in range(1, batches + 1)]
    assert all(one.sum() == total for one in counts)
    assert np.ptp(np.sum(counts, axis=0)) <= 1
    assert np.sum(counts, axis=0).min() >= 1


def test_where_few_batches_are_allowed_they_grow_along_a_geometric_grid():
    grid, sizes = Grid.of(10, 20, sigma=0.5, epsilon=0.1, threshold=3.0), BatchSizes(None, None, 4)
    assert grid.end == 4 * 10 * 3.0 * 25
    first = sizes.first(20, grid)
    assert first == pytest.approx(20 * (3000 / 20) ** 0.25, abs=1)
    assert sizes.opening(2, first, grid) + first == pytest.approx(20 * (3000 / 20) ** 0.5, abs=1)
    assert sizes.testing(2, first, 1e6, grid) == pytest.approx(first, abs=400)
    assert sizes.testing(4, first, 1234.0, grid) == 1234.0
    assert BatchSizes(None, None, None).testing(4, first, 1000.0, grid) == min(200.0, first)
