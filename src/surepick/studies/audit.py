"""Everything that was decided, computed again from what was told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

from surepick.core.diff import TOLERANCE, first_difference
from surepick.core.json import from_json
from surepick.core.step import Step
from surepick.errors import StorageError, SurepickError
from surepick.studies.logs.base import Decision, Planned
from surepick.studies.logs.legible import UNREADABLE, Illegible
from surepick.studies.open_plan import Board
from surepick.studies.study import Study

Row = TypeVar("Row")


ALTERED = (
    "The database was altered or is damaged, or another version computed it. Nothing was changed now; take the latest "
    "backup (docs/studies.md)."
)


COMPARED = ("state", "stopped", "verdict", "leader", "seen", "row", "circumstances")


@dataclass(frozen=True, slots=True)
class Audit:
    """What follows from what was told, computed while it is gone through.

    Args:
        judged: number of the last plan that was judged when the log was read.
        steps: (the policy's state before, its step) of each plan that was judged, in order. Going on raises a
            StorageError where a decision does not follow; to the end, so that nothing is left out.
    """

    judged: int
    steps: Iterator[tuple[Any, Step[Any]]]


def audit(study: Study, name: str, *, tolerance: float = TOLERANCE) -> None:
    """Fold the log from its start, with the stored plans, and compare each decision with the stored one.

    Discrete content (arms, counts, dimensions, verdicts, words) must be equal, numbers within `tolerance`, relative.

    Raises:
        StorageError: a decision does not follow from what was told; the row and what differs are named.
    """
    for _ in audited(study, name, tolerance=tolerance).steps:
        pass


def audited(study: Study, name: str, *, tolerance: float = TOLERANCE) -> Audit:
    """As `audit`, for those who need the steps too: the log is read now, and folded while the steps are gone through.

    Raises:
        StorageError: a row cannot be read.
    """
    _ = study.policy  # built before the fold: what is wrong with the policy is not wrong with the log
    stored = _all(study.log.decisions(), "decision", 0, name)  # before the plans: others may go on between two looks
    plans = _all(study.log.plans(), "plan", 1, name)
    study.log.check_rows()
    return Audit(max((decision.plan for decision in stored), default=0), _steps(study, name, stored, plans, tolerance))


def _steps(
    study: Study, name: str, stored: list[Decision], plans: list[Planned], tolerance: float
) -> Iterator[tuple[Any, Step[Any]]]:
    before: Decision | None = None
    for planned, decision in zip_longest([None, *plans], stored):
        if decision is None:  # the plan is open, or closed and not judged yet
            _check_closing(study, planned, name)
            break
        if planned is None and decision.plan > 0:
            raise StorageError(f"study {name!r}: decision {decision.plan} is on a plan that is not there.")
        step: Step[Any] | None = None
        try:
            if planned is None or before is None:
                again = study.fold.decided(0, study.policy.init())
            else:
                again, step = _judged(study, before, planned, name)
            difference = _difference(decision, again, tolerance)
        except (SurepickError, *UNREADABLE) as error:
            if isinstance(error, StorageError) and not isinstance(error, Illegible):
                raise
            raise StorageError(
                f"study {name!r}: decision {decision.plan} cannot be computed from what was told: "
                f"{_cause(error)} {ALTERED}"
            ) from error
        if difference:
            raise StorageError(
                f"study {name!r}: decision {decision.plan} does not follow from what was told: {difference}. {ALTERED}"
            )
        if before is not None and step is not None:
            yield before.state, step
        before = again


def _all(rows: Iterator[Row], kind: str, first: int, name: str) -> list[Row]:
    """The rows; one that cannot be read is named."""
    found = []
    try:
        for row in rows:
            found.append(row)  # one by one: how many were read says which one could not be
    except UNREADABLE as error:
        raise StorageError(f"study {name!r}: {kind} {first + len(found)} cannot be read: {error}. {ALTERED}") from error
    return found


def _cause(error: Exception) -> object:
    """What is wrong with a value, without the words around it."""
    return error.__cause__ if isinstance(error, Illegible) else error


def _judged(study: Study, before: Decision, planned: Planned, name: str) -> tuple[Decision, Step[Any]]:
    """The decision on a plan that is closed, and the step that it rests on."""
    board = _board(study, planned)
    if not board.closed:
        raise StorageError(f"study {name!r}: decision {planned.number} is on a plan that was never closed. {ALTERED}")
    _check_complete(board, name)
    return study.fold.judged_from(before.state, before.circumstances.doubtful, planned, board)


def _check_closing(study: Study, planned: Planned | None, name: str) -> None:
    """A plan that is closed and not judged yet is about to be: nothing may be wanting."""
    if planned is None:
        return
    try:
        board = _board(study, planned)
    except (Illegible, *UNREADABLE) as error:
        raise StorageError(
            f"study {name!r}: what was told of plan {planned.number} cannot be read: {_cause(error)} {ALTERED}"
        ) from error
    if board.closed:
        _check_complete(board, name)


def _board(study: Study, planned: Planned) -> Board:
    board = Board.of(planned)
    board.add(study.log.arrivals(planned.number))
    return board


def _check_complete(board: Board, name: str) -> None:
    wanting = int(board.missing.sum())
    if wanting:
        raise StorageError(
            f"study {name!r}: plan {board.planned.number} is closed, and {wanting} of the measurements that it asks "
            f"for were neither told nor abandoned. {ALTERED}"
        )


def _difference(stored: Decision, again: Decision, tolerance: float) -> str:
    """Where they differ, "" where they agree."""
    for field in COMPARED:
        theirs, ours = getattr(stored, field), getattr(again, field)
        if isinstance(theirs, str) and not isinstance(ours, str):
            theirs = from_json(type(ours), theirs)
        difference = first_difference(theirs, ours, tolerance)
        if difference:
            return f"{field}{difference}"
    return ""
