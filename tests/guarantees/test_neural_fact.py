"""A fact about Algorithm 2's published constants, with and without its network: no error probability comes with them.

100 arms that share nothing, one at .65 and 99 at .5, normal rewards with sigma 1. Round 1 gives an arm about 126 pulls:
its mean has a standard deviation of .09, and the threshold is .1, so an arm that is .15 better is often thrown away.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from bounds import failures_allowed
from budgets import few_and_all
from neural_instances import one_among_a_hundred
from scipy.stats import binom

import surepick as sp

EPSILON, DELTA = 0.1, 0.05
PUBLISHED = sp.paper_settings("neural-embedding")
VARIATIONS = {  # of the published settings; with the dimension of round 1
    "1e-4 p, as published": ({}, 85),
    "1e-5 p": ({"error_tolerance": 1e-5}, 99),
    "1e-3 of all": ({"error_tolerance": 1e-3, "tolerance_scale": "relative"}, 100),
}


@functools.cache
def wrong_answers(name: str, trials: int, options: tuple[tuple[str, object], ...], dim: int) -> int:
    """Runs out of `trials` whose answer is wrong; each says itself that it is heuristic."""
    environment = one_among_a_hundred()
    policy = sp.make_policy(
        name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=environment.noise, **dict(options)
    )
    runs = [sp.simulate(policy, environment, seed=seed) for seed in range(trials)]
    assert {run.verdict for run in runs} == {"heuristic"}
    assert {run.rounds[0].dim for run in runs} == {dim}
    wrong = sum(not run.success for run in runs)
    pulls, seconds = (np.mean([getattr(run, field) for run in runs]) for field in ("pulls", "seconds"))
    print(f"\n{name} {dict(options)}:")
    print(f"    d_1 = {dim}, {wrong} wrong of {trials}, {pulls:,.0f} pulls, {seconds:.2f} s a run")
    return wrong


def network(trials: int, dim: int, **changes) -> int:
    return wrong_answers("neural-embedding", trials, tuple((PUBLISHED | changes).items()), dim)


@pytest.mark.slow
def test_the_published_constants_break_delta():
    """Of 40 runs at least 9 wrong (12 were); what keeps delta = .05 reaches that with a probability below 2e-4."""
    options, dim = VARIATIONS["1e-3 of all"]
    assert binom.sf(8, 40, DELTA) < 2e-4
    assert network(40, dim, **options) >= 9


def test_the_derived_constants_keep_it_here():
    """Within the exact bound for delta, false alarm 1e-6; none of the first 40 was wrong."""
    options, dim = VARIATIONS["1e-3 of all"]
    assert network(5, dim, constants="derived", **options) <= failures_allowed(5, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_published_constants_are_wrong_in_25_to_60_of_100_runs(variation):
    options, dim = VARIATIONS[variation]
    assert 25 <= network(100, dim, **options) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_derived_constants_are_right_in_95_of_100_runs(variation):
    options, dim = VARIATIONS[variation]
    assert network(100, dim, constants="derived", **options) <= 5


@few_and_all("trials", 100, 400)
def test_it_is_the_constants_and_not_the_network(trials):
    """Plain means are wrong in 25 to 60 % of runs with them as well, and keep the exact bound with the derived ones."""
    published, derived = (
        wrong_answers("means-neural-rule", trials, (("constants", which),), 100) for which in ("paper", "derived")
    )
    assert 0.25 * trials <= published <= 0.6 * trials
    assert derived <= failures_allowed(trials, DELTA)
