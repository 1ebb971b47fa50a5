"""Certified elimination with a class that a network learns keeps delta, and saves pulls where the network helps.

The declared misspecification comes from the known truth: the least sup-norm misfit of the classes under which studies
ended, by linear programming. Each test of an error rate says how far the declaration was from the classes it met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from neural_instances import one_among_a_hundred
from scipy.optimize import linprog

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.base import stopped
from surepick.policies.steered.neural import CertifiedNeural, NeuralState
from surepick.policies.verdict import certificate_of

DELTAS = [0.05, 0.3]
GAP = 1.02  # epsilon is 1
World = sp.environments.Environment


def misfit(vectors: np.ndarray, means: np.ndarray) -> float:
    """The least largest distance of a linear function of the vectors, with a level, from the means."""
    vectors = np.column_stack([vectors, np.ones(len(vectors))])
    num_arms, dim = vectors.shape
    ones = np.ones((num_arms, 1))
    done = linprog(
        np.append(np.zeros(dim), 1.0),
        A_ub=np.block([[vectors, -ones], [-vectors, -ones]]),
        b_ub=np.concatenate([means, -means]),
        bounds=[(None, None)] * dim + [(0.0, None)],
        method="highs",
    )
    return float(done.fun)


@dataclass(frozen=True)
class Played:
    """A study, whether its answer is epsilon-best, and the misfit of the class under which it ended."""

    state: NeuralState
    good: bool
    verdict: str
    misfit: float
    first: int  # who led first

    @property
    def pulls(self) -> int:
        return self.state.seen.total


def play(policy: CertifiedNeural, world: World, seed: int, *, checked: bool = True) -> Played:
    rng, state, first = np.random.default_rng([seed, 20_260]), policy.init(), -1
    while not stopped(policy, state):
        plan = policy.ask(state)
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
        first = state.leader if first < 0 else first
    good = world.is_epsilon_best(policy.claim(state).leader, policy.problem.epsilon)
    far = misfit(policy._features(state), world.means) if checked else 0.0
    return Played(state, good, certificate_of(policy, state).verdict, far, first)


def make(world: World, **options: object) -> CertifiedNeural:
    settings = {"epsilon": 1.0, "delta": 0.05, "noise": world.noise} | options
    return sp.make_policy("certified-neural", world.arms, **settings)


def plain_pulls(world: World, seeds: range, **options: object) -> np.ndarray:
    settings = {"epsilon": 1.0, "delta": 0.05, "noise": world.noise} | options
    policy = sp.make_policy("certified-independent", world.arms, **settings)
    return np.array([sp.simulate(policy, world, seed=seed).pulls for seed in seeds])


# --- the error rate

MISSPECIFICATION = 0.05  # the classes under which 40 studies ended were within .025


def few_good() -> World:
    """Two good arms, and 22 worse by just over epsilon, in two narrow clouds; noise of five times epsilon."""
    features = 0.15 / np.sqrt(2.0) * np.random.default_rng(0).standard_normal((24, 2))
    features[:2, 0] += 1.0
    features[2:, 0] -= 1.0
    means = np.where(np.arange(24) < 2, 0.0, -GAP)
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(5.0))


@pytest.mark.slow  # eleven studies at .05, and six at .001, tell only who always errs: tests/conformance plays such few
@pytest.mark.parametrize(("runs", "delta"), [(runs, delta) for runs in (200, 2000) for delta in DELTAS])
def test_two_good_arms_among_decoys_just_outside_epsilon(runs, delta):
    """Some studies begin with a decoy as their leader."""
    world = few_good()
    policy = make(world, delta=delta, misspecification=MISSPECIFICATION, width=32)
    played = [play(policy, world, seed, checked=seed < 25) for seed in range(runs)]
    wrong, largest = sum(not each.good for each in played), max(each.misfit for each in played)
    decoys = sum(each.first >= 2 for each in played)
    print(
        f"\nfew good at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed; misfit at "
        f"most {largest:.3f} of {MISSPECIFICATION}, {decoys} began with a decoy, "
        f"{np.mean([each.pulls for each in played]):,.0f} pulls"
    )
    assert wrong <= failures_allowed(runs, delta)
    assert largest <= MISSPECIFICATION
    assert all(each.verdict == "certified" for each in played)
    assert decoys >= 0.1 * runs


# --- a network that looks at the batch which it weighs


def told_apart() -> World:
    """A coordinate that tells good from bad, and one for each arm; noise of ten times epsilon."""
    means = np.where(np.arange(32) < 8, 0.0, -GAP)
    features = np.column_stack([np.sign(means + 0.5), 0.5 * np.eye(32)])
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(10.0))


class Surprised(CertifiedNeural):
    """Its vectors show how far the results were from the true means, as an adversary may; arm 31 over arm 0."""

    def learn(self, seen: Observations) -> np.ndarray:
        surprise = np.where(seen.counts > 0, seen.means - told_apart().means, 0.0)
        most = float(np.abs(surprise).max()) + 1e-9
        surprise[0], surprise[31] = -most, most
        return (surprise / np.sqrt(np.mean(surprise**2)))[:, None]


class Peeking(Surprised):
    """The saboteur: its vectors show the surprises of the very batch that is weighed."""

    def bets(self, state: NeuralState, plan: Plan, seen: Observations):
        self._cache._kept.clear()
        told = state.seen.plus(seen)
        found = Surprised.bets(self, replace(state, seen=told, lesson=seen), plan, seen)
        self._cache._kept.clear()
        return found


def largest_process(policy: CertifiedNeural, seed: int, batches: int = 2) -> float:
    """The largest log of the best arm's process against arm 31, whose mean at the true means is at most 1."""
    world, rng, state, drift, most = told_apart(), np.random.default_rng([seed, 7]), policy.init(), 0.0, -np.inf
    for batch in range(batches):
        plan = Plan(state.round, np.full(32, 50 * 4**batch), candidate=31 if batch else None)
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
        for bet in (one.batch for one in state.told[-1:] if 0 in one.batch.arms):
            drift += float((bet.weights * bet.counts)[bet.arms == 0][0] @ world.means[bet.measured])
            most = max(most, float(state.told[-1].log_values[0]) - drift)
    return most


