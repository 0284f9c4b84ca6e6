"""Numerical threads: on small matrices they wait for each other most of the time, and could round differently."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


def one_thread() -> Any:
    """The limit, from now on or within a ``with``; for scipy's own library too, which may not be loaded yet."""
    import scipy.linalg  # noqa: F401  a limit reaches only what is loaded, and elsewhere it is loaded late

    return threadpool_limits(1)


@cache
def threads_of(library: str) -> ThreadpoolController:
    """The threads of what is loaded with a library: sought once, since that takes milliseconds."""
    importlib.import_module(library)
    return ThreadpoolController()
