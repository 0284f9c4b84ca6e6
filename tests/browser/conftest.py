"""A real server and a real Chromium for the browser tests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, WebSocket, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages._ui.charts import WAITS
from pages._ui.server.app import UNFORESEEN
from tests.served import running_server

PATIENCE = 120_000  # milliseconds for whatever a test waits for: a slow machine is no fault
TEST_SECONDS = 900  # for all of a test, which waits for many things in turn
expect.set_options(timeout=PATIENCE)
SHOTS = Path(__file__).parent / "screenshots"
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture(scope="package")
def server_folder(tmp_path_factory):
    """Where the one server for all tests writes: its log, which is complete at any time, and its ledger."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="package")
def server(server_folder):
    """One server for all tests."""
    with running_server(server_folder) as address:
        yield address


@pytest.fixture
def cold_server(tmp_path):
    """A server that nobody has visited yet."""
    with running_server(tmp_path) as address:
        yield address


@pytest.fixture(scope="package")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.fail("Chromium is missing: install the Debian package 'chromium'.")
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Dashboard:
    """One browser tab with the moves a user makes."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        self.received: list[bytes] = []  # every message of the server to this session
        self.owed = False  # whether the server was asked for a run that it has not finished
        self.repeating: set[str] = set()  # the parts of the page that ask for their next run by themselves
        self.connections = 0
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.on("websocket", self._connect)

    def _note(self, message: ConsoleMessage) -> None:
        """What the server's policy forbids the page is an error, too (pages/_ui/server/app.py)."""
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def watching_console(self) -> Dashboard:
        """Every error of the console counts from now on, but for two requests that no page of ours makes.

        Streamlit does not know whether the /lessons of an address is a page or the folder that it is served under, so
        its own script asks for its health there first, and then at the root; a browser tells each as a failure.  Only
        an inline script in Streamlit's index page could tell it the root beforehand (window.__streamlit), and the
        server's policy forbids those.
        """

        def note(message: ConsoleMessage) -> None:
            asked = urlparse(message.location["url"]).path
            if message.type == "error" and not re.fullmatch(r"/\w+/_stcore/(health|host-config)", asked):
                self.errors.append(f"{message.text} {asked}")

        self.page.on("console", note)
        return self

    def _connect(self, socket: WebSocket) -> None:
        self.owed, self.repeating = False, set()
        self.connections += 1
        socket.on("framesent", self._send)
        socket.on("framereceived", self._receive)

    def _send(self, message: str | bytes) -> None:
        """A part that repeats itself asks, too; an answer to that is owed to nobody."""
        sent = BackMsg.FromString(message) if isinstance(message, bytes) else BackMsg()
        self.owed |= sent.WhichOneof("type") == "rerun_script" and not sent.rerun_script.is_auto_rerun

    def _receive(self, message: str | bytes) -> None:
        self.received.append(message if isinstance(message, bytes) else message.encode())
        told = ForwardMsg.FromString(self.received[-1])
        kind = told.WhichOneof("type")
        if kind == "script_finished":
            self.owed &= told.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
        elif kind == "new_session" and not told.metadata.run.fragment_ids:
            self.repeating.clear()
        elif kind == "auto_rerun":
            self.repeating.add(told.auto_rerun.fragment_id)
        elif kind == "stop_auto_rerun":
            self.repeating.difference_update(told.stop_auto_rerun.fragment_ids)

    def open(self, query: str = "") -> Dashboard:
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector("[data-testid=answer]")
        return self.settle()

    def settle(self) -> Dashboard:
        """Wait until the script has run to its end, no part that fills in looks for more, and nothing failed.

        A rerun starts a moment after the action, so quiet must be seen several times in a row.  The page looks idle,
        too, until a busy server has heard of the action: what it was asked for it must have finished.
        """
        quiet, waits = 0, self.page.get_by_text(WAITS)
        while quiet < 4:
            self.page.wait_for_timeout(150)
            if waits.count():  # as a reader does
                with suppress(PlaywrightError):  # it may come while we scroll
                    waits.first.scroll_into_view_if_needed(timeout=5_000)
                quiet = 0
                continue
            idle = self.page.locator("[data-testid=stApp][data-test-script-state=notRunning]")
            quiet = quiet + 1 if idle.count() and not self.repeating and not self.owed else 0
        self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
        assert self.page.locator("[data-testid=stException]").count() == 0
        assert self.page.get_by_text(UNFORESEEN).count() == 0
        assert self.errors == []
        return self

    def answer(self) -> str:
        return self.page.locator("[data-testid=answer]").inner_text()

    def text(self) -> str:
        return self.page.locator("[data-testid=stMain]").inner_text()

    def in_url(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(urlparse(self.page.url).query).items()}

    def until(self, holds: Callable[[], bool], words: str) -> None:
        """Wait for what an action brings about; ``words`` say what did not come."""
        end = time.monotonic() + PATIENCE / 1_000
        while not holds():
            assert time.monotonic() < end, words
            self.page.wait_for_timeout(100)

    def follow(self, name: str, address: str) -> None:
        """Go by a link; that of the navigation is the first where others on the page have its name in theirs."""
        self.page.get_by_role("link", name=name).first.click()
        self.page.wait_for_url(f"**/{address}**")

    def slide(self, key: str, presses: int) -> Dashboard:
        """Move a slider by arrow keys, as a keyboard user does."""
        before = self.in_url().get(key)
        handle = self.page.locator(f".st-key-{key} input[type=range]")
        handle.focus()
        for _ in range(abs(presses)):
            handle.press("ArrowRight" if presses > 0 else "ArrowLeft")
        self.until(lambda: self.in_url().get(key) != before, f"moving {key} did not change the address")
        return self.settle()

    def choose(self, key: str, words: str) -> Dashboard:
        """Pick from a list by typing, as a keyboard user does."""
        box = self.page.locator(f".st-key-{key} input").first
        option = self.page.get_by_role("option", name=words, exact=False).first
        for patience in (5_000, 10_000, PATIENCE):  # a rerun that arrives late can close the list again
            box.click()
            box.fill(words)
            try:
                option.click(timeout=patience)
                return self.settle()
            except PlaywrightTimeout:
                self.page.keyboard.press("Escape")
        raise AssertionError(f"{words!r} is not in the list {key}")

    def slide_each(self, sliders: Iterable[tuple[str, int, str]]) -> None:
        """Every (slider, presses, value in the address) changes the address and the page."""
        for key, presses, expected in sliders:
            before = self.text()
            self.slide(key, presses)
            assert self.in_url()[key] == expected
            assert self.text() != before, f"moving {key} changed nothing on the page"

    def assert_fits(self, width: int) -> None:
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width

    def type_number(self, key: str, value: str) -> Dashboard:
        box = self.page.locator(f".st-key-{key} input")
        box.fill(value)
        box.press("Enter")
        return self.settle()

    def open_tab(self, title: str) -> Dashboard:
        tab = self.page.get_by_role("tab", name=title)
        tab.click()
        self.settle()
        panel = self.page.locator(f"[id='{tab.get_attribute('aria-controls')}'] .stElementContainer")
        if not self.comes(panel):
            self.page.get_by_role("tab").first.click()
            self.settle()
            tab.click()
        return self.settle()

    def unfold(self, key: str) -> Dashboard:
        place = self.page.locator(f".st-key-{key} summary, .st-key-{key} button").first
        place.click()
        self.page.wait_for_timeout(300)
        details = self.page.locator(f".st-key-{key} details")
        if details.count() and not self.comes(details.locator(".stElementContainer")):
            place.click()
            self.settle()
            place.click()
        return self

    def comes(self, what: Locator) -> bool:
        """Whether something is there soon.  Of some thousand presses on a busy server Streamlit draws nothing for one,
        and then a reader presses again."""
        with suppress(PlaywrightTimeout):
            what.first.wait_for(state="attached", timeout=10_000)
            return True
        return False

    def shoot(self, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        assert path.stat().st_size > 5_000
        return path


@pytest.fixture
def new_context(browser):
    """Browser sessions of any width and colour scheme, which end with the test."""
    contexts = []

    def make(width: int = 1280, **how: Any) -> BrowserContext:
        context = browser.new_context(viewport={"width": width, "height": 900}, **how)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    item.failed_call = report.when == "call" and report.failed
    return report


@pytest.fixture
def make_dashboard(server, new_context, request):
    """Sessions with the one server, of any width and colour scheme; what a failed test last saw is told."""
    made = []

    def make(width: int = 1280, scheme: str = "light") -> Dashboard:
        made.append(Dashboard(new_context(width, color_scheme=scheme).new_page(), server))
        return made[-1]

    yield make
    if request.node.failed_call:
        for seen in made:
            print(f"{seen.page.url}, connection {seen.connections}, owed: {seen.owed}, repeating: {seen.repeating}")
            print(seen.page.locator("body").inner_text(timeout=20_000))


@pytest.fixture
def dashboard(make_dashboard):
    """A fresh session at desktop width."""
    return make_dashboard()
