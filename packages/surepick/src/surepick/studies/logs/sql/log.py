"""The log in a database: SQLite or PostgreSQL, the same tables, one writer of a study at a time."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Row

from surepick.errors import StorageError
from surepick.studies.logs import base
from surepick.studies.logs.hash_chain import explained
from surepick.studies.logs.keys import from_values, read_values
from surepick.studies.logs.sql import chain, schema as tables

# --- Rows of the database as records of the log. Values of a wrong kind raise; `explained` turns that into words.


def check_stored_arms(arms: Sequence[int], num_arms: int) -> None:
    """Refuse arms that the study does not have: a negative one would count for another."""
    if len(arms) and not (min(arms) >= 0 and max(arms) < num_arms):
        raise ValueError(f"there are {num_arms} arms, and a row is of arm {max(arms, key=abs)}")


def leased_of(rows: Sequence[Row[Any]], num_arms: int) -> tuple[base.Leased, ...]:
    """Leases from their rows, one an arm."""
    by_number: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_number.setdefault(row.number, []).append(row)
    found = []
    for number, parts in by_number.items():
        counts, first, again = (np.zeros(num_arms, np.int64) for _ in range(3))
        arms = [part.arm for part in parts]
        check_stored_arms(arms, num_arms)
        counts[arms] = [part.pulls for part in parts]
        first[arms] = [part.first for part in parts]
        again[arms] = [part.again for part in parts]
        lease = base.Lease(int(number), int(parts[0].plan), str(parts[0].worker), float(parts[0].until))
        found.append(base.Leased(lease, counts, first, again))
    return tuple(found)


def event_of(row: Row[Any]) -> base.Event:
    """An event from its row."""
    about = 0 if row.result is None else int(row.result)
    return base.Event(
        row.kind, int(row.plan), row.arm, int(row.pulls), int(row.lease), row.reason, float(row.at), about
    )


CHUNK = 500  # keys or blocks in one question
MOST_RECENT = 1_000  # rows of all studies among which the newest of one is looked for first


@explained
class SqlLog(chain.ChainedRows):
    """The log of one study in a database. Every writer takes the study's turn first, so that what one reads inside it
    stays true until it has written; nothing is computed inside a turn. Readers wait for nobody. What a method returned
    without error is on disk."""

    # leases and results

    def add_lease(self, leased: base.Leased, at: float) -> None:
        terms = asdict(leased.lease) | {"leased_at": at}
        arms = np.flatnonzero(leased.counts)
        columns = (arms, leased.counts[arms], leased.first[arms], leased.again[arms])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        named = [dict(zip(("arm", "pulls", "first", "again"), row, strict=True)) for row in rows]
        self._insert(tables.lease, [terms | row for row in named])

    def add_results(self, plan: int, results: base.Results, *, status: str, at: float) -> None:
        nothing = [None] * len(results.arms)
        quantities = results.quantities
        rows = [
            {
                "plan": plan,
                "status": status,
                "key": key,
                "correction": 0,
                "arm": arm,
                "pulls": pulls,
                "sum": total,
                "squares": squares,
                "block": block,
                "item": None if item is None or item < 0 else item,
                "quantities": None if quantities is None else json.dumps(results.values_of(place)),
                "lease": lease or 0,
                "source": results.source,
                "told_at": at,
            }
            for place, (key, arm, pulls, total, squares, block, item, lease) in enumerate(
                zip(
                    results.keys or nothing,
                    results.arms.tolist(),
                    results.pulls.tolist(),
                    results.sums.tolist(),
                    nothing if results.squares is None else results.squares.tolist(),
                    results.blocks or nothing,
                    nothing if results.items is None else results.items.tolist(),
                    nothing if results.leases is None else results.leases.tolist(),
                    strict=True,
                )
            )
        ]
        with self.turn(), self._reading() as connection:
            wanted = [key for key in results.keys or () if key is not None]
            if wanted and connection.execute(chain.ANY_UNDONE, {chain.STUDY: self._study}).first() is not None:
                used_before = dict(map(tuple, self._in_parts(chain.USED_BEFORE, wanted)))
                for row in rows:
                    row["correction"] = used_before.get(row["key"], 0)
            if status != base.COUNTED:
                hashes = tables.set_aside_hashes(connection, self._study, self._start, rows)
                rows = [{**row, "hash": own} for row, own in zip(rows, hashes, strict=True)]
            self._insert(tables.observation, rows)

    def add_event(self, event: base.Event) -> None:
        row = asdict(event) | {"result": event.result or None, "hash": None}
        with self.turn(), self._reading() as connection:
            if event.kind == base.ENDED:
                row["hash"] = tables.end_hash(connection, self._study, self._start, row)
            self._insert(tables.event, [row])

    def arrivals(self, plan: int, mark: tuple[int, ...] = ()) -> base.Arrivals:
        recorded, leased, events = mark or (0, 0, 0)
        mine = {chain.STUDY: self._study, chain.PLAN: plan}
        with self._reading() as connection:
            rows = connection.execute(chain.NEW_RESULTS, {**mine, chain.AFTER: recorded}).all()
            parts = connection.execute(chain.NEW_LEASES, {**mine, chain.AFTER: leased}).all()
            news = connection.execute(
                chain.NEW_EVENTS, {chain.STUDY: self._study, chain.PLANS: (0, plan), chain.AFTER: events}
            ).all()
        columns = np.array([tuple(row) for row in rows], np.int64).reshape(-1, 4)
        arms = [*columns[:, 1].tolist(), *(row.arm for row in news if row.arm is not None)]
        check_stored_arms(arms, self._num_arms)
        return base.Arrivals(
            arms=columns[:, 1],
            pulls=columns[:, 2],
            leases=columns[:, 3],
            leased=leased_of(parts, self._num_arms),
            events=tuple(map(event_of, news)),
            mark=(
                int(columns[-1, 0]) if len(columns) else recorded,
                parts[-1].id if parts else leased,
                news[-1].id if news else events,
            ),
        )

    def recorded(self, keys: Sequence[str]) -> dict[str, base.Recorded]:
        found: dict[str, base.Recorded] = {}
        for key, arm, pulls, total, block, quantities, source, status in self._in_parts(chain.RECORDED, keys):
            beside = None if quantities is None else read_values(quantities)
            found[key] = base.Recorded(int(arm), int(pulls), float(total), block, beside, source, status)
        return found

    def reported(self, plan: int, source: str | None) -> list[base.Reported]:
        columns, events = tables.observation.c, tables.event.c
        wanted = sa.select(tables.observation).where(chain.COUNTS, columns.plan == plan)
        if source is not None:
            wanted = wanted.where(columns.source == source)
        unusual = sa.select(events.result).where(
            events.study == self._study, events.plan == plan, events.kind == base.UNUSUAL
        )
        with self._reading() as connection:
            rows = connection.execute(wanted.order_by(columns.id), {chain.STUDY: self._study}).all()
            known = set(connection.execute(unusual).scalars())
        return [_reported(row, unusual=row.id in known) for row in rows]

    def named(self, key: str, arm: int) -> list[base.Reported]:
        columns = tables.observation.c
        wanted = sa.select(tables.observation).where(chain.COUNTS, sa.or_(columns.key == key, columns.arm == arm))
        return [_reported(row) for row in self._all(wanted.order_by(columns.id))]

    def add_correction(self, correction: base.Correction) -> None:
        self._insert(tables.correction, [asdict(correction)])

    def corrections(self, plan: int | None = None) -> list[base.Correction]:
        columns = tables.correction.c
        wanted = sa.select(columns.plan, *(columns[name] for name in tables.CORRECTION))
        wanted = wanted.where(columns.study == self._study).order_by(columns.id)
        rows = self._all(wanted if plan is None else wanted.where(columns.plan == plan))
        check_stored_arms([row.arm for row in rows], self._num_arms)
        return [base.Correction(*row) for row in rows]

    def failed(self, keys: Sequence[str]) -> set[str]:
        return {row.reason for row in self._in_parts(chain.FAILED_KEYS, keys)}

    def in_blocks(self, blocks: Sequence[str]) -> set[tuple[str, int, int]]:
        return {(block, int(arm), int(plan)) for block, arm, plan in self._in_parts(chain.IN_BLOCKS, blocks)}

    def _in_parts(self, wanted: sa.Executable, of: Sequence[str]) -> list[Any]:
        """The rows of some of many texts, so many texts in each question."""
        some = ({chain.STUDY: self._study, chain.KEYS: of[at : at + CHUNK]} for at in range(0, len(of), CHUNK))
        with self._reading() as connection:
            return [row for each in some for row in connection.execute(wanted, each)]

    def results(self, plan: int, known: int = 0) -> list[base.Results]:
        columns = tables.observation.c
        told = (columns.id, columns.arm, columns.pulls, columns.sum, columns.squares)
        wanted = sa.select(*told, columns.block, columns.item, columns.quantities)
        rows = self._all(wanted.where(chain.COUNTS, columns.plan == plan).order_by(columns.id))
        if not rows:
            return []
        numbers, *parts = zip(*rows, strict=True)
        read = base.read_instead(self.corrections(), plan, known) if known else {}
        found = _results(*parts, num_arms=self._num_arms)
        return [found.as_read({numbers.index(number): value for number, value in read.items()})]

    def measured(self, plans: int) -> dict[int, int]:
        columns = tables.observation.c
        wanted = sa.select(columns.arm, sa.func.sum(columns.pulls)).where(chain.COUNTS, columns.plan <= plans)
        found = {int(arm): int(pulls) for arm, pulls in self._all(wanted.group_by(columns.arm))}
        check_stored_arms(list(found), self._num_arms)
        return found

    def latest_plan_of(self, worker: str) -> int:
        return int(self._value(chain.LATEST_LEASE, **{chain.WORKER: worker}) or 0)

    def ended(self) -> base.Event | None:
        columns = tables.event.c
        wanted = sa.select(tables.event).where(
            columns.study == self._study, columns.plan == 0, columns.kind == base.ENDED
        )
        rows = self._all(wanted.order_by(columns.id).limit(1))
        return event_of(rows[0]) if rows else None

    def set_aside(self) -> tuple[int, int]:
        columns = tables.observation.c
        wanted = sa.select(columns.status, sa.func.count()).where(
            columns.study == self._study, columns.status != base.COUNTED
        )
        numbers = {status: int(number) for status, number in self._all(wanted.group_by(columns.status))}
        return numbers.get(base.LATE, 0), numbers.get(base.PRIOR, 0)

    def history(self, judged: int) -> Iterator[base.Stored]:
        columns = tables.observation.c
        with self._reading() as connection:
            rows = connection.execute(
                sa.select(tables.observation)
                .where(columns.study == self._study, columns.plan <= judged)
                .order_by(columns.id)
            ).all()
            undone = set(connection.execute(chain.UNDONE_ROWS, {chain.STUDY: self._study}).scalars())
        made: dict[int, list[base.Correction]] = defaultdict(list)
        for one in self.corrections():
            made[one.result] += [one] * (one.plan <= judged)
        for row in rows:
            beside = [row.block], [row.item], [row.quantities]
            results = _results([row.arm], [row.pulls], [row.sum], [row.squares], *beside, num_arms=self._num_arms)
            told = replace(results, keys=(row.key,), leases=np.array([row.lease]), source=row.source)
            status = base.UNDONE if row.id in undone else row.status
            yield from base.corrected_rows(base.Stored(int(row.plan), status, float(row.told_at), told), made[row.id])

    def tellers(self, judged: int) -> list[base.Teller]:
        columns = tables.observation.c
        who = columns.status, columns.plan, columns.source
        kept = sa.select(*who, sa.func.sum(columns.pulls)).where(
            columns.study == self._study, columns.plan <= judged, columns.id.not_in(chain.UNDONE_ROWS)
        )
        made = {one.result: one.source for one in self.corrections() if one.plan <= judged}
        with self._reading() as connection:
            mine = {chain.STUDY: self._study}
            rows = connection.execute(kept.group_by(*who).order_by(sa.func.min(columns.id)), mine).all()
            corrected = connection.execute(sa.select(columns.id, *who, columns.pulls).where(columns.id.in_(made))).all()
        found = {(str(status), int(plan), str(source)): int(pulls) for status, plan, source, pulls in rows}
        for number, status, plan, source, pulls in corrected:
            by = status, plan, made[number]
            found[status, plan, source] -= pulls
            found[by] = found.get(by, 0) + pulls
        return [base.Teller(*one, pulls) for one, pulls in found.items() if pulls]

    def latest_time(self) -> float:
        mine = {chain.STUDY: self._study}
        with self._reading() as connection:
            recent = connection.execute(chain.RECENT_TIMES, {**mine, chain.RECENT: MOST_RECENT}).one()
            times = [
                connection.execute(newest, mine).scalar() if time is None else time
                for time, newest in zip(recent, chain.NEWEST_TIMES, strict=True)
            ]
        return max((float(time) for time in times if time), default=0.0)

    def check_rows(self) -> None:
        with self._reading() as connection:
            for row in (
                *self._altered_chain(connection),
                *tables.altered_records(connection, self._study),
                *tables.altered_aside(connection, self._study, self._start),
                *tables.altered_end(connection, self._study, self._start),
            ):
                raise StorageError(chain.altered(row, self._name))


def _reported(row: Row[Any], *, unusual: bool = False) -> base.Reported:
    """A result from its row."""
    return base.Reported(
        number=int(row.id),
        arm=int(row.arm),
        pulls=int(row.pulls),
        total=float(row.sum),
        squares=None if row.squares is None else float(row.squares),
        key=row.key,
        lease=int(row.lease),
        at=float(row.told_at),
        source=row.source,
        unusual=unusual,
        plan=int(row.plan),
    )


def _results(
    arms: Sequence[Any],
    pulls: Sequence[Any],
    sums: Sequence[Any],
    squares: Sequence[Any],
    blocks: Sequence[Any],
    items: Sequence[Any],
    quantities: Sequence[Any],
    *,
    num_arms: int,
) -> base.Results:
    """Results from the columns of their rows; what some rows have and others do not is refused."""
    check_stored_arms(arms, num_arms)
    if not np.isfinite(np.array(sums, np.float64)).all():
        raise ValueError("a reward is not finite")
    if _there(blocks) and not all(isinstance(block, str) for block in blocks):
        raise ValueError("a result does not say its block")
    return base.Results(
        np.array(arms),
        np.array(pulls),
        np.array(sums),
        None if any(one is None for one in squares) else np.array(squares),
        blocks=tuple(blocks) if _there(blocks) else None,
        items=np.array([-1 if one is None else one for one in items]) if _there(items) else None,
        quantities=from_values([read_values(text) for text in quantities]) if _there(quantities) else None,
    )


def _there(column: Iterable[Any]) -> bool:
    return any(one is not None for one in column)
