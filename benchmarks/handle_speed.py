"""How soon the ε handle answers in a real Chromium: a frame after the pointer moved, the first one after a change.

Run: .venv/bin/python -m benchmarks.handle_speed [--json FILE] [--moves N] [--changes N]

The browser measures itself.  A move: from the time stamp of the pointer's event to the first task after the animation
frame with the new picture was painted.  A change: from the key on a control of the sidebar until the picture shows a
result of the new settings.  Goals: 33 ms and 300 ms at the 95th percentile, on a quiet machine with 2 cores and no
graphics card.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.visitor import running_app

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu"]
QUIET = "curve=off&runs=off&landscape=off"
PAGES = {  # the handle's key, and a link to its page
    "modes, functional": ("contours_chart", f"modes?method=functional&n=5000&{QUIET}"),
    "modes, DP-GRAMS": ("contours_chart", f"modes?method=dp_grams&n=5000&{QUIET}"),
    "regression": ("released_chart", f"regression?{QUIET}"),
    "clusters": ("centres_chart", f"clusters?{QUIET}"),
}
MOVE_GOAL, CHANGE_GOAL = 33.0, 300.0
# Notes when the picture shows another result, on the clock of the browser's events.
WATCH = """
figure => {
  window.shown = [];
  new MutationObserver(() => requestAnimationFrame(() => window.shown.push([performance.now(), figure.dataset.places])))
    .observe(figure, { attributeFilter: ["data-places"] });
  document.addEventListener("keydown", (event) => (window.pressed = event.timeStamp), { capture: true });
}
"""


def open_page(page: Page, address: str, link: str, key: str) -> Any:
    """The handle of a page once all its frames are there."""
    page.goto(f"{address}/{link}")
    figure = page.locator(f".st-key-{key} figure")
    figure.wait_for(timeout=300_000)
    page.wait_for_function(
        "figure => figure.dataset.frames === String(+figure.querySelector('input').max + 1)",
        arg=figure.element_handle(),
        timeout=300_000,
    )
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


def changes(page: Page, figure: Any, count: int) -> list[float]:
    """Milliseconds from a key on the slider of n or on the seed of the noise to the first frame of the new settings."""
    figure.evaluate(WATCH)
    page.locator(".st-key-seeds summary").click()
    found = []
    for number in range(count):
        control, key = (("n", "ArrowLeft"), ("seed", "ArrowUp"))[number % 2]
        page.evaluate("window.shown = []")
        page.locator(f".st-key-{control} input").first.press(key)
        if control == "seed":
            page.locator(f".st-key-{control} input").first.press("Enter")
        page.wait_for_function("() => window.shown.length > 0", timeout=120_000)
        found.append(page.evaluate("window.shown[0][0] - window.pressed"))
        if control == "n":  # and back, to stay at n = 5000: this one is not counted
            page.wait_for_timeout(1_500)
            page.locator(".st-key-n input").first.press("ArrowRight")
        page.wait_for_timeout(4_000)
    return found


def summary(found: list[float], goal: float) -> dict[str, float]:
    """The distribution of some times."""
    quantiles = {f"q{share:.0f}": float(np.percentile(found, share)) for share in (50, 90, 95, 99)}
    return {"count": len(found), **quantiles, "largest": max(found), "goal": goal}


def main() -> None:
    """Measure, print a table, and write JSON where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--moves", type=int, default=300)
    parser.add_argument("--changes", type=int, default=10)
    asked = parser.parse_args()
    results: dict[str, dict[str, float]] = {}

    def tell(title: str, found: list[float], goal: float) -> None:
        results[title] = summary(found, goal)
        print(f"{title:28s}" + "".join(f"{value:10.1f}" for value in results[title].values()), flush=True)

    print(f"{'milliseconds':28s}" + "".join(f"{name:>10s}" for name in summary([0.0], 0.0)))
    with running_app() as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        for title, (key, link) in PAGES.items():
            figure = open_page(page, address, link, key)
            tell(f"move: {title}", moves(page, figure, asked.moves), MOVE_GOAL)
        key, link = PAGES["modes, functional"]
        tell(
            "change: modes, functional", changes(page, open_page(page, address, link, key), asked.changes), CHANGE_GOAL
        )
        browser.close()
    load = os.getloadavg()[0]
    print(f"load of this machine over the last minute: {load:.1f} on {os.cpu_count()} cores")
    if asked.json:
        asked.json.write_text(json.dumps({"milliseconds": results, "load": load, "cores": os.cpu_count()}, indent=2))


if __name__ == "__main__":
    main()
