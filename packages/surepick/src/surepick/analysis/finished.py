"""`analyze`: what a finished table proves, in sentences, as a record, and as a file that can be computed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from surepick.analysis import answers
from surepick.analysis.columns import Columns
from surepick.analysis.table import FinishedTable, judged_table
from surepick.certificates.document import version, write_document
from surepick.certificates.signature import digest, sealed
from surepick.core.certificate import named
from surepick.core.files import as_path, read_regular
from surepick.core.random_streams import Chooser, settled_seed
from surepick.core.records import FloatArray, each_once, encode, record
from surepick.core.values import check_choice, probability, whole_number
from surepick.errors import InvalidInput
from surepick.estimators.table_evidence import (
    BettingEvidence,
    RecordedRows,
    ScaleEvidence,
    StudentEvidence,
    TableEvidence,
)
from surepick.noise import Noise, SubGaussian, informative
from surepick.studies.origins import WHO
from surepick.tables import Names, ReadOptions
from surepick.text import did_you_mean, printable, quoted

FORMAT = "surepick analysis"
MOST_TIERED = 1500  # candidates; of more the pairs are too many
TIE = 1e-12  # means that differ by less are equal but for rounding
TOLERANCE = 1e-6  # of numbers that another processor computed
UNCOMPARED = ("made_by", "sha256", "source", "taken", "evidence", "certified_gap")  # field by field
SHARE = {"all": ".", "fdr": "; of these claims a share of at most delta is wrong on average."}


@record
class Analysis:
    """What a finished table proves. Each answer is wrong with probability at most `delta`."""

    source: str  # the table, or the files
    taken: str | None  # what was taken for what, where nobody named the columns or the score
    layout: str  # "items in common" or "repeats"
    noise: str  # what is assumed of a measurement
    delta: float
    minimize: bool
    seed: int  # of the orders of rows
    seed_by: Chooser
    num_items: int | None  # items in common; None: there are repeats
    ids: tuple[str, ...]  # of the K candidates
    counts: tuple[int, ...]  # rows of each
    means: tuple[float, ...]  # mean measurement of each
    best: str  # the best that may still be the best
    certified_gap: float | None  # by how much it is worse than the best one at most, None: nothing can be said
    best_of_items: tuple[str, ...] | None  # who has the largest mean on the items in common themselves; None: repeats
    possible: tuple[str, ...]  # who may still be the best; holds the best with probability 1 - delta
    tiers_by: Literal["all", "fdr"]  # all claims of the tiers hold, or a share of them is wrong on average
    tiers: tuple[tuple[str, ...], ...] | None  # the first of each is better than all in those below; None: too many
    control: str | None
    above_control: tuple[str, ...] | None  # who is better than the control
    below_control: tuple[str, ...] | None  # who is worse
    top: int | None  # m
    in_top: tuple[str, ...] | None  # who is among the m best
    not_in_top: tuple[str, ...] | None  # who is not
    assumptions: tuple[str, ...]
    evidence: tuple[float, ...]  # the log of each candidate's e-value against "it is a best one"
    results_sha256: str  # of the results
    asked: dict[str, Any]  # arguments of `analyze` that give the same again

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, with a digest of all of it."""
        held: dict[str, Any] = encode(self)
        return sealed({"format": FORMAT, "made_by": f"surepick {version()}", **held})

    def write(self, path: str | Path) -> Path:
        """Write it to a JSON file, which `check_analysis` and `surepick analyze TABLE --check FILE` compute again."""
        return write_document(self.to_dict(), path)

    def __str__(self) -> str:
        return "\n".join(printable(line) for line in self.lines())

    def lines(self) -> list[str]:
        """The answers in sentences."""
        number = len(self.ids)
        measured = f"{self.num_items:,} items in common" if self.num_items else f"{sum(self.counts):,} measurements"
        mean = dict(zip(self.ids, self.means, strict=True))
        lines = [
            " ".join([f"{self.source}: {number} candidates, {measured}.", self.taken or ""]).strip(),
            f"Best: {self.best} (mean {mean[self.best]:.4g}). {self._gap}",
            *self._of_items,
            f"May still be the best ({len(self.possible)} of {number}): {named(self.possible)}.",
        ]
        if self.tiers is not None:
            lines.append(f"Tiers: the first of each is better than everyone in the tiers below{SHARE[self.tiers_by]}")
            for place, tier in enumerate(self.tiers, start=1):
                shown = ", ".join(f"{one} {mean[one]:.4g}" for one in tier[:10])
                lines.append(f"  {place:>2}  {shown}" + (f" and {len(tier) - 10} more" if len(tier) > 10 else ""))
        if self.above_control is not None and self.below_control is not None:
            lines.append(f"Better than {self.control}: {named(self.above_control)}.")
            lines.append(f"Worse than {self.control}: {named(self.below_control)}.")
        if self.in_top is not None and self.not_in_top is not None:
            lines.append(f"Among the {self.top} best: {named(self.in_top)}.")
            lines.append(f"Not among them: {named(self.not_in_top)}.")
        each = "Each of these answers" if self.tiers_by == "all" else "Each other answer"
        lines.append(f"{each} is wrong with probability at most {self.delta:g}, if:")
        return [*lines, *(f"  - {sentence}" for sentence in self.assumptions)]

    @property
    def _of_items(self) -> list[str]:
        if self.best_of_items is None:
            return []
        who = named(self.best_of_items)
        return [f"Of these {self.num_items:,} items alone, without doubt: {who}. All else is about the population."]

    @property
    def _gap(self) -> str:
        if self.certified_gap is None:
            return "How much better another one may be cannot be said."
        if self.certified_gap == 0.0:
            return "No other is better."
        return f"It is at most {self.certified_gap:.3g} worse than the best one."


