"""About how many pulls an instance needs at least, given its means: rho* and its relatives.

All of them are designs for the differences of one arm from each other arm, each divided by the accuracy that it needs,
solved to a certified gap. Nothing here is known to a policy.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Design, Embedded, IndependentArms
from surepick.core.records import FloatArray, record
from surepick.core.values import not_negative, positive_number, probability, whole_number
from surepick.designs import independent_star_design, solve_star_design
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.linalg.factorisations import whitened
from surepick.policies.dimension import SCREEN_TOLERANCE, bias, embedding_design

# --- Checks of the true means, which only complexity measures have; no policy does.


def checked_means(means: ArrayLike, num_arms: int) -> FloatArray:
    """h as K finite floats, large is good."""
    try:
        values = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"means are not an array of numbers: {error}.") from error
    if values.shape != (num_arms,):
        raise InvalidInput(f"means have shape {values.shape} for {num_arms} arms; give one mean per arm.")
    if not np.isfinite(values).all():
        raise InvalidInput(f"the mean of arm {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite.")
    return values


def checked_accuracy(epsilon: float) -> float:
    """epsilon as a finite float that is not negative."""
    return not_negative("epsilon", epsilon, "a shortfall, in reward units.")


def checked_gaps(means: ArrayLike, num_arms: int, gap_bound: float) -> FloatArray:
    """Delta_x = max h - h(x) for every arm."""
    values = checked_means(means, num_arms)
    gaps: FloatArray = values.max() - values
    if not gaps.max() <= gap_bound * (1.0 + 1e-9):
        raise InvalidInput(
            f"gap_bound is {gap_bound:g}, but these means have a gap of {gaps.max():g}: the first round would not be "
            "covered. Give a larger gap_bound."
        )
    return gaps


RELAXATION = 9.0
ROUNDING_ALLOWANCE = 1e-12


@record
class Hardness:
    """A complexity of the kind of rho*, with its certificate."""

    value: float  # reached by `design`, in pulls per squared unit of noise (1 / reward unit^2); may be infinite
    lower_bound: float  # no design has a smaller value
    design: Design | None  # where to measure if the means were known; None where the value is infinite
    reason: str = ""  # why the value is infinite; "" where it is not


@record
class PacComplexity:
    """The complexity of finding some epsilon-best arm, from the cheapest of them.

    Args:
        truncated: there were more epsilon-best arms than were tried: `value` is an upper bound of the minimum over
            all of them, and `lower_bound` says nothing about those that were not tried.
    """

    value: float  # pulls for each unit of log(1 / delta), asymptotically; may be infinite
    lower_bound: float  # the minimum over the candidates that were tried is not smaller
    arm: int  # the candidate that is cheapest to certify; the best arm where the value is infinite
    design: Design | None  # where to measure to certify it; None where the value is infinite
    num_candidates: int  # arms that were tried
    truncated: bool


def hardness(embedded: Embedded, means: ArrayLike, epsilon: float, *, tolerance: float = 0.01) -> Hardness:
    """rho*_d(epsilon): how hard the arms are to tell apart from the best one.

        rho* = min over lambda in the simplex   max over x != x*   ||psi(x*) - psi(x)||^2 in A(lambda)^-1 / w_x^2
        w_x = max(h(x*) - h(x), epsilon)

    Args:
        embedded: psi = psi_d, shape (K, d).
        means: h, shape (K,), in reward units, large is good. x* is the first arm of the largest mean.

    Source: section 3, definition of rho*_d(epsilon).
    Cost: one design of K - 1 differences.
    """
    values = checked_means(means, embedded.num_arms)
    best = int(np.argmax(values))
    return _from_gaps(embedded, best, values[best] - values, checked_accuracy(epsilon), tolerance)


def linear_hardness(
    embedded: Embedded, means: ArrayLike, epsilon: float, *, theta: ArrayLike | None = None, tolerance: float = 0.01
) -> Hardness:
    """rho-tilde*_d(epsilon): as `hardness`, with the gaps of the linear part of the means.

        w_x = max(<psi(x*) - psi(x), theta_d>, epsilon)

    x* is still the arm of the largest mean; an arm whose linear part is as large counts with epsilon.

    Args:
        theta: theta_d, shape (d,); None: least squares of the means on psi_d, all arms alike. That is not the theta_d
            for which an embedding declares its misspecification, and not the one of smallest largest error.

    Returns, Raises: as `hardness`; InvalidInput also where theta is not d finite numbers.

    Source: section 3, definition of rho-tilde*_d(epsilon).
    Cost: one design of K - 1 differences, and one factorisation for theta.
    """
    values = checked_means(means, embedded.num_arms)
    best = int(np.argmax(values))
    part = linear_part(embedded, values, theta)
    return _from_gaps(embedded, best, part[best] - part, checked_accuracy(epsilon), tolerance)


def linear_part(embedded: Embedded, means: FloatArray, theta: ArrayLike | None = None) -> FloatArray:
    """<psi(x), theta_d> for every arm, in reward units; theta_d by least squares of the means when it is not given."""
    if theta is not None:
        vector = np.asarray(theta, dtype=np.float64)
        if vector.shape != (embedded.dim,) or not np.isfinite(vector).all():
            raise InvalidInput(f"theta has shape {vector.shape}; it must be {embedded.dim} finite numbers.")
        return vector if isinstance(embedded, IndependentArms) else embedded.features @ vector
    if isinstance(embedded, IndependentArms):
        return means
    basis = whitened(embedded.features).basis  # Z'Z = K I, in the span of the columns of psi
    return np.asarray(basis @ (basis.T @ means) / len(means))


def relaxation_bound(
    embedded: Embedded, means: ArrayLike, epsilon: float, *, theta: ArrayLike | None = None, tolerance: float = 0.01
) -> float:
    """9 rho-tilde*_d(epsilon) >= rho*_d(epsilon), for epsilon at least the misspecification of theta_d.

    From <psi(x*) - psi(x), theta_d> <= Delta_x + 2 gamma-tilde <= 3 max(Delta_x, epsilon).

    Returns:
        The bound, in 1 / reward unit^2.

    Source: Proposition 1.
    """
    values = checked_means(means, embedded.num_arms)
    error = float(np.abs(values - linear_part(embedded, values, theta)).max())
    allowance = ROUNDING_ALLOWANCE * float(np.abs(values).max())
    if checked_accuracy(epsilon) < error - allowance:
        raise ContractError(
            f"epsilon is {epsilon:g}, but the linear part misses a mean by {error:g}: rho* <= 9 rho-tilde* is proved "
            "for epsilon at least that large only. Raise epsilon, or use a larger dimension."
        )
    return RELAXATION * linear_hardness(embedded, values, epsilon, theta=theta, tolerance=tolerance).value


def reference_pulls(value: float, *, sigma: float, delta: float) -> float:
    """2 sigma^2 rho* log(1 / (2.4 delta)): the pulls to which measured ones are compared.

    A lower bound on the expected pulls of every policy that finds the best arm with probability 1 - delta only for
    epsilon = 0, a unique best arm, rewards exactly linear in the embedding, and normal noise of standard deviation
    sigma. For epsilon > 0 see `pac_complexity`; for Bernoulli rewards it is no bound. Call it a reference.

    Source: Remark 2 (Soare et al. 2014; Fiez et al. 2019).  Differs from the paper: the factor 2 sigma^2.
    """
    scale = 2.0 * positive_number("sigma", sigma, "the standard deviation of the noise.") ** 2
    log_term = max(-math.log(2.4 * probability("delta", delta, "the probability of a wrong answer.")), 0.0)
    return scale * value * log_term if log_term > 0.0 else 0.0


def pac_complexity(
    embedded: Embedded,
    means: ArrayLike,
    epsilon: float,
    *,
    sigma: float,
    most_candidates: int = 32,
    tolerance: float = 0.01,
) -> PacComplexity:
    """The pulls for each unit of log(1/delta) that certifying an epsilon-best arm takes as delta goes to 0.

        2 sigma^2 min over i, lambda   max over j != i   ||psi(i) - psi(j)||^2 in A(lambda)^-1 / (h_i - h_j + epsilon)^2

    i runs over the arms with h_i > h_j - epsilon for every other j. Asymptotic, for rewards exactly linear in the
    embedding and normal noise; terms that do not grow with log(1/delta) are left out.

    Args:
        embedded: psi, shape (K, d).
        means: h, shape (K,), in reward units.

    Source: Degenne and Koolen 2019 (several correct answers), for rewards linear in the embedding.
    Cost: a loose design per candidate, and a tight one for those that may be the cheapest.
    """
    values = checked_means(means, embedded.num_arms)
    accuracy = checked_accuracy(epsilon)
    scale = 2.0 * positive_number("sigma", sigma, "the standard deviation of the noise.") ** 2
    most = whole_number("most_candidates", most_candidates, least=1, meaning="arms that are tried.")
    order = np.argsort(-values, kind="stable")
    best = int(order[0])
    rival = np.full(len(values), values[best])  # the largest mean of the other arms
    rival[best] = values[order[1]] if len(order) > 1 else -np.inf
    fit = order[(values + accuracy > rival)[order]]
    tried = fit[:most]
    if len(tried) == 0:
        return PacComplexity(math.inf, math.inf, best, None, 0, False)
    designs = {int(arm): _certifying(embedded, values, int(arm), accuracy, SCREEN_TOLERANCE) for arm in tried}
    for arm in sorted(designs, key=lambda arm: designs[arm].value):
        cheapest = min(design.value for design in designs.values())
        if designs[arm].gap > tolerance and designs[arm].lower_bound * (1.0 + tolerance) < cheapest:
            designs[arm] = _certifying(embedded, values, arm, accuracy, tolerance)
    arm = min(designs, key=lambda arm: designs[arm].value)
    lower = min(design.lower_bound for design in designs.values())
    return PacComplexity(
        scale * designs[arm].value, scale * lower, arm, designs[arm], len(tried), len(fit) > len(tried)
    )


def _certifying(embedded: Embedded, means: FloatArray, arm: int, epsilon: float, tolerance: float) -> Design:
    """The design that shows one arm to be epsilon-best; a loose one that did not converge is still a valid bracket."""
    try:
        return _star_design(embedded, arm, means[arm] - means + epsilon, tolerance)
    except NotConverged as unfinished:
        if tolerance < SCREEN_TOLERANCE:
            raise
        best: Design = unfinished.best
        return best


def _from_gaps(embedded: Embedded, best: int, gaps: FloatArray, epsilon: float, tolerance: float) -> Hardness:
    """The complexity with w = max(gaps, epsilon)."""
    scales = np.maximum(gaps, epsilon)
    scales[best] = 1.0
    if scales.min() <= 0.0:
        rival = int(np.argmin(scales))
        reason = f"Arm {rival} is as good as arm {best} and epsilon is 0: no number of pulls tells which is better."
        return Hardness(math.inf, math.inf, None, reason)
    design = _star_design(embedded, best, scales, tolerance)
    return Hardness(design.value, design.lower_bound, design)


def _star_design(embedded: Embedded, centre: int, scales: FloatArray, tolerance: float) -> Design:
    """min over lambda of max over j != c of ||psi(c) - psi(j)||^2 in A(lambda)^-1 / scale_j^2, scales (K,) positive."""
    if isinstance(embedded, IndependentArms):
        return independent_star_design(centre, scales)
    return solve_star_design(embedded.features, centre, scales, tolerance=tolerance)


# --- Algorithm 4's critical round: how long misspecification stays harmless, given the means.


def critical_round(
    embedded: Embedded, means: ArrayLike, *, slack: float = 0.1, gap_bound: float = 2.0, tolerance: float = 0.01
) -> float:
    """n(d): the last round up to which misspecification can move no difference by more than half its accuracy.

        n(d) = max {n : for all k <= n   (2 + sqrt((1 + zeta) tau(S_k))) gamma-tilde(d) <= t_k / 2}
        S_k = {x : Delta_x < 4 t_k}, S_1 all arms;   t_k = R 2^-k,   R = gap_bound / 2

    Args:
        means: h, shape (K,), in reward units.

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

    Returns:
        In reward units; 0 for an infinite n(d), gap_bound for n(d) = 0, which promises nothing.

    Source: appendix on unknown misspecification.  Differs from the paper: scaled by R (there 1).
    """
    return 0.0 if math.isinf(round_number) else gap_bound * 2.0**-round_number


def least_critical_round(misspecification: float, value: float, slack: float, *, gap_bound: float = 2.0) -> float:
    """A lower bound on n(d) that needs no means; then gamma-bar(d) <= gamma(d) = `worst_gap`.

        n(d) >= floor(log2(R / (2 (2 + sqrt((1 + zeta) tau)) gamma-tilde(d))))

    Source: Proposition 2 (tau(S_k) <= tau by inclusion; the paper names Kiefer-Wolfowitz).
    """
    shift = bias(misspecification, value, slack)
    if shift == 0.0:
        return math.inf
    room = gap_bound / (4.0 * shift)
    return float(math.floor(math.log2(room))) if room >= 1.0 else 0.0
