"""Tables from a process of its own (guarded.py): Parquet always, strictly, and CSV where somebody handed it in.

A Parquet file's own description is held against the limits before a value is unpacked: a few kilobytes can stand for
billions of rows.  A file that lies about it meets the memory limit of the process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from dpgrams_core.content import ContentDigest
from dpgrams_core.datasets.file_access import LocalFile
from dpgrams_core.datasets.guarded import Answer, child, exactly
from dpgrams_core.datasets.table_reader import Column, Limits, Table, check_names, check_size, make_table

_DAMAGED = {
    "parquet": "The Parquet file is damaged or not complete, or unpacks to too much. Save it again and try again.",
    "csv": "The file could not be read within the limits of this server. Save fewer rows or columns and try again.",
}


def read_in_child(
    source: bytes | BinaryIO, limits: Limits, local: LocalFile | None = None, form: str = "parquet"
) -> Table:
    """Read a Parquet file (or "csv"), from bytes or from an open file; see ``read_table``.

    Of a local file no number is held.
    """
    with child(form, source, limits, _DAMAGED[form]) as (told, answer):
        rows, columns = _facts(told)
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
        tuple(str(note) for note in told.get("notes", ())),
        identity=digest.finish([name for name in numeric if name not in empty], names),
        read_again=None if local is None else functools.partial(local.columns, read=read),
    )


def _columns(file: BinaryIO, limits: Limits, places: list[int], rows: int) -> list[np.ndarray]:
    """Some columns of a file that was read before."""
    values = [np.empty(rows) for _ in places]
    with child("parquet", file, limits, _DAMAGED["parquet"], places=places) as (told, answer):
        if _facts(told)[0] != rows:
            raise EOFError
        for begin, piece in _pieces(answer, len(places), rows):
            _put(values, begin, piece)
    return values


def _put(values: Iterable[np.ndarray], begin: int, piece: np.ndarray) -> None:
    for array, column in zip(values, piece, strict=True):
        array[begin : begin + len(column)] = column


def _facts(told: dict[str, Any]) -> tuple[int, list[Column]]:
    """The number of rows, and the columns by the types that the file states."""
    return int(told["rows"]), [Column(str(name), str(kind)) for name, kind in told["columns"]]


def _pieces(answer: Answer, n_columns: int, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The pieces, each with its first row and as an array (columns, rows of the piece)."""
    begin = 0
    while count := int.from_bytes(exactly(answer, 8), "little"):
        if begin + count > rows:
            raise EOFError
        yield begin, np.frombuffer(exactly(answer, 8 * count * n_columns), dtype="<f8").reshape(n_columns, count)
        begin += count
    if n_columns and begin != rows:
        raise EOFError
