"""An embedding with one coordinate more, the same for every arm: the level of the rewards, where blocks move it."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from surepick.core.arrays import record
from surepick.core.design import Embedding, IndependentArms
from surepick.embeddings.base import ArmEmbedding, EmbeddingTraits, checked_dim
from surepick.linalg.factorisations import row_norms

MOST_KEPT = 2  # dimensions whose features are kept


@record
class WithLevel:
    """The family psi_{d-1} of an embedding, and a coordinate that all arms have alike.

        <(psi_{d-1}(x), s), (theta, 0)> = <psi_{d-1}(x), theta>

    So what the embedding promises holds with the same norm and the same misspecification, and differences of arms are
    as they were. Designs and fits that have the coordinate count no level of the rewards as known: A^-1 of a difference
    y is then that of (sum w z z' - sum w z sum w z' / sum w)^-1, what one block tells.

    Args:
        inner: the embedding, with features.
    """

    inner: ArmEmbedding
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
    def norm_bound(self) -> float | None:
        return self.inner.norm_bound

    @property
    def traits(self) -> EmbeddingTraits:
        return self.inner.traits

    def misspecification(self, dim: int) -> float:
        """That of the d - 1 other dimensions; infinite where there are none."""
        return np.inf if dim == 1 else self.inner.misspecification(dim - 1)

    def at(self, dim: int) -> Embedding | IndependentArms:
        """The features of d - 1 dimensions, and a last one that is as large as the longest of these, for every arm.

        Raises:
            InvalidInput: there is none of that dimension.
        """
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
