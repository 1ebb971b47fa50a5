"""The replay of a log: we judge its closed plans in order, each once. Only the replay turns results into states."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.plans import Plan, RoundRecord, Step
from surepick.core.records import array_bytes, from_json
from surepick.errors import StorageError, SurepickError
from surepick.estimators.goodness_of_fit import with_least_squares
from surepick.items import ItemOrder
from surepick.policies.base import Policy
from surepick.policies.verdict import claim_certificate
from surepick.studies.logs import base
from surepick.studies.logs.keys import answers_of
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.slips import Repeats
from surepick.studies.validation import received
from surepick.text import printable, shortened

Build = Callable[[], "tuple[Arms, Policy[Any]]"]
LONGEST_WHY = 200  # characters of why a plan cannot be judged
AN_OBJECT = 400  # bytes of a candidate with its id, or of a row of the trace, beside arrays
A_LEASE = 32  # bytes of an open plan's lease, for each candidate
COPIES = 3  # of the features: those of the arms, and what a policy derives of them
NOT_OF_RESULTS = (StorageError, MemoryError, ImportError, OSError)  # whoever raises it, the results are not to blame


@dataclass(frozen=True, slots=True)
class Closed:
    """A plan that takes no more results."""

    number: int  # of the plan in its study, from 1
    plan: Plan
    seen: Observations  # what was received, in the policy's sign
    deviations: base.Deviations = field(default_factory=base.Deviations)
    past: "tuple[Closed, ...]" = ()  # where results were corrected with it: the plans before it, with what was read


@dataclass(frozen=True, slots=True)
class Judged:
    """What a policy made of a closed plan."""

    closed: Closed
    before: Any
    step: Step[Any]  # the policy's step; `step.state` is its state afterwards


def replay(policy: Policy[Any], closed: Callable[[Any], Closed | None], *, state: Any = None) -> Iterator[Judged]:
    """Judge closed plans in turn, `policy.tell`; one with corrected results in the state that these lead to."""
    state = policy.init() if state is None else state
    while (one := closed(state)) is not None:
        step = _as_read(policy, one) if one.past else _step(policy, state, one)
        yield Judged(one, state, step)
        state = step.state


def _step(policy: Policy[Any], state: Any, one: Closed) -> Step[Any]:
    step = policy.tell(state, one.plan, one.seen)
    return relisted(policy, step, one.deviations) if one.deviations.relists else step


def _as_read(policy: Policy[Any], last: Closed) -> Step[Any]:
    """The step of a plan, with what was read in the place of what was typed (docs/certified-elimination.md, line 37).
    The plans are those that were carried out. Since the first corrected result they may be for a candidate that it made
    look good: such a batch is evidence for the one that leads by what was read before it."""
    if not policy.traits.corrects:
        raise StorageError("a stored plan has corrected results, and the policy cannot judge them: it was altered.")
    told, step = (*last.past, last), Step.at(policy.init())
    first = min(made.of for one in told for made in one.deviations.corrected)
    for one in told:
        plan = one.plan
        if one.number > first and plan.candidate is not None:
            plan = replace(plan, candidate=policy.claim(step.state).leader)
        step = _step(policy, step.state, replace(one, plan=plan))
    return step


def contradiction(repeats: Repeats, closed: Closed) -> str:
    """What repeats say against the declared noise, with one more plan: by what was read, where it was corrected."""
    if closed.past:
        repeats.forget()
    for one in closed.past:
        repeats.after(one.seen)
    return repeats.after(closed.seen)  # docs/certified-elimination.md, lines 35 and 37


def relisted(policy: Policy[Any], step: Step[Any], deviations: base.Deviations) -> Step[Any]:
    """The step, once the arms that went are gone and those that came are there."""
    withdraw, add, traits = deviations.withdrawn, deviations.added, policy.traits
    if (withdraw and traits.withdraw is None) or (add and traits.add is None):
        raise StorageError("a stored plan changes the list of candidates, and the policy cannot: it was altered.")
    if withdraw and traits.withdraw is not None:
        arms = np.array([one.arm for one in withdraw], np.int64)
        step = traits.withdraw(step, arms, np.array([one.independent for one in withdraw], bool))
    if add and traits.add is not None:
        step = traits.add(step, np.array([one.arm for one in add], np.int64))
    return step


def in_order(closed: Iterable[Closed]) -> Callable[[Any], Closed | None]:
    """Closed plans that are known, one after the other."""
    plans = iter(closed)
    return lambda _state: next(plans, None)


def closed_plan(log: base.Log, open_plan: OpenPlan, num_arms: int, *, minimize: bool) -> Closed:
    """The plan that was open, with its results."""
    number, plan = open_plan.planned.number, open_plan.planned.plan
    seen, deviations = seen_of(log, number, plan, num_arms, minimize=minimize), open_plan.deviations
    corrected = tuple(log.corrections(number))
    if not corrected:
        return Closed(number, plan, seen, deviations)
    came = {one.plan: one.deviations for one in log.decisions()}
    earlier = [Closed(one.number, one.plan, seen, came[one.number]) for one in log.plans() if one.number < number]
    deviations = replace(deviations, corrected=corrected, alone=plan.total == 0)
    past = past_of(log, number, deviations, earlier, minimize=minimize)
    return Closed(number, plan, seen, deviations, past)


def past_of(
    log: base.Log, number: int, came: base.Deviations, earlier: Sequence[Closed], *, minimize: bool
) -> tuple[Closed, ...]:
    """The plans before one, with what was read as it is known by then; () if nothing was corrected with it."""
    if not came.corrected:
        return ()
    now = (seen_of(log, one.number, one.plan, len(one.plan.counts), minimize=minimize, known=number) for one in earlier)
    return tuple(replace(one, seen=seen, past=()) for one, seen in zip(earlier, now, strict=True))


def as_read(looks: Sequence[Closed]) -> tuple[Closed, ...]:
    """The closed plans with all that was corrected by the last of them."""
    last = max((place for place, one in enumerate(looks) if one.past), default=0)
    return (*(looks[last].past if looks else ()), *looks[last:])


def seen_of(log: base.Log, number: int, plan: Plan, num_arms: int, *, minimize: bool, known: int = 0) -> Observations:
    """What came of the plan of that number, in the policy's sign, corrected as with the first `known` plans."""
    results = log.results(number, known)
    seen = received(results, num_arms, minimize=minimize)
    return seen if plan.first_items is None else replace(seen, answers=answers_of(results, minimize=minimize))


