"""The process that unpacks one file which somebody handed in; see guarded.py, which starts it.

It is run as a script: the file on standard input, what it should be and the limits as one argument in JSON.  The first
line of its answer is JSON: public facts of the file, or a sentence that refuses it.  Then come its numbers.  An error
ends it without a word, since a library's message may quote the file.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

SPARE_MEMORY = 2**30  # beyond the file and its numbers: the libraries and one piece of the file
_CORE = Path(__file__).parents[2]


def bind(max_numbers: int | None, size: int, max_memory: int | None = None) -> None:
    """Bounds on what this process takes; it never writes a file, nor its memory to the disk when it crashes."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    memory = max_memory if max_numbers is None else SPARE_MEMORY + 16 * max_numbers + 3 * size
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _find_readers() -> None:
    """Make the package's readers importable without the rest of it, which would take seconds."""
    package = ModuleType("dpgrams_core")
    package.__path__ = [str(_CORE)]
    sys.modules["dpgrams_core"] = package


def _answer(asked: dict[str, Any], file: BinaryIO) -> Iterator[Any]:
    """The parts of the answer: a first line, then what can be written as bytes."""
    import numpy as np

    from dpgrams_core.model.errors import DataError
    from dpgrams_core.own_data.reading import parquet_child
    from dpgrams_core.own_data.reading.csv import read_facts, read_numbers
    from dpgrams_core.own_data.reading.table import Limits

    limits = Limits(**asked["limits"])
    bounds = limits.max_rows or 0, limits.max_numbers or 0, limits.max_columns
    if asked["form"] == "runs":
        yield from parquet_child.read_runs(file, *bounds)
        return
    pieces: Iterator[list[Any]] = iter(())
    if asked["form"] == "parquet":
        facts, pieces = parquet_child.read(file, *bounds, asked.get("places"))
    else:
        try:
            facts, layout = read_facts(file, limits)
            pieces = read_numbers(file, layout, [name for name, kind in facts["columns"] if kind == "numeric"])
        except DataError as error:
            facts = {"refused": str(error)}
    yield json.dumps(facts).encode() + b"\n"
    # Numeric columns in pieces of rows, so that neither side holds more than a piece of what is written: of each its
    # number of rows in eight bytes and its columns as doubles, one after the other; a piece of no rows is the end.
    for piece in pieces:
        if piece and len(piece[0]):
            yield len(piece[0]).to_bytes(8, "little")
        for column in piece:
            yield np.ascontiguousarray(column, dtype="<f8").data
    yield bytes(8)


def main(word: str) -> int:
    """Read standard input within the limits and write the answer; an error ends it without a word."""
    try:
        asked = json.loads(word)
        content = None if sys.stdin.buffer.seekable() else sys.stdin.buffer.read()
        bind(asked["limits"]["max_numbers"], len(content or b""), asked["limits"]["max_memory"])
        _find_readers()
        for part in _answer(asked, sys.stdin.buffer if content is None else io.BytesIO(content)):
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    except Exception:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
