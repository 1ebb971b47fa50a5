"""What batches say against each of many rows: one e-process a row, formed anew whenever somebody looks.

    M_j = exp(sum over batches of (w r - cost)),   w = v_j'u_x / s^2,   v_j = tau_j A^-1 (u_c - u_j)

A row's bets follow from its features and from what all rows share, so that nothing is kept of a row (docs/large.md,
lines 1 to 5).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from surepick.chunks.merkle import Path, Tree
from surepick.chunks.moments import PIECE, Coordinates, Directions, Largest, directions, first_look, tree_of
from surepick.chunks.passes import Passes
from surepick.chunks.sources import RowBlocks
from surepick.core.arms import Arms, KnownIds
from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, encode, from_json, frozen, record
from surepick.core.values import as_number, positive_number, whole_number
from surepick.designs.long_lists import SparseDesign, d_optimal
from surepick.embeddings.kernel import KernelDirections, kernel_directions
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput, SurepickError
from surepick.linalg.factorisations import inverse_factor, row_norms, row_squares
from surepick.linalg.rows import one_blas_thread
from surepick.policies import tuning

ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
LEAST_SIZE = 1e-60  # of y'A^-1 y: a larger one costs more, and no square overflows
ROUNDED_DOWN = 1e-10  # of the sizes of the summands of a gain


@frozen
class RowBet:
    """What a batch says of every row at once."""

    centre: FloatArray  # u_c of the candidate, chosen before the batch, (r,)
    guess: FloatArray  # theta as the past suggests it, (r,)
    slope: FloatArray  # A^-1 S, S = sum of u_x r / s^2, (r,): what the batch says of theta
    factor: FloatArray  # L with L L' = A^-1, A = sum n u u' / s^2, (r, r)
    weight: float  # sum n / s^2
    mismatch: float  # at least ||A Q - I|| for the Q ~ A^-1 that is computed with, rounding included
    excess: float  # at least ||L'AL - I||, rounding included: for Q = LL', y'QAQ y is at most (1 + excess) ||L'y||^2

    @staticmethod
    def of(
        centre: FloatArray, guess: FloatArray, features: FloatArray, counts: IntArray, sums: FloatArray, scale: float
    ) -> RowBet | None:
        """That of a batch; None where it does not see every direction."""
        information = (features.T * (counts / scale**2)) @ features
        factor = inverse_factor(information)
        if factor is None:
            return None
        inverse, rank = factor @ factor.T, len(factor)
        spread = float(np.linalg.norm(information) * np.linalg.norm(inverse))
        mismatch = float(np.linalg.norm(information @ inverse - np.eye(rank))) + ROUNDING * (rank + 8) * spread
        excess = float(np.linalg.norm(factor.T @ information @ factor - np.eye(rank))) + ROUNDING * (rank + 8) * spread
        slope = inverse @ (features.T @ (sums / scale**2))
        return RowBet(centre, guess, slope, factor, float(counts.sum() / scale**2), mismatch, excess)


@record
class Rule:
    """What decides."""

    threshold: float  # log(1/delta)
    slack: float  # by how much a row may be better than the candidate that beats it, in reward units
    norm_bound: float  # C
    misspecification: float  # gamma, in reward units
    longest: float  # at least the largest ||x||

    def gains(self, bet: RowBet, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        room = towards @ bet.guess + self.slack - off - tuning.HEURISTIC_CAUTION * roots
        tau = tuning.HEURISTIC_KAPPA * np.maximum(room, 0.0) / sizes
        summands = np.abs(told) + off + lost + tau * sizes
        gains = tau * (told - off - lost - ROUNDED_DOWN * summands) - 0.5 * tau**2 * sizes
        return gains, tau * self.slack

    def rejected(self, bets: Sequence[RowBet], rows: FloatArray) -> BoolArray:
        """Whether some candidate has beaten each row: after one of the batches its process had reached 1/delta."""
        total, beaten = np.zeros(len(rows)), np.zeros(len(rows), bool)
        for bet in bets:
            gains, granted = self.gains(bet, rows)
            total += gains + granted
            beaten |= total >= self.threshold
        return beaten


@record
class Left:
    """The rows that are not beaten."""

    number: int  # how many
    rows: IntArray | None  # which, ascending; None where they are more than `most`
    most: int  # rows that are listed
    best: Largest  # the one whose mean is largest by the guess

    def plus(self, other: Left) -> Left:
        """Those of both."""
        number, rows = self.number + other.number, None
        if self.rows is not None and other.rows is not None and number <= self.most:
            rows = np.concatenate([self.rows, other.rows])
        return Left(number, rows, self.most, self.best.plus(other.best))


def _left(
    where: Coordinates, rule: Rule, bets: tuple[RowBet, ...], guess: FloatArray, most: int, rows: FloatArray, first: int
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
    passes: Passes, where: Coordinates, rule: Rule, bets: tuple[RowBet, ...], guess: FloatArray, *, most: int
) -> Left:
    """The rows that are not beaten, by one pass over all."""
    return passes.map_reduce("rivals", partial(_left, where, rule, bets, guess, most), Left.plus)


def left_of(rows: IntArray, features: FloatArray, rule: Rule, bets: tuple[RowBet, ...], guess: FloatArray) -> Left:
    """The same of some rows, whose features in these directions are in memory, shape (n, r)."""
    kept = np.flatnonzero(~rule.rejected(bets, features))
    best = Largest.of((features @ guess)[kept], 0, 1)
    return Left(len(kept), rows[kept], len(rows), Largest(best.values, rows[kept[best.rows]], 1))


# --- Where the candidates of a study come from: a list that was too long, and how it was shortened.

SHORTENED = (
    "The {number:,} candidates that are compared were selected from {total:,} after {pulls:,} measurements; with "
    "probability at least {sure:g} {best} is one of them, if the next sentence holds of all of these."
)
BEST, NEARLY = "the best of all", "one that is worse than the best of all by at most {slack:g}"


@record
class SubsetRules:
    """How the list was shortened."""

    delta: float  # the probability that the best is not on the short list
    noise: str  # what was assumed of a reward, as text
    norm_bound: float  # C, in reward units per feature unit
    size: int  # the list was short enough with so many
    slack: float  # by how much the best on it may be worse than the best of all, in reward units
    max_rank: int | None  # directions of the features, or landmarks, that were kept at most; None: as many as usual
    kernel: str | None = None  # in whose space C is a norm, as text; None: rewards are linear in the features
    epsilon: float | None = None  # by which landmarks were chosen; None without a kernel

    def __post_init__(self) -> None:
        positive_number("norm_bound", self.norm_bound, "the largest norm that the reward function can have.")
        whole_number("size", self.size, least=1, meaning="the most candidates on the short list.")
        if not 0.0 <= as_number("slack", self.slack) < math.inf:
            raise InvalidInput(f"slack is {self.slack}; it is 0 or a positive shortfall in reward units.")
        if self.epsilon is not None:
            positive_number("epsilon", self.epsilon, "the shortfall that matters.")

    def sentence(self, columns: int) -> str:
        """What is assumed of the rewards, in words."""
        if self.kernel is not None:
            return (
                f"The mean reward is a function of norm at most {self.norm_bound:g} in the reproducing kernel Hilbert "
                f"space of the kernel {self.kernel}."
            )
        return (
            f"The mean reward is a linear function of the {columns} features, with a coefficient vector of Euclidean "
            f"norm at most {self.norm_bound:g}."
        )


@record
class Tally:
    """A batch of the selection."""

    ids: tuple[str, ...]  # of the candidates that were measured
    counts: tuple[int, ...]  # pulls and total rewards of each, in the sign in which large is good
    sums: tuple[float, ...]
    squares: tuple[float, ...] | None  # sums of squared rewards; None where only totals were reported

    @staticmethod
    def of(seen: Observations, ids: Sequence[str]) -> Tally:
        """That of what was told of candidates with these ids."""
        pulled = np.flatnonzero(seen.counts)
        squares = None if seen.squares is None else tuple(seen.squares[pulled].tolist())
        names = tuple(ids[arm] for arm in pulled.tolist())
        return Tally(names, tuple(seen.counts[pulled].tolist()), tuple(seen.sums[pulled].tolist()), squares)

    def among(self, places: Mapping[str, int]) -> Observations:
        """What was told, of the arms at these places (id -> index)."""
        counts, sums = np.zeros(len(places), np.int64), np.zeros(len(places))
        squares = None if self.squares is None else np.zeros(len(places))
        for row, name in enumerate(self.ids):
            if name not in places:
                raise InvalidInput(f"candidate {name!r} was measured for the selection and is none of the study.")
            counts[places[name]], sums[places[name]] = self.counts[row], self.sums[row]
            if squares is not None and self.squares is not None:
                squares[places[name]] = self.squares[row]
        return Observations(counts, sums, squares)


@record
class Subset:
    """That the candidates of a study were selected from a longer list."""

    total: int  # K, the candidates on the long list
    columns: int  # D
    root: str  # hash of the long list, in hexadecimal digits
    sizes: tuple[int, ...]  # rows of each of its sources
    rules: SubsetRules  # how it was shortened
    rows: tuple[int, ...]  # the number on the long list of each candidate of the study
    batches: tuple[Tally, ...]  # what was measured for it
    # that candidates of the study are on the long list: of all, or of those measured for the selection
    paths: tuple[Path, ...]
    minimize: bool = False  # small rewards were good; the sums of `batches` have the other sign
    facts: tuple[str, ...] = ()  # what else its certificate assumes of its measurements, as sentences

    @property
    def pulls(self) -> int:
        """Measurements of the selection."""
        return sum(sum(one.counts) for one in self.batches)

    def sentence(self, number: int) -> str:
        """What an answer about `number` candidates that were selected rests on."""
        best = BEST if self.rules.slack == 0.0 else NEARLY.format(slack=self.rules.slack)
        return SHORTENED.format(
            number=number, total=self.total, pulls=self.pulls, sure=1.0 - self.rules.delta, best=best
        )

    def spec(self) -> dict[str, Any]:
        """As plain data."""
        found: dict[str, Any] = encode(self)
        found["batches"] = [
            {"pulls" if name == "counts" else name: value for name, value in one.items()} for one in found["batches"]
        ]
        return found | {"paths": [one.spec() for one in self.paths]}

    @staticmethod
    def of(spec: Mapping[str, Any] | Subset) -> Subset:
        """From plain data."""
        if isinstance(spec, Subset):
            return spec
        try:
            rules, batches = SubsetRules(**spec["rules"]), tuple(_told(one) for one in spec["batches"])
            paths = tuple(Path.of(one) for one in spec["paths"])
            sizes = tuple(map(int, spec["sizes"]))
            size, rows = (int(spec["total"]), int(spec["columns"])), tuple(map(int, spec["rows"]))
            more = bool(spec["minimize"]), tuple(map(str, spec["facts"]))
            found = Subset(*size, str(spec["root"]), sizes, rules, rows, batches, paths, *more)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"'selected' cannot be read: {error!r}.") from None
        if sum(found.sizes) != found.total or not (0.0 < rules.delta < 1.0 and rules.slack >= 0.0):
            raise InvalidInput("'selected' contradicts itself: its sizes, its delta or its slack have no meaning.")
        return found

    def check(self, arms: Arms) -> None:
        """Refuse arms that are not those on the long list."""
        if len(self.rows) != arms.num_arms or len(set(self.rows)) != arms.num_arms:
            raise InvalidInput(f"{len(self.rows)} rows of the long list are named for {arms.num_arms} candidates.")
        places = {row: place for place, row in enumerate(self.rows)}
        for path in self.paths:
            row = path.features(self.root, self.sizes, self.columns)
            place = places.get(path.row)
            if place is None or not np.array_equal(arms.features[place], row):
                raise InvalidInput(f"row {path.row} of the long list has other features than its candidate here.")


def _told(spec: Mapping[str, Any]) -> Tally:
    ids, counts, sums = tuple(map(str, spec["ids"])), tuple(map(int, spec["pulls"])), tuple(map(float, spec["sums"]))
    squares = None if spec["squares"] is None else tuple(map(float, spec["squares"]))
    columns = (ids, counts, sums, ids if squares is None else squares)
    if len({len(each) for each in columns}) != 1 or len(set(ids)) != len(ids) or min(counts, default=1) < 1:
        raise ValueError("a batch has columns of several lengths, an id twice, or a pull of nobody")
    if not np.isfinite([*sums, *(squares or ())]).all():
        raise ValueError("a batch has a sum that is not finite")
    return Tally(ids, counts, sums, squares)


# --- What is found out about a long list before anything is measured: its hash, how its rows are seen, and the design.

USUAL_LANDMARKS = 200


@record
class FirstPass:
    """What some four passes over K rows find."""

    root: str  # of the tree of their hashes
    sizes: tuple[int, ...]
    where: Coordinates  # the coordinates in which rows are seen
    design: SparseDesign  # the rows that are measured, and how often
    arms: Arms  # these rows, with their ids
    _tree: Tree | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def at(passes: Passes, kernel: Kernel | None, rules: SubsetRules) -> FirstPass:
        """Look at the rows."""
        found, tree = first_look(passes)
        if kernel is None:
            where: Coordinates = directions(passes, found, most=rules.max_rank)
        elif rules.epsilon is None:
            raise InvalidInput(
                "with a kernel the selection needs epsilon, by which it chooses how many landmarks it uses."
            )
        else:
            most, norm = USUAL_LANDMARKS if rules.max_rank is None else rules.max_rank, rules.norm_bound
            where = kernel_directions(passes, kernel, norm_bound=norm, epsilon=rules.epsilon, max_rank=most)
        made = d_optimal(passes, where)
        arms = _arms(passes.rows, made.rows)
        design = _sparse(made.rows, made.weights, made.value, where, arms)
        return FirstPass(tree.root, tree.sizes, where, design, arms, tree)

    def tree_of(self, passes: Passes) -> Tree:
        """The hashes of all rows; without those of the first look it takes a pass."""
        if self._tree is not None:
            return self._tree
        with one_blas_thread():
            tree = tree_of(passes)
        if tree.root != self.root:
            raise InvalidInput(
                f"the rows of the long list are not those of the first look: their root was {self.root[:16]}..., and "
                f"is {tree.root[:16]}.... A file was changed; nothing can be said of what it holds now."
            )
        return tree

    def spec(self) -> dict[str, Any]:
        """As plain data: all but the hashes and the features."""
        design = {"rows": self.design.rows, "weights": self.design.weights, "value": self.design.value}
        where = {name: one for name, one in encode(self.where, sparse=True).items() if name != "kernel"}
        return {"root": self.root, "sizes": list(self.sizes), "where": where, "design": encode(design)}

    @staticmethod
    def of(spec: Mapping[str, Any], rows: RowBlocks, kernel: Kernel | None) -> FirstPass:
        """From plain data and the rows that were looked at; those of the design are read, no others."""
        sizes = tuple(one.num_rows for one in rows.sources)
        try:
            if list(sizes) != list(spec["sizes"]):
                raise InvalidInput(
                    f"the files hold {sum(sizes):,} rows and {sum(spec['sizes']):,} were looked at, or lie in another "
                    "order; give those of the first look."
                )
            where = _where(spec["where"], kernel)
            chosen, weights = np.array(spec["design"]["rows"], np.int64), np.array(spec["design"]["weights"], float)
            arms = _arms(rows, chosen)
            design = _sparse(chosen, weights, float(spec["design"]["value"]), where, arms)
        except (KeyError, TypeError, ValueError, AttributeError, SurepickError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"'first_look' cannot be read: {error!r}.") from None
        return FirstPass(str(spec["root"]), sizes, where, design, arms)


@record
class _Landmarks:
    """`KernelDirections` but for the kernel, which the rules name."""

    landmarks: FloatArray
    factor: FloatArray
    left: float
    information: FloatArray
    longest: float


def _where(data: Mapping[str, Any], kernel: Kernel | None) -> Coordinates:
    if kernel is None:
        return from_json(Directions, json.dumps(data))
    found = from_json(_Landmarks, json.dumps(data))
    return KernelDirections(kernel, found.landmarks, found.factor, found.left, found.information, found.longest)


def _arms(rows: RowBlocks, chosen: IntArray) -> Arms:
    return Arms(rows.take(chosen), KnownIds(rows.ids(chosen)))


def _sparse(rows: IntArray, weights: FloatArray, value: float, where: Coordinates, arms: Arms) -> SparseDesign:
    """The design with features that anybody computes again to the last bit."""
    return SparseDesign(rows, where.of(arms.features), weights, value)
