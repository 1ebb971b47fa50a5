"""The features themselves, taken to be all there is: rewards exactly linear in them."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.arms import feature_matrix
from surepick.core.arrays import FloatArray, record, set_fields
from surepick.core.design import Embedding
from surepick.embeddings.base import EmbeddingTraits
from surepick.errors import InvalidInput
from surepick.linalg.unique_rows import equal_rows


@record
class ExactFeatures:
    """psi(x) = x, gamma-tilde = 0: nothing is compressed and nothing is left out.

    Args:
        features: X, shape (K, D), finite, D >= 1.

    Raises:
        InvalidInput: there is no feature column.

    Source: the model of Fiez et al. (2019).
    """

    features: FloatArray
    num_distinct: int = field(init=False)
    norm_bound: ClassVar[None] = None

    def __post_init__(self) -> None:
        matrix = np.asarray(feature_matrix(self.features), dtype=np.float64)
        if matrix.shape[1] == 0:
            raise InvalidInput("RAGE needs features; for arms without any, use certified-independent.")
        set_fields(self, features=matrix, num_distinct=len(equal_rows(matrix).first))

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def max_dim(self) -> int:
        return int(self.features.shape[1])

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
