"""What the theorem on Algorithm 2 asks for: the neural effective dimension, and the parameters under two readings.

H is the neural tangent kernel's gram matrix of the K arms, s_1 >= s_2 >= ... its eigenvalues, L the network's depth:

    d_eff(t) = min {d >= 1 : sum_{i > d} s_i <= t}                                     (Definition 2, neural version)

`theorem_parameters` takes the choice as the theorem prints it, `proof_parameters` the choice with which every named
step of its proof goes through; `TheoremParameters.unmet` lists the steps that fail. Neither is a plan that could be
carried out: docs/neural-guarantee.md.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.records import FloatArray, record
from surepick.core.values import as_number, positive_number, probability, whole_number
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.text import quoted
from surepick_bench.theory import spectra
from surepick_bench.theory.complexity import checked_means

ROUNDING_ALLOWANCE = 1e-9
NOISE_FACTOR = 1024.0
BIAS_FACTOR = 4096.0
TRAINING_FACTOR = 96.0


@record
class TheoremInstance:
    """What a choice of parameters is made for.

    Args:
        constant_2: C_2, in the number of steps; the constant of Lemma 8 is C = 1 / (16 sqrt(C_2)), 0 for an infinite
            C_2.
    """

    num_arms: int  # K, at least 2
    reward_norm: float  # S >= sqrt(h' H^-1 h), in reward units per square root of a unit of H
    epsilon: float  # in reward units, positive
    delta: float  # in (0, 1)
    slack: float  # zeta, positive
    depth: int  # depth, width: L, at least 2, and m, which enters the step sizes only
    width: int
    sigma: float = 1.0  # the sub-Gaussian scale of the noise, in reward units; 1 in the paper
    constant_1: float = 1.0  # C_1, in the step size; the theorem leaves both constants without a value
    constant_2: float = 1.0

    def __post_init__(self) -> None:
        whole_number("the number of arms", self.num_arms, least=2, meaning="with one arm there is nothing to find.")
        positive_number("reward_norm", self.reward_norm, "S; with infinity no choice exists.")
        positive_number("epsilon", self.epsilon, "with 0 the number of rounds is infinite.")
        probability("delta", self.delta, "the probability of a wrong answer.")
        positive_number("slack", self.slack, "what rounding to whole pulls may cost.")
        positive_number("sigma", self.sigma, "the sub-Gaussian scale of the noise.")
        whole_number("depth", self.depth, least=2, meaning="the theorem's networks have a hidden layer.")
        whole_number("width", self.width, least=1, meaning="the nodes of a hidden layer.")
        positive_number("constant_1", self.constant_1, "a constant of the theorem that has no published value.")
        if not as_number("constant_2", self.constant_2) > 0.0:
            raise InvalidInput(
                f"constant_2 is {quoted(self.constant_2)}; it must be positive: a constant without a value."
            )

    @property
    def training_constant(self) -> float:
        """C = 1 / (16 sqrt(C_2))."""
        return 1.0 / (16.0 * math.sqrt(self.constant_2))

    def delta_of(self, number: int) -> float:
        """delta_k = delta / (8 k^2); the sum over all k is .21 delta."""
        return self.delta / (8.0 * number**2)

    def log_pairs(self, number: int) -> float:
        """log(K^2 / delta_k)."""
        return math.log(self.num_arms**2 / self.delta_of(number))

    @property
    def largest_regularisation(self) -> float:
        """(3 - 2 sqrt 2) sigma^2 log(K^2 / delta_1) / S^2: the largest alpha for which the factor 1024 is enough."""
        return (3.0 - 2.0 * math.sqrt(2.0)) * self.sigma**2 * self.log_pairs(1) / self.reward_norm**2

    def pulls_of(self, number: int, dim: int, factor: float) -> int:
        """max(factor * 4^k (1 + zeta) A log(K^2 / delta_k), r_A), rounded up."""
        wanted = factor * 4.0**number * (1.0 + self.slack) * dim * self.log_pairs(number)
        return max(math.ceil(wanted), rounding_floor(dim, self.slack))


@record
class TheoremRound:
    """One round of Algorithm 2 under a choice of parameters.

    Args:
        printed_steps: log(C_2 epsilon^2 alpha / (N_k L)) / (eta_k m L), the theorem's J_k. Negative, as the logarithm's
            argument is below 1 (infinite for an infinite C_2), and too small in size by about L / alpha: see `steps`.
        steps: the fewest J with (1 - eta_k m alpha)^(J/2) sqrt(N_k L / alpha) <= epsilon / (16 C), which is what the
            proof uses; about log(N_k L / (C_2 epsilon^2 alpha)) / (eta_k m alpha): alpha where the theorem has L.
    """

    number: int  # k, from 1
    delta: float  # delta_k = delta / (8 k^2)
    pulls: int  # N_k, with the rounding floor r of A dimensions: an upper bound where d_k < A
    step_size: float  # eta_k = C_1 / (m alpha + N_k m L)
    printed_steps: float
    steps: int


@record
class TheoremParameters:
    """Algorithm 2's parameters for one instance, under the theorem's choice or the proof's.

    Args:
        log10_least_width: log10 of L^6 K^16 log(K^2 L / delta) / eps-bar^8, the width for which Lemma 2 (with constant
            1) gives what Lemma 10 needs; the other lemmas need more.
    """

    source: str  # "published" or "proof"
    instance: TheoremInstance  # what they were chosen for
    regularisation: float  # alpha
    truncation: float  # eps-bar, the tail of singular values that Algorithm 2 cuts off
    effective_dimension: int  # A
    tail: float  # sum of the eigenvalues of H beyond A
    log10_least_width: float
    rounds: tuple[TheoremRound, ...]  # the rounds; their number is n

    @property
    def pulls(self) -> int:
        """The sum of N_k."""
        return sum(one.pulls for one in self.rounds)

    @property
    def unmet(self) -> tuple[str, ...]:
        """The inequalities of the proof that these numbers violate, one sentence each; the unnamed C_{g,1} is 1.

        Source: appendix F, steps 1.2 and 1.3, Lemma 10, and the premise of Lemma 12.
        """
        goal, last = self.instance, self.rounds[-1]
        noisiest = max(self.rounds, key=lambda one: self._noise(one) * 2.0**one.number)
        slowest = max(self.rounds, key=self._descent)
        depth, share, allowed = goal.depth, goal.epsilon / 8.0, 2.0**-noisiest.number / 8.0
        bias = 8.0 * goal.reward_norm * self.truncation * math.sqrt((1.0 + goal.slack) * self.effective_dimension)
        cut = 12.0 * goal.training_constant * (last.pulls / self.regularisation) ** 3 * depth**2 * self.truncation**2
        checks = [
            (f"noise, round {noisiest.number}", self._noise(noisiest), "2^-k/8", allowed),
            ("alpha", self.regularisation, "(3 - 2 sqrt 2) sigma^2 log(K^2/delta_1)/S^2", goal.largest_regularisation),
            ("misspecification", bias, "epsilon/8", share),
            ("the last round's accuracy 2^-n", 2.0**-last.number, "epsilon", goal.epsilon),
            ("the eigenvalues beyond A", self.tail, "eps-bar^2/(2K)", self.truncation**2 / (2.0 * goal.num_arms)),
            (f"gradient descent, round {slowest.number}", self._descent(slowest), "epsilon/8", share),
            ("cutting the embedding off, last round", cut, "epsilon/8", share),
        ]
        if goal.training_constant > 0.0:
            premise = 2.0 * last.pulls * self.truncation * math.sqrt(depth)
            checks.append(("2 N eps-bar sqrt(L), last round", premise, "alpha", self.regularisation))
        return tuple(
            f"{what}: {value:.3g}, and the proof allows {name} = {limit:.3g}"
            for what, value, name, limit in checks
            if value > limit * (1.0 + ROUNDING_ALLOWANCE)
        )

    def _noise(self, one: TheoremRound) -> float:
        """2 sqrt((1 + zeta) A / N_k) (sigma sqrt(2 log(K^2 / delta_k)) + sqrt(2 alpha) S)."""
        width = 2.0 * math.sqrt((1.0 + self.instance.slack) * self.effective_dimension / one.pulls)
        spread = self.instance.sigma * math.sqrt(2.0 * self.instance.log_pairs(one.number))
        return width * (spread + math.sqrt(2.0 * self.regularisation) * self.instance.reward_norm)

    def _descent(self, one: TheoremRound) -> float:
        """2 C (1 - eta_k m alpha)^(J/2) sqrt(N_k L / alpha), J the size of the printed one if that is the choice."""
        goal = self.instance
        steps = abs(one.printed_steps) if self.source == "published" else one.steps
        shrinking = 0.5 * steps * math.log1p(-one.step_size * goal.width * self.regularisation)
        start = math.sqrt(one.pulls * goal.depth / self.regularisation)
        return 2.0 * goal.training_constant * math.exp(shrinking) * start


def theorem_parameters(spectrum: ArrayLike, **settings: Any) -> TheoremParameters:
    """Algorithm 2's parameters as its theorem prints them.

        alpha = min(1, log(K^2) / S),   n = ceil(log2(1 / epsilon)),   A = d_eff(eps-bar^2 / K)
        eps-bar^2 = min( alpha^2 / (r_K^2 L),   epsilon^2 / ((1 + zeta) K S),
                         epsilon^7 alpha^3 / ((1 + zeta)^3 K^3 log(K^2/delta_n)^3 L^2) )
        delta_k = delta / (8 k^2),   N_k = max(4^k A (1 + zeta) log(K^2/delta_k), r_A)

    and eta_k, J_k as in `TheoremRound`. What the proof needs instead, at sigma = 1: N_k with 1024 in front of 4^k;
    alpha <= (3 - 2 sqrt 2) log(K^2/delta_1) / S^2; eps-bar^2 <= epsilon^2 / (4096 (1 + zeta) A S^2); the eigenvalues
    beyond A at most eps-bar^2 / (2 K); another eps-bar wherever N_k = r; a J_k with another sign and another
    denominator. `unmet` says which of them fail on this instance.

    Source: Theorem 7.  Differs from the paper: the logarithm in n has base 2, which the proof needs and the text leaves
    open; r = min((d^2 + d + 2)/zeta, 180 d/zeta^2), rounded up, at d = A.
    Cost: O(K^3) time for a gram matrix.
    """
    tails = spectra.spectrum_tails(*spectra.checked_spectrum(spectrum, None))
    goal = TheoremInstance(len(tails) - 1, sigma=1.0, **settings)
    positive_number("constant_2", goal.constant_2, "a constant of the theorem that has no published value.")
    arms, slack, epsilon = goal.num_arms, goal.slack, goal.epsilon
    if epsilon >= 1.0:
        raise InvalidInput(
            f"epsilon is {epsilon:g}: the theorem's n = ceil(log2(1/epsilon)) is then 0, no round and no answer. Give "
            "an epsilon below 1, or see proof_parameters."
        )
    scale, count = 1.0 + slack, math.ceil(math.log2(1.0 / epsilon))
    alpha = min(1.0, math.log(arms**2) / goal.reward_norm)
    squared = min(
        alpha**2 / (rounding_floor(arms, slack) ** 2 * goal.depth),
        epsilon**2 / (scale * arms * goal.reward_norm),
        epsilon**7 * alpha**3 / ((scale * arms * goal.log_pairs(count)) ** 3 * goal.depth**2),
    )
    dim = spectra.first_within(tails, squared / arms)
    return _parameters("published", goal, tails, alpha, squared, dim, count, factor=1.0)


def proof_parameters(spectrum: ArrayLike, **settings: Any) -> TheoremParameters:
    """Algorithm 2's parameters with which every named step of the proof goes through; `unmet` is empty.

        n = max(1, ceil(log2(1 / epsilon))),   delta_k = delta / (8 k^2),   L_k = log(K^2 / delta_k)
        N_k = max(1024 * 4^k (1 + zeta) A L_k sigma^2, r_A),   alpha = min(1, (3 - 2 sqrt 2) sigma^2 L_1 / S^2)
        eps-bar^2 = min( epsilon^2 / (4096 (1 + zeta) A S^2),
                         alpha^2 / (4 N_n^2 L),   epsilon alpha^3 / (96 C N_n^3 L^2) )      C = 1 / (16 sqrt(C_2))
        A = d_eff(eps-bar^2 / (2 K))

    A depends on eps-bar and eps-bar on A. With E(d) the right-hand side at A = d, the smallest d with
    d_eff(E(d) / (2 K)) <= d gives the largest eps-bar that satisfies both, because E does not increase in d.

    With constant_2 = inf, the last two bounds on eps-bar are dropped: a network that is exactly the regularised least
    squares on its embedding, infinitely wide and trained to the end. That is the least that the proof can cost.

    Source: ours, from the proof of Theorem 7. It repairs what can be read off the proof. The lemmas that it cites have
    constants without names and ask for a width that is not stated: no certificate rests on these numbers.
    Cost: O(K^3) time for a gram matrix.
    """
    tails = spectra.spectrum_tails(*spectra.checked_spectrum(spectrum, None))
    goal = TheoremInstance(len(tails) - 1, **settings)
    arms, count = goal.num_arms, max(1, math.ceil(math.log2(1.0 / goal.epsilon)))
    alpha = min(1.0, goal.largest_regularisation)
    factor = NOISE_FACTOR * goal.sigma**2
    for dim in range(1, arms + 1):
        squared = _largest_truncation(goal, alpha, dim, goal.pulls_of(count, dim, factor))
        if tails[dim] <= squared / (2.0 * arms):
            break
    return _parameters("proof", goal, tails, alpha, squared, dim, count, factor=factor)


def rounding_floor(dim: int, slack: float) -> int:
    """r_d(zeta) = min((d^2 + d + 2) / zeta, 180 d / zeta^2), rounded up: with less section 3 promises nothing."""
    return math.ceil(min((dim**2 + dim + 2) / slack, 180.0 * dim / slack**2))


def _parameters(
    source: str,
    goal: TheoremInstance,
    tails: FloatArray,
    alpha: float,
    squared: float,
    dim: int,
    count: int,
    *,
    factor: float,
) -> TheoremParameters:
    arms = goal.num_arms
    concentration = goal.depth**6 * math.log(arms**2 * goal.depth / goal.delta)
    width = math.log10(concentration) + 16.0 * math.log10(arms) - 4.0 * math.log10(squared)
    rounds = tuple(_round(goal, alpha, k, goal.pulls_of(k, dim, factor)) for k in range(1, count + 1))
    return TheoremParameters(source, goal, alpha, math.sqrt(squared), dim, float(tails[dim]), width, rounds)


def _round(goal: TheoremInstance, alpha: float, number: int, pulls: int) -> TheoremRound:
    step = goal.constant_1 / (alpha + pulls * goal.depth)  # eta_k m
    if step * alpha >= 1.0:
        raise InvalidInput(
            f"constant_1 is {goal.constant_1:g}: the step size times m alpha is {step * alpha:g}, and gradient descent "
            "with steps of 1 or more does not converge. Give a smaller constant_1, 1 for instance."
        )
    logarithm = math.log(goal.constant_2) + math.log(goal.epsilon**2 * alpha / (pulls * goal.depth))
    needed = 0 if logarithm >= 0.0 else math.ceil(logarithm / math.log1p(-step * alpha))
    return TheoremRound(
        number, goal.delta_of(number), pulls, step / goal.width, logarithm / (step * goal.depth), needed
    )


def _largest_truncation(goal: TheoremInstance, alpha: float, dim: int, pulls: int) -> float:
    """The largest eps-bar^2 with which A = dim and these pulls in the last round go through steps 1.1 and 1.2."""
    bias = goal.epsilon**2 / (BIAS_FACTOR * (1.0 + goal.slack) * dim * goal.reward_norm**2)
    if goal.training_constant == 0.0:
        return bias
    premise = (alpha / pulls) ** 2 / (4.0 * goal.depth)
    training = goal.epsilon * (alpha / pulls) ** 3 / (TRAINING_FACTOR * goal.training_constant * goal.depth**2)
    return min(bias, premise, training)


# --- The effective dimension and the norm that the paper's neural theory speaks of.


def neural_effective_dimension(
    features: ArrayLike,
    tolerance: float,
    *,
    depth: int = 3,
    form: str = "H",
    inputs: str = "raw",
    rounding: float | None = None,
) -> int:
    """d_eff(tolerance) of the arms: how many directions of an infinitely wide network matter.

    Source: section 5, definition of the effective dimension, neural version.
    Cost: O(K^3 + K^2 (D + L)) time.
    """
    gram = spectra.neural_gram(features, depth=depth, form=form, inputs=inputs)
    return spectra.first_within(
        spectra.spectrum_tails(*spectra.checked_spectrum(gram, rounding, columns=np.shape(features)[1])), tolerance
    )


def reward_norm(
    gram: ArrayLike, means: ArrayLike, *, range_tolerance: float = 1e-9, rounding: float | None = None
) -> float:
    """sqrt(h' H^-1 h), the smallest S that the theorem admits; infinite where h is not in the range of H.

    Args:
        gram: H, shape (K, K).
        means: h, shape (K,), in reward units.

    Source: Theorem 7.
    Cost: O(K^3) time.
    """
    matrix = spectra.checked_gram(spectra.finite_numbers(gram))
    values = checked_means(means, len(matrix))
    spectrum = symmetric_spectrum(matrix.copy())
    clipped, allowance = spectra.clipped_spectrum(spectrum.values, rounding, computed=True, columns=0)
    shares = spectrum.vectors.T @ values
    kept = clipped > allowance
    if math.sqrt(float(np.sum(shares[~kept] ** 2))) > range_tolerance * math.sqrt(float(np.sum(values**2))):
        return math.inf
    return math.sqrt(float(np.sum(shares[kept] ** 2 / clipped[kept])))
