"""Uploads: who may send what, how much of it, and that it stays in memory.

The door before Streamlit's route refuses where uploads are switched off, where there is no such session and where a
quota is full, and it counts while a file arrives, since a stated length may be wrong or missing.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartParser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpgrams_core.model.environment import Settings, read_settings
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import short
from pages._ui.server import visitors
from pages._ui.server.visitors import HOLDINGS, MOST_FILES, is_here, let_go, stored_files, this_session

MEGABYTE = 1_000_000
ROUTE = "_stcore/upload_file"
FRAMING = 1_048_576  # what a form may add to its file
SECONDS_OF_SILENCE = 60.0
FULL = "There is no room for another file here at the moment. Close a file that you have open, or try again later."
NO_SESSION = "There is no such session."
OFF = "Uploads are switched off here: this is a public demonstration. Run your own copy to use files."
_Read = TypeVar("_Read")


def keep_uploads_in_memory() -> None:
    """Starlette, which parses uploads for Streamlit, writes every file of more than a megabyte to the disk.

    A private file must never be there, not even for a moment, so the size from which that happens is moved out of
    reach; how much is taken at all is the door's business.  The attribute of the class is the one place that Starlette
    offers for it: Streamlit calls ``request.form()`` without options, and ``form`` has none for this.
    """
    MultiPartParser.spool_max_size = sys.maxsize


keep_uploads_in_memory()


class UploadDoor:
    """ASGI middleware before Streamlit's route for uploads."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._arriving: Counter[str] = Counter()  # files by session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or ROUTE not in scope["path"]:
            await self.app(scope, receive, send)
            return
        settings = settings_or_off()
        found = re.search(rf"{ROUTE}/([^/]+)/[^/]+$", scope["path"])
        session = found[1] if found else ""
        if not settings.uploads:
            await PlainTextResponse(OFF, status_code=403)(scope, receive, send)
        elif scope["method"] != "PUT":
            await self.app(scope, receive, send)
        elif not is_here(session):
            await PlainTextResponse(NO_SESSION, status_code=403)(scope, receive, send)
        elif not self._has_room(settings, session, Headers(scope=scope).get("content-length", "")):
            await PlainTextResponse(FULL, status_code=413)(scope, receive, send)
        else:
            await self._put(settings, session, scope, receive, send)

    def _has_room(self, settings: Settings, session: str, stated: str) -> bool:
        size = int(stated) if re.fullmatch(r"\d{1,18}", stated) else 1
        few = len(stored_files().get(session, ())) + self._arriving[session] < MOST_FILES
        return few and size <= min(settings.max_upload_bytes + FRAMING, HOLDINGS.room(session, settings))

    async def _put(self, settings: Settings, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            try:
                message = await asyncio.wait_for(receive(), SECONDS_OF_SILENCE)
            except TimeoutError:
                raise HTTPException(408, "The file did not arrive.") from None
            size = len(message.get("body", b""))
            arrived += size
            HOLDINGS.expect(session, size)
            if arrived > settings.max_upload_bytes + FRAMING or HOLDINGS.room(session, settings) < 0:
                raise HTTPException(413, FULL)  # Streamlit's own parser passes it on
            if not is_here(session):
                raise HTTPException(403, NO_SESSION)
            return message

        self._arriving[session] += 1
        try:
            await self.app(scope, counted, send)
        finally:
            HOLDINGS.expect(session, -arrived)
            self._arriving[session] -= 1
            if not self._arriving[session]:
                del self._arriving[session]


def settings_or_off() -> Settings:
    """The settings; where they are wrong, which My data says, no file is taken."""
    try:
        return read_settings()
    except SpecError:
        return read_settings({"DPGRAMS_UPLOADS": "off"})


def upload_box(label: str, settings: Settings, key: str, most: int, help_text: str, **more: Any) -> Any:
    """Where a file can be dropped, of at most so many megabytes; None while there is none, or no room for it.

    The browser shows no words of a refusal at the route, only its number; so they are said before.
    """
    if HOLDINGS.room(this_session(), settings) <= 0:
        st.warning(FULL, icon=":material/hourglass_full:")
    each, in_all = settings.upload_bytes_per_visitor / MEGABYTE, settings.upload_bytes_in_all / MEGABYTE
    quotas = f"Files of one visitor take at most {short(each)} MB here at a time, and those of all {short(in_all)} MB."
    return st.file_uploader(label, key=key, max_upload_size=most, help=f"{help_text} {quotas}", **more)


def read_and_let_go(
    file: Any, settings: Settings, read: Callable[[bytes, Callable[[], int], Callable[[], None]], _Read]
) -> _Read:
    """What is read from an uploaded file, which is then let go, as it is when it cannot be read.

    ``read`` gets the content, what to ask for room once the file's turn has come, and what to call until then.  A rerun
    in the middle keeps the file: it is read then.
    """
    place, session, reserved = st.empty(), this_session(), 0

    def room() -> int:
        nonlocal reserved
        reserved = HOLDINGS.reserve(session, settings)
        if not reserved:
            raise DataError(FULL)
        return reserved

    def waiting() -> None:
        place.info("Files of other visitors are being read; yours is next.", icon=":material/hourglass_top:")

    try:
        with st.spinner("Reading the file…"), visitors.ends_without_a_visitor():
            found = read(file.getvalue(), room, waiting)
    except DataError:
        let_go(file)
        raise
    finally:
        HOLDINGS.expect(session, -reserved)
    let_go(file)
    place.empty()
    return found


def largest_upload(settings: Settings) -> int:
    """The size of the largest upload in whole megabytes, rounded up; the reader holds the file to the exact one.

    SpecError where the server would refuse what the owner allows: the widget would promise it all the same.
    """
    allowed, taken = settings.max_upload_bytes / MEGABYTE, int(st.get_option("server.maxUploadSize"))
    if allowed > taken:
        way = f"start it with --server.maxUploadSize={math.ceil(allowed)}, or put larger files into DPGRAMS_DATA"
        raise SpecError("DPGRAMS_MAX_UPLOAD_MB", allowed, f"the server takes at most {taken} MB; {way}")
    return max(1, math.ceil(allowed))
