"""Exported calls of the engine: settings and scripts of sweeps and searches, run as a user would run them."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import sweep
from dpgrams_core.exports.script import calls_script
from dpgrams_core.exports.settings import open_settings, spec_json, sweep_calls
from dpgrams_core.model.errors import SpecError
from dpgrams_core.studies.ablation import error_sources
from dpgrams_core.sweeps import plan
from dpgrams_core.sweeps.run import plan_cells
from tests.printed import printed_by


@pytest.mark.slow
def test_the_script_of_a_sweep_and_of_a_ladder_gives_the_same_numbers(seed, tmp_path):
    grid = {"n": [100, 60], "epsilon": [2.0, 1.0], "runs": 2, "seed": seed}
    private = plan_cells("dp_grams", "four_corners", **grid, vary=("clip_multiplier", [1.0, 0.5]), calibration="tight")
    plain = plan_cells("mean_shift", "four_corners", **grid)
    calls = sweep_calls([*private, *plain])
    assert [arguments["methods"] for _, arguments in calls] == ["dp_grams", "mean_shift"]
    ladder = {"n": 80, "epsilon": 1.0, "measure": "mse", "runs": 2, "seed": seed}
    more = ("error_sources", {"method": "functional", "dataset": "four_corners", **ladder})
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
    (found,) = json.loads(spec_json(sweep_calls(cells)))["calls"]
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
    ((_, arguments),) = sweep_calls(plan_cells("mean_shift", "four_corners", n=[60], epsilon=[3.0], runs=1))
    arguments |= {"executor": "serial"}
    assert len(sweep(**arguments)) == 1


def test_an_unknown_function_is_refused():
    with pytest.raises(SpecError, match="function"):
        calls_script([("system", {})])
    with pytest.raises(SpecError, match="function"):
        open_settings(json.dumps({"format": 1, "kind": "calls", "calls": [{"function": "system"}]}))


@pytest.mark.parametrize("more", [{}, {"confirm": True}], ids=["unconfirmed", "confirmed"])
def test_a_file_with_too_many_points_is_refused_before_they_are_made_or_timed(more, monkeypatch):
    monkeypatch.setattr(plan, "run_cell", lambda *_: pytest.fail("a file that is opened runs nothing"))
    monkeypatch.setattr(plan.Grid, "cells", lambda *_: pytest.fail("points are counted before they are made"))
    call = {"function": "sweep", "methods": "functional", "dataset": "four_corners", "runs": 10_000, **more}
    large = {**call, "n": list(range(100, 400)), "epsilon": [1 + k / 1000 for k in range(300)]}
    many = [{**call, "n": list(range(100, 200)), "epsilon": [1.0, 2.0]}] * 30
    for calls in ([large], many):
        with pytest.raises(SpecError):
            open_settings(json.dumps({"format": 1, "kind": "calls", "calls": calls}))


def test_a_downloaded_sweep_is_opened_with_its_points_and_its_link():
    points = plan_cells(
        "dp_grams", "four_corners", n=[60, 100], epsilon=[0.5, 1.0], runs=3, vary=("clip_multiplier", [1, 2])
    )
    points += plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=1, seed=2)
    found = open_settings(spec_json(sweep_calls(points), "tradeoff", "lab_n_four_corners=60+100"))
    assert set(found.runs) == set(points)
    assert (found.page, found.link) == ("tradeoff", "lab_n_four_corners=60+100")


@pytest.mark.parametrize(
    ("function", "how"),
    [
        ("error_sources", {"n": 80, "epsilon": 2.0, "measure": "mse", "runs": 2, "seed": 5, "n_modes": 4}),
        ("needed_epsilon", {"n": 80, "low": 2.0, "high": 4.0, "target": 0.1, "runs": 2, "seed": 5, "n_modes": 4}),
        ("needed_n", {"epsilon": 2.0, "low": 80, "high": 400, "target": 0.1, "runs": 2, "seed": 5, "n_modes": 4}),
    ],
)
def test_a_downloaded_search_is_opened_at_its_first_point(function, how):
    text = spec_json([(function, {"method": "functional", "dataset": "four_corners", **how})])
    (run,) = open_settings(text).runs
    assert (run.method, run.n, run.epsilon, run.runs, run.seed) == ("functional", 80, 2.0, 2, 5)
    assert run.options == (("n_modes", 4),)
