"""Certificates on other machines: what is checked where numbers round otherwise."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import certificate_flips as flips
import numpy as np
import pytest
from certified_files import POLICIES, resealed, study_of
from forged_certificates import every_look, forged

import surepick as sp
from surepick.certificates import document as documents, signature
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.environments import Environment

# --- alterations


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("name", "field", "value", "words"),
    [
        ("certified-linear", "misspecification", 1e6, "its misspecification is 1000000.0"),
        ("linear-embedding", "misspecification", 1e6, "its misspecification is 1000000.0"),
        ("certified-linear", "lower_bound", 1e9, "its lower bound"),
        ("action-elimination", "dim", 3, "dim is stored as 3 and computed as 0"),
        ("action-elimination", "value", 3.5, "value is stored as 3.5"),
        ("action-elimination", "candidate", "c", "candidate is stored as 2"),
        ("action-elimination", "looks", 99, "looks is stored as 99"),
    ],
)
def test_a_forger_who_computes_everything_anew_cannot_alter_what_the_promise_rests_on(name, field, value, words):
    """On any machine: where plans cannot be computed bit by bit, what `tell` reads of them is checked all the same."""
    honest = certificate_document(study_of(name, most=4, **POLICIES[name]))
    assert verify_certificate(forged(honest, lambda document: None)).holds
    result = verify_certificate(forged(honest, every_look(field, value)))
    assert not result.holds
    assert words in result.lines[-1].words


@pytest.mark.cases(4)
@pytest.mark.parametrize("where", ["here", "elsewhere"])
@pytest.mark.parametrize(("share", "holds"), [(0.0, True), (1e-8, True), (1e-4, False)])
def test_a_misspecification_that_is_all_rounding_may_be_that_of_another_machine(share, holds, where, request):
    """The columns of two kinds and of the constant are collinear: what four directions leave out is all rounding."""
    kinds = np.eye(2)[[0, 0, 1, 1, 0, 1, 1]]
    features = np.column_stack([np.ones(7), kinds, np.cos(np.arange(7)), np.sin(3 * np.arange(7))])
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.5, delta=0.1, noise=sp.SubGaussian(0.3), norm_bound=1.0
    )
    study = sp.Study(policy)
    for _ in range(2):
        plan = study.ask()
        study.tell_totals(study.ids, plan.counts, plan.counts * features[:, 3])
    honest = certificate_document(study)
    biases = {look["misspecification"] for entry in honest["rounds"] for look in entry["looks"]}
    assert 0.0 < max(biases) < 1e-9
    if where == "elsewhere":
        request.getfixturevalue("elsewhere")
    result = verify_certificate(forged(honest, every_look("misspecification", max(biases) * 1.01 + share * 0.5)))
    assert result.holds == holds, str(result)


@pytest.mark.usefixtures("elsewhere")
def test_no_round_can_spend_the_share_of_another():
    honest = certificate_document(study_of("linear-embedding", most=12, epsilon=0.05, norm_bound=2.0))
    assert len(honest["rounds"]) > 1

    def all_in_round_one(document: dict) -> None:
        for entry in document["rounds"]:
            entry["round"] = 1

    result = verify_certificate(forged(honest, all_in_round_one))
    assert not result.holds
    assert "it is of round 1, and the study was in round 2" in str(result)


# --- other machines, other versions, many candidates


@pytest.mark.cases(3)
@pytest.mark.usefixtures("elsewhere")
def test_where_numbers_round_otherwise_brackets_are_compared(document):
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert "round otherwise" in result.lines[-1].words
    looks = [(row, look) for row, entry in enumerate(document["rounds"]) for look in range(len(entry["looks"]))]
    if document["rounds"][0]["looks"][0]["lower_bound"] is None:
        return
    for row, look in looks[:2]:
        for name, factor in (("value", 0.5), ("lower_bound", 2.0), ("value", -1.0)):
            spoilt = document
            if not flips.at(document, ("rounds", row, name)):
                continue  # a batch that serves no candidate predicts nothing
            if factor == 0.5 and not flips.at(document, ("rounds", row, "lower_bound")):
                continue  # a prediction without a design: its bracket begins at 0, and half of it is compatible
            for path in (("rounds", row, name), ("rounds", row, "looks", look, name)):
                spoilt = flips.replaced(spoilt, path, factor * flips.at(document, path))
            assert not verify_certificate(resealed(spoilt)).holds, (row, name, factor)


ANOTHER_KERNEL = """
import json, sys
from surepick.certificates.verify import verify_certificate
from surepick.environments import Environment
results = [verify_certificate(path) for path in sys.argv[1:]]
print(json.dumps([[one.holds, str(one)] for one in results]))
"""


def uneven() -> sp.Study:
    """Columns of very different sizes: the bias that rounding costs is large beside it, and drifts."""
    rng = np.random.default_rng(3)
    features = np.column_stack([np.ones(30), rng.normal(size=(30, 3)) * [1.0, 100.0, 1e4]])
    arms, means = sp.Arms(features), features @ [0.2, 0.3, 0.004, 0.00003]
    policy = sp.make_policy(
        "certified-linear", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.3), norm_bound=50.0
    )
    study = sp.Study(arms, policy)
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, plan.counts * means + np.sqrt(plan.counts) * rng.normal(0.0, 0.3, 30))
    assert study.certificate().verdict == "certified"
    return study


def test_another_processor_verifies_it(tmp_path):
    """OpenBLAS with the kernels of another processor adds in another order."""
    studies = {name: study_of(name, most=12, **POLICIES[name]) for name in POLICIES} | {"uneven": uneven()}
    files = [sp.write_certificate(study, tmp_path / f"{name}.json") for name, study in studies.items()]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    words = [sys.executable, "-c", ANOTHER_KERNEL, *map(str, files)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
    for holds, text in json.loads(done.stdout):
        assert holds, text


def test_designs_that_take_long_are_computed_only_when_asked_for(linear, monkeypatch):
    monkeypatch.setattr(signature, "LARGEST_QUICK_DESIGN", 9)
    quick, whole = verify_certificate(linear), verify_certificate(linear, most_plans=3)
    assert quick.holds
    assert whole.holds
    assert quick.lines[-1].words.startswith("3 were not computed again")
    assert whole.lines[-1].words.startswith("what the policy asks, with their designs and brackets (3)")
    words = verify_certificate(linear, most_plans=1).lines[-1].words
    assert words.startswith("the first 1 of 3 are")
    assert "2 were not computed again" in words
    monkeypatch.setattr(signature, "LARGEST_QUICK_DESIGN", 10)
    monkeypatch.setattr(signature, "QUICK_PLANS", 2)
    assert verify_certificate(linear).lines[-1].words.startswith("the first 2 of 3 are")


def test_plans_that_were_asked_for_elsewhere_are_not_said_to_be_reproduced():
    """Where the log's second plan is not what the policy asks here, the file says that one came out equal."""
    study = study_of("certified-linear", most=1, norm_bound=2.0)
    first = study.ask()
    counts = first.counts + 1
    study.log._plans[-1] = replace(study.log._plans[-1], plan=replace(study.log._plans[-1].plan, counts=counts))
    study = sp.Study(study.arms, study.policy, log=study.log)
    study.tell_totals(study.ids, counts, counts * 0.5, counts * 0.5)
    document = certificate_document(study)
    assert document["reproduced"] == 1
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert result.lines[-1].words.startswith("the first 1 of 2 are")
    assert not verify_certificate(resealed({**document, "reproduced": 2})).holds


def test_what_several_threads_have_left_in_a_study_is_not_written(monkeypatch):
    """They add in other orders: what a policy holds from before differs in last bits from what a verifier computes."""
    features = np.random.default_rng(3).standard_normal((40, 3))
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.3, delta=0.1, noise="subgaussian:0.5", norm_bound=1.0
    )
    world = Environment(arms=policy.problem.arms, means=features @ [0.5, -0.2, 0.1], noise=sp.SubGaussian(0.5))
    study = sp.simulate(policy, world, seed=1).study
    before = certificate_document(study)
    kept = study.policy._cache._kept
    white = tuple((dim, replace(one, basis=one.basis * (1.0 + 1e-6))) for dim, one in kept["white"])
    kept.clear()
    kept["white"] = white
    monkeypatch.setattr(documents, "several_threads", lambda: True)
    assert certificate_document(study) == before
    assert certificate_document(study, check=True) == before
    monkeypatch.setattr(documents, "several_threads", lambda: False)
    assert certificate_document(study) != before  # so that the assertion above says something
