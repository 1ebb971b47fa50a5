"""The published claims on the synthetic data, in the paper's own metric and at the policy's own stop.

Golden figures (epsilon .1, delta .05, two clusters, dim 25, linear Bernoulli rewards, oracle pulls): a measured
reimplementation of the published settings, itself within the spread of the paper's figure.
"""

import functools
import itertools

import numpy as np
import pytest

import surepick as sp
from surepick.simulation import Run

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


@functools.cache
def run_of(name: str, num_arms: int, seed: int) -> Run:
    noise, options, _ = ASSUMED[name]
    environment = sp.environments.two_clusters(num_arms=num_arms, dim=25, reward="linear", seed=seed)
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": noise} | options | sp.paper_settings(name)
    return sp.simulate(sp.make_policy(name, environment.arms, **settings), environment, seed=seed)


def runs_of(name: str, num_arms: int, seeds: range) -> list[Run]:
    return [run_of(name, num_arms, seed) for seed in seeds]


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
    check_against_golden(name, 250, range(3), summary=np.median)


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [250, 1000])
@pytest.mark.parametrize("name", GOLDEN)
def test_twenty_seeds(name, num_arms):
    check_against_golden(name, num_arms, range(20))


@pytest.mark.slow
@pytest.mark.alone
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


# kernels, Algorithm 3 and Algorithm 4


def mean_oracle(name, environments, *, sigma=1.0, max_pulls=10_000_000, **options) -> float:
    pulls = []
    for seed, environment in enumerate(environments):
        settings = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(sigma)} | options | sp.paper_settings(name)
        policy = sp.make_policy(name, environment.arms, **settings)
        run = sp.simulate(policy, environment, seed=seed, max_pulls=max_pulls)
        assert environment.is_epsilon_best(run.arm, 0.1)
        pulls.append(run.oracle_pulls)
    return float(np.median(pulls))


def clusters(num_arms, dim, reward, seeds=3):
    return [sp.environments.two_clusters(num_arms=num_arms, dim=dim, reward=reward, seed=seed) for seed in range(seeds)]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("num_arms", "golden"), [(250, 2676), (500, 2925), (750, 3071), (1000, 3175)])
def test_kernel_embedding_on_linear_rewards(num_arms, golden):
    environments = clusters(num_arms, 25, "linear", 3 if num_arms == 250 else 1)
    assert mean_oracle("kernel-embedding", environments, norm_bound=0.5, gamma=1.0) == pytest.approx(golden, rel=0.05)


@pytest.mark.cases(2)
@pytest.mark.parametrize(("dim", "linear", "rage"), [(10, 2602, 3819), (20, 2432, 7445), (30, 2614, 10647)])
def test_the_norm_reward(dim, linear, rage):
    """RAGE within 7 %; the linear golden at D = 20 averages in runs that end a round early."""
    environments = clusters(200, dim, "norm")
    assert mean_oracle("kernel-embedding", environments, norm_bound=0.5, gamma=1.0) == pytest.approx(2596, rel=0.05)
    tolerance = 0.05 if dim != 20 else 0.08
    assert mean_oracle("linear-embedding", environments, norm_bound=0.5) == pytest.approx(linear, rel=tolerance)
    assert mean_oracle("rage", environments) == pytest.approx(rage, rel=0.07)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("num_arms", "golden"), [(250, 10_700), (1000, 12_600)])
def test_unknown_misspecification_in_two_dimensions(num_arms, golden):
    environments = clusters(num_arms, 25, "linear", 2)
    measured = mean_oracle("unknown-misspecification", environments, dim=2, max_pulls=200_000)
    assert measured == pytest.approx(golden, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("fixed-linear", {"norm_bound": 1e-5}), ("fixed-kernel", {"norm_bound": 2.5e-3, "gamma": 9e-5})],
)
def test_mnist_with_algorithm_3(name, options, mnist_directory):
    environments = [sp.bench.datasets.mnist(mnist_directory, seed=seed) for seed in range(8)]
    pulls = mean_oracle(name, environments, **options)
    print(f"\n{name} on MNIST: {pulls:,.0f} oracle pulls (median of 8)")
    assert 2.4e5 <= pulls <= 2.9e5
