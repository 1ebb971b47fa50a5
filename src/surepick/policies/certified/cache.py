"""What a policy keeps so as not to form it again: a memo, and no part of the policy."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from surepick.core.arrays import FloatArray
from surepick.core.design import IndependentArms
from surepick.core.observations import Observations
from surepick.designs import PosedArms
from surepick.embeddings import ArmEmbedding
from surepick.estimators import NoiseMgf, NormalMgf
from surepick.estimators.vector_processes import ArmVectors
from surepick.linalg.whitening import Whitened, whitened
from surepick.policies.certified.sampling_rule import PlugInMeans

MOST_DIMENSIONS = 2  # a study hardly ever uses more at a time
T = TypeVar("T")


class Cache:
    """Whitened coordinates of the last dimensions used, the last plug-in means, and what was worked out from the last
    processes.

    Each answer is, bit by bit, that of the function behind it: whatever is kept belongs to equal arguments, and is
    read-only. So a policy that holds one is as pure as without it. Copied and pickled as empty.
    """

    __slots__ = ("_bounds", "_guess", "_noise", "_plug_in", "_posed", "_vectors", "_white")

    def __init__(self) -> None:
        self._vectors: dict[int, ArmVectors] = {}
        self._white: dict[int, Whitened] = {}
        self._plug_in: tuple[int, Observations, PlugInMeans] | None = None
        self._guess: tuple[int, Observations, Any] | None = None
        self._bounds: tuple[object, dict[int, FloatArray]] = (None, {})
        self._posed: tuple[Hashable, PosedArms] | None = None
        self._noise: tuple[tuple[Observations, NoiseMgf | NormalMgf], ...] = ()

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        return Cache, ()

    def white(self, embedding: ArmEmbedding, dim: int) -> Whitened | None:
        """`whitened` of the features of psi_d; None without structure.

        Args:
            embedding: the same in every call.
        """
        known = self._white.get(dim)
        if known is not None:
            return known
        embedded = embedding.at(dim)
        if isinstance(embedded, IndependentArms):
            return None
        found = whitened(embedded.features)
        found.basis.flags.writeable = False
        kept = list(self._white.items())[1 - MOST_DIMENSIONS :]
        self._white = dict([*kept, (dim, found)])  # one assignment: another thread sees the old or the new
        return found

    def vectors(self, dim: int, form: Callable[[], ArmVectors]) -> ArmVectors:
        """The vectors of psi_d, formed by `form` unless they are known."""
        known = self._vectors.get(dim)
        if known is not None:
            return known
        found = form()
        kept = list(self._vectors.items())[1 - MOST_DIMENSIONS :]
        self._vectors = dict([*kept, (dim, found)])
        return found

    def plug_in(self, dim: int, seen: Observations, form: Callable[[], PlugInMeans]) -> PlugInMeans:
        """The plug-in means in d dimensions after these observations, formed by `form` unless it was the last one."""
        known = self._plug_in
        if known is not None and known[0] == dim and known[1] == seen:
            return known[2]
        found = form()
        self._plug_in = (dim, seen, found)
        return found

    def guess(self, dim: int, seen: Observations, form: Callable[[], T]) -> T:
        """A guess of the means in d dimensions after these observations, formed by `form` unless it was the last one.

        Args:
            dim: 0 without structure.
        """
        known = self._guess
        if known is not None and known[0] == dim and known[1] == seen:
            return cast(T, known[2])
        self._guess = known = None  # so that two are never held at a time
        found = form()
        self._guess = (dim, seen, found)
        return found

    def bounds(self, processes: object, candidate: int, form: Callable[[], FloatArray]) -> FloatArray:
        """The bounds that some processes give against a candidate, formed by `form` unless these were the last ones."""
        known = self._bounds
        if known[0] is not processes:
            self._bounds = known = (processes, {})
        found = known[1].get(candidate)
        if found is None:
            found = form()
            found.flags.writeable = False
            known[1][candidate] = found
        return found

    def posed(self, key: Hashable, form: Callable[[], PosedArms]) -> PosedArms:
        """Posed arms, formed by `form` unless they were the last ones.

        Args:
            key: what they depend on beside the embedding.
        """
        known = self._posed
        if known is not None and known[0] == key:
            return known[1]
        self._posed = known = None
        found = form()
        self._posed = (key, found)
        return found

    def noise(self, seen: Observations, form: Callable[[], NoiseMgf | NormalMgf]) -> NoiseMgf | NormalMgf:
        """What may be assumed of the noise after these observations, formed by `form` unless it was among the last two:
        those before a batch and after it."""
        for told, known in self._noise:
            if told is seen:
                return known
        found = form()
        self._noise = (*self._noise[-1:], (seen, found))
        return found
