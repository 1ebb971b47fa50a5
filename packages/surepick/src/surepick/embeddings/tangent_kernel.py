"""The kernel of an infinitely wide ReLU network, by its arc-cosine recursion."""

from dataclasses import dataclass

import numpy as np

from surepick.core.records import FloatArray
from surepick.core.values import check_choice
from surepick.embeddings.kernel_functions import distances
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import row_norms
from surepick.text import quoted

FORMS = ("H-tilde", "H")


@dataclass(frozen=True, slots=True)
class NeuralTangentKernel:
    """The neural tangent kernel of a bias-free ReLU network of depth L, for arms of unit norm.

        Sigma^(1) = H~^(1) = <x, z>
        Sigma^(l+1) = 2 E max(u, 0) max(v, 0),   H~^(l+1) = 2 H~^(l) P(u >= 0, v >= 0) + Sigma^(l+1)
        with (u, v) normal of covariance [[1, Sigma^(l)], [Sigma^(l), 1]]

        form "H-tilde":  H~^(L)           form "H":  (H~^(L) + Sigma^(L)) / 2

    With theta the angle whose cosine is Sigma^(l), both expectations are elementary:

        Sigma^(l+1) = (sin theta + (pi - theta) cos theta) / pi,     2 P(u >= 0, v >= 0) = (pi - theta) / pi

    The recursion carries q = 1 - cos theta, so that no digit is lost near theta = 0 (docs/reference/embeddings.md).

    Args:
        depth: L >= 1, the number of weight layers; 1 is the linear kernel, 3 the paper's network.
        form: "H-tilde" is the limit of the gradient gram over m for the paper's initialisation (last layer of variance
            2/m), "H" the matrix that the paper prints, the limit for a last layer of variance 1/m.
        norm_tolerance: how far ||x|| may be from 1; rows that pass are divided by their norm.

    Raises:
        InvalidInput: depth below 1, unknown form; on use: rows whose norm is not 1.

    Source: the paper's appendix, definition of the NTK; Cho and Saul, Kernel Methods for Deep Learning (2009).
    Differs from the paper: the default is H-tilde, which its initialisation gives.
    Cost: O(n m (D + L)) time, O(n m) memory.
    """

    depth: int = 3
    form: str = "H-tilde"
    norm_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if isinstance(self.depth, bool) or self.depth != int(self.depth) or self.depth < 1:
            raise InvalidInput(f"depth is {quoted(self.depth)}; a network has an integer number of layers, at least 1.")
        check_choice("form", self.form, FORMS)
        if not 0 <= self.norm_tolerance < 1:
            raise InvalidInput(f"norm_tolerance is {quoted(self.norm_tolerance)}; it must lie in [0, 1).")
        object.__setattr__(self, "depth", int(self.depth))

    def gram(self, left: FloatArray, right: FloatArray) -> FloatArray:
        x, z = self._directions(left), self._directions(right)
        apart, along = distances(x, z), distances(x, -z)
        angle = 2.0 * np.arctan2(apart, along)
        lack = apart**2 / 2.0
        sigma = (along**2 - apart**2) / 4.0
        tangent = sigma.copy()
        for _ in range(self.depth - 1):
            tangent *= (np.pi - angle) / np.pi
            lack -= _sine_less_chord(angle) / np.pi
            np.maximum(lack, 0.0, out=lack)
            sigma = 1.0 - lack
            tangent += sigma
            angle = 2.0 * np.arcsin(np.minimum(np.sqrt(lack / 2.0), 1.0))
        return tangent if self.form == "H-tilde" else (tangent + sigma) / 2.0

    def diagonal(self, features: FloatArray) -> FloatArray:
        self._directions(features)
        return np.full(len(features), float(self.depth) if self.form == "H-tilde" else (self.depth + 1) / 2.0)

    @property
    def spec(self) -> str:
        return f"ntk:{self.depth}:{self.form}:{self.norm_tolerance!r}"

    def _directions(self, features: FloatArray) -> FloatArray:
        """The rows (n, D) divided by their norms, refused where these are not 1."""
        norms = row_norms(features)
        bad = np.flatnonzero(np.abs(norms - 1.0) > self.norm_tolerance)
        if bad.size:
            shown = ", ".join(f"{row} (norm {norms[row]:.6g})" for row in bad[:5])
            raise InvalidInput(
                f"{bad.size} of {len(norms)} rows do not have unit norm: {shown}{' ...' if bad.size > 5 else ''}. The "
                "recursion holds on the unit sphere only. Divide each row by its norm; if the norm matters for the "
                "reward, append it as surepick.embeddings.unit_rows_with_norm does."
            )
        return features / norms[:, None]


def unit_rows_with_norm(features: FloatArray) -> FloatArray:
    """Rows of norm 1 from which direction and norm of the original can be told.

        (x / |x|, |x| / R) / sqrt(1 + |x|^2 / R^2),     R the largest |x|

    Dividing by the norm alone would make rewards that depend on it unlearnable; so would appending it unscaled before
    dividing.

    Source: ours.
    """
    norms = row_norms(features)
    zero = np.flatnonzero(norms == 0.0)
    if zero.size:
        raise InvalidInput(
            f"{zero.size} rows are zero, the first is row {zero[0]}: they have no direction. Shift the features, or "
            "append a constant column (intercept=True of read_arms)."
        )
    shares = norms / norms.max()
    lifted = np.concatenate([features / norms[:, None], shares[:, None]], axis=1)
    return np.asarray(lifted / np.sqrt(1.0 + shares**2)[:, None])


def _sine_less_chord(angle: FloatArray) -> FloatArray:
    """sin t - t cos t for t in [0, pi], with its digits kept near 0 by the series t^3/3 - t^5/30 + t^7/840 - ..."""
    square = angle**2
    series = angle * square * (1 / 3 - square * (1 / 30 - square * (1 / 840 - square / 45360)))
    return np.where(angle < 0.1, series, np.sin(angle) - angle * np.cos(angle))
