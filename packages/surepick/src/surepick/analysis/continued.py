"""A study that goes on with a finished table: its rows answer what the study asks, in an order that was drawn.

To the study they are measurements like any others (docs/finished-tables.md, line 13). Where the rows of a candidate
end, new measurements complete the round; rows that are left may answer later rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.analysis.columns import Columns
from surepick.analysis.finished import Analysis
from surepick.analysis.table import FinishedTable, judged_table
from surepick.core.arms import Arms
from surepick.core.random_streams import stream
from surepick.core.records import BoolArray, FloatArray, IntArray, encode, record
from surepick.environments.recorded import recorded_answers
from surepick.errors import InvalidInput
from surepick.estimators.table_evidence import RecordedRows
from surepick.forecasts.forecast import forecast
from surepick.noise import Normal, parse_noise
from surepick.policies.registry import make_policy
from surepick.simulation import simulate
from surepick.studies.logs.keys import item_key
from surepick.studies.opening import create_study, is_http, open_study
from surepick.studies.origins import DIGITS, Order, TableOrigin
from surepick.studies.study import Study
from surepick.text import quoted

POLICY, OF_ITEMS = "certified-independent", "certified-items"
SETS = 4  # of items, for what more it takes
ITEM = "item"  # what blocks of the study are called
OWN = ("metric", "filter", "control", "top", "tiers", "noise", "delta", "minimize", "seed", "seed_by")  # of `analyze`


@record
class More:
    """Measurements that are still to come, in simulated studies."""

    lowest: int
    usual: int  # their mean
    highest: int
    unfinished: bool = False  # some study did not end


@record
class Continued:
    """A study that was begun with the rows of a table."""

    study: Study
    used: int  # rows that count in it
    rows: int  # of the table
    missing: int  # measurements that the open round still asks for; 0 where the study has stopped
    more: More | None  # what the answer still takes, if candidates are as in the table; None where it is there
    others: tuple[str, ...] = ()  # where it was made now: studies that were made of the same table before

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain JSON data."""
        numbers = {"used": self.used, "rows": self.rows, "missing": self.missing, "more": encode(self.more)}
        others, code = list(self.others), self.study.registration
        return {**numbers, "stopped": self.study.stopped, "others": others, "registration": code}

    def __str__(self) -> str:
        """The same in sentences."""
        has = f"it has {self.used:,} of {self.rows:,} rows of the table, those that it asked for."
        if self.others:
            has += (
                f" There is a study of this table already ({', '.join(map(quoted, self.others))}): one order of its "
                "rows is one try, and whoever takes the study that comes out well has no promise."
            )
        if self.more is None:
            return f"{has} It needs no more measurements: {self.study.progress()}"
        low, usual, high = (max(one, self.missing) for one in (self.more.lowest, self.more.usual, self.more.highest))
        more = f"{'more than' if self.more.unfinished else 'about'} {usual:,} more measurements settle the first place"
        now = f"The open round asks for {self.missing:,} now."
        return f"{has} If candidates are as in the table, {more} ({low:,} to {high:,} in simulated studies). {now}"


