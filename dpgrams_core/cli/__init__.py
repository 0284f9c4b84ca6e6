"""The commands of ``dpgrams``, one file for each; what they share stands here."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from dpgrams_core.model.results import Guarantee
from dpgrams_core.sweeps.executors import SWEEP_EXECUTORS

SHARED_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "machine-readable output"},
    "--ledger": {"help": "the ledger's file (otherwise DPGRAMS_LEDGER)"},
    "--executor": {"choices": SWEEP_EXECUTORS, "default": "processes"},
    "--scheduler": {"help": "address of a Dask scheduler; without one, a cluster on this machine"},
    "--out": {"help": "a results file (.parquet); runs that it holds are not made again"},
}


def add_shared(command: ArgumentParser, *names: str) -> None:
    """Options that several commands have."""
    for name in names:
        command.add_argument(name, **SHARED_OPTIONS[name])


def number_or_name(text: str) -> int | float | str:
    """A whole number, a number, or the text itself; the spec says whether it is allowed."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def guarantee_lines(guarantee: Guarantee, *more: str) -> list[str]:
    """A guarantee for people, and what else is said of it."""
    numbers = f"epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, neighbours: {guarantee.neighbours}"
    words = (numbers, guarantee.statement, *guarantee.caveats, *more)
    return ["", f"guarantee: {guarantee.words}", *(f"  {text}" for text in words)]
