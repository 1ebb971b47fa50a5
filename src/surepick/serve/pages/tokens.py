"""The page of admins: who may do what."""

from __future__ import annotations

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from surepick.errors import InvalidInput, SurepickError
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api import tokens
from surepick.serve.api.models import NewToken, brought
from surepick.serve.api.routing import Admin, Routes, Shared, Shows
from surepick.serve.pages.forms import Posted
from surepick.serve.pages.shell import page, to
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import status_of
from surepick.studies.logs.leases import system_clock

router = APIRouter(include_in_schema=False)
routes = Routes(router)


@routes.add("GET", "/tokens", Shows.nothing, who=Role.admin)
def tokens_page(request: Request, server: Shared, caller: Admin) -> Response:
    """All tokens, without what they are."""
    return _show(request, server, caller)


@routes.add("POST", "/tokens", Shows.nothing, who=Role.admin)
def make(request: Request, server: Shared, caller: Admin, form: Posted) -> Response:
    """A new token, which is shown this once."""
    typed = {name: form.text(name) for name in ("name", "role", "study", "days", "identity")}
    try:
        if server.is_local() and typed["role"] != Role.admin.name:
            raise InvalidInput("Make the first token for yourself, with the role admin: from then on all need one.")
        days = form.number("days", "how many days")
        fields: dict[str, Any] = {**typed, "days": 90.0 if days is None else days}
        fields |= {name: typed[name] or None for name in ("study", "identity")}
        made = tokens.make(brought(NewToken, fields, "The token is"), request, server, caller)
    except SurepickError as error:
        return _show(request, server, caller, status=status_of(error), error=str(error), typed=typed)
    return _show(request, server, caller, made=made)


@routes.add("POST", "/tokens/revoke", Shows.nothing, who=Role.admin)
def revoke(request: Request, server: Shared, caller: Admin, form: Posted) -> Response:
    """Make a token worthless."""
    try:
        gone = tokens.revoke(form.raw("name"), request, server, caller)
    except SurepickError as error:
        return _show(request, server, caller, status=status_of(error), error=str(error))
    return to(request, "/tokens", f"The token of {gone['name']} is not valid any more.")


def _show(
    request: Request,
    server: Server,
    caller: Principal,
    *,
    status: int = HTTPStatus.OK,
    error: str = "",
    made: dict[str, Any] | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    return page(
        request,
        "tokens.html",
        caller,
        status=status,
        error=error,
        made=made,
        typed=defaultdict(str, typed or {}),
        now=system_clock(),
        tokens=tokens.tokens(server, caller)["tokens"],
        roles=list(Role.__members__),
        first=server.is_local(),
        others=server.provider is not None or bool(server.settings.trusted_header),
    )
