"""What each arm gains under the multipliers of a working set, and the lower bound that the largest gain gives."""

import math
from functools import cached_property

import numpy as np

from surepick.core.records import FloatArray, IntArray, record
from surepick.designs.problem import DesignProblem
from surepick.linalg import factorisations
from surepick.linalg.farthest_pairs import Pairs, largest
from surepick.linalg.rows import LEAST_DIRECTIONS, SingleRows, filled, row_blocks

BOUND_SAFETY = 1e-12
PRICE_SAFETY = 1e-9
CLOSE = 16.0
MOST_ROUNDING = 1e-3
NOTHING = 1e-13  # of the largest eigenvalue: what M has in a direction that is left out of a product with all arms
BLOCK = 4096
FEW = 16_384  # arms that are simply priced
HEURISTIC_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
HEURISTIC_SAMPLE = 2048
HEURISTIC_MANY_LEFT = 0.125  # of the arms that the lengths leave: so many are priced with all of these


@record
class Priced:
    """A bound, and the gains behind it."""

    lower: float  # certified bound below every value; 0 where the compared points differ by less than rounding
    own: FloatArray  # sum_j pi_j (z_i'A^-1 y_j)^2 of the arms in use, relative to the largest of them, (m,)
    # the same of the first rows of the basis, (n,); all others are at most 1. Those that are at most 1 may be 0.
    gains: FloatArray


@record
class _Reference:
    """The gains under an earlier M_0, from which bounds on those under another follow."""

    matrix: FloatArray  # M_0, (r, r)
    largest: float  # its largest eigenvalue
    gains: FloatArray  # upper bounds on z'M_0 z, up to rounding, of all arms, (k,)
    rounding: float  # what rounding may be of them, as a share of largest ||z||^2


