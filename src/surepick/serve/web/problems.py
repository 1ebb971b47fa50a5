"""Errors as RFC 9457 problem documents: the sentence of the library, and no trace."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from surepick.core.json import encode
from surepick.errors import (
    ContractError,
    InvalidInput,
    NotConverged,
    OutOfTurn,
    StorageError,
    SurepickError,
    UnusualResult,
)

MEDIA_TYPE = "application/problem+json"
CONFLICT = HTTPStatus.CONFLICT
KINDS: tuple[tuple[type[SurepickError], HTTPStatus], ...] = (
    (UnusualResult, CONFLICT),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (OutOfTurn, CONFLICT),
    (ContractError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotConverged, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StorageError, HTTPStatus.SERVICE_UNAVAILABLE),
)
Answer = Callable[[Request, int, str, dict[str, str] | None, str | None], Response]
log = logging.getLogger("surepick.serve")


class Refused(Exception):
    """A request is refused.

    Args:
        status: of the answer.
        sentence: why.
        headers: of the answer.
    """

    def __init__(self, status: HTTPStatus, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


def problem(
    status: int, sentence: str, headers: dict[str, str] | None = None, *, kind: str | None = None
) -> JSONResponse:
    """A problem document; `kind` is the name of the library's error, where it is one."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": sentence,
    }
    body |= {} if kind is None else {"kind": kind}
    return JSONResponse(body, int(status), headers=headers, media_type=MEDIA_TYPE)


def with_design(answer: Response, error: NotConverged) -> Response:
    """A problem document with the best design that was found, and its gap; a page as it is."""
    if answer.media_type != MEDIA_TYPE:
        return answer
    body = json.loads(bytes(answer.body))
    body |= {"gap": error.gap} if math.isfinite(error.gap) else {}
    body |= {} if error.best is None else {"design": encode(error.best, sparse=True)}
    return JSONResponse(body, answer.status_code, media_type=MEDIA_TYPE)


def with_rows(answer: Response, error: UnusualResult) -> Response:
    """A problem document with the places of the results that stand out; a page as it is."""
    if answer.media_type != MEDIA_TYPE:
        return answer
    body = json.loads(bytes(answer.body)) | {"rows": list(error.rows)}
    return JSONResponse(body, answer.status_code, media_type=MEDIA_TYPE)


def status_of(error: SurepickError) -> HTTPStatus:
    """The status with which an error of the library is answered."""
    return next((status for kind, status in KINDS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def where(error: BaseException) -> str:
    """The place in the code that an error comes from. Its words are left out: they may hold what was sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def kind_of(error: SurepickError) -> str | None:
    """The name of an error of the library, as clients know it."""
    return next((kind.__name__ for kind, _ in KINDS if isinstance(error, kind)), None)


def as_document(
    _: Request, status: int, sentence: str, headers: dict[str, str] | None = None, kind: str | None = None
) -> Response:
    """A problem document, as the answer to a request."""
    return problem(status, sentence, headers, kind=kind)


def not_understood(errors: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with values, as pydantic says it."""
    if errors and errors[0].get("type") == "json_invalid":
        return f"no JSON ({errors[0].get('ctx', {}).get('error', errors[0]['msg'])})"
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in errors[:5])


def handle_errors(app: FastAPI, answer: Answer = as_document) -> None:
    """Answer every error by its sentence.

    Args:
        app: whose.
        answer: makes the answer of a request, a status, a sentence, headers and a kind: a problem document, or a page.
    """

    @app.exception_handler(Refused)
    def refused(request: Request, error: Refused) -> Response:
        return answer(request, error.status, error.sentence, error.headers, None)

    @app.exception_handler(SurepickError)
    def ours(request: Request, error: SurepickError) -> Response:
        found = answer(request, status_of(error), str(error), None, kind_of(error))
        if isinstance(error, UnusualResult):
            return with_rows(found, error)
        return with_design(found, error) if isinstance(error, NotConverged) else found

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, str(error.detail), dict(error.headers or {}), None)

    @app.exception_handler(RequestValidationError)
    def unreadable(request: Request, error: RequestValidationError) -> Response:
        sentence = f"The request is not understood: {not_understood(error.errors())}."
        return answer(request, HTTPStatus.UNPROCESSABLE_ENTITY, sentence, None, InvalidInput.__name__)

    @app.exception_handler(Exception)
    def unknown(request: Request, error: Exception) -> Response:
        log.error("failed", extra={"said": {"kind": type(error).__name__, "where": where(error)}})
        sentence = "The server failed here, and this is a defect of it; its log says where."
        return answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, sentence, None, None)
