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

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from surepick.core.arrays import record
from surepick.core.design import Embedding, IndependentArms
from surepick.core.validation import positive_number, probability, whole_number
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.policies.dimension import effective_dimension, embedding_design, worst_gap
from surepick.theory.critical_round import achievable_gap, critical_round
from surepick.theory.hardness import hardness
from surepick.theory.means import checked_accuracy, checked_gaps

ROUND_FACTOR = 512.0


@record
class UpperBound:
    """The most pulls that an algorithm takes, with probability 1 - delta.

    Args:
        pulls: the bound; infinite where the algorithm never gets there.
        accuracy: how much worse than the best arm the answer then is at most, in reward units.
        num_rounds: n; infinite where the algorithm never gets there.
        dims: d_k of each round, or the one dimension.
        complexities: the rho* that the bound rests on, in 1 / reward unit^2, as `dims`; values, not lower bounds.
    """

    pulls: float
    accuracy: float
    num_rounds: float
    dims: tuple[int, ...]
    complexities: tuple[float, ...]


@record
class BoundSettings:
    """What the bounds share with the algorithm that they bound.

    Args:
        delta: in (0, 1).
        sigma: the sub-Gaussian scale of the noise, in reward units.
        epsilon: the accuracy that is wanted, in reward units, 0 or more.
        slack: zeta.
        gap_bound: 2 R, at least the largest gap, in reward units; 2 is the paper's h in [-1, 1].
        looks: at how many points a round may be judged.
        tolerance: relative gap of the designs, here and in the algorithm.
    """

    delta: float
    sigma: float
    epsilon: float = 0.0
    slack: float = 0.1
    gap_bound: float = 2.0
    looks: int = 1
    tolerance: float = 0.01

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

    def round_pulls(self, embedded: Embedding | IndependentArms, complexity: float, number: int) -> float:
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
        embedding: the family psi_d and its misspecification.
        means: h, shape (K,), in reward units.
        settings: of `BoundSettings`; epsilon must be positive.

    Returns:
        UpperBound: 0 pulls where epsilon is at least gap_bound. For the paper's d_k (`dimension="effective"`) and
        policies that need no more rounds than n.

    Raises:
        ContractError: no dimension reaches epsilon.
        InvalidInput: an argument without a meaning, or a gap beyond gap_bound.

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


def upper_bound_fixed(embedded: Embedding | IndependentArms, means: ArrayLike, **settings: Any) -> UpperBound:
    """Theorem 4: the most pulls that a fixed embedding takes to find an arm as good as it can promise.

        n (512 (1 + zeta) sigma^2 rho*_d(goal) L_n + r_d + 1)
        goal = max(epsilon, gamma(d)),   n = ceil(log2(2 R / goal))

    Args:
        embedded: psi_d and gamma-tilde(d), in reward units.
        means: h, shape (K,), in reward units.
        settings: of `BoundSettings`; epsilon 0 is the paper's, and needs a misspecification above 0.

    Returns:
        UpperBound: `accuracy` is the goal; 0 pulls where it is at least gap_bound, as any arm is that good.

    Raises:
        InvalidInput: as `upper_bound_adaptive`; epsilon and gamma(d) both 0 (the number of rounds is infinite); or
            gamma(d) is infinite.

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


def upper_bound_unknown(embedded: Embedding | IndependentArms, means: ArrayLike, **settings: Any) -> UpperBound:
    """Theorem 5: pulls after which Algorithm 4, which does not know the misspecification, recommends a good arm.

        n (512 (1 + zeta) sigma^2 rho*_d(2 t_n) L_n + r_d + 1),   n = n(d), or the first n with 2 t_n <= epsilon

    From then on its recommendation is 2 t_n-best, with probability 1 - delta; without the means nobody can tell when
    that is.

    Args:
        embedded: psi_d and gamma-tilde(d), in reward units; the algorithm does not see the latter.
        means: h, shape (K,), in reward units.
        settings: of `BoundSettings`; with epsilon 0 the accuracy is the best that the algorithm reaches, gamma-bar(d).

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


def _in_rounds(
    embedded: Embedding | IndependentArms, means: ArrayLike, asked: BoundSettings, count: int, accuracy: float
) -> UpperBound:
    """n rounds at the price of the last one: 4 t_k >= accuracy, so rho*(4 t_k) <= rho*(accuracy)."""
    if count == 0:
        return UpperBound(0.0, accuracy, 0.0, (embedded.dim,), (0.0,))
    complexity = hardness(embedded, means, accuracy, tolerance=asked.tolerance).value
    pulls = count * asked.round_pulls(embedded, complexity, count)
    return UpperBound(pulls, accuracy, count, (embedded.dim,), (complexity,))


def _forced_gap(embedded: Embedding | IndependentArms, asked: BoundSettings) -> float:
    """gamma(d) with the design's own value in g(d, zeta)."""
    if embedded.misspecification == 0.0:
        return 0.0
    design = embedding_design(embedded, tolerance=asked.tolerance)
    return worst_gap(embedded.misspecification, design.value, asked.slack)
