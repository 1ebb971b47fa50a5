"""Rounds: their number, accuracy and size, the looks inside them, and how they end."""

import math
from dataclasses import fields

import numpy as np
import pytest

import surepick as sp
from surepick.core.plans import Design, IndependentArms
from surepick.designs import design_value
from surepick.policies.base import designed, stopped
from surepick.policies.dimension import bias, worst_gap
from surepick.policies.paper.arm_elimination import (
    AdaptiveDimension,
    ArmElimination,
    FixedDimension,
    RoundSettings,
    initial_rounds,
    next_look,
    round_size,
    rounded_counts,
)
from surepick.policies.verdict import certificate_of

FEATURES = np.random.default_rng(1).normal(size=(7, 3))
MEANS = FEATURES @ (np.array([0.6, -0.3, 0.5]) / np.linalg.norm([0.6, -0.3, 0.5]))


ASKED = tuple(each.name for each in fields(sp.Problem))


def settings(**changes):
    usual = {
        "num_arms": 5, "epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(1.0), "slack": 0.1, "gap_bound": None,
        "schedule": "convergent", "union": "best-pairs", "looks": 8, "floor": "support", "stopping": "certified",
    }  # fmt: skip
    chosen = usual | changes
    problem = sp.Problem(**{name: chosen.pop(name) for name in ASKED if name in chosen})
    return RoundSettings(problem, **chosen)


def elimination(embedding, rule, **changes):
    """The policy with these parts; changes are those of its problem and of its rounds."""
    usual = {"num_arms": embedding.num_arms, "epsilon": 0.2, "delta": 0.1, "noise": sp.SubGaussian(1.0)}
    chosen = usual | changes
    problem = sp.Problem(**{name: chosen.pop(name) for name in ASKED if name in chosen})
    return ArmElimination(problem, embedding, rule, **chosen)


def adaptive(dim=None, **changes):
    return elimination(sp.LinearEmbedding(FEATURES, norm_bound=1.0), AdaptiveDimension(dim=dim), **changes)


def noiseless(plan, means=MEANS):
    return sp.Observations(plan.counts, plan.counts * means, plan.counts * means**2)


def play(policy, answers=noiseless, most=500):
    """Plans, states after them and records of a whole run."""
    state, plans, rows = policy.init(), [], []
    while not stopped(policy, state):
        assert len(plans) < most
        plans.append(policy.ask(state))
        step = policy.tell(state, plans[-1], answers(plans[-1]))
        state = step.state
        rows.append(step.record)
    return plans, rows, state


@pytest.mark.parametrize(
    ("gap_bound", "epsilon", "expected"),
    [(2.0, 0.1, 5), (None, 0.1, 5), (2.0, 0.25, 3), (2.0, 0.24, 4), (1.0, 0.25, 2), (0.11, 0.1, 1), (None, 7.0, 1),
     (2e8, 1e7, 5), (2e-8, 1e-9, 5)],
)  # fmt: skip
def test_the_number_of_rounds(gap_bound, epsilon, expected):
    """ceil(log2(2 R / epsilon)), R half the gap bound, 1 without one; at least one round."""
    chosen = settings(gap_bound=gap_bound, epsilon=epsilon)
    assert chosen.num_rounds == expected
    assert chosen.accuracy(expected) <= epsilon / 2 < 2 * chosen.accuracy(expected) * (1 + 1e-12)


def test_the_accuracy_halves_and_then_stays():
    chosen = settings(gap_bound=2.0, epsilon=0.25)
    assert [chosen.accuracy(k) for k in (1, 2, 3, 4, 9)] == [0.5, 0.25, 0.125, 0.125, 0.125]
    assert settings(gap_bound=0.5, epsilon=0.25).accuracy(1) == 0.125
    assert settings(epsilon=7.0).accuracy(1) == 3.5


