"""What reading a file takes: bounded memory, few files at once, and columns that are read when they are picked."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpgrams_core import DataError, load_table
from dpgrams_core.own_data.reading import csv as csv_reader
from dpgrams_core.own_data.reading import csv as csv_text
from dpgrams_core.own_data.reading import table as table_reader
from dpgrams_core.own_data.reading.table import Limits, read_table
from dpgrams_core.own_data.table import picked_rows
from dpgrams_core.privacy.ledger import digest as content

PIECE = 16_384
COLUMNS = 8


def write_csv(path, rows):
    line = ",".join(["123.25"] * COLUMNS) + "\n"
    path.write_text(",".join(f"c{k}" for k in range(COLUMNS)) + "\n" + line * rows)


def write_parquet(path, rows):
    parquet.write_table(pa.table({f"c{k}": np.full(rows, float(k)) for k in range(4 * COLUMNS)}), path)


def peak_of(call):
    """The most memory that Python, NumPy and Arrow held during a call, and what it returned."""
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    found = call()
    peak = tracemalloc.get_traced_memory()[1] + counted.max_memory()
    tracemalloc.stop()
    pa.set_memory_pool(usual)
    return peak, found


@pytest.mark.slow
@pytest.mark.parametrize(("write", "rows"), [(write_csv, 2_000), (write_parquet, 17_000)])
def test_a_local_file_takes_no_more_memory_where_it_is_longer(write, rows, tmp_path, monkeypatch):
    """The file is several times its pieces; held columns would take eight times the memory for eight times the rows."""
    monkeypatch.setattr(csv_reader, "PIECE", PIECE)
    monkeypatch.setattr(csv_text, "PIECE", PIECE)
    monkeypatch.setattr(content, "ROWS_AT_ONCE", rows // 4)
    peaks = []
    for factor in (1, 8):
        write(tmp_path / "a", factor * rows)
        peak, table = peak_of(lambda: read_table(tmp_path / "a", limits=Limits.of_owner()))
        peaks.append(peak)
    assert peaks[1] < 1.5 * peaks[0]
    assert table.n_rows == 8 * rows
    assert table.values == {}
    (column,) = table.numbers(["c3"])
    assert len(column) == 8 * rows
    assert len(np.unique(column)) == 1


@pytest.mark.slow
def test_a_small_parquet_file_takes_little_more_than_its_numbers(tmp_path, monkeypatch):
    """Three hundred thousand rows of five columns in some kilobytes; all that was read once is not there thrice."""
    monkeypatch.setattr(content, "ROWS_AT_ONCE", 2_048)
    rows, columns = 300_000, 5
    parquet.write_table(pa.table({f"c{k}": np.full(rows, float(k)) for k in range(columns)}), tmp_path / "a.parquet")
    file = (tmp_path / "a.parquet").read_bytes()
    assert len(file) < 50_000
    assert peak_of(lambda: read_table(file, "a.parquet"))[0] < 1.6 * columns * 8 * rows


def test_two_files_are_read_at_once(monkeypatch):
    inside, most = [], []
    two = threading.Barrier(table_reader.FILES_AT_ONCE)

    def slow(*_):
        inside.append(1)
        most.append(len(inside))
        two.wait(timeout=30)
        time.sleep(0.02)
        inside.pop()

    monkeypatch.setattr(table_reader, "_read", slow)
    threads = [threading.Thread(target=read_table, args=(b"",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 2
    assert len(most) == 6


ROWS = "".join(f"{k},{2 * k},{3 * k}\n" for k in range(10, 500))


@pytest.fixture
def local(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + ROWS)
    return path


@pytest.fixture
def opened(monkeypatch):
    """The columns that were read from a file again, one entry for each reading."""
    found = []
    kept = table_reader.LocalFile._read
    noted = lambda self, names, *how: (found.append(names), kept(self, names, *how))[1]  # noqa: E731
    monkeypatch.setattr(table_reader.LocalFile, "_read", noted)
    return found


def test_picked_columns_are_read_once_and_others_go(local, opened):
    table = read_table(local)
    assert opened == []
    np.testing.assert_array_equal(picked_rows(table, ["b", "a"])[:2], [[20, 10], [22, 11]])
    picked_rows(table, ["a"])
    picked_rows(table, ["a", "b"])
    assert opened == [["b", "a"]]
    picked_rows(table, ["b", "c"])
    picked_rows(table, ["a"])
    assert opened == [["b", "a"], ["c"], ["a"]]
    (column,) = table.numbers(["a"])
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_a_local_file_and_its_upload_are_one_table(local):
    held, stored = read_table(local.read_bytes(), "a.csv"), read_table(local)
    assert held.content == stored.content
    assert held.identity.exact == stored.identity.exact
    assert (held.columns, held.n_rows, held.notes) == (stored.columns, stored.n_rows, stored.notes)
    for one, other in zip(held.numbers(held.numeric), stored.numbers(held.numeric), strict=True):
        np.testing.assert_array_equal(one, other)
    box = [(0, 1000)] * 3
    np.testing.assert_array_equal(
        load_table(held, columns=held.numeric, box=box).points, load_table(local, columns=held.numeric, box=box).points
    )


@pytest.mark.parametrize("other", ["a,b,c\n" + ROWS.replace("10,", "11,", 1), "a,b,c\n" + ROWS * 2, "x"])
def test_a_file_that_changed_meanwhile_is_refused(local, other):
    table = read_table(local)
    before = local.stat()
    local.write_text(other)
    os.utime(local, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(DataError, match="was changed after it was opened"):
        picked_rows(table, ["a"])


def test_a_file_that_is_gone_gets_a_sentence(local):
    table = read_table(local)
    local.unlink()
    with pytest.raises(DataError, match="could not be opened"):
        picked_rows(table, ["a"])


@pytest.mark.parametrize("where", [0, 200, 489])
def test_a_column_that_is_text_far_down_leaves_no_trace_in_the_digest(where, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reader, "PIECE", 200)
    rows = ROWS.splitlines()
    rows[where] = rows[where].rsplit(",", 1)[0] + ",word"
    (tmp_path / "a.csv").write_text("\n".join(["a,b,c", *rows]))
    without = "\n".join(["a,b", *(row.rsplit(",", 1)[0] for row in rows)]).encode()
    assert read_table(tmp_path / "a.csv").content == read_table(without).content
    worded = "\n".join(["a,b,c", *(row.rsplit(",", 1)[0] + ",word" for row in rows)]).encode()  # its name counts
    assert read_table(tmp_path / "a.csv").identity.exact == read_table(worded).identity.exact
    assert read_table((tmp_path / "a.csv").read_bytes()).content == read_table(without).content
