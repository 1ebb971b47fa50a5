"""Studies of questions on known truths, led by an adversary who sees the past: pulls, guesses, and when to stop.

The proofs of docs/questions.md let all three be any function of the past (line 1). The policy makes the bets, collects
the evidence, and draws up the lists. Errors are as likely as they can be: every null that matters is true by a hair,
and the adversary guesses that it is false, so that bets against it are bold.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.estimators.posterior import Posterior
from surepick.policies.questions.elimination import CertifiedLists
from surepick.policies.questions.outlook import Ground
from surepick.policies.sequential.state import SequentialState
from surepick.questions import AllGood, TopM, inquiry_of, lists_of, protocol, wrongly_listed

HAIR = 0.002  # of epsilon: by how much a statement about an arm at the border is wrong
KNOWN = 100_000  # pulls a batch of an arm that is as good as known
STEP = 0.1  # variance of the steps of a walk: so small that it hardly overshoots
HOPELESS = -4.0  # log of a process that will hardly reach its threshold any more
Counts = Callable[[SequentialState], np.ndarray | None]
Scores = Callable[[SequentialState], np.ndarray]


@dataclass(frozen=True)
class World:
    """Means on which statements are wrong by a hair.

    Args:
        means: shape (K,).
        sigma: of normal rewards; None: they are 0 or 1.
        epsilon: in reward units.
    """

    means: np.ndarray
    sigma: float | None = 1.0
    epsilon: float = 1.0

    def policy(self, question: str, delta: float, **options: object) -> CertifiedLists:
        """Certified-independent on this question."""
        noise = "bounded:0:1" if self.sigma is None else f"subgaussian:{self.sigma:g}"
        arms = sp.Arms(ids=range(len(self.means)))
        asked = {"epsilon": self.epsilon, "delta": delta, "noise": noise, "question": question}
        policy = sp.make_policy("certified-independent", arms, **asked, **options)
        assert isinstance(policy, CertifiedLists)
        return policy

    def pulled(self, counts: np.ndarray, rng: np.random.Generator) -> Observations:
        """Rewards of so many pulls."""
        if self.sigma is None:
            ones = rng.binomial(counts, self.means).astype(float)
            return Observations(counts, ones, ones)
        scatter = self.sigma * np.sqrt(counts) * rng.standard_normal(len(counts))
        return Observations(counts, counts * self.means + scatter)


@dataclass(frozen=True)
class Adversary:
    """What is measured, and what is guessed.

    Args:
        counts: pulls of the next batch, shape (K,); None: the study is stopped here.
        scores: guesses of the means that the next bets rest on, and the list of the m best; shape (K,).
        doubt: the standard error that all guesses are said to have.
    """

    counts: Counts
    scores: Scores
    doubt: float = 0.0


@dataclass(frozen=True)
class End:
    """How a study ended: wrongly listed arms, and lengths of the lists."""

    wrong_inside: int
    wrong_outside: int
    inside: int
    outside: int

    @property
    def wrong(self) -> bool:
        return self.wrong_inside + self.wrong_outside > 0

    @property
    def shares(self) -> tuple[float, float, float]:
        """The wrong share of the first list, of the second, and of both together."""
        wrong, listed = self.wrong_inside + self.wrong_outside, self.inside + self.outside
        return (
            self.wrong_inside / max(self.inside, 1),
            self.wrong_outside / max(self.outside, 1),
            wrong / max(listed, 1),
        )


def guesses(scores: np.ndarray, doubt: float) -> AbstractContextManager[object]:
    """While this lasts, a policy guesses that these are the means."""

    def posterior(ground: Ground, seen: Observations) -> Posterior:
        return Posterior(scores, lambda centre: np.full(len(scores), doubt), ground.number or 0.0)

    return patch.object(Ground, "posterior", posterior)


def played(policy: CertifiedLists, world: World, seed: int, adversary: Adversary | None, horizon: int) -> End:
    """A study until it ends, the adversary stops it, or so many batches are done; None: the policy is on its own.

    What is on a wrong list at the horizon counts; what might have got there later does not.
    """
    rng, state = np.random.default_rng([seed, 22]), policy.init()
    for _ in range(horizon):
        if state.finished:
            break
        if adversary is None:
            plan = policy.ask(state)
            state = policy.tell(state, plan, world.pulled(plan.counts, rng)).state
            continue
        counts = adversary.counts(state)
        if counts is None:
            break
        plan = Plan(round=state.round, counts=counts, dim=len(counts), predicted_pulls=1.0)
        with guesses(adversary.scores(state), adversary.doubt):
            state = policy.tell(state, plan, world.pulled(counts, rng)).state
    return _end(policy, world, state)


def _end(policy: CertifiedLists, world: World, state: SequentialState) -> End:
    listed, arms = lists_of(policy.problem, policy.claim(state).lists), policy.problem.arms
    assert listed is not None
    assert arms is not None
    wrong, lists = wrongly_listed(policy.problem, listed, arms, world.means), state.lists
    counted = (wrong & lists.inside, wrong & lists.outside, lists.inside, lists.outside)
    return End(*(int(np.count_nonzero(one)) for one in counted))


def values(state: SequentialState, name: object) -> np.ndarray:
    """Log of the processes of one name, shape (K,); 0 where nothing was bet yet."""
    return next((one.values for one in state.collected if one.name == str(name)), np.zeros(len(state.seen.counts)))


def peaks(state: SequentialState, name: object) -> np.ndarray:
    """Log of the largest that each process of one name has been, shape (K,)."""
    return next((one.peaks for one in state.collected if one.name == str(name)), np.zeros(len(state.seen.counts)))


def steadily(scores: np.ndarray) -> Scores:
    """The same guess before every batch."""
    return lambda state: scores


# --- above a threshold or a control

NULLS = 20


def at_the_border(*, sigma: float | None, control: bool = False, both: bool = False) -> World:
    """20 arms that are below 0 (below .5 if rewards are 0 or 1) by epsilon and a hair; `both`: every other one is above
    it by as much; the control, which is the last arm, has that mean."""
    epsilon, centre = (0.2, 0.5) if sigma is None else (1.0, 0.0)
    off = np.full(NULLS, -(1.0 + HAIR) * epsilon)
    if both:
        off[::2] *= -1.0
    means = centre + off
    return World(np.append(means, centre) if control else means, sigma, epsilon)


def all_look_above(world: World, *, pulls: int, guess: float) -> Adversary:
    """All arms look as if they were above by `guess`; measured are those that may still get on the first list."""
    asked = np.arange(len(world.means)) < NULLS

    def counts(state: SequentialState) -> np.ndarray | None:
        left = asked & ~state.lists.decided & (values(state, "above") > HOPELESS)
        if state.lists.inside.any() or not left.any():
            return None
        return np.where(asked, np.where(left, pulls, 0), KNOWN)

    return Adversary(counts, steadily(np.where(asked, guess, 0.0)))


# --- shares of errors


def partly_bad(bad: int, good: int) -> World:
    """The first arms are below 0 by epsilon and a hair, others far above it; the last is never measured, so that the
    study goes on as long as the adversary likes."""
    return World(np.concatenate([np.full(bad, -1.0 - HAIR), np.full(good, 3.0), [0.0]]), sigma=2.0)


def first_list_filled(world: World, pulls: int) -> Adversary:
    """The good arms get on the first list at once; bad ones are measured until they are on it, or hopeless."""
    bad, good = world.means < 0.0, world.means > 0.0

    def counts(state: SequentialState) -> np.ndarray | None:
        left = bad & ~state.lists.inside & (values(state, "above") > HOPELESS)
        if state.round > 2 and not left.any():
            return None
        return np.where(left, pulls, np.where(good & (state.round <= 2), KNOWN, 0))

    return Adversary(counts, steadily(np.where(bad, -0.2, world.means)))


def played_out(runs: int, bad: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(last values, peaks) of the logs of processes of true nulls, shape (runs, bad): walks with small steps."""
    steps = np.random.default_rng([seed, 23]).normal(-STEP / 2.0, np.sqrt(STEP), (runs, bad, 300))
    walks = np.cumsum(steps, axis=2)
    return walks[:, :, -1], np.maximum(walks.max(axis=2), 0.0)


