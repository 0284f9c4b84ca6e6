"""Parquet, strictly, and in a process of its own (parquet_child.py): a damaged file or a bomb ends that process only.

The file's own description is held against the limits before a value is unpacked: a few kilobytes can stand for billions
of rows.  A file that lies about it meets the memory limit of the process.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from dpgrams_core.content import ContentDigest
from dpgrams_core.datasets.file_access import LocalFile
from dpgrams_core.datasets.table_reader import Column, Limits, Table, check_names, check_size, make_table
from dpgrams_core.errors import DataError

CHILD = Path(__file__).with_name("parquet_child.py")
WAIT_SECONDS = 120.0  # for a file within limits
LONGEST_FACTS = 100_000_000
_DAMAGED = "The Parquet file is damaged or not complete, or unpacks to too much. Save it again and choose it again."


def read_parquet(source: bytes | BinaryIO, limits: Limits, local: LocalFile | None = None) -> Table:
    """Read a Parquet file, from bytes or from an open file; see ``read_table``. Of a local file no number is held."""
    with _child(source, limits) as answer:
        rows, columns = _facts(answer)
        names = [column.name for column in columns]
        check_names(names, limits)
        numeric = [column.name for column in columns if column.kind == "numeric"]
        check_size(rows, len(numeric), limits)
        values = {name: np.empty(rows) for name in numeric} if local is None else {}
        known = np.zeros(len(numeric), dtype=bool)
        digest = ContentDigest()
        for begin, piece in _pieces(answer, len(numeric), rows):
            digest.add(dict(zip(numeric, piece, strict=True)))
            known |= ~np.isnan(piece).all(axis=1)
            if values:
                _put(values.values(), begin, piece)
    empty = {name for name, any_value in zip(numeric, known, strict=True) if not any_value}

    def read(file: BinaryIO, picked: Sequence[str]) -> list[np.ndarray]:
        return _columns(file, limits, [names.index(name) for name in picked], rows)

    return make_table(
        [Column(column.name, "empty") if column.name in empty else column for column in columns],
        {name: array for name, array in values.items() if name not in empty},
        rows,
        identity=digest.finish([name for name in numeric if name not in empty]),
        read_again=None if local is None else functools.partial(local.columns, read=read),
    )


def _columns(file: BinaryIO, limits: Limits, places: list[int], rows: int) -> list[np.ndarray]:
    """Some columns of a file that was read before."""
    values = [np.empty(rows) for _ in places]
    with _child(file, limits, places) as answer:
        if _facts(answer)[0] != rows:
            raise DataError(_DAMAGED)
        for begin, piece in _pieces(answer, len(places), rows):
            _put(values, begin, piece)
    return values


def _put(values: Iterable[np.ndarray], begin: int, piece: np.ndarray) -> None:
    for array, column in zip(values, piece, strict=True):
        array[begin : begin + len(column)] = column


@contextmanager
def _child(source: bytes | BinaryIO, limits: Limits, places: Sequence[int] = ()) -> Iterator[IO[bytes]]:
    """What the process says about the file, to be read to its end; a sentence where it ends before that."""
    words = [str(number or 0) for number in (limits.max_rows, limits.max_numbers, limits.max_columns, *places)]
    process = subprocess.Popen(
        [sys.executable, "-I", str(CHILD), *words],
        stdin=subprocess.PIPE if isinstance(source, bytes) else source,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a library's last words may quote the file
    )
    alarm = threading.Timer(WAIT_SECONDS, process.kill)
    alarm.daemon = True
    if limits.max_numbers is not None:
        alarm.start()
    with process:
        assert process.stdout is not None
        try:
            if isinstance(source, bytes) and process.stdin is not None:
                with suppress(BrokenPipeError), process.stdin as to_child:  # where it has ended, its answer says so
                    to_child.write(source)
            yield process.stdout
            if process.wait() != 0:
                raise DataError(_DAMAGED)
        finally:
            alarm.cancel()
            process.kill()


def _facts(answer: IO[bytes]) -> tuple[int, list[Column]]:
    """The number of rows, and the columns by the types that the file states."""
    try:
        facts = json.loads(answer.readline(LONGEST_FACTS))
        return int(facts["rows"]), [Column(str(name), str(kind)) for name, kind in facts["columns"]]
    except (ValueError, TypeError, KeyError):
        raise DataError(_DAMAGED) from None


def _pieces(answer: IO[bytes], n_columns: int, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The pieces, each with its first row and as an array (columns, rows of the piece)."""
    begin = 0
    while count := int.from_bytes(_exactly(answer, 8), "little"):
        if begin + count > rows:
            raise DataError(_DAMAGED)
        yield begin, np.frombuffer(_exactly(answer, 8 * count * n_columns), dtype="<f8").reshape(n_columns, count)
        begin += count
    if n_columns and begin != rows:
        raise DataError(_DAMAGED)


def _exactly(answer: IO[bytes], size: int) -> bytes:
    """So many bytes; fewer are the end of a process that failed."""
    content = answer.read(size)
    if len(content) < size:
        raise DataError(_DAMAGED)
    return content
