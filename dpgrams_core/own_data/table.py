"""A user's own table as a private Dataset: one to six numeric columns in a public box that the user states.

Methods see every column scaled by its *box*, never by its records, so that columns with very different units share one
bandwidth; what they give is in the units of the columns again (model/units.py).  A value outside its box, an infinite
one too, is moved to its edge.  Both are maps of one record by public numbers, so the guarantee of a method holds for
the records as they came.

Nothing is refused for what the records are, and no row is left out: n is the number of rows of the file.  A missing
value stays one (NaN) until the release door, which has a place for it (methods/door.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dpgrams_core.model.checks import box_of, one_of, release_box
from dpgrams_core.model.environment import Settings
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import Worker, here
from dpgrams_core.model.results import Dataset
from dpgrams_core.own_data.reading.table import (
    REASONS,
    Facts,
    Limits,
    Table,
    do_nothing,
    make_table,
    read_handed_in,
    read_table,
    reading,
    usable,
)
from dpgrams_core.privacy.ledger.digest import Identity

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray
MOST_COLUMNS = 6
LEAST_ROWS = 10
KINDS = ("modes", "clusters")


@dataclass(frozen=True, kw_only=True)
class OwnData(Dataset):
    """A user's records and the public box that the user stated, both in the units of the columns.

    ``columns`` names the columns, the predictor first and the response second in regression data.
    ``identity`` stands for the whole table that the columns were picked from; the ledger keys it.
    """

    columns: tuple[str, ...]
    identity: Identity = field(repr=False)

    @property
    def content(self) -> bytes:
        """The digest that the budget belongs to."""
        return self.identity.content

    @property
    def statements(self) -> tuple[str, ...]:
        """What is treated as public and what was done to the records, in sentences for the screen."""
        said = [
            "Treated as public: how the file is written (that it can be read, the names of its columns and which of "
            f"them hold numbers), the box, and that there are {self.n:,} rows.",
            "Each column is scaled by its box; values outside the box, infinite ones too, were moved to its edge.",
            "A row with a missing value counts as a row. To a functional release it adds nothing; in the other methods "
            "the missing value stands in the middle of its column's box. How many there are is not told.",
        ]
        if self.kind == "regression":
            said.append(
                f"DP-PMS protects only the response, {self.columns[1]}, and takes the predictor, {self.columns[0]}, as "
                "public; the functional release protects both. The guarantee says so."
            )
        return tuple(said)


def load_table(
    source: str | os.PathLike[str] | pd.DataFrame | Table,
    *,
    columns: Sequence[str],
    box: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]],
    response: str | None = None,
    kind: str = "modes",
    drop_rows_with_missing: bool = False,  # noqa: ARG001 (scripts from before give it)
    limits: Limits | None = None,
) -> OwnData:
    """A private data set from a file or a frame of one's own.

    Parameters
    ----------
    source : path of a CSV or Parquet file, a pandas frame, or a :class:`Table` that was read before.
    columns : one to six numeric columns; for regression the one predictor.
    box : public bounds, a (lower, upper) pair for every column and for the response: by name, or in that order.
        Never read them off the records; ``dpgrams_core.own_data.release.release_range`` buys an estimate.
    response : the response of modal regression; its presence makes this regression data.
    kind : "modes" or "clusters", where there is no response.
    drop_rows_with_missing : without effect, for scripts from before. Which rows miss a value is not public, so none is
        dropped: each counts, and its missing values have their place at the release door.
    limits : of the file's size; any size by default, since a path is the user's own machine. Only the picked columns
        are held in memory.

    Returns
    -------
    OwnData
        A ``Dataset`` with ``private=True``. It and all that comes out of it are in the units of the columns; only a
        ``bandwidth`` in the settings of a method is for columns scaled to -4 to 4 by their box.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": range(20, 80), "income": range(0, 60_000, 1000)})
    >>> data = load_table(frame, columns=["age", "income"], box={"age": (0, 100), "income": (0, 1e5)})
    >>> data.n, data.private, data.box.tolist()
    (60, True, [[0.0, 100.0], [0.0, 100000.0]])
    """
    if isinstance(source, Table):
        table = source
    elif isinstance(source, (str, os.PathLike)):
        table = read_table(source, limits=Limits.of_owner() if limits is None else limits)
    else:
        table = table_of_frame(source)
    one_of("kind", kind, KINDS)
    names = picked_names(table, columns, response)
    bounds = named_box(names, box)
    points = picked_rows(table, names)
    np.clip(points, *bounds.T, out=points)  # in place: the columns may nearly fill the memory
    points.setflags(write=False)
    return OwnData(
        name="own data",  # a file's name may tell more than its owner thinks
        kind="regression" if response is not None else kind,
        points=points,
        box=bounds,
        private=True,
        scaled=True,
        columns=names,
        identity=table.identity,
    )


def table_of_frame(frame: pd.DataFrame) -> Table:
    """A table from a pandas frame; the same content has the same digest as its file."""
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]  # late: it is slow to load

    from dpgrams_core.own_data.reading.parquet_child import NUMBERS_AT_ONCE, doubles, kind_of

    if not isinstance(frame, pd.DataFrame):
        raise DataError("Give the path of a CSV or Parquet file, or a pandas DataFrame.")
    numeric, columns = {}, []
    for number, name in enumerate(map(str, frame.columns)):
        try:
            cells = pa.chunked_array(pa.Array.from_pandas(frame.iloc[:, number]))
            kind = kind_of(cells.type)
        except (pa.ArrowException, TypeError, ValueError):  # nothing that a file holds; the message may quote a cell
            kind = "text"
        if kind == "numeric":
            numeric[name] = cells
        columns.append((name, kind))

    def pieces(names: Sequence[str]) -> Iterator[list[Array]]:
        at_once = max(1_024, NUMBERS_AT_ONCE // max(1, len(names)))  # some become text on the way
        for begin in range(0, len(frame), at_once) if names else ():
            yield [doubles(numeric[name].slice(begin, at_once).combine_chunks()) for name in names]

    return usable(make_table({"rows": len(frame), "columns": columns}, pieces, Limits.of_owner()))


def read_upload(
    content: bytes,
    name: str,
    settings: Settings,
    room: Callable[[], int] | None = None,
    waiting: Callable[[], None] = do_nothing,
    worker: Worker = here,
) -> Table:
    """Read an uploaded file in a guarded process, or refuse where uploads are switched off.

    It stays within the configured size.  ``room`` is asked, once the file's turn has come, how many bytes its numbers
    may take; ``waiting`` is called from time to time until then.  What that process says is added up by ``worker``.
    """
    if not settings.uploads:
        raise DataError(
            "Uploads are switched off here: this is a public demonstration. Run your own copy to use files."
        )
    limits = Limits(max_bytes=settings.max_upload_bytes)
    with reading(waiting):
        if room is not None and limits.max_numbers is not None:
            limits = replace(limits, max_numbers=max(1, min(limits.max_numbers, room() // 8)))
        return worker(read_handed_in, content, name, limits)


def picked_names(table: Facts, columns: Sequence[str], response: str | None = None) -> tuple[str, ...]:
    """The names of the picked columns, the response last, or a sentence that says what can be picked."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise SpecError("columns", columns, "give a list of column names")
    names = tuple(columns)
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise SpecError("columns", list(names), f"pick one to {MOST_COLUMNS} numeric columns")
    if response is not None:
        if len(names) != 1:
            raise SpecError("columns", list(names), "with a response there is exactly one predictor")
        names = (*names, response)
    if len(set(names)) < len(names):
        raise SpecError("columns", list(names), "pick every column once")
    kinds = {column.name: column.kind for column in table.columns}
    for name in names:
        if name not in kinds:
            raise SpecError("columns", name, "there is no such column; the numeric ones are " + _listed(table.numeric))
        if kinds[name] != "numeric":
            raise DataError(f"The column {name} {REASONS[kinds[name]]}")
    return names


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")


