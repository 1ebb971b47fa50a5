"""An opening computes the latest decisions again and checks the chain of the others; an answer rests on all of them."""

import pytest
from tampered_studies import ARMS, FORGED, PLAN, address, change, closed, edit_json, rechain, refused, tell_all

import surepick as sp
from surepick.studies import database
from surepick.studies.audit import LATEST, export_results
from surepick.studies.database import resume_stored_study


@pytest.fixture
def latest_one(monkeypatch):
    """As if the study were long: of its five decisions the last one is computed again."""
    monkeypatch.setattr(database, "LATEST", 1)


@pytest.mark.cases(8)
@pytest.mark.parametrize("case", FORGED)
def test_an_old_decision_that_was_altered_is_found_by_its_hash(path, latest_one, case):
    column, edit = FORGED[case]
    change(path, "decision", column, edit)
    refused(path, f"decision {PLAN} is not what was stored")


def test_an_old_plan_that_was_altered_is_found_by_its_hash(path, latest_one):
    change(path, "plan", "plan", edit_json("counts", 0, by=lambda number: number + 1))
    refused(path, f"plan {PLAN} is not what was stored")


@pytest.mark.cases(8)
@pytest.mark.parametrize("case", FORGED)
def test_an_old_decision_under_new_hashes_never_becomes_an_answer(path, latest_one, tmp_path, case):
    column, edit = FORGED[case]
    change(path, "decision", column, edit)
    rechain(path)
    try:
        study = sp.open_study(address(path), "x")
    except sp.StorageError:  # what cannot be read is found at once
        return
    file, table = tmp_path / "certificate.json", tmp_path / "results.csv"
    for answer in (
        study.certificate,
        lambda: sp.write_certificate(study, file),
        lambda: export_results(study, table),
        lambda: study.read("nothing"),
        study.certificate,  # it is not asked once only
    ):
        with pytest.raises(sp.StorageError, match=rf"(decision|plan) {PLAN} .*(follow|computed|read)"):
            answer()
    assert not file.exists()
    assert not table.exists()
    closed(study)


def test_the_state_that_an_opening_starts_from_is_noticed_by_the_next_decision(path, latest_one):
    """Decision 4's state, under new hashes: what it leads to is not what decision 5 says."""
    change(path, "decision", "state", lambda text: text.replace("0.", "1.", 1), plan=4)
    rechain(path)
    refused(path, "decision 5 (does not follow|cannot be computed)")


def test_an_untouched_study_is_opened_by_few_decisions_and_answers_by_all(path, latest_one, monkeypatch):
    kind = type(resume_stored_study(address(path), "x").policy)
    judged, tell = [], kind.tell
    monkeypatch.setattr(kind, "tell", lambda self, *given: judged.append(1) or tell(self, *given))
    study = sp.open_study(address(path), "x")
    assert len(judged) == 1
    first = study.certificate()
    assert len(judged) == 6
    assert study.certificate() == first
    assert len(judged) == 6
    closed(study)


def test_what_is_told_after_an_opening_is_judged_from_the_same_state(tmp_path):
    here = sp.make_policy(
        "certified-linear", ARMS, epsilon=0.01, delta=0.05, noise="subgaussian:3", norm_bound=2.0, batch_size=4
    )
    study = sp.create_study(address(tmp_path / "long.db"), "x", here)
    beside = sp.Study(ARMS, here)
    for _ in range(LATEST + 6):
        for one in (study, beside):
            tell_all(one, one.ask())
    closed(study)
    again = sp.open_study(address(tmp_path / "long.db"), "x")
    for one in (again, beside):
        tell_all(one, one.ask())
    assert again.certificate() == beside.certificate()
    closed(again)
