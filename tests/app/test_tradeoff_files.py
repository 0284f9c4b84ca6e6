"""Results files that are opened on the Tradeoff page, and those that it gives away."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from streamlit.testing.v1 import AppTest

from dpgrams_core import load_dataset, run
from dpgrams_core.figures.curve import cell_title
from dpgrams_core.figures.tradeoff import LabLayout, costs, lab_panel, panels_of
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.progress import Stopped, stoppable
from dpgrams_core.own_data.reading import guarded, parquet_child
from dpgrams_core.own_data.twin import released_twin
from dpgrams_core.sweeps import store as sweep_store
from dpgrams_core.sweeps.run import plan_cells, run_cell
from pages._ui.tradeoff.files import LIMITS, OpenedFile, of_dataset, parquet_of, read_results
from pages._ui.tradeoff.parts import from_file
from pages._ui.tradeoff.settings import ARMS, LabSettings, lab_cells
from tests.places import ROOT


def opened(content: bytes, name: str, dataset: str):
    return of_dataset(read_results(content, name), name, dataset)


def lab_of(name: str, **change) -> LabSettings:
    first = {"sizes": "60", "epsilons": "5", "runs": 1, "seed": 0, "known": True, "delta": 1e-5}
    return LabSettings(kind="clusters", dataset=name, **{"arms": ARMS["clusters"], **first, **change})


def test_a_results_file_with_several_settings_of_a_method_has_a_line_for_each(monkeypatch):
    grid = {"n": [60], "epsilon": [1.0, 5.0], "runs": 1}
    cells = [
        cell
        for seed in (0, 1)
        for clip in (1.0, 0.5)
        for cell in plan_cells(["dp_grams", "mean_shift"], "four_corners", seed=seed, clip_multiplier=clip, **grid)
    ]
    content = parquet_of([run_cell(cell) for cell in dict.fromkeys(cells)])
    found = opened(content, "mine.parquet", "four_corners")
    names = dict.fromkeys(cell_title(cell) for cell in found)
    assert set(names) == {
        *(f"DP-GRAMS experiments, clip multiplier {clip}, seed {seed}" for clip in ("0.5", "1") for seed in (0, 1)),
        *(f"Mean shift, seed {seed}" for seed in (0, 1)),
    }
    (panel,) = panels_of(list(found), LabLayout("epsilon", "n"))
    lines = lab_panel(found, list(found), "mse", LabLayout("epsilon", "n"), panel).data
    assert all(len(set(line.x)) == len(line.x) for line in lines if line.mode == "lines+markers")
    # A method is held against the baseline on its own draws.
    for cost in costs(found, list(found), "mse", 60, 1.0):
        assert cost.plain_title.endswith(cost.title[-6:])
    assert opened(parquet_of(list(found.values())), "mine.parquet", "four_corners") == found
    monkeypatch.setattr("pages._ui.tradeoff.files.MOST_LINES", 5)
    with pytest.raises(DataError, match="holds 6 methods and settings of methods"):
        opened(content, "mine.parquet", "four_corners")


def test_a_results_file_comes_back_as_it_was_and_another_version_is_refused(monkeypatch):
    cells = plan_cells(["mean_shift", "dp_grams"], "four_corners", n=[60], epsilon=[1.0], runs=2)
    content = parquet_of([run_cell(cell) for cell in cells])
    found = opened(content, "mine.parquet", "four_corners")
    assert {cell.method: result.scores for cell, result in found.items()} == {
        cell.method: run_cell(cell).scores for cell in cells
    }
    with pytest.raises(DataError, match=r"mine\.parquet is about Four corners: choose that data set"):
        opened(content, "mine.parquet", "t_mixture")
    for wrong in (b"", b"PAR1 nothing PAR1", content[: len(content) // 2]):
        with pytest.raises(DataError, match=r"x\.parquet does not hold the results of a sweep"):
            opened(wrong, "x.parquet", "four_corners")
    varied = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=1, vary=("clip_multiplier", [1, 2]))
    with pytest.raises(DataError, match="holds no sweep over n and ε"):
        opened(parquet_of([run_cell(cell) for cell in varied]), "x.parquet", "four_corners")
    monkeypatch.setattr("pages._ui.tradeoff.files.LIMITS", replace(LIMITS, max_rows=3))
    with pytest.raises(DataError, match="holds 4 runs, and the page shows at most 3"):
        opened(content, "x.parquet", "four_corners")
    monkeypatch.undo()
    monkeypatch.setattr(sweep_store, "engine_fingerprint", lambda: "another!!!")
    with pytest.raises(DataError, match=r"old\.parquet holds results of another version of the engine"):
        opened(content, "old.parquet", "four_corners")


def test_a_results_file_of_a_twin_is_shown_to_its_owner(monkeypatch):
    data = load_dataset("blobs", n=500, seed=0)
    release = run("functional_c", data, epsilon=5.0, seed=0, n_clusters=3)
    name = released_twin(release.surface, "clusters", data.box, release.modes, title="the twin of release 4")
    settings = lab_of(name, arms=tuple(arm for arm in ARMS["clusters"] if arm.method == "kmeans"))
    (cell,) = lab_cells(settings)
    assert dict(cell.options)["n_clusters"] == 3
    result = run_cell(cell)
    assert result.failures == ()
    file = OpenedFile("mine.parquet", read_results(parquet_of([result]), "mine.parquet"))
    (found,) = from_file(file, settings).values()
    assert found.scores == result.scores
    assert found.cell.dataset is name
    said = []
    monkeypatch.setattr("pages._ui.layout.problem", lambda error: said.append(str(error)))
    assert from_file(file, lab_of("blobs")) is None
    assert said == ["mine.parquet is about other data: choose that data set to see it."]  # and not whose


def bomb(**packing) -> bytes:
    """One long text in each of 200,000 rows: 4.3 GB, in some hundred bytes."""
    rows, file = 200_000, io.BytesIO()
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 21_500]))
    parquet.write_table(pa.table({"options": text}), file, compression="gzip", store_schema=False, **packing)
    return file.getvalue()


def peaks_of(path, bound: int) -> tuple[int, int]:
    """The most bytes that opening a file took in the process of the page and in its children."""
    program = f"""
