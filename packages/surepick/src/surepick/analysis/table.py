"""A finished table as rows of candidates: items that all of them have in common, or repeats of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from surepick.analysis.columns import (
    ROWS,
    Columns,
    about_totals,
    are_percentages,
    are_shares,
    direction_is_open,
    said,
    understood,
)
from surepick.core.files import as_path
from surepick.core.frames import SOURCE, is_frame
from surepick.core.records import FloatArray, IntArray, record
from surepick.environments.recorded import checked_rewards, measured_column, totals_of_ones
from surepick.errors import InvalidInput
from surepick.estimators.table_evidence import RecordedRows
from surepick.integrations.results import NAMES, read_results
from surepick.noise import Bernoulli, Bounded, Noise, Normal, SubGaussian
from surepick.tables import Grouped, Names, Table, column_names, grouped_arms, read_table
from surepick.tables.parquet import table_of_frame
from surepick.tables.selection import Unused, looks_numeric, row_ids
from surepick.text import quoted

MOST_TOTALS = 50_000_000  # measurements that totals stand for
LEAST_SPREAD = 1e-10  # of the sum of squares; below, digits are lost
SQUARES = "squares"  # the column of the sums of squares if none is named


@record
class FinishedTable:
    """The results of K candidates, two or more."""

    source: str
    ids: tuple[str, ...]
    rewards: FloatArray  # as the table has them, ascending or by items and times: the order of its rows says nothing
    counts: IntArray  # rows of each candidate, (K,)
    items: tuple[str, ...] | None  # ids of the items in common; None: there are repeats
    noise: Noise
    ordered: bool
    minimize: bool
    times: IntArray | None = (
        None  # where `ordered`: the place in time of each row, or of each item; None: as they stand
    )
    totals: bool = False  # rows are any that have the totals of the table
    columns: Columns = field(default_factory=Columns)  # what was named, or taken
    taken: str | None = None  # a sentence about what nobody named

    @property
    def sha256(self) -> str:
        """Of the results of each candidate, and of their times, but in no order of rows, in hexadecimal digits."""
        number, total = len(self.ids), len(self.rewards)
        arms, items = np.argsort(np.array(self.ids, object)), np.array(self.items or (), object)
        rank, item = np.empty(number, np.int64), np.zeros(total, np.int64)
        rank[arms] = np.arange(number)
        if self.items is not None:
            item = np.tile(np.argsort(np.argsort(items)), number)
        times = np.zeros(total, np.int64)
        if self.ordered and self.times is not None:
            times = np.resize(self.times, total)
        elif self.ordered:
            times = np.arange(total) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        order = np.lexsort((self.rewards, times, item, np.repeat(rank, self.counts)))
        held = [sorted(self.ids), sorted(items.tolist()), self.counts[arms].tolist(), self.ordered]
        found = hashlib.sha256(json.dumps(held, ensure_ascii=False).encode())
        found.update(np.asarray(self.rewards[order] + 0.0, "<f8").tobytes())
        found.update(np.asarray(times[order], "<i8").tobytes())
        return found.hexdigest()

    def of(self, ids: tuple[str, ...]) -> FinishedTable:
        """The same with the candidates in this order."""
        at, ends = {name: arm for arm, name in enumerate(self.ids)}, np.cumsum(self.counts)
        arms = np.array([at[name] for name in ids])
        rows = np.concatenate([np.arange(ends[arm] - self.counts[arm], ends[arm]) for arm in arms.tolist()])
        times = self.times if self.times is None or self.items is not None else self.times[rows]
        return replace(self, ids=ids, rewards=self.rewards[rows], counts=self.counts[arms], times=times)

    @property
    def unit(self) -> float:
        """The range of a reward; 1 where it has none."""
        return 1.0 if self.noise.support is None else self.noise.support[1] - self.noise.support[0]

    @property
    def scale(self) -> float | None:
        """The sub-Gaussian scale of a reward in its unit where that is all that is known of it; None: see noise."""
        if isinstance(self.noise, SubGaussian):
            return float(np.max(self.noise.sigma))
        return 0.5 if self.totals and isinstance(self.noise, Bounded) else None

    def rows(self, seed: int) -> RecordedRows:
        """The rows for evidence: large rewards are good, and those with a range lie in [0, 1]."""
        low, high = self.noise.support or (0.0, 1.0)
        scaled = (high - self.rewards if self.minimize else self.rewards - low) / (high - low)
        if self.noise.support is None:
            scaled = -self.rewards if self.minimize else self.rewards
        redrawn = self.totals and isinstance(self.noise, Normal)
        return RecordedRows(scaled, self.counts, self.items is not None, self.ordered, seed, self.times, redrawn)


def judged_table(
    source: object, columns: Columns, metric: str | None, chosen_filter: str | None, **reading: Any
) -> FinishedTable:
    """The table, or the answers in files of a program as one; arguments as in `analyze`."""
    given = [source] if isinstance(source, str | Path) else source
    paths = [as_path(one, meaning="results are in files.") for one in given] if isinstance(given, list | tuple) else []
    read = read_results(paths, metric, chosen_filter) if paths else None
    if read is None:
        if metric is not None or chosen_filter is not None:
            raise InvalidInput("metric and filter are for files of a program that evaluates models; leave them out.")
        return finished_table(source, columns, **reading)
    program, answers = read
    if columns != Columns():
        raise InvalidInput(f"files of {NAMES[program]} say which candidates and items there are; name no columns.")
    drop = bool(reading.pop("drop_missing", False))
    told = {name: reading.pop(name) for name in ("noise", "minimize")}
    if any(reading.values()):
        raise InvalidInput(f"files of {NAMES[program]} are no tables; leave out {', '.join(sorted(reading))}.")
    scores = np.array(answers.scores, np.float64)
    cells: dict[str, Any] = {"candidate": answers.candidates, "item": answers.items, "score": scores}
    table = Table(", ".join(map(str, paths)), cells, drop_missing=drop)
    held = finished_table(table, Columns(id="candidate", reward="score", item="item"), **told)
    notes = [f"Of {NAMES[program]}", *answers.notes]
    if answers.empty:
        notes.append(f"{answers.empty} samples without a score are left out")
    return replace(held, columns=Columns(), taken=f"{'; '.join(notes)}.")


def finished_table(
    source: object, columns: Columns, *, noise: Noise | None, minimize: bool | None, **reading: Any
) -> FinishedTable:
    """The table; arguments as in `analyze`, `source` as there, or results of a program as a table."""
    if is_frame(source):
        drop = bool(reading.pop("drop_missing", False))
        if any(reading.values()):
            raise InvalidInput(f"{SOURCE} holds its numbers already; leave out {', '.join(sorted(reading))}.")
        table, labels, _ = table_of_frame(source, columns.id, drop_missing=drop)
        if columns.id is None and columns.across is None:
            columns = replace(columns, id=labels)
    elif isinstance(source, Table):
        table = source
    else:
        table = read_table(as_path(source, meaning="a table is read from a file or a data frame."), **reading)
    small = bool(table.minimize) if minimize is None else minimize
    given, columns = columns, understood(table, columns)
    rewards = () if columns.reward is None else column_names(table, columns.reward)
    if minimize is None and table.minimize is None and (open_to_doubt := [*filter(direction_is_open, rewards)]):
        raise InvalidInput(
            f"{table.source}: are small ones good in {quoted(open_to_doubt[0])}, or large ones? Say --minimize or "
            "--maximize (in Python minimize=True or False)."
        )
    found = _as_named(table, columns, noise=noise, small=small)
    return replace(found, columns=columns, taken=said(table, columns, given, minimize=small))


def _as_named(table: Table, columns: Columns, *, noise: Noise | None, small: bool) -> FinishedTable:
    """The table with these columns."""
    if columns.across is not None:
        table, columns = _one_a_row(table, columns)
    labels = columns.id
    if labels is None and not (table.usual_id or table.parameters):
        raise InvalidInput(
            f"which column of {table.source} names the candidates? Name one with --id (in Python id=); where each "
            "candidate has a column of its own, name those with --across (across=), or all; where each has a row, and "
            f"each column of numbers is an item, say --across rows.{about_totals(table)}"
        )
    if columns.pulls is not None or columns.sum is not None:
        return _from_totals(table, labels, columns, noise, small)
    try:
        table, reward = measured_column(table, columns.reward)
    except InvalidInput as error:
        if columns.reward is None and (hint := about_totals(table)):
            raise InvalidInput(f"{error}{hint}") from error
        raise
    others = [column_names(table, [one])[0] for one in (columns.item, columns.order) if one is not None]
    grouped = grouped_arms(table, labels, Unused(()), exclude=(reward, *others), needed=(reward,))
    rewards = checked_rewards(grouped.table, reward, noise or Normal())
    if noise is None:
        noise = Bounded(0.0, 100.0) if are_percentages(rewards) else Normal()
        noise = Bounded(0.0, 1.0) if are_shares(rewards) else noise
    _check_noise(noise, columns)
    _check_candidates(grouped)
    ordered = columns.order is not None
    places = _places(grouped.table, others[-1]) if ordered else np.zeros(len(rewards), np.int64)
    told: dict[str, Any] = {"noise": noise, "ordered": ordered, "minimize": small}
    if columns.item is not None:
        return _in_common(grouped, rewards, others[0], places, told)
    order = np.lexsort((rewards, places, grouped.arm_of_row))
    counts = np.bincount(grouped.arm_of_row, minlength=grouped.arms.num_arms)
    told["times"] = places[order] if ordered else None
    return FinishedTable(table.source, grouped.arms.ids, rewards[order], counts, None, **told)


def _check_noise(noise: Noise, columns: Columns) -> None:
    if not isinstance(noise, Bounded | Bernoulli | Normal | SubGaussian):
        raise InvalidInput(
            f"the noise is {noise.spec}; of a finished table declare bernoulli, bounded:LOW:HIGH, normal or "
            "subgaussian:SCALE."
        )
    if isinstance(noise, SubGaussian) and not isinstance(noise.sigma, float):
        raise InvalidInput("of a finished table subgaussian:SCALE has one number, the largest scale of a candidate.")
    if isinstance(noise, SubGaussian) and (columns.item is not None or columns.order is not None):
        raise InvalidInput(
            "subgaussian:SCALE is of independent repeats, without items or an order; of items declare bounded:LOW:HIGH "
            "or normal."
        )


def _check_candidates(grouped: Grouped) -> None:
    if grouped.arms.num_arms < 2:
        raise InvalidInput(f"{grouped.table.source} has one candidate, {grouped.arms.ids[0]!r}; nothing is compared.")


def _one_a_row(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """The table with a row for each candidate and item, in place of a column for each candidate."""
    across = columns.across
    assert across is not None
    if across == ROWS:
        return _items_in_columns(table, columns)
    if columns.id is not None or columns.reward is not None or columns.pulls is not None or columns.sum is not None:
        raise InvalidInput("columns that are candidates hold their scores: leave out id, reward, pulls and sum.")
    item = None if columns.item is None else column_names(table, [columns.item])[0]
    names = column_names(table, across)
    rows = np.arange(table.num_rows)
    cells = table.text(item) if item is not None else tuple(map(str, rows + 1))
    values = np.concatenate([table.numbers_or_missing(name) for name in names] or [np.empty(0)])
    made: dict[str, Any] = {
        "candidate": tuple(name for name in names for _ in rows),
        "item": cells * len(names),
        "score": values,
    }
    order = None if columns.order is None else column_names(table, [columns.order])[0]
    if order is not None:
        times = table.text(order) * len(names)
        order = order if order not in made else "order"
        made[order] = times
    lines = np.tile([table.line_of(row) for row in rows.tolist()], len(names))
    long = Table(table.source, made, lines=lines, drop_missing=table.drop_missing)
    return long, replace(columns, id="candidate", reward="score", item="item", across=None, order=order)


def _items_in_columns(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """The table with a row for each candidate and item, in place of a column for each item."""
    if columns.id is None or any((columns.reward, columns.item, columns.order, columns.pulls, columns.sum)):
        raise InvalidInput("where rows are candidates and columns items, say id, and leave out all other columns.")
    labels = column_names(table, columns.id)
    names = [one for one in table.columns if one not in labels and looks_numeric(table, one)]
    ids = row_ids(table, columns.id)
    made: dict[str, Any] = {
        "candidate": tuple(name for name in ids for _ in names),
        "item": tuple(names) * len(ids),
        "score": np.stack([table.numbers_or_missing(name) for name in names] or [np.empty(0)], axis=1).ravel(),
    }
    lines = np.repeat([table.line_of(row) for row in range(table.num_rows)], len(names))
    long = Table(table.source, made, lines=lines, drop_missing=table.drop_missing)
    return long, Columns(id="candidate", reward="score", item="item")


def _places(table: Table, name: str) -> IntArray:
    """The place of each row in time, (rows,): of numbers, or of dates by ISO 8601."""
    keys = table.numbers(name) if looks_numeric(table, name) else _dates(table, name)
    values, places = np.unique(keys, return_inverse=True)
    if len(values) < 2:
        raise InvalidInput(
            f"{table.source}: all rows have the same {name!r}, which says nothing of time; leave --order (order=) out."
        )
    return places.reshape(-1).astype(np.int64)


def _dates(table: Table, name: str) -> FloatArray:
    """Seconds since 1970 of dates and times, (rows,)."""
    cells = table.text(name)
    try:
        found = [datetime.fromisoformat(cell.strip()) for cell in cells]
    except ValueError as error:
        raise InvalidInput(
            f"{table.source}: the order of {name!r} is not known ({error}): times are numbers, or dates as 2026-03-01 "
            "or 2026-03-01T09:00; as words 10:00 would come before 9:00. Write them so."
        ) from error
    if len({one.tzinfo is None for one in found}) > 1:
        raise InvalidInput(f"{table.source}: some times in {name!r} have a time zone and others none; write all alike.")
    zero = datetime(1970, 1, 1, tzinfo=None if found[0].tzinfo is None else UTC)
    return np.array([(one - zero).total_seconds() for one in found])


def _in_common(
    grouped: Grouped, rewards: FloatArray, item: str, places: IntArray, told: dict[str, Any]
) -> FinishedTable:
    """One reward for each candidate and item, the mean of its rows; items by their times and names."""
    table, num_arms = grouped.table, grouped.arms.num_arms
    cells = np.array([cell.strip() for cell in table.text(item)])
    names, item_of_row = np.unique(cells, return_inverse=True)
    item_of_row = item_of_row.reshape(-1)
    earliest = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(earliest, item_of_row, places)
    shape = (num_arms, len(names))
    number, total = np.zeros(shape), np.zeros(shape)
    np.add.at(number, (grouped.arm_of_row, item_of_row), 1.0)
    rows = np.argsort(rewards, kind="stable")  # so that their order in the file does not change the last bit of a sum
    np.add.at(total, (grouped.arm_of_row[rows], item_of_row[rows]), rewards[rows])
    kept = np.argsort(earliest, kind="stable")
    whole = np.all(number > 0, axis=0)
    if not whole.all():
        arm, at = np.argwhere(number == 0)[0].tolist()
        which = f"candidate {grouped.arms.ids[arm]!r} has no {item} {str(names[at])!r}"
        if not table.drop_missing or not whole.any():
            raise InvalidInput(
                f"{table.source}: {which}, as {int((~whole).sum())} of {len(names)} items miss a candidate. Where no "
                "answer is a wrong one, write its score; --drop-missing (in Python: drop_missing=True) leaves these "
                "items out, if what is missing has nothing to do with scores; without --item they are repeats."
            )
        kept = kept[whole[kept]]
    means = (total / np.maximum(number, 1.0))[:, kept]
    counts = np.full(num_arms, len(kept))
    items = tuple(map(str, names[kept].tolist()))
    told["times"] = earliest[kept] if told["ordered"] else None
    return FinishedTable(table.source, grouped.arms.ids, means.ravel(), counts, items, **told)


def _from_totals(
    table: Table, labels: Names | None, columns: Columns, noise: Noise | None, minimize: bool
) -> FinishedTable:
    """Totals as rows that they may stand for, of which no order is known."""
    if columns.pulls is None or columns.sum is None or columns.reward or columns.item or columns.order:
        raise InvalidInput(
            "totals are two columns, pulls and sum, in place of a reward, or three, with squares; they have no item "
            "and no order."
        )
    squares = columns.squares or (SQUARES if SQUARES in table.columns else None)
    noise = noise or (Bernoulli() if squares is None else Normal())
    _check_noise(noise, columns)
    if isinstance(noise, Normal) and squares is None:
        raise InvalidInput(
            "of normal measurements totals are three: how many, their sum, and the sum of their squares (--squares). "
            "Or declare their scale, --noise subgaussian:SCALE."
        )
    names = (columns.pulls, columns.sum, *([squares] if isinstance(noise, Normal) and squares else []))
    used = tuple(column_names(table, [one])[0] for one in names)
    grouped = grouped_arms(table, labels, Unused(()), exclude=used, needed=used)
    _check_candidates(grouped)
    told: dict[str, Any] = {"noise": noise, "ordered": False, "minimize": minimize}
    if isinstance(noise, Bernoulli):
        many, ones = totals_of_ones(grouped, used[0], used[1], noise)
        counts = _counted(grouped, many)
        parts = np.stack([ones, many - ones], axis=1).astype(int).ravel()
        rewards = np.repeat(np.tile([1.0, 0.0], len(counts)), parts)
        return FinishedTable(table.source, grouped.arms.ids, rewards, counts, None, **told)
    cells = [grouped.table.numbers(name) for name in used]
    rows = np.lexsort(cells)  # so that their order in the file does not change the last bit of a sum
    many, sums, *rest = (np.bincount(grouped.arm_of_row[rows], one[rows]).astype(np.float64) for one in cells)
    counts = _counted(grouped, many)
    low, high = noise.support or (-np.inf, np.inf)
    if outside := np.flatnonzero((sums < low * counts) | (sums > high * counts)).tolist():
        raise InvalidInput(
            f"the sum of {grouped.arms.ids[outside[0]]!r} is none of {counts[outside[0]]} in {noise.spec}."
        )
    spread = _spread(grouped.arms.ids, counts, sums, rest[0]) if rest else np.zeros(len(counts))
    rewards = np.repeat(sums / counts, counts)
    first, several = np.cumsum(counts) - counts, counts > 1
    rewards[first[several]] += np.sqrt(spread / 2.0)[several]
    rewards[first[several] + 1] -= np.sqrt(spread / 2.0)[several]
    return FinishedTable(table.source, grouped.arms.ids, rewards, counts, None, totals=True, **told)


def _counted(grouped: Grouped, number: FloatArray) -> IntArray:
    """How many measurements each candidate has."""
    source, ids = grouped.table.source, grouped.arms.ids
    if odd := np.flatnonzero((number != np.floor(number)) | (number < 1)).tolist():
        raise InvalidInput(f"{source}: {ids[odd[0]]!r} has {number[odd[0]]:g} measurements; it is a number from 1.")
    if number.sum() > MOST_TOTALS:
        raise InvalidInput(f"{source} stands for {quoted(int(number.sum()))} measurements; at most {MOST_TOTALS:,}.")
    return np.asarray(number.astype(np.int64))


def _spread(ids: Sequence[str], counts: IntArray, sums: FloatArray, squares: FloatArray) -> FloatArray:
    """Sums of squared differences to the mean, (K,), where the digits of the totals suffice for them."""
    spread = squares - sums**2 / counts
    least = np.where(counts > 1, LEAST_SPREAD, -LEAST_SPREAD) * squares
    if lost := np.flatnonzero(spread < least).tolist():
        at = lost[0]
        raise InvalidInput(
            f"the totals of {ids[at]!r} leave nothing that says how much its measurements vary: the sum of squares is "
            f"{squares[at]:g}, and {counts[at]} equal ones would have {sums[at] ** 2 / counts[at]:g}. Subtract one "
            "number from all measurements before they are squared, or give rows."
        )
    return np.where(counts > 1, spread, 0.0)
