"""What docs/certified-elimination.md forbids, done: each time the tests of `test_certified.py` see the error rate rise.

Where the policy's own steering would hide the damage, because its bounds are generous, the steering is hostile.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice, until_clear
from budgets import at_each_delta
from certified_studies import (
    CROWD,
    GAP,
    HIDDEN,
    MANY,
    RIVALS,
    bad_candidates_in_turn,
    counting_from_the_start,
    hidden_best,
    known_candidate,
    lost_when_high,
    never_asked,
    one_good,
    settled_wrongly,
    told_with_losses,
    wrong_answers,
    wrongly_settled_hidden,
)

import surepick as sp
from surepick.estimators.contrast_weights import ContrastWeights
from surepick.estimators.e_values import processes_of
from surepick.policies.certified import elimination as certified_elimination
from surepick.policies.certified import elimination as conclusion

# --- the bias omitted


@pytest.fixture
def no_bias(monkeypatch):
    monkeypatch.setattr(ContrastWeights, "bias", lambda contrast, rows, weights: np.zeros(len(rows)))


FEW = trials_to_notice(0.05, 0.99)  # as test_certified.py


@pytest.mark.usefixtures("no_bias")
@pytest.mark.parametrize(("delta", "runs"), [(0.05, FEW), pytest.param(0.3, 24, marks=pytest.mark.slow)])
def test_an_omitted_bias_is_noticed(delta, runs):
    instance = hidden_best(gamma=0.75, sigma=0.3)
    wrong = wrong_answers(instance, instance.policy(delta), runs, most_batches=6, told=never_asked(HIDDEN))
    assert wrong > failures_allowed(runs, delta)


@pytest.mark.usefixtures("no_bias")
def test_an_omitted_bias_is_noticed_with_a_candidate_that_profits():
    instance = hidden_best(gamma=0.4, sigma=1.0)
    assert wrongly_settled_hidden(instance, 0.05, trials=FEW, batches=15) > failures_allowed(FEW, 0.025)


# --- bets that have seen the batch


def without_bad_batches(evidence_of):
    """No bet on a rival where the batch would lower the evidence."""

    def spoilt(embedded, seen, **given):
        found = evidence_of(embedded, seen, **given)
        return replace(found, gains=np.maximum(found.gains, 0.0))

    return spoilt


def margins_of_the_batch(evidence_of):
    """Bets on the differences that the batch itself shows."""

    def spoilt(embedded, seen, *, centre, epsilon, margins, **given):
        margins = np.maximum(epsilon + seen.means[centre] - seen.means, epsilon)
        return evidence_of(embedded, seen, centre=centre, epsilon=epsilon, margins=margins, **given)

    return spoilt


@at_each_delta
@pytest.mark.parametrize("spoil", [without_bad_batches, margins_of_the_batch])
def test_bets_that_look_at_the_batch_are_noticed(spoil, delta, monkeypatch):
    honest = certified_elimination.batch_evidence
    monkeypatch.setattr(certified_elimination, "batch_evidence", spoil(honest))
    environment = known_candidate(sp.SubGaussian(2.0), GAP, RIVALS)
    assert settled_wrongly(environment, epsilon=1.0, delta=delta) > failures_allowed(RIVALS, delta / 2)


def test_bets_that_look_at_the_batch_are_noticed_in_studies(monkeypatch):
    honest = certified_elimination.batch_evidence
    monkeypatch.setattr(certified_elimination, "batch_evidence", without_bad_batches(honest))
    instance = one_good(len(MANY))
    ask = bad_candidates_in_turn(MANY, most=6)
    wrong = wrong_answers(instance, instance.policy(0.05), 10, ask=ask, most_batches=100)
    assert wrong > failures_allowed(10, 0.05)


# --- epochs


@at_each_delta
def test_an_epoch_that_counts_earlier_batches_is_noticed(delta):
    instance = one_good(len(CROWD))
    policy = instance.policy(delta)
    ask = bad_candidates_in_turn(CROWD, most=1, wait=12)
    wrong = wrong_answers(instance, policy, 60, ask=ask, most_batches=35, told=counting_from_the_start(policy))
    assert wrong > failures_allowed(60, delta)


def test_epochs_without_their_weights_are_noticed(monkeypatch):
    def opened_for_nothing(epochs, candidate, num_arms):
        return (*epochs, processes_of((), candidate, num_arms))

    monkeypatch.setattr(conclusion, "open_test", opened_for_nothing)
    instance = one_good(len(MANY))
    ask = bad_candidates_in_turn(MANY, most=16)
    wrong = wrong_answers(instance, instance.policy(0.3), 60, ask=ask, most_batches=25)
    assert wrong > failures_allowed(60, 0.3)


# --- the noise understated


@at_each_delta
def test_half_the_noise_is_noticed(delta):
    environment = known_candidate(sp.SubGaussian(2.0), GAP, RIVALS)
    half = sp.SubGaussian((1e-9, *[1.0] * RIVALS))
    assert settled_wrongly(environment, epsilon=1.0, delta=delta, noise=half) > failures_allowed(RIVALS, delta / 2)


def test_half_the_noise_is_noticed_in_studies():
    instance = one_good(len(MANY))
    ask = bad_candidates_in_turn(MANY, most=6)
    policy = instance.policy(0.05, noise=sp.SubGaussian(0.5))
    assert wrong_answers(instance, policy, 40, ask=ask, most_batches=25) > failures_allowed(40, 0.05)


# --- results lost because of their values


def test_results_lost_by_value_break_the_promise():
    """A third of the best arm's high rewards never arrive, and the study is told that chance took them."""
    instance = one_good(sigma=8.0)

    def wrong() -> Iterator[bool]:
        for seed in range(17):
            answer = told_with_losses(instance, 0.05, lost_when_high, seed)
            assert answer.verdict == "certified"
            assert any("has nothing to do with" in sentence for sentence in answer.assumptions)
            yield not instance.environment.is_epsilon_best(answer.arm, instance.epsilon)

    assert until_clear(wrong(), 17, 0.05) > failures_allowed(17, 0.05)
