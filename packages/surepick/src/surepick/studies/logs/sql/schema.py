"""The tables of durable studies. Rows are only ever added; `migrations/` has the steps from older schemas to these."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Index, Table, Text, text
from sqlalchemy.engine import Connection, Row
from sqlalchemy.types import TypeEngine

from surepick.studies.logs.base import COUNTED, ENDED
from surepick.studies.logs.hash_chain import chained, row_text, rows_hash

SCHEMA = "3"  # the newest step that this version knows
OLDER: tuple[str, ...] = ("1", "2")  # steps from which `surepick migrate` can start
VERSION_TABLE = "surepick_schema"
VERSIONS = Table(VERSION_TABLE, sa.MetaData(), Column("version_num", sa.String(32), primary_key=True))  # Alembic's

metadata = sa.MetaData()


def _serial() -> TypeEngine[int]:
    """64-bit; SQLite numbers rows by itself only if the type is called INTEGER."""
    return BigInteger().with_variant(sa.Integer, "sqlite")


def _double() -> sa.Float[float]:
    return sa.Float(53)


study = Table(
    "study",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("configuration", Text, nullable=False),  # JSON: the policy, how it is judged, columns, costs, segments
    Column("ids", Text, nullable=False),  # JSON: the K ids
    Column("features", sa.LargeBinary, nullable=False),  # little-endian float64, row by row
    Column("num_arms", BigInteger, nullable=False),
    Column("num_features", BigInteger, nullable=False),
    Column("arms_hash", Text, nullable=False),  # SHA-256 of ids, shape, features, costs and segments
    Column("hash", Text, nullable=False),  # SHA-256 of name, configuration and arms_hash: where the chain begins
    Column("created_at", _double(), nullable=False),
    Column("seal", Text, nullable=False),  # SHA-256 of hash, id, created_at, num_arms, num_features
)

description = Table(  # of what is said for people; the latest of a kind counts
    "description",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("kind", Text, nullable=False),  # candidates, owner, title, archived, note
    Column("value", Text, nullable=False),
    Column("source", Text, nullable=False),  # who said it
    Column("at", _double(), nullable=False),
    Column("hash", Text, nullable=False),  # SHA-256 of the study's hash and of the row
)
Index("descriptions_of_a_study", description.c.study, description.c.kind, description.c.id)

plan = Table(
    "plan",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("plan", Text, nullable=False),  # JSON
    Column("opened_at", _double(), nullable=False),
    Column("hash", Text, nullable=False),  # SHA-256 of the decision's hash before it, of the JSON and of opened_at
    sa.UniqueConstraint("study", "number", name="one_plan_a_number"),
)

lease = Table(
    "lease",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), nullable=False),
    Column("plan", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("worker", Text, nullable=False),
    Column("arm", BigInteger, nullable=False),
    Column("pulls", BigInteger, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("again", BigInteger, nullable=False),  # pulls of these that were leased before, and did not come in time
    Column("until", _double(), nullable=False),
    Column("leased_at", _double(), nullable=False),
    sa.ForeignKeyConstraint(["study", "plan"], ["plan.study", "plan.number"], name="lease_of_a_plan"),
    sa.UniqueConstraint("study", "plan", "arm", "first", name="a_pull_is_leased_once"),
    sa.CheckConstraint("pulls > 0", name="a_lease_has_pulls"),
)
Index("leases_of_a_worker", lease.c.study, lease.c.worker, lease.c.id)

observation = Table(
    "observation",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # 0: of no plan
    Column("status", Text, nullable=False),  # counted, late, prior
    Column("key", Text),
    Column("correction", BigInteger, nullable=False),  # results of the key that were undone before
    Column("arm", BigInteger, nullable=False),
    Column("pulls", BigInteger, nullable=False),
    Column("sum", _double(), nullable=False),
    Column("squares", _double()),
    Column("block", Text),  # in which it was measured
    Column("item", BigInteger),  # number of the test item that it answers
    Column("quantities", Text),  # JSON: measurements, sum and sum of squares of each other quantity
    Column("lease", BigInteger, nullable=False),
    Column("source", Text, nullable=False),  # who reported it
    Column("told_at", _double(), nullable=False),
    Column("hash", Text),  # of late and prior results: SHA-256 of that before it (first: of the study's) and of the row
    sa.UniqueConstraint("study", "key", "correction", name="a_key_counts_once"),
    sa.CheckConstraint("pulls > 0", name="a_result_has_pulls"),
    sa.CheckConstraint("status in ('counted', 'late', 'prior')", name="a_known_status"),
)
Index("results_of_a_plan", observation.c.study, observation.c.plan, observation.c.id)
_IN_BLOCK = observation.c.block.is_not(None)
Index(
    "results_of_a_block", observation.c.study, observation.c.block, sqlite_where=_IN_BLOCK, postgresql_where=_IN_BLOCK
)

event = Table(
    "event",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # 0: of the study
    Column("kind", Text, nullable=False),
    Column("arm", BigInteger),
    Column("pulls", BigInteger, nullable=False),
    Column("lease", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", _double(), nullable=False),
    Column("result", BigInteger),  # id of the result that is undone, or unusual
    Column("hash", Text),  # of "ended": SHA-256 of the study's hash, of the row, and of the rows of the open plan
    sa.CheckConstraint(
        "kind in ('failed', 'abandoned', 'withdrawn', 'added', 'closed', 'ended', 'undone', 'unusual')",
        name="a_known_kind",
    ),
)
_UNDONE = text("kind = 'undone'")
Index("undone_results", event.c.study, event.c.result, unique=True, sqlite_where=_UNDONE, postgresql_where=_UNDONE)
Index("events_of_a_plan", event.c.study, event.c.plan, event.c.id)

correction = Table(
    "correction",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # with which it counts
    Column("result", BigInteger, nullable=False),  # id of the result
    Column("of", BigInteger, nullable=False),  # its plan
    Column("arm", BigInteger, nullable=False),
    Column("typed", _double(), nullable=False),
    Column("read", _double(), nullable=False),
    Column("reason", Text, nullable=False),
    Column("source", Text, nullable=False),  # who corrected it
    Column("at", _double(), nullable=False),
)
Index("corrections_of_a_study", correction.c.study, correction.c.id)

decision = Table(
    "decision",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), sa.ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # 0: the start
    Column("round", BigInteger, nullable=False),  # of the policy; several plans can be looks of one round
    Column("state", Text, nullable=False),  # JSON
    Column("seen", Text, nullable=False),  # JSON: counts, sums and squares received
    Column("trace", Text, nullable=False),  # JSON: the row of the trace
    Column("deviations", Text, nullable=False),  # JSON
    Column("leader", BigInteger, nullable=False),
    Column("stopped", sa.Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("decided_at", _double(), nullable=False),
    Column("records", Text, nullable=False),  # JSON: SHA-256 of the plan's results, leases, events; "" at the start
    Column("previous", Text, nullable=False),  # hash of the plan; of the study at the start
    Column("hash", Text, nullable=False),  # SHA-256 of the previous hash and of the columns from plan to records
    sa.UniqueConstraint("study", "plan", name="one_decision_a_plan"),
)


# --- Seals against alteration: hashes of results, leases and events, beside the chain of plans and decisions.
#
#     a plan that is closed     its results that count, its leases, its events and its corrections: `decision.records`,
#                               inside the decision's hash, so that they are part of the chain
#     late and prior results    a chain of their own, row by row
#     the end of the study      a hash of the event and of the rows of the plan that was open
#
# Rows of the plan that is open are in no hash yet: nothing was decided on them.

RESULT = (
    *("key", "correction", "status", "arm", "pulls", "sum", "squares", "block", "item", "quantities"),
    *("lease", "source", "told_at"),
)
LEASE = ("number", "worker", "arm", "pulls", "first", "again", "until", "leased_at")
EVENT = ("kind", "arm", "pulls", "lease", "reason", "at", "result")
CORRECTION = ("result", "of", "arm", "typed", "read", "reason", "source", "at")
CORRECTED = "corrections"  # in no hash of a plan without any
KINDS = (
    *(("results", observation, RESULT), ("leases", lease, LEASE), ("events", event, EVENT)),
    (CORRECTED, correction, CORRECTION),
)
EMPTY = rows_hash(())
AT_ONCE = 10_000  # rows


def study_seal(row: Any) -> str:
    """The hash of what identifies a study beside its configuration: all rows of it are found by its id."""
    numbers = (row["id"], row["created_at"], row["num_arms"], row["num_features"])
    return chained(row["hash"], *map(str, numbers))


def row_hashes(connection: Connection, study: int, plan: int) -> str:
    """The hashes of the rows of a plan that is closed, as JSON."""
    found = {}
    for kind, table, columns in KINDS:
        wanted = _wanted(kind, table, columns, study).where(table.c.plan == plan).order_by(table.c.id)
        found[kind] = rows_hash(row[1:] for row in connection.execute(wanted))
    if found[CORRECTED] == EMPTY:
        del found[CORRECTED]
    return json.dumps(found, separators=(",", ":"))


def _wanted(kind: str, table: sa.Table, columns: tuple[str, ...], study: int) -> sa.Select[Any]:
    """The plan and these columns of the rows that belong to plans."""
    wanted = sa.select(table.c.plan, *(table.c[name] for name in columns)).where(table.c.study == study)
    return wanted.where(table.c.status == COUNTED) if kind == "results" else wanted


def altered_records(connection: Connection, study: int) -> Iterator[str]:
    """The rows of judged plans that were altered, in words: the first kind of row of each plan."""
    decisions = decision.c
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
            if found[plan] != stored[plan].get(kind, EMPTY if kind == CORRECTED else None):
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
    """The hashes of late or prior results that are about to be added."""
    columns = observation.c
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
    columns, before = observation.c, start
    rows = connection.execute(
        sa.select(observation)
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
    last = connection.execute(sa.select(sa.func.max(plan.c.number)).where(plan.c.study == study)).scalar()
    text = row_text([row[name] for name in EVENT])
    return chained(start, text, "" if last is None else row_hashes(connection, study, last))


def altered_end(connection: Connection, study: int, start: str) -> Iterator[str]:
    """Whether the end of the study, or the plan that was open then, is not what was stored, in words."""
    columns = event.c
    row = connection.execute(
        sa.select(event).where(columns.study == study, columns.kind == ENDED).order_by(columns.id).limit(1)
    ).first()
    if row is None:
        return
    try:
        right = row.hash == end_hash(connection, study, start, row._mapping)
    except TypeError:
        right = False
    if not right:
        yield "the end of the study, or a row of the plan that was open then,"
