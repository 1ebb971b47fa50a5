"""The status of a study, in numbers and in a sentence. It depends on no reward of the open plan."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

import numpy as np

from surepick.core.records import record
from surepick.noise import Noise, informative
from surepick.policies.prices import added
from surepick.policies.verdict import PolicySummary
from surepick.studies.logs.base import CLOSED_ROUNDS, Decision, Judge, Log, format_time
from surepick.studies.replay import Replay
from surepick.text import money, percent

PROVED = ("certified_gap", "confidence", "ruled_out")  # what JSON says of the leader and of the others
LONGEST = 3.2e8  # seconds, ten years: a forecast beyond it says nothing


@record
class ListedSoFar:
    """A study in a database, at a glance, and what it promises."""

    name: str
    candidates: int
    policy: str
    epsilon: float  # 0: none was asked for, but what a budget shows
    delta: float
    created_at: float  # seconds since 1970 (UTC)
    rounds: int  # plans that were judged
    pulls: int  # measurements in them
    verdict: str  # of the certificate; "not-yet" while the study goes on
    ended: bool  # it was closed before its policy stopped
    registration: str | None  # its registration code
    shortens: int = 0  # rows of the list that it shortens; 0: it chooses among its candidates


@record
class Out:
    """Pulls that are out with a worker."""

    worker: str
    pulls: int
    until: float  # seconds since 1970 (UTC); then they are offered to others


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
        certified_gap: it is at most this much worse than the best, in reward units; None when nothing is proved, or
            no more than the range of the rewards says anyway.
        delta: the probability that what is proved is wrong, at any time of the study; None where nothing is.
        ruled_out: candidates that are proved not to be the best, whichever is recommended in the end; None where the
            policy rules out none for good, or nothing is proved.
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
        corrections: of results of closed rounds, that count once they are judged.
        refused: why they cannot be judged; "" where they can, or nobody has tried.
        free: how many nobody has.
        out: who has the others.
        set_aside: results that are kept and not used: (late, prior).
        opened_at: when the plan was opened, seconds since 1970 (UTC).
        now: the time of these numbers.
        judge: when results are judged.
        cost: money spent on the measurements of the judged plans, in the currency of the costs; None where nothing has
            a cost.
        plan_cost: what all that the open plan asks costs; None without costs or without an open plan.
        listed: the question is answered by lists, and `left` candidates are undecided.
        withdrawn: candidates that were withdrawn; they are neither left nor ruled out.
        waiting: how many more may still come; `candidates` leaves them out.
        shortens: rows of the list that is made shorter by measuring a few of them, the candidates; 0: there is none.
        rows_left: of these, how many may still be the best after the closed rounds; None: nobody knows yet.
        leader_withdrawn: the leader is one of those; another is named once the open plan is judged.
        steered: its answer is read under a class of means that is named without a number.
        equal: ids of candidates whose repeats are all equal, where repeats alone show a scale: it may not end.
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
    delta: float | None = None
    ruled_out: int | None = None
    plan: int = 0
    round: int = 0
    look: int = 1
    looks: int = 1
    most_rounds: int | None = None
    asked: int = 0
    told: int = 0
    complete: bool = False
    corrections: int = 0
    free: int = 0
    out: tuple[Out, ...] = ()
    set_aside: tuple[int, int] = (0, 0)
    opened_at: float = 0.0
    now: float = 0.0
    judge: Judge = CLOSED_ROUNDS
    cost: float | None = None
    plan_cost: float | None = None
    listed: bool = False
    withdrawn: int = 0
    leader_withdrawn: bool = False
    refused: str = ""
    waiting: int = 0
    shortens: int = 0
    rows_left: int | None = None
    equal: tuple[str, ...] = ()
    steered: bool = False

    @property
    def in_hand(self) -> int:
        """Measurements of the open plan that somebody has."""
        return min(sum(part.pulls for part in self.out), max(self.asked - self.told, 0))

    @property
    def done_by(self) -> float | None:
        """When the open plan will be complete at the pace so far; None while nothing is in."""
        spent = self.now - self.opened_at
        if self.plan == 0 or self.complete or self.told == 0 or spent <= 0:
            return None
        left = max(self.asked - self.told, 0) * spent / self.told
        return self.now + left if left <= LONGEST else None

    @property
    def cost_after(self) -> float | None:
        """Money that the study will have spent once the open plan is in; None without costs or without an open plan."""
        return None if self.cost is None or self.plan_cost is None else added(self.cost, self.plan_cost)

    @property
    def confidence(self) -> float | None:
        """1 - delta; None where nothing is proved."""
        return None if self.delta is None else float(confidence_of(self.delta))

    @property
    def best(self) -> str:
        """Who would be recommended after the closed rounds, and what they prove, in words."""
        if self.leader is None:
            return "nothing is known before the first round is complete"
        if self.shortens:
            short = f"the list of {self.shortens:,} candidates is short now, and `surepick shortlist` makes its study"
            left = "" if self.rows_left is None else f"; {self.rows_left:,} of {self.shortens:,} candidates are left"
            return short if self.stopped else f"{self.leader} looks best of those that are measured{left}"
        if self.listed:
            answered = f"every candidate that is asked about is on a list, {self.verdict}"
            waiting = f"{self.left:,} of {times(self.candidates, 'candidate')} are on no list yet"
            return answered if self.stopped and not self._batches_over else waiting
        if self.leader_withdrawn:
            return f"{self.leader} was the best of the closed rounds, and is withdrawn; the next round names another"
        if self.stopped and not self._batches_over:
            answer = f"{self.leader} is the answer, {self.verdict}"
            return f"{answer}: {self.proved}" if self.proved else answer
        return f"best of the closed rounds {self.leader}, {self.proved}"

    @property
    def proved(self) -> str:
        """What the closed rounds prove of the leader and of the others, as a clause; "" of an answer without a proof.

        Source: docs/certified-elimination.md, line 15, for the certified policies: it holds at all times at once.
        """
        if self.certified_gap is None or self.delta is None:
            nothing = [] if self.stopped and not self._batches_over else ["nothing is proved about it yet"]
            return "; ".join([*nothing, *([self._out] if self.ruled_out else [])])
        worse = f"at most {rounded_up(self.certified_gap)} worse than" if self.certified_gap > 0 else "no worse than"
        sure = f"with {percent(confidence_of(self.delta))}% confidence {worse} the best"
        said = self.ruled_out is not None and (self.ruled_out > 0 or not self.stopped)
        return f"{sure}; {self._out}" if said else sure

    def __str__(self) -> str:
        if not self.equal:
            return self._standing
        from surepick.policies.model_checks import all_equal  # noqa: PLC0415 - seldom needed

        return f"{self._standing} {all_equal(self.equal)}"

    @property
    def _standing(self) -> str:
        """Where it stands, as a sentence."""
        if self.stopped:
            over = "not certified within the batches that were allowed," if self._batches_over else "done"
            if self.equal and self._batches_over:
                over = "not certified, since repeats that are all equal prove nothing,"
            spent = f"{times(self.rounds, 'round')} and {times(self.pulls, 'measurement')}{self._paid(' that cost ')}"
            return f"{over} after {spent}: {self.best}."
        if self.ended is not None:
            why = f" ({self.ended})" if self.ended else ""
            return f"closed early{why} after {times(self.rounds, 'round')}{self._paid(' that cost ')}; {self.best}."
        if self.plan == 0:
            return f"round {self.rounds + 1} is about to be planned (`surepick ask` does it); {self.best}."
        most = self.most_rounds
        known = f" of at most {most}" if most is not None and self.round <= most else ""
        part = f", part {self.look} of {self.looks}" if self.looks > 1 else ""
        left = (
            f"{self.left:,} of {times(self.candidates, 'candidate')} left"  # unless it is said how many are ruled out
        )
        who = [left] if self.ruled_out is None and not self.listed else []
        if self.shortens:
            who = [f"{self.candidates:,} are measured to shorten a list of {self.shortens:,}"]
        number = self.corrections
        late = [f"{times(number, 'correction')} count{'s' * (number == 1)} then"] if number else []
        return "; ".join([f"round {self.round}{known}{part}", *who, self._received, *late, self.best]) + "."

    @property
    def _batches_over(self) -> bool:
        return self.verdict == "budget-exhausted"

    @property
    def _received(self) -> str:
        costs = "" if self.plan_cost is None else f" (this batch costs {money(self.plan_cost)}{self._paid(' after ')})"
        if self.refused:
            return (
                f"all {self.asked:,} pulls in, which cannot be judged ({self.refused}): `surepick close` ends the study"
            )
        if self.complete:
            return f"all {self.asked:,} pulls in{costs}, to be judged by the next command that needs it"
        pulls = f"{self.told:,} of {self.asked:,} pulls in{costs}"
        by = self.done_by
        return pulls if by is None else f"{pulls}; at this pace done by {format_time(by)}"

    def _paid(self, words: str) -> str:
        """What was spent, after these words; "" where that is nothing, or not known."""
        return f"{words}{money(self.cost)}" if self.cost else ""

    @property
    def _out(self) -> str:
        gone = f", and {self.withdrawn:,} withdrawn" if self.withdrawn else ""
        gone += f"; {self.waiting:,} more may come" if self.waiting and not self.stopped else ""
        if not self.ruled_out:
            return f"no candidate is ruled out as the best yet{gone}"
        are = "is" if self.ruled_out == 1 else "are"
        return f"{self.ruled_out:,} of {times(self.candidates, 'candidate')} {are} ruled out as the best{gone}"


def times(number: int, noun: str) -> str:
    """A number of things: "1 pull", "1,204 pulls"."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def rounded_up(bound: float) -> str:
    """An upper bound in two digits, never less than it is: "0.25", "0.0013", "130"."""
    exact = Decimal(repr(float(bound)))
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_CEILING)):.12g}"


