"""What a result was made from, as a small file: simulated runs, calls of the engine, or the record of a release.

Runs and calls hold every public value and the seeds, so that anyone gets the same numbers again; with them is the link
of the page that showed them, so that the file can be opened there.  A record holds what was released and what it cost.
It has no seed, since a release has none, and no type has a place for a record of the data or for diagnostics: all are
built field by field, never by dumping an object.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import one_of
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.run import Run
from dpgrams_core.own_data.record import ReleaseRecord, read_record, record_fields
from dpgrams_core.sweeps.fingerprint import engine_fingerprint
from dpgrams_core.sweeps.plan import MAX_CELLS_UNASKED, Grid, plan_grid, plan_run

FORMAT = 1
EngineCall = tuple[str, dict[str, Any]]  # a function of the engine, and all its arguments by name
Made = ReleaseRecord | Sequence[Run] | Sequence[EngineCall]  # what a page's numbers were made from
# Where each function that a call may name stands, and what a script prints of its result.
FUNCTIONS = {
    "sweep": ("dpgrams_core", 'result.drop(columns="seconds").to_csv(index=False)'),
    "error_sources": ("dpgrams_core.error_sources", "result.sentence"),
    "needed_epsilon": ("dpgrams_core.needed_budget", "result.sentence"),
    "needed_n": ("dpgrams_core.needed_budget", "result.sentence"),
}
_PLACE = ("method", "dataset", "n", "data_seed", "seed")
_LONGEST_LINK = 4_000


@dataclass(frozen=True)
class OpenedSettings:
    """What a settings file says: its runs (of a search, the first that it tries), and the link of its page.

    ``link`` is what stands after the ? of the page's address, or "" in a file of an earlier version.  A page takes
    its values as it takes those of any link: checked one by one.
    """

    runs: tuple[Run, ...]
    page: str = ""
    link: str = ""
    record: ReleaseRecord | None = None


def sweep_calls(runs: Sequence[Run]) -> list[EngineCall]:
    """The calls of ``sweep`` that make the points of a sweep: one for each method with its options, over its grid.

    The points must be full grids that draw their data anew for each run, as ``plan_cells`` makes them.
    """
    grids: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        fixed = tuple(pair for pair in run.options if pair[0] != run.varied)
        key = (run.method, str(run.dataset), run.design, run.runs, run.seed, run.varied, fixed)
        grids.setdefault(key, []).append(run)
    budgets = sorted({run.epsilon for run in runs if run.epsilon < float("inf")}) or [1.0]
    calls = []
    for (method, dataset, design, repeats, seed, varied, fixed), mine in grids.items():
        arguments: dict[str, Any] = {
            "methods": method,
            "dataset": dataset,
            "n": sorted({run.n for run in mine}),
            "epsilon": budgets if mine[0].epsilon == float("inf") else sorted({run.epsilon for run in mine}),
            "runs": repeats,
            "seed": seed,
        }
        if design:
            arguments["design"] = design
        if varied:
            arguments["vary"] = (varied, list(dict.fromkeys(run.value for run in mine)))
        calls.append(("sweep", {**arguments, **dict(fixed), "executor": "processes"}))
    return calls


def spec_json(made: Made, page: str = "", link: str = "") -> str:
    """What a page's numbers were made from, as JSON text; ``link`` is the page's, without what stands before the ?."""
    said: dict[str, Any] = {"format": FORMAT, "engine": engine_fingerprint()}
    if isinstance(made, ReleaseRecord):
        said |= {"kind": "release", "note": "A release of private data. It has no seed.", **record_fields(made)}
    elif isinstance(made[0], Run):
        runs = [run for run in made if isinstance(run, Run)]
        listed = [{**_place(run), "options": run.settings} for run in runs]
        said |= {"kind": "simulation", "runs": listed}
    else:
        calls = [call for call in made if not isinstance(call, Run)]
        said |= {"kind": "calls", "calls": [{"function": name, **arguments} for name, arguments in calls]}
    said |= {"page": page, "link": link} if page else {}
    return json.dumps(said, indent=2, allow_nan=False, ensure_ascii=False)


def _place(run: Run) -> dict[str, Any]:
    """What a run is of besides its options; a design only where there is one, as files before there were any."""
    return {name: getattr(run, name) for name in _PLACE} | ({"design": run.design} if run.design else {})


def open_settings(text: str | bytes) -> OpenedSettings:
    """Open a settings file that somebody took home; every value is checked as if it had been typed.

    A text that is no such file, or has a value that is not allowed, is a DataError or SpecError with a sentence.
    """
    try:
        said = json.loads(text)
        readers = {"simulation": _runs, "calls": _points, "release": read_record}
        if said["format"] != FORMAT or said["kind"] not in readers:
            raise DataError(f"This is not a file of format {FORMAT} that this version reads.")
        found: Any = readers[said["kind"]](said)
        if isinstance(found, ReleaseRecord):
            return OpenedSettings((), record=found)
        page, link = said.get("page", ""), said.get("link", "")
        if not (isinstance(page, str) and isinstance(link, str) and len(page) + len(link) <= _LONGEST_LINK and found):
            raise ValueError
        return OpenedSettings(found, page, link)
    except (SpecError, DataError):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        raise DataError("This is not a file that was exported here, or it has been changed.") from None


def _runs(said: dict[str, Any]) -> tuple[Run, ...]:
    rest = [{name: value for name, value in item.items() if name != "options"} for item in said["runs"]]
    return tuple(plan_run(**place, **item["options"]) for place, item in zip(rest, said["runs"], strict=True))


def _points(said: dict[str, Any]) -> tuple[Run, ...]:
    """The points of the sweeps in a file; of a search or a ladder of errors, the first point.

    A file may come from anyone, so its points are counted before they are written out, and none is run: where
    ``plan_cells`` would time a sweep that is too large, or take it as confirmed, the file is refused.
    """
    grids = [_grid(call) for call in said["calls"]]
    count = sum(grid.count for grid in grids)
    if count > MAX_CELLS_UNASKED:
        raise SpecError("calls", f"{count:,} points", f"a file has at most {MAX_CELLS_UNASKED:,}")
    return tuple(run for grid in grids for run in grid.cells())


def _grid(call: dict[str, Any]) -> Grid:
    given = {name: value for name, value in call.items() if name not in ("function", "executor")}
    if one_of("function", call["function"], FUNCTIONS) == "sweep":
        return plan_grid(**given)
    own = {item.name for item in fields(METHODS[one_of("method", given["method"], METHODS)].spec)} - {"epsilon"}
    first: dict[str, Any] = {name: [given.get(name, given.get("low", 1.0))] for name in ("n", "epsilon")}
    options = {name: value for name, value in given.items() if name in own}
    more = {name: given[name] for name in ("runs", "seed", "design") if given.get(name) is not None}
    return plan_grid(given["method"], given["dataset"], **first, **more, **options)
