"""Sweeps: the same numbers in any order, in any process, and however the sweep ends."""

from __future__ import annotations

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import SpecError, load_dataset, run, score, sweep
from dpgrams_core import sweeps as module
from dpgrams_core.sweeps import data_seed, derived_seed, plan_cells, run_cell, stream_cells, tidy

BOTH = ["dp_grams", "mean_shift"]


def without_time(frame):
    return frame.drop(columns="seconds")


def test_processes_give_what_the_serial_sweep_gives(seed):
    options = {"n": [60, 120], "epsilon": [0.5, 2.0], "runs": 2, "seed": seed, "clip_multiplier": 0.7}
    serial = sweep(BOTH, "four_corners", executor="serial", **options)
    spread = sweep(BOTH, "four_corners", executor="processes", **options)
    pd.testing.assert_frame_equal(without_time(serial), without_time(spread))
    assert len(serial) == 2 * (2 + 1)  # mean shift knows no epsilon


def test_all_methods_and_all_budgets_see_the_same_draws(seed):
    cells = plan_cells(BOTH, "four_corners", n=[60, 80], epsilon=[0.5, 2.0], runs=3, seed=seed)
    seeds = {(cell.n, number): set() for cell in cells for number in range(3)}
    for cell in cells:
        for number in range(3):
            seeds[cell.n, number].add(data_seed(cell, number))
    assert all(len(shared) == 1 for shared in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)  # and every run has a draw of its own


def test_the_noise_differs_between_runs_budgets_and_sweeps():
    parts = [("noise", "dp_grams", "four_corners", 60, e, number) for e in (0.5, 2.0) for number in range(50)]
    numbers = {derived_seed(seed, *part) for seed in (0, 1) for part in parts}
    assert len(numbers) == 2 * len(parts)


def test_a_derived_seed_is_the_same_on_every_machine():
    assert derived_seed(7, "data", "four_corners", 1000, 3) == 692106747


def test_a_cell_is_the_mean_of_runs_that_anyone_can_repeat(seed):
    (cell,) = plan_cells("dp_grams", "four_corners", n=[80], epsilon=[1.0], runs=3, seed=seed)
    values = []
    for number in range(3):
        data = load_dataset("four_corners", n=80, seed=data_seed(cell, number))
        noise_seed = derived_seed(seed, "noise", "dp_grams", "four_corners", 80, 1.0, number)
        values.append(score(run("dp_grams", data, epsilon=1.0, seed=noise_seed), data)["mse"])
    row = run_cell(cell).row()
    assert row["mse"] == pytest.approx(np.mean(values))
    assert row["mse_se"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert (row["runs"], row["failures"], row["status"], row["error"]) == (3, 0, "nominal", "")


def test_extending_a_sweep_leaves_what_it_had(seed):
    small = sweep(BOTH, "four_corners", n=[60], epsilon=[1.0], runs=2, seed=seed)
    large = sweep(BOTH[::-1], "four_corners", n=[90, 60], epsilon=[4.0, 1.0], runs=2, seed=seed)
    kept = large[(large.n == 60) & large.epsilon.isin([1.0, math.inf])].reset_index(drop=True)
    pd.testing.assert_frame_equal(without_time(small), without_time(kept))
    more = run_cell(plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=4, seed=seed)[0])
    less = run_cell(plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=2, seed=seed)[0])
    assert more.scores["mse"][:2] == less.scores["mse"]


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_failing_cell_is_recorded_and_the_rest_goes_on(executor, seed):
    options = {"n": [60, 200], "epsilon": [1.0], "runs": 2, "seed": seed, "batch_size": 100}
    table = sweep(BOTH, "four_corners", executor=executor, **options).set_index(["n", "method"])
    failed = table.loc[60, "dp_grams"]
    assert (failed.runs, failed.failures) == (0, 2)
    assert "batch_size = 100" in failed.error
    assert math.isnan(failed.mse)
    for good in ((60, "mean_shift"), (200, "dp_grams"), (200, "mean_shift")):
        assert (table.loc[good].runs, table.loc[good].failures) == (2, 0)
        assert table.loc[good].mse >= 0


