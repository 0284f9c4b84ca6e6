"""One table has one digest, so one budget, in whatever file and from whatever program."""

from __future__ import annotations

import decimal
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from dpgrams_core.own_data.reading import parquet_child
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.table import table_of_frame
from dpgrams_core.privacy.ledger.digest import ContentDigest, identity_of


def floats(width):
    return st.floats(width=width, allow_nan=True, allow_infinity=True)


# Arrow types and the values in them, missing ones included.
KINDS = {
    "float16": (pa.float16(), floats(16).map(np.float16)),
    "float32": (pa.float32(), floats(32)),
    "float64": (pa.float64(), floats(64)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "decimal": (pa.decimal128(30, 7), st.decimals(-(10**20), 10**20, places=7)),
    "money": (pa.decimal64(12, 2), st.decimals(-(10**9), 10**9, places=2)),
    "bool": (pa.bool_(), st.booleans()),
    "word": (pa.string(), st.sampled_from(["x", "y", "z z"])),
}


@st.composite
def tables(draw):
    """An Arrow table with a column of one to six kinds; the first is always a numeric one with a value."""
    rows = draw(st.integers(1, 12))
    kinds = ["int64", *draw(st.lists(st.sampled_from(list(KINDS)), max_size=5))]
    columns = []
    for kind in kinds:
        of_type, values = KINDS[kind]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns.append(pa.array([1, *cells[1:]] if not columns else cells, of_type, from_pandas=True))
    return pa.table(columns, names=[f"c{number}" for number in range(len(kinds))])


def unpacked(table):
    """The columns of an Arrow table as the Parquet reader's process gives them; a process for each would be slow."""
    file = io.BytesIO()
    parquet.write_table(table, file)
    file.seek(0)
    facts, pieces = parquet_child.read(file, 0, 0, 1000)
    columns = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
    assert all(len(column) == facts["rows"] for column in columns)
    return [column for column in columns if not np.isnan(column).all()]


def by_arrow(table):
    file = io.BytesIO()
    arrow_csv.write_csv(table, file)
    return file.getvalue()


def content_digest(columns):
    """The digest that a budget belongs to."""
    return identity_of({str(number): column for number, column in enumerate(columns)}).content


@settings(max_examples=60)
@given(tables())
def test_a_table_saved_as_csv_and_as_parquet_has_one_digest(table):
    frame = table.to_pandas()
    frame = frame.astype({name: table.schema.field(name).type.to_pandas_dtype() for name in short(table)})
    digest = content_digest(unpacked(table))
    assert read_table(frame.to_csv(index=False).encode(), "a.csv").content == digest
    assert table_of_frame(frame).content == digest
    # Arrow writes numbers of 16 bits out in full, and a missing last cell of one column as a blank line at the end.
    halves = any(pa.types.is_float16(column.type) for column in table.columns)
    blank_end = table.num_columns == 1 and not table.column(0)[-1].is_valid
    if not halves and not blank_end:
        assert read_table(by_arrow(table), "a.csv").content == digest


def short(table):
    """The columns whose width pandas must keep."""
    return [item.name for item in table.schema if pa.types.is_floating(item.type)]


@pytest.mark.slow
def test_a_file_in_both_formats_by_its_own_process(tmp_path, rng):
    """Once through the whole reader, with what used to differ."""
    table = pa.table(
        {
            "short": rng.normal(0, 100, 500).astype(np.float32),
            "half": rng.normal(0, 100, 500).astype(np.float16),
            "money": pa.array([decimal.Decimal(int(k)).scaleb(-5) for k in rng.integers(0, 10**12, 500)]),
            "group": pa.array(rng.integers(0, 5, 500)).dictionary_encode(),  # a category in pandas
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    table.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    found = [read_table(tmp_path / name) for name in ("a.parquet", "a.csv")]
    found += [read_table((tmp_path / "a.csv").read_bytes(), "a.csv"), table_of_frame(table.to_pandas())]
    assert len({item.content for item in found}) == 1
    for item in found:
        assert item.numeric == ("short", "half", "money", "group")
        for one, other in zip(item.numbers(item.numeric), found[0].numbers(item.numeric), strict=True):
            np.testing.assert_array_equal(one, other)


@settings(max_examples=40)
@given(
    st.lists(st.lists(floats(64), min_size=1, max_size=30), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
def test_pieces_and_orders_do_not_matter(columns, seed):
    n_rows = min(map(len, columns))
    arrays = [np.array(column[:n_rows]) for column in columns]
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    digest = ContentDigest()
    for part in np.array_split(order, 3):
        digest.add({str(number): arrays[number][part] for number in rng.permutation(len(arrays))})
    names = [str(number) for number in range(len(arrays))]
    found, whole = digest.finish(names), identity_of(dict(zip(names, arrays, strict=True)))
    assert found.content == whole.content == content_digest(arrays)
    assert found.exact == whole.exact


@given(st.lists(floats(64), min_size=2, max_size=30), st.data())
def test_another_number_is_another_table(column, data):
    array = np.array(column)
    place = data.draw(st.integers(0, len(array) - 1))
    other = array.copy()
    other[place] = data.draw(floats(64))
    with np.errstate(all="ignore"):
        same = np.array_equal(np.sort(array.astype("f4")), np.sort(other.astype("f4")), equal_nan=True)
    assert (content_digest([array]) == content_digest([other])) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (np.nan, -np.nan),
        (1e300, np.inf),  # beyond 32 bits
        (3.5e38, np.inf),
        (-1e300, -np.inf),
        (1e-300, 0.0),
        (-5e-324, 0.0),
        (0.1, float(np.float32(0.1))),
        (1e-45, float(np.float32(1e-45))),  # its smallest number
        (16_777_217.0, 16_777_216.0),
    ],
)
def test_what_is_one_number_in_32_bits(one, other):
    assert content_digest([np.array([7.0, one])]) == content_digest([np.array([other, 7.0])])


def test_a_missing_value_is_no_number_and_a_row_counts():
    missing = np.array([np.nan, 1.0])
    assert content_digest([missing]) != content_digest([np.array([0.0, 1.0])])
    assert content_digest([missing]) != content_digest([missing[1:]])
    assert content_digest([missing]) != content_digest([missing, np.full(2, np.nan)])
