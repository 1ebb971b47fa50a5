"""What operators see: a line of JSON for each request, and counts at /metrics, without rewards, ids and names."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.serve.web.problems import where

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
UNKNOWN = "unknown"
log = logging.getLogger("surepick.serve")


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("surepick_requests", "Requests that were answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "surepick_request_seconds",
            "Time until the answer was complete.",
            labels[:2],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.running = Gauge("surepick_requests_running", "Requests being answered.", registry=self.registry)
        self.results = Counter("surepick_results_stored", "Results that were stored.", registry=self.registry)
        self.deliveries = Counter(
            "surepick_webhook_deliveries", "Attempts to deliver to a webhook.", ("outcome",), registry=self.registry
        )

    def page(self) -> Response:
        """All of them, in Prometheus' text format."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class Watch:
    """Counts and logs each request by its route, never by its path.

    Args:
        app: what is watched.
        metrics: where it is counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.running.inc()
        try:
            await self.app(scope, receive, seen)
        finally:
            seconds = time.perf_counter() - begun
            route, method = route_of(scope), scope["method"] if scope["method"] in METHODS else UNKNOWN
            self.metrics.running.dec()
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(method, route).observe(seconds)
            said = {"method": method, "route": route, "status": status, "ms": round(1e3 * seconds, 1)}
            log.info("request", extra={"said": {**said, "token": scope.get("state", {}).get("token", 0)}})


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def route_of(scope: Scope) -> str:
    """The route of a request, with the names of its parameters in place of their values."""
    route = scope.get("route")
    return str(getattr(route, "path", UNKNOWN))


class Lines(logging.Formatter):
    """A line of JSON for each entry."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = getattr(record, "said", {})
        entry = {"at": round(record.created, 3), "level": record.levelname.lower(), "what": record.getMessage(), **said}
        if record.exc_info and record.exc_info[1] is not None:  # its words may hold what was sent
            entry |= {"kind": type(record.exc_info[1]).__name__, "where": where(record.exc_info[1])}
        return json.dumps(entry, ensure_ascii=False)


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to what standard error is at that moment: it may be another one than when the server began."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def log_lines() -> None:
    """Write the log of the server to standard error."""
    handler = StandardError(sys.stderr)
    handler.setFormatter(Lines())
    for name in ("surepick.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "surepick.serve" else logging.WARNING)
