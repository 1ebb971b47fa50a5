"""Small truths of which every outcome is enumerated, and processes whose weights depend on earlier outcomes."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators import NoiseMgf, noise_mgf_after, with_squares
from surepick.estimators.running_processes import ArmVectors, MeanProcesses, VectorProcesses
from surepick.linalg.factorisations import whitened
from surepick.noise import Noise
from surepick.policies.sequential import state

# --- truths


@dataclass(frozen=True)
class TwoValued:
    """Arms whose rewards have two values each.

    Args:
        noise: what is declared of the rewards, and holds.
        low, high: the values, shape (K,).
        chance: of the high one, shape (K,).
    """

    noise: Noise
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray

    @property
    def means(self) -> np.ndarray:
        return self.low + self.chance * (self.high - self.low)

    def outcomes(self, counts: np.ndarray) -> Iterator[tuple[float, Observations]]:
        """(probability, what is seen) of a batch."""
        for highs in itertools.product(*(range(count + 1) for count in counts)):
            ones = np.array(highs)
            chance = math.prod(
                math.comb(n, k) * q**k * (1.0 - q) ** (n - k)
                for n, k, q in zip(counts.tolist(), highs, self.chance.tolist(), strict=True)
            )
            sums, squares = (ones * self.high**power + (counts - ones) * self.low**power for power in (1, 2))
            yield chance, Observations(counts, sums, squares)


def bernoulli(means, *, minimised: bool = False) -> TwoValued:
    """Rewards 0 and 1; told as 0 and -1 if small ones are good."""
    means, sign = np.asarray(means, float), -1.0 if minimised else 1.0
    return TwoValued(sp.Bernoulli(), 0.0 * means, sign + 0.0 * means, means)


def signs(means, sigma) -> TwoValued:
    """Rewards mean +- sigma, each with probability one half; a sigma for each arm."""
    means, sigma = np.asarray(means, float), np.asarray(sigma, float)
    return TwoValued(sp.SubGaussian(tuple(sigma)), means - sigma, means + sigma, np.full(len(means), 0.5))


def skewed(means) -> TwoValued:
    """Rewards -1 and 2, in [-1, 2]: the high one is rare where the mean is low."""
    means = np.asarray(means, float)
    return TwoValued(sp.Bounded(-1.0, 2.0), -1.0 + 0.0 * means, 2.0 + 0.0 * means, (means + 1.0) / 3.0)


TRUTHS: dict[str, Callable[[np.random.Generator, int], TwoValued]] = {
    "bernoulli": lambda rng, num_arms: bernoulli(rng.uniform(0.05, 0.95, num_arms)),
    "minimised": lambda rng, num_arms: bernoulli(rng.uniform(0.05, 0.95, num_arms), minimised=True),
    "a scale per arm": lambda rng, num_arms: signs(rng.normal(1.0, 0.5, num_arms), rng.uniform(0.2, 1.2, num_arms)),
    "skewed": lambda rng, num_arms: skewed(rng.uniform(-0.9, 0.5, num_arms)),
}


# --- processes, with every flow added up a second time


@dataclass(frozen=True)
class Held:
    """Processes after some batches.

    Args:
        chance: the probability of this outcome.
        processes: of the code.
        flows: every F_j(x), shape (K, K), as added up here.
        seen: all batches together.
    """

    chance: float
    processes: MeanProcesses | VectorProcesses
    flows: np.ndarray
    seen: Observations

    def log_martingales(self, means: np.ndarray) -> np.ndarray:
        """log M_j = sum w (r - h) - sum cost, shape (K,)."""
        return self.processes.log_values - self.flows @ means

    def anew(self, rng: np.random.Generator) -> "Held":
        """A new start of a fifth of the processes."""
        arms = np.flatnonzero(rng.random(len(self.flows)) < 0.2)
        flows = np.array(self.flows)
        flows[arms] = 0.0
        weights = state.start_weights(self.processes.starts[arms] + 1)
        return Held(self.chance, self.processes.restarted(arms, weights), flows, self.seen)

    def after(self, chance: float, processes: MeanProcesses | VectorProcesses, flows, seen: Observations) -> "Held":
        """With one more batch."""
        return Held(self.chance * chance, processes, flows, self.seen.plus(seen))


Bet = Callable[[Held, Observations, NoiseMgf, np.random.Generator], tuple[MeanProcesses | VectorProcesses, np.ndarray]]


def bet_on_means(
    past: Held, seen: Observations, noise_mgf: NoiseMgf, rng: np.random.Generator
) -> tuple[MeanProcesses, np.ndarray]:
    """Flows of either sign on own pulls and those of any other arm; often matched with one, and others freed."""
    processes, flows, num_arms = past.processes, np.array(past.flows), len(past.flows)
    arms, candidate = np.flatnonzero(rng.random(num_arms) < 0.8), int(rng.integers(num_arms))
    drawn, loose, matched = (
        rng.normal(0.8, 1.2, num_arms),
        rng.normal(0.0, 1.2, (num_arms, num_arms)),
        rng.random() < 0.6,
    )
    taken = np.where(seen.counts > 0, drawn, processes.taken)[arms]
    flows[arms, arms] -= taken - processes.taken[arms]
    given = {}
    for other in np.flatnonzero(seen.counts):
        wanted = (taken if other == candidate else 0.0 * taken) if matched else loose[other, arms]
        given[int(other)] = np.where(arms == other, processes.given_to(other)[arms], wanted)
        flows[arms, other] += given[int(other)] - processes.given_to(other)[arms]
    return processes.after(arms, taken, given, seen, noise_mgf), flows


def bet_on_vectors(vectors: ArmVectors) -> Bet:
    """Directions of any kind, for any candidate."""

    def bet(
        past: Held, seen: Observations, noise_mgf: NoiseMgf, rng: np.random.Generator
    ) -> tuple[VectorProcesses, np.ndarray]:
        flows, num_arms = np.array(past.flows), len(past.flows)
        arms = np.flatnonzero(rng.random(num_arms) < 0.8)
        noise_scales = noise_mgf.noise_scales(0.3)
        directions = rng.normal(0.0, 0.7, (len(arms), vectors.white.shape[1])) * float(noise_scales.min()) ** 2
        flows[arms] += directions @ (vectors.white / noise_scales[:, None] ** 2).T * seen.counts
        candidate = int(rng.integers(num_arms))
        return past.processes.after(vectors, candidate, arms, directions, seen, noise_scales, noise_mgf), flows

    return bet


def few_pulls(rng: np.random.Generator, num_arms: int, most: int) -> np.ndarray:
    """Between one pull and `most`, of any arms: what came of a batch, or all of it."""
    return np.bincount(rng.integers(0, num_arms, int(rng.integers(1, most + 1))), minlength=num_arms)


def played_to_the_end(
    truth: TwoValued, first: Held, bet: Bet, *, batches: int, seed: int, noise: Noise | None = None
) -> list[Held]:
    """All outcomes of so many batches, each of one to three pulls. Counts, new starts and weights depend on the past.

    Args:
        noise: what the processes are told of the noise; the truth if not given.
    """
    ends, told = [first], truth.noise if noise is None else noise
    for batch in range(batches):
        grown = []
        for place, past in enumerate(ends):
            counts = few_pulls(np.random.default_rng([seed, batch, place, 0]), len(first.flows), 3 if batch == 0 else 2)
            begun = past.anew(np.random.default_rng([seed, batch, place, 1]))
            noise_mgf = noise_mgf_after(told, past.seen)
            for chance, seen in truth.outcomes(counts):
                rng = np.random.default_rng([seed, batch, place, 2])  # the same for all outcomes of the batch
                processes, flows = bet(begun, with_squares(told, seen), noise_mgf, rng)
                grown.append(begun.after(chance, processes, flows, seen))
        ends = grown
    return ends


def nothing_on_means(num_arms: int) -> Held:
    """Before the first batch."""
    processes = MeanProcesses.started(num_arms, float(state.start_weights(np.ones(1, np.int64))[0]))
    return Held(1.0, processes, np.zeros((num_arms, num_arms)), Observations.nothing(num_arms))


def nothing_on_vectors(vectors: ArmVectors) -> Held:
    """Before the first batch."""
    num_arms = vectors.embedded.num_arms
    processes = VectorProcesses.started(vectors, float(state.start_weights(np.ones(1, np.int64))[0]))
    return Held(1.0, processes, np.zeros((num_arms, num_arms)), Observations.nothing(num_arms))


def drawn_vectors(rng: np.random.Generator, num_arms: int, dim: int, gamma: float) -> ArmVectors:
    """Vectors of the normal law, the last one zero or a copy of another now and then."""
    features = rng.standard_normal((num_arms, dim)) * rng.uniform(0.3, 2.0)
    if rng.random() < 0.3:
        features[-1] = rng.choice([0.0, 1.0]) * features[0]
    return ArmVectors.of(sp.Embedding(features, gamma), whitened(features).basis, float(rng.uniform(0.5, 3.0)))


# --- line 12, with every flow kept


@dataclass(frozen=True)
class Bound:
    """The infimum of (threshold - L_j + B_jc(T)) / T over T > 0.

    Args:
        value: of the infimum; -inf where M_j has reached the threshold whatever the truth is.
        theta, eta: a truth of the model at which it is attained.
    """

    value: float
    theta: np.ndarray
    eta: np.ndarray


GRID = np.append(0.0, np.geomspace(1e-6, 1e6, 361))


def least_bound(
    vectors: ArmVectors, flow: np.ndarray, log_value: float, arm: int, candidate: int, threshold: float
) -> Bound:
    """By brute force: with u = 1/T what is minimised is convex.

    u (threshold - L) + C ||u G - y|| + gamma sum_x |u F(x) - 1{x = c} + 1{x = j}|,     G = sum_x F(x) z_x
    """
    features, gamma, norm_bound = vectors.embedded.features, vectors.embedded.misspecification, vectors.norm_bound
    pair = np.zeros(len(flow))
    pair[[candidate, arm]] = 1.0, -1.0

    def deviation(inverse: np.ndarray) -> np.ndarray:
        return np.multiply.outer(inverse, flow) - pair

    def value(inverse: np.ndarray) -> np.ndarray:
        apart = deviation(inverse)
        slope = np.sqrt(np.sum((apart @ features) ** 2, axis=-1))
        return inverse * (threshold - log_value) + norm_bound * slope + gamma * np.sum(np.abs(apart), axis=-1)

    steps = GRID / (np.abs(flow).sum() or 1.0)
    for _ in range(8):
        best = int(np.argmin(value(steps)))
        least = float(steps[best])
        steps = np.linspace(steps[max(best - 1, 0)], steps[min(best + 1, len(steps) - 1)], 41)
    apart = deviation(np.array(least))
    direction = apart @ features
    length = float(np.sqrt(direction @ direction))
    theta = norm_bound * direction / length if length > 0.0 else 0.0 * direction
    whole = norm_bound * float(np.sqrt(np.sum((flow @ features) ** 2))) + gamma * float(np.abs(flow).sum())
    reached = threshold - log_value + whole < 0.0
    return Bound(-np.inf if reached else float(value(np.array(least))), theta, gamma * np.sign(apart))
