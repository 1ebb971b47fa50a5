"""Studies of the best arm that keeps a bound, on instances where errors are as likely as they can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from bounds import counted

import surepick as sp
from surepick.core.observations import Observations, Quantity
from surepick.core.records import FloatArray, IntArray, record
from surepick.environments.rewards import NormalRewards, RewardLaw
from surepick.estimators.e_values import processes_of
from surepick.policies.questions.elimination import CertifiedLists
from surepick.policies.verdict import certificate_of
from surepick.questions import wrongly_listed
from surepick.questions.feasible import BestFeasible
from surepick.questions.protocol import Bet, View

HAIR = 1e-6
MOST_PULLS_EACH = 25  # a study that has not ended by then has made no error


@record
class RewardsBeside:
    """Rewards of one law, and quantities of others, drawn independently."""

    rewards: RewardLaw  # the law of the rewards
    quantities: tuple[RewardLaw, ...]  # the laws of the quantities, r of them

    @property
    def means(self) -> FloatArray:
        return self.rewards.means

    @property
    def quantity_means(self) -> FloatArray | None:
        """The mean of each quantity of each arm, shape (K, r)."""
        return np.stack([one.means for one in self.quantities], axis=1)

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times."""
        seen = self.rewards.draw(counts, rng)
        drawn = [one.draw(counts, rng) for one in self.quantities]
        unknown = np.zeros(len(counts))
        beside = tuple(
            Quantity(one.counts, one.sums, unknown if one.squares is None else one.squares, one.within) for one in drawn
        )
        return replace(seen, quantities=beside)


def hidden_by_reward(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """(rewards, quantities): one arm is a hair too good to be passed over, and all keep the bound 0 by a lot."""
    rewards = np.full(num_arms, -2.0)
    rewards[:2] = 1.0 + HAIR, 0.0
    return rewards, np.full(num_arms, -1.0)


def hidden_by_its_bound(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """The best arm keeps the bound 0 and no more; the others keep it by a lot, and are far worse."""
    rewards, quantities = hidden_by_reward(num_arms)
    return 3.0 * rewards, np.where(rewards > 0.0, 0.0, quantities)


def none_but_one(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """One arm keeps the bound 0 and no more; the others break it by a lot: "none" is wrong."""
    quantities = np.full(num_arms, 2.0)
    quantities[0] = 0.0
    return np.zeros(num_arms), quantities


def tempting(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """All arms are alike, and a hair beyond the tolerance 1."""
    return np.zeros(num_arms), np.full(num_arms, 1.0 + HAIR)


INSTANCES = {one.__name__: one for one in (hidden_by_reward, hidden_by_its_bound, none_but_one, tempting)}


class Hostile(BestFeasible):
    """It tests a bad candidate alone, or none, whatever the data say: a study ends by an error, or not at all.

    What is promised must hold for any candidates.
    """

    @property
    def bad(self) -> int | None:
        return 1

    def named(self, view: View) -> int | None:
        return self.bad

    def _fresh(self, view: View, opened: tuple[int, ...]) -> list[int]:
        return [] if self.bad is None or opened else [self.bad]


class Nobody(Hostile):
    """It looks for no candidate: the study ends when no arm seems to keep the bound."""

    @property
    def bad(self) -> int | None:
        return None


class Careless(BestFeasible):
    """A saboteur: arms share nothing, so that any of them may be said to keep the bound with probability delta."""

    def kept(self, view: View) -> float:
        return float(-np.log(view.delta))


def shifted(bet: Bet) -> Bet:
    """A saboteur: what is bet against is easier than what is said, by a whole unit."""
    return replace(bet, margin=bet.margin + 1.0)


class ShiftedHostile(Hostile):
    """The saboteur with a bad candidate."""

    def bets(self, view: View) -> tuple[Bet, ...]:
        return tuple(map(shifted, super().bets(view)))


class ShiftedNobody(Nobody):
    """The saboteur without a candidate."""

    def bets(self, view: View) -> tuple[Bet, ...]:
        return tuple(map(shifted, super().bets(view)))


def policy_for(num_arms: int, delta: float, player: type[BestFeasible]) -> CertifiedLists:
    """certified-independent, asked for the best arm whose quantity is at most 0, but for 1."""
    arms = sp.Arms(np.empty((num_arms, 0)), range(num_arms))
    asked = {"constraints": ["quantity<=0,tolerance=1,noise=subgaussian:1"], "noise": "subgaussian:1"}
    made = sp.make_policy("certified-independent", arms, epsilon=1.0, delta=delta, **asked)
    object.__setattr__(made, "_inquiry", player(made.problem.question.constraints))
    return made


@counted()
def wrong_studies(
    instance: str, runs: int, delta: float, player: type[BestFeasible], *, num_arms: int = 3
) -> Iterator[bool]:
    """Studies whose answer is wrong, or that take an arm beyond the tolerance for one that keeps its bound.

    Those that the limit ends without either have made no error.
    """
    rewards, quantities = INSTANCES[instance](num_arms)
    law = RewardsBeside(NormalRewards(rewards, np.ones(num_arms)), (NormalRewards(quantities, np.ones(num_arms)),))
    policy, rng = policy_for(num_arms, delta, player), np.random.default_rng(num_arms)
    for _ in range(runs):
        state = policy.init()
        believed = False
        while not (state.finished or believed) and state.pulls < MOST_PULLS_EACH * num_arms:
            plan = policy.ask(state)
            assert plan.total > 0
            state = policy.tell(state, plan, law.draw(plan.counts, rng)).state
            peaks = processes_of(state.collected, "keeps 1", num_arms).peaks
            believed = bool(
                np.any(
                    (peaks >= policy._inquiry.kept(SimpleNamespace(num_arms=num_arms, delta=delta)))
                    & (quantities > 1.0)
                )
            )
        listed = False
        if state.finished and not believed:
            lists = certificate_of(policy, state).lists
            listed = bool(
                wrongly_listed(policy.problem, lists, policy.problem.arms, rewards, quantities[:, None]).any()
            )
        yield believed or listed
