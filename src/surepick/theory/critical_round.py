"""Algorithm 4's critical round: how long misspecification stays harmless, given the means."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.design import Embedding, IndependentArms
from surepick.core.validation import positive_number
from surepick.policies.dimension import bias, embedding_design
from surepick.theory.means import checked_gaps


def critical_round(
    embedded: Embedding | IndependentArms,
    means: ArrayLike,
    *,
    slack: float = 0.1,
    gap_bound: float = 2.0,
    tolerance: float = 0.01,
) -> float:
    """n(d): the last round up to which misspecification can move no difference by more than half its accuracy.

        n(d) = max {n : for all k <= n   (2 + sqrt((1 + zeta) tau(S_k))) gamma-tilde(d) <= t_k / 2}
        S_k = {x : Delta_x < 4 t_k}, S_1 all arms;   t_k = R 2^-k,   R = gap_bound / 2

    Args:
        embedded: psi_d and gamma-tilde(d), in reward units. The misspecification that matters is the true one: build
            an `Embedding` with it where the declared bound is larger.
        means: h, shape (K,), in reward units.
        slack: zeta.
        gap_bound: 2 R, at least the largest gap, in reward units; 2 is the paper's.
        tolerance: relative gap of the designs; their values are used, so that the result is never too large.

    Returns:
        A whole number, 0 or more; infinite where the misspecification is 0.

    Raises:
        InvalidInput: means that are not K finite numbers, or a gap beyond gap_bound.

    Source: appendix on unknown misspecification, definition of n(d).  Differs from the paper: scaled by R.
    Cost: a design for each S_k that differs from the one before, until the bias is too large.
    """
    width = positive_number("gap_bound", gap_bound, "the largest possible gap between two arms.")
    gaps = checked_gaps(means, embedded.num_arms, width)
    gamma = embedded.misspecification
    if gamma == 0.0:
        return math.inf
    value, size, k = 0.0, 0, 0
    while True:
        k += 1
        accuracy = 0.5 * width * 2.0**-k
        active = np.arange(len(gaps)) if k == 1 else np.flatnonzero(gaps < 4.0 * accuracy)
        if 2.0 * gamma > accuracy / 2.0:
            return float(k - 1)
        if len(active) != size:
            value, size = embedding_design(embedded, active, tolerance=tolerance).value, len(active)
        if bias(gamma, value, slack) > accuracy / 2.0:
            return float(k - 1)


def achievable_gap(round_number: float, *, gap_bound: float = 2.0) -> float:
    """gamma-bar(d) = 2 t_n = 2 R 2^-n(d): the shortfall that Algorithm 4's recommendation reaches and keeps.

    Args:
        round_number: n(d), from `critical_round`; infinite where nothing is misspecified.
        gap_bound: 2 R, in reward units.

    Returns:
        In reward units; 0 for an infinite n(d), gap_bound for n(d) = 0, which promises nothing.

    Source: appendix on unknown misspecification.  Differs from the paper: scaled by R (there 1).
    """
    return 0.0 if math.isinf(round_number) else gap_bound * 2.0**-round_number


def least_critical_round(misspecification: float, value: float, slack: float, *, gap_bound: float = 2.0) -> float:
    """A lower bound on n(d) that needs no means; then gamma-bar(d) <= gamma(d) = `worst_gap`.

        n(d) >= floor(log2(R / (2 (2 + sqrt((1 + zeta) tau)) gamma-tilde(d))))

    Args:
        misspecification: gamma-tilde(d), in reward units.
        value: tau, the design value over all arms, or 4 d.
        slack: zeta.
        gap_bound: 2 R, in reward units.

    Returns:
        A whole number, 0 or more; infinite where the misspecification is 0.

    Source: Proposition 2 (tau(S_k) <= tau by inclusion; the paper names Kiefer-Wolfowitz).
    """
    shift = bias(misspecification, value, slack)
    if shift == 0.0:
        return math.inf
    room = gap_bound / (4.0 * shift)
    return float(math.floor(math.log2(room))) if room >= 1.0 else 0.0
