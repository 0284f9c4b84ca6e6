"""Visitors, the sessions of Streamlit: whether one is still there, and what they hold of the files that they handed in.

When a tab is closed, and when a control is moved while a page is busy, Streamlit asks the running script to stop; the
script hears of it at its next call into Streamlit and goes on computing until then.  The engine comes by checkpoints
(dpgrams_core/model/progress.py), and here it is told what to ask there.

What visitors hold are the files as they arrived, in Streamlit's own store, those that are arriving, and what was read
from them.  It is counted against the quotas and let go when they leave: Streamlit keeps a session for minutes after its
page was closed, and a private file must not wait for that.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from weakref import WeakSet

import streamlit as st
from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check, get_script_run_ctx

from dpgrams_core.model.environment import Settings
from dpgrams_core.model.progress import stoppable

GRACE_SECONDS = 5.0  # a connection that was lost may come back so soon; a job that several share goes on until then
SECONDS_AWAY = 15.0  # after this a visitor does not come back
WHEN_EMPTY: list[Callable[[], None]] = []  # called when the last visitor has left: what is kept for all can be less
MOST_FILES = 8  # a visitor's files in Streamlit's store, each of which is let go once it is read
LARGEST_TABLE = 160_000_000  # bytes of the numbers of one file, see Limits


def is_here(session: str) -> bool:
    """Whether a visitor's page is open now."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def connected(session: str) -> bool:
    """The same; yes where there is no server to ask, as in a test."""
    return not session or not runtime.exists() or is_here(session)


def this_session() -> str:
    """The session that this script runs for; "" outside of a server."""
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.session_id


@contextmanager
def ends_with_the_script() -> Iterator[None]:
    """Work within ends as soon as this run of the page is not wanted any more: its visitor left or moved a control."""
    with stoppable(get_run_yield_check() or (lambda: None)):
        yield


@contextmanager
def ends_without_a_visitor() -> Iterator[None]:
    """Work within ends as soon as its visitor has left; moving a control does not end it."""
    session, stop = this_session(), get_run_yield_check() or (lambda: None)
    with stoppable(lambda: None if connected(session) else stop()):
        yield


