"""Exported calls of the engine: settings and scripts of sweeps and searches, run as a user would run them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import sweep
from dpgrams_core.calls import FUNCTIONS, Call, calls_json, calls_script, sweep_calls
from dpgrams_core.error_sources import error_sources
from dpgrams_core.errors import SpecError
from dpgrams_core.sweeps import plan_cells

ROOT = Path(__file__).parents[2]


def printed_by(script: str, folder: Path) -> str:
    path = folder / "simulation.py"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_script_of_a_sweep_and_of_a_ladder_gives_the_same_numbers(seed, tmp_path):
    grid = {"n": [100, 60], "epsilon": [2.0, 1.0], "runs": 2, "seed": seed}
    private = plan_cells("dp_grams", "four_corners", **grid, vary=("clip_multiplier", [1.0, 0.5]), calibration="tight")
    plain = plan_cells("mean_shift", "four_corners", **grid)
    calls = sweep_calls([*private, *plain])
    assert [dict(call.arguments)["methods"] for call in calls] == ["dp_grams", "mean_shift"]
    ladder = {"n": 80, "epsilon": 1.0, "measure": "mse", "runs": 2, "seed": seed}
    more = Call(
        function="error_sources", arguments=(("method", "functional"), ("dataset", "four_corners"), *ladder.items())
    )
    printed = printed_by(calls_script([*calls, more]), tmp_path)
    first, rest = printed.split("\n\n", 1)
    second, sentence = rest.split("\n\n", 1)
    expected = [
        sweep("dp_grams", "four_corners", **grid, vary=("clip_multiplier", [1.0, 0.5]), calibration="tight"),
        sweep("mean_shift", "four_corners", **grid),
    ]
    for text, table in zip((first, second), expected, strict=True):
        found = pd.read_csv(io.StringIO(text))
        assert list(found["n"]) == list(table["n"])
        np.testing.assert_allclose(found["mse"], table["mse"], rtol=1e-12)
    assert sentence.strip() == error_sources("functional", "four_corners", **ladder).sentence


def test_the_settings_hold_every_argument():
    cells = plan_cells("functional", "four_corners", n=[60], epsilon=[1.0, 0.5], runs=3, seed=7, delta=1e-7)
    (found,) = json.loads(calls_json(sweep_calls(cells)))["calls"]
    assert found == {
        "function": "sweep",
        "methods": "functional",
        "dataset": "four_corners",
        "n": [60],
        "epsilon": [0.5, 1.0],
        "runs": 3,
        "seed": 7,
        "delta": 1e-7,
        "executor": "processes",
    }


def test_baselines_alone_still_make_a_call_that_runs():
    (call,) = sweep_calls(plan_cells("mean_shift", "four_corners", n=[60], epsilon=[3.0], runs=1))
    arguments = dict(call.arguments) | {"executor": "serial"}
    assert len(sweep(**arguments)) == 1


def test_an_unknown_function_is_refused():
    with pytest.raises(SpecError, match="function"):
        Call(function="system", arguments=())
    assert "sweep" in FUNCTIONS
