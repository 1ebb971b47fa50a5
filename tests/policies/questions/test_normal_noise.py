"""Questions where nobody knows the scales: what a batch may bet, what is paid of delta, what is refused."""

import math

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import budget

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.core.observations import Observations
from surepick.core.plans import IndependentArms
from surepick.embeddings import IndependentEmbedding
from surepick.environments import Environment
from surepick.estimators import NormalMgf, batch_evidence, normal_mgf_after, normal_mgf_of_all
from surepick.estimators.e_values import number_evidence
from surepick.estimators.posterior import NUMBER
from surepick.policies.base import Problem
from surepick.policies.questions.outlook import Ground
from surepick.questions.protocol import Bet
from surepick.simulation import Run

TRIALS = 4_000
ASKED = {"epsilon": 1.0, "delta": 0.05, "noise": sp.Normal()}


def batch_of(means, scales, counts, rng) -> Observations:
    sums = counts * means + scales * np.sqrt(counts) * rng.standard_normal(len(means))
    around = np.where(counts > 1, scales**2 * rng.chisquare(np.maximum(counts - 1, 1)), 0.0)
    return Observations(counts, sums, sums**2 / counts + around)


def gains(kind: str, *, known: float, seed: int = 5) -> np.ndarray:
    """What one batch gains against true nulls at their border, each arm a trial of its own.

    Args:
        known: the bound on each variance, in units of that variance.
    """
    rng = np.random.default_rng(seed)
    counts, scales = rng.integers(1, 7, TRIALS), 10.0 ** rng.uniform(-0.5, 0.5, TRIALS)
    scales[0], counts[0] = 1e-3, 1_000
    means = np.full(TRIALS, 0.5)
    means[0] = 0.0
    bounds = known * scales**2
    mgf = NormalMgf(bounds, bounds, 0.5 * scales**2, means + scales * rng.normal(size=TRIALS), np.ones(TRIALS, int))
    seen, margins = batch_of(means, scales, counts, rng), np.full(TRIALS, 1.5)
    if kind == "number":
        return number_evidence(seen, 0.5, margins, mgf, scales)[1:]
    found = batch_evidence(
        IndependentArms(TRIALS),
        seen,
        centre=0,
        epsilon=0.5,
        margins=margins,
        noise_mgf=mgf,
        noise_scales=scales,
        norm_bound=None,
    )
    return found.gains[1:]


@pytest.mark.parametrize("kind", ["number", "arm"])
def test_a_batch_is_an_e_value_where_the_bounds_hold(kind):
    """By Markov's inequality it reaches 1/p with probability at most p."""
    for known in (1.0, 3.0):
        found = gains(kind, known=known)
        for p in (0.3, 0.1, 0.02):
            assert np.count_nonzero(found >= -math.log(p)) <= failures_allowed(TRIALS - 1, p)
        assert np.count_nonzero(found > 0.0) > 0.1 * TRIALS  # it bets


@pytest.mark.parametrize("kind", ["number", "arm"])
def test_bounds_that_are_far_too_small_are_noticed(kind):
    found = gains(kind, known=1e-3)
    assert np.count_nonzero(found >= -math.log(0.02)) > failures_allowed(TRIALS - 1, 0.02)


def test_the_bounds_of_all_arms_hold_at_once():
    """alpha is shared by the arms; the usual bounds keep half of it for one that is fixed beforehand."""
    rng = np.random.default_rng(0)
    past = batch_of(np.zeros(7), np.ones(7), np.full(7, 6), rng)
    for_all, usual = normal_mgf_of_all(past, 0.01), normal_mgf_after(past, 0.01)
    assert np.array_equal(for_all.bounds, for_all.joint_bounds)
    assert np.all(for_all.joint_bounds < usual.joint_bounds)
    assert np.allclose(for_all.joint_bounds, normal_mgf_after(past, 0.02).joint_bounds)


def ground_of(question, num_arms: int) -> Ground:
    problem = Problem(num_arms, 1.0, 0.05, sp.Normal(), question=question)
    return Ground(problem, IndependentEmbedding(num_arms), num_arms, question.threshold, 0.05)


