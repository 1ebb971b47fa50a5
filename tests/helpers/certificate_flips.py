"""Every way in which one field of a certificate can be altered, for the tests of `verify`."""

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
FACTS = (  # what a certificate rests on: altered together with the digest, another certificate may be as consistent
    ("study",),
    ("made_by",),
    ("arithmetic",),
    ("reproduced",),
    ("policy",),
    ("minimize",),
    ("ended",),
    ("arms", "ids"),
    ("arms", "features"),
    ("arms", "columns"),
    ("arms", "preparation"),
    ("rounds", "#", "looks", "#", "told"),
    *(("rounds", "#", "looks", "#", name) for name in ("repeated", "abandoned", "withdrawn", "added")),
    *(("rounds", "#", "looks", "#", name) for name in ("undone", "confirmed", "unasked")),
)


def altered(value: Any) -> list[Any]:
    """Other values in place of this one, of the same kind and of another."""
    return [other for other in _candidates(value) if type(other) is not type(value) or other != value]


def _candidates(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, 1]
    if isinstance(value, int):
        return [value + 1, value - 1, float(value)]
    if isinstance(value, float):
        return [value + 1.0, value * 1.0001 + 1e-6, -value - 1.0, None]
    if isinstance(value, str):
        return [value + "x", value[:-1] if value else "y", value.upper() + " "]
    if value is None:
        return [0, 1.5, "x", []]
    if isinstance(value, list):
        longer = [*value, value[-1] if value else 0]
        return [longer, value[:-1], None] if value else [longer, None]
    return [{**value, "extra": 1}, *({k: v for k, v in value.items() if k != gone} for gone in list(value)[:3]), []]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where something stands in JSON data, containers included."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def kind(path: Path) -> tuple[str, ...]:
    """The path with # in place of positions."""
    return tuple("#" if isinstance(key, int) else key for key in path)


def is_fact(path: Path) -> bool:
    """Whether it is part of what a certificate rests on."""
    return any(kind(path)[: len(fact)] == fact for fact in FACTS)


def some_of_each_kind(document: dict[str, Any], each: int) -> list[Path]:
    """At most so many paths of every kind, spread over the document: the first, the last, and between."""
    kinds: dict[tuple[str, ...], list[Path]] = {}
    for path in paths(document):
        kinds.setdefault(kind(path), []).append(path)
    chosen = []
    for found in kinds.values():
        number = min(each, len(found))
        chosen += [found[round(step * (len(found) - 1) / max(number - 1, 1))] for step in range(number)]
    return chosen


def at(document: Any, path: Path) -> Any:
    """What stands there."""
    for key in path:
        document = document[key]
    return document


def replaced(document: Any, path: Path, value: Any) -> Any:
    """The document with another value there; what is not on the way is shared."""
    if not path:
        return value
    key, *rest = path
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[key] = replaced(document[key], tuple(rest), value)
    return copy
