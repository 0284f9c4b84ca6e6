"""A pandas frame as a table, read as the file would be that it is saved to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpgrams_core.datasets.table_reader import Column, Limits, Table, check_names, make_table
from dpgrams_core.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def table_of_frame(frame: pd.DataFrame) -> Table:
    """A table from a pandas frame; the same content has the same digest as its file."""
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]  # late: it is slow to load

    from dpgrams_core.datasets.parquet_child import kind_of

    if not isinstance(frame, pd.DataFrame):
        raise DataError("Give the path of a CSV or Parquet file, or a pandas DataFrame.")
    names = [str(name) for name in frame.columns]
    check_names(names, Limits())
    columns, values = [], {}
    for number, name in enumerate(names):
        try:
            cells = pa.chunked_array(pa.Array.from_pandas(frame.iloc[:, number]))
            kind = kind_of(cells.type)
        except (pa.ArrowException, TypeError, ValueError):  # nothing that a file holds; the message may quote a cell
            kind = "text"
        if kind == "numeric":
            array = _doubles(cells)
            if np.isnan(array).all():
                kind = "empty"
            else:
                values[name] = array
        columns.append(Column(name, kind))
    return make_table(columns, values, len(frame))


def _doubles(cells: Any) -> np.ndarray:
    """The numbers of an Arrow column in an array of its own, in pieces: some become text on the way."""
    from dpgrams_core.datasets.parquet_child import NUMBERS_AT_ONCE, doubles

    array = np.empty(len(cells))
    done = 0
    for chunk in cells.chunks:
        for begin in range(0, len(chunk), NUMBERS_AT_ONCE):
            piece = chunk.slice(begin, NUMBERS_AT_ONCE)
            array[done : done + len(piece)] = doubles(piece)
            done += len(piece)
    return array