def test_the_log_term():
    """looks * M / delta_k, with two arms a single event: log(8 * 1 / (.05 / 2))."""
    assert settings().log_term(1, 2) == pytest.approx(math.log(8 / 0.025))
    assert settings().log_term(1, 5) == pytest.approx(math.log(8 * 4 / 0.025))
    assert settings(looks=1, union="paper", schedule="paper").log_term(3, 5) == pytest.approx(math.log(25 * 9 / 0.05))
    assert settings(looks=2, union="all", schedule="uniform").log_term(9, 2) == pytest.approx(
        math.log(2 * 25 * 5 / 0.05)
    )
    assert settings(delta=1 - 1e-6, looks=1, schedule="uniform", epsilon=2.0).log_term(1, 2) >= 0


def test_the_size_of_a_round():
    chosen = settings(noise=sp.SubGaussian((0.1, 0.2, 3.0, 0.1, 0.1)), slack=0.25, looks=1, gap_bound=2.0)
    expected = 2 * 3.0**2 * 1.25 * 7.0 * math.log(4 / 0.025) / (0.5 - 0.1) ** 2
    assert round_size(chosen, 1, value=7.0, bias=0.1, num_active=5) == math.ceil(expected)
    assert round_size(chosen, 1, value=0.0, bias=0.1, num_active=5) == 1


@pytest.mark.parametrize("excess", [0.0, 0.1])
def test_a_bias_that_leaves_no_room_is_a_contract_error(excess):
    with pytest.raises(sp.errors.ContractError, match=r"by 0\.\d+, and this round must resolve 0\.5"):
        round_size(settings(gap_bound=2.0), 1, value=1.0, bias=0.5 + excess, num_active=5)


def test_a_fixed_dimension_without_room_is_refused_before_the_first_pull():
    with pytest.raises(sp.errors.ContractError, match="no number of pulls would help"):
        adaptive(dim=1)


def test_a_round_brings_every_width_to_its_accuracy():
    """The promise behind N_k: with full results, 2 gamma + ||y|| (gamma sqrt N + sigma sqrt(2 L)) <= t_k."""
    rng = np.random.default_rng(0)
    features = np.hstack([rng.normal(size=(9, 2)), 0.01 * rng.normal(size=(9, 3))])
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    policy = elimination(embedding, AdaptiveDimension(), stopping="rounds")
    plans, _, _ = play(policy, lambda plan: noiseless(plan, features @ np.full(5, 0.4)))
    assert any(plan.misspecification > 0 for plan in plans)
    active = np.arange(9)
    first = plans[0]
    embedded = embedding.at(first.dim)
    inverse = np.linalg.inv(embedded.features.T @ (first.allocation[:, None] * embedded.features))
    pairs = embedded.features[:, None] - embedded.features[None]
    longest = math.sqrt(np.einsum("abi,ij,abj->ab", pairs, inverse, pairs).max())
    log_term = policy.rounds.log_term(1, len(active))
    spread = embedded.misspecification * math.sqrt(first.allocation.sum()) + math.sqrt(2 * log_term)
    assert 2 * embedded.misspecification + spread * longest <= policy.rounds.accuracy(1)


@pytest.mark.parametrize("looks", [1, 3, 8, 50])
def test_looks_are_nested_parts_of_one_allocation(looks):
    plans, _, _ = play(adaptive(looks=looks, stopping="rounds"))
    for number in sorted({plan.round for plan in plans}):
        parts = [plan for plan in plans if plan.round == number]
        allocation = parts[0].allocation
        assert [plan.look for plan in parts] == list(range(1, len(parts) + 1))
        assert {plan.looks for plan in parts} == {len(parts)}
        assert len(parts) == min(looks, allocation.max())
        assert all(np.array_equal(plan.allocation, allocation) for plan in parts)
        assert np.array_equal(sum(plan.counts for plan in parts), allocation)
        assert np.array_equal(parts[0].counts > 0, allocation > 0)
        assert all(plan.total > 0 and plan.counts.min() >= 0 for plan in parts)


