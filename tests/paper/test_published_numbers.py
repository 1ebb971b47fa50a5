"""The published claims on the synthetic data, in the paper's own metric and at the policy's own stop.

Golden figures (epsilon .1, delta .05, two clusters, dim 25, linear Bernoulli rewards, oracle pulls): a measured
reimplementation of the published settings, itself within the spread of the paper's figure.
"""

import itertools

import numpy as np
import pytest

import surepick as sp

GOLDEN = {
    "linear-embedding": {250: 2694, 1000: 3223},
    "rage": {250: 9548, 1000: 12856},
    "action-elimination": {250: 60_000, 1000: 259_000},
}
ASSUMED = {
    "linear-embedding": (sp.SubGaussian(1.0), {"norm_bound": 0.5}, 0.05),
    "rage": (sp.SubGaussian(1.0), {}, 0.07),
    "action-elimination": (sp.SubGaussian(0.5), {}, 0.07),
}


def runs_of(name: str, num_arms: int, seeds: range) -> list[sp.Run]:
    noise, options, _ = ASSUMED[name]
    runs = []
    for seed in seeds:
        environment = sp.environments.two_clusters(num_arms=num_arms, dim=25, reward="linear", seed=seed)
        settings = {"epsilon": 0.1, "delta": 0.05, "noise": noise} | options | sp.paper_settings(name)
        runs.append(sp.simulate(sp.make_policy(name, environment.arms, **settings), environment, seed=seed))
    return runs


def check_against_golden(name: str, num_arms: int, seeds: range, summary=np.mean) -> None:
    runs, tolerance = runs_of(name, num_arms, seeds), ASSUMED[name][2]
    pulls = summary([run.oracle_pulls for run in runs])
    seconds = np.median([run.seconds for run in runs])
    golden = GOLDEN[name][num_arms]
    print(f"\n{name}, K = {num_arms}: {pulls:,.0f} oracle pulls, golden {golden:,}, {seconds:.2f} s a run")
    assert pulls == pytest.approx(golden, rel=tolerance)
    assert all(run.success for run in runs)
    if name == "linear-embedding":
        assert {row.dim for run in runs for row in run.rounds} == {2}


@pytest.mark.parametrize("name", GOLDEN)
def test_250_arms(name):
    """The median: in 3 of 100 runs Algorithm 1 rules out the far cluster a round early, after a fifth of the pulls."""
    check_against_golden(name, 250, range(6), summary=np.median)


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [250, 1000])
@pytest.mark.parametrize("name", GOLDEN)
def test_twenty_seeds(name, num_arms):
    check_against_golden(name, num_arms, range(20))


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [250, 1000])
def test_a_run_of_algorithm_1_takes_under_a_second_and_a_half(num_arms):
    runs = runs_of("linear-embedding", num_arms, range(5))
    assert np.median([run.seconds for run in runs]) < 1.5


def test_the_order_of_the_methods():
    means = {name: np.mean([run.oracle_pulls for run in runs_of(name, 250, range(2))]) for name in GOLDEN}
    assert 2 * means["linear-embedding"] < means["rage"] < means["action-elimination"] / 2


def test_the_default_settings_certify_at_their_own_stop():
    """With the noise's true scale, valid spending, looks and the epsilon-stop: at most 300 pulls, all certified."""
    pulls = []
    for seed in range(20):
        environment = sp.environments.two_clusters(num_arms=250, dim=25, reward="linear", seed=seed)
        policy = sp.make_policy(
            "linear-embedding", environment.arms, epsilon=0.1, delta=0.05, noise=sp.Bernoulli(), norm_bound=0.9
        )
        run = sp.simulate(policy, environment, seed=seed)
        assert run.success
        assert run.verdict == "certified"
        pulls.append(run.pulls)
    print(f"\ndefault settings: {np.mean(pulls):.0f} pulls on average")
    assert np.mean(pulls) <= 300


def test_algorithm_1_is_flat_in_the_dimension_and_rage_is_not():
    """The paper's example of high-dimensional linear bandits: d_eff = 2 whatever D."""
    pulls = {"linear-embedding": [], "rage": []}
    for dim in (5, 10, 20, 40):
        environment = sp.environments.high_dimensional(dim, 0.1, 0)
        for name, options in (("linear-embedding", {"norm_bound": 1.0}), ("rage", {})):
            settings = sp.paper_settings(name)
            policy = sp.make_policy(
                name, environment.arms, epsilon=0.1, delta=0.05, noise=environment.noise, **options, **settings
            )
            run = sp.simulate(policy, environment, seed=dim)
            assert run.success
            pulls[name].append(run.pulls)
    print(f"\npulls for D = 5, 10, 20, 40: {pulls}")
    flat, growing = pulls["linear-embedding"], pulls["rage"]
    assert flat[-1] < 2 * flat[0]  # D grows eightfold; only log |X|^2 and the rounding floor grow
    assert growing[-1] > 5 * growing[0]
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(growing))
