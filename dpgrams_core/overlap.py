"""Whether a table overlaps another one: in most of its rows or in a column, whatever was edited around it.

A file that was changed a little (one row more, a column added, a column times two) holds the same people, so it must
not get a budget of its own.  Every table leaves *traces*: 64-bit hashes of small things that survive an edit elsewhere.

``value``   one value of a column (to 32 bits): survives rows added, removed and put in any order.
``gaps``    five neighbours among a column's sorted values, by the ratio of their gaps and by how often each occurs:
            survives a shift, a factor and a sign as well, and any order of rows.
``shape``   the same of eight neighbours with coarser ratios: for values that repeat, and where scaling rounded them.
``order``   which of some rows that follow each other has the larger value: survives every increasing or decreasing map
            of the column and a little noise, as long as the rows keep their order.
``rows``    a whole row, and a row without one of its columns: for columns whose values all repeat.

What is common proves nothing: ages are whole years in every file.  So only traces that occur once in their column are
taken, and none of a column where more than a few occur twice; such a column is alike by chance.  That settles ids that
count up, evenly spaced times, codes and years.  Of all traces the ones with the lowest hashes are kept (a bottom-k
sketch), so that the sketches of two tables can be held against each other however long the tables are.

Traces stay in memory.  What the ledger writes down are keyed hashes of them, filled up to a fixed number
(``keyed_traces``): without the ledger's key they can be held against no guess of the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
KINDS = ("value", "gaps", "shape", "order")
TRACES = 256  # of each kind and column; fewer in wide tables
WIDE, WIDE_TRACES = 32, 64
LEAST_ALIKE = 8  # traces that two tables must share, and the share of them
SHARE_ALIKE = 0.25
MOST_REPEATED = 0.05  # of the traces of a column; two unrelated ones share about twice as many
FEWEST_VALUES = 8  # a column with fewer different values has no traces
MOST_SORTED = 2**23  # numbers of a table that are held to be sorted, about 130 MB for as long as it is read
_SEEN = 1_024  # of the lowest hashes it is counted how many occur again
_LAGS, _STEPS = 6, 8  # of the order: each of 8 rows against the 6 that follow it
_WINDOWS = {"gaps": (5, 1_024), "shape": (8, 32)}  # neighbours, and into how many steps a gap's share is cut
_GOLDEN = 0.6180339887498949  # cuts no share of whole numbers: those must not fall to either side by rounding


@dataclass(frozen=True, eq=False)
class Traces:
    """The traces of one table: for every kind one array a column, and those of its rows, lowest hash first."""

    columns: tuple[str, ...]
    kinds: Mapping[str, tuple[Array, ...]]
    rows: tuple[Array, ...]


class Tracing:
    """The traces of a table that comes in pieces of rows."""

    def __init__(self) -> None:
        self._columns: dict[str, _ColumnTracing] = {}
        self._rows = _Lowest()
        self._without: dict[str, _Lowest] = {}

    def add(self, columns: Mapping[str, Array], cells: Mapping[str, Array]) -> None:
        """Add a piece: for every name its numbers (rows,), and 64 mixed bits for each of them (content.py)."""
        if not columns:
            return
        total = np.sum([cells[name] for name in columns], axis=0, dtype=np.uint64)
        self._rows.add(mixed(total))
        for name, numbers in columns.items():
            if name not in self._columns:
                self._columns[name], self._without[name] = _ColumnTracing(), _Lowest()
            self._columns[name].add(numbers, cells[name], MOST_SORTED // len(columns))
            self._without[name].add(mixed(total - cells[name]))

    def finish(self, names: Sequence[str]) -> Traces:
        """All traces; ``names`` are the columns that have a value, and the others leave none."""
        many = TRACES if len(names) <= WIDE else WIDE_TRACES
        found = [self._columns[name].finish(many) for name in names]
        rows = [self._rows.taken(many)]
        rows += [self._without[name].taken(many) for name in names] if len(names) > 1 else []
        return Traces(
            columns=tuple(names),
            kinds={kind: tuple(column[kind] for column in found) for kind in KINDS},
            rows=tuple(rows),
        )


class _Lowest:
    """The lowest different hashes of a stream, and which of them came more than once."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)

    def add(self, hashes: Array) -> None:
        if len(self._hashes) == _SEEN:  # what is above the highest kept one never comes back
            hashes = hashes[hashes <= self._hashes[-1]]
        elif len(hashes) > 64 * _SEEN:
            hashes = hashes[hashes <= np.partition(hashes, 16 * _SEEN)[16 * _SEEN]]
        ones = np.ones(len(hashes), dtype=np.int64)
        self._hashes, self._counts = _merged(
            np.concatenate([self._hashes, hashes]), np.concatenate([self._counts, ones]), _SEEN
        )

    @property
    def different(self) -> int:
        """How many there are, at most as many as are kept."""
        return len(self._hashes)

    def taken(self, most: int) -> Array:
        """The lowest that occur once, and none where too many of all occur again."""
        once = self._counts == 1
        if not len(once) or np.mean(~once) > MOST_REPEATED:
            return np.empty(0, dtype=np.uint64)
        return self._hashes[once][:most]


