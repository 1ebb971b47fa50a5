"""What other packages add, by their entry points: policies, questions, embeddings, commands.

    [project.entry-points."surepick.policies"]
    my-policy = "my_package.my_policy:SPEC"

A name of surepick's own is never looked up here, so nobody pays for packages that are not asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from surepick.errors import InvalidInput
from surepick.text import quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


T = TypeVar("T")

POLICIES, QUESTIONS, EMBEDDINGS, COMMANDS = (
    "surepick.policies", "surepick.questions", "surepick.embeddings", "surepick.commands",
)  # fmt: skip
OURS = re.compile(r"surepick([-_.](server|bench))?", re.IGNORECASE)  # whose names are known here


def plugin_names(group: str) -> tuple[str, ...]:
    """The names that installed packages add to a group, sorted; nothing of them is loaded."""
    return tuple(sorted(_entry_points(group, tuple(sys.path))))


def plugin(group: str, name: object, kind: type[T]) -> T | None:
    """What an installed package adds under a name; None where no package does."""
    found = _entry_points(group, tuple(sys.path)).get(name, ()) if isinstance(name, str) else ()
    if not found:
        return None
    if len(found) > 1:
        packages = " and ".join(sorted(_package(one) for one in found))
        raise InvalidInput(f"{packages} both add {quoted(name)} to {group}; uninstall one of them.")
    try:
        made = found[0].load()
    except Exception as error:
        raise InvalidInput(
            f"{quoted(name)} of {_package(found[0])} cannot be loaded: {type(error).__name__}: {error}. Install a "
            "version of it that fits this surepick."
        ) from error
    if not isinstance(made, kind):
        raise InvalidInput(
            f"{quoted(name)} of {_package(found[0])} is a {type(made).__name__}, and {group} takes a {kind.__name__}."
        )
    return made


def package_of(group: str, name: str) -> str | None:
    """The distribution of others that adds a name; None where it is ours, or nobody's."""
    for one in _entry_points(group, tuple(sys.path)).get(name, ()):
        return None if OURS.fullmatch(_package(one)) else _package(one)
    return None


def check_packages(packages: Iterable[str]) -> None:
    """Refuse what was made with packages that are not installed here."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 (as below)

    for package in packages:
        try:
            distribution(str(package))
        except (PackageNotFoundError, ValueError):
            raise InvalidInput(
                f"this was made with the package {quoted(package)}, which is absent here: install it, if you trust who "
                "wrote it."
            ) from None


def _package(found: EntryPoint) -> str:
    return "a package" if found.dist is None else str(found.dist.name)


@lru_cache(maxsize=32)
def _entry_points(group: str, _: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """name -> who adds it, as long as the path of imports stays the same."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (20 ms, for whoever asks for other packages)

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for one in entry_points(group=group):
        if one.value not in {known.value for known in found.get(one.name, ())}:
            found[one.name] = (*found.get(one.name, ()), one)
    return found


# --- How a name becomes a command of `surepick`.


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command. The entry point of another package in `surepick.commands` gives one; --help loads it, so its module
    imports nothing that takes time.

    Args:
        panel: the heading of --help under which it stands; one of surepick's own, or another.
        summary: one line: the first of the command's own help.
        path: "module:function" of a function whose parameters are options of Typer, or of a `typer.Typer`. It is loaded
            when the command is run. An exception of `surepick.errors` becomes one message and an exit code.
    """

    panel: str
    summary: str
    path: str
