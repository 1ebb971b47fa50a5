"""What batches say against each of many rows: one e-process a row, formed anew whenever somebody looks.

    M_j = exp(sum over batches of (w r - cost)),   w = v_j'u_x / s^2,   v_j = tau_j A^-1 (u_c - u_j)

A row's bets follow from its features and from what all rows share, so that nothing is kept of a row (docs/large.md,
lines 1 to 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.moments import Coordinates
from surepick.blocks.search import PIECE, Largest
from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.linalg.factorisations import inverse_factor, row_norms, row_squares

HEURISTIC_KAPPA = 0.7  # of the bet that promises most
HEURISTIC_CAUTION = 0.5  # errors by which a guess of a lead is lowered
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
LEAST_SIZE = 1e-60  # of y'A^-1 y: a larger one costs more, and no square overflows
ROUNDED_DOWN = 1e-10  # of the sizes of the summands of a gain


@record
class Bet:
    """What a batch says of every row at once.

    Args:
        centre: u_c of the candidate, chosen before the batch, shape (r,).
        guess: theta as the past suggests it, shape (r,).
        slope: A^-1 S, S = sum of u_x r / s^2, shape (r,): what the batch says of theta.
        factor: L with L L' = A^-1, A = sum n u u' / s^2, shape (r, r).
        weight: sum n / s^2.
        mismatch: at least ||A Q - I|| for the Q ~ A^-1 that is computed with, rounding included.
        excess: at least ||L'AL - I||, rounding included: for Q = LL', y'QAQ y is at most (1 + excess) ||L'y||^2.
    """

    centre: FloatArray
    guess: FloatArray
    slope: FloatArray
    factor: FloatArray
    weight: float
    mismatch: float
    excess: float

    def __post_init__(self) -> None:
        freeze(self, centre=np.float64, guess=np.float64, slope=np.float64, factor=np.float64)

    @staticmethod
    def of(
        centre: FloatArray, guess: FloatArray, features: FloatArray, counts: IntArray, sums: FloatArray, scale: float
    ) -> Bet | None:
        """That of a batch; None where it does not see every direction.

        Args:
            centre, guess: from before the batch.
            features: u of the rows that were measured, shape (p, r).
            counts, sums: n and total rewards, shape (p,).
            scale: s, in reward units.
        """
        information = (features.T * (counts / scale**2)) @ features
        factor = inverse_factor(information)
        if factor is None:
            return None
        inverse, rank = factor @ factor.T, len(factor)
        spread = float(np.linalg.norm(information) * np.linalg.norm(inverse))
        mismatch = float(np.linalg.norm(information @ inverse - np.eye(rank))) + ROUNDING * (rank + 8) * spread
        excess = float(np.linalg.norm(factor.T @ information @ factor - np.eye(rank))) + ROUNDING * (rank + 8) * spread
        slope = inverse @ (features.T @ (sums / scale**2))
        return Bet(centre, guess, slope, factor, float(counts.sum() / scale**2), mismatch, excess)


@record
class Rule:
    """What decides.

    Args:
        threshold: log(1/delta).
        slack: by how much a row may be better than the candidate that beats it, in reward units.
        norm_bound: C.
        misspecification: gamma, in reward units.
        longest: at least the largest ||x||.
    """

    threshold: float
    slack: float
    norm_bound: float
    misspecification: float
    longest: float

    def gains(self, bet: Bet, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(log of the factor that a batch gives each process, at least, if its row is better than the candidate by the
        slack; tau slack, which comes on top), both of shape (n,).

            tau (y'theta_hat - gamma (2 + sqrt(W a)) - C (mismatch ||y|| + rounding)) - tau^2 a / 2,   a = y'A^-1 y

        The bet tau is a function of the row, of the past and of the counts of the batch.
        """
        towards = bet.centre - rows
        sizes = (1.0 + bet.excess) * np.maximum(row_squares(towards @ bet.factor), LEAST_SIZE)
        roots, told = np.sqrt(sizes), towards @ bet.slope
        off = self.misspecification * (2.0 + np.sqrt(bet.weight) * roots)
        lost = self.norm_bound * (bet.mismatch * row_norms(towards) + 4.0 * ROUNDING * self.longest)
        room = towards @ bet.guess + self.slack - off - HEURISTIC_CAUTION * roots
        tau = HEURISTIC_KAPPA * np.maximum(room, 0.0) / sizes
        summands = np.abs(told) + off + lost + tau * sizes
        gains = tau * (told - off - lost - ROUNDED_DOWN * summands) - 0.5 * tau**2 * sizes
        return gains, tau * self.slack

    def rejected(self, bets: Sequence[Bet], rows: FloatArray) -> BoolArray:
        """Whether some candidate has beaten each row: after one of the batches its process had reached 1/delta."""
        total, beaten = np.zeros(len(rows)), np.zeros(len(rows), bool)
        for bet in bets:
            gains, granted = self.gains(bet, rows)
            total += gains + granted
            beaten |= total >= self.threshold
        return beaten


@record
class Left:
    """The rows that are not beaten.

    Args:
        number: how many.
        rows: which, ascending; None where they are more than `most`.
        most: rows that are listed.
        best: the one whose mean is largest by the guess.
    """

    number: int
    rows: IntArray | None
    most: int
    best: Largest

    def plus(self, other: Left) -> Left:
        """Those of both."""
        number, rows = self.number + other.number, None
        if self.rows is not None and other.rows is not None and number <= self.most:
            rows = np.concatenate([self.rows, other.rows])
        return Left(number, rows, self.most, self.best.plus(other.best))


def _left(
    where: Coordinates, rule: Rule, bets: tuple[Bet, ...], guess: FloatArray, most: int, rows: FloatArray, first: int
) -> Left:
    kept, scores = np.empty(len(rows), bool), np.empty(len(rows))
    for top in range(0, len(rows), PIECE):
        piece, place = where.of(rows[top : top + PIECE]), slice(top, top + PIECE)
        scores[place] = piece @ guess
        kept[place] = ~rule.rejected(bets, piece)
    found = np.flatnonzero(kept)
    best = Largest.of(scores[found], 0, 1)
    named = Largest(best.values, first + found[best.rows], 1)
    return Left(len(found), first + found if len(found) <= most else None, most, named)


def left(
    passes: Passes, where: Coordinates, rule: Rule, bets: tuple[Bet, ...], guess: FloatArray, *, most: int
) -> Left:
    """The rows that are not beaten, by one pass over all.

    Args:
        where: the directions in which rows are seen.
        bets: of all batches so far.
        guess: theta, as everything so far suggests it, shape (r,).
        most: rows that are listed.
    """
    return passes.map_reduce("rivals", partial(_left, where, rule, bets, guess, most), Left.plus)


def left_of(rows: IntArray, features: FloatArray, rule: Rule, bets: tuple[Bet, ...], guess: FloatArray) -> Left:
    """The same of some rows, whose features in these directions are in memory, shape (n, r)."""
    kept = np.flatnonzero(~rule.rejected(bets, features))
    best = Largest.of((features @ guess)[kept], 0, 1)
    return Left(len(kept), rows[kept], len(rows), Largest(best.values, rows[kept[best.rows]], 1))
