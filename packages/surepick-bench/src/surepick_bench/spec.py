"""An experiment as frozen, plain data, so that it has an identity and can be run anywhere.

    Experiment = cells,   Cell = environment x policy x settings,   replicate = cell x seed

The identity of a cell is the SHA-256 of its canonical JSON. A replicate that is found under its key needs no second
run; one of another cell, of other settings or of another version of the package is never taken for it.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surepick.core.records import encode, record
from surepick.core.values import check_choice, positive_number, probability, whole_number
from surepick.errors import InvalidInput
from surepick.policies.registry import paper_settings, policy_names
from surepick_bench.datasets.registry import environment_names

MOST_PULLS = 10_000_000  # the paper's: a study that would pass it is a failure
REFERENCES = ("linear", "independent")
BUDGET = "pulls after which a study is given up."
SECONDS = "seconds after which a study is given up."
GAPS = "epsilon in units of the gap between the best arm and the next worse one."
SMOKE_PULLS, SMOKE_SECONDS = 20_000, 2.0  # of a study that shows that everything works


def _check_named(what: str, label: object, name: object, options: object) -> None:
    if not isinstance(label, str) or not isinstance(name, str):
        raise InvalidInput(f"label and name of {what} are {label!r} and {name!r}; both must be texts.")
    if not isinstance(options, dict):
        raise InvalidInput(f"options of {what}, {label!r}, are {options!r}; give names and values.")


@record
class EnvironmentSpec:
    """An environment as plain data.

    Args:
        reference: whose vectors the reference number of pulls is computed with: "linear", those of the linear
            embedding, or "independent", where the means are no linear function of the features.
    """

    label: str  # how tables and figures name it, e.g. "K=250, D=20"
    name: str  # a name that `make_environment` knows
    options: dict[str, Any] = field(default_factory=dict)  # its settings, without seed and files
    reference: str = "linear"
    reference_dim: int | None = None  # dimensions of the linear embedding; None: all

    def __post_init__(self) -> None:
        _check_named("an environment", self.label, self.name, self.options)
        check_choice("reference", self.reference, REFERENCES)
        if self.reference_dim is not None:
            whole_number("reference_dim", self.reference_dim, least=1, meaning="dimensions of the linear embedding.")


@record
class PolicySpec:
    """A policy as plain data."""

    label: str  # how tables and figures name it
    name: str  # a name that `make_policy` knows
    options: dict[str, Any] = field(default_factory=dict)  # its settings, without epsilon, delta and noise
    noise: str | None = None  # the noise that is declared to it, e.g. "subgaussian:1"; None: the environment's own
    max_pulls: int | None = None  # its budget; None: the experiment's

    def __post_init__(self) -> None:
        _check_named("a policy", self.label, self.name, self.options)
        if self.noise is not None and not isinstance(self.noise, str):
            raise InvalidInput(f"noise of policy {self.label!r} is {self.noise!r}; give a text such as subgaussian:1.")
        if self.max_pulls is not None:
            object.__setattr__(self, "max_pulls", whole_number("max_pulls", self.max_pulls, least=0, meaning=BUDGET))


@record
class Cell:
    """One policy on one kind of environment, run with many seeds.

    Args:
        gap_share: if given, epsilon is this times the gap between the best arm of an instance and the next worse one.
        max_seconds: a plan that is made later than that is not pulled; None: no limit. What it ends depends on the
            machine.
    """

    experiment: str  # the name of the experiment that it belongs to
    environment: EnvironmentSpec  # environment, policy: which of them
    policy: PolicySpec
    epsilon: float = 0.1  # the shortfall that is tolerated, in reward units
    delta: float = 0.05  # error probability
    max_pulls: int = MOST_PULLS  # a plan that would pass it is not pulled
    gap_share: float | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, str):
            raise InvalidInput(f"the name of an experiment is {self.experiment!r}; it must be a text.")
        checked: dict[str, Any] = {
            "epsilon": positive_number("epsilon", self.epsilon, "the shortfall that is tolerated, in reward units."),
            "delta": probability("delta", self.delta, "the error probability."),
            "max_pulls": whole_number("max_pulls", self.max_pulls, least=0, meaning=BUDGET),
        }
        for name, meaning in (("gap_share", GAPS), ("max_seconds", SECONDS)):
            if (given := getattr(self, name)) is not None:
                checked[name] = positive_number(name, given, meaning)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def canonical(self) -> str:
        """The cell and the version of the package as one line of JSON with sorted keys."""
        identity = {**encode(self), "surepick": version("surepick")}
        return json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `canonical`."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """experiment/environment/policy/delta, for people."""
        return f"{self.experiment}/{self.environment.label}/{self.policy.label}/{self.delta:g}"

    def key(self, seed: int, digest: str = "") -> str:
        """The name of a replicate: unique, sorted by experiment, environment, policy and seed; `digest` if known."""
        return f"{self.title}/{seed:06d}/{digest or self.digest}"


@record
class Experiment:
    """What one name of `surepick bench run` stands for."""

    name: str  # e.g. "paper-linear"
    title: str  # one line for people
    cells: tuple[Cell, ...]  # each is run with every seed
    note: str = ""  # a warning to readers of its tables, e.g. that the data are generated; "" if there is none

    @property
    def policies(self) -> tuple[str, ...]:
        """Labels of its policies."""
        return tuple(dict.fromkeys(cell.policy.label for cell in self.cells))


def restricted(experiments: Iterable[Experiment], policies: Iterable[str]) -> tuple[Experiment, ...]:
    """The experiments with these policies only (labels); those that have none of them are left out."""
    several, wanted = tuple(experiments), tuple(policies)
    if not wanted:
        return several
    known = tuple(dict.fromkeys(label for each in several for label in each.policies))
    if missing := [label for label in wanted if label not in known]:
        names = ", ".join(each.name for each in several)
        raise InvalidInput(f"{names}: no policy {missing[0]!r}; there is {', '.join(known)}.")
    kept = (replace(each, cells=tuple(cell for cell in each.cells if cell.policy.label in wanted)) for each in several)
    return tuple(each for each in kept if each.cells)


def crossed(
    name: str,
    title: str,
    environments: Iterable[EnvironmentSpec],
    policies: Iterable[PolicySpec],
    *,
    note: str = "",
    **settings: Any,
) -> Experiment:
    """Every policy on every environment."""
    several = tuple(policies)
    cells = tuple(Cell(name, place, policy, **settings) for place in environments for policy in several)
    return Experiment(name, title, cells, note)


def smoke(experiment: Experiment) -> Experiment:
    """The same cells with so few pulls and seconds that a run shows that everything works, and nothing else."""

    def small(cell: Cell) -> Cell:
        budget = cell.policy.max_pulls
        policy = replace(cell.policy, max_pulls=None if budget is None else min(budget, SMOKE_PULLS))
        return replace(cell, policy=policy, max_pulls=min(cell.max_pulls, SMOKE_PULLS), max_seconds=SMOKE_SECONDS)

    return replace(experiment, cells=tuple(map(small, experiment.cells)))


# --- Experiments of one's own: a JSON file that crosses environments and policies.

SETTINGS = ("epsilon", "delta", "max_pulls", "gap_share", "max_seconds")
KEYS = ("name", "title", "environments", "policies", "note", *SETTINGS)


def experiment_of_file(path: str | Path) -> Experiment:
    """The experiment that a JSON file describes: every one of its policies on every one of its environments.

    {"name": ..., "title": ..., "environments": [{"label", "name", "options", "reference", "reference_dim"}, ...],
     "policies": [{"label", "name", "options", "noise", "max_pulls"}, ...], "epsilon", "delta", "max_pulls", "note",
     "gap_share", "max_seconds"}

    Only name, environments and policies are needed, and of each of these label and name.
    """
    described = _read(Path(path))
    _check_keys(f"{path}", described, KEYS, ("name", "environments", "policies"))
    environments = _entries(EnvironmentSpec, f"{path}, environment", described["environments"], environment_names())
    policies = _entries(PolicySpec, f"{path}, policy", described["policies"], policy_names(None))
    settings = {name: described[name] for name in SETTINGS if name in described}
    title, note = str(described.get("title", "")), str(described.get("note", ""))
    return crossed(str(described["name"]), title, environments, policies, note=note, **settings)


def _read(path: Path) -> dict[str, Any]:
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}.") from error
    if not isinstance(described, dict):
        raise InvalidInput(f"{path} holds a {type(described).__name__}; an experiment is a JSON object.")
    return described


def _entries(kind: type[Any], where: str, rows: Any, known: tuple[str, ...]) -> list[Any]:
    """The specs of a list of objects, with different labels and known names."""
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{where}: the list is {rows!r}; give a list of at least one.")
    for row in rows:
        if not isinstance(row, dict):
            raise InvalidInput(f"{where}: {row!r} is not an object with a label and a name.")
        _check_keys(where, row, tuple(column.name for column in fields(kind)), ("label", "name"))
    entries = [kind(**row) for row in rows]
    for entry in entries:
        check_choice(f"{where}: its name", entry.name, known)
    labels = [entry.label for entry in entries]
    if len(set(labels)) < len(labels):
        raise InvalidInput(f"{where}: two entries have the same label among {', '.join(map(repr, labels))}.")
    return entries


def _check_keys(where: str, given: dict[str, Any], known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise InvalidInput(f"{where}: {unknown[0]!r} is not known; there is {', '.join(known)}.")
    if missing := [name for name in needed if name not in given]:
        raise InvalidInput(f"{where}: {missing[0]!r} is missing.")


# --- Policies of experiments: with the literal settings of their source, or with their defaults.

UNIT_NOISE = "subgaussian:1"  # what the published code assumes, whatever the rewards


def published(
    name: str, *, label: str | None = None, noise: str | None = UNIT_NOISE, max_pulls: int | None = None, **options: Any
) -> PolicySpec:
    """A policy with the literal settings of its source."""
    return PolicySpec(label or name, name, {**paper_settings(name), **options}, noise, max_pulls)


def default(name: str, *, label: str | None = None, **options: Any) -> PolicySpec:
    """A policy with its default settings and the environment's own noise."""
    return PolicySpec(label or name, name, options)
