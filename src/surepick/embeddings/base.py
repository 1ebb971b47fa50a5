"""What every embedding offers: vectors for the arms, and a bound on how wrong a linear function of them can be."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.core.design import Embedding, IndependentArms
from surepick.core.validation import as_number
from surepick.errors import InvalidInput

VIEWED_ABOVE = 4_000_000  # entries


@record
class EmbeddingTraits:
    """What others must know of an embedding to describe it, to trust it and to make it again.

    Args:
        family: what kind it is, in one word: "linear", "kernel", "mercer", "exact", "independent".
        assumptions: sentences that the misspecification bound rests on.
        caveats: sentences that a user should read before spending: assumptions that these arms do not imply.
        heuristic: why no theorem backs the bound; "" when one does.
        spec: the plain options that rebuild it from the arms, or None when its parts have no name.
    """

    family: str
    assumptions: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    heuristic: str = ""
    spec: dict[str, object] | None = None


@runtime_checkable
class ArmEmbedding(Protocol):
    """A family of embeddings psi_d, d = 1 .. max_dim, of the same arms.

    h(x) = <psi_d(x), theta_d> + eta_d(x),   |eta_d(x)| <= misspecification(d) for every arm x.

    It is built from the arms alone and never sees a reward.
    """

    @property
    def num_arms(self) -> int:
        """K."""
        ...

    @property
    def max_dim(self) -> int:
        """The largest useful dimension."""
        ...

    @property
    def num_distinct(self) -> int:
        """Arms that differ; in as many dimensions every list of means is representable."""
        ...

    @property
    def norm_bound(self) -> float | None:
        """C with ||theta_d|| <= C for every d, in reward units per feature unit; None when nothing is declared."""
        ...

    @property
    def traits(self) -> EmbeddingTraits:
        """What it rests on, in words, and how to make it again."""
        ...

    def misspecification(self, dim: int) -> float:
        """gamma-tilde(d) in reward units; infinite where nothing is promised. Non-increasing in d."""
        ...

    def at(self, dim: int) -> Embedding | IndependentArms:
        """The d-dimensional embedding, features of shape (K, d).

        Raises:
            InvalidInput: there is none of that dimension.
        """
        ...


def checked_dim(dim: int, largest: int) -> int:
    """A dimension that an embedding has.

    Raises:
        InvalidInput: it is not a whole number from 1 to `largest`.
    """
    if not 1 <= as_number("dim", dim) <= largest or dim != int(dim):
        raise InvalidInput(f"dimension {dim} was asked of an embedding of rank {largest}; use 1 .. {largest}.")
    return int(dim)


def leading(scores: FloatArray, dim: int) -> FloatArray:
    """The first columns of (K, r): a view of a large array, so that nothing is copied each time; else a dense copy."""
    columns = scores[:, :dim]
    return columns if scores.size > VIEWED_ABOVE else np.ascontiguousarray(columns)


def tail_sums(values: FloatArray) -> FloatArray:
    """sum_{i > d} s_i of (n,) for d = 0 .. n, shape (n + 1,), from the smallest term up so that no digit is lost."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def row_tails(squares: FloatArray, left_over: FloatArray) -> FloatArray:
    """max_x sqrt(left_over_x + sum_{j > d} squares_xj) for d = 0 .. r, shape (r + 1,), from the smallest term up.

    `squares`, shape (K, r), is overwritten; `left_over` has shape (K,) or (1,).
    """
    backwards = squares[:, ::-1]
    np.cumsum(backwards, axis=1, out=backwards)
    squares += left_over[:, None]
    tails: FloatArray = np.sqrt(np.append(squares.max(axis=0), left_over.max()))
    return tails