def test_one_failing_run_does_not_cost_the_others(monkeypatch, seed):
    # The middle run of three breaks, in the way that numerical code breaks.
    (cell,) = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=3, seed=seed)
    whole = run_cell(cell)
    calls, right = [], module.run

    def breaking(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise FloatingPointError("overflow")
        return right(*args, **options)

    monkeypatch.setattr(module, "run", breaking)
    broken = run_cell(cell)
    assert broken.failures == ("overflow",)
    assert broken.scores["mse"] == whole.scores["mse"][::2]


def test_closing_a_serial_stream_runs_no_further_cell(monkeypatch, seed):
    started = []
    monkeypatch.setattr(module, "run_cell", lambda cell: started.append(cell) or run_cell(cell))
    cells = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[0.5, 1.0, 2.0, 4.0], runs=1, seed=seed)
    stream = stream_cells(cells)
    first = next(stream)
    stream.close()
    assert started == [cells[0]]
    assert len(tidy([first])) == 1  # what came is kept


def test_closing_a_stream_of_processes_cancels_the_rest_and_leaves_no_process(monkeypatch, seed):
    submitted = []

    class Watched(ProcessPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(super().submit(*args, **kwargs))
            return submitted[-1]

    monkeypatch.setattr(module, "ProcessPoolExecutor", Watched)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    epsilons = [0.1 * i for i in range(1, 101)]
    cells = plan_cells("dp_grams", "four_corners", n=[60], epsilon=epsilons, runs=10, seed=seed)
    stream = stream_cells(cells, "processes")
    assert len(next(stream).scores["mse"]) == 10
    stream.close()
    assert len(submitted) == 100
    assert any(future.cancelled() for future in submitted)
    assert all(future.done() for future in submitted)
    assert multiprocessing.active_children() == []


def test_no_cells_are_no_results():
    assert list(stream_cells([], "serial")) == []
    assert list(stream_cells([], "processes")) == []
    assert tidy([]).empty


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("n", [49], "at least 50"),
        ("n", [], "at least one"),
        ("n", 1000, "list"),
        ("epsilon", [-1.0], "above 0"),
        ("epsilon", [math.inf], "finite"),
        ("epsilon", 1.0, "list"),
        ("runs", 0, "at least 1"),
        ("runs", 1.5, "whole number"),
        ("runs", 10_001, "at most 10000"),
        ("seed", -1, "at least 0"),
        ("dataset", "nowhere", "four_corners"),
        ("methods", ["dp_grams", "magic"], "mean_shift"),
        ("methods", 5, "list"),
        ("methods", [], "at least one"),
        ("clip_multiplier", 0, "above 0"),
        ("speed", 3, "no method of this sweep"),
    ],
)
def test_a_bad_sweep_is_refused_before_any_run(field, value, words, monkeypatch):
    monkeypatch.setattr(module, "run_cell", lambda cell: pytest.fail("a cell was run"))
    options = {"methods": "dp_grams", "dataset": "four_corners", "n": [60], "epsilon": [1.0], "runs": 1, field: value}
    with pytest.raises(SpecError, match=words) as caught:
        sweep(**options)
    assert caught.value.field == field


def test_an_unknown_executor_is_refused():
    with pytest.raises(SpecError, match=r"executor = 'threads'.*processes, serial"):
        sweep("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=1, executor="threads")


def test_whole_numbers_may_come_as_floats(seed):
    table = sweep("dp_grams", "four_corners", n=[60.0], epsilon=[1], runs=2.0, seed=float(seed))
    same = sweep("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=2, seed=seed)
    pd.testing.assert_frame_equal(without_time(table), without_time(same))


def test_the_table_is_in_a_fixed_order():
    table = sweep(BOTH, "four_corners", n=[80, 60], epsilon=[2.0, 0.5], runs=1)
    keys = list(zip(table.n, table.method, table.epsilon, strict=True))
    assert keys == sorted(keys)
    assert table[table.method == "mean_shift"].status.unique().tolist() == ["none"]