def test_a_network_that_looks_at_the_batch_it_weighs_is_noticed():
    delta, runs, problem = 0.05, trials_to_notice(0.05, 0.99), sp.Problem(32, 1.0, 1e-9, sp.SubGaussian(10.0))
    network = sp.make_policy("certified-neural", told_apart().arms, epsilon=1.0, delta=0.1, noise="subgaussian:10")
    honest, dishonest = (
        sum(
            largest_process(kind(problem, network.features, network=network.network, misspecification=0.0), seed)
            >= -np.log(delta)
            for seed in range(runs)
        )
        for kind in (Surprised, Peeking)
    )
    print(f"\n{honest} honest and {dishonest} peeking of {runs}; {failures_allowed(runs, delta)} allowed")
    assert honest <= failures_allowed(runs, delta) < dishonest


# --- a bound that is far too small


def odd_one_out() -> World:
    """One good arm in a cloud of bad ones: nothing in its features tells."""
    features = 0.15 * np.random.default_rng(0).standard_normal((24, 2))
    features[:12, 0] += 1.0
    means = np.full(24, -GAP)
    means[3] = 0.0
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(1.0))


@pytest.mark.parametrize(("declared", "noticed"), [(0.6, False), (0.05, True)])
def test_a_bound_that_is_far_too_small_is_noticed(declared, noticed):
    """The best arm is never measured; what the class says of it is its bias. A true bound allows for that."""
    world, counts = odd_one_out(), np.full(24, 200)
    counts[3] = 0
    policy, runs = make(world, misspecification=declared, width=32, dim=3), trials_to_notice(0.05, 0.99)

    def wrong(seed: int) -> bool:
        rng, state = np.random.default_rng([seed, 7]), policy.init()
        for batch in range(5):
            candidate = state.leader if batch else None
            state = policy.tell(state, Plan(state.round, counts, candidate=candidate), world.pull(counts, rng)).state
            if state.finished:
                break
        return state.finished == "certified" and state.leader != 3

    fooled = sum(map(wrong, range(runs)))
    print(f"\nmisspecification {declared} declared, about .5 true: {fooled} of {runs} certified and wrong")
    assert (fooled > failures_allowed(runs, 0.05)) == noticed


# --- proof of life: it saves pulls where the network helps, and costs little where it does not


@pytest.mark.parametrize(
    ("environment", "num_arms", "declared", "studies"),
    [
        (2, 250, 0.0425, 1),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [(2, 500, 0.0425, 5), (3, 250, 0.0425, 5)]),
    ],
)
def test_a_random_network_takes_fewer_pulls(environment, num_arms, declared, studies):
    world = sp.bench.datasets.random_network(num_arms=num_arms, seed=environment, sigma=0.05)
    played = [play(make(world, epsilon=0.1, misspecification=declared), world, seed) for seed in range(studies)]
    plain = plain_pulls(world, range(studies), epsilon=0.1)
    print(f"\n{[each.pulls for each in played]} pulls, {plain} independent; misfit {[each.misfit for each in played]}")
    assert all(each.good and each.verdict == "certified" for each in played)
    assert np.mean([each.pulls for each in played]) < plain.mean()


def shuffled() -> World:
    """The features of a random network, given to other arms."""
    world = sp.bench.datasets.random_network(num_arms=250, seed=1, sigma=0.05)
    order = np.random.default_rng(5).permutation(world.num_arms)
    return World(arms=sp.Arms(world.arms.features[order]), means=world.means, noise=world.noise)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [None, 0.5])
def test_useless_features_cost_a_bounded_share(declared):
    world = shuffled()
    policy = make(world, epsilon=0.1, misspecification=declared)
    played = [play(policy, world, seed, checked=False) for seed in range(10)]
    ours, plain = np.array([each.pulls for each in played]), plain_pulls(world, range(10), epsilon=0.1)
    print(f"\nshuffled, {declared} declared: {ours.mean():,.0f} pulls, {plain.mean():,.0f} independent")
    assert ours.mean() <= 1.5 * plain.mean()
    assert all(each.good for each in played)


# --- where the paper's constants fail (test_neural_fact.py)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [None, 0.15])
def test_one_among_a_hundred_is_found(declared):
    """`neural-embedding` with the published constants is wrong in 25 to 60 % of these; gamma = .15 is true of anything
    that holds the constant, for all means are within .075 of .575."""
    world = one_among_a_hundred()
    played = [
        play(make(world, epsilon=0.1, misspecification=declared), world, seed, checked=False) for seed in range(20)
    ]
    wrong, verdicts = sum(not each.good for each in played), [each.verdict for each in played]
    print(
        f"\none among a hundred, misspecification {declared}: {wrong} wrong of 20, "
        f"{np.mean([each.pulls for each in played]):,.0f} pulls, {verdicts.count('certified')} certified"
    )
    assert wrong <= failures_allowed(20, 0.05)
