"""The application: all routes, what they share, and what holds for all of them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Response

from surepick import __version__
from surepick.studies.database import Database
from surepick_server.access.schema import AuditLog, make_tables
from surepick_server.access.tokens import Ended, Role, Tokens
from surepick_server.access.webhooks import Webhooks
from surepick_server.api import documents, results, studies
from surepick_server.api.routing import API, Routes, Viewer, Visibility, check_classified
from surepick_server.pages import layout, login, managing, measuring, new_study, overview, study as study_page
from surepick_server.settings import Settings
from surepick_server.web.auth import Guard, ServerState, signer
from surepick_server.web.connections import Proxies
from surepick_server.web.open_studies import Studies, Watch, handle_errors

if TYPE_CHECKING:
    from surepick_server.openid import Provider

PAGES = tuple(one.routes.router for one in (login, overview, new_study, measuring, managing, study_page))
SUMMARY = (
    "Studies over HTTP. Errors are problem documents (RFC 9457). Nothing shows a result of an open round to anybody "
    "but the one who reported it."
)


def make_app(settings: Settings) -> FastAPI:
    """The application of a server."""
    database = Database(settings.url, create=True)
    database.prepare()
    secret = make_tables(database.engine, secrets.token_urlsafe(32))
    held = ServerState(
        settings,
        Studies(database),
        Tokens(database.engine),
        AuditLog(database.engine),
        Webhooks(database.engine),
        signer(secret),
        Ended(database.engine, max(settings.session_seconds, 3600.0) + 60.0),
        _provider(settings),
    )
    described: dict[str, Any] = {"title": "surepick", "version": __version__, "summary": SUMMARY}
    app = FastAPI(openapi_url=f"{API}/openapi.json", docs_url=None, redoc_url=None, **described)
    app.state.server = held
    health = Routes()

    @health.add("GET", "/healthz", Visibility.nothing, who=None)
    def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @health.add("GET", "/metrics", Visibility.nothing, who=Role.viewer, response_class=Response)
    def metrics(caller: Viewer) -> Response:  # noqa: ARG001 (the role counts)
        """Counts for the operator, in Prometheus' text format."""
        return held.metrics.page()

    for router in (health.router, *studies.ROUTERS, results.routes.router, *documents.ROUTERS, *PAGES):
        app.include_router(router)
    check_classified(app)
    handle_errors(app, layout.error_page)
    app.add_middleware(Guard, server=held, answer=layout.error_page)
    app.add_middleware(Watch, metrics=held.metrics)
    app.add_middleware(Proxies, settings=settings)
    return app


def _provider(settings: Settings) -> Provider | None:
    if settings.openid is None:
        return None
    from surepick_server.openid import Provider  # noqa: PLC0415 (an extra)

    return Provider(settings.openid)
