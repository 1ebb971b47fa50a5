"""Names of the environments: name + options + seed -> environment, so that an experiment is plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from surepick.bench.datasets.livecodebench import livecodebench
from surepick.bench.datasets.mnist import mnist
from surepick.bench.datasets.nasbench import nasbench_macro
from surepick.bench.datasets.open_bandit import open_bandit
from surepick.bench.datasets.random_network import random_network
from surepick.bench.datasets.yahoo import yahoo_like, yahoo_r6a
from surepick.environments.digits import digits
from surepick.environments.environment import Environment
from surepick.environments.synthetic import high_dimensional, one_better, soare, sphere, two_clusters
from surepick.errors import InvalidInput

NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Entry:
    """How a name becomes an environment.

    Args:
        build: options -> environment, with the folder of its files as first argument if it has one; without `seed`
            among them, every seed gives the same environment.
        summary: one line for people who choose.
        folder: where its files lie under the folder of data sets; None: it needs no file.
    """

    build: Callable[..., Environment]
    summary: str
    folder: str | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What it takes beside the folder: name -> default, which may be `NO_DEFAULT`."""
        taken = list(inspect.signature(self.build).parameters.values())
        return {each.name: each.default for each in (taken if self.folder is None else taken[1:])}

    @property
    def options(self) -> tuple[str, ...]:
        """The options it knows, sorted."""
        return tuple(sorted(set(self.parameters) - {"seed"}))


ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        "digits": Entry(digits, "handwritten digits, 8 x 8: find a seven"),
        "high-dimensional": Entry(high_dimensional, "the paper's example in which its method does not feel D"),
        "livecodebench": Entry(livecodebench, "language models, a pull is a question", folder="livecodebench"),
        "mnist": Entry(mnist, "handwritten digits, 28 x 28: find a seven", folder="mnist"),
        "nasbench-macro": Entry(
            nasbench_macro, "6,561 small networks, each trained three times", folder="nasbench_macro"
        ),
        "one-better": Entry(one_better, "arms that share nothing, one of them better than the others"),
        "open-bandit": Entry(open_bandit, "clicks on fashion items, by item or by user and item", folder="obd"),
        "random-network": Entry(random_network, "rewards from a random network"),
        "soare": Entry(soare, "unit vectors and one arm close to the best of them"),
        "sphere": Entry(sphere, "arms and coefficients uniform on the sphere"),
        "two-clusters": Entry(two_clusters, "the paper's two tight clusters of arms"),
        "yahoo-like": Entry(yahoo_like, "generated news records in the form of the Yahoo! R6A log"),
        "yahoo-r6a": Entry(yahoo_r6a, "the real Yahoo! R6A log: which of its lines were clicked?", folder="yahoo_r6a"),
    }
)


def environment_names() -> tuple[str, ...]:
    """The names that `make_environment` knows, sorted."""
    return tuple(sorted(ENTRIES))


def make_environment(name: str, *, seed: int, data: str | Path = ".", **options: Any) -> Environment:
    """The environment of that name.

    Args:
        name: one of `environment_names()`.
        seed: decides everything that is random about it.
        data: the folder of data sets, for environments that are read from files.
        options: settings of the environment.

    Raises:
        InvalidInput: unknown name or option, an option without default that is missing, or one out of range.
        DatasetMissing: its files are not there; the message holds the recipe.
    """
    if name not in ENTRIES:
        raise InvalidInput(f"there is no environment {name!r}; choose one of {', '.join(environment_names())}.")
    entry = ENTRIES[name]
    unknown = sorted(set(options) - set(entry.options))
    if unknown:
        known = ", ".join(entry.options) or "none"
        raise InvalidInput(f"environment {name} has no option {', '.join(map(repr, unknown))}; it knows {known}.")
    given = {**options, "seed": seed} if "seed" in entry.parameters else options
    if missing := [name for name, usual in entry.parameters.items() if usual is NO_DEFAULT and name not in given]:
        are, which = ("has", "it") if len(missing) == 1 else ("have", "them")
        raise InvalidInput(f"{name} needs {' and '.join(missing)}, which {are} no default; add {which} to the options.")
    return entry.build(*([] if entry.folder is None else [Path(data) / entry.folder]), **given)