def named_box(names: Sequence[str], box: object) -> Array:
    """The public box as an array (d, 2) in the order of the names.

    >>> named_box(["b", "a"], {"a": (0, 1), "b": (2, 3)}).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    if isinstance(box, Mapping):
        lacking = [name for name in names if name not in box]
        if lacking:
            raise SpecError("box", list(box), f"it lacks bounds for {_listed(lacking)}; state them, or buy an estimate")
        extra = [str(name) for name in box if name not in names]
        if extra:
            raise SpecError("box", list(box), f"{_listed(extra)} is not among the picked columns")
        box = [box[name] for name in names]
    bounds = box_of(box)
    if len(bounds) != len(names):
        raise SpecError("box", bounds.tolist(), f"give {len(names)} pairs (lower, upper), one for each picked column")
    return release_box(bounds)


def picked_rows(table: Table, names: Sequence[str], worker: Worker = here) -> Array:
    """The picked columns as an array (n, d), one row for each row of the file and NaN where a cell is missing.

    It is refused for its number of rows alone, which is public: not for a missing value, nor for a column whose values
    are all the same, since whether a release happens must not depend on a record.
    """
    refuse_few(table.n_rows)
    return np.column_stack(table.numbers(names, worker))


def refuse_few(rows: int) -> None:
    """Refuse a table with too few rows for any privacy."""
    if rows < LEAST_ROWS:
        there = "is only 1 row" if rows == 1 else f"are only {rows} rows"
        raise DataError(
            f"There {there} in the file, and privacy needs more: any answer would be noise. Use at least {LEAST_ROWS}."
        )
