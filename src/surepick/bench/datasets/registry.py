"""Names of the environments: name + options + seed -> environment, so that an experiment is plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from surepick.bench.datasets.crossed_barrel import crossed_barrel
from surepick.bench.datasets.livecodebench import livecodebench
from surepick.bench.datasets.mnist import mnist
from surepick.bench.datasets.nasbench import nasbench_macro
from surepick.bench.datasets.open_bandit import open_bandit
from surepick.bench.datasets.random_network import random_network
from surepick.bench.datasets.yahoo import yahoo_like, yahoo_r6a
from surepick.environments.digits import digits
from surepick.environments.environment import Environment
from surepick.environments.queueing import production_line, simulated_production_line
from surepick.environments.synthetic import (
    falling_means,
    given_means,
    high_dimensional,
    one_better,
    soare,
    some_better,
    sphere,
    two_clusters,
)
from surepick.errors import InvalidInput

NO_DEFAULT = inspect.Parameter.empty


ENVIRONMENTS: Mapping[str, Callable[..., Environment]] = MappingProxyType(
    {
        "crossed-barrel": crossed_barrel,
        "digits": digits,
        "falling-means": falling_means,
        "given-means": given_means,
        "high-dimensional": high_dimensional,
        "livecodebench": livecodebench,
        "mnist": mnist,
        "nasbench-macro": nasbench_macro,
        "one-better": one_better,
        "open-bandit": open_bandit,
        "production-line": production_line,
        "random-network": random_network,
        "simulated-production-line": simulated_production_line,
        "soare": soare,
        "some-better": some_better,
        "sphere": sphere,
        "two-clusters": two_clusters,
        "yahoo-like": yahoo_like,
        "yahoo-r6a": yahoo_r6a,
    }
)
FOLDERS: Mapping[str, str] = MappingProxyType(  # under the folder of data sets, of those that are read from files
    {
        "crossed-barrel": "pvlab",
        "livecodebench": "livecodebench",
        "mnist": "mnist",
        "nasbench-macro": "nasbench_macro",
        "open-bandit": "obd",
        "yahoo-r6a": "yahoo_r6a",
    }
)


def _parameters(name: str) -> dict[str, Any]:
    """What an environment takes beside its folder, which comes first: name -> default, which may be `NO_DEFAULT`."""
    taken = list(inspect.signature(ENVIRONMENTS[name]).parameters.values())
    return {each.name: each.default for each in (taken[1:] if name in FOLDERS else taken)}


def environment_names() -> tuple[str, ...]:
    """The names that `make_environment` knows, sorted."""
    return tuple(sorted(ENVIRONMENTS))


def make_environment(name: str, *, seed: int, data: str | Path = ".", **options: Any) -> Environment:
    """The environment of that name.

    Args:
        name: one of `environment_names()`.
        seed: decides everything that is random about it; if nothing is, every seed gives the same environment.
        data: the folder of data sets, for environments that are read from files.
        options: settings of the environment.

    Raises:
        InvalidInput: unknown name or option, an option without default that is missing, or one out of range.
        DatasetMissing: its files are not there; the message holds the recipe.
    """
    if name not in ENVIRONMENTS:
        raise InvalidInput(f"there is no environment {name!r}; choose one of {', '.join(environment_names())}.")
    parameters = _parameters(name)
    known = sorted(set(parameters) - {"seed"})
    if unknown := sorted(set(options) - set(known)):
        names = ", ".join(known) or "none"
        raise InvalidInput(f"environment {name} has no option {', '.join(map(repr, unknown))}; it knows {names}.")
    given = {**options, "seed": seed} if "seed" in parameters else options
    if missing := [each for each, usual in parameters.items() if usual is NO_DEFAULT and each not in given]:
        are, which = ("has", "it") if len(missing) == 1 else ("have", "them")
        raise InvalidInput(f"{name} needs {' and '.join(missing)}, which {are} no default; add {which} to the options.")
    return ENVIRONMENTS[name](*([Path(data) / FOLDERS[name]] if name in FOLDERS else []), **given)