class ReducedCosts:
    """The gains u_i'W u_i = z_i'M z_i of all arms, M = L'^-1 W L^-1 (docs/design-solver.md, lines 3 and 11)."""

    def __init__(self, problem: DesignProblem) -> None:
        self._problem = problem
        self._squares: FloatArray | None = None
        self._reference: _Reference | None = None

    @cached_property
    def single(self) -> SingleRows:
        """The basis in single precision."""
        return SingleRows(self._problem.basis, self._problem.lengths)

    def priced(self, factor: FloatArray, own: FloatArray, spread: FloatArray) -> Priced:
        """The bound tr(W)^2 / max_i u_i'W u_i for L and W, (r, r); of the arms in use L^-1 z is `own`, (m, r)."""
        used = np.einsum("ij,ij->i", own @ spread, own)
        largest = float(used.max())
        if largest == 0.0:  # the compared points differ by less than rounding
            return Priced(0.0, np.ones(len(used)), np.empty(0))
        half = factorisations.solve_lower(factor, spread, transposed=True)
        matrix = factorisations.solve_lower(factor, half.T, transposed=True)
        spectrum = factorisations.symmetric_spectrum(np.array(matrix))
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
            some = factorisations.solve_rows(factor, rows[top : top + BLOCK])
            np.einsum("ij,ij->i", some @ spread, some, out=gains[top : top + BLOCK])
        return gains

    def _screened(
        self,
        factor: FloatArray,
        spread: FloatArray,
        matrix: FloatArray,
        spectrum: factorisations.Spectrum,
        largest: float,
        count: int,
    ) -> FloatArray:
        """The gains of the first rows, shape (count,), but for those that cannot be as large as `largest`: 0."""
        stretch, steepest = factorisations.thin_svd(factor)[1], float(spectrum.values[0])
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

    def _nearly(self, spectrum: factorisations.Spectrum, count: int) -> FloatArray:
        """z'M z of the first rows, or at least that, up to rounding, (count,): one product, thin for a low rank."""
        strong = int(np.count_nonzero(spectrum.values > NOTHING * spectrum.values[0]))
        half = spectrum.vectors[:, :strong] * np.sqrt(spectrum.values[:strong])
        if self._problem.rank >= LEAST_DIRECTIONS:
            return self.single.squares_at_most(half, count)
        basis = self._problem.basis
        return filled(np.empty(count), lambda rows: factorisations.row_squares(basis[rows] @ half))

    def _candidates(
        self, matrix: FloatArray, steepest: float, least: float, rounding: float, count: int
    ) -> IntArray | None:
        """Those of the first rows that may gain as much as `least`; None where these are many, or nothing is known."""
        known, squares = self._reference, self._squares
        if known is None or squares is None:
            return None
        sample = slice(0, count, max(1, count // HEURISTIC_SAMPLE))
        chosen, fewest = (0.0, steepest), count
        for multiple in HEURISTIC_MULTIPLES:
            apart = factorisations.largest_eigenvalue(matrix - multiple * known.matrix)
            slack = max(apart, 0.0) + rounding * steepest + known.rounding * multiple * known.largest
            left = int(np.count_nonzero(multiple * known.gains[sample] + slack * squares[sample] >= least))
            if left < fewest:
                chosen, fewest = (multiple, slack), left
        if fewest > HEURISTIC_MANY_LEFT * len(range(count)[sample]):
            return None
        multiple, slack = chosen
        bounds = multiple * known.gains[:count]
        bounds += slack * squares[:count]
        return np.flatnonzero(bounds >= least)


def less_rounding(bound: float, rounding: float) -> float:
    """A lower bound less what rounding of the coordinates, a share of the longest difference, may have added to it."""
    return bound * (1.0 - min(CLOSE * rounding, MOST_ROUNDING))


# --- The longest of many vectors, sorted by ||y||, under one design after the other: max ||L^-1 y||^2, A = L L'.

FEW_VECTORS = 4096  # vectors that are simply measured
NEAR = 0.9  # of the largest square: what is less is not looked at
SAFETY = 1e-9
HEURISTIC_SOME = 256  # vectors of the largest bounds that are looked at first
HEURISTIC_MANY_LONGEST = 0.125  # of the vectors: where more may be the longest, all are looked at again


class Longest:
    """The longest of vectors, shape (n, r), longest first, whose lengths are known, shape (n,)."""

    def __init__(self, vectors: FloatArray, lengths: FloatArray) -> None:
        self._vectors, self._lengths = vectors, lengths
        # L_0 of an earlier design, and at least ||L_0^-1 y||^2 of all vectors, (n,)
        self._reference: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def single(self) -> SingleRows:
        """The vectors in single precision."""
        return SingleRows(self._vectors, self._lengths)

    def under(self, factor: FloatArray, *, most: int, enough: float) -> Pairs:
        """The longest under A = L L', each as a pair of its own."""
        count, dim = self._vectors.shape
        if count <= FEW_VECTORS or dim < LEAST_DIRECTIONS:
            return self._by_length(factor, most)
        found = self._remembered(factor, most, enough)
        return self._screened(factor, most) if found is None else found

    def _by_length(self, factor: FloatArray, most: int) -> Pairs:
        """As many of the longest vectors as can be among the longest under A; the lengths tell where to stop."""
        vectors, lengths = self._vectors, self._lengths
        stretch = factorisations.longest_image(factor @ factor.T) if len(vectors) > FEW_VECTORS else np.inf
        squares, size, rest = np.empty(0), FEW_VECTORS, 0.0
        while len(squares) < len(vectors):
            rows = slice(len(squares), min(size, len(vectors)))
            squares = np.concatenate([squares, self._squares(factor, rows)])
            size *= 2
            if len(squares) < len(vectors):
                rest = (stretch * float(lengths[len(squares)])) ** 2 * (1.0 + SAFETY)
                if rest < NEAR * float(squares.max()):
                    break
        else:
            rest = 0.0
        return _listed(np.arange(len(squares)), squares, most, rest)

    def _squares(self, factor: FloatArray, rows: IntArray | slice) -> FloatArray:
        """||L^-1 y||^2 of some rows."""
        if isinstance(rows, slice):
            return factorisations.row_norms(factorisations.solve_rows(factor, self._vectors[rows])) ** 2
        found = np.empty(len(rows))
        for some in row_blocks(len(rows)):
            found[some] = factorisations.row_squares(factorisations.solve_rows(factor, self._vectors[rows[some]]))
        return found

    def _screened(self, factor: FloatArray, most: int) -> Pairs:
        """Those that may be among the longest, by bounds on all of them, which are remembered."""
        bounds = self.single.squares_at_most(factorisations.solve_lower(factor, np.eye(len(factor))).T)
        self._reference = factor, bounds
        rows, squares, rest = self._among(factor, bounds, most)
        if rest >= float(squares.max()):
            more = np.setdiff1d(np.flatnonzero(bounds >= float(squares.max())), rows, assume_unique=True)
            rows, squares = np.append(rows, more), np.append(squares, self._squares(factor, more))
            rest = 0.0  # all others are below the largest
        return _listed(rows, squares, most, rest)

    def _remembered(self, factor: FloatArray, most: int, enough: float) -> Pairs | None:
        """What bounds under an earlier design say (docs/design-solver.md, line 15); None: too many are left."""
        if self._reference is None:
            return None
        earlier, bounds = self._reference
        growth = _growth(factor, earlier)
        rows, squares, rest = self._among(factor, bounds, most)
        longest = float(squares.max())
        if most == 1 and longest > enough:
            return _listed(rows, squares, most, np.inf)
        least = max(longest, enough) if enough < np.inf else longest
        if growth * rest > least:
            more = np.flatnonzero(growth * bounds > least)
            if len(more) > HEURISTIC_MANY_LONGEST * len(bounds):
                return None
            more = np.setdiff1d(more, rows, assume_unique=True)
            rows, squares = np.append(rows, more), np.append(squares, self._squares(factor, more))
        return _listed(rows, squares, most, least if float(squares.max()) < least else 0.0)

    def _among(self, factor: FloatArray, bounds: FloatArray, most: int) -> tuple[IntArray, FloatArray, float]:
        """(rows with the largest bounds, more than are wanted, their squares, the largest bound of the others)."""
        rows = largest(bounds, max(2 * most, HEURISTIC_SOME))
        rest = np.delete(bounds, rows)
        return rows, self._squares(factor, rows), float(rest.max(initial=0.0))


def _growth(factor: FloatArray, earlier: FloatArray) -> float:
    """||L^-1 L_0||^2, rounded up."""
    return float(np.linalg.norm(factorisations.solve_lower(factor, earlier), 2)) ** 2 * (1.0 + SAFETY)


def _listed(rows: IntArray, squares: FloatArray, most: int, rest: float) -> Pairs:
    """The longest of some, which stand for pairs of their own; no other square is larger than `rest`."""
    chosen = largest(squares, most)
    chosen = chosen[np.argsort(-squares[chosen], kind="stable")]
    if len(chosen) < len(squares):
        rest = max(rest, float(squares[chosen[-1]]))
    return Pairs(rows[chosen], rows[chosen], squares[chosen], rest)
