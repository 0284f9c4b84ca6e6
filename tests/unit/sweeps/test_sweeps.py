"""Sweeps: the same numbers in any order, in any process, and however the sweep ends."""

from __future__ import annotations

import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import psutil
import pytest

from dpgrams_core import SpecError, load_dataset, run, score, sweep
from dpgrams_core.sweeps import cell as cells
from dpgrams_core.sweeps import executors
from dpgrams_core.sweeps import plan as sweep_plan
from dpgrams_core.sweeps import run as module
from dpgrams_core.sweeps.cell import data_seed, derived_seed
from dpgrams_core.sweeps.run import plan_cells, run_cell, stream_cells, stream_partial, tidy
from tests.made import changed, made_result

BOTH = ["dp_grams", "mean_shift"]


def without_time(frame):
    return frame.drop(columns="seconds")


@pytest.mark.slow
def test_processes_give_what_the_serial_sweep_gives(seed):
    options = {"n": [60, 120], "epsilon": [0.5, 2.0], "runs": 2, "seed": seed, "clip_multiplier": 0.7}
    serial = sweep(BOTH, "four_corners", executor="serial", **options)
    spread = sweep(BOTH, "four_corners", executor="processes", **options)
    pd.testing.assert_frame_equal(without_time(serial), without_time(spread))
    assert len(serial) == 2 * (2 + 1)  # mean shift knows no epsilon


def test_all_methods_and_all_budgets_see_the_same_draws(seed):
    planned = plan_cells(BOTH, "four_corners", n=[60, 80], epsilon=[0.5, 2.0], runs=3, seed=seed)
    seeds = {(cell.n, number): set() for cell in planned for number in range(3)}
    for cell in planned:
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


@pytest.mark.parametrize("executor", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
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
    calls, right = [], cells.run

    def breaking(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise FloatingPointError("overflow")
        return right(*args, **options)

    monkeypatch.setattr(cells, "run", breaking)
    broken = run_cell(cell)
    assert broken.failures == ("overflow",)
    assert (broken.numbers, list(broken.outcomes)) == ((0, 2), [0, 1, 2])
    assert broken.scores["mse"] == whole.scores["mse"][::2]


def test_closing_a_serial_stream_runs_no_further_cell(monkeypatch, seed):
    started = []
    monkeypatch.setattr(module, "run_cell", lambda cell: started.append(cell) or run_cell(cell))
    planned = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[0.5, 1.0, 2.0, 4.0], runs=1, seed=seed)
    stream = stream_cells(planned)
    first = next(stream)
    stream.close()
    assert started == [planned[0]]
    assert len(tidy([first])) == 1  # what came is kept


@pytest.mark.slow
def test_closing_a_stream_of_processes_starts_no_more_and_leaves_no_process(monkeypatch, seed):
    submitted = []

    class Watched(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(super().submit(*args, **kwargs))
            return submitted[-1]

    monkeypatch.setattr(executors, "ThreadPoolExecutor", Watched)
    monkeypatch.setattr(executors.os, "cpu_count", lambda: 1)
    epsilons = [0.1 * i for i in range(1, 101)]
    planned = plan_cells("dp_grams", "four_corners", n=[60], epsilon=epsilons, runs=5, seed=seed)
    others = set(psutil.Process().children())  # left running by other tests
    stream = stream_cells(planned, "processes")
    assert len(next(stream).scores["mse"]) == 5
    stream.close()
    assert len(submitted) == executors.WINDOW  # and not all hundred: memory is bounded
    assert all(future.done() for future in submitted)
    assert set(psutil.Process().children()) <= others


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
        ("dataset", "blobs", "dp_grams works on modes data"),
        ("clip_multiplier", 0, "above 0"),
        ("speed", 3, "no method of this sweep"),
        ("epsilon", [0], "above 0"),
        ("vary", ("epsilon", [1.0]), "a list of its own"),
        ("vary", "clip_multiplier", "one option and its values"),
        ("vary", {"clip_multiplier": [1], "kernel": ["gaussian"]}, "one option and its values"),
        ("vary", (3, [1]), "the name of an option"),
    ],
)
def test_a_bad_sweep_is_refused_before_any_run(field, value, words, monkeypatch):
    for place in (module, sweep_plan):
        monkeypatch.setattr(place, "run_cell", lambda cell: pytest.fail("a cell was run"))
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


