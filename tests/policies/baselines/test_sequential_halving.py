"""Sequential halving by hand: rounds, shares, who stays, what the verdict says, and the paper's bound."""

import math

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.base import stopped
from surepick.policies.verdict import certificate_of
from surepick_bench.policies.sequential_halving import SequentialHalving, halving_error_bound

USUAL = {"epsilon": 0.1, "delta": 0.05, "noise": sp.Bounded(0, 1)}


def halving(num_arms: int, budget: float = 1000, **changes) -> SequentialHalving:
    return SequentialHalving(sp.Problem(num_arms, **(USUAL | changes)), budget)


def exact(plan: sp.Plan, means) -> Observations:
    return Observations(plan.counts, plan.counts * np.asarray(means, np.float64))


def told(policy, state, means):
    plan = policy.ask(state)
    return policy.tell(state, plan, exact(plan, means)).state


@of_each(("num_arms", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10)])
def test_the_number_of_rounds(num_arms, rounds):
    assert halving(num_arms, budget=20_000).num_rounds == rounds == math.ceil(math.log2(num_arms))


def test_the_shares_and_the_survivors_by_hand():
    """Budget 1000 for 5 arms in 3 rounds: 66 pulls of 5 arms, 111 of 3, 166 of 2."""
    policy, means = halving(5), [0.1, 0.9, 0.5, 0.7, 0.3]
    state = policy.init()
    shares = []
    while not stopped(policy, state):
        shares.append((policy.ask(state).counts.max(), state.active.tolist()))
        state = told(policy, state, means)
    assert shares == [(66, [0, 1, 2, 3, 4]), (111, [1, 2, 3]), (166, [1, 3])]
    assert (state.leader, state.pulls, state.finished, state.active.tolist()) == (1, 995, "budget", [1])


@of_each("num_arms", [2, 3, 7, 40, 97])
@of_each("budget", [700, 701, 12_345])
def test_the_budget_is_never_passed_and_nearly_spent(num_arms, budget):
    policy = halving(num_arms, budget=budget)
    state = policy.init()
    while not stopped(policy, state):
        state = told(policy, state, np.linspace(0, 1, num_arms))
    assert budget - 2 * num_arms - policy.num_rounds < state.pulls <= budget  # what rounding down can leave
    assert state.leader == num_arms - 1


def test_only_the_round_counts():
    """An arm that was best in the first round and is worst in the second goes."""
    policy = halving(4)
    state = told(policy, policy.init(), [1.0, 0.8, 0.1, 0.0])
    assert state.active.tolist() == [0, 1]
    state = told(policy, state, [0.0, 0.8, 0.1, 0.0])
    assert (state.leader, state.finished) == (1, "budget")


def test_of_equal_means_the_first_stay():
    policy = halving(6)
    assert told(policy, policy.init(), [0.5] * 6).active.tolist() == [0, 1, 2]


def test_what_did_not_come_is_asked_for_again():
    policy = halving(4)  # 125 pulls of each of the four
    state = policy.init()
    plan = policy.ask(state)
    came = np.array([125, 0, 100, 125])
    step = policy.tell(state, plan, Observations(came, came * np.array([0.2, 0.0, 0.9, 0.3])))
    assert (step.state.active.tolist(), step.state.round, step.state.leader) == ([0, 1, 2, 3], 1, 2)
    assert certificate_of(policy, step.state).verdict == "not-yet"
    again = policy.ask(step.state)
    assert again.counts.tolist() == [0, 125, 25, 0]
    step = policy.tell(step.state, again, exact(again, [0.2, 0.8, 0.9, 0.3]))
    assert (step.state.active.tolist(), step.state.round) == ([1, 2], 2)
    assert (step.record.pulls, step.record.total_pulls, step.state.pulls) == (500, 500, 500)


