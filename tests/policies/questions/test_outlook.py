"""What the past suggests, and what a batch says: e-values of comparisons with arms, with a number, with vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from budgets import budget
from certified_studies import GivenVectors
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, IndependentArms
from surepick.designs import solve_target_design
from surepick.designs.problem import independent_pairs_design
from surepick.embeddings import IndependentEmbedding
from surepick.estimators import noise_mgf_after
from surepick.estimators.posterior import NUMBER, Posterior, efforts
from surepick.policies.questions import outlook as outlooks
from surepick.policies.questions.outlook import Ground, negated, with_unmeasured
from surepick.questions.protocol import Aims, Bet

FEATURES = np.array([[1.0, 0.2], [0.1, 1.0], [0.6, 0.5], [-0.4, 0.3], [0.3, -0.7]])
SIGMA, EPSILON, NORM = 0.8, 0.4, 1.5
seeds = st.integers(0, 10**6)


def ground_of(*, gamma: float = 0.0, number: float | None = None, vectors: bool = True, noise=None) -> Ground:
    num_arms = len(FEATURES)
    embedding = GivenVectors(FEATURES, gamma, NORM) if vectors else IndependentEmbedding(num_arms)
    problem = sp.Problem(num_arms, EPSILON, 0.1, sp.SubGaussian(SIGMA) if noise is None else noise)
    return Ground(problem, embedding, 2 if vectors else num_arms, number, 0.05)


def seen_at(means, counts) -> Observations:
    """What comes without noise."""
    return Observations(np.array(counts), np.array(counts) * np.array(means))


# --- guesses


def test_leads_and_margins_of_both_sides():
    """By how much the truth contradicts each null: what leads as it is, what trails only beyond an error."""
    found = Posterior(np.array([1.0, 0.2, -3.0]), lambda _: np.array([0.1, 0.1, 0.1]), 0.5)
    assert found.leads(NUMBER, high=False) == pytest.approx([-0.5, 0.3, 3.5])
    assert found.leads(NUMBER, high=True) == pytest.approx([0.5, -0.3, -3.5])
    assert found.leads(1, high=False) == pytest.approx([-0.8, 0.0, 3.2])
    nobody, everybody = np.zeros(3), np.ones(3, bool)
    low = Bet("a", NUMBER, 0.5, False, everybody, nobody).margins(found)
    assert low == pytest.approx([0.125, 0.8, 4.0])  # .5 - .5 + .1 is below a quarter of the margin
    high = Bet("a", NUMBER, 0.5, True, everybody, nobody).margins(found)
    assert high == pytest.approx([1.0, 0.3, 0.125])
    out = Bet("a", 0, -0.5, False, everybody, nobody).margins(found)
    assert out == pytest.approx([0.0, 0.3, 3.5])  # no doubt where the null itself asks for a lead


def test_plans_lower_leads_and_never_to_nothing():
    found = Posterior(np.array([1.0, 0.2, -3.0]), lambda _: np.array([0.2, 9.0, 0.2]), 0.5)
    assert found.cautious(NUMBER, 0.5, np.array([0, 1, 2]), high=False) == pytest.approx([0.125, 0.5, 3.9])
    assert found.cautious(NUMBER, 0.5, np.array([0]), high=True) == pytest.approx([0.9])
    assert found.cautious(NUMBER, -0.4, np.array([2]), high=True) == pytest.approx([0.1])


@pytest.mark.parametrize("number", [None, 0.3])
def test_without_noise_vectors_find_the_means(number):
    """Absolute ones where there is a number to compare with."""
    theta = np.array([0.7, -0.4])
    found = ground_of(number=number).posterior(seen_at(FEATURES @ theta, [9, 7, 0, 3, 1]))
    assert np.diff(found.scores) == pytest.approx(np.diff(FEATURES @ theta))
    if number is not None:
        assert found.scores == pytest.approx(FEATURES @ theta)
        assert found.number == number


def test_errors_are_those_of_least_squares_to_an_arm_and_to_the_origin():
    counts = np.array([9, 7, 0, 3, 1])
    found = ground_of(number=0.0).posterior(seen_at(np.zeros(5), counts))
    inverse = np.linalg.inv(FEATURES.T @ (counts[:, None] * FEATURES))
    for centre, origin in ((NUMBER, np.zeros(2)), (2, FEATURES[2])):
        apart = FEATURES - origin
        lengths = np.sqrt(np.einsum("ij,jk,ik->i", apart, inverse, apart))
        assert found.errors(centre) == pytest.approx(SIGMA * lengths, abs=1e-9)


def test_errors_of_means_to_a_number_have_no_share_of_another_arm():
    found = ground_of(vectors=False, number=0.1).posterior(seen_at([0.0, 1.0, 0.5, 2.0, 0.3], [1, 4, 100, 2, 3]))
    alone = found.errors(NUMBER)
    for centre in range(5):
        assert found.errors(centre) == pytest.approx(np.sqrt(alone**2 + alone[centre] ** 2))


def test_the_origin_is_one_more_arm_only_where_vectors_meet_a_number():
    assert isinstance(ground_of(vectors=False, number=0.3).extended, IndependentArms)
    assert ground_of(gamma=0.1).extended.num_arms == 5
    extended = ground_of(gamma=0.1, number=0.3).extended
    assert isinstance(extended, Embedding)
    assert (extended.num_arms, extended.misspecification) == (6, 0.1)
    assert extended.features[-1].tolist() == [0.0, 0.0]
    seen = with_unmeasured(Observations(np.array([2]), np.array([3.0]), np.array([5.0])), 1)
    assert (seen.counts.tolist(), seen.sums.tolist(), seen.squares.tolist()) == ([2, 0], [3.0, 0.0], [5.0, 0.0])
    turned = negated(seen)
    assert (turned.sums.tolist(), turned.squares.tolist()) == ([-3.0, 0.0], [5.0, 0.0])


# --- e-values


def expectation(ground: Ground, bet: Bet, past: Observations, counts, means, arm: int) -> float:
    """E exp(gain of an arm) where rewards are normal: the gain is linear in the totals, so it has a closed form."""
    posterior, nothing = ground.posterior(past), np.zeros(len(counts))

    def gain(sums) -> float:
        return float(ground.gains(bet, past, Observations(counts, sums), posterior)[arm])

    level = gain(nothing)
    slopes = np.array([gain(one) - level if counts[place] else 0.0 for place, one in enumerate(np.eye(len(counts)))])
    mean, variance = level + slopes @ (counts * means), SIGMA**2 * (slopes**2 @ counts)
    return math.exp(mean + 0.5 * variance)


def hostile(seed: int, *, gamma: float, number: float | None, high: bool):
    """(ground, a true null, the past, counts, means, arm), misspecified where it flatters the null's denial most."""
    rng = np.random.default_rng(seed)
    num_arms, arm = len(FEATURES), int(rng.integers(len(FEATURES)))
    ground = ground_of(gamma=gamma, number=number)
    centre = NUMBER if number is not None else int((arm + rng.integers(1, num_arms)) % num_arms)
    counts = rng.integers(0, 9, num_arms)
    theta = rng.standard_normal(2)
    means = FEATURES @ (NORM * theta / np.linalg.norm(theta))
    past = Observations(rng.integers(1, 9, num_arms), rng.normal(0.0, 3.0, num_arms))

    def bet(margin: float) -> Bet:
        return Bet("any", centre, margin, high, np.arange(num_arms) == arm, np.full(num_arms, 3.0))

    posterior, nothing = ground.posterior(past), np.zeros(num_arms)
    trial = bet(9.0)  # for the signs of the weights, which do not depend on the margin
    level = ground.gains(trial, past, Observations(counts, nothing), posterior)[arm]
    slopes = np.array(
        [ground.gains(trial, past, Observations(counts, one), posterior)[arm] for one in np.eye(num_arms)]
    )
    flow = np.where(counts > 0, (slopes - level) * counts, 0.0)
    bets = np.abs(flow[arm] / counts[arm]) if counts[arm] else 1.0
    turned = -1.0 if high else 1.0
    flow[arm] += turned * bets  # what eta at the arm and at the centre adds to the margin of the null
    if centre != NUMBER:
        flow[centre] -= turned * bets
    means = means + gamma * np.where(flow >= 0.0, 1.0, -1.0)
    value = number if centre == NUMBER else means[centre]
    return ground, bet(turned * (means[arm] - value)), past, counts, means, arm


