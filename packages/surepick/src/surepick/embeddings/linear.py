"""Truncated singular value decomposition of the features: the paper's section "high-dimensional linear bandits"."""

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import feature_matrix
from surepick.core.plans import Embedding
from surepick.core.records import FloatArray, record, set_fields
from surepick.core.values import check_choice, whole_number
from surepick.embeddings import base
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import row_norms, thin_svd, triangular_factor
from surepick.linalg.rows import EqualRows, equal_rows

# --- The leading singular directions of features too large to decompose at once, with the residual of every row.

STREAM_ABOVE = 4_000_000
KEPT_ENTRIES = 128_000_000
PASS_ENTRIES = 1_000_000
EPS = float(np.finfo(np.float64).eps)


@record
class SingularDirections:
    """The arms in the leading singular directions of their features."""

    scores: FloatArray  # psi, (K, r), as computed from V_r'x; equal rows of the features have equal ones, bit by bit
    singular: FloatArray  # all singular values, (min(K, D),), decreasing
    # at least max_x ||x - V_d psi_d(x)|| for d = 0 .. r, (r + 1,); 0 where d reaches D or the number of distinct arms.
    residuals: FloatArray
    sums: FloatArray  # sum_{i > d} s_i for d = 0 .. r, never below the residuals, (r + 1,).


NOTHING = np.zeros(1)


def numerical_rank(singular: FloatArray, shape: tuple[int, ...]) -> int:
    """How many singular values of a (K, D) matrix are above the rounding of the decomposition, max(K, D) eps s_1."""
    return int(np.sum(singular > max(shape) * EPS * singular[0]))


