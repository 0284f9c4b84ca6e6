"""The results file: what was run once is not run again, and no foreign runs get in."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpgrams_core import DataError, SpecError, sweep
from dpgrams_core.cli.main import main
from dpgrams_core.sweeps import run as module
from dpgrams_core.sweeps import store as sweep_store
from dpgrams_core.sweeps.cell import failed_result, run_cell
from dpgrams_core.sweeps.executors import DIED
from dpgrams_core.sweeps.run import plan_cells, stream_cells, stream_partial, tidy
from dpgrams_core.sweeps.store import COLUMNS, FACTS, FORMAT, ResultsFile, lock_file, merge_files, options_text
from tests.made import changed, results_in

GRID = {"n": [60], "epsilon": [0.5, 2.0]}
BOTH = ["dp_grams", "mean_shift"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.parquet"


@pytest.fixture
def counted(monkeypatch):
    """The runs that were made, as (method, epsilon, number)."""
    made = []

    def counting(cell):
        made.extend((cell.method, cell.epsilon, number) for number in cell.numbers)
        return run_cell(cell)

    monkeypatch.setattr(module, "run_cell", counting)
    return made


def without_time(table):
    return table.drop(columns="seconds")


def test_a_file_holds_one_row_a_run_with_everything_needed_to_repeat_it(path, seed):
    table = sweep("dp_grams", "four_corners", runs=3, seed=seed, out=path, clip_multiplier=0.7, **GRID)
    runs = pd.read_parquet(path)
    assert len(runs) == 2 * 3
    assert runs.columns[: len(COLUMNS)].tolist() == list(COLUMNS)
    assert json.loads(runs.options[0]) == {"clip_multiplier": 0.7}
    assert (runs.seed == seed).all()
    means = runs.groupby("epsilon").mse_per_true_mode.mean()
    assert means.tolist() == pytest.approx(table.mse_per_true_mode.tolist())
    facts = json.loads(pq.read_schema(path).metadata[FACTS])
    assert facts["format"] == FORMAT
    assert {"engine", "command", "created", "updated"} <= set(facts)


def test_a_finished_sweep_is_read_and_not_run_again(path, counted, seed):
    first = sweep(BOTH, "four_corners", runs=3, seed=seed, out=path, **GRID)
    assert len(counted) == 9
    again = sweep(BOTH, "four_corners", runs=3, seed=seed, out=path, **GRID)
    assert len(counted) == 9
    pd.testing.assert_frame_equal(first, again)  # the times as well: they are those of the runs


def test_an_extended_sweep_runs_only_what_is_new(path, counted, seed):
    sweep("dp_grams", "four_corners", runs=2, seed=seed, out=path, **GRID)
    counted.clear()
    more = {"n": [60], "epsilon": [0.5, 2.0, 4.0], "runs": 5, "seed": seed}
    table = sweep(BOTH, "four_corners", out=path, **more)
    new = [("dp_grams", e, number) for e in (0.5, 2.0) for number in (2, 3, 4)]
    new += [("dp_grams", 4.0, number) for number in range(5)] + [
        ("mean_shift", math.inf, number) for number in range(5)
    ]
    assert sorted(counted) == sorted(new)
    pd.testing.assert_frame_equal(without_time(table), without_time(sweep(BOTH, "four_corners", **more)))


def test_another_seed_or_option_is_another_run(path, counted, seed):
    sweep("dp_grams", "four_corners", runs=1, seed=seed, out=path, **GRID)
    counted.clear()
    sweep("dp_grams", "four_corners", runs=1, seed=seed + 1, out=path, **GRID)
    sweep("dp_grams", "four_corners", runs=1, seed=seed, out=path, clip_multiplier=2, **GRID)
    assert len(counted) == 4
    sweep("dp_grams", "four_corners", runs=1, seed=seed, out=path, vary=("clip_multiplier", [2.0]), **GRID)
    assert len(counted) == 4  # fixed or varied, 2 or 2.0: the same run
    assert options_text([("b", 2.0), ("a", (1, 0.5))]) == options_text([("a", [1.0, 0.5]), ("b", 2)])


def test_a_stream_that_is_closed_keeps_what_is_finished(path, counted, seed):
    planned = plan_cells("dp_grams", "four_corners", runs=6, seed=seed, **GRID)
    with ResultsFile(path) as store:
        stream = stream_partial(planned, store=store, piece_runs=2)
        for _ in range(3):
            next(stream)
        stream.close()
    assert len(pd.read_parquet(path)) == 3 * 2
    with ResultsFile(path) as store:
        resumed = tidy(list(stream_cells(planned, store=store)))
    assert len(counted) == 12
    pd.testing.assert_frame_equal(without_time(resumed), without_time(tidy([run_cell(cell) for cell in planned])))


def test_a_failure_that_lasts_is_kept_and_one_that_may_pass_is_tried_again(path, counted, seed):
    (cell,) = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=4, seed=seed)
    with ResultsFile(path) as store:
        store.add(changed(failed_result(replace(cell, runs=2), "overflow"), passing=()))
        store.add(failed_result(replace(cell, first_run=2, runs=2), DIED))
    assert pd.read_parquet(path).error.tolist() == ["overflow", "overflow", DIED, DIED]
    with ResultsFile(path) as store:
        assert store.count(cell) == store.finished(cell).ended == 2
        (result,) = stream_cells([cell], store=store)
    assert result.failures == ("overflow", "overflow")
    assert result.numbers == (2, 3)
    assert len(counted) == 2
    assert sorted(pd.read_parquet(path).error) == ["", "", "overflow", "overflow"]


@pytest.mark.parametrize(
    ("error", "lasts"),
    [
        (SpecError("batch_size", 100, "it must be at most n"), True),
        (FloatingPointError("overflow"), True),
        (MemoryError(), False),
        (OSError(28, "No space left on device"), False),
        (DataError("The file is gone."), False),
        (KeyError("oops"), False),
    ],
)
def test_what_says_nothing_about_the_settings_is_run_again(error, lasts, path, counted, seed, monkeypatch):
    def failing(*_, **__):
        raise error

    wish = {"n": [60], "epsilon": [1.0], "runs": 2, "seed": seed, "out": path}
    with monkeypatch.context() as patch:
        patch.setattr("dpgrams_core.sweeps.cell.run", failing)
        assert sweep("dp_grams", "four_corners", **wish).failures[0] == 2
    counted.clear()
    again = sweep("dp_grams", "four_corners", **wish)
    assert len(counted) == (0 if lasts else 2)
    assert again.failures[0] == (2 if lasts else 0)
    assert len(pd.read_parquet(path)) == 2


@pytest.mark.parametrize("executor", ["serial", "dask"])
def test_data_that_are_not_here_are_one_sentence_before_any_run(executor, path, monkeypatch, capsys):
    monkeypatch.delenv("DPGRAMS_DATA", raising=False)
    monkeypatch.setattr("dpgrams_core.sweeps.dask.stream_dask", lambda *_: pytest.fail("a cluster was asked for"))
    words = ["sweep", "rnaseq", "kmeans", "--n", "801", "--epsilon", "1", "--runs", "2", "--n-clusters", "5"]
    assert main([*words, "--executor", executor, "--out", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: The RNA-Seq data do not come with this project.")
    assert len(pd.read_parquet(path)) == 0


def test_finished_runs_are_shown_without_their_data(path, seed):
    (cell,) = plan_cells("kmeans", "rnaseq", n=[801], epsilon=[1.0], runs=2, seed=seed, n_clusters=5)
    made = changed(failed_result(cell, ""), failures=(), failed=(), passing=(), numbers=(0, 1), seconds=(0.1, 0.1))
    with ResultsFile(path) as store:
        store.add(changed(made, scores={"ari": (0.8, 0.8)}))
        assert [result.complete for result in stream_partial([cell], store=store)] == [True]


def test_infinite_and_missing_scores_come_back_as_they_were(path, seed):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=3, seed=seed)
    (other,) = plan_cells("kmeans", "blobs", n=[60], epsilon=[1.0], runs=1, seed=seed)
    result = changed(run_cell(cell), scores={"mse": (math.inf, math.nan, 0.1)})
    with ResultsFile(path) as store:
        store.add(result)
        store.add(run_cell(other))
    store = ResultsFile(path)
    back = store.finished(cell)
    assert list(back.scores) == ["mse"]
    assert back.scores["mse"][::2] == (math.inf, 0.1)
    assert math.isnan(back.scores["mse"][1])
    assert set(store.finished(other).scores) == {"ari", "nmi", "centroid_mse", "inertia"}
    assert {found.cell.method for found in results_in(path)} == {"mean_shift", "kmeans"}


def test_files_are_merged_and_a_run_in_both_counts_once(tmp_path, seed):
    grid = {"n": [60], "seed": seed}
    sweep("dp_grams", "four_corners", epsilon=[0.5], runs=3, out=tmp_path / "a.parquet", **grid)
    sweep("dp_grams", "four_corners", epsilon=[0.5, 1], runs=2, out=tmp_path / "b.parquet", **grid)
    both = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert main(["merge", str(tmp_path / "c.parquet"), *map(str, both)]) == 0
    assert len(pd.read_parquet(tmp_path / "c.parquet")) == 3 + 2
    merged = tidy(results_in(tmp_path / "c.parquet"))
    assert merged.runs.tolist() == [3, 2]
    whole = sweep("dp_grams", "four_corners", epsilon=[0.5], runs=3, **grid)
    assert merged.mse[0] == whole.mse[0]


def rewrite(path, **facts):
    table = pq.read_table(path)
    old = json.loads(table.schema.metadata[FACTS])
    pq.write_table(table.replace_schema_metadata({FACTS: json.dumps({**old, **facts})}), path)


@pytest.mark.parametrize(
    ("facts", "words"), [({"format": 7}, "has format 7"), ({"engine": "0123456789"}, "another version of the engine")]
)
def test_a_file_of_another_version_is_refused_and_left_alone(path, facts, words, capsys):
    sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)
    rewrite(path, **facts)
    before = path.read_bytes()
    with pytest.raises(DataError, match=words):
        sweep("mean_shift", "four_corners", runs=2, out=path, **GRID)
    with pytest.raises(DataError, match=words):
        merge_files([path], path.with_name("merged.parquet"))
    words_given = ["sweep", "four_corners", "mean_shift", "--n", "60", "--epsilon", "1", "--executor", "serial"]
    assert main([*words_given, "--out", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path} h")
    assert path.read_bytes() == before


def test_a_format_is_told_by_its_number_before_its_columns(path):
    sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)
    table = pq.read_table(path)
    facts = json.dumps({**json.loads(table.schema.metadata[FACTS]), "format": 7})
    pq.write_table(table.drop_columns(["seed"]).replace_schema_metadata({FACTS: facts}), path)
    with pytest.raises(DataError, match=f"has format 7 of results, and this version reads format {FORMAT}"):
        ResultsFile(path)


def test_a_file_of_something_else_is_refused(path):
    path.write_text("not a table")
    with pytest.raises(DataError, match="does not hold the results of a sweep"):
        ResultsFile(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="does not hold the results of a sweep"):
        ResultsFile(path)
    sweep("mean_shift", "four_corners", runs=1, out=path.with_name("b.parquet"), **GRID)
    table = pq.read_table(path.with_name("b.parquet"))
    pq.write_table(table.drop_columns(["seed"]), path)
    with pytest.raises(DataError, match="does not hold the results of a sweep"):
        ResultsFile(path)


@pytest.mark.parametrize(
    ("name", "words"), [("results.csv", "ends in .parquet"), ("nowhere/results.parquet", "folder does not exist")]
)
def test_a_place_that_cannot_be_used_is_refused_before_any_run(tmp_path, name, words, counted):
    with pytest.raises(SpecError, match=words) as caught:
        sweep("mean_shift", "four_corners", runs=1, out=tmp_path / name, **GRID)
    assert caught.value.field == "out"
    assert counted == []


def test_a_file_that_cannot_be_written_is_refused_before_any_run(path, counted):
    path.mkdir()
    with pytest.raises(DataError):
        sweep("mean_shift", "four_corners", runs=1, out=path, **GRID)
    assert counted == []


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(path, monkeypatch, seed):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=1, seed=seed)
    store = ResultsFile(path)
    before = path.read_bytes()
    store.add(run_cell(cell))

    def broken(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sweep_store.pq, "write_table", broken)
    with pytest.raises(DataError, match="cannot be written: No space left"):
        store.flush()
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == [path.name, lock_file(path).name]
    monkeypatch.undo()
    store.flush()  # what was not written is still there
    assert len(pd.read_parquet(path)) == 1


def test_runs_are_written_while_the_sweep_goes_on(path, monkeypatch, seed):
    monkeypatch.setattr(sweep_store, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(sweep_store, "FLUSH_SHARE", 0)
    planned = plan_cells("mean_shift", "four_corners", n=[60, 61], epsilon=[1.0], runs=1, seed=seed)
    with ResultsFile(path) as store:
        stream = stream_cells(planned, store=store)
        next(stream)
        assert len(pd.read_parquet(path)) == 1
        stream.close()


def test_a_seed_too_large_for_the_file_is_one_sentence(path):
    with pytest.raises(SpecError, match="a results file holds seeds of at most"):
        sweep("mean_shift", "four_corners", runs=1, seed=2**63, out=path, **GRID)
