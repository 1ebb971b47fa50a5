"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost more."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread where threadpoolctl is installed (it comes with scikit-learn); else do nothing."""
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (optional)
    except ImportError:
        return nullcontext()
    limited: AbstractContextManager[Any] = threadpool_limits(1)
    return limited
