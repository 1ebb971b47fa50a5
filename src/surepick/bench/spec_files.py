"""Experiments of one's own: a JSON file that crosses environments and policies."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from surepick.bench.datasets.registry import environment_names
from surepick.bench.spec import EnvironmentSpec, Experiment, PolicySpec, crossed
from surepick.errors import InvalidInput
from surepick.policies.registry import policy_names

SETTINGS = ("epsilon", "delta", "max_pulls")
KEYS = ("name", "title", "environments", "policies", "note", *SETTINGS)


def experiment_of_file(path: str | Path) -> Experiment:
    """The experiment that a JSON file describes: every one of its policies on every one of its environments.

    {"name": ..., "title": ..., "environments": [{"label", "name", "options", "reference", "reference_dim"}, ...],
     "policies": [{"label", "name", "options", "noise", "max_pulls"}, ...], "epsilon", "delta", "max_pulls", "note"}

    Only name, environments and policies are needed, and of each of these label and name.

    Raises:
        InvalidInput: the file is missing or no JSON object, an entry is unknown or missing, two labels are equal, or
            there is no environment or policy of a name.
    """
    described = _read(Path(path))
    _check_keys(f"{path}", described, KEYS, ("name", "environments", "policies"))
    places = [_entry(EnvironmentSpec, f"{path}, environment", row) for row in _rows(path, described, "environments")]
    several = [_entry(PolicySpec, f"{path}, policy", row) for row in _rows(path, described, "policies")]
    _check_names(path, "environment", [place.name for place in places], environment_names())
    _check_names(path, "policy", [policy.name for policy in several], policy_names())
    for labels in ([place.label for place in places], [policy.label for policy in several]):
        if len(set(labels)) < len(labels):
            raise InvalidInput(f"{path}: two entries have the same label among {', '.join(map(repr, labels))}.")
    settings = {name: described[name] for name in SETTINGS if name in described}
    title, note = str(described.get("title", "")), str(described.get("note", ""))
    return crossed(str(described["name"]), title, places, several, note=note, **settings)


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


def _rows(path: str | Path, described: dict[str, Any], name: str) -> list[Any]:
    rows = described[name]
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{path}: {name!r} is {rows!r}; give a list of at least one.")
    return rows


def _entry(kind: type[Any], where: str, row: Any) -> Any:
    if not isinstance(row, dict):
        raise InvalidInput(f"{where}: {row!r} is not an object with a label and a name.")
    needed = [column.name for column in fields(kind) if column.default is MISSING and column.default_factory is MISSING]
    _check_keys(where, row, tuple(column.name for column in fields(kind)), tuple(needed))
    return kind(**row)


def _check_keys(where: str, given: dict[str, Any], known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInput(f"{where}: {unknown[0]!r} is not known; there is {', '.join(known)}.")
    missing = [name for name in needed if name not in given]
    if missing:
        raise InvalidInput(f"{where}: {missing[0]!r} is missing.")


def _check_names(path: str | Path, what: str, given: list[str], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise InvalidInput(f"{path}: there is no {what} {name!r}; choose one of {', '.join(known)}.")
