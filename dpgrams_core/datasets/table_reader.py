"""A user's file to a table, strictly: each thing that can be wrong has one sentence and a way forward.

What is said about a file (that it can be read and how it is written, names and kinds of its columns, the number of
rows) is for the person who holds the file and is treated as public.  No sentence repeats a cell.
Errors of the libraries under this file may quote cells, so they are replaced, never passed on.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dpgrams_core.content import Identity, identity_of
from dpgrams_core.datasets.file_access import LocalFile, reading
from dpgrams_core.errors import DataError

MEGABYTE = 1_000_000
LONGEST_NAME = 100
# What is written for a missing cell, in lower case; these words are no column names either.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing", "?", ".", "-")
_NUMBER_WORDS = ("inf", "infinity", "true", "false")
# First bytes of what people upload by mistake.
_SIGNATURES = (
    (b"PK\x03\x04", "is a zip archive or an Excel workbook", "Open it and save the sheet as CSV (UTF-8)."),
    (b"PK\x05\x06", "is an empty zip archive", "Pack it out and choose the CSV or Parquet file in it."),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook", "Open it and save the sheet as CSV (UTF-8)."),
    (b"\x1f\x8b", "is compressed (gzip)", "Unpack it and choose the file inside."),
    (b"BZh", "is compressed (bzip2)", "Unpack it and choose the file inside."),
    (b"\xfd7zXZ", "is compressed (xz)", "Unpack it and choose the file inside."),
    (b"\x28\xb5\x2f\xfd", "is compressed (zstandard)", "Unpack it and choose the file inside."),
    (b"%PDF", "is a PDF document", "Choose a CSV or Parquet file instead."),
    (b"\x89PNG", "is a picture", "Choose a CSV or Parquet file instead."),
    (b"\xff\xd8\xff", "is a picture", "Choose a CSV or Parquet file instead."),
    (b"SQLite format 3", "is a database", "Export the table as CSV or Parquet."),
    (b"ARROW1", "is an Arrow (Feather) file", "Save it as Parquet."),
    (b"{\\rtf", "is a text document with formatting", "Save the table as CSV (UTF-8)."),
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large a file may be. ``None`` means no bound, for the owner of the machine."""

    max_bytes: int | None = 200 * MEGABYTE
    max_rows: int | None = 5_000_000
    max_numbers: int | None = 20_000_000  # 160 MB, for as long as the session has the file
    max_columns: int = 1_000

    @classmethod
    def of_owner(cls) -> Limits:
        """For a file on the owner's own machine: any size, since only the columns that are picked are held."""
        return cls(max_bytes=None, max_rows=None, max_numbers=None)


@dataclass(frozen=True)
class Column:
    """A column's public facts. ``kind``: numeric, text, mixed, commas, signs, empty, or nested."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A file as read. Its public facts are what it prints; the numbers stay inside.

    ``values`` has one array (n,) for each numeric column, NaN where a cell is missing; it is empty for a file on this
    machine, whose columns are read again when they are picked.  ``identity`` is what the ledger knows all of them by,
    whatever the order of columns is (see content.py).
    """

    columns: tuple[Column, ...]
    n_rows: int
    notes: tuple[str, ...] = ()
    values: dict[str, np.ndarray] = field(repr=False)
    identity: Identity = field(repr=False)
    read_again: Callable[[Sequence[str]], list[np.ndarray]] | None = field(default=None, repr=False)

    def numbers(self, names: Sequence[str]) -> list[np.ndarray]:
        """The numeric columns of these names, read-only; of a local file they must fit into memory."""
        if self.read_again is not None:
            return self.read_again(names)
        return [self.values[name] for name in names]

    @property
    def content(self) -> bytes:
        """The digest that the budget belongs to."""
        return self.identity.content

    @property
    def numeric(self) -> tuple[str, ...]:
        """The names of the columns that can be picked."""
        return tuple(column.name for column in self.columns if column.kind == "numeric")

    @property
    def facts(self) -> dict[str, object]:
        """What may be shown before anything is released: names, which are numeric, and the row count."""
        return {
            "columns": tuple(column.name for column in self.columns),
            "numeric": self.numeric,
            "rows": self.n_rows,
            "treated as public": "the column names, which of them are numeric, and the number of rows",
        }


def read_table(source: bytes | str | os.PathLike[str], name: str = "", limits: Limits | None = None) -> Table:
    """Read CSV or Parquet, from bytes or from a path.

    Parameters
    ----------
    source : the content of the file, or where it is.
    name : of the file, to say so where its ending does not fit its content; taken from a path.
    limits : see :class:`Limits`; those of an upload where none are given.

    Examples
    --------
    >>> table = read_table(b"age;town\\n" + b"31;here\\n42;there\\n" * 10, "people.csv")
    >>> table.n_rows, table.numeric, table.notes
    (20, ('age',), ('The columns are separated by semicolons.',))
    """
    limits = Limits() if limits is None else limits
    with reading():
        if isinstance(source, bytes):
            return _read(io.BytesIO(source), len(source), name, limits)
        path = Path(source)
        if not path.is_file():
            raise DataError("There is no such file. Check the name and the folder.")
        with path.open("rb") as file:
            return _read(file, path.stat().st_size, path.name, limits, LocalFile(path, file))