def judged_plans(log: base.Log, num_arms: int, *, minimize: bool) -> tuple[Closed, ...]:
    """The plans that were judged, in order."""
    plans = {planned.number: planned.plan for planned in log.plans()}
    looks: list[Closed] = []
    for decision in log.decisions():
        if decision.plan < 1:
            continue
        plan, seen = plans.get(decision.plan), decision.seen
        if plan is None:
            raise StorageError(f"decision {decision.plan} is on a plan that is not there; look again.")
        if seen is None:  # a log in memory keeps the rows and the latest sums
            seen = seen_of(log, decision.plan, plan, num_arms, minimize=minimize)
        past = past_of(log, decision.plan, decision.deviations, looks, minimize=minimize)
        looks.append(Closed(decision.plan, plan, seen, decision.deviations, past))
    return tuple(looks)


def first_decision(policy: Policy[Any], *, at: float = 0.0) -> base.Decision:
    """The decision before the first plan."""
    return _decided(policy, 0, policy.init(), False, at)


def decision_on(
    policy: Policy[Any], judged: Judged, *, doubtful: bool, contradicted: str, at: float = 0.0
) -> base.Decision:
    """The decision on a closed plan: a function of the state before it and of the stored results."""
    closed = judged.closed
    doubtful |= any(reason != base.INDEPENDENT_OF_VALUE for reason in closed.deviations.abandoned)
    decision = _decided(policy, closed.number, judged.step.state, doubtful or contradicted != "", at)
    deviations = replace(closed.deviations, doubtful=doubtful, contradicted=contradicted)
    return replace(decision, seen=closed.seen, row=judged.step.record, deviations=deviations)


