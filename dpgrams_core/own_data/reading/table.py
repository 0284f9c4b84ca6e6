"""A user's file to a table, strictly: each thing that can be wrong has one sentence and a way forward.

What is said about a file (that it can be read and how it is written, names and kinds of its columns, the number of
rows) is for the person who holds the file and is treated as public.  No sentence repeats a cell.
Errors of the libraries under this file may quote cells, so they are replaced, never passed on.

Parquet is always read in a process of its own (guarded.py), and CSV where somebody handed it in.  A Parquet file's own
description is held against the limits before a value is unpacked: a few kilobytes can stand for billions of rows.  A
file that lies about it meets the memory limit of the process.
"""

from __future__ import annotations

import functools
import io
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from dpgrams_core.model.errors import DataError
from dpgrams_core.model.progress import Worker, here
from dpgrams_core.own_data.reading.guarded import Answer, child
from dpgrams_core.privacy.ledger.digest import ContentDigest, Identity

if TYPE_CHECKING:
    from dpgrams_core.own_data.reading.csv import Layout

Array = np.ndarray
AnyFacts = TypeVar("AnyFacts", bound="Facts")
Pieces = Iterable[Sequence[Array] | Array]  # of each piece of rows its columns
FILES_AT_ONCE = 2
LONGEST_WAIT = 180.0  # seconds
_at_once = threading.BoundedSemaphore(FILES_AT_ONCE)
MEGABYTE = 1_000_000
PART_MEMORY = 3 * 2**29  # addresses of the process: its libraries and one piece
LONGEST_NAME = 100
# What is written for a missing cell, in lower case; these words are no column names either.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing", "?", ".", "-")
_NUMBER_WORDS = ("inf", "infinity", "true", "false")
# First bytes of what people upload by mistake, by what to do about it.
_SIGNATURES = {
    "Open it and save the sheet as CSV (UTF-8).": {
        b"PK\x03\x04": "is a zip archive or an Excel workbook",
        b"\xd0\xcf\x11\xe0": "is an old Excel workbook",
    },
    "Pack it out and choose the CSV or Parquet file in it.": {b"PK\x05\x06": "is an empty zip archive"},
    "Unpack it and choose the file inside.": {
        b"\x1f\x8b": "is compressed (gzip)",
        b"BZh": "is compressed (bzip2)",
        b"\xfd7zXZ": "is compressed (xz)",
        b"\x28\xb5\x2f\xfd": "is compressed (zstandard)",
    },
    "Choose a CSV or Parquet file instead.": {
        b"%PDF": "is a PDF document",
        b"\x89PNG": "is a picture",
        b"\xff\xd8\xff": "is a picture",
    },
    "Export the table as CSV or Parquet.": {b"SQLite format 3": "is a database"},
    "Save it as Parquet.": {b"ARROW1": "is an Arrow (Feather) file"},
    "Save the table as CSV (UTF-8).": {b"{\\rtf": "is a text document with formatting"},
}
_DAMAGED = {
    "parquet": "The Parquet file is damaged or not complete, or unpacks to too much. Save it again and try again.",
    "csv": "The file could not be read within the limits of this server. Save fewer rows or columns and try again.",
}


def do_nothing() -> None:
    """What is done while waiting where nobody is told."""


