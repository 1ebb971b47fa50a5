"""What each arm gains under the multipliers of a working set, and the lower bound that the largest gain gives."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.designs.problem import Problem
from surepick.linalg.factorisations import (
    Spectrum,
    largest_eigenvalue,
    solve_lower,
    solve_rows,
    symmetric_spectrum,
    thin_svd,
)
from surepick.linalg.row_blocks import each_row_block
from surepick.linalg.single_precision import LEAST_DIRECTIONS, SingleRows

BOUND_SAFETY = 1e-12
PRICE_SAFETY = 1e-9
CLOSE = 16.0
MOST_ROUNDING = 1e-3
NOTHING = 1e-13  # of the largest eigenvalue: what M has in a direction that is left out of a product with all arms
BLOCK = 4096
FEW = 16_384  # arms that are simply priced
HEURISTIC_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
HEURISTIC_SAMPLE = 2048
HEURISTIC_MANY = 0.125  # of the arms that the lengths leave: so many are priced with all of these


@record
class Priced:
    """A bound, and the gains behind it.

    Args:
        lower: certified bound below every value; 0 where the compared points differ by less than rounding.
        own: sum_j pi_j (z_i'A^-1 y_j)^2 of the arms in use, relative to the largest of them, shape (m,).
        gains: the same of the first rows of the basis, shape (n,); all others are at most 1. Those that are at most 1
            may be 0.
    """

    lower: float
    own: FloatArray
    gains: FloatArray


@record
class _Reference:
    """The gains under an earlier M_0, from which bounds on those under another follow.

    Args:
        matrix: M_0, shape (r, r).
        largest: its largest eigenvalue.
        gains: upper bounds on z'M_0 z, up to rounding, of all arms, shape (k,).
        rounding: what rounding may be of them, as a share of largest ||z||^2.
    """

    matrix: FloatArray
    largest: float
    gains: FloatArray
    rounding: float


class Prices:
    """The gains u_i'W u_i = z_i'M z_i of the arms of one problem under one M after the other, M = L'^-1 W L^-1.

    It remembers the gains of the last M under which many arms were looked at (docs/design-solver.md, lines 3 and 11).
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._squares: FloatArray | None = None
        self._reference: _Reference | None = None

    @cached_property
    def single(self) -> SingleRows:
        """The basis in single precision."""
        return SingleRows(self._problem.basis, self._problem.lengths)

    def priced(self, factor: FloatArray, own: FloatArray, spread: FloatArray) -> Priced:
        """The lower bound tr(W)^2 / max_i u_i'W u_i for one W, and the gains of the arms that may have the largest.

        Args:
            factor: L, shape (r, r).
            own: L^-1 z of the arms in use, shape (m, r).
            spread: W, shape (r, r), for multipliers of sum 1.
        """
        used = np.einsum("ij,ij->i", own @ spread, own)
        largest = float(used.max())
        if largest == 0.0:  # the compared points differ by less than rounding
            return Priced(0.0, np.ones(len(used)), np.empty(0))
        half = solve_lower(factor, spread, transposed=True)
        matrix = solve_lower(factor, half.T, transposed=True)
        spectrum = symmetric_spectrum(np.array(matrix))
        least = math.sqrt(largest / float(spectrum.values[0])) * (1.0 - PRICE_SAFETY)
        lengths = self._problem.lengths
        count = len(lengths) - int(np.searchsorted(lengths[::-1], least))  # those at least as long
        if count <= FEW:
            gains = self._gains(factor, spread, self._problem.basis[:count])
        else:
            gains = self._screened(factor, spread, matrix, spectrum, largest, count)
        trace = float(np.trace(spread))
        most = max(largest, float(gains.max(initial=0.0)))
        lower = trace * (trace / most) * (1.0 - BOUND_SAFETY)  # no square underflows
        return Priced(lower, used / largest, gains / largest)

    def _gains(self, factor: FloatArray, spread: FloatArray, rows: FloatArray) -> FloatArray:
        """u'W u of some rows of the basis, shape (n, r); shape (n,)."""
        gains = np.empty(len(rows))
        for top in range(0, len(rows), BLOCK):
            some = solve_rows(factor, rows[top : top + BLOCK])
            np.einsum("ij,ij->i", some @ spread, some, out=gains[top : top + BLOCK])
        return gains

    def _screened(
        self, factor: FloatArray, spread: FloatArray, matrix: FloatArray, spectrum: Spectrum, largest: float, count: int
    ) -> FloatArray:
        """The gains of the first rows, shape (count,), but for those that cannot be as large as `largest`: 0."""
        stretch, steepest = thin_svd(factor)[1], float(spectrum.values[0])
        eps = float(np.finfo(np.float64).eps)
        rounding = max(PRICE_SAFETY, 64.0 * len(matrix) * eps * float(stretch[0] / stretch[-1]))
        if self._squares is None:
            self._squares = self._problem.lengths**2
        least = largest * (1.0 - PRICE_SAFETY)
        few = self._candidates(matrix, steepest, least, rounding, count)
        if few is None:
            bounds = steepest * self._squares
            bounds[:count] = self._nearly(spectrum, count)
            self._reference = _Reference(matrix, steepest, bounds, rounding)
            few = np.flatnonzero(bounds[:count] + rounding * steepest * self._squares[:count] >= least)
        gains = np.zeros(count)
        gains[few] = self._gains(factor, spread, self._problem.basis[few])
        return gains

    def _nearly(self, spectrum: Spectrum, count: int) -> FloatArray:
        """z'M z of the first rows up to rounding, or at least that, shape (count,): one product, thin where M has a low
        rank."""
        strong = int(np.count_nonzero(spectrum.values > NOTHING * spectrum.values[0]))
        half = spectrum.vectors[:, :strong] * np.sqrt(spectrum.values[:strong])
        if self._problem.rank >= LEAST_DIRECTIONS:
            return self.single.squares_at_most(half, count)
        found, basis = np.empty(count), self._problem.basis

        def measure(rows: slice) -> None:
            some = basis[rows] @ half
            np.einsum("ij,ij->i", some, some, out=found[rows])

        each_row_block(measure, count)
        return found

    def _candidates(
        self, matrix: FloatArray, steepest: float, least: float, rounding: float, count: int
    ) -> IntArray | None:
        """Those of the first rows that may gain as much as `least`; None where these are many, or nothing is known.

        z'M z <= rho z'M_0 z + c ||z||^2,   c = the largest eigenvalue of M - rho M_0, for any rho >= 0
        """
        known, squares = self._reference, self._squares
        if known is None or squares is None:
            return None
        sample = slice(0, count, max(1, count // HEURISTIC_SAMPLE))
        chosen, fewest = (0.0, steepest), count
        for multiple in HEURISTIC_MULTIPLES:
            apart = largest_eigenvalue(matrix - multiple * known.matrix)
            slack = max(apart, 0.0) + rounding * steepest + known.rounding * multiple * known.largest
            left = int(np.count_nonzero(multiple * known.gains[sample] + slack * squares[sample] >= least))
            if left < fewest:
                chosen, fewest = (multiple, slack), left
        if fewest > HEURISTIC_MANY * len(range(count)[sample]):
            return None
        multiple, slack = chosen
        bounds = multiple * known.gains[:count]
        bounds += slack * squares[:count]
        return np.flatnonzero(bounds >= least)


def less_rounding(bound: float, rounding: float) -> float:
    """A lower bound less what rounding of the coordinates, a share of the longest difference, may have added to it."""
    return bound * (1.0 - min(CLOSE * rounding, MOST_ROUNDING))
