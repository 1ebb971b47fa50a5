"""The leading eigenfunctions of a kernel whose eigen-system is known: the paper's section on RKHS, as it assumes."""

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import feature_matrix
from surepick.core.plans import Embedding
from surepick.core.records import FloatArray, record, set_fields
from surepick.core.values import check_choice, whole_number
from surepick.embeddings import base
from surepick.embeddings.base import EmbeddingSpec
from surepick.embeddings.linear import KEPT_ENTRIES
from surepick.errors import InvalidInput
from surepick.linalg.rows import equal_rows
from surepick_bench.mercer.kernels import Expansion, parse_expansion

BOUNDS = ("pointwise", "paper")
EPS = float(np.finfo(np.float64).eps)
MOST_DIMENSIONS = 1_000
INCONSISTENCY = 1e-6


@record
class MercerEmbedding:
    """psi_d(x) = (sqrt(mu_1) phi_1(x), ..., sqrt(mu_d) phi_d(x)) for rewards of bounded norm in the kernel's space.

        h(x) = sum_j theta_j sqrt(mu_j) phi_j(x),   ||theta||_2 = ||h||_H <= C

        "pointwise":  gamma-tilde(d) = C max_x sqrt(k(x, x) - sum_{j<=d} mu_j phi_j(x)^2)
        "paper":      gamma-tilde(d) = C C_phi sqrt(sum_{j>d} mu_j)

    By Cauchy-Schwarz |eta_d(x)|^2 <= C^2 sum_{j>d} mu_j phi_j(x)^2, and Mercer's theorem gives that sum without a tail:
    it is what the first d terms lack to k(x, x). Rounding of the difference is covered by (16 + 8 d) eps k(x, x), and
    since the true quantity falls in d, each d may use the smallest value up to it; so it can exceed the paper's bound
    only where that is below 1e-6 C or so. The paper's tail is never a partial sum: the expansion gives a closed form.
    Equal rows of the features get equal vectors, bit by bit.

    Args:
        features: X, shape (K, D), finite, in the domain of the expansion.
        expansion: eigenvalues and eigenfunctions, or their text ("sine", "hermite:1.0:0.5").
        norm_bound: C > 0, a bound on ||h||_H in reward units per square root of kernel units.
        bound: which misspecification bound, "pointwise" or "paper".
        norm_source: "declared" (someone vouches for norm_bound), or "estimated" from measurements, which bounds
            nothing: an answer that uses it is heuristic.
        max_dim: the largest dimension; None for the number of distinct arms, at most 1,000. More than that can be
            worth it when eigenvalues fall slowly, but `KernelEmbedding` has no misspecification there at all.

    Raises:
        InvalidInput: arms outside the domain, a parameter without meaning, the paper's bound where C_phi or the tail is
            infinite, an expansion whose terms exceed k(x, x) (it is not the kernel's), or eigenfunctions that are 0 at
            all arms.

    Source: section 4 (the mapping and the paper's bound); the pointwise bound is ours.
    Differs from the paper: the default bound is pointwise, which needs no C_phi and no tail.
    Cost: O(K d) time and memory.
    """

    features: FloatArray
    expansion: Expansion
    norm_bound: float
    bound: str
    norm_source: str
    num_arms: int
    num_distinct: int
    max_dim: int
    _limit: int | None
    _scores: FloatArray
    _tails: FloatArray

    def __init__(
        self,
        features: ArrayLike,
        *,
        expansion: Expansion | str,
        norm_bound: float,
        bound: str = "pointwise",
        norm_source: str = base.DECLARED,
        max_dim: int | None = None,
    ) -> None:
        matrix = np.asarray(feature_matrix(features), dtype=np.float64)
        expansion = parse_expansion(expansion) if isinstance(expansion, str) else expansion
        base.check_norm(norm_bound, norm_source, of=base.IN_SPACE)
        _check(matrix, expansion, bound, max_dim)
        classes = equal_rows(matrix)
        distinct = len(classes.first)
        count = min(distinct, MOST_DIMENSIONS) if max_dim is None else int(max_dim)
        count = count if expansion.max_count is None else min(count, expansion.max_count)
        scores = expansion.eigenfunctions(matrix, count) * np.sqrt(expansion.eigenvalues(count))
        if not scores.any():
            raise InvalidInput("all eigenfunctions are zero at these arms; every arm would look the same.")
        scores = scores[classes.first[classes.group]]  # where a row stands may decide the last bit
        tails = (
            expansion.eigenfunction_bound * np.sqrt(expansion.tails(count))
            if bound == "paper"
            else _pointwise_tails(expansion.diagonal(matrix), scores, bool(expansion.heuristic))
        )
        tails = np.minimum.accumulate(tails)
        rank = max(int(np.argmin(tails)), 1)
        set_fields(self, features=matrix, expansion=expansion, norm_bound=float(norm_bound), bound=bound)
        set_fields(self, norm_source=norm_source, num_arms=len(matrix), num_distinct=distinct, max_dim=rank)
        set_fields(self, _limit=None if max_dim is None else int(max_dim))
        set_fields(self, _scores=scores[:, :rank], _tails=tails[: rank + 1])

    def misspecification(self, dim: int) -> float:
        return self.norm_bound * float(self._tails[base.checked_dim(dim, self.max_dim)])

    def at(self, dim: int) -> Embedding:
        return Embedding(base.leading(self._scores, base.checked_dim(dim, self.max_dim)), self.misspecification(dim))

    @property
    def traits(self) -> base.EmbeddingTraits:
        named = self.expansion.spec or "given by hand"
        norm = (
            f"The mean reward is a function of norm at most {base.norm_in_words(self.norm_bound, self.norm_source)} in "
            f"the reproducing kernel Hilbert space of the expansion {named}."
        )
        one = "The eigenvalues, eigenfunctions and kernel diagonal given by hand belong to one kernel."
        caveat = (
            f"With all {self.max_dim} eigenfunctions the embedding may still be wrong by "
            f"{self.misspecification(self.max_dim):.3g}. Raise max_dim, or give the kernel itself (kernel= in place of "
            "expansion=), if that is too much."
        )
        spec = {name: getattr(self, name) for name in ("norm_bound", "bound", "norm_source")}
        return base.EmbeddingTraits(
            "mercer",
            assumptions=(norm,) if self.expansion.spec else (norm, one),
            caveats=(caveat,),
            heuristic=self.expansion.heuristic or base.unproved_norm(self.norm_source),
            spec={"expansion": self.expansion.spec, **spec, "max_dim": self._limit} if self.expansion.spec else None,
        )


