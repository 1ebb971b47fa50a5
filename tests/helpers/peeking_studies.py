"""Users who see the rewards of an open plan, or lose some of them, on truths where it matters most."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from bounds import counted

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.verdict import certificate_of
from surepick.studies.logs.memory import MemoryLog

DELTA = 0.05
EPSILON = 1.0
GAP = 1.02 * EPSILON  # just outside
INDEPENDENT = "independent-of-value"


@dataclass(frozen=True)
class Story:
    """The running totals of two arms in one plan, at growing numbers of pulls of each.

    Args:
        counts: pulls of each arm so far, shape (m, 2); the last row is the whole plan.
        sums: total rewards so far, shape (m, 2).
    """

    counts: np.ndarray
    sums: np.ndarray

    def until(self, row: int) -> Observations:
        return Observations(self.counts[row], self.sums[row])

    def significance(self, sigma: float) -> np.ndarray:
        """By how many standard errors the means differ, after each part, shape (m,)."""
        means = self.sums / self.counts
        return np.abs(means[:, 0] - means[:, 1]) / (sigma * np.sqrt((1.0 / self.counts).sum(axis=1)))


def sizes(most: int) -> np.ndarray:
    """1, 2, 3, ... and later steps of 1 %, up to `most`."""
    return np.unique(np.append(np.geomspace(1, most, 2000).astype(np.int64), most))


def story(plan: Plan, sigma: float, rng: np.random.Generator) -> Story:
    """Both arms measured in turn; totals of normal rewards between two looks are normal."""
    rows = sizes(int(plan.counts.max()))
    counts = np.minimum(rows[:, None], plan.counts)
    steps = np.diff(counts, axis=0, prepend=0)
    means = np.array([0.0, -GAP])
    sums = np.cumsum(means * steps + sigma * np.sqrt(steps) * rng.standard_normal(steps.shape), axis=0)
    return Story(counts, sums)


def two_arms(sigma: float) -> tuple[sp.Arms, sp.Policy]:
    """One judgement a round, and the first is certain to be enough for an honest user."""
    arms = sp.Arms(np.eye(2), ids=["best", "other"])
    given = {"epsilon": EPSILON, "delta": DELTA, "noise": sp.SubGaussian(sigma), "norm_bound": 2.0, "looks": 1}
    return arms, sp.make_policy("linear-embedding", arms, **given)


User = Callable[[sp.Study, Story], None]


def beginning(arms: sp.Arms, policy: sp.Policy) -> Callable[[], sp.Study]:
    """Makes studies that have their first plan already; it is the same in all of them, and computed once."""
    first = sp.Study(arms, policy)
    first.ask()

    def make() -> sp.Study:
        log = MemoryLog()
        log.add_decision(first.log.last_decision())
        log.add_plan(first.log.last_plan())
        return sp.Study(arms, policy, log=log)

    return make


def honest_user(study: sp.Study, told: Story) -> None:
    """Tells all that was asked."""
    study.tell_totals(study.ids, told.counts[-1], told.sums[-1])


def peeking_user(study: sp.Study, told: Story) -> None:
    """Judges what came so far whenever the arms differ more than ever before, and closes the plan if it would do."""
    policy, plan = study.policy, study.ask()
    state = study.log.last_decision().state
    seen = told.significance(policy.problem.noise.sigma)
    records = np.flatnonzero((seen > np.maximum.accumulate(np.append(0.0, seen[:-1]))) & (seen > 2.0))
    for row in records.tolist():
        so_far = told.until(row)
        if certificate_of(policy, policy.tell(state, plan, so_far).state).verdict == "certified":
            study.tell_totals(study.ids, so_far.counts, so_far.sums)
            if study.missing.any():
                study.abandon(INDEPENDENT)
            return
    honest_user(study, told)


@counted(DELTA)
def wrong_certificates(user: User, runs: int, *, sigma: float) -> Iterator[bool]:
    """Studies that end with a certificate for the arm that is worse by more than epsilon.

    Args:
        sigma: of the noise; the larger, the more pulls, and the more often one can look.
    """
    begin = beginning(*two_arms(sigma))
    for seed in range(runs):
        rng, study = np.random.default_rng([seed, 20_265]), begin()
        while (plan := study.ask()) is not None:
            user(study, story(plan, sigma, rng))
        answer = study.certificate()
        yield bool(answer.verdict == "certified" and answer.best_arm == "other")


# results that are lost

FINE = 0.05  # epsilon
SUCCESS = np.array([0.5, 0.5 - 1.02 * FINE])


@counted(DELTA)
def wrong_with_losses(lost: float, runs: int) -> Iterator[bool]:
    """The same for rewards of 0 and 1, when a share of the best arm's successes never arrives."""
    arms = sp.Arms(ids=["best", "other"])
    asked = {"epsilon": FINE, "delta": DELTA, "noise": sp.Bernoulli()}
    policy = sp.make_policy("certified-independent", arms, **asked)
    begin = beginning(arms, policy)
    for seed in range(runs):
        rng, study = np.random.default_rng([seed, 20_266]), begin()
        while (plan := study.ask()) is not None:
            sums = rng.binomial(plan.counts, SUCCESS)
            missing = np.array([rng.binomial(sums[0], lost), 0])
            study.tell_totals(study.ids, plan.counts - missing, sums - missing)
            if study.missing.any():
                study.abandon(INDEPENDENT)
        answer = study.certificate()
        yield bool(answer.verdict == "certified" and answer.best_arm == "other")
