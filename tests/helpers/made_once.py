"""What tests need hundreds of times and is always the same: made once in a process, and taken again afterwards."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import sqlalchemy as sa
from sqlalchemy.sql.ddl import ExecutableDDLElement
from sqlalchemy.util import LRUCache


@contextmanager
def usual_things() -> Iterator[None]:
    """Commands, the code of templates, and the certificates of this machine.

    Statements are compiled once for all databases of a kind, not for each: a third of what short studies in one cost.
    So are those that make its tables: an eighth of what a new study in one costs.
    The options of a command are read from its function once, not at each call: 5 ms for each call after the first.
    Templates of reports are compiled once, 100 ms for each report after the first.
    Whoever makes an HTTP client reads the certificates that this machine trusts, 20 ms, though no test speaks TLS.
    """
    import jinja2

    from surepick.cli import app

    with (
        mock.patch.object(sa.Engine, "__init__", _sharing_statements(sa.Engine.__init__)),
        mock.patch.object(ExecutableDDLElement, "compile", _tables_compiled_once(ExecutableDDLElement.compile)),
        mock.patch.object(ssl, "create_default_context", functools.cache(ssl.create_default_context)),
        mock.patch.object(app, "loaded", functools.cache(app.loaded)),
        mock.patch.object(jinja2.Environment, "compile", _compiled_once(jinja2.Environment.compile)),
    ):
        yield


class _Statements(LRUCache[Any, Any]):
    """Compiled statements by kind of database; SQLAlchemy's key begins with the dialect of one engine."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_of_a_kind(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_a_kind(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_of_a_kind(key), value)


def _of_a_kind(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    return (type(dialect), getattr(dialect, "server_version_info", None), *statement)


def _sharing_statements(made: Any) -> Any:
    """As the constructor of engines, which then have one memory of compiled statements."""
    statements = _Statements(5_000)

    @functools.wraps(made)
    def sharing(self: Any, *given: Any, **options: Any) -> None:
        made(self, *given, **options)
        self._compiled_cache = statements

    return sharing


def _tables_compiled_once(compiled: Any) -> Any:
    """The text that makes a table or an index is the same for all databases of a kind."""
    known: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(compiled)
    def once(self: Any, bind: Any = None, dialect: Any = None, **how: Any) -> Any:
        made = getattr(self, "element", None)
        if dialect is None or not hasattr(self, "if_not_exists") or any(how.values()):
            return compiled(self, bind, dialect, **how)
        foreign = getattr(self, "include_foreign_key_constraints", None)
        keys = None if foreign is None else frozenset(map(id, foreign))
        key = (type(self), id(made), self.if_not_exists, keys, type(dialect))
        if key not in known:  # with what it makes, so that nothing else gets its id
            known[key] = made, compiled(self, bind, dialect, **how)
        return known[key][1]

    return once


def _compiled_once(compiled: Any) -> Any:
    """The code of a template is compiled once, whichever environment asks for it: each report has one of its own."""
    known: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(compiled)
    def once(self: Any, source: Any, *how: Any, **more: Any) -> Any:
        key = (source, how, *more.items(), self.autoescape, *sorted(self.filters), *sorted(self.tests))
        if key not in known:
            known[key] = compiled(self, source, *how, **more)
        return known[key]

    return once


def remember_routes() -> None:
    """What FastAPI derives of a route (its parameters, its models) is the same for every server: 50 ms less for each.

    The routes are those of the routers of surepick's modules, which all servers share; a FastAPI that derives this
    elsewhere goes on as ever.
    """
    from fastapi import routing

    derived = getattr(getattr(routing, "_EffectiveRouteContext", None), "from_api_route", None)
    if derived is None or hasattr(derived, "known"):
        return

    @functools.wraps(derived)
    def of_a_route(*, original_route: Any, include_context: Any) -> Any:
        key = (id(original_route), include_context.path_for(original_route))
        if key not in known:  # with the route, so that no other one gets its id
            known[key] = original_route, derived(original_route=original_route, include_context=include_context)
        return known[key][1]

    known = of_a_route.known = {}
    routing._EffectiveRouteContext.from_api_route = of_a_route
