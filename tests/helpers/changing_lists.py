"""Studies whose candidates are withdrawn while they run, by somebody who sees every result.

The worst that comes to mind: several arms are equally good, all others are worse by just over epsilon, and of the good
ones all but one go: the one against which a bad arm looks best. Whoever goes for a reason that depends on results has
to be ruled out like all others; so a wrong answer needs the process of one arm, fixed beforehand, to reach 1/delta.
"""

from collections.abc import Callable, Iterator

import numpy as np
from bounds import counted
from quick_leaders import quick_leaders

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.noise import Noise
from surepick.policies.base import stopped
from surepick.policies.carried.elimination import CarriedElimination

GAP = 1.002  # just over epsilon = 1
SIGMA = 0.5

# (step, generator) -> (arms that go now, whether each goes for a reason that has nothing to do with results)
Goes = Callable[[Step, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def world_of(good: int, bad: int, noise: Noise | None = None) -> sp.environments.Environment:
    """So many best arms, then so many that are worse by just over epsilon = 1."""
    means = np.append(np.zeros(good), np.full(bad, -GAP))
    return sp.environments.Environment(
        arms=sp.Arms(ids=range(good + bad)), means=means, noise=sp.SubGaussian(SIGMA) if noise is None else noise
    )


def policy_of(world: sp.environments.Environment, delta: float, **options) -> CarriedElimination:
    asked = {"epsilon": 1.0, "delta": delta, "noise": world.noise, "evidence": "carried"}
    return sp.make_policy("certified-independent", world.arms, **asked, **options)


def answers(
    world: sp.environments.Environment,
    goes: Goes,
    runs: int,
    *,
    delta: float,
    most: int = 400,
    seed: int = 20_300,
    **options,
) -> list[tuple[str, bool, int]]:
    """(why it stopped, whether the answer is worse than epsilon beside the arms that were not dropped, how many went).

    Args:
        goes: decides after every batch who goes.
        most: batches after which a study is given up; it then has no answer.
    """
    policy, found = policy_of(world, delta, **options), []
    for run in range(runs):
        rng, state = np.random.default_rng([run, seed]), policy.init()
        while not stopped(policy, state) and state.round <= most:
            plan = policy.ask(state)
            assert not plan.counts[state.away].any()
            step = policy.tell(state, plan, world.pull(plan.counts, rng))
            arms, independent = goes(step, rng)
            state = (policy.withdraw(step, arms, independent) if len(arms) else step).state
        answer = policy.claim(state)
        assert not state.away[answer.leader]
        best = world.means[~state.dropped].max()
        found.append((answer.finished, bool(best - world.means[answer.leader] > 1.0), int(state.away.sum())))
    return found


def wrongly_certified(found: list[tuple[str, bool, int]]) -> int:
    return sum(wrong for finished, wrong, _ in found if finished in ("certified", "single"))


def keeps_the_unlucky(good: int, *, honest: bool, after: int = 4) -> Goes:
    """After some batches all best arms go but the one that looks worst.

    Args:
        honest: it is said that results had to do with it.
    """

    def goes(step: Step, _: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        state = step.state
        left = np.flatnonzero(~state.away[:good])
        if state.round <= after or len(left) == 1 or state.pulls == 0:
            return np.empty(0, np.int64), np.empty(0, bool)
        arms = np.delete(left, np.argmin(state.seen.means[left]))
        return arms, np.full(len(arms), not honest)

    return goes


def out_of_stock(chance: float) -> Goes:
    """After each batch every arm but the last two goes with that chance, whatever the results are."""

    def goes(step: Step, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        state = step.state
        left = np.flatnonzero(~state.away)
        unlucky = rng.random(len(state.away)) < chance
        arms = left[unlucky[left] & (left < len(state.away) - 2)]
        return arms, np.ones(len(arms), bool)

    return goes


def nobody(_: Step, __: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0, np.int64), np.empty(0, bool)


# --- thousands of lists at once: a bad arm that is known exactly, and groups of rivals that are all better

KNOWN = 3.0
LATE = 30  # looks after which all rivals of a group go but one
Keeps = Callable[
    [np.ndarray, np.random.Generator], np.ndarray
]  # U of the rivals of each group (n, m) -> who stays (n,)


def at_random(bounds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(bounds.shape[1], size=len(bounds))


def whom_the_bad_arm_comes_nearest(bounds: np.ndarray, _: np.random.Generator) -> np.ndarray:
    return np.argmin(bounds, axis=1)


@quick_leaders
def settled_wrongly(
    keeps: Keeps, runs: int, *, delta: float, size: int = 5, independent: bool = True, looks: int = 200, seed: int = 0
) -> int:
    """Groups in which every rival that counts is believed not to be better than the bad arm by more than epsilon = 1.

    Each rival is better by just over that, and is pulled once between two looks. The process of each is a trial of
    Ville's inequality of its own; `settled_wrongly` of `carried_studies` has no group.

    Args:
        keeps: who stays of each group after some looks; the others are withdrawn.
        runs: n, the groups.
        size: m, the rivals of each.
        independent: it is said that results have nothing to do with it, so that the others count no more.
    """
    told = sp.SubGaussian((1e-9, *[2.0] * (runs * size)))
    asked = {"epsilon": 1.0, "delta": delta, "noise": told, "evidence": "carried"}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=range(runs * size + 1)), **asked)
    rng, state = np.random.default_rng([seed, 20_301]), policy.init()
    for look in range(looks):
        counts = np.append(1, np.where(state.away[1:], 0, 1))
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=counts, dim=len(counts), **given)
        sums = counts[1:] * (KNOWN + GAP + 2.0 * rng.standard_normal(runs * size))
        seen = Observations(counts, np.append(KNOWN, sums), np.append(KNOWN**2, np.zeros(runs * size)))
        step = policy.tell(state, plan, seen)
        if look + 1 == LATE:
            bounds = step.state.bounds_of(0)[1:].reshape(runs, size)
            goes = np.ones((runs, size), bool)
            goes[np.arange(runs), keeps(bounds, rng)] = False
            arms = 1 + np.flatnonzero(goes.ravel())
            step = policy.withdraw(step, arms, np.full(len(arms), independent))
        state = step.state
    settled = (state.bounds_of(0)[1:] <= 1.0) | state.dropped[1:]
    return int(settled.reshape(runs, size).all(axis=1).sum())


# --- arms that come: a group after another, each better than an arm that is known exactly

EVERY = 25  # looks between two groups


@quick_leaders
def settled_by_group(runs: int, *, delta: float, groups: int, share: float | None = None, seed: int = 0) -> np.ndarray:
    """Which arms are believed not to be better than a bad arm by more than epsilon = 1, shape (groups + 1, runs).

    Each is better by just over that. Group 0 is there from the start, the others come one after another, and all are
    pulled once a look from then on.

    Args:
        runs: the arms of each group.
        share: of delta, for those that come.
    """
    size = runs * (groups + 1)
    ids = [str(place) for place in range(size + 1)]
    asked = {"epsilon": 1.0, "delta": delta, "noise": sp.SubGaussian((1e-9, *[2.0] * size)), "evidence": "carried"}
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=ids), **asked, later=ids[runs + 1 :], later_share=share
    )
    rng, state = np.random.default_rng([seed, 20_302]), policy.init()
    for look in range(EVERY * (groups + 4)):
        there = ~state.away[1:]
        counts = np.append(1, there.astype(np.int64))
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=counts, dim=len(counts), **given)
        sums = counts[1:] * (KNOWN + GAP + 2.0 * rng.standard_normal(size))
        step = policy.tell(
            state, plan, Observations(counts, np.append(KNOWN, sums), np.append(KNOWN**2, np.zeros(size)))
        )
        group, rest = divmod(look + 1, EVERY)
        if rest == 0 and 1 <= group <= groups:
            step = policy.add(step, np.arange(1 + runs * group, 1 + runs * (group + 1)))
        state = step.state
    return (state.bounds_of(0)[1:] <= 1.0).reshape(groups + 1, runs)


