"""Evidence that is carried on, on known truths: how often it speaks for an arm that is worse than epsilon.

The theorem holds for every rule that chooses arms, batch sizes, candidates and bets from earlier batches, so the rules
here are the worst that come to mind. Some reach the policy's own `tell` by plans that `ask` would never make, the
others the processes themselves. Only the process of the best arm matters: all other arms are granted.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from bounds import counted
from certified_studies import HIDDEN, HIDING
from played_together import answers
from quick_leaders import quick_leaders

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.estimators import NoiseMgf, noise_mgf_after
from surepick.estimators.running_processes import ArmVectors, Flow, MeanProcesses, VectorProcesses
from surepick.linalg.factorisations import whitened
from surepick.noise import Noise
from surepick.policies.sequential import state as rest

DELTA = 0.1
GAP = 1.002  # just over epsilon = 1
THRESHOLD = math.log(1.0 / DELTA)

# Trials of `make test`, each the least that notices its mildest saboteur except with probability 1e-2, of pairs 1e-6:
# half the noise is wrong of .34 of the pairs, of .32 of the bad candidates and of .24 of those in the plane, and
# half of the bias of .53. Studies that steer themselves hide what saboteurs do: few are enough to see one who is
# nearly always wrong, and in `make test` few in the plane are.
PAIRS, CANDIDATES, IN_THE_PLANE, BIASED, STUDIES = 280, 155, 335, 50, 23
FEW_IN_THE_PLANE = 13
LOOKS = 100  # at pairs
AT_ONCE = 500  # studies

# --- the policy steers itself


def slippage(num_arms: int, sigma: float, *, costs: list[float] | None = None) -> sp.environments.Environment:
    """The best arm, which is the first, among equals, all worse by just over epsilon = 1."""
    means = np.append(0.0, np.full(num_arms - 1, -GAP))
    return sp.environments.Environment(
        arms=sp.Arms(ids=range(num_arms), costs=costs), means=means, noise=sp.SubGaussian(sigma)
    )


@counted(DELTA)
def wrong_answers(
    world: sp.environments.Environment, runs: int, *, noise: Noise | None = None, **options
) -> Iterator[bool]:
    """Studies that stop by themselves with an arm that is worse than epsilon.

    Args:
        noise: what the policy is told; the truth if not given.
    """
    asked = {"epsilon": 1.0, "delta": DELTA, "noise": world.noise if noise is None else noise, "evidence": "carried"}
    policy, good = sp.make_policy("certified-independent", world.arms, **asked, **options), world.epsilon_best(1.0)
    for first in range(0, runs, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, runs))
        for arm in answers(policy, world, [np.random.default_rng([seed, 20_270]) for seed in seeds]):
            yield not good[arm]


# --- one candidate, and thousands of rivals, all better, that err independently of each other

KNOWN = 3.0  # so that a reward that is missing is none of 0
Draw = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]  # counts -> sums, sums of squares


@dataclass(frozen=True)
class Rivals:
    """Rivals of an arm that is known exactly.

    Args:
        noise: of a rival's reward.
        known: the mean of the candidate, whose rewards are constant.
        epsilon: by just over which each rival is better.
        draw: the rivals' rewards.
    """

    noise: Noise
    known: float
    epsilon: float
    draw: Draw


def normal(sigma: float, known: float) -> Rivals:
    def draw(rng: np.random.Generator, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums = counts * (known + GAP) + sigma * np.sqrt(counts) * rng.standard_normal(len(counts))
        return sums, np.zeros(len(counts))

    return Rivals(sp.SubGaussian(sigma), known, 1.0, draw)


def two_valued(noise: Noise, known: float, epsilon: float) -> Rivals:
    """Rewards at both ends of the range."""
    low, high = noise.support
    chance = (known + GAP * epsilon - low) / (high - low)

    def draw(rng: np.random.Generator, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ones = rng.binomial(counts, chance)
        sums, squares = (ones * high**power + (counts - ones) * low**power for power in (1, 2))
        return sums, squares

    return Rivals(noise, known, epsilon, draw)


RIVALS = {
    "normal": normal(2.0, KNOWN),
    "bernoulli": two_valued(sp.Bernoulli(), 0.0, 0.3),
    "rare bernoulli": two_valued(sp.Bernoulli(), 0.0, 0.1),
    "bounded, mostly low": two_valued(sp.Bounded(-1.0, 2.0), -0.9, 0.5),
    "bounded, mostly high": two_valued(sp.Bounded(-1.0, 2.0), 1.3, 0.5),
}
Loss = Callable[[np.random.Generator, np.ndarray], np.ndarray]  # sums of one pull each -> which are lost


@quick_leaders
def settled_wrongly(
    rivals: Rivals,
    runs: int,
    *,
    looks: int = LOOKS,
    noise: Noise | None = None,
    lost: Loss | None = None,
    seed: int = 0,
) -> int:
    """Rivals that a study believes not to be better than the candidate by more than epsilon, though all of them are.

    Each is pulled once between two looks, and its process is a trial of Ville's inequality of its own.

    Args:
        noise: what the policy is told of the rivals' rewards; the truth if not given.
        lost: which results never arrive.
    """
    told, many = rivals.noise if noise is None else noise, 1 if rivals.noise.support is None else 10**6
    if told.support is None:
        told = sp.SubGaussian((1e-9, *[told.sigma] * runs))
    asked = {"epsilon": rivals.epsilon, "delta": DELTA, "noise": told, "evidence": "carried"}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=range(runs + 1)), **asked)
    rng, state, counts = np.random.default_rng([seed, 20_271]), policy.init(), np.append(many, np.ones(runs, np.int64))
    for look in range(looks):
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=counts, dim=len(counts), **given)
        sums, squares = rivals.draw(rng, counts[1:])
        came = np.ones(runs, bool) if lost is None else ~lost(rng, sums)
        seen = Observations(
            np.append(many, came),
            np.append(many * rivals.known, sums * came),
            np.append(many * rivals.known**2, squares * came),
        )
        state = policy.tell(state, plan, seen).state
    return int(np.sum(state.bounds_of(0)[1:] <= rivals.epsilon))


def lost_at_random(rng: np.random.Generator, sums: np.ndarray) -> np.ndarray:
    """A fifth of the results, whatever they are."""
    return rng.random(len(sums)) < 0.2


def lost_when_high(rng: np.random.Generator, sums: np.ndarray) -> np.ndarray:
    """A third of the results above the mean."""
    return (rng.random(len(sums)) < 1.0 / 3.0) & (sums > KNOWN + GAP)


# --- a candidate that is bad, and another one after each batch


VARIANCE = 0.5  # of the evidence of a batch


class Best:
    """Runs in which the process of arm 0, the best one, is to reach the threshold against some bad candidate."""

    def __init__(self, means: np.ndarray, counts: np.ndarray, *, told: float = 1.0) -> None:
        self.means, self.counts = means, counts
        self.mgf: NoiseMgf = noise_mgf_after(sp.SubGaussian(told), Observations.nothing(len(means)))

    def batch(self, rng: np.random.Generator) -> Observations:
        """Normal rewards of scale 1."""
        counts = self.counts
        return Observations(counts, counts * self.means + np.sqrt(counts) * rng.standard_normal(len(counts)))


def next_bad(seen: Observations, now: int) -> int:
    """The arm that looks best among the bad ones that are not the candidate now."""
    looks = np.array(seen.means)
    looks[[0, now]] = -np.inf
    return int(np.argmax(looks))


def started_anew(processes, expected: float, hopeless: float):
    """The processes, that of the best arm begun again if its log is below what counts as hopeless.

    Args:
        expected: sum of w h over its pulls.
    """
    if processes.log_values[0] - expected > hopeless:
        return processes
    return processes.restarted(np.zeros(1, np.int64), rest.start_weights(processes.starts[:1] + 1))


MEANS = np.array([0.0, -GAP, -GAP, -GAP])


@counted(DELTA)
def fooled_without_features(
    runs: int, *, batches: int = 25, hopeless: float = -3.0, told: float = 1.0
) -> Iterator[bool]:
    """Runs in which some bad arm seems to be within epsilon = 1 of the best one, each a candidate for one batch."""
    best, at = Best(MEANS, np.array([2, 1000, 1000, 1000]), told=told), np.zeros(1, np.int64)
    own, other = 1.0 / best.counts[:2]
    for seed in range(runs):
        rng, candidate = np.random.default_rng([seed, 20_272]), 1
        processes, seen = (
            MeanProcesses.started(4, float(rest.start_weights(np.ones(1, np.int64))[0])),
            Observations.nothing(4),
        )
        for _ in range(batches):
            processes = started_anew(processes, -GAP * processes.taken[0], hopeless)
            now, balanced = processes.taken[at], processes.given_to(candidate)[at]
            taken = (own * now + other * balanced) / (own + other) + math.sqrt(VARIANCE / (own + other))
            given = {arm: taken if arm == candidate else np.zeros(1) for arm in (1, 2, 3)}
            came = best.batch(rng)
            processes, seen = processes.after(at, taken, given, came, best.mgf), seen.plus(came)
            if processes.upper_bounds(candidate, THRESHOLD)[0] <= 1.0:
                yield True
                break
            candidate = next_bad(seen, candidate)
        else:
            yield False


PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.2], [0.0, -1.0]])


def matched(vectors: ArmVectors, processes: VectorProcesses, arm: int, candidate: int, inverse: np.ndarray):
    """The direction that matches the arm's flow with the candidate, at a T larger by a bet."""
    towards, flow = vectors.white[candidate] - vectors.white[arm], processes.flows[arm]
    seen = inverse @ towards
    amount = max(flow @ seen / (towards @ seen), 0.0) + math.sqrt(VARIANCE / (towards @ seen))
    return (inverse @ (amount * towards - flow))[None, :]


