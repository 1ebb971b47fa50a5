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
        self._stored: list[base.Stored] = []
        self._starts: list[int] = []  # of each entry of _stored, the number of its first row
        self._corrections: list[base.Correction] = []
        self._latest = 0.0
        self._look_through()

    def _look_through(self) -> None:
        """Learn from all entries what is not looked for among them each time."""
        self._undone = {event.result for event in self._events if event.kind == base.UNDONE}  # numbers of rows
        self._counting: dict[int, list[int]] = {}  # plan -> its entries that count
        self._recorded: dict[str, base.Recorded] = {}
        self._in_blocks: dict[str, Counter[tuple[int, int]]] = {}
        for entry in range(len(self._stored)):
            self._learn(entry)

    def _learn(self, entry: int) -> None:
        """The same from one entry."""
        start, stored, results = self._starts[entry], self._stored[entry], self._stored[entry].results
        known = [] if results.keys is None else results.recorded(stored.status)
        for row, (key, one) in enumerate(zip(results.keys or (), known, strict=True), start):
            if key is not None and row not in self._undone:
                self._recorded[key] = one
        if stored.status != base.COUNTED:
            return
        self._counting.setdefault(stored.plan, []).append(entry)
        for row, (block, arm) in enumerate(zip(results.blocks or (), results.arms.tolist(), strict=False), start):
            if row not in self._undone:
                self._in_blocks.setdefault(block, Counter())[arm, stored.plan] += 1

    @property
    def clock(self) -> base.Clock:
        return self._clock

    @contextmanager
    def turn(self) -> Iterator[None]:
        rows: tuple[list[Any], ...] = (self._plans, self._decisions, self._leased, self._events)
        rows = (*rows, self._stored, self._starts, self._corrections)
        lengths = list(map(len, rows))
        try:
            yield
        except BaseException:
            if lengths != list(map(len, rows)):
                for kept, length in zip(rows, lengths, strict=True):
                    del kept[length:]
                self._look_through()
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

    def plans(self, after: int = 0) -> Iterator[base.Planned]:
        return iter(self._plans[after:])

    def add_lease(self, leased: base.Leased, at: float) -> None:
        self._leased.append(leased)
        self._latest = at

    def add_results(self, plan: int, results: base.Results, *, status: str, at: float) -> None:
        self._starts.append(1 if not self._stored else self._starts[-1] + len(self._stored[-1].results.arms))
        self._stored.append(base.Stored(plan, status, at, results))
        self._latest = at
        self._learn(len(self._stored) - 1)

    def add_event(self, event: base.Event) -> None:
        self._events.append(event)
        if event.kind == base.UNDONE:
            self._undone.add(event.result)
            entry = bisect_right(self._starts, event.result) - 1
            stored, row = self._stored[entry], event.result - self._starts[entry]
            if stored.results.keys is not None:
                self._recorded.pop(stored.results.keys[row] or "", None)
            if stored.results.blocks is not None:
                self._in_blocks[stored.results.blocks[row]][int(stored.results.arms[row]), stored.plan] -= 1

    def _counted(self, plan: int) -> Iterator[tuple[int, base.Stored]]:
        """(number of the first row, the entry) of what counts of a plan; what was undone is in it."""
        return ((self._starts[entry], self._stored[entry]) for entry in self._counting.get(plan, ()))

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
        for start, stored in self._counted(plan):
            results = stored.results
            number = len(results.arms)
            if source is not None and results.source != source:
                continue
            squares = [None] * number if results.squares is None else results.squares.tolist()
            leases = [0] * number if results.leases is None else results.leases.tolist()
            found += [
                base.Reported(
                    number=start + row,
                    arm=int(results.arms[row]),
                    pulls=int(results.pulls[row]),
                    total=float(results.sums[row]),
                    squares=squares[row],
                    key=None if results.keys is None else results.keys[row],
                    lease=leases[row],
                    at=stored.at,
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
        results = self._counting.get(plan, [])
        fresh = [self._stored[entry].results for entry in results[seen_results:]]
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
            return [stored.results for _, stored in self._counted(plan)]
        read, found = base.read_instead(self._corrections, plan, known), []
        for start, stored in self._counted(plan):
            number_of = len(stored.results.arms)
            kept = [row for row in range(number_of) if start + row not in self._undone]
            as_read = stored.results.as_read({number - start: value for number, value in read.items()})
            if kept:
                found.append(as_read if len(kept) == number_of else as_read.rows(kept))
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
        for plan in self._counting:
            for part in self.results(plan) if plan <= plans else ():
                for arm, pulls in zip(part.arms.tolist(), part.pulls.tolist(), strict=True):
                    found[arm] += pulls
        return dict(found)

    def latest_plan_of(self, worker: str) -> int:
        return next((held.lease.plan for held in reversed(self._leased) if held.lease.worker == worker), 0)

    def ended(self) -> base.Event | None:
        return next((event for event in self._events if event.kind == base.ENDED), None)

    def set_aside(self) -> tuple[int, int]:
        numbers: Counter[str] = Counter()
        for stored in self._stored:
            numbers[stored.status] += len(stored.results.arms)
        return numbers[base.LATE], numbers[base.PRIOR]

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

    def tellers(self, judged: int) -> list[base.Teller]:
        found: dict[tuple[str, int, str], int] = {}
        for stored in self.history(judged):
            if stored.status not in (base.UNDONE, base.CORRECTED):
                who = stored.status, stored.plan, stored.results.source
                found[who] = found.get(who, 0) + int(stored.results.pulls.sum())
        return [base.Teller(*who, pulls) for who, pulls in found.items()]

    def latest_time(self) -> float:
        return self._latest

    def check_rows(self) -> None:
        """Nobody else can reach them."""
