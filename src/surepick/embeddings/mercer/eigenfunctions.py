"""Kernels whose eigenvalues and eigenfunctions are known: k(x, z) = sum_j mu_j phi_j(x) phi_j(z)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.embeddings.kernel_functions import set_positive
from surepick.errors import InvalidInput

UNDERFLOW_EXPONENT = 650.0
TAIL_ALLOWANCE = 1.0 + 1e-12  # the closed forms are evaluated to a few machine epsilons; never an underestimate
SQRT2 = math.sqrt(2.0)


@runtime_checkable
class Expansion(Protocol):
    """The Mercer expansion of a kernel with respect to some measure; eigenvalues in decreasing order."""

    def eigenvalues(self, count: int) -> FloatArray:
        """mu_1 .. mu_count, shape (count,)."""
        ...

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        """phi_j(x) for j = 1 .. count, shape (K, count); InvalidInput where x is outside the domain."""
        ...

    def diagonal(self, features: FloatArray) -> FloatArray:
        """k(x, x), shape (K,)."""
        ...

    def tails(self, count: int) -> FloatArray:
        """Proved to be at least sum_{j>d} mu_j for d = 0 .. count, shape (count + 1,); infinite without a proof."""
        ...

    @property
    def eigenfunction_bound(self) -> float:
        """C_phi >= |phi_j(x)| for every j and every x of the domain; may be infinite."""
        ...

    @property
    def max_count(self) -> int | None:
        """How many eigenfunctions there are to ask for; None for no end."""
        ...

    @property
    def num_columns(self) -> int | None:
        """How many feature columns an arm has; None for any."""
        ...

    @property
    def heuristic(self) -> str:
        """Why the expansion is not exact; empty when it is."""
        ...

    @property
    def spec(self) -> str | None:
        """The one-line text from which `parse_expansion` gives an equal expansion; None when it has no name."""
        ...


@dataclass(frozen=True, slots=True)
class SineExpansion:
    """min(x, z) on [0, 1]: rewards with h(0) = 0 and a square-integrable derivative, ||h||_H^2 = integral of h'^2.

        phi_j(x) = sqrt(2) sin((2j-1) pi x/2),   mu_j = 4/((2j-1)^2 pi^2),   C_phi = sqrt(2),   Lebesgue measure

        sum_{j>d} mu_j = (1/pi^2) sum_{j>d} (j - 1/2)^-2 = trigamma(d + 1/2)/pi^2

    by the series trigamma(z) = sum_{n>=0} (z + n)^-2 at z = d + 1/2: closed form, nothing is cut.

    Source: the paper's example in section 4; Wainwright, High-Dimensional Statistics (2019), example 12.23.
    Differs from the paper: C_phi is sqrt(2), not 1, because the eigenfunctions have norm one.
    """

    spec: ClassVar[str] = "sine"
    eigenfunction_bound: ClassVar[float] = SQRT2
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""

    def eigenvalues(self, count: int) -> FloatArray:
        return np.asarray((np.pi * (np.arange(1, count + 1) - 0.5)) ** -2.0, dtype=np.float64)

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        waves: FloatArray = SQRT2 * np.sin(np.pi * np.outer(unit_column(features), np.arange(1, count + 1) - 0.5))
        return waves

    def diagonal(self, features: FloatArray) -> FloatArray:
        return unit_column(features).copy()

    def tails(self, count: int) -> FloatArray:
        return hurwitz_zeta(2.0, np.arange(count + 1, dtype=np.float64) + 0.5) * (TAIL_ALLOWANCE / math.pi**2)


@dataclass(frozen=True, slots=True)
class HermiteExpansion:
    """exp(-gamma (x - z)^2) on the line, with a Gaussian measure of standard deviation `spread` around 0.

        a = 1/(2 spread^2),   b = (1 + 4 gamma/a)^(1/4),   D2 = a (b^2 - 1)/2,   S = a + D2 + gamma,   q = gamma/S
        mu_j = sqrt(a/S) q^(j-1)
        phi_j(x) = sqrt(b) exp(-D2 x^2) H_{j-1}(b sqrt(a) x) / sqrt(2^(j-1) (j-1)!)

    with Hermite polynomials H, evaluated by their normalised three-term recurrence. The eigenfunctions grow without
    bound on the line, so C_phi is infinite and only the pointwise bound applies. The tail is a geometric series,
    sum_{j>d} mu_j = sqrt(a/S) q^d/(1 - q).

    Args:
        gamma: inverse squared width of the kernel, > 0.
        spread: standard deviation of the measure, > 0, in feature units; about that of the arms is a good choice. It
            decides which functions come first, never whether the bound holds.

    Raises:
        InvalidInput: a parameter is not positive, or so extreme that no eigenvalue can be computed; on use: arms so far
            out (D2 x^2 > 650) that the functions underflow.

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, section 4.3.1; Fasshauer and McCourt,
        Stable evaluation of Gaussian RBF interpolants (2012).
    """

    eigenfunction_bound: ClassVar[float] = math.inf
    max_count: ClassVar[None] = None
    num_columns: ClassVar[int] = 1
    heuristic: ClassVar[str] = ""
    gamma: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        set_positive(
            self, "gamma", "it is one over the squared distance at which two arms stop telling about each other"
        )
        set_positive(self, "spread", "it is about the standard deviation of the arms' feature")
        try:
            computable = 0 < self.ratio < 1 and self._first > 0
        except (OverflowError, ZeroDivisionError):
            computable = False
        if not computable:
            raise InvalidInput(
                f"gamma {self.gamma:g} with spread {self.spread:g} leaves what floats hold: the eigenvalues fall too "
                "fast or too slowly. Take another unit for the feature, or a spread of about its standard deviation."
            )

    def eigenvalues(self, count: int) -> FloatArray:
        return self._first * self._powers(count)

    def eigenfunctions(self, features: FloatArray, count: int) -> FloatArray:
        """phi_1 .. phi_count at the arms, shape (K, count); InvalidInput where an arm is too far out."""
        x = _column(features)
        exponents = self._flattening * x**2
        far = np.flatnonzero(exponents > UNDERFLOW_EXPONENT)
        if far.size:
            raise InvalidInput(
                f"{far.size} arms lie too far from 0 for this expansion (the first is row {far[0]}, {x[far[0]]:g}, "
                f"with spread {self.spread:g} and gamma {self.gamma:g}): their eigenfunctions underflow. Centre the "
                "feature, or raise spread to about its standard deviation."
            )
        y = math.sqrt(self._precision) * self._stretch * x
        functions = np.empty((len(x), count))
        previous, current = np.zeros_like(x), math.sqrt(self._stretch) * np.exp(-exponents)
        for n in range(count):
            functions[:, n] = current
            previous, current = current, (math.sqrt(2.0) * y * current - math.sqrt(n) * previous) / math.sqrt(n + 1)
        return functions

    def diagonal(self, features: FloatArray) -> FloatArray:
        return np.ones_like(_column(features))

    def tails(self, count: int) -> FloatArray:
        sums: FloatArray = self._first / (1.0 - self.ratio) * TAIL_ALLOWANCE * self._powers(count + 1)
        return sums

    @property
    def spec(self) -> str:
        return f"hermite:{self.gamma!r}:{self.spread!r}"

    def _powers(self, count: int) -> FloatArray:
        """1, q, q^2, ..., shape (count,)."""
        powers: FloatArray = self.ratio ** np.arange(count, dtype=np.float64)
        return powers

    @property
    def _precision(self) -> float:
        return 0.5 / self.spread**2

    @property
    def _stretch(self) -> float:
        return float((1.0 + 4.0 * self.gamma / self._precision) ** 0.25)

    @property
    def _flattening(self) -> float:
        return 0.5 * self._precision * (self._stretch**2 - 1.0)

    @property
    def ratio(self) -> float:
        """q: how much smaller each eigenvalue is than the one before."""
        return self.gamma / (self._precision + self._flattening + self.gamma)

    @property
    def _first(self) -> float:
        return math.sqrt(self._precision / (self._precision + self._flattening + self.gamma))


def hurwitz_zeta(power: float, start: FloatArray) -> FloatArray:
    """sum_{n>=0} (start + n)^-power; the trigamma function at power 2."""
    from scipy.special import zeta  # noqa: PLC0415 - loaded on first use

    sums: FloatArray = zeta(power, start)
    return sums


def _column(features: FloatArray) -> FloatArray:
    """The only column of (K, 1), shape (K,); InvalidInput where there are more or none."""
    if features.shape[1] != 1:
        raise InvalidInput(
            f"the arms have {features.shape[1]} feature columns and this expansion is of one variable; choose a "
            "column, or combine one expansion per column in a ProductExpansion."
        )
    return features[:, 0]


def unit_column(features: FloatArray) -> FloatArray:
    """The only column of (K, 1), shape (K,), in [0, 1]; InvalidInput where a value lies outside, or there are more."""
    column = _column(features)
    outside = np.flatnonzero((column < 0) | (column > 1))
    if outside.size:
        raise InvalidInput(
            f"{outside.size} arms lie outside [0, 1], where this expansion is defined (the first is row {outside[0]}, "
            f"{column[outside[0]]:g}). Shift and scale the feature; norm_bound refers to the result."
        )
    return column
