"""Which pairs of arms could meet the elimination rule at all: one matrix product in place of square roots."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.estimators import Estimate, LeastSquaresEstimate

FEWEST = 2048  # arms below which there is nothing to save


@record
class Screen:
    """A necessary condition for "x' rules out x", in least squares.

        s' - s >= omega + m ||u' - u||   implies   q = (s' - s - omega)^2 - m^2 ||u' - u||^2 >= 0

    Multiplied out, q is a sum of a number of x', a number of x, and an inner product <(m u', s'), (2 m u, -2 s)>.

    Args:
        place: of each of the K arms in the arrays below, shape (K,); -1 for arms that are not compared.
        rivals: (m u, s), about their means, shape (n, r + 1).
        above: s^2 - 2 omega s - m^2 |u|^2 + omega^2, shape (n,).
        below: s^2 + 2 omega s - m^2 |u|^2, shape (n,).
        slack: q as computed errs by less.
    """

    place: IntArray
    rivals: FloatArray
    above: FloatArray
    below: FloatArray
    slack: float

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
    """The screen for these arms; None where it would not help.

    Args:
        arms: comparable ones.
        offset, multiplier: omega and m of the rule, not negative.
    """
    if not isinstance(estimate, LeastSquaresEstimate) or len(arms) < FEWEST or not np.isfinite(multiplier):
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
