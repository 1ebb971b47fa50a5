"""The arms as vectors whose inner products are a kernel: the paper's section on RKHS, on a finite arm set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from surepick.chunks.moments import Largest
from surepick.chunks.passes import Passes
from surepick.core.arms import feature_matrix
from surepick.core.plans import Embedded, Embedding, IndependentArms
from surepick.core.records import FloatArray, IntArray, record, set_fields
from surepick.core.values import check_choice, positive_number, whole_number
from surepick.embeddings import base, kernel_functions
from surepick.embeddings.linear import BOUNDS, EQUAL_FEATURES
from surepick.embeddings.tangent_kernel import NeuralTangentKernel
from surepick.errors import InvalidInput
from surepick.linalg import factorisations
from surepick.linalg.rows import equal_rows, places
from surepick.text import quoted

# --- A kernel on rows too many for memory: coordinates from few landmarks, and what they leave of every row.

EPS = float(np.finfo(np.float64).eps)
SAMPLE = 2048  # rows among which the first landmarks are looked for
LEAST_RESIDUAL = 1e-8  # of the largest k(x, x): beyond it rounding takes over
HEURISTIC_ADDED_LANDMARKS = 512  # rows that a pass adds to those among which landmarks are looked for
PIECE = 4096  # rows whose kernel with all landmarks is in memory at once


@record
class KernelDirections:
    """The function space of a kernel, as few landmarks see it (docs/large.md, line 7 has the proof).

        G_mm = L L' of the landmarks,   u(x) = L^-1 (k(l_1, x), ..., k(l_m, x)),   |h(x) - <u(x), theta>| <= C left

    for every h of norm at most C in the space, with ||theta|| <= C.
    """

    kernel: kernel_functions.Kernel  # k
    landmarks: FloatArray  # l, (d, D)
    factor: FloatArray  # L, (d, d)
    left: float  # as above, over all rows, rounded up
    information: FloatArray  # sum_x u u' / K, (d, d)
    longest: float  # at least the largest sqrt(k(x, x))

    @property
    def rank(self) -> int:
        """d."""
        return len(self.landmarks)

    def of(self, rows: FloatArray) -> FloatArray:
        """Rows, shape (n, D), in these directions, shape (n, d)."""
        found = np.empty((len(rows), len(self.landmarks)))
        for top in range(0, len(rows), PIECE):
            piece = np.asarray(rows[top : top + PIECE], np.float64)
            found[top : top + PIECE] = _coordinates(self.kernel, self.landmarks, self.factor, piece)
        return found


def _coordinates(
    kernel: kernel_functions.Kernel, landmarks: FloatArray, factor: FloatArray, piece: FloatArray
) -> FloatArray:
    return factorisations.solve_lower(factor, kernel.gram(landmarks, piece)).T


@record
class _Seen:
    """What a pass says of landmarks."""

    largest: FloatArray  # max over the rows of k(x, x) - ||u_d(x)||^2 for d = 0 .. m, (m + 1,).
    worst: Largest  # the rows of which the landmarks leave most
    information: FloatArray  # sum of u u', (m, m)

    def plus(self, other: _Seen) -> _Seen:
        """Of both."""
        return _Seen(
            np.maximum(self.largest, other.largest), self.worst.plus(other.worst), self.information + other.information
        )


def _seen(
    kernel: kernel_functions.Kernel, landmarks: FloatArray, factor: FloatArray, rows: FloatArray, first: int
) -> _Seen:
    found, left = None, np.empty(len(rows))
    for top in range(0, len(rows), PIECE):
        piece = np.asarray(rows[top : top + PIECE], np.float64)
        seen = _coordinates(kernel, landmarks, factor, piece)
        residuals = np.empty((len(piece), len(landmarks) + 1))
        residuals[:, 0] = kernel.diagonal(piece)
        np.subtract(residuals[:, :1], np.cumsum(seen**2, axis=1), out=residuals[:, 1:])
        left[top : top + PIECE] = residuals[:, -1]
        part = _Seen(residuals.max(axis=0), Largest.of(left[:0], 0, HEURISTIC_ADDED_LANDMARKS), seen.T @ seen)
        found = part if found is None else found.plus(part)
    if found is None:
        raise InvalidInput("a block has no rows.")
    return _Seen(found.largest, Largest.of(left, first, HEURISTIC_ADDED_LANDMARKS), found.information)


def kernel_directions(
    passes: Passes, kernel: kernel_functions.Kernel, *, norm_bound: float, epsilon: float, max_rank: int = 200
) -> KernelDirections:
    """Landmarks, and as many as are predicted to cost the fewest pulls, 4 d / (epsilon - 2 C left_d (1 + sqrt(d)))^2.
    They are the pivots of a partial Cholesky factorisation of some rows: of a sample spread over the list, then of that
    and the rows of which the first ones leave most. Cost: two passes of O(K m (m + D)) time each."""
    positive_number("norm_bound", norm_bound, "the norm that the reward function can have in the kernel's space.")
    whole_number("max_rank", max_rank, least=1, meaning="the most landmarks.")
    number = passes.rows.num_rows
    pool = np.unique(np.linspace(0, number - 1, min(number, SAMPLE)).astype(np.int64))
    landmarks, factor = _landmarks(kernel, passes.rows.take(pool), max_rank)
    found = passes.map_reduce("landmarks", partial(_seen, kernel, landmarks, factor), _Seen.plus)
    if number > len(pool):
        pool = np.union1d(pool, found.worst.rows)
        landmarks, factor = _landmarks(kernel, passes.rows.take(pool), max_rank)
        found = passes.map_reduce("landmarks", partial(_seen, kernel, landmarks, factor), _Seen.plus)
    top = float(found.largest[0])
    spread = factorisations.thin_svd(factor)[1]
    rounding = 8.0 * EPS * (len(factor) + landmarks.shape[1] + 16) * float(spread[0] / spread[-1])
    left = np.sqrt(np.maximum(found.largest, 0.0) + rounding * top) + rounding * math.sqrt(top)
    dims = np.arange(1, len(left))
    room = epsilon - 2.0 * norm_bound * left[1:] * (1.0 + np.sqrt(dims))  # without any: all dimensions
    costs = np.divide(4.0 * dims, room**2, out=np.full(len(dims), np.inf), where=room > 0.0)
    dim = int(dims[np.argmin(costs)]) if np.isfinite(costs).any() else int(dims[-1])
    return KernelDirections(
        kernel,
        landmarks[:dim],
        np.ascontiguousarray(factor[:dim, :dim]),
        float(left[dim]),
        found.information[:dim, :dim] / number,
        math.sqrt(top) * (1.0 + 8.0 * EPS),
    )


def _landmarks(kernel: kernel_functions.Kernel, rows: FloatArray, max_rank: int) -> tuple[FloatArray, FloatArray]:
    """(landmarks in the order of pivots, L with L L' = their gram matrix)."""
    diagonal, pivots = kernel.diagonal(rows), list[int]()

    def column(pivot: int) -> FloatArray:
        pivots.append(pivot)
        return np.asarray(kernel.gram(rows, rows[pivot : pivot + 1])[:, 0])

    if not diagonal.max() > 0.0:
        raise InvalidInput("the kernel is zero on these rows; every candidate would look the same.")
    factorisations.pivoted_cholesky(
        diagonal, column, max_rank=max_rank, tolerance=LEAST_RESIDUAL * float(diagonal.max())
    )
    chosen: IntArray = np.array(pivots, np.int64)
    while True:
        landmarks = rows[chosen]
        factor = factorisations.cholesky(kernel.gram(landmarks, landmarks))
        if factor is not None:
            return landmarks, factor
        chosen = chosen[:-1]  # the last pivots are the nearest to what the others span


# --- Kernels by name: text <-> kernel, and what else a user may give.

Named = Mapping[str, tuple[type, tuple[Callable[[str], object], ...]]]  # name -> its class and how to read parameters

_KERNELS: Named = {
    "gaussian": (kernel_functions.GaussianKernel, (float,)),
    "matern": (kernel_functions.MaternKernel, (float, float)),
    "polynomial": (kernel_functions.PolynomialKernel, (int, float, float)),
    "ntk": (NeuralTangentKernel, (int, str, float)),
}


def read_named(text: str, known: Named, refusal: str) -> object:
    """What a text "NAME:PARAMETER:..." names."""
    name, *values = text.strip().split(":")
    kind, readers = known.get(name, (None, ()))
    if kind is not None and len(values) <= len(readers):
        try:
            return kind(*[read(value) for read, value in zip(readers, values, strict=False)])
        except InvalidInput:
            raise
        except (TypeError, ValueError):
            pass
    raise InvalidInput(refusal)


def parse_kernel(text: str) -> kernel_functions.Kernel:
    """The kernel that a text names: "gaussian:0.1", "matern:2.5:1", "polynomial:3:1:1", "ntk:3:H-tilde".

    Trailing parameters may be left out where the kernel has defaults.
    """
    return cast(
        kernel_functions.Kernel,
        read_named(
            text,
            _KERNELS,
            f"kernel {quoted(text)} is not understood. Write gaussian:GAMMA, matern:NU:LENGTH_SCALE, "
            "polynomial:DEGREE:OFFSET:SCALE or ntk:DEPTH:FORM with FORM H-tilde or H.",
        ),
    )


def make_kernel(kernel: kernel_functions.Kernel | kernel_functions.KernelFunction | str) -> kernel_functions.Kernel:
    """A kernel from a kernel, its text, a function of two arrays, or a scikit-learn kernel object."""
    if isinstance(kernel, str):
        return parse_kernel(kernel)
    return kernel if isinstance(kernel, kernel_functions.Kernel) else kernel_functions.CallableKernel(kernel)


NEGATIVE_SHARE = 64.0
LEAST_COLUMNS = 200  # of the gram matrix, where not all are computed
LOOKED_AT = 64  # rows of a matrix that is not formed, whose kernel must be symmetric
COLUMN_WORK = 500_000_000  # K rank^2: about a third of a second


@record
class KernelEmbedding:
    """The d leading eigenvectors of the gram matrix of the arms, for rewards of bounded norm in the kernel's space.

        G = sum_j s_j u_j u_j'      psi_d(x) = (sqrt(s_1) u_x1, ..., sqrt(s_d) u_xd)      ||h||_H <= C

        "row-tail":  gamma-tilde(d) = C max_x sqrt(sum_{j>d} (s_j + e) u_xj^2)
        "paper":     gamma-tilde(d) = C sqrt(e + sum_{j>d} s_j)

    e is what rounding may have done. At d = K nothing is left: 0. The proofs are in docs/reference/embeddings.md.

    *More than `nystrom_above` distinct arms*, of any number. Partial Cholesky with greedy pivots, G = L L' + R with
    R >= 0: at most `max_rank` columns of G are computed, never G. With L = U diag(sqrt(s)) V',
    psi_j = (L V)_j = sqrt(s_j) u_j,

        "row-tail":  gamma-tilde(d) = C max_x sqrt(R_xx + e + sum_{j>d} s_j u_xj^2)
        "paper":     gamma-tilde(d) = C sqrt(e + sum_x R_xx + sum_{j>d} s_j)

    Equal rows of the features are one arm with a multiplicity: they get equal vectors, bit by bit, and cost nothing.
    Directions with s_j <= e are left out of `max_dim`; what they hold counts as misspecification. Where columns are
    left out and all arms differ, there is one dimension more, K: arms of which nothing is assumed.

    Args:
        features: X, shape (K, D), finite; a read-only float array that nobody can write to, as a memory-mapped one, is
            kept as it is, and a float64 copy of its distinct rows is made for the time of the construction.
        kernel: a kernel, its text ("gaussian:0.1"), a function k(left, right) -> (n, m), or a scikit-learn kernel.
        norm_bound: C > 0, a bound on ||h||_H in reward units per square root of kernel units.
        bound: which misspecification bound, "row-tail" or "paper".
        nystrom_above: most distinct arms for which the whole gram matrix is decomposed.
        max_rank: most columns of the gram matrix beyond that; None: 200, and more while K rank^2 is at most 5e8.
        rounding: share of trace(G) that is taken for rounding, e; None means e = eps (K s_1 + (D + 16) trace(G)), or
            eps (rank + D + 16) trace(G) beyond `nystrom_above`: right for kernels whose values are accurate to D + 16
            machine epsilons of sqrt(G_xx G_zz), as those here are. A kernel in single precision needs about 1e-6.
        norm_source: "declared" (someone vouches for norm_bound), or "estimated" from measurements, which bounds
            nothing: an answer that uses it is heuristic.

    Raises:
        InvalidInput: no feature column, features not finite, a parameter without meaning, a kernel that is zero
            everywhere, not symmetric, or not positive semi-definite (an eigenvalue below -64 e; a smaller
            excess raises e).

    Source: section 4, with the gram matrix of the arms in place of the integral operator; Nystrom bound: ours.
    Differs from the paper: eigenvectors of the gram matrix, which need no eigen-system of the kernel and no measure;
        the default bound is the row tail, never above the paper's.
    Cost: O(K^3 + K^2 D) time and five K x K arrays; beyond `nystrom_above` O(K rank (rank + D)) time, four K x rank
        arrays. The gram matrix is formed once.
    """

    features: FloatArray
    kernel: kernel_functions.Kernel
    norm_bound: float
    bound: str
    nystrom_above: int
    max_rank: int
    rounding: float | None
    norm_source: str
    num_arms: int
    num_distinct: int
    max_dim: int
    _scores: FloatArray
    _tails: FloatArray

    def __init__(
        self,
        features: ArrayLike,
        *,
        kernel: kernel_functions.Kernel | kernel_functions.KernelFunction | str,
        norm_bound: float,
        bound: str = "row-tail",
        nystrom_above: int = 999,
        max_rank: int | None = None,
        rounding: float | None = None,
        norm_source: str = base.DECLARED,
    ) -> None:
        matrix = feature_matrix(features)
        base.check_norm(norm_bound, norm_source, of=base.IN_SPACE)
        _check(matrix, bound, nystrom_above, LEAST_COLUMNS if max_rank is None else max_rank, rounding)
        kernel = make_kernel(kernel)
        classes = equal_rows(matrix)
        if max_rank is None:
            max_rank = max(LEAST_COLUMNS, math.isqrt(COLUMN_WORK // len(classes.first)))
        rows = np.asarray(matrix[classes.first], dtype=np.float64)
        order = np.lexsort(rows.T[::-1])  # a function of the rows alone, so that the order of the arms decides no bit
        rows, copies = rows[order], np.bincount(classes.group)[order]
        if len(rows) <= nystrom_above:
            scores, tails = _decomposed(kernel, rows, copies, bound, rounding)
        else:
            scores, tails = _approximated(kernel, rows, copies, bound, rounding, max_rank)
        scores = scores[places(order)[classes.group]]
        scores.flags.writeable = False
        set_fields(self, features=matrix, kernel=kernel, norm_bound=float(norm_bound), bound=bound, rounding=rounding)
        set_fields(self, nystrom_above=int(nystrom_above), max_rank=int(max_rank), norm_source=norm_source)
        set_fields(self, num_arms=len(matrix), num_distinct=len(rows), max_dim=scores.shape[1])
        set_fields(self, _scores=scores, _tails=tails)

    def misspecification(self, dim: int) -> float:
        if dim and dim == self.free_dim:
            return 0.0
        return self.norm_bound * float(self._tails[base.checked_dim(dim, self.max_dim)])

    def at(self, dim: int) -> Embedded:
        if dim and dim == self.free_dim:
            return IndependentArms(self.num_arms)
        return Embedding(base.leading(self._scores, base.checked_dim(dim, self.max_dim)), self.misspecification(dim))

    @property
    def approximate(self) -> bool:
        """Only some columns of the gram matrix were computed; the bound accounts for the others."""
        return self.num_distinct > self.nystrom_above

    @property
    def free_dim(self) -> int:
        """K, where nothing is assumed of the arms, if only some columns were computed and all arms differ; else 0."""
        return self.num_arms if self.approximate and self.max_dim < self.num_distinct == self.num_arms else 0

    @property
    def traits(self) -> base.EmbeddingTraits:
        named = f"the kernel {self.kernel.spec}" if self.kernel.spec else "the kernel function given"
        norm = (
            f"The mean reward is a function of norm at most {base.norm_in_words(self.norm_bound, self.norm_source)} in "
            f"the reproducing kernel Hilbert space of {named}."
        )
        unseen = f"The kernel function is positive semi-definite; only {self.max_dim} of its columns were computed."
        options = ("norm_bound", "bound", "nystrom_above", "max_rank", "rounding", "norm_source")
        spec = {"kernel": self.kernel.spec, **{name: getattr(self, name) for name in options}}
        return base.EmbeddingTraits(
            "kernel",
            assumptions=(norm,) if self.kernel.spec or not self.approximate else (norm, unseen),
            caveats=self._caveats(),
            heuristic=base.unproved_norm(self.norm_source),
            spec=spec if self.kernel.spec else None,
        )

    def _caveats(self) -> tuple[str, ...]:
        if self.num_distinct <= self.max_dim:
            return () if self.num_distinct == self.num_arms else (EQUAL_FEATURES,)
        floor = self.misspecification(self.max_dim)
        if self.approximate:
            return (
                f"{self.max_dim} directions approximate the kernel on {self.num_distinct} distinct arms; with all of "
                f"them the embedding may still be wrong by {floor:.3g}. Raise max_rank if that is too much.",
            )
        return (
            f"{self.num_distinct} distinct arms but only {self.max_dim} independent directions of the kernel: that the "
            f"mean reward lies in them, up to {floor:.3g}, rests on the kernel and norm_bound alone, not on the table. "
            "If they are doubtful, use a policy that ignores the features (certified-independent).",
        )


def _decomposed(
    kernel: kernel_functions.Kernel, rows: FloatArray, copies: IntArray, bound: str, rounding: float | None
) -> tuple[FloatArray, FloatArray]:
    """psi on the n distinct arms, (n, rank), and gamma-tilde(d)/C for d = 0 .. rank, from the gram of all copies."""
    roots = np.sqrt(copies)[:, None]
    gram = kernel.gram(rows, rows)
    trace = float(copies @ np.diagonal(gram))
    _check_symmetric(gram, (rows.shape[1] + 16) * EPS if rounding is None else rounding)
    gram *= roots
    gram *= roots.T
    spectrum = factorisations.symmetric_spectrum(gram)
    values = spectrum.values
    default = EPS * (int(copies.sum()) * float(values[0]) + (rows.shape[1] + 16) * trace)
    lost = default if rounding is None else rounding * trace
    _check_positive(float(values[0]), float(values[-1]), lost, len(rows))
    lost = max(lost, -float(values[-1]))
    rank = int(np.sum(values > lost))
    values = np.maximum(values, 0.0)
    if bound == "paper":
        tails = np.sqrt(np.append(base.tail_sums(values)[:-1] + lost, 0.0))[: rank + 1]
    else:
        energies = spectrum.vectors**2
        energies *= values + lost
        energies /= copies[:, None]
        tails = base.row_tails(energies, np.zeros(1))[: rank + 1]
    scores = spectrum.vectors[:, :rank] * np.sqrt(values[:rank])
    scores /= roots
    return scores, tails


def _approximated(
    kernel: kernel_functions.Kernel,
    rows: FloatArray,
    copies: IntArray,
    bound: str,
    rounding: float | None,
    max_rank: int,
) -> tuple[FloatArray, FloatArray]:
    """The same from the columns of at most `max_rank` pivots."""
    roots = np.sqrt(copies)[:, None]
    diagonal = kernel.diagonal(rows)
    few = rows[np.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT)).astype(np.int64)]
    _check_symmetric(kernel.gram(few, few), (rows.shape[1] + 16) * EPS if rounding is None else rounding)
    share = (max_rank + rows.shape[1] + 16) * EPS if rounding is None else rounding
    lost = share * float(copies @ diagonal)
    partial = factorisations.pivoted_cholesky(
        diagonal, lambda pivot: kernel.gram(rows, rows[pivot : pivot + 1])[:, 0], max_rank=max_rank, tolerance=lost
    )
    _check_positive(float(diagonal.max()), partial.lowest, lost, len(rows))
    lost = max(lost, -partial.lowest)
    weighted = partial.factor * roots
    _, singular, right = factorisations.thin_svd(factorisations.triangular_factor(weighted))
    del weighted
    rank = int(np.sum(singular**2 > lost))
    scores = partial.factor @ right.T  # L V, which is U diag(s): no U is formed
    if bound == "paper":
        left_over = float(copies @ partial.residual) + lost
        tails = np.sqrt(base.tail_sums(singular**2) + left_over)[: rank + 1]
    else:
        tails = base.row_tails(scores**2, partial.residual + lost)[: rank + 1]
    return scores[:, :rank], tails


def _check_symmetric(gram: FloatArray, share: float) -> None:
    """Refuse a gram matrix (n, n) that is 0, or that rounding, a share of its largest entry, leaves asymmetric."""
    largest = float(np.abs(gram).max())
    if largest == 0:
        raise InvalidInput("the kernel is zero for all pairs of arms; every arm would look the same.")
    skew = float(np.abs(gram - gram.T).max())
    if skew > NEGATIVE_SHARE * share * largest:
        raise InvalidInput(
            f"the kernel is not symmetric: k(x, z) and k(z, x) differ by up to {skew:.3g} (largest entry "
            f"{largest:.3g}); a kernel must not depend on the order of its arguments."
        )


def _check_positive(largest: float, smallest: float, lost: float, num_arms: int) -> None:
    """Refuse a gram matrix with an eigenvalue, or a pivot, so far below 0 that rounding does not explain it."""
    if largest <= 0 or smallest < -NEGATIVE_SHARE * lost:
        raise InvalidInput(
            f"the kernel is not positive semi-definite on these {num_arms} arms: {smallest:.3g} where at least 0 is "
            f"needed (rounding explains {lost:.1g}, largest {largest:.3g}). No function space has it as kernel, "
            "so norm_bound would mean nothing. Use another kernel; or raise `rounding` if its values are only so exact."
        )


def _check(matrix: FloatArray, bound: str, nystrom_above: int, max_rank: int, rounding: float | None) -> None:
    """Refuse arms without a feature column, shape (K, 0), and parameters without meaning."""
    if matrix.shape[1] == 0:
        raise InvalidInput("the arms have no feature column; a kernel embedding needs at least one.")
    check_choice("bound", bound, BOUNDS)
    if nystrom_above < 0 or max_rank < 1:
        raise InvalidInput(
            f"nystrom_above is {nystrom_above} and max_rank {max_rank}; they must be at least 0 and 1: the most arms "
            "whose gram matrix is decomposed, and the most columns of it that are computed beyond."
        )
    if rounding is not None and not 0 < rounding < 1:
        raise InvalidInput(f"rounding is {quoted(rounding)}; it is a share, in (0, 1), or None for machine precision.")
