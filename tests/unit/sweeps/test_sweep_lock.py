"""A results file has one writer: a second sweep is refused at once, and a killed one keeps nobody out."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time

import pandas as pd
import pytest

from dpgrams_core import DataError, sweep
from dpgrams_core.cli.main import main
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.run import plan_cells
from dpgrams_core.sweeps.store import ResultsFile, become_writer, lock_file, merge_files

GRID = {"n": [60], "epsilon": [1.0]}
COMMAND = ["sweep", "four_corners", "mean_shift", "--n", "60", "--epsilon", "1", "--runs", "2", "--executor", "serial"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.parquet"


def refusal(path, who=""):
    return f"{path} is being written by another sweep{who}; wait, or give another --out and merge the files later."


@pytest.mark.slow
def test_a_second_process_is_refused_at_once_and_a_killed_one_keeps_nobody_out(path, capsys):
    words = ["sweep", "four_corners", "dp_grams", "--n", "60", "--epsilon", "1", "--runs", "10000"]
    words += ["--executor", "serial", "--out", str(path)]
    program = "from dpgrams_core.sweeps import store; store.FLUSH_SECONDS = 0.1; store.FLUSH_SHARE = 0\n"
    program += f"from dpgrams_core.__main__ import main; raise SystemExit(main({words!r}))"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as child:
        try:
            while not path.exists() or len(pd.read_parquet(path)) == 0:
                assert child.poll() is None, child.stderr.read()
                time.sleep(0.05)
            assert main([*COMMAND, "--out", str(path)]) == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert err == f"error: {refusal(path, f' (process {child.pid})')}\n"
        finally:
            child.kill()  # so that it cannot clean up
    kept = len(pd.read_parquet(path))
    assert lock_file(path).read_text() == str(child.pid)
    assert main([*COMMAND, "--out", str(path)]) == 0
    runs = pd.read_parquet(path)
    assert runs.groupby("method").size().to_dict() == {"dp_grams": kept, "mean_shift": 2}
    assert not lock_file(path).exists()


def test_a_file_can_be_read_while_it_is_written_and_nothing_stays_beside_it(path):
    with ResultsFile(path):
        for again in (lambda: ResultsFile(path), lambda: sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)):
            with pytest.raises(DataError) as caught:
                again()
            assert str(caught.value) == refusal(path, f" (process {os.getpid()})")
        assert len(pd.read_parquet(path)) == 0
    assert os.listdir(path.parent) == [path.name]
    assert len(sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)) == 1


def test_nothing_is_merged_into_a_file_that_is_being_written(path):
    other = path.with_name("other.parquet")
    sweep("mean_shift", "four_corners", runs=1, out=other, **GRID)
    with ResultsFile(path), pytest.raises(DataError, match="is being written by another sweep"):
        merge_files([other], path)
    assert merge_files([other, path], path) == 1
    with ResultsFile(other):  # reading it is allowed
        assert merge_files([other], path) == 1


def test_a_file_that_is_refused_is_not_held(path):
    path.write_text("not a table")
    with pytest.raises(DataError, match="does not hold the results") as caught:
        ResultsFile(path)
    with pytest.raises(DataError, match="does not hold the results"):  # and not: is being written
        ResultsFile(path)
    assert caught.value
    assert os.listdir(path.parent) == [path.name]


def test_a_closed_file_writes_no_more(path, seed):
    (cell,) = plan_cells("mean_shift", "four_corners", runs=1, seed=seed, **GRID)
    with ResultsFile(path) as store:
        pass
    store.add(run_cell(cell))
    with pytest.raises(RuntimeError, match="was closed"):
        store.flush()
    assert len(pd.read_parquet(path)) == 0


def test_a_lock_that_its_holder_removes_meanwhile_is_not_taken_for_one(path, monkeypatch):
    right, seen = fcntl.flock, []

    def late(handle, kind):
        if not seen:
            lock_file(path).unlink()  # between our opening and our locking the last writer ends
        seen.append(handle)
        return right(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    stop_writing = become_writer(path)
    assert len(seen) == 2
    with pytest.raises(DataError, match="is being written"):
        become_writer(path)
    stop_writing()
    assert not lock_file(path).exists()


def test_where_there_are_no_locks_a_sweep_runs_without(path, monkeypatch):
    def none_here(handle, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none_here)
    assert len(sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)) == 1
    assert os.listdir(path.parent) == [path.name]


def test_where_no_file_can_be_made_the_writing_says_so(tmp_path):
    long = tmp_path / f"{'a' * 244}.parquet"  # its own name is short enough, and no other beside it would be
    with pytest.raises(DataError, match="cannot be written: File name too long"):
        ResultsFile(long)


def test_a_lock_that_cannot_be_opened_is_no_leave_to_write(path):
    lock_file(path).mkdir()
    with pytest.raises(DataError, match="so another sweep may be writing"):
        ResultsFile(path)
