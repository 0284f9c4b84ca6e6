"""How soon the ε handle answers in a real Chromium: a frame after the pointer moved, the first one after a change.

Run: .venv/bin/python -m benchmarks.handle_speed [--json FILE] [--moves N] [--changes N]

The browser measures itself, and the pages are as they open.  A move: from the time stamp of the pointer's event to the
first task after the animation frame with the new picture was painted; the first picture of each ε is among them.  A
change: from the key on a control of the sidebar until a result of the new settings was painted; at n = 5000, with
records that the server has not seen.  Goals: 33 ms and 300 ms at the 95th percentile, on a quiet machine with
2 cores and no graphics card.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.visitor import running_app

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu"]
PAGES = {  # the handle's key, and a link to its page
    "modes, functional": ("contours_chart", "modes?method=functional&n=5000"),
    "modes, DP-GRAMS": ("contours_chart", "modes?method=dp_grams&n=5000"),
    "regression": ("released_chart", "regression"),
    "clusters": ("centres_chart", "clusters"),
}
CHANGED = ("modes, functional", "modes, DP-GRAMS")
DATA_SETS = ("Five t-bumps", "Four corners")  # what is typed into the list
MOVE_GOAL, CHANGE_GOAL = 33.0, 300.0
# Notes when the picture of other settings than before has been painted, on the clock of the browser's events.
WATCH = """
figure => {
  window.shown = [];
  const painted = () => !figure.classList.contains("waiting") && window.shown.push(performance.now());
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(painted)))
    .observe(figure, { attributeFilter: ["data-places"] });
  document.addEventListener("keydown", (event) => (window.pressed = event.timeStamp), { capture: true });
}
"""
ALL_THERE = "figure => figure.dataset.frames === String(+figure.querySelector('input').max + 1)"


def open_page(page: Page, address: str, link: str, key: str) -> Any:
    """The handle of a page once all its frames are there."""
    page.goto(f"{address}/{link}")
    figure = page.locator(f".st-key-{key} figure")
    figure.wait_for(timeout=300_000)
    page.wait_for_function(ALL_THERE, arg=figure.element_handle(), timeout=300_000)
    page.wait_for_timeout(2_000)
    return figure


def moves(page: Page, figure: Any, count: int) -> list[float]:
    """Milliseconds from each move of the pointer to its frame on the screen."""
    handle = figure.locator("input[type=range]")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.evaluate("performance.clearMeasures('handle')")
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    for share in 0.5 + 0.48 * np.sin(np.linspace(0, 12 * np.pi, count)):
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(12)
    found = page.evaluate("performance.getEntriesByName('handle').map((entry) => entry.duration)")
    page.mouse.up()
    return list(found)


def changes(page: Page, figure: Any, count: int) -> dict[str, list[float]]:
    """Milliseconds from a key on a control to the first frame of the new settings, by what was changed.

    Each time the seed of the data is a new one first, and n another, so that nothing of what comes has been computed.
    """
    figure.evaluate(WATCH)
    page.locator(".st-key-seeds summary").click()

    def until_shown(act: Callable[[], None]) -> float:
        page.evaluate("window.shown = []")
        act()
        page.wait_for_function("() => window.shown.length > 0", timeout=120_000)
        spent: float = page.evaluate("window.shown[0] - window.pressed")
        page.wait_for_function(ALL_THERE, arg=figure.element_handle(), timeout=300_000)
        page.wait_for_timeout(2_000)  # for what comes after the picture
        return spent

    def press(control: str, key: str) -> None:
        page.locator(f".st-key-{control} input").first.press(key)

    def write(control: str, words: str) -> None:
        box = page.locator(f".st-key-{control} input").first
        box.click()
        box.fill(words)
        if control == "dataset":
            page.get_by_role("option", name=words).first.wait_for()
        box.press("Enter")

    found: dict[str, list[float]] = {"n": [], "seed of the noise": [], "data set": []}
    for number in range(count):
        until_shown(lambda: press("n", "ArrowLeft"))
        until_shown(lambda number=number: write("data_seed", str(1_000 + number)))
        found["n"].append(until_shown(lambda: press("n", "ArrowRight")))
        found["seed of the noise"].append(until_shown(lambda number=number: write("seed", str(1 + number))))
        found["data set"].append(until_shown(lambda number=number: write("dataset", DATA_SETS[number % 2])))
    return found


def summary(found: list[float], goal: float) -> dict[str, float]:
    """The distribution of some times."""
    quantiles = {f"q{share:.0f}": float(np.percentile(found, share)) for share in (50, 90, 95, 99)}
    return {"count": len(found), **quantiles, "largest": max(found), "goal": goal}


def measured(address: str, browser: Browser, count: int, repeats: int) -> Iterator[tuple[str, dict[str, float]]]:
    """The distributions, one after the other: so many moves on each page, and so many times each change."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    for title, (key, link) in PAGES.items():
        figure = open_page(page, address, link, key)
        yield f"move: {title}", summary(moves(page, figure, count), MOVE_GOAL)
    for title in CHANGED:
        key, link = PAGES[title]
        for what, found in changes(page, open_page(page, address, link, key), repeats).items():
            yield f"{what}: {title}", summary(found, CHANGE_GOAL)
    page.context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def main() -> None:
    """Measure, print a table, and write JSON where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--moves", type=int, default=300)
    parser.add_argument("--changes", type=int, default=10)
    asked = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    print(f"{'milliseconds':36s}" + "".join(f"{name:>10s}" for name in summary([0.0], 0.0)))
    with running_app() as (address, _), chromium() as browser:
        for title, found in measured(address, browser, asked.moves, asked.changes):
            results[title] = found
            print(f"{title:36s}" + "".join(f"{value:10.1f}" for value in found.values()), flush=True)
    load = os.getloadavg()[0]
    print(f"load of this machine over the last minute: {load:.1f} on {os.cpu_count()} cores")
    if asked.json:
        asked.json.write_text(json.dumps({"milliseconds": results, "load": load, "cores": os.cpu_count()}, indent=2))


if __name__ == "__main__":
    main()