def continue_analysis(
    found: Analysis,
    table: object,
    url: str,
    name: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    items: Sequence[str] | None = None,
) -> Continued:
    """A study of the candidates of an analyzed table, which begins with its rows and goes on with new measurements.

    Args:
        found: what `analyze` said of the table, of noise that was declared there; where a study is made, its seed
            decides the order in which rows are told, then and later.
        table: the same table.
        url, name: of a study in a database, as in `create_study`.
        epsilon: the shortfall that is tolerated, in reward units, > 0; chosen without a look at the table. None: the
            study was begun so, and rows that are left answer what it asks now.
        delta: probability of a wrong answer; None: that of the analysis.
        items: ids of all items of one finite set, those of the table among them: what is certified is about this set.

    Returns: the study, with as many rows as it asked for; its certificate is one of all of them.

    Raises:
        InvalidInput: the table, or the seed, is another one than that which the study was made of, the name is taken,
            nobody declared the noise, or no study goes on with such rows: items of a population with rewards that are
            not normal, and totals of which only the scale is known.

    Source: ours; docs/finished-tables.md, line 13.
    """
    if is_http(url):
        raise InvalidInput("a table is gone on with in a database, sqlite:///FILE or postgresql+psycopg://..., itself.")
    asked = dict(found.asked)
    columns = Columns(**{each: asked.pop(each) for each in encode(Columns()) if each in asked})
    reading = {each: value for each, value in asked.items() if each not in OWN}
    reading |= {"noise": parse_noise(found.noise), "minimize": found.minimize}
    held = judged_table(table, columns, asked.get("metric"), asked.get("filter"), **reading)
    if held.sha256 != found.results_sha256:
        raise InvalidInput("this is another table than the one that was analyzed; analyze it first.")
    others: list[str] = []
    if epsilon is None:
        study = open_study(url, name)
        origin = _same_table(study, name, held, found)
        held = held.of(study.ids)
    else:
        if "noise" not in found.asked:
            raise InvalidInput(
                f"a study that goes on needs noise that you declare (--noise, in Python noise=): {found.noise} was "
                "taken because of the values in the table, and the certificate of a study rests on noise that was "
                "chosen before anybody looked at them."
            )
        goal: dict[str, Any] = {"epsilon": epsilon, "delta": found.delta if delta is None else delta}
        options = _options(held) if items is None else _of_set(held, items)
        policy = make_policy(arms=Arms(ids=held.ids), noise=held.noise, **goal, **options)
        order: Order = "items" if items is not None else "time" if held.ordered else "drawn"
        origin = TableOrigin(held.sha256[:DIGITS], len(held.rewards), found.seed, found.seed_by, order)
        study = create_study(url, name, policy, minimize=held.minimize, study_id=origin.study_id())
        others = _others(url, name, origin)
    of_set = study.policy.traits.items is not None
    used = answered(study, held) if of_set else told(study, held, origin.seed, f"table {origin.digest[:16]}")
    if study.stopped:
        return Continued(study, used, len(held.rewards), 0, None, tuple(others))
    more = _more_of_set(study, held, origin.seed) if of_set else _more(study, held, used, origin.seed)
    missing = int(np.maximum(study.missing, 0).sum())
    return Continued(study, used, len(held.rewards), missing, more, tuple(others))


def _same_table(study: Study, name: str, held: FinishedTable, found: Analysis) -> TableOrigin:
    """Where a study comes from, if that is this table, in the order of its seed."""
    origin = TableOrigin.of(study.study_id)
    if origin is None:
        raise InvalidInput(
            f"study {name!r} was made without a table, and nobody knows which of these rows it has already; measure "
            "the rest with ask and tell, or make another study, with --epsilon."
        )
    if origin.digest != held.sha256[:DIGITS] or set(study.ids) != set(held.ids) or study.minimize != held.minimize:
        raise InvalidInput(
            f"study {name!r} was made of another table: of {origin.rows:,} rows, SHA-256 {origin.digest[:16]}..., and "
            f"this one has {len(held.rewards):,}, {held.sha256[:16]}..., or is read in another way (--order, "
            "--minimize). Rows that were told once would count again; measure the rest with ask and tell."
        )
    if found.seed_by == "user" and found.seed != origin.seed:
        raise InvalidInput(
            f"the rows of study {name!r} are in the order of seed {origin.seed}, and you give {found.seed}: one order "
            "is one try. Leave the seed out."
        )
    return origin


def _others(url: str, name: str, origin: TableOrigin) -> list[str]:
    """Other studies in the database that were made of the same table."""
    from surepick.studies.database import study_ids  # noqa: PLC0415 (its packages are an extra)

    made = {other: TableOrigin.of(one) for other, one in study_ids(url).items() if other != name.strip()}
    return [other for other, one in made.items() if one is not None and one.digest == origin.digest]


def _options(held: FinishedTable) -> dict[str, Any]:
    """What the policy must know of such rows."""
    if held.totals and not isinstance(held.noise, Normal):
        raise InvalidInput("totals of which only a scale is known are no rows: give rows to go on with them.")
    if held.items is None:
        return {"name": POLICY}
    if not isinstance(held.noise, Normal):
        raise InvalidInput(
            f"a study of items that are draws from a population goes on with normal differences only, and the noise is "
            f"{held.noise.spec}. If the items belong to one finite set, of which others are not answered yet, name all "
            "of it with --items (in Python items=)."
        )
    return {"name": POLICY, "blocks": ITEM}


