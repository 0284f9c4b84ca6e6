"""Exported Python scripts: one that repeats simulated runs exactly, one that documents a release of private data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpgrams_core.exports.settings import FUNCTIONS, EngineCall
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import one_of
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.run import Run
from dpgrams_core.own_data.record import ReleaseRecord
from dpgrams_core.sweeps.fingerprint import engine_fingerprint

_WIDTH = 110


def simulation_script(runs: Sequence[Run]) -> str:
    """A script that repeats these runs with the public names of the engine and prints what they found."""
    count = "one run" if len(runs) == 1 else f"{len(runs)} runs"
    return _script("simulation", count=count, runs=[(run, METHODS[run.method]) for run in runs])


def calls_script(calls: Sequence[EngineCall]) -> str:
    """A script that makes calls of the engine and prints what came of them."""
    names = sorted({one_of("function", name, FUNCTIONS) for name, _ in calls})
    return _script("calls", names=names, calls=calls, functions=FUNCTIONS)


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
    return _script("release", record=record, kinds=kinds, words=(claim.statement, *claim.caveats))


def _script(name: str, **facts: Any) -> str:
    return _SCRIPTS.get_template(f"{name}.py.txt").render(engine=engine_fingerprint(), **facts)


def _arguments(given: Mapping[str, Any]) -> str:
    return "".join(f"    {name}={value!r},\n" for name, value in given.items())


def _listed(values: Sequence[Any]) -> str:
    """A list, on one line where it fits."""
    line = f"[{', '.join(map(repr, values))}]"
    return line if len(line) <= _WIDTH else "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


_SCRIPTS = Environment(
    loader=FileSystemLoader(ASSETS / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
_SCRIPTS.filters |= {"repr": repr, "arguments": _arguments, "listed": _listed}
