"""A table as CSV that a spreadsheet reads as numbers and text, and never as a formula."""

from __future__ import annotations

import re
from numbers import Real
from typing import Any

import pandas as pd

# What makes a spreadsheet compute (OWASP, "CSV injection"), with the full-width signs that some take for the same.
_FORMULA = re.compile(r"((?:^|[;\t\r\n|])[\s\ufeff\u200b]*)(?=[=+\-@＝＋－＠])")
_LEADING = ("\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def table_csv(frame: pd.DataFrame) -> bytes:
    """The table as CSV: UTF-8 with a byte order mark, numbers in full, text that cannot become a formula.

    The mark is what makes spreadsheets read Greek letters; ``pandas.read_csv`` drops it by itself.  Text that a
    spreadsheet would compute gets an apostrophe in front, in the header too; so does text after a semicolon, tab
    or line break within a cell, since a spreadsheet of another country splits there.  Numbers stay numbers.
    """
    safe = frame.map(_cell).set_axis([_cell(name) for name in frame.columns], axis=1)
    # The two signs of a line's end, so that a lone carriage return in a cell is quoted, too.
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def _cell(value: Any) -> str:
    """One cell: a number as its shortest exact text, nothing for a missing one, other text made safe."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return ""
    return str(value) if isinstance(value, Real) else safe_text(str(value))


def safe_text(text: str) -> str:
    """Text that no spreadsheet computes; a written number is left as it is."""
    if _NUMBER.fullmatch(text):
        return text
    safe = _FORMULA.sub(r"\1'", text)
    return "'" + safe if safe.startswith(_LEADING) else safe
