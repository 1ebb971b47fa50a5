"""A log in memory."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.studies.logs import base


class MemoryLog:
    """A log that lives as long as the process."""

    def __init__(self, clock: base.Clock = base.system_clock) -> None:
        self.study_id: str | None = None  # of the study that it is the log of
        self._clock = clock
        self._plans: list[base.Planned] = []
        self._decisions: list[base.Decision] = []
        self._leased: list[base.Leased] = []
        self._events: list[base.Event] = []
        self._results: dict[tuple[int, str], list[base.Results]] = {}
        self._stored: list[base.Stored] = []
        self._starts: list[int] = []  # of each entry of _stored, the number of its first row
        self._undone: set[int] = set()  # numbers of rows
        self._corrections: list[base.Correction] = []
        self._recorded: dict[str, base.Recorded] = {}
        self._in_blocks: dict[str, Counter[tuple[int, int]]] = {}
        self._latest = 0.0

    @property
    def clock(self) -> base.Clock:
        return self._clock

    @contextmanager
    def turn(self) -> Iterator[None]:
        stored_rows = self._events, self._stored
        aside = self._starts, self._corrections
        lists: tuple[list[Any], ...] = (*aside, self._plans, self._decisions, self._leased, *stored_rows)
        lengths = [len(rows) for rows in lists]
        try:
            yield
        except BaseException:
            for stored in reversed(self._stored[lengths[-1] :]):
                self._results[stored.plan, stored.status].pop()
                for key in stored.results.keys or ():
                    self._recorded.pop(key or "", None)
                for block, arm in _cells(stored):
                    self._in_blocks[block] -= Counter([(arm, stored.plan)])
            taken_back = [event for event in self._events[lengths[-2] :] if event.kind == base.UNDONE]
            for kept, length in zip(lists, lengths, strict=True):
                del kept[length:]
            for event in taken_back:
                self._undone.discard(event.result)  # its row is known again
                entry, row = self._row(event.result)
                key = None if entry.results.keys is None else entry.results.keys[row]
                if key is not None:
                    self._recorded[key] = entry.results.rows([row]).recorded(entry.status)[0]
                if entry.results.blocks is not None:
                    self._in_blocks[entry.results.blocks[row]] += Counter([(int(entry.results.arms[row]), entry.plan)])
            raise

    def add_plan(self, planned: base.Planned) -> base.Planned:
        if planned.number <= len(self._plans):
            return self._plans[planned.number - 1]
        self._plans.append(planned)
        self._latest = planned.opened_at
        return planned

    def last_plan(self) -> base.Planned | None:
        return self._plans[-1] if self._plans else None

    def plan(self, number: int) -> base.Planned | None:
        return self._plans[number - 1] if 1 <= number <= len(self._plans) else None

    def plans(self) -> Iterator[base.Planned]:
        return iter(self._plans)

    def add_lease(self, leased: base.Leased, at: float) -> None:
        self._leased.append(leased)
        self._latest = at

    def add_results(self, plan: int, results: base.Results, *, status: str, at: float) -> None:
        self._results.setdefault((plan, status), []).append(results)
        self._starts.append(1 if not self._stored else self._starts[-1] + len(self._stored[-1].results.arms))
        self._stored.append(base.Stored(plan, status, at, results))
        for block, arm in _cells(self._stored[-1]):
            self._in_blocks.setdefault(block, Counter())[arm, plan] += 1
        self._latest = at
        if results.keys is not None:
            rows = zip(results.keys, results.recorded(status), strict=True)
            self._recorded |= {key: row for key, row in rows if key is not None}

    def add_event(self, event: base.Event) -> None:
        self._events.append(event)
        if event.kind == base.UNDONE:
            self._undone.add(event.result)
            stored, row = self._row(event.result)
            self._recorded.pop((stored.results.keys or ("",) * (row + 1))[row] or "", None)
            if stored.results.blocks is not None:
                self._in_blocks[stored.results.blocks[row]] -= Counter([(int(stored.results.arms[row]), stored.plan)])

    def _row(self, number: int) -> tuple[base.Stored, int]:
        """(the entry, the place in it) of the row of that number."""
        entry = bisect_right(self._starts, number) - 1
        return self._stored[entry], number - self._starts[entry]

    def _counted(self, plan: int) -> Iterator[tuple[int, base.Results]]:
        """(number of the first row, the results) of each entry of a plan that counts; what was undone is in them."""
        for start, stored in zip(self._starts, self._stored, strict=True):
            if stored.plan == plan and stored.status == base.COUNTED:
                yield start, stored.results

    def add_correction(self, correction: base.Correction) -> None:
        self._corrections.append(correction)

    def corrections(self, plan: int | None = None) -> list[base.Correction]:
        return [one for one in self._corrections if plan in (None, one.plan)]

    def named(self, key: str, arm: int) -> list[base.Reported]:
        found = (one for planned in self._plans for one in self.reported(planned.number, None))
        return [one for one in found if one.key == key or one.arm == arm]

    def reported(self, plan: int, source: str | None) -> list[base.Reported]:
        known = {event.result for event in self._events if event.kind == base.UNUSUAL}
        found = []
        for start, results in self._counted(plan):
            number = len(results.arms)
            if source is not None and results.source != source:
                continue
            squares = [None] * number if results.squares is None else results.squares.tolist()
            leases = [0] * number if results.leases is None else results.leases.tolist()
            at = self._row(start)[0].at
            found += [
                base.Reported(
                    number=start + row,
                    arm=int(results.arms[row]),
                    pulls=int(results.pulls[row]),
                    total=float(results.sums[row]),
                    squares=squares[row],
                    key=None if results.keys is None else results.keys[row],
                    lease=leases[row],
                    at=at,
                    source=results.source,
                    unusual=start + row in known,
                    plan=plan,
                )
                for row in range(number)
                if start + row not in self._undone
            ]
        return found

    def add_decision(self, decision: base.Decision) -> base.Decision:
        if decision.plan < len(self._decisions):
            return self._decisions[decision.plan]
        if self._decisions:  # only the latest state is needed again
            self._decisions[-1] = replace(self._decisions[-1], state=None, seen=None)
        self._decisions.append(decision)
        return decision

    def last_decision(self) -> base.Decision | None:
        return self._decisions[-1] if self._decisions else None

    def decisions(self, after: int = -1) -> Iterator[base.Decision]:
        return iter(self._decisions[after + 1 :])

    def arrivals(self, plan: int, mark: tuple[int, ...] = ()) -> base.Arrivals:
        seen_results, seen_leased, seen_events = mark or (0, 0, 0)
        results = self._results.get((plan, base.COUNTED), [])
        fresh = results[seen_results:]
        nothing = np.empty(0, np.int64)
        zeros = [np.zeros(len(part.arms), np.int64) if part.leases is None else part.leases for part in fresh]
        return base.Arrivals(
            arms=np.concatenate([part.arms for part in fresh]) if fresh else nothing,
            pulls=np.concatenate([part.pulls for part in fresh]) if fresh else nothing,
            leases=np.concatenate(zeros) if fresh else nothing,
            leased=tuple(leased for leased in self._leased[seen_leased:] if leased.lease.plan == plan),
            events=tuple(event for event in self._events[seen_events:] if event.plan in (plan, 0)),
            mark=(len(results), len(self._leased), len(self._events)),
        )

    def recorded(self, keys: Sequence[str]) -> dict[str, base.Recorded]:
        return {key: self._recorded[key] for key in keys if key in self._recorded}

    def failed(self, keys: Sequence[str]) -> set[str]:
        return {event.reason for event in self._events if event.kind == base.FAILED} & set(keys)

    def results(self, plan: int, known: int = 0) -> list[base.Results]:
        if not self._undone and not known:
            return list(self._results.get((plan, base.COUNTED), []))
        read, found = base.read_instead(self._corrections, plan, known), []
        for start, results in self._counted(plan):
            kept = [row for row in range(len(results.arms)) if start + row not in self._undone]
            as_read = results.as_read({number - start: value for number, value in read.items()})
            if kept:
                found.append(as_read if len(kept) == len(results.arms) else as_read.rows(kept))
        return found

    def in_blocks(self, blocks: Sequence[str]) -> set[tuple[str, int, int]]:
        return {
            (block, arm, plan)
            for block in blocks
            for (arm, plan), number in self._in_blocks.get(block, Counter()).items()
            if number > 0
        }

    def measured(self, plans: int) -> dict[int, int]:
        found: Counter[int] = Counter()
        for plan, status in self._results:
            if status == base.COUNTED and plan <= plans:
                for part in self.results(plan):
                    for arm, pulls in zip(part.arms.tolist(), part.pulls.tolist(), strict=True):
                        found[arm] += pulls
        return dict(found)

    def latest_plan_of(self, worker: str) -> int:
        return next((held.lease.plan for held in reversed(self._leased) if held.lease.worker == worker), 0)

    def ended(self) -> base.Event | None:
        return next((event for event in self._events if event.kind == base.ENDED), None)

    def set_aside(self) -> tuple[int, int]:
        late, prior = (
            sum(len(part.arms) for (_, kind), parts in self._results.items() if kind == status for part in parts)
            for status in (base.LATE, base.PRIOR)
        )
        return late, prior

    def history(self, judged: int) -> Iterator[base.Stored]:
        for start, stored in zip(self._starts, self._stored, strict=True):
            if stored.plan > judged:
                continue
            number = len(stored.results.arms)
            taken = {row for row in range(number) if start + row in self._undone}
            made = [one for one in self._corrections if start <= one.result < start + number and one.plan <= judged]
            if not taken and not made:
                yield stored
                continue
            for row in range(number):
                status = base.UNDONE if row in taken else stored.status
                told = replace(stored, status=status, results=stored.results.rows([row]))
                yield from base.corrected_rows(told, [one for one in made if one.result == start + row])

    def latest_time(self) -> float:
        return self._latest

    def check_rows(self) -> None:
        """Nobody else can reach them."""


def _cells(stored: base.Stored) -> list[tuple[str, int]]:
    """(block, index of the arm) of each row that counts."""
    results = stored.results
    if stored.status != base.COUNTED or results.blocks is None:
        return []
    return list(zip(results.blocks, results.arms.tolist(), strict=True))
