"""Finished tables at the border: candidates whose means are equal, or nearly so, drawn again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surepick.analysis.finished import Analysis, analyzed
from surepick.analysis.table import FinishedTable
from surepick.noise import Bernoulli, Bounded, Normal

Drawn = tuple[FinishedTable, np.ndarray]  # the table, and the true means


def as_table(rewards, counts, noise, *, items=False, ordered=False) -> FinishedTable:
    """Rewards of candidates one after the other as a finished table."""
    number = len(counts)
    names = tuple(map(str, range(counts[0]))) if items else None
    return FinishedTable(
        "drawn",
        tuple(map(str, range(number))),
        np.asarray(rewards, float),
        np.asarray(counts),
        names,
        noise,
        ordered,
        False,
    )


def right_or_wrong(rng, ordered=False) -> Drawn:
    """Six candidates that answer 40 items, some of which are hard; the first four are equal."""
    skill, items = np.array([0.3, 0.3, 0.3, 0.3, 0.0, -1.0]), rng.normal(0.0, 1.5, 40)
    chance = 1.0 / (1.0 + np.exp(items - skill[:, None]))
    wide = np.random.default_rng(0).normal(0.0, 1.5, 200_000)
    means = (1.0 / (1.0 + np.exp(wide - np.unique(skill)[:, None]))).mean(axis=1)[
        np.unique(skill, return_inverse=True)[1]
    ]
    table = as_table(
        (rng.random(chance.shape) < chance).ravel(), np.full(6, 40), Bernoulli(), items=True, ordered=ordered
    )
    return table, means


def clicks(rng) -> Drawn:
    """Repeats of 0 and 1, few and many; three candidates are equal."""
    counts, means = np.array([30, 60, 25, 90, 40]), np.array([0.5, 0.5, 0.5, 0.45, 0.2])
    return as_table(rng.random(counts.sum()) < np.repeat(means, counts), counts, Bernoulli()), means


def skewed(rng) -> Drawn:
    """Two candidates of equal means, one of which is seldom large."""
    counts = np.array([60, 60])
    seldom = 10.0 * (rng.random(60) < 0.1)
    return as_table(np.append(seldom, np.full(60, 1.0)), counts, Bounded(0.0, 10.0)), np.array([1.0, 1.0])


def weights(rng) -> Drawn:
    """Normal repeats, few and many, of scales that differ tenfold; three candidates are equal."""
    counts, means = np.array([4, 30, 12, 9, 20]), np.array([1.0, 1.0, 1.0, 0.9, 0.0])
    scales = np.repeat(np.array([0.3, 3.0, 1.0, 1.0, 0.5]), counts)
    return as_table(np.repeat(means, counts) + scales * rng.standard_normal(counts.sum()), counts, Normal()), means


def totals(rng) -> Drawn:
    """Counts, sums and sums of squares of the same, as rows that have them."""
    table, means = weights(rng)
    ends = np.cumsum(table.counts)[:-1]
    held = [one.mean() + one.std() * np.resize([1.0, -1.0], len(one)) for one in np.split(table.rewards, ends)]
    return replace(table, rewards=np.concatenate(held), totals=True), means


def declared(rng) -> Drawn:
    """Totals of skewed rewards in [0, 10], of which only the range is known."""
    table, means = skewed(rng)
    held = np.concatenate([np.full(len(one), one.mean()) for one in np.split(table.rewards, 2)])
    return replace(table, rewards=held, totals=True), means


def timed_tasks(rng) -> Drawn:
    """Normal differences on 25 tasks, whose level varies far more; four candidates are equal."""
    means = np.array([0.0, 0.0, 0.0, 0.0, -0.5, -0.6])
    rewards = means[:, None] + rng.normal(0.0, 20.0, 25) + rng.normal(0.0, [[0.2]] * 3 + [[1.0]] * 3, (6, 25))
    return as_table(rewards.ravel(), np.full(6, 25), Normal(), items=True), means


BORDERS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "right or wrong": right_or_wrong,
    "in time": lambda rng: right_or_wrong(rng, ordered=True),
    "clicks": clicks,
    "skewed": skewed,
    "weights": weights,
    "timed tasks": timed_tasks,
    "totals": totals,
    "declared": declared,
}
ANSWERS = ("possible", "gap", "tiers", "control", "top")


def wrong_answers(found: Analysis, means: np.ndarray) -> np.ndarray:
    """Which answers are wrong, of ANSWERS: each best candidate counts, also where several are equal."""
    ids = {name: at for at, name in enumerate(found.ids)}
    best = np.flatnonzero(means == means.max())
    named = {ids[one] for one in found.possible}
    gap = np.inf if found.certified_gap is None else found.certified_gap
    tiers = [[ids[one] for one in tier] for tier in found.tiers or ()]
    below = [(tier[0], one) for place, tier in enumerate(tiers) for lower in tiers[place + 1 :] for one in lower]
    control = ids[found.control]
    ranks = np.sort(means)[::-1]
    return np.array(
        [
            best[0] not in named,  # one best candidate, fixed beforehand
            means.max() - means[ids[found.best]] > gap + 1e-9,
            any(means[first] <= means[other] for first, other in below),
            any(means[ids[one]] <= means[control] for one in found.above_control)
            or any(means[ids[one]] >= means[control] for one in found.below_control),
            any(means[ids[one]] < ranks[found.top - 1] for one in found.in_top)
            or any(means[ids[one]] > ranks[found.top] for one in found.not_in_top),
        ]
    )


def errors(border: str, tables: int, *, delta: float, first: int = 0, play=analyzed) -> np.ndarray:
    """How many of some tables each answer is wrong in."""
    wrong = np.zeros(len(ANSWERS), int)
    for seed in range(first, first + tables):
        table, means = BORDERS[border](np.random.default_rng([seed, 53]))
        asked = {"delta": delta, "control": "1", "top": 1}
        wrong += wrong_answers(play(table, seed, "program", asked), means)
    return wrong
