"""The experiments by name: the paper's, the peers, and error rates against delta.

Constants that stand for knowledge are of two kinds. Those of the paper's policies are the published ones, which their
own data contradict (C = .5 where the norm is .89). Those of the certified policies hold for the environment; the tests
check them against the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec, crossed
from surepick.bench.spec_files import experiment_of_file
from surepick.errors import InvalidInput
from surepick.policies.registry import paper_settings

UNIT_NOISE = "subgaussian:1"  # what the published code assumes, whatever the rewards
NEVER_STOPS = 200_000  # pulls after which a policy without a stopping rule is told to stop
LINEAR_ARMS = (250, 500, 750, 1000)
LINEAR_DIMS = (20, 25)  # the paper says 20; its published code draws 25
NORM_DIMS = (10, 20, 30)
DELTAS = (0.01, 0.05, 0.1, 0.2, 0.3)
PAPER = ("paper-linear", "paper-nonlinear", "mnist", "yahoo-like", "high-dimensional")


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
    return EXPERIMENTS[name]()


def experiments(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of those names, each once; "paper" stands for all the paper's.

    Raises:
        InvalidInput: a name is not known, or none is given.
    """
    if not names:
        raise InvalidInput(f"name an experiment: {', '.join(EXPERIMENTS)}, or paper for all the paper's.")
    several = [each for name in names for each in (PAPER if name == "paper" else (name,))]
    return tuple(experiment(name) for name in dict.fromkeys(several))


def experiment_names() -> tuple[str, ...]:
    """The names that `experiment` knows, in the order of the paper."""
    return tuple(EXPERIMENTS)


def published(
    name: str,
    *,
    label: str | None = None,
    noise: str | None = UNIT_NOISE,
    max_pulls: int | None = None,
    **options: Any,
) -> PolicySpec:
    """A policy with the literal settings of its source."""
    return PolicySpec(label or name, name, {**paper_settings(name), **options}, noise, max_pulls)


def certified(name: str, **options: Any) -> PolicySpec:
    """A certified policy with its default settings and the environment's own noise."""
    return PolicySpec(name, name, options)


def _paper_linear() -> Experiment:
    places = [
        EnvironmentSpec(
            f"K={num_arms}, D={dim}",
            "two-clusters",
            {"num_arms": num_arms, "dim": dim, "reward": "linear"},
            "linear",
            2,
        )
        for dim in LINEAR_DIMS
        for num_arms in LINEAR_ARMS
    ]
    whole = crossed(
        "paper-linear",
        "two clusters, linear Bernoulli rewards, K = 250 to 1,000 (the paper's figure 1a)",
        places,
        (*_synthetic_policies(), *_certified_on_clusters(linear=0.9, kernel=1.2)),
    )
    return replace(whole, cells=tuple(cell for cell in whole.cells if not _dear(cell)))


def _dear(cell: Cell) -> bool:
    """certified-neural at D = 25, which is there for RAGE's sake: it would take a third of the experiment's time."""
    return cell.policy.name == "certified-neural" and cell.environment.options["dim"] == LINEAR_DIMS[1]


def _paper_nonlinear() -> Experiment:
    places = [
        EnvironmentSpec(f"K=200, D={dim}", "two-clusters", {"num_arms": 200, "dim": dim, "reward": "norm"}, "linear", 2)
        for dim in NORM_DIMS
    ]
    return crossed(
        "paper-nonlinear",
        "two clusters, reward = norm, K = 200, D = 10 to 30 (the paper's figure 1b)",
        places,
        (*_synthetic_policies(), *_certified_on_clusters(linear=1.2, kernel=1.5)),
    )


def _synthetic_policies() -> tuple[PolicySpec, ...]:
    """The paper's five, Algorithm 4, and the neural rule on plain means."""
    return (
        published("linear-embedding", norm_bound=0.5),
        published("kernel-embedding", norm_bound=0.5, gamma=1.0),
        published("rage"),
        published("action-elimination", noise="subgaussian:0.5"),
        published("neural-embedding", noise=None),
        published("means-neural-rule", noise=None),
        published("unknown-misspecification", dim=2, max_pulls=NEVER_STOPS),
    )


