"""The part of the Parquet reader that runs in a process of its own, since a damaged file can end the process.

Arrow aborts on some damaged files, and a file may unpack to far more memory than it says; a process that serves other
people must survive both.  So this file is run as a script (it imports nothing of the package, which would take
seconds): the Parquet file on standard input, the limits as arguments, and on standard output one line of JSON with
names, kinds and the number of rows, or a problem, and then the numeric columns as doubles, one after the other.
"""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet, types

ROWS_AT_ONCE = 65_536
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the numbers of a frame's rows, which are no data
SPARE_MEMORY = 4 * 2**30  # beyond the numbers themselves: Arrow and one piece of the file


def kind_of(arrow_type: Any) -> str:
    """The kind of a column by its type."""
    if types.is_nested(arrow_type):
        return "nested"
    numeric = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type)
    return "numeric" if numeric else "text"


def read(file: BinaryIO, max_rows: int, max_numbers: int, max_columns: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Public facts and numeric columns; a limit of 0 means none. Only flat numeric columns are ever unpacked."""
    source = parquet.ParquetFile(
        file, thrift_string_size_limit=10_000_000, thrift_container_size_limit=1_000_000, pre_buffer=False
    )
    fields = [item for item in source.schema_arrow if not PANDAS_INDEX.fullmatch(item.name)]
    names, rows = [item.name for item in fields], source.metadata.num_rows
    facts = {"columns": [[item.name, kind_of(item.type)] for item in fields], "rows": rows}
    numeric = [item.name for item in fields if kind_of(item.type) == "numeric"]
    too_large = (max_rows and rows > max_rows) or (max_numbers and rows * len(numeric) > max_numbers)
    if too_large or len(names) > max_columns or len(set(names)) < len(names):
        return facts, []  # refused by the other side, by these facts
    values = [np.empty(rows) for _ in numeric]
    done = 0
    for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, columns=numeric, use_threads=False):
        if batch.schema.names != numeric:
            raise ValueError("other columns than were asked for")
        for array, column in zip(values, batch.columns, strict=True):
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            array[done : done + batch.num_rows] = numbers
        done += batch.num_rows
    if numeric and done != rows:
        raise ValueError("fewer or more rows than the file states")
    return facts, values


def main(words: list[str]) -> int:
    """Read standard input within the limits and write the answer; an error ends it without a word."""
    max_rows, max_numbers, max_columns = (int(word) for word in words)
    if max_numbers:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (SPARE_MEMORY + 16 * max_numbers,) * 2)
    file: BinaryIO = sys.stdin.buffer
    if not file.seekable():
        file = io.BytesIO(file.read())
    try:
        facts, values = read(file, max_rows, max_numbers, max_columns)
    except Exception:  # a library's message may quote the file
        return 1
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n")
    for array in values:
        sys.stdout.buffer.write(array.astype("<f8").tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