import resource
from pathlib import Path
from dpgrams_core import DataError
from pages._ui.tradeoff.files import read_results
resource.setrlimit(resource.RLIMIT_AS, ({bound}, {bound}))
content = Path({str(path)!r}).read_bytes()
try:
    read_results(content, "x.parquet")
except DataError as error:
    assert "x.parquet does not hold the results of a sweep" in str(error)
    (own,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(1024 * int(own), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    page, children = map(int, done.stdout.split())
    return page, children


def test_a_few_hundred_bytes_take_no_gigabytes(tmp_path):
    content = bomb()
    assert len(content) < 1_000
    (tmp_path / "bomb.parquet").write_bytes(content)
    page, children = peaks_of(tmp_path / "bomb.parquet", 6 * 10**9)
    assert page < 0.8e9
    assert children < 0.8e9


def wide_bomb() -> bytes:
    """200,000 runs of 88 scores that never change: 20 million objects of Python, in some hundred kilobytes."""
    rows, file = 200_000, io.BytesIO()
    columns = {f"s{place}": pa.array(np.ones(rows)) for place in range(88)}
    parquet.write_table(pa.table(columns), file, compression="zstd")
    return file.getvalue()


def test_a_file_of_too_many_values_is_refused_before_it_is_unpacked():
    content = wide_bomb()
    assert len(content) < 600_000
    with pytest.raises(DataError, match="holds 17,600,000 values, and the page shows at most 1,000,000"):
        read_results(content, "x.parquet")
    (line,) = parquet_child.read_runs(io.BytesIO(content), LIMITS.max_rows, LIMITS.max_numbers, LIMITS.max_columns)
    assert set(json.loads(line)) == {"rows", "columns"}  # the file's own words of itself, and not one value


def test_the_largest_file_of_the_paper_is_within_the_limits():
    for path in (ROOT / "assets" / "results").glob("*.parquet"):
        found = parquet.ParquetFile(path).metadata
        assert 3 * found.num_rows * found.num_columns < LIMITS.max_numbers


def test_a_results_file_that_does_not_fit_into_the_quota_is_refused_before_it_is_unpacked(good, monkeypatch):
    assert len(read_results(good, "x.parquet", lambda: 1_000_000)) == 1
    monkeypatch.setattr(sweep_store, "_sent", lambda *_: pytest.fail("a column was read"))
    with pytest.raises(DataError, match="There is no room for another file here"):
        read_results(good, "x.parquet", lambda: 2_000)


@pytest.fixture(scope="module")
def good():
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=2)
    return parquet_of([run_cell(cell)])


def changed(content: bytes, **columns) -> bytes:
    """A results file with other values in some columns."""
    table = parquet.read_table(io.BytesIO(content))
    for name, values in columns.items():
        place = table.schema.names.index(name) if name in table.schema.names else len(table.schema)
        column = values if isinstance(values, pa.Array) else pa.array(values, table.schema.field(place).type)
        table = (
            table.append_column(name, column) if place == len(table.schema) else table.set_column(place, name, column)
        )
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


HOSTILE = {
    "a method that is none": {"method": ["frog"] * 2},
    "options without end": {"options": ["[" * 1_900] * 2},
    "options that are no settings": {"options": ["[1]"] * 2},
    "options that cannot be told apart": {"options": ['{"a": {"b": 1}}'] * 2},
    "long options": {"options": ['{"a": "' + "x" * 5_000 + '"}'] * 2},
    "a run of a huge number": {"run": [0, 2**62]},
    "no number of a run": {"run": [0, None]},
    "no n": {"n": [None] * 2},
    "a negative n": {"n": [-5] * 2},
    "an epsilon that is none": {"epsilon": [float("nan")] * 2},
    "a status that is none": {"status": ["certain"] * 2},
    "no time": {"seconds": [None] * 2},
    "a score in words": {"other": pa.array(["x", "y"])},
    "nested scores": {"other": pa.array([[1.0], [2.0]])},
    "another type": {"n": pa.array([60.0, 60.0])},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_results_file_with_anything_in_it_gets_a_sentence(what, good):
    with pytest.raises(DataError, match=r"x\.parquet does not hold the results of a sweep"):
        read_results(changed(good, **HOSTILE[what]), "x.parquet")


def test_a_results_file_is_read_nowhere_but_in_the_guarded_process(good, tmp_path, monkeypatch):
    assert len(read_results(changed(good), "x.parquet")) == 1
    (tmp_path / "child.py").write_text("import os; os.abort()")
    monkeypatch.setattr(guarded, "CHILD", tmp_path / "child.py")
    with pytest.raises(DataError, match="does not hold the results of a sweep"):
        read_results(good, "x.parquet")


def test_making_the_runs_of_a_file_ends_with_the_visit_of_whoever_opened_it(good):
    table = parquet.read_table(io.BytesIO(good))
    long = pa.concat_tables([table] * 1_500)
    asked = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise Stopped

    with pytest.raises(Stopped), stoppable(check):
        list(sweep_store.results_of(long))


def test_a_results_file_with_more_than_the_page_shows(good, monkeypatch):
    results = read_results(good, "x.parquet")
    many = [replace(results[0], cell=replace(results[0].cell, n=n)) for n in range(1, 103)]
    with pytest.raises(DataError, match="holds 102 values of n, and the page shows at most 100"):
        of_dataset(many, "x.parquet", "four_corners")
    monkeypatch.setattr("pages._ui.tradeoff.files.MOST_CELLS", 0)
    with pytest.raises(DataError, match="more than 0 points"):
        read_results(good, "x.parquet")
    with pytest.raises(DataError, match="columns, and at most 100 are read"):
        read_results(changed(good, **{f"s{k}": pa.array([1.0, 2.0]) for k in range(100)}), "x.parquet")


def test_without_uploads_there_is_no_box_for_a_results_file(monkeypatch):
    def box():
        from pages._ui.tradeoff.files import file_box

        file_box()

    assert len(AppTest.from_function(box, default_timeout=120).run().file_uploader) == 1
    monkeypatch.setenv("DPGRAMS_UPLOADS", "off")
    page = AppTest.from_function(box, default_timeout=120).run()
    assert len(page.file_uploader) == 0
    assert "Uploads are switched off" in page.caption[0].value
