"""Near copies: rows of one place, of which few stand for all while a design is searched (docs/design-solver.md, 17-19).

Whatever is left out of a search is valued afterwards: the farthest pair is that of all rows.
"""

from __future__ import annotations

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.designs.problem import DesignProblem
from surepick.linalg.factorisations import row_norms, row_squares, solve_rows
from surepick.linalg.farthest_pairs import Pairs, farthest_pairs, ordered
from surepick.linalg.rows import EqualRows, near_rows, row_blocks

HEURISTIC_NEAR = 0.2  # of a row's length: what is nearer is a near copy
LEAST_COPIES = 1.5  # rows of a place, on average, from which on places are searched
HEURISTIC_KNOWN = 32  # pairs of places, the farthest, whose ends say how far a pair is at least
DISTANCES = 1_000_000  # formed at a time
SAFETY = 1e-9


@record
class Places:
    """Some rows by the place where they are: rows of one place are near each other."""

    group: IntArray  # the number of the place of every row, (n,)
    rows: IntArray  # place by place, in a place ascending, (m,)
    tops: IntArray  # where the rows of each place begin, (p,)

    @staticmethod
    def among(group: IntArray, rows: IntArray) -> Places:
        """Those of rows, ascending."""
        listed = rows[np.argsort(group[rows], kind="stable")]
        return Places(group, listed, np.flatnonzero(np.diff(group[listed], prepend=-1)))

    def __len__(self) -> int:
        return len(self.tops)

    @property
    def first(self) -> IntArray:
        """The first row of each place, (p,)."""
        return self.rows[self.tops]

    def best(self, rows: IntArray, worth: FloatArray) -> IntArray:
        """Of some rows, worth (n,), the one that is worth the most in each of their places."""
        listed = rows[np.lexsort((-worth, self.group[rows]))]
        return listed[np.diff(self.group[listed], prepend=-1) > 0]


def places_of(problem: DesignProblem) -> tuple[Places, Places] | None:
    """Where the arms and the compared points are; None where few of them are near copies."""
    arms = near_rows(problem.basis, problem.lengths, HEURISTIC_NEAR, LEAST_COPIES)
    points = arms
    if problem.opposite:
        points = near_rows(problem.points, problem.point_lengths, HEURISTIC_NEAR, LEAST_COPIES)
    if arms is None and points is None:
        return None
    return _placed(arms, np.arange(len(problem.basis))), _placed(points, problem.active)


def _placed(found: EqualRows | None, rows: IntArray) -> Places:
    """Rows by place; each is its own where few are near copies."""
    return Places.among(np.arange(len(rows)) if found is None else found.group, rows)


@record
class Images:
    """The compared points under A = L L', place by place."""

    places: Places
    points: FloatArray  # L^-1 (z - centre), (m, r), in the order of `places.rows`
    middles: FloatArray  # their means, (p, r)
    radii: FloatArray  # no row of a place is farther from its middle, (p,)

    @staticmethod
    def under(problem: DesignProblem, places: Places, factor: FloatArray) -> Images:
        """Those of active points. Cost: O(m r^2)."""
        points = solve_rows(factor, problem.points[places.rows] - problem.centre)
        sizes = np.diff(places.tops, append=len(points))
        middles = np.add.reduceat(points, places.tops, axis=0) / sizes[:, None]
        apart = row_norms(points - np.repeat(middles, sizes, axis=0))
        return Images(places, points, middles, np.maximum.reduceat(apart, places.tops))

    def between(self, most: int) -> Pairs:
        """A far pair of rows of each of the farthest pairs of places: those outermost in the direction of the middles.
        Nothing is said of other pairs."""
        found: list[tuple[int, int]] = []
        if len(self.middles) > 1:
            rows = np.split(self.points, self.places.tops[1:])
            pairs = farthest_pairs(self.middles, least=most).head(most)
            for one, other in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
                away = self.middles[one] - self.middles[other]
                top, low = int(np.argmax(rows[one] @ away)), int(np.argmin(rows[other] @ away))
                found.append((self.places.tops[one] + top, self.places.tops[other] + low))
        ends = np.array(found, np.int64).reshape(-1, 2).T
        squares = row_squares(self.points[ends[0]] - self.points[ends[1]])
        return ordered(self.places.rows[ends[0]], self.places.rows[ends[1]], squares, np.inf)

    def farthest(self, *, most: int, enough: float) -> Pairs:
        """The farthest pairs; or one beyond `enough`, or one with a bound on all within `enough` (line 18)."""
        known = self.between(HEURISTIC_KNOWN).head(1)
        reach = float(known.squares.max(initial=0.0))
        sizes = np.diff(self.places.tops, append=len(self.points))
        bounds = self._bounds(self.middles, np.ones(len(sizes), bool)) + self.radii
        used = bounds >= np.sqrt(reach) * (1.0 - SAFETY)
        rows = np.flatnonzero(np.repeat(used, sizes))
        for last in (False, True):
            beyond = float(bounds.max()) ** 2 * (1.0 + SAFETY)
            if most == 1 and len(known.squares) and (reach > enough or beyond <= enough < np.inf):
                return Pairs(known.first, known.second, known.squares, beyond if beyond <= enough else np.inf)
            if not last:
                bounds = self._bounds(self.points[rows], used)
        least = max(reach, enough) if most == 1 and enough < np.inf else reach
        rows = rows[bounds >= np.sqrt(least) * (1.0 - SAFETY)]
        if len(rows) > 1:
            found = farthest_pairs(self.points[rows], least=most, floor=least * (1.0 - SAFETY))
            if len(found.squares):
                names = self.places.rows[rows]
                return Pairs(names[found.first], names[found.second], found.squares, found.elsewhere)
        return Pairs(known.first, known.second, known.squares, least)

    def _bounds(self, points: FloatArray, used: BoolArray) -> FloatArray:
        """How far a row of the places in use may be from each point, (n, r), to rounding, (n,)."""
        middles, radii, bounds = self.middles[used], self.radii[used], np.empty(len(points))
        own = row_squares(middles)
        for rows in row_blocks(len(points), max(1, DISTANCES // len(middles))):
            squares = points[rows] @ (-2.0 * middles.T)
            squares += own
            squares += row_squares(points[rows])[:, None]
            bounds[rows] = (np.sqrt(np.maximum(squares, 0.0)) + radii).max(axis=1)
        return bounds


def far_ends(problem: DesignProblem, places: Places, factor: FloatArray, most: int, beyond: float) -> IntArray:
    """Compared points of far pairs beyond a square under A = L L', at most one of two places; of vectors the longest of
    each place."""
    images = Images.under(problem, places, factor)
    if problem.opposite:
        squares = row_squares(images.points)
        long = np.flatnonzero(squares > beyond)
        worth = np.zeros(len(problem.points))
        worth[places.rows] = squares
        rows = places.rows[long]
        return places.best(rows, worth[rows])
    pairs = images.between(most)
    far = pairs.squares > beyond
    return np.concatenate([pairs.first[far], pairs.second[far]])
