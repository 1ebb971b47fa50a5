"""Whoever measured, in whatever order, part and repetition the results came: the same observations, the same answer."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from budgets import budget, few_and_all
from hypothesis import HealthCheck, given, settings, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.records import encode, first_difference, to_json
from surepick.studies import recording, replay
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.memory import MemoryLog

IDS = ("a", "b", "c")
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
MEANS = np.array([1.1, 0.3, 0.2])
POLICIES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 2.0},
    "linear-embedding": {"norm_bound": 2.0},
    "action-elimination": {"growth": 0.5},
}
names, seeds = st.sampled_from(sorted(POLICIES)), st.integers(0, 2**32 - 1)


def subject(name: str):
    arms = sp.Arms(FEATURES, IDS)
    return arms, sp.make_policy(name, arms, epsilon=0.4, delta=0.1, noise=sp.SubGaussian(1.0), **POLICIES[name])


def pool_of(name: str, number: int, counts) -> dict[int, list[float]]:
    """The rewards that the pulls of each arm give in the plan of that number."""
    return {
        arm: (MEANS[arm] + stream(5, name, number, arm).normal(0.0, 1.0, counts[arm])).tolist()
        for arm in np.flatnonzero(counts).tolist()
    }


# many ways to carry out a study


class Crowd:
    """Workers who lease or do not, tell what they have when they like, and tell some of it again.

    Args:
        handles: the same study, as each of them sees it.
    """

    def __init__(self, handles: list[sp.Study], name: str, rng: np.random.Generator) -> None:
        self.handles = handles
        self.name = name
        self.rng = rng
        self.said: list[tuple[str, float, str]] = []  # with a key: may be told again
        self.own = 0
        self.late = 0

    def carry_out(self) -> sp.Study:
        number = 0
        while (plan := self.handles[0].ask()) is not None:
            number += 1
            pool = pool_of(self.name, number, plan.counts)
            for rewards in pool.values():
                self.rng.shuffle(rewards)
            while any(pool.values()):
                self.somebody_tells(pool)
        return self.handles[0]

    def somebody_tells(self, pool: dict[int, list[float]]) -> None:
        who = int(self.rng.integers(len(self.handles)))
        study, worker = self.handles[who], f"worker {who}"
        if self.rng.random() < 0.5:
            rows = self.leased(study, worker, pool)
        else:
            worker, rows = None, self.grabbed(pool)  # without a lease there is no need for a name
        rows += self.again()
        self.rng.shuffle(rows)
        if not rows:
            return
        ids, rewards, keys = zip(*rows, strict=True)
        receipt = study.tell(ids, rewards, keys, worker=worker)
        self.late += receipt.late
        self.said += [row for row in rows if row[2] is not None]

    def leased(self, study: sp.Study, worker: str, pool) -> list:
        """Some pulls of the worker's lease."""
        part = study.lease(max_pulls=int(self.rng.integers(1, 8)), worker=worker)
        rows = []
        for arm, key in part.keys() if part is not None and part.total else []:
            rewards = pool[IDS.index(arm)]
            if rewards and self.rng.random() < 0.7:
                rows.append((arm, rewards.pop(), key))
        return rows

    def grabbed(self, pool) -> list:
        """Some pulls that the worker took from the plan, under keys of the worker's own or none."""
        rows = []
        for arm, rewards in pool.items():
            for _ in range(int(self.rng.integers(0, len(rewards) + 1))):
                self.own += 1
                rows.append((IDS[arm], rewards.pop(), f"own {self.own}" if self.rng.random() < 0.5 else None))
        return rows

    def again(self) -> list:
        """Results that were told before, of this plan or an earlier one: retries, some of them twice in a call."""
        if not self.said:
            return []
        return [self.said[row] for row in self.rng.integers(len(self.said), size=self.rng.integers(0, 4))]


def told_at_once(name: str) -> sp.Study:
    """The plain way: one worker, each plan in one call."""
    study, number = sp.Study(*subject(name)), 0
    while (plan := study.ask()) is not None:
        number += 1
        rows = [(IDS[arm], reward) for arm, rewards in pool_of(name, number, plan.counts).items() for reward in rewards]
        study.tell(*zip(*rows, strict=True))
    return study


def in_memory(name: str, rng: np.random.Generator) -> sp.Study:
    log = MemoryLog()
    crowd = Crowd([sp.Study(*subject(name), log=log) for _ in range(rng.integers(1, 5))], name, rng)
    study = crowd.carry_out()
    assert crowd.late == 0
    return study


