"""What docs/certified-elimination.md forbids of evidence that is carried on, done: `test_carried.py` sees it each time.

Flows that are matched because of the outcome are in tests/policies/carried/test_exact_law.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from carried_studies import (
    BIASED,
    CANDIDATES,
    DELTA,
    FEW_IN_THE_PLANE,
    IN_THE_PLANE,
    LOOKS,
    PAIRS,
    RIVALS,
    STUDIES,
    fooled_by_bias,
    fooled_in_the_plane,
    fooled_without_features,
    lost_at_random,
    lost_when_high,
    settled_wrongly,
)

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators.running_processes import UNKNOWN, Flow, MeanProcesses, VectorProcesses
from surepick.policies.carried import elimination
from surepick.policies.sequential import state as rest


@pytest.mark.parametrize(
    ("trials", "wrong", "missed"),
    [
        (PAIRS, 0.34, 1e-6),
        (CANDIDATES, 0.32, 1e-2),
        (IN_THE_PLANE, 0.24, 1e-2),
        (BIASED, 0.53, 1e-2),
        (FEW_IN_THE_PLANE, 0.99, 1e-6),
        (STUDIES, 0.9, 1e-6),
    ],
)
def test_the_numbers_of_trials_notice_whoever_errs_so_often(trials, wrong, missed):
    assert 0.8 * trials <= trials_to_notice(DELTA, wrong, missed) <= trials


SOON = 60  # looks: enough for whoever errs nearly always


def noticed(wrong: int, runs: int) -> bool:
    print(f"\n{wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    return wrong > failures_allowed(runs, DELTA)


# --- weights that have seen the batch


def without_bad_batches(after):
    """No bet of an arm on batches that lower its evidence: the log value, with what T says of a bad candidate."""

    def spoilt(self, *given):
        found = after(self, *given)
        better = found.log_values + found.taken > self.log_values + self.taken
        taken = np.where(better, found.taken, self.taken)
        named = {one.arm for one in (*self.given, *found.given)}
        kept = tuple(Flow(arm, np.where(better, found.given_to(arm), self.given_to(arm))) for arm in named)
        return replace(found, log_values=np.where(better, found.log_values, self.log_values), taken=taken, given=kept)

    return spoilt


@pytest.mark.parametrize(("name", "looks"), [("normal", SOON), ("rare bernoulli", LOOKS)])
def test_weights_that_look_at_the_batch_are_noticed_of_pairs(name, looks, monkeypatch):
    monkeypatch.setattr(MeanProcesses, "after", without_bad_batches(MeanProcesses.after))
    assert noticed(settled_wrongly(RIVALS[name], PAIRS, looks=looks), PAIRS)


def test_weights_that_look_at_the_batch_are_noticed_with_bad_candidates(monkeypatch):
    monkeypatch.setattr(MeanProcesses, "after", without_bad_batches(MeanProcesses.after))
    assert noticed(fooled_without_features(CANDIDATES), CANDIDATES)


# --- T < 0


def of_either_sign(upper_bounds):
    """As if the flows were the negative ones, where that gives a smaller bound."""

    def spoilt(self, *given):
        negative = tuple(replace(one, flows=-one.flows) for one in self.given)
        mirrored = replace(self, flows=-self.flows, own=-self.own, given=negative)
        bounds, other = upper_bounds(self, *given), upper_bounds(mirrored, *given)
        return np.where(other < UNKNOWN, np.minimum(bounds, -other), bounds)

    return spoilt


@pytest.mark.parametrize("runs", [FEW_IN_THE_PLANE, pytest.param(IN_THE_PLANE, marks=pytest.mark.slow)])
def test_a_negative_flow_towards_the_candidate_is_noticed(runs, monkeypatch):
    monkeypatch.setattr(VectorProcesses, "upper_bounds", of_either_sign(VectorProcesses.upper_bounds))
    assert noticed(fooled_in_the_plane(runs), runs)


# --- the flow of a lost pull


def test_the_flow_of_a_lost_pull_is_noticed_if_it_is_counted(monkeypatch):
    honest = elimination.processes_after

    def counted(planner, state, plan, _, seen):
        all_of_it = Observations(plan.counts, seen.sums, seen.squares)
        return honest(planner, state, plan, elimination.bets_of(planner, state, plan, all_of_it), all_of_it)

    monkeypatch.setattr(elimination, "processes_after", counted)
    assert noticed(settled_wrongly(RIVALS["normal"], PAIRS, looks=SOON, lost=lost_at_random), PAIRS)


# --- the bias omitted


def no_bias(self, candidate, amount, rows):
    return np.zeros_like(amount)


def half_of_it(self, candidate, amount, rows):
    """Only what is matched badly counts, not the flows to arms that are no candidates."""
    there = next((one.flows[rows] for one in self.given if one.arm == candidate), np.zeros_like(amount))
    return np.abs(there - amount) + np.abs(self.own[rows] + amount)


@pytest.mark.parametrize("spoilt", [no_bias, half_of_it])
def test_an_omitted_bias_is_noticed(spoilt, monkeypatch):
    monkeypatch.setattr(VectorProcesses, "unmatched", spoilt)
    assert noticed(fooled_by_bias(BIASED, gamma=0.4), BIASED)


# --- the noise understated


def test_half_the_noise_is_noticed_of_pairs():
    assert noticed(settled_wrongly(RIVALS["normal"], PAIRS, noise=sp.SubGaussian(1.0)), PAIRS)


@pytest.mark.parametrize(
    ("fooled", "runs"),
    [(fooled_without_features, CANDIDATES), pytest.param(fooled_in_the_plane, IN_THE_PLANE, marks=pytest.mark.slow)],
)
def test_half_the_noise_is_noticed_with_bad_candidates(fooled, runs):
    assert noticed(fooled(runs, told=0.5), runs)


# --- new starts without their weight


def test_a_new_start_with_weight_one_is_noticed(monkeypatch):
    honest = rest.start_weights
    monkeypatch.setattr(rest, "start_weights", lambda starts: np.where(starts == 1, honest(starts), 0.0))
    assert noticed(fooled_without_features(CANDIDATES, batches=40, hopeless=-1.0), CANDIDATES)


# --- results lost because of their values


def test_results_lost_by_value_are_noticed():
    assert noticed(settled_wrongly(RIVALS["normal"], PAIRS, lost=lost_when_high), PAIRS)
