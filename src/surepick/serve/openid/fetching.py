"""What an identity provider answers: JSON, within a time and a size, from the address that was asked alone."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

import httpx

from surepick.core.arrays import record
from surepick.serve.openid.errors import ProviderAway, ProviderWrong

SECONDS = 10.0  # for an answer, whatever it is that takes long
MOST_AT_ONCE = 8  # so that a provider that hangs does not hold all threads of the server
LARGEST = 256 * 1024  # bytes of an answer


@record
class Answer:
    """What came.

    Args:
        status: of the answer.
        content: its object.
    """

    status: int
    content: dict[str, Any]


class Fetching:
    """Asks a provider.

    Args:
        seconds: for an answer.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._workers = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="identity provider")
        self._certificates = ssl.create_default_context()  # those of this machine: providers of a house have their own

    def ask(self, url: str, *, headers: Mapping[str, str] | None = None, body: str | None = None) -> Answer:
        """What is answered to GET, or to POST of a body.

        Raises:
            ProviderAway: nothing, or not in time.
            ProviderWrong: no JSON object, or more than it may be.
        """
        waiting: Future[Answer] = self._workers.submit(self._ask, url, dict(headers or {}), body)
        try:
            return waiting.result(self._seconds)
        except NotInTime:
            waiting.cancel()
            raise ProviderAway(f"it did not answer within {self._seconds:g} s") from None
        except httpx.TimeoutException as error:
            raise ProviderAway(f"it did not answer within {self._seconds:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ProviderAway(f"no connection ({type(error).__name__})") from error

    def close(self) -> None:
        """Ask nothing any more."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _ask(self, url: str, headers: dict[str, str], body: str | None) -> Answer:
        until = time.monotonic() + self._seconds
        headers |= {"accept": "application/json", "accept-encoding": "identity", "user-agent": "surepick"}
        seconds = self._seconds / 2.0
        with (
            httpx.Client(timeout=seconds, follow_redirects=False, trust_env=False, verify=self._certificates) as client,
            client.stream("GET" if body is None else "POST", url, headers=headers, content=body) as answer,
        ):
            came = bytearray()
            for part in answer.iter_raw():
                came += part
                if len(came) > LARGEST:
                    raise ProviderWrong(f"its answer is larger than {LARGEST:,} bytes")
                if time.monotonic() > until:
                    raise ProviderAway(f"it did not answer within {self._seconds:g} s")
        if answer.status_code >= 500:
            raise ProviderAway(f"it answers {answer.status_code}")
        try:
            content = json.loads(bytes(came))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ProviderWrong(f"it answers {answer.status_code}, and no JSON object")
        return Answer(answer.status_code, content)
