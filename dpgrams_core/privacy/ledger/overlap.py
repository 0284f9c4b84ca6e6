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
taken, and none of a column where more than a few occur twice; such a column is alike by chance.  That settles codes,
years and whatever is rounded far.  Ids that count up and evenly spaced times are told by their gaps, which repeat;
their values are no traces, alone or in rows.  Neither are those of a column by which a table is laid out, such as year
and month or person and visit: sorted, repeating, or with each value equally often.  Of all traces the ones with the
lowest hashes are kept (a bottom-k sketch), in that order, which is the same for all tables.  So two tables are held
against each other up to the last trace that they share, however much longer one of them is.

Traces stay in memory.  What the ledger writes down are keyed hashes of them, filled up to a fixed number
(``KeyedTraces``): without the ledger's key they can be held against no guess of the data.

What this cannot notice is told to users (``BLIND_SPOT`` of book.py); beyond that: columns mixed with each other, the
same people measured again, and, where a table has more than eight million different numbers, a shift or a factor once
its rows are in another order.  (In a folder of more than eight million numbers: where one file has more than 262,144
different ones.)
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
# The kinds of traces, and how many of those that are kept two tables must share.  An edit elsewhere takes some of all
# but the first and last, which unrelated tables of few rows are the likelier to share some of.
SHARES = {"value": 0.35, "gaps": 0.25, "shape": 0.25, "order": 0.25, "rows": 0.35}
KINDS = ("value", "gaps", "shape", "order")  # of columns
TRACES = 240  # of each kind and column that are kept; fewer where a table is wide
FEWER_TRACES = {8: 64, 32: 16}  # with more columns than this
LEAST_ALIKE = 8  # and at least so many traces
MOST_REPEATED = 0.05  # of the traces of a column; two unrelated ones have about twice as many in common
FEWEST_VALUES = 8  # a column with fewer different values leaves no traces but of its order
LAID_OUT = 0.98  # of the rows of a column that is sorted or repeats
EVENLY = 0.15  # how much the counts of its values vary where they are nearly equal; 1 where they are left to chance
MOST_SORTED = 2**23  # numbers of a table that are held to be sorted, about 130 MB for as long as it is read
_AT_ONCE = 2**17  # sorted numbers
_SEEN = 1_024  # of the lowest hashes it is counted how many occur again
_LAGS, _STEPS = 6, 8  # of the order: each of 8 rows against the 6 that follow it
_WINDOWS = {"gaps": (5, 1_024), "shape": (8, 32)}  # neighbours, and into how many steps a gap's share is cut
_GOLDEN = 0.6180339887498949  # cuts no share of whole numbers: those must not fall to either side by rounding
_FACTOR = np.uint64(0x9E6C63D0876A9A47)  # odd, of no meaning
_STORED_BYTES = 4


@dataclass(frozen=True, eq=False)
class Traces:
    """The traces of one table: for every kind one array a column, and those of its rows, lowest hash first."""

    columns: tuple[str, ...]
    kinds: Mapping[str, tuple[Array, ...]]
    rows: tuple[Array, ...]


@dataclass(frozen=True)
class Alike:
    """In what a table overlaps another: names of its own columns, and whether in its rows."""

    columns: tuple[str, ...] = ()
    rows: bool = False

    def __bool__(self) -> bool:
        return self.rows or bool(self.columns)

    def __or__(self, other: Alike) -> Alike:
        return Alike(tuple(dict.fromkeys(self.columns + other.columns)), self.rows or other.rows)