def analyze(
    table: object,
    *,
    id: Names | None = None,  # noqa: A002 (the public name)
    reward: Names | None = None,
    item: str | None = None,
    across: Names | None = None,
    order: str | None = None,
    pulls: str | None = None,
    sum: str | None = None,  # noqa: A002 (the public name)
    squares: str | None = None,
    control: str | None = None,
    top: int | None = None,
    tiers: Literal["all", "fdr"] = "all",
    noise: Noise | None = None,
    delta: float = 0.05,
    minimize: bool | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 (the public name)
    seed: int | None = None,
    seed_by: Chooser | None = None,
    **reading: Unpack[ReadOptions],
) -> Analysis:
    """What a finished table proves: the best, who may still be the best, tiers, above a control, the m best.

    For data that exist, measured by a plan that did not look at values. Nothing is measured or drawn again.

    Args:
        table: a file as in `read_table`, or a data frame; one row a measurement. Or a file, a folder or a sequence of
            them that a program wrote which evaluates models: lm-evaluation-harness (samples_TASK_DATE.jsonl),
            inspect_ai, promptfoo, every-eval-ever; then no column is named.
        id: the column of the candidates, as in `read_arms`. Columns that nobody names are taken where they are
            unmistakable, and the result says so.
        reward: the column of the measurements, or several where repeats stand side by side.
        item: the column of the test item, block or task of a row: all candidates have the same ones, which are draws
            from a population, and means are over that population. Rows of one candidate and item are averaged. None:
            the rows of a candidate are repeats, independent of all others.
        across: in place of id and reward: the columns that are candidates, each row being an item; "all": all numbers,
            but for columns that count rows, or are times, items or all alike;
            "rows": each row is a candidate, named by id, and the columns of numbers are items.
        order: the column of when a row was measured: evidence then runs through time. None: orders are drawn.
        pulls, sum: in place of the reward: how many measurements a row stands for, and their sum; of 0 and 1, or of
            noise with a declared scale or range.
        squares: with them, the sum of their squares, of normal noise; None: the column "squares", if there is one.
        control: the id of a candidate; who is better, and who is worse?
        tiers: "all": all that they say holds, with probability 1 - delta; "fdr": of what they say a share of at most
            delta is wrong on average, so that they are finer.
        top: m; who is surely among the m best, and who is not?
        noise: Bernoulli(), Bounded(low, high), Normal() or SubGaussian(scale); None: rewards that lie in [0, 1] are
            taken to be bounded so, those in [0, 100] if both 0 and 100 occur, others to be normal; totals without
            squares are of 0 and 1.
        delta: each answer is wrong with at most this probability, in (0, 1).
        minimize: small rewards are good; None: as an Olympus folder says, else False, and asked for where a column is
            called time, cost, loss, error or the like.
        metric, filter: of files of a program, the score that counts, and the way in which answers were extracted;
            None: the first, and the result says which.
        seed: of the orders; None: it is drawn, and stored in the result.
        seed_by: "program" or "user", who chose the seed, as a stored result has it.
        reading: how to read the file, as in `read_table`. With drop_missing items that miss a candidate are left out.

    Raises:
        InvalidInput: the table cannot be read so, has one candidate, or does not hold what is asked.

    Source: ours; docs/finished-tables.md has the proof. Cost: about K^2 n for each of at most 20 orders.
    """
    delta = probability("delta", delta, "the probability with which an answer may be wrong.")
    columns = Columns(id, reward, item, across, order, pulls, sum, squares)
    held = judged_table(table, columns, metric, filter, noise=noise, minimize=minimize, **reading)
    if control is not None and control not in held.ids:
        raise InvalidInput(f"the control {quoted(control)} is no candidate.{did_you_mean(control, held.ids)}")
    if top is not None and whole_number("top", top, least=1, meaning="how many the best are.") >= len(held.ids):
        raise InvalidInput(f"top is {top}, and there are {len(held.ids)} candidates; all of them are among so many.")
    check_choice("tiers", tiers, ("all", "fdr"))
    seed, seed_by = settled_seed("seed", seed, seed_by, "it decides the orders of rows.")
    own = encode(held.columns) | {"metric": metric, "filter": filter}
    said = {"control": control, "top": top, "delta": delta, "minimize": held.minimize}
    said |= {"noise": None if noise is None else noise.spec, "tiers": None if tiers == "all" else tiers}
    asked = {**own, **said, "seed": seed, "seed_by": seed_by, **reading}
    return analyzed(held, seed, seed_by, {name: value for name, value in asked.items() if value is not None})


