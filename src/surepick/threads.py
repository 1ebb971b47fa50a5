"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost more.

The limits that a user has set with threadpoolctl come back when the block ends.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Limit every library with threads that is loaded by now to one. Finding them takes milliseconds."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (only where something is computed)

    limited: AbstractContextManager[Any] = threadpool_limits(1)
    return limited


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit the BLAS libraries of numpy and scipy to one thread; 20 microseconds, for use around a single solve."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@functools.cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401, PLC0415 (so that its BLAS is among them)
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    return ThreadpoolController()
