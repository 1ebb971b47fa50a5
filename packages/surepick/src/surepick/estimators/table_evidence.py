"""E-values of a finished table: "j is a best candidate", and "c is no better than j" for pairs.

The rows of a table are put in an order that was drawn, and cut into blocks whose number depends on the counts of rows
alone. x_{k,i} is the mean of candidate k in block i. Of rewards in [0, 1] an order is bet on,

    E_j = prod (1 + lambda_i (y_i - mu)),   y_i = sum over c of q_i(c) x_{c,i} - x_{j,i}         as of test items
    E_{c,j} = prod (1 + lambda_i (x_{c,i} - x_{j,i}))

with weights and stakes from earlier blocks. Of normal rewards E_{c,j} is the likelihood ratio of Student's t of the
differences, and E_j the mean of E_{c,j} over c; so it is of a declared scale, without an order. All others are means
over several orders. docs/finished-tables.md has the
proof; lines are those of that page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.estimators.item_processes import (
    HEURISTIC_PRIOR_VARIANCE,
    ItemProcesses,
    after_items,
    first_bets,
    next_bets,
)

MOST_BLOCKS = 1024  # more rows of a candidate are averaged in so many blocks
MOST_ORDERS = 20
MOST_WORK = 2e8  # differences of two candidates in a block, in all orders
AT_ONCE = 4_000_000  # of these in memory
HEURISTIC_THINNING = 1.25  # one number of blocks to the next
HEURISTIC_GROWTH = 0.15  # blocks with the same weights, as a share of those before
HEURISTIC_PRIOR_BLOCKS = 2.0  # blocks that a guess made in advance is worth
HEURISTIC_SHIFTS = (1.0, 1.25, 1.6, 2.0, 3.0)  # of the mean of Student's t, in units of what many differences need
LEAST_SPREAD = 1e-12  # of what differences vary by, beside what both vary by; below, digits are lost
LARGEST_SHARE = 1.0 + 1e-9  # of a sum in what it can be
STUDENT_POINTS = 2001  # at which the likelihood ratio is computed
STUDENT_NODES = 120  # of its integral


@frozen
class RecordedRows:
    """Rewards of K candidates, large ones good; of noise with a range scaled to [0, 1]."""

    rewards: FloatArray  # row after row, those of a candidate together, (rows,)
    counts: IntArray  # rows of each candidate, (K,), positive
    shared: bool = False  # the i-th row of each candidate is of the same item
    ordered: bool = False  # evidence runs through time, in which the rows stand unless there are `times`
    seed: int = 0  # of the orders
    times: IntArray | None = None  # with `ordered`: the place of each row (shared: item) in time; equal ones are drawn
    redrawn: bool = False  # rewards are normal, and known by their sums and those of their squares alone (line 11)

    @property
    def num_arms(self) -> int:
        """K."""
        return len(self.counts)

    @property
    def means(self) -> FloatArray:
        """Mean reward, shape (K,)."""
        return np.asarray(np.add.reduceat(self.rewards, np.cumsum(self.counts) - self.counts) / self.counts)

    @property
    def orders(self) -> int:
        """How many orders are drawn: fewer of large tables."""
        work = float(self.num_arms) ** 2 * min(float(np.median(self.counts)), MOST_BLOCKS)
        return 1 if self.ordered else int(np.clip(MOST_WORK / work, 1, MOST_ORDERS))

    def in_order(self, number: int) -> FloatArray:
        """The rewards in the order of this number, those of a candidate together, shape (rows,)."""
        if self.ordered and self.times is None:
            return self.rewards
        rng = stream(self.seed, "order of rows", number)
        if self.shared:
            order = rng.permutation(self.counts[0])
            if self.times is not None:
                order = order[np.argsort(self.times[order], kind="stable")]
            return self.rewards.reshape(self.num_arms, -1)[:, order].ravel()
        arm_of_row = np.repeat(np.arange(self.num_arms), self.counts)
        if self.redrawn:
            return self._drawn_anew(rng, arm_of_row)
        times = np.zeros_like(arm_of_row) if self.times is None else self.times
        return self.rewards[np.lexsort((rng.random(len(arm_of_row)), times, arm_of_row))]

    def _drawn_anew(self, rng: np.random.Generator, arm_of_row: IntArray) -> FloatArray:
        """Normal rows with the sums and squares of the rewards (line 11)."""
        number, drawn = self.num_arms, rng.standard_normal(len(arm_of_row))
        drawn -= (np.bincount(arm_of_row, drawn, number) / self.counts)[arm_of_row]
        rest = self.rewards - self.means[arm_of_row]
        length, wanted = (np.sqrt(np.bincount(arm_of_row, one**2, number)) for one in (drawn, rest))
        factor = np.divide(wanted, length, out=np.zeros(number), where=length > 0.0)
        return np.asarray(self.means[arm_of_row] + factor[arm_of_row] * drawn)

    def block_means(self, number: int, arms: IntArray, blocks: int, *, equal: bool) -> FloatArray:
        """x: mean rewards in successive blocks of one order, (arms, blocks); `equal` blocks leave out what is left."""
        used = self.counts // blocks * blocks if equal else self.counts
        place = np.arange(len(self.rewards)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        chosen = np.zeros(self.num_arms, bool)
        chosen[arms] = True
        kept = self.in_order(number)[np.repeat(chosen, self.counts) & (place < np.repeat(used, self.counts))]
        used = used[arms]
        starts = np.arange(blocks) * used[:, None] // blocks
        sums = np.add.reduceat(kept, (starts + (np.cumsum(used) - used)[:, None]).ravel())
        return np.asarray(sums.reshape(len(arms), blocks) / np.diff(starts, axis=1, append=used[:, None]))


def block_numbers(most: IntArray) -> IntArray:
    """How many blocks each candidate is compared in, at most `most`, (K,): few different numbers, from counts alone."""
    allowed = np.minimum(most, MOST_BLOCKS)
    found: list[int] = []
    for one in np.unique(allowed)[::-1].tolist():
        if not found or one <= found[-1] / HEURISTIC_THINNING:
            found.append(one)
    found.append(int(allowed.min()))
    levels = np.unique(found)
    return np.asarray(levels[np.searchsorted(levels, allowed, side="right") - 1])


class TableEvidence(Protocol):
    """What a table says against hypotheses, as logs of e-values."""

    def log_best(self) -> FloatArray:
        """Of "j is a best candidate", shape (K,)."""

    def log_against(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        """Of "j is a best candidate, and better than this one by e_j at least", shape (K,); e in units of rewards."""

    def log_pairs(self, target: float, focus: int | None = None) -> FloatArray:
        """Of "c is no better than j", shape (K, K) at [c, j], for a threshold on their log; those of one arm alone."""


def _mean_of_orders(logs: list[FloatArray]) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)))


def _pairs_by_blocks(rows: RecordedRows, focus: int | None) -> Iterator[tuple[int, IntArray, IntArray, IntArray]]:
    """(number of blocks, arms with so many rows, those of them that are c, those that are j): each pair once."""
    numbers = block_numbers(rows.counts)
    for blocks in np.unique(numbers).tolist():
        arms, own = np.flatnonzero(numbers >= blocks), np.flatnonzero(numbers == blocks)
        for better, worse in ((arms, own), (own, np.setdiff1d(arms, own))):
            parts = [(better, worse)]
            if focus is not None:
                one = np.array([focus])
                parts = [(np.intersect1d(better, one), worse), (np.setdiff1d(better, one), np.intersect1d(worse, one))]
            yield from ((blocks, arms, first, second) for first, second in parts if len(first) and len(second))


class BettingEvidence:
    """Of rewards in [0, 1], whatever their law: `ItemProcesses` of a set without end (lines 2 to 5)."""

    def __init__(self, rows: RecordedRows, delta: float) -> None:
        self.rows, self.target = rows, math.log(1.0 / delta)

    @cached_property
    def _played(self) -> list[tuple[IntArray, IntArray, list[ItemProcesses]]]:
        """(arms, which of them are judged here, the processes of each order): candidates with as many blocks."""
        counts = self.rows.counts
        usual = np.sort(counts)[::-1][max((len(counts) + 1) // 2, 2) - 1]  # rows that half of the candidates have
        numbers, found = block_numbers(np.minimum(counts, usual)), []
        for blocks in np.unique(numbers).tolist():
            arms = np.flatnonzero(counts >= blocks)
            orders = range(self.rows.orders)
            means = (self.rows.block_means(number, arms, blocks, equal=False) for number in orders)
            found.append((arms, numbers[arms] == blocks, [self._path(one) for one in means]))
        return found

    def _path(self, means: FloatArray) -> ItemProcesses:
        num_arms, blocks = means.shape
        everybody, processes = np.ones(num_arms, bool), ItemProcesses.start(num_arms, math.inf)
        while processes.drawn < blocks:
            past = means[:, : processes.drawn]
            bets = next_bets(past, everybody, epsilon=0.0, left=1.0) if processes.drawn else first_bets(num_arms)
            variances = bets.variances if processes.drawn else np.full(num_arms, HEURISTIC_PRIOR_VARIANCE)
            bets = replace(bets, candidate=-1, stakes=np.sqrt(2.0 * self.target / (blocks * variances)))
            size = _size_of_next(processes.drawn)
            now = means[:, processes.drawn : processes.drawn + size]
            processes = after_items(processes, bets, everybody, now)
        return processes

    def log_best(self) -> FloatArray:
        found = np.zeros(self.rows.num_arms)
        for arms, here, paths in self._played:
            found[arms[here]] = _mean_of_orders([one.log_values for one in paths])[here]
        return found

    def log_against(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        found = self.log_best()
        for arms, here, paths in self._played:
            (place,) = np.flatnonzero(arms == candidate).tolist() or (None,)
            if place is not None:  # else the candidate has too few rows to be compared with
                logs = [one.log_against_now(place, shortfalls[arms]) for one in paths]
                found[arms[here]] = _mean_of_orders(logs)[here]
        return found

    def log_pairs(self, target: float, focus: int | None = None) -> FloatArray:
        rows, found = self.rows, np.full((self.rows.num_arms,) * 2, -np.inf)
        for blocks, arms, better, worse in _pairs_by_blocks(rows, focus):
            drawn = (rows.block_means(number, arms, blocks, equal=False) for number in range(rows.orders))
            first, second = np.searchsorted(arms, better), np.searchsorted(arms, worse)
            logs = [_bets_on_pairs(means[first], means[second], target) for means in drawn]
            found[np.ix_(better, worse)] = _mean_of_orders(logs)
        np.fill_diagonal(found, -np.inf)
        return found


def _size_of_next(drawn: int) -> int:
    """How many blocks come next with the same weights."""
    return max(2, math.floor(HEURISTIC_GROWTH * drawn))


def _bets_on_pairs(better: FloatArray, worse: FloatArray, target: float) -> FloatArray:
    """log E_{c,j} for rows c of one array and j of another, each (arms, blocks) (line 3)."""
    blocks, prior = better.shape[1], HEURISTIC_PRIOR_BLOCKS
    logs, drawn = np.zeros((len(better), len(worse))), 0
    step = max(1, AT_ONCE // max(1, len(better) * math.ceil(HEURISTIC_GROWTH * blocks + 2)))
    while drawn < blocks:
        past, other = better[:, :drawn], worse[:, :drawn]
        spread = np.zeros_like(logs)
        if drawn:
            past, other = past - past.mean(axis=1, keepdims=True), other - other.mean(axis=1, keepdims=True)
            spread = (past**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2.0 * past @ other.T
        variances = (np.maximum(spread, 0.0) + prior * HEURISTIC_PRIOR_VARIANCE) / (drawn + prior)
        stakes = np.minimum(np.sqrt(2.0 * target / (blocks * variances)), 0.9)
        until = drawn + _size_of_next(drawn)
        for start in range(0, len(worse), step):
            some = slice(start, start + step)
            gains = better[:, None, drawn:until] - worse[None, some, drawn:until]
            gains *= stakes[:, some, None]
            logs[:, some] += np.log((1.0 + gains).prod(axis=2))  # at most 155 factors, each at least .1
        drawn = until
    return logs


class StudentEvidence:
    """Of normal rewards whose scales nobody knows: Student's t of the differences in blocks (lines 6 to 8)."""

    def __init__(self, rows: RecordedRows, delta: float) -> None:
        self.rows, self.target = _centred(rows), math.log(max(rows.num_arms - 1, 1) / delta)
        self._of: dict[int, list[_Differences]] = {}  # of one candidate and the others

    @cached_property
    def _pairs(self) -> FloatArray:
        return self.log_pairs(self.target)

    def log_best(self) -> FloatArray:
        return _mean_over_rivals(self._pairs)

    def log_against(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        if candidate not in self._of:
            self._of[candidate] = self._differences(self.target, candidate)
        found = np.full(self.rows.num_arms, -np.inf)
        for one in self._of[candidate]:
            if one.better[0] == candidate:
                found[one.worse] = one.logs(shortfalls[one.worse])[0]
        return _mean_over_rivals(self._pairs, candidate, found)

    def log_pairs(self, target: float, focus: int | None = None) -> FloatArray:
        found = np.full((self.rows.num_arms,) * 2, -np.inf)
        for one in self._differences(target, focus):
            found[np.ix_(one.better, one.worse)] = one.logs(np.zeros(len(one.worse)))
        np.fill_diagonal(found, -np.inf)
        return found

    def _differences(self, target: float, focus: int | None) -> list[_Differences]:
        rows, found = self.rows, []
        orders = 1 if rows.shared and rows.counts[0] <= MOST_BLOCKS else rows.orders  # a shared order does not matter
        for blocks, arms, better, worse in _pairs_by_blocks(rows, focus):
            first, second, moments = np.searchsorted(arms, better), np.searchsorted(arms, worse), []
            for number in range(orders):
                means = rows.block_means(number, arms, blocks, equal=True)
                middle = means.mean(axis=1)
                means = means - middle[:, None]
                own = (means**2).sum(axis=1)
                squares = own[first][:, None] + own[second]
                spread = squares - 2.0 * means[first] @ means[second].T
                lost = (spread < LEAST_SPREAD * squares) & (squares > 0.0)
                moments.append((middle[first][:, None] - middle[second], np.where(lost, np.nan, spread)))
            found.append(_Differences(StudentRatio.reaching(target, blocks), better, worse, moments))
        return found


def _centred(rows: RecordedRows) -> RecordedRows:
    """The rows less a number that an item, or all of them, have in common, so that a large one costs no digits."""
    if rows.shared:
        table = rows.rewards.reshape(rows.num_arms, -1)
        return replace(rows, rewards=(table - np.median(table, axis=0)).ravel())
    return replace(rows, rewards=rows.rewards - np.median(rows.rewards))


def _mean_over_rivals(pairs: FloatArray, candidate: int = 0, instead: FloatArray | None = None) -> FloatArray:
    """log of the mean of E_{c,j} over c != j, (K,); `instead` stands in place of the row of one candidate (line 8)."""
    if instead is not None:
        pairs = np.concatenate([np.delete(pairs, candidate, axis=0), instead[None]])
    return np.asarray(np.logaddexp.reduce(pairs, axis=0) - math.log(pairs.shape[1] - 1))


class ScaleEvidence:
    """Of rewards whose scale is declared: exp(lambda d - lambda^2 v / 2) of differences d of means (line 12)."""

    def __init__(self, rows: RecordedRows, scale: float, delta: float) -> None:
        self.rows, self.target = rows, math.log(max(rows.num_arms - 1, 1) / delta)
        self._leads = rows.means[:, None] - rows.means
        self._errors = scale * np.sqrt(1.0 / rows.counts[:, None] + 1.0 / rows.counts)

    def _logs(self, leads: FloatArray, errors: FloatArray, target: float) -> FloatArray:
        return np.asarray(math.sqrt(2.0 * target) * leads / errors - target)

    def log_best(self) -> FloatArray:
        return _mean_over_rivals(self.log_pairs(self.target))

    def log_against(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        moved = self._logs(self._leads[candidate] + shortfalls, self._errors[candidate], self.target)
        moved[candidate] = -np.inf
        return _mean_over_rivals(self.log_pairs(self.target), candidate, moved)

    def log_pairs(self, target: float, focus: int | None = None) -> FloatArray:
        found = self._logs(self._leads, self._errors, target)
        np.fill_diagonal(found, -np.inf)
        if focus is not None:
            away = np.arange(len(found)) != focus
            found[np.ix_(away, away)] = -np.inf
        return found


@record
class _Differences:
    """Differences in blocks of candidates c and others, (c, j), in each order: their means, and the sums of squared
    differences to these, NaN where rounding leaves nothing of them."""

    ratio: StudentRatio
    better: IntArray
    worse: IntArray
    moments: list[tuple[FloatArray, FloatArray]]

    def logs(self, shortfalls: FloatArray) -> FloatArray:
        """log E_{c,j}, with a shortfall of each j added to every difference."""
        number, found = self.ratio.number, []
        for means, spread in self.moments:
            moved = means + shortfalls
            found.append(self.ratio.log(number * moved, spread + number * moved**2))
        return _mean_of_orders(found)


class StudentRatio:
    """The likelihood ratio of n normal differences of mean a standard deviations to mean 0, of any scale (line 6).

        I(b) / I(0) exp(-a^2 n / 2),   I(b) = int_0^inf u^(n - 1) exp(-u^2 / 2 + b u) du,   b = a sum d / sqrt(sum d^2)

    Args:
        number: n, 1 or more.
        shift: a sqrt(n), the mean of Student's t where the ratio is 1 on average, positive.
    """

    def __init__(self, number: int, shift: float) -> None:
        self.number, self.places = number, np.linspace(-1.0, 1.0, STUDENT_POINTS)
        logs = _log_integral(shift * self.places, number - 1.0) - _log_integral(np.zeros(1), number - 1.0)
        # between two points log I is below the chord by the variance of u, which is at most 1, times this
        chord = (shift * (self.places[1] - self.places[0])) ** 2 / 8.0
        self.logs = logs - shift**2 / 2.0 - chord

    @staticmethod
    @lru_cache(maxsize=1024)
    def reaching(target: float, number: int) -> StudentRatio:
        """The one that reaches a log with the smallest share, of some shifts; few differences need large ones."""
        tried = [StudentRatio(number, factor * math.sqrt(2.0 * target)) for factor in HEURISTIC_SHIFTS]
        enough = [int(np.searchsorted(one.logs, target)) for one in tried]
        first = min(enough)
        return tried[enough.index(first)] if first < STUDENT_POINTS else max(tried, key=lambda one: float(one.logs[-1]))

    def log(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Its log, rounded down, from sums of the differences and of their squares, of equal shapes; -inf where these
        are not numbers, or contradict each other."""
        length = np.sqrt(self.number * squares)
        share = np.divide(sums, length, out=np.zeros_like(sums), where=~(length <= 0.0))
        known = np.abs(share) <= LARGEST_SHARE
        return np.asarray(np.where(known, np.interp(share, self.places, self.logs), -np.inf))


def _log_integral(slopes: FloatArray, power: float) -> FloatArray:
    """log I(b), by Gauss and Legendre around the peak of what is integrated."""
    peak = (slopes + np.sqrt(slopes**2 + 4.0 * power)) / 2.0
    low, high = np.maximum(peak - 10.0, 0.0), peak + 10.0  # what is left out is below exp(-50) of the peak
    nodes, weights = np.polynomial.legendre.leggauss(STUDENT_NODES)
    at = low[:, None] + (high - low)[:, None] * (nodes + 1.0) / 2.0
    logs = power * np.log(at) - at**2 / 2.0 + slopes[:, None] * at
    top = logs.max(axis=1)
    total: FloatArray = top + np.log(np.exp(logs - top[:, None]) @ weights * (high - low) / 2.0)
    return total
