"""The paper's upper bounds on the pulls of Algorithms 1, 3 and 4, given the means; corrected.

A round at accuracy t_k = R 2^-k whose bias is at most t_k / 2 takes

    N_k <= 8 sigma^2 (1 + zeta) tau(S_k) L_k / t_k^2 + r_d + 1

and tau(S_k) <= 4 max over S_k of ||psi(x*) - psi(x)||^2, every gap in S_k being below 4 t_k. So for every k

    tau(S_k) / t_k^2 <= 64 rho*_d(4 t_k)

without the factor k of Theorem 1, which averages over the rounds before it. 512 (1 + zeta) is the paper's 640 at
zeta = 1/4. The error probability is spent as delta/(k (k + 1)), a round's on its K - 1 one-sided events and its looks:

    L_k = log(looks (K - 1) k (k + 1) / delta)

The bounds hold where misspecification is as declared, with probability 1 - delta. They are worst cases: Algorithm 1
as printed took 1/90 of its bound on `sphere(100, 10)` and 1/300 on `two_clusters()` with 25 dimensions (one run each).
Pulls that a check of the embedding reserves are not in them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Embedded, IndependentArms
from surepick.core.records import FloatArray, record
from surepick.core.values import positive_number, probability, whole_number
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.policies.dimension import effective_dimension, embedding_design, worst_gap
from surepick.text import quoted
from surepick_bench.mercer import FourierExpansion, HermiteExpansion, SineExpansion
from surepick_bench.theory.complexity import achievable_gap, checked_accuracy, checked_gaps, critical_round, hardness

ROUND_FACTOR = 512.0


@record
class UpperBound:
    """The most pulls that an algorithm takes, with probability 1 - delta.

    Args:
        complexities: the rho* that the bound rests on, in 1 / reward unit^2, as `dims`; values, not lower bounds.
    """

    pulls: float  # the bound; infinite where the algorithm never gets there
    accuracy: float  # how much worse than the best arm the answer then is at most, in reward units
    num_rounds: float  # n; infinite where the algorithm never gets there
    dims: tuple[int, ...]  # d_k of each round, or the one dimension
    complexities: tuple[float, ...]


@record
class BoundSettings:
    """What the bounds share with the algorithm that they bound."""

    delta: float  # in (0, 1)
    sigma: float  # the sub-Gaussian scale of the noise, in reward units
    epsilon: float = 0.0  # the accuracy that is wanted, in reward units, 0 or more
    slack: float = 0.1  # zeta
    gap_bound: float = 2.0  # 2 R, at least the largest gap, in reward units; 2 is the paper's h in [-1, 1]
    looks: int = 1  # at how many points a round may be judged
    tolerance: float = 0.01  # relative gap of the designs, here and in the algorithm

    def __post_init__(self) -> None:
        probability("delta", self.delta, "the probability of a wrong answer.")
        positive_number("sigma", self.sigma, "the sub-Gaussian scale of the noise.")
        checked_accuracy(self.epsilon)
        positive_number("slack", self.slack, "what rounding to whole pulls may cost.")
        positive_number("gap_bound", self.gap_bound, "the largest possible gap between two arms.")
        whole_number("looks", self.looks, least=1, meaning="a round is judged at least once.")

    def rounds_to(self, accuracy: float) -> int:
        """n = ceil(log2(2 R / accuracy)): every arm left then is that good; 0 if all arms are (Alg. 1, line 1)."""
        return max(0, math.ceil(math.log2(self.gap_bound / accuracy)))

    def round_pulls(self, embedded: Embedded, complexity: float, number: int) -> float:
        """512 (1 + zeta) sigma^2 rho* L_k + r_d + 1: what round k may take, with exact designs if tolerance is 0.

        r_d = p (1 + zeta)/zeta for a design on p = min(K, d (d + 1)/2 + 1) arms; K for arms without structure.
        """
        events = self.looks * max(embedded.num_arms - 1, 1) * number * (number + 1.0)
        scale = ROUND_FACTOR * (1.0 + self.slack) * (1.0 + self.tolerance) * self.sigma**2
        rounding: float = embedded.num_arms
        if not isinstance(embedded, IndependentArms):
            support = min(embedded.num_arms, embedded.dim * (embedded.dim + 1) // 2 + 1)
            rounding = math.ceil(support * (1.0 + self.slack) / self.slack)
        return scale * complexity * math.log(events / self.delta) + (rounding + 1.0)


def upper_bound_adaptive(embedding: ArmEmbedding, means: ArrayLike, **settings: Any) -> UpperBound:
    """Theorem 1: the most pulls that adaptive embedding takes to find an epsilon-best arm.

        sum over k <= n of   512 (1 + zeta) sigma^2 rho*_{d_k}(4 t_k) L_k + r_{d_k} + 1
        n = ceil(log2(2 R / epsilon)),   d_k = d_eff(4 t_k),   t_k = R 2^-k

    Args:
        means: h, shape (K,), in reward units.

    Returns:
        UpperBound: 0 pulls where epsilon is at least gap_bound. For the paper's d_k (`dimension="effective"`) and
        policies that need no more rounds than n.

    Source: Theorem 1.  Differs from the paper: no factor k; a valid schedule; times sigma^2; scaled by R; its 640
    multiplies the rounding terms too.
    Cost: a design for each round whose dimension or accuracy is new.
    """
    asked = BoundSettings(**settings)
    goal = positive_number("epsilon", asked.epsilon, "with 0 the number of rounds is infinite.")
    checked_gaps(means, embedding.num_arms, asked.gap_bound)
    count = asked.rounds_to(goal)
    pulls, dims, complexities = 0.0, [], []
    for k in range(1, count + 1):
        accuracy = 2.0 * asked.gap_bound * 2.0**-k  # 4 t_k
        dims.append(effective_dimension(embedding, accuracy, slack=asked.slack))
        embedded = embedding.at(dims[-1])
        complexities.append(hardness(embedded, means, accuracy, tolerance=asked.tolerance).value)
        pulls += asked.round_pulls(embedded, complexities[-1], k)
    return UpperBound(pulls, goal, count, tuple(dims), tuple(complexities))


def upper_bound_fixed(embedded: Embedded, means: ArrayLike, **settings: Any) -> UpperBound:
    """Theorem 4: the most pulls that a fixed embedding takes to find an arm as good as it can promise.

        n (512 (1 + zeta) sigma^2 rho*_d(goal) L_n + r_d + 1)
        goal = max(epsilon, gamma(d)),   n = ceil(log2(2 R / goal))

    Args:
        means: h, shape (K,), in reward units.

    Returns:
        UpperBound: `accuracy` is the goal; 0 pulls where it is at least gap_bound, as any arm is that good.

    Source: Theorem 4.  Differs from the paper: the logarithm holds n (n + 1) where the theorem's lacks a square; never
    finer than epsilon; times sigma^2; scaled by R.
    Cost: two designs.
    """
    asked = BoundSettings(**settings)
    checked_gaps(means, embedded.num_arms, asked.gap_bound)
    goal = max(asked.epsilon, _forced_gap(embedded, asked))
    if not 0.0 < goal < math.inf:
        raise InvalidInput(
            f"epsilon is {asked.epsilon:g} and misspecification {embedded.misspecification:g}: the answer would have "
            f"to be {goal:g}-best, and no number of rounds belongs to that. Give a positive epsilon, or an embedding "
            "whose misspecification is finite."
        )
    return _in_rounds(embedded, means, asked, asked.rounds_to(goal), goal)


def upper_bound_unknown(embedded: Embedded, means: ArrayLike, **settings: Any) -> UpperBound:
    """Theorem 5: pulls after which Algorithm 4, which does not know the misspecification, recommends a good arm.

        n (512 (1 + zeta) sigma^2 rho*_d(2 t_n) L_n + r_d + 1),   n = n(d), or the first n with 2 t_n <= epsilon

    From then on its recommendation is 2 t_n-best, with probability 1 - delta; without the means nobody can tell when
    that is.

    Args:
        means: h, shape (K,), in reward units.

    Returns:
        UpperBound: infinite pulls and rounds where misspecification and epsilon are 0; 0 pulls, and an accuracy of
        gap_bound, where n(d) = 0.

    Source: Theorem 5.  Differs from the paper: n(d) where the theorem prints log2(n(d)); times sigma^2; scaled by R.
    Cost: as `critical_round`, and one design.
    """
    asked = BoundSettings(**settings)
    width, tolerance = asked.gap_bound, asked.tolerance
    last = critical_round(embedded, means, slack=asked.slack, gap_bound=width, tolerance=tolerance)
    if asked.epsilon > 0.0:
        last = min(last, float(asked.rounds_to(asked.epsilon)))
    if math.isinf(last):
        return UpperBound(math.inf, 0.0, math.inf, (embedded.dim,), (math.inf,))
    return _in_rounds(embedded, means, asked, int(last), achievable_gap(last, gap_bound=width))


def _in_rounds(embedded: Embedded, means: ArrayLike, asked: BoundSettings, count: int, accuracy: float) -> UpperBound:
    """n rounds at the price of the last one: 4 t_k >= accuracy, so rho*(4 t_k) <= rho*(accuracy)."""
    if count == 0:
        return UpperBound(0.0, accuracy, 0.0, (embedded.dim,), (0.0,))
    complexity = hardness(embedded, means, accuracy, tolerance=asked.tolerance).value
    pulls = count * asked.round_pulls(embedded, complexity, count)
    return UpperBound(pulls, accuracy, count, (embedded.dim,), (complexity,))


def _forced_gap(embedded: Embedded, asked: BoundSettings) -> float:
    """gamma(d) with the design's own value in g(d, zeta)."""
    if embedded.misspecification == 0.0:
        return 0.0
    design = embedding_design(embedded, tolerance=asked.tolerance)
    return worst_gap(embedded.misspecification, design.value, asked.slack)