class Presence:
    """Whether a session's visitor waits: while connected, and for some seconds after that, to come back."""

    def __init__(self, session: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._lost: float | None = None

    def __call__(self) -> bool:
        """Ask now; it may be asked from any thread, and has to be asked again and again."""
        if connected(self._session):
            self._lost = None
            return True
        self._lost = self._clock() if self._lost is None else self._lost
        return self._clock() - self._lost < GRACE_SECONDS


class Holder(Protocol):
    """What was read from a visitor's file, as long as the session has it."""

    @property
    def held_bytes(self) -> int: ...

    def leave(self) -> None: ...


class Holdings:
    """Bytes of all visitors."""

    def __init__(self) -> None:
        self._holders: defaultdict[str, WeakSet[Any]] = defaultdict(WeakSet)
        self._expected: Counter[str] = Counter()  # bytes that are arriving, or for what is being read
        self._lock = threading.RLock()

    def keep(self, session: str, holder: Holder) -> None:
        """Count a holder with those of its session, as long as it lives."""
        with self._lock:
            self._holders[session].add(holder)

    def expect(self, session: str, size: int) -> None:
        """Count bytes that are arriving; a negative number once they are here or have gone."""
        with self._lock:
            self._expected[session] += size
            if not self._expected[session]:
                del self._expected[session]

    def room(self, session: str, settings: Settings) -> int:
        """How many bytes more this visitor may hand in now."""
        with self._lock:
            holders = {name: list(found) for name, found in self._holders.items()}
            sizes = Counter(self._expected)
        for name, found in holders.items():
            sizes[name] += sum(holder.held_bytes for holder in found)
        for name, files in stored_files().items():
            sizes[name] += sum(len(file.data) + len(file.name) + len(file.type) for file in files)
        return min(settings.upload_bytes_per_visitor - sizes[session], settings.upload_bytes_in_all - sizes.total())

    def reserve(self, session: str, settings: Settings) -> int:
        """Count room for a file that is about to be read, and say how many bytes it is; ``expect`` takes it back."""
        with self._lock:
            room = max(0, min(LARGEST_TABLE, self.room(session, settings)))
            self.expect(session, room)
        return room

    def forget(self, session: str) -> None:
        """Let go of all that was read for a session."""
        with self._lock:
            holders = list(self._holders.pop(session, ()))
        for holder in holders:
            holder.leave()


HOLDINGS = Holdings()


def stored_files() -> dict[str, list[Any]]:
    """The files in Streamlit's store by their sessions."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    if not isinstance(manager, MemoryUploadedFileManager):
        return {}
    return {session: list(files.values()) for session, files in list(manager.file_storage.items())}


def let_go(file: Any) -> None:
    """Remove an uploaded file, once it is read, from Streamlit's store, which would keep it as long as the session."""
    context = get_script_run_ctx()
    if context is not None and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
    file.close()


class VisitDoor:
    """ASGI middleware that sees visitors come and go, and closes the session of one who is gone for good."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._open: Counter[str] = Counter()
        self._leaving: dict[str, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        session, told = "", False

        async def noted(message: Message) -> None:
            nonlocal session, told
            found = ""
            if message["type"] == "websocket.accept":
                # A browser that comes back may be sent no first message.  The session that it wants back is the third
                # of the words that Streamlit has it send as protocols.
                words = Headers(scope=scope).get("sec-websocket-protocol", "").split(",")
                found = words[2].strip() if len(words) > 2 else ""
            elif not told and (found := session_in(message)):
                told = True
            if found and found != session:
                before, session = session, found
                self._came(session)
                if before:
                    self._went(before)
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            if session:
                self._went(session)

    def _came(self, session: str) -> None:
        self._open[session] += 1
        if session in self._leaving:
            self._leaving.pop(session).cancel()

    def _went(self, session: str) -> None:
        self._open[session] -= 1
        if self._open[session] <= 0:
            del self._open[session]
            self._look_again(session)

    def _look_again(self, session: str) -> None:
        self._leaving[session] = asyncio.get_running_loop().call_later(SECONDS_AWAY, self._gone, session)

    def _gone(self, session: str) -> None:
        del self._leaving[session]
        if is_here(session):  # by a connection that nobody saw come, so nobody will see it go
            self._look_again(session)
            return
        if runtime.exists():
            runtime.get_instance().close_session(session)  # with the files in Streamlit's store
        # Elsewhere: a purchase that is under way is waited for.
        last = not self._open and not self._leaving
        threading.Thread(target=forget, args=(session, last), name="forget-a-visitor", daemon=True).start()


def forget(session: str, last: bool = False) -> None:
    """Let go of all that a visitor left behind, also where it holds itself, and give the memory back."""
    HOLDINGS.forget(session)
    for let_go in WHEN_EMPTY if last else ():
        let_go()
    gc.collect()
    with suppress(OSError, AttributeError):  # where the C library is another one
        ctypes.CDLL(None).malloc_trim(0)


def session_in(message: Message) -> str:
    """The session that a message to a browser names, which the first one does; "" in others."""
    try:
        return str(ForwardMsg.FromString(message.get("bytes") or b"").new_session.initialize.session_id)
    except DecodeError:
        return ""


def end_page() -> None:
    """End the run of a page here, and the parts that an earlier run of it had and this one has not.

    Streamlit forgets those of a run that came to its end, but not of one that was stopped: a part that then asks for
    its next drawing by itself was drawn at a place that is no longer there, and the browser went blank.
    """
    if context := get_script_run_ctx():
        context.fragment_storage.clear(context.shared.new_fragment_ids.snapshot())
    st.stop()
