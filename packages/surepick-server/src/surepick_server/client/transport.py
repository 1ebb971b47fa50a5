"""Requests to a server: who we are, what is sent again, and errors as the library raises them."""

import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from surepick import errors
from surepick.core.plans import Design
from surepick.core.records import from_json
from surepick.studies.logs.keys import read_pull_key
from surepick.studies.opening import TOKEN, checked_address, is_this_machine
from surepick.studies.recording import Receipt

API = "/api/v1"
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)  # seconds before a request is sent again
AGAIN = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
LONGEST_WAIT, MOST_WAITS = 60.0, 20  # seconds, times, where there were too many requests
TIMEOUT = httpx.Timeout(60.0, connect=10.0, read=600.0)  # a plan may take minutes to compute
KINDS: dict[str, type[errors.SurepickError]] = {
    kind.__name__: kind for kind in (errors.InvalidInput, errors.OutOfTurn, errors.StorageError, errors.ContractError)
}
TEXT_KINDS = ("application/json", "application/problem+json")


def _given_token(token: str | None) -> str | None:
    """The token: the one that was given, else that of the environment; None where there is none."""
    found = os.environ.get(TOKEN, "") if token is None else token
    if not isinstance(found, str) or not (found.isascii() and found.isprintable()):
        raise errors.InvalidInput(
            "the token has characters that no token has; copy it as surepick token create showed it."
        )
    return found.strip() or None


class Transport:
    """Sends requests to one server as who the token, or else SUREPICK_TOKEN, says; several threads may use it. A
    request that may be made twice without harm is sent again where the connection failed, or a proxy says that the
    server is away (502, 503, 504). One that may not is sent again only where it cannot have arrived."""

    def __init__(self, url: str, *, token: str | None = None, insecure: bool | None = None) -> None:
        self.url = checked_address(url, insecure=insecure)
        known = _given_token(token)
        headers = {"accept": "*/*"} | ({} if known is None else {"authorization": f"Bearer {known}"})
        here = is_this_machine(httpx.URL(self.url).host)
        self._client = httpx.Client(headers=headers, timeout=TIMEOUT, follow_redirects=False, trust_env=not here)
        self._ended = weakref.finalize(self, self._client.close)

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._ended()

    def get(self, *path: str, **query: str | int | bool) -> Any:
        """The JSON of an answer."""
        return self.send("GET", *path, query=query).json()

    def post(self, *path: str, body: Any, again: bool = False) -> Any:
        """The JSON of an answer."""
        return self.send("POST", *path, body=body, again=again).json()

    def send(
        self,
        method: str,
        *path: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        again: bool = False,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """An answer that is no error."""
        address = f"{self.url}{API}/{'/'.join(quote(name, safe='') for name in path)}"
        content, more = None, dict(headers or {})
        if body is not None:
            try:
                content = json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
            except (TypeError, UnicodeEncodeError, ValueError) as error:
                raise errors.InvalidInput(f"this cannot be sent: {error}.") from None
            more["content-type"] = "application/json"
        pauses, waits = list(PAUSES), 0
        while True:
            failure: Exception | None = None
            try:
                answer = self._client.request(method, address, params=query, content=content, headers=more)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:  # nothing was sent
                failure, safe = error, True
            except httpx.TransportError as error:
                failure, safe = error, again or method == "GET"
            except httpx.HTTPError as error:
                raise errors.StorageError(f"the answer of {self.url} cannot be read: {error}.") from None
            if failure is not None:
                if not (safe and pauses):
                    raise self._silent(failure, safe=safe) from None
            elif answer.status_code == HTTPStatus.TOO_MANY_REQUESTS and waits < MOST_WAITS:
                waits += 1
                time.sleep(_seconds(answer))
                continue
            elif not (answer.status_code in AGAIN and (again or method == "GET") and pauses and not _problem(answer)):
                return self._checked(answer)
            time.sleep(pauses.pop(0))

    def _silent(self, error: Exception, *, safe: bool) -> errors.StorageError:
        why = str(error).strip() or type(error).__name__
        stored = (
            "Repeat the call when it does."
            if safe
            else "Nobody knows whether what was asked was done: look (status) before the call is repeated."
        )
        return errors.StorageError(f"no server answers at {self.url} ({why}). {stored}")

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        """The answer, if it is no error."""
        status = answer.status_code
        if 200 <= status < 300:
            return answer
        document = _problem(answer)
        sentence = str(document.get("detail") or "")
        if sentence == document.get("title"):  # of no route of ours
            sentence = ""
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) and sentence:
            hint = f" The token is that of {TOKEN}, or the argument token." if status == HTTPStatus.UNAUTHORIZED else ""
            raise errors.InvalidInput(f"{self.url} refuses this ({status}): {sentence}{hint}")
        kind = str(document.get("kind") or "")
        if kind == errors.NotConverged.__name__:
            design = document.get("design")
            best = None if design is None else from_json(Design, json.dumps(design))
            raise errors.NotConverged(sentence, best=best, gap=float(document.get("gap", "inf")))
        if kind == errors.UnusualResult.__name__:
            raise errors.UnusualResult(sentence, rows=tuple(int(row) for row in document.get("rows", ())))
        if kind in KINDS and sentence:
            raise KINDS[kind](sentence)
        if 300 <= status < 400:
            raise errors.InvalidInput(
                f"{self.url} is answered from elsewhere ({answer.headers.get('location', '?')}); give that address."
            )
        if sentence and status < 500:
            raise errors.InvalidInput(sentence)
        if sentence:
            raise errors.StorageError(f"{self.url} answers {status}: {sentence}")
        said = f"{self.url} answers {status} {answer.reason_phrase}, and is no server of surepick, or away."
        raise (errors.InvalidInput if status < 500 else errors.StorageError)(said)