CLIPS = ("clip_multiplier", [0.5, 1.0, 2.0])


def test_a_varied_control_has_columns_and_shares_data_and_noise(seed):
    planned = plan_cells(BOTH, "four_corners", n=[80], epsilon=[1.0], runs=2, seed=seed, vary=CLIPS)
    assert [cell.value for cell in planned[:3]] == CLIPS[1]
    assert len(planned) == 3 + 1  # mean shift has no such option
    for number in range(2):
        assert len({data_seed(cell, number) for cell in planned}) == 1
        assert len({cells.noise_seed(cell, number) for cell in planned[:3]}) == 1
    table = tidy([run_cell(cell) for cell in reversed(planned)])
    assert table.columns[:6].tolist() == ["method", "dataset", "n", "epsilon", "varied", "value"]
    private = table[table.method == "dp_grams"]
    assert private.value.tolist() == CLIPS[1]
    assert (private.varied == "clip_multiplier").all()
    assert math.isnan(table[table.method == "mean_shift"].value.iloc[0])
    for cell in planned[:3]:  # a varied value is the same as a fixed one
        fixed = plan_cells("dp_grams", "four_corners", n=[80], epsilon=[1.0], runs=2, seed=seed, **dict(cell.options))
        assert run_cell(fixed[0]).scores == run_cell(cell).scores


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("batch_size", [20, 40]),
        ("step_size", [0.1, 0.5]),
        ("bandwidth", [0.8, "rate"]),
        ("kernel", ["gaussian", "gaussian4"]),
        ("calibration", ["experiments", "theorem", "tight"]),
    ],
)
def test_every_control_of_the_issue_can_be_varied(name, values):
    table = sweep("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=1, vary={name: values})
    assert set(table.value) == set(values)
    assert table.failures.sum() == 0
    assert table.mse_per_true_mode.nunique() > 1


@pytest.mark.parametrize(
    ("vary", "field", "words"),
    [
        (("speed", [1]), "speed", "no method of this sweep"),
        (("clip_multiplier", []), "clip_multiplier", "at least one"),
        (("clip_multiplier", [1, -1]), "clip_multiplier", "above 0"),
        (("calibration", "tight"), "calibration", "list"),
    ],
)
def test_a_bad_varied_control_is_refused(vary, field, words):
    with pytest.raises(SpecError, match=words) as caught:
        plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], vary=vary)
    assert caught.value.field == field


def test_a_control_cannot_be_fixed_and_varied():
    with pytest.raises(SpecError, match="fixed value as well, 3"):
        plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], vary=CLIPS, clip_multiplier=3)


def test_a_value_given_twice_is_one_cell():
    planned = plan_cells(["dp_grams"] * 2, "four_corners", n=[60, 60.0], epsilon=[1, 1.0], vary=("beta", [3, 3.0]))
    assert len(planned) == 1


def test_a_million_cells_have_to_be_confirmed():
    grid = {"n": [50], "epsilon": [0.001 * i for i in range(1, 1001)], "runs": 20}
    vary = ("clip_multiplier", [0.001 * i for i in range(1, 1001)])
    with pytest.raises(
        SpecError, match=r"cells = 1000000 .*20,000,000 runs, at least [0-9.]+ (hour|day).*confirm=True"
    ):
        plan_cells("dp_grams", "four_corners", vary=vary, **grid)
    assert len(plan_cells("dp_grams", "four_corners", vary=(vary[0], vary[1][:6]), confirm=True, **grid)) == 6_000
    with pytest.raises(SpecError, match=r"cells = 1000 .*10,000,000 runs"):
        plan_cells("dp_grams", "four_corners", **{**grid, "runs": 10_000})


def test_the_estimate_of_a_large_sweep_takes_a_small_sample_of_slow_data(monkeypatch):
    timed = []

    def run_cell(cell):
        timed.append(cell)
        return cells.run_cell(cell)

    monkeypatch.setattr(sweep_plan, "run_cell", run_cell)
    grid = {"n": [69_000], "epsilon": [0.1 + 0.001 * i for i in range(6_000)], "runs": 20, "n_clusters": 10}
    with pytest.raises(SpecError, match=r"120,000 runs, at least [0-9.]+ (minutes|hours)"):
        plan_cells("dp_kmeans", "mnist", **grid)
    assert [(cell.n, cell.runs) for cell in timed] == [(sweep_plan.QUICK_N, 2)]
    timed.clear()
    batch = {"n": [1000], "epsilon": grid["epsilon"], "batch_size": 500}  # this setting needs its own n
    with pytest.raises(SpecError, match="at least"):
        plan_cells("dp_grams", "four_corners", **batch)
    assert [cell.n for cell in timed] == [sweep_plan.QUICK_N, 1000]


