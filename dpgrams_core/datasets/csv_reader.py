"""CSV, strictly: the text is checked first, then read in pieces with every cell as text, and numbers are made here.

Nothing is guessed but the separator, which is said.  Arrow reads the rows; what it says about a bad row quotes the row,
so only the number of bad rows is kept.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv

from dpgrams_core.content import ContentDigest
from dpgrams_core.datasets.csv_text import SEPARATORS, check_text, read_header
from dpgrams_core.datasets.file_access import LocalFile
from dpgrams_core.datasets.table_reader import MISSING_WORDS, Column, Limits, Table, check_names, check_size, make_table
from dpgrams_core.errors import DataError

PIECE = 4_194_304  # a longer row is refused
_NUMBER = r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_PLAIN = rf"^[+-]?{_NUMBER}$"
_COMMAS = r"^[+-]?\d+([,'_ \x{00a0}\x{2009}\x{202f}]\d+)+(\.\d+)?$|^[+-]?\d+(\.\d{3})+,\d+$"
_SIGNS = rf"^[+-]?[^\w\s.,+-]\s?[+-]?{_NUMBER}$|^[+-]?{_NUMBER}\s?[^\w\s.,+-]$|^\({_NUMBER}\)$"


@dataclass(frozen=True)
class _Layout:
    """Where the rows of a file are, and how their cells are told apart."""

    names: list[str]
    separator: str
    begin: int
    end: int  # of the last row that is not blank


def read_csv(file: BinaryIO, limits: Limits, local: LocalFile | None = None) -> Table:
    """Read a CSV file from its beginning; see ``read_table``. Of a local file no number is held."""
    breaks, end = check_text(file)
    names, separator, begin = read_header(file)
    check_names(names, limits)
    layout = _Layout(names, separator, begin, end)
    cells = [_Cells(hold=local is None) for _ in names]
    digest = ContentDigest()
    n_rows = 0
    for piece in _pieces(file, layout):
        n_rows += piece.num_rows
        arrays = [cell.add(column) for cell, column in zip(cells, piece.columns, strict=True)]
        check_size(n_rows, sum(not cell.reason for cell in cells), limits)  # once it is known which are no numbers
        digest.add({name: array for name, array in zip(names, arrays, strict=True) if array is not None})
    columns = [Column(name, cell.kind) for name, cell in zip(names, cells, strict=True)]
    numeric = [column.name for column in columns if column.kind == "numeric"]
    if any(cell.late for cell in cells):  # numbers were added that turned out to be in a column of text
        digest = ContentDigest()
        for piece in _pieces(file, layout, numeric):
            digest.add({name: _numbers(column) for name, column in zip(numeric, piece.columns, strict=True)})

    def read(again: BinaryIO, picked: Sequence[str]) -> list[np.ndarray]:
        return _columns(again, layout, picked, n_rows)

    return make_table(
        columns,
        {column.name: cell.taken() for column, cell in zip(columns, cells, strict=True) if column.kind == "numeric"}
        if local is None
        else {},
        n_rows,
        _notes(layout, breaks - n_rows),
        identity=digest.finish(numeric, names),
        read_again=None if local is None else functools.partial(local.columns, read=read),
    )


def _notes(layout: _Layout, blank_lines: int) -> tuple[str, ...]:
    """What was guessed or left out. In one column a blank line is a missing value, and is counted with those."""
    if len(layout.names) == 1:
        return ()
    notes = []
    if layout.separator != ",":
        notes.append(f"The columns are separated by {SEPARATORS[layout.separator]}.")
    if blank_lines > 0:
        notes.append("1 blank line was skipped." if blank_lines == 1 else f"{blank_lines:,} blank lines were skipped.")
    return tuple(notes)


def _columns(file: BinaryIO, layout: _Layout, names: Sequence[str], n_rows: int) -> list[np.ndarray]:
    """Some columns of a file that was read before."""
    values = [np.empty(n_rows) for _ in names]
    done = 0
    for piece in _pieces(file, layout, names):
        for array, column in zip(values, piece.columns, strict=True):
            array[done : done + piece.num_rows] = _numbers(column)
        done += piece.num_rows
    if done != n_rows:
        raise ValueError("fewer or more rows than before")
    return values


@dataclass(eq=False)
class _Cells:
    """One column while it is read: how many numbers it has, and they themselves if held, or why it is not numeric."""

    hold: bool
    pieces: list[np.ndarray] = field(default_factory=list)
    reason: str = ""
    numbers: int = 0
    late: bool = False  # whether it was known not to be numeric only after numbers were taken from it

    @property
    def kind(self) -> str:
        return self.reason or ("numeric" if self.numbers else "empty")

    def add(self, cells: Any) -> np.ndarray | None:
        """Add the cells of one piece, an Arrow array of text; its numbers, none where the column is not numeric."""
        if self.reason:
            return None
        try:
            piece = _numbers(cells)
        except pa.ArrowInvalid:  # its message quotes the cell
            self.reason, self.late = _why(_known(cells), self.numbers), self.numbers > 0
            self.pieces.clear()
            return None
        self.numbers += int(np.count_nonzero(~np.isnan(piece)))
        if self.hold:
            self.pieces.append(piece)
        return piece

    def taken(self) -> np.ndarray:
        """All its numbers as one array; the pieces go, since both would be twice the memory."""
        whole = np.concatenate(self.pieces)
        self.pieces.clear()
        return whole


def _known(cells: Any) -> Any:
    """Cells without the blanks around them, and none where one is missing."""
    words = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(pc.utf8_lower(words), value_set=pa.array(MISSING_WORDS))
    return pc.if_else(missing, pa.scalar(None, pa.string()), words)


def _numbers(cells: Any) -> np.ndarray:
    """Cells as numbers, NaN where one is missing; Arrow's error where one is no number."""
    return pc.cast(_known(cells), pa.float64()).to_numpy(zero_copy_only=False)


