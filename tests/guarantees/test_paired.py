"""Pairs within blocks keep delta: whatever the effects and correlations, the best arm noisiest and quietest.

Counts are held against exact binomial bounds; the saboteurs show that they would notice.
"""

from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import STUDIES, at_each_delta, few_and_all_studies
from paired_studies import settled_pairs, settled_wrongly, wrong_answers

from surepick.policies import tuning
from surepick.policies.paired import rule
from surepick.policies.paired.rule import spread_of_differences

of_both_kinds = pytest.mark.parametrize("kind", ["blocks", "streams"])
BATCHES = {"3 blocks": (3, 0.6, 20), "one block": (1, 0.6, 40), "300 blocks": (300, 12.0, 12)}


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.cases(4)
@few_and_all_studies(250, STUDIES)
@of_both_kinds
@pytest.mark.parametrize("name", BATCHES)
def test_rivals_just_over_epsilon(kind, name, runs, delta):
    repeats, scale, looks = BATCHES[name]
    wrong = settled_wrongly(kind, runs, delta, repeats=repeats, scale=scale, looks=looks)
    assert_kept(f"{kind}, {name} a batch", wrong, runs, delta)


@pytest.mark.cases(2)
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
@few_and_all_studies(17, STUDIES)
def test_two_arms_that_go_together(correlation, runs, delta):
    wrong = settled_pairs("streams", runs, delta, correlation=correlation, blocks=4, looks=10, more=12)
    assert_kept(f"correlation {correlation:g}", wrong, runs, delta)


@pytest.mark.cases(2)  # blocks and streams, the noisiest and the quietest
@pytest.mark.parametrize(  # ten at .3 would notice nobody
    ("runs", "delta"), [(10, 0.05), *(pytest.param(STUDIES, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3))]
)
@of_both_kinds
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
def test_whole_studies_with_variances_from_1_to_100(kind, best, runs, delta):
    assert_kept(f"{kind}, best arm the {best}", wrong_answers(kind, runs, delta, best=best), runs, delta)


# --- saboteurs


def plug_in(before, failure):
    """The pairs' own variances, taken for the truth."""
    usual = spread_of_differences(before, failure)
    number = np.maximum(before.counts - 1, 1)
    own = np.maximum(before.squares - before.sums**2 / np.maximum(before.counts, 1), 1e-12) / number
    return replace(usual, difference_bounds=own, variances=own)


@pytest.mark.parametrize("delta", [0.01, 0.05])
def test_a_plug_in_scale_taken_for_the_truth_is_noticed(delta, monkeypatch):
    monkeypatch.setattr(rule, "spread_of_differences", plug_in)
    monkeypatch.setattr(tuning, "HEURISTIC_REPEATS", 2)
    wrong = settled_wrongly("blocks", 1_000, delta, repeats=2, scale=0.4, looks=10)
    print(f"\n{wrong} of 1000, {failures_allowed(1_000, delta)} allowed")
    assert wrong > failures_allowed(1_000, delta)


@at_each_delta
def test_bets_that_cost_nothing_are_noticed(delta, monkeypatch):
    monkeypatch.setattr(rule, "_cost", lambda mgf, seen: np.zeros(len(seen.counts)))
    wrong = settled_wrongly("streams", 500, delta, repeats=5, scale=0.6, looks=60)
    assert wrong > failures_allowed(500, delta)