def analyzed(held: FinishedTable, seed: int, seed_by: Chooser, asked: dict[str, Any]) -> Analysis:
    """The answers; `asked` has delta, and control and top where they are asked for."""
    rows, ids, delta, control, top = held.rows(seed), held.ids, asked["delta"], asked.get("control"), asked.get("top")
    bounded = held.noise.support is not None
    evidence = _evidence(held, rows, delta)
    values, means = evidence.log_best(), rows.means
    possible = np.flatnonzero(values < -np.log(delta))
    if not len(possible):  # has a chance of at most delta
        possible = np.array([int(np.argmax(means))])
    best = int(possible[np.argmax(means[possible])])
    rivals = possible[possible != best].tolist()
    gap = answers.certified_gap(evidence, best, rivals, delta, range_of_means=1.0 if bounded else None)
    gap = None if gap is None else informative(gap * held.unit, held.noise)
    names = np.array(ids, dtype=object)
    tiers_by = asked.get("tiers", "all")
    tiers = above = below = inside = outside = None
    number = len(ids)
    if number <= MOST_TIERED:
        if tiers_by == "all":
            pairs = evidence.log_pairs(_target(number * (number - 1) / 2, delta))
            parts = answers.tiers(means, answers.proved(pairs, delta))
        else:
            parts = answers.tiers_of_share(means, evidence.log_pairs(_target(number, delta)), delta)
        tiers = tuple(tuple(names[tier]) for tier in parts)
    if control is not None:
        at = ids.index(control)
        better = answers.proved(evidence.log_pairs(_target(number - 1, delta), at), delta)
        above, below = tuple(names[better[:, at]]), tuple(names[better[at]])
    if top is not None:
        logs = evidence.log_pairs(_target(top * (number - top), delta))
        inside, outside = (tuple(names[who]) for who in answers.top(logs, top, delta))
    return Analysis(
        source=held.source,
        taken=held.taken,
        layout="repeats" if held.items is None else "items in common",
        noise=held.noise.spec,
        delta=delta,
        minimize=held.minimize,
        seed=seed,
        seed_by=seed_by,
        num_items=None if held.items is None else len(held.items),
        ids=ids,
        counts=tuple(held.counts.tolist()),
        means=tuple(_means(held).tolist()),
        best=ids[best],
        certified_gap=gap,
        best_of_items=None if held.items is None else tuple(names[np.isclose(means, means.max(), rtol=0.0, atol=TIE)]),
        possible=tuple(names[possible[np.argsort(-means[possible], kind="stable")]]),
        tiers_by=tiers_by,
        tiers=tiers,
        control=control,
        above_control=above,
        below_control=below,
        top=top,
        in_top=inside,
        not_in_top=outside,
        assumptions=_assumptions(held, seed, seed_by),
        evidence=tuple(values.tolist()),
        results_sha256=held.sha256,
        asked=asked,
    )


