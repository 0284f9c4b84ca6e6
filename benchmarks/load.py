"""Thirty visitors at once: how long each waits for a redraw, and whether the server's memory comes back.

Run: .venv/bin/python -m benchmarks.load [--visitors 30] [--seconds 120] [--workers 2] [--json FILE]

Each visitor opens a page and moves a control every few seconds, as a class does: ε mostly, sometimes the noise or the
data set, and looks at what comes in between.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.visitor import Visitor, family, processor_seconds, running_app

PAGES = ("modes", "modes", "modes", "regression", "clusters", "guarantee")  # half of a class looks at Modes
EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5")
PAUSE = (2.0, 6.0)  # seconds between two moves of a visitor
COME_WITHIN = 10.0  # seconds in which all of them come
GOAL_MEDIAN, GOAL_LATE = 1.0, 3.0
SETTLE_SECONDS = 60


class Class:
    """Visitors in threads, with what they waited."""

    def __init__(self, address: str, seconds: float) -> None:
        self.address, self.until = address, time.monotonic() + seconds
        self.first: list[float] = []
        self.waits: list[float] = []
        self.errors: list[str] = []

    def visit(self, number: int) -> None:
        """One visitor, from coming to leaving."""
        chance = random.Random(number)
        time.sleep(chance.uniform(0, COME_WITHIN))
        try:
            with Visitor(self.address, PAGES[number % len(PAGES)]) as visitor:
                answer = visitor.redraw()
                self.first.append(answer.seconds)
                while time.monotonic() < self.until:
                    visitor.look(chance.uniform(*PAUSE))
                    if chance.random() < 0.8 or "new_noise" not in visitor.widgets:
                        answer = visitor.redraw("epsilon", string_array_value=[chance.choice(EPSILONS)])
                    else:
                        answer = visitor.redraw("new_noise", trigger_value=True)
                    self.waits.append(answer.seconds)
                    if answer.failed:
                        self.errors.append(f"visitor {number}: the page failed")
        except Exception as error:  # each is one line of the report
            self.errors.append(f"visitor {number}: {type(error).__name__}: {error}")


def memory(server: psutil.Process) -> float:
    """Megabytes that a server holds, all its processes together; what they share is counted once."""
    held = 0
    for one in family(server):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            held += one.memory_full_info().uss
    return held / 1e6


def quantile(values: list[float], share: float) -> float:
    """So many of the values are at most this."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def measured(visitors: int, seconds: float, workers: int) -> dict[str, Any]:
    """One class."""
    with running_app("--workers", str(workers)) as (address, server):
        for page in dict.fromkeys(PAGES):  # the first to come load what all need, one at each worker
            with ExitStack() as together:
                for warm in [together.enter_context(Visitor(address, page)) for _ in range(workers)]:
                    warm.redraw()
        time.sleep(20)  # until these have left
        start, spent = memory(server), processor_seconds(server)
        here = Class(address, seconds)
        threads = [threading.Thread(target=here.visit, args=(number,)) for number in range(visitors)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        top, spent, load = memory(server), processor_seconds(server) - spent, os.getloadavg()[0]
        time.sleep(SETTLE_SECONDS)
        end = memory(server)
    return {
        "visitors": visitors,
        "seconds": seconds,
        "workers": workers,
        "moves": len(here.waits),
        "first_median_s": round(quantile(here.first, 0.5), 3),
        "median_s": round(quantile(here.waits, 0.5), 3),
        "late_s": round(quantile(here.waits, 0.95), 3),
        "processor_ms_a_move": round(1000 * spent / max(1, len(here.waits)), 1),
        "load": round(load, 1),
        "errors": here.errors,
        "memory_mb": {"start": round(start), "busy": round(top), "a_minute_after": round(end)},
    }


def main() -> None:
    """A table, and JSON where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    found = measured(chosen.visitors, chosen.seconds, chosen.workers)
    held = found["memory_mb"]
    print(f"{found['visitors']} visitors, {found['seconds']:g} s, {found['workers']} workers, {found['moves']} moves")
    print(f"first page, median        {found['first_median_s']:8.2f} s")
    print(f"wait for a move, median   {found['median_s']:8.2f} s   goal below {GOAL_MEDIAN:g} s")
    print(f"wait, 95th percentile     {found['late_s']:8.2f} s   goal below {GOAL_LATE:g} s")
    print(f"processor time a move     {found['processor_ms_a_move']:8.0f} ms  all that the server did meanwhile")
    print(f"load of this machine      {found['load']:8.1f}     on {os.cpu_count()} cores")
    print(f"errors                    {len(found['errors']):8d}     goal 0")
    print(f"memory, MB: {held['start']} at the start, {held['busy']} busy, {held['a_minute_after']} a minute after")
    for line in found["errors"][:10]:
        print("  ", line)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
