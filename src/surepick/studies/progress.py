"""The status of a study, in numbers and in a sentence. It depends on no reward of the open plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick.core.arrays import record
from surepick.noise import Noise, informative
from surepick.studies.logs.leases import format_time
from surepick.studies.replay import Replay

LONGEST = 3.2e8  # seconds, ten years: a forecast beyond it says nothing


@record
class Out:
    """Pulls that are out with a worker.

    Args:
        worker: who has them.
        pulls: how many have not come back.
        until: seconds since 1970 (UTC); then they are offered to others.
    """

    worker: str
    pulls: int
    until: float


@record
class Progress:
    """Where a study stands.

    Args:
        judged: plans that were judged; a round can have several.
        rounds: the policy's round of the last of them.
        pulls: measurements in them.
        candidates: K.
        left: candidates that are still possible after them.
        leader: id of the arm that they recommend; None before the first.
        certified_gap: it is at most this much worse than the best, in reward units; None when nothing can be said, or
            no more than the range of the rewards says anyway.
        stopped: no more measurements are needed.
        verdict: of the certificate; "not-yet" while the study goes on.
        ended: why the study was closed early, "" without a reason; None if it was not.
        plan: number of the open plan; 0 if none is open.
        round: its round in the policy, 1, 2, ...
        look, looks: which part of the round it is; the results are judged after each.
        most_rounds: rounds after which the policy is done if no result is missing; None where nobody knows.
        asked: measurements that the open plan wants, without those that were abandoned.
        told: how many are in.
        complete: all are in, and wait to be judged.
        free: how many nobody has.
        out: who has the others.
        set_aside: results that are kept and not used: (late, prior).
        opened_at: when the plan was opened, seconds since 1970 (UTC).
        now: the time of these numbers.
    """

    judged: int
    rounds: int
    pulls: int
    candidates: int
    left: int
    leader: str | None
    certified_gap: float | None
    stopped: bool
    verdict: str
    ended: str | None
    plan: int = 0
    round: int = 0
    look: int = 1
    looks: int = 1
    most_rounds: int | None = None
    asked: int = 0
    told: int = 0
    complete: bool = False
    free: int = 0
    out: tuple[Out, ...] = ()
    set_aside: tuple[int, int] = (0, 0)
    opened_at: float = 0.0
    now: float = 0.0

    @property
    def done_by(self) -> float | None:
        """When the open plan will be complete at the pace so far; None while nothing is in."""
        spent = self.now - self.opened_at
        if self.plan == 0 or self.complete or self.told == 0 or spent <= 0:
            return None
        left = max(self.asked - self.told, 0) * spent / self.told
        return self.now + left if left <= LONGEST else None

    def __str__(self) -> str:
        if self.stopped:
            return f"done after {times(self.rounds, 'round')} and {times(self.pulls, 'measurement')}: {self._best}."
        if self.ended is not None:
            why = f" ({self.ended})" if self.ended else ""
            return f"closed early{why} after {times(self.rounds, 'round')}; {self._best}."
        if self.plan == 0:
            return f"round {self.rounds + 1} is about to be planned (`surepick ask` does it); {self._best}."
        return "; ".join([self._where, self._candidates, self._came, self._best]) + "."

    @property
    def _where(self) -> str:
        most = self.most_rounds
        known = f" of at most {most}" if most is not None and self.round <= most else ""
        part = f", part {self.look} of {self.looks}" if self.looks > 1 else ""
        return f"round {self.round}{known}{part}"

    @property
    def _candidates(self) -> str:
        return f"{self.left:,} of {times(self.candidates, 'candidate')} left"

    @property
    def _came(self) -> str:
        if self.complete:
            return f"all {self.asked:,} pulls in, to be judged by the next command that needs it"
        pulls = f"{self.told:,} of {self.asked:,} pulls in"
        by = self.done_by
        return pulls if by is None else f"{pulls}; at this pace done by {format_time(by)}"

    @property
    def _best(self) -> str:
        if self.leader is None:
            return "nothing is known before the first round is complete"
        if self.stopped:
            return f"{self.leader} is the answer, {self.verdict}"
        gap = self.certified_gap
        known = "nothing is proved about it yet" if gap is None else f"at most {gap:.2g} worse than the best"
        return f"best of the closed rounds {self.leader}, {known}"


def times(number: int, noun: str) -> str:
    """A number of things: "1 pull", "1,204 pulls"."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def progress_of(replay: Replay, ids: Sequence[str], most_rounds: int | None, noise: Noise) -> Progress:
    """Where a study stands; nothing is computed or written for it."""
    log = replay.log
    decision, planned, now = log.last_decision(), log.last_plan(), log.clock()
    row = None if decision is None else decision.row
    doubtful = decision is not None and decision.deviations.doubtful
    ended = log.ended()
    closed = Progress(
        judged=0 if decision is None else decision.plan,
        rounds=0 if row is None else row.round,
        pulls=0 if row is None else row.total_pulls,
        candidates=len(ids),
        left=len(ids) if row is None else len(row.active),
        leader=None if decision is None or (row is None and not decision.stopped) else ids[decision.leader],
        certified_gap=None if decision is None or row is None or doubtful else informative(row.certified_gap, noise),
        stopped=decision is not None and decision.stopped,
        verdict="not-yet" if decision is None else decision.verdict,
        ended=None if ended is None else ended.reason,
        most_rounds=most_rounds,
        set_aside=log.set_aside(),
        now=now,
    )
    over = closed.stopped or closed.ended is not None
    if planned is None or planned.number <= closed.judged or over:
        return closed
    open_plan = replay.look(planned)
    came = int(np.minimum(open_plan.recorded, open_plan.asked).sum())
    return replace(
        closed,
        plan=planned.number,
        asked=came + int(open_plan.missing.sum()),
        told=came,
        complete=open_plan.closed,
        free=int(open_plan.free(now).sum()),
        out=tuple(
            Out(held.lease.worker, int(open_plan.wanted_of(held).sum()), held.lease.until)
            for held in open_plan.running(now)
        ),
        opened_at=planned.opened_at,
        round=planned.plan.round,
        look=planned.plan.look,
        looks=planned.plan.looks,
    )
