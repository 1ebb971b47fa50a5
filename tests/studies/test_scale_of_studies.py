"""Whole studies of many arms: they end, certified, in bounded memory; and what spares them work changes no answer."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.embeddings import LinearEmbedding
from surepick.linalg import farthest_pairs
from surepick.linalg.factorisations import whitened
from surepick.policies.carried.elimination import CarriedElimination
from surepick.policies.sequential.engine import MOST_DIMENSIONS, Memo

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "end_to_end.py"
ASKED_SECONDS, ASKED_MEGABYTES = 300.0, 4_000.0


def studied(num_arms: int, seed: int, *, limit: float) -> tuple[dict[str, object], str]:
    """(outcome, progress) of one certified study, linear in 20 dimensions, in a process of its own."""
    command = [sys.executable, str(BENCHMARK), "--one", str(num_arms), "--first", str(seed), "--limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("num_arms", [15_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_study_of_many_arms_ends_certified_in_little_memory(num_arms):
    outcome, progress = studied(num_arms, 0, limit=120.0)
    assert (outcome["verdict"], outcome["right"]) == ("certified", True)
    assert outcome["megabytes"] < 600.0  # all pairs would take 1,800 of 15,000 arms, 80,000 of 100,000
    assert len(progress.splitlines()) == outcome["rounds"]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("seed", range(4))
def test_a_study_of_a_million_arms_ends_certified_in_five_minutes_and_four_gigabytes(seed):
    outcome, _ = studied(1_000_000, seed, limit=ASKED_SECONDS)
    seconds = sum(outcome["seconds"].values())
    print(f"\nseed {seed}: {seconds:.1f} s, {outcome['rounds']} rounds, {outcome['megabytes']:,.0f} MB")
    assert (outcome["verdict"], outcome["right"]) == ("certified", True)
    assert seconds < ASKED_SECONDS
    assert outcome["megabytes"] < ASKED_MEGABYTES


# --- arms spread over a set


def traversal(vectors: np.ndarray, chosen: np.ndarray, free: np.ndarray, number: int) -> list[int]:
    """Farthest-first as it is stated: all distances, each time."""
    free, members, taken = free.copy(), list(chosen), []
    for _ in range(min(number, int(free.sum()))):
        squares = [np.einsum("ij,ij->i", vectors - vectors[arm], vectors - vectors[arm]) for arm in members]
        taken.append(int(np.argmax(np.where(free, np.min(squares, axis=0), -1.0))))
        free[taken[-1]] = False
        members.append(taken[-1])
    return taken


@settings(max_examples=budget(150))
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["cloud", "grid", "copies", "far away"]), st.sampled_from([1, 4, 1024])
)
def test_arms_are_spread_as_if_all_distances_were_computed(seed, kind, pool):
    rng = np.random.default_rng(seed)
    size, dim = int(rng.integers(1, 60)), int(rng.integers(1, 5))
    vectors = rng.standard_normal((size, dim)) + (1e6 if kind == "far away" else 0.0)
    if kind == "grid":
        vectors = rng.integers(0, 4, (size, dim)) * 1.0
    elif kind == "copies":
        vectors = vectors[rng.integers(0, max(1, size // 3), size)]
    chosen = np.sort(rng.choice(size, int(rng.integers(1, size + 1)), replace=False))
    free = ~np.isin(np.arange(size), chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(farthest_pairs, "POOL", pool)
        found = farthest_pairs.farthest_first(vectors, chosen, free, 10)
    assert found.tolist() == traversal(vectors, chosen, free, 10)


# --- what a policy keeps


def linear(num_arms: int = 40) -> LinearEmbedding:
    return LinearEmbedding(np.random.default_rng(3).standard_normal((num_arms, 4)), norm_bound=1.0)


def test_what_is_kept_is_what_would_be_formed():
    embedding, cache = linear(), Memo()
    for dim in (4, 2, 3, 4, 4):
        kept, formed = cache.white(embedding, dim), whitened(embedding.at(dim).features)
        assert np.array_equal(kept.basis, formed.basis)
        assert not kept.basis.flags.writeable
    assert cache.white(embedding, 4) is cache.white(embedding, 4)
    assert len(cache._kept["white"]) == MOST_DIMENSIONS
    assert Memo().white(sp.IndependentEmbedding(3), 3) is None


def test_a_guess_is_kept_for_equal_observations_only():
    cache, formed = Memo(), []
    seen = sp.Observations([1, 2], [0.5, 1.0], [0.25, 0.5])

    def form():
        formed.append(len(formed))
        return formed[-1]

    assert [cache.last("plug in", (2, one), form) for one in (seen, copy.deepcopy(seen))] == [0, 0]
    for dim, other in ((3, seen), (3, sp.Observations([1, 2], [0.5, 1.0], [0.25, 0.6])), (3, seen)):
        assert cache.last("plug in", (dim, other), form) == len(formed) - 1
    assert formed == [0, 1, 2, 3]


def test_a_policy_that_was_used_equals_and_pickles_as_one_that_was_not():
    embedding, problem = linear(), sp.Problem(40, 0.1, 0.05, sp.SubGaussian(0.5))
    fresh, used = (CarriedElimination(problem, embedding) for _ in range(2))
    plans = [used.ask(used.init()) for _ in range(2)]
    seen = sp.Observations(plans[0].counts, plans[0].counts * 0.3)
    steps = [policy.tell(policy.init(), plan, seen) for policy, plan in zip((used, fresh), plans, strict=True)]
    assert plans[0] == plans[1]
    assert steps[0].state == steps[1].state
    assert used == fresh
    assert used._cache._kept
    assert not pickle.loads(pickle.dumps(used))._cache._kept