def _why(words: Any, numbers_before: int) -> str:
    """Why not all of these words are numbers."""
    present = words.drop_null()

    def matching(pattern: str) -> Any:
        return pc.match_substring_regex(present, pattern)

    plain = pc.or_(matching(_PLAIN), matching(r"(?i)^[+-]?inf(inity)?$"))
    commas, signs = matching(_COMMAS), matching(_SIGNS)
    if pc.all(pc.or_(plain, commas)).as_py():
        return "commas"
    if pc.all(pc.or_(plain, signs)).as_py():
        return "signs"
    return "mixed" if numbers_before or pc.any(plain).as_py() else "text"


class _Rows(io.RawIOBase):
    """The part of a file that holds the rows."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        self._file, self._end = file, end
        file.seek(begin)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))


def _pieces(file: BinaryIO, layout: _Layout, wanted: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows in pieces, Arrow batches with every cell as text; of the wanted columns in their order, or of all."""
    bad_rows = 0

    def skip(_: Any) -> str:
        nonlocal bad_rows
        bad_rows += 1
        return "skip"

    names = [str(place) for place in range(len(layout.names))]  # Arrow gets no name of the file
    picked = names if wanted is None else [str(layout.names.index(name)) for name in wanted]
    try:
        yield from arrow_csv.open_csv(
            pa.PythonFile(_Rows(file, layout.begin, layout.end), mode="r"),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=PIECE),
            parse_options=arrow_csv.ParseOptions(
                delimiter=layout.separator,
                newlines_in_values=True,
                invalid_row_handler=skip,
                ignore_empty_lines=len(names) > 1,  # in one column an empty line is an empty cell
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=picked,
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise DataError(
                "The rows could not be told apart, which often comes from quotation marks that do not fit. Save the "
                "file again as CSV (UTF-8), or as Parquet."
            ) from None
    if bad_rows:
        what = "1 row has" if bad_rows == 1 else f"{bad_rows:,} rows have"
        raise DataError(
            f"{what} more or fewer cells than there are column names. Correct the rows, or the separator, in the file."
        )
