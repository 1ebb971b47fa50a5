"""surepick as a program sees it that has imported nothing of it yet.

The tests of a process share what they import, and an import of a part of a package makes it an attribute of the whole.
So a program of a document could use `sp.part.name` and fail for everybody but us.
"""

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("surepick", "surepick_server", "surepick_bench")


class FreshModules:
    """The modules of surepick that the programs of one page have imported: none before the first."""

    def __init__(self) -> None:
        self._imported: dict[str, ModuleType] = {}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Inside, surepick is what these programs have imported; afterwards it is again what it was."""
        before = {name: module for name, module in sys.modules.items() if _is_ours(name)}
        self._replace(self._imported)
        try:
            yield
        finally:
            self._imported = {name: module for name, module in sys.modules.items() if _is_ours(name)}
            self._replace(before)

    @staticmethod
    def _replace(modules: dict[str, ModuleType]) -> None:
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]
        sys.modules.update(modules)


def run_fresh(program: str, names: dict[str, Any] | None = None) -> None:
    """Run a program for which nothing of surepick is imported yet."""
    with FreshModules().entered():
        exec(program, {} if names is None else names)
