"""The command ``reproduce``: the paper's tables and figures with ours beside them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dpgrams_core.checks import whole
from dpgrams_core.commands_sweep import run_with_progress
from dpgrams_core.executors import SWEEP_EXECUTORS
from dpgrams_core.experiments import EXPERIMENTS, GROUPS, Experiment
from dpgrams_core.reproduce import comparison, summary, wide
from dpgrams_core.shipped import ship
from dpgrams_core.sweep_plan import MAX_RUNS


def add_reproduce(commands: Any, value: Callable[[str], Any]) -> None:
    """The options of ``reproduce``."""
    again = commands.add_parser("reproduce", help="recompute the paper's tables beside the printed values")
    again.add_argument("what", choices=list(GROUPS))
    again.add_argument("--runs", type=value, help="of every cell; by default 50 for modes and 20 for the rest")
    again.add_argument("--columns", nargs="+", help="only these, such as " + ", ".join(EXPERIMENTS["modes"].names))
    again.add_argument("--executor", choices=SWEEP_EXECUTORS, default="processes")
    again.add_argument("--scheduler", help="address of a Dask scheduler; without one, a cluster on this machine")
    again.add_argument("--out", help="a results file (.parquet); runs that it holds are not made again")
    again.add_argument("--ship", action="store_true", help="write the finished tables into assets/results")
    again.add_argument("--json", action="store_true", help="machine-readable output")


def reproduce_text(arguments: argparse.Namespace) -> str:
    """Run the experiments, one after the other, and return their tables."""
    if arguments.runs is not None:
        whole("runs", arguments.runs, 1, MAX_RUNS)
    return "\n\n".join(_one(EXPERIMENTS[name], arguments) for name in GROUPS[arguments.what])


def _one(experiment: Experiment, arguments: argparse.Namespace) -> str:
    runs = experiment.runs if arguments.runs is None else arguments.runs
    cells = experiment.cells(runs, arguments.columns or experiment.names)
    column_of = {cell: column for column, cell in cells}
    results = run_with_progress([cell for _, cell in cells], arguments.executor, arguments.scheduler, arguments.out)
    table = comparison(experiment, [(column_of[result.cell], result) for result in results])
    if arguments.ship:
        words = ["python -m dpgrams_core reproduce", arguments.what, f"--runs {runs}"]
        words += [f"--columns {' '.join(arguments.columns)}"] if arguments.columns else []
        ship(experiment.name, results, command=" ".join(words), seed=0, date=datetime.now(UTC).date().isoformat())
    if arguments.json:
        return str(table.to_json(orient="records", indent=2))
    parts = [f"{experiment.name}: {runs} runs a cell, mean ± standard error"]
    for name in dict.fromkeys(table["table"]):
        here = table[table["table"] == name]
        for measure in experiment.measures:
            shown = here[here["measure"] == measure]
            if not shown.empty:
                text = wide(experiment, shown, measure).to_string(index=False, na_rep="", float_format="{:.4g}".format)
                parts.append(f"{name}, {measure}\n{text}")
    if failed := table[table["failures"] > 0]["column"].nunique():
        parts.append(f"Some runs of {failed} columns failed: see the failures in --json.")
    return "\n\n".join([*parts, summary(experiment, table)]).rstrip()
