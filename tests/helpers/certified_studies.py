"""Instances of the certified policies: arms just outside epsilon, and a best arm that misspecification hides."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import surepick as sp
from surepick.embeddings.base import EmbeddingTraits

GAP = 1.02  # just outside epsilon = 1
CORRELATED = np.array([[1.0, 0.0], [1.0, -GAP], [0.5, -GAP], [1.5, -GAP], [0.0, -GAP]])


@dataclass(frozen=True)
class GivenVectors:
    """Two-dimensional vectors with a declared misspecification: an embedding as a user may write it."""

    features: np.ndarray
    gamma: float
    norm_bound: float | None
    traits: ClassVar[EmbeddingTraits] = EmbeddingTraits("given")

    @property
    def num_arms(self) -> int:
        return len(self.features)

    @property
    def max_dim(self) -> int:
        return self.features.shape[1]

    @property
    def num_distinct(self) -> int:
        return self.num_arms

    def misspecification(self, dim: int) -> float:
        return self.gamma

    def at(self, dim: int) -> sp.Embedding:
        return sp.Embedding(self.features, self.gamma)


# The candidate, a second arm that every design needs, the best arm, and a bad one: the last two inside the hull of the
# first two and their mirror images, where no design needs to look.
HIDING = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3], [-0.2, 0.2]])
HIDDEN = 2