@pytest.mark.cases(4)
@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("number", [None, -0.6, 0.9])
@settings(max_examples=budget(60))
@given(seeds, st.sampled_from([0.0, 0.15]))
def test_with_vectors_and_misspecification_a_true_null_has_expectation_at_most_one(number, high, seed, gamma):
    case = hostile(seed, gamma=gamma, number=number, high=high)
    assert expectation(*case) <= 1.0 + 1e-6


@pytest.mark.parametrize("number", [None, 0.9])
def test_a_bias_that_is_left_out_is_noticed(number, monkeypatch):
    """The misspecification is there, and the embedding that is compared does not say so."""
    cases = [hostile(seed, gamma=0.3, number=number, high=bool(seed % 2)) for seed in range(30)]
    honest = [expectation(*case) for case in cases]
    assert sum(one != 1.0 for one in honest) >= 5
    monkeypatch.setattr(outlooks, "embedded_in", lambda embedding, *_: Embedding(embedding.features, 0.0))
    spoilt = [expectation(*case) for case in cases]
    print(f"\nlargest {max(honest):.4f}, without the bias {max(spoilt):.4f}")
    assert max(honest) <= 1.0 + 1e-6
    assert max(spoilt) > 1.05


@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("centre", [NUMBER, 1])
@settings(max_examples=budget(40))
@given(seeds)
def test_without_structure_the_expectation_at_the_null_is_one(centre, high, seed):
    rng = np.random.default_rng(seed)
    number = float(rng.normal()) if centre == NUMBER else None
    ground, counts, means = ground_of(vectors=False, number=number), rng.integers(1, 9, 5), rng.normal(0.0, 1.0, 5)
    past = Observations(rng.integers(1, 9, 5), rng.normal(0.0, 3.0, 5))
    value = number if centre == NUMBER else means[1]
    margin = (value - means[3]) if high else (means[3] - value)
    arms = np.arange(5) == 3
    bet = Bet("any", centre, float(margin), high, arms, np.full(5, 3.0))
    assert expectation(ground, bet, past, counts, means, 3) == pytest.approx(1.0, abs=1e-6)
    gains = ground.gains(bet, past, seen_at(means, counts), ground.posterior(past))
    assert np.all(gains[~arms] == 0.0)


