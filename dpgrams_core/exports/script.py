"""Exported Python scripts: one that repeats simulated runs exactly, one that documents a release of private data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpgrams_core.exports.settings import FUNCTIONS, EngineCall
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import one_of
from dpgrams_core.model.run import Run
from dpgrams_core.own_data.record import ReleaseRecord
from dpgrams_core.sweeps.fingerprint import engine_fingerprint

_WIDTH = 110
_SIMULATION = '''\
"""Repeats what the dashboard showed, number by number: {count} on synthetic or public data.

Save it in the dashboard's folder, the one that holds dpgrams_core, and run it with the dashboard's own Python:

    .venv/bin/python simulation.py

Seeded runs are simulations. A release of private data has no seed and cannot be repeated.
Made by engine {engine}. Another engine or other libraries may give other numbers; another number of
processors may change the last digit.
"""

import dpgrams_core as dg
'''
_RUN = """
# {number}. {title}
data = dg.load_dataset({run.dataset!r}, n={run.n!r}, seed={run.data_seed!r}{design})
release = dg.run(
    {run.method!r},
    data,
    seed={run.seed!r},
{options})
print({heading!r})
for row in {rows}.tolist():
    print(row)
print("guarantee:", release.guarantee.words, release.guarantee.epsilon, release.guarantee.delta)
print("scores:", dg.score(release, data))
"""
_RELEASE = '''\
"""Documents one release of private data: what ran, what came out, and what it cost.

It holds no record of the data and no seed: a release has none, and cannot be repeated without paying again.
Saved in the dashboard's folder and run, it prints what was released and prices what ran once more:

    .venv/bin/python release.py

Made by engine {engine}.
"""

from dpgrams_core.privacy.accounting import price
{imports}
# What was asked for. Columns, box and the number of rows are treated as public.
METHOD = {record.method!r}
COLUMNS = {columns}
BOX = {box}
N = {record.n!r}
SETTINGS = {settings}

# What ran, in the words that the accountant prices.
EVENTS = {events}
NOISE_SCALE = {record.noise_scale!r}

# The guarantee that the result has.
STATUS, EPSILON, DELTA = {claim.words!r}, {claim.epsilon!r}, {claim.delta!r}
NEIGHBOURS = {claim.neighbours!r}
WORDS = {words}

# What was released, in the units of the columns.
{name} = {rows}

print(METHOD, "on", N, "rows of", ", ".join(COLUMNS))
for row in {name}:
    print(list(row))
print("guarantee:", STATUS, "epsilon", EPSILON, "delta", DELTA, "neighbours", NEIGHBOURS)
for words in WORDS:
    print(" ", words)
if EVENTS:
    print("priced again: epsilon", price(EVENTS, DELTA).epsilon)
'''

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


def simulation_script(runs: Sequence[Run]) -> str:
    """A script that repeats these runs with the public names of the engine and prints what they found."""
    count = "one run" if len(runs) == 1 else f"{len(runs)} runs"
    parts = [_SIMULATION.format(count=count, engine=engine_fingerprint())]
    for number, run in enumerate(runs, start=1):
        title, kind = METHODS[run.method].title, METHODS[run.method].kind
        rows = "release.curve" if kind == "regression" else "release.modes"
        more = {"heading": f"{title}: {rows}", "options": _arguments(run.settings)}
        more["design"] = f", design={run.design!r}" if run.design else ""
        parts.append(_RUN.format(number=number, run=run, title=title, rows=rows, **more))
    return "".join(parts)


def calls_script(calls: Sequence[EngineCall]) -> str:
    """A script that makes calls of the engine and prints what came of them."""
    names = sorted({one_of("function", name, FUNCTIONS) for name, _ in calls})
    imports = "\n".join(f"from {FUNCTIONS[name][0]} import {name}" for name in names)
    parts = [_HEAD.format(engine=engine_fingerprint(), imports=imports)]
    for name, arguments in calls:
        parts.append(_CALL.format(function=name, arguments=_arguments(arguments), shown=FUNCTIONS[name][1]))
    return "".join(parts)


def command_script(command: str) -> str:
    """A script that does what a command of the engine does."""
    words = command.split()[3:]
    return (
        f'"""Does what `{command}` does; save it in the folder that holds dpgrams_core."""\n\n'
        f"from dpgrams_core.__main__ import main\n\nmain({words!r})\n"
    )


def release_script(record: ReleaseRecord) -> str:
    """A script that holds a release and its price, and no data; texts of the user stand in it as quoted strings."""
    kinds = sorted({type(event).__name__ for event in record.events})
    claim = record.guarantee
    settings = "".join(f"    {name!r}: {value!r},\n" for name, value in record.settings)
    return _RELEASE.format(
        engine=engine_fingerprint(),
        record=record,
        claim=claim,
        imports=f"from dpgrams_core.privacy.events import {', '.join(kinds)}\n" if kinds else "",
        columns=_listed(record.columns),
        box=_listed(record.box),
        settings=f"{{\n{settings}}}" if settings else "{}",
        events=_listed(record.events),
        words=_listed((claim.statement, *claim.caveats)),
        name=record.what.upper(),
        rows=_listed(record.rows),
    )


def _arguments(given: Mapping[str, Any]) -> str:
    return "".join(f"    {name}={value!r},\n" for name, value in given.items())


def _listed(values: Sequence[Any]) -> str:
    """A list, on one line where it fits."""
    line = f"[{', '.join(map(repr, values))}]"
    return line if len(line) <= _WIDTH else "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"
