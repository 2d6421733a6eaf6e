"""Limits on threads."""

from contextlib import AbstractContextManager
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Use one thread: for small matrices and few trips, several threads wait for each other longer than they work."""
    import scipy.linalg.blas  # noqa: F401  (the limit applies to loaded libraries only)
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits
