"""What a sweep over one control says in words: which control, its default, its values, and runs that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from dpgrams_core.errors import SpecError
from dpgrams_core.methods import METHODS, dp_grams_plan, dp_pms_plan
from dpgrams_core.sweeps import Cell, CellResult


def varied_control(cells: Sequence[Cell]) -> str:
    """The one option that the cells vary."""
    names = sorted({cell.varied for cell in cells if cell.varied})
    if len(names) != 1:
        raise SpecError("vary", names, "this picture needs a sweep that varies one option")
    return names[0]


def default_value(cells: Sequence[Cell]) -> float | None:
    """The value that the varied control has when nobody sets it; None where it is not one number for all cells.

    >>> from dpgrams_core.sweeps import plan_cells
    >>> sizes = {"n": [500, 1000], "epsilon": [1.0]}
    >>> default_value(plan_cells("dp_grams", "four_corners", vary=("clip_multiplier", [0.5, 1.0]), **sizes))
    1.0
    >>> default_value(plan_cells("dp_grams", "four_corners", vary=("batch_size", [10, 20]), **sizes))
    """
    control = varied_control(cells)
    found = {_default_of(cell, control) for cell in cells if cell.varied}
    return found.pop() if len(found) == 1 else None


def _default_of(cell: Cell, control: str) -> float | None:
    own = {item.name: item.default for item in fields(METHODS[cell.method].spec)}
    calibration = str(dict(cell.options).get("calibration", own.get("calibration")))
    regression = cell.method == "dp_pms"
    value: Any = own[control]
    if value is None and control == "bandwidth_scale":
        value = 1.0
    elif value is None and control == "batch_size":
        value = (dp_pms_plan if regression else dp_grams_plan).default_batch(cell.n, calibration)
    elif value is None and control == "clip_multiplier" and regression:
        value = dp_pms_plan.CLIP_MULTIPLIER[calibration]
    return float(value) if isinstance(value, (int, float)) else None


def value_words(value: Any) -> str:
    """A value of a control as people write it.

    >>> value_words(1.0), value_words("rate")
    ('1', 'rate')
    """
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def not_made(results: Sequence[CellResult]) -> str:
    """How many runs could not be made, and what the first one says; "" where all could."""
    failures = [sentence for result in results for sentence in result.failures]
    if not failures:
        return ""
    made = any(result.seconds for result in results)
    count = f"{len(failures):,} {'run' if len(failures) == 1 else 'runs'}" if made else "All runs so far"
    return f" {count} could not be made; the first: {failures[0]}"


def none_is_best(results: Sequence[CellResult], cells: Sequence[Cell]) -> str:
    """What is said where no two means can be compared: what failed, and what is still to come."""
    text = not_made(results)
    if len(results) < len(cells):
        text += f" {len(results)} of {len(cells)} points so far."
    elif any(result.seconds for result in results):
        text = f"Fewer than two points have a finite mean, so none is best.{text}"
    return text.strip()
