"""What a cached redraw costs: milliseconds of the processor and kilobytes sent, for every page.

Run: .venv/bin/python -m benchmarks.redraw [--json FILE]

A redraw is cached when the engine has nothing to compute: the same settings again, and ε moved to a value that another
visitor has looked at, so that this one's browser has not got it yet.  Beside it stands the floor, what Streamlit itself
needs: the same settings of a page that has as many controls and other elements, and computes nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.visitor import Answer, Visitor, processor_seconds, running_app
from dpgrams_core.model.places import APP

NAMES = ("modes", "regression", "clusters", "tradeoff", "guarantee", "paper", "my_data", "lessons", "attacker")
PAGES = {"start": "", **{name: name for name in NAMES}}  # and their addresses
GOAL_MS, GOAL_KB = 60, 60
TIMES = 5
SETTLE_SECONDS = 900.0
EPSILONS = ("0.2", "0.5", "2", "5")
IDLE_SHARE = 0.02  # of a core: below that a server does nothing but wait
EMPTY_PAGE = """
import streamlit as st
for number in range({controls}):
    st.sidebar.select_slider(f"Control {{number}}", list(range(20)), key=f"control_{{number}}", help="What it is.")
for number in range({others}):
    st.markdown(f"Line {{number}}.")
"""


def cost(server: psutil.Process, call: Any) -> tuple[float, Answer]:
    """Seconds of the processor that a call costs the server."""
    before = processor_seconds(server)
    answer: Answer = call()
    time.sleep(0.3)  # for what it does after its last word
    return processor_seconds(server) - before, answer


def settled(visitor: Visitor) -> Answer:
    """The first answer of a page, once all of it is there: what fills in meanwhile would be counted with a redraw."""
    first, until = visitor.redraw(), time.monotonic() + SETTLE_SECONDS
    while visitor.fills_in:
        if time.monotonic() > until:
            raise TimeoutError(f"a page still fills in after {SETTLE_SECONDS:g} seconds")
        visitor.look(1)
    return first


def idle(server: psutil.Process) -> None:
    """Wait until nothing goes on behind the page, such as worker processes that start: it would be counted too."""
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        before = processor_seconds(server)
        time.sleep(1)
        if processor_seconds(server) - before < IDLE_SHARE:
            return
    raise TimeoutError(f"the server still computes after {SETTLE_SECONDS:g} seconds")


@contextmanager
def page_of_lines(controls: int, others: int) -> Iterator[Path]:
    """A folder with a page of Streamlit that computes nothing, and has the dashboard's settings."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "app.py").write_text(EMPTY_PAGE.format(controls=controls, others=others), encoding="utf-8")
        shutil.copytree(APP.parent / ".streamlit", Path(folder, ".streamlit"))
        yield Path(folder)


def floor(controls: int, others: int) -> float:
    """Milliseconds of the processor that a redraw of a page costs which computes nothing."""
    with page_of_lines(controls, others) as root, running_app(root=root) as (address, server), Visitor(address) as one:
        settled(one)
        idle(server)
        return 1000 * median(cost(server, one.redraw)[0] for _ in range(TIMES))


def row(what: str, costs: list[tuple[float, Answer]]) -> dict[str, Any]:
    """The median of some redraws."""
    seconds, answers = [spent for spent, _ in costs], [answer for _, answer in costs]
    return {
        "redraw": what,
        "processor_ms": round(1000 * median(seconds), 1),
        "kB": round(median(answer.size for answer in answers) / 1000, 1),
        "wall_ms": round(1000 * median(answer.seconds for answer in answers), 1),
        "failed": sum(answer.failed for answer in answers),
    }


def rows_of(server: psutil.Process, address: str, page: str) -> list[dict[str, Any]]:
    """The redraws of one page."""
    with Visitor(address, page) as visitor:
        settled(visitor)
        idle(server)
        same = [cost(server, visitor.redraw) for _ in range(TIMES)]
        controls = len(visitor.widgets)
        rows = [{**row("same settings", same), "controls": controls, "others": same[-1][1].parts - controls}]
        if "epsilon" not in visitor.widgets:
            return rows

        def moved(who: Visitor, epsilon: str) -> Answer:
            return who.redraw("epsilon", string_array_value=[epsilon])

        for epsilon in EPSILONS:
            moved(visitor, epsilon)
            visitor.look(3)
        with Visitor(address, page) as other:
            settled(other)
            idle(server)
            costs = [cost(server, lambda epsilon=epsilon: moved(other, epsilon)) for epsilon in EPSILONS]
    return [*rows, row("ε moved", costs)]


def main() -> None:
    """A table, and JSON where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"A cached redraw; goal: {GOAL_MS} ms of the processor and {GOAL_KB} kB")
    print(f"{'page':12s} {'redraw':16s} {'processor ms':>13s} {'floor ms':>9s} {'kB':>8s} {'wall ms':>9s}")
    with running_app() as (address, server):
        for page, name in PAGES.items():
            for one in rows_of(server, address, name):
                one["floor_ms"] = round(floor(one["controls"], one["others"]), 1) if "controls" in one else None
                rows.append({"page": page, **one})
                good = one["processor_ms"] <= GOAL_MS and one["kB"] <= GOAL_KB
                verdict = "failed" if one["failed"] else "met" if good else "missed"
                cells = f"{one['processor_ms']:13.1f} {one['floor_ms'] or '':>9} {one['kB']:8.1f} {one['wall_ms']:9.1f}"
                print(f"{page:12s} {one['redraw']:16s} {cells}  {verdict}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
