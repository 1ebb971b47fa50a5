"""Webhooks of a study: set by its owner, allowed by an admin."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from surepick.serve.access.roles import Role
from surepick.serve.access.webhooks import Webhook
from surepick.serve.api.models import AllowWebhook, NewWebhook
from surepick.serve.api.routing import API, Admin, Owner, Routes, Shared, Shows
from surepick.serve.web.callers import address_of

router = APIRouter(prefix=API, tags=["webhooks"])
routes = Routes(router)
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


def _said(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "url": webhook.url,
        "events": list(webhook.events),
        "set_by": webhook.set_by,
        "allowed": webhook.allowed,
        "private": webhook.private,
    }


@routes.add("GET", "/studies/{name}/webhooks", Shows.terms, who=Role.owner)
def webhooks(name: str, server: Shared, caller: Owner) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """The webhooks of a study, without their secrets."""
    with server.studies.open(name):
        return {"webhooks": [_said(one) for one in server.webhooks.list(name)]}


@routes.add("POST", "/studies/{name}/webhooks", Shows.terms, who=Role.owner, status_code=HTTPStatus.CREATED)
def add(name: str, new: NewWebhook, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """A new webhook, with the secret that its messages are signed with, shown this once.

    Nothing is sent before an admin has allowed it; then it is told what happened since it was set.
    """
    with server.studies.open(name) as study:
        judged, planned = study.progress().judged, study.log.last_plan()
        made = server.webhooks.add(
            name,
            new.url,
            tuple(new.events),
            caller.name,
            opened=0 if planned is None else planned.number,
            judged=judged,
        )
    server.trail.add(caller.name, address_of(request), "add webhook", name, made.url)
    return {**_said(made), "secret": made.secret}


@routes.add("POST", "/studies/{name}/webhooks/{number}/allow", Shows.terms, who=Role.admin)
def allow(
    name: str, number: Number, how: AllowWebhook, request: Request, server: Shared, caller: Admin
) -> dict[str, Any]:
    """From now on it sends; to addresses of this machine or of its network only if that is said."""
    allowed = server.webhooks.allow(name, number, caller.name, private=how.private)
    server.trail.add(caller.name, address_of(request), "allow webhook", name, allowed.url)
    return _said(allowed)


@routes.add("DELETE", "/studies/{name}/webhooks/{number}", Shows.terms, who=Role.owner)
def remove(name: str, number: Number, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Send nothing more to it."""
    gone = server.webhooks.remove(name, number)
    server.trail.add(caller.name, address_of(request), "remove webhook", name, gone.url)
    return _said(gone)