def inverse_information(vectors: ArmVectors, counts: np.ndarray) -> np.ndarray:
    return np.linalg.pinv((vectors.white.T * counts) @ vectors.white)


@counted(DELTA)
def fooled_in_the_plane(runs: int, *, batches: int = 20, hopeless: float = -3.0, told: float = 1.0) -> Iterator[bool]:
    """The same with vectors: h_x = 1.002 x_1."""
    best = Best(GAP * PLANE[:, 0], np.array([2, 1000, 1000, 1000]), told=told)
    vectors = ArmVectors.of(sp.Embedding(PLANE, 0.0), whitened(PLANE).basis, GAP)
    inverse, at, scales = inverse_information(vectors, best.counts), np.zeros(1, np.int64), np.ones(4)
    for seed in range(runs):
        rng, candidate = np.random.default_rng([seed, 20_273]), 1
        processes = VectorProcesses.started(vectors, float(rest.start_weights(np.ones(1, np.int64))[0]))
        seen = Observations.nothing(4)
        for _ in range(batches):
            processes = started_anew(processes, GAP * (processes.flows @ vectors.back)[0, 0], hopeless)
            directions = matched(vectors, processes, 0, candidate, inverse)
            came = best.batch(rng)
            processes = processes.after(vectors, candidate, at, directions, came, scales, best.mgf)
            if processes.upper_bounds(vectors, candidate, THRESHOLD)[0] <= 1.0:
                yield True
                break
            seen = seen.plus(came)
            candidate = next_bad(seen, candidate)
        else:
            yield False


