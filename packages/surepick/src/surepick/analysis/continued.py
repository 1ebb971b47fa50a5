"""A study that goes on with a finished table: its rows answer what the study asks, in an order that was drawn.

To the study they are measurements like any others (docs/finished-tables.md, line 13). Where the rows of a candidate
end, new measurements complete the round; rows that are left may answer later rounds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.analysis.columns import Columns
from surepick.analysis.finished import Analysis
from surepick.analysis.table import FinishedTable, judged_table
from surepick.core.arms import Arms
from surepick.core.records import BoolArray, FloatArray, IntArray, encode, record
from surepick.errors import InvalidInput
from surepick.estimators.table_evidence import RecordedRows
from surepick.forecasts.forecast import forecast
from surepick.forecasts.result import Forecast
from surepick.noise import Normal, parse_noise
from surepick.policies.registry import make_policy
from surepick.studies.opening import create_study, is_http, open_study
from surepick.studies.study import Study

POLICY = "certified-independent"
ITEM = "item"  # what blocks of the study are called
OWN = ("metric", "filter", "control", "top", "tiers", "noise", "delta", "minimize", "seed", "seed_by")  # of `analyze`


@record
class Continued:
    """A study that was begun with the rows of a table."""

    study: Study
    used: int  # rows that count in it
    rows: int  # of the table
    missing: int  # measurements that the open round still asks for; 0 where the study has stopped
    guess: Forecast | None  # of a study from nothing, if means are those of the table; None where the study has stopped

    @property
    def more(self) -> int:
        """Measurements that the answer still takes, if means are those of the table."""
        return 0 if self.guess is None else max(self.guess.total - self.used, self.missing)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON data."""
        numbers = {"used": self.used, "rows": self.rows, "missing": self.missing, "more": self.more}
        return {**numbers, "stopped": self.study.stopped}

    def __str__(self) -> str:
        """The same in sentences."""
        has = f"it has {self.used:,} of {self.rows:,} rows of the table, those that it asked for."
        if self.guess is None:
            return f"{has} It needs no more measurements: {self.study.progress()}"
        about = "about" if self.guess.at_least is None else "more than"
        low, high = (max(one - self.used, self.missing) for one in (self.guess.lowest, self.guess.highest))
        more = f"{about} {self.more:,} more measurements settle the first place"
        now = f"The open round asks for {self.missing:,} now."
        return f"{has} If means are those of the table, {more} ({low:,} to {high:,} in simulated studies). {now}"


def continue_analysis(
    found: Analysis, table: object, url: str, name: str, *, epsilon: float | None = None, delta: float | None = None
) -> Continued:
    """A study of the candidates of an analyzed table, which begins with its rows and goes on with new measurements.

    Args:
        found: what `analyze` said of the table; its seed decides the order in which rows are told.
        table: the same table.
        url, name: of a study in a database, as in `create_study`.
        epsilon: the shortfall that is tolerated, in reward units, > 0; chosen without a look at the table. None: the
            study was begun so, and rows that are left answer what it asks now.
        delta: probability of a wrong answer; None: that of the analysis.

    Returns: the study, with as many rows as it asked for; its certificate is one of all of them.

    Raises:
        InvalidInput: the table is another one, the name is taken, or no study goes on with such rows: items with
            rewards that are not normal, and totals of which only the scale is known.

    Source: ours; docs/finished-tables.md, line 13.
    """
    if is_http(url):
        raise InvalidInput("a table is gone on with in a database, sqlite:///FILE or postgresql+psycopg://..., itself.")
    asked = dict(found.asked)
    columns = Columns(**{each: asked.pop(each) for each in encode(Columns()) if each in asked})
    reading = {each: value for each, value in asked.items() if each not in OWN}
    reading |= {"noise": parse_noise(asked["noise"]), "minimize": found.minimize}
    held = judged_table(table, columns, asked.get("metric"), asked.get("filter"), **reading)
    if held.sha256 != found.results_sha256:
        raise InvalidInput("this is another table than the one that was analyzed; analyze it first.")
    if epsilon is None:
        study = open_study(url, name)
        if study.ids != held.ids or study.minimize != held.minimize:
            raise InvalidInput(f"study {name!r} has other candidates than the table, or another direction.")
    else:
        goal: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": found.delta if delta is None else delta,
            "noise": held.noise,
        }
        policy = make_policy(POLICY, Arms(ids=held.ids), **goal, **_options(held))
        study = create_study(url, name, policy, minimize=held.minimize)
    used = told(study, held, found.seed, f"table {held.sha256[:16]}")
    guess = None if study.stopped else _guess(study, held, found.seed)
    missing = 0 if study.stopped else int(np.maximum(study.missing, 0).sum())
    return Continued(study, used, len(held.rewards), missing, guess)


