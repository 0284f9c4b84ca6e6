"""The scores of a sweep in words and as a table: what the pictures of the Tradeoff page share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.datasets import DATASETS
from dpgrams_core.figures.sensitivity import control_title
from dpgrams_core.figures.sensitivity_words import value_words
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods import METHODS

# What can be on the axis: its words, whether more is better, and whether the axis is a log scale.
LAB_MEASURES: dict[str, dict[str, tuple[str, bool, bool]]] = {
    "modes": {
        "mse": ("MSE", False, True),
        "mse_per_true_mode": ("MSE per true mode", False, True),
        "found": ("modes found", True, False),
        "spurious": ("spurious modes", False, False),
    },
    "regression": {
        "mse": ("MSE", False, True),
        "branch_recall": ("branch recall", True, False),
        "coverage": ("coverage", True, False),
    },
    "clusters": {
        "ari": ("ARI", True, False),
        "nmi": ("NMI", True, False),
        "centroid_mse": ("centroid MSE", False, True),
    },
}

Known = Mapping[Cell, CellResult]


@dataclass(frozen=True, kw_only=True)
class NamedCell(Cell):
    """A cell with what tells it apart from others of its method, where a picture holds several."""

    note: str


def told_apart(cells: Sequence[Cell]) -> dict[Cell, Cell]:
    """Each cell, named by what differs where a method has several settings: options, seed or draw.

    Without a name of their own such cells would share a line, with several points at the same place.

    Examples
    --------
    >>> from dpgrams_core.sweeps import plan_cells
    >>> grid = {"n": [100], "epsilon": [1.0]}
    >>> cells = [plan_cells("functional", "four_corners", seed=seed, **grid)[0] for seed in (0, 1)]
    >>> [cell_title(cell) for cell in told_apart(cells).values()]
    ['Functional release, seed 0', 'Functional release, seed 1']
    """
    named: dict[Cell, Cell] = {}
    for title in dict.fromkeys(map(cell_title, cells)):
        mine = {cell: _settings(cell) for cell in cells if cell_title(cell) == title}
        names = dict.fromkeys(name for settings in mine.values() for name in settings)
        apart = [name for name in names if len({repr(settings.get(name)) for settings in mine.values()}) > 1]
        for cell, settings in mine.items():
            note = ", ".join(_setting_words(name, settings.get(name)) for name in apart)
            facts = {item.name: getattr(cell, item.name) for item in fields(cell)}
            named[cell] = NamedCell(**facts, note=note) if note else cell
    return {cell: named[cell] for cell in cells}


def _settings(cell: Cell) -> dict[str, Any]:
    return {**dict(cell.options), "seed": cell.seed, "draw": cell.draw}


def _setting_words(name: str, value: Any) -> str:
    if name == "draw":
        return "fresh data" if value is None else f"draw {value} of the data"
    return f"default {control_title(name)}" if value is None else f"{control_title(name)} {value_words(value)}"


def cell_title(cell: Cell) -> str:
    """The method of a cell as people call it, with the calibration and the kernel that make its noise.

    Examples
    --------
    >>> from dpgrams_core.sweeps import plan_cells
    >>> cells = plan_cells(["dp_grams", "mean_shift"], "four_corners", n=[100], epsilon=[1.0])
    >>> [cell_title(cell) for cell in cells]
    ['DP-GRAMS experiments', 'Mean shift']
    """
    options = dict(cell.options)
    own = {item.name: item.default for item in fields(METHODS[cell.method].spec)}
    if "calibration" in own:
        options.setdefault("calibration", own["calibration"])
    title = method_title(cell.method, options.items())
    if isinstance(cell, NamedCell):
        return f"{title}, {cell.note}"
    return f"{title}, {KERNELS[options['kernel']].title}" if cell.varied == "kernel" else title


def in_a_text(title: str) -> str:
    """A title within a sentence: "mean shift" but "LOWESS".

    >>> in_a_text("Functional release"), in_a_text("DP-GRAMS tight")
    ('functional release', 'DP-GRAMS tight')
    """
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def measure_words(cells: Sequence[Cell], measure: str) -> tuple[str, bool, bool]:
    """The words of a measure, whether more is better, and whether it has a log axis."""
    return LAB_MEASURES[DATASETS[cells[0].dataset].kind][measure]


def lab_table(known: Known) -> pd.DataFrame:
    """One row for each cell that has runs: scores with standard errors, runs, failures and status.

    It is drawn again with every point that comes, so it does without the quantiles of ``CellResult.row``.
    """
    rows = []
    for cell, found in known.items():
        if found.ended:
            row: dict[str, Any] = {"method": cell_title(cell), "n": cell.n, "epsilon": cell.epsilon}
            for measure in found.scores:
                row[measure], row[f"{measure}_se"] = mean_and_error(found, measure)
            more = {"runs": len(found.seconds), "failures": len(found.failures), "status": found.words}
            rows.append(row | more | {"error": found.failures[0] if found.failures else ""})
    return pd.DataFrame(rows)


def mean_and_error(found: CellResult, measure: str) -> tuple[float, float]:
    """Mean and standard error of a score; NaN where there is none."""
    values = found.scores.get(measure, ())
    if not values:
        return math.nan, math.nan
    mean = sum(values) / len(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, math.nan
    squares = sum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))
