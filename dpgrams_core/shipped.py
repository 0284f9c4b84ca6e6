"""Finished tables that come with the project: every run of the paper's experiments, with what made them.

A file holds runs, not means, so that each of its numbers can be recomputed; its checksum tells an edit by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpgrams_core.cells import Cell, CellResult, same_but_runs
from dpgrams_core.errors import DataError
from dpgrams_core.experiments import EXPERIMENTS, GROUPS
from dpgrams_core.sweep_store import read_facts, results_of, rows_of, runs_table, write_runs

FOLDER = Path(__file__).parents[1] / "assets" / "results"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "statsmodels", "diffprivlib")


@dataclass(frozen=True)
class Shipped:
    """The finished cells of an experiment with their columns, and the command, versions, seed and date behind them."""

    results: tuple[tuple[str, CellResult], ...]
    facts: dict[str, Any]

    @property
    def made(self) -> str:
        """One line on where the numbers come from."""
        libraries = ", ".join(f"{name} {number}" for name, number in self.facts["versions"].items())
        return f"`{self.facts['command']}`, seed {self.facts['seed']}, {self.facts['date']}, {libraries}"


def shipped_file(name: str) -> Path:
    """Where the finished table of an experiment stands."""
    return FOLDER / f"{EXPERIMENTS[name].name}.parquet"


def ship(name: str, results: Sequence[CellResult], *, command: str, seed: int, date: str) -> Path:
    """Write the finished table of an experiment."""
    table = runs_table([row for result in results for row in rows_of(result)])
    facts = {
        "experiment": name,
        "command": command,
        "seed": seed,
        "date": date,
        "versions": {library: version(library) for library in LIBRARIES},
        "checksum": checksum(table.to_pylist()),
    }
    FOLDER.mkdir(exist_ok=True)
    write_runs(shipped_file(name), table, facts)
    return shipped_file(name)


def checksum(rows: Sequence[dict[str, Any]]) -> str:
    """Of all that the rows say, whatever the file format does to them."""
    return hashlib.sha256(json.dumps(list(rows), sort_keys=True).encode()).hexdigest()


@cache
def shipped(name: str) -> Shipped:
    """The finished table of an experiment; refuses one that was changed after it was made."""
    path = shipped_file(name)
    if not path.exists():
        raise DataError(f"No finished table of {name} comes with this version: run reproduce {_group(name)} --ship.")
    table, facts = read_facts(path)
    if checksum(table.to_pylist()) != facts.get("checksum"):
        raise DataError(f"The finished table of {name} was changed after it was made, so it is not shown.")
    experiment = EXPERIMENTS[name]
    columns = {same_but_runs(cell): column for column, cell in experiment.cells(1, experiment.names, facts["seed"])}
    found = [(columns.get(same_but_runs(result.cell)), result) for result in results_of(table)]
    return Shipped(tuple((column, result) for column, result in found if column is not None), facts)


def _group(name: str) -> str:
    """What the command line calls an experiment."""
    return next(group for group, names in GROUPS.items() if name in names)


def shipped_results(cells: Sequence[Cell]) -> dict[Cell, CellResult]:
    """What the finished tables know of some cells: all that have the same seed, options and draw."""
    known = {
        same_but_runs(result.cell): result
        for name in EXPERIMENTS
        if shipped_file(name).exists()
        for _, result in shipped(name).results
    }
    return {cell: known[same_but_runs(cell)] for cell in cells if same_but_runs(cell) in known}
