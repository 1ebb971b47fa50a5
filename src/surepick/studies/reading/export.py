"""The results of a study as a table. Nothing of the open plan is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surepick.core.files import write_whole
from surepick.policies.prices import product
from surepick.studies.logs.base import Results
from surepick.studies.logs.leases import format_utc
from surepick.studies.study import Study
from surepick.tables.writing import check_suffix, write_table

KINDS: dict[str, type] = {
    "plan": int,
    "status": str,
    "id": str,
    "pulls": int,
    "sum": float,
    "squares": float,
    "key": str,
    "source": str,
    "told_at": str,
}


def export_results(study: Study, path: str | Path) -> int:
    """Write the results to a CSV, Parquet or JSON-lines file, row by row as they were reported.

    Columns: plan (0 for prior results), status ("counted", "late", "prior" or "undone"), id, pulls, sum and squares in
    the user's sign and unit, key, source, told_at (UTC); and the item that was answered, of test items; and cost, of
    the row's measurements, where they have one; and the block, under the name that the study has for it; and the sums
    of what constraints are on, under their names.

    Returns:
        The number of rows.

    Raises:
        InvalidInput: the file cannot be written.
    """
    if study.elsewhere is not None:
        check_suffix(Path(path))
        content, number = study.elsewhere.export(Path(path).suffix.removeprefix("."))
        write_whole(path, content, what="the results")
        return number
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
        for at, one in enumerate(study.constraints):
            beside[one.name] += _sums(results, at)
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
        columns["cost"] = [product(each[name], pulls) for name, pulls in rows]
    if study.blocking is not None:
        name = study.blocking.name if study.blocking.name not in kinds else f"block {study.blocking.name}"
        kinds, columns[name] = {**kinds, name: str}, blocks
    for name, sums in beside.items():
        column = name if name not in kinds else f"quantity {name}"
        kinds, columns[column] = {**kinds, column: float}, sums
    write_table(path, columns, kinds=kinds)
    return len(columns["plan"])


def _sums(results: Results, place: int) -> list[float | None]:
    """The sum of a quantity in each row; None where it was not measured."""
    if results.quantities is None:
        return [None] * len(results.arms)
    one = results.quantities[place]
    return [total if number else None for number, total in zip(one.counts.tolist(), one.sums.tolist(), strict=True)]
