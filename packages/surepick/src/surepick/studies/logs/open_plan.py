"""The state of an open plan: which pulls are in, leased or free. It holds no reward."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from surepick.core.records import IntArray
from surepick.studies.logs import base


@dataclass(slots=True)
class LeaseProgress:
    """A lease, and how much of it is done."""

    leased: base.Leased
    done: IntArray  # pulls reported, failed, or given back, shape (K,)

    @property
    def lease(self) -> base.Lease:
        return self.leased.lease

    @property
    def left(self) -> IntArray:
        """Pulls that have not come back, shape (K,)."""
        return np.asarray(np.maximum(self.leased.counts - self.done, 0))


@dataclass(slots=True)
class OpenPlan:
    """An open plan, replayed from its arrivals."""

    planned: base.Planned
    recorded: IntArray  # pulls of each arm that came, shape (K,)
    dropped: IntArray  # pulls of each arm that will not be measured, shape (K,)
    granted: IntArray  # pulls of each arm that were ever leased, shape (K,): the ordinal of the next one
    repeated: int = 0  # pulls that failed, or that were leased again because they did not come in time
    held: dict[int, LeaseProgress] = field(default_factory=dict)  # the leases, by number
    unfinished: dict[int, LeaseProgress] = field(default_factory=dict)  # the leases with pulls that have not come back
    by_arm: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)  # its leases: first ordinals, numbers
    reasons: dict[int, set[str]] = field(default_factory=dict)  # why pulls of an arm are not measured
    withdrawn: dict[int, base.Withdrawal] = field(default_factory=dict)
    added: dict[int, base.Addition] = field(default_factory=dict)
    failed_keys: set[str] = field(default_factory=set)
    undone: int = 0
    unusual: dict[int, str] = field(default_factory=dict)  # why each unusual result counts, by its number
    closed: bool = False
    refused: str = ""  # why its results cannot be judged; "": they can, or nobody has tried
    in_part: bool = False  # it was closed with what had come
    ended: bool = False
    mark: tuple[int, ...] = ()  # how far the log was read

    @staticmethod
    def of(planned: base.Planned) -> OpenPlan:
        """The plan just opened."""
        nothing = np.zeros(len(planned.plan.counts), np.int64)
        return OpenPlan(planned, nothing, nothing.copy(), nothing.copy())

    def add(self, news: base.Arrivals) -> None:
        """Take in what came."""
        for leased in news.leased:
            number = leased.lease.number
            self.held[number] = self.unfinished[number] = LeaseProgress(leased, np.zeros_like(self.recorded))
            self.granted += leased.counts
            self.repeated += int(leased.again.sum())
            for arm in np.flatnonzero(leased.counts).tolist():
                firsts, numbers = self.by_arm.setdefault(arm, ([], []))
                firsts.append(int(leased.first[arm]))
                numbers.append(number)
        np.add.at(self.recorded, news.arms, news.pulls)
        touched = np.unique(news.leases).tolist()
        for number in touched:
            if number in self.held:
                rows = news.leases == number
                np.add.at(self.held[number].done, news.arms[rows], news.pulls[rows])
        for event in news.events:
            self._happened(event)
        for number in [number for number in (*touched, *(event.lease for event in news.events)) if number in self.held]:
            if not self.held[number].left.any():
                self.unfinished.pop(number, None)
            elif number not in self.unfinished:  # a result of it was undone
                self.unfinished[number] = self.held[number]
        self.mark = news.mark

    def _happened(self, event: base.Event) -> None:
        self.closed |= event.kind == base.CLOSED
        self.in_part |= event.kind == base.CLOSED and event.reason == base.AS_THEY_COME
        if event.kind == base.CLOSED and event.reason.startswith(base.REFUSED):
            self.refused = event.reason.removeprefix(base.REFUSED)
        self.ended |= event.kind == base.ENDED
        if event.arm is None:
            return
        if event.kind == base.UNUSUAL:
            self.unusual[event.result] = event.reason
        if event.kind == base.UNDONE:
            self.undone += 1
            self.unusual.pop(event.result, None)
            self.recorded[event.arm] -= event.pulls
            if event.lease in self.held:
                self.held[event.lease].done[event.arm] -= event.pulls
        if event.kind == base.WITHDRAWN:
            self.withdrawn.setdefault(event.arm, base.Withdrawal(event.arm, event.reason, event.at))
        if event.kind == base.ADDED:
            self.added.setdefault(event.arm, base.Addition(event.arm, event.at))
        if event.kind == base.ABANDONED:
            self.dropped[event.arm] += event.pulls
            self.reasons.setdefault(event.arm, set()).add(event.reason)
        if event.kind == base.FAILED:
            self.failed_keys.add(event.reason)
            self.repeated += event.pulls
            if event.lease in self.held:
                self.held[event.lease].done[event.arm] += event.pulls

    @property
    def asked(self) -> IntArray:
        """Pulls that the plan asks for, shape (K,)."""
        return self.planned.plan.counts

    @property
    def missing(self) -> IntArray:
        """Pulls still wanted of each arm, shape (K,)."""
        return np.asarray(np.maximum(self.asked - self.dropped - self.recorded, 0))

    def completed_by(self, arms: IntArray, pulls: IntArray) -> bool:
        """Whether nothing more is wanted once these results are in."""
        still = self.missing
        np.subtract.at(still, arms, pulls)
        return not np.any(still > 0)

    @property
    def takes_results(self) -> bool:
        """Whether results count."""
        return not self.closed and not self.ended

    def free(self, now: float) -> IntArray:
        """Pulls that nobody holds a lease on, shape (K,)."""
        out, missing = np.zeros_like(self.recorded), self.missing
        for held in self.running(now):
            out += np.minimum(held.left, missing)
        return np.asarray(np.maximum(missing - out, 0))

    def wanted_of(self, held: LeaseProgress) -> IntArray:
        """Pulls of a lease that have not come back and are still wanted, shape (K,)."""
        return np.asarray(np.minimum(held.left, self.missing))

    def running(self, now: float) -> list[LeaseProgress]:
        """The leases that have not run out and have pulls that are still wanted."""
        missing, held = self.missing, self.unfinished.values()
        return [one for one in held if one.lease.until > now and np.minimum(one.left, missing).any()]

    def held_by(self, worker: str, now: float) -> LeaseProgress | None:
        """The worker's running lease, None without one."""
        return next((held for held in self.running(now) if held.lease.worker == worker), None)

    def grant(
        self, worker: str, most: int | None, *, now: float, until: float, alike: bool = False
    ) -> base.Leased | None:
        """A lease on free pulls, in the order of the arms; None when nothing is free."""
        free = self.free(now)
        if most is not None and alike and free.any():
            parts = -(-int(free.sum()) // most)
            ends = np.cumsum(free)
            free = -(-ends // parts) - -(-(ends - free) // parts)
        elif most is not None:
            free = np.diff(np.minimum(np.cumsum(free), min(most, int(free.sum()))), prepend=0)
        if not free.any():
            return None
        number = max(self.held, default=0) + 1
        out = sum((held.left for held in self.unfinished.values()), np.zeros_like(free))
        again = np.clip(self.recorded + out + free - (self.asked - self.dropped), 0, free)
        return base.Leased(base.Lease(number, self.planned.number, worker, until), free, self.granted, again)

    def lease_of(self, arm: int, *, ordinal: int | None, worker: str, spent: Mapping[int, int] | None = None) -> int:
        """The lease that a result answers: by the ordinal in its key, else the worker's newest open one; 0: none."""
        gone = spent or {}
        firsts, numbers = self.by_arm.get(arm, ([], []))
        if ordinal is not None:
            place = bisect_right(firsts, ordinal) - 1
            inside = place >= 0 and ordinal < firsts[place] + int(self.held[numbers[place]].leased.counts[arm])
            return numbers[place] if inside else 0
        for number in reversed(numbers):
            held = self.unfinished.get(number)
            if held is not None and held.lease.worker == worker and held.left[arm] > gone.get(number, 0):
                return number
        return 0

    @property
    def deviations(self) -> base.Deviations:
        """What the certificate must say about this plan."""
        short = [reasons for arm, reasons in self.reasons.items() if self.recorded[arm] < self.asked[arm]]
        return base.Deviations(
            surplus=bool(np.any(self.recorded > self.asked)),
            repeated=self.repeated,
            abandoned=tuple(sorted(set().union(*short))),
            withdrawn=tuple(self.withdrawn[arm] for arm in sorted(self.withdrawn)),
            added=tuple(self.added[arm] for arm in sorted(self.added)),
            undone=self.undone,
            confirmed=sum(why != base.UNASKED for why in self.unusual.values()),
            unasked=sum(why == base.UNASKED for why in self.unusual.values()),
        )
