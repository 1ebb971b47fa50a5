"""Routes that say who may call them, and what their answers rest on. A route that does not is refused at the start."""

from collections.abc import Callable, Coroutine
from enum import StrEnum
from json import JSONDecodeError
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute

from surepick.core.records import read_json
from surepick_server.access.tokens import Principal, Role
from surepick_server.web.auth import ServerState, needs, server_of

API, STATIC = "/api/v1", "/static"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


async def shared(request: Request) -> ServerState:
    """What the routes share; awaited, because one that is not waits for a thread at every request."""
    return server_of(request)


Shared = Annotated[ServerState, Depends(shared)]
Viewer = Annotated[Principal, Depends(needs(Role.viewer))]
Measurer = Annotated[Principal, Depends(needs(Role.measurer))]
Owner = Annotated[Principal, Depends(needs(Role.owner))]
Admin = Annotated[Principal, Depends(needs(Role.admin))]


PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "The sentence of the library: what is wrong, and what to do."},
    },
}
REFUSED = {
    "description": "A problem document (RFC 9457).",
    "content": {"application/problem+json": {"schema": PROBLEM}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {422: REFUSED, "4XX": REFUSED, "5XX": REFUSED}


class Visibility(StrEnum):
    """What an answer rests on. None of these is a reward of an open round, unless the caller told it."""

    nothing = "nothing of a study"
    terms = "what a study asks, of which candidates"
    closed = "closed rounds, and of the open one who has what, and how many results are in"
    own = "the caller's own leases and results, by their keys"


class OnceEach(Request):
    """A request whose JSON has no field twice."""

    async def json(self) -> Any:
        """The JSON of its body."""
        if not hasattr(self, "_json"):
            try:
                self._json = read_json(await self.body())
            except (ValueError, RecursionError) as error:
                raise JSONDecodeError(str(error), "", 0) from None
        return self._json


class OnceEachRoute(APIRoute):
    """A route whose requests are such ones."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(OnceEach(request.scope, request.receive))

        return handled


class Routes:
    """Routes that say who may call them and what they show; `described` is what a router takes."""

    def __init__(self, **described: Any) -> None:
        self.router = APIRouter(route_class=OnceEachRoute, **described)

    def add(
        self, method: str, path: str, shows: Visibility, *, who: Role | None, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """A decorator of an endpoint."""
        said = {"x-shows": shows.value, "x-role": "anybody" if who is None else who.name}
        security: dict[str, Any] = {} if who is None else {"security": [{"token": []}]}

        def added(endpoint: Endpoint) -> Endpoint:
            self.router.add_api_route(
                path,
                endpoint,
                methods=[method],
                responses={**(PROBLEMS if more.get("include_in_schema", True) else {}), **more.pop("responses", {})},
                openapi_extra={**said, **security, **more.pop("openapi_extra", {})},
                **more,
            )
            return endpoint

        return added


def routes_of(app: FastAPI) -> list[APIRoute]:
    """All routes of the application, those of its routers too."""
    found: list[APIRoute] = []
    for one in app.routes:
        inside = getattr(getattr(one, "original_router", None), "routes", [one])
        for route in inside:
            if isinstance(route, APIRoute):
                found.append(route)
            else:
                assert getattr(route, "path", "") in (app.openapi_url, STATIC), f"{route} is not classified"
    return found


def check_classified(app: FastAPI) -> None:
    """Refuse to start with a route that does not say what it shows."""
    for route in routes_of(app):
        assert "x-shows" in (route.openapi_extra or {}), f"{route.path} does not say what it shows"
