"""What is changed in a database behind the library's back is found when the study is opened, and the row is named.

Results of the plan that is open are not protected: nothing was decided on them yet. They are protected once the plan is
closed and judged, and so are its leases and events, and all times.
"""

import json
import shutil
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

import surepick as sp
from surepick.studies.audit import audit
from surepick.studies.database import resume_study, study_hash
from surepick.studies.logs.sql import seals as sql_seals
from surepick.studies.logs.sql.chain import decision_hash, plan_hash

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]], ["a", "b", "c", "d"])
MEANS = np.array([0.9, 0.2, 0.66, -0.3])
PLAN = 3  # the plan that is tampered with; there are judged ones before and after it


def address(path) -> str:
    return f"sqlite:///{path}"


def closed(study) -> None:
    study.log._engine.dispose()


def tell_all(study, plan) -> None:
    for arm in np.flatnonzero(plan.counts).tolist():
        number = int(plan.counts[arm])
        rewards = MEANS[arm] + 0.5 * np.cos(np.arange(number) + plan.round)
        study.tell([plan.ids[arm]] * number, rewards)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A study of five judged plans, with a lease and an abandonment, and a sixth that is half told."""
    path = tmp_path_factory.mktemp("template") / "study.db"
    policy = sp.make_policy("certified-independent", ARMS, epsilon=0.2, delta=0.05, noise=sp.SubGaussian(0.5))
    study = sp.create_study(address(path), "x", ARMS, policy)
    for number in range(1, 6):
        plan = study.ask()
        if number == PLAN:
            study.lease(worker="w", max_pulls=2)
        if number == PLAN - 1:
            study.abandon("independent-of-value", ["d"])
            plan = study.lease(worker="w")
        tell_all(study, plan)
    study.tell([study.ask().ids[0]], [1.0])
    assert len(study.trace) == 5
    closed(study)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return path


@pytest.fixture
def path(template, tmp_path):
    return shutil.copy(template, tmp_path / "study.db")


def run(path, *statements) -> None:
    """Statements, each a text or (text, values), as anyone with the file could run them."""
    database = sqlite3.connect(path)
    for statement in statements:
        text, values = (statement, ()) if isinstance(statement, str) else statement
        assert database.execute(text, values).rowcount > 0, f"{text} changed nothing"
    database.commit()
    database.close()


def change(path, table, column, edit) -> None:
    """Put edit(value) for the value of the third plan's row."""
    where = {"plan": "number", "decision": "plan"}[table]
    database = sqlite3.connect(path)
    (value,) = database.execute(f"SELECT {column} FROM {table} WHERE {where} = {PLAN}").fetchone()
    assert edit(value) != value
    database.execute(f"UPDATE {table} SET {column} = ? WHERE {where} = {PLAN}", (edit(value),))
    database.commit()
    database.close()


def rechain(path) -> None:
    """The forger's next step: all hashes computed again, from the study's on."""
    engine = sa.create_engine(address(path))
    with engine.begin() as database:

        def rows(question):
            return [dict(row) for row in database.execute(sa.text(question)).mappings()]

        def put(table, row, **values):
            places = ", ".join(f"{name} = :{name}" for name in values)
            database.execute(sa.text(f"UPDATE {table} SET {places} WHERE id = :row"), {"row": row["id"], **values})

        (study,) = rows("SELECT * FROM study")
        start = previous = study_hash(study["name"], study["configuration"], study["ids"], study["arms_hash"])
        put("study", study, hash=start, seal=sql_seals.study_seal({**study, "hash": start}))
        plans = {row["number"]: row for row in rows("SELECT * FROM plan")}
        for decision in rows("SELECT * FROM decision ORDER BY plan"):
            number = decision["plan"]
            records = "" if number == 0 else sql_seals.records_of(database, study["id"], number)
            own = decision_hash({**decision, "previous": previous, "records": records})
            put("decision", decision, previous=previous, hash=own, records=records)
            if number + 1 in plans:
                plan = plans[number + 1]
                previous = plan_hash(own, plan["plan"], plan["opened_at"])
                put("plan", plan, hash=previous)
        aside = rows("SELECT * FROM observation WHERE standing <> 'counted' ORDER BY id")
        for row in aside:
            put("observation", row, hash=None)
        hashes = sql_seals.set_aside_hashes(database, study["id"], start, aside)
        for row, own in zip(aside, hashes, strict=True):
            put("observation", row, hash=own)
        for row in rows("SELECT * FROM event WHERE kind = 'ended'"):
            put("event", row, hash=sql_seals.end_hash(database, study["id"], start, row))
    engine.dispose()