class KeyedTraces:
    """The traces of a table under a secret key, as they may be written down and held against other tables.

    >>> numbers = np.random.default_rng(0).normal(size=500)
    >>> def keyed(**columns):
    ...     tracing = Tracing()
    ...     tracing.add(columns)
    ...     return KeyedTraces(tracing.finish(list(columns)), b"key")
    >>> earlier = keyed(age=numbers).text()
    >>> keyed(born=2000 - 2 * numbers[1:], other=np.ones(499)).alike(earlier).columns
    ('born',)
    >>> bool(keyed(age=np.random.default_rng(1).normal(size=500)).alike(earlier))
    False
    """

    def __init__(self, traces: Traces, key: bytes) -> None:
        self._columns, self._key = traces.columns, key
        self._many = _many(len(traces.columns))
        self._kinds = [[self._keyed(kind, found) for found in traces.kinds[kind]] for kind in KINDS]
        self._rows = [self._keyed("rows", found) for found in traces.rows]
        self._all = [*(array for kind in self._kinds for array in kind), *self._rows]

    def _keyed(self, kind: str, traces: Array) -> Array:
        hashes = [_short_hash(self._key, f"{kind} {trace}") for trace in traces.tolist()]
        return np.frombuffer(b"".join(hashes), dtype="<u4")

    def text(self) -> str:
        """What the ledger writes down: as much for every table of so many columns, whatever the numbers in it are.

        Places without a trace are filled with other keyed hashes; no other table has the same ones.
        """
        origin = hashlib.sha256(b"".join(array.tobytes() for array in self._all)).hexdigest()
        parts = [
            array.tobytes()
            + b"".join(_short_hash(self._key, f"no trace {origin} {number} {k}") for k in range(len(array), self._many))
            for number, array in enumerate(self._all)
        ]
        return f"{len(self._columns)}:{base64.b64encode(b''.join(parts)).decode()}"

    def alike(self, stored: str) -> Alike:
        """In what this table overlaps the one whose traces were written down as this text."""
        columns, _, text = stored.partition(":")
        families = np.frombuffer(base64.b64decode(text), dtype="<u4")
        families = families.reshape((len(KINDS) + 1) * int(columns) + 1, -1)  # earlier versions wrote fewer of each
        if np.isin(np.concatenate(self._all), families.ravel()).sum() < LEAST_ALIKE:  # nearly all pairs of tables
            return Alike()
        by_kind = families[: len(KINDS) * int(columns)].reshape(len(KINDS), int(columns), -1)
        found = [
            name
            for place, name in enumerate(self._columns)
            if any(
                _common(own[place], other, kind)
                for kind, own, others in zip(KINDS, self._kinds, by_kind, strict=True)
                for other in others
            )
        ]
        others = families[len(KINDS) * int(columns) :]
        rows = any(_common(own, other, "rows") for own in self._rows for other in others)
        return Alike(tuple(found), rows)


def _common(traces: Array, stored: Array, kind: str) -> bool:
    """Whether two tables share enough traces, as far as both reach: up to the last that they share.

    Both are in one order, so what stands before it is all that either has up to there.  A part of a table, whose traces
    reach further than those of the whole, has all of its own in it.  Neighbours and orders do not outlast that, and
    smooth columns share some by chance, so of those a share of all is asked for.
    """
    places = np.flatnonzero(np.isin(traces, stored))
    if len(places) < LEAST_ALIKE:
        return False
    reach = min(len(traces), len(stored))
    if kind in ("value", "rows"):
        reach = min(places[-1], np.flatnonzero(stored == traces[places[-1]])[0]) + 1
    return bool(len(places) >= SHARES[kind] * reach)


def _many(columns: int) -> int:
    return min([TRACES, *(many for most, many in FEWER_TRACES.items() if columns > most)])


def _short_hash(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode(), key=key, digest_size=_STORED_BYTES).digest()


