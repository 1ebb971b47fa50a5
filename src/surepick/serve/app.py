"""The application: all routes, what they share, and what holds for all of them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Response

from surepick import __version__
from surepick.serve.access.audit import Trail
from surepick.serve.access.ended import Ended
from surepick.serve.access.roles import Role
from surepick.serve.access.schema import make_tables
from surepick.serve.access.tokens import Tokens
from surepick.serve.access.webhooks import Webhooks
from surepick.serve.api import documents, events, library, results, studies, tokens, webhooks
from surepick.serve.api.routing import API, Routes, Shows, Viewer, check_classified
from surepick.serve.pages import errors
from surepick.serve.pages.routes import PAGES
from surepick.serve.settings import Settings
from surepick.serve.web.callers import Server, signer
from surepick.serve.web.limits import Guard
from surepick.serve.web.open_studies import Studies
from surepick.serve.web.problems import handle_errors
from surepick.serve.web.proxies import Proxies
from surepick.serve.web.watching import Watch
from surepick.studies.database import Database

if TYPE_CHECKING:
    from surepick.serve.openid.provider import Provider

SUMMARY = (
    "Studies over HTTP. Errors are problem documents (RFC 9457). Nothing shows a result of an open round to anybody "
    "but the one who reported it."
)


def make_app(settings: Settings) -> FastAPI:
    """The application of a server.

    Args:
        settings: of the operator.

    Raises:
        InvalidInput, StorageError: the database cannot be used.
    """
    database = Database(settings.url, create=True)
    database.prepare()
    secret = make_tables(database.engine, secrets.token_urlsafe(32))
    held = Server(
        settings,
        Studies(database),
        Tokens(database.engine),
        Trail(database.engine),
        Webhooks(database.engine),
        signer(secret),
        Ended(database.engine, max(settings.session_seconds, 3600.0) + 60.0),
        _provider(settings),
    )
    app = FastAPI(
        title="surepick",
        version=__version__,
        summary=SUMMARY,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.server = held
    health = APIRouter()

    @Routes(health).add("GET", "/healthz", Shows.nothing, who=None)
    def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @Routes(health).add("GET", "/metrics", Shows.nothing, who=Role.viewer, response_class=Response)
    def metrics(caller: Viewer) -> Response:  # noqa: ARG001 (the role counts)
        """Counts for the operator, in Prometheus' text format."""
        return held.metrics.page()

    app.include_router(health)
    for part in (studies, results, library, documents, events, tokens, webhooks):
        app.include_router(part.router)
    for pages in PAGES:
        app.include_router(pages)
    check_classified(app)
    handle_errors(app, errors.answer)
    app.add_middleware(Guard, server=held, answer=errors.answer)
    app.add_middleware(Watch, metrics=held.metrics)
    app.add_middleware(Proxies, settings=settings)
    return app


def _provider(settings: Settings) -> Provider | None:
    if settings.openid is None:
        return None
    from surepick.serve.openid.provider import Provider  # noqa: PLC0415 (an extra)

    return Provider(settings.openid)
