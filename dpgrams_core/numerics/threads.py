"""One numerical thread: more would fight for the cores, and could round differently."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits


def one_thread() -> Any:
    """The limit, from now on or within a ``with``; for scipy's own library too, which may not be loaded yet."""
    import scipy.linalg  # noqa: F401  a limit reaches only what is loaded, and elsewhere it is loaded late

    return threadpool_limits(1)
