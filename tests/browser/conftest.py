"""A real server and a real Chromium for the browser tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import ConsoleMessage, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from pages._ui.server import UNFORESEEN
from tests.served import running_server

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


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory):
    """Where the one server for all tests writes: its log, which is complete at any time, and its ledger."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def server(server_folder):
    """One server for all tests."""
    with running_server(server_folder) as address:
        yield address


@pytest.fixture
def cold_server(tmp_path):
    """A server that nobody has visited yet."""
    with running_server(tmp_path) as address:
        yield address


@pytest.fixture(scope="session")
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
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.on("websocket", lambda socket: socket.on("framereceived", self._receive))

    def _note(self, message: ConsoleMessage) -> None:
        """What the server's policy forbids the page is an error, too (pages/_ui/server.py)."""
        if "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def _receive(self, message: str | bytes) -> None:
        self.received.append(message if isinstance(message, bytes) else message.encode())

    def open(self, query: str = "") -> Dashboard:
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector("[data-testid=answer]", timeout=60_000)
        return self.settle()

    def settle(self) -> Dashboard:
        """Wait until the script has run to its end and nothing failed.

        A rerun starts a moment after the action, so quiet must be seen several times in a row.
        """
        quiet = 0
        while quiet < 4:
            self.page.wait_for_timeout(150)
            idle = self.page.locator("[data-testid=stApp][data-test-script-state=notRunning]")
            quiet = quiet + 1 if idle.count() else 0
        assert self.page.locator("[data-testid=stException]").count() == 0
        assert self.page.get_by_text(UNFORESEEN).count() == 0
        assert self.errors == []
        return self

    def answer(self) -> str:
        return self.page.locator("[data-testid=answer]").inner_text()

    def text(self) -> str:
        return self.page.locator("[data-testid=stMain]").inner_text()

    def slide(self, key: str, presses: int) -> Dashboard:
        """Move a slider by arrow keys, as a keyboard user does."""
        handle = self.page.locator(f".st-key-{key} input[type=range]")
        handle.focus()
        for _ in range(abs(presses)):
            handle.press("ArrowRight" if presses > 0 else "ArrowLeft")
        return self.settle()

    def choose(self, key: str, words: str) -> Dashboard:
        """Pick from a list by typing, as a keyboard user does."""
        box = self.page.locator(f".st-key-{key} input").first
        option = self.page.get_by_role("option", name=words, exact=False).first
        for _ in range(3):  # a rerun that arrives late can close the list again
            box.click()
            box.fill(words)
            try:
                option.click(timeout=5_000)
                break
            except PlaywrightTimeout:
                self.page.keyboard.press("Escape")
        return self.settle()

    def type_number(self, key: str, value: str) -> Dashboard:
        box = self.page.locator(f".st-key-{key} input")
        box.fill(value)
        box.press("Enter")
        return self.settle()

    def unfold(self, key: str) -> Dashboard:
        self.page.locator(f".st-key-{key} summary, .st-key-{key} button").first.click()
        self.page.wait_for_timeout(300)
        return self

    def shoot(self, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        assert path.stat().st_size > 5_000
        return path


@pytest.fixture
def dashboard(server, browser):
    """A fresh session at desktop width."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield Dashboard(context.new_page(), server)
    context.close()


@pytest.fixture
def make_dashboard(server, browser):
    """Sessions of any width and colour scheme."""
    contexts = []

    def make(width: int = 1280, scheme: str = "light") -> Dashboard:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        return Dashboard(context.new_page(), server)

    yield make
    for context in contexts:
        context.close()