def read_handed_in(content: bytes, name: str, limits: Limits) -> Table:
    """What ``read_table`` gives, of a file that somebody handed in: no byte of it is parsed in this process.

    Call it within ``reading``.
    """
    return _read(io.BytesIO(content), len(content), name, limits, None, True)


def _read(
    file: BinaryIO, size: int, name: str, limits: Limits, local: LocalFile | None = None, guarded: bool = False
) -> Table:
    from dpgrams_core.datasets.csv_reader import read_csv
    from dpgrams_core.datasets.parquet_reader import read_in_child

    if size == 0:
        raise DataError("The file is empty. Choose one with a row of column names and rows of numbers.")
    if limits.max_bytes is not None and size > limits.max_bytes:
        raise DataError(
            f"The file has {size / MEGABYTE:,.1f} MB, and at most {limits.max_bytes / MEGABYTE:,.0f} MB are taken. "
            "Save fewer rows or columns, or ask the owner of this machine to open it as a local file."
        )
    start = file.read(16)
    file.seek(0)
    ending = Path(name).suffix.lower()
    if start.startswith(b"PAR1"):
        if ending in (".csv", ".tsv", ".txt"):
            raise DataError("The file is called a text file but holds Parquet. Rename it to end in .parquet.")
        return read_in_child(file.getvalue() if isinstance(file, io.BytesIO) else file, limits, local)
    for signature, what, way in _SIGNATURES:
        if start.startswith(signature):
            raise DataError(f"The file {what}, not CSV or Parquet. {way}")
    if ending in (".parquet", ".pq"):
        raise DataError("The file is called Parquet but does not begin like one. Save it again, or choose a CSV file.")
    if guarded and isinstance(file, io.BytesIO):
        return read_in_child(file.getvalue(), limits, form="csv")
    return read_csv(file, limits, local)


def make_table(
    columns: Sequence[Column],
    values: dict[str, np.ndarray],
    n_rows: int,
    notes: tuple[str, ...] = (),
    identity: Identity | None = None,
    read_again: Callable[[Sequence[str]], list[np.ndarray]] | None = None,
) -> Table:
    """A table once its columns are read, refused where nothing in it can be used; its identity where it is known."""
    if n_rows == 0:
        raise DataError("The file has column names but no rows. Choose one with data in it.")
    if not any(column.kind == "numeric" for column in columns):
        reasons = [REASONS[column.kind] for column in columns if column.kind in ("commas", "signs", "mixed")]
        if reasons:
            raise DataError(f"No column is numeric: one {reasons[0]}")
        lone = (
            " Only one column was found: separate columns by commas, semicolons or tabs." if len(columns) == 1 else ""
        )
        raise DataError(f"No column holds numbers only. Choose a file with at least one numeric column.{lone}")
    for array in values.values():
        array.setflags(write=False)
    return Table(
        columns=tuple(columns),
        n_rows=n_rows,
        notes=notes,
        values=values,
        identity=identity_of(values, [column.name for column in columns]) if identity is None else identity,
        read_again=read_again,
    )


def check_size(rows: int, numeric_columns: int, limits: Limits) -> None:
    """Refuse a table that is too large, as soon as it is known to be."""
    if limits.max_rows is not None and rows > limits.max_rows:
        raise DataError(f"The file has more than {limits.max_rows:,} rows. Save fewer rows and choose it again.")
    if limits.max_numbers is not None and rows * numeric_columns > limits.max_numbers:
        raise DataError(
            f"The file has more than {limits.max_numbers:,} numbers. Save only the columns that you need and try again."
        )


# Why a column that is not numeric cannot be picked, after "The column … ".
REASONS = {
    "text": "holds text. Pick a numeric column, or replace the words by numbers in the file.",
    "mixed": "holds text among its numbers. Correct or empty those cells in the file and choose it again.",
    "commas": "has commas or blanks inside its numbers. Write plain numbers with a decimal point in the file.",
    "signs": "has signs beside its numbers, such as a currency or per cent. Write plain numbers in the file.",
    "empty": "has no value in any row. Pick another column.",
    "nested": "holds lists or records, not numbers. Pick another column, or flatten it in the file.",
}


def check_names(names: Sequence[str], limits: Limits) -> None:
    """Refuse what cannot be column names, without repeating it: it may be the first row of the data.

    >>> check_names(["age", "income"], Limits())
    """
    if len(names) > limits.max_columns:
        raise DataError(
            f"The file has {len(names):,} columns, and at most {limits.max_columns:,} are taken. Save fewer columns."
        )
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError(f"Column {number} has no name. Give every column a name in the first row.")
        if _is_data(name):
            raise DataError(
                f"The first row does not look like column names (see column {number}). Put a first row with a name for "
                "each column, each beginning with a letter."
            )
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise DataError(
                f"The name of column {number} is too long or has unprintable characters. Give it a short plain name."
            )
        if name in first:
            raise DataError(f"Columns {first[name]} and {number} have the same name. Give each column its own name.")
        first[name] = number


def _is_data(name: str) -> bool:
    """Whether a name may be a cell of data: it does not begin with a letter, or is read as a number or as missing."""
    word = name.strip().lower()
    begins = word.lstrip("_")[:1]
    return not begins.isalpha() or word in MISSING_WORDS or word in _NUMBER_WORDS
