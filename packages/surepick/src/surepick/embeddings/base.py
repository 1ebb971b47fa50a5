"""What every embedding offers: vectors for the arms, and a bound on how wrong a linear function of them can be."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from surepick.core.arms import feature_matrix
from surepick.core.plans import Embedded, Embedding, IndependentArms
from surepick.core.plugins import EMBEDDINGS, plugin, plugin_names
from surepick.core.records import FloatArray, record, set_fields
from surepick.core.values import as_number, check_size, positive_number, whole_number
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import row_norms
from surepick.linalg.rows import equal_rows
from surepick.text import did_you_mean, quoted

VIEWED_ABOVE = 4_000_000  # entries


@record
class EmbeddingTraits:
    """What others must know of an embedding to describe it, to trust it and to make it again."""

    family: str  # what kind it is, in one word: "linear", "kernel", "mercer", "exact", "independent"
    assumptions: tuple[str, ...] = ()  # sentences that the misspecification bound rests on
    # sentences that a user should read before spending: assumptions that these arms do not imply
    caveats: tuple[str, ...] = ()
    heuristic: str = ""  # why no theorem backs the bound; "" when one does
    # the plain options that rebuild it from the arms, or None when its parts have no name
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

    @property
    def max_dim(self) -> int:
        """The largest useful dimension."""

    @property
    def num_distinct(self) -> int:
        """Arms that differ; in as many dimensions every list of means is representable."""

    @property
    def norm_bound(self) -> float | None:
        """C with ||theta_d|| <= C for every d, in reward units per feature unit; None when nothing is declared."""

    @property
    def traits(self) -> EmbeddingTraits:
        """What it rests on, in words, and how to make it again."""

    def misspecification(self, dim: int) -> float:
        """gamma-tilde(d) in reward units; infinite where nothing is promised. Non-increasing in d."""

    def at(self, dim: int) -> Embedded:
        """The d-dimensional embedding, features of shape (K, d).

        Raises:
            InvalidInput: there is none of that dimension.
        """


def checked_dim(dim: int, largest: int) -> int:
    """A dimension that an embedding has."""
    if not 1 <= as_number("dim", dim) <= largest or dim != int(dim):
        raise InvalidInput(f"dimension {dim} was asked of an embedding of rank {largest}; use 1 .. {largest}.")
    return int(dim)


def free_dim(embedding: ArmEmbedding) -> int:
    """The dimension beyond `max_dim` in which nothing is assumed of the arms, K; 0 where an embedding has none."""
    return int(getattr(embedding, "free_dim", 0))


def leading(scores: FloatArray, dim: int) -> FloatArray:
    """The first columns of (K, r): a view of a large array, so that nothing is copied each time; else a dense copy."""
    columns = scores[:, :dim]
    return columns if scores.size > VIEWED_ABOVE else np.ascontiguousarray(columns)


def tail_sums(values: FloatArray) -> FloatArray:
    """sum_{i > d} s_i of (n,) for d = 0 .. n, shape (n + 1,), from the smallest term up so that no digit is lost."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def row_tails(squares: FloatArray, left_over: FloatArray) -> FloatArray:
    """max_x sqrt(left_over_x + sum_{j > d} squares_xj) for d = 0 .. r, (r + 1,); squares, (K, r), are overwritten."""
    backwards = squares[:, ::-1]
    np.cumsum(backwards, axis=1, out=backwards)
    squares += left_over[:, None]
    return np.asarray(np.sqrt(np.append(squares.max(axis=0), left_over.max())))


# --- The features themselves, taken to be all there is: rewards exactly linear in them.


@record
class ExactFeatures:
    """psi(x) = x, gamma-tilde = 0: nothing is compressed and nothing is left out (Fiez et al. 2019)."""

    features: FloatArray  # X, (K, D), finite, D >= 1
    num_arms: int = field(init=False)
    max_dim: int = field(init=False)
    num_distinct: int = field(init=False)
    norm_bound: ClassVar[None] = None

    def __post_init__(self) -> None:
        matrix = np.asarray(feature_matrix(self.features), dtype=np.float64)
        if matrix.shape[1] == 0:
            raise InvalidInput("RAGE needs features; for arms without any, use certified-independent.")
        set_fields(self, features=matrix, num_arms=matrix.shape[0], max_dim=matrix.shape[1])
        set_fields(self, num_distinct=len(equal_rows(matrix).first))

    @property
    def traits(self) -> EmbeddingTraits:
        caveat = (
            f"{self.num_distinct} distinct arms in {self.max_dim} feature columns: that the mean reward is exactly "
            "linear in the features is an assumption about the world. If it is doubtful, use certified-independent."
        )
        return EmbeddingTraits(
            "exact",
            assumptions=(f"The mean reward is exactly a linear function of the {self.max_dim} features.",),
            caveats=(caveat,) if self.num_distinct > self.max_dim else (),
            spec={},
        )

    def misspecification(self, dim: int) -> float:
        return 0.0 if dim == self.max_dim else np.inf

    def at(self, dim: int) -> Embedding:
        """The features; InvalidInput where `dim` is not D."""
        if dim != self.max_dim:
            raise InvalidInput(f"dimension {dim} was asked of features that are used whole; use {self.max_dim}.")
        return Embedding(self.features, 0.0)


# --- No structure: every arm has its own parameter.


