"""The experiments by name: the paper's, the baselines, and error rates against delta.

Constants that stand for knowledge are of two kinds. Those of the paper's policies are the published ones, which their
own data contradict (C = .5 where the norm is .89). Those of the certified policies hold for the environment; the tests
check them against the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from surepick.bench.peer_experiments import PEERS, SLIPPAGE, SMALL_EPSILON
from surepick.bench.policy_specs import default, published
from surepick.bench.question_experiment import QUESTIONS
from surepick.bench.ranking_experiment import RANKING_AND_SELECTION
from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, crossed
from surepick.bench.spec_files import experiment_of_file
from surepick.errors import InvalidInput

NEVER_STOPS = 200_000  # budget of a policy without a stopping rule
LINEAR_ARMS = (250, 500, 750, 1000)
LINEAR_DIMS = (20, 25)  # the paper says 20; its published code draws 25
NORM_DIMS = (10, 20, 30)
DELTAS = (0.01, 0.05, 0.1, 0.2, 0.3)
PAPER = ("paper-linear", "paper-nonlinear", "mnist", "yahoo-like", "high-dimensional")
SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper": PAPER,
        "peers": ("peers", "small-epsilon", "slippage"),
        "ranking-and-selection": ("ranking-and-selection", "slippage"),
    }
)


def _on_clusters(
    name: str, title: str, environments: Mapping[str, dict[str, Any]], *, linear_norm: float, kernel_norm: float
) -> Experiment:
    """The paper's five policies, Algorithm 4, the neural rule on plain means, and the certified ones.

    Args:
        name, title: of the experiment.
        environments: label -> options of the two clusters.
        linear_norm, kernel_norm: norm bounds that hold there, for the certified policies.
    """
    return crossed(
        name,
        title,
        [EnvironmentSpec(label, "two-clusters", options, "linear", 2) for label, options in environments.items()],
        (
            published("linear-embedding", norm_bound=0.5),
            published("kernel-embedding", norm_bound=0.5, gamma=1.0),
            published("rage"),
            published("action-elimination", noise="subgaussian:0.5"),
            published("neural-embedding", noise=None),
            published("means-neural-rule", noise=None),
            published("unknown-misspecification", dim=2, max_pulls=NEVER_STOPS),
            default("certified-linear", norm_bound=linear_norm),
            default("certified-kernel", norm_bound=kernel_norm, gamma=1.0),
            default("certified-independent"),
            default("certified-neural", misspecification=0.001, width=64),
        ),
    )


def _is_expensive(cell: Cell) -> bool:
    """certified-neural at D = 25, which only RAGE's figure needs: a third of the time of the whole experiment."""
    return cell.policy.name == "certified-neural" and cell.environment.options["dim"] == LINEAR_DIMS[1]


