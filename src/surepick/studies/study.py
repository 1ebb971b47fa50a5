"""One study: ask what to measure, measure it, tell what came. Its state is a fold over the log, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.codec import from_json
from surepick.errors import InvalidInput, OutOfTurn, StorageError
from surepick.noise import Noise
from surepick.records import Arms, Certificate, IntArray, Plan, RoundRecord, pull_key, record
from surepick.settings import whole_number
from surepick.studies import results as border
from surepick.studies import telling
from surepick.studies.board import Board, Held
from surepick.studies.circumstances import with_circumstances, with_early_end
from surepick.studies.leases import ANYONE, format_time, parse_duration, read_key
from surepick.studies.log import (
    ABANDONED,
    CLOSED,
    COUNTED,
    ENDED,
    FAILED,
    LATE,
    PRIOR,
    Circumstances,
    Decision,
    Event,
    Log,
    MemoryLog,
    Planned,
    Results,
)
from surepick.studies.progress import Out, Progress

if TYPE_CHECKING:
    from surepick.policies import Policy

USUAL_LEASE = "8h"
BACKWARDS = 120.0  # seconds that the clock of one writer may be behind that of another


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log stands: the last judgement, and the plan after it if one was opened."""

    decision: Decision
    planned: Planned | None


@record
class Receipt:
    """What became of results that were told.

    Args:
        plan: number of the plan that was open; 0 if none was.
        counted: results that count.
        repeated: results whose key was told before; they count once, as they did.
        late: results of a plan that was closed before; kept, and never used.
        prior: results kept apart because they were told as such.
        failed: measurements that gave no result and are asked again.
        closed: these results completed the plan.
    """

    plan: int = 0
    counted: int = 0
    repeated: int = 0
    late: int = 0
    prior: int = 0
    failed: int = 0
    closed: bool = False