def refused(path, what: str) -> str:
    """What open_study says when it refuses; the file is not touched."""
    before = path.read_bytes()
    with pytest.raises(sp.StorageError, match=what) as caught:
        sp.open_study(address(path), "x")
    assert "'x'" in str(caught.value), "the study is not named"
    assert path.read_bytes() == before
    return str(caught.value)


def edit_json(*where, by):
    """An edit of one entry of a JSON text."""

    def edit(text: str) -> str:
        document = json.loads(text)
        part = document
        for name in where[:-1]:
            part = part[name]
        part[where[-1]] = by(part[where[-1]])
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    return edit


def test_without_tampering_it_opens(path):
    study = sp.open_study(address(path), "x")
    assert len(study.trace) == 5
    assert study.missing.sum() > 0
    closed(study)


@pytest.mark.parametrize("first", ["plans", "decisions"])
def test_a_study_that_goes_on_meanwhile_is_no_tampering(path, monkeypatch, first):
    """Another process finishes plans between any two things that are read."""
    other = resume_study(address(path), "x")
    study = resume_study(address(path), "x")
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


# bytes that do not match their hash

PLAIN = {
    "state": ("decision", "state", lambda text: text + " "),
    "seen": ("decision", "seen", lambda text: text + " "),
    "trace": ("decision", "trace", lambda text: text + " "),
    "circumstances": ("decision", "circumstances", lambda text: text + " "),
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
        resume_study(address(path), "x").tell(["a"], [1.0])


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


# a chain that was computed again


FORGED = {
    "the state": ("state", lambda text: text.replace("0.", "1.", 1)),
    "unreadable state": ("state", lambda _: "{"),
    "another kind of state": ("state", lambda _: "[]"),
    "a sum that was seen": ("seen", edit_json("sums", 0, by=lambda number: number + 0.5)),
    "pulls that were seen": ("seen", edit_json("counts", 0, by=lambda number: number + 1)),
    "the leader of the trace": ("trace", edit_json("leader", by=lambda number: number + 1)),
    "the arms not ruled out": ("trace", edit_json("active", by=lambda active: active[:-1])),
    "the certified gap": ("trace", edit_json("certified_gap", by=lambda _: 0.01)),
    "an alarm": ("trace", edit_json("alarms", by=lambda _: ["invented"])),
    "surplus": ("circumstances", edit_json("surplus", by=lambda known: not known)),
    "repetitions": ("circumstances", edit_json("repeated", by=lambda number: number + 1)),
    "a reason": ("circumstances", edit_json("abandoned", by=lambda _: ["lost"])),
    "the verdict": ("verdict", lambda _: "certified"),
    "the leader": ("leader", lambda leader: (leader + 1) % 4),
    "stopped": ("stopped", lambda _: 1),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_decision_that_does_not_follow_is_found_whatever_its_hashes(path, case):
    column, edit = FORGED[case]
    change(path, "decision", column, edit)
    rechain(path)
    refused(path, f"decision {PLAN} (does not follow from|cannot be computed from)")


@pytest.mark.parametrize("column", ["seen", "trace", "circumstances"])
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
@pytest.mark.parametrize("where", [("seen", "sums", 0), ("seen", "squares", 1), ("trace", "predicted_pulls")])
def test_another_processor_s_last_digits_pass(path, where, by):
    column, *inside = where
    change(path, "decision", column, edit_json(*inside, by=lambda number: number * (1 + by)))
    rechain(path)
    closed(sp.open_study(address(path), "x"))


@pytest.mark.parametrize("by", [-1e-6, 1e-6])
@pytest.mark.parametrize("where", [("seen", "sums", 0), ("seen", "squares", 1), ("trace", "predicted_pulls")])
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
    study = resume_study(address(path), "x")
    audit(study, "x", tolerance=1e-5)
    with pytest.raises(sp.StorageError, match=f"decision {PLAN}"):
        audit(study, "x")
    closed(study)


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
    "the standing": f"UPDATE observation SET standing = 'late' WHERE plan = {PLAN} AND arm = 0",
    "the plan": f"UPDATE observation SET plan = {PLAN + 1} WHERE plan = {PLAN} AND arm = 0",
    "one deleted": f"DELETE FROM observation WHERE id = (SELECT max(id) FROM observation WHERE plan = {PLAN})",
    "all deleted": f"DELETE FROM observation WHERE plan = {PLAN}",
    "one added": "INSERT INTO observation (study, plan, standing, arm, pulls, sum, squares, lease, source, told_at) "
    f"SELECT study, plan, standing, arm, pulls, sum, squares, lease, source, told_at FROM observation "
    f"WHERE id = (SELECT max(id) FROM observation WHERE plan = {PLAN})",
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
    "its lease": (f"observation SET lease = 9 WHERE plan = {PLAN} AND arm = 0", "results"),
    "a worker": (f"lease SET worker = 'eve' WHERE plan = {PLAN}", "leases"),
    "the end of a lease": (f"lease SET until = until + 1 WHERE plan = {PLAN}", "leases"),
    "when it was leased": (f"lease SET leased_at = leased_at - 1e-6 WHERE plan = {PLAN}", "leases"),
    "when it was closed": (f"event SET at = at - 1 WHERE plan = {PLAN}", "events"),
    "the reason of an event": (f"event SET reason = 'better so' WHERE plan = {PLAN}", "events"),
}


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
    for look in (lambda: resume_study(address(path), "x"), lambda: sp.list_studies(address(path))):
        with pytest.raises(sp.StorageError, match=r"'x': its number in the database.*not what was stored"):
            look()
    assert path.read_bytes() == before


# what was set aside, and the end


@pytest.fixture
def aside(path):
    """The study with prior and late results, closed early."""
    study = resume_study(address(path), "x")
    study.tell_prior(["a", "b"], [0.5, 0.25], ["before", "long before"])
    study.tell(["c"], [0.75], ["p1.0@c"], plan=1)
    study.tell_prior(["d"], [0.125])
    study.close("the instrument is needed elsewhere")
    closed(study)
    closed(sp.open_study(address(path), "x"))
    return path


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE observation SET sum = 9 WHERE key = 'before'", "result 1 of those that were set aside.*'before'"),
        ("UPDATE observation SET told_at = 9 WHERE key = 'long before'", "result 2 of those that were set aside"),
        ("UPDATE observation SET standing = 'prior' WHERE key = 'p1.0@c'", "result 3 of those that were set aside"),
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


# what was not decided by the study


def test_a_forged_decision_on_an_open_plan_is_found(path):
    run(
        path,
        "INSERT INTO decision (study, plan, round, state, seen, trace, circumstances, leader, stopped, verdict, "
        "previous, hash, decided_at) SELECT study, 6, round, state, seen, trace, circumstances, leader, 1, "
        "'certified', previous, hash, decided_at FROM decision WHERE plan = 5",
    )
    rechain(path)
    refused(path, "decision 6 is on a plan that was never closed")


def test_a_plan_closed_by_force_is_found_before_it_is_judged(path):
    run(path, "INSERT INTO event (study, plan, kind, pulls, lease, reason, at) VALUES (1, 6, 'closed', 0, 0, '', 0)")
    refused(path, "plan 6 is closed, and [0-9]+ of the measurements")


def test_a_row_that_contradicts_a_stored_one_is_refused_in_words(path):
    """Of an open plan, so nothing is found until somebody wants the pulls that were leased to another."""
    study = resume_study(address(path), "x")
    for worker, pulls in (("v", 2), ("w", 1)):
        assert study.lease(worker=worker, max_pulls=pulls).total == pulls
    closed(study)
    run(path, "DELETE FROM lease WHERE plan = 6 AND worker = 'v'")
    with pytest.raises(sp.StorageError, match="contradicts"):
        resume_study(address(path), "x").lease(worker="u")


def test_the_last_decision_is_computed_again_if_it_is_gone(path):
    """Without plan 6 nothing after it is chained; what was told decides as before."""
    run(path, "DELETE FROM plan WHERE number = 6", "DELETE FROM observation WHERE plan = 6")
    database = sqlite3.connect(path)
    kept = "plan, round, state, seen, trace, circumstances, leader, stopped, verdict, previous, records"  # but the time
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
