"""Seals against alteration: hashes of results, leases and events, beside the chain of plans and decisions.

    a plan that is closed     its results that count, its leases and its events: `decision.records`, inside the
                              decision's hash, so that they are part of the chain
    late and prior results    a chain of their own, row by row
    the end of the study      a hash of the event and of the rows of the plan that was open

Rows of the plan that is open are in no hash yet: nothing was decided on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from surepick.studies.logs.base import COUNTED, ENDED
from surepick.studies.logs.hash_chain import chained, row_text, rows_hash
from surepick.studies.logs.sql import schema as tables

RESULT = (
    *("key", "correction", "status", "arm", "pulls", "sum", "squares", "block", "item", "quantities"),
    *("lease", "source", "told_at"),
)
LEASE = ("number", "worker", "arm", "pulls", "first", "again", "until", "leased_at")
EVENT = ("kind", "arm", "pulls", "lease", "reason", "at", "result")
KINDS = (("results", tables.observation, RESULT), ("leases", tables.lease, LEASE), ("events", tables.event, EVENT))
EMPTY = rows_hash(())
AT_ONCE = 10_000  # rows


def study_seal(row: Any) -> str:
    """The hash of what identifies a study beside its configuration: all rows of it are found by its id.

    Args:
        row: the study's row as a mapping.
    """
    numbers = (row["id"], row["created_at"], row["num_arms"], row["num_features"])
    return chained(row["hash"], *map(str, numbers))


def records_of(connection: Connection, study: int, plan: int) -> str:
    """The hashes of the rows of a plan that is closed, as JSON."""
    found = {}
    for kind, table, columns in KINDS:
        wanted = _wanted(kind, table, columns, study).where(table.c.plan == plan).order_by(table.c.id)
        found[kind] = rows_hash(row[1:] for row in connection.execute(wanted))
    return json.dumps(found, separators=(",", ":"))


def _wanted(kind: str, table: sa.Table, columns: tuple[str, ...], study: int) -> sa.Select[Any]:
    """The plan and these columns of the rows that belong to plans."""
    wanted = sa.select(table.c.plan, *(table.c[name] for name in columns)).where(table.c.study == study)
    return wanted.where(table.c.status == COUNTED) if kind == "results" else wanted


def altered_records(connection: Connection, study: int) -> Iterator[str]:
    """The rows of judged plans that were altered, in words: the first kind of row of each plan."""
    decisions = tables.decision.c
    stored = {
        plan: _hashes(text)
        for plan, text in connection.execute(
            sa.select(decisions.plan, decisions.records).where(decisions.study == study, decisions.plan > 0)
        )
    }
    for kind, table, columns in KINDS:
        found = dict.fromkeys(stored, EMPTY)
        wanted = _wanted(kind, table, columns, study).order_by(table.c.plan, table.c.id)
        rows = connection.execute(wanted.execution_options(yield_per=AT_ONCE))
        for plan, part in groupby(rows, key=lambda row: row[0]):
            if plan in found:
                found[plan] = _hash_or_nothing(part)
        for plan in sorted(stored):
            if found[plan] != stored[plan].get(kind):
                yield f"one of the {kind} of plan {plan}"


def _hashes(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _hash_or_nothing(rows: Iterator[Row[Any]]) -> str:
    try:
        return rows_hash(row[1:] for row in rows)
    except TypeError:
        return ""


# late and prior results, and the end


def set_aside_hashes(connection: Connection, study: int, start: str, rows: list[dict[str, Any]]) -> list[str]:
    """The hashes of late or prior results that are about to be added.

    Args:
        study: id of the study's row.
        start: its hash.
        rows: as they will be stored.
    """
    columns = tables.observation.c
    last = connection.execute(
        sa.select(columns.hash)
        .where(columns.study == study, columns.status != COUNTED)
        .order_by(columns.id.desc())
        .limit(1)
    ).scalar()
    hashes, before = [], last or start
    for row in rows:
        before = _aside_hash(before, row)
        hashes.append(before)
    return hashes


def _aside_hash(before: str, row: Any) -> str:
    return chained(before, row_text([row["plan"], *(row[name] for name in RESULT)]))


def altered_aside(connection: Connection, study: int, start: str) -> Iterator[str]:
    """The late and prior results that were altered, in words."""
    columns, before = tables.observation.c, start
    rows = connection.execute(
        sa.select(tables.observation)
        .where(columns.study == study, columns.status != COUNTED)
        .order_by(columns.id)
        .execution_options(yield_per=AT_ONCE)
    )
    for number, row in enumerate(rows, start=1):
        try:
            right = row.hash == _aside_hash(before, row._mapping)
        except TypeError:
            right = False
        if not right:
            yield f"result {number} of those that were set aside (late or prior, key {row.key!r}), or one before it,"
            return
        before = row.hash


def end_hash(connection: Connection, study: int, start: str, row: Any) -> str:
    """The hash of the event that ends a study."""
    plan = connection.execute(sa.select(sa.func.max(tables.plan.c.number)).where(tables.plan.c.study == study)).scalar()
    text = row_text([row[name] for name in EVENT])
    return chained(start, text, "" if plan is None else records_of(connection, study, plan))


def altered_end(connection: Connection, study: int, start: str) -> Iterator[str]:
    """Whether the end of the study, or the plan that was open then, is not what was stored, in words."""
    columns = tables.event.c
    row = connection.execute(
        sa.select(tables.event).where(columns.study == study, columns.kind == ENDED).order_by(columns.id).limit(1)
    ).first()
    if row is None:
        return
    try:
        right = row.hash == end_hash(connection, study, start, row._mapping)
    except TypeError:
        right = False
    if not right:
        yield "the end of the study, or a row of the plan that was open then,"
