"""The command ``reproduce``: the paper's tables and figures with ours beside them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dpgrams_core.cli import add_shared, number_or_name
from dpgrams_core.cli.sweep import run_with_progress, shown_before
from dpgrams_core.model.checks import whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, GROUPS, Experiment
from dpgrams_core.studies.paper.reproduce import comparison, summary, wide
from dpgrams_core.studies.paper.rivals import advice
from dpgrams_core.studies.paper.shipped import ship, shipped, what_is_missing
from dpgrams_core.sweeps.cell import CellResult
from dpgrams_core.sweeps.plan import MAX_RUNS, check_data

COVERAGE = "coverage"  # of regions: no table of the paper, but run and shipped as they are


def add_reproduce(commands: Any) -> None:
    """The options of ``reproduce``."""
    again = commands.add_parser("reproduce", help="recompute the paper's tables beside the printed values")
    again.add_argument("what", choices=[*GROUPS, COVERAGE])
    again.add_argument("--runs", type=number_or_name, help="of every cell; by default 50 for modes and 20 for the rest")
    again.add_argument("--columns", nargs="+", help="only these, such as " + ", ".join(EXPERIMENTS["modes"].names))
    add_shared(again, "--executor", "--scheduler", "--out")
    again.add_argument("--ship", action="store_true", help="write whole tables into assets/results; other columns stay")
    add_shared(again, "--json")


def reproduce_text(arguments: argparse.Namespace) -> str:
    """Run the experiments, one after the other, and return their tables; what stops it ends it with what there is."""
    if arguments.runs is not None:
        whole("runs", arguments.runs, 1, MAX_RUNS)
    if arguments.what == COVERAGE:
        return _coverage_text(arguments)
    experiments = [EXPERIMENTS[name] for name in GROUPS[arguments.what]]
    for experiment in experiments:
        experiment.cells(1, arguments.columns or experiment.names)  # a wrong column is refused before any run
        if arguments.ship:
            _refuse_a_part(experiment, arguments)
    texts: list[str] = []
    stopped: BaseException | None = None
    try:
        not_shipped = [trouble for item in experiments if (trouble := _one(item, arguments, texts))]
        stopped = DataError(" ".join(not_shipped)) if not_shipped else None
    except (KeyboardInterrupt, SpecError, DataError) as error:
        if not texts:
            raise
        stopped = error
    return shown_before(stopped, "\n\n".join(texts))


def _coverage_text(arguments: argparse.Namespace) -> str:
    """Nominal against true coverage of the regions of modes, cell by cell."""
    from dpgrams_core.studies import coverage

    runs, least = arguments.runs, coverage.RUNS
    if arguments.ship and runs is not None and runs < least:
        raise SpecError("runs", runs, f"the finished table of {COVERAGE} has at least {least} runs a cell")
    rows: list[dict[str, Any]] = []
    stopped: BaseException | None = None
    try:
        for cell in coverage.cells():
            print(f"{len(rows) + 1}: {cell[0]}, n = {cell[1]:,}, epsilon = {cell[2]:g}", file=sys.stderr)
            rows.append(coverage.coverage_cell(*cell, runs))
    except KeyboardInterrupt as error:
        stopped = error
    found = coverage.table(rows)
    if arguments.ship and stopped is None:
        found.to_csv(coverage.FILE, index=False, float_format="%.6g")
    if arguments.json:
        return shown_before(stopped, str(found.to_json(orient="records", indent=2)))
    text = found.to_string(index=False, na_rep="", float_format="{:.3g}".format)
    head = f"coverage: {runs} runs a cell, nominal {coverage.LEVEL:g}, with 95 % intervals"
    return shown_before(stopped, "\n\n".join([head, text, coverage.summary(found)]))


def _refuse_a_part(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """A part of a table must not take the place of a whole one; better said before hours of work than after."""
    if arguments.runs is not None and arguments.runs < experiment.runs:
        allowed = f"the finished table of {experiment.name} has at least {experiment.runs} runs a cell"
        raise SpecError("runs", arguments.runs, allowed)
    _kept(experiment, arguments.runs or experiment.runs, arguments.columns)
    if not arguments.scheduler:
        check_data(cell for _, cell in experiment.cells(1, arguments.columns or experiment.names))


def _one(experiment: Experiment, arguments: argparse.Namespace, texts: list[str]) -> str:
    """Run one experiment and add its text; returns why it was not shipped, where that was wished."""
    runs = experiment.runs if arguments.runs is None else arguments.runs
    planned = experiment.cells(runs, arguments.columns or experiment.names)
    cells = planned if arguments.scheduler else _with_data(planned)
    column_of = {cell: column for column, cell in cells}
    kept, stopped = run_with_progress(list(column_of), arguments, keep=lambda result: result)
    found = {result.cell: result for result in kept}
    results = [(column, found[cell]) for cell, column in column_of.items() if cell in found]  # in the planned order
    texts.append(_text(experiment, runs, results, arguments.json))
    if stopped is not None:
        raise stopped
    if not arguments.ship:
        return ""
    known = {item.cell: item for item in [*_kept(experiment, runs, arguments.columns), *(each for _, each in results)]}
    made = [known[cell] for _, cell in experiment.cells(runs, experiment.names) if cell in known]
    if missing := what_is_missing(experiment, made, runs):
        return f"The finished table of {experiment.name} was left as it was: {missing}."
    words = f"python -m dpgrams_core reproduce {arguments.what} --runs {runs}"
    ship(experiment.name, made, command=words, seed=0, date=datetime.now(UTC).date().isoformat())
    return ""


def _kept(experiment: Experiment, runs: int, columns: Sequence[str] | None) -> list[CellResult]:
    """The shipped results of the columns that are not made anew; refused where not all of them are there."""
    others = [name for name in experiment.names if columns and name not in columns]
    wanted = {cell for _, cell in experiment.cells(runs, others)}
    kept = [result for _, result in shipped(experiment.name).results if result.cell in wanted] if others else []
    if len(kept) < len(wanted):
        allowed = f"the finished table of {experiment.name} has {len(kept)} of {len(wanted)} cells of the other columns"
        raise SpecError("columns", " ".join(columns or ()), f"{allowed}, so all must be made; leave it out")
    return kept


def _with_data(cells: Sequence[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """The cells whose data are on this machine; those of others are left out, and it is said why."""
    here: dict[AnyDataset, bool] = {}
    for _, cell in cells:
        if cell.dataset not in here:
            try:
                check_data([cell])
            except DataError as error:
                print(f"The tables of {cell.dataset} are left out. {error}", file=sys.stderr)
                here[cell.dataset] = False
            here.setdefault(cell.dataset, True)
    return [pair for pair in cells if here[pair[1].dataset]]


def _text(experiment: Experiment, runs: int, results: Sequence[tuple[str, CellResult]], as_json: bool) -> str:
    table = comparison(experiment, results)
    if as_json:
        return str(table.to_json(orient="records", indent=2))
    parts = [f"{experiment.name}: {runs} runs a cell, mean ± standard error"]
    if table.empty:
        return f"{parts[0]}\n\nNo run is finished."
    for name in dict.fromkeys(table["table"]):
        here = table[table["table"] == name]
        for measure in experiment.measures:
            shown = here[here["measure"] == measure]
            if not shown.empty:
                text = wide(experiment, shown, measure).to_string(index=False, na_rep="", float_format="{:.4g}".format)
                parts.append(f"{name}, {measure}\n{text}")
    if failed := table[table["failures"] > 0]["column"].nunique():
        parts.append(f"Some runs of {failed} columns failed: see the failures in --json.")
    last = advice(experiment, table) if experiment.name in GROUPS["rivals"] else summary(experiment, table)
    return "\n\n".join([*parts, last]).rstrip()
