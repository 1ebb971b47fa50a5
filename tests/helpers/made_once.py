"""What tests need hundreds of times and is always the same: made once in a process, and taken again afterwards."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import sqlalchemy as sa


@contextmanager
def tables_and_certificates() -> Iterator[None]:
    """Tables of empty databases, and the certificates of this machine.

    The statements that Alembic gave the first empty database of a kind are given to the others: 30 ms less for each.
    Whoever makes an HTTP client reads the certificates that this machine trusts, 20 ms, though no test speaks TLS.
    """
    from alembic import command

    with (
        mock.patch.object(command, "upgrade", _Upgrades(command.upgrade)),
        mock.patch.object(ssl, "create_default_context", functools.cache(ssl.create_default_context)),
    ):
        yield


class _Upgrades:
    """As `alembic.command.upgrade`, which is remembered for databases without tables."""

    def __init__(self, upgrade: Any) -> None:
        self.upgrade = upgrade
        self.given: dict[tuple[str, str], list[tuple[str, Any]]] = {}  # (dialect, schema) -> statements

    def __call__(self, config: Any, schema: str) -> None:
        connection = config.attributes["connection"]
        kind = (connection.dialect.name, schema)
        if sa.inspect(connection).get_table_names():
            self.upgrade(config, schema)
        elif kind in self.given:
            for statement, parameters in self.given[kind]:
                connection.exec_driver_sql(statement, parameters)
        else:
            self.given[kind] = self._listened_to(connection, config, schema)

    def _listened_to(self, connection: sa.Connection, config: Any, schema: str) -> list[tuple[str, Any]]:
        given: list[tuple[str, Any]] = []

        def listen(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
                given.append((statement, parameters or None))

        sa.event.listen(connection, "before_cursor_execute", listen)
        try:
            self.upgrade(config, schema)
        finally:
            sa.event.remove(connection, "before_cursor_execute", listen)
        return given
