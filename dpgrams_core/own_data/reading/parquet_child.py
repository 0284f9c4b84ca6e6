"""The part of the Parquet reader that runs in a process of its own (guarded_child.py).

Arrow aborts on some damaged files, and a file may unpack to far more memory than it says; a process that serves other
people must survive both.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyarrow import parquet, types

NUMBERS_AT_ONCE = 262_144
ROWS_OF_RUNS_AT_ONCE = 10_000
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the numbers of a frame's rows, which are no data
# Of the texts of a results file: all different ones together, and all as often as they stand in its rows.
LONGEST_TEXTS, LONGEST_ROWS_OF_TEXT = 4_000_000, 50_000_000
RUNS_FACTS = b"dpgrams_sweep"  # the place of a results file's own facts in its metadata
RUNS_TYPES = {"text": "<i4", "whole": "<i8", "number": "<f8"}  # how a value of a column is sent


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
    source = _opened(file)
    fields = [item for item in source.schema_arrow if not PANDAS_INDEX.fullmatch(item.name)]
    names, rows = [item.name for item in fields], source.metadata.num_rows
    facts = {"columns": [[item.name, kind_of(item.type)] for item in fields], "rows": rows}
    numeric = [item.name for item in fields if kind_of(item.type) == "numeric"]
    too_large = (max_rows and rows > max_rows) or (max_numbers and rows * len(numeric) > max_numbers)
    if too_large or len(names) > max_columns or len(set(names)) < len(names):
        return facts, iter(())  # refused by the other side, by these facts
    return facts, _pieces(source, numeric if wanted is None else [names[place] for place in wanted])


def _opened(file: BinaryIO, **more: Any) -> Any:
    return parquet.ParquetFile(
        file,
        thrift_string_size_limit=10_000_000,
        thrift_container_size_limit=1_000_000,
        pre_buffer=False,
        page_checksum_verification=True,  # where the file has checksums
        buffer_size=2**20,  # otherwise all that a group of rows has of a column is read at once
        **more,
    )


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


def read_runs(file: BinaryIO, max_rows: int, max_numbers: int, max_columns: int) -> Iterator[Any]:
    """The answer for a results file: a line of JSON, then for every column which rows have a value, and the values.

    The line has the number of rows, the columns with their kinds ("text", "whole" or "number"), the different texts of
    each column of text, and the file's own facts.  A text is given as its place among those, in four bytes; numbers
    take eight.  A text that stands in many rows is so never unpacked more than once.
    """
    schema, rows = _opened(file).schema_arrow, 0
    kinds = {item.name: _kind_of_runs(item.type) for item in schema}
    if len(kinds) < len(schema):
        raise ValueError("two columns of one name")
    texts = [name for name, kind in kinds.items() if kind == "text"]
    source = _opened(file, read_dictionary=texts)
    stated = source.metadata.num_rows
    facts = {"rows": stated, "columns": list(kinds.items())}
    if stated > max_rows or len(kinds) > max_columns or stated * len(kinds) > max_numbers:
        yield json.dumps(facts).encode() + b"\n"  # refused by the other side, by these facts
        return
    known: dict[str, dict[str, int]] = {name: {} for name in texts}
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in kinds}
    longest = 0
    for batch in source.iter_batches(batch_size=ROWS_OF_RUNS_AT_ONCE, use_threads=False):
        if batch.schema.names != list(kinds):
            raise ValueError("other columns than were asked for")
        rows += batch.num_rows
        for (name, kind), column in zip(kinds.items(), batch.columns, strict=True):
            if kind == "text":
                column, length = _numbered(column, known[name])
                longest += length
            else:
                column = column.cast(pa.int64() if kind == "whole" else pa.float64())
            values = column.fill_null(0).to_numpy(zero_copy_only=False)
            parts[name].append((column.is_valid().to_numpy(zero_copy_only=False), values))
        different = sum(len(word) for words in known.values() for word in words)
        if longest > LONGEST_ROWS_OF_TEXT or different > LONGEST_TEXTS:
            raise ValueError("too much text")
    if rows != stated:
        raise ValueError("fewer or more rows than the file states")
    own = (schema.metadata or {}).get(RUNS_FACTS, b"{}").decode()
    yield json.dumps({**facts, "texts": {name: list(words) for name, words in known.items()}, "facts": own}).encode()
    yield b"\n"
    for name, kind in kinds.items():
        for known_rows, _ in parts[name]:
            yield np.ascontiguousarray(known_rows, dtype=np.bool_).data
        for _, values in parts[name]:
            yield np.ascontiguousarray(values, dtype=RUNS_TYPES[kind]).data


def _kind_of_runs(arrow_type: Any) -> str:
    if types.is_string(arrow_type):
        return "text"
    if types.is_integer(arrow_type):
        return "whole"
    if types.is_floating(arrow_type):
        return "number"
    raise ValueError("a results file has no other columns")


def _numbered(column: Any, known: dict[str, int]) -> tuple[Any, int]:
    """A column of text as places among the known texts, which grow; and the length of all its rows."""
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.dictionary.nbytes > LONGEST_TEXTS:
        raise ValueError("too much text")
    words = column.dictionary.to_pylist()
    places = pa.array([None if word is None else known.setdefault(word, len(known)) for word in words], pa.int32())
    lengths = pa.array([0 if word is None else len(word) for word in words], pa.int64())
    total = pc.sum(lengths.take(column.indices)).as_py() or 0
    return places.take(column.indices), total
