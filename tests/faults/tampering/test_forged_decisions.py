"""What was not decided by the study is found."""

import sqlite3

import pytest
from tampered_studies import address, closed, rechain, refused, run

import surepick as sp
from surepick.studies.database import resume_stored_study


def test_a_forged_decision_on_an_open_plan_is_found(path):
    run(
        path,
        "INSERT INTO decision (study, plan, round, state, seen, trace, deviations, leader, stopped, verdict, "
        "records, previous, hash, decided_at) SELECT study, 6, round, state, seen, trace, deviations, leader, 1, "
        "'certified', records, previous, hash, decided_at FROM decision WHERE plan = 5",
    )
    rechain(path)
    refused(path, "decision 6 is on a plan that was never closed")


def test_a_plan_closed_by_force_is_found_before_it_is_judged(path):
    run(path, "INSERT INTO event (study, plan, kind, pulls, lease, reason, at) VALUES (1, 6, 'closed', 0, 0, '', 0)")
    refused(path, "plan 6 is closed, and [0-9]+ of the measurements")


def test_a_row_that_contradicts_a_stored_one_is_refused_in_words(path):
    """Of an open plan, so nothing is found until somebody wants the pulls that were leased to another."""
    study = resume_stored_study(address(path), "x")
    for worker, pulls in (("v", 2), ("w", 1)):
        assert study.lease(worker=worker, max_pulls=pulls).total == pulls
    closed(study)
    run(path, "DELETE FROM lease WHERE plan = 6 AND worker = 'v'")
    with pytest.raises(sp.StorageError, match="contradicts"):
        resume_stored_study(address(path), "x").lease(worker="u")


def test_the_last_decision_is_computed_again_if_it_is_gone(path):
    """Without plan 6 nothing after it is chained; what was told decides as before."""
    run(path, "DELETE FROM plan WHERE number = 6", "DELETE FROM observation WHERE plan = 6")
    database = sqlite3.connect(path)
    kept = "plan, round, state, seen, trace, deviations, leader, stopped, verdict, previous, records"  # but the time
    question = f"SELECT {kept} FROM decision WHERE plan = 5"
    before = database.execute(question).fetchone()
    database.close()
    run(path, "DELETE FROM decision WHERE plan = 5")
    study = sp.open_study(address(path), "x")
    assert len(study.trace) == 5
    closed(study)
    database = sqlite3.connect(path)
    assert database.execute(question).fetchone() == before
    database.close()
