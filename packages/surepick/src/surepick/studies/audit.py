"""The audit: we compute every decision again from the stored results."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from surepick.core.files import write_whole
from surepick.core.records import TOLERANCE, first_difference, from_json
from surepick.errors import StorageError, SurepickError
from surepick.policies.prices import cost_of
from surepick.studies import replay
from surepick.studies.logs.base import AS_THEY_COME, Decision, Planned, format_utc
from surepick.studies.logs.hash_chain import UNREADABLE, CorruptRow
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.slips import Repeats
from surepick.studies.study import Study
from surepick.tables.delimited import check_suffix, write_table

Row = TypeVar("Row")
ALTERED = (
    "The database was altered or is damaged, or another version computed it. Nothing was changed now; take the latest "
    "backup (docs/studies.md)."
)
COMPARED = ("state", "stopped", "verdict", "leader", "seen", "row", "deviations")


@dataclass(frozen=True, slots=True)
class Audit:
    """What follows from what was recorded, computed while one goes through it. Going on raises a StorageError where a
    decision does not follow; go to the end, so that nothing is left out."""

    judged: int
    replayed: Iterator[replay.Judged]


LATEST = 8  # decisions that are computed again when a study is opened


def audit(study: Study, name: str, *, tolerance: float = TOLERANCE, latest: int | None = None) -> None:
    """Replay the log with the stored plans, and compare decisions: words exactly, numbers within `tolerance`. Of the
    `latest` ones alone: from the state that is stored with the decision before them, which the chain of hashes binds to
    all that came before it, and with that chain from the first plan on."""
    for _ in audited(study, name, tolerance=tolerance, latest=latest).replayed:
        pass


def audited(study: Study, name: str, *, tolerance: float = TOLERANCE, latest: int | None = None) -> Audit:
    """As `audit`, for those who need the replay too: the log is read now, and replayed while one goes through it."""
    _ = study.policy  # built before the replay: what is wrong with the policy is not wrong with the log
    first = 0
    if latest is not None and (last := study.log.last_decision()) is not None:
        first = max(last.plan - latest, 0)
    if first > 0:
        study.log.check_rows()
    # before the plans: others may go on between two looks
    stored = _all(study.log.decisions(first - 1), "decision", first, name)
    plans = _all(study.log.plans(first), "plan", first + 1, name)
    if first == 0:
        study.log.check_rows()
    return Audit(max((one.plan for one in stored), default=0), _replayed(study, name, stored, plans, tolerance))


def _replayed(
    study: Study, name: str, stored: list[Decision], plans: list[Planned], tolerance: float
) -> Iterator[replay.Judged]:
    policy, doubtful = study.policy, False
    repeats, state = Repeats(policy), None
    if stored and stored[0].plan > 0:  # checked by its hash
        known, stored = stored[0], stored[1:]
        said, doubtful, state = known.deviations, known.deviations.doubtful, study.replay.state_of(known)
        repeats = Repeats(policy, study.replay.seen_up_to(known.plan), said.contradicted)
    steps = replay.replay(policy, replay.in_order(_closed(study, planned, name) for planned in plans), state=state)
    for planned, decision in zip_longest(plans if state is not None else [None, *plans], stored):
        if decision is None:  # the plan is open, or closed and about to be judged: nothing may be wanting
            try:
                open_plan = None if planned is None else _open_plan(study, planned)
            except (CorruptRow, *UNREADABLE) as error:
                number = 0 if planned is None else planned.number
                raise StorageError(
                    f"study {name!r}: the results of plan {number} cannot be read: {_cause(error)} {ALTERED}"
                ) from error
            if open_plan is not None and open_plan.closed:
                _check_complete(study, open_plan, name)
            break
        if planned is None and decision.plan > 0:
            raise StorageError(f"study {name!r}: decision {decision.plan} is on a plan that is not there.")
        judged: replay.Judged | None = None
        try:
            if planned is None:
                again = replay.first_decision(policy)
            else:
                judged = next(steps)
                contradicted = replay.contradiction(repeats, judged.closed)
                again = replay.decision_on(policy, judged, doubtful=doubtful, contradicted=contradicted)
            difference = _difference(decision, again, tolerance)
        except (SurepickError, *UNREADABLE) as error:
            if isinstance(error, StorageError) and not isinstance(error, CorruptRow):
                raise
            raise StorageError(
                f"study {name!r}: decision {decision.plan} cannot be computed from the reported results: "
                f"{_cause(error)} {ALTERED}"
            ) from error
        if difference:
            raise StorageError(
                f"study {name!r}: decision {decision.plan} does not follow from the reported results: {difference}. "
                f"{ALTERED}"
            )
        if judged is not None:
            yield judged
        doubtful = again.deviations.doubtful


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
    """The fault of a value, without the words around it."""
    return error.__cause__ if isinstance(error, CorruptRow) else error


def _closed(study: Study, planned: Planned, name: str) -> replay.Closed:
    """A plan that must be closed, and complete."""
    open_plan = _open_plan(study, planned)
    if not open_plan.closed:
        raise StorageError(f"study {name!r}: decision {planned.number} is on a plan that was never closed. {ALTERED}")
    _check_complete(study, open_plan, name)
    return replay.closed_plan(study.log, open_plan, len(study.ids), minimize=study.minimize)


def _open_plan(study: Study, planned: Planned) -> OpenPlan:
    open_plan = OpenPlan.of(planned)
    open_plan.add(study.log.arrivals(planned.number))
    return open_plan


def _check_complete(study: Study, open_plan: OpenPlan, name: str) -> None:
    wanting = int(open_plan.missing.sum())
    if wanting and not (open_plan.in_part and study.judging == AS_THEY_COME):
        raise StorageError(
            f"study {name!r}: plan {open_plan.planned.number} is closed, and {wanting} of the measurements that it "
            f"asks for were neither reported nor abandoned. {ALTERED}"
        )


def _difference(stored: Decision, again: Decision, tolerance: float) -> str:
    """Where they differ, "" where they agree."""
    for field in COMPARED:
        theirs, ours = getattr(stored, field), getattr(again, field)
        if isinstance(theirs, str) and not isinstance(ours, str):
            try:
                theirs = from_json(type(ours), theirs)
            except StorageError as error:
                return f"{field}: {error}"
        difference = first_difference(theirs, ours, tolerance)
        if difference:
            return f"{field}{difference}"
    return ""


# --- The results of a study as a table. Nothing of the open plan is in it.

KINDS: dict[str, type] = {
    "plan": int,  # 0 for prior results
    "status": str,  # counted, late, prior, undone, or corrected: what was typed in place of the row behind it
    "id": str,
    "pulls": int,
    "sum": float,
    "squares": float,
    "key": str,
    "source": str,
    "told_at": str,  # UTC
}


def export_results(study: Study, path: str | Path) -> int:
    """Write the results to a CSV, Parquet or JSON-lines file, row by row as they were reported.

    Columns: those of KINDS, in the user's sign and unit; where the study has them also the item, the cost of the row's
    measurements, the block, and the sums of what constraints are on, under their names.
    """
    if study.elsewhere is not None:
        check_suffix(Path(path))
        content, number = study.elsewhere.export(Path(path).suffix.removeprefix("."))
        write_whole(path, content, what="the results")
        return number
    study.check_all()
    columns: dict[str, list[Any]] = {name: [] for name in KINDS}
    blocks: list[str | None] = []
    items: list[int] = []
    beside: dict[str, list[float | None]] = {one.name: [] for one in study.constraints}
    for stored in study.log.history(study.progress().judged):
        results = stored.results
        number = len(results.arms)
        columns["plan"] += [stored.plan] * number
        columns["status"] += [stored.status] * number
        columns["id"] += [study.ids[arm] for arm in results.arms.tolist()]
        columns["pulls"] += results.pulls.tolist()
        columns["sum"] += results.sums.tolist()
        columns["squares"] += [None] * number if results.squares is None else results.squares.tolist()
        columns["key"] += results.keys or [None] * number
        blocks += results.blocks or [None] * number
        items += [-1] * number if results.items is None else results.items.tolist()
        for at, one in enumerate(study.constraints):  # the sum in each row; None where it was not measured
            known = None if results.quantities is None else results.quantities[at]
            pairs = [] if known is None else zip(known.counts.tolist(), known.sums.tolist(), strict=True)
            beside[one.name] += [None] * number if known is None else [total if some else None for some, total in pairs]
        columns["source"] += [results.source] * number
        columns["told_at"] += [format_utc(stored.at)] * number
    kinds = KINDS
    order = study.policy.traits.items if any(item >= 0 for item in items) else None
    if order is not None:
        kinds, names = {**kinds, "item": str}, order.items.ids
        columns["item"] = [None if item < 0 else names[item] for item in items]
    if study.prices is not None:
        kinds, each = {**kinds, "cost": float}, dict(zip(study.ids, study.prices.each(len(study.ids)), strict=True))
        rows = zip(columns["id"], columns["pulls"], strict=True)
        columns["cost"] = [cost_of(each[name], pulls) for name, pulls in rows]
    if study.blocking is not None:
        name = study.blocking.name if study.blocking.name not in kinds else f"block {study.blocking.name}"
        kinds, columns[name] = {**kinds, name: str}, blocks
    for name, sums in beside.items():
        column = name if name not in kinds else f"quantity {name}"
        kinds, columns[column] = {**kinds, column: float}, sums
    write_table(path, columns, kinds=kinds)
    return len(columns["plan"])
