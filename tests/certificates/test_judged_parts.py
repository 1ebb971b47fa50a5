"""Certificates of studies that were judged as their results came: they say so, and cannot say anything else."""

import json

import certificate_forger as forger
import pytest
from certified_files import cli, resealed
from judged_parts import small_study, study_in_parts, tell_keys

from surepick.certificates.answers import dense
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.certificates.verify_facts import stated_facts
from surepick.studies.logs.memory import MemoryLog


@pytest.fixture(scope="module", params=["certified-independent", "certified-linear"])
def document(request) -> dict:
    return certificate_document(study_in_parts(request.param), "parts")


def failing(document: dict, **how: object) -> list[str]:
    found = verify_certificate(resealed(document), **how)
    return [line.what for line in found.lines if not line.holds]


def test_it_holds_and_says_how_it_was_judged(document):
    found = verify_certificate(document)
    assert found.holds, str(found)
    assert document["judge"] == "as they come"
    assert any("judged as they came" in line.words for line in found.lines)
    looks = [look for entry in document["rounds"] for look in entry["looks"]]
    short = [int((dense(look["asked"], 3) - dense(look["told"], 3)).max()) for look in looks]
    assert max(short) > 0, "no plan was judged before all of it was in"


def test_it_cannot_be_passed_off_as_one_of_closed_rounds(document):
    assert failing({**document, "judge": "closed rounds"})
    older = {name: value for name, value in document.items() if name != "judge"}
    assert failing(older)


def test_another_rule_is_refused(document):
    assert "what was told" in failing({**document, "judge": "when I like"})


def test_the_rule_is_registered(document):
    code = document["registration"]
    assert failing(document, registered=code) == []
    log = MemoryLog()
    log.study_id = document["study_id"]
    assert small_study(document["policy"]["name"], epsilon=0.2, log=log).registration == code


TOLD_ARMS = (*forger.LOOK, "told", "arms", "#")  # as other results: of parts nobody can say which arms came


@pytest.mark.parametrize(
    ("plans", "within", "least"),
    [
        (2, ("judge", "rounds", "registration", "minimize"), 30),  # the others are those of closed rounds
        pytest.param(2, None, 60, marks=pytest.mark.slow),
        pytest.param(4, None, 60, marks=pytest.mark.slow),
    ],
)
def test_with_the_code_a_forgery_of_each_kind_is_refused(plans, within, least):
    parts = study_in_parts("certified-independent", plans)
    found = forger.forge(certificate_document(parts, "parts"), each=1, values=1, within=within)
    assert found.tried > least
    assert {kind: number for kind, number in found.passed.items() if kind not in forger.NOT_COVERED} in (
        {},
        {TOLD_ARMS: 1},
    )


def test_results_of_an_arm_that_no_plan_asked_for_are_refused():
    study = small_study("certified-linear", epsilon=0.2)
    tell_keys(study, study.lease().keys()[:1])
    study.interim()
    document = certificate_document(study)
    look = document["rounds"][0]["looks"][0]
    look["asked"] = {**look["asked"], "arms": [1], "pulls": [1]}
    look["told"] = {**look["told"], "arms": [0]}
    assert failing(document) != []
    with pytest.raises(ValueError, match="has results, and no plan asked for any"):
        stated_facts(document, study.arms, study.policy)


def test_the_command_line_verifies_it(document, tmp_path):
    path = tmp_path / "parts.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert cli("verify", str(path)).exit_code == 0
