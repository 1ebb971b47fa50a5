"""Which arms another arm leads by the width of their difference: all pairs, in blocks, and with a screen for many."""

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.estimators.least_squares import Estimate, LeastSquaresEstimate

BLOCK = 512  # arms that are compared at once
HEAD = 32  # those of highest score, which rule out most
LEAST_SCREENED = 2048  # arms below which a screen has nothing to save


@record
class PairRule:
    """x' rules out x when lead > rounding and lead >= offset + multiplier * distance.

    One score vector and one seminorm make the relation transitive (triangle inequality).
    """

    estimate: Estimate
    offset: float
    multiplier: float
    rounding: float

    def rules_out(self, rivals: IntArray, arms: IntArray) -> BoolArray:
        """Which of `arms` some arm of `rivals` rules out, shape (len(arms),)."""
        if len(rivals) == 0 or len(arms) == 0:
            return np.zeros(len(arms), bool)
        leads, widths = self.leading(rivals, arms)
        ruled_out: BoolArray = np.any((leads > self.rounding) & (leads >= widths), axis=0)
        return ruled_out

    def leading(self, rivals: IntArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """(leads, widths) of each rival over each arm, shape (len(rivals), len(arms))."""
        leads = self.estimate.scores[rivals][:, None] - self.estimate.scores[arms][None, :]
        return leads, self.offset + self.multiplier * self.estimate.distances(rivals, arms)


def not_ruled_out(rule: PairRule, ranked: IntArray) -> IntArray:
    """The arms of `ranked` (decreasing score) that no arm of higher score rules out.

    The relation is transitive, so it is enough to compare with those that stay.

    Cost: O(n * survivors * d) at worst, which is one matrix product for least squares (`Screen`); blocks of bounded
    memory.
    """
    kept = ranked[:0]
    screen = screen_of(rule.estimate, ranked, offset=rule.offset, multiplier=rule.multiplier)
    for start in range(0, len(ranked), BLOCK):
        block = ranked[start : start + BLOCK]
        block = block[~rule.rules_out(kept[:HEAD], block)]
        rivals = np.concatenate([kept[HEAD:], block])
        gone = np.zeros(len(block), bool)
        for first in range(0, len(rivals), 8 * BLOCK):
            some = rivals[first : first + 8 * BLOCK]
            left = np.flatnonzero(~gone)
            if screen is not None:
                rows, columns = screen.possible(some, block[left])
                some, left = some[rows], left[columns]
            gone[left] = rule.rules_out(some, block[left])
        kept = np.concatenate([kept, block[~gone]])
    return kept


@record
class Screen:
    """Which pairs could meet the rule at all, in least squares: one matrix product in place of square roots.

        s' - s >= omega + m ||u' - u||   implies   q = (s' - s - omega)^2 - m^2 ||u' - u||^2 >= 0

    Multiplied out, q is a sum of a number of x', a number of x, and an inner product <(m u', s'), (2 m u, -2 s)>.
    """

    place: IntArray  # of each of the K arms in the arrays below, shape (K,); -1 for arms that are not compared
    rivals: FloatArray  # (m u, s), about their means, shape (n, r + 1)
    above: FloatArray  # s^2 - 2 omega s - m^2 |u|^2 + omega^2, shape (n,)
    below: FloatArray  # s^2 + 2 omega s - m^2 |u|^2, shape (n,)
    slack: float  # q as computed errs by less

    def possible(self, rivals: IntArray, arms: IntArray) -> tuple[IntArray, IntArray]:
        """(rows, columns): places in the two lists of those for which some pair meets the condition."""
        if len(rivals) == 0 or len(arms) == 0:
            return np.arange(len(rivals)), np.arange(len(arms))
        above, below = self.place[rivals], self.place[arms]
        turned = 2.0 * self.rivals[below]
        turned[:, -1] *= -1.0
        q = self.rivals[above] @ turned.T
        q += self.above[above][:, None]
        columns = np.flatnonzero(q.max(axis=0) >= -self.slack - self.below[below])
        if len(columns) == 0:
            return columns, columns
        rows = np.flatnonzero((q[:, columns] >= -self.slack - self.below[below[columns]]).any(axis=1))
        return rows, columns


def screen_of(estimate: Estimate, arms: IntArray, *, offset: float, multiplier: float) -> Screen | None:
    """The screen for comparable arms, omega and m the rule's offset and multiplier; None where it would not help."""
    if not isinstance(estimate, LeastSquaresEstimate) or len(arms) < LEAST_SCREENED or not np.isfinite(multiplier):
        return None
    coordinates, scores = estimate.coordinates[arms], estimate.scores[arms]
    rivals = np.column_stack([multiplier * (coordinates - coordinates.mean(axis=0)), scores - scores.mean()])
    lengths = np.einsum("ij,ij->i", rivals[:, :-1], rivals[:, :-1])
    own = rivals[:, -1] ** 2
    largest = 4.0 * (float(lengths.max()) + float(own.max()) + offset**2)
    original = multiplier * float(np.abs(coordinates).max()) + float(np.abs(scores).max())  # what was rounded first
    slack = 32.0 * (rivals.shape[1] + 8) * np.finfo(np.float64).eps * (largest + original * np.sqrt(largest))
    place = np.full(len(estimate.scores), -1)
    place[arms] = np.arange(len(arms))
    shift = 2.0 * offset * rivals[:, -1]
    return Screen(place, rivals, own - shift - lengths + offset**2, own + shift - lengths, slack)
