"""Blocks keep delta whatever their effects: chosen from the past, ten times the noise, pulls in blocks as they come.

Counts of wrong certificates are held against exact binomial bounds; weights that do not sum to 0 within blocks are
noticed.
"""

import pytest
from block_studies import (
    as_one_block,
    settled_wrongly,
    settled_wrongly_on_features,
    unbalanced,
    wrong_answers,
    wrong_answers_on_features,
)
from bounds import failures_allowed

from surepick.policies.carried import blocks_rule, evidence

A_TWENTIETH_AND_ALL = [250, pytest.param(5_000, marks=pytest.mark.slow)]  # runs; `make prove` has all of them
at_both = pytest.mark.parametrize("delta", [0.05, 0.3])


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    allowed = failures_allowed(runs, delta)
    print(f"\n{what}, delta {delta}: {wrong} wrong of {runs}, {allowed} allowed")
    assert wrong <= allowed


@at_both
@pytest.mark.parametrize("runs", A_TWENTIETH_AND_ALL)
def test_the_best_arm_among_equals_in_blocks_of_four(runs, delta):
    assert_kept("one of 5 arms in blocks", wrong_answers(runs, delta), runs, delta)


@at_both
@pytest.mark.parametrize("rivals", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_rivals_in_blocks_with_effects_by_how_they_stand(rivals, delta):
    assert_kept("rivals in blocks", settled_wrongly(rivals, delta), rivals, delta)


@at_both
def test_weights_that_do_not_sum_to_zero_within_blocks_are_noticed(delta, monkeypatch):
    monkeypatch.setattr(blocks_rule, "equations", unbalanced)
    assert settled_wrongly(500, delta) > failures_allowed(500, delta)


@at_both
def test_half_the_noise_is_noticed(delta):
    assert settled_wrongly(500, delta, told=1.0) > failures_allowed(500, delta)


# --- with features


@at_both
@pytest.mark.parametrize("runs", A_TWENTIETH_AND_ALL)
def test_the_best_of_six_arms_on_features_in_blocks_of_four(runs, delta):
    assert_kept("one of 6 arms on features in blocks", wrong_answers_on_features(runs, delta), runs, delta)


@at_both
@pytest.mark.parametrize("rivals", [250, pytest.param(5_000, marks=pytest.mark.slow)])
def test_rivals_on_features_in_blocks_with_effects_by_how_they_stand(rivals, delta):
    assert_kept("rivals on features in blocks", settled_wrongly_on_features(rivals, delta), rivals, delta)


@at_both
def test_weights_on_features_that_do_not_sum_to_zero_within_blocks_are_noticed(delta, monkeypatch):
    monkeypatch.setattr(evidence, "in_blocks", as_one_block)
    assert settled_wrongly_on_features(250, delta) > failures_allowed(250, delta)


@at_both
def test_half_the_noise_on_features_is_noticed(delta):
    assert settled_wrongly_on_features(500, delta, told=0.7) > failures_allowed(500, delta)