# --- the best arm hidden, with the bias at its bound


@counted(DELTA)
def fooled_by_bias(runs: int, *, gamma: float, batches: int = 20, told: float = 1.0) -> Iterator[bool]:
    """Runs in which arm 0 seems to be within epsilon = 1 of the best arm, which is never pulled (see `HiddenBest`).

    Its rewards would be larger by gamma than its vector says, those of the arms that are pulled are smaller by gamma.
    """
    means = HIDING @ np.array([(2.0 * gamma - GAP) / 0.7, 0.0]) + gamma * np.array([-1.0, -1.0, 1.0, -1.0])
    counts = np.array([8, 8, 0, 0])
    vectors = ArmVectors.of(sp.Embedding(HIDING, gamma), whitened(HIDING).basis, 1.0)
    best = Best(means, counts, told=told)
    inverse, at, scales = inverse_information(vectors, counts), np.array([HIDDEN]), np.ones(4)
    for seed in range(runs):
        rng = np.random.default_rng([seed, 20_274])
        processes = VectorProcesses.started(vectors, float(rest.start_weights(np.ones(1, np.int64))[0]))
        for _ in range(batches):
            directions = matched(vectors, processes, HIDDEN, 0, inverse)
            processes = processes.after(vectors, 0, at, directions, best.batch(rng), scales, best.mgf)
            if processes.upper_bounds(vectors, 0, THRESHOLD)[HIDDEN] <= 1.0:
                yield True
                break
        else:
            yield False


# --- weights that have seen the batch


def without_bad_batches(after):
    """No bet of an arm on batches that lower its evidence: the log value, with what T says of a bad candidate."""

    def spoilt(self, *given):
        found = after(self, *given)
        better = found.log_values + found.taken > self.log_values + self.taken
        taken = np.where(better, found.taken, self.taken)
        named = {one.arm for one in (*self.given, *found.given)}
        kept = tuple(Flow(arm, np.where(better, found.given_to(arm), self.given_to(arm))) for arm in named)
        return replace(found, log_values=np.where(better, found.log_values, self.log_values), taken=taken, given=kept)

    return spoilt