class Tracing:
    """The traces of a table that comes in pieces of rows; large pieces are faster.

    ``keys`` are those of the first piece where this is a later part of the table, and ``most_sorted`` is how many
    numbers are held to be sorted.
    """

    def __init__(self, keys: Mapping[str, Layout] | None = None, most_sorted: int = MOST_SORTED) -> None:
        self._columns: dict[str, _ColumnTracing] = {}
        self._rows = _Lowest()
        self.keys = keys  # columns such as ids or years, told by the first piece
        self._most_sorted = most_sorted

    def add(self, columns: Mapping[str, Array], cells: Mapping[str, Array] | None = None) -> None:
        """Add a piece: the numbers (rows,) by the names of their columns; ``cells`` are their hashes, where known."""
        if not columns:
            return
        if cells is None:
            cells = {name: hashed_cells(numbers) for name, numbers in columns.items()}
        if self.keys is None:
            layouts = {name: _layout(numbers, cells[name]) for name, numbers in columns.items()}
            self.keys = {name: layout for name, layout in layouts.items() if layout != Layout()}
        telling = {name: cells[name] for name in columns if name not in self.keys}
        total = np.zeros(len(next(iter(columns.values()))), dtype=np.uint64)
        for hashes in telling.values():
            total += hashes
        self._rows.add(mixed(total))
        for name, numbers in columns.items():
            column = self._columns.setdefault(name, _ColumnTracing(self._most_sorted // len(columns)))
            column.add(numbers, cells[name], total - telling[name] if name in telling else None)

    def merge(self, later: Tracing) -> None:
        """Take in the traces of other rows of the table; a run of rows from one into the other leaves none."""
        self.keys = later.keys if self.keys is None else self.keys
        self._rows.merge(later._rows)
        for name, column in later._columns.items():
            most = self._most_sorted // len(later._columns)
            self._columns.setdefault(name, _ColumnTracing(most)).merge(column)

    def finish(self, names: Sequence[str]) -> Traces:
        """All traces; ``names`` are the columns that have a value, and the others leave none."""
        many = _many(len(names))
        keys = self.keys or {}
        found = [self._columns[name].finish(many, keys.get(name, Layout())) for name in names]
        return Traces(
            columns=tuple(names),
            kinds={kind: tuple(column[kind] for column in found) for kind in KINDS},
            rows=(self._rows.taken(many), *(column["without"] for column in found)),
        )


class _ColumnTracing:
    """One column while it is read; up to ``most_sorted`` different values of it are held."""

    def __init__(self, most_sorted: int = MOST_SORTED) -> None:
        self._most_sorted = most_sorted
        self.values, self._order, self._without = _Lowest(), _Lowest(), _Lowest()
        self._last = np.empty(0)  # numbers, for windows that reach over the end of a piece
        self._sorted: tuple[Array, Array] | None = (np.empty(0), np.empty(0, dtype=np.int64))
        self._waiting: list[Array] = []

    def add(self, numbers: Array, cells: Array, others: Array | None = None) -> None:
        known = np.isfinite(numbers)
        self.values.add(mixed(cells[known]))
        if others is not None:
            self._without.add(mixed(others))
        run = np.concatenate([self._last, numbers])
        self._order.add(_order_traces(run))
        self._last = run[-(_LAGS + _STEPS - 1) :]
        if self._sorted is not None:
            self._waiting.append(numbers[known])
            if sum(map(len, self._waiting)) > len(self._sorted[0]):  # not at every piece: sorting is dear
                self._sort()

    def _sort(self) -> None:
        if self._sorted is not None:
            new = np.unique(np.concatenate([np.empty(0), *self._waiting]), return_counts=True)
            self._hold(_merged(self._sorted, new))
        self._waiting.clear()

    def _hold(self, different: tuple[Array, Array] | None) -> None:
        self._sorted = None if different is None or len(different[0]) > self._most_sorted else different

    def merge(self, later: _ColumnTracing) -> None:
        self.values.merge(later.values)
        self._order.merge(later._order)
        self._without.merge(later._without)
        self._last = np.empty(0)
        self._sort()
        later._sort()
        self._hold(_merged(self._sorted, later._sorted) if self._sorted and later._sorted else None)

    def finish(self, most: int, layout: Layout) -> dict[str, Array]:
        found = dict.fromkeys(KINDS, np.empty(0, dtype=np.uint64)) | {"without": self._without.taken(most)}
        if not layout.in_order:
            found["order"] = self._order.taken(most)
        if layout.evenly or len(self.values.hashes) < FEWEST_VALUES:
            return found
        self._sort()
        telling = not layout.counts  # where there are too many values for gaps, the first piece tells
        if self._sorted is not None:
            values, how_often = self._sorted
            for kind, (neighbours, steps) in _WINDOWS.items():
                lowest = _Lowest()
                for begin in range(0, len(values), _AT_ONCE):  # what is made of them is far larger than they
                    some = slice(begin, begin + _AT_ONCE + neighbours - 1)
                    lowest.add(_gap_traces(values[some], how_often[some], neighbours, steps))
                found[kind] = lowest.taken(most)
            telling = len(found["gaps"]) > 0
        if telling:
            found["value"] = self.values.taken(most)
        return found


def _counts(numbers: Array, cells: Array) -> bool:
    """Whether the values of a column seldom occur twice and yet say nothing, such as ids that count up."""
    column = _ColumnTracing()
    column.add(numbers, cells)
    return bool(len(column.values.taken(1))) and not len(column.finish(1, Layout())["gaps"])


@dataclass(frozen=True)
class Layout:
    """Whether a column tells rows apart, as year and month or places of a pixel do: unrelated tables share those."""

    in_order: bool = False  # sorted, or repeating from row to row: the order says nothing
    evenly: bool = False  # each value about equally often: the values and their counts say nothing
    counts: bool = False  # ids that count up and the like: no value occurs twice, and none says anything


def _layout(numbers: Array, cells: Array) -> Layout:
    counting = _counts(numbers, cells)
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        return Layout(counts=counting)
    steps = [np.mean(numbers[1:] >= numbers[:-1]), np.mean(numbers[1:] <= numbers[:-1])]
    again = np.flatnonzero((numbers[1:] == numbers[0]) & (numbers[:-1] != numbers[0])) + 1  # where it begins anew
    if len(again) and len(numbers) - again[0] >= LEAST_ALIKE:
        steps.append(np.mean(numbers[again[0] :] == numbers[: -again[0]]))
    counts = np.unique(numbers, return_counts=True)[1]
    mean = counts.mean()
    evenly = len(counts) >= FEWEST_VALUES and mean >= 1.5 and counts.var() < EVENLY * mean
    return Layout(bool(max(steps) >= LAID_OUT), bool(evenly), counting)


class _Lowest:
    """The lowest different hashes of a stream, and which of them came more than once."""

    def __init__(self) -> None:
        self.hashes = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)

    def add(self, hashes: Array) -> None:
        """Add some; what is above the highest one that is kept never comes back."""
        if len(self.hashes) == _SEEN:
            hashes = hashes[hashes <= self.hashes[-1]]
        elif len(hashes) > 16 * _SEEN:
            hashes = hashes[hashes <= np.partition(hashes, 4 * _SEEN)[4 * _SEEN]]
        self._take(*np.unique(hashes, return_counts=True))

    def merge(self, other: _Lowest) -> None:
        """Add another stream; what either has left out is above all that both keep together."""
        self._take(other.hashes, other._counts)

    def _take(self, different: Array, how_often: Array) -> None:
        hashes, counts = _merged((self.hashes, self._counts), (different, how_often))
        self.hashes, self._counts = hashes[:_SEEN], counts[:_SEEN]

    def taken(self, most: int) -> Array:
        """The lowest that occur once, and none where too many of all occur again."""
        once = self._counts == 1
        if not len(once) or np.mean(~once) > MOST_REPEATED:
            return np.empty(0, dtype=np.uint64)
        return self.hashes[once][:most]


def _merged(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Different values in rising order with the sums of their counts, of two such pairs."""
    values, counts = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    if not len(values):
        return values, counts
    order = np.argsort(values, kind="stable")  # quick where both halves are sorted
    values, counts = values[order], counts[order]
    begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[begins], np.add.reduceat(counts, begins)


def _gap_traces(values: Array, counts: Array, neighbours: int, steps: int) -> Array:
    """Traces of neighbours among sorted different values: the shares of their gaps, and their counts.

    Read from either end they are the same, for a column whose sign was changed.
    """
    windows = len(values) - neighbours + 1
    if windows < 1:
        return np.empty(0, dtype=np.uint64)
    with np.errstate(all="ignore"):  # gaps that are too large for a number count as none
        gaps = np.diff(values)
        whole = values[neighbours - 1 :] - values[:windows]
        shares = [gaps[place : place + windows] / whole for place in range(neighbours - 1)]
    cut = [np.floor(np.nan_to_num(share) * steps + _GOLDEN).astype(np.uint64) for share in shares]
    many = [counts[place : place + windows].astype(np.uint64) for place in range(neighbours)]
    return np.minimum(_hashed([*cut, *many]), _hashed([*cut[::-1], *many[::-1]]))


def _order_traces(numbers: Array) -> Array:
    """Traces of rows that follow each other: which is larger, for each of some rows and each of the next few.

    With larger and smaller exchanged they are the same, for a column whose sign was changed.
    """
    length = len(numbers) - _LAGS
    windows = length - _STEPS + 1
    if windows < 1:
        return np.empty(0, dtype=np.uint64)
    words = np.zeros(length, dtype=np.int16)
    for lag in range(1, _LAGS + 1):
        here, there = numbers[:length], numbers[lag : lag + length]
        words *= 3
        words += 1
        words += here < there
        words -= here > there
    ways = [word.astype(np.uint64) for word in (words, 3**_LAGS - 1 - words)]
    return np.minimum(*(_hashed([way[step : step + windows] for step in range(_STEPS)]) for way in ways))


def hashed_cells(numbers: Array) -> Array:
    """64 mixed bits for each number as it is in 32 bits: the same for both zeros, and none set where it is missing."""
    with np.errstate(all="ignore"):  # what is too large becomes infinite, what is too small zero
        rounded = np.asarray(numbers).astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
    cells = mixed(rounded.view(np.uint32).astype(np.uint64))
    cells[np.isnan(rounded)] = 0
    return cells


def _hashed(parts: Sequence[Array]) -> Array:
    total = np.ones(len(parts[0]), dtype=np.uint64)
    for part in parts:
        total *= _FACTOR
        total += part
    return mixed(total)


def mixed(bits: Array) -> Array:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    mix = bits + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mix ^= mix >> np.uint64(shift)
        mix *= np.uint64(factor)
    mix ^= mix >> np.uint64(31)
    return mix
