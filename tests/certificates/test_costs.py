"""Certificates of studies with costs: what was spent is checked, and forged prices are found."""

import json
from copy import deepcopy

import numpy as np
import pytest
from certified_files import FEATURES, MEANS, resealed

import surepick as sp
from surepick.certificates import document as written
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.environments import Environment
from surepick.studies.logs.hash_chain import hash_of_arms

COSTS = [1.0, 2.5, 0.1, 4.0, 0.3]


def study_of(costs, **options) -> sp.Study:
    arms = sp.Arms(FEATURES, [*"abcde"], columns=["x", "y"], costs=costs)
    noise = sp.SubGaussian(0.5)
    policy = sp.make_policy("certified-linear", arms, epsilon=0.2, delta=0.1, noise=noise, norm_bound=2.0, **options)
    return sp.simulate(policy, Environment(arms=arms, means=MEANS, noise=noise), seed=3).study


@pytest.fixture(scope="module")
def priced() -> sp.Study:
    return study_of(COSTS, batch_cost=0.5)


def test_it_says_what_was_spent_and_all_of_it_holds(priced):
    document = certificate_document(priced)
    assert (document["arms"]["costs"], document["cost"]) == (COSTS, priced.certificate().cost)
    result = verify_certificate(document)
    assert result.holds, str(result)
    assert document["cost"] == pytest.approx(
        sum(cost * pulls for cost, pulls in zip(COSTS, document["candidates"]["pulls"], strict=True))
        + 0.5 * len(document["rounds"])
    )


def test_without_costs_it_has_no_word_of_them():
    document = certificate_document(study_of(None))
    assert "cost" not in json.dumps(document).replace("cost of", "")


@pytest.mark.parametrize(
    ("what", "forge"),
    [
        ("the measurements spent", lambda file: file.update(cost=file["cost"] - 1.0)),
        ("the measurements spent", lambda file: file.update(cost=None)),
        ("the fields", lambda file: file.pop("cost")),
        ("the configuration", lambda file: file["arms"]["costs"].__setitem__(0, 0.5)),
        ("the configuration", lambda file: file["arms"].pop("costs")),
        ("the candidates and their features", lambda file: file["arms"]["costs"].__setitem__(0, -1.0)),
        ("the candidates and their features", lambda file: file["arms"]["costs"].pop()),
        ("the candidates and their features", lambda file: file["arms"].update(costs=["1"] * 5)),
        ("the candidates and their features", lambda file: file["arms"].update(costs=None)),
        ("the measurements spent", lambda file: file["policy"].update(batch_cost=0.1)),
    ],
)
def test_forged_money_is_found(priced, what, forge):
    file = deepcopy(certificate_document(priced))
    forge(file)
    result = verify_certificate(resealed(file), most_plans=0)  # none of it rests on the plans
    assert what in [line.what for line in result.lines if not line.holds], str(result)


def test_a_certificate_made_anew_with_other_costs_needs_the_code(priced):
    """Who computes all of a file again with other prices is caught as with other features: by the registration."""
    other = study_of([2.0, 2.5, 0.1, 4.0, 0.3], batch_cost=0.5)
    document = certificate_document(other)
    assert verify_certificate(document).holds
    assert not verify_certificate(document, registered=priced.registration).holds


def test_costs_that_are_not_in_the_file_come_with_the_table(priced, monkeypatch):
    monkeypatch.setattr(written, "INLINE", 2)
    document = certificate_document(priced)
    assert document["arms"]["costs"] is None
    assert verify_certificate(document, arms=priced.arms).holds
    bare = sp.Arms(priced.arms.features, priced.arms.ids)
    assert "name their column (--cost COLUMN)" in str(verify_certificate(document, arms=bare))
    wrong = sp.Arms(priced.arms.features, priced.arms.ids, costs=[1.0] * 5)
    assert not verify_certificate(document, arms=wrong).holds
    plain = certificate_document(study_of(None))
    assert plain["arms"]["sha256"] == hash_of_arms(bare)
    assert verify_certificate(plain, arms=priced.arms).holds  # prices that the study did not have have no part in it


def test_money_where_results_are_judged_as_they_come():
    arms = sp.Arms(ids=[*"abcd"], costs=[0.1, 2.0, 0.7, 5.0])
    asked = {"epsilon": 0.1, "delta": 0.1, "noise": "subgaussian:0.3"}
    policy = sp.make_policy("certified-independent", arms, batch_cost=1.5, **asked)
    study, late, rng = sp.Study(policy, judge="as they come"), [], np.random.default_rng(0)
    while (batch := study.lease(worker="ann")) is not None:
        keys = batch.keys()
        now, kept = keys[: len(keys) // 2 + 1], keys[len(keys) // 2 + 1 :]  # the rest comes with the next plan's
        told = late + now
        rewards = [0.9 * (one == "a") + 0.3 * rng.normal() for one, _ in told]
        study.tell([one for one, _ in told], rewards, [key for _, key in told], worker="ann")
        late = kept
        study.interim()
    progress = study.progress()
    spent = study.log.measured(progress.judged)
    assert sum(spent.values()) == progress.pulls
    bill = sum(arms.costs[arm] * pulls for arm, pulls in spent.items()) + 1.5 * progress.judged
    assert progress.cost == study.certificate().cost == pytest.approx(bill)
    document = certificate_document(study)
    assert (document["judge"], document["cost"]) == ("as they come", progress.cost)
    result = verify_certificate(document)
    assert result.holds, str(result)