def test_every_supported_arm_is_in_the_first_look():
    """An arm of one pull among arms of hundreds: without it the first look could compare nothing."""
    features = np.vstack([np.eye(3), 0.3 * np.ones((2, 3))])
    first = open_first(settings(), features, np.array([0.6, 0.39, 0.01, 0.0, 0.0]), 200)
    assert 0 < first.allocation[2] < first.looks
    assert np.array_equal(first.counts > 0, first.allocation > 0)
    assert first.counts[2] == 1


@pytest.mark.parametrize("rule", [AdaptiveDimension(dim=2), FixedDimension(dim=2)])
def test_the_widths_hold_the_bias_of_misspecification(rule):
    """2 gamma + ||y|| (gamma sqrt N + sigma sqrt(2 L)) on the pulls of the first look, by hand."""
    embedding = sp.LinearEmbedding(FEATURES * [1.0, 1.0, 0.01], norm_bound=1.0)
    policy = elimination(embedding, rule, epsilon=0.3, noise=sp.SubGaussian(0.5))
    state = policy.init()
    plan = policy.ask(state)
    assert plan.looks > 1
    gap = policy.tell(state, plan, sp.Observations(plan.counts, np.zeros(7))).record.certified_gap
    embedded = embedding.at(2)
    gamma = embedded.misspecification
    assert gamma > 0
    inverse = np.linalg.inv(embedded.features.T @ (plan.counts[:, None] * embedded.features))
    pairs = embedded.features - embedded.features[0]  # all scores are 0: arm 0 leads
    distance = math.sqrt(np.einsum("ai,ij,aj->a", pairs, inverse, pairs).max())
    spread = gamma * math.sqrt(plan.total) + 0.5 * math.sqrt(2 * policy.rounds.log_term(1, 7))
    assert gap == pytest.approx(2 * gamma + spread * distance, rel=1e-6)


def test_there_is_no_look_after_the_last():
    last = sp.Plan(2, [1], look=3, looks=3, allocation=[3])
    with pytest.raises(sp.InvalidInput, match="round 2 has no look after look 3 of 3"):
        next_look(last)
    with pytest.raises(sp.InvalidInput, match="no look after"):
        next_look(sp.Plan(1, [1], look=1, looks=2))


def test_arms_go_at_the_end_of_a_round_only():
    plans, rows, _ = play(adaptive(stopping="rounds"))
    for plan, row in zip(plans[:-1], rows[:-1], strict=True):
        if plan.look < plan.looks:
            before = [r.active for p, r in zip(plans, rows, strict=True) if p.round == plan.round - 1]
            assert np.array_equal(row.active, before[-1] if before else np.arange(7))
    assert len(rows[-1].active) < 7


def test_pulls_of_a_round_and_of_the_study_are_counted():
    plans, rows, state = play(adaptive(stopping="rounds"))
    assert [row.total_pulls for row in rows] == np.cumsum([plan.total for plan in plans]).tolist()
    last = {row.round: row.pulls for row in rows}
    assert sum(last.values()) == state.pulls == rows[-1].total_pulls


def test_rounds_run_to_their_end_without_the_epsilon_stop():
    policy = adaptive(stopping="rounds", epsilon=0.4)
    equal = np.zeros(7)
    plans, _, state = play(policy, lambda plan: noiseless(plan, equal))
    assert {plan.round for plan in plans} == {1, 2, 3}
    assert policy.rounds.num_rounds == 3
    assert state.finished == "rounds"
    assert certificate_of(policy, state).verdict == "certified"
    fewer, _, early = play(adaptive(epsilon=0.4), lambda plan: noiseless(plan, equal))
    assert early.finished == "certified"
    assert len(fewer) < len(plans)