def test_the_verdict_is_heuristic_and_says_why_with_numbers():
    policy = halving(4, budget=20_000)
    state = policy.init()
    while not stopped(policy, state):
        state = told(policy, state, [0.9, 0.8, 0.1, 0.0])
    answer = certificate_of(policy, state)
    bound = 3 * 2 * math.exp(-20_000 / (8 * 4 / 0.1**2 * 2))
    assert (answer.verdict, answer.certified_gap) == ("heuristic", None)
    assert f"at most {bound:.3g}" in answer.reason
    assert "better than each of the 3 others by 0.1" in answer.reason
    small = halving(4, budget=100)
    state = told(small, told(small, small.init(), [0.9, 0.8, 0.1, 0.0]), [0.9, 0.8, 0.1, 0.0])
    assert "anything, because the bound is above 1" in certificate_of(small, state).reason


def test_the_bound_by_hand():
    """H2 = max(2/.1^2, 3/.2^2, 4/.5^2) = 200."""
    gaps = [0.5, 0.0, 0.2, 0.1]
    expected = 3 * 2 * math.exp(-10_000 / (8 * 200 * 2))
    assert halving_error_bound(gaps, budget=10_000) == pytest.approx(expected)
    assert halving_error_bound(gaps, budget=40_000, sigma=1.0) == pytest.approx(expected)
    assert halving_error_bound(gaps, budget=10) == 1.0
    assert halving_error_bound([0.0, 0.0, 1.0], budget=10**9) == 1.0
    assert halving_error_bound([0.0], budget=1) == 0.0


@of_each("gaps", [[], [0.1, 0.2], [0.0, -0.1], [0.0, math.nan], [[0.0, 1.0]]])
def test_gaps_without_meaning_are_refused(gaps):
    with pytest.raises(sp.InvalidInput, match="gaps must be a list of finite numbers of which the smallest is 0"):
        halving_error_bound(gaps, budget=10)


@pytest.mark.parametrize(
    ("base", "runs"), [(0, 60), *(pytest.param(base, 300, marks=pytest.mark.slow) for base in (0, 10_000))]
)
def test_the_errors_stay_within_the_papers_bound(base, runs):
    """The exact binomial tail at the bound, and a saboteur that keeps the worse half."""
    from scipy.stats import binom

    means = np.array([0.2, 0.4, 0.8, 0.4, 0.3, 0.4, 0.1, 0.4])
    environment = sp.environments.Environment(arms=sp.Arms(np.eye(8)), means=means, noise=sp.Bernoulli())
    policy = halving(8, budget=3_000, noise=sp.Bernoulli())
    bound = halving_error_bound(0.8 - means, budget=3_000)
    assert 0.02 < bound < 0.2
    allowed = int(binom.isf(1e-6, runs, bound))
    wrong = sum(not sp.simulate(policy, environment, seed=base + seed).success for seed in range(runs))
    assert wrong <= allowed
    upside_down = sp.environments.Environment(arms=sp.Arms(np.eye(8)), means=1 - means, noise=sp.Bernoulli())
    sabotaged = (sp.simulate(policy, upside_down, seed=base + seed).arm for seed in range(runs))
    assert sum(arm != 2 for arm in sabotaged) > allowed


@of_each(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget is 0; it must be a whole number, 1 or more"),
        ({"budget": 10.5}, "budget is 10.5; it must be a whole number"),
        ({"budget": 14}, r"budget is 14 pulls for 5 arms; .* 3 equal rounds.* Give at least 15"),
        ({"num_arms": 0}, "num_arms is 0"),
        ({"delta": 1.0}, "delta is 1.0"),
    ],
)
def test_settings_without_meaning_are_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        halving(**({"num_arms": 5} | changes))


def test_without_a_budget_the_registry_refuses():
    with pytest.raises(sp.InvalidInput, match="sequential-halving needs budget: the pulls in all"):
        sp.make_policy("sequential-halving", sp.Arms(np.eye(3)), epsilon=0.1, delta=0.05, noise=sp.Bernoulli())