def _certified_on_clusters(*, linear: float, kernel: float) -> tuple[PolicySpec, ...]:
    return (
        certified("certified-linear", norm_bound=linear),
        certified("certified-kernel", norm_bound=kernel, gamma=1.0),
        certified("certified-independent"),
        certified("certified-neural", misspecification=0.001, width=64),
    )


def _mnist() -> Experiment:
    place = EnvironmentSpec("200 images", "mnist", {"per_digit": 20}, "independent")
    return crossed(
        "mnist",
        "200 images of digits, find a seven (the paper's figure 2a, Table 1 and Table 2)",
        [place],
        (
            published("fixed-linear", norm_bound=1e-5),
            published("fixed-kernel", norm_bound=2.5e-3, gamma=9e-5),
            published("rage"),
            published("action-elimination"),
            published("neural-embedding"),
            published("means-neural-rule"),
            published("linear-embedding", norm_bound=1e-5),
            certified("certified-linear", norm_bound=2.0),
            certified("certified-independent"),
        ),
    )


def _yahoo_like() -> Experiment:
    place = EnvironmentSpec("200 records", "yahoo-like", {"num_arms": 200}, "independent")
    return crossed(
        "yahoo-like",
        "200 click records, 5 of them rewarding (the paper's figure 2b, on generated records)",
        [place],
        (
            published("fixed-linear", norm_bound=1e-3),
            published("fixed-kernel", norm_bound=1e-3, gamma=10.0),
            published("rage"),
            published("action-elimination"),
            published("neural-embedding", error_tolerance=1e-3, regularization=10.0),
            published("neural-embedding", label="neural, ridge 1", error_tolerance=1e-3, regularization=1.0),
            published("means-neural-rule"),
            certified("certified-independent"),
        ),
        note="Generated data: the records are random numbers in the form of Yahoo's, and no Yahoo data is in them.",
    )


def _high_dimensional() -> Experiment:
    places = [
        EnvironmentSpec(f"D={dim}", "high-dimensional", {"dim": dim, "epsilon": 0.1}, "linear", None)
        for dim in (5, 10, 20, 40)
    ]
    return crossed(
        "high-dimensional",
        "the paper's example in which its method does not feel the dimension and RAGE does (appendix)",
        places,
        (
            published("linear-embedding", norm_bound=1.0),
            published("rage"),
            published("action-elimination"),
            certified("certified-linear", norm_bound=1.0),
            certified("certified-independent"),
        ),
    )


def _peers() -> Experiment:
    places = [
        EnvironmentSpec("sphere", "sphere", {"num_arms": 100, "dim": 10}),
        EnvironmentSpec("soare", "soare", {"dim": 10, "angle": 0.6}),
        EnvironmentSpec("digits", "digits", {"per_digit": 6}, "independent"),
    ]
    policies = (
        certified("xy-static"),
        certified("xy-adaptive"),
        certified("lingape", norm_bound=2.0),
        certified("lingame", norm_bound=2.0),
        certified("lucb"),
        certified("sequential-halving", budget=100_000),
        certified("rage"),
        certified("action-elimination"),
        certified("certified-linear", norm_bound=2.0),
        certified("certified-independent"),
    )
    return crossed(
        "peers", "the field's other algorithms, each with its own stopping rule", places, policies, max_pulls=1_000_000
    )


def _error_rate() -> Experiment:
    place = EnvironmentSpec("one better arm of 100", "one-better", {"num_arms": 100, "gap": 0.15}, "independent")
    policies = (
        published("neural-embedding"),
        published("means-neural-rule"),
        published("action-elimination"),
        certified("certified-independent"),
    )
    cells = [Cell("error-rate", place, policy, delta=delta) for delta in DELTAS for policy in policies]
    return Experiment(
        "error-rate", "wrong answers against delta: one arm of 100 is better, by 1.5 epsilon", tuple(cells)
    )


EXPERIMENTS: Mapping[str, Callable[[], Experiment]] = MappingProxyType(
    {
        "paper-linear": _paper_linear,
        "paper-nonlinear": _paper_nonlinear,
        "mnist": _mnist,
        "yahoo-like": _yahoo_like,
        "high-dimensional": _high_dimensional,
        "peers": _peers,
        "error-rate": _error_rate,
    }
)
