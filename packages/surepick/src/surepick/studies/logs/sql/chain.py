"""The hash chain of a database: each plan and each decision holds the hash of the one before it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import bindparam
from sqlalchemy.engine import Connection, Engine, Row

from surepick.core.observations import Observations
from surepick.core.plans import Plan, RoundRecord
from surepick.core.records import from_json, to_json
from surepick.errors import OutOfTurn, StorageError
from surepick.studies.logs.base import COUNTED, FAILED, Clock, Decision, Deviations, Planned, system_clock
from surepick.studies.logs.hash_chain import chained, explained, reading
from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.engine import in_words, shown
from surepick.studies.logs.sql.one_file import file_of, opened_by
from surepick.studies.logs.sql.schema import correction, decision, event, lease, observation, plan
from surepick.studies.logs.sql.writing import Turns

# --- What every turn asks of the database, composed once: to compose a statement takes longer than SQLite needs for it.

STUDY, PLAN, PLANS, AFTER, KEYS, WORKER = "in_study", "of_plan", "of_plans", "after", "some_keys", "of_worker"
RECENT = "so_many_rows"

_UNDONE: sa.ColumnElement[str] = sa.literal_column("'undone'")  # as a literal, so that its index is used
UNDONE_ROWS = sa.select(event.c.result).where(event.c.study == bindparam(STUDY), event.c.kind == _UNDONE)
STANDS = observation.c.id.not_in(UNDONE_ROWS)  # whether a result was not undone
COUNTS = sa.and_(observation.c.study == bindparam(STUDY), observation.c.status == COUNTED, STANDS)
ANY_UNDONE = UNDONE_ROWS.limit(1)
LAST_PLAN = sa.select(sa.func.max(plan.c.number)).where(plan.c.study == bindparam(STUDY))
NEW_RESULTS = (
    sa.select(observation.c.id, observation.c.arm, observation.c.pulls, observation.c.lease)
    .where(observation.c.study == bindparam(STUDY), observation.c.plan == bindparam(PLAN))
    .where(observation.c.id > bindparam(AFTER), observation.c.status == COUNTED)
    .order_by(observation.c.id)
)
NEW_LEASES = (
    sa.select(lease)
    .where(lease.c.study == bindparam(STUDY), lease.c.plan == bindparam(PLAN), lease.c.id > bindparam(AFTER))
    .order_by(lease.c.id)
)
NEW_EVENTS = (
    sa.select(event)
    .where(event.c.study == bindparam(STUDY), event.c.plan.in_(bindparam(PLANS, expanding=True)))
    .where(event.c.id > bindparam(AFTER))
    .order_by(event.c.id)
)
SOME_KEYS: sa.BindParameter[str] = bindparam(KEYS, expanding=True)
OF_KEYS = sa.and_(observation.c.study == bindparam(STUDY), observation.c.key.in_(SOME_KEYS))
KNOWN_BY_KEY = ("key", "arm", "pulls", "sum", "block", "quantities", "source", "status")
RECORDED = sa.select(*(observation.c[name] for name in KNOWN_BY_KEY)).where(OF_KEYS, STANDS)
USED_BEFORE = (  # keys with results, all of which were undone
    sa.select(observation.c.key, sa.func.count()).where(OF_KEYS).group_by(observation.c.key)
)
FAILED_KEYS = sa.select(event.c.reason).where(
    event.c.study == bindparam(STUDY), event.c.kind == FAILED, event.c.reason.in_(SOME_KEYS)
)
IN_BLOCKS = (
    sa.select(observation.c.block, observation.c.arm, observation.c.plan)
    .distinct()
    .where(COUNTS, observation.c.block.in_(SOME_KEYS))
)
LATEST_LEASE = (
    sa.select(lease.c.plan)
    .where(lease.c.study == bindparam(STUDY), lease.c.worker == bindparam(WORKER))
    .order_by(lease.c.id.desc())
    .limit(1)
)
STAMPED = ((observation, observation.c.told_at), (lease, lease.c.leased_at), (plan, plan.c.opened_at))
NEWEST_TIMES = tuple(  # of a study's own rows; each may read all of them
    sa.select(time).where(table.c.study == bindparam(STUDY)).order_by(table.c.id.desc()).limit(1)
    for table, time in STAMPED
)
RECENT_TIMES = sa.select(  # the same among the last rows of all studies, which are all that is read; else nothing
    *(
        sa.select(time)
        .where(table.c.id > sa.select(sa.func.max(table.alias().c.id)).scalar_subquery() - bindparam(RECENT))
        .where(table.c.study + 0 == bindparam(STUDY))  # by no index of studies: it has all rows of this one
        .order_by(table.c.id.desc())
        .limit(1)
        .scalar_subquery()
        for table, time in STAMPED
    )
)
INSERT = {table: sa.insert(table) for table in (plan, lease, observation, event, correction, decision)}


T = TypeVar("T")


@explained
class ChainedRows:
    """Plans and decisions of one study, and the connections through which its rows are read and written."""

    def __init__(self, engine: Engine, *, study: int, name: str, num_arms: int, start: str) -> None:
        self._engine = engine
        file = file_of(engine)
        self._opened = None if file is None else file.opened
        snapshot = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
        self._readers = engine.execution_options(**snapshot)  # what is read together belongs together
        self._study = study
        self._name = name
        self._num_arms = num_arms
        self._start = start
        self._open: Connection | None = None
        self._owner = 0
        self._turns = Turns(engine, study)
        self._plans: dict[int, Planned] = {}
        self._hashes: dict[int, str] = {}
        self._latest: Decision | None = None

    @property
    def clock(self) -> Clock:
        """The server's clock where there is one, since its clients' differ."""
        return self._server_clock if self._engine.dialect.name == "postgresql" else system_clock

    def _server_clock(self) -> float:
        return float(self._value(sa.text("SELECT extract(epoch FROM clock_timestamp())")))

    @contextmanager
    def turn(self) -> Iterator[None]:
        if self._mine():  # inside a turn already
            yield
            return
        with self._turns.turn() as writing:
            self._same(writing)
            self._open, self._owner = writing, get_ident()
            try:
                yield
            finally:
                self._open = None

    def _mine(self) -> bool:
        """Whether this thread is inside a turn."""
        if self._open is not None and self._owner != get_ident():
            raise OutOfTurn("a study object is for one thread at a time; open the study once in each thread.")
        return self._open is not None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """The turn's connection, or one of its own."""
        if self._mine() and self._open is not None:
            yield self._open
            return
        with in_words(self._engine.url), self._readers.connect() as connection:
            self._same(connection)
            yield connection

    def _all(self, wanted: sa.Executable, **given: Any) -> Sequence[Any]:
        """All rows of an answer."""
        with self._reading() as connection:
            return connection.execute(wanted, {STUDY: self._study, **given}).all()

    def _value(self, wanted: sa.Executable, **given: Any) -> Any:
        """The one value of an answer; None without a row."""
        with self._reading() as connection:
            return connection.execute(wanted, {STUDY: self._study, **given}).scalar()

    def _same(self, connection: Connection) -> None:
        """Refuse to go on in another file with what is known of the one before."""
        if opened_by(connection) is not self._opened:
            raise StorageError(
                f"{shown(self._engine.url)} was replaced by another file after study {self._name!r} was opened. "
                "Nothing of this call was stored. Open the study again."
            )

    def _insert(self, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
        with self.turn(), self._reading() as connection:  # inside a turn, reading is through its connection
            connection.execute(INSERT[table], [{"study": self._study, **row} for row in rows])

    # plans

    def add_plan(self, planned: Planned) -> Planned:
        with self.turn():
            there = self.plan(planned.number)
            if there is not None:
                return there
            text = to_json(planned.plan, sparse=True)
            row = {
                "number": planned.number,
                "plan": text,
                "opened_at": planned.opened_at,
                "hash": plan_hash(self._hash_of_decision(planned.number - 1), text, planned.opened_at),
            }
            self._insert(tables.plan, [row])
        return planned

    def last_plan(self) -> Planned | None:
        number = self._value(LAST_PLAN)
        return None if number is None else self.plan(int(number))

    def plans(self) -> Iterator[Planned]:
        columns = tables.plan.c
        rows = self._all(sa.select(tables.plan).where(columns.study == self._study).order_by(columns.number))
        for position, row in enumerate(rows, start=1):
            if row.number != position:
                raise StorageError(f"study {self._name!r}: plan {position} is missing; take the latest backup.")
            yield self._planned(row)

    def plan(self, number: int) -> Planned | None:
        if number not in self._plans:
            columns = tables.plan.c
            rows = self._all(sa.select(tables.plan).where(columns.study == self._study, columns.number == number))
            if not rows:
                return None
            self._plans = {number: self._planned(rows[0])}
        return self._plans[number]

    def _planned(self, row: Row[Any]) -> Planned:
        expected = plan_hash(self._hash_of_decision(row.number - 1), row.plan, row.opened_at)
        if row.hash != expected:
            raise StorageError(altered(f"plan {row.number}", self._name))
        plan = self._read(Plan, row.plan, f"plan {row.number}")
        if len(plan.counts) != self._num_arms:
            raise StorageError(f"study {self._name!r}: plan {row.number} has {len(plan.counts)} arms.")
        with reading(self._name, f"plan {row.number}"):
            return Planned(int(row.number), plan, float(row.opened_at))

    # decisions

    def add_decision(self, decision: Decision) -> Decision:
        row = {
            "plan": decision.plan,
            "round": 0 if decision.row is None else decision.row.round,
            "state": decision.state if isinstance(decision.state, str) else to_json(decision.state, sparse=True),
            "seen": to_json(decision.seen, sparse=True),
            "trace": to_json(decision.row, sparse=True),
            "deviations": to_json(decision.deviations),
            "leader": decision.leader,
            "stopped": int(decision.stopped),
            "verdict": decision.verdict,
            "decided_at": float(decision.at),
            "records": "",
        }
        if decision.plan > 0:  # of a closed plan: nothing can be added to its rows any more
            with self._reading() as connection:
                row["records"] = tables.row_hashes(connection, self._study, decision.plan)
        with self.turn():
            there = self._decision(decision.plan)
            if there is not None:
                return there
            row["previous"] = self._hash_before(decision.plan)
            self._insert(tables.decision, [{**row, "hash": decision_hash(row)}])
        return decision

    def last_decision(self) -> Decision | None:
        columns = tables.decision.c
        plan = self._value(sa.select(sa.func.max(columns.plan)).where(columns.study == self._study))
        if plan is None:
            return None
        if self._latest is None or self._latest.plan != plan:
            self._latest = self._decision(int(plan))
        return self._latest

    def decisions(self, after: int = -1) -> Iterator[Decision]:
        columns = tables.decision.c
        wanted = sa.select(tables.decision).where(columns.study == self._study, columns.plan > after)
        rows = self._all(wanted.order_by(columns.plan))
        for position, row in enumerate(rows, start=after + 1):
            if row.plan != position:
                raise StorageError(f"study {self._name!r}: decision {position} is missing; take the latest backup.")
            if row.previous != self._hash_before(row.plan):
                raise StorageError(altered(f"what comes before decision {row.plan}", self._name))
            yield self._decided(row)

    def _decision(self, plan: int) -> Decision | None:
        columns = tables.decision.c
        rows = self._all(sa.select(tables.decision).where(columns.study == self._study, columns.plan == plan))
        return self._decided(rows[0]) if rows else None

    def _decided(self, row: Row[Any]) -> Decision:
        if row.hash != decision_hash(row._mapping):
            raise StorageError(altered(f"decision {row.plan}", self._name))
        with reading(self._name, f"decision {row.plan}"):
            self._hashes[int(row.plan)] = row.hash
            return Decision(
                plan=int(row.plan),
                state=row.state,
                stopped=bool(row.stopped),
                verdict=row.verdict,
                leader=int(row.leader),
                seen=None if row.seen == "null" else self._read(Observations, row.seen, f"decision {row.plan}"),
                row=None if row.trace == "null" else self._read(RoundRecord, row.trace, f"decision {row.plan}"),
                deviations=self._read(
                    Deviations, json.dumps(IN_SCHEMA_1 | json.loads(row.deviations)), f"decision {row.plan}"
                ),
                at=float(row.decided_at),
            )

    def _read(self, kind: type[T], text: str, what: str) -> T:
        """A record of a row, which is named if it cannot be read."""
        try:
            return from_json(kind, text)
        except StorageError as error:
            raise StorageError(f"{altered(what, self._name)} ({error})") from error

    def _hash_of_decision(self, plan: int) -> str:
        if plan not in self._hashes:
            self._hashes[plan] = self._stored_hash(tables.decision, tables.decision.c.plan, plan)
        return self._hashes[plan]

    def _hash_before(self, plan: int) -> str:
        """What a decision is chained to: its plan, or the study."""
        return self._start if plan == 0 else self._stored_hash(tables.plan, tables.plan.c.number, plan)

    def _stored_hash(self, table: sa.Table, column: sa.ColumnElement[int], number: int) -> str:
        """The hash of the plan, or the decision, of that number."""
        found = self._value(sa.select(table.c.hash).where(table.c.study == self._study, column == number))
        if found is None:
            raise StorageError(f"study {self._name!r}: {table.name} {number} is missing; take the latest backup.")
        return str(found)


IN_SCHEMA_1 = {"corrected": [], "alone": False}  # what its decisions do not say of deviations
HASHED = (
    *("plan", "round", "state", "seen", "trace", "deviations", "leader", "stopped", "verdict"),
    *("decided_at", "records"),
)


def plan_hash(previous: str, plan: str, opened_at: float) -> str:
    """The hash of a plan's row, over its stored bytes, chained to that of the decision before it."""
    return chained(previous, plan, str(opened_at))


def decision_hash(row: Any) -> str:
    """The hash of a decision's row, over its stored bytes."""
    return chained(row["previous"], *(str(row[name]) for name in HASHED))


def altered(what: str, name: str) -> str:
    return (
        f"study {name!r}: {what} is not what was stored: its bytes do not match their hash. The database was altered "
        "or is damaged. Nothing was changed now; take the latest backup (docs/studies.md)."
    )
