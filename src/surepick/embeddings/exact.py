"""The features themselves, taken to be all there is: rewards exactly linear in them."""

from __future__ import annotations

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray, record
from surepick.core.design import Embedding
from surepick.errors import InvalidInput


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

    def __post_init__(self) -> None:
        arms = Arms(self.features)
        if arms.features.shape[1] == 0:
            raise InvalidInput("RAGE needs features; for arms without any, use certified-independent.")
        object.__setattr__(self, "features", np.asarray(arms.features, dtype=np.float64))

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def max_dim(self) -> int:
        return int(self.features.shape[1])

    @property
    def num_distinct(self) -> int:
        return len(np.unique(self.features, axis=0))

    @property
    def norm_bound(self) -> None:
        return None

    @property
    def heuristic(self) -> str:
        return ""

    def misspecification(self, dim: int) -> float:
        return 0.0 if dim == self.max_dim else np.inf

    def at(self, dim: int) -> Embedding:
        if dim != self.max_dim:
            raise InvalidInput(f"dimension {dim} was asked of features that are used whole; use {self.max_dim}.")
        return Embedding(self.features, 0.0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"The mean reward is exactly a linear function of the {self.max_dim} features.",)

    @property
    def caveats(self) -> tuple[str, ...]:
        distinct = self.num_distinct
        if distinct <= self.max_dim:
            return ()
        return (
            f"{distinct} distinct arms in {self.max_dim} feature columns: that the mean reward is exactly linear in "
            "the features is an assumption about the world. If it is doubtful, use certified-independent.",
        )

    @property
    def family(self) -> str:
        return "exact"

    @property
    def spec(self) -> dict[str, object]:
        return {}
