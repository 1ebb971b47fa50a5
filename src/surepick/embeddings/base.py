"""What every embedding offers: vectors for the arms, and a bound on how wrong a linear function of them can be."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from surepick.core.design import Embedding, IndependentArms


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
    def heuristic(self) -> str:
        """Why no theorem backs the misspecification bound; "" when one does."""
        ...

    def misspecification(self, dim: int) -> float:
        """gamma-tilde(d) in reward units; infinite where nothing is promised. Non-increasing in d."""
        ...

    def at(self, dim: int) -> Embedding | IndependentArms:
        """The d-dimensional embedding, features of shape (K, d)."""
        ...

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences that the bound rests on."""
        ...

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences that a user should read before spending: assumptions that these arms do not imply."""
        ...

    @property
    def family(self) -> str:
        """What kind it is, in one word: "linear", "kernel", "independent"."""
        ...

    @property
    def spec(self) -> dict[str, object] | None:
        """The plain options that rebuild it from the arms, or None when its parts have no name."""
        ...
