"""A user's own table as a private Dataset: one to six numeric columns in a public box that the user states.

Every column is standardised by its *box*, never by its records: the box becomes -4 to 4, so that columns with very
different units share one bandwidth.  A value outside its box is moved to its edge.  Both are maps of one record by
public numbers, so the guarantee of a method holds for the records as they came.

Rows with a missing or infinite value are refused or, if the user says so, dropped.  Which rows were dropped is
treated as public, as the number of rows is: the guarantee protects the values of the rows that were kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpgrams_core.checks import SMALLEST, box_of, one_of
from dpgrams_core.content import Identity
from dpgrams_core.datasets.clusters import BOX_SIDE
from dpgrams_core.datasets.frames import table_of_frame
from dpgrams_core.datasets.table_reader import REASONS, Limits, Table, read_table
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.results import Dataset, frozen_array
from dpgrams_core.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray
MOST_COLUMNS = 6
LEAST_ROWS = 10
LARGEST_BOUND = 1e12
KINDS = ("modes", "clusters")


@dataclass(frozen=True, kw_only=True)
class OwnData(Dataset):
    """A user's records, standardised by their public box, with the way back to the user's units.

    ``box`` and ``points`` are those that methods see (-4 to 4 in every column); ``user_box`` (d, 2) is what the user
    stated.  ``columns`` names the columns, the predictor first and the response second in regression data.
    ``identity`` stands for the whole table that the columns were picked from; the ledger keys it.
    """

    columns: tuple[str, ...]
    user_box: Array
    identity: Identity = field(repr=False)
    dropped_rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "user_box", frozen_array(box_of(self.user_box)))

    @property
    def content(self) -> bytes:
        """The digest that the budget belongs to."""
        return self.identity.content

    def to_user_units(self, points: Array) -> Array:
        """Points (k, d) of a release in the units of the user's columns."""
        low, high = self.user_box.T
        return low + (np.asarray(points, dtype=float) + BOX_SIDE) / (2 * BOX_SIDE) * (high - low)

    @property
    def statements(self) -> tuple[str, ...]:
        """What is treated as public and what was done to the records, in sentences for the screen."""
        said = [
            f"Treated as public: the column names, the box, that there are {self.n:,} rows, and whether a picked "
            "column is constant.",
            "Each column is scaled by its box; values outside the box were moved to its edge.",
        ]
        if self.dropped_rows:
            said.append(
                f"{self.dropped_rows:,} rows with a missing or infinite value were dropped; which ones is treated as "
                "public, and the guarantee protects the values of the others."
            )
        if self.kind == "regression":
            said.append(
                f"Some methods protect only the response; the guarantee says so. The response: {self.columns[1]}."
            )
        return tuple(said)


