"""Simulation: a run is a function of its seed, and what needs the truth is computed beside the policy, not in it."""

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.environments.rewards import NormalRewards
from surepick.simulation import Run

FEATURES = np.eye(4)
MEANS = np.array([0.0, 1.0, 0.95, 0.2])


def environment(means=MEANS, **options) -> sp.environments.Environment:
    return sp.environments.Environment(
        arms=sp.Arms(FEATURES, list("abcd")), means=means, noise=sp.SubGaussian(0.3), **options
    )


def make_policy(name="action-elimination", epsilon=0.2, **options):
    return sp.make_policy(name, environment().arms, epsilon=epsilon, delta=0.05, noise="subgaussian:0.3", **options)


def timeless(run: Run) -> Run:
    return replace(run, seconds=0.0)


@pytest.mark.parametrize("name", ["action-elimination", "rage"])
def test_the_same_seed_gives_the_same_run(name):
    policy, world = make_policy(name), environment()
    first, again = (sp.simulate(policy, world, seed=3) for _ in range(2))
    other = sp.simulate(policy, world, seed=4)
    assert timeless(first) == timeless(again)
    assert timeless(first) != timeless(other)


def test_a_run_tells_what_its_certificate_tells():
    run = sp.simulate(make_policy(), environment())
    answer = run.certificate
    assert (run.best_arm, run.arm, run.pulls, run.verdict) == (answer.best_arm, answer.arm, answer.pulls, "certified")
    assert run.rounds == answer.rounds
    assert run.rounds[-1].total_pulls == run.pulls
    assert run.best_arm == "abcd"[run.arm]
    assert run.true_gap == pytest.approx(1.0 - MEANS[run.arm])
    assert run.success


def test_seconds_are_wall_clock_time():
    started = time.perf_counter()
    run = sp.simulate(make_policy(), environment())
    assert 0.0 < run.seconds <= time.perf_counter() - started


def test_the_plan_is_shown_before_it_is_pulled():
    plans = []

    def on_plan(plan, study):
        assert study.ask() == plan
        assert study.certificate().pulls == sum(earlier.total for earlier in plans)
        plans.append(plan)

    run = sp.simulate(make_policy(), environment(), on_plan=on_plan)
    assert sum(plan.total for plan in plans) == run.pulls
    assert timeless(run) == timeless(sp.simulate(make_policy(), environment()))


# the budget


def test_a_plan_that_would_pass_the_budget_is_not_pulled():
    world, policy, plans = environment(), make_policy(), []
    free = sp.simulate(policy, world)
    run = sp.simulate(policy, world, max_pulls=free.pulls - 1, on_plan=lambda plan, study: plans.append(plan.total))
    assert run.pulls == sum(plans) < free.pulls
    assert run.verdict == run.certificate.verdict == "budget-exhausted"
    assert f"budget of {free.pulls - 1:,} pulls" in run.certificate.reason
    assert run.rounds == free.rounds[: len(run.rounds)]


def test_a_budget_that_is_just_enough_changes_nothing():
    world, policy = environment(), make_policy()
    free = sp.simulate(policy, world)
    assert timeless(sp.simulate(policy, world, max_pulls=free.pulls)) == timeless(free)


def test_an_exhausted_budget_is_no_success_even_with_the_right_arm():
    world, policy = environment(), make_policy()
    run = sp.simulate(policy, world, max_pulls=sp.simulate(policy, world).pulls - 1)
    assert world.is_epsilon_best(run.arm, policy.problem.epsilon)
    assert not run.success
    assert run.best_arm == "abcd"[run.arm]


def test_no_budget_at_all():
    run = sp.simulate(make_policy(), environment(), max_pulls=0)
    assert (run.pulls, run.verdict, run.success, run.rounds, run.oracle_pulls) == (
        0,
        "budget-exhausted",
        False,
        (),
        None,
    )


def test_a_plan_that_is_made_too_late_is_not_pulled(monkeypatch):
    """The clock that is read once a plan goes on by a second each time."""
    ticks = itertools.count()
    monkeypatch.setattr("surepick.studies.closed_loop.time.monotonic", lambda: float(next(ticks)))
    world, policy, plans = environment(), make_policy(), []
    free = sp.simulate(policy, world)
    run = sp.simulate(policy, world, max_seconds=3, on_plan=lambda plan, study: plans.append(plan.total))
    assert len(plans) == 2
    assert run.pulls == sum(plans) < free.pulls
    assert (run.verdict, run.ended_by, run.success) == ("budget-exhausted", "seconds", False)
    assert "The time allowed, 3 s, is over." in run.certificate.reason
    assert (free.ended_by, sp.simulate(policy, world, max_pulls=1).ended_by) == ("policy", "pulls")


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_a_time_without_meaning_is_refused(seconds):
    with pytest.raises(sp.InvalidInput, match="max_seconds is"):
        sp.simulate(make_policy(), environment(), max_seconds=seconds)


