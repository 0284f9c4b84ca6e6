"""A part of a page that fills in asks for its next drawing by itself; not so once its visitor follows a link.

Streamlit makes one request of two that wait, with the page of the later one, and draws a part that waits after the page
that is being drawn, as a part of its own page.  The look of a part that comes after the press on a link and before the
browser has heard of the new page so brings the old page back, and the link is lost.
"""

from __future__ import annotations

from contextlib import suppress

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


class Turning:
    """Which page a visitor has turned away from, by what the browser asks for and what it is told."""

    def __init__(self) -> None:
        self._here = ""  # the page that the browser was last told to show
        self._left = ""  # the page from which a link was followed, until the visitor is back on it

    def is_late(self, asked: BackMsg) -> bool:
        """Whether this is the look of a part of a page that was left."""
        page = asked.rerun_script.page_script_hash
        if asked.WhichOneof("type") != "rerun_script" or not page:
            return False
        if asked.rerun_script.is_auto_rerun:
            return page == self._left
        if page != self._here:
            self._left = self._here
        elif page == self._left:
            self._left = ""
        return False

    def hear(self, told: ForwardMsg) -> None:
        """What the browser is told: a new page, drawn as a whole, or anything else."""
        if told.WhichOneof("type") != "new_session" or told.metadata.run.fragment_ids:
            return
        page = told.new_session.page_script_hash
        if page == self._left != self._here:  # back by another way than a link, such as a page that sends one on
            self._left = ""
        self._here = page


class LateLooks:
    """ASGI middleware that drops what a page that was left still asks for by itself.

    It comes after the door that lets nothing but messages in (``WantedMessages``).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        turning = Turning()

        async def in_time() -> Message:
            while True:
                message = await receive()
                data = message.get("bytes") if message["type"] == "websocket.receive" else None
                if data is None or not turning.is_late(BackMsg.FromString(data)):
                    return message

        async def heard(message: Message) -> None:
            with suppress(DecodeError):  # what is no message is Streamlit's own affair
                turning.hear(ForwardMsg.FromString(message.get("bytes") or b""))
            await send(message)

        await self.app(scope, in_time, heard)
