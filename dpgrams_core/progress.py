"""How far long work is, and where it may end.

A progress bar with an estimate of the time left: a line that redraws itself, or plain lines in a log.  And checkpoints:
long loops come by them, and whoever started the work may end it there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

WIDTH = 24
REDRAW_SECONDS = 0.1
LINE_SECONDS = 10.0  # between two lines of a log
SMALLEST_SHARE = 0.01  # below this an estimate would be a guess


def time_words(seconds: float) -> str:
    """A length of time as people say it.

    >>> [time_words(seconds) for seconds in (0.2, 41, 100, 4000, 10_000, 200_000)]
    ['1 second', '41 seconds', '2 minutes', '1.1 hours', '2.8 hours', '2.3 days']
    """
    if seconds < 90:
        count = max(1, round(seconds))
        return f"{count} second{'s' if count > 1 else ''}"
    if seconds < 3600:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


class Progress:
    """Counts what is done of ``total`` and writes it to standard error (or ``stream``).

    Parameters
    ----------
    total : how many there are, of ``unit``.
    share : the share of the work that was done before, which took no time now (a resumed sweep).

    Examples
    --------
    >>> import sys
    >>> bar = Progress(4, "cells", stream=sys.stdout, clock=iter([0.0, 20.0, 50.0]).__next__)
    >>> bar.update(1)
    1 of 4 cells, about 60 seconds left
    >>> bar.finish(4)
    4 of 4 cells in 50 seconds
    """

    def __init__(
        self,
        total: int,
        unit: str = "cells",
        *,
        share: float = 0.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.unit = unit
        self.stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = clock()
        self._share_before = share
        self._drawn: float | None = None
        self._length = 0
        self._live = self.stream.isatty()

    def time_left(self, share: float, now: float) -> float | None:
        """Seconds left if the rest goes as what went so far; ``None`` while too little is done to tell."""
        gained = share - self._share_before
        if gained < SMALLEST_SHARE * (1 - self._share_before) or share >= 1:
            return None
        return (now - self._started) * (1 - share) / gained

    def update(self, done: int, share: float | None = None) -> None:
        """Say that ``done`` are finished; ``share`` of the work, where that is known better than their count."""
        now = self._clock()
        pause = REDRAW_SECONDS if self._live else LINE_SECONDS
        if self._drawn is not None and now - self._drawn < pause:
            return
        self._drawn = now
        part = min(1.0, done / max(1, self.total) if share is None else share)
        left = self.time_left(part, now)
        words = "" if left is None else f", about {time_words(left)} left"
        self._write(f"{self._bar(part)}{done} of {self.total} {self.unit}{words}")

    def finish(self, done: int, note: str = "") -> None:
        """The last line; it stays."""
        took = time_words(self._clock() - self._started)
        self._write(f"{self._bar(done / max(1, self.total))}{done} of {self.total} {self.unit} in {took}{note}")
        if self._live:
            print(file=self.stream, flush=True)

    def _bar(self, share: float) -> str:
        filled = int(share * WIDTH)
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}] " if self._live else ""

    def _write(self, text: str) -> None:
        if self._live:  # blanks wipe what a longer line left
            print("\r" + text.ljust(self._length), end="", file=self.stream, flush=True)
            self._length = len(text)
        else:
            print(text, file=self.stream, flush=True)


class Stopped(BaseException):
    """Raised at a checkpoint of work that nobody waits for any more.

    As with Ctrl-C it is no failure of what ran: nothing that records failures may catch it.
    """


def _never() -> None:
    """The check of work that must not be stopped."""


_check: ContextVar[Callable[[], None] | None] = ContextVar("dpgrams_stop_check", default=None)


def checkpoint() -> None:
    """A place where long work may end: every long loop comes by it, between two pieces that take a moment each.

    It draws nothing and changes nothing, and without a check (``stoppable``) it costs next to nothing.
    """
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Ask ``check`` at every checkpoint of the work within; it raises to end the work.

    Only this thread is asked, and within ``uninterrupted`` nobody is.

    Examples
    --------
    >>> def gone():
    ...     raise Stopped
    >>> with stoppable(gone):
    ...     try:
    ...         checkpoint()
    ...     except Stopped:
    ...         print("ended")
    ended
    """
    token = _check.set(check if _check.get() is not _never else _never)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No checkpoint within ends the work: what is paid for is drawn and kept, whoever has left."""
    token = _check.set(_never)
    try:
        yield
    finally:
        _check.reset(token)
