"""Whether the visitor of a session is still there, and the end of what runs for one who is not.

When a tab is closed, and when a control is moved while a page is busy, Streamlit asks the running script to stop; the
script hears of it at its next call into Streamlit and goes on computing until then.  The engine comes by checkpoints
(dpgrams_core/progress.py), and here it is told what to ask there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamlit import runtime
from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check, get_script_run_ctx

from dpgrams_core.progress import stoppable

GRACE_SECONDS = 5.0  # a connection that was lost may come back so soon; a job that several share goes on until then


def connected(session: str | None) -> bool:
    """Whether someone looks at this session now; yes where there is no server to ask, as in a test."""
    return session is None or not runtime.exists() or bool(runtime.get_instance().is_active_session(session))


def this_session() -> str | None:
    """The session that this script runs for; None outside of a server."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


@contextmanager
def ends_with_the_script() -> Iterator[None]:
    """Work within ends as soon as this run of the page is not wanted any more: its visitor left or moved a control."""
    with stoppable(get_run_yield_check() or _go_on):
        yield


@contextmanager
def ends_without_a_visitor() -> Iterator[None]:
    """Work within ends as soon as its visitor has left; moving a control does not end it."""
    session, stop = this_session(), get_run_yield_check() or _go_on

    def check() -> None:
        if not connected(session):
            stop()

    with stoppable(check):
        yield


def _go_on() -> None:
    """Nobody can ask for an end."""


class Presence:
    """Whether a session's visitor waits: while connected, and for some seconds after that, to come back."""

    def __init__(self, session: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._lost: float | None = None

    def __call__(self) -> bool:
        """Ask now; it may be asked from any thread, and has to be asked again and again."""
        if connected(self._session):
            self._lost = None
            return True
        self._lost = self._clock() if self._lost is None else self._lost
        return self._clock() - self._lost < GRACE_SECONDS