def test_rounds_stop_when_one_arm_is_left():
    policy = adaptive(stopping="rounds", epsilon=1e-3)
    plans, _, state = play(policy)
    assert (state.finished, state.active.tolist(), state.gap) == ("single", [int(np.argmax(MEANS))], 0.0)
    assert plans[-1].round < policy.rounds.num_rounds
    assert plans[-1].look == plans[-1].looks


def first_look(chosen, embedded, design, active, total):
    """That of a round of whole pulls, as `ArmElimination.ask` opens it."""
    counts = rounded_counts(chosen.floor, design, embedded, active, total, slack=chosen.slack)
    return chosen.first_look(designed(1, counts, design, embedded))


def open_first(chosen, features, weights, total):
    embedded, active = sp.Embedding(features, 0.0), np.arange(len(features))
    value = design_value(features, weights, active)
    return first_look(chosen, embedded, Design(weights, value, value, features.shape[1]), active, total)


def test_the_published_floor_is_twice_the_support_over_the_slack():
    weights = np.array([0.4, 0.4, 0.2, 0.0, 0.0])
    features = np.vstack([np.eye(3), 0.3 * np.ones((2, 3))])
    published = open_first(settings(floor="published"), features, weights, 10)
    assert published.allocation.sum() == 60  # 2 * 3 / .1
    assert open_first(settings(floor="published"), features, weights, 500).allocation.sum() == 500
    assert open_first(settings(floor="published", slack=0.5), features, weights, 1).allocation.sum() == 12


@pytest.mark.parametrize("total", [1, 10, 37, 500])
def test_the_support_floor_keeps_the_rounding_promise(total):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(5, 3))
    weights = rng.dirichlet(np.ones(5))
    plan = open_first(settings(), features, weights, total)
    realised = plan.allocation.sum() * design_value(features, plan.allocation)
    assert realised <= 1.1 * plan.design_value * (1 + 1e-12)
    assert plan.allocation.sum() >= total
    assert plan.allocation.sum() <= max(total, math.ceil(5 * 1.1 / 0.1))


def test_the_support_floor_keeps_the_rounding_promise_for_independent_arms():
    design = Design(np.full(4, 0.25), 8.0, 8.0, 4)
    plan = first_look(settings(num_arms=4), IndependentArms(4), design, np.arange(4), 7)
    inverse = np.sort(1 / plan.allocation)[::-1]
    assert plan.allocation.sum() * (inverse[0] + inverse[1]) <= 1.1 * design.value


@pytest.mark.parametrize("stopping", ["certified", "rounds"])
def test_a_uniform_schedule_ends_with_not_yet_when_results_are_missing(stopping):
    policy = adaptive(schedule="uniform", stopping=stopping)
    plans, _, state = play(policy, lambda plan: sp.Observations.nothing(7))
    assert plans[-1].round == policy.rounds.num_rounds
    answer = certificate_of(policy, state)
    assert (state.finished, answer.verdict, answer.certified_gap) == ("rounds", "not-yet", None)
    assert "The planned rounds are over" in answer.reason


def test_a_convergent_schedule_asks_again_when_results_are_missing():
    policy = adaptive(epsilon=0.4)
    planned = policy.rounds.num_rounds
    plans, _, state = play(
        policy, lambda plan: noiseless(plan) if plan.round > planned + 1 else sp.Observations.nothing(7)
    )
    assert plans[-1].round > planned + 1
    assert certificate_of(policy, state).verdict == "certified"


def test_missing_results_widen_the_widths():
    """Half the results of each arm: the certified gap is that of what came, by hand."""
    policy = adaptive(looks=1, epsilon=1e-3, gap_bound=2.0)
    state = policy.init()
    plan = policy.ask(state)
    half = plan.counts // 2
    step = policy.tell(state, plan, sp.Observations(half, half * MEANS))
    embedded = policy.embedding.at(plan.dim)
    inverse = np.linalg.inv(embedded.features.T @ (half[:, None] * embedded.features))
    best = int(np.argmax(MEANS))
    pairs = embedded.features - embedded.features[best]
    distances = np.sqrt(np.einsum("ai,ij,aj->a", pairs, inverse, pairs))
    gaps = MEANS - MEANS[best] + math.sqrt(2 * policy.rounds.log_term(1, 7)) * distances
    assert step.record.certified_gap == pytest.approx(np.delete(gaps, best).max(), rel=1e-6)


