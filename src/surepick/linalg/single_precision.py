"""Bounds on lengths by products in single precision, which take half the time of those in double precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surepick.core.arrays import FloatArray
from surepick.linalg.row_blocks import each_row_block

LEAST_DIRECTIONS = 48  # from so many on it saves time
UNIT = 2.0**-24  # what rounding may be of a number
NOTHING = 2.0**-50  # of the longest row times the largest entry: more than what is lost of too small numbers

Single = NDArray[np.float32]


class SingleRows:
    """Rows z, shape (n, d), in single precision: 2^k z, so that the longest has length 1 to 2 or is 0.

    Args:
        rows: shape (n, d), finite.
        lengths: ||z||, shape (n,), each correct to a relative 1e-9.

    Attributes:
        rows: the rows, shape (n, d).
        exponent: k.
    """

    def __init__(self, rows: FloatArray, lengths: FloatArray) -> None:
        _, exponent = np.frexp(float(lengths.max(initial=0.0)))
        self.exponent = 1 - int(exponent)
        self.rows: Single = np.empty(rows.shape, np.float32)

        def shorten(some: slice) -> None:
            self.rows[some] = np.ldexp(1.0, self.exponent) * rows[some]

        each_row_block(shorten, len(rows))
        self._lengths = np.ldexp(lengths, self.exponent)

    def squares_at_most(self, right: FloatArray, count: int | None = None) -> FloatArray:
        """Upper bounds on ||z'R||^2 of the first rows, shape (count,), for R of shape (d, r); None: of all rows.

        With p = z'R and p_hat as computed, u = 2^-24, n = d + r + 4 and g = n u / (1 - n u): rounding z and R, and
        products and sums in any order, err by |p_hat - p| <= g |z|'|R| in each entry, so that
        ||p|| <= ||p_hat|| + g ||z|| ||R||_F; the sum of the squares of p_hat errs by less than 2 g of itself. Scales
        are powers of two, which are exact; where numbers below 2^-126 become 0, and squares of those below 2^-63,
        lengths lose less than 2^-50. The products need d + 2 terms only: what is left, (r + 2) u ||z|| ||R||_F, is for
        an R that is off by rounding in double precision.

        Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.1.
        """
        largest = float(np.abs(right).max(initial=0.0))
        _, exponent = np.frexp(largest)
        scaled = np.ldexp(right, -int(exponent))
        terms = (sum(right.shape) + 4) * UNIT
        share, single = terms / (1.0 - terms), scaled.astype(np.float32)
        off = share * (1.0 + 1e-6) * float(np.sqrt(np.sum(scaled**2)))
        bounds = np.empty(len(self.rows) if count is None else count)

        def measure(some: slice) -> None:
            found = self.rows[some] @ single
            bounds[some] = np.einsum("ij,ij->i", found, found)

        each_row_block(measure, len(bounds))
        np.sqrt(bounds, out=bounds)
        bounds *= 1.0 + 2.0 * share
        bounds += off * self._lengths[: len(bounds)] + NOTHING
        bounds *= bounds
        result: FloatArray = np.ldexp(bounds, 2 * (int(exponent) - self.exponent))
        return result