def test_an_answer_without_pulls_needs_no_budget():
    run = sp.simulate(make_policy(gap_bound=0.1), environment(), max_pulls=0)
    assert (run.pulls, run.verdict) == (0, "certified")


def test_a_negative_budget_is_refused():
    with pytest.raises(sp.InvalidInput, match="max_pulls is -1; it must be zero or more"):
        sp.simulate(make_policy(), environment(), max_pulls=-1)


def test_a_policy_for_other_arms_is_refused():
    world = sp.environments.Environment(arms=sp.Arms(np.eye(2)), means=[0, 1], noise=sp.SubGaussian(0.3))
    with pytest.raises(sp.InvalidInput, match="the policy is for 4 arms and there are 2"):
        sp.simulate(make_policy(), world)


# what needs the truth


@pytest.mark.parametrize("name", ["action-elimination", "rage"])
def test_oracle_pulls_are_read_from_the_trace(name):
    """Counted by hand: the first round after which b and c, the epsilon-best, are alone."""
    found = 0
    for seed in range(3):
        run = sp.simulate(make_policy(name, epsilon=0.06), environment(), seed=seed)
        expected = None
        for row in run.rounds:
            if set(row.active.tolist()) <= {1, 2}:
                expected = row.total_pulls
                break
        assert run.oracle_pulls == expected
        found += expected is not None and expected < run.pulls
        assert run.oracle_pulls is None or run.oracle_pulls <= run.pulls
    assert found > 0


def test_oracle_pulls_are_zero_when_every_arm_is_good():
    run = sp.simulate(make_policy(epsilon=2.0), environment())
    assert run.oracle_pulls == 0
    assert run.pulls > 0


def test_oracle_pulls_are_none_when_a_bad_arm_stays():
    """Stopping early, by the certificate, leaves a and d in the race."""
    means = np.array([0.0, 1.0, 0.99, 0.7])
    policy = make_policy(epsilon=0.25)
    run = next(
        run
        for run in (sp.simulate(policy, environment(means), seed=seed) for seed in range(50))
        if run.verdict == "certified" and 3 in run.rounds[-1].active
    )
    assert run.success
    assert run.oracle_pulls is None


class Undecided:
    """A policy that does not eliminate."""

    traits = sp.Traits(eliminates=False)

    def __init__(self, policy):
        self._policy = policy

    def __getattr__(self, attribute):
        return getattr(self._policy, attribute)


def test_oracle_pulls_are_none_for_policies_that_do_not_eliminate():
    policy = make_policy(epsilon=0.06)
    assert sp.simulate(policy, environment()).oracle_pulls is not None
    assert sp.simulate(Undecided(policy), environment()).oracle_pulls is None


def test_success_is_judged_by_the_true_means():
    """The rewards lie about which arm is best; a certificate cannot know, the environment does."""
    liar = environment(law=NormalRewards(np.array([1.0, 0.0, 0.0, 0.0]), np.full(4, 0.3)))
    run = sp.simulate(make_policy(), liar)
    assert (run.best_arm, run.verdict, run.success) == ("a", "certified", False)
    assert run.true_gap == 1.0


def test_minimizing_is_in_the_users_sign():
    world = environment(minimize=True)
    run = sp.simulate(make_policy(), world)
    mirrored = sp.simulate(make_policy(), environment(-MEANS))
    assert (run.best_arm, run.success, run.certificate.minimize) == ("a", True, True)
    assert run.true_gap == MEANS[run.arm] - MEANS.min()
    assert mirrored.success
    assert mirrored.best_arm == "a"


def test_a_rehearsal_asks_nobody_about_what_it_drew():
    """Rewards far beyond the declared scale: nobody typed them, so the run goes on, and its verdict says it."""
    wild = environment(law=NormalRewards(MEANS, np.full(4, 30.0)))
    # mixtures end after a pull of each, and without repeats nobody sees how far these lie apart
    run = sp.simulate(make_policy("certified-independent", evidence="carried"), wild, max_pulls=2000)
    assert run.pulls > 4
    assert run.verdict != "certified"
    assert "The data speak against the declared noise" in run.certificate.reason