def good_ones_at_will(levels: np.ndarray, good: int, total: int, delta: float) -> int:
    """How many good arms an adversary adds to the list, so that the wrong share is largest if these are the e-values of
    the bad ones (logs, any order); 0: none helps."""
    ordered, best, chosen = np.sort(levels)[::-1], 0.0, 0
    for number in range(1, good + 1):
        lengths = number + np.arange(1, len(ordered) + 1)
        enough = np.flatnonzero(ordered >= np.log(total / (delta * lengths)))
        wrong = int(enough[-1]) + 1 if len(enough) else 0
        if wrong / (wrong + number) > best:
            best, chosen = wrong / (wrong + number), number
    return chosen


# --- the m best


def cut_by_a_hair(num_arms: int, best: int, *, sigma: float | None) -> World:
    """The best arms, all equal, and the others, all worse by epsilon and a hair."""
    epsilon, top = (0.3, 0.7) if sigma is None else (1.0, 0.0)
    means = np.full(num_arms, top)
    means[best:] -= (1.0 + HAIR) * epsilon
    return World(means, sigma, epsilon)


def one_swapped(policy: CertifiedLists, world: World, best: int, pulls: int) -> Adversary:
    """The list that is guessed has one bad arm in the place of a good one: the pair with the most evidence for it.

    The good arms are as good as known. Bad ones are measured until a pair reaches its threshold, then everybody.
    """
    num_arms, bad = len(world.means), np.arange(len(world.means)) >= best
    inquiry = inquiry_of(policy.problem)
    threshold = protocol.bet_threshold(best * (num_arms - best), policy.problem.delta)
    assert isinstance(inquiry, TopM)

    def pairs(state: SequentialState, get: Callable[[SequentialState, object], np.ndarray]) -> np.ndarray:
        return np.array([get(state, arm)[:best] for arm in range(best, num_arms)])

    def counts(state: SequentialState) -> np.ndarray | None:
        if pairs(state, peaks).max() >= threshold:
            return np.full(num_arms, KNOWN)
        left = bad.copy()
        left[best:] = (pairs(state, values) > HOPELESS).any(axis=1)
        return np.where(bad, np.where(left, pulls, 0), KNOWN) if left.any() else None

    def scores(state: SequentialState) -> np.ndarray:
        found = pairs(state, peaks)
        arm, out = np.unravel_index(int(np.argmax(found)), found.shape)
        order = np.where(bad, 0.0, 1e-6)
        order[best + arm], order[out] = 1e-6, 0.0
        return order

    return Adversary(counts, scores, doubt=world.epsilon)


