"""The commands sweep and merge: stopped, continued, and refused in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from itertools import islice

import pandas as pd
import pytest

from dpgrams_core import SpecError
from dpgrams_core.cli import sweep as commands_sweep
from dpgrams_core.cli.main import main
from dpgrams_core.sweeps.run import plan_cells, stream_partial


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "processes", "dask"])
def test_ctrl_c_keeps_what_is_finished(path, executor):
    words = ["sweep", "four_corners", "functional", "--n", "1000", "2000", "--epsilon", "0.5", "1", "--runs", "40"]
    words += ["--executor", executor, "--out", str(path), "--json"]
    # Whoever starts the tests in the background hands down a SIGINT that is ignored.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from dpgrams_core.sweeps import store; store.FLUSH_SECONDS = 0.1; store.FLUSH_SHARE = 0\n"
    program += f"from dpgrams_core.__main__ import main; raise SystemExit(main({words!r}))"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
        while not path.exists() or len(pd.read_parquet(path)) == 0:
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to the workers too
        out, err = child.communicate()
    assert child.returncode == 0
    assert "stopped, what is finished follows" in err
    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err
    kept = pd.read_parquet(path)
    assert 0 < len(kept) < 160
    assert sum(row["runs"] for row in json.loads(out)) == len(kept)
    assert (kept.error == "").all()


COMMAND = ["sweep", "four_corners", "dp_grams", "mean_shift", "--n", "60", "--epsilon", "1", "--executor", "serial"]


def test_the_command_varies_a_control_and_resumes(path, capsys):
    words = [*COMMAND, "--runs", "2", "--vary", "clip-multiplier", "0.5", "2", "--out", str(path)]
    assert main([*words, "--json"]) == 0
    first = capsys.readouterr()
    rows = json.loads(first.out)
    assert [(row["method"], row["varied"], row["value"]) for row in rows] == [
        ("dp_grams", "clip_multiplier", 0.5),
        ("dp_grams", "clip_multiplier", 2),
        ("mean_shift", "", None),
    ]
    assert "mse_q90" in rows[0]
    assert "already" not in first.err
    assert main(words) == 0
    again = capsys.readouterr()
    assert f"6 of 6 runs are in {path} already" in again.err
    assert "3 of 3 cells" in again.err
    assert "mse_se" in again.out
    assert "mse_q90" not in again.out  # too wide for a screen


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--vary", "speed", "1"], "error: speed = 1 is not allowed: no method of this sweep has this option."),
        (["--vary", "clip_multiplier"], "error: clip_multiplier = [] is not allowed: give a list with at least one"),
        (["--scheduler", "tcp://127.0.0.1:1"], "error: scheduler = 'tcp://127.0.0.1:1' is not allowed: it belongs to"),
        (["--out", "results.txt"], "error: out = 'results.txt' is not allowed: give a file name that ends in .parquet"),
        (
            ["--vary", "clip_multiplier", *map(str, range(1, 5100))],
            "error: cells = 5100 is not allowed: the sweep would make",
        ),
    ],
)
def test_a_wrong_command_is_one_sentence(words, sentence, refused_in_a_sentence):
    refused_in_a_sentence([*COMMAND, *words], sentence)


def gone_after(count):
    """A cluster that goes away after so many results."""

    def stream(cells, *_, **how):
        yield from islice(stream_partial(cells, store=how.get("store"), piece_runs=1), count)
        raise SpecError("scheduler", "tcp://a", "it or its workers went away")

    return stream


@pytest.mark.parametrize("out", [False, True])
def test_a_cluster_that_goes_away_leaves_a_table_of_what_is_finished(out, path, capsys, monkeypatch):
    words = [*COMMAND, "--runs", "2", "--json", *(["--out", str(path)] if out else [])]
    monkeypatch.setattr(commands_sweep, "stream_partial", gone_after(3))
    assert main(words) == 2
    shown, err = capsys.readouterr()
    assert [row["runs"] for row in json.loads(shown)] == [2, 1]
    assert err.splitlines()[-1] == "error: scheduler = 'tcp://a' is not allowed: it or its workers went away."
    monkeypatch.setattr(commands_sweep, "stream_partial", gone_after(0))
    assert main(words) == 2
    shown, err = capsys.readouterr()
    assert [row["runs"] for row in json.loads(shown or "[]")] == []  # nothing came this time, so there is no table


def test_a_very_large_sweep_goes_cell_by_cell_and_keeps_rows(monkeypatch):
    cells = plan_cells("mean_shift", "four_corners", n=[60, 61, 62], epsilon=[1.0], runs=2)
    monkeypatch.setattr(commands_sweep, "MAX_CELLS_UNASKED", 2)
    order, stream = [], commands_sweep.stream_partial

    def watched(*args, **how):
        for result in stream(*args, piece_runs=1, **how):
            order.append(result.cell.n)
            yield result

    monkeypatch.setattr(commands_sweep, "stream_partial", watched)
    asked = Namespace(executor="serial", scheduler=None, out=None)
    kept, _ = commands_sweep.run_with_progress(cells, asked, lambda result: result.cell.n)
    assert order == [60, 60, 61, 61, 62, 62]
    assert kept == [60, 61, 62]


def test_a_missing_file_cannot_be_merged(tmp_path, capsys):
    assert main(["merge", str(tmp_path / "out.parquet"), str(tmp_path / "none.parquet")]) == 2
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize("pieces", [0, 2])
def test_a_piece_that_was_kept_in_the_moment_of_ctrl_c_is_in_the_table(path, pieces, monkeypatch):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=4)

    def interrupted(cells, *_, store, **__):
        stream = stream_partial(cells, store=store, piece_runs=1)
        yield from islice(stream, pieces)
        next(stream)  # it is in the file by now
        raise KeyboardInterrupt

    monkeypatch.setattr(commands_sweep, "stream_partial", interrupted)
    asked = Namespace(executor="serial", scheduler=None, out=str(path))
    kept, stopped = commands_sweep.run_with_progress([cell], asked, lambda result: result.numbers)
    assert isinstance(stopped, KeyboardInterrupt)
    assert kept == [tuple(range(pieces + 1))]
    assert len(pd.read_parquet(path)) == pieces + 1