def _problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem document of an answer; {} if it is none."""
    if answer.headers.get("content-type", "").partition(";")[0].strip() not in TEXT_KINDS:
        return {}
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "detail" in found else {}


def _seconds(answer: httpx.Response) -> float:
    """How long a server wants us to wait."""
    try:
        return min(max(float(answer.headers.get("retry-after", "1")), 0.1), LONGEST_WAIT)
    except ValueError:
        return 1.0


# --- Results that are more than a server takes at once, as several requests.

MOST_ROWS = 100_000  # in one request
COLUMNS = ("results", "ids", "pulls", "sums", "squares", "keys", "blocks")  # an entry for each row, if they are there


def in_parts(body: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Requests of at most so many rows, each with whether the keys of its rows say their plan. Rows with the key of a
    lease go first: those without one belong to the plan that is open when they come."""
    rows = body.get("results", body.get("ids", ()))
    keys = [row["key"] for row in rows] if "results" in body else body.get("keys") or [None] * len(rows)
    leased = [key is not None and read_pull_key(key) is not None for key in keys]
    if len(rows) <= MOST_ROWS:
        yield dict(body), all(leased)
        return
    for named in (True, False):
        places = [place for place, one in enumerate(leased) if one is named]
        for first in range(0, len(places), MOST_ROWS):
            yield _rows(body, places[first : first + MOST_ROWS]), named


def joined_receipts(receipts: Sequence[Receipt]) -> Receipt:
    """What became of all parts, as of one request."""
    kinds = ("counted", "repeated", "late", "prior", "failed")
    counts = {name: sum(getattr(one, name) for one in receipts) for name in kinds}
    return Receipt(plan=receipts[0].plan, closed=any(one.closed for one in receipts), **counts)


def _rows(body: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """Some rows of a body."""

    def some(columns: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: None if values is None else [values[place] for place in places] for name, values in columns.items()
        }

    found = dict(body) | some({name: body[name] for name in COLUMNS if name in body})
    if body.get("quantities") is not None:
        found["quantities"] = [some(one) for one in body["quantities"]]
    return found
