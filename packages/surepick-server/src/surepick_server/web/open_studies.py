"""The studies of a database, for many threads: each study object is used by one thread at a time, and used again."""

import json
import logging
import math
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO

import prometheus_client as metrics
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick import errors
from surepick.core.records import encode
from surepick.studies.database import Database
from surepick.studies.study import Study

# --- What was computed of a state of a study, made once: who asks meanwhile waits for it, and its bytes are limited.

MOST_BYTES = 64 * 2**20


class Kept:
    """Documents by what they are of; those that were not asked for longest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._coming: dict[Hashable, Future[bytes]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """The document of a key; made by the first who asks. What fails does so for all who wait, and is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            coming = self._coming.get(key)
            mine = coming is None
            if coming is None:
                coming = self._coming[key] = Future()
        if not mine:
            return coming.result()
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._coming[key]
            coming.set_exception(error)
            raise
        with self._lock:
            del self._coming[key]
            if len(made) <= self._most:  # a larger one would drive out all others, and go itself
                self._kept[key] = made
            while sum(map(len, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        coming.set_result(made)
        return made

    def forget(self) -> None:
        """Keep nothing of what is there now."""
        with self._lock:
            self._kept.clear()


# --- Errors as RFC 9457 problem documents: the sentence of the library, and no trace.

MEDIA_TYPE = "application/problem+json"
CONFLICT = HTTPStatus.CONFLICT
KINDS: tuple[tuple[type[errors.SurepickError], HTTPStatus], ...] = (
    (errors.UnusualResult, CONFLICT),
    (errors.InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.OutOfTurn, CONFLICT),
    (errors.ContractError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.NotConverged, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.StorageError, HTTPStatus.SERVICE_UNAVAILABLE),
)
Answer = Callable[[Request, int, str, dict[str, str] | None, str | None], Response]
log = logging.getLogger("surepick_server")


class HTTPError(Exception):
    """A request is refused with a status, a sentence that says why, and headers."""

    def __init__(self, status: HTTPStatus, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


def with_more(answer: Response, more: dict[str, Any]) -> Response:
    """A problem document that says more; a page as it is."""
    if answer.media_type != MEDIA_TYPE:
        return answer
    return JSONResponse(json.loads(bytes(answer.body)) | more, answer.status_code, media_type=MEDIA_TYPE)


def status_of(error: errors.SurepickError | HTTPError) -> HTTPStatus:
    """The status with which an error of the library, or ours, is answered."""
    if isinstance(error, HTTPError):
        return error.status
    return next((status for kind, status in KINDS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def where(error: BaseException) -> str:
    """The place in the code that an error comes from. Its words are left out: they may hold what was sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def problem_kind(error: errors.SurepickError) -> str | None:
    """The name of an error of the library, as clients know it."""
    return next((kind.__name__ for kind, _ in KINDS if isinstance(error, kind)), None)


def as_document(
    _: Request, status: int, sentence: str, headers: dict[str, str] | None = None, kind: str | None = None
) -> Response:
    """A problem document, as the answer to a request; `kind` is the name of the library's error, where it is one."""
    title = HTTPStatus(status).phrase
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": int(status), "detail": sentence}
    body |= {} if kind is None else {"kind": kind}
    return JSONResponse(body, int(status), headers=headers, media_type=MEDIA_TYPE)


def not_understood(found: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with values, as pydantic says it."""
    if found and found[0].get("type") == "json_invalid":
        return f"no JSON ({found[0].get('ctx', {}).get('error', found[0]['msg'])})"
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:5])


def handle_errors(app: FastAPI, answer: Answer = as_document) -> None:
    """Answer every error by its sentence."""

    @app.exception_handler(HTTPError)
    def refused(request: Request, error: HTTPError) -> Response:
        return answer(request, error.status, error.sentence, error.headers, None)

    @app.exception_handler(errors.SurepickError)
    def ours(request: Request, error: errors.SurepickError) -> Response:
        found = answer(request, status_of(error), str(error), None, problem_kind(error))
        if isinstance(error, errors.UnusualResult):
            return with_more(found, {"rows": list(error.rows)})
        if isinstance(error, errors.NotConverged):
            gap = {"gap": error.gap} if math.isfinite(error.gap) else {}
            return with_more(found, gap | ({} if error.best is None else {"design": encode(error.best, sparse=True)}))
        return found

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, str(error.detail), dict(error.headers or {}), None)

    @app.exception_handler(RequestValidationError)
    def unreadable(request: Request, error: RequestValidationError) -> Response:
        sentence = f"The request is not understood: {not_understood(error.errors())}."
        return answer(request, HTTPStatus.UNPROCESSABLE_ENTITY, sentence, None, errors.InvalidInput.__name__)

    @app.exception_handler(Exception)
    def unknown(request: Request, error: Exception) -> Response:
        log.error("failed", extra={"said": {"kind": type(error).__name__, "where": where(error)}})
        sentence = "The server failed here, and this is a defect of it; its log says where."
        return answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, sentence, None, None)


MOST_AT_ONCE = 4  # objects of one study that work: another one takes longer to make than these to be free again
PATIENCE = 0.1  # seconds for which a request waits for one of them, before it makes its own
MOST_OBJECTS = 2 * MOST_AT_ONCE  # of one study, for those who wait longer than that; what is more waits on
LONGEST = 60.0  # seconds for which a request waits for one of these
MOST_IDLE = 64  # study objects that wait to be used again
MOST_IDLE_BYTES = 256 * 2**20  # of all of them, roughly; the one that was used last stays, however large


class Studies:
    """The studies of a database, by name."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._idle: OrderedDict[int, tuple[str, Study, int]] = OrderedDict()
        self._used: Counter[str] = Counter()
        self._lock = threading.Condition()
        self._epoch = 0  # another one since the database is another file

    @contextmanager
    def open(self, name: str) -> Iterator[Study]:
        """A study that nobody else uses meanwhile."""
        epoch, study, whole = self._epoch, self._taken(name), False
        try:
            if study is None:
                try:
                    study = self.database.resume(name)
                except errors.InvalidInput as error:
                    raise HTTPError(HTTPStatus.NOT_FOUND, f"There is no study {name!r}.") from error
            yield study
            whole = True
        finally:
            self._free(name, study if whole else None, epoch)  # one in which something failed is not used again

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""
        try:
            with self.open(name):
                return True
        except HTTPError:
            return False

    def forget(self) -> None:
        """Use no object again that is there now: it knows another file of the database."""
        with self._lock:
            self._epoch += 1
            self._idle.clear()

    def _taken(self, name: str) -> Study | None:
        """An object that waits, for which we wait a little where others work; None: one has to be made."""
        with self._lock:
            if not self._lock.wait_for(lambda: self._used[name] < MOST_AT_ONCE, PATIENCE) and not self._lock.wait_for(
                lambda: self._used[name] < MOST_OBJECTS, LONGEST
            ):
                raise HTTPError(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"{MOST_OBJECTS} requests work on study {name!r} and take long; nothing was done. Ask again.",
                    {"retry-after": "10"},
                )
            self._used[name] += 1
            number = next((number for number, (own, *_) in reversed(self._idle.items()) if own == name), None)
            return None if number is None else self._idle.pop(number)[1]

    def _free(self, name: str, study: Study | None, epoch: int) -> None:
        size = 0 if study is None else study.replay.kept_bytes
        with self._lock:
            self._used[name] -= 1
            if self._used[name] == 0:
                del self._used[name]
            self._lock.notify_all()
            same = sum(own == name for own, *_ in self._idle.values())
            if study is None or epoch != self._epoch or same >= MOST_AT_ONCE:
                return
            self._idle[id(study)] = (name, study, size)
            while len(self._idle) > MOST_IDLE or (
                len(self._idle) > 1 and sum(size for *_, size in self._idle.values()) > MOST_IDLE_BYTES
            ):
                self._idle.popitem(last=False)


# --- What operators see: a line of JSON for each request, and counts at /metrics, without rewards, ids and names.

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
UNKNOWN = "unknown"


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = metrics.Counter(
            "surepick_requests", "Requests that were answered.", labels, registry=self.registry
        )
        self.seconds = Histogram(
            "surepick_request_seconds",
            "Time until the answer was complete.",
            labels[:2],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.running = Gauge("surepick_requests_running", "Requests being answered.", registry=self.registry)
        self.results = metrics.Counter("surepick_results_stored", "Results that were stored.", registry=self.registry)
        self.deliveries = metrics.Counter(
            "surepick_webhook_deliveries", "Attempts to deliver to a webhook.", ("outcome",), registry=self.registry
        )

    def page(self) -> Response:
        """All of them, in Prometheus' text format."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class Watch:
    """Counts and logs each request by its route, never by its path."""

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
            route = str(
                getattr(scope.get("route"), "path", UNKNOWN)
            )  # with the names of its parameters, not their values
            method = scope["method"] if scope["method"] in METHODS else UNKNOWN
            self.metrics.running.dec()
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(method, route).observe(seconds)
            said = {"method": method, "route": route, "status": status, "ms": round(1e3 * seconds, 1)}
            log.info("request", extra={"said": {**said, "token": scope.get("state", {}).get("token", 0)}})


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


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
    for name in ("surepick_server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "surepick_server" else logging.WARNING)
