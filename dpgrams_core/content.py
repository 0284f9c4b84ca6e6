"""What the ledger knows a data set by: a digest of its numbers, the same in any order and any file format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

Array = np.ndarray
ROWS_AT_ONCE = 65_536


class ContentDigest:
    """The digest of a table that comes in pieces of rows; it holds no row, so the table may be of any length.

    A column without any value changes nothing: whether a column is one is known only at the end of a file.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._sums = [0, 0]

    def add(self, columns: Sequence[Array]) -> None:
        """Add a piece: an array (rows,) for every column, NaN where a value is missing."""
        total = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
        for column in columns:
            total += _scattered(column)
        first = _mixed(total)
        for number, row in enumerate((first, _mixed(first))):
            self._sums[number] = (self._sums[number] + int(row.sum(dtype=np.uint64))) % 2**64
        self._rows += len(total)

    def finish(self, n_columns: int) -> bytes:
        """32 bytes for all pieces; ``n_columns`` counts the columns that have a value."""
        return hashlib.sha256(f"{self._rows}x{n_columns};{self._sums[0]},{self._sums[1]}".encode()).digest()


def content_digest(columns: Sequence[Array]) -> bytes:
    """32 bytes that stand for a table of numbers, whatever the order of its rows and columns.

    Every number is rounded to 32 bits and mixed to 64, a row is the mixed sum of its numbers, and the rows are summed,
    twice, in 64 bits.  So sorting, renaming columns, another delimiter or CSV instead of Parquet give the same digest.
    Rounding is what makes the last one true: a format or a program may keep the last digits of a number or not.  Two
    different tables share a digest only where they agree to about seven digits everywhere (numbers beyond 3.4e38 count
    as infinite and those below 1e-45 as zero), or by an accident of 128-bit sums; they then share a budget, which is
    safe.  A changed, added or removed number gives another: the digest knows a file, not the people in it.  So does a
    column of numbers that a Parquet file keeps as text: it has no numbers there, and has them in CSV.

    The digest could be guessed by trying tables, so it is never written down: the ledger keys it first.

    Examples
    --------
    >>> one = content_digest([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    >>> one == content_digest([np.array([4.0, 3.0]), np.array([2.0, 1.0])])
    True
    >>> one == content_digest([np.array([1.0, 2.0]), np.array([4.0, 3.0])])
    False
    """
    digest = ContentDigest()
    for begin in range(0, len(columns[0]) if columns else 0, ROWS_AT_ONCE):  # in pieces: a copy of all would be large
        digest.add([column[begin : begin + ROWS_AT_ONCE] for column in columns])
    return digest.finish(len(columns))


def _scattered(numbers: Array) -> Array:
    """64 mixed bits for each number as it is in 32 bits: the same for both zeros, and none set where it is missing."""
    with np.errstate(all="ignore"):  # what is too large becomes infinite, what is too small zero
        rounded = np.asarray(numbers).astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
    mixed = _mixed(rounded.view(np.uint32).astype(np.uint64))
    mixed[np.isnan(rounded)] = 0
    return mixed


def _mixed(bits: Array) -> Array:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
