"""Templates are compiled once a process, however many reports and servers a run of the tests makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def compiled_once() -> Iterator[None]:
    """Within it, environments that have no cache of their own share one; jinja2 looks whether a source has changed."""
    import jinja2

    class Memory(jinja2.BytecodeCache):
        """What was compiled, by the template's name and source."""

        def __init__(self) -> None:
            self.known: dict[tuple[str, str], Any] = {}

        def load_bytecode(self, bucket: Any) -> None:
            bucket.code = self.known.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket: Any) -> None:
            self.known[bucket.key, bucket.checksum] = bucket.code

    made, memory = jinja2.Environment.__init__, Memory()

    def sharing(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        self.bytecode_cache = self.bytecode_cache or memory

    with patch.object(jinja2.Environment, "__init__", sharing):
        yield