def test_an_arm_whose_repeats_are_equal_enters_no_evidence():
    """They are too few, or rounded: nobody knows how much it varies."""
    ground, rng = ground_of(sp.questions.Above(threshold=0.0), 3), np.random.default_rng(1)
    past, batch = (batch_of(np.full(3, 5.0), np.ones(3), np.full(3, each), rng) for each in (8, 20))
    equal = Observations(past.counts, np.array([40.0, *past.sums[1:]]), np.array([200.0, *past.squares[1:]]))
    bet = Bet("above", NUMBER, 1.0, True, np.ones(3, bool), np.full(3, 9.0), bold=True)
    found = ground.gains(bet, equal, batch, ground.posterior(equal))
    assert found[0] == 0.0
    assert np.all(found[1:] > 0.0)


def test_the_certificate_says_what_the_scales_cost():
    rng = np.random.default_rng(2)
    means = {"a": 0.0, "b": 4.0, "c": -4.0}
    found = sp.find_best(
        [*"abc"], lambda ids: [means[one] + rng.normal(0, 0.5) for one in ids], question="above", control="a", **ASKED
    )
    assert (found.verdict, found.certificate.lists.inside, found.certificate.lists.outside) == (
        "certified",
        ("b",),
        ("c",),
    )
    assert "except with probability 0.001, which is part of delta" in found.certificate.assumptions[-1]


def test_repeats_that_lie_too_far_apart_make_the_verdict_heuristic():
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*"abc"]), question="top", m=1, **ASKED)
    rng, state, scales = np.random.default_rng(3), policy.init(), np.ones(3)
    for scale in (1.0, 100.0):
        plan = policy.ask(state)
        seen = batch_of(np.zeros(3), scale * scales, np.maximum(plan.counts, 2), rng)
        state = policy.tell(state, plan, seen).state
        assert bool(state.alarms) == (scale == 100.0)
    assert "repeats lie farther apart than normal noise allows" in state.alarms[0]
    assert policy.claim(state).why_heuristic
    assert "No repeats lie farther apart" in policy.traits.checks[-1]


# --- with features

FEATURES = np.random.default_rng(8).normal(size=(30, 3))
MEANS = FEATURES @ np.array([0.4, -0.3, 0.2])
SCALES = np.random.default_rng(9).permutation(0.2 * 10.0 ** np.linspace(0.0, 1.0, 30))
QUESTIONS = [
    {"question": "above", "control": "0"},
    {"question": "above", "threshold": 0.1},
    {"question": "top", "m": 3},
    {"question": "all-good"},
]


def run_of(name: str, question, *, seed: int = 0, **more) -> Run:
    arms = sp.Arms(FEATURES)
    policy = sp.make_policy(name, arms, epsilon=0.2, delta=0.05, noise=sp.Normal(), **question, **more)
    world = Environment(arms=arms, means=MEANS, noise=sp.SubGaussian(SCALES))
    return sp.simulate(policy, world, seed=seed, max_pulls=100_000)


@pytest.mark.cases(1)
@pytest.mark.parametrize("question", QUESTIONS)
def test_with_features_few_arms_are_measured_often(question):
    for seed in range(budget(2, fewest=1)):
        run = run_of("certified-linear", question, seed=seed, norm_bound=1.0)
        assert (run.verdict, run.success) == ("certified", True)
        pulls = np.array(certificate_document(run.study)["candidates"]["pulls"])
        assert np.count_nonzero(pulls >= 5) <= 20
        assert pulls[pulls >= 5].sum() > 0.8 * run.pulls
    assert run.pulls < 0.3 * run_of("certified-independent", question).pulls