class _ColumnTracing:
    """One column while it is read."""

    def __init__(self) -> None:
        self._values, self._order = _Lowest(), _Lowest()
        self._last = np.empty(0)  # numbers, for windows that reach over the end of a piece
        self._sorted: tuple[Array, Array] | None = (np.empty(0), np.empty(0, dtype=np.int64))
        self._waiting: list[Array] = []

    def add(self, numbers: Array, cells: Array, most_sorted: int) -> None:
        known = np.isfinite(numbers)
        self._values.add(mixed(cells[known]))
        run = np.concatenate([self._last, numbers])
        self._order.add(_order_traces(run))
        self._last = run[-(_LAGS + _STEPS - 1) :]
        if self._sorted is None:
            return
        self._waiting.append(numbers[known])
        if sum(map(len, self._waiting)) > len(self._sorted[0]) + 65_536:  # seldom, so that sorting stays cheap
            self._sort()
        if len(self._sorted[0]) > most_sorted:
            self._sorted = None
            self._waiting.clear()

    def _sort(self) -> None:
        assert self._sorted is not None
        values, counts = self._sorted
        new = np.concatenate([np.empty(0), *self._waiting])
        self._waiting.clear()
        self._sorted = _merged(
            np.concatenate([values, new]), np.concatenate([counts, np.ones(len(new), dtype=np.int64)])
        )

    def finish(self, most: int) -> dict[str, Array]:
        found = dict.fromkeys(KINDS, np.empty(0, dtype=np.uint64))
        if self._values.different < FEWEST_VALUES:
            return found
        found["value"], found["order"] = self._values.taken(most), self._order.taken(most)
        if self._sorted is not None:
            self._sort()
            for kind, (neighbours, steps) in _WINDOWS.items():
                lowest = _Lowest()
                lowest.add(_gap_traces(*self._sorted, neighbours, steps))
                found[kind] = lowest.taken(most)
        return found


def _merged(values: Array, counts: Array, most: int | None = None) -> tuple[Array, Array]:
    """Different values in rising order with the sums of their counts; at most so many of the lowest."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    begins = np.flatnonzero(np.concatenate([np.ones(min(1, len(values)), dtype=bool), values[1:] != values[:-1]]))
    if not len(begins):
        return values, counts
    return values[begins][:most], np.add.reduceat(counts, begins)[:most]


def _gap_traces(values: Array, counts: Array, neighbours: int, steps: int) -> Array:
    """Traces of neighbours among sorted different values: the shares of their gaps, and their counts.

    Read from either end they are the same, for a column whose sign was changed.
    """
    windows = len(values) - neighbours + 1
    if windows < 1:
        return np.empty(0, dtype=np.uint64)
    with np.errstate(all="ignore"):  # gaps that are no numbers any more are left out
        gaps = np.diff(values)
        whole = values[neighbours - 1 :] - values[:windows]
        shares = [gaps[place : place + windows] / whole for place in range(neighbours - 1)]
        usable = np.isfinite(np.sum(shares, axis=0))
        cut = [np.floor(share[usable] * steps + _GOLDEN).astype(np.uint64) for share in shares]
    many = [counts[place : place + windows][usable].astype(np.uint64) for place in range(neighbours)]
    ways = []
    for gaps_read, counts_read in ((cut, many), (cut[::-1], many[::-1])):
        total = np.zeros(int(usable.sum()), dtype=np.uint64)
        for item in (*gaps_read, *counts_read):
            total = mixed(total + item)
        ways.append(total)
    return np.minimum(*ways)


def _order_traces(numbers: Array) -> Array:
    """Traces of rows that follow each other: which is larger, for each of some rows and each of the next few.

    Read the other way round they are the same, for a column whose sign was changed.
    """
    windows = len(numbers) - (_LAGS + _STEPS - 1)
    if windows < 1:
        return np.empty(0, dtype=np.uint64)
    length = len(numbers) - _LAGS
    words = np.zeros(length, dtype=np.uint64)
    for lag in range(1, _LAGS + 1):
        here, there = numbers[:length], numbers[lag : lag + length]
        words = words * np.uint64(3) + (1 + (here < there).astype(np.int8) - (here > there)).astype(np.uint64)
    total = np.zeros(windows, dtype=np.uint64)
    other = np.zeros(windows, dtype=np.uint64)
    for step in range(_STEPS):
        word = words[step : step + windows]
        total = mixed(total + word)
        other = mixed(other + (np.uint64(3**_LAGS - 1) - word))
    return np.minimum(total, other)


def mixed(bits: Array) -> Array:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    mix = bits + np.uint64(0x9E3779B97F4A7C15)
    mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mix ^ (mix >> np.uint64(31))
