"""A folder of CSV or Parquet files as one table that may be larger than memory, or than one machine.

A functional release needs its records for sums alone, so they are read in one pass and none is held.  Each file gives
its exact partial sums and its part of the table's identity, here or wherever a worker has the file; they are added up;
and only then, when nothing that a file can do wrong is left, does ``release`` (release.py) charge the ledger and draw
the noise, once.  Whatever fails before leaves no charge and no result.  Of CSV the rows are counted and the columns
told apart in a look before the pass; a Parquet file says both itself.

The same door.  Every record is clipped to the stated box, scaled and admitted (methods/door.py) by the functions that a
table in memory goes through, in chunks.  The result is a data set of few public points that counts as n records and
knows one sum; so price, charge, draw, record and keeping are those of every other table.

Rounding.  The noise is set for how far one record can move *computed* sums (numerics/rounding.py), and what is derived
there holds for sums over files as well.
(1) Which chunk a row is in is decided by its number, here within its file.  Pieces of CSV are cut by their length in
bytes, which depends on the records: a longer word in one row would move all later rows.  So pieces are put together
to chunks by row numbers.
(2) A chunk's sum depends on its own records only.  So where one record is replaced, all other chunks, and all other
files, give the same numbers again.  This takes workers with the same libraries on the same kind of processor, or files
that go to the same workers; which worker has a file is not decided by what is in it.
(3) Chunks are added with their rounding errors carried along.  Here that is done up to three times: within a chunk of
b rows where it is added in smaller ones, which is off by at most u b; over a file of m rows by u m; and over all files
by u n; and terms of order u^2 each.  Only the chunk and the file with the replaced record count in the first two, and a
sum of one part is exact, so b < m < n where all three count: together below the 3 u n that the noise is set for, in any
order of the files.
From the sums in memory they differ in the last digits: other rows share a chunk, so a library may add them in another
order and round what each of them adds otherwise.  That is at most ``summing_error`` and n times ``each`` of
rounding.py, on both sides; no guarantee rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpgrams_core.methods.functional.modes import Box, KernelSums
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import one_of
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.numerics.rounding import running_sum
from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.numerics.sketch import public_points
from dpgrams_core.own_data.pricing import FEW, StandIn, sums_asked_for
from dpgrams_core.own_data.reading.table import REASONS, Column, Facts, FileFacts, Limits, look_at, part_numbers
from dpgrams_core.own_data.table import KINDS, OwnData, named_box, picked_names, refuse_few
from dpgrams_core.privacy.ledger.digest import ContentDigest, Identity
from dpgrams_core.privacy.ledger.overlap import MOST_SORTED, Layout

Array = np.ndarray
Task = TypeVar("Task")
Result = TypeVar("Result")
# What runs a function on many tasks, as ``sweeps.executors.stream_tasks`` does: pairs (task, result) in any order.
Stream = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[tuple[Any, Any]]]
MOST_SORTED_OF_FILE = 2**18  # numbers of one file of a large table that are held to be sorted; they travel
NOT_CHARGED = "Nothing was charged and nothing was released."
_FORMS = {True: "Parquet", False: "CSV"}


def _refused_in_a_sentence(function: Callable[[Task], Result]) -> Callable[[Task], Result | str]:
    """A function of one file that gives a sentence where it fails: what other errors say may quote a cell."""

    @wraps(function)
    def careful(task: Task) -> Result | str:
        try:
            return function(task)
        except DataError as error:
            return str(error)
        except Exception as error:
            return f"It could not be added up ({type(error).__name__})."

    return careful


def one_by_one(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
    """Here, one task after the other."""
    return ((task, function(task)) for task in tasks)


@dataclass(frozen=True, kw_only=True, eq=False)
class Folder(Facts):
    """Public facts of the table that the files of a folder are together, in the order of their names."""

    files: tuple[FileFacts, ...] = field(repr=False)


def read_folder(path: str | Path, stream: Stream = one_by_one) -> Folder:
    """Public facts of all files of a folder: the same columns in each, all CSV or all Parquet.

    Names that begin with a dot or an underscore are left alone: other programs put their marks there.

    Raises
    ------
    DataError
        It names the file and says what is wrong with it, and repeats no cell.
    """
    try:
        paths = sorted(item for item in Path(path).iterdir() if item.name[0] not in "._")
    except OSError:
        raise DataError("The folder could not be opened. Check its name and that it may be read.") from None
    if not paths:
        raise DataError("The folder has no files in it: put CSV or Parquet files there.")
    for item in paths:
        if item.is_dir():
            raise _refusal(item, "It is a folder. Put all files into one folder, without others in it.")
    found = {task: _checked(task, facts) for task, facts in stream(_looked_at, paths)}
    files = tuple(found[item] for item in paths)
    first, kinds = files[0], {column.name: column.kind for column in files[0].columns}
    for facts in files:
        if (facts.layout is None) != (first.layout is None):
            form, other = _FORMS[facts.layout is None], _FORMS[first.layout is None]
            raise _refusal(facts.path, f"It is {form}, and {first.path.name} is {other}. Put files of one kind there.")
        own = {column.name: column.kind for column in facts.columns}
        for name in sorted(own.keys() ^ kinds.keys()):
            which = "has" if name in own else "lacks"
            unlike = f"It {which} the column {name}, unlike {first.path.name}. Give all files the same columns."
            raise _refusal(facts.path, unlike)
        for name, kind in own.items():
            if "empty" not in (kind, kinds[name]) and kind != kinds[name]:
                what = "holds numbers" if kind == "numeric" else REASONS[kind].partition(".")[0]
                unlike = f"The column {name} {what}, unlike in {first.path.name}. Write it alike in all files."
                raise _refusal(facts.path, unlike)
            kinds[name] = kind if kinds[name] == "empty" else kinds[name]
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    return Folder(columns=columns, n_rows=sum(facts.n_rows for facts in files), files=files)


@dataclass(frozen=True, kw_only=True)
class SummedData(OwnData, StandIn):
    """A folder after its one pass: n, the box and the identity of its table, and the sums that one method asks for.

    ``points`` are public, few, and stand for the records wherever a method looks at anything but its sums.
    """

    files: int
    method: str
    spec: Any
    asked: KernelSums
    sums: Array = field(repr=False)

    def add_up(self, sums: Callable[[Array], Array]) -> Array:
        """The sums of the pass; those of any other question are not known any more."""
        if sums != self.asked:
            raise RuntimeError("other sums are asked for than were made; this is a bug, and nothing was drawn")
        return self.sums

    def refuse_other(self, method: str, spec: Any) -> None:
        """Refuse all but the method and settings that the folder was added up for."""
        if (method, spec) != (self.method, self.spec):
            raise SpecError("method", method, f"the folder was added up for {self.method} with other settings")

    @property
    def statements(self) -> tuple[str, ...]:
        """As of any table, and what is public of a folder."""
        said = f"The rows stand in {self.files:,} files; how many rows each of them has is treated as public."
        return (*super().statements, said)


def add_up_folder(
    folder: str | Path | Folder,
    method: str,
    *,
    columns: Sequence[str],
    box: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]],
    response: str | None = None,
    kind: str = "modes",
    stream: Stream = one_by_one,
    **options: Any,
) -> SummedData:
    """One pass over a folder: what ``release`` needs of it, for one method and its settings.

    Parameters
    ----------
    folder : of files, or what ``read_folder`` gave.
    method : a functional release; the others need all records at once.
    columns, box, response, kind : as for ``load_table``.
    stream : where the files are read, such as ``partial(stream_tasks, executor="dask")`` of ``sweeps.executors``. One
        file is one task; a worker that dies has its file read again by another.
    **options : of the method; ``release`` has to be given the same.

    Raises
    ------
    DataError
        Of the first file that cannot be read, with its name. Nothing was charged then.

    Examples
    --------
    >>> import tempfile
    >>> rows = [f"{age},{pay}" for age, pay in zip(range(20, 80), range(0, 60_000, 1000))]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for number, part in enumerate((rows[:25], rows[25:])):
    ...         _ = Path(place, f"{number}.csv").write_text("\\n".join(["age,pay", *part]))
    ...     data = add_up_folder(place, "functional", columns=["age"], box=[(0, 100)], epsilon=0.5)
    >>> data.n, data.files, data.private, data.box.tolist()
    (60, 2, True, [[0.0, 100.0]])
    """
    table = folder if isinstance(folder, Folder) else read_folder(folder, stream)
    one_of("kind", kind, KINDS)
    names = picked_names(table, columns, response)
    bounds = named_box(names, box)
    refuse_few(table.n_rows)
    public: dict[str, Any] = {"name": "own data", "points": public_points(bounds, FEW), "box": bounds, "private": True}
    public |= {"scaled": True, "counted": table.n_rows, "kind": "regression" if response is not None else kind}
    spec, asked = sums_asked_for(method, StandIn(**public), **options)
    sides: Box = tuple(map(tuple, bounds.tolist()))
    identity, sums = _pass_over(table, _Records(names, sides, method, asked), stream)
    public |= {"columns": names, "identity": identity, "files": len(table.files)}
    return SummedData(**public, method=method, spec=spec, asked=asked, sums=sums)


def folder_identity(folder: Folder, stream: Stream = one_by_one) -> Identity:
    """What the ledger knows a folder by: the same as of all its rows in one file, in any order."""
    return _pass_over(folder, None, stream)[0]


@dataclass(frozen=True)
class _Records:
    """Which columns of a piece are added up, and how."""

    columns: tuple[str, ...]
    box: Box
    method: str
    asked: KernelSums

    def chunks(self, pieces: Iterable[Mapping[str, Array]]) -> Iterator[Array]:
        """The picked columns in chunks (rows, d) whose ends are decided by the number of a row alone."""
        size, filled = self.asked.chunk, 0
        chunk = np.empty((size, len(self.columns)))
        for piece in pieces:
            rows = len(next(iter(piece.values())))
            missing = np.broadcast_to(np.nan, rows)
            columns = [piece.get(name, missing) for name in self.columns]
            done = 0
            while done < rows:
                count = min(size - filled, rows - done)
                for place, column in enumerate(columns):
                    chunk[filled : filled + count, place] = column[done : done + count]
                done, filled = done + count, filled + count
                if filled == size:
                    yield chunk
                    filled = 0
        if filled:
            yield chunk[:filled]

    def sum_of(self, chunk: Array) -> Array:
        """What a chunk adds: each record in its box and through the release door, as a table in memory goes."""
        box = np.array(self.box)
        points, kind = np.clip(chunk, *box.T), METHODS[self.method].kind
        some = Dataset(name="own data", kind=kind, points=points, box=box, private=True, scaled=True)
        seen = METHODS[self.method].admitted(scaled_by_box(some))
        return self.asked(rescaled(seen.points, seen.box, np.array(self.asked.box)))


@dataclass(frozen=True)
class _FileTask:
    facts: FileFacts
    keys: Mapping[str, Layout]
    most_sorted: int
    records: _Records | None


@dataclass(frozen=True)
class _FilePart:
    """What comes back of a file: exact sums without noise, so as private as its records until noise is added."""

    digest: ContentDigest
    full: frozenset[str]
    sums: Array | None


def _pass_over(folder: Folder, records: _Records | None, stream: Stream) -> tuple[Identity, Any]:
    """The identity of the whole table, and its sums where some are asked for: each file is read once."""
    numeric = folder.numeric
    small = folder.n_rows * len(numeric) <= MOST_SORTED
    keys = _keys(folder.files[0])
    digest, full = ContentDigest(keys), set[str]()

    def sums() -> Iterator[Array]:
        most = MOST_SORTED if small else MOST_SORTED_OF_FILE
        tasks = (_FileTask(facts, keys, most, records) for facts in folder.files)
        for task, part in stream(_added_up, tasks):
            found = _checked(task.facts.path, part)
            digest.merge(found.digest)
            full.update(found.full)
            yield np.zeros(()) if found.sums is None else found.sums

    total = running_sum(sums())
    for name in () if records is None else records.columns:
        if name not in full:
            raise DataError(f"The column {name} {REASONS['empty']} {NOT_CHARGED}")
    names = [column.name for column in folder.columns]
    return digest.finish([name for name in numeric if name in full], names), total


def _keys(first: FileFacts) -> Mapping[str, Layout]:
    """What the first rows tell of the columns: all files must take them alike."""
    digest = ContentDigest()
    try:
        with closing(part_numbers(first, Limits.of_part())) as pieces:
            for piece in pieces:
                digest.add(piece)
                if digest.keys is not None:
                    break
    except DataError as error:
        raise _refusal(first.path, str(error)) from None
    digest.settle()
    return digest.keys or {}


@_refused_in_a_sentence
def _added_up(task: _FileTask) -> _FilePart:
    """The part of one file."""
    digest, full = ContentDigest(task.keys, task.most_sorted), set[str]()

    def pieces() -> Iterator[dict[str, Array]]:
        for piece in part_numbers(task.facts, Limits.of_part()):
            digest.add(piece)
            full.update(name for name, cells in piece.items() if name not in full and not np.isnan(cells).all())
            yield piece

    sums = None
    if task.records is None:
        for _ in pieces():
            pass
    else:
        sums = running_sum(map(task.records.sum_of, task.records.chunks(pieces())))
    digest.settle()
    return _FilePart(digest, frozenset(full), sums)


@_refused_in_a_sentence
def _looked_at(path: Path) -> FileFacts:
    return look_at(path, Limits.of_part())


def _checked(path: Path, found: Any) -> Any:
    """What came back of a file, or its refusal: a sentence, or a worker that was lost and has one."""
    if isinstance(found, (FileFacts, _FilePart)):
        return found
    raise _refusal(path, str(getattr(found, "sentence", found)))


def _refusal(path: Path, sentence: str) -> DataError:
    return DataError(f"{path.name}: {sentence} {NOT_CHARGED}")
