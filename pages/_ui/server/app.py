"""The doors of the server: what every request passes before Streamlit sees it (ASGI middleware, outermost first).

What only a reverse proxy can do is not here: TLS and its HSTS header, limits on the rate of requests and connections,
and on the size of a request's head.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import logging
import math
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import file_util
from streamlit.config import get_option, set_option
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from dpgrams_core.model.environment import Settings, read_settings
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.places import place_of
from dpgrams_core.numerics.threads import one_thread
from dpgrams_core.privacy.ledger.health import ledger_problem
from pages._ui import layout
from pages._ui.server.as_told import send_as_told
from pages._ui.server.late_looks import LateLooks
from pages._ui.server.styled_page import StyledPage
from pages._ui.server.unsent import send_all_before_a_part
from pages._ui.server.uploads import UploadDoor
from pages._ui.server.visitors import VisitDoor

HEALTH, METRICS = "/_stcore/health", "/_stcore/metrics"
HEALTH_SECONDS = 2.0  # how long an answer about the ledger is good for
POLICY_VIOLATION, PROTOCOL_ERROR = 1008, 1002  # reasons to close a websocket
LOCAL_NAMES = ["localhost", "127.0.0.1", "::1"]
STRANGE_HOST = (
    "This server answers only to the hosts it was told of (server.allowedHosts); how to add one is in "
    "the handbook, under “Host it for others”."
)
FAILURE = "Failure without its words:"
UNFORESEEN = (
    "This page met something that it did not foresee, such as a value that none of its controls offers. Reload it to "
    "start afresh; the server's log says where it happened."
)
# What a page of ours sends. Not among them: clear_cache, which would clear the caches of all visitors; load_git_info
# and set_run_on_save, which are for a developer; what installs something on the server.
WANTED_MESSAGES = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat", "backend_operation_request"}
WANTED_OPERATIONS = {"deferred_file", "dataframe_chunk"}
# Nothing is loaded from elsewhere, and nothing can be sent there. Scripts are Streamlit's files, the one that stands in
# its page (by its hash), and our components, which it makes into blobs; none is made of a string. Styles are: Streamlit
# writes them by script.
CONTENT_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
FIRST_PAINT = ("Html", "BidiComponent")  # Streamlit's names of what draws the answer and the picture
UNUSED = ("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "microphone", "payment", "usb")


def doors() -> list[Middleware]:
    """All doors in their order; a setting that cannot be used ends the start with its sentence."""
    try:
        settings = read_settings()
    except SpecError as error:
        raise SystemExit(f"The dashboard was not started. {error}") from None
    if not get_option("server.allowedHosts"):  # without its file of settings Streamlit would answer to any name
        set_option("server.allowedHosts", LOCAL_NAMES)
    keep_records_out_of_the_log()
    # Visitors share the cores.  The matrices of a run are small, and numerical threads that wait for a core spin: on a
    # busy machine a run with two of them took ten times the processor time of a run with one.
    one_thread()
    # A thread that computes lets another one in after so many seconds.  Each message that is sent waits for that, and a
    # page has a hundred: at the usual five milliseconds a page came half a second late while something was computed.
    sys.setswitchinterval(0.0005)
    gc.freeze()  # what is loaded now stays, and took most of a search for garbage: a tenth of a second, in any redraw
    send_all_before_a_part()
    send_as_told()
    return [
        Middleware(SafeHeaders, settings=settings),
        Middleware(KnownHosts),
        Middleware(SelfReport, ledger=settings.ledger),
        Middleware(WantedMessages),
        Middleware(LateLooks),
        Middleware(VisitDoor),
        Middleware(UploadDoor),
        Middleware(StyledPage),
    ]


class SafeHeaders:
    """Every answer tells the browser what it may do with it, a refusal too."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        policy = {**CONTENT_POLICY, "frame-ancestors": settings.frame_ancestors}
        page = Path(file_util.get_static_dir(), "index.html").read_text(encoding="utf-8")
        for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
            policy["script-src"] += f" 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        self.headers = {
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",  # a link holds the settings
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": ", ".join(f"{name}=()" for name in UNUSED),
        }
        hints = [f"<./static/js/{name}>; rel=modulepreload; crossorigin" for name in parts_of_first_paint(page)]
        self.hints = {"Link": ", ".join(hints)} if hints else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self.headers)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.update(self.hints)
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


def parts_of_first_paint(page: str) -> list[str]:
    """The files of Streamlit that show the answer and the picture and are not named in its page.

    It asks for them once the server has sent an answer; told of them with the page, a browser has them by then.
    """
    folder = Path(file_util.get_static_dir(), "static", "js")
    known, found = set(re.findall(r'static/js/([^"]+\.js)', page)), []
    waiting = [path.name for kind in FIRST_PAINT for path in folder.glob(f"{kind}.*.js")]
    while waiting:
        if (name := waiting.pop(0)) not in known:
            known.add(name)
            found.append(name)
            waiting += re.findall(r'(?:from|import)\s*"\./([\w.-]+\.js)"', (folder / name).read_text(encoding="utf-8"))
    return found