def _evidence(held: FinishedTable, rows: RecordedRows, delta: float) -> TableEvidence:
    """What is computed of such noise."""
    if held.scale is not None:
        return ScaleEvidence(rows, held.scale, delta)
    return BettingEvidence(rows, delta) if held.noise.support is not None else StudentEvidence(rows, delta)


def _target(pairs: float, delta: float) -> float:
    """The log of the threshold that a pair is to reach, for stakes."""
    return float(np.log(max(pairs, 1.0) / delta))


def _means(held: FinishedTable) -> FloatArray:
    means = held.rows(0).means
    low, high = held.noise.support or (0.0, 1.0)
    if held.minimize:
        return np.asarray(high - means * held.unit if held.noise.support is not None else -means)
    return np.asarray(low + means * held.unit if held.noise.support is not None else means)


def _assumptions(held: FinishedTable, seed: int, seed_by: Chooser) -> tuple[str, ...]:
    plan = "What was measured, and how often, was planned without a look at values; no row is missing for its value."
    if held.items is not None:
        number = len(held.items)
        law = f"The {number:,} items are independent draws from a population of items, over which means are taken."
    else:
        law = "Each row is an independent measurement, and those of a candidate have one mean."
    if isinstance(held.noise, SubGaussian):
        law += (
            f" Its noise is sub-Gaussian of scale {held.noise.sigma:g}: normal of at most this standard deviation, or "
        )
        law += "within a range of twice as much."
    elif held.noise.support is not None:
        law += f" Measurements lie between {held.noise.support[0]:g} and {held.noise.support[1]:g}."
    elif held.items is not None:
        law += " Differences of two candidates on an item are normally distributed."
    else:
        law += " Measurements are normally distributed; each candidate has a standard deviation of its own."
    drawn = f"The orders of rows had nothing to do with values: {WHO[seed_by]} (seed {seed})."
    if held.scale is not None:
        return plan, law
    if held.totals:
        drawn = f"Rows with these totals had nothing to do with anything else: {WHO[seed_by]} (seed {seed})."
    in_time = (
        "Evidence runs through the rows in the order of time; what comes later has the same means. Rows of one time "
        f"stand in an order that had nothing to do with values: {WHO[seed_by]} (seed {seed})."
    )
    return plan, law, in_time if held.ordered else drawn


def check_analysis(document: Mapping[str, Any] | str | Path, table: object) -> list[str]:
    """The fields of a stored result that the table does not give again; [] if all are as stored.

    Args:
        document: what `Analysis.to_dict` gave, or the file that `Analysis.write` wrote.
        table: the table that was analyzed.

    Raises:
        InvalidInput: it is no such document, or the table cannot be read as it says.
    """
    from surepick.noise import parse_noise  # noqa: PLC0415

    stored = _stored(document)
    asked = dict(stored["asked"])
    if "noise" in asked:
        asked["noise"] = parse_noise(asked["noise"])
    again = analyze(table, **asked).to_dict()
    differing = [name for name in again if name not in UNCOMPARED]
    found = [name for name in differing if encode(again[name]) != stored.get(name)]
    for name in ("evidence", "certified_gap"):
        ours, theirs = (np.array(one.get(name), dtype=np.float64) for one in (again, stored))
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            found.append(name)
    return found + (["sha256"] if digest(stored) != stored.get("sha256") else [])


def _stored(document: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    if isinstance(document, Mapping):
        found: Any = dict(document)
    else:
        path = as_path(document, meaning="an analysis is in a file.")
        try:
            found = json.loads(read_regular(path), object_pairs_hook=each_once)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path} is not JSON ({error}); give the file that `analyze` wrote.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("asked"), dict):
        raise InvalidInput("this is no result of analyze; give the file that `surepick analyze --out FILE` wrote.")
    return found