class Study:
    """A policy at work on real measurements.

        plan = study.ask()        # what to measure next; None once stopped
        study.tell(ids, rewards)  # what came, in any order and in any part

    Rewards are told in the user's sign and unit; with minimize=True small ones are good. A plan closes when every pull
    that it asked for has been told or abandoned; only then are its results judged, and before that nothing that
    depends on them can be seen.

    Args:
        arms: what is chosen among.
        policy: the algorithm; for the same number of arms.
        minimize: small rewards are good.
        log: where asked and told are kept; in memory by default. A log that is not empty is resumed.

    Raises:
        InvalidInput: the policy is for another number of arms.
    """

    def __init__(self, arms: Arms, policy: Policy[Any], *, minimize: bool = False, log: Log | None = None) -> None:
        check_subject(arms, policy)
        self._build: Callable[[], tuple[Arms, Policy[Any]]] = lambda: (arms, policy)
        self._begin(arms.ids, policy.noise, minimize, MemoryLog() if log is None else log, rounds_at_most(policy))

    @classmethod
    def over(
        cls,
        log: Log,
        *,
        ids: tuple[str, ...],
        noise: Noise,
        minimize: bool,
        most_rounds: int | None,
        build: Callable[[], tuple[Arms, Policy[Any]]],
    ) -> Study:
        """A study whose arms and policy are built only if something must be computed; most calls need neither."""
        study = cls.__new__(cls)
        study._build = build
        study._begin(ids, noise, minimize, log, most_rounds)
        return study

    def _begin(self, ids: tuple[str, ...], noise: Noise, minimize: bool, log: Log, most_rounds: int | None) -> None:
        self.ids = ids
        self.noise = noise
        self.minimize = minimize
        self.log = log
        self.most_rounds = most_rounds
        self._subject: tuple[Arms, Policy[Any]] | None = None
        self._index = {name: arm for arm, name in enumerate(ids)}
        self._board: Board | None = None
        self._state: tuple[int, Any] | None = None
        self._trace: dict[int, RoundRecord] = {}
        self._circumstances: list[Circumstances] = []
        self._digested = -1

    @property
    def arms(self) -> Arms:
        """What is chosen among."""
        return self._built[0]

    @property
    def policy(self) -> Policy[Any]:
        """The algorithm."""
        return self._built[1]

    @property
    def _built(self) -> tuple[Arms, Policy[Any]]:
        if self._subject is None:
            self._subject = self._build()
        return self._subject

    # ask

    def ask(
        self, max_pulls: int | None = None, *, worker: str | None = None, lease: str | float | None = None
    ) -> Plan | None:
        """What to measure next: the open plan, or a new one, or None once the study has stopped.

        With any argument, a part of the open plan is leased to the worker: nobody else is given these pulls before the
        lease has run out. A worker who holds a lease is given what is left of it.

        Args:
            max_pulls: lease at most so many pulls; None: all that are free.
            worker: who measures; "anyone" if only the other arguments are given.
            lease: how long the pulls are the worker's: "8h" (the default), "30m", "2d", or seconds.

        Returns:
            The plan. A leased one has `.lease` and `.keys()`; its total is 0 while all that is missing is out with
            others.

        Raises:
            InvalidInput: max_pulls is not a positive whole number, the worker's name is empty, or the lease is no
                duration.
            OutOfTurn: the clock was moved back, so that no lease could be judged.
        """
        asked = max_pulls is not None or worker is not None or lease is not None
        if asked:
            name, seconds = _terms(max_pulls, worker, lease)
        planned = self._open()
        if planned is None:
            return None
        if not asked:
            return replace(planned.plan, ids=self.ids)
        return self._leased(planned, max_pulls, name, seconds)

    def _open(self) -> Planned | None:
        """The open plan; a new one if there is none; None once stopped."""
        head = self._settle()
        if head.decision.stopped or self.log.ended() is not None:
            return None
        if head.planned is not None:
            return head.planned
        plan = self.policy.ask(self._state_of(head.decision))  # no lock is held while a design is computed
        return self.log.add_plan(Planned(head.decision.plan + 1, plan, self.log.clock()))

    def free_part(self) -> Plan | None:
        """The pulls of the open plan that are not in and that nobody holds a lease on; None once stopped."""
        planned = self._open()
        if planned is None:
            return None
        return replace(planned.plan, ids=self.ids, counts=self._look(planned).free(self.log.clock()))

    def _leased(self, planned: Planned, most: int | None, worker: str, seconds: float) -> Plan:
        with self._turn():
            now = self._checked_time()
            board = self._look(planned)
            held = board.held_by(worker, now)
            if held is None:
                leased = board.grant(worker, most, now=now, until=now + seconds)
                if leased is None:
                    return replace(planned.plan, ids=self.ids, counts=np.zeros_like(board.asked))
                self.log.add_lease(leased, now)
                held = Held(leased, np.zeros_like(board.asked))
            return self._part(board, held)

    def _part(self, board: Board, held: Held) -> Plan:
        """What is left of a lease, as a plan with keys that were not told."""
        planned, left = board.planned, board.wanted_of(held)
        ordinals = []
        for arm in np.flatnonzero(left).tolist():
            first, number = int(held.leased.first[arm]), int(held.leased.counts[arm])
            mine = np.arange(first, first + number)
            if held.done[arm]:
                keys = [pull_key(planned.number, ordinal, self.ids[arm]) for ordinal in mine.tolist()]
                told = self.log.told(keys)
                mine = mine[[key not in told for key in keys]]
            ordinals.append(mine[: left[arm]])
            left[arm] = len(ordinals[-1])
        flat = np.concatenate(ordinals) if ordinals else np.empty(0, np.int64)
        return replace(planned.plan, ids=self.ids, counts=left, lease=held.lease, ordinals=flat)

    def _checked_time(self) -> float:
        now, latest = self.log.clock(), self.log.latest_time()
        if now < latest - BACKWARDS:
            raise OutOfTurn(
                f"the clock says {format_time(now)}, and the latest entry of this study is from {format_time(latest)}: "
                "it was moved back, or another machine's is ahead, and no lease could be judged. Nothing was leased. "
                "Set the clock right; results can be told meanwhile."
            )
        return now

    # tell

    def tell(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
    ) -> Receipt:
        """Report single pulls: one row a pull, in any order, any part of the open plan.

        Args:
            ids: n arm ids, each asked by the open plan. More pulls of an asked arm than asked are welcome.
            rewards: n finite rewards in the user's sign and unit.
            keys: n names of the results; a key that was told before is not counted again.
            worker: who measured; results without a key of a lease belong to the plan of the worker's latest lease.
            plan: number of the plan that the results belong to; None: as the keys or the worker say, else the open one.

        Returns:
            What became of them. Results of a plan that is closed are kept, and never used.

        Raises:
            OutOfTurn: no plan is open.
            InvalidInput: unknown or not asked arm, a reward not finite or outside the declared bounds, lengths that
                differ, a key told before with another value. Nothing is recorded then.
        """
        return self._tell(self._singles(ids, rewards, keys, worker), worker, plan)

    def tell_totals(
        self,
        ids: Sequence[object],
        pulls: ArrayLike,
        sums: ArrayLike,
        squares: ArrayLike | None = None,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
    ) -> Receipt:
        """Report totals of several pulls, one row each: `tell` for instruments that add up.

        Args:
            ids: n arm ids, each asked by the open plan; an id may occur more than once.
            pulls: measurements that each row adds up, shape (n,), whole numbers.
            sums: their total rewards, shape (n,), in the user's sign and unit.
            squares: totals of the squared rewards, shape (n,); None when unknown.
            keys, worker, plan: as in `tell`.

        Raises:
            OutOfTurn, InvalidInput: as in `tell`.
        """
        arms, names = self._arms_of(ids)
        seen = border.check_sums(pulls, sums, squares, self.noise, names)
        rows = Results(arms, seen.counts, seen.sums, seen.squares, telling.labels(keys, len(arms)), source=worker or "")
        return self._tell(rows.rows(np.flatnonzero(seen.counts)), worker, plan)

    def tell_sums(self, counts: ArrayLike, sums: ArrayLike, squares: ArrayLike | None = None) -> Receipt:
        """Report totals per arm.

        Args:
            counts: pulls of each arm, shape (K,), non-negative integers.
            sums: total reward of each arm, shape (K,), in the user's sign and unit.
            squares: total of the squared rewards, shape (K,); None when unknown.

        Raises:
            OutOfTurn, InvalidInput: as in `tell`.
        """
        seen = border.check_sums(counts, sums, squares, self.noise, self.ids)
        arms = np.flatnonzero(seen.counts)
        kept = None if seen.squares is None else seen.squares[arms]
        return self._tell(Results(arms, seen.counts[arms], seen.sums[arms], kept), None, None)

    def tell_prior(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
    ) -> Receipt:
        """Keep results that the study did not ask for; they never enter an estimate or a certificate.

        Raises:
            InvalidInput: as in `tell`, but for arms that were not asked.
        """
        results = self._singles(ids, rewards, keys, worker)
        with self._turn():
            fresh, repeated = telling.fresh(self.log, results, self.ids)
            if len(fresh.arms):
                self.log.add_results(0, fresh, standing=PRIOR, at=self.log.clock())
        return Receipt(prior=len(fresh.arms), repeated=repeated)

    def fail(
        self, ids: Sequence[object], keys: Sequence[object] | None = None, *, worker: str | None = None
    ) -> Receipt:
        """Report measurements that gave no result; they are offered again at once.

        Args:
            ids: n arm ids of the open plan, one row a pull.
            keys: n keys of their lease; None: of the worker's latest lease, if there is one.
            worker: who measured.

        Raises:
            OutOfTurn: no plan is open.
            InvalidInput: unknown or not asked arm, lengths that differ, or a key that was never given.
        """
        arms, names = self._arms_of(ids)
        labels = telling.labels(keys, len(arms)) or (None,) * len(arms)
        late, events = 0, []
        with self._turn():
            planned, now = self._open_plan(), self.log.clock()
            board = self._look(planned)
            known = {*self.log.told([key for key in labels if key is not None]), *board.failed_keys}
            spent: Counter[tuple[int, int]] = Counter()
            for arm, arm_name, key in zip(arms.tolist(), names, labels, strict=True):
                named = None if key is None else read_key(key, arm_name)
                if key is not None and key in known:
                    continue  # a retry
                if named is not None and named[0] != planned.number:
                    late += 1  # of a plan that is closed: nothing waits for it
                    continue
                telling.check_asked(planned.plan, np.array([arm]), self.ids)
                if named is not None:
                    telling.check_given(board, arm, named[1], str(key))
                gone = {lease: pulls for (lease, of), pulls in spent.items() if of == arm}
                ordinal = None if named is None else named[1]
                lease = board.lease_of(arm, ordinal=ordinal, worker=worker or ANYONE, spent=gone)
                spent[lease, arm] += 1
                known.update(() if key is None else (key,))
                events.append(Event(FAILED, planned.number, arm, 1, lease, key or "", now))
            for event in events:
                self.log.add_event(event)
        repeated = len(arms) - len(events) - late
        return Receipt(planned.number, repeated=repeated, late=late, failed=len(events))

    def abandon(self, reason: str, ids: Sequence[object] | None = None) -> None:
        """Do not measure the rest of the open plan, or the rest of some arms; it closes once nothing else is wanted.

        Valid only if *which* results are missing has nothing to do with their values (a broken instrument, a lost
        sample): say so with the reason "independent-of-value", which the certificate then lists as an assumption. With
        any other reason the verdict becomes heuristic.

        Args:
            reason: why.
            ids: arms whose missing pulls are given up; None: all.

        Raises:
            OutOfTurn: no plan is open.
            InvalidInput: the reason is empty, or an id is unknown.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput(
                "an abandonment needs its reason: independent-of-value if which results are missing has nothing to do "
                "with their values, else what happened."
            )
        arms = np.arange(len(self.ids)) if ids is None else np.unique(self._arms_of(ids)[0])
        with self._turn():
            planned = self._open_plan()
            missing, now = self._look(planned).missing, self.log.clock()
            for arm in arms[missing[arms] > 0].tolist():
                event = Event(ABANDONED, planned.number, arm, int(missing[arm]), 0, reason.strip(), now)
                self.log.add_event(event)
            if not self._look(planned).missing.any():
                self.log.add_event(Event(CLOSED, planned.number, at=now))
        self._settle()

    def close(self, reason: str = "") -> None:
        """End the study before its policy would; what the open plan was told is not used. Nothing changes if it ended.

        The certificate then says what the closed plans prove, and what more it would have taken.
        """
        if self._settle().decision.stopped:
            return
        with self._turn():
            if self.log.ended() is None:
                self.log.add_event(Event(ENDED, 0, reason=reason.strip(), at=self.log.clock()))

    # what is known

    @property
    def missing(self) -> IntArray:
        """Pulls of the open plan that have not been told yet, shape (K,)."""
        planned = self._settle().planned
        return np.zeros(len(self.ids), np.int64) if planned is None else self._look(planned).missing

    @property
    def stopped(self) -> bool:
        """No more measurements are needed, or the study was closed."""
        return self._settle().decision.stopped or self.log.ended() is not None

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round; `.active` holds the indices of the arms not ruled out."""
        return self._digest(self._settle().decision.plan)

    def progress(self) -> Progress:
        """Where the study stands; nothing is computed or written for it."""
        decision, planned, now = self.log.last_decision(), self.log.last_plan(), self.log.clock()
        row = None if decision is None else decision.row
        ended = self.log.ended()
        closed = Progress(
            judged=0 if decision is None else decision.plan,
            rounds=0 if row is None else row.round,
            pulls=0 if row is None else row.total_pulls,
            candidates=len(self.ids),
            left=len(self.ids) if row is None else len(row.active),
            leader=None if decision is None or (row is None and not decision.stopped) else self.ids[decision.leader],
            certified_gap=None if row is None else row.certified_gap,
            stopped=decision is not None and decision.stopped,
            verdict="not-yet" if decision is None else decision.verdict,
            ended=None if ended is None else ended.reason,
            most_rounds=self.most_rounds,
            set_aside=self.log.set_aside(),
            now=now,
        )
        if planned is None or planned.number <= closed.judged or closed.stopped:
            return closed
        board = self._look(planned)
        return replace(
            closed,
            plan=planned.number,
            asked=int((board.asked - board.dropped).sum()),
            told=int(board.told.sum()),
            complete=board.closed,
            free=int(board.free(now).sum()),
            out=tuple(
                Out(held.lease.worker, int(board.wanted_of(held).sum()), held.lease.until)
                for held in board.running(now)
            ),
            opened_at=planned.opened_at,
            round=planned.plan.round,
            look=planned.plan.look,
            looks=planned.plan.looks,
        )

    def recommend(self) -> str:
        """The id of the arm that would be recommended now, from the plans that are closed."""
        return self.ids[self._settle().decision.leader]

    def certificate(self) -> Certificate:
        """The answer and what it rests on, from the plans that are closed; its verdict says what may be claimed."""
        head = self._settle()
        state = self._state_of(head.decision)
        answer = self.policy.certificate(state)
        prepared = self.arms.preparation if self.policy.assumptions else ()
        answer = replace(
            answer, best_arm=self.ids[answer.arm], minimize=self.minimize, rounds=self._digest(head.decision.plan)
        )
        answer = with_circumstances(answer, prepared, self._circumstances)
        ended = self.log.ended()
        if ended is None:
            return answer
        planned = head.planned
        plan = planned.plan if planned is not None else self.policy.ask(state)
        return with_early_end(answer, ended, plan)

    # the fold

    def _settle(self) -> Head:
        """Judge the plan that is closed, if nobody has."""
        before = -2
        while True:
            decision = self.log.last_decision()
            if decision is None:
                decision = self._start()
            planned = self.log.last_plan()
            if planned is None or planned.number <= decision.plan:
                return Head(decision, None)
            if planned.number > decision.plan + 1:  # others went on between the two looks
                if decision.plan == before:
                    raise StorageError(
                        f"plan {planned.number} is there and decision {planned.number - 1} is not: the database was "
                        "altered or is damaged. Nothing was changed now; take the latest backup (docs/studies.md)."
                    )
                before = decision.plan
                continue
            board = self._look(planned)
            if not board.closed:
                return Head(decision, planned)
            self.log.add_decision(self.judged_from(self._state_of(decision), planned, board))

    def _start(self) -> Decision:
        state = self.policy.init()
        return self.log.add_decision(self.decided(0, state))

    def judged_from(self, state: Any, planned: Planned, board: Board) -> Decision:
        """The decision on a closed plan: a function of the state before it and of what is stored."""
        seen = border.received(self.log.results(planned.number), len(self.ids), minimize=self.minimize)
        step = self.policy.tell(state, planned.plan, seen)
        decision = self.decided(planned.number, step.state)
        return replace(decision, seen=seen, row=step.record, circumstances=board.circumstances)

    def decided(self, plan: int, state: Any) -> Decision:
        """What a state amounts to."""
        stopped = bool(self.policy.stopped(state))
        verdict = self.policy.certificate(state).verdict if stopped else "not-yet"
        return Decision(plan, state, stopped, verdict, self.policy.recommend(state), at=self.log.clock())

    def _state_of(self, decision: Decision) -> Any:
        if self._state is None or self._state[0] != decision.plan:
            state = decision.state
            if isinstance(state, str):
                state = from_json(self.policy.state_type, state)
            self._state = (decision.plan, state)
        return self._state[1]

    def _digest(self, judged: int) -> tuple[RoundRecord, ...]:
        """The trace up to the decision on that plan; what others decided since belongs to a later moment."""
        for decision in self.log.decisions(self._digested):
            if decision.plan > judged:
                break
            self._digested = decision.plan
            if decision.row is not None:
                self._trace[decision.row.round] = decision.row
                self._circumstances.append(decision.circumstances)
        return tuple(self._trace[number] for number in sorted(self._trace))

    def _look(self, planned: Planned) -> Board:
        """The plan's board, with what came since the last look."""
        if self._board is None or self._board.planned.number != planned.number:
            self._board = Board.of(planned)
        self._board.add(self.log.arrivals(planned.number, self._board.mark))
        return self._board

    # one turn

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The log's turn; if it fails, what was seen inside it is forgotten."""
        try:
            with self.log.turn():
                yield
        except BaseException:
            self._board = None
            raise

    def _tell(self, results: Results, worker: str | None, plan: int | None) -> Receipt:
        if len(results.arms) == 0:
            return Receipt()
        receipt = self._stored(results, worker, plan)
        if receipt is None:
            self._settle()
            raise OutOfTurn(self._why_closed())
        if receipt.closed:
            self._settle()
        return receipt

    def _stored(self, results: Results, worker: str | None, plan: int | None) -> Receipt | None:
        """Store results in one turn; None, and nothing is stored, if they belong to no plan."""
        with self._turn():
            fresh, repeated = telling.fresh(self.log, results, self.ids)
            if len(fresh.arms) == 0:
                return Receipt(repeated=repeated)  # a retry: all of it counts already, perhaps in a plan that is closed
            planned = self.log.last_plan()
            board = None if planned is None else self._look(planned)
            latest = 0 if planned is None else planned.number
            open_number = latest if board is not None and board.takes_results else 0
            belongs = telling.plans_of(self.log, fresh, self.ids, worker, plan, open_number, latest)
            if not belongs.all():
                return None
            now = self.log.clock()
            current = fresh.rows(np.flatnonzero(belongs == open_number))
            if len(current.arms) and board is not None:
                telling.check_asked(board.planned.plan, current.arms, self.ids)
            for number in np.unique(belongs[belongs != open_number]).tolist():
                late = fresh.rows(np.flatnonzero(belongs == number))
                self.log.add_results(number, late, standing=LATE, at=now)
            closed = len(current.arms) > 0 and board is not None and self._count(board, current, worker, now)
        counted = len(current.arms)
        return Receipt(open_number, counted, repeated, late=len(fresh.arms) - counted, closed=closed)

    def _count(self, board: Board, results: Results, worker: str | None, now: float) -> bool:
        """Store results of the open plan; True if they complete it."""
        answered = telling.with_leases(results, board, self.ids, worker)
        self.log.add_results(board.planned.number, answered, standing=COUNTED, at=now)
        complete = board.completed_by(answered.arms, answered.pulls)
        if complete:
            self.log.add_event(Event(CLOSED, board.planned.number, at=now))
        return complete

    def _open_plan(self) -> Planned:
        """The plan that takes results."""
        planned = self.log.last_plan()
        if planned is None or not self._look(planned).takes_results:
            raise OutOfTurn(self._why_closed())
        return planned

    def _why_closed(self) -> str:
        """Why no plan takes results."""
        ended, decision = self.log.ended(), self.log.last_decision()
        if ended is not None:
            why = f" ({ended.reason})." if ended.reason else "."
            return f"the study was closed on {format_time(ended.at)}{why} No more results are needed."
        if decision is not None and decision.stopped:
            return "the study has stopped; no more results are needed."
        return (
            "no plan is open: nothing has been asked yet, or all of it has been told; call ask() first, "
            "measure what it says, then tell."
        )

    def _singles(
        self, ids: Sequence[object], rewards: ArrayLike, keys: Sequence[object] | None, worker: str | None
    ) -> Results:
        arms, names = self._arms_of(ids)
        values = border.check_rewards(rewards, self.noise, len(arms), names)
        labels = telling.labels(keys, len(arms))
        return Results(arms, np.ones(len(arms), np.int64), values, values**2, labels, source=worker or "")

    def _arms_of(self, ids: Sequence[object]) -> tuple[IntArray, list[str]]:
        """(indices, names) of the arms of these ids."""
        if isinstance(ids, str) or not hasattr(ids, "__iter__"):
            raise InvalidInput(f"ids is {ids!r}; give a sequence of ids, [{ids!r}] for one.")
        names = [str(name) for name in ids]
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(f"{len(unknown)} ids are not arms of this study, the first is {unknown[0]!r}.")
        return np.array([self._index[name] for name in names], np.int64), names


