"""Results, leases, events and times are part of the chain of hashes; keys are stored in their canonical form.

The chain of each study is checked by the rules of 0001, then written anew by those of 0002. What 0001 did not protect
is taken as it is found.
"""

import json
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.engine import Connection

from surepick.errors import InvalidInput, StorageError
from surepick.studies.logs.hash_chain import chained, row_text, rows_hash
from surepick.studies.logs.keys import canonical_key

revision = "0002"
down_revision = "0001"

PARTS = {
    "results": ("observation", "key, standing, arm, pulls, sum, squares, lease, source, told_at"),
    "leases": ("lease", "number, worker, arm, pulls, first, again, until, leased_at"),
    "events": ("event", "kind, arm, pulls, lease, reason, at"),
}
DECIDED = ("plan", "round", "state", "seen", "trace", "circumstances", "leader", "stopped", "verdict")


def upgrade() -> None:
    op.add_column("study", sa.Column("seal", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("observation", sa.Column("hash", sa.Text))
    op.add_column("event", sa.Column("hash", sa.Text))
    op.add_column("decision", sa.Column("records", sa.Text, nullable=False, server_default=sa.text("''")))
    database = op.get_bind()
    columns = "id, name, configuration, ids, arms_hash, hash, created_at, num_arms, num_features"
    for study in database.execute(sa.text(f"SELECT {columns} FROM study ORDER BY id")).mappings().all():
        _canonical_keys(database, study)
        _chain(database, study)
        _aside(database, study)
        numbers = map(str, (study["id"], study["created_at"], study["num_arms"], study["num_features"]))
        _set(database, "study", study["id"], seal=chained(study["hash"], *numbers))


def _rows(
    database: Connection, study: Any, columns: str, table: str, condition: str = "true", **values: Any
) -> list[Any]:
    """Rows of a table that belong to the study, in their order."""
    asked = sa.text(f"SELECT {columns} FROM {table} WHERE study = :study AND {condition} ORDER BY id")
    return list(database.execute(asked, {"study": study["id"], **values}))


def _set(database: Connection, table: str, row: int, **values: Any) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in values)
    database.execute(sa.text(f"UPDATE {table} SET {columns} WHERE id = :row"), {"row": row, **values})


# keys


def _canonical_keys(database: Connection, study: Any) -> None:
    """Keys as they are compared now. One that is none any more stays as it is: nothing so spelled is accepted."""
    names = json.loads(study["ids"])
    known = _rows(database, study, "id, arm, key", "observation", "key IS NOT NULL")
    told = {key for _, _, key in known}
    for row, arm, key in known:
        canonical = _canonical(key, names[arm])
        if canonical != key and canonical not in told:
            told.add(canonical)
            _set(database, "observation", row, key=canonical)
    for row, arm, key in _rows(database, study, "id, arm, reason", "event", "kind = 'failed' AND reason <> ''"):
        _set(database, "event", row, reason=_canonical(key, names[arm]))


def _canonical(key: str, name: str) -> str:
    try:
        return canonical_key(key, name)
    except InvalidInput:
        return key


# the chain


def _chain(database: Connection, study: Any) -> None:
    """Plans and decisions, one after the other: each is checked as 0001 wrote it, and hashed anew."""
    whole = chained("", study["name"], study["configuration"], study["ids"], study["arms_hash"])
    _check(study, "its configuration, or the names of its arms", study["hash"], whole)
    plans = {row.number: row for row in _rows(database, study, "id, number, plan, opened_at, hash", "plan")}
    decisions = {row.plan: row._mapping for row in _rows(database, study, "*", "decision")}
    if any(after - before != 1 for before, after in pairwise(sorted({0, *decisions}))) or not set(plans) <= {
        number + 1 for number in decisions
    }:
        raise StorageError(_altered(study, "the numbering of its plans and decisions"))
    before = old = study["hash"]
    for number in sorted(decisions):
        decision = decisions[number]
        texts = [str(decision[name]) for name in DECIDED]
        _check(study, f"what comes before decision {number}", decision["previous"], old)
        _check(study, f"decision {number}", decision["hash"], chained(old, *texts))
        records = "" if number == 0 else _records(database, study, number)
        old, previous = decision["hash"], before
        before = chained(previous, *texts, str(decision["decided_at"]), records)
        _set(database, "decision", decision["id"], previous=previous, hash=before, records=records)
        plan = plans.get(number + 1)
        if plan is not None:
            _check(study, f"plan {number + 1}", plan.hash, chained(old, plan.plan))
            old = plan.hash
            before = chained(before, plan.plan, str(plan.opened_at))
            _set(database, "plan", plan.id, hash=before)


def _records(database: Connection, study: Any, plan: int) -> str:
    """The hashes of the rows of a plan."""
    found = {}
    for kind, (table, columns) in PARTS.items():
        condition = "plan = :plan AND standing = 'counted'" if kind == "results" else "plan = :plan"
        found[kind] = rows_hash(_rows(database, study, columns, table, condition, plan=plan))
    return json.dumps(found, separators=(",", ":"))


def _aside(database: Connection, study: Any) -> None:
    """Late and prior results, and the end of the study."""
    before, columns = study["hash"], PARTS["results"][1]
    for number, *row in _rows(database, study, f"id, plan, {columns}", "observation", "standing <> 'counted'"):
        before = chained(before, row_text(row))
        _set(database, "observation", number, hash=before)
    for number, *row in _rows(database, study, f"id, {PARTS['events'][1]}", "event", "kind = 'ended'"):
        latest = database.execute(sa.text("SELECT max(number) FROM plan WHERE study = :study"), {"study": study["id"]})
        plan = latest.scalar()
        records = "" if plan is None else _records(database, study, plan)
        _set(database, "event", number, hash=chained(study["hash"], row_text(row), records))


def _check(study: Any, what: str, stored: str, computed: str) -> None:
    if stored != computed:
        raise StorageError(_altered(study, what))


def _altered(study: Any, what: str) -> str:
    return (
        f"study {study['name']!r}: {what} is not what was stored: its bytes do not match their hash. The database was "
        "altered or is damaged. Nothing was migrated; take the latest backup (docs/studies.md)."
    )
