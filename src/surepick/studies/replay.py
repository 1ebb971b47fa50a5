"""The fold over a log: its closed plans judged one after the other, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from surepick.core.arms import Arms
from surepick.core.json import from_json
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import RoundRecord, Step
from surepick.errors import StorageError
from surepick.policies.base import Policy
from surepick.policies.certificate import certificate
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE, Circumstances, Decision, Log, Planned
from surepick.studies.open_plan import Board
from surepick.studies.validation import received

Build = Callable[[], "tuple[Arms, Policy[Any]]"]


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log stands: the last judgement, and the plan after it if one was opened."""

    decision: Decision
    planned: Planned | None


class Judged(Protocol):
    """A plan and what was received of it, in the policy's sign."""

    @property
    def plan(self) -> Plan: ...
    @property
    def seen(self) -> Observations: ...


def steps_of(policy: Policy[Any], looks: Iterable[Judged]) -> Iterator[tuple[Any, Step[Any]]]:
    """(the policy's state before, its step) of each plan that was judged, from the start."""
    state = policy.init()
    for look in looks:
        step = policy.tell(state, look.plan, look.seen)
        yield state, step
        state = step.state


class Fold:
    """A log as the policy sees it. There is no other way from what was told to a state.

    Args:
        log: where asked and told are kept.
        num_arms: K.
        minimize: small rewards are good.
        build: arms and policy; called once, and only if something must be computed.
    """

    def __init__(self, log: Log, *, num_arms: int, minimize: bool, build: Build) -> None:
        self.log = log
        self.circumstances: list[Circumstances] = []
        self._num_arms = num_arms
        self._minimize = minimize
        self._build = build
        self._built: tuple[Arms, Policy[Any]] | None = None
        self._board: Board | None = None
        self._state: tuple[int, Any] | None = None
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
    def _subject(self) -> tuple[Arms, Policy[Any]]:
        if self._built is None:
            self._built = self._build()
        return self._built

    def settle(self) -> Head:
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
            board = self.look(planned)
            if not board.closed:
                return Head(decision, planned)
            state = self.state_of(decision)
            judged, _ = self.judged_from(state, decision.circumstances.doubtful, planned, board)
            if self.log.add_decision(judged) is judged:  # not if others stored theirs first: then theirs is what counts
                self._state = (judged.plan, judged.state)

    def _start(self) -> Decision:
        first = self.decided(0, self.policy.init())
        stored = self.log.add_decision(first)
        if stored is first:
            self._state = (0, first.state)
        return stored

    def judged_from(self, state: Any, doubtful: bool, planned: Planned, board: Board) -> tuple[Decision, Step[Any]]:
        """The decision on a closed plan: a function of what was decided before it and of what is stored.

        Args:
            state: the policy's, before.
            doubtful: pulls of an earlier plan were given up for a reason that may depend on their values.

        Returns:
            The decision, and the policy's step that it rests on.
        """
        seen = received(self.log.results(planned.number), self._num_arms, minimize=self._minimize)
        step = self.policy.tell(state, planned.plan, seen)
        came = board.circumstances
        doubtful |= any(reason != INDEPENDENT_OF_VALUE for reason in came.abandoned)
        decision = self.decided(planned.number, step.state, doubtful=doubtful)
        decision = replace(decision, seen=seen, row=step.record, circumstances=replace(came, doubtful=doubtful))
        return decision, step

    def decided(self, plan: int, state: Any, *, doubtful: bool = False) -> Decision:
        """What a state amounts to."""
        claim = self.policy.claim(state)
        stopped = claim.finished != ""
        verdict = certificate(self.policy.problem, claim).verdict if stopped else "not-yet"
        if doubtful and verdict == "certified":
            verdict = "heuristic"
        return Decision(plan, state, stopped, verdict, claim.leader, at=self.log.clock())

    def state_of(self, decision: Decision) -> Any:
        """The policy's state after a decision: as it was computed here, else as it was stored."""
        if self._state is None or self._state[0] != decision.plan:
            state = decision.state
            if isinstance(state, str):
                state = from_json(type(self.policy.init()), state)
            self._state = (decision.plan, state)
        return self._state[1]

    def trace(self, judged: int) -> tuple[RoundRecord, ...]:
        """The trace up to the decision on that plan; what others decided since belongs to a later moment."""
        for decision in self.log.decisions(self._digested):
            if decision.plan > judged:
                break
            self._digested = decision.plan
            if decision.row is not None:
                self._trace[decision.row.round] = decision.row
                self.circumstances.append(decision.circumstances)
        return tuple(self._trace[number] for number in sorted(self._trace))

    def look(self, planned: Planned) -> Board:
        """The plan's board, with what came since the last look."""
        if self._board is None or self._board.planned.number != planned.number:
            self._board = Board.of(planned)
        self._board.add(self.log.arrivals(planned.number, self._board.mark))
        return self._board

    def forget(self) -> None:
        """What was seen inside a turn that failed is not so."""
        self._board = self._state = None