@counted()
def added_wrongly(runs: int, *, delta: float, when_good: bool) -> Iterator[bool]:
    """Studies of three bad arms that end with one of them, though the best arm was added to them, or is not there yet.

    Somebody who sees all results adds it once the leader of the bad ones leads by a standard error, or trails its own
    mean of the first batches. A study that ends before is right: the bad ones are equals.
    """
    ids = ["0", "1", "2", "best"]
    world = sp.environments.Environment(
        arms=sp.Arms(ids=ids), means=np.array([-GAP] * 3 + [0.0]), noise=sp.SubGaussian(SIGMA)
    )
    policy = policy_of(world, delta, later=("best",), later_share=0.5)
    for run in range(runs):
        rng, state, first = np.random.default_rng([run, 20_303]), policy.init(), None
        while not stopped(policy, state) and state.round < 400:
            plan = policy.ask(state)
            step = policy.tell(state, plan, world.pull(plan.counts, rng))
            means = step.state.seen.means[:3]
            first = float(means.max()) if first is None else first
            ahead = float(np.sort(means)[-1] - np.sort(means)[-2]) > SIGMA / np.sqrt(step.state.seen.counts[:3].max())
            if step.state.away[3] and (ahead if when_good else means.max() < first):
                step = policy.add(step, np.array([3]))
            state = step.state
        answer = policy.claim(state)
        yield bool(answer.finished == "certified" and not state.away[3] and answer.leader != 3)