def _pointwise_tails(diagonal: FloatArray, scores: FloatArray, approximate: bool) -> FloatArray:
    """max_x sqrt(k(x, x) - ||psi_d(x)||^2 + rounding) for d = 0 .. count, shape (count + 1,), from psi (K, count).
    InvalidInput where ||psi_d(x)||^2 exceeds k(x, x) of an expansion that is not said to be approximate."""
    num_arms, count = scores.shape
    lacks = np.empty((num_arms, count + 1))
    lacks[:, 0] = diagonal
    np.cumsum(scores**2, axis=1, out=lacks[:, 1:])
    np.subtract(diagonal[:, None], lacks[:, 1:], out=lacks[:, 1:])
    worst = int(np.argmin(lacks[:, -1] / np.maximum(diagonal, np.finfo(np.float64).tiny)))
    if not approximate and lacks[worst, -1] < -INCONSISTENCY * diagonal[worst]:
        raise InvalidInput(
            f"the expansion is not that of its kernel: at row {worst} its first {count} terms sum to "
            f"{diagonal[worst] - lacks[worst, -1]:g}, above k(x, x) = {diagonal[worst]:g}. No bound would hold. Check "
            "the eigenfunctions (they must have norm one for the measure of the eigenvalues)."
        )
    np.maximum(lacks, 0.0, out=lacks)
    lacks += (16.0 + 8.0 * np.arange(count + 1)) * EPS * diagonal[:, None]
    return np.asarray(np.sqrt(lacks.max(axis=0)))


def _check(matrix: FloatArray, expansion: Expansion, bound: str, max_dim: int | None) -> None:
    """Refuse an expansion that is none, or not of the columns of (K, D), and parameters without meaning."""
    if not isinstance(expansion, Expansion):
        raise InvalidInput(
            f"expansion is a {type(expansion).__name__}; give SineExpansion(), HermiteExpansion(gamma), "
            "FourierExpansion(), a ProductExpansion of these, an ExpansionRecord, or a text such as 'sine'."
        )
    if expansion.num_columns not in (None, matrix.shape[1]):
        raise InvalidInput(
            f"the arms have {matrix.shape[1]} feature columns and the expansion is of {expansion.num_columns} "
            "variables; choose columns, or combine one expansion per column in a ProductExpansion."
        )
    check_choice("bound", bound, BOUNDS)
    if max_dim is not None:
        most = whole_number("max_dim", max_dim, least=1, meaning="the most eigenfunctions that are used.")
        if most * len(matrix) > KEPT_ENTRIES:
            raise InvalidInput(
                f"max_dim is {most}; so many eigenfunctions of {len(matrix)} arms would take "
                f"{8e-9 * most * len(matrix):.3g} GB. Take at most {max(KEPT_ENTRIES // len(matrix), 1)}."
            )
    c_phi, trace = expansion.eigenfunction_bound, float(expansion.tails(0)[0])
    if bound == "paper" and not math.isfinite(c_phi * trace):
        raise InvalidInput(
            f"the paper's bound needs a finite C_phi and a proved tail; here C_phi is {c_phi:g} and the eigenvalues' "
            f"sum is proved to be at most {trace:g}. Use bound='pointwise', which needs neither."
        )


# --- The name of the embedding by a kernel's eigenfunctions: an entry point of `surepick.embeddings` gives it.

MERCER = EmbeddingSpec(
    "surepick_bench.mercer.embedding:MercerEmbedding",
    ("expansion", "norm_bound", "bound", "max_dim", "norm_source"),
    "a kernel by its eigenfunctions, for instance expansion='hermite:1.0:0.5'",
)