def _options(held: FinishedTable) -> dict[str, Any]:
    """What the policy must know of such rows."""
    if held.totals and not isinstance(held.noise, Normal):
        raise InvalidInput("totals of which only a scale is known are no rows: give rows to go on with them.")
    if held.items is None:
        return {}
    if not isinstance(held.noise, Normal):
        raise InvalidInput(
            f"a study of items that are draws from a population goes on with normal differences only, and the noise is "
            f"{held.noise.spec}. Of one finite set of items that are not all answered yet make a study of items "
            "(surepick create --items), and tell it the answers."
        )
    return {"blocks": ITEM}


def told(study: Study, held: FinishedTable, seed: int, source: str) -> int:
    """How many rows a study has, after it was told those that it does not have yet, as far as it asked for them."""
    rewards, rows = _in_order(held, seed)
    ids = np.repeat(np.array(held.ids, dtype=object), held.counts)
    keys = [f"row {row + 1} of {name}, {source}" for name, row in zip(ids.tolist(), rows.tolist(), strict=True)]
    fresh = ~np.array(study.recorded(ids.tolist(), keys), bool)
    if held.totals and not fresh.all():
        raise InvalidInput("the rows of these totals were drawn when the study was begun; go on with measurements.")
    batch = study.ask()
    while batch is not None:
        wanted = np.maximum(study.missing, 0)
        places = _next_places(held, fresh, wanted)
        if len(places):
            blocks: dict[str, Any] = {}
            if held.items is not None:
                blocks["blocks"] = [held.items[row] for row in rows[places].tolist()]
            named = [keys[place] for place in places.tolist()]
            study.tell(ids[places].tolist(), rewards[places], named, accept_unusual="unasked", **blocks)
            fresh[places] = False
        if len(places) < wanted.sum():
            break
        batch = study.ask()
    return int(np.count_nonzero(~fresh))


def _guess(study: Study, held: FinishedTable, seed: int) -> Forecast:
    """What a study from nothing takes, if means, and a scale that nobody declared, are those of the table."""
    number, rest = len(held.ids), held.rewards
    if held.items is not None:
        rest = (held.rewards.reshape(number, -1) - held.rewards.reshape(number, -1).mean(axis=0)).ravel()
    apart = RecordedRows(rest, held.counts)
    spread = rest - np.repeat(apart.means, held.counts)
    free = max(len(rest) - number, 1)
    scale = math.sqrt(float(np.sum(spread**2)) / free) if isinstance(held.noise, Normal) else None
    means = RecordedRows(held.rewards, held.counts).means
    return forecast(study.policy, means, minimize=held.minimize, seed=seed, assume_scale=scale or None)


def _next_places(held: FinishedTable, fresh: BoolArray, wanted: IntArray) -> IntArray:
    """Places, in the order, of the rows that answer what is missing of each candidate: (n,), as far as there are some.

    Of items those that nobody has answered in the study yet, so that what is compared is of one round.
    """
    if held.items is not None:
        shape = (len(held.ids), len(held.items))
        fresh = np.tile(fresh.reshape(shape).all(axis=0), len(held.ids))
    starts = np.cumsum(held.counts) - held.counts
    before: IntArray = np.cumsum(fresh) - fresh  # fresh rows before each, of all candidates
    nth: IntArray = before - np.repeat(before[starts], held.counts)
    return np.flatnonzero(fresh & (nth < np.repeat(wanted, held.counts)))


def _in_order(held: FinishedTable, seed: int) -> tuple[FloatArray, IntArray]:
    """(rewards in the order in which they are told, the number of each in its candidate's rows), (rows,)."""
    apart = RecordedRows(held.rewards, held.counts, held.items is not None, held.ordered, seed)
    number = np.arange(len(held.rewards)) - np.repeat(np.cumsum(held.counts) - held.counts, held.counts)
    if held.totals:
        return replace(apart, redrawn=True).in_order(0), number
    return apart.in_order(0), replace(apart, rewards=number.astype(np.float64)).in_order(0).astype(np.int64)
