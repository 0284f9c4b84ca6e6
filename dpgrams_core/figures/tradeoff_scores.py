"""The scores of a sweep in words and as a table: what the pictures of the Tradeoff page share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.datasets import DATASETS
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
            more = {"runs": len(found.seconds), "failures": len(found.failures), "status": found.status}
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