@pytest.mark.parametrize("noise", [sp.Bernoulli(), sp.Bounded(0.0, 1.0)])
def test_turned_round_a_bet_above_is_one_below_of_the_negated_rewards(noise):
    ground, rng = ground_of(vectors=False, number=0.4, noise=noise), np.random.default_rng(3)
    past, batch = (Observations(np.full(5, 20), sums, sums) for sums in rng.binomial(20, 0.5, (2, 5)).astype(float))
    posterior, everybody = ground.posterior(past), np.ones(5, bool)
    mirrored = Posterior(1.0 - posterior.scores, posterior.errors, 0.6)
    high = ground.gains(Bet("a", NUMBER, 0.1, True, everybody, np.full(5, 2.0)), past, batch, posterior)

    def turned(seen: Observations) -> Observations:
        return Observations(seen.counts, seen.counts - seen.sums, seen.counts - seen.sums)

    low = ground_of(vectors=False, number=0.6, noise=noise).gains(
        Bet("a", NUMBER, 0.1, False, everybody, np.full(5, 2.0)), turned(past), turned(batch), mirrored
    )
    assert high == pytest.approx(low, rel=1e-9)
    assert np.any(high > 0.0)


# --- designs

AIMS = Aims(np.array([0, 1, 3]), np.array([1, NUMBER, NUMBER]), np.array([0.5, 1.0, 2.0]), np.array([3.0, 1.0, 0.5]))
ACCURACIES = AIMS.leads / efforts(-AIMS.needs, 0.0)
MGF = noise_mgf_after(sp.SubGaussian(SIGMA), Observations.nothing(5))


def test_designs_are_those_of_the_pairs_and_of_the_origin():
    alone = ground_of(vectors=False, number=0.0).rest(AIMS, MGF)
    pairs = independent_pairs_design(AIMS.first, AIMS.second, ACCURACIES, np.full(5, SIGMA), tolerance=0.05)
    assert (alone.pulls, alone.least, alone.cost) == (pairs.value, pairs.lower_bound, None)
    assert np.array_equal(alone.weights, pairs.weights)
    targets = np.array([FEATURES[0] - FEATURES[1], FEATURES[1], FEATURES[3]]) / ACCURACIES[:, None]
    fitted = ground_of(number=0.0).rest(AIMS, MGF)
    assert fitted.pulls == pytest.approx(solve_target_design(FEATURES / SIGMA, targets, tolerance=0.05).value)
    assert ground_of(gamma=0.1, number=0.0).rest(AIMS, MGF).pulls > fitted.pulls


def test_of_very_many_pairs_the_longest_are_kept(monkeypatch):
    monkeypatch.setattr(outlooks, "MOST_TARGETS", 1)
    longest = Aims(AIMS.first[:1], AIMS.second[:1], AIMS.leads[:1], AIMS.needs[:1])
    assert ground_of().rest(AIMS, MGF) == ground_of().rest(longest, MGF)