# --- How fast the eigenvalues of a kernel fall, and what effective dimension that implies.
#
# gamma(d) = (16 + 8 sqrt(g(d, zeta))) C C_phi sqrt(sum_{j>d} mu_j),    g(d, zeta) <= 4 (1 + zeta) d <= 5 d  (zeta <=
# 1/4)
#
# so that, because 2 <= sqrt(5 d),   gamma(d) <= 16 sqrt(5 d) C C_phi sqrt(sum_{j>d} mu_j)

LARGEST_SLACK = 0.25


@dataclass(frozen=True, slots=True)
class PolynomialDecay:
    """mu_j <= C_k j^-beta for all j >= 1.

    Raises:
        InvalidInput: a parameter is outside its range.

    Source: the paper's assumption on eigenvalue decay, case 1.
    Differs from the paper: its condition beta > 3/2 rests on sqrt(integral from d of x^-beta) <= d^(1-beta)/(beta-1),
        where the square root of the power was forgotten; with it beta > 2 is needed.
    """

    scale: float  # C_k > 0
    rate: float  # beta > 1; a finite effective dimension for every epsilon needs beta > 2

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

    Raises:
        InvalidInput: a parameter is outside its range.

    Source: the paper's assumption on eigenvalue decay, case 2.
    """

    scale: float  # C_k > 0
    rate: float  # beta > 0

    def __post_init__(self) -> None:
        _check(self.scale, self.rate, 0.0)

    def tails(self, count: int) -> FloatArray:
        """At least sum_{j>d} mu_j for d = 0 .. count: C_k exp(-beta d)/(exp(beta) - 1), the geometric series."""
        return np.asarray(self.scale / math.expm1(self.rate) * np.exp(-self.rate * np.arange(count + 1)))

    def effective_dimension_bound(
        self, epsilon: float, *, norm_bound: float = 1.0, eigenfunction_bound: float = 1.0
    ) -> float:
        """At least d_eff(epsilon) for zeta <= 1/4.

            gamma(d) <= M epsilon sqrt(d) exp(-beta d/2),   M = 16 sqrt(5) C C_phi sqrt(C_k/beta)/epsilon
            d_eff(epsilon) <= ceil(max{(4/beta) log(2/beta), (4/beta) log M, 1})

        because exp(beta) - 1 >= beta; d >= (4/beta) log(2/beta) implies d >= (2/beta) log d, so that half of beta d/2
        pays for sqrt(d), and the other half has to reach log M.

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
