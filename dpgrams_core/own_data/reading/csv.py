"""CSV, strictly: the text is checked first, then read in pieces with every cell as text, and numbers are made here.

Nothing is guessed but the separator, which is said.  Arrow reads the rows; what it says about a bad row quotes the row,
so only the number of bad rows is kept.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv

from dpgrams_core.model.errors import DataError
from dpgrams_core.own_data.reading.table import MISSING_WORDS, Limits, check_names, check_size

# The text of a CSV file before its rows are read: whether it is text at all, its column names and its separator.

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
LONGEST_LINE = 1_048_576
_BOM = codecs.BOM_UTF8
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_text(file: BinaryIO) -> tuple[int, int]:
    """Refuse what is not UTF-8 text, or text with a quotation mark that is never closed.

    Returns the number of line breaks outside quotation marks and before the end, and the end: that of the last line
    that is not blank.
    """
    start = file.read(4096)
    if start.startswith(_UTF16) or _looks_utf16(start):
        raise DataError("The file is UTF-16 text. Save it as UTF-8 (in Excel: “CSV UTF-8”).")
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = breaks = later_breaks = place = end = 0
    last = b""
    while piece := file.read(PIECE):
        if b"\0" in piece:
            raise DataError("The file is binary, not text. Choose a CSV (UTF-8) or Parquet file.")
        _decode(decoder, piece)
        lines = piece.rstrip(b"\r\n")
        if lines:
            breaks += later_breaks + _breaks(lines, quotes % 2, last)
            later_breaks, end = 0, place + len(lines)
            quotes += lines.count(b'"')
            last = lines[-1:]
        if not quotes % 2:
            later_breaks += _breaks(piece[len(lines) :], 0, last)
        place += len(piece)
        last = piece[-1:]
    _decode(decoder, b"", final=True)
    if quotes % 2:
        raise DataError("A quotation mark is opened and never closed. Correct it in the file and choose it again.")
    return breaks, end


def _breaks(text: bytes, quoted: int, before: bytes) -> int:
    """The line breaks in a text outside quotation marks; it begins inside of them if ``quoted``, after ``before``."""
    outside = b"".join(text.split(b'"')[quoted::2])
    pairs = outside.count(b"\r\n") + (before == b"\r" and outside.startswith(b"\n") and not quoted)
    return outside.count(b"\n") + outside.count(b"\r") - pairs


def _decode(decoder: codecs.IncrementalDecoder, piece: bytes, final: bool = False) -> None:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        raise DataError(
            "The file is not UTF-8 text; it may be Latin-1 or Windows text. Save it as UTF-8 (in Excel: “CSV UTF-8”)."
        ) from None


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
    end += 2 if start[end : end + 2] == b"\r\n" else 1
    return [name.strip() for name in found[separator]], separator, min(end, len(start))


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line, none where its quotation marks do not fit this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return []


PIECE = 4_194_304  # a longer row is refused
_NUMBER = r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_PLAIN = rf"^[+-]?{_NUMBER}$"
_COMMAS = r"^[+-]?\d+([,'_ \x{00a0}\x{2009}\x{202f}]\d+)+(\.\d+)?$|^[+-]?\d+(\.\d{3})+,\d+$"
_SIGNS = rf"^[+-]?[^\w\s.,+-]\s?[+-]?{_NUMBER}$|^[+-]?{_NUMBER}\s?[^\w\s.,+-]$|^\({_NUMBER}\)$"


@dataclass(frozen=True)
class Layout:
    """Where the rows of a file are, and how their cells are told apart."""

    names: list[str]
    separator: str
    begin: int
    end: int  # of the last row that is not blank


def read_facts(file: BinaryIO, limits: Limits) -> tuple[dict[str, Any], Layout]:
    """Public facts of a CSV file, read from its beginning, and where its numbers are; none of them is held."""
    breaks, end = check_text(file)
    names, separator, begin = read_header(file)
    check_names(names, limits)
    layout = Layout(names, separator, begin, end)
    reasons: dict[int, str] = {}  # why a column is not numeric
    numbers, rows = [0] * len(names), 0
    for piece in _pieces(file, layout, names):
        rows += piece.num_rows
        for place, cells in enumerate(piece.columns):
            if place in reasons:
                continue
            try:
                numbers[place] += int(np.count_nonzero(~np.isnan(_numbers(cells))))
            except pa.ArrowInvalid:  # its message quotes the cell
                reasons[place] = _why(_known(cells), numbers[place])
        check_size(rows, len(names) - len(reasons), limits)
    kinds = [reasons.get(place, "numeric" if count else "empty") for place, count in enumerate(numbers)]
    columns = [list(pair) for pair in zip(names, kinds, strict=True)]
    return {"columns": columns, "rows": rows, "notes": _notes(layout, breaks - rows)}, layout


def read_numbers(file: BinaryIO, layout: Layout, names: Sequence[str]) -> Iterator[list[np.ndarray]]:
    """Numeric columns of a file whose facts were read, in pieces."""
    for piece in _pieces(file, layout, names) if names else ():
        yield [_numbers(cells) for cells in piece.columns]


def _notes(layout: Layout, blank_lines: int) -> tuple[str, ...]:
    """What was guessed or left out. In one column a blank line is a missing value, and is counted with those."""
    if len(layout.names) == 1:
        return ()
    notes = []
    if layout.separator != ",":
        notes.append(f"The columns are separated by {SEPARATORS[layout.separator]}.")
    if blank_lines > 0:
        notes.append("1 blank line was skipped." if blank_lines == 1 else f"{blank_lines:,} blank lines were skipped.")
    return tuple(notes)


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


def _pieces(file: BinaryIO, layout: Layout, wanted: Sequence[str]) -> Iterator[Any]:
    """The rows in pieces, Arrow batches with every cell as text; of the wanted columns in their order."""
    bad_rows = 0

    def skip(_: Any) -> str:
        nonlocal bad_rows
        bad_rows += 1
        return "skip"

    names = [str(place) for place in range(len(layout.names))]  # Arrow gets no name of the file
    picked = [str(layout.names.index(name)) for name in wanted]
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
