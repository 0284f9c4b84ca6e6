"""The text of a CSV file before its rows are read: whether it is text at all, its column names and its separator."""

from __future__ import annotations

import codecs
import csv
from typing import BinaryIO

from dpgrams_core.errors import DataError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
PIECE = 4_194_304
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
        try:
            decoder.decode(piece)
        except UnicodeDecodeError:
            raise _not_utf8() from None
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
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise _not_utf8() from None
    if quotes % 2:
        raise DataError("A quotation mark is opened and never closed. Correct it in the file and choose it again.")
    return breaks, end


def _breaks(text: bytes, quoted: int, before: bytes) -> int:
    """The line breaks in a text outside quotation marks; it begins inside of them if ``quoted``, after ``before``."""
    outside = b"".join(text.split(b'"')[quoted::2])
    pairs = outside.count(b"\r\n") + (before == b"\r" and outside.startswith(b"\n") and not quoted)
    return outside.count(b"\n") + outside.count(b"\r") - pairs


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
    end += 2 if start[end : end + 2] == b"\r\n" else 1
    return [name.strip() for name in found[separator]], separator, min(end, len(start))


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line, none where its quotation marks do not fit this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return []
