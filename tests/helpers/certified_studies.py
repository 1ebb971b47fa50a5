"""Studies of the certified policies with epochs on known truths: hard instances, hostile steering, lost results.

The theorem holds for every rule that chooses arms, batch sizes and candidates from earlier batches, so the rules here
are the worst that come to mind. They reach the policy's own `tell` by plans that `ask` would never make.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from bounds import until_clear

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.embeddings.base import EmbeddingTraits
from surepick.estimators.e_values import Collected
from surepick.noise import Noise
from surepick.policies.base import stopped
from surepick.policies.certified.elimination import CertifiedElimination, log_weight_of
from surepick.policies.sequential.state import SequentialState

Ask = Callable[[SequentialState], Plan]
Told = Callable[[SequentialState, Plan, Observations, SequentialState], SequentialState]  # before, .., after -> after

EPSILON = 1.0
GAP = 1.02 * EPSILON  # just outside
DELTAS = [0.05, 0.3]
RIVALS = 2000  # of a known candidate
MANY = np.array([4, *[1] * 20])  # pulls of each batch under hostile steering, the best arm first
CROWD = np.array([10, *[1] * 300])


@dataclass(frozen=True)
class Instance:
    """A truth, and the policy that is to find its best arm."""

    name: str
    environment: sp.environments.Environment
    epsilon: float = EPSILON
    options: tuple[tuple[str, object], ...] = ()

    def policy(self, delta: float, noise: Noise | None = None, **options: object) -> CertifiedElimination:
        """The policy, told the true noise unless another one is given."""
        world = self.environment
        noise = world.noise if noise is None else noise
        options = {"evidence": "epochs", **dict(self.options), **options}
        return sp.make_policy(self.name, world.arms, epsilon=self.epsilon, delta=delta, noise=noise, **options)


def without_features(means, noise: Noise, epsilon: float = EPSILON) -> Instance:
    arms = sp.Arms(ids=range(len(means)))
    return Instance("certified-independent", sp.environments.Environment(arms=arms, means=means, noise=noise), epsilon)


def one_good(num_arms: int = 5, sigma: float | tuple[float, ...] = 1.0) -> Instance:
    """The best arm, and all others worse by just over epsilon."""
    return without_features(np.append(0.0, np.full(num_arms - 1, -GAP)), sp.SubGaussian(sigma))


def linear(features, theta, *, sigma: float, epsilon: float) -> Instance:
    means = features @ theta
    world = sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(sigma))
    options = (("norm_bound", float(np.linalg.norm(theta))), ("tolerance", 0.5))
    return Instance("certified-linear", world, epsilon, options)


def circle(num_arms: int = 6, sigma: float = 0.5) -> Instance:
    """Arms spread evenly on the unit circle, the best at angle 0: its neighbours are just outside epsilon."""
    angles = 2.0 * np.pi * np.arange(num_arms) / num_arms
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return linear(features, np.array([1.0, 0.0]), sigma=sigma, epsilon=(1.0 - np.cos(angles[1])) / 1.02)


CORRELATED = np.array([[1.0, 0.0], [1.0, -GAP], [0.5, -GAP], [1.5, -GAP], [0.0, -GAP]])
FIVE_ARMS = {
    "one good": one_good(sigma=0.6),
    "two good": without_features([0.0, 0.0, -GAP, -GAP, -GAP], sp.SubGaussian(0.5)),
    "bernoulli": without_features([0.15, *[0.15 - 1.02 * 0.14] * 4], sp.Bernoulli(), 0.14),
    "a scale per arm": one_good(sigma=(1.0, 0.7, 0.4, 0.4, 0.2)),
    "linear": linear(CORRELATED, np.array([0.0, 1.0]), sigma=0.5, epsilon=EPSILON),
}


@dataclass(frozen=True)
class Outcome:
    """How a study ended: it stopped by itself with an arm that is epsilon-best or not, or it was cut off."""

    stopped: bool
    wrong: bool
    state: SequentialState


def play(
    instance: Instance,
    policy: CertifiedElimination,
    seed: int,
    *,
    ask: Ask | None = None,
    most_batches: int = 10_000,
    told: Told | None = None,
) -> Outcome:
    """One study, steered by the policy itself or by `ask`; `told` sees each batch and may spoil what came of it."""
    rng, state = np.random.default_rng([seed, 20_260]), policy.init()
    ask = policy.ask if ask is None else ask
    for _ in range(most_batches):
        plan = ask(state)
        seen = instance.environment.pull(plan.counts, rng)
        after = policy.tell(state, plan, seen).state
        state = after if told is None else told(state, plan, seen, after)
        if stopped(policy, state):
            good = instance.environment.is_epsilon_best(policy.claim(state).leader, policy.problem.epsilon)
            return Outcome(True, not good, state)
    return Outcome(False, False, state)


def wrong_answers(instance: Instance, policy: CertifiedElimination, trials: int, **how: object) -> int:
    """Studies out of `trials` that stop by themselves with an arm that is worse than epsilon; `until_clear`."""
    first = policy.ask(policy.init())  # the same in all of them
    ask = how.pop("ask", lambda state: policy.ask(state) if state.round > 1 else first)
    wrong = (play(instance, policy, seed, ask=ask, **how).wrong for seed in range(trials))
    return until_clear(wrong, trials, policy.problem.delta)


# --- one candidate, and thousands of rivals that err independently of each other


def known_candidate(noise: Noise, gap: float, rivals: int = RIVALS) -> sp.environments.Environment:
    """Arm 0 has mean 0, known exactly; every other arm is better by `gap`, with noise of its own.

    So the processes of arm 0 against the others are independent, and each is a trial of Ville's inequality.
    """
    if isinstance(noise, sp.SubGaussian):
        noise = sp.SubGaussian((1e-9, *[noise.sigma] * rivals))
    means = np.append(0.0, np.full(rivals, gap))
    return sp.environments.Environment(arms=sp.Arms(ids=range(rivals + 1)), means=means, noise=noise)


def settled_wrongly(
    environment: sp.environments.Environment,
    *,
    epsilon: float,
    delta: float,
    noise: Noise | None = None,
    batches: int = 100,
    pulls: Callable[[SequentialState], np.ndarray] | None = None,
    lost: float = 0.0,
    seed: int = 0,
) -> int:
    """Rivals that a study believes not to be better than arm 0 by more than epsilon, though all of them are.

    Args:
        pulls: state -> pulls of each arm in the next batch; one of each if not given.
        lost: the probability with which a result is lost, whatever its value.
    """
    noise = environment.noise if noise is None else noise
    asked = {"epsilon": epsilon, "delta": delta, "noise": noise, "evidence": "epochs"}
    policy = sp.make_policy("certified-independent", environment.arms, **asked)
    rng, state = np.random.default_rng([seed, 20_261]), policy.init()
    ones = np.ones(environment.num_arms, np.int64)
    for batch in range(batches):
        asked = ones if pulls is None or batch == 0 else pulls(state)
        plan = Plan(round=batch + 1, counts=asked, dim=len(ones), predicted_pulls=0.0, candidate=0 if batch else None)
        came = rng.binomial(asked, 1.0 - lost)
        came[0] = asked[0]
        state = policy.tell(state, plan, environment.pull(came, rng)).state
    return int(np.count_nonzero(state.collected[0].rejected(-math.log(delta))))


def greedy_pulls(state: SequentialState) -> np.ndarray:
    """Small batches where the evidence is near its goal, to overshoot by little; large ones where it is far."""
    if not state.collected:
        return np.ones(len(state.seen.counts), np.int64)
    return np.where(state.collected[0].values > -1.0, 1, 4)


# --- hostile steering


def bad_candidates_in_turn(counts: np.ndarray, *, most: int, wait: int = 1) -> Ask:
    """Plans that pull `counts` each time and open an epoch before each batch, at most `most` in all, for the bad arm
    that looks best among those that have none; arm 0 is the best one, and never a candidate.

    Args:
        wait: batches without a candidate at the start.
    """

    def ask(state: SequentialState) -> Plan:
        plan = Plan(round=state.round, counts=counts, dim=len(counts), predicted_pulls=0.0)
        if state.round <= wait:
            return plan
        if len(state.collected) >= most:
            return replace(plan, candidate=int(state.collected[-1].name))
        looks = state.seen.means.copy()
        looks[[0, *(int(epoch.name) for epoch in state.collected)]] = -np.inf
        return replace(plan, candidate=int(np.argmax(looks)))

    return ask


def counting_from_the_start(policy: CertifiedElimination) -> Told:
    """The saboteur: a new epoch is given the evidence that it would have if opened at the start."""
    past: list[tuple[SequentialState, Plan, Observations]] = []

    def spoil(before: SequentialState, plan: Plan, seen: Observations, after: SequentialState) -> SequentialState:
        if before.round == 1:
            past.clear()
        past.append((before, plan, seen))
        if len(after.collected) == len(before.collected):
            return after
        alone: Collected = ()
        for state, asked, came in past:
            opening = replace(asked, candidate=plan.candidate, predicted_pulls=0.0)
            alone = policy.tell(replace(state, collected=alone), opening, came).state.collected
        older, shift = after.collected[:-1], log_weight_of(len(after.collected) - 1) - log_weight_of(0)
        moved = replace(alone[0], values=alone[0].values + shift, peaks=alone[0].peaks + shift)
        return replace(after, collected=(*older, moved))

    return spoil


# --- the best arm hidden by misspecification


@dataclass(frozen=True)
class GivenVectors:
    """Two-dimensional vectors with a declared misspecification: an embedding as a user may write it."""

    features: np.ndarray
    gamma: float
    norm_bound: float
    traits: ClassVar[EmbeddingTraits] = EmbeddingTraits("given")

    @property
    def num_arms(self) -> int:
        return len(self.features)

    @property
    def max_dim(self) -> int:
        return self.features.shape[1]

    @property
    def num_distinct(self) -> int:
        return self.num_arms

    def misspecification(self, dim: int) -> float:
        return self.gamma

    def at(self, dim: int) -> sp.Embedding:
        return sp.Embedding(self.features, self.gamma)


# The candidate, a second arm that every design needs, the best arm, and a bad one: both inside the hull of the first
# two and their mirror images, where no design needs to look.
HIDING = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3], [-0.2, 0.2]])
HIDDEN = 2


@dataclass(frozen=True)
class HiddenBest(Instance):
    """The best arm is never pulled, and the features, wrong by gamma at every arm, make it look worse than it is.

    In any batch of the first two arms, the estimate of h_j - h_c is -.7 h_c + .3 h_b for j the best arm: short by

        eta_j - eta_c + .7 eta_c - .3 eta_b = 1.6 gamma = beta       at eta_j = gamma, eta_c = eta_b = -gamma

    which is all that the bias may be, while j is better than c by just over epsilon.
    """

    gamma: float = 0.0

    def policy(self, delta: float, noise: Noise | None = None, **options: object) -> CertifiedElimination:
        problem = sp.Problem(len(HIDING), self.epsilon, delta, self.environment.noise)
        embedding = GivenVectors(HIDING, self.gamma, norm_bound=1.0)
        return CertifiedElimination(problem, embedding, dim=2, reserve=0.0)


def hidden_best(gamma: float, sigma: float) -> HiddenBest:
    theta = np.array([(2.0 * gamma - GAP) / 0.7, 0.0])
    means = HIDING @ theta + gamma * np.array([-1.0, -1.0, 1.0, -1.0])
    world = sp.environments.Environment(arms=sp.Arms(HIDING), means=means, noise=sp.SubGaussian(sigma))
    return HiddenBest("given", world, gamma=gamma)


def never_asked(arm: int) -> Told:
    def check(_: SequentialState, plan: Plan, __: Observations, after: SequentialState) -> SequentialState:
        assert plan.counts[arm] == 0
        return after

    return check


def wrongly_settled_hidden(instance: HiddenBest, delta: float, *, trials: int, batches: int) -> int:
    """Studies in which the first arm, their only candidate, is believed good enough against the hidden best arm."""
    policy, counts = instance.policy(delta), np.array([8, 8, 0, 0])

    def ask(state: SequentialState) -> Plan:
        return Plan(
            round=state.round, counts=counts, dim=2, predicted_pulls=0.0, candidate=0 if state.round > 1 else None
        )

    ends = (play(instance, policy, seed, ask=ask, most_batches=batches) for seed in range(trials))
    settled = (bool(end.state.collected[0].rejected(-math.log(delta))[HIDDEN]) for end in ends)
    return until_clear(settled, trials, delta / 2)


# --- lost results


Loss = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]


def lost_at_random(arm: int, rewards: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fifth of the results, whatever they are."""
    return rng.random(len(rewards)) < 0.2


def lost_when_high(arm: int, rewards: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A third of the best arm's rewards above its mean, which is 0."""
    return (rng.random(len(rewards)) < 1.0 / 3.0) & (rewards > 0.0) & (arm == 0)


def told_with_losses(instance: Instance, delta: float, loss: Loss, seed: int) -> sp.Certificate:
    """A study, through its public face, of normal rewards of which some never arrive."""
    rng, world = np.random.default_rng([seed, 20_262]), instance.environment
    sigma = float(np.max(world.noise.sigma))
    study = sp.Study(world.arms, instance.policy(delta))
    while (plan := study.ask()) is not None:
        came = []
        for arm, mean in enumerate(world.means):
            rewards = mean + sigma * rng.standard_normal(plan.counts[arm])
            came.append(rewards[~loss(arm, rewards, rng)])
        study.tell_totals(study.ids, *([f(rewards) for rewards in came] for f in (len, np.sum, lambda r: np.sum(r**2))))
        if study.missing.any():
            study.abandon("independent-of-value")
    return study.certificate()