def test_pulls_of_arms_without_a_bound_are_no_evidence():
    """Only where a batch has pulls of arms that have bounds does anything change."""
    arms = sp.Arms(FEATURES)
    policy = sp.make_policy("certified-linear", arms, norm_bound=1.0, question="top", m=3, **ASKED)
    rng, state = np.random.default_rng(4), policy.init()
    plan = policy.ask(state)
    assert set(plan.counts.tolist()) == {0, plan.counts.max()}  # few arms, with all the repeats that a bound takes
    state = policy.tell(state, plan, seen_of(plan.counts, rng)).state
    others = np.where(plan.counts > 0, 0, 1)
    after = policy.tell(state, policy.ask(state), seen_of(others, rng)).state
    assert all(not np.any(one.values) for one in after.collected)
    after = policy.tell(state, policy.ask(state), seen_of(plan.counts, rng)).state
    assert any(np.any(one.values) for one in after.collected)


def seen_of(counts, rng) -> Observations:
    rewards = [MEANS[arm] + SCALES[arm] * rng.normal(size=pulls) for arm, pulls in enumerate(counts)]
    return Observations(counts, np.array([one.sum() for one in rewards]), np.array([(one**2).sum() for one in rewards]))


def test_a_lack_of_fit_shows():
    arms = sp.Arms(FEATURES)
    policy = sp.make_policy("certified-linear", arms, norm_bound=1.0, question="all-good", **ASKED)
    rng, state, away = np.random.default_rng(4), policy.init(), np.where(np.arange(30) % 2 == 0, 3.0, -3.0)
    for _ in range(3):
        counts = np.full(30, 12)
        seen = seen_of(counts, rng)
        moved = Observations(counts, seen.sums + counts * away, seen.squares + 2 * away * seen.sums + counts * away**2)
        state = policy.tell(state, policy.ask(state), moved).state
    assert any("linear" in alarm or "fit" in alarm for alarm in state.alarms), state.alarms
    assert policy.claim(state).why_heuristic


@pytest.mark.cases(1)
@pytest.mark.parametrize("question", QUESTIONS[1:3])
def test_with_features_every_batch_has_the_size_that_was_asked(question):
    run = run_of("certified-linear", question, norm_bound=1.0, batch_size=20)
    assert (run.verdict, run.success) == ("certified", True)
    assert {look["pulls"] for look in certificate_document(run.study)["rounds"]} == {20}


def test_with_features_the_first_batches_give_few_arms_the_repeats_for_a_bound():
    arms = sp.Arms(FEATURES)
    policy = sp.make_policy("certified-linear", arms, norm_bound=1.0, question="top", m=3, batch_size=7, **ASKED)
    rng, state, counts = np.random.default_rng(4), policy.init(), np.zeros(30, int)
    whole = sp.make_policy("certified-linear", arms, norm_bound=1.0, question="top", m=3, **ASKED)
    usual = whole.ask(whole.init()).counts
    for _ in range(-(-usual.sum() // 7)):
        plan = policy.ask(state)
        assert plan.total == 7
        state, counts = policy.tell(state, plan, seen_of(plan.counts, rng)).state, counts + plan.counts
    assert np.all(counts >= usual)
    assert np.array_equal(counts > 0, usual > 0)


def test_with_features_the_best_that_keeps_a_bound_is_found():
    """One quantity without noise, which each candidate has to be measured for once, and one with noise."""
    heat = np.where(np.arange(30) % 3 == 0, 2.0, 0.0)
    constraints = ["heat<=1", "pressure<=1,tolerance=1,noise=subgaussian:0.5"]
    policy = sp.make_policy(
        "certified-linear", sp.Arms(FEATURES), norm_bound=1.0, constraints=constraints, **{**ASKED, "epsilon": 0.3}
    )
    rng = np.random.default_rng(5)

    def measure(ids):
        arms = np.array([int(one) for one in ids])
        rewards = MEANS[arms] + SCALES[arms] * rng.normal(size=len(arms))
        return np.column_stack([rewards, heat[arms], heat[::-1][arms] + 0.5 * rng.normal(size=len(arms))])

    study = sp.Study(policy)
    found = study.run(measure, progress=False)
    keeps = (heat <= 1) & (heat[::-1] <= 1)
    assert found.verdict == "certified"
    assert keeps[int(found.best_arm)]
    assert MEANS[int(found.best_arm)] >= MEANS[keeps].max() - 0.3
    assert sp.verify_certificate(certificate_document(study)).holds