def _of_set(held: FinishedTable, items: Sequence[str]) -> dict[str, Any]:
    """The policy of one finite set of items, some of which the table has."""
    if held.items is None or held.minimize or held.noise.support != (0.0, 1.0):
        raise InvalidInput("a set of items is answered by scores from 0 to 1, of items in common, large ones good.")
    if absent := [name for name in held.items if name not in set(items)]:
        raise InvalidInput(
            f"{len(absent)} of {len(held.items)} items of the table are not among the items, the first is "
            f"{quoted(absent[0])}. Name all items of the set, those that were answered among them."
        )
    return {"name": OF_ITEMS, "items": list(items)}


def answered(study: Study, held: FinishedTable) -> int:
    """How many answers of the table a study of items has, after it was told those that it asked for."""
    assert held.items is not None
    order = study.policy.traits.items
    places = {} if order is None else {item: place for place, item in enumerate(order.items.ids)}
    pairs = [(name, item) for name in held.ids for item in held.items]
    scores = dict(zip(pairs, held.rewards.tolist(), strict=True))
    keys = {pair: item_key(places[pair[1]], pair[0]) for pair in pairs}
    while (batch := study.ask()) is not None:
        wanted = list(zip(batch.pulls(), batch.item_ids, strict=True))
        known = [pair for pair in wanted if pair in scores]
        ids, items = [pair[0] for pair in known], [pair[1] for pair in known]
        if known:
            study.tell(ids, [scores[pair] for pair in known], items=items, accept_unusual="unasked")
        if len(known) < len(wanted):
            break
    return sum(study.recorded([pair[0] for pair in pairs], [keys[pair] for pair in pairs]))


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


def _more(study: Study, held: FinishedTable, used: int, seed: int) -> More:
    """By a forecast of a study from nothing, if means, and a scale that nobody declared, are those of the table."""
    number, rest = len(held.ids), held.rewards
    if held.items is not None:
        rest = (held.rewards.reshape(number, -1) - held.rewards.reshape(number, -1).mean(axis=0)).ravel()
    apart = RecordedRows(rest, held.counts)
    spread = rest - np.repeat(apart.means, held.counts)
    free = max(len(rest) - number, 1)
    scale = math.sqrt(float(np.sum(spread**2)) / free) if isinstance(held.noise, Normal) else None
    means = RecordedRows(held.rewards, held.counts).means
    guess = forecast(study.policy, means, minimize=held.minimize, seed=seed, assume_scale=scale or None)
    low, usual, high = (max(one - used, 0) for one in (guess.lowest, guess.total, guess.highest))
    return More(low, usual, high, guess.at_least is not None)


def _more_of_set(study: Study, held: FinishedTable, seed: int) -> More:
    """By studies of sets that are drawn from the items of the table, of which as large a part is known."""
    order, problem = study.policy.traits.items, study.policy.problem
    assert held.items is not None
    assert order is not None
    scores, number = held.rewards.reshape(len(held.ids), -1), order.items.num_items
    asked: dict[str, Any] = {"epsilon": problem.epsilon, "delta": problem.delta, "noise": problem.noise}
    rng, totals = stream(seed, "sets of items"), []
    for each in range(SETS):
        drawn = recorded_answers(scores[:, rng.integers(0, len(held.items), number)], held.ids)
        policy = make_policy(OF_ITEMS, drawn.arms, **asked, items=number, seed=each)
        totals.append(simulate(policy, drawn).pulls)
    new = np.sort(np.array(totals) * (1.0 - len(held.items) / number)).round().astype(int).tolist()
    return More(new[0], round(sum(new) / len(new)), new[-1])


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
    apart = RecordedRows(held.rewards, held.counts, held.items is not None, held.ordered, seed, held.times)
    number = np.arange(len(held.rewards)) - np.repeat(np.cumsum(held.counts) - held.counts, held.counts)
    if held.totals:
        return replace(apart, redrawn=True).in_order(0), number
    return apart.in_order(0), replace(apart, rewards=number.astype(np.float64)).in_order(0).astype(np.int64)