def _decided(policy: Policy[Any], plan: int, state: Any, no_theorem: bool, at: float) -> base.Decision:
    claim = policy.claim(state)
    stopped = claim.finished != ""
    verdict = claim_certificate(policy.problem, claim).verdict if stopped else "not-yet"
    if no_theorem and verdict == "certified":
        verdict = "heuristic"
    return base.Decision(plan, state, stopped, verdict, claim.leader, at=at)


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log stands."""

    decision: base.Decision
    planned: base.Planned | None  # the open plan after it; None: there is none
    refusal: str = ""  # what is to be said of a closed plan whose results the policy refuses


def refusal_of(open_plan: OpenPlan) -> str:
    """What is said of a closed plan whose results the policy refuses, and what can be done."""
    return (
        f"plan {open_plan.planned.number} is complete, and its results cannot be judged: {open_plan.refused} Close the "
        "study (surepick close): its certificate then rests on the plans before, and all results stay in its export."
    )


class Replay:
    """A log as far as it was replayed, kept so that each plan is judged once; `build` is called once, if it must be."""

    def __init__(self, log: base.Log, *, num_arms: int, minimize: bool, build: Build) -> None:
        self.log = log
        self.deviations: list[base.Deviations] = []
        self._num_arms = num_arms
        self.minimize = minimize
        self._build = build
        self._built: tuple[Arms, Policy[Any]] | None = None
        self._open_plan: OpenPlan | None = None
        self._state: tuple[int, Any] | None = None
        self._step: tuple[int, Step[Any]] | None = None
        self._seen: tuple[int, Observations | None] = (0, None)
        self._trace: dict[int, RoundRecord] = {}
        self._digested = -1

    @property
    def arms(self) -> Arms:
        """What is chosen among."""
        return self._subject[0]

    @property
    def policy(self) -> Policy[Any]:
        """The algorithm."""
        return self._subject[1]

    @property
    def item_order(self) -> ItemOrder:
        """The test items in their order."""
        items = self.policy.traits.items
        if items is None:
            raise StorageError(
                "a stored plan asks for test items, and the policy knows none: the database was altered."
            )
        return items

    @property
    def _subject(self) -> tuple[Arms, Policy[Any]]:
        if self._built is None:
            self._built = self._build()
        return self._built

    def settle(self) -> Head:
        """Judge the closed plan, unless somebody has."""
        earlier = -2
        while True:
            decision = self.log.last_decision()
            if decision is None:
                decision = self._add(first_decision(self.policy, at=self.log.clock()))
            planned = self.log.last_plan()
            if planned is None or planned.number <= decision.plan:
                return Head(decision, None)
            if planned.number > decision.plan + 1:  # others went on between the two looks
                if decision.plan == earlier:
                    raise StorageError(
                        f"plan {planned.number} is there and decision {planned.number - 1} is not: the database was "
                        "altered or is damaged. Nothing was changed now; take the latest backup (docs/studies.md)."
                    )
                earlier = decision.plan
                continue
            open_plan = self.look(planned)
            if not open_plan.closed:
                return Head(decision, planned)
            closed = closed_plan(self.log, open_plan, self._num_arms, minimize=self.minimize)
            policy, state = self.policy, self.state_of(decision)
            try:
                for judged in replay(policy, in_order([closed]), state=state):
                    repeats = Repeats(policy, self.seen_up_to(decision.plan), decision.deviations.contradicted)
                    found, now = contradiction(repeats, closed), self.log.clock()
                    doubtful = decision.deviations.doubtful
                    self._add(decision_on(policy, judged, doubtful=doubtful, contradicted=found, at=now))
                    self._step = (closed.number, judged.step)
            except NOT_OF_RESULTS:
                raise
            except Exception as error:  # of a policy, which may be anybody's; what it refuses must not end the study
                self._note(planned, open_plan, error)
                return Head(decision, None, refusal_of(open_plan))

    def _note(self, planned: base.Planned, open_plan: OpenPlan, error: Exception) -> None:
        """Store once that a closed plan cannot be judged, and why."""
        kind = "" if isinstance(error, SurepickError) else f"{type(error).__name__}: "
        why = shortened(printable(f"{kind}{error}"), LONGEST_WHY)
        if not open_plan.refused:
            with self.log.turn():
                self.log.add_event(
                    base.Event(base.CLOSED, planned.number, reason=f"{base.REFUSED}{why}", at=self.log.clock())
                )
            self.look(planned)

    def _add(self, decision: base.Decision) -> base.Decision:
        stored = self.log.add_decision(decision)
        if stored is decision:  # not if others stored theirs first: then theirs is what counts
            self._state = (decision.plan, decision.state)
        return stored

    def state_of(self, decision: base.Decision) -> Any:
        """The policy's state after a decision: as it was computed here, else as it was stored."""
        if self._state is None or self._state[0] != decision.plan:
            state = decision.state
            if isinstance(state, str):
                state = from_json(type(self.policy.init()), state)
            self._state = (decision.plan, state)
        return self._state[1]

    def last_step(self) -> Step[Any] | None:
        """What the policy made of the last plan that was judged, computed again if it was judged elsewhere."""
        judged = self.settle().decision.plan
        if judged > 0 and (self._step is None or self._step[0] != judged):
            looks = judged_plans(self.log, self._num_arms, minimize=self.minimize)[:judged]
            before = next((one.state for one in self.log.decisions(judged - 2) if one.plan == judged - 1), None)
            if isinstance(before, str):
                before, looks = from_json(type(self.policy.init()), before), looks[-1:]
            for one in replay(self.policy, in_order(looks), state=before):
                self._step = (judged, one.step)
        return self._step[1] if judged > 0 and self._step is not None else None

    def seen_up_to(self, judged: int) -> Observations | None:
        """All seen in the plans up to that one, in the policy's sign, squares at their least; None before the first."""
        number, found = self._seen
        if number < judged:
            for decision in self.log.decisions(number):
                if not number < decision.plan <= judged:
                    continue
                if decision.deviations.corrected:  # what was told before is another
                    found = None
                    for earlier in range(1, decision.plan):
                        found = self._plus(found, None, earlier, decision.plan)
                number, found = decision.plan, self._plus(found, decision.seen, decision.plan)
            self._seen = (number, found)
        return found

    def _plus(self, found: Observations | None, seen: Observations | None, number: int, known: int = 0) -> Observations:
        """The sum with what was seen in one more plan."""
        if seen is None:  # a log in memory keeps the rows and the latest sums
            planned = self.log.plan(number)
            if planned is None:
                raise StorageError(f"decision {number} is on a plan that is not there; look again.")
            how: dict[str, Any] = {"minimize": self.minimize, "known": known}
            seen = seen_of(self.log, number, planned.plan, self._num_arms, **how)
        news = with_least_squares(seen)
        return news if found is None else found.plus(news)

    def trace(self, judged: int) -> tuple[RoundRecord, ...]:
        """The trace up to the decision on that plan; what others decided since belongs to a later moment."""
        for decision in self.log.decisions(self._digested):
            if decision.plan > judged:
                break
            self._digested = decision.plan
            if decision.row is not None:
                self._trace[decision.row.round] = decision.row
                self.deviations.append(decision.deviations)
        return tuple(self._trace[number] for number in sorted(self._trace))

    def look(self, planned: base.Planned) -> OpenPlan:
        """Where the plan stands, with what came since the last look."""
        if self._open_plan is None or self._open_plan.planned.number != planned.number:
            self._open_plan = OpenPlan.of(planned)
        self._open_plan.add(self.log.arrivals(planned.number, self._open_plan.mark))
        return self._open_plan

    @property
    def kept_bytes(self) -> int:
        """About as many bytes as it keeps: of candidates, of leases of the open plan, of results and decisions."""
        leases = 0 if self._open_plan is None else len(self._open_plan.held)
        built = 0 if self._built is None else COPIES * array_bytes(self._built[0].features)
        rows = sum(AN_OBJECT + row.active.nbytes for row in self._trace.values())
        known = array_bytes((self._state, self._seen))
        return (AN_OBJECT + A_LEASE * leases) * self._num_arms + built + rows + known

    def forget(self) -> None:
        """Forget what we read inside a turn that failed."""
        self._open_plan = self._state = self._step = None