def load_table(
    source: str | os.PathLike[str] | pd.DataFrame | Table,
    *,
    columns: Sequence[str],
    box: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]],
    response: str | None = None,
    kind: str = "modes",
    drop_rows_with_missing: bool = False,
    limits: Limits | None = None,
) -> OwnData:
    """A private data set from a file or a frame of one's own.

    Parameters
    ----------
    source : path of a CSV or Parquet file, a pandas frame, or a :class:`Table` that was read before.
    columns : one to six numeric columns; for regression the one predictor.
    box : public bounds, a (lower, upper) pair for every column and for the response: by name, or in that order.
        Never read them off the records; ``dpgrams_core.releasing.release_range`` buys an estimate.
    response : the response of modal regression; its presence makes this regression data.
    kind : "modes" or "clusters", where there is no response.
    drop_rows_with_missing : drop the rows that have a missing or infinite value in these columns.
    limits : of the file's size; any size by default, since a path is the user's own machine. Only the picked columns
        are held in memory.

    Returns
    -------
    OwnData
        A ``Dataset`` with ``private=True``; ``to_user_units`` takes modes back to the columns' own units.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": range(20, 80), "income": range(0, 60_000, 1000)})
    >>> data = load_table(frame, columns=["age", "income"], box={"age": (0, 100), "income": (0, 1e5)})
    >>> data.n, data.private, data.box.tolist()
    (60, True, [[-4.0, 4.0], [-4.0, 4.0]])
    >>> data.to_user_units([[0.0, 4.0]]).tolist()
    [[50.0, 100000.0]]
    """
    if isinstance(source, Table):
        table = source
    elif isinstance(source, (str, os.PathLike)):
        table = read_table(source, limits=Limits.of_owner() if limits is None else limits)
    else:
        table = table_of_frame(source)
    one_of("kind", kind, KINDS)
    names = picked_names(table, columns, response)
    user_box = named_box(names, box)
    points, dropped = picked_rows(table, names, drop_rows_with_missing)
    low, high = user_box.T
    points -= low  # in place: the columns may nearly fill the memory
    points /= high - low
    points *= 2 * BOX_SIDE
    points -= BOX_SIDE
    return OwnData(
        name="own data",  # a file's name may tell more than its owner thinks
        kind="regression" if response is not None else kind,
        points=np.clip(points, -BOX_SIDE, BOX_SIDE, out=points),
        box=np.array([(-BOX_SIDE, BOX_SIDE)] * len(names)),
        private=True,
        columns=names,
        user_box=user_box,
        identity=table.identity,
        dropped_rows=dropped,
    )


def read_upload(content: bytes, name: str, settings: Settings) -> Table:
    """Read an uploaded file, within the configured size, or refuse where uploads are switched off."""
    if not settings.uploads:
        raise DataError(
            "Uploads are switched off here: this is a public demonstration. Run your own copy to use files."
        )
    return read_table(content, name, Limits(max_bytes=settings.max_upload_bytes))


def picked_names(table: Table, columns: Sequence[str], response: str | None = None) -> tuple[str, ...]:
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
    if np.abs(bounds).max() > LARGEST_BOUND:
        raise SpecError(
            "box", bounds.tolist(), f"every bound must lie between {-LARGEST_BOUND:g} and {LARGEST_BOUND:g}"
        )
    side = bounds[:, 1] - bounds[:, 0]
    if (side < np.maximum(SMALLEST, 1e-9 * np.abs(bounds).max(axis=1))).any():
        raise SpecError("box", bounds.tolist(), "the bounds are too close together to tell numbers apart")
    return bounds


def picked_rows(table: Table, names: Sequence[str], drop_rows_with_missing: bool = False) -> tuple[Array, int]:
    """The picked columns as an array (n, d) of finite numbers, and how many rows were dropped for that."""
    points = np.column_stack(table.numbers(names))
    unusable = ~np.isfinite(points).all(axis=1)
    dropped = int(unusable.sum())
    if dropped and not drop_rows_with_missing:
        infinite = int(np.isinf(points).any(axis=1).sum())
        what = "an infinite" if infinite == dropped else "a missing or infinite" if infinite else "a missing"
        rows = "rows has" if dropped == 1 else "rows have"
        raise DataError(
            f"{dropped:,} of {table.n_rows:,} {rows} {what} value in the chosen columns. Choose to drop "
            f"{'it' if dropped == 1 else 'them'} (the number of rows left is treated as public), or correct the file."
        )
    if dropped:
        points = points[~unusable]
    if len(points) < LEAST_ROWS:
        left = " left" if dropped else " in the file"
        raise DataError(
            f"There {'is' if len(points) == 1 else 'are'} only {len(points)} row{'' if len(points) == 1 else 's'}"
            f"{left}, and privacy needs more: any answer would be noise. Use at least {LEAST_ROWS}."
        )
    for number, name in enumerate(names):
        if points[:, number].min() == points[:, number].max():
            raise DataError(f"The column {name} has the same value in every row. Pick a column whose values differ.")
    return points, dropped
