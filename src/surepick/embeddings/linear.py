"""Truncated singular value decomposition of the features: the paper's section "high-dimensional linear bandits"."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surepick.embeddings.norm_source import DECLARED, check_norm_source, norm_in_words, unproved_norm
from surepick.errors import InvalidInput
from surepick.linalg import thin_svd
from surepick.records import Arms, Embedding, FloatArray, IntArray, freeze, record
from surepick.settings import as_number, positive_number

BOUNDS = ("row-tail", "paper")
EQUAL_FEATURES = "Some candidates have equal features: they are taken to have equal means."


@record
class LinearEmbedding:
    """The d leading singular directions of the features, for rewards that are linear in them.

        X = sum_i s_i u_i v_i'      psi_d(x) = (s_1 u_x1, ..., s_d u_xd)      h(x) = <x, theta>,  ||theta||_2 <= C

        "row-tail":  gamma-tilde(d) = C max_x ||(s_i u_xi)_{i > d}||_2
        "paper":     gamma-tilde(d) = C sum_{i > d} s_i

    The row tail follows from Cauchy-Schwarz, |sum_{i>d} s_i u_xi <v_i, theta>| <= ||(s_i u_xi)_{i>d}|| ||theta||, and
    is never above the paper's bound, because |u_xi| <= 1 and a 2-norm is at most a 1-norm. Directions below the
    rounding of the decomposition (singular value under max(K, D) eps s_1) are left out of `max_dim`; what they hold
    counts as misspecification.

    Args:
        features: X, shape (K, D), finite.
        norm_bound: C > 0, a bound on ||theta||_2 in reward units per feature unit.
        bound: which misspecification bound, "row-tail" or "paper".
        norm_source: "declared" (someone vouches for norm_bound), or "estimated" from measurements, which bounds
            nothing: an answer that uses it is heuristic.

    Raises:
        InvalidInput: no feature column, features all zero or not finite, norm_bound not positive, unknown bound or
            norm_source.

    Source: section 3.2 ("Application to high-dimensional linear bandits").
    Differs from the paper: the default bound is the row tail, which is smaller and valid by the argument above.
    Cost: one thin SVD, O(K D min(K, D)).
    """

    features: FloatArray
    norm_bound: float
    bound: str
    norm_source: str
    _scores: FloatArray
    _tails: FloatArray
    _rank: int
    _distinct: int

    def __init__(
        self, features: ArrayLike, *, norm_bound: float, bound: str = "row-tail", norm_source: str = DECLARED
    ) -> None:
        matrix = Arms(features).features
        if matrix.shape[1] == 0:
            raise InvalidInput("the arms have no feature column; a linear embedding needs at least one.")
        positive_number(
            "norm_bound",
            norm_bound,
            "the largest norm that the linear reward function can have. A value below the truth makes the certificate "
            "worthless.",
        )
        if bound not in BOUNDS:
            raise InvalidInput(f"bound is {bound!r}; choose one of {', '.join(map(repr, BOUNDS))}.")
        check_norm_source(norm_source)
        left, singular, _ = thin_svd(matrix)
        twins = _twins(matrix)
        left = left[twins]  # equal arms must be equal to the last bit
        if singular[0] == 0:
            raise InvalidInput("all features are zero; every arm would look the same. Give informative columns.")
        cut = max(matrix.shape) * np.finfo(np.float64).eps * singular[0]
        scores = left * singular
        object.__setattr__(self, "features", matrix)
        object.__setattr__(self, "norm_bound", float(norm_bound))
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "norm_source", norm_source)
        object.__setattr__(self, "_scores", scores)
        object.__setattr__(self, "_tails", _tails(scores, singular, bound))
        object.__setattr__(self, "_rank", int(np.sum(singular > cut)))
        object.__setattr__(self, "_distinct", len(np.unique(twins)))
        freeze(self, _scores=np.float64, _tails=np.float64)

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def max_dim(self) -> int:
        return self._rank

    @property
    def num_distinct(self) -> int:
        return self._distinct

    @property
    def heuristic(self) -> str:
        return unproved_norm(self.norm_source)

    def misspecification(self, dim: int) -> float:
        return self.norm_bound * float(self._tails[self._checked(dim)])

    def at(self, dim: int) -> Embedding:
        return Embedding(self._scores[:, : self._checked(dim)], self.misspecification(dim))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"The mean reward is a linear function of the {self.features.shape[1]} features, with a coefficient vector "
            f"of Euclidean norm at most {norm_in_words(self.norm_bound, self.norm_source)}.",
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        if self._distinct <= self._rank:
            return () if self._distinct == self.num_arms else (EQUAL_FEATURES,)
        return (
            f"{self._distinct} distinct arms but only {self._rank} independent feature directions: that the mean "
            "reward is linear in the features is an assumption about the world, not a fact about the table. If it is "
            "doubtful, use a policy that ignores the features (certified-independent).",
        )

    @property
    def family(self) -> str:
        return "linear"

    @property
    def spec(self) -> dict[str, object]:
        return {"norm_bound": self.norm_bound, "bound": self.bound, "norm_source": self.norm_source}

    def _checked(self, dim: int) -> int:
        if not 1 <= as_number("dim", dim) <= self._rank or dim != int(dim):
            raise InvalidInput(
                f"dimension {dim} was asked of an embedding of rank {self._rank}; use 1 .. {self._rank}."
            )
        return int(dim)


def _twins(matrix: FloatArray) -> IntArray:
    """For each row the first row equal to it."""
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), number) for number, row in enumerate(matrix + 0.0)], np.int64)


def _tails(scores: FloatArray, singular: FloatArray, bound: str) -> FloatArray:
    """gamma-tilde(d) / C for d = 0 .. min(K, D), from the smallest term up so that no digit is lost."""
    if bound == "paper":
        return np.append(np.cumsum(singular[::-1])[::-1], 0.0)
    energies = np.cumsum(((scores / singular[0]) ** 2)[:, ::-1], axis=1)[:, ::-1]
    return np.append(singular[0] * np.sqrt(energies.max(axis=0)), 0.0)