def leading_directions(matrix: FloatArray, classes: EqualRows, *, most: int) -> SingularDirections:
    """The leading singular directions, and what each number of them leaves of the rows, in two passes over the rows.

        X'X = R'R,   R = W diag(s) V'        first pass: R, and from it s and V, the rank decided on R
        psi(x) = V_r'x,   e(x) = x - V_r psi(x)        second pass

    Why the residuals hold: docs/large.md, line 8. Cost: O(K D (D + r)) time; K x r float64 and a few blocks.
    """
    _, singular, right = thin_svd(triangular_factor(matrix))
    if singular[0] == 0:
        return SingularDirections(np.zeros((len(matrix), 0)), singular, NOTHING, NOTHING)
    kept = min(most, numerical_rank(singular, matrix.shape))
    basis = np.ascontiguousarray(right[:kept].T)
    scores = np.empty((len(matrix), kept))
    squares = np.zeros(kept + 1)
    step = max(1, PASS_ENTRIES // matrix.shape[1])
    for top in range(0, len(matrix), step):
        rows = slice(top, top + step)
        np.maximum(squares, _project(matrix[rows], basis, singular[0], scores[rows]), out=squares)
    residuals = singular[0] * np.sqrt(squares[::-1])
    residuals += 1.02 * rounding_share(basis) * residuals[0]
    residuals[min(len(classes.first), matrix.shape[1]) :] = 0.0
    first = classes.first[classes.group]
    others = np.flatnonzero(first != np.arange(len(scores)))  # where a row stands in a block may decide the last bit
    for top in range(0, len(others), step):
        scores[others[top : top + step]] = scores[first[others[top : top + step]]]
    scores.flags.writeable = False
    return SingularDirections(scores, singular, residuals, np.maximum(base.tail_sums(singular)[: kept + 1], residuals))


def rounding_share(basis: FloatArray) -> float:
    """rho of docs/large.md, line 8, for V, shape (D, r): what rounding may add to a residual, as a share of ||x||."""
    length, kept = basis.shape
    overlap = basis.T @ basis - np.eye(kept)
    skew = 1.01 * (math.sqrt(float(np.einsum("ij,ij->", overlap, overlap))) + EPS * length * kept)
    return float(EPS * (length + kept + 8) * (math.sqrt(kept) + 2.0) + 3.2 * skew)


def _project(rows: FloatArray, basis: FloatArray, unit: float, scores: FloatArray) -> FloatArray:
    """Write the scores of the rows; the largest squares, in units of `unit`, of what r, r - 1, ..., 0 directions leave:
    of a square V nothing but rounding."""
    block = np.asarray(rows, dtype=np.float64)
    np.matmul(block, basis, out=scores)
    squares = np.empty((len(block), basis.shape[1] + 1))
    np.square(scores[:, ::-1] / unit, out=squares[:, 1:])
    squares[:, 0] = 0.0
    if basis.shape[0] > basis.shape[1]:
        left = block - scores @ basis.T
        left /= unit
        np.einsum("ij,ij->i", left, left, out=squares[:, 0])
    np.cumsum(squares, axis=1, out=squares)
    return np.asarray(squares.max(axis=0))


BOUNDS = ("row-tail", "paper")
EQUAL_FEATURES = "Some candidates have equal features: they are taken to have equal means."


@record
class LinearEmbedding:
    """The d leading singular directions of the features, for rewards that are linear in them.

        X = sum_i s_i u_i v_i'      psi_d(x) = (s_1 u_x1, ..., s_d u_xd)      h(x) = <x, theta>,  ||theta||_2 <= C

        "row-tail":  gamma-tilde(d) = C max_x ||(s_i u_xi)_{i > d}||_2
        "paper":     gamma-tilde(d) = C sum_{i > d} s_i

    The row tail is Cauchy-Schwarz, never above the paper's bound (|u_xi| <= 1). Directions below the rounding of the
    decomposition (singular value under max(K, D) eps s_1) are left out of `max_dim`; what they hold counts as
    misspecification. Both bounds hold for the features as they are stored: what rounding may have done is added, about
    1e-11 of the longest row at 100 columns and 1e-9 at 1,000 (docs/large.md, lines 8 and 9). They are 0 only where d
    reaches D or the number of distinct arms. Equal rows of the features get equal vectors, bit by bit.

    *More than 4,000,000 features* (K D) are read in blocks, twice: the triangular factor of X, then the products X V_r
    with the leading r <= max_rank directions. What those beyond max_rank hold counts as misspecification.

    Args:
        features: X, shape (K, D), finite. A read-only float32 or float64 array that nobody can write to, as a
            memory-mapped one, is used as it is; float32 numbers are computed with in double precision.
        norm_bound: C > 0, a bound on ||theta||_2 in reward units per feature unit.
        bound: which misspecification bound, "row-tail" or "paper".
        norm_source: "declared" (someone vouches for norm_bound), or "estimated" from measurements, which bounds
            nothing: an answer that uses it is heuristic.
        max_rank: most directions kept, >= 1. None: all of them; but of more than 4,000,000 features at most
            128,000,000 // K, so that the vectors stay below about 1 GB.

    Raises:
        InvalidInput: no feature column, features all zero or not finite, norm_bound not positive, max_rank below 1,
            unknown bound or norm_source.

    Source: section 3.2 ("Application to high-dimensional linear bandits"); the residual of computed directions: ours.
    Differs from the paper: the default bound is the row tail, which is smaller and valid by the argument above.
    Cost: one thin SVD, O(K D min(K, D)); beyond 4,000,000 features O(K D (D + r)) time, and K x r float64 with a few
        blocks of 8 MB, or 5 D rows, in memory beyond the features.
    """

    features: FloatArray
    norm_bound: float
    bound: str
    norm_source: str
    max_rank: int
    num_arms: int
    num_distinct: int
    max_dim: int
    _scores: FloatArray
    _tails: FloatArray
    _rank: int

    def __init__(
        self,
        features: ArrayLike,
        *,
        norm_bound: float,
        bound: str = "row-tail",
        norm_source: str = base.DECLARED,
        max_rank: int | None = None,
    ) -> None:
        matrix = feature_matrix(features)
        if matrix.shape[1] == 0:
            raise InvalidInput("the arms have no feature column; a linear embedding needs at least one.")
        base.check_norm(norm_bound, norm_source, of="the linear reward function can have")
        check_choice("bound", bound, BOUNDS)
        most = _most_directions(matrix.shape, max_rank)
        classes = equal_rows(matrix)
        decompose = _decomposed if matrix.size <= STREAM_ABOVE else leading_directions
        found = decompose(matrix, classes, most=most)
        if found.singular[0] == 0:
            raise InvalidInput("all features are zero; every arm would look the same. Give informative columns.")
        rank = numerical_rank(found.singular, matrix.shape)
        set_fields(self, features=matrix, norm_bound=float(norm_bound), bound=bound, norm_source=norm_source)
        set_fields(self, max_rank=most, num_arms=len(matrix), num_distinct=len(classes.first), max_dim=min(rank, most))
        set_fields(self, _scores=found.scores, _tails=found.sums if bound == "paper" else found.residuals, _rank=rank)

    def misspecification(self, dim: int) -> float:
        return self.norm_bound * float(self._tails[base.checked_dim(dim, self.max_dim)])

    def at(self, dim: int) -> Embedding:
        return Embedding(base.leading(self._scores, base.checked_dim(dim, self.max_dim)), self.misspecification(dim))

    @property
    def traits(self) -> base.EmbeddingTraits:
        options = {"norm_bound": self.norm_bound, "bound": self.bound, "norm_source": self.norm_source}
        effective = self.max_rank < min(self.features.shape)
        norm = base.norm_in_words(self.norm_bound, self.norm_source)
        return base.EmbeddingTraits(
            "linear",
            assumptions=(
                f"The mean reward is a linear function of the {self.features.shape[1]} features, with a coefficient "
                f"vector of Euclidean norm at most {norm}.",
            ),
            caveats=self._caveats(),
            heuristic=base.unproved_norm(self.norm_source),
            spec={**options, "max_rank": self.max_rank} if effective else options,
        )

    def _caveats(self) -> tuple[str, ...]:
        if self.num_distinct <= self.max_dim:
            return () if self.num_distinct == self.num_arms else (EQUAL_FEATURES,)
        if self.max_dim < self._rank:
            return (
                f"{self.max_dim} of {self._rank} independent feature directions are kept; with all of these the "
                f"embedding may still be wrong by {self.misspecification(self.max_dim):.3g}. Raise max_rank if that is "
                "too much.",
            )
        return (
            f"{self.num_distinct} distinct arms but only {self._rank} independent feature directions: that the mean "
            "reward is linear in the features is an assumption about the world, not a fact about the table. If it is "
            "doubtful, use a policy that ignores the features (certified-independent).",
        )


def _most_directions(shape: tuple[int, ...], max_rank: int | None) -> int:
    """How many directions are kept at most, never more than there are."""
    if max_rank is not None:
        return min(*shape, whole_number("max_rank", max_rank, least=1, meaning="the most directions that are kept."))
    large = shape[0] * shape[1] > STREAM_ABOVE
    return min(*shape, max(KEPT_ENTRIES // shape[0], 1)) if large else min(shape)


def _decomposed(matrix: FloatArray, classes: EqualRows, *, most: int) -> SingularDirections:
    """From one thin SVD of all features; the residuals are those of the scores (docs/large.md, line 9)."""
    dense = np.asarray(matrix, dtype=np.float64)
    left, singular, right = thin_svd(dense)
    left = left[classes.first[classes.group]]  # equal arms must be equal to the last bit
    scores = left * singular
    unit = singular[0]
    if unit == 0:
        return SingularDirections(scores, singular, NOTHING, NOTHING)
    residuals = unit * base.row_tails((scores / unit) ** 2, NOTHING)
    residuals += unit * row_norms((dense - scores @ right) / unit).max()
    residuals += 1.02 * rounding_share(right.T) * residuals[0]
    residuals[min(len(classes.first), dense.shape[1]) :] = 0.0
    sums = np.maximum(base.tail_sums(singular), residuals)
    return SingularDirections(scores[:, :most], singular, residuals[: most + 1], sums[: most + 1])
