"""What was told, leased, set aside and closed is protected."""

from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from tampered_studies import ARMS, PLAN, address, closed, rechain, refused, run, tell_all

import surepick as sp
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.sql import schema as sql_seals

# what was told, leased and closed


TOLD = {
    "a sum": f"UPDATE observation SET sum = sum + 0.001 WHERE plan = {PLAN} AND arm = 0",
    "a square": f"UPDATE observation SET squares = squares + 0.001 WHERE plan = {PLAN} AND arm = 0",
    "a square left away": f"UPDATE observation SET squares = NULL WHERE plan = {PLAN} AND arm = 0",
    "pulls": f"UPDATE observation SET pulls = pulls + 1 WHERE plan = {PLAN} AND arm = 0",
    "an arm": f"UPDATE observation SET arm = 1 WHERE plan = {PLAN} AND arm = 0",
    "an arm that is none": f"UPDATE observation SET arm = 77 WHERE plan = {PLAN} AND arm = 0",
    "an arm below all": f"UPDATE observation SET arm = -77 WHERE plan = {PLAN} AND arm = 0",
    "words for a sum": f"UPDATE observation SET sum = 'much' WHERE plan = {PLAN} AND arm = 0",
    "the status": f"UPDATE observation SET status = 'late' WHERE plan = {PLAN} AND arm = 0",
    "the plan": f"UPDATE observation SET plan = {PLAN + 1} WHERE plan = {PLAN} AND arm = 0",
    "one deleted": f"DELETE FROM observation WHERE id = (SELECT max(id) FROM observation WHERE plan = {PLAN})",
    "all deleted": f"DELETE FROM observation WHERE plan = {PLAN}",
    "a block": f"UPDATE observation SET block = 'monday' WHERE plan = {PLAN}",
    "a block of one row alone": f"UPDATE observation SET block = 'monday' WHERE plan = {PLAN} AND arm = 0",
    "a quantity": f"UPDATE observation SET quantities = '[[1, 0.5, 0.25]]' WHERE plan = {PLAN}",
    "one added": "INSERT INTO observation (study, plan, status, correction, arm, pulls, sum, squares, lease, source, "
    "told_at) SELECT study, plan, status, correction, arm, pulls, sum, squares, lease, source, told_at "
    f"FROM observation WHERE id = (SELECT max(id) FROM observation WHERE plan = {PLAN})",
    "the closing": f"DELETE FROM event WHERE plan = {PLAN} AND kind = 'closed'",
    "a lease": "INSERT INTO lease (study, plan, number, worker, arm, pulls, first, again, until, leased_at) "
    "SELECT study, plan, number + 1, worker, arm, 99, first + 99, 7, until, leased_at FROM lease "
    f"WHERE plan = {PLAN} LIMIT 1",
}


@pytest.mark.parametrize("case", TOLD)
def test_what_was_told_of_a_judged_plan_is_protected(path, case):
    run(path, TOLD[case])
    refused(path, f"(decision|plan) {PLAN}")


UNUSED = {
    "when it was told": (f"observation SET told_at = told_at + 1 WHERE plan = {PLAN}", "results"),
    "who told it": (f"observation SET source = 'eve' WHERE plan = {PLAN} AND arm = 0", "results"),
    "its key": (
        f"observation SET key = 'mine' WHERE id = (SELECT max(id) FROM observation WHERE plan = {PLAN})",
        "results",
    ),
    "its item": (f"observation SET item = 7 WHERE plan = {PLAN}", "results"),
    "its correction": (f"observation SET correction = 1 WHERE plan = {PLAN}", "results"),
    "its lease": (f"observation SET lease = 9 WHERE plan = {PLAN} AND arm = 0", "results"),
    "a worker": (f"lease SET worker = 'eve' WHERE plan = {PLAN}", "leases"),
    "the end of a lease": (f"lease SET until = until + 1 WHERE plan = {PLAN}", "leases"),
    "when it was leased": (f"lease SET leased_at = leased_at - 1e-6 WHERE plan = {PLAN}", "leases"),
    "when it was closed": (f"event SET at = at - 1 WHERE plan = {PLAN}", "events"),
    "what it is about": (f"event SET result = 1 WHERE plan = {PLAN}", "events"),
    "the reason of an event": (f"event SET reason = 'better so' WHERE plan = {PLAN}", "events"),
}


@pytest.mark.cases(7)
@pytest.mark.parametrize("case", UNUSED)
def test_what_no_decision_depends_on_is_protected_too(path, case):
    """Who told what when under which key: the record of the laboratory."""
    statement, kind = UNUSED[case]
    run(path, f"UPDATE {statement}")
    refused(path, f"the {kind} of plan {PLAN} is not what was stored")
    rechain(path)
    closed(sp.open_study(address(path), "x"))  # but for a forger who computes the whole chain again


@pytest.mark.parametrize(
    "where", [f"plan SET opened_at = 0.5 WHERE number = {PLAN}", f"decision SET decided_at = 0.5 WHERE plan = {PLAN}"]
)
def test_the_times_of_plans_and_decisions_are_protected(path, where):
    run(path, f"UPDATE {where}")
    refused(path, f"{where.split()[0]} {PLAN} is not what was stored")