# --- all that are good


def on_both_borders(good: int, bad: int, *, sigma: float | None) -> World:
    """The best arm, good ones that are worse by epsilon but for a hair, and bad ones that are worse by twice epsilon
    and a hair."""
    epsilon, top = (0.2, 0.8) if sigma is None else (1.0, 0.0)
    off = np.concatenate([[0.0], np.full(good, -1.0 + HAIR), np.full(bad, -2.0 - HAIR)])
    return World(top + epsilon * off, sigma, epsilon)


def good_look_bad(policy: CertifiedLists, world: World, good: int, pulls: int) -> Adversary:
    """Good arms look worse than they are and bad ones better; measured are those that may still be listed wrongly."""
    arms, inquiry = np.arange(len(world.means)), inquiry_of(policy.problem)
    is_good, is_bad = (arms > 0) & (arms <= good), arms > good
    assert isinstance(inquiry, AllGood)
    threshold = protocol.bet_threshold(len(arms), policy.problem.delta)

    def against_the_best(state: SequentialState, get: Callable[[SequentialState, object], np.ndarray]) -> np.ndarray:
        return np.array([get(state, arm)[0] for arm in arms])

    def counts(state: SequentialState) -> np.ndarray | None:
        lists = state.lists
        if (is_good & lists.outside).any() or (is_bad & lists.inside).any():
            return None
        still = ~lists.decided
        if (still & is_bad & (against_the_best(state, peaks) >= threshold)).any():
            return np.full(len(arms), KNOWN)  # it is in as soon as the others are no better
        may_get_in = is_bad & (against_the_best(state, values) > HOPELESS)
        left = still & (may_get_in | (is_good & (values(state, "out") > HOPELESS)))
        return np.where(arms == 0, KNOWN, np.where(left, pulls, 0)) if left.any() else None

    return Adversary(counts, steadily(np.where(arms == 0, 0.0, np.where(is_good, -1.7, -1.2))))
