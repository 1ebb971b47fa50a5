"""Betting on a finite set of test items without replacement: one e-process an arm, whoever it is compared with.

The items stand in one random order. At each place i an arm j is compared with a weighted mean of others,

    y_i = sum over c of q_i(c) r_{c,i} - r_{j,i}          in [-1, 1];  q_i >= 0 sums to 1 over c != j

and bets lambda_i on it. If j is the best arm, and better than c by more than e, the mean of y over the items that are
left is at most mu_i(c, e) = (most_j - sum q_i least - e q_i(c) N) / (items left), so that

    E_{j,c}(e) = prod (1 + lambda_i (y_i - mu_i(c, e)))          <= M_j, one martingale for each arm

reaches 1/delta for the best arm j and any such c with probability at most delta. (With x = (1 + y) / 2 these are bets
of 2 lambda on x against m = (1 + mu) / 2.) docs/items.md has the proof; lines are those of that page.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.core.special_functions import log_ndtr

MOST_AT_STAKE = 0.9  # line 3: a bet loses at most so much of what there is
ROUNDING = 1e-9  # items: what sums of scores may be off by
HALVINGS = 24


@frozen
class ItemBets:
    """What the arms will be compared with, and what is guessed of it: fixed before the items (line 1)."""

    weights: FloatArray  # of the arms as comparators, (K,), not negative, of sum 1; an arm is compared with the others
    means: FloatArray  # guessed mean of y for each arm, (K,)
    variances: FloatArray  # guessed variance of y, (K,), positive
    candidate: int = -1  # the arm for which the shortfall `epsilon` counts when a bet is chosen; -1: none
    epsilon: float = 0.0  # the shortfall, in reward units
    stakes: FloatArray | None = None  # lambda of each arm on every item, (K,), but for line 3; None: from the guesses

    @property
    def others(self) -> FloatArray:
        """1 - q(j), shape (K,): the weight of all arms but j; 0 where nobody is left to compare with."""
        others = 1.0 - self.weights
        return np.where(others < 1e-6, 0.0, others)


@record
class _Played:
    """The bets on some items, and how they ended."""

    stakes: FloatArray  # lambda of each arm and item, (K, n)
    gains: FloatArray  # lambda (y - mu(c, 0)), which is the same for every c, (K, n)
    left: FloatArray  # items that were left before each, this one included, (n,)
    weights: FloatArray  # of the comparators, (K,)
    others: FloatArray  # as in `ItemBets`

    def bonus(self, candidate: int) -> FloatArray:
        """What lambda is multiplied with for each unit of e that the arm is better than the candidate, shape (K, n)."""
        share = np.divide(self.weights[candidate], self.others, out=np.zeros_like(self.others), where=self.others > 0)
        share[candidate] = 0.0
        bonus: FloatArray = share[:, None] / self.left
        return bonus


@record
class ItemProcesses:
    """All that the answers say, from the first item of the order to the last one drawn."""

    num_items: float  # N; infinite where the items are draws from a population, and mu(c, e) is -e q(c)
    drawn: int  # items whose answers were judged
    # sum of the scores of each arm over the items drawn, those without an answer counted with their least value, (K,)
    least: FloatArray
    most: FloatArray  # the same with their largest value, (K,)
    played: tuple[_Played, ...]  # the bets, batch by batch
    log_values: FloatArray  # log of E_{j,c}(0), the same for every c, (K,)
    highest: FloatArray  # the largest of these so far, (K,)

    @staticmethod
    def start(num_arms: int, num_items: float) -> ItemProcesses:
        """Before the first item."""
        nothing = np.zeros(num_arms)
        return ItemProcesses(num_items, 0, nothing, nothing, (), nothing, nothing)

    @property
    def left(self) -> float:
        """Items that were not drawn."""
        return self.num_items - self.drawn

    def surplus(self, candidate: int) -> FloatArray:
        """h_j - h_c is at most this for certain, shape (K,), in reward units (line 5)."""
        surplus: FloatArray = (self.most - self.least[candidate] + self.left) / self.num_items
        surplus[candidate] = 0.0
        return surplus

    def beaten(self, delta: float) -> BoolArray:
        """Which arms are not the best, shape (K,) (line 6)."""
        highest_least = np.max(self.least)
        certainly = self.most + self.left < highest_least - ROUNDING * max(1, self.drawn)
        beaten: BoolArray = certainly | (self.highest >= math.log(1.0 / delta))
        return beaten

    def log_against(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        """The largest log of E_{j,c}(e_j) so far, shape (K,).

        Cost: O(K n).
        """
        if not self.played:
            return np.zeros_like(self.least)
        paths = np.cumsum(np.log1p(np.hstack(self._gains(candidate, shortfalls))), axis=1)
        reached: FloatArray = np.maximum(paths.max(axis=1), 0.0)
        return reached

    def log_against_now(self, candidate: int, shortfalls: FloatArray) -> FloatArray:
        """The log of E_{j,c}(e_j) after all items, shape (K,)."""
        return np.asarray(np.sum([np.log1p(gains).sum(axis=1) for gains in self._gains(candidate, shortfalls)], axis=0))

    def _gains(self, candidate: int, shortfalls: FloatArray) -> list[FloatArray]:
        size = 1.0 if math.isinf(self.num_items) else self.num_items
        return [one.gains + one.stakes * one.bonus(candidate) * (shortfalls[:, None] * size) for one in self.played]

    def rejected(self, candidate: int, epsilon: float, delta: float) -> BoolArray:
        """Which arms are not better than the candidate by more than epsilon, if they are the best, shape (K,)."""
        logs = self.log_against(candidate, np.full(len(self.least), epsilon))
        rejected: BoolArray = (logs >= math.log(1.0 / delta)) | (self.surplus(candidate) <= epsilon)
        return rejected

    def upper_bounds(self, candidate: int, delta: float, *, epsilon: float) -> FloatArray:
        """U_{j,c}: by how much each arm is better than the candidate at most, if it is the best, shape (K,), in [0, 1].

        Found by halving, from above, so that what is returned was rejected (line 6).

        Cost: 24 times that of `log_against`.
        """
        threshold = math.log(1.0 / delta)
        high = np.clip(self.surplus(candidate), 0.0, 1.0)
        low, middle = np.zeros_like(high), np.minimum(high, epsilon)
        for _ in range(HALVINGS):
            out = self.log_against(candidate, middle) >= threshold
            high, low = np.where(out, middle, high), np.where(out, low, middle)
            middle = (low + high) / 2.0
        return high


def after_items(before: ItemProcesses, bets: ItemBets, asked: BoolArray, answers: FloatArray) -> ItemProcesses:
    """The processes after the next items of the order; the stake of an item depends on those before it alone.

    Only who was asked to answer bets. One who did not answer all the same, NaN among the scores in [0, 1], (K, n),
    keeps his bet, and his score counts with the value that is worst for it (line 4). Cost: O(K n).
    """
    num_items, count = before.num_items, answers.shape[1]
    known = np.isfinite(answers)
    low, high = np.where(known, answers, 0.0), np.where(known, answers, 1.0)
    others = bets.others
    scale = np.divide(1.0, others, out=np.zeros_like(others), where=others > 0)

    def rivals(of: FloatArray) -> FloatArray:
        """sum over c != j of q(c) of[c], with the weights of sum 1."""
        own = bets.weights[:, None] * of
        compared: FloatArray = (own.sum(axis=0) - own) * scale[:, None]
        return compared

    earlier = (
        np.cumsum(low, axis=1) - low + before.least[:, None],
        np.cumsum(high, axis=1) - high + before.most[:, None],
    )
    if math.isinf(num_items):
        left, null = np.ones(count), np.zeros_like(low)
    else:
        left = (num_items - before.drawn - np.arange(count)).astype(np.float64)
        null = (earlier[1] - rivals(earlier[0])) / left  # mu(c, 0), line 4
    hoped = bets.means[:, None] - null
    if bets.candidate >= 0:
        share = bets.weights[bets.candidate] * scale
        share[bets.candidate] = 0.0
        hoped = hoped + share[:, None] * bets.epsilon * num_items / left
    most = np.divide(MOST_AT_STAKE, 1.0 + null, out=np.zeros_like(null), where=null > -1.0 + ROUNDING)
    wanted = hoped / (bets.variances[:, None] + hoped**2) if bets.stakes is None else bets.stakes[:, None]
    stakes = np.clip(wanted, 0.0, most)  # line 3
    stakes[~asked | (others == 0.0)] = 0.0
    gains = stakes * (rivals(low) - high - null)
    path = before.log_values[:, None] + np.cumsum(np.log1p(gains), axis=1)
    return ItemProcesses(
        num_items=num_items,
        drawn=before.drawn + count,
        least=before.least + low.sum(axis=1),
        most=before.most + high.sum(axis=1),
        played=(*before.played, _Played(stakes, gains, left, bets.weights, others)),
        log_values=path[:, -1],
        highest=np.maximum(before.highest, path.max(axis=1)),
    )


def with_late_answers(before: ItemProcesses, arms: IntArray, scores: FloatArray) -> ItemProcesses:
    """The processes once arms answered items that were drawn without them: scores in [0, 1] of arms, each (m,)."""
    least, most = before.least.copy(), before.most.copy()
    np.add.at(least, arms, scores)
    np.add.at(most, arms, scores - 1.0)
    return replace(before, least=least, most=most)


# --- What we guess from the answers so far, to choose comparators and stakes. It decides what is spent, not what holds.

HEURISTIC_PRIOR_ITEMS = 2.0  # items that a guess made in advance is worth
HEURISTIC_PRIOR_VARIANCE = 0.24  # of the difference of two scores
HEURISTIC_SHARPNESS = 3.0  # how fast the weight of a comparator falls with its distance from the leader
SMALLEST_WEIGHT = 1e-9


def leader_of(answers: FloatArray, among: BoolArray) -> int:
    """The arm of the best mean answer, shape (K, n), NaN: none, among these; the first of equals."""
    return int(np.argmax(np.where(among, means_of(answers), -1.0)))


def means_of(answers: FloatArray) -> FloatArray:
    """The mean answer of each arm, shape (K,); -1 of an arm without."""
    known = np.isfinite(answers)
    counts = known.sum(axis=1)
    means = np.where(known, answers, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return np.asarray(np.where(counts > 0, means, -1.0))


def looks_of(answers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(the mean answers, standard errors of their distances to the largest), each (K,), of answers to N items, (K, N).

    An error is at most that of scores 0 and 1 at even chances, and 0 once all items are answered.
    """
    means, counts = means_of(answers), np.isfinite(answers).sum(axis=1)
    errors = 0.5 * np.sqrt((1.0 - counts / answers.shape[1]) / np.maximum(counts, 1))
    return means, np.hypot(errors, errors[int(np.argmax(means))])


