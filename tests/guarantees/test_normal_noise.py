"""Normal noise of unknown, unequal scales keeps delta: few repeats and many, the best arm noisiest and quietest.

Counts are held against exact binomial bounds; the saboteurs show that they would notice.
"""

from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import STUDIES, few_and_all_studies
from normal_studies import believed_wrongly, five_arms, settled_wrongly, wrong_answers, wrong_answers_with_features

from surepick.estimators import normal_mgf_after
from surepick.estimators.noise_mgf import squared_deviations
from surepick.policies.sequential import engine

PAIRS = {  # repeats a batch, scale, batches
    "2 repeats": (2, 0.4, 10),
    "3 repeats": (3, 0.6, 20),
    "3 repeats, noisier": (3, 1.2, 20),
    "300 repeats": (300, 12.0, 12),
    "one by one": (1, 0.6, 40),
}


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.cases(3)
@few_and_all_studies(250, STUDIES)
@pytest.mark.parametrize("name", PAIRS)
def test_rivals_just_over_epsilon_looked_at_after_every_batch(name, delta, runs):
    repeats, scale, looks = PAIRS[name]
    assert_kept(name, settled_wrongly(runs, delta=delta, scale=scale, repeats=repeats, looks=looks), runs, delta)


@few_and_all_studies(10, STUDIES)
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
def test_whole_studies_with_variances_from_1_to_100(best, delta, runs):
    wrong, pulls = wrong_answers(five_arms(best), runs, delta=delta)
    assert_kept(f"best arm the {best}, {pulls / runs:.0f} pulls", wrong, runs, delta)


# --- with features: all arms are weighed, and so all have the bound that holds for all at once

FEATURED = {"2 repeats": (2, 0.4, 10), "8 repeats": (8, 0.8, 8)}


@few_and_all_studies(24, 2_000)
@pytest.mark.parametrize("name", FEATURED)
def test_with_features_a_better_arm_is_not_believed_to_be_within_epsilon(name, delta, runs):
    repeats, scale, looks = FEATURED[name]
    wrong = believed_wrongly(runs, delta=delta, scale=scale, repeats=repeats, looks=looks)
    assert_kept(f"with features, {name}", wrong, runs, delta)


@pytest.mark.cases(1)
@few_and_all_studies(10, 2_000)
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
def test_whole_studies_with_features_and_variances_from_1_to_100(best, delta, runs):
    wrong, pulls = wrong_answers_with_features(runs, delta=delta, best=best)
    assert_kept(f"with features, best arm the {best}, {pulls / runs:.0f} pulls", wrong, runs, delta)


# --- a saboteur; one that uses a bound for one look at several is in tests/estimators/test_normal_mgf.py


def plug_in(past, failure):
    """The repeats' own variance, taken for the truth."""
    usual = normal_mgf_after(past, failure)
    repeats = past.counts - 1
    own = np.divide(squared_deviations(past), repeats, out=np.full(len(repeats), np.inf), where=repeats > 0)
    guess = np.where(np.isfinite(own), own, 1.0)
    return replace(usual, bounds=own, joint_bounds=own, variances=guess)


@pytest.mark.parametrize("delta", [0.01, 0.05])
def test_a_plug_in_scale_taken_for_the_truth_is_noticed(delta, monkeypatch):
    repeats, scale, looks = PAIRS["2 repeats"]
    monkeypatch.setattr(engine, "normal_mgf_after", plug_in)
    wrong = settled_wrongly(1_000, delta=delta, scale=scale, repeats=repeats, looks=looks)
    print(f"\n{wrong} of 1000, {failures_allowed(1_000, delta)} allowed")
    assert wrong > failures_allowed(1_000, delta)


def test_with_features_a_plug_in_scale_taken_for_the_truth_is_noticed(monkeypatch):
    repeats, scale, looks = FEATURED["2 repeats"]
    monkeypatch.setattr(engine, "normal_mgf_after", plug_in)
    wrong = believed_wrongly(80, delta=0.01, scale=scale, repeats=repeats, looks=looks)
    print(f"\n{wrong} of 80, {failures_allowed(80, 0.01)} allowed")
    assert wrong > failures_allowed(80, 0.01)