_ALL_LINEAR = _on_clusters(
    "paper-linear",
    "two clusters, linear Bernoulli rewards, K = 250 to 1,000 (the paper's figure 1a)",
    {
        f"K={num_arms}, D={dim}": {"num_arms": num_arms, "dim": dim, "reward": "linear"}
        for dim in LINEAR_DIMS
        for num_arms in LINEAR_ARMS
    },
    linear_norm=0.9,
    kernel_norm=1.2,
)
PAPER_LINEAR = replace(_ALL_LINEAR, cells=tuple(cell for cell in _ALL_LINEAR.cells if not _is_expensive(cell)))
PAPER_NONLINEAR = _on_clusters(
    "paper-nonlinear",
    "two clusters, reward = norm, K = 200, D = 10 to 30 (the paper's figure 1b)",
    {f"K=200, D={dim}": {"num_arms": 200, "dim": dim, "reward": "norm"} for dim in NORM_DIMS},
    linear_norm=1.2,
    kernel_norm=1.5,
)
MNIST = crossed(
    "mnist",
    "200 images of digits, find a seven (the paper's figure 2a, Table 1 and Table 2)",
    [EnvironmentSpec("200 images", "mnist", {"per_digit": 20}, "independent")],
    (
        published("fixed-linear", norm_bound=1e-5),
        published("fixed-kernel", norm_bound=2.5e-3, gamma=9e-5),
        published("rage"),
        published("action-elimination"),
        published("neural-embedding"),
        published("means-neural-rule"),
        published("linear-embedding", norm_bound=1e-5),
        default("certified-linear", norm_bound=2.0),
        default("certified-independent"),
    ),
)
YAHOO_LIKE = crossed(
    "yahoo-like",
    "200 click records, 5 of them rewarding (the paper's figure 2b, on generated records)",
    [EnvironmentSpec("200 records", "yahoo-like", {"num_arms": 200}, "independent")],
    (
        published("fixed-linear", norm_bound=1e-3),
        published("fixed-kernel", norm_bound=1e-3, gamma=10.0),
        published("rage"),
        published("action-elimination"),
        published("neural-embedding", error_tolerance=1e-3, regularization=10.0),
        published("neural-embedding", label="neural, ridge 1", error_tolerance=1e-3, regularization=1.0),
        published("means-neural-rule"),
        default("certified-independent"),
    ),
    note="Generated data: the records are random numbers in the form of Yahoo's, and no Yahoo data is in them.",
)
HIGH_DIMENSIONAL = crossed(
    "high-dimensional",
    "the paper's example in which its method does not feel the dimension and RAGE does (appendix)",
    [
        EnvironmentSpec(f"D={dim}", "high-dimensional", {"dim": dim, "epsilon": 0.1}, "linear", None)
        for dim in (5, 10, 20, 40)
    ],
    (
        published("linear-embedding", norm_bound=1.0),
        published("rage"),
        published("action-elimination"),
        default("certified-linear", norm_bound=1.0),
        default("certified-independent"),
    ),
)
_ONE_BETTER = EnvironmentSpec("one better arm of 100", "one-better", {"num_arms": 100, "gap": 0.15}, "independent")
_JUDGED = (
    published("neural-embedding"),
    published("means-neural-rule"),
    published("action-elimination"),
    default("certified-independent"),
)
ERROR_RATE = Experiment(
    "error-rate",
    "wrong answers against delta: one arm of 100 is better, by 1.5 epsilon",
    tuple(Cell("error-rate", _ONE_BETTER, policy, delta=delta) for delta in DELTAS for policy in _JUDGED),
)
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        each.name: each
        for each in (
            *(PAPER_LINEAR, PAPER_NONLINEAR, MNIST, YAHOO_LIKE, HIGH_DIMENSIONAL),
            *(PEERS, SMALL_EPSILON, SLIPPAGE, RANKING_AND_SELECTION, QUESTIONS, ERROR_RATE),
        )
    }
)


def experiment(name: str) -> Experiment:
    """The experiment of that name, or the one that a file NAME.json describes.

    Raises:
        InvalidInput: the name is not known, or the file does not describe an experiment.
    """
    if name.endswith(".json"):
        return experiment_of_file(name)
    if name not in EXPERIMENTS:
        raise InvalidInput(
            f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}, paper for all the paper's, or a "
            "file NAME.json that describes one."
        )
    return EXPERIMENTS[name]


def experiments(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of those names, each once; "paper" stands for all the paper's, "peers" for three,
    "ranking-and-selection" for itself and "slippage".

    Raises:
        InvalidInput: a name is not known, or none is given.
    """
    if not names:
        raise InvalidInput(f"name an experiment: {', '.join(EXPERIMENTS)}, or paper for all the paper's.")
    several = [each for name in names for each in SEVERAL.get(name, (name,))]
    return tuple(experiment(name) for name in dict.fromkeys(several))


def experiment_names() -> tuple[str, ...]:
    """The names that `experiment` knows, in the order of the paper."""
    return tuple(EXPERIMENTS)
