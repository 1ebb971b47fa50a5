"""Which policies may say, while they run, how good their leader is and who is ruled out."""

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.random_streams import stream
from surepick.policies import model_checks
from surepick.policies.verdict import PolicySummary

ARMS = sp.Arms(stream(2, "terms").normal(size=(6, 2)))
MEANS = np.array([0.9, 0.8, 0.0, 0.0, 0.0, -0.5])
ASKED = {"epsilon": 0.05, "delta": 0.05, "noise": "subgaussian:0.5"}


def policy(name, **options):
    return sp.make_policy(name, ARMS, **ASKED, **options)


def after(batches, name, **options):
    """The study of six arms after so many batches, told their means."""
    study = sp.Study(policy(name, **options))
    while len(study.trace) < batches:
        plan = study.ask()
        study.tell_totals(study.ids, plan.counts, plan.counts * MEANS, plan.counts * MEANS**2)
    return study


@of_each(
    ("name", "options", "proves", "eliminates"),
    [
        ("certified-independent", {}, True, True),
        ("certified-linear", {"norm_bound": 2.0}, True, True),
        ("certified-linear", {"norm_bound": 2.0, "evidence": "readings"}, True, False),
        ("certified-linear", {"norm_bound": 2.0, "norm_source": "estimated"}, False, True),
        ("linear-embedding", {"norm_bound": 2.0}, True, True),
        ("linear-embedding", {"norm_bound": 2.0, "schedule": "paper", "union": "best-pairs"}, False, True),
        ("action-elimination", {}, True, True),
        ("lucb", {}, True, False),
        ("sequential-halving", {"budget": 200}, False, False),
        ("unknown-misspecification", {"dim": 2}, False, True),
    ],
)
def test_what_a_policy_may_say(name, options, proves, eliminates):
    terms = PolicySummary.of(policy(name, **options))
    assert (terms.proves, terms.eliminates, terms.delta) == (proves, eliminates, 0.05)
    stored = {"policy": policy(name, **options).spec} | terms.stored()
    assert PolicySummary.stored_in(stored) == terms


def test_those_who_are_out_for_good_are_counted():
    study = after(20, "action-elimination")
    progress = study.progress()
    assert (progress.ruled_out, progress.confidence) == (6 - len(study.trace[-1].active), 0.95)
    assert progress.ruled_out == 1
    assert progress.certified_gap == study.trace[-1].certified_gap
    assert "1 of 6 candidates is ruled out as the best" in str(progress)


@pytest.mark.parametrize(
    ("name", "options"), [("lucb", {}), ("certified-linear", {"norm_bound": 2.0, "evidence": "readings"})]
)
def test_where_candidates_can_come_back_none_is_ruled_out(name, options):
    study = after(3, name, **options)
    study.ask()
    progress = study.progress()
    assert (progress.ruled_out, progress.confidence) == (None, 0.95)
    assert "candidates left" in str(progress)


@pytest.mark.parametrize(
    ("name", "options"), [("sequential-halving", {"budget": 200}), ("unknown-misspecification", {"dim": 2})]
)
def test_a_rule_that_proves_nothing_claims_nothing(name, options):
    progress = after(2, name, **options).progress()
    assert progress.left < 6
    assert (progress.certified_gap, progress.confidence, progress.ruled_out) == (None, None, None)
    assert "nothing is proved about it yet" in str(progress)
    assert "ruled out" not in str(progress)


def test_results_that_contradict_the_features_take_the_claims_away(monkeypatch):
    assert after(3, "certified-linear", norm_bound=3.0).progress().certified_gap is not None
    monkeypatch.setattr(model_checks, "failed_checks", lambda *_: ("the norm is larger",))
    progress = after(3, "certified-linear", norm_bound=3.0).progress()
    assert (progress.certified_gap, progress.confidence, progress.ruled_out) == (None, None, None)


def test_results_left_out_for_their_values_take_the_claims_away():
    study = after(20, "action-elimination")
    study.ask()
    study.abandon("it looked odd")
    progress = study.progress()
    assert study.trace[-1].certified_gap is not None
    assert (progress.certified_gap, progress.confidence, progress.ruled_out) == (None, None, None)
