"""Bytes of a study that do not match their hash are found."""

import sqlite3

import pytest
from tampered_studies import MEANS, PLAN, address, change, closed, rechain, refused, run

import surepick as sp
from surepick.studies.audit import audit
from surepick.studies.database import resume_stored_study


def test_without_tampering_it_opens(path):
    study = sp.open_study(address(path), "x")
    assert len(study.trace) == 5
    assert study.missing.sum() > 0
    closed(study)


@pytest.mark.parametrize("first", ["plans", "decisions"])
def test_a_study_that_goes_on_meanwhile_is_no_tampering(path, monkeypatch, first):
    """Another process finishes plans between any two things that are read."""
    other = resume_stored_study(address(path), "x")
    study = resume_stored_study(address(path), "x")
    read = getattr(study.log, first)

    def then_others_go_on(*arguments):
        rows = list(read(*arguments))
        for _ in range(2):
            plan = other.ask()
            other.tell_totals(other.ids, plan.counts, plan.counts * MEANS, plan.counts * (MEANS**2 + 0.25))
        return iter(rows)

    monkeypatch.setattr(study.log, first, then_others_go_on)
    audit(study, "x")
    assert len(other.trace) == 7
    for one in (study, other):
        closed(one)
    closed(sp.open_study(address(path), "x"))


def test_rechaining_what_is_true_changes_nothing(path):
    before = path.read_bytes()
    rechain(path)
    closed(sp.open_study(address(path), "x"))
    database = sqlite3.connect(path)
    other = sqlite3.connect(":memory:")
    other.deserialize(before)
    for table in ("study", "plan", "decision", "observation", "event"):
        question = f"SELECT * FROM {table} ORDER BY id"
        assert database.execute(question).fetchall() == other.execute(question).fetchall()
    database.close()
    other.close()


PLAIN = {
    "state": ("decision", "state", lambda text: text + " "),
    "seen": ("decision", "seen", lambda text: text + " "),
    "trace": ("decision", "trace", lambda text: text + " "),
    "deviations": ("decision", "deviations", lambda text: text + " "),
    "verdict": ("decision", "verdict", lambda _: "certified"),
    "leader": ("decision", "leader", lambda leader: leader + 1),
    "stopped": ("decision", "stopped", lambda stopped: 1 - stopped),
    "round": ("decision", "round", lambda number: number + 1),
    "hash": ("decision", "hash", lambda text: text[::-1]),
    "previous": ("decision", "previous", lambda text: text[::-1]),
    "the plan": ("plan", "plan", lambda text: text + " "),
    "the plan's hash": ("plan", "hash", lambda text: text[::-1]),
}


@pytest.mark.parametrize("case", PLAIN)
def test_a_column_that_was_changed_is_found(path, case):
    table, column, edit = PLAIN[case]
    change(path, table, column, edit)
    named = f"{table} {PLAN}"
    if "hash" in case:  # the row after it, whose own hash rests on it, may be looked at first
        named = f"(decision {PLAN}|plan {PLAN}|plan {PLAN + 1})"
    said = refused(path, f"{named} is not what was stored")
    assert "altered" in said
    assert "backup" in said


@pytest.mark.parametrize("column", ["configuration", "name", "hash"])
def test_the_study_row_is_protected(path, column):
    named = "x2" if column == "name" else "x"
    new = {"configuration": "replace(configuration, '0.05', '0.5')", "name": "'x2'", "hash": "upper(hash)"}[column]
    run(path, f"UPDATE study SET {column} = {new}")
    with pytest.raises(sp.StorageError, match=f"'{named}': its configuration.* not what was stored"):
        sp.open_study(address(path), named)


@pytest.mark.parametrize(
    "new",
    [
        """ids = '["b", "a", "c", "d"]'""",
        """ids = '["a", "b", "c", "e"]'""",
        "features = zeroblob(length(features))",
        "features = substr(features, 1, 8)",
        "num_features = 1",
        "num_arms = 2, num_features = 4",
    ],
)
def test_the_arms_are_protected(path, new):
    run(path, f"UPDATE study SET {new}")
    refused(path, "(its arms|plan 1)")


def test_nothing_is_told_under_names_that_were_exchanged(path):
    """Who only tells computes nothing again, and yet must not book a result on another arm."""
    run(path, """UPDATE study SET ids = '["b", "a", "c", "d"]'""")
    with pytest.raises(sp.StorageError, match=r"'x'.*arms"):
        resume_stored_study(address(path), "x").tell(["a"], [1.0])


def test_the_hash_of_the_arms_is_protected(path):
    run(path, "UPDATE study SET arms_hash = upper(arms_hash)")
    refused(path, "not what was stored")


@pytest.mark.parametrize(
    "new",
    [
        "ids = '[\"a\"]'",
        "ids = 'garbage'",
        "ids = '5'",
        "ids = x'ff'",
        "features = 'words'",
        "features = 5",
        "num_arms = 'x'",
        "num_features = x'ff'",
        "configuration = x'ff'",
        "arms_hash = x'ff'",
    ],
)
def test_a_study_row_of_the_wrong_kind_is_found(path, new):
    run(path, f"UPDATE study SET {new}")
    refused(path, "(arms|configuration)")


@pytest.mark.parametrize(
    ("new", "named"),
    [
        (f"plan SET plan = x'ff' WHERE number = {PLAN}", f"plan {PLAN}"),
        (f"plan SET opened_at = 'noon' WHERE number = {PLAN}", f"plan {PLAN}"),
        (f"decision SET decided_at = 'noon' WHERE plan = {PLAN}", f"decision {PLAN}"),
        (f"decision SET leader = 'b' WHERE plan = {PLAN}", f"decision {PLAN}"),
        (f"observation SET arm = 'b' WHERE plan = {PLAN}", f"the results of plan {PLAN}"),
        (f"observation SET pulls = 1e308 WHERE plan = {PLAN}", f"the results of plan {PLAN}"),
        (f"observation SET source = x'ff' WHERE plan = {PLAN}", f"the results of plan {PLAN}"),
        ("observation SET arm = 1e308 WHERE plan = 6", "plan 6"),
    ],
)
def test_a_value_of_the_wrong_kind_is_found(path, new, named):
    """SQLite stores what it is given, whatever the column's type."""
    run(path, f"UPDATE {new}")
    refused(path, named)
