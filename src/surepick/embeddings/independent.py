"""No structure: every arm has its own parameter."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from surepick.core.arrays import record
from surepick.core.design import IndependentArms
from surepick.core.validation import whole_number
from surepick.embeddings.base import EmbeddingTraits
from surepick.errors import InvalidInput


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
