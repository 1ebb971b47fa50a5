"""The results of a study as a table. Nothing of the open plan is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surepick.policies.prices import product
from surepick.studies.logs.leases import format_utc
from surepick.studies.study import Study
from surepick.tables.writing import write_table

KINDS = {
    "plan": int,
    "standing": str,
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

    Columns: plan (0 for prior results), standing ("counted", "late" or "prior"), id, pulls, sum and squares in the
    user's sign and unit, key, source, told_at (UTC); and cost, of the row's measurements, where they have one; and
    the block, under the name that the study has for it.

    Returns:
        The number of rows.

    Raises:
        InvalidInput: the file cannot be written.
    """
    columns: dict[str, list[Any]] = {name: [] for name in KINDS}
    blocks: list[str | None] = []
    for stored in study.log.history(study.progress().judged):
        results = stored.results
        number = len(results.arms)
        columns["plan"] += [stored.plan] * number
        columns["standing"] += [stored.status] * number
        columns["id"] += [study.ids[arm] for arm in results.arms.tolist()]
        columns["pulls"] += results.pulls.tolist()
        columns["sum"] += results.sums.tolist()
        columns["squares"] += [None] * number if results.squares is None else results.squares.tolist()
        columns["key"] += results.keys or [None] * number
        blocks += results.blocks or [None] * number
        columns["source"] += [results.source] * number
        columns["told_at"] += [format_utc(stored.at)] * number
    kinds = KINDS
    if study.prices is not None:
        kinds, each = {**KINDS, "cost": float}, dict(zip(study.ids, study.prices.each(len(study.ids)), strict=True))
        rows = zip(columns["id"], columns["pulls"], strict=True)
        columns["cost"] = [product(each[name], pulls) for name, pulls in rows]
    if study.blocking is not None:
        name = study.blocking.name if study.blocking.name not in kinds else f"block {study.blocking.name}"
        kinds, columns[name] = {**kinds, name: str}, blocks
    write_table(path, columns, kinds=kinds)
    return len(columns["plan"])
