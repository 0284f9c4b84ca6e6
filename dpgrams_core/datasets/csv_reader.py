"""CSV, strictly: the text is checked first, then read in pieces with every cell as text, and numbers are made here.

Nothing is guessed but the separator, which is said.  Arrow reads the rows; what it says about a bad row quotes the row,
so only the number of bad rows is kept.
"""

from __future__ import annotations

import codecs
import csv
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv

from dpgrams_core.datasets.table_reader import MISSING_WORDS, Column, Limits, Table, check_names, make_table
from dpgrams_core.errors import DataError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
PIECE = 4_194_304
LONGEST_LINE = 1_048_576
_BOM = codecs.BOM_UTF8
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NUMBER = r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_PLAIN = rf"^[+-]?{_NUMBER}$"
_COMMAS = r"^[+-]?\d+([,'_ \x{00a0}\x{2009}\x{202f}]\d+)+(\.\d+)?$|^[+-]?\d+(\.\d{3})+,\d+$"
_SIGNS = rf"^[+-]?[^\w\s.,+-]\s?[+-]?{_NUMBER}$|^[+-]?{_NUMBER}\s?[^\w\s.,+-]$|^\({_NUMBER}\)$"


def read_csv(file: BinaryIO, limits: Limits) -> Table:
    """Read a CSV file from its beginning; see :func:`dpgrams_core.datasets.table_reader.read_table`."""
    check_text(file)
    names, separator, begin = read_header(file)
    check_names(names, limits)
    cells = [_Cells() for _ in names]
    n_rows = _fill(file, begin, separator, cells, limits)
    columns = [Column(name, cell.kind) for name, cell in zip(names, cells, strict=True)]
    values = {
        column.name: np.concatenate(cell.pieces)
        for column, cell in zip(columns, cells, strict=True)
        if column.kind == "numeric"
    }
    notes = () if separator == "," or len(names) == 1 else (f"The columns are separated by {SEPARATORS[separator]}.",)
    return make_table(columns, values, n_rows, notes)


def check_text(file: BinaryIO) -> None:
    """Refuse what is not UTF-8 text, or text with a quotation mark that is never closed."""
    start = file.read(4096)
    if start.startswith(_UTF16) or _looks_utf16(start):
        raise DataError("The file is UTF-16 text. Save it as UTF-8 (in Excel: “CSV UTF-8”).")
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = 0
    while piece := file.read(PIECE):
        if b"\0" in piece:
            raise DataError("The file is binary, not text. Choose a CSV (UTF-8) or Parquet file.")
        try:
            decoder.decode(piece)
        except UnicodeDecodeError:
            raise _not_utf8() from None
        quotes += piece.count(b'"')
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise _not_utf8() from None
    if quotes % 2:
        raise DataError("A quotation mark is opened and never closed. Correct it in the file and choose it again.")


def _not_utf8() -> DataError:
    return DataError(
        "The file is not UTF-8 text; it may be Latin-1 or Windows text. Save it as UTF-8 (in Excel: “CSV UTF-8”)."
    )


def _looks_utf16(start: bytes) -> bool:
    """Every other byte of plain text in UTF-16 is zero."""
    even, odd = start[0::2], start[1::2]
    return len(start) >= 8 and max(even.count(0) / len(even), odd.count(0) / len(odd)) > 0.9 > start.count(0) / len(
        start
    )


def read_header(file: BinaryIO) -> tuple[list[str], str, int]:
    """The names in the first row that is not blank, the separator, and where the data begin."""
    file.seek(0)
    start = file.read(LONGEST_LINE)
    begin = len(_BOM) if start.startswith(_BOM) else 0
    while start[begin : begin + 1] in (b"\n", b"\r"):
        begin += 1
    ends = [at for at in (start.find(mark, begin) for mark in (b"\n", b"\r")) if at >= 0]
    if not ends and len(start) == LONGEST_LINE:
        raise DataError("The first line is too long for a row of column names. Check that this is a CSV file.")
    end = min(ends, default=len(start))
    line = start[begin:end].decode("utf-8", errors="replace")
    if not line.strip():
        raise DataError("The file is blank. Choose one with a row of column names and rows of numbers.")
    if line.lower().startswith("sep="):
        raise DataError("The first line is Excel's mark for the separator. Delete that line and choose the file again.")
    marks = [separator for separator in SEPARATORS if separator in line] or [","]
    found = {separator: _split(line, separator) for separator in marks}
    separator = max(found, key=lambda mark: len(found[mark]))  # the first of equals
    if not found[separator]:
        raise DataError("The quotation marks in the first row do not fit. Correct the column names.")
    return [name.strip() for name in found[separator]], separator, min(end + 1, len(start))


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line, none where its quotation marks do not fit this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return []


@dataclass(eq=False)
class _Cells:
    """One column while it is read: its numbers so far, or why it is not numeric."""

    pieces: list[np.ndarray] = field(default_factory=list)
    reason: str = ""
    numbers: int = 0

    @property
    def kind(self) -> str:
        return self.reason or ("numeric" if self.numbers else "empty")

    def add(self, cells: Any) -> None:
        """Add the cells of one piece, an Arrow array of text."""
        if self.reason:
            return
        words = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(pc.utf8_lower(words), value_set=pa.array(MISSING_WORDS))
        known = pc.if_else(missing, pa.scalar(None, pa.string()), words)
        try:
            numbers = pc.cast(known, pa.float64())
        except pa.ArrowInvalid:  # its message quotes the cell
            self.reason = _why(known, self.numbers)
            self.pieces.clear()
            return
        piece = numbers.to_numpy(zero_copy_only=False)
        self.numbers += int(np.count_nonzero(~np.isnan(piece)))
        self.pieces.append(piece)


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


def _fill(file: BinaryIO, begin: int, separator: str, cells: list[_Cells], limits: Limits) -> int:
    """Read all rows into the columns; the number of rows."""
    bad_rows = 0

    def skip(_: Any) -> str:
        nonlocal bad_rows
        bad_rows += 1
        return "skip"

    names = [str(number) for number in range(len(cells))]
    file.seek(begin)
    rows = 0
    try:
        reader = arrow_csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=PIECE),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
        for piece in reader:
            rows += piece.num_rows
            check_size(rows, sum(not cell.reason for cell in cells), limits)
            for cell, column in zip(cells, piece.columns, strict=True):
                cell.add(column)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return _checked(0, bad_rows)
        raise DataError(
            "The rows could not be told apart, which often comes from quotation marks that do not fit. Save the file "
            "again as CSV (UTF-8), or as Parquet."
        ) from None
    return _checked(rows, bad_rows)


def _checked(rows: int, bad_rows: int) -> int:
    if bad_rows:
        what = "1 row has" if bad_rows == 1 else f"{bad_rows:,} rows have"
        raise DataError(
            f"{what} more or fewer cells than there are column names. Correct the rows, or the separator, in the file."
        )
    return rows


def check_size(rows: int, numeric_columns: int, limits: Limits) -> None:
    """Refuse a table that is too large, as soon as it is known to be."""
    if limits.max_rows is not None and rows > limits.max_rows:
        raise DataError(f"The file has more than {limits.max_rows:,} rows. Save fewer rows and choose it again.")
    if limits.max_numbers is not None and rows * numeric_columns > limits.max_numbers:
        raise DataError(
            f"The file has more than {limits.max_numbers:,} numbers. Save only the columns that you need and try again."
        )