def confidence_of(delta: float) -> Decimal:
    """1 - delta, without the rounding of a float."""
    return 1 - Decimal(repr(float(delta)))


def progress_of(
    replay: Replay, ids: Sequence[str], terms: PolicySummary, noise: Noise, judge: Judge = CLOSED_ROUNDS
) -> Progress:
    """Where a study stands; nothing is computed or written for it."""
    log = replay.log
    decision, planned, now = log.last_decision(), log.last_plan(), log.clock()
    row = None if decision is None else decision.row
    proved = decision is not None and row is not None and proves(terms, decision)
    away = () if row is None or row.withdrawn is None else row.withdrawn
    waiting = terms.later if row is None or row.waiting is None else row.waiting
    number = len(ids) - waiting
    left = number if row is None else len(np.setdiff1d(row.active, away))
    ended, prices, judged = log.ended(), terms.prices, 0 if decision is None else decision.plan
    closed = Progress(
        judged=judged,
        rounds=0 if decision is None or row is None else row.round - decision.deviations.alone,
        pulls=0 if row is None else row.total_pulls,
        candidates=number,
        waiting=waiting,
        shortens=terms.shortens,
        steered=terms.steered,
        rows_left=None if row is None else row.rows_left,
        left=left,
        leader=None if decision is None or (row is None and not decision.stopped) else ids[decision.leader],
        certified_gap=None if row is None or not proved else informative(row.certified_gap, noise, terms.gap_bound),
        stopped=decision is not None and decision.stopped,
        verdict="not-yet" if decision is None else decision.verdict,
        ended=None if ended is None else ended.reason,
        delta=terms.delta if proved else None,
        ruled_out=None if row is None or not proved or not terms.eliminates else number - len(away) - left,
        withdrawn=len(away),
        most_rounds=terms.most_rounds,
        set_aside=log.set_aside(),
        now=now,
        judge=judge,
        listed=terms.listed,
        equal=() if row is None or row.equal is None else tuple(ids[arm] for arm in row.equal.tolist()),
        cost=None
        if prices is None
        else prices.spent(log.measured(judged), len(ids), batches=judged - _alone(log, judged)),
    )
    over = closed.stopped or closed.ended is not None
    if planned is None or planned.number <= closed.judged or over:
        return closed
    open_plan = replay.look(planned)
    asked = np.minimum(open_plan.recorded, open_plan.asked) + open_plan.missing
    received = int(np.minimum(open_plan.recorded, open_plan.asked).sum())
    return replace(
        closed,
        withdrawn=closed.withdrawn + len(open_plan.withdrawn),
        leader_withdrawn=closed.leader is not None and decision is not None and decision.leader in open_plan.withdrawn,
        plan=planned.number,
        asked=int(asked.sum()),
        told=received,
        complete=open_plan.closed,
        refused=open_plan.refused,
        free=int(open_plan.free(now).sum()),
        out=tuple(
            Out(held.lease.worker, int(open_plan.wanted_of(held).sum()), held.lease.until)
            for held in open_plan.running(now)
        ),
        opened_at=planned.opened_at,
        round=planned.plan.round,
        look=planned.plan.look,
        looks=planned.plan.looks,
        plan_cost=None if prices is None else prices.total(asked, batches=1),
        corrections=len(log.corrections(planned.number)),
    )


def _alone(log: Log, judged: int) -> int:
    """How many of the judged plans asked for nothing, and were opened for corrections."""
    made = {one.plan for one in log.corrections() if one.plan <= judged}
    return sum(planned.plan.total == 0 for planned in map(log.plan, made) if planned is not None)


def proves(terms: PolicySummary, decision: Decision) -> bool:
    """Whether what the policy says after a decision is proved, as far as this and its row tell."""
    told = decision.deviations
    if told.doubtful or told.contradicted or (decision.row is not None and decision.row.alarms):
        return False
    return decision.verdict == "certified" if decision.stopped else terms.proves