@contextmanager
def reading(waiting: Callable[[], None] = do_nothing) -> Iterator[None]:
    """While a file is read: the next ones wait, since reading takes memory, and every error becomes a sentence.

    ``waiting`` is called from time to time until the file's turn has come; what it raises ends the wait.
    """
    latest = time.monotonic() + LONGEST_WAIT
    while not _at_once.acquire(timeout=0.3):
        if time.monotonic() > latest:
            raise DataError("Too many files are being read here at the moment. Try again in a few minutes.")
        waiting()
    try:
        try:
            yield
        except DataError:
            raise
        except OSError:
            raise DataError("The file could not be opened. Check that it is a file and may be read.") from None
        except MemoryError:
            raise DataError("The file does not fit into memory. Save fewer rows or columns and try again.") from None
        except Exception:  # a parser's own error may quote the file; it must not travel on
            raise DataError("The file could not be read. Save it again as CSV (UTF-8) or Parquet.") from None
    finally:
        _at_once.release()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large a file may be. ``None`` means no bound, for the owner of the machine."""

    max_bytes: int | None = 200 * MEGABYTE
    max_rows: int | None = 5_000_000
    max_numbers: int | None = 20_000_000  # 160 MB, for as long as the session has the file
    max_columns: int = 1_000
    max_memory: int | None = None  # of the process that unpacks a file of any size

    @classmethod
    def of_owner(cls) -> Limits:
        """For a file on the owner's own machine: any size, since only the columns that are picked are held."""
        return cls(max_bytes=None, max_rows=None, max_numbers=None)

    @classmethod
    def of_part(cls) -> Limits:
        """For one file of a folder: any size as well, unpacked within a bound on memory, since no column is held."""
        return replace(cls.of_owner(), max_memory=PART_MEMORY)


