"""The paper's tables, recomputed: ours beside the printed value, with the guarantee of each column."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from dpgrams_core.datasets import DATASETS
from dpgrams_core.sweeps import Cell, CellResult, plan_cells, stream_cells

PAPER_TABLES = Path(__file__).parents[1] / "assets" / "paper_tables.json"
MODE_TABLES = {"modes_four_corners": "four_corners", "modes_t_mixture": "t_mixture"}
# Columns of the reproduced table: a name, the method and its own options.
MODE_COLUMNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("functional", "functional", {}),
    ("tight", "dp_grams", {"calibration": "tight"}),
    ("experiments", "dp_grams", {"calibration": "experiments"}),
    ("theorem", "dp_grams", {"calibration": "theorem"}),
)


def paper_table(name: str) -> dict[str, Any]:
    """One printed table as data."""
    table: dict[str, Any] = json.loads(PAPER_TABLES.read_text(encoding="utf-8"))[name]
    return table


def mode_cells(runs: int, columns: tuple[str, ...], seed: int = 0) -> list[Cell]:
    """Every cell of the two mode tables, with the number of modes known as in the paper."""
    cells: list[Cell] = []
    for name, dataset in MODE_TABLES.items():
        table = paper_table(name)
        modes = DATASETS[dataset].true_modes
        assert modes is not None
        known = len(modes)
        for column, method, options in MODE_COLUMNS:
            if column in columns:
                cells += plan_cells(
                    method,
                    dataset,
                    n=sorted({row["n"] for row in table["rows"]}),
                    epsilon=sorted({row["epsilon"] for row in table["rows"]}),
                    runs=runs,
                    seed=seed,
                    delta=table["delta"],
                    n_modes=known,
                    **options,
                )
    return cells


def column_of(cell: Cell) -> str:
    """The column that a cell belongs to."""
    options = dict(cell.options)
    for column, method, wanted in MODE_COLUMNS:
        if cell.method == method and all(options.get(key) == value for key, value in wanted.items()):
            return column
    raise ValueError(f"no column for {cell}")


def stream_modes(runs: int, columns: tuple[str, ...], executor: str) -> Iterator[tuple[CellResult, int]]:
    """Finished cells with the number of cells in all."""
    cells = mode_cells(runs, columns)
    for result in stream_cells(cells, executor):
        yield result, len(cells)


def mode_table(results: list[CellResult]) -> pd.DataFrame:
    """One row per printed cell: the printed MSE, and for each column mean, standard error and counts."""
    rows: dict[tuple[str, int, float], dict[str, Any]] = {}
    for name, dataset in MODE_TABLES.items():
        for printed in paper_table(name)["rows"]:
            key = (dataset, int(printed["n"]), float(printed["epsilon"]))
            rows[key] = {"dataset": key[0], "n": key[1], "epsilon": key[2], "printed": printed["dp_grams_mse"]["mean"]}
    for result in results:
        cell, column, row = result.cell, column_of(result.cell), result.row()
        target = rows[(cell.dataset, cell.n, cell.epsilon)]
        target[f"{column} mse"] = row.get("mse")
        target[f"{column} se"] = row.get("mse_se")
        for score in ("mse_per_true_mode", "found", "missed", "spurious", "runs", "seconds"):
            target[f"{column} {score}"] = row.get(score)
        target[f"{column} ahead"] = bool(row.get("mse", float("nan")) <= target["printed"])
    return pd.DataFrame(list(rows.values()))


def summary(table: pd.DataFrame) -> str:
    """How many printed cells each column equals or beats, in all and for epsilon of at least 0.5."""
    lines = []
    for column, _, _ in MODE_COLUMNS:
        if f"{column} ahead" in table:
            ahead = table[f"{column} ahead"].fillna(False).astype(bool)
            large = table["epsilon"] >= 0.5
            lines.append(
                f"{column}: at or below the printed DP-GRAMS value in {int(ahead.sum())} of {len(table)} cells, "
                f"{int((ahead & large).sum())} of {int(large.sum())} with epsilon >= 0.5"
            )
    return "\n".join(lines)
