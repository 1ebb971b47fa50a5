"""What a study says of its leader, and of who is out, as users see it.

Line 15 of docs/certified-elimination.md, and line 46 of docs/mixtures.md.
"""

from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from bounds import failures_allowed

import surepick as sp
from surepick.core.random_streams import stream
from surepick.policies import mixture_rules
from surepick.policies.carried import situation
from surepick.studies.progress import Progress, rounded_up

STUDIES, DELTA = {"linear": 5, "kernel": 5, "clicks": 12, "mixtures": 12}, 0.05  # with 5 who is always wrong is noticed
SABOTAGE = 6.0  # of log(1/delta), which is 3


@dataclass(frozen=True)
class Round:
    """What a study said after a round, and what is true of the leader that it named.

    Args:
        progress: what it said.
        gap: how much worse than the best the leader is.
        best_is_out: the best arm is among those that are ruled out.
    """

    progress: Progress
    gap: float
    best_is_out: bool

    @property
    def wrong(self) -> bool:
        """Some of it is false, as it is printed."""
        said = self.progress.certified_gap
        return self.best_is_out or (said is not None and float(rounded_up(said)) < self.gap)


def linear(seed: int):
    world = sp.environments.soare(4, 0.4, seed, sigma=1.0)
    return world, "certified-linear", {"norm_bound": 1.0, "epsilon": 0.3}


def kernel(seed: int):
    """Means in the space of a Gaussian kernel, of norm 1: weights on five of ten places of a line."""
    places = np.linspace(0.0, 1.0, 10)[:, None]
    gram = np.exp(-4.0 * (places - places.T) ** 2)
    weights = np.zeros(10)
    weights[::2] = stream(seed, "kernel world").normal(size=5)
    means = gram @ weights / np.sqrt(weights @ gram @ weights)
    world = sp.environments.Environment(arms=sp.Arms(places), means=means, noise=sp.SubGaussian(1.0))
    return world, "certified-kernel", {"gamma": 4.0, "norm_bound": 1.0, "epsilon": 0.4}


def clicks(seed: int, evidence: str = "carried"):
    """0/1 rewards without structure."""
    means = stream(seed, "clicks").uniform(0.1, 0.6, size=6)
    means[seed % 6] = 0.8
    world = sp.environments.Environment(arms=sp.Arms(ids=list("abcdef")), means=means, noise=sp.Bernoulli())
    return world, "certified-independent", {"epsilon": 0.1, "evidence": evidence}


WORLDS = {"linear": linear, "kernel": kernel, "clicks": clicks, "mixtures": partial(clicks, evidence="mixtures")}


def studied(kind: str, seed: int) -> list[Round]:
    """A whole study, round by round."""
    world, name, options = WORLDS[kind](seed)
    study = sp.Study(sp.make_policy(name, world.arms, delta=DELTA, noise=world.noise, **options))
    said = []
    while (plan := study.ask()) is not None:
        seen = world.pull(plan.counts, stream(seed, "running gap", plan.number))
        study.tell_totals(study.ids, seen.counts, seen.sums, seen.squares)
        row = study.trace[-1]
        best_is_out = world.best not in row.active
        said.append(Round(study.progress(), float(world.gaps[row.leader]), best_is_out))
    return said


@cache
def studies(kind: str) -> tuple[list[Round], ...]:
    return tuple(studied(kind, seed) for seed in range(STUDIES[kind]))


def share_known(said: list[Round]) -> float:
    """The share of the measurements after which something was said of the leader for the first time."""
    first = next(one.progress.pulls for one in said if one.progress.certified_gap is not None)
    return first / said[-1].progress.pulls


@pytest.mark.parametrize("kind", WORLDS)
def test_what_is_said_at_any_time_is_true(kind):
    wrong = sum(any(one.wrong for one in said) for said in studies(kind))
    assert wrong <= failures_allowed(STUDIES[kind], DELTA)


@pytest.mark.parametrize(("kind", "rules"), [("clicks", situation), ("mixtures", mixture_rules)])
def test_evidence_that_is_taken_for_more_is_noticed(monkeypatch, kind, rules):
    """The saboteur: each process is judged as if it had reached 400 times as much."""
    honest = rules.threshold_of
    monkeypatch.setattr(rules, "threshold_of", lambda problem: honest(problem) - SABOTAGE)
    wrong = sum(any(one.wrong for one in studied(kind, seed)) for seed in range(STUDIES[kind]))
    assert wrong > failures_allowed(STUDIES[kind], DELTA)


@pytest.mark.parametrize(("kind", "early"), [("linear", 0.3), ("kernel", 0.3), ("clicks", 0.8), ("mixtures", 0.4)])
def test_something_is_said_before_the_end(kind, early):
    shares = [share_known(said) for said in studies(kind)]
    assert max(shares) < 1.0
    assert np.mean(shares) <= early


@pytest.mark.parametrize("kind", WORLDS)
def test_it_falls_while_the_recommendation_stays(kind):
    falls = 0
    for said in studies(kind):
        for before, after in pairwise(one.progress for one in said):
            if before.leader == after.leader and before.certified_gap is not None:
                assert after.certified_gap <= before.certified_gap
                falls += after.certified_gap < before.certified_gap
            assert after.ruled_out >= before.ruled_out
    assert falls >= STUDIES[kind]


@pytest.mark.parametrize("kind", WORLDS)
def test_at_the_end_it_is_what_was_asked_for(kind):
    for said in studies(kind):
        assert said[-1].progress.verdict == "certified"
        assert said[-1].progress.certified_gap <= WORLDS[kind](0)[2]["epsilon"]
