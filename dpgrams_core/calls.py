"""A call of the engine as a file: the settings of a sweep, of a ladder of errors or of a search, and their script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpgrams_core.cells import Cell
from dpgrams_core.checks import one_of
from dpgrams_core.fingerprint import engine_fingerprint

FORMAT = 1
# Where each function stands, and what is printed of its result.
FUNCTIONS = {
    "sweep": ("dpgrams_core", 'result.drop(columns="seconds").to_csv(index=False)'),
    "error_sources": ("dpgrams_core.error_sources", "result.sentence"),
    "needed_epsilon": ("dpgrams_core.needed_budget", "result.sentence"),
    "needed_n": ("dpgrams_core.needed_budget", "result.sentence"),
}
_HEAD = '''\
"""Repeats what the dashboard showed: simulations on synthetic or public data, seeds included.

Save it in the dashboard's folder, the one that holds dpgrams_core, and run it with the dashboard's own Python:

    .venv/bin/python simulation.py

Made by engine {engine}. Another engine or other libraries may give other numbers.
"""

{imports}
'''
_CALL = """
result = {function}(
{arguments})
print({shown})
"""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function of ``FUNCTIONS`` with all its arguments by name.

    >>> call = Call(function="sweep", arguments=(("methods", "functional"), ("dataset", "four_corners")))
    >>> json.loads(calls_json([call]))["calls"]
    [{'function': 'sweep', 'methods': 'functional', 'dataset': 'four_corners'}]
    """

    function: str
    arguments: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        one_of("function", self.function, FUNCTIONS)


def sweep_calls(cells: Sequence[Cell]) -> tuple[Call, ...]:
    """The calls of ``sweep`` that make some cells: one for each method with its options, over its whole grid.

    The cells must be full grids that draw their data anew for each run, as ``plan_cells`` makes them.
    """
    grids: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        fixed = tuple(pair for pair in cell.options if pair[0] != cell.varied)
        grids.setdefault((cell.method, str(cell.dataset), cell.runs, cell.seed, cell.varied, fixed), []).append(cell)
    budgets = sorted({cell.epsilon for cell in cells if cell.epsilon < float("inf")}) or [1.0]
    calls = []
    for (method, dataset, runs, seed, varied, fixed), mine in grids.items():
        arguments: dict[str, Any] = {
            "methods": method,
            "dataset": dataset,
            "n": sorted({cell.n for cell in mine}),
            "epsilon": budgets if mine[0].epsilon == float("inf") else sorted({cell.epsilon for cell in mine}),
            "runs": runs,
            "seed": seed,
        }
        if varied:
            arguments["vary"] = (varied, list(dict.fromkeys(cell.value for cell in mine)))
        calls.append(Call(function="sweep", arguments=(*arguments.items(), *fixed, ("executor", "processes"))))
    return tuple(calls)


def calls_json(calls: Sequence[Call]) -> str:
    """The settings as JSON text."""
    listed = [{"function": call.function, **dict(call.arguments)} for call in calls]
    content = {"format": FORMAT, "engine": engine_fingerprint(), "kind": "calls", "calls": listed}
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)


def calls_script(calls: Sequence[Call]) -> str:
    """A script that makes the calls and prints what came of them.

    >>> call = Call(function="sweep", arguments=(("methods", "functional"), ("n", [500])))
    >>> "methods='functional'" in calls_script([call])
    True
    """
    names = dict.fromkeys(call.function for call in calls)
    imports = "\n".join(f"from {FUNCTIONS[name][0]} import {name}" for name in sorted(names))
    parts = [_HEAD.format(engine=engine_fingerprint(), imports=imports)]
    for call in calls:
        arguments = "".join(f"    {name}={value!r},\n" for name, value in call.arguments)
        parts.append(_CALL.format(function=call.function, arguments=arguments, shown=FUNCTIONS[call.function][1]))
    return "".join(parts)
