"""The tables of durable studies. Rows are only ever added; `migrations/` has the steps from schema to schema."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

SCHEMA = "1"  # the newest step that this version knows
OLDER: tuple[str, ...] = ()  # steps from which `surepick migrate` can start
VERSION_TABLE = "surepick_schema"

metadata = MetaData()


def _serial() -> TypeEngine[int]:
    """64-bit; SQLite numbers rows by itself only if the type is called INTEGER."""
    return BigInteger().with_variant(Integer, "sqlite")


def _double() -> Float[float]:
    return Float(53)


study = Table(
    "study",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("configuration", Text, nullable=False),  # JSON: the policy, how it is judged, columns, costs, segments
    Column("ids", Text, nullable=False),  # JSON: the K ids
    Column("features", LargeBinary, nullable=False),  # little-endian float64, row by row
    Column("num_arms", BigInteger, nullable=False),
    Column("num_features", BigInteger, nullable=False),
    Column("arms_hash", Text, nullable=False),  # SHA-256 of ids, shape, features, costs and segments
    Column("hash", Text, nullable=False),  # SHA-256 of name, configuration and arms_hash: where the chain begins
    Column("created_at", _double(), nullable=False),
    Column("seal", Text, nullable=False),  # SHA-256 of hash, id, created_at, num_arms, num_features
)

plan = Table(
    "plan",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), ForeignKey("study.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("plan", Text, nullable=False),  # JSON
    Column("opened_at", _double(), nullable=False),
    Column("hash", Text, nullable=False),  # SHA-256 of the decision's hash before it, of the JSON and of opened_at
    UniqueConstraint("study", "number", name="one_plan_a_number"),
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
    ForeignKeyConstraint(["study", "plan"], ["plan.study", "plan.number"], name="lease_of_a_plan"),
    UniqueConstraint("study", "plan", "arm", "first", name="a_pull_is_leased_once"),
    CheckConstraint("pulls > 0", name="a_lease_has_pulls"),
)
Index("leases_of_a_worker", lease.c.study, lease.c.worker, lease.c.id)

observation = Table(
    "observation",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), ForeignKey("study.id"), nullable=False),
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
    UniqueConstraint("study", "key", "correction", name="a_key_counts_once"),
    CheckConstraint("pulls > 0", name="a_result_has_pulls"),
    CheckConstraint("status in ('counted', 'late', 'prior')", name="a_known_status"),
)
Index("results_of_a_plan", observation.c.study, observation.c.plan, observation.c.id)
_IN_BLOCK = observation.c.block.is_not(None)
Index(
    "results_of_a_block",
    observation.c.study,
    observation.c.block,
    sqlite_where=_IN_BLOCK,
    postgresql_where=_IN_BLOCK,
)

event = Table(
    "event",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # 0: of the study
    Column("kind", Text, nullable=False),
    Column("arm", BigInteger),
    Column("pulls", BigInteger, nullable=False),
    Column("lease", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", _double(), nullable=False),
    Column("result", BigInteger),  # id of the result that is undone, or unusual
    Column("hash", Text),  # of "ended": SHA-256 of the study's hash, of the row, and of the rows of the open plan
    CheckConstraint(
        "kind in ('failed', 'abandoned', 'withdrawn', 'added', 'closed', 'ended', 'undone', 'unusual')",
        name="a_known_kind",
    ),
)
_UNDONE = text("kind = 'undone'")
Index("undone_results", event.c.study, event.c.result, unique=True, sqlite_where=_UNDONE, postgresql_where=_UNDONE)
Index("events_of_a_plan", event.c.study, event.c.plan, event.c.id)

decision = Table(
    "decision",
    metadata,
    Column("id", _serial(), primary_key=True),
    Column("study", _serial(), ForeignKey("study.id"), nullable=False),
    Column("plan", BigInteger, nullable=False),  # 0: the start
    Column("round", BigInteger, nullable=False),  # of the policy; several plans can be looks of one round
    Column("state", Text, nullable=False),  # JSON
    Column("seen", Text, nullable=False),  # JSON: counts, sums and squares received
    Column("trace", Text, nullable=False),  # JSON: the row of the trace
    Column("deviations", Text, nullable=False),  # JSON
    Column("leader", BigInteger, nullable=False),
    Column("stopped", Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("decided_at", _double(), nullable=False),
    Column("records", Text, nullable=False),  # JSON: SHA-256 of the plan's results, leases, events; "" at the start
    Column("previous", Text, nullable=False),  # hash of the plan; of the study at the start
    Column("hash", Text, nullable=False),  # SHA-256 of the previous hash and of the columns from plan to records
    UniqueConstraint("study", "plan", name="one_decision_a_plan"),
)
