"""The commands of ``dpgrams``, one file for each; what they share stands here."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpgrams_core.model.results import Guarantee, Release
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


def read_off(kind: str) -> str:
    """What methods of a kind give, for people."""
    return {"clusters": "centres", "regression": "curve (x, y)"}.get(kind, "modes")


def uncertainty(release: Release) -> dict[str, Any]:
    """How sure what was read off a release is, for JSON; what is not known is null."""
    names = ("noise_covariances", "mode_covariances", "half_widths", "noise_chances", "curve_band")
    return {name: None if (found := _known(release, name)) is None else _nulls(found.tolist()) for name in names}


def _known(release: Release, name: str) -> Any:
    """A field that is computed when it is asked for: what was paid for is printed also where that fails."""
    try:
        return getattr(release, name)
    except (ArithmeticError, MemoryError, np.linalg.LinAlgError):
        return None


def _nulls(values: Any) -> Any:
    if isinstance(values, list):
        return [_nulls(value) for value in values]
    return values if np.isfinite(values) else None


def rows_text(title: str, rows: Sequence[Sequence[float]] | np.ndarray, release: Release, style: str) -> list[str]:
    """Modes, centres or the rows of a curve for people, under a title; with how sure each is where that is known."""
    told, more = "", [""] * len(rows)
    halves, band = _known(release, "half_widths"), release.curve_band
    if band is not None and len(band) == len(rows):
        told, more = " [95% band of y, by the noise alone]", [f"  [{low:.4g}, {high:.4g}]" for low, high in band]
        halves = None
    texts = [[f"{value:{style}}" for value in row] for row in rows]
    if halves is not None and len(halves):
        told = " (± 95% of the population's)"
        reach = [["" if np.isnan(value) else f" ± {value:.3g}" for value in half] for half in halves]
        texts = [list(map("".join, zip(*pair, strict=True))) for pair in zip(texts, reach, strict=True)]
    lines = ["  " + "  ".join(text) + end for text, end in zip(texts, more, strict=True)]
    return [title + told, *(lines or ["  none"])]
