"""One study: ask what to measure, measure it, tell what came. Its state is a replay over the log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.arrays import IntArray
from surepick.core.certificate import Certificate
from surepick.core.step import RoundRecord
from surepick.errors import InvalidInput, OutOfTurn
from surepick.noise import Noise
from surepick.policies.base import Policy
from surepick.policies.certificate import certificate_of
from surepick.studies import leasing, recording
from surepick.studies import validation as border
from surepick.studies.batch import Batch
from surepick.studies.deviations import EarlyEnd, with_deviations, with_early_end
from surepick.studies.keys import canonical_keys
from surepick.studies.logs.base import (
    ABANDONED,
    CLOSED,
    ENDED,
    FAILED,
    PRIOR,
    Deviations,
    Event,
    Log,
    Planned,
    Results,
)
from surepick.studies.logs.leases import format_time
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.open_plan import LeaseProgress
from surepick.studies.progress import Progress, progress_of
from surepick.studies.recording import Receipt
from surepick.studies.registration import registration_code
from surepick.studies.replay import Build, Replay
from surepick.studies.subject import subject_of

if TYPE_CHECKING:
    from surepick.studies.closed_loop import Result


class _NoPlan(Exception):
    """Results belong to no plan; what was stored in the same turn is taken back."""


class Study:
    """A policy at work on real measurements.

        batch = study.ask()                # what to measure next; None once stopped
        study.tell(batch, rewards)         # one reward for each of batch.pulls()
        study.tell(ids, rewards)           # or what came, in any order and in any part

    `run(measure)` does this until the study stops.

    Rewards are told in the user's sign and unit; with minimize=True small ones are good. A plan closes when every pull
    that it asked for has been told or abandoned; only then are its results judged, and before that nothing that
    depends on them can be seen.

    Args:
        arms, policy: what is chosen among, and the algorithm for it; or the algorithm alone, if it knows its arms, as
            those of `make_policy` do.
        minimize: small rewards are good.
        log: where asked and told are kept; in memory by default. A log that is not empty is resumed.

    Raises:
        InvalidInput: the policy is for another number of arms, or does not know its arms.
    """

    _code: Callable[[], str | None]

    def __init__(
        self,
        arms: Arms | Policy[Any],
        policy: Policy[Any] | None = None,
        *,
        minimize: bool = False,
        log: Log | None = None,
    ) -> None:
        arms, policy = subject_of(arms, policy)
        kept = MemoryLog() if log is None else log
        self._begin(kept, arms.ids, policy.problem.noise, minimize, policy.traits.most_rounds, lambda: (arms, policy))
        self._code = lambda: registration_code(arms, policy, minimize=minimize)

    @classmethod
    def over(
        cls,
        log: Log,
        *,
        ids: tuple[str, ...],
        noise: Noise,
        minimize: bool,
        most_rounds: int | None,
        build: Build,
        registration: Callable[[], str | None],
    ) -> Study:
        """A study whose arms and policy are built only if something must be computed; most calls need neither."""
        study = cls.__new__(cls)
        study._begin(log, ids, noise, minimize, most_rounds, build)
        study._code = registration
        return study

    def _begin(
        self, log: Log, ids: tuple[str, ...], noise: Noise, minimize: bool, most_rounds: int | None, build: Build
    ) -> None:
        self.ids = ids
        self.noise = noise
        self.minimize = minimize
        self.log = log
        self.most_rounds = most_rounds
        self._index = {name: arm for arm, name in enumerate(ids)}
        self._replay = Replay(log, num_arms=len(ids), minimize=minimize, build=build)

    @property
    def arms(self) -> Arms:
        """What is chosen among."""
        return self._replay.arms

    @property
    def policy(self) -> Policy[Any]:
        """The algorithm."""
        return self._replay.policy

    @property
    def registration(self) -> str | None:
        """The code of what is asked, of which candidates, by which policy: `verify --registered` refuses any other.

        Write it down before the first result, outside of the study. None if the policy has parts without a name.
        """
        return self._code()

    @property
    def replay(self) -> Replay:
        """The log, as far as it was replayed."""
        return self._replay

    # ask

    def ask(self) -> Batch | None:
        """What to measure next: the open plan, or a new one, or None once the study has stopped.

        To share a plan among those who measure, take parts of it with `lease`.
        """
        planned = self._open()
        return None if planned is None else self._batch(planned)

    def lease(
        self,
        max_pulls: int | None = None,
        *,
        worker: str | None = None,
        duration: str | float | None = None,
        trust_clock: bool = False,
    ) -> Batch | None:
        """A part of the open plan for one worker: nobody else is given these pulls before the lease has run out.

        A worker who holds a lease is given what is left of it.

        Args:
            max_pulls: lease at most so many pulls; None: all that are free.
            worker: who measures; None: "anyone".
            duration: how long the pulls are the worker's: "8h" (the default), "30m", "2d", or seconds.
            trust_clock: lease although entries of the study are from later than now, because their clock was wrong.

        Returns:
            The batch, with `.lease` and `.keys()`; its total is 0 while all that is missing is out with others. None
            once the study has stopped.

        Raises:
            InvalidInput: max_pulls is not a positive whole number, the worker's name is empty, or the duration is
                none.
            OutOfTurn: the clock was moved back, so that no lease could be judged.
        """
        name, seconds = leasing.terms(max_pulls, worker, duration)
        while (planned := self._open()) is not None:
            part = self._leased(planned, max_pulls, name, seconds, trust_clock)
            if part is not None:
                return part
        return None

    def run(
        self,
        measure: Callable[[list[str]], ArrayLike],
        *,
        max_pulls: int | None = None,
        at_once: int | None = None,
        progress: bool | None = None,
    ) -> Result:
        """Ask, measure and tell until the study stops.

        Args:
            measure: gets ids, one for each pull, and returns as many rewards in the same order.
            max_pulls: no batch is begun that would bring the measurements of this call above it; None: no limit.
            at_once: most ids in one call of `measure`; what came of a call is stored before the next. None: a batch.
            progress: show a bar on standard error; None: if that is a terminal.

        Returns:
            The answer. A study that was interrupted goes on where it was: call `run` again.

        Raises:
            InvalidInput: `measure` returned another number of rewards, or some that are refused.
        """
        from surepick.studies.closed_loop import run_study  # noqa: PLC0415 (that module needs this one)

        return run_study(self, measure, max_pulls=max_pulls, at_once=at_once, progress=progress)

    def _open(self) -> Planned | None:
        """The open plan; a new one if there is none; None once stopped."""
        head = self._replay.settle()
        if head.decision.stopped or self.log.ended() is not None:
            return None
        if head.planned is not None:
            return head.planned
        plan = self.policy.ask(self._replay.state_of(head.decision))  # no lock is held while a design is computed
        return self.log.add_plan(Planned(head.decision.plan + 1, plan, self.log.clock()))

    def free_part(self) -> Batch | None:
        """The pulls of the open plan that are not in and that nobody holds a lease on; None once stopped."""
        planned = self._open()
        if planned is None:
            return None
        return self._batch(planned, self._replay.look(planned).free(self.log.clock()))

    def _batch(self, planned: Planned, counts: IntArray | None = None) -> Batch:
        return Batch.of(planned.plan, self.ids, planned.number, counts=counts)

    def _leased(self, planned: Planned, most: int | None, worker: str, seconds: float, trusted: bool) -> Batch | None:
        """A lease on a part of the plan, or what is left of the worker's; None if the plan was closed meanwhile."""
        with self._turn():
            now = self.log.clock() if trusted else leasing.checked_time(self.log)
            open_plan = self._replay.look(planned)
            held = open_plan.held_by(worker, now)
            if not open_plan.takes_results:
                return None
            if held is None:
                leased = open_plan.grant(worker, most, now=now, until=now + seconds)
                if leased is None:
                    return self._batch(planned, np.zeros_like(open_plan.asked))
                self.log.add_lease(leased, now)
                held = LeaseProgress(leased, np.zeros_like(open_plan.asked))
            return leasing.part(self.log, open_plan, held, self.ids)

    # tell

    def tell(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
        failed: Sequence[tuple[object, object]] = (),
    ) -> Receipt:
        """Report single pulls: one row a pull, in any order, any part of the open plan.

        Args:
            ids: n arm ids, each asked by the open plan; more pulls of an asked arm than asked are welcome. Or a batch
                of `ask` or `lease`: the rewards are then those of `batch.pulls()`, in that order.
            rewards: n finite rewards in the user's sign and unit.
            keys: n names of the results; a key that was told before is not counted again.
            worker: who measured; results without a key of a lease belong to the plan of the worker's latest lease, if
                results of that lease are still to come.
            plan: number of the plan that the results belong to; None: as the keys or the worker say, else the open one.
            failed: (id, key or None) of pulls that gave no result, as in `fail`; stored together with the results.

        Returns:
            What became of them. Results of a plan that is closed are kept, and never used.

        Raises:
            OutOfTurn: no plan is open.
            InvalidInput: unknown or not asked arm, a reward not finite or outside the declared bounds, lengths that
                differ, a key told before with another value. Nothing is recorded then.
        """
        if isinstance(ids, Batch):
            ids, keys, worker, plan = self._given(ids, keys, worker, plan)
        return self._tell(self._singles(ids, rewards, keys, worker), worker, plan, failed)

    def tell_totals(
        self,
        ids: Sequence[object] | Batch,
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
            ids: n arm ids, each asked by the open plan, if its row has pulls; an id may occur more than once. Or a
                batch: the rows are then those of all arms of the study, n = K.
            pulls: measurements that each row adds up, shape (n,), whole numbers.
            sums: their total rewards, shape (n,), in the user's sign and unit.
            squares: totals of the squared rewards, shape (n,); None when unknown.
            keys, worker, plan: as in `tell`.

        Raises:
            OutOfTurn, InvalidInput: as in `tell`.
        """
        if isinstance(ids, Batch):
            worker, plan = self._owner(ids, worker, plan)
            ids = self.ids
        arms, names = self._arms_of(ids)
        seen = border.check_sums(pulls, sums, squares, self.noise, names)
        keyed = canonical_keys(keys, names)
        rows = Results(arms, seen.counts, seen.sums, seen.squares, keyed, source=leasing.source(worker))
        return self._tell(rows.rows(np.flatnonzero(seen.counts)), worker, plan)

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
            fresh, repeated = recording.fresh(self.log, results, self.ids)
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
        _, names = self._arms_of(ids)
        labels = canonical_keys(keys, names) or (None,) * len(names)
        with self._turn():
            self._open_plan()
            return self._fail(list(zip(names, labels, strict=True)), worker)

    def _fail(self, failed: Sequence[tuple[object, object]], worker: str | None) -> Receipt:
        arms, names = self._arms_of([name for name, _ in failed])
        keys = canonical_keys([key for _, key in failed], names) or ()
        return recording.store_failures(self._replay, arms, self.ids, keys, leasing.source(worker))

    def release(self, worker: str) -> int:
        """Give back all that a worker holds: it is offered to others at once. Results that come after all still count.

        Args:
            worker: the name; "lab" stands for "lab/1", "lab/2", ... too.

        Returns:
            The number of pulls.
        """
        with self._turn():
            planned, now = self._open_plan(), self.log.clock()
            open_plan = self._replay.look(planned)
            pulls = 0
            for held in open_plan.running(now):
                if held.lease.worker != worker and not held.lease.worker.startswith(f"{worker}/"):
                    continue
                left = held.left
                for arm in np.flatnonzero(left).tolist():
                    number, pulls = held.lease.number, pulls + int(left[arm])
                    self.log.add_event(Event(FAILED, planned.number, arm, int(left[arm]), number, "", now))
        return pulls

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
        why = leasing.stated(reason)
        if not why:
            raise InvalidInput(
                "an abandonment needs its reason: independent-of-value if which results are missing has nothing to do "
                "with their values, else what happened."
            )
        arms = np.arange(len(self.ids)) if ids is None else np.unique(self._arms_of(ids)[0])
        with self._turn():
            planned = self._open_plan()
            missing, now = self._replay.look(planned).missing, self.log.clock()
            for arm in arms[missing[arms] > 0].tolist():
                event = Event(ABANDONED, planned.number, arm, int(missing[arm]), 0, why, now)
                self.log.add_event(event)
            if not self._replay.look(planned).missing.any():
                self.log.add_event(Event(CLOSED, planned.number, at=now))
        self._replay.settle()

    def close(self, reason: str = "") -> None:
        """End the study before its policy would; what the open plan was told is not used. Nothing changes if it ended.

        The certificate then says what the closed plans prove, and what more it would have taken.
        """
        while not self._replay.settle().decision.stopped:
            with self._turn():
                planned, decision = self.log.last_plan(), self.log.last_decision()
                judged = -1 if decision is None else decision.plan
                if planned is not None and planned.number > judged and self._replay.look(planned).closed:
                    continue  # its last result came meanwhile: it may have stopped the study
                if self.log.ended() is None:
                    self.log.add_event(Event(ENDED, 0, reason=leasing.stated(reason), at=self.log.clock()))
                return

    # what is known

    def recorded(self, ids: Sequence[object], keys: Sequence[object]) -> list[bool]:
        """Whether each of these keys was told, or reported as failed; rewards are not compared.

        Args:
            ids: n arm ids.
            keys: n keys, as in `tell`; None is never recorded.

        Raises:
            InvalidInput: as in `tell`.
        """
        given = canonical_keys(keys, self._arms_of(ids)[1]) or ()
        wanted = [key for key in given if key is not None]
        known = {*self.log.told(wanted), *self.log.failed(wanted)}
        return [key in known for key in given]

    @property
    def missing(self) -> IntArray:
        """Pulls of the open plan that have not been told yet, shape (K,)."""
        planned = self._replay.settle().planned
        return np.zeros(len(self.ids), np.int64) if planned is None else self._replay.look(planned).missing

    @property
    def stopped(self) -> bool:
        """No more measurements are needed, or the study was closed."""
        return self._replay.settle().decision.stopped or self.log.ended() is not None

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round; `.active` holds the indices of the arms not ruled out."""
        return self._replay.trace(self._replay.settle().decision.plan)

    def progress(self) -> Progress:
        """Where the study stands; nothing is computed or written for it."""
        return progress_of(self._replay, self.ids, self.most_rounds, self.noise)

    def recommend(self) -> str:
        """The id of the arm that would be recommended now, from the plans that are closed."""
        return self.ids[self._replay.settle().decision.leader]

    def certificate(self) -> Certificate:
        """The answer and what it rests on, from the plans that are closed; its verdict says what may be claimed."""
        head = self._replay.settle()
        return answer_of(
            self.policy,
            self.arms,
            self._replay.state_of(head.decision),
            minimize=self.minimize,
            rounds=self._replay.trace(head.decision.plan),
            deviations=self._replay.deviations,
            end=self.early_end(),
        )

    def early_end(self) -> EarlyEnd | None:
        """How the study was closed before its policy stopped; None if it was not."""
        head, ended = self._replay.settle(), self.log.ended()
        if ended is None or head.decision.stopped:
            return None
        if head.planned is not None:
            return EarlyEnd.of(ended, head.planned.plan, int(self._replay.look(head.planned).missing.sum()))
        plan = self.policy.ask(self._replay.state_of(head.decision))
        return EarlyEnd.of(ended, plan, plan.total)

    # one turn

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The log's turn; if it fails, what was seen inside it is forgotten."""
        try:
            with self.log.turn():
                yield
        except BaseException:
            self._replay.forget()
            raise

    def _tell(
        self,
        results: Results,
        worker: str | None,
        plan: int | None,
        failed: Sequence[tuple[object, object]] = (),
    ) -> Receipt:
        gone, rows = Receipt(), recording.pairs(failed)
        try:
            with self._turn():
                if rows:
                    gone = self._fail(rows, worker)
                receipt = (
                    recording.store(self._replay, results, self.ids, worker, plan) if len(results.arms) else Receipt()
                )
                if receipt is None:
                    raise _NoPlan
        except _NoPlan:
            self._replay.settle()
            raise OutOfTurn(self._why_closed()) from None
        if receipt.closed:
            self._replay.settle()
        repeated, late = receipt.repeated + gone.repeated, receipt.late + gone.late
        return replace(receipt, failed=gone.failed, repeated=repeated, late=late)

    def _open_plan(self) -> Planned:
        """The plan that takes results."""
        planned = self.log.last_plan()
        if planned is None or not self._replay.look(planned).takes_results:
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
        labels = canonical_keys(keys, names)
        return Results(arms, np.ones(len(arms), np.int64), values, values**2, labels, source=leasing.source(worker))

    def _given(
        self, batch: Batch, keys: Sequence[object] | None, worker: str | None, plan: int | None
    ) -> tuple[list[str], Sequence[object] | None, str | None, int]:
        """(ids, keys, worker, number of the plan) of the results of a batch."""
        worker, number = self._owner(batch, worker, plan)
        if batch.lease is None:
            return batch.pulls(), keys, worker, number
        if keys is not None:
            raise InvalidInput("the pulls of a leased batch have keys already; leave keys out, or give ids.")
        given = batch.keys()
        return [name for name, _ in given], [key for _, key in given], worker, number

    def _owner(self, batch: Batch, worker: str | None, plan: int | None) -> tuple[str | None, int]:
        """(worker, number of the plan) of a batch."""
        if batch.ids != self.ids:
            raise InvalidInput("this batch is of another study: its candidates are others.")
        holder = batch.lease.worker if worker is None and batch.lease is not None else worker
        return holder, batch.number if plan is None else plan

    def _arms_of(self, ids: Sequence[object]) -> tuple[IntArray, Sequence[str]]:
        """(indices, names) of the arms of these ids."""
        if ids is self.ids:
            return np.arange(len(self.ids)), self.ids
        names = leasing.names_of(ids)
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(f"{len(unknown)} ids are not arms of this study, the first is {unknown[0]!r}.")
        return np.array([self._index[name] for name in names], np.int64), names


def answer_of(
    policy: Policy[Any],
    arms: Arms,
    state: Any,
    *,
    minimize: bool,
    rounds: tuple[RoundRecord, ...],
    deviations: Sequence[Deviations],
    end: EarlyEnd | None,
) -> Certificate:
    """The certificate of a study, from where its policy stands and how its plans were carried out."""
    answer = certificate_of(policy, state)
    prepared = arms.preparation if policy.traits.assumptions else ()
    answer = replace(answer, best_arm=arms.ids[answer.arm], minimize=minimize, rounds=rounds)
    answer = with_deviations(answer, prepared, deviations)
    return answer if end is None else with_early_end(answer, end)
