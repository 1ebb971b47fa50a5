"""Studies in which results are mistyped and corrected after their round was closed, without a log."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.carried.situation import DecisionContext
from surepick.studies.logs.base import Correction, Deviations
from surepick.studies.replay import Closed, in_order, replay

Rewards = list[np.ndarray]  # of each arm


def seen_of(rewards: Rewards) -> Observations:
    """The totals of a batch."""
    counts, sums, squares = ([part(one) for one in rewards] for part in (len, np.sum, lambda one: np.sum(one**2)))
    within = [float(np.sum((one - one.mean()) ** 2)) if len(one) else 0.0 for one in rewards]
    return Observations(np.array(counts), np.array(sums), np.array(squares), within=np.array(within))


def judged(policy, state, closed: Closed):
    """The state after a plan, as a study has it."""
    return next(iter(replay(policy, in_order([closed]), state=state))).step.state


@dataclass(frozen=True)
class Slip:
    """A result that is typed with the point in another place.

    Args:
        plan, arm, place: whose it is, plans counted from 0.
        wait: so many plans later it is corrected, while that plan is open; 0: before the next plan is made.
    """

    plan: int
    arm: int
    place: int
    wait: int


@dataclass
class Mistyped:
    """A study of normal rewards, each of which is mistyped with some probability, and corrected later.

    Args:
        chance: that a result is mistyped.
        waits: one of these for each slip.
        judge: policy, state, closed plan -> the state after it.
    """

    policy: Any
    means: np.ndarray
    scale: float
    rng: np.random.Generator
    chance: float = 0.05
    factor: float = 10.0
    waits: tuple[int, ...] = (0, 1)
    most_pulls: int = 20_000
    judge: Callable[[Any, Any, Closed], Any] = judged
    plans: list[Plan] = field(default_factory=list)
    read: list[Rewards] = field(default_factory=list)
    slips: list[Slip] = field(default_factory=list)  # that are not corrected yet
    came: list[Deviations] = field(default_factory=list)

    @property
    def pulls(self) -> int:
        return sum(plan.total for plan in self.plans)

    @property
    def corrected(self) -> int:
        return sum(len(one.corrected) for one in self.came)

    def measured(self, plan: Plan) -> Rewards:
        """What is read; the slips with which it is typed are noted."""
        read = [mean + self.scale * self.rng.normal(size=n) for mean, n in zip(self.means, plan.counts, strict=True)]
        places = [(arm, place) for arm, own in enumerate(read) for place in range(len(own))]
        wrong = self.rng.random(len(places)) < self.chance
        waits = self.rng.choice(self.waits, len(places))
        rows = zip(places, wrong, waits.tolist(), strict=True)
        self.slips += [Slip(len(self.plans), *place, wait) for place, slipped, wait in rows if slipped]
        return read

    def known(self, number: int) -> Observations:
        """What a plan gave, as far as it is known."""
        rewards = [one.copy() for one in self.read[number]]
        for slip in self.slips:
            if slip.plan == number:
                rewards[slip.arm][slip.place] *= self.factor
        return seen_of(rewards)

    def closed(self, plan: Plan, read: Rewards, due: list[Slip]) -> Closed:
        """The plan, and what is corrected with it."""
        number = len(self.plans)
        self.slips = [one for one in self.slips if one not in due]
        self.plans, self.read = [*self.plans, plan], [*self.read, read]
        values = [(one, float(self.read[one.plan][one.arm][one.place])) for one in due]
        made = [Correction(number + 1, 0, one.plan + 1, one.arm, self.factor * read, read) for one, read in values]
        self.came.append(Deviations(corrected=tuple(made)))
        before = [Closed(one + 1, self.plans[one], self.known(one), self.came[one]) for one in range(number)]
        return Closed(number + 1, plan, self.known(number), self.came[number], tuple(before) if made else ())

    def play(self) -> tuple[bool, int]:
        """(whether it is certified, the arm that it names): once no slip is left."""
        state = self.policy.init()
        while True:
            claim, last = self.policy.claim(state), len(self.plans) - 1
            if (claim.finished and not self.slips) or self.pulls > self.most_pulls:
                return claim.finished == "certified", claim.leader
            due = [one for one in self.slips if claim.finished or one.plan + one.wait == last]
            if due:  # a plan of nothing, with which they are corrected
                nothing = replace(self.plans[last], round=state.round, counts=np.zeros_like(self.plans[last].counts))
                closed = self.closed(nothing, [np.empty(0)] * len(self.means), due)
            else:
                plan = self.policy.ask(state)
                read = self.measured(plan)
                later = [one for one in self.slips if one.plan < len(self.plans) == one.plan + one.wait]
                closed = self.closed(plan, read, later)
            state = self.judge(self.policy, state, closed)


# --- one candidate that is known exactly, and many rivals, all better by just over epsilon = 1, that err independently

DELTA, GAP, KNOWN, SIGMA = 0.1, 1.002, 3.0, 2.0
EVERY = 10  # rounds, after which all slips of the rounds before are corrected


def settled_wrongly(
    runs: int, looks: int, *, judge: Callable[[Any, Any, Closed], Any] = judged, factor: float = 10.0, seed: int = 0
) -> int:
    """Rivals that the candidate is wrongly said to be as good as, once every slip is corrected.

    Each is measured once a round, and mistyped by that factor one time in twenty.
    """
    noise = sp.SubGaussian((1e-9, *[SIGMA] * runs))
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=range(runs + 1)), epsilon=1.0, delta=DELTA, noise=noise
    )
    rng, state, counts = np.random.default_rng([seed, 37]), policy.init(), np.ones(runs + 1, np.int64)
    told: list[Closed] = []
    typed: list[np.ndarray] = []
    with patch.object(DecisionContext, "leader", lambda *_: 0):  # the worst that may lead
        for look in range(1, looks + 1):
            read = np.append(KNOWN, KNOWN + GAP + SIGMA * rng.normal(size=runs))
            slipped = np.append(False, rng.random(runs) < 0.05)
            typed.append(np.where(slipped, factor * read, read))
            given = {"predicted_pulls": runs + 1.0, "candidate": 0} if look > 1 else {}
            plan = Plan(round=state.round, counts=counts, dim=len(counts), **given)
            told.append(Closed(look, plan, Observations(counts, read, read**2, within=0.0 * read)))
            now = typed[-1]
            closed = replace(told[-1], seen=Observations(counts, now, now**2, within=0.0 * now))
            if look % EVERY == 0:  # the slips of this round are corrected before it is over
                some = Correction(look, 0, 1, 1, 0.0, 0.0)
                closed = replace(told[-1], past=tuple(told[:-1]), deviations=Deviations(corrected=(some,)))
            state = judge(policy, state, closed)
    return int(np.sum(state.bounds_of(0)[1:] <= 1.0))