def test_a_study_that_needs_no_pull():
    assert initial_rounds(settings(num_arms=1)).finished == "single"
    given = initial_rounds(settings(gap_bound=0.1))
    assert (given.finished, given.gap) == ("given", 0.1)
    assert initial_rounds(settings(gap_bound=0.11)).finished == ""
    bounded = elimination(sp.IndependentEmbedding(3), AdaptiveDimension(), epsilon=1.0, noise=sp.Bounded(2.0, 3.0))
    answer = certificate_of(bounded, bounded.init())
    assert (answer.verdict, answer.pulls, answer.certified_gap) == ("certified", 0, 1.0)
    assert answer.assumptions == ("No two arms differ by more than 1 in mean reward.",)


def fixed(dim=None, **changes):
    """Rewards of norm 1 on directions of length 1, .9 and .01: gamma-tilde is 0 at d = 3 and about .01 at d = 2."""
    features = np.vstack([np.diag([1.0, 0.9, 0.01]), [0.5, 0.5, 0.0]])
    return elimination(
        sp.LinearEmbedding(features, norm_bound=1.0), FixedDimension(dim=dim), **({"epsilon": 0.1} | changes)
    )


def test_a_fixed_dimension_promises_what_misspecification_allows():
    policy = fixed(dim=2)
    embedded = policy.embedding.at(2)
    tau = sp.solve_design(embedded.features, tolerance=1e-3).value
    assert policy.rule.certified == pytest.approx(worst_gap(embedded.misspecification, tau, 0.1), rel=0.01)
    assert policy.rule.certified > 0.2
    assert policy.rounds.epsilon == policy.rule.certified
    assert f"a shortfall of {policy.rule.certified:g}" in policy.traits.caveats[-1]
    answer = certificate_of(policy, policy.init())
    assert answer.epsilon == policy.rule.certified


def test_a_fixed_dimension_that_is_exact_promises_epsilon():
    for policy in (fixed(), fixed(dim=3), fixed(dim=2, epsilon=0.5)):
        assert policy.rule.certified == policy.problem.epsilon
        assert not any("shortfall" in caveat for caveat in policy.traits.caveats)
        assert certificate_of(policy, policy.init()).epsilon == policy.problem.epsilon
    assert fixed().rule.chosen == 3
    assert fixed(epsilon=0.5).rule.chosen == 2


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3])
def test_a_fixed_dimension_always_has_room(dim, epsilon):
    """gamma(d) is eight times the bias: the last accuracy, at least a quarter of the promise, exceeds it."""
    policy = fixed(dim=dim, epsilon=epsilon)
    embedded = policy.embedding.at(dim)
    for active in ([0, 1], [0, 1, 2, 3], [1, 3]):
        tau = sp.solve_design(embedded.features, active).value
        last = policy.rounds.accuracy(policy.rounds.num_rounds)
        assert bias(embedded.misspecification, tau, 0.1) < last


def test_a_fixed_dimension_runs_to_its_promise():
    policy = fixed(dim=2)
    means = np.array([0.7, 0.3, 0.0, 0.5])
    plans, _, state = play(policy, lambda plan: noiseless(plan, means))
    answer = certificate_of(policy, state)
    assert {plan.dim for plan in plans} == {2}
    assert (answer.verdict, answer.arm, answer.epsilon) == ("certified", 0, policy.rule.certified)
    assert answer.certified_gap <= policy.rule.certified
