"""The process that unpacks one file which somebody handed in; see guarded.py, which starts it.

It is run as a script: the file on standard input, what it should be and the limits as one argument in JSON.  The first
line of its answer is JSON: public facts of the file, or a sentence that refuses it.  Then come its numbers.  An error
ends it without a word, since a library's message may quote the file.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

SPARE_MEMORY = 2**30  # beyond the file and its numbers: the libraries and one piece of the file
_CORE = Path(__file__).parents[1]


def bind(max_numbers: int | None, size: int) -> None:
    """Bounds on what this process takes; it never writes a file, nor its memory to the disk when it crashes."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if max_numbers is not None:
        resource.setrlimit(resource.RLIMIT_AS, (SPARE_MEMORY + 16 * max_numbers + 3 * size,) * 2)


def _find_readers() -> None:
    """Make the package's readers importable without the rest of it, which would take seconds."""
    for name, folder in (("dpgrams_core", _CORE), ("dpgrams_core.datasets", _CORE / "datasets")):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def _answer(asked: dict[str, Any], file: BinaryIO) -> Iterator[Any]:
    """The parts of the answer: a first line, then what can be written as bytes."""
    from dpgrams_core.datasets import parquet_child
    from dpgrams_core.datasets.csv_reader import read_csv
    from dpgrams_core.datasets.table_reader import Limits
    from dpgrams_core.errors import DataError

    limits = Limits(**asked["limits"])
    if asked["form"] == "runs":
        yield from parquet_child.read_runs(file, limits.max_rows or 0, limits.max_numbers or 0, limits.max_columns)
        return
    if asked["form"] == "parquet":
        bounds = limits.max_rows or 0, limits.max_numbers or 0, limits.max_columns
        facts, pieces = parquet_child.read(file, *bounds, asked.get("places"))
    else:
        try:
            table = read_csv(file, limits)
        except DataError as error:
            yield _line({"refused": str(error)})
            return
        columns = [[column.name, column.kind] for column in table.columns]
        facts = {"columns": columns, "rows": table.n_rows, "notes": table.notes}
        pieces = _cut(list(table.values.values()), table.n_rows, parquet_child.NUMBERS_AT_ONCE)
    yield _line(facts)
    yield from _written(pieces)


def _line(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts).encode() + b"\n"


def _cut(arrays: list[Any], rows: int, numbers_at_once: int) -> Iterator[list[Any]]:
    at_once = max(1_024, numbers_at_once // max(1, len(arrays)))
    for begin in range(0, rows, at_once):
        yield [array[begin : begin + at_once] for array in arrays]


def _written(pieces: Iterable[Sequence[Any]]) -> Iterator[Any]:
    """Numeric columns in pieces of rows, so that neither side holds more than a piece of what is written.

    Of each piece its number of rows in eight bytes and its columns as doubles, one after the other; a piece of no rows
    is the end.
    """
    import numpy as np

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
        bind(asked["limits"]["max_numbers"], len(content or b""))
        _find_readers()
        for part in _answer(asked, sys.stdin.buffer if content is None else io.BytesIO(content)):
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    except Exception:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
