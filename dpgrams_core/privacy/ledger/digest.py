"""What the ledger knows a data set by: digests of its numbers and traces of it, the same in any file format.

There are two digests.  The *content* is coarse: tables that agree to about seven digits share it, and with it a budget,
which is safe.  What was released is shown again on an *exact* match only: of all digits that a double has, and of the
names of all columns.  The words in columns of text are read nowhere, so they are in neither.
The traces (overlap.py) tell that a table overlaps another one though both digests differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpgrams_core.privacy.ledger.overlap import MOST_SORTED, Layout, Traces, Tracing, hashed_cells, mixed

Array = np.ndarray
ROWS_AT_ONCE = 32_768
NUMBERS_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False, repr=False)
class Identity:
    """What a table is known by. All of it could be guessed by trying tables, so the ledger keys it before it writes."""

    content: bytes
    exact: bytes
    traces: Traces


class ContentDigest:
    """The identity of a table that comes in pieces of rows; it holds few rows, so the table may be of any length.

    A column without any value changes no sum: whether a column is one is known only at the end of a file.

    The content: every number is rounded to 32 bits and mixed to 64, a row is the mixed sum of its numbers, and the rows
    are summed, twice, in 64 bits.  So sorting, renaming columns, another delimiter or CSV instead of Parquet give the
    same one.  Rounding is what makes the last one true: a format or a program may keep the last digits of a number or
    not.  Two different tables share it only where they agree to about seven digits everywhere (numbers beyond 3.4e38
    count as infinite and those below 1e-45 as zero), or by an accident of 128-bit sums.  A changed, added or removed
    number gives another.  So does a column of numbers that a Parquet file keeps as text: it has no numbers there, and
    has them in CSV.

    The exact digest: a row is BLAKE2b of the names of the columns that it has a value in, sorted, and of those values
    as doubles; the rows are summed modulo 2**512, so their order does not matter and each of several equal ones counts.
    The sorted names of all columns go with the sum, those of text and without a value too.  Not covered are the cells
    of text, and whole numbers beyond 2**53 by what a double does not tell apart: files that differ in these alone are
    the same file here.  Two tables share it by an accident of more than 200 bits.  Sums of hashes can be made to agree
    on purpose, with much work, by someone who makes up both tables; he then gets to see a release that he paid for
    himself.  To match a table of someone else he would have to know that table's digest, which is written down nowhere.

    Both are sums over rows, so a table in several files has the same ones as in a single file, whatever the order of
    the files: each file has a digest of its own, and they are merged.  ``keys`` and ``most_sorted``: see ``Tracing``.
    """

    def __init__(self, keys: Mapping[str, Layout] | None = None, most_sorted: int = MOST_SORTED) -> None:
        self._rows = 0
        self._sums = [0, 0]
        self._exact = 0
        self._tracing = Tracing(keys, most_sorted)
        self._waiting: list[Mapping[str, Array]] = []

    def add(self, columns: Mapping[str, Array]) -> None:
        """Add a piece: an array (rows,) for the name of every column, NaN where a value is missing."""
        if self._waiting and list(self._waiting[0]) != list(columns):
            self.settle()
        for begin in range(0, _rows(columns), ROWS_AT_ONCE):  # what is made of a piece is larger than the piece
            self._waiting.append({name: array[begin : begin + ROWS_AT_ONCE] for name, array in columns.items()})
            rows = sum(_rows(piece) for piece in self._waiting)
            if rows >= ROWS_AT_ONCE or rows * len(columns) >= NUMBERS_AT_ONCE:
                self.settle()

    @property
    def keys(self) -> Mapping[str, Layout] | None:
        """What the first rows tell of the columns; nothing until there are enough of them."""
        return self._tracing.keys

    def merge(self, later: ContentDigest) -> None:
        """Take in the digest of other rows of the same table."""
        self.settle()
        later.settle()
        self._rows += later._rows
        self._sums = [(own + other) % 2**64 for own, other in zip(self._sums, later._sums, strict=True)]
        self._exact = (self._exact + later._exact) % 2**512
        self._tracing.merge(later._tracing)

    def settle(self) -> None:
        """Take in what is waiting, all at once (small pieces would take far longer); no row is held then."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        columns = {name: np.concatenate([piece[name] for piece in waiting]) for name in waiting[0]}
        cells = {name: hashed_cells(numbers) for name, numbers in columns.items()}
        total = np.zeros(_rows(columns), dtype=np.uint64)
        for hashes in cells.values():
            total += hashes
        first = mixed(total)
        for number, row in enumerate((first, mixed(first))):
            self._sums[number] = (self._sums[number] + int(row.sum(dtype=np.uint64))) % 2**64
        self._rows += len(total)
        self._exact += _exact_sum(columns)
        self._tracing.add(columns, cells)

    def finish(self, names: list[str], of_all: Sequence[str] | None = None) -> Identity:
        """What all pieces are known by; ``names`` are the columns that have a value, ``of_all`` are those of the file.

        Without the latter the table has no others.
        """
        self.settle()
        in_file = json.dumps(sorted(names if of_all is None else of_all))
        return Identity(
            content=hashlib.sha256(f"{self._rows}x{len(names)};{self._sums[0]},{self._sums[1]}".encode()).digest(),
            exact=hashlib.sha256(f"{self._rows} rows;{self._exact % 2**512};{in_file}".encode()).digest(),
            traces=self._tracing.finish(names),
        )


def identity_of(columns: Mapping[str, Array]) -> Identity:
    """What a table of numbers is known by, whatever the order of its rows and columns.

    >>> one = identity_of({"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])})
    >>> other = identity_of({"b": np.array([4.0, 3.0]), "a": np.array([2.0, 1.0])})
    >>> renamed = identity_of({"a": np.array([1.0, 2.0]), "c": np.array([3.0, 4.0])})
    >>> one.exact == other.exact, one.exact == renamed.exact, one.content == renamed.content
    (True, False, True)
    """
    digest = ContentDigest()
    digest.add(columns)
    return digest.finish(list(columns))


def _rows(columns: Mapping[str, Array]) -> int:
    return len(next(iter(columns.values()), ()))


def _exact_sum(columns: Mapping[str, Array]) -> int:
    """The sum of the hashes of rows, each of its values and of the names of the columns that they are in."""
    names = sorted(columns)
    table = np.empty((_rows(columns), len(names)), dtype="<f8")
    for place, name in enumerate(names):
        table[:, place] = columns[name]
    table += 0.0  # -0.0 becomes 0.0
    missing = np.isnan(table)
    patterns, kinds = missing[:1], np.zeros(len(table), dtype=np.intp)
    if missing.any():  # sorted by which values are missing
        patterns, kinds = np.unique(missing, axis=0, return_inverse=True)
        table = table[np.argsort(kinds.ravel(), kind="stable")]
    total = begin = 0
    for pattern, count in zip(patterns, np.bincount(kinds.ravel()).tolist(), strict=True):
        has = [name for name, gone in zip(names, pattern, strict=True) if not gone]
        head = hashlib.sha256(json.dumps(has).encode()).digest()
        content = table[begin : begin + count, ~pattern].tobytes()
        begin += count
        size = 8 * len(has)
        for place in range(0, len(content), size) if has else ():  # a row without a value is counted, and has no more
            total += int.from_bytes(hashlib.blake2b(head + content[place : place + size]).digest(), "little")
    return total
