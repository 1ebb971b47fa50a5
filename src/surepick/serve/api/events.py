"""What happens to a study, as server-sent events: one whenever what may be seen of it changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from surepick.errors import StorageError
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.routing import API, Routes, Shared, Shows, Viewer
from surepick.serve.api.studies import status_of
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import Refused

router = APIRouter(prefix=API, tags=["events"])
routes = Routes(router)
PAUSE, HEARTBEAT = 1.0, 15.0  # seconds between two looks, and between two signs of life
EVENTS = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The events."}}


@routes.add(
    "GET", "/studies/{name}/events", Shows.closed, who=Role.viewer, response_class=StreamingResponse, responses=EVENTS
)
def events(name: str, request: Request, server: Shared, caller: Viewer) -> StreamingResponse:
    """An event `status` at once, and whenever where the study stands has changed; its data is that of the status.

    The stream ends when the caller's token is worth nothing any more.
    """
    with server.studies.open(name):
        pass
    if server.streams >= server.settings.most_streams:
        raise Refused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{server.settings.most_streams} listen already; ask for the status from time to time.",
            {"retry-after": "60"},
        )
    return StreamingResponse(_stream(name, request, server, caller), media_type="text/event-stream")


async def _stream(name: str, request: Request, server: Server, caller: Principal) -> AsyncIterator[str]:
    if server.streams >= server.settings.most_streams:  # others came meanwhile
        return
    server.streams += 1
    try:
        seen, sent = "", time.monotonic()
        while not await request.is_disconnected():
            said = await asyncio.to_thread(_look, name, request, server, caller)
            if said is None:
                return
            shown = json.dumps({**said, "progress": {**said["progress"], "now": 0.0}})
            if shown != seen:
                seen, sent = shown, time.monotonic()
                yield f"event: status\ndata: {json.dumps(said)}\n\n"
            elif time.monotonic() - sent >= HEARTBEAT:
                sent = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(PAUSE)
    finally:
        server.streams -= 1


def _look(name: str, request: Request, server: Server, caller: Principal) -> dict[str, Any] | None:
    """Where the study stands; None: the caller may not know any more."""
    if server.known(request) != caller:
        return None
    try:
        with server.studies.open(name) as study:
            return status_of(study, name)
    except StorageError:  # the client asks again, and is told
        return None
