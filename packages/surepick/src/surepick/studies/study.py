"""One study: ask, measure, tell. Its state is a replay over the log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms, Originals
from surepick.core.certificate import Certificate
from surepick.core.observations import Observations, Quantity
from surepick.core.plans import RoundRecord
from surepick.core.records import IntArray
from surepick.noise import Noise
from surepick.policies.base import Policy
from surepick.policies.verdict import PolicySummary, Stated
from surepick.studies import deviations, ledger, recording, validation
from surepick.studies.batch import Batch
from surepick.studies.closed_loop import Measure, OnUnusual, Result, run_closed_loop
from surepick.studies.deviations import EarlyEnd
from surepick.studies.ledger import StudyLog
from surepick.studies.logs.base import CLOSED_ROUNDS, COUNT, Judge, Log, Surplus
from surepick.studies.logs.hash_chain import Memo
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.progress import Progress, progress_of
from surepick.studies.recording import Accept, Receipt
from surepick.studies.registration import registration_code, settled_id, subject_of
from surepick.studies.replay import Build, Replay


class Study(Stated, Memo):
    """A policy at work on real measurements.

        batch = study.ask()                # what to measure next; None once stopped
        study.tell(batch, rewards)         # one reward for each of batch.pulls()
        study.tell(ids, rewards)           # or what came, in any order and in any part

    `run(measure)` does this until the study stops.

    Rewards are in the user's sign and unit; with minimize=True small ones are good. A plan closes when all its pulls
    were reported or abandoned. Then we judge its results; nobody sees a sign of them before.

    Args:
        arms, policy: what is chosen among, and the algorithm for it; or the algorithm alone, if it knows its arms, as
            those of `make_policy` do.
        minimize: small rewards are good.
        log: keeps plans and results; in memory by default. A log that is not empty is resumed.
        judge: "closed rounds", or "as they come": `judge()` judges what is in, and what comes later counts after it.
        surplus: "count", or "refuse": results of the open round beyond what it asks for are refused.
        study_id: a text in the registration code; None: drawn now, so that no other study has this code.

    Raises InvalidInput if the policy is for another number of arms, does not know its arms, or does not judge parts.
    """

    _code: Callable[[], str | None]
    judging: Judge  # when results are judged
    surplus: Surplus  # what becomes of results beyond what was asked
    study_id: str  # drawn when it was made, or given
    originals = item_originals = Originals()  # what ids of arms and of test items were before they were texts, here

    def __init__(
        self,
        arms: Arms | Policy[Any],
        policy: Policy[Any] | None = None,
        *,
        minimize: bool = False,
        log: Log | None = None,
        judge: Judge = CLOSED_ROUNDS,
        surplus: Surplus = COUNT,
        study_id: str | None = None,
    ) -> None:
        arms, policy = subject_of(arms, policy)
        kept = MemoryLog() if log is None else log
        known = kept.study_id if isinstance(kept, MemoryLog) and study_id is None else study_id
        self.study_id = settled_id(known)
        if isinstance(kept, MemoryLog):
            kept.study_id = self.study_id
        self.judging = validation.checked_judge(judge, policy, minimize=minimize)
        self.surplus = validation.checked_surplus(surplus, judge)
        self._begin(
            kept,
            arms.ids,
            policy.problem.noise,
            minimize,
            partial(PolicySummary.of, policy, arms),
            lambda: (arms, policy),
        )
        self._code = lambda: registration_code(arms, policy, study_id=self.study_id, minimize=minimize, judge=judge)
        self.remember(arms, policy)

    def remember(self, arms: Arms, policy: Policy[Any]) -> None:
        """Give `measure` the objects that these arms and test items were before they were texts."""
        order = policy.traits.items
        self.originals = arms.objects or Originals()
        self.item_originals = Originals() if order is None else order.items.objects or Originals()

    @classmethod
    def over(
        cls,
        log: Log,
        *,
        ids: tuple[str, ...],
        noise: Noise,
        minimize: bool,
        terms: Callable[[], PolicySummary],
        build: Build,
        registration: Callable[[], str | None],
        study_id: str,
        judge: Judge = CLOSED_ROUNDS,
        surplus: Surplus = COUNT,
    ) -> Study:
        """A study whose arms and policy are built only if something must be computed; most calls need neither."""
        study = cls.__new__(cls)
        study.judging = judge
        study.surplus = surplus
        study.study_id = study_id
        study._begin(log, ids, noise, minimize, terms, build)
        study._code = registration
        return study

    def _begin(
        self,
        log: Log,
        ids: tuple[str, ...],
        noise: Noise,
        minimize: bool,
        terms: Callable[[], PolicySummary],
        build: Build,
    ) -> None:
        self.ids = ids
        self.noise = noise
        self.minimize = minimize
        self.log = log
        self._terms = cache(terms)
        self.replay = Replay(log, num_arms=len(ids), minimize=minimize, build=build)
        stated = (lambda: self.blocking, lambda: self.constraints, self.surplus)
        self._ledger = StudyLog(self.replay, ids, noise, self.judging, *stated)

    @property
    def arms(self) -> Arms:
        """What is chosen among."""
        return self.replay.arms

    @property
    def policy(self) -> Policy[Any]:
        """The algorithm."""
        return self.replay.policy

    @property
    def state(self) -> Any:
        """Where the policy stands after the closed rounds: what its `claim` and its other methods take."""
        return self.replay.state_of(self.replay.settle().decision)

    @property
    def registration(self) -> str | None:
        """The code of this study, of what it asks, of which candidates, by which policy: `verify --registered` refuses
        any other.

        Write it down before the first result, outside of the study. None if the policy has parts without a name.
        """
        return self._code()

    # ask

    def ask(self) -> Batch | None:
        """What to measure next: the open plan, or a new one, or None once the study has stopped; `lease` shares it."""
        planned = self._ledger.open_plan()
        return None if planned is None else self._ledger.batch(planned)

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
            trust_clock: lease although entries of the study are from later than now, because their clock was wrong,
                or all are more than a year old.

        Returns:
            The batch, with `.lease` and `.keys()`; its total is 0 while all that is missing is out with others. None
            once the study has stopped.

        Raises InvalidInput if max_pulls is no positive whole number, or the worker's name or the duration is none,
        OutOfTurn if the clock is behind the latest entry of the study, or a year ahead, so that we cannot judge leases.
        """
        name, seconds = ledger.lease_terms(max_pulls, worker, duration)
        while (planned := self._ledger.open_plan()) is not None:
            part = ledger.lease_part(self._ledger, planned, max_pulls, name, seconds, trust_clock)
            if part is not None:
                return part
        return None

    def run(
        self,
        measure: Measure,
        *,
        max_pulls: float | None = None,
        max_cost: float | None = None,
        at_once: int | None = None,
        progress: bool | None = None,
        unusual: OnUnusual = "warn",
    ) -> Result:
        """Ask, measure and tell until the study stops; also what others have leased (workers share a plan by `lease`).

        Args:
            measure: gets a list of ids as they were given to `Arms`, one for each pull (and, as a second list, those of
                test items); returns as many rewards. What it cannot be is refused before anything is asked. NaN: it
                failed. It is asked again, three times in all; then we go on without the candidate.
            max_pulls: no batch is begun that would bring the measurements of this call above it; None: 20 times what
                measuring all equally often takes (docs/forecasts.md), which no sound study needs; math.inf: no limit.
            max_cost: the same in money, for arms that have costs, batches included; None: no limit.
            at_once: most ids in one call of `measure`; what came of a call is stored before the next. None: a batch.
            progress: show a bar on standard error; None: if that is a terminal.
            unusual: what becomes of results that stand out (docs/noise.md), since nobody can be asked: "warn" (an
                `UnusualWarning`; they count), "accept", or "refuse" (an `UnusualResult`, before they are stored).

        Returns: the answer. A study that was interrupted goes on where it was: call `run` again.

        Raises InvalidInput if `measure` returned another number of rewards, or some that are refused;
        MeasurementFailed if a candidate gave NaN in three tries and the policy cannot go on without it. `error.study`
        is this study then, with all results of the calls before.
        """
        return run_closed_loop(
            self, measure, max_pulls=max_pulls, max_cost=max_cost, at_once=at_once, progress=progress, unusual=unusual
        )

    def free_part(self) -> Batch | None:
        """The pulls of the open plan that are not in and that nobody holds a lease on; None once stopped."""
        return ledger.free_part(self._ledger)

    def held(self, worker: str) -> Batch | None:
        """What is left of a worker's lease, as `lease` gives it again; None without one. Nothing is written."""
        return ledger.held_part(self._ledger, worker)

    # tell

    def tell(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
        plan: int | None = None,
        blocks: Sequence[object] | None = None,
        items: Sequence[object] | None = None,
        failed: Sequence[tuple[object, object]] = (),
        accept_unusual: Accept = False,
    ) -> Receipt:
        """Report single pulls: one row a pull, in any order, any part of the open plan.

        Args:
            ids: n arm ids, each asked by the open plan; more pulls of an asked arm than asked are welcome. Or a batch
                of `ask` or `lease`: the rewards are then those of `batch.pulls()`, in that order.
            rewards: n finite rewards in the user's sign and unit; with r constraints n rows of the reward and the r
                quantities, shape (n, 1 + r), NaN for one that was not measured.
            keys: n names of the results; a key that was reported before is not counted again.
            worker: who measured; results without a leased key are of the worker's latest lease, if it lacks some.
            plan: number of the plan that the results belong to; None: as the keys or the worker say, else the open one.
            blocks: n names of their blocks, in a study with blocks; None: of a batch, those that it proposes.
            items: n ids of the test items that were answered, in place of keys; a batch has its own.
            failed: (id, key or None) of pulls that gave no result, as in `fail`; stored together with the results.
            accept_unusual: results that stand out were looked at, and are what was read: they count. "unasked": they
                count although nobody was asked, because a program measures.

        Returns: what became of them. Results of a plan that is closed are kept, and never used.
        Raises UnusualResult if one stands out from what is known (docs/noise.md): is it a typing error? OutOfTurn if no
        plan is open, InvalidInput for an unknown or not asked arm, a reward that is not finite or outside the declared
        bounds, lengths that differ, a key reported before with another value: nothing is recorded then.
        """
        rows, worker, plan = self._ledger.told(ids, rewards, keys, items, blocks, worker, plan)
        return recording.record_results(self._ledger, rows, worker, plan, failed, accept_unusual=accept_unusual)

    def undo(self, keys: Sequence[object] | None = None, *, worker: str | None = None, reason: str = "") -> list[str]:
        """Take back results of the open round that were typed wrongly; their measurements are wanted again.

        Nothing was judged on them, and the log keeps them with the reason. Report the right ones afterwards, under the
        same keys if they have some. Valid only if a result is taken back because it is not what was read, whatever its
        value; the certificate says how many were.

        Args:
            keys: of the results; None: the latest one that this worker reported.
            worker: who reported them, as in `tell`: only they may take them back. None: whoever gave no name.
            reason: why; "": a typing error.

        Returns: the ids of their arms.

        Raises OutOfTurn if there is nothing to undo, or the round of a result is closed; InvalidInput for a key that no
        result has, or that somebody else reported.
        """
        return [self.ids[one.arm] for one in deviations.undo_keys(self._ledger, keys, worker, reason)]

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
        blocks: Sequence[object] | None = None,
        quantities: Sequence[Quantity] | None = None,
        accept_unusual: Accept = False,
    ) -> Receipt:
        """Report totals of several pulls, one row each: `tell` for instruments that add up.

        Args:
            ids: n arm ids, each asked by the open plan; or a batch: the rows are those of all arms, n = K.
            pulls: measurements that each row adds up, shape (n,), whole numbers.
            sums: their total rewards, shape (n,), in the user's sign and unit.
            squares: totals of the squared rewards, shape (n,); None when unknown.
            keys, worker, plan, blocks: as in `tell`; a row is of one block.
            quantities: totals of what else was measured, a `Quantity` of n entries for each constraint.
            accept_unusual: as in `tell`; a row is compared by its mean.

        Raises OutOfTurn, InvalidInput as `tell`.
        """
        if isinstance(ids, Batch):
            worker, plan = self._ledger.owner_of(ids, worker, plan)
            ids = self.ids
        rows = self._ledger.totals(ids, pulls, sums, squares, keys, worker, blocks, quantities)
        return recording.record_results(self._ledger, rows, worker, plan, accept_unusual=accept_unusual)

    def tell_simulated(self, batch: Batch, seen: Observations) -> Receipt:
        """Report what a simulation drew for a batch, with the deviations that `tell_totals` has no place for. Results
        that stand out count: nobody typed them.

        Nobody typed it, so nobody is asked about results that stand out.

        Args:
            batch: of this study.
            seen: totals of all arms, shape (K,), in the user's sign and unit.

        Raises OutOfTurn, InvalidInput as `tell`.
        """
        worker, plan = self._ledger.owner_of(batch, None, None)
        columns = (seen.counts, seen.sums, seen.squares, None, worker, None)
        beside = seen.quantities if self.constraints else None
        rows = self._ledger.totals(self.ids, *columns, beside, seen.within)
        return recording.record_results(self._ledger, rows, worker, plan, accept_unusual="unasked")

    def tell_prior(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None = None,
        *,
        worker: str | None = None,
    ) -> Receipt:
        """Keep results that the study did not ask for; they never enter an estimate or a certificate.

        Raises InvalidInput as `tell`, but for arms that were not asked.
        """
        return recording.keep_apart(self._ledger, self._ledger.singles(ids, rewards, keys, worker, prior=True))

    def fail(
        self, ids: Sequence[object], keys: Sequence[object] | None = None, *, worker: str | None = None
    ) -> Receipt:
        """Report measurements that gave no result; they are offered again at once.

        Args:
            ids: n arm ids of the open plan, one row a pull.
            keys: n keys of their lease; None: of the worker's latest lease, if there is one.
            worker: who measured.

        Raises OutOfTurn if no plan is open, InvalidInput as `tell`, or for a key that was never given.
        """
        return recording.record_failed(self._ledger, ids, keys, worker)

    def release(self, worker: str) -> int:
        """Give back all that a worker holds: it is offered to others at once. Results that come after all still count.

        Args:
            worker: the name; "lab" stands for "lab/1", "lab/2", ... too.
        """
        return ledger.release_leases(self._ledger, worker)

    def abandon(self, reason: str, ids: Sequence[object] | None = None) -> None:
        """Do not measure the rest of the open plan, or the rest of some arms; it closes once nothing else is wanted.

        Valid only if *which* results are missing has nothing to do with their values (a broken instrument, a lost
        sample): say so with the reason "independent-of-value", which the certificate then lists as an assumption. With
        any other reason the verdict becomes heuristic.

        Args:
            reason: why.
            ids: arms whose missing pulls are given up; None: all.

        Raises OutOfTurn if no plan is open, InvalidInput for an empty reason or an unknown id.
        """
        deviations.abandon_open(self._ledger, reason, ids)

    def withdraw(self, ids: Sequence[object], reason: str) -> None:
        """Go on without some arms: from the next plan on they are neither measured nor recommended.

        Args:
            ids: arms.
            reason: "independent-of-value" if which arm goes, and when, has nothing to do with results (out of stock):
                then the promise is about the others, and their missing pulls are given up too. Any other: they still
                have to be ruled out as all arms, with what was measured of them; where only they are not, the study
                stops with a heuristic answer. What is out of the open plan is still wanted.

        Raises OutOfTurn if the study has stopped, InvalidInput for an empty reason, an unknown id, if no arm would be
        left, or where the policy cannot go on without an arm.
        """
        deviations.withdraw_ids(self._ledger, ids, reason)

    def add(self, ids: Sequence[object]) -> None:
        """From the next plan on some of the arms that were declared to come `later` are there, for whatever reason.

        Raises OutOfTurn if the study has stopped, InvalidInput for arms that are there or were not declared.
        """
        deviations.add_declared(self._ledger, ids)

    def judge(self) -> bool:
        """Judge what is in of the open plan; `ask` makes a new one, and what comes later counts with its results.

        Valid only if which results are in, and the moment, do not depend on values that were not judged before.

        Returns: whether anything was in; if not, nothing changes.

        Raises InvalidInput where the study judges closed rounds.
        """
        return deviations.judge_part(self._ledger)

    def close(self, reason: str = "") -> None:
        """End the study before its policy would; results of the open plan are not used. Nothing changes if it ended.

        The certificate then says what the closed plans prove, and what more it would have taken.
        """
        deviations.close_open(self._ledger, reason)

    # what is known

    def recorded(self, ids: Sequence[object], keys: Sequence[object]) -> list[bool]:
        """Whether each of these keys was reported, with a result or as failed; rewards are not compared.

        Args:
            ids: n arm ids.
            keys: n keys, as in `tell`; None is never recorded.
        """
        return recording.already_recorded(self._ledger, ids, keys)

    @property
    def missing(self) -> IntArray:
        """Pulls of the open plan that have not been reported yet, shape (K,)."""
        planned = self.replay.settle().planned
        return np.zeros(len(self.ids), np.int64) if planned is None else self.replay.look(planned).missing

    @property
    def stopped(self) -> bool:
        """No more measurements are needed, or the study was closed."""
        return self.replay.settle().decision.stopped or self.log.ended() is not None

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round; `.active` holds the indices of the arms not ruled out."""
        return self.replay.trace(self.replay.settle().decision.plan)

    def progress(self) -> Progress:
        """Where the study stands; nothing is computed or written for it."""
        return progress_of(self.replay, self.ids, self._terms(), self.noise, self.judging)

    def recommend(self) -> str:
        """The id of the arm that would be recommended now, from the plans that are closed."""
        return deviations.recommended(self._ledger)

    def certificate(self) -> Certificate:
        """The answer and what it rests on, from the plans that are closed; its verdict says what may be claimed."""
        return deviations.study_certificate(self._ledger, minimize=self.minimize, judge=self.judging)

    def early_end(self) -> EarlyEnd | None:
        """How the study was closed before its policy stopped; None if it was not."""
        return deviations.early_end(self._ledger)
