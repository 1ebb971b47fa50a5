"""A closed study in a file, changes behind the back of the library, and chains of hashes computed anew."""

import json
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

import surepick as sp
from surepick.studies.database import study_hash
from surepick.studies.logs.sql import schema as sql_seals
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


def run(path, *statements) -> None:
    """Statements, each a text or (text, values), as anyone with the file could run them."""
    database = sqlite3.connect(path)
    for statement in statements:
        text, values = (statement, ()) if isinstance(statement, str) else statement
        assert database.execute(text, values).rowcount > 0, f"{text} changed nothing"
    database.commit()
    database.close()


def change(path, table, column, edit, *, plan: int = PLAN) -> None:
    """Put edit(value) for the value of a plan's row."""
    where = {"plan": "number", "decision": "plan"}[table]
    database = sqlite3.connect(path)
    (value,) = database.execute(f"SELECT {column} FROM {table} WHERE {where} = {plan}").fetchone()
    assert edit(value) != value
    database.execute(f"UPDATE {table} SET {column} = ? WHERE {where} = {plan}", (edit(value),))
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
            records = "" if number == 0 else sql_seals.row_hashes(database, study["id"], number)
            own = decision_hash({**decision, "previous": previous, "records": records})
            put("decision", decision, previous=previous, hash=own, records=records)
            if number + 1 in plans:
                plan = plans[number + 1]
                previous = plan_hash(own, plan["plan"], plan["opened_at"])
                put("plan", plan, hash=previous)
        aside = rows("SELECT * FROM observation WHERE status <> 'counted' ORDER BY id")
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
    "surplus": ("deviations", edit_json("surplus", by=lambda known: not known)),
    "repetitions": ("deviations", edit_json("repeated", by=lambda number: number + 1)),
    "a reason": ("deviations", edit_json("abandoned", by=lambda _: ["lost"])),
    "the verdict": ("verdict", lambda _: "certified"),
    "the leader": ("leader", lambda leader: (leader + 1) % 4),
    "stopped": ("stopped", lambda _: 1),
}
