"""How far long work is, and where it may end: checkpoints, at which whoever started the work may end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# What calls a function with arguments: here, or in another process.
Worker = Callable[..., Any]
SMALLEST_SHARE = 0.01  # below this an estimate would be a guess


def time_left(share: float, elapsed: float, before: float = 0.0) -> float | None:
    """Seconds left if the rest goes as what went so far; ``None`` while too little is done to tell.

    ``share`` of the work is done after ``elapsed`` seconds; what was there ``before`` took no time now.
    """
    gained = share - before
    if gained < SMALLEST_SHARE * (1 - before) or share >= 1:
        return None
    return elapsed * (1 - share) / gained


def here(function: Callable[..., Any], *arguments: Any) -> Any:
    """The worker that is this process."""
    return function(*arguments)


class Stopped(BaseException):
    """Raised at a checkpoint of work that nobody waits for any more.

    As with Ctrl-C it is no failure of what ran: nothing that records failures may catch it.
    """


def _never() -> None:
    """The check of work that must not be stopped."""


_check: ContextVar[Callable[[], None] | None] = ContextVar("dpgrams_stop_check", default=None)


def checkpoint() -> None:
    """A place where long work may end: every long loop comes by it, between two pieces that take a moment each."""
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Ask ``check`` at every checkpoint of the work within; it raises to end the work.

    Only this thread is asked, and within ``uninterrupted`` nobody is.
    """
    token = _check.set(check if _check.get() is not _never else _never)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No checkpoint within ends the work: what is paid for is drawn and kept, whoever has left."""
    with stoppable(_never):
        yield
