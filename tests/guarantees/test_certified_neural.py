"""Certified elimination with learnt embeddings keeps delta, saves pulls where the network helps, costs little else.

The declared misspecification comes from the known truth: the least sup-norm misfit of the embeddings that studies used,
by linear programming. Each test of an error rate says how far the declaration was from the embeddings it met.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice, until_clear
from neural_instances import one_among_a_hundred
from scipy.optimize import linprog

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, IndependentArms, Plan
from surepick.policies.base import stopped, threshold_of
from surepick.policies.certified.neural import CertifiedNeural, learn
from surepick.policies.sequential.state import SequentialState
from surepick.policies.verdict import certificate_of

DELTAS = [0.05, 0.3]
GAP = 1.02  # epsilon is 1
World = sp.environments.Environment


def misfit(vectors: np.ndarray, means: np.ndarray) -> float:
    """The least largest distance of a linear function of the vectors from the means."""
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
    """A study of a learnt embedding.

    Args:
        misfits: of each embedding through which evidence was collected, if asked for.
        through: batches of evidence through an embedding of its own; batches: all of them after the first.
    """

    state: SequentialState
    good: bool
    verdict: str
    misfits: tuple[float, ...]
    own: int
    through: int
    batches: int

    @property
    def pulls(self) -> int:
        return self.state.seen.total


def play(policy: CertifiedNeural, world: World, seed: int, *, checked: bool = True) -> Played:
    rng, state = np.random.default_rng([seed, 20_260]), policy.init()
    misfits, own, through = [], 0, 0
    while not stopped(policy, state):
        plan = policy.ask(state)
        own += state.round > 1 and plan.dim < world.num_arms
        if plan.candidate is not None and plan.dim < world.num_arms:
            through += 1
            if checked:
                misfits.append(misfit(learn(policy, state.seen).vectors, world.means))
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    good = world.is_epsilon_best(policy.claim(state).leader, policy.problem.epsilon)
    return Played(state, good, certificate_of(policy, state).verdict, tuple(misfits), own, through, state.round - 2)


def make(world: World, **options: object) -> CertifiedNeural:
    settings = {"epsilon": 1.0, "delta": 0.05, "noise": world.noise} | options
    return sp.make_policy("certified-neural", world.arms, **settings)


def plain_pulls(world: World, seeds: range, **options: object) -> np.ndarray:
    settings = {"epsilon": 1.0, "delta": 0.05, "noise": world.noise, "evidence": "epochs"} | options
    policy = sp.make_policy("certified-independent", world.arms, **settings)
    return np.array([sp.simulate(policy, world, seed=seed).pulls for seed in seeds])


# --- the error rate

MISSPECIFICATION = 0.05  # the embeddings of 40 studies were within .025


def few_good() -> World:
    """Two good arms, and 22 worse by just over epsilon, in two narrow clouds; noise of ten times epsilon."""
    features = 0.15 / np.sqrt(2.0) * np.random.default_rng(0).standard_normal((24, 2))
    features[:2, 0] += 1.0
    features[2:, 0] -= 1.0
    means = np.where(np.arange(24) < 2, 0.0, -GAP)
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(10.0))


@pytest.mark.parametrize(
    ("runs", "delta"),
    [
        (trials_to_notice(0.05, 0.99), 0.05),
        *(pytest.param(runs, delta, marks=pytest.mark.slow) for runs in (25, 200, 2000) for delta in DELTAS),
    ],
)
def test_two_good_arms_among_decoys_just_outside_epsilon(runs, delta):
    """Half of the studies start with a decoy as the candidate, and all collect evidence through the network."""
    world = few_good()
    policy = make(world, delta=delta, misspecification=MISSPECIFICATION, width=32, tolerance=0.5)
    played = [play(policy, world, seed, checked=seed < 25) for seed in range(runs)]
    wrong = sum(not each.good for each in played)
    largest = max(max(each.misfits, default=0.0) for each in played)
    decoys = sum(int(each.state.collected[0].name) >= 2 for each in played)
    print(
        f"\nfew good at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed; misfit at "
        f"most {largest:.3f} of {MISSPECIFICATION}, {decoys} began with a decoy, "
        f"{np.mean([each.through for each in played]):.1f} of {np.mean([each.batches for each in played]):.1f} batches "
        f"through the network, {np.mean([each.pulls for each in played]):,.0f} pulls"
    )
    assert wrong <= failures_allowed(runs, delta)
    assert largest <= MISSPECIFICATION
    assert all(each.verdict == "certified" for each in played)
    assert sum(each.state.compressed for each in played) >= 0.9 * runs
    assert decoys >= 0.2 * runs


# --- hostile steering, and what is forbidden


def told_apart() -> World:
    """A coordinate that tells good from bad, and one for each arm, by which a network can learn its noise by heart."""
    means = np.where(np.arange(32) < 8, 0.0, -GAP)
    features = np.column_stack([np.sign(means + 0.5), 0.5 * np.eye(32)])
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(10.0))


HEART = {"misspecification": 0.0, "width": 32, "dim": 3, "regularization": 0.01}


def crossings(world: World, policy: CertifiedNeural, counts: Callable[[int], np.ndarray], trials: int) -> int:
    """How many of `crossing`, `until_clear`."""
    return until_clear(crossing(world, policy, counts, trials), trials, policy.problem.delta)


def crossing(world: World, policy: CertifiedNeural, counts: Callable[[int], np.ndarray], trials: int) -> Iterator[bool]:
    """Studies in which the best arm is settled for a bad candidate: what the proof bounds by delta (line 8).

    Every batch goes through the network; the candidate is the bad arm that looks best after the first.
    """
    best, bad = int(np.argmax(world.means)), world.means < world.means.max() - policy.problem.epsilon
    for seed in range(trials):
        rng, state = np.random.default_rng([seed, 7]), policy.init()
        for batch in range(5):
            plan = Plan(round=state.round, counts=counts(batch), dim=5, predicted_pulls=0.0)
            if batch:
                looks = np.where(bad, policy.learnt(state.seen).scores, -np.inf)
                candidate = int(state.collected[0].name) if state.collected else int(np.argmax(looks))
                plan = Plan(round=state.round, counts=plan.counts, dim=5, predicted_pulls=0.0, candidate=candidate)
            state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
        threshold = threshold_of(policy.problem)
        yield any(bad[int(epoch.name)] and epoch.rejected(threshold)[best] for epoch in state.collected)


def fourfold(batch: int) -> np.ndarray:
    return np.full(32, 50 * 4**batch)


HOSTILE = [20, pytest.param(60, marks=pytest.mark.slow)]  # studies; `make prove` has all of them


@pytest.mark.parametrize("trials", HOSTILE)
def test_hostile_steering_through_embeddings_of_the_past(trials):
    """Gamma = 0 is not true here (the misfit is about .1), and still the noise alone does not break delta."""
    world = told_apart()
    assert crossings(world, make(world, **HEART), fourfold, trials) <= failures_allowed(trials, 0.05)


@pytest.mark.parametrize("trials", HOSTILE)
def test_an_embedding_that_has_seen_its_own_batch_is_noticed(trials, monkeypatch):
    """The saboteur: the same studies, but the network has learnt the batch by heart that is measured through it."""
    honest = CertifiedNeural.bets

    def spoilt(self, state: SequentialState, plan: Plan, seen: Observations):
        def used(state: SequentialState, plan: Plan) -> Embedding | IndependentArms:
            if plan.dim >= self.problem.num_arms:
                return IndependentArms(self.problem.num_arms)
            return self._embedded(self.learnt(state.seen.plus(seen)), state.seen)

        with monkeypatch.context() as patch:
            patch.setattr(CertifiedNeural, "_used", lambda _, state, plan: used(state, plan))
            return honest(self, state, plan, seen)

    monkeypatch.setattr(CertifiedNeural, "bets", spoilt)
    world = told_apart()
    crossed, allowed = crossings(world, make(world, **HEART), fourfold, trials), failures_allowed(trials, 0.05)
    print(f"\nembeddings of their own batch: {crossed} of {trials} settled wrongly, {allowed} allowed")
    assert crossed > allowed


def odd_one_out() -> World:
    """One good arm in a cloud of bad ones: nothing in its features tells."""
    features = 0.15 * np.random.default_rng(0).standard_normal((24, 2))
    features[:12, 0] += 1.0
    means = np.full(24, -GAP)
    means[3] = 0.0
    return World(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(1.0))


@pytest.mark.parametrize(("declared", "noticed"), [(0.6, False), (0.05, True), (0.0, True)])
def test_a_bound_that_is_far_too_small_is_noticed(declared, noticed):
    """The best arm is never measured; what the embedding says of it is its bias. A true bound allows for that."""
    world = odd_one_out()
    counts = np.full(24, 200)
    counts[3] = 0
    policy = make(world, misspecification=declared, width=32, dim=3)
    trials = trials_to_notice(0.05, 0.99)
    crossed = crossings(world, policy, lambda _: counts, trials)
    print(f"\nmisspecification {declared} declared, about .5 true: {crossed} of {trials} settled wrongly")
    assert (crossed > failures_allowed(trials, 0.05)) == noticed


# --- proof of life: it saves pulls where the network helps


def pilot_bound(world: World, least: float = 0.02) -> float:
    """1.05 times the largest misfit of the embeddings that two studies used, the second with the bound of the first."""
    bound = 0.05
    for seed in (1000, 1001):
        policy = make(world, epsilon=0.1, misspecification=bound)
        bound = max(1.05 * max(play(policy, world, seed).misfits, default=0.0), least)
    return bound


@dataclass(frozen=True)
class Life:
    """Studies of one environment under a bound that held for all of them."""

    bound: float
    played: tuple[Played, ...]
    plain: float

    @property
    def pulls(self) -> float:
        return float(np.mean([each.pulls for each in self.played]))


@functools.cache
def life(environment: int, studies: int, bound: float | None = None, num_arms: int = 500) -> Life:
    """The declared number is from the known truth: where a study met a larger misfit, all are done again with it."""
    world = sp.bench.datasets.random_network(num_arms=num_arms, seed=environment, sigma=0.05)
    bound = pilot_bound(world) if bound is None else bound
    while True:
        policy = make(world, epsilon=0.1, misspecification=bound)
        played = tuple(play(policy, world, seed) for seed in range(studies))
        largest = max((largest for each in played for largest in each.misfits), default=0.0)
        if largest <= bound:
            return Life(bound, played, float(np.mean(plain_pulls(world, range(studies), epsilon=0.1))))
        bound = 1.05 * largest


def check_life(found: Life, at_most: float = 0.8) -> None:
    assert all(each.good and each.verdict == "certified" for each in found.played)
    assert found.pulls <= at_most * found.plain
    assert sum(each.own for each in found.played) > 0.5 * sum(each.batches for each in found.played)
    assert all(each.through > 0 for each in found.played)


@pytest.mark.parametrize(
    ("environment", "studies", "bound", "num_arms"),
    [
        (2, 1, 0.0425, 250),
        *(pytest.param(*each, 500, marks=pytest.mark.slow) for each in [(2, 2, 0.0382), (1, 2, 0.0482)]),
    ],
)  # of `pilot_bound`
def test_a_random_network_takes_fewer_pulls_with_a_valid_bound(environment, studies, bound, num_arms):
    check_life(life(environment, studies, bound, num_arms))


NOT_REACHED = {4, 9}  # they take .84 and .91 of the pulls without features; .8 of each was hoped for


@pytest.mark.slow
def test_ten_random_networks_take_fewer_pulls_with_valid_bounds():
    found = [life(environment, 3) for environment in range(10)]
    print("\nenvironment  gamma  pulls  independent  ratio  own embedding  evidence through it  right")
    for environment, each in enumerate(found):
        own, through, batches = (sum(getattr(p, n) for p in each.played) for n in ("own", "through", "batches"))
        print(
            f"{environment:11d}  {each.bound:.3f}  {each.pulls:5.0f}  {each.plain:11.0f}  "
            f"{each.pulls / each.plain:5.2f}  {own:4d} of {batches:3d}    {through:4d}                 "
            f"{sum(p.good for p in each.played)} of 3"
        )
    ratio = np.mean([each.pulls for each in found]) / np.mean([each.plain for each in found])
    print(f"all: {ratio:.2f}")
    for environment, each in enumerate(found):
        check_life(each, at_most=1.0 if environment in NOT_REACHED else 0.8)
    assert ratio <= 0.8


# --- what it costs where the network does not help


def shuffled() -> World:
    """The features of a random network, given to other arms."""
    world = sp.bench.datasets.random_network(seed=1, sigma=0.05)
    order = np.random.default_rng(5).permutation(world.num_arms)
    return World(arms=sp.Arms(world.arms.features[order]), means=world.means, noise=world.noise)


@pytest.mark.slow
@pytest.mark.parametrize("instance", [shuffled, one_among_a_hundred])
def test_useless_features_cost_little(instance):
    world = instance()
    policy = make(world, epsilon=0.1, misspecification=0.5)
    played = [play(policy, world, seed, checked=False) for seed in range(30)]
    ours, plain = np.array([each.pulls for each in played]), plain_pulls(world, range(30), epsilon=0.1)
    ratio = ours.mean() / plain.mean()
    error = ratio * np.hypot(*(np.std(each, ddof=1) / each.mean() / np.sqrt(30) for each in (ours, plain)))
    print(
        f"\n{instance.__name__}: {ours.mean():,.0f} pulls, {plain.mean():,.0f} independent: {ratio:.3f} +- {error:.3f}"
    )
    assert ratio <= 1.25 + 2.0 * error
    assert all(each.good for each in played)


# --- where the paper's constants fail (test_neural_fact.py)


@pytest.mark.parametrize(
    ("runs", "declared"), [(1, None), *(pytest.param(100, each, marks=pytest.mark.slow) for each in (None, 0.15))]
)
def test_one_among_a_hundred_is_found(runs, declared):
    """`neural-embedding` with the published constants is wrong in 25 to 60 % of these; gamma = .15 is true of anything
    that holds the constant, for all means are within .075 of .575."""
    world = one_among_a_hundred()
    policy = make(world, epsilon=0.1, misspecification=declared)
    played = [play(policy, world, seed, checked=False) for seed in range(runs)]
    wrong = sum(not each.good for each in played)
    verdicts = [each.verdict for each in played]
    print(
        f"\none among a hundred, misspecification {declared}: {wrong} wrong of {runs}, "
        f"{np.mean([each.pulls for each in played]):,.0f} pulls, {verdicts.count('certified')} certified, "
        f"{sum(each.state.compressed for each in played)} through the network"
    )
    assert wrong <= (5 if runs == 100 else 0)
