"""Few candidates: bad answers are as rare as promised, also where somebody else decides what is measured.

docs/mixtures.md, lines 44 to 49. All bad candidates are just outside the tolerance. The saboteurs choose the weight of
a part afterwards, or count a part that is not closed, and are noticed.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import streams
from surepick.core.records import rows_of
from surepick.policies.mixture_rules import MixtureRules, Rows
from surepick.studies.rehearsal import received_as_drawn

DELTA = 0.1
OUTSIDE = 1.001  # of epsilon: by how much bad candidates are worse
SCALES = (1.0, 0.001, 1.0, 0.001)
QUICK_AND_ALL = [400, pytest.param(10_000, marks=pytest.mark.slow)]


def world(best: float, gap: float, num_arms: int, noise) -> sp.environments.Environment:
    means = np.full(num_arms, best - gap)
    means[0] = best
    return sp.environments.Environment(arms=sp.Arms(ids=range(num_arms)), means=means, noise=noise)


NORMAL = sp.SubGaussian(1.0)
HOSTILE = {
    "two": world(0.0, 1.0, 2, NORMAL),
    "three": world(0.0, 1.0, 3, NORMAL),
    "ten": world(0.0, 1.0, 10, NORMAL),
    "0 and 1, near 0": world(0.2, 0.19, 2, sp.Bernoulli()),
    "0 and 1, near 1": world(0.99, 0.19, 3, sp.Bernoulli()),
    "in a range": world(0.9, 0.3, 3, sp.Bounded(0.0, 1.0)),
    "scales 1 to 1000": world(0.0, 1.0, 4, sp.SubGaussian(SCALES)),
}


def policy_for(environment: sp.environments.Environment, delta: float = DELTA):
    epsilon = float(environment.gaps.max()) / OUTSIDE
    asked = {"epsilon": epsilon, "delta": delta, "noise": environment.noise}
    return sp.make_policy("certified-independent", environment.arms, evidence="mixtures", **asked)


@pytest.mark.parametrize("runs", QUICK_AND_ALL)
@pytest.mark.parametrize("name", HOSTILE)
def test_answers_are_right(name, runs):
    environment = HOSTILE[name]
    found = sp.simulate_many(policy_for(environment), environment, seeds=range(runs))
    wrong = int(np.count_nonzero(~found.right))
    print(f"\n{name}: {wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


def switching(rows: Rows, rng: np.random.Generator) -> np.ndarray:
    """Counts of somebody who wants a bad answer: the best arm, and the bad one that looks best beside it, many times
    while that one is ahead, and one of each while it is not."""
    means = np.where(rows.seen.counts > 0, rows.seen.means, -np.inf)
    bad = 1 + np.argmax(means[:, 1:], axis=1)
    every, counts = np.arange(len(bad)), (rng.random(means.shape) < 0.1).astype(np.int64)
    ahead = means[every, bad] > means[:, 0]
    counts[every, bad] += np.where(ahead, 5, 1)
    counts[:, 0] += np.where(ahead, 5, 1)
    return counts


def wrong_answers(environment, runs: int, choose, batches: int = 40, rules: type[MixtureRules] = MixtureRules) -> int:
    """How many studies name a bad arm within so many batches, whose counts are chosen by somebody else."""
    policy, rng = policy_for(environment), np.random.default_rng(0)
    play, seeds, rows, wrong = rules(policy.problem, None), np.arange(runs), None, 0
    planned = play.first(runs)
    for number in range(batches):
        drawn = environment.law.draw_many(planned.counts, streams(seeds.tolist(), "rewards", number))
        rows = play.tell(rows, planned, received_as_drawn(drawn, minimize=False))
        wrong += int(np.count_nonzero(rows.finished & (rows.leader != 0)))
        left = np.flatnonzero(~rows.finished)
        if len(left) == 0:
            break
        rows, seeds = rows_of(rows, left), seeds[left]
        planned = play.ask(rows)
        planned.counts = choose(rows, rng)
    return wrong


@pytest.mark.parametrize("runs", QUICK_AND_ALL)
@pytest.mark.parametrize("name", ["three", "0 and 1, near 0"])
def test_somebody_who_switches_does_no_better(name, runs):
    wrong = wrong_answers(HOSTILE[name], runs, switching)
    print(f"\n{name}: {wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


class ChosenAfterwards(MixtureRules):
    """The part that holds most gets all of the weight."""

    def concluded(self, rows: Rows, planned) -> Rows:
        whole = math.log(rows.log_values.shape[3] * (rows.log_values.shape[1] - 1))
        found = MixtureRules.concluded(self, replace(rows, log_values=rows.log_values + whole), planned)
        return replace(found, log_values=rows.log_values)


class NotClosed(MixtureRules):
    """What the pulls of the arm itself cost is forgotten, and so is what was taken from them."""

    def gained(self, past: Observations, seen: Observations):
        bets = self.bets(past, seen.counts)
        theirs = (slice(None), None, slice(None), None)
        weights = bets.flows / np.maximum(seen.counts, 1)[theirs]
        return np.where(bets.flows > 0.0, bets.costs.gains(weights, seen, theirs, up=True), 0.0), bets.flows


@pytest.mark.parametrize("rules", [ChosenAfterwards, NotClosed])
def test_saboteurs_are_noticed(rules):
    runs = 400
    environment = HOSTILE["ten"] if rules is ChosenAfterwards else world(4.0, 1.0, 3, NORMAL)
    plain = MixtureRules(policy_for(environment).problem, None)
    wrong = wrong_answers(environment, runs, lambda rows, _: plain.ask(rows).counts, rules=rules)
    print(f"\n{wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong > failures_allowed(runs, DELTA)