def first_bets(num_arms: int) -> ItemBets:
    """Before any answer: each arm is compared with the mean of the others."""
    return ItemBets(np.full(num_arms, 1.0 / num_arms), np.zeros(num_arms), np.ones(num_arms))


def next_bets(answers: FloatArray, answering: BoolArray, *, epsilon: float, left: float) -> ItemBets:
    """The comparators of the next items, and what to expect of them.

    An arm weighs Phi(-z)^3, z being how far it lies behind the leader in the items that both answered, in standard
    errors: early a bad arm is compared with the mean of several good ones, which varies less than one of them; later
    with the leader alone. The guessed mean of an arm without many answers leans towards the mean of all.
    """
    known = np.isfinite(answers)
    scores, counts = np.where(known, answers, 0.0), known.sum(axis=1)
    leader = leader_of(answers, answering)
    both = known & known[leader]
    behind = np.where(both, scores[leader] - scores, 0.0)
    gaps, variances = _moments(behind, both.sum(axis=1))
    errors = np.sqrt(variances * max(left, 1e-12) / np.maximum(both.sum(axis=1), 1))
    weights = np.exp(HEURISTIC_SHARPNESS * log_ndtr(-np.clip(gaps / errors, 0.0, 30.0)))
    weights = np.where(answering, np.maximum(weights, SMALLEST_WEIGHT), 0.0)
    weights /= weights.sum()
    mixed = weights @ scores
    others = np.maximum(1.0 - weights, 1e-12)[:, None]
    compared = np.where(known, (mixed - weights[:, None] * scores) / others - scores, 0.0)
    _, variances = _moments(compared, counts)
    sums, prior = compared.sum(axis=1), HEURISTIC_PRIOR_ITEMS
    usual = sums[answering].sum() / (counts[answering].sum() + prior)
    return ItemBets(weights, (sums + prior * usual) / (counts + prior), variances, leader, epsilon)


def _moments(values: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(means, variances) of each row's entries, 0 where there is none; the variance leans towards its prior."""
    means = values.sum(axis=1) / np.maximum(counts, 1)
    spread = np.maximum((values**2).sum(axis=1) - counts * means**2, 0.0)
    return means, (spread + HEURISTIC_PRIOR_ITEMS * HEURISTIC_PRIOR_VARIANCE) / (counts + HEURISTIC_PRIOR_ITEMS)
