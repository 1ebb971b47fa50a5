"""The table of replicates as arrays to draw from: which number of pulls a run has, and why others have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.bench.summary import share
from surepick.bench.tables import ended_by_itself
from surepick.core.arrays import BoolArray, FloatArray, record
from surepick.tables import Table
from surepick.tables.numbers import plain_number
from surepick.tables.table import Column

TextArray = NDArray[np.str_]


@record
class Replicates:
    """Rows of the table, shape (rows,) each; NaN where a number is missing.

    Args:
        key, experiment, environment, policy, verdict, stops, failure: text, "" where it is missing.
        num_arms, dim, epsilon, delta: settings; the first two are those of the environment where a failed run has none.
        pulls: until the run ended, whatever ended it.
        oracle_pulls: until only epsilon-best arms were left. Needs the truth.
        success, eliminates: 1 or 0.
    """

    key: TextArray
    experiment: TextArray
    environment: TextArray
    policy: TextArray
    verdict: TextArray
    stops: TextArray
    failure: TextArray
    num_arms: FloatArray
    dim: FloatArray
    epsilon: FloatArray
    delta: FloatArray
    pulls: FloatArray
    oracle_pulls: FloatArray
    success: FloatArray
    eliminates: FloatArray

    def where(self, kept: BoolArray) -> Replicates:
        """The rows that are kept."""
        return Replicates(**{name: getattr(self, name)[kept] for name in self.__slots__})  # type: ignore[attr-defined]

    def of_any_epsilon(self) -> Replicates:
        """The same rows with no epsilon, so that those of several are drawn together."""
        return replace(self, epsilon=np.full(self.num_rows, np.nan))

    @property
    def num_rows(self) -> int:
        return len(self.policy)

    @property
    def policies(self) -> tuple[str, ...]:
        """Their labels, sorted."""
        return tuple(sorted(set(self.policy.tolist())))

    @property
    def environments(self) -> tuple[str, ...]:
        """Their labels, smaller problems first."""
        labels: list[str] = list(dict.fromkeys(self.environment.tolist()))
        return tuple(sorted(labels, key=lambda label: (self._size(label), label)))

    def _size(self, environment: str) -> tuple[float, float]:
        first = int(np.flatnonzero(self.environment == environment)[0])
        return float(np.nan_to_num(self.num_arms[first])), float(np.nan_to_num(self.dim[first]))

    @property
    def own_stop(self) -> BoolArray:
        """Whether the policy ended the run by itself: no failure, no budget, and one that does so at all."""
        columns = zip(self.failure.tolist(), self.stops.tolist(), self.verdict.tolist(), strict=True)
        named = [ended_by_itself(failure=failure, stops=stops, verdict=verdict) for failure, stops, verdict in columns]
        ended: BoolArray = np.array(named, dtype=bool) & ~np.isnan(self.pulls)
        return ended


def read_replicates(table: Table) -> Replicates:
    """The rows of the table that `surepick bench run` wrote; columns of values may be absent.

    Raises:
        InvalidInput: one of the columns experiment, environment and policy is not there.
    """

    def read(name: str, cells_as: Callable[[Column], NDArray[Any]]) -> NDArray[Any]:
        nothing: Column = ("",) * table.num_rows
        return cells_as(table.columns.get(name, nothing))

    columns: dict[str, Any] = {name: texts(table.column(name)) for name in ("experiment", "environment", "policy")}
    columns |= {name: np.char.replace(columns[name], "$", r"\$") for name in ("environment", "policy")}  # no formula
    columns |= {name: read(name, texts) for name in ("key", "verdict", "stops", "failure")}
    columns |= {name: _of_environment(columns, read(name, numbers)) for name in ("num_arms", "dim")}
    columns |= {name: read(name, numbers) for name in ("epsilon", "delta", "pulls", "oracle_pulls")}
    columns |= {name: read(name, truth) for name in ("success", "eliminates")}
    if np.isnan(columns["eliminates"]).all():
        columns["eliminates"] = _seen_to_eliminate(columns, read("best_eliminated", truth))
    return Replicates(**columns)


def _seen_to_eliminate(columns: dict[str, Any], best_eliminated: FloatArray) -> FloatArray:
    """Where the table does not tell: a policy eliminates if one of its runs has a number that needs it."""
    policy, ended = columns["policy"], columns["failure"] == ""
    counted = policy[~np.isnan(columns["oracle_pulls"]) | ~np.isnan(best_eliminated)]
    return np.where(ended, np.isin(policy, counted).astype(np.float64), np.nan)


def _of_environment(named: dict[str, Any], values: FloatArray) -> FloatArray:
    """Missing sizes filled from other runs in the same environment."""
    places = list(zip(named["experiment"].tolist(), named["environment"].tolist(), strict=True))
    known = {place: value for place, value in zip(places, values.tolist(), strict=True) if not np.isnan(value)}
    return np.where(np.isnan(values), [known.get(place, np.nan) for place in places], values)


def texts(cells: Column) -> TextArray:
    """Cells as text; a missing number is ""."""
    if isinstance(cells, tuple):
        return np.array(cells, dtype=np.str_)
    return np.array(["" if np.isnan(cell) else f"{cell:g}" for cell in cells], dtype=np.str_)


def numbers(cells: Column) -> FloatArray:
    """Cells as numbers; NaN for what is not one."""
    if not isinstance(cells, tuple):
        return np.asarray(cells, dtype=np.float64)
    found = [plain_number(cell) for cell in cells]
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def truth(cells: Column) -> FloatArray:
    """Cells as 1 (true) and 0 (false), NaN where missing; they may be text ("True", "false", "1") or numbers."""
    if not isinstance(cells, tuple):
        return np.where(np.isnan(cells), np.nan, (np.nan_to_num(cells) != 0.0).astype(np.float64))
    meaning = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
    return np.array([meaning.get(cell.strip().lower(), np.nan) for cell in cells], dtype=np.float64)


@record
class Measure:
    """A number of pulls that is drawn: the name in file names, and the label of the axis."""

    name: str
    label: str

    def of(self, rows: Replicates) -> FloatArray:
        """The number of each row, NaN where it has none."""
        return rows.oracle_pulls if self is ORACLE else np.where(rows.own_stop, rows.pulls, np.nan)


ORACLE = Measure("oracle", "pulls until only epsilon-best arms are left\n(needs the truth: oracle)")
FILLED = "Filled: every own stop certified; hollow: heuristic, or not certified in every run."
OWN_STOP = Measure("own-stop", "pulls until the policy stops by itself\n(own stop)")


def certified(rows: Replicates) -> dict[str, str]:
    """Policies with runs that a theorem covers -> "certified", or in how many of their own stops if not in all."""
    found = {}
    for policy in rows.policies:
        verdicts = rows.verdict[(rows.policy == policy) & rows.own_stop]
        count = int((verdicts == "certified").sum())
        if count:
            found[policy] = "certified" if count == len(verdicts) else f"certified in {count} of {len(verdicts)}"
    return found


def always_certified(rows: Replicates) -> list[str]:
    """Policies all of whose own stops are certified: the filled ones."""
    return [policy for policy, words in certified(rows).items() if words == "certified"]


def own_stop_notes(rows: Replicates) -> dict[str, str]:
    """What stands beside a policy's name: whether it is certified, and how many of its own stops were wrong.

    Wrong answers are named where their rate is above delta beyond chance, so that a short bar is not taken for a merit.
    """
    found = certified(rows)
    for policy in rows.policies:
        mine = (rows.policy == policy) & rows.own_stop
        runs, wrong = int(mine.sum()), int((rows.success[mine] == 0.0).sum())
        if wrong and share(wrong, runs).low > float(np.max(rows.delta[mine])):
            found[policy] = ", ".join([*filter(None, [found.get(policy)]), f"wrong in {wrong} of {runs}"])
    return found


def missing(rows: Replicates, measure: Measure) -> list[str]:
    """Sentences that name the policies without the number, and how many runs of the others lack it and why."""
    lacks = np.isnan(measure.of(rows))
    failed = rows.failure != ""
    unsuited = _unsuited(rows, measure)
    notes = []
    if unsuited:
        reason = "do not eliminate arms, so have no oracle number" if measure is ORACLE else "do not stop by themselves"
        notes.append(f"Left out ({reason}): {', '.join(unsuited)}.")
    others = ~np.isin(rows.policy, unsuited)
    for words, which in (
        ("Runs that failed, left out", failed & others),
        (
            "Runs never down to epsilon-best arms, left out"
            if measure is ORACLE
            else "Runs ended by a budget, left out",
            lacks & ~failed & others,
        ),
    ):
        counts = [
            f"{policy} {int((which & (rows.policy == policy)).sum())} of {int((rows.policy == policy).sum())}"
            for policy in rows.policies
            if (which & (rows.policy == policy)).any()
        ]
        if counts:
            notes.append(f"{words}: {', '.join(counts)}.")
    return notes


def _unsuited(rows: Replicates, measure: Measure) -> list[str]:
    """Policies for which the number has no meaning."""
    if measure is ORACLE:
        known = {policy: rows.eliminates[rows.policy == policy] for policy in rows.policies}
        return [policy for policy, told in known.items() if (told == 0.0).any() and not (told == 1.0).any()]
    endless = rows.stops == "never"
    return [policy for policy in rows.policies if endless[rows.policy == policy].any()]
