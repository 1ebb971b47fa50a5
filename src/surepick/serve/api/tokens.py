"""Tokens, for admins. Nobody is created by asking."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request

from surepick.serve.access.roles import Role
from surepick.serve.access.tokens import Token
from surepick.serve.api.models import NewToken
from surepick.serve.api.routing import API, Admin, Routes, Shared, Shows
from surepick.serve.web.callers import address_of

router = APIRouter(prefix=API, tags=["tokens"])
routes = Routes(router)


def _said(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "role": token.role.name,
        "study": token.study,
        "made_by": token.made_by,
        "made_at": token.made_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "identities": list(token.identities),
    }


@routes.add("GET", "/tokens", Shows.nothing, who=Role.admin)
def tokens(server: Shared, caller: Admin) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """All tokens that were ever made, without what they are."""
    return {"tokens": [_said(one) for one in server.tokens.list()]}


@routes.add("POST", "/tokens", Shows.nothing, who=Role.admin, status_code=HTTPStatus.CREATED)
def make(new: NewToken, request: Request, server: Shared, caller: Admin) -> dict[str, Any]:
    """A new token; it is shown this once."""
    role = Role[new.role]
    text, token = server.tokens.make(
        new.name, role, study=new.study, seconds=new.days * 86400.0, identity=new.identity, made_by=caller.name
    )
    words = ", ".join((new.name, role.name, *token.identities))
    server.trail.add(caller.name, address_of(request), "make token", new.study, words)
    return {**_said(token), "token": text}


@routes.add("DELETE", "/tokens/{token_name}", Shows.nothing, who=Role.admin)
def revoke(token_name: str, request: Request, server: Shared, caller: Admin) -> dict[str, Any]:
    """From now on it is worth nothing."""
    token = server.tokens.revoke(token_name)
    server.trail.add(caller.name, address_of(request), "revoke token", token.study, token.name)
    return _said(token)
