"""What does not follow is found, even under hashes that were computed anew."""

import json
import sqlite3

import pytest
from tampered_studies import FORGED, PLAN, address, change, closed, edit_json, rechain, refused, run

import surepick as sp
from surepick.studies.audit import audit
from surepick.studies.database import resume_stored_study


@pytest.mark.cases(8)
@pytest.mark.parametrize("case", FORGED)
def test_a_decision_that_does_not_follow_is_found_whatever_its_hashes(path, case):
    column, edit = FORGED[case]
    change(path, "decision", column, edit)
    rechain(path)
    refused(path, f"decision {PLAN} (does not follow from|cannot be computed from)")


@pytest.mark.parametrize("column", ["seen", "trace", "deviations"])
def test_a_column_that_cannot_be_read_is_named_whatever_its_hashes(path, column):
    change(path, "decision", column, lambda _: "{")
    rechain(path)
    refused(path, f"decision {PLAN}")


def test_a_plan_that_cannot_be_read_is_named_whatever_its_hashes(path):
    change(path, "plan", "plan", lambda _: "{")
    rechain(path)
    refused(path, f"plan {PLAN}")


FORGED_PLANS = {
    "fewer pulls": edit_json("counts", 0, by=lambda number: number - 1),
    "more pulls": edit_json("counts", 0, by=lambda number: number + 1),
    "another round": edit_json("round", by=lambda number: number + 1),
    "another dimension": edit_json("dim", by=lambda number: number + 1),
    "fewer arms": edit_json("counts", by=lambda counts: counts[:-1]),
}


@pytest.mark.parametrize("case", FORGED_PLANS)
def test_a_plan_that_was_not_carried_out_is_found_whatever_its_hashes(path, case):
    change(path, "plan", "plan", FORGED_PLANS[case])
    rechain(path)
    refused(path, f"(decision|plan) {PLAN}")


def test_another_promise_is_found_whatever_its_hashes(path):
    run(path, """UPDATE study SET configuration = replace(configuration, '"delta": 0.05', '"delta": 0.5')""")
    rechain(path)
    refused(path, r"decision \d does not follow")


@pytest.mark.parametrize("by", [-1e-10, 1e-10])
@pytest.mark.parametrize("where", [("seen", "sums", 0), ("seen", "squares", 1), ("trace", "certified_gap")])
def test_another_processor_s_last_digits_pass(path, where, by):
    column, *inside = where
    change(path, "decision", column, edit_json(*inside, by=lambda number: number * (1 + by)))
    rechain(path)
    closed(sp.open_study(address(path), "x"))


@pytest.mark.parametrize("by", [-1e-6, 1e-6])
@pytest.mark.parametrize("where", [("seen", "sums", 0), ("seen", "squares", 1), ("trace", "certified_gap")])
def test_more_than_the_last_digits_do_not_pass(path, where, by):
    column, *inside = where
    change(path, "decision", column, edit_json(*inside, by=lambda number: number * (1 + by)))
    rechain(path)
    refused(path, f"decision {PLAN} does not follow from the reported results: (seen|row)")


def test_every_number_of_a_state_is_compared(path):
    def numbers(part, found=()):
        if isinstance(part, float) and part != 0:
            return [found]
        rows = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        return [place for name, inner in rows for place in numbers(inner, (*found, name))]

    database = sqlite3.connect(path)
    (text,) = database.execute(f"SELECT state FROM decision WHERE plan = {PLAN}").fetchone()
    database.close()
    whole = path.read_bytes()
    places = numbers(json.loads(text))
    assert len(places) > 3
    for place in places:
        path.write_bytes(whole)
        change(path, "decision", "state", edit_json(*place, by=lambda number: number * (1 + 1e-6)))
        rechain(path)
        refused(path, f"decision {PLAN} does not follow from the reported results: state")


def test_the_tolerance_is_what_separates_the_two(path):
    change(path, "decision", "seen", edit_json("sums", 0, by=lambda number: number * (1 + 1e-6)))
    rechain(path)
    study = resume_stored_study(address(path), "x")
    audit(study, "x", tolerance=1e-5)
    with pytest.raises(sp.StorageError, match=f"decision {PLAN}"):
        audit(study, "x")
    closed(study)
