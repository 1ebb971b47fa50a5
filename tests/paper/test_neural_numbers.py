"""The published claims on the neural method, in the paper's own metric (pulls until only epsilon-best arms are left).

Under the published settings these counts follow from the constants: N_1 = 4.4 tau log(8 K^2/delta), with tau = 4 for
two clusters, hence 283.7, 332.5 and 275.8 for K = 250, 1000 and 200, and few seeds tell what many do. So plain means
with the same constants stand beside them. docs/neural-guarantee.md says why none of this is a certificate;
tests/guarantees has the counterexample.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from budgets import few_and_all

import surepick as sp
from surepick.simulation import Run


def play(name: str, environment: sp.environments.Environment, seed: int, **options) -> Run:
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": environment.noise} | sp.paper_settings(name) | options
    return sp.simulate(sp.make_policy(name, environment.arms, **settings), environment, seed=seed)


def measured(label: str, runs: Iterable[Run]) -> tuple[list[Run], float]:
    """The runs and their mean oracle pulls, printed; each says that it is heuristic and ends with a good arm."""
    done = list(runs)
    pulls = [run.oracle_pulls for run in done]
    assert {run.verdict for run in done} == {"heuristic"}
    assert None not in pulls
    print(
        f"\n{label}: {np.mean(pulls):,.1f} oracle pulls ({min(pulls):,} to {max(pulls):,}), own stop "
        f"{np.mean([run.pulls for run in done]):,.0f}, {sum(run.success for run in done)} of {len(done)} right, "
        f"d_1 {np.mean([run.rounds[0].dim for run in done]):.1f}, {np.mean([run.seconds for run in done]):.2f} s a run"
    )
    return done, float(np.mean(pulls))


def clusters(num_arms: int, *, dim: int = 25, reward: str = "linear", seed: int = 0) -> sp.environments.Environment:
    return sp.environments.two_clusters(num_arms=num_arms, dim=dim, reward=reward, seed=seed)


def check_clusters(label: str, runs: Iterable[Run], golden: float) -> None:
    done, pulls = measured(label, runs)
    assert abs(pulls - golden) <= 15
    assert all(run.success for run in done)
    assert {run.rounds[0].dim for run in done} == {2}


# --- two clusters, linear rewards: 284 and 333


@few_and_all("seeds", 1, 20)
def test_250_arms(seeds):
    environment = clusters(250)
    check_clusters("K = 250", (play("neural-embedding", environment, seed) for seed in range(seeds)), 284)


@few_and_all("seeds", 2, 10)
def test_250_arms_drawn_anew(seeds):
    runs = (play("neural-embedding", clusters(250, seed=seed), seed) for seed in range(seeds))
    check_clusters("K = 250, new arms", runs, 284)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [20])
def test_1000_arms(seeds):
    environment = clusters(1000)
    check_clusters("K = 1000", (play("neural-embedding", environment, seed) for seed in range(seeds)), 333)


@pytest.mark.slow
def test_1000_arms_drawn_anew():
    check_clusters("K = 1000, new arms", (play("neural-embedding", clusters(1000, seed=s), s) for s in range(20)), 333)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "options",
    [
        {"trainer": "gradient-descent"},
        {"architecture": "symmetric"},
        {"architecture": "standard", "inputs": "normalized"},
        {"error_tolerance": 1e-3, "tolerance_scale": "relative"},
    ],
)
def test_trainer_architecture_and_scale_are_second_order(options):
    environment = clusters(250)
    label = ", ".join(map(str, options.values()))
    check_clusters(label, [play("neural-embedding", environment, 0, **options)], 284)


# --- norm rewards: 276 whatever the dimension


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("dim", "seeds"),
    [(10, 1), (20, 1), (30, 1), *(pytest.param(dim, 20, marks=pytest.mark.slow) for dim in (10, 20, 30))],
)
def test_the_norm_reward(dim, seeds):
    environment = clusters(200, dim=dim, reward="norm")
    check_clusters(f"norm, D = {dim}", (play("neural-embedding", environment, seed) for seed in range(seeds)), 276)


@few_and_all("seeds", 1, 20)
def test_the_norm_reward_in_100_dimensions_needs_a_smaller_tolerance(seeds):
    """The published one, 1e-4 p, leaves one dimension there (and in one of 20 draws of the arms in D = 30): two are
    kept, which takes as many pulls, and an alarm says so."""
    environment = clusters(200, dim=100, reward="norm")
    smaller = {"error_tolerance": 1e-5}
    runs = (play("neural-embedding", environment, seed, **smaller) for seed in range(seeds))
    check_clusters("norm, D = 100, error_tolerance 1e-5", runs, 276)
    collapsed = [play("neural-embedding", environment, seed) for seed in range(seeds)]
    check_clusters("norm, D = 100, as published", collapsed, 276)
    assert all("error_tolerance = 0.0001 leaves 1 dimension" in run.certificate.reason for run in collapsed)


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "options"), [(10, {}), (20, {}), (100, {"error_tolerance": 1e-5})])
def test_the_norm_reward_of_arms_drawn_anew(dim, options):
    environments = [clusters(200, dim=dim, reward="norm", seed=seed) for seed in range(20)]
    runs = (play("neural-embedding", each, seed, **options) for seed, each in enumerate(environments))
    check_clusters(f"norm, D = {dim}, new arms", runs, 276)


# --- MNIST: about 3e4 pulls, d_1 about 190, 98 % right


def check_mnist(label: str, runs: Iterable[Run]) -> None:
    done, pulls = measured(label, runs)
    assert 2.6e4 <= pulls <= 3.1e4
    assert all(180 <= run.rounds[0].dim <= 200 for run in done)
    assert sum(run.success for run in done) >= 0.98 * len(done)


@few_and_all("seeds", 1, 50)
def test_mnist(seeds, mnist_directory):
    environment = sp.bench.datasets.mnist(mnist_directory)
    check_mnist("MNIST", (play("neural-embedding", environment, seed) for seed in range(seeds)))


@pytest.mark.slow
def test_mnist_with_images_drawn_anew(mnist_directory):
    environments = (sp.bench.datasets.mnist(mnist_directory, seed=seed) for seed in range(50))
    check_mnist("MNIST, new images", (play("neural-embedding", each, seed) for seed, each in enumerate(environments)))


# --- the same constants without a network


def test_plain_means_on_mnist(mnist_directory):
    environment = sp.bench.datasets.mnist(mnist_directory)
    done, pulls = measured("plain means, MNIST", (play("means-neural-rule", environment, seed) for seed in range(50)))
    assert pulls == pytest.approx(28_184, rel=0.05)
    assert all(run.success for run in done)


@few_and_all("seeds", 10, 30)
def test_plain_means_on_digits(seeds):
    environments = [sp.environments.digits(seed) for seed in range(seeds)]
    runs = (play("means-neural-rule", each, seed) for seed, each in enumerate(environments))
    done, pulls = measured("plain means, digits", runs)
    assert pulls == pytest.approx(7_898, rel=0.15)
    assert all(run.success for run in done)


def test_on_two_clusters_the_network_does_save_what_the_means_cannot():
    """Without features every arm is measured: tau = 2 K in place of 4."""
    environment = clusters(250)
    _, pulls = measured("plain means, K = 250", (play("means-neural-rule", environment, seed) for seed in range(5)))
    assert pulls > 50 * 284