@dataclass(frozen=True)
class Column:
    """A column's public facts. ``kind``: numeric, text, mixed, commas, signs, empty, or nested."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """Public facts of a table."""

    columns: tuple[Column, ...]
    n_rows: int
    notes: tuple[str, ...] = ()

    @property
    def numeric(self) -> tuple[str, ...]:
        """The names of the columns that can be picked."""
        return tuple(column.name for column in self.columns if column.kind == "numeric")


@dataclass(frozen=True, kw_only=True, eq=False)
class FileFacts(Facts):
    """Public facts of one file of a folder, and where its rows are if it is CSV."""

    path: Path
    layout: Layout | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Facts):
    """A file as read. Its public facts are what it prints; the numbers stay inside.

    ``values`` has one array (n,) for each numeric column, NaN where a cell is missing; it is empty for a file on this
    machine, whose columns are read again when they are picked.  ``identity`` is what the ledger knows all of them by,
    whatever the order of columns is (see digest.py).
    """

    values: dict[str, np.ndarray] = field(repr=False)
    identity: Identity = field(repr=False)
    read_again: Callable[..., list[np.ndarray]] | None = field(default=None, repr=False)

    def numbers(self, names: Sequence[str], worker: Worker = here) -> list[np.ndarray]:
        """The numeric columns of these names, read-only; of a local file they must fit into memory."""
        if self.read_again is not None:
            return self.read_again(names, worker=worker)
        return [self.values[name] for name in names]

    @property
    def content(self) -> bytes:
        """The digest that the budget belongs to."""
        return self.identity.content


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
        with _opened(Path(source)) as (file, size):
            return _read(file, size, file.name, limits, LocalFile(Path(source), file))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    if not path.is_file():
        raise DataError("There is no such file. Check the name and the folder.")
    with path.open("rb") as file:
        yield file, path.stat().st_size


def look_at(path: Path, limits: Limits) -> FileFacts:
    """Public facts of one file of a folder.  Of Parquet no number is unpacked; CSV is looked through once."""
    from dpgrams_core.own_data.reading.csv import read_facts

    with reading(), _opened(path) as (file, size):
        layout = None
        if _form(file, size, path.name, limits) == "parquet":
            with child("parquet", file, limits, _DAMAGED["parquet"], places=[]) as (told, answer):
                answer.exactly(8)
        else:
            told, layout = read_facts(file, limits)
        names = [str(name) for name, _ in told["columns"]]
        check_names(names, limits)
        columns = tuple(Column(name, str(kind)) for name, (_, kind) in zip(names, told["columns"], strict=True))
        return usable(FileFacts(columns=columns, n_rows=int(told["rows"]), path=path, layout=layout))


def part_numbers(facts: FileFacts, limits: Limits) -> Generator[dict[str, Array], None, None]:
    """The numeric columns of a file whose facts are known, in pieces of rows: one pass, and no piece is held."""
    from dpgrams_core.own_data.reading.csv import read_numbers

    numeric, done = facts.numeric, 0
    with reading(), _opened(facts.path) as (file, _):
        names = [column.name for column in facts.columns]
        for piece in (
            _from_child(file, names, numeric, facts.n_rows, limits)
            if facts.layout is None
            else read_numbers(file, facts.layout, numeric)
        ):
            done += len(piece[0])
            yield dict(zip(numeric, piece, strict=True))
        if done != facts.n_rows:
            raise DataError("The file was changed while it was read.")


def read_handed_in(content: bytes, name: str, limits: Limits) -> Table:
    """What ``read_table`` gives, of a file that somebody handed in: no byte of it is parsed in this process.

    Call it within ``reading``.
    """
    return _read(io.BytesIO(content), len(content), name, limits, None, True)


def _read(
    file: BinaryIO, size: int, name: str, limits: Limits, local: LocalFile | None = None, guarded: bool = False
) -> Table:
    from dpgrams_core.own_data.reading.csv import read_facts, read_numbers

    form = _form(file, size, name, limits)
    if form == "parquet" or (guarded and isinstance(file, io.BytesIO)):
        return _read_in_child(form, file.getvalue() if isinstance(file, io.BytesIO) else file, limits, local)
    facts, layout = read_facts(file, limits)
    read = functools.partial(read_numbers, layout=layout)
    return usable(make_table(facts, functools.partial(read, file), limits, local, read))


def _form(file: BinaryIO, size: int, name: str, limits: Limits) -> str:
    """Whether a file is "parquet" or "csv"; what is neither, or called otherwise than it is, has its sentence."""
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
        return "parquet"
    for way, known in _SIGNATURES.items():
        for signature, what in known.items():
            if start.startswith(signature):
                raise DataError(f"The file {what}, not CSV or Parquet. {way}")
    if ending in (".parquet", ".pq"):
        raise DataError("The file is called Parquet but does not begin like one. Save it again, or choose a CSV file.")
    return "csv"


def _read_in_child(form: str, source: bytes | BinaryIO, limits: Limits, local: LocalFile | None = None) -> Table:
    with child(form, source, limits, _DAMAGED[form]) as (told, answer):
        rows = int(told["rows"])
        of_file = [str(name) for name, _ in told["columns"]]
        again = functools.partial(_from_child, of_file=of_file, rows=rows, limits=limits)
        table = make_table(told, lambda names: _sent(answer, len(names), rows), limits, local, again)
    return usable(table)


def _from_child(
    file: BinaryIO, of_file: Sequence[str], names: Sequence[str], rows: int, limits: Limits
) -> Iterator[Array]:
    """Some columns of a Parquet file that was looked at before, in pieces."""
    places = [of_file.index(name) for name in names]
    with child("parquet", file, limits, _DAMAGED["parquet"], places=places) as (facts, pieces):
        if facts["rows"] != rows:
            raise EOFError
        yield from _sent(pieces, len(names), rows)


def _sent(answer: Answer, n_columns: int, rows: int) -> Iterator[Array]:
    """The pieces that a process sends, each an array (columns, rows of the piece)."""
    done = 0
    while count := int.from_bytes(answer.exactly(8), "little"):
        done += count
        if done > rows:
            raise EOFError
        yield np.frombuffer(answer.exactly(8 * count * n_columns), dtype="<f8").reshape(n_columns, count)


def make_table(
    facts: dict[str, Any],
    read: Callable[..., Pieces],
    limits: Limits,
    local: LocalFile | None = None,
    again: Callable[..., Pieces] | None = None,
) -> Table:
    """A table from the facts of a file and its numbers.

    ``facts`` are the number of rows, the columns by the types that the file states, and notes.  ``read`` gives the
    numeric columns of some ``names`` in pieces, and ``again`` those of a local file as it is opened again, of which no
    number is held.
    """
    rows, kinds = int(facts["rows"]), {str(name): str(kind) for name, kind in facts["columns"]}
    check_names([str(name) for name, _ in facts["columns"]], limits)
    numeric = [name for name, kind in kinds.items() if kind == "numeric"]
    check_size(rows, len(numeric), limits)
    values = {name: np.empty(rows) for name in numeric} if local is None else {}
    digest = ContentDigest()
    full: set[str] = set()

    def seen(pieces: Pieces) -> Pieces:
        for piece in pieces:
            digest.add(dict(zip(numeric, piece, strict=True)))
            full.update(name for name, cells in zip(numeric, piece, strict=True) if not np.isnan(cells).all())
            yield piece

    _fill(list(values.values()), seen(read(names=numeric)), rows if numeric else 0)
    kinds |= {name: "empty" for name in numeric if name not in full}
    for array in values.values():
        array.setflags(write=False)
    return Table(
        columns=tuple(Column(name, kind) for name, kind in kinds.items()),
        n_rows=rows,
        notes=tuple(map(str, facts.get("notes", ()))),
        values={name: array for name, array in values.items() if name in full},
        identity=digest.finish([name for name in numeric if name in full], list(kinds)),
        read_again=None
        if local is None or again is None
        else functools.partial(local.columns, read=functools.partial(_picked, again, rows)),
    )


def usable(table: AnyFacts) -> AnyFacts:
    """The same table, refused where nothing in it can be used."""
    if table.n_rows == 0:
        raise DataError("The file has column names but no rows. Choose one with data in it.")
    if not table.numeric:
        kinds = [column.kind for column in table.columns]
        reasons = [REASONS[kind] for kind in kinds if kind in ("commas", "signs", "mixed")]
        if reasons:
            raise DataError(f"No column is numeric: one {reasons[0]}")
        lone = " Only one column was found: separate columns by commas, semicolons or tabs." * (len(kinds) == 1)
        raise DataError(f"No column holds numbers only. Choose a file with at least one numeric column.{lone}")
    return table


def _fill(values: Sequence[Array], pieces: Pieces, rows: int) -> None:
    """Put pieces into arrays, where there are some; all rows have to come."""
    done = 0
    for piece in pieces:
        count = len(piece[0])
        for array, cells in zip(values, piece if values else (), strict=True):
            array[done : done + count] = cells
        done += count
    if done != rows:
        raise EOFError


def _picked(again: Callable[..., Pieces], rows: int, file: BinaryIO, names: Sequence[str]) -> list[Array]:
    arrays = [np.empty(rows) for _ in names]
    _fill(arrays, again(file, names=names), rows)
    return arrays


class LocalFile:
    """A file on this machine, whose columns are read when they are picked; those that were picked last are held.

    The budget belongs to the content as it was when the file was opened, so a file that changed since is refused.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._stamp = path, _stamp(file)
        self._held: dict[str, np.ndarray] = {}

    def columns(
        self, names: Sequence[str], read: Callable[[BinaryIO, Sequence[str]], list[np.ndarray]], worker: Worker = here
    ) -> list[np.ndarray]:
        """The columns of these names, read-only; a ``worker`` gets those that are not held by ``read``."""
        held = self._held
        lacking = [name for name in names if name not in held]
        if lacking:
            held = {name: held[name] for name in names if name in held}
            self._held = held  # the others go before these come
            held = held | dict(zip(lacking, self._read(lacking, read, worker), strict=True))
            self._held = held
        return [held[name] for name in names]

    def _read(self, names: list[str], read: Callable[..., list[np.ndarray]], worker: Worker) -> list[np.ndarray]:
        arrays: list[np.ndarray] = worker(_read_unchanged, self._path, self._stamp, read, names)
        for array in arrays:
            array.setflags(write=False)
        return arrays


def _read_unchanged(
    path: Path, stamp: tuple[int, ...], read: Callable[..., list[np.ndarray]], names: list[str]
) -> list[np.ndarray]:
    with reading(), path.open("rb") as file:
        for last in (False, True):
            if _stamp(file) != stamp:
                raise DataError("The file was changed after it was opened. Open it again.")
            if not last:
                arrays = read(file, names)
    return arrays


def _stamp(file: BinaryIO) -> tuple[int, ...]:
    """What differs once a file was written to or replaced."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


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