@record
class IndependentEmbedding:
    """One coordinate per arm; nothing about one arm tells anything about another.

        psi(x_i) = e_i,   gamma-tilde(K) = 0,   gamma-tilde(d) = infinity for d < K

    Args:
        num_arms: K >= 1.

    Raises:
        InvalidInput: K < 1.

    Source: ours. Design and estimation use the diagonal form; no K x K matrix is formed.
    """

    num_arms: int
    norm_bound: ClassVar[None] = None
    traits: ClassVar[EmbeddingTraits] = EmbeddingTraits("independent")

    def __post_init__(self) -> None:
        whole_number("num_arms", self.num_arms, least=1, meaning="something must be chosen among.")

    @property
    def max_dim(self) -> int:
        return self.num_arms

    @property
    def num_distinct(self) -> int:
        return self.num_arms

    def misspecification(self, dim: int) -> float:
        return 0.0 if dim == self.num_arms else np.inf

    def at(self, dim: int) -> IndependentArms:
        """The arms without structure; InvalidInput where `dim` is not K."""
        if dim != self.num_arms:
            raise InvalidInput(
                f"dimension {dim} was asked of {self.num_arms} independent arms, which cannot be compressed; "
                f"use {self.num_arms}."
            )
        return IndependentArms(self.num_arms)


# --- Where a norm bound comes from: someone vouches for it, or measurements suggest it.

DECLARED, ESTIMATED = "declared", "estimated"
NORM_SOURCES = (DECLARED, ESTIMATED)
IN_SPACE = "the reward function can have in the kernel's space"
ESTIMATED_NORM = (
    "The norm bound was estimated from measurements, which bounds nothing: rewards that differ where none was "
    "measured, or by less than the noise, may have a larger norm."
)


def check_norm(norm_bound: float, norm_source: str, *, of: str) -> None:
    """Refuse a norm bound without meaning, or a source that says nothing about who vouches for it."""
    meaning = f"the largest norm that {of}. A value below the truth makes the certificate worthless."
    positive_number("norm_bound", norm_bound, meaning)
    check_size("norm_bound", norm_bound)
    if norm_source not in NORM_SOURCES:
        raise InvalidInput(
            f"norm_source is {quoted(norm_source)}; choose 'declared' if someone vouches for norm_bound, or "
            "'estimated' if measurements suggest it: an answer that uses it is then heuristic."
        )


def unproved_norm(norm_source: str) -> str:
    """Why no theorem holds with a norm bound from there, "" if one does."""
    return ESTIMATED_NORM if norm_source == ESTIMATED else ""


def norm_in_words(norm_bound: float, norm_source: str) -> str:
    """The norm bound as an assumption names it."""
    return f"{norm_bound:g} (estimated from measurements)" if norm_source == ESTIMATED else f"{norm_bound:g}"


# --- An embedding with one coordinate more, the same for every arm: the level of the rewards, where blocks move it.

MOST_KEPT = 2  # dimensions whose features are kept


@record
class CentredWithinBlocks:
    """psi_{d-1} of an embedding, and a coordinate that all arms have alike: no level of the rewards counts as known.
    A^-1 of a difference is then that of (sum w z z' - sum w z sum w z' / sum w)^-1, what one block tells."""

    inner: ArmEmbedding  # the embedding, with features
    _kept: dict[int, Embedding] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def num_arms(self) -> int:
        return self.inner.num_arms

    @property
    def max_dim(self) -> int:
        return self.inner.max_dim + 1

    @property
    def num_distinct(self) -> int:
        return self.inner.num_distinct

    @property
    def free_dim(self) -> int:
        """That of the embedding, and one more."""
        inner = free_dim(self.inner)
        return inner + 1 if inner else 0

    @property
    def norm_bound(self) -> float | None:
        return self.inner.norm_bound

    @property
    def traits(self) -> EmbeddingTraits:
        return self.inner.traits

    def misspecification(self, dim: int) -> float:
        """That of the d - 1 other dimensions; infinite where there are none."""
        return np.inf if dim == 1 else self.inner.misspecification(dim - 1)

    def at(self, dim: int) -> Embedded:
        """The features of d - 1 dimensions, and a last one that is as large as the longest of these, for every arm."""
        if dim and dim == self.free_dim:
            return IndependentArms(self.num_arms)
        dim = checked_dim(dim, self.max_dim)
        known = self._kept.get(dim)
        if known is not None:
            return known
        features = np.empty((self.num_arms, dim))
        level = 1.0
        if dim > 1:
            features[:, :-1] = self.inner.at(dim - 1).features
            level = float(row_norms(features[:, :-1]).max(initial=0.0)) or 1.0
        features[:, -1] = level
        features.flags.writeable = False
        found = Embedding(features, self.misspecification(dim))
        while len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[dim] = found
        return found


# --- How another package gives an embedding a name.


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """How a name becomes an embedding. The entry point of another package in `surepick.embeddings` gives one.

    Args:
        path: of what makes it, "module:Class": called with the features, shape (K, D), and the options by name, it
            gives an `ArmEmbedding`, whose `traits.spec` has options that make it again.
        options: the names of its options.
        summary: one line for people who choose.
    """

    path: str
    options: tuple[str, ...]
    summary: str

    def make(self, features: Any, options: dict[str, Any]) -> ArmEmbedding:
        """The embedding of the rows of features; its options are taken out of `options`."""
        module, _, name = self.path.partition(":")
        own = {option: options.pop(option) for option in self.options if option in options}
        made: ArmEmbedding = getattr(import_module(module), name)(features, **own)
        return made


def embedding_spec(name: object) -> EmbeddingSpec:
    """The embedding that an installed package adds under this name."""
    found = plugin(EMBEDDINGS, name, EmbeddingSpec)
    if found is None:
        known = plugin_names(EMBEDDINGS)
        there = f"those that are: {', '.join(known)}." if known else "none is."
        raise InvalidInput(f"no embedding {quoted(name)} is installed; {there}{did_you_mean(name, known)}")
    return found
