"""The three pictures of README and handbook, from the dashboard itself: ``make pictures``."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from benchmarks.handle_speed import CHROMIUM, FLAGS
from benchmarks.visitor import running_app

FOLDER = Path(__file__).parent / "pictures"
COLOURS = 128  # enough for flat colours, and a third of the bytes
SIZE = {"width": 900, "height": 720}
BAR = 46  # pixels: next and previous, at the foot of a projector's screen


def twitch(page: Page, address: str) -> bytes:
    """One person is taken out, and the exact picture has a dent there."""
    page.goto(address)
    page.wait_for_selector("section[data-draws='6']")
    dots = page.locator(".pick")
    place = dots.bounding_box()
    assert place is not None
    dots.click(position={"x": 0.22 * place["width"], "y": 0.3 * place["height"]})  # the nearest person
    page.wait_for_timeout(1_000)  # the twitch comes to rest
    return page.locator("figure.people").screenshot()


def projected(page: Page, address: str, ready: str) -> bytes:
    """What a projector shows of a page: its line, its picture and the handle."""
    page.goto(address + "&presenter=on")
    page.wait_for_selector(ready)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(2_000)
    return page.screenshot(clip={"x": 0, "y": 0, "width": SIZE["width"], "height": SIZE["height"] - BAR})


def keep(name: str, shot: bytes) -> None:
    """As a small file."""
    image = Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    image.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with running_app() as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        keep("twitch", twitch(page, address))
        modes = f"{address}/modes?method=functional&n=1000&epsilon=0.5"
        keep("handle", projected(page, modes, "figure[data-epsilon='0.5']:not(.waiting)"))
        keep("guarantee", projected(page, f"{address}/guarantee?measure=off", ".stPlotlyChart .main-svg"))
        browser.close()
