"""One study: ask, measure, tell. Its state is a replay over the log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms, Originals
from surepick.core.certificate import Certificate
from surepick.core.observations import Observations, Quantity
from surepick.core.plans import RoundRecord, Step
from surepick.core.records import IntArray
from surepick.core.values import probability
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.base import Policy, name_of
from surepick.policies.verdict import PolicySummary, Stated
from surepick.studies import recording, validation
from surepick.studies.closed_loop import Measure, OnUnusual, Result, run_closed_loop
from surepick.studies.deviations import EarlyEnd, answer_of
from surepick.studies.ledger import Batch, StudyLog
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS, COUNT, REFUSE, Judge, Log, Surplus
from surepick.studies.logs.hash_chain import Home
from surepick.studies.logs.keys import canonical_keys
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.operations import Operations
from surepick.studies.progress import Progress, progress_of
from surepick.studies.recording import Accept, Receipt
from surepick.studies.registration import registration_code, settled_id, subject_of
from surepick.studies.replay import Build, Replay, judged_plans, relisted

if TYPE_CHECKING:
    from surepick.assumptions import Assumption, Reading
    from surepick.drawings.records import Candidates


class Study(Operations, Stated, Home):
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
        judge: "closed rounds", or "as they come": `interim()` judges what is in, and what comes later counts after it.
        surplus: "count", or "refuse": results of the open round beyond what it asks for are refused.
        study_id: a text in the registration code; None: drawn now, so that no other study has this code.

    Raises InvalidInput if the policy is for another number of arms, does not know its arms, or does not judge parts.
    """

    judging: Judge  # when results are judged
    surplus: Surplus  # what becomes of results beyond what was asked
    study_id: str  # drawn when it was made, or given
    unchecked: Callable[[Study], None] | None = None  # computes all decisions again; None: they are known to follow
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
        known = settled_id(kept.study_id if isinstance(kept, MemoryLog) and study_id is None else study_id)
        if isinstance(kept, MemoryLog):
            kept.study_id = known
        self._begin(
            kept,
            ids=arms.ids,
            noise=policy.problem.noise,
            minimize=minimize,
            terms=partial(PolicySummary.of, policy, arms),
            build=lambda: (arms, policy),
            registration=partial(registration_code, arms, policy, study_id=known, minimize=minimize, judge=judge),
            study_id=known,
            judge=validation.checked_judge(judge, policy, minimize=minimize),
            surplus=validation.checked_surplus(surplus, judge),
        )
        self.remember(arms, policy)

    def remember(self, arms: Arms, policy: Policy[Any]) -> None:
        """Give `measure` the objects that these arms and test items were before they were texts."""
        order = policy.traits.items
        self.originals = arms.objects or Originals()
        self.item_originals = Originals() if order is None else order.items.objects or Originals()

    @classmethod
    def over(cls, log: Log, **stated: Any) -> Study:
        """A study whose arms and policy are built only if something must be computed; most calls need neither."""
        study = cls.__new__(cls)
        study._begin(log, **stated)
        return study

    def _begin(
        self,
        log: Log,
        *,
        ids: tuple[str, ...],
        noise: Noise,
        minimize: bool,
        terms: Callable[[], PolicySummary],
        build: Build,
        registration: Callable[[], str | None],
        study_id: str,
        judge: Judge,
        surplus: Surplus,
    ) -> None:
        self.ids, self.noise, self.minimize, self.log = ids, noise, minimize, log
        self.judging, self.surplus, self.study_id = judge, surplus, study_id
        self._code, self._terms = registration, cache(terms)
        self.replay = Replay(log, num_arms=len(ids), minimize=minimize, build=build)
        self._ledger = StudyLog(self, self.replay, in_parts=judge == AS_THEY_COME, no_surplus=surplus == REFUSE)

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

    def __repr__(self) -> str:
        asked, traits = self.policy.problem, self.policy.traits
        aim = f"budget {traits.budget:,}" if traits.any_gap else f"epsilon {asked.epsilon:g}"
        promised = f"{aim}, delta {asked.delta:g}"
        return f"<Study: {len(self.ids):,} candidates, {name_of(self.policy)}, {promised}>"

    def _repr_html_(self) -> str:
        """Where it stands, the candidates by mean and how the gap closed, for notebooks: closed rounds alone."""
        from surepick.drawings import cards  # noqa: PLC0415 (most studies are never looked at)

        progress = self.progress()
        if self.elsewhere is not None:
            return cards.notebook(cards.standing_card(str(progress), progress.verdict))
        found = self.candidates()
        parts = [cards.standing_card(str(progress), progress.verdict), cards.means_section(found)]
        if progress.plan:
            parts.append(cards.round_section(progress.told, progress.in_hand, progress.asked, progress.round))
        return cards.notebook(*parts, cards.gap_section(found.trace, found.decimals))

    def gap_at(self, delta: float) -> float | None:
        """By how much the answer of the closed rounds is worse than the best at most, had this delta been asked for.

        Each delta is as good as the one that was registered, if it was chosen beforehand; to choose it by what comes
        out is a weaker promise (docs/budget.md, line 54).

        Args:
            delta: an error probability, in (0, 1).

        Returns:
            The gap in reward units; None: no bound, or a policy that has none for other error probabilities.

        Raises:
            InvalidInput: delta is no probability.
        """
        probability("delta", delta, "the probability of a wrong answer.")
        bound = self.policy.traits.gap_at
        return None if bound is None else bound(self.state, delta)

    def run(
        self,
        measure: Measure,
        *,
        max_pulls: float | None = None,
        max_cost: float | None = None,
        at_once: int | None = None,
        n_jobs: int = 1,
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
            n_jobs: most calls of `measure` at a time; a batch is divided among them. docs/parallel.md.
            progress: show a bar on standard error; None: if that is a terminal.
            unusual: what becomes of results that stand out (docs/noise.md), since nobody can be asked: "warn" (an
                `UnusualWarning`; they count), "accept", or "refuse" (an `UnusualResult`, before they are stored).

        Returns: the answer. A study that was interrupted goes on where it was: call `run` again.

        Raises InvalidInput if `measure` returned another number of rewards, or some that are refused;
        MeasurementFailed if a candidate gave NaN in three tries and the policy cannot go on without it. `error.study`
        is this study then, with all results of the calls before.
        """
        limits: dict[str, Any] = {"max_pulls": max_pulls, "max_cost": max_cost, "at_once": at_once, "n_jobs": n_jobs}
        return run_closed_loop(self, measure, **limits, progress=progress, unusual=unusual)

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
        rows, worker, plan = self._ledger.single_results(ids, rewards, keys, items, blocks, worker, plan)
        return recording.tell(self._ledger, rows, worker, plan, failed, accept_unusual=accept_unusual)

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
        return recording.tell(self._ledger, rows, worker, plan, accept_unusual=accept_unusual)

    def tell_simulated(self, batch: Batch, seen: Observations, *, drawn: bool = False) -> Receipt:
        """Report what a simulation measured for a batch, with the deviations that `tell_totals` has no place for.

        Nobody typed it, so nobody is asked about results that stand out.

        Args:
            batch: of this study.
            seen: totals of all arms, shape (K,), in the user's sign and unit.
            drawn: from the law that is simulated, so that there is no slip to look for; else results that stand out
                are counted.

        Raises OutOfTurn, InvalidInput as `tell`.
        """
        worker, plan = self._ledger.owner_of(batch, None, None)
        columns = (seen.counts, seen.sums, seen.squares, None, worker, None)
        beside = seen.quantities if self.constraints else None
        rows = self._ledger.totals(self.ids, *columns, beside, seen.within)
        return recording.tell(self._ledger, rows, worker, plan, accept_unusual="unasked", drawn=drawn)

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
        _, names = self._ledger.arms_of(ids)
        labels = canonical_keys(keys, names) or (None,) * len(names)
        with self._ledger.turn():
            self._ledger.taking()
            return recording.fail(self._ledger, list(zip(names, labels, strict=True)), worker)

    # what is known

    def recorded(self, ids: Sequence[object], keys: Sequence[object]) -> list[bool]:
        """Whether each of these keys was reported, with a result or as failed; rewards are not compared.

        Args:
            ids: n arm ids.
            keys: n keys, as in `tell`; None is never recorded.
        """
        given = canonical_keys(keys, self._ledger.arms_of(ids)[1]) or ()
        wanted = [key for key in given if key is not None]
        known = {*self.log.recorded(wanted), *self.log.failed(wanted)}
        return [key in known for key in given]

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

    def candidates(self) -> Candidates:
        """What the closed rounds say of each candidate: mean, standard error, measurements, bound and state.

        `.to_frame()` has them as columns, `.trace.to_frame()` the gap and the candidates left, round by round.

        Raises InvalidInput for a study on a server: it is judged there.
        """
        from surepick.studies.candidates import candidates_of  # noqa: PLC0415 (most studies are never looked at)

        if self.elsewhere is not None:
            raise InvalidInput("a study on a server is judged there: its page shows the candidates and their means.")
        return candidates_of(self, self._terms())

    def progress(self) -> Progress:
        """Where the study stands; nothing is computed or written for it."""
        return progress_of(self.replay, self.ids, self._terms(), self.noise, self.judging)

    def recommend(self) -> str:
        """The id of the arm that would be recommended now, from the plans that are closed."""
        head, replay = self.replay.settle(), self.replay
        leader = head.decision.leader
        if head.planned is not None and leader in (open_plan := replay.look(head.planned)).withdrawn:
            step = Step.at(replay.state_of(head.decision))
            leader = replay.policy.claim(relisted(replay.policy, step, open_plan.deviations).state).leader
        return self.ids[leader]

    def check_all(self) -> None:
        """Compute all decisions again, where only the latest were when the study was opened: answers rest on all."""
        if self.unchecked is not None:
            self.unchecked(self)
            self.unchecked = None

    def certificate(self) -> Certificate:
        """The answer and what it rests on, from the plans that are closed; its verdict says what may be claimed.

        Raises StorageError if a decision of a stored study does not follow from the reported results.
        """
        self.check_all()
        replay = self.replay
        last = replay.settle().decision
        return answer_of(
            replay.policy,
            replay.arms,
            replay.state_of(last),
            minimize=self.minimize,
            rounds=replay.trace(last.plan),
            deviations=replay.deviations,
            end=self.early_end(),
            judge=self.judging,
            study_id=self.study_id,
            measured=lambda: self.log.measured(last.plan),
        )

    def read(self, assumed: str | Assumption) -> Reading:
        """What the plans that are closed say of the answer under an assumption, which may be named now.

        Args:
            assumed: "nothing", "linear", "linear:norm=10", "smooth:length=0.7 + off by 0.02", ..., or a record of
                `surepick.assumptions`.

        Raises InvalidInput if it is none, or the policy keeps no evidence that can be read so; OutOfTurn if no plan is
        closed.
        """
        return self.readings(assumed)[0]

    def readings(self, *assumed: str | Assumption) -> tuple[Reading, ...]:
        """The same for several assumptions, none: for those that suit the study."""
        from surepick.studies.readings import Evidence, read_evidence  # noqa: PLC0415 (most studies are never read)

        if self.elsewhere is not None:
            raise InvalidInput(
                "a study on a server is read from its certificate: sp.write_certificate(study, FILE), then "
                "sp.verify_certificate(FILE, assume=[...])."
            )
        self.replay.settle()
        self.check_all()
        looks = judged_plans(self.log, len(self.ids), minimize=self.minimize)
        return read_evidence(Evidence(self.policy, self.arms, looks, self.minimize), *assumed)

    def early_end(self) -> EarlyEnd | None:
        """How the study was closed before its policy stopped; None if it was not."""
        head, ended = self.replay.settle(), self.log.ended()
        if ended is None or head.decision.stopped:
            return None
        if head.planned is not None:
            open_plan = self.replay.look(head.planned)
            missing, gone = int(open_plan.missing.sum()), open_plan.deviations.withdrawn
            return EarlyEnd.of(ended, head.planned.plan, missing, gone)
        plan = self.policy.ask(self.replay.state_of(head.decision))
        return EarlyEnd.of(ended, plan, plan.total)
