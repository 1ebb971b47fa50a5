"""The experiments that have names: a small cell of each policy runs, and what is declared to certified ones is true."""

from dataclasses import replace

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick_bench.datasets.registry import make_environment
from surepick_bench.experiments import PAPER, PUBLISHED, experiment, experiment_names
from surepick_bench.results import play
from surepick_bench.spec import Cell, Experiment

SMALLER = {  # the options that make an environment quick
    "two-clusters": {"num_arms": 40, "dim": 5},
    "mnist": {"per_digit": 3},
    "yahoo-like": {"num_arms": 40},
    "high-dimensional": {"dim": 3},
    "sphere": {"num_arms": 20, "dim": 3},
    "soare": {"dim": 3},
    "digits": {"per_digit": 2},
    "one-better": {"num_arms": 20},
    "falling-means": {"num_arms": 10},
    "simulated-production-line": {"length": 3},
    "some-better": {"num_arms": 20, "better": 2},
    "given-means": {},
    "crossed-barrel": {},
    "livecodebench": {},
}
MOST_PULLS = {"sequential-halving": 100_000, "lucb": 2_000, "lucb-top": 2_000, "st2": 2_000}  # all planned; one by one
FROM_FILES = ("mnist", "crossed-barrel", "livecodebench")


def small_cells(name: str) -> list[Cell]:
    """One cell of each policy, in the first environment that has it, made small; epsilon .3, few pulls."""
    found = {}
    for cell in experiment(name).cells:
        options = cell.environment.options | SMALLER[cell.environment.name]
        place = replace(cell.environment, options=options)
        most = MOST_PULLS.get(cell.policy.name, 10_000)
        small = replace(cell, environment=place, epsilon=0.3, gap_share=None, max_pulls=most)
        found.setdefault(cell.policy.label, small)
    return list(found.values())


CELLS = {cell.title: cell for name in experiment_names() for cell in small_cells(name)}


def first_of_each_kind():
    """Every policy, option, noise and environment in a cell of `make test`, every cell in the long proofs."""
    seen = set()
    for title, cell in CELLS.items():
        kinds = {
            cell.policy.name,
            cell.environment.name,
            *cell.policy.options,
            cell.policy.noise and cell.policy.noise.partition(":")[0],
        }
        yield pytest.param(title, marks=[] if kinds - seen else [pytest.mark.slow])
        seen |= kinds


@pytest.mark.cases(26)
@pytest.mark.parametrize("title", list(first_of_each_kind()))
def test_a_small_cell_of_every_policy(title, request):
    cell = CELLS[title]
    data = request.getfixturevalue("shared_data") if cell.environment.name in FROM_FILES else "."
    played = play(cell, 0, data)
    assert played.replicate["failure"] == ""
    assert played.replicate["pulls"] > 0
    assert played.rounds


def test_every_policy_is_in_an_experiment():
    assert {cell.policy.name for cell in CELLS.values()} == set(sp.policy_names(None))


@of_each("name", experiment_names())
def test_every_neural_row_has_the_control_beside_it(name):
    policies = {(cell.environment.label, cell.delta, cell.policy.name) for cell in experiment(name).cells}
    for environment, delta, policy in policies:
        if policy == "neural-embedding":
            assert (environment, delta, "means-neural-rule") in policies


def test_slippage_has_one_right_answer():
    for cell in experiment("slippage").cells:
        (environment,) = environments(cell, ".", seeds=1)
        assert environment.epsilon_best(cell.epsilon).sum() == 1
        assert np.sort(environment.gaps)[1] == pytest.approx(cell.epsilon, rel=1e-8)
        assert environment.num_arms == int(cell.environment.label.partition("=")[2])


def test_names_and_digests_are_unique():
    cells = [cell for name in experiment_names() for cell in experiment(name).cells]
    assert len({cell.digest for cell in cells}) == len(cells)
    assert len({cell.title for cell in cells}) == len(cells)
    assert set(PAPER) <= set(experiment_names())


def test_what_is_published_belongs_to_a_cell():
    cells = {
        (cell.experiment, cell.environment.label, cell.policy.label)
        for name in experiment_names()
        for cell in experiment(name).cells
    }
    assert set(PUBLISHED) <= cells


def test_generated_data_are_called_so():
    assert "Generated data" in experiment("yahoo-like").note


def declared(each: Experiment, policy: str) -> list[Cell]:
    return [cell for cell in each.cells if cell.policy.label == policy]


def environments(cell: Cell, data, seeds=3):
    return [
        make_environment(cell.environment.name, seed=seed, data=data, **cell.environment.options)
        for seed in range(seeds)
    ]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "name", ["paper-linear", "paper-nonlinear", "mnist", "high-dimensional", "peers", "small-epsilon"]
)
def test_the_declared_norm_of_linear_rewards_is_true(name, request):
    """Up to 1e-4 (two clusters, reward = norm: linear but for the second order of the steps and their clash)."""
    data = request.getfixturevalue("shared_data") if name == "mnist" else "."
    cells = [
        cell for policy in ("certified-linear", "lingape", "lingame") for cell in declared(experiment(name), policy)
    ]
    for cell in cells:
        for environment in environments(cell, data):
            features = environment.arms.features
            theta, *_ = np.linalg.lstsq(features, environment.means, rcond=1e-5)
            assert np.max(np.abs(features @ theta - environment.means)) < 1e-4
            assert np.linalg.norm(theta) <= cell.policy.options["norm_bound"] * (1 + 1e-12)


def kernel_norm(environment: sp.environments.Environment, gamma: float) -> float:
    """Norm of the smoothest function with the means and gradients of the two centres: copies of them are 1e-5 away.

    The representers are k(c, .) and the derivatives of k in c, for both centres c.
    """
    centres, dim = environment.arms.features[:2], environment.arms.features.shape[1]
    size = 1 + dim
    gram = np.zeros((2 * size, 2 * size))
    for a, x in enumerate(centres):
        for b, z in enumerate(centres):
            step = x - z
            block = np.zeros((size, size))
            block[0, 0] = 1.0
            block[0, 1:] = 2 * gamma * step
            block[1:, 0] = -2 * gamma * step
            block[1:, 1:] = 2 * gamma * np.eye(dim) - 4 * gamma**2 * np.outer(step, step)
            gram[a * size : (a + 1) * size, b * size : (b + 1) * size] = block * np.exp(-gamma * step @ step)
    linear = abs(environment.means[0] - centres[0] @ centres[0]) < 1e-9
    gradients = [centres[0]] * 2 if linear else [x / np.linalg.norm(x) for x in centres]
    asked = np.concatenate([[environment.means[0]], gradients[0], [environment.means[1]], gradients[1]])
    return float(np.sqrt(asked @ np.linalg.solve(gram, asked)))


@pytest.mark.parametrize("name", ["paper-linear", "paper-nonlinear"])
def test_the_declared_norm_of_the_kernel_is_true(name):
    for cell in declared(experiment(name), "certified-kernel"):
        for environment in environments(cell, "."):
            assert kernel_norm(environment, cell.policy.options["gamma"]) <= cell.policy.options["norm_bound"]