def check_subject(arms: Arms, policy: Policy[Any]) -> None:
    """Refuse what is no study.

    Raises:
        InvalidInput: not arms and a policy, or a policy for another number of arms.
    """
    from surepick.policies import Policy  # noqa: PLC0415 (only where a study is made: telling needs no policy)

    if not isinstance(arms, Arms) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}; the arms come first."
        )
    if policy.num_arms != arms.num_arms:
        raise InvalidInput(
            f"the policy is for {policy.num_arms} arms and there are {arms.num_arms}; build it from them."
        )


def rounds_at_most(policy: Policy[Any]) -> int | None:
    """The rounds after which a policy is done if no result is missing; None where it knows no such number."""
    known = getattr(getattr(policy, "settings", policy), "num_rounds", None)
    return known if isinstance(known, int) else None


def _terms(max_pulls: int | None, worker: str | None, lease: str | float | None) -> tuple[str, float]:
    """(worker, seconds) of a lease that is asked for."""
    if max_pulls is not None:
        whole_number("max_pulls", max_pulls, least=1, meaning="the pulls that are leased.")
    name = ANYONE if worker is None else worker
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"worker is {worker!r}; give a name, so that what is leased is known to be theirs.")
    return name, parse_duration(USUAL_LEASE if lease is None else lease)
