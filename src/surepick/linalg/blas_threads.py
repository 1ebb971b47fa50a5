"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost more.

The limits that a user has set with threadpoolctl come back when the block ends.
"""

from __future__ import annotations

import functools
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Limit every library with threads that is loaded by now to one. Finding them takes milliseconds."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (only where something is computed)

    limited: AbstractContextManager[Any] = threadpool_limits(1)
    return limited


def several_threads() -> bool:
    """Whether linear algebra may use more than one thread now."""
    from threadpoolctl import threadpool_info  # noqa: PLC0415 (only where something is computed)

    return any(library["num_threads"] > 1 for library in threadpool_info())


class _OneBlasThread:
    """The limit is the process's, on the BLAS libraries loaded by then: the first block that begins sets it, the last
    one that ends takes it back."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415

        self._libraries = ThreadpoolController()
        self._lock, self._blocks = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._blocks += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None


@functools.cache
def one_blas_thread() -> AbstractContextManager[None]:
    """Limit the BLAS libraries of numpy and scipy to one thread; 20 microseconds, for use around a single solve."""
    return _OneBlasThread()