@pytest.mark.parametrize("new", ["id = 7", "created_at = created_at + 1", "id = -1", "seal = ''", "num_features = 3"])
def test_a_study_is_not_cut_off_from_its_rows(path, new):
    """Without foreign keys; it would look as if nothing had been asked yet."""
    run(path, f"UPDATE study SET {new}")
    before = path.read_bytes()
    for look in (lambda: resume_stored_study(address(path), "x"), lambda: sp.list_studies(address(path))):
        with pytest.raises(sp.StorageError, match=r"'x': its number in the database.*not what was stored"):
            look()
    assert path.read_bytes() == before


# what was set aside, and the end


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE observation SET sum = 9 WHERE key = 'before'", "result 1 of those that were set aside.*'before'"),
        ("UPDATE observation SET told_at = 9 WHERE key = 'long before'", "result 2 of those that were set aside"),
        ("UPDATE observation SET status = 'prior' WHERE key = 'p1.0@c'", "result 3 of those that were set aside"),
        ("UPDATE observation SET item = 3 WHERE key = 'before'", "result 1 of those that were set aside"),
        ("UPDATE observation SET correction = 1 WHERE key = 'before'", "result 1 of those that were set aside"),
        ("UPDATE observation SET source = x'ff' WHERE key = 'p1.0@c'", "result 3 of those that were set aside"),
        ("DELETE FROM observation WHERE key = 'p1.0@c'", "result 3 of those that were set aside"),
        ("UPDATE event SET reason = 'done' WHERE kind = 'ended'", "the end of the study"),
        ("UPDATE event SET at = at + 1 WHERE kind = 'ended'", "the end of the study"),
        ("UPDATE observation SET sum = 9 WHERE plan = 6", "the end of the study, or a row of the plan that was open"),
    ],
)
def test_what_was_set_aside_and_the_end_are_protected(aside, statement, named):
    run(aside, statement)
    refused(aside, f"{named}.* is not what was stored")
    if "x'ff'" not in statement:
        rechain(aside)
        closed(sp.open_study(address(aside), "x"))


def test_every_column_of_a_row_is_in_its_hash():
    for _, table, hashed in sql_seals.KINDS:
        assert {*hashed, "id", "study", "plan", "hash"} >= set(table.c.keys())
        assert len(set(hashed)) == len(hashed)


WITHOUT_FEATURES = sp.Arms(ids=["a", "b", "c", "d"])
BESIDE = {
    "block": ({"blocks": "day"}, "plan = 1", "block || ' '"),
    "item": (
        {"items": [f"q{number}" for number in range(64)], "policy": "certified-items", "noise": "bernoulli"},
        "plan = 1",
        "item + 1",
    ),
    "quantities": (
        {"constraints": "heat<=0,tolerance=0.5,noise=subgaussian:0.3"},
        "plan = 1",
        "replace(quantities, '0.5', '0.75')",
    ),
}


@pytest.mark.parametrize("column", BESIDE)
def test_what_is_told_beside_a_reward_is_protected(sqlite_url, column):
    asked, where, new = BESIDE[column]
    options = {"epsilon": 0.2, "delta": 0.05, "noise": "subgaussian:0.5", **asked}
    policy = sp.make_policy(options.pop("policy", "certified-independent"), WITHOUT_FEATURES, **options)
    study = sp.create_study(sqlite_url, "x", policy)
    batch = study.ask()
    rewards = np.zeros(batch.total)
    study.tell(batch, np.column_stack([rewards, rewards + 0.5]) if column == "quantities" else rewards)
    closed(study)
    closed(sp.open_study(sqlite_url, "x"))
    path = Path(sa.make_url(sqlite_url).database)
    run(path, f"UPDATE observation SET {column} = {new} WHERE {where}")
    refused(path, "results of plan 1 is not what was stored")


@pytest.mark.parametrize(
    "statement", ["observation SET told_at = told_at + 1 WHERE plan = 1", "event SET reason = 'x' WHERE plan = 1"]
)
def test_the_rows_are_protected_in_either_database(database_url, statement):
    policy = sp.make_policy("certified-independent", ARMS, epsilon=0.2, delta=0.05, noise=sp.SubGaussian(0.5))
    study = sp.create_study(database_url, "x", ARMS, policy)
    study.lease(worker="w", max_pulls=2)
    tell_all(study, study.ask())
    closed(study)
    closed(sp.open_study(database_url, "x"))
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(f"UPDATE {statement}")).rowcount > 0
    engine.dispose()
    with pytest.raises(sp.StorageError, match=r"of plan 1 is not what was stored"):
        sp.open_study(database_url, "x")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE event SET reason = 'broken' WHERE kind = 'abandoned'", "DELETE FROM event WHERE kind = 'abandoned'"],
)
def test_abandonments_are_protected(path, statement):
    run(path, statement)
    refused(path, f"(decision|plan) {PLAN - 1}")


@pytest.mark.parametrize("table", ["decision", "plan"])
@pytest.mark.parametrize("number", [1, PLAN, 5])
def test_a_row_that_was_deleted_is_missed(path, table, number):
    column = "plan" if table == "decision" else "number"
    run(path, f"DELETE FROM {table} WHERE {column} = {number}")
    refused(path, f"{table} {number} is missing")


def test_the_start_that_was_deleted_is_missed(path):
    run(path, "DELETE FROM decision WHERE plan = 0")
    refused(path, "decision 0 is missing")


def test_a_decision_without_its_plan_is_found(path):
    run(path, "DELETE FROM plan WHERE number > 4")
    refused(path, "plan 5 is missing")
