"""What was computed of a state of a study, made once: who asks meanwhile waits for it, and its bytes are limited."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future

MOST_BYTES = 64 * 2**20


class Kept:
    """Documents by what they are of; those that were not asked for longest go first.

    Args:
        most_bytes: of all that are kept.
    """

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