def in_database(url: str, name: str, rng: np.random.Generator) -> sp.Study:
    called = f"{name} {rng.integers(2**60)}"
    sp.create_study(url, called, *subject(name))
    crowd = Crowd([resume_stored_study(url, called) for _ in range(rng.integers(1, 4))], name, rng)
    crowd.carry_out()
    assert crowd.late == 0
    return sp.open_study(url, called)  # all of it computed again


# what must be the same


def content(study: sp.Study) -> dict:
    """All that a study knows in the end, but for the times."""
    state = study.log.last_decision().state
    return {
        "certificate": encode(study.certificate()),
        "trace": encode(study.trace),
        "state": state if isinstance(state, str) else to_json(state),
    }


@given(name=names, seed=seeds)
@settings(max_examples=budget(25))
def test_no_way_of_telling_changes_a_bit(name, seed):
    assert content(in_memory(name, np.random.default_rng(seed))) == content(told_at_once(name))


@given(name=names, seed=seeds)
@settings(max_examples=budget(5, fewest=2), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_way_of_telling_changes_a_bit_in_a_database(sqlite_url, name, seed):
    """One database for all examples; each makes a study of its own there."""
    assert content(in_database(sqlite_url, name, np.random.default_rng(seed))) == content(told_at_once(name))


@given(name=names, seed=seeds)
@settings(max_examples=budget(15, fewest=5))
def test_totals_tell_the_same_as_single_results(name, seed):
    """Words and counts are equal; numbers to the rounding of the sums that the user formed."""
    rng, study, number = np.random.default_rng(seed), sp.Study(*subject(name)), 0
    while (plan := study.ask()) is not None:
        number += 1
        for arm, rewards in pool_of(name, number, plan.counts).items():
            rng.shuffle(rewards)
            cuts = np.sort(rng.integers(0, len(rewards) + 1, size=2))
            for part in np.split(np.array(rewards), cuts):
                study.tell_totals([IDS[arm]], [len(part)], [sum(part)], [sum(part**2)])
    once = told_at_once(name)
    assert first_difference(encode(once.certificate()), encode(study.certificate()), 1e-9) == ""
    assert first_difference(encode(once.trace), encode(study.trace), 1e-9) == ""
    assert first_difference(spread_known(once), spread_known(study), 1e-9) == ""


def spread_known(study: sp.Study):
    """The policy's last state; of results that it keeps their squared deviations, added up singly or from totals."""
    state = study.log.last_decision().state
    seen = getattr(state, "seen", None)
    if isinstance(seen, Observations):
        state = replace(state, seen=replace(seen, within=seen.deviations, rests=None))
    return encode(state)


# the saboteurs


def added_as_they_came(told, num_arms, *, minimize):
    """Totals in plain floating point, in the order of arrival."""
    counts, sums, squares = np.zeros(num_arms, np.int64), defaultdict(float), defaultdict(float)
    for part in told:
        for arm, pulls, total, energy in zip(part.arms, part.pulls, part.sums, part.squares, strict=True):
            counts[arm] += pulls
            sums[arm] += total
            squares[arm] += energy
    totals, energies = ([float(of[arm]) for arm in range(num_arms)] for of in (sums, squares))
    return Observations(counts, totals, energies)


def counted_twice(log, results, ids):
    """Keys that are not looked at."""
    return np.arange(len(results.arms))


def fails(name: str, seed: int) -> bool:
    """The law does not hold for this example."""
    try:
        return content(in_memory(name, np.random.default_rng(seed))) != content(told_at_once(name))
    except (AssertionError, sp.SurepickError):
        return True


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", POLICIES)
@few_and_all("seeds", 2, 5)
def test_retries_that_count_again_would_be_noticed(name, seeds, monkeypatch):
    assert not any(fails(name, seed) for seed in range(seeds))
    monkeypatch.setattr(recording, "fresh", counted_twice)
    assert all(fails(name, seed) for seed in range(seeds))


def test_sums_in_order_of_arrival_would_be_noticed(monkeypatch):
    monkeypatch.setattr(replay, "received", added_as_they_came)
    assert all(fails("action-elimination", seed) for seed in range(5))


def test_totals_rounded_to_single_precision_would_be_noticed():
    once, rough = told_at_once("linear-embedding"), sp.Study(*subject("linear-embedding"))
    number = 0
    while (plan := rough.ask()) is not None:
        number += 1
        for arm, rewards in pool_of("linear-embedding", number, plan.counts).items():
            total, energy = math.fsum(rewards), math.fsum(reward**2 for reward in rewards)
            rough.tell_totals([IDS[arm]], [len(rewards)], [float(np.float32(total))], [energy])
    states = (encode(study.log.last_decision().state) for study in (once, rough))
    assert first_difference(*states, 1e-9) != ""
