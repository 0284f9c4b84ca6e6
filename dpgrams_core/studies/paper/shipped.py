"""Finished tables that come with the project: every run of the paper's experiments, with what made them.

A file holds runs, not means, so that each of its numbers can be recomputed.  Three things tell an edit by hand: the
checksum in the file, of its runs and of what made them; a list of all files that stands beside their folder; and a
test that makes some runs of every column again.
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

from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.run import same_but_runs
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, GROUPS, Experiment
from dpgrams_core.sweeps.cell import CellResult
from dpgrams_core.sweeps.store import read_facts, results_of, rows_of, runs_table, write_runs

FOLDER = ASSETS / "results"
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


def manifest_file() -> Path:
    """The list of the finished tables with the SHA-256 of each file; it stands beside their folder."""
    return FOLDER.with_name(FOLDER.name + ".json")


def what_is_missing(experiment: Experiment, results: Sequence[CellResult], runs: int) -> str:
    """Why results are no finished table of an experiment; "" where every cell has all its runs and no failure."""
    planned = {cell for _, cell in experiment.cells(runs, experiment.names)}
    whole = {result.cell for result in results if result.complete and not result.failures}
    bad = len(planned - whole)
    return f"{bad} of its {len(planned)} cells are not complete, or have failures" if bad else ""


def ship(name: str, results: Sequence[CellResult], *, command: str, seed: int, date: str) -> Path:
    """Write the finished table of an experiment, and its entry in the list of them."""
    table = runs_table([row for result in results for row in rows_of(result)])
    facts = {
        "experiment": name,
        "command": command,
        "seed": seed,
        "date": date,
        "versions": {library: version(library) for library in LIBRARIES},
    }
    FOLDER.mkdir(exist_ok=True)
    path = shipped_file(name)
    write_runs(path, table, {**facts, "checksum": checksum(table.to_pylist(), facts)})
    path.chmod(0o644)  # it is for everybody who has the project, and not for its maker alone
    listed = {**_manifest(), path.name: _digest(path)}
    manifest_file().write_text(json.dumps(listed, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return path


def checksum(rows: Sequence[dict[str, Any]], facts: dict[str, Any]) -> str:
    """Of all that the rows and the facts say, whatever the file format does to them."""
    said = {"rows": list(rows), "facts": {name: value for name, value in facts.items() if name != "checksum"}}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _manifest() -> dict[str, str]:
    try:
        return dict(json.loads(manifest_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # then no table is in it, and none is shown


@cache
def shipped(name: str) -> Shipped:
    """The finished table of an experiment; refuses one that was changed after it was made."""
    path = shipped_file(name)
    if not path.exists():
        raise DataError(f"No finished table of {name} comes with this version: run reproduce {_group(name)} --ship.")
    table, facts = read_facts(path)
    whole = checksum(table.to_pylist(), facts) == facts.get("checksum")
    if not whole or _manifest().get(path.name) != _digest(path):
        raise DataError(f"The finished table of {name} was changed after it was made, so it is not shown.")
    experiment = EXPERIMENTS[name]
    columns = {same_but_runs(cell): column for column, cell in experiment.cells(1, experiment.names, facts["seed"])}
    found = [(columns.get(same_but_runs(result.cell)), result) for result in results_of(table)]
    return Shipped(tuple((column, result) for column, result in found if column is not None), facts)


def _group(name: str) -> str:
    return next(group for group, names in GROUPS.items() if name in names)
