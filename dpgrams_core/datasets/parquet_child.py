"""The part of the Parquet reader that runs in a process of its own, since a damaged file can end the process.

Arrow aborts on some damaged files, and a file may unpack to far more memory than it says; a process that serves other
people must survive both.  So this file is run as a script (it imports nothing of the package, which would take
seconds): the Parquet file on standard input, the limits and the wanted columns as arguments.  On standard output comes
one line of JSON with names, kinds and the number of rows, and then the numeric columns in pieces of rows, so that
neither side holds more than a piece: the piece's number of rows in eight bytes, and its columns as doubles, one after
the other.  A piece of no rows is the end.
"""

from __future__ import annotations

import functools
import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet, types

NUMBERS_AT_ONCE = 262_144
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the numbers of a frame's rows, which are no data
SPARE_MEMORY = 4 * 2**30  # beyond the numbers themselves: Arrow and one piece of the file


def kind_of(arrow_type: Any) -> str:
    """The kind of a column by its type."""
    if types.is_dictionary(arrow_type):  # a pandas category; its numbers are numbers in a file
        return kind_of(arrow_type.value_type)
    if types.is_nested(arrow_type):
        return "nested"
    numeric = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type)
    return "numeric" if numeric else "text"


def doubles(column: Any) -> np.ndarray:
    """A numeric Arrow array as doubles, each as it would be read from a CSV file; NaN where a value is missing.

    Short floats and decimals go by their text, 0.1 and not 0.10000000149: otherwise the last digits, and with them the
    digest of the file's content, would depend on the format of the file.
    """
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_float16(column.type):
        halves = column.cast(pa.float32()).to_numpy(zero_copy_only=False).astype(np.float16)
        return _doubles_of_halves()[halves.view(np.uint16)]
    if types.is_float32(column.type) or types.is_decimal(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


@functools.cache
def _doubles_of_halves() -> np.ndarray:
    """For all 65,536 numbers of 16 bits the double with the shortest text; Arrow's own text of them is a long one."""
    return np.array([float(str(half)) for half in np.arange(2**16, dtype=np.uint16).view(np.float16)])


def read(
    file: BinaryIO, max_rows: int, max_numbers: int, max_columns: int, wanted: list[int] | None = None
) -> tuple[dict[str, Any], Iterator[list[np.ndarray]]]:
    """Public facts, and the numeric columns in pieces; a limit of 0 means none.

    ``wanted`` are the places of the columns that are unpacked, all numeric ones by default.  No other is ever unpacked.
    """
    source = parquet.ParquetFile(
        file,
        thrift_string_size_limit=10_000_000,
        thrift_container_size_limit=1_000_000,
        pre_buffer=False,
        buffer_size=2**20,  # otherwise all that a group of rows has of a column is read at once
    )
    fields = [item for item in source.schema_arrow if not PANDAS_INDEX.fullmatch(item.name)]
    names, rows = [item.name for item in fields], source.metadata.num_rows
    facts = {"columns": [[item.name, kind_of(item.type)] for item in fields], "rows": rows}
    numeric = [item.name for item in fields if kind_of(item.type) == "numeric"]
    too_large = (max_rows and rows > max_rows) or (max_numbers and rows * len(numeric) > max_numbers)
    if too_large or len(names) > max_columns or len(set(names)) < len(names):
        return facts, iter(())  # refused by the other side, by these facts
    return facts, _pieces(source, numeric if wanted is None else [names[place] for place in wanted])


def _pieces(source: Any, names: list[str]) -> Iterator[list[np.ndarray]]:
    done = 0
    at_once = max(1_024, NUMBERS_AT_ONCE // max(1, len(names)))
    for batch in source.iter_batches(batch_size=at_once, columns=names, use_threads=False):
        if batch.schema.names != names:
            raise ValueError("other columns than were asked for")
        done += batch.num_rows
        yield [doubles(column) for column in batch.columns]
    if names and done != source.metadata.num_rows:
        raise ValueError("fewer or more rows than the file states")


def main(words: list[str]) -> int:
    """Read standard input within the limits and write the answer; an error ends it without a word."""
    max_rows, max_numbers, max_columns = (int(word) for word in words[:3])
    wanted = [int(word) for word in words[3:]] or None
    if max_numbers:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (SPARE_MEMORY + 16 * max_numbers,) * 2)
    file: BinaryIO = sys.stdin.buffer
    try:
        if not file.seekable():
            file = io.BytesIO(file.read())
        facts, pieces = read(file, max_rows, max_numbers, max_columns, wanted)
        sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n")
        for piece in pieces:
            if piece and len(piece[0]):
                sys.stdout.buffer.write(len(piece[0]).to_bytes(8, "little"))
            for column in piece:
                sys.stdout.buffer.write(np.ascontiguousarray(column, dtype="<f8").data)
        sys.stdout.buffer.write(bytes(8))
        sys.stdout.buffer.flush()
    except Exception:  # a library's message may quote the file
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
