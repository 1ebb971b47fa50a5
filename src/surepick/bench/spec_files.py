"""Experiments of one's own: a JSON file that crosses environments and policies."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from surepick.bench.datasets.registry import environment_names
from surepick.bench.spec import EnvironmentSpec, Experiment, PolicySpec, crossed
from surepick.core.validation import check_choice
from surepick.errors import InvalidInput
from surepick.policies.registry import policy_names

SETTINGS = ("epsilon", "delta", "max_pulls", "gap_share", "max_seconds")
KEYS = ("name", "title", "environments", "policies", "note", *SETTINGS)


def experiment_of_file(path: str | Path) -> Experiment:
    """The experiment that a JSON file describes: every one of its policies on every one of its environments.

    {"name": ..., "title": ..., "environments": [{"label", "name", "options", "reference", "reference_dim"}, ...],
     "policies": [{"label", "name", "options", "noise", "max_pulls"}, ...], "epsilon", "delta", "max_pulls", "note",
     "gap_share", "max_seconds"}

    Only name, environments and policies are needed, and of each of these label and name.

    Raises:
        InvalidInput: the file is missing or no JSON object, an entry is unknown or missing, two labels are equal, or
            there is no environment or policy of a name.
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
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInput(f"{where}: {unknown[0]!r} is not known; there is {', '.join(known)}.")
    missing = [name for name in needed if name not in given]
    if missing:
        raise InvalidInput(f"{where}: {missing[0]!r} is missing.")
