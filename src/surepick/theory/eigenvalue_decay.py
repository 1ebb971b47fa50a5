"""How fast the eigenvalues of a kernel fall, and what effective dimension that implies.

gamma(d) = (16 + 8 sqrt(g(d, zeta))) C C_phi sqrt(sum_{j>d} mu_j),    g(d, zeta) <= 4 (1 + zeta) d <= 5 d  (zeta <= 1/4)

so that, because 2 <= sqrt(5 d),   gamma(d) <= 16 sqrt(5 d) C C_phi sqrt(sum_{j>d} mu_j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.embeddings.mercer import FourierExpansion, HermiteExpansion, SineExpansion
from surepick.errors import InvalidInput
from surepick.text import quoted

LARGEST_SLACK = 0.25


@dataclass(frozen=True, slots=True)
class PolynomialDecay:
    """mu_j <= C_k j^-beta for all j >= 1.

    Args:
        scale: C_k > 0.
        rate: beta > 1; a finite effective dimension for every epsilon needs beta > 2.

    Raises:
        InvalidInput: a parameter is outside its range.

    Source: the paper's assumption on eigenvalue decay, case 1.
    Differs from the paper: its condition beta > 3/2 rests on sqrt(integral from d of x^-beta) <= d^(1-beta)/(beta-1),
        where the square root of the power was forgotten; with it beta > 2 is needed.
    """

    scale: float
    rate: float

    def __post_init__(self) -> None:
        _check(self.scale, self.rate, 1.0)

    def tails(self, count: int) -> FloatArray:
        """At least sum_{j>d} mu_j for d = 0 .. count, shape (count + 1,).

        C_k d^(1-beta)/(beta-1) for d >= 1, the integral of the decreasing C_k x^-beta from d; at 0 one term more.
        """
        values: FloatArray = (
            self.scale / (self.rate - 1.0) * np.arange(1, count + 1, dtype=np.float64) ** (1.0 - self.rate)
        )
        return np.append(self.scale * (1.0 + 1.0 / (self.rate - 1.0)), values)

    def effective_dimension_bound(
        self, epsilon: float, *, norm_bound: float = 1.0, eigenfunction_bound: float = 1.0
    ) -> float:
        """At least d_eff(epsilon) for zeta <= 1/4; infinite when beta <= 2.

            gamma(d) <= M d^((2-beta)/2),   M = 16 sqrt(5) C C_phi sqrt(C_k/(beta-1))
            d_eff(epsilon) <= ceil((M/epsilon)^(2/(beta-2)))

        Args:
            epsilon: the shortfall that is tolerated, in reward units, > 0.
            norm_bound: C.
            eigenfunction_bound: C_phi.

        Source: the paper's theorem on kernels, case 1.
        Differs from the paper: the exponent is 2/(beta-2), not 2/(2 beta-3), see the class.
        """
        _check_target(epsilon, norm_bound, eigenfunction_bound)
        if self.rate <= 2.0:
            return math.inf
        ratio = 16.0 * math.sqrt(5.0 * self.scale / (self.rate - 1.0)) * norm_bound * eigenfunction_bound / epsilon
        return _ceiling(2.0 / (self.rate - 2.0) * math.log(ratio))


@dataclass(frozen=True, slots=True)
class ExponentialDecay:
    """mu_j <= C_k exp(-beta j) for all j >= 1.

    Args:
        scale: C_k > 0.
        rate: beta > 0.

    Raises:
        InvalidInput: a parameter is outside its range.

    Source: the paper's assumption on eigenvalue decay, case 2.
    """

    scale: float
    rate: float

    def __post_init__(self) -> None:
        _check(self.scale, self.rate, 0.0)

    def tails(self, count: int) -> FloatArray:
        """At least sum_{j>d} mu_j for d = 0 .. count: C_k exp(-beta d)/(exp(beta) - 1), the geometric series."""
        values: FloatArray = self.scale / math.expm1(self.rate) * np.exp(-self.rate * np.arange(count + 1))
        return values

    def effective_dimension_bound(
        self, epsilon: float, *, norm_bound: float = 1.0, eigenfunction_bound: float = 1.0
    ) -> float:
        """At least d_eff(epsilon) for zeta <= 1/4.

            gamma(d) <= M epsilon sqrt(d) exp(-beta d/2),   M = 16 sqrt(5) C C_phi sqrt(C_k/beta)/epsilon
            d_eff(epsilon) <= ceil(max{(4/beta) log(2/beta), (4/beta) log M, 1})

        because exp(beta) - 1 >= beta; d >= (4/beta) log(2/beta) implies d >= (2/beta) log d, so that half of beta d/2
        pays for sqrt(d), and the other half has to reach log M.

        Args:
            epsilon: the shortfall that is tolerated, in reward units, > 0.
            norm_bound: C.
            eigenfunction_bound: C_phi.

        Source: the paper's theorem on kernels, case 2.
        Differs from the paper: its square root of the tail keeps exp(-beta d), not exp(-beta d/2); corrected here.
        """
        _check_target(epsilon, norm_bound, eigenfunction_bound)
        ratio = 16.0 * math.sqrt(5.0 * self.scale / self.rate) * norm_bound * eigenfunction_bound / epsilon
        return math.ceil(max(4.0 / self.rate * math.log(2.0 / self.rate), 4.0 / self.rate * math.log(ratio), 1.0))


def decay_of(expansion: SineExpansion | HermiteExpansion | FourierExpansion) -> PolynomialDecay | ExponentialDecay:
    """How fast the eigenvalues of an expansion fall at least.

    sine:     mu_j <= (4/pi^2) j^-2, because 2j - 1 >= j
    hermite:  mu_j = (mu_1/q) exp(-beta j) with beta = -log q
    fourier:  mu_j = v_m with m = j // 2 >= max(j/3, (j-1)/2), so at most (j/3)^(-2 rate), or rate^((j-1)/2)
    """
    if isinstance(expansion, SineExpansion):
        return PolynomialDecay(4.0 / math.pi**2, 2.0)
    if isinstance(expansion, HermiteExpansion):
        return ExponentialDecay(float(expansion.eigenvalues(1)[0]) / expansion.ratio, -math.log(expansion.ratio))
    if expansion.decay_of == "polynomial":
        return PolynomialDecay(9.0**expansion.rate, 2.0 * expansion.rate)
    return ExponentialDecay(expansion.rate**-0.5, -0.5 * math.log(expansion.rate))


def effective_dimension_of_tails(
    tails: FloatArray,
    epsilon: float,
    *,
    norm_bound: float = 1.0,
    eigenfunction_bound: float = 1.0,
    slack: float = LARGEST_SLACK,
) -> float:
    """The numeric d_eff(epsilon) of the paper's bound, from the tail sums of the eigenvalues alone.

        min {d : (16 + 8 sqrt(4 (1 + zeta) d)) C C_phi sqrt(tails[d]) <= epsilon}

    Args:
        tails: at least sum_{j>d} mu_j for d = 0, 1, ..., as `tails` of an expansion or of a decay class.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        norm_bound: C.
        eigenfunction_bound: C_phi; infinite gives infinity.
        slack: zeta.

    Returns:
        The dimension, or infinity when none of those given reaches epsilon.

    Source: Definition 1 with 4 (1 + zeta) d in place of g(d, zeta). For an embedding of given arms, whose bound is
        tighter, use `policies.dimension.effective_dimension`.
    """
    _check_target(epsilon, norm_bound, eigenfunction_bound)
    dims = np.arange(1, len(tails))
    reached = (16.0 + 8.0 * np.sqrt(4.0 * (1.0 + slack) * dims)) * np.sqrt(tails[1:]) * norm_bound * eigenfunction_bound
    enough = np.flatnonzero(reached <= epsilon)
    return int(dims[enough[0]]) if enough.size else math.inf


def _ceiling(log_value: float) -> float:
    return math.inf if log_value > 700.0 else max(math.ceil(math.exp(log_value)), 1)


def _check(scale: float, rate: float, least: float) -> None:
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(rate) and rate > least):
        raise InvalidInput(
            f"eigenvalue decay with scale {quoted(scale)} and rate {quoted(rate)}: the scale must be "
            f"positive and the rate above {least:g}, both finite, or the eigenvalues have no finite sum."
        )


def _check_target(epsilon: float, norm_bound: float, eigenfunction_bound: float) -> None:
    if not (epsilon > 0 and norm_bound > 0 and eigenfunction_bound > 0):
        raise InvalidInput(
            f"epsilon {quoted(epsilon)}, norm_bound {quoted(norm_bound)} and "
            f"eigenfunction_bound {quoted(eigenfunction_bound)} must be positive."
        )
