"""The certificate of every policy can be checked by somebody else, and shows the intervals that decided."""

import json

import numpy as np
import pytest
from named_policies import NAMES, make

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.records import encode
from surepick.policies.base import stopped
from surepick.policies.verdict import certificate_of

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.5], [0.3, 0.3]])
MEANS = FEATURES @ np.array([0.9, 0.2])
MOST_PLANS = 12
WITH_INTERVALS = {  # sequential-halving decides by ranks
    *("linear-embedding", "kernel-embedding", "fixed-linear", "fixed-kernel", "rage", "xy-static", "xy-adaptive"),
    *("certified-linear", "certified-kernel", "certified-independent", "unknown-misspecification"),
    *("neural-embedding", "means-neural-rule", "action-elimination", "lucb", "lingape", "lingame"),
}
CERTIFYING = {"certified-linear", "certified-kernel", "certified-independent"}


def noisy(counts, number: int) -> Observations:
    """Simulated rewards with noise of scale .5."""
    rng = stream(number, "certificates")
    sums = counts * MEANS + np.sqrt(counts) * rng.normal(0.0, 0.5, len(counts))
    return Observations(counts, sums, sums**2 / np.maximum(counts, 1) + 0.2 * counts)


def told(name: str, *, minimize: bool = False) -> sp.Study:
    """A study of that policy, at its end or after some plans."""
    policy = make(name, sp.Arms(FEATURES), epsilon=0.25)
    study = sp.Study(sp.Arms(FEATURES), policy, minimize=minimize)
    number = 0
    while (plan := study.ask()) is not None and number < MOST_PLANS:
        seen = noisy(plan.counts, number)
        study.tell_totals(study.ids, seen.counts, -seen.sums if minimize else seen.sums, seen.squares)
        number += 1
    return study


@pytest.fixture(scope="module", params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def study(name) -> sp.Study:
    return told(name)


@pytest.fixture(scope="module")
def mirrored(name) -> sp.Study:
    return told(name, minimize=True)


def check_it_is_verified_from_the_file_alone(subject: sp.Study) -> None:
    document = json.loads(json.dumps(certificate_document(subject)))
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert document["verdict"] == subject.certificate().verdict == result.verdict
    assert document["pulls"] == sum(sum(look["told"]["pulls"]) for row in document["rounds"] for look in row["looks"])


def test_it_is_verified_from_the_file_alone(study):
    check_it_is_verified_from_the_file_alone(study)


SIGN_OF_THE_STUDY = pytest.mark.cases(7)  # policies are told the mirrored rewards, and know nothing of it


@pytest.mark.cases(4)
@SIGN_OF_THE_STUDY
def test_it_is_verified_where_little_is_good(mirrored):
    check_it_is_verified_from_the_file_alone(mirrored)


@pytest.mark.cases(4)
@SIGN_OF_THE_STUDY
def test_minimising_is_the_mirror_image(study, mirrored):
    straight, other_way = certificate_document(study), certificate_document(mirrored)
    for mine, theirs in zip(straight["rounds"], other_way["rounds"], strict=True):
        for look, other in zip(mine["looks"], theirs["looks"], strict=True):
            assert look["told"]["sums"] == [-one for one in other["told"]["sums"]]
            assert look["left"] == other["left"]
    assert straight["intervals"] == other_way["intervals"]
    means = straight["candidates"]["means"]
    assert means == [None if one is None else -one for one in other_way["candidates"]["means"]]


def looks(study: sp.Study):
    """(active before, the step, its intervals) of each look, folded anew."""
    state, intervals, active = study.policy.init(), None, np.arange(len(FEATURES))
    for planned in study.log.plans():
        if planned.number > study.replay.settle().decision.plan:
            return
        (results,) = study.log.results(planned.number)
        seen = Observations(planned.plan.counts, np.zeros(len(FEATURES)), np.zeros(len(FEATURES)))
        sums, squares = np.zeros(len(FEATURES)), np.zeros(len(FEATURES))
        sums[results.arms], squares[results.arms] = results.sums, results.squares
        seen = Observations(planned.plan.counts, sums, squares)
        step = study.policy.tell(state, planned.plan, seen)
        intervals = None if step.deciding is None else step.deciding(intervals)
        yield active, step, intervals
        state, active = step.state, step.record.active


@pytest.mark.cases(6)
def test_exactly_the_intervals_decide(name, study):
    """An arm leaves if and only if its margin is not negative; where all are, the study is over."""
    for before, step, intervals in looks(study):
        if intervals is None:
            assert name not in WITH_INTERVALS
            continue
        margins = dict(zip(intervals.arms.tolist(), intervals.margins.tolist(), strict=True))
        for arm in np.setdiff1d(before, step.record.active).tolist():
            assert margins[arm] >= 0.0
            witness = int(intervals.comparators[intervals.arms == arm][0])
            assert witness != arm
            assert witness in step.record.active or name in CERTIFYING
        staying = [margins[arm] for arm in step.record.active.tolist() if arm in margins]
        if stopped(study.policy, step.state) and certificate_of(study.policy, step.state).verdict == "certified":
            assert all(margin >= 0.0 for margin in staying)
        elif staying and step.record.look == step.record.looks and not stopped(study.policy, step.state):
            assert not all(margin >= 0.0 for margin in staying)


@pytest.mark.cases(6)
def test_a_margin_is_the_lead_less_the_width_plus_what_is_allowed(study):
    for _, _, intervals in looks(study):
        if intervals is not None:
            known = np.isfinite(intervals.leads) & np.isfinite(intervals.widths)
            expected = (intervals.leads - intervals.widths + intervals.allowed)[known]
            assert intervals.margins[known] == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert set(intervals.allowed.tolist()) <= {0.0, study.policy.problem.epsilon}


@pytest.mark.cases(7)
def test_the_intervals_change_nothing(study):
    """They are computed for whoever asks, from the same numbers, as often as one likes."""
    intervals = None
    for _, step, found in looks(study):
        if step.deciding is not None:
            again = [encode(step.deciding(intervals)) for _ in range(2)]
            assert repr(again[0]) == repr(again[1]) == repr(encode(found))
            intervals = found
