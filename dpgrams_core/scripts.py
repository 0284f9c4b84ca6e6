"""Exported Python scripts: one that repeats simulated runs exactly, one that documents a release of private data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpgrams_core.fingerprint import engine_fingerprint
from dpgrams_core.methods import METHODS
from dpgrams_core.recipes import Recipe, ReleaseRecord

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
data = dg.load_dataset({dataset!r}, n={n!r}, seed={data_seed!r})
release = dg.run(
    {method!r},
    data,
    seed={seed!r},
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
METHOD = {method!r}
COLUMNS = {columns}
BOX = {box}
N = {n!r}
SETTINGS = {settings}

# What ran, in the words that the accountant prices.
EVENTS = {events}
NOISE_SCALE = {noise_scale!r}

# The guarantee that the result has.
STATUS, EPSILON, DELTA = {status!r}, {epsilon!r}, {delta!r}
NEIGHBOURS = {neighbours!r}
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


def simulation_script(recipes: Sequence[Recipe]) -> str:
    """A script that repeats these runs with the public names of the engine and prints what they found.

    Examples
    --------
    >>> text = simulation_script([Recipe(method="functional", dataset="four_corners", n=500)])
    >>> 'dg.load_dataset("four_corners", n=500, seed=0)' in text.replace("'", '"')
    True
    """
    count = "one run" if len(recipes) == 1 else f"{len(recipes)} runs"
    parts = [_SIMULATION.format(count=count, engine=engine_fingerprint())]
    for number, recipe in enumerate(recipes, start=1):
        method = METHODS[recipe.method]
        rows = "release.curve" if method.kind == "regression" else "release.modes"
        parts.append(
            _RUN.format(
                number=number,
                title=method.title,
                dataset=recipe.dataset,
                n=recipe.n,
                data_seed=recipe.data_seed,
                method=recipe.method,
                seed=recipe.seed,
                options="".join(f"    {name}={value!r},\n" for name, value in recipe.options),
                heading=f"{method.title}: {rows}",
                rows=rows,
            )
        )
    return "".join(parts)


def command_script(command: str) -> str:
    """A script that does what a command of the engine does.

    >>> print(command_script("python -m dpgrams_core reproduce kernels").splitlines()[-1])
    main(['reproduce', 'kernels'])
    """
    words = command.split()[3:]
    return (
        f'"""Does what `{command}` does; save it in the folder that holds dpgrams_core."""\n\n'
        f"from dpgrams_core.__main__ import main\n\nmain({words!r})\n"
    )


def release_script(record: ReleaseRecord) -> str:
    """A script that holds a release and its price, and no data; texts of the user stand in it as quoted strings."""
    kinds = sorted({type(event).__name__ for event in record.events})
    guarantee = record.guarantee
    return _RELEASE.format(
        engine=engine_fingerprint(),
        imports=f"from dpgrams_core.privacy.events import {', '.join(kinds)}\n" if kinds else "",
        method=record.method,
        columns=_listed(record.columns),
        box=_listed(record.box),
        n=record.n,
        settings=_mapped(record.settings),
        events=_listed(record.events),
        noise_scale=record.noise_scale,
        status=guarantee.words,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        neighbours=guarantee.neighbours,
        words=_listed((guarantee.statement, *guarantee.caveats)),
        name=record.what.upper(),
        rows=_listed(record.rows),
    )


def _listed(values: Sequence[Any]) -> str:
    """A list, on one line where it fits."""
    line = f"[{', '.join(map(repr, values))}]"
    return line if len(line) <= _WIDTH else "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


def _mapped(pairs: Sequence[tuple[str, Any]]) -> str:
    return "{\n" + "".join(f"    {name!r}: {value!r},\n" for name, value in pairs) + "}" if pairs else "{}"