def test_partial_results_grow_to_the_whole(seed):
    planned = plan_cells(BOTH, "four_corners", n=[60], epsilon=[1.0], runs=7, seed=seed)
    seen = {cell: [] for cell in planned}
    order = []
    for result in stream_partial(planned, piece_runs=3):
        seen[result.cell].append(result)
        order.append(result.cell)
    assert order == planned * 3  # a first piece of every cell before the second of any
    for cell, results in seen.items():
        assert [result.ended for result in results] == [3, 6, 7]
        assert [result.complete for result in results] == [False, False, True]
        whole = run_cell(cell)
        assert results[-1].scores == whole.scores
        assert results[0].scores["mse"] == whole.scores["mse"][:3]
        assert results[0].row()["runs"] == 3


def test_quantiles_are_those_of_the_runs(seed):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=6, seed=seed)
    result = run_cell(cell)
    row, values = result.row(), result.scores["mse"]
    for share in (10, 25, 50, 75, 90):
        assert row[f"mse_q{share}"] == pytest.approx(np.percentile(values, share))


def test_quantiles_of_infinite_errors_are_errors_that_occurred(seed):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=4, seed=seed)
    values = (1.0, math.inf, 2.0, math.inf)
    row = changed(run_cell(cell), scores={"mse": values}).row()
    assert (row["mse_q25"], row["mse_q50"], row["mse_q75"]) == (1.0, 2.0, math.inf)
    assert row["mse"] == math.inf


def test_an_error_that_nobody_expected_is_recorded_with_its_kind(monkeypatch, seed):
    def broken(*args, **options):
        raise KeyError("oops")

    monkeypatch.setattr(cells, "run", broken)
    table = sweep("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=2, seed=seed)
    assert (table.runs[0], table.failures[0], table.error[0]) == (0, 2, "KeyError: 'oops'")


def test_pieces_of_different_cells_do_not_join(seed):
    one, two = plan_cells(BOTH, "four_corners", n=[60], epsilon=[1.0], runs=1, seed=seed)
    with pytest.raises(ValueError, match="different cells"):
        cells.join(one, [run_cell(two)])


@pytest.mark.parametrize("known", [False, True])
def test_every_run_is_joined_once_however_many_pieces_there_are(known, monkeypatch, seed):
    # The work is counted in runs: joined anew with each piece, and a cell of many runs would take days.
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=60, seed=seed)
    joined = []

    def counting(known, more):
        joined.append(len(more))
        cells.take_in(known, more)

    def made(part):
        scores = {"mse": tuple(float(number) for number in part.numbers)}
        return made_result(cell=part, scores=scores, seconds=(0.1,) * part.runs, numbers=part.numbers)

    class Store:
        def finished(self, cell):
            return replace(made(replace(cell, first_run=20, runs=20)), cell=cell)

        def add(self, result):
            pass

    monkeypatch.setattr(module, "take_in", counting)
    monkeypatch.setattr(module, "run_cell", made)
    *_, last = stream_partial([cell], piece_runs=1, store=Store() if known else None)
    assert last == made(cell)
    assert sum(joined) == (40 if known else 60)


def test_a_store_is_asked_once_for_each_cell_and_what_is_complete_is_not_held(seed):
    planned = plan_cells("mean_shift", "four_corners", n=list(range(60, 90)), epsilon=[1.0], runs=2, seed=seed)
    asked, alive = [], []

    class Store:
        def finished(self, cell):
            asked.append(cell)
            result = changed(cells.failed_result(cell, "no"), passing=())
            alive.append(weakref.ref(result))
            return result

        def add(self, result):
            pytest.fail("nothing was left to run")

    most = 0
    for _ in stream_partial(planned, store=Store()):
        most = max(most, sum(ref() is not None for ref in alive))
    assert asked == planned
    assert most <= 2
