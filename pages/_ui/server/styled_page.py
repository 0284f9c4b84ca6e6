"""Streamlit's page comes with our style in it.

Sent as an element of the page it would come a second or two after the first of them, and move them all.
"""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpgrams_core.figures.style import css_properties
from dpgrams_core.model.places import ASSETS

A_PAGE = re.compile(r"/[\w-]*$")  # a file has a point in its name
# After Streamlit's own styles, which it writes into the head, and before those that a page of ours sends.
ITS_PLACE = b"<body>"
# The page as it was sent is another one than the file: it is not the one that a browser has kept, and not compressed.
ASKS_FOR_LESS = {b"if-none-match", b"if-modified-since", b"accept-encoding", b"range"}
# The sidebar has its room before it is there.
WITH_SIDEBAR = b"""<style>@media (min-width: 769px) {
  .stAppViewContainer:not(:has(.stSidebar)) > :has(> .stMain) { margin-left: 300px; }
}</style>"""
# The first page has none, and neither has a projector: nothing is seen before the page's own style is there, which
# Streamlit puts beside the page where it is nothing but style.
WITHOUT_SIDEBAR = b"""<style>.stApp:not(:has(:is(.stMain, .stEvent) :is(.stHtml, .st-key-first_page))) {
  .stSidebar { display: none; }
  .stMain { animation: 0s 4s backwards shown; }
}</style>"""


class StyledPage:
    """ASGI middleware before Streamlit's route for its page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        sheets = [(ASSETS / name).read_text(encoding="utf-8") for name in ("style.css", "start_page.css")]
        sheet = "\n".join([css_properties(), *sheets])
        self.style = f"<style>{sheet}</style>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not A_PAGE.search(scope["path"]):
            await self.app(scope, receive, send)
            return
        start: Message = {}
        body = b""
        alone = scope["path"].endswith("/") or b"presenter=on" in scope["query_string"]

        async def styled(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                if not MutableHeaders(scope=start).get("content-type", "").startswith("text/html"):
                    start = {}
                    await send(message)
            elif not start:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    sidebar = WITHOUT_SIDEBAR if alone else WITH_SIDEBAR
                    page = body.replace(ITS_PLACE, ITS_PLACE + self.style + sidebar, 1)
                    headers = MutableHeaders(scope=start)
                    headers["content-length"] = str(len(page))
                    for name in ("etag", "last-modified"):
                        del headers[name]
                    await send(start)
                    await send({"type": "http.response.body", "body": page})

        asked = [(name, value) for name, value in scope["headers"] if name not in ASKS_FOR_LESS]
        await self.app({**scope, "headers": asked}, receive, styled)