class KnownHosts:
    """Nothing for a host that the server was not told of: a name of somebody else's may lead here (DNS rebinding).

    Streamlit looks at the host of the websocket only; the files it serves would be there for any.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        known = len(hosts) == 1 and is_host_allowed(hosts[0])
        if known and scope["type"] == "websocket":
            # A page that connects must come from here or from one of the owner's.  Streamlit would ask the internet for
            # the address of this machine to decide that, and everybody waits meanwhile.
            named = [str(name).rstrip("/") for name in get_option("server.corsAllowedOrigins")]
            known = all(urlsplit(one).netloc == hosts[0] or one in named for one in headers.getlist("origin"))
        if known:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await PlainTextResponse(STRANGE_HOST, status_code=421)(scope, receive, send)
        else:
            await WebSocketClose(POLICY_VIOLATION)(scope, receive, send)


class SelfReport:
    """What the server says about itself: when the ledger cannot be written, and not how much its visitors use it.

    A page asks the health route whether the server is there before it connects.  It goes on without the ledger, and
    says itself what is wrong where it needs one, so a page of ours hears of the server only.
    """

    def __init__(self, app: ASGIApp, ledger: Path) -> None:
        self.app = app
        self.ledger = ledger
        self._asking = asyncio.Lock()
        self._asked = -HEALTH_SECONDS
        self._problem: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, answer = scope["path"] if scope["type"] == "http" else "", self.app
        if path.endswith(METRICS):
            answer = PlainTextResponse("Not here.", status_code=404)
        elif path.endswith(HEALTH) and Headers(scope=scope).get("sec-fetch-site") != "same-origin":
            async with self._asking:  # many who ask at once wait for one answer
                if time.monotonic() - self._asked >= HEALTH_SECONDS:
                    self._problem = await run_in_threadpool(ledger_problem, self.ledger)
                    self._asked = time.monotonic()
            answer = PlainTextResponse(self._problem, status_code=503) if self._problem else self.app
        await answer(scope, receive, send)


class WantedMessages:
    """Of what a visitor's browser may send, what our pages need; the rest is dropped, and nonsense ends the connection.

    How large a message may be is Streamlit's own setting (server.maxWidgetStateSize).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        closed = False

        async def wanted() -> Message:
            nonlocal closed
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                kind = _kind_of(message.get("bytes"))
                if kind is None:
                    closed = True
                    await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                    return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}
                if kind:
                    return message

        async def while_open(message: Message) -> None:
            if not closed:  # Streamlit may still be about to send
                await send(message)

        await self.app(scope, wanted, while_open)


def _kind_of(data: bytes | None) -> str | None:
    """The kind of a message that our pages send, "" for any other, and None for what is no message at all."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except (DecodeError, TypeError, RecursionError):
        return None
    kind = message.WhichOneof("type") or ""
    operation = message.backend_operation_request.WhichOneof("payload")
    if kind not in WANTED_MESSAGES or (kind == "backend_operation_request" and operation not in WANTED_OPERATIONS):
        return ""
    # No control of a page gives a number that is not finite, and Streamlit makes whole numbers of them.
    states = message.rerun_script.widget_states.widgets
    numbers = (number for state in states for number in (state.double_value, *state.double_array_value.data))
    return kind if all(map(math.isfinite, numbers)) else ""


def say_it_failed(error: Exception) -> bool:  # noqa: ARG001  # its words may quote a record; the log has its line
    """A sentence on the page in the place of any error that nothing else caught; True: Streamlit shows nothing more."""
    layout.problem(UNFORESEEN)
    return True


def keep_records_out_of_the_log() -> None:
    """From now on a failure is one line of the log: its type, and where in the code it was.

    Python's own report quotes the error's words, and these may quote a record.
    """
    make = logging.getLogRecordFactory()

    def one_line(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.exc_info and (error := record.exc_info[1]) is not None:
            words = record.msg.strip() if isinstance(record.msg, str) else "Unexpected"
            record.msg, record.args, record.exc_info = f"{words}: {failure_line(error)}", (), None
        return record

    logging.setLogRecordFactory(one_line)


def failure_line(error: BaseException) -> str:
    """The type of an error and the way to it through our own code, without a word of what it says."""
    steps = [(Path(step.f_code.co_filename), line) for step, line in traceback.walk_tb(error.__traceback__)]
    ours = [f"{place}:{line}" for path, line in steps if (place := place_of(path))]
    last = [f"{path.name}:{line}" for path, line in steps[-1:] if not place_of(path)]
    return f"{FAILURE} {type(error).__name__} at {' > '.join([*ours, *last]) or 'no place'}"
