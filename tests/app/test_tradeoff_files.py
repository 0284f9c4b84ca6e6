"""Results files that are opened on the Tradeoff page, and those that it gives away."""

from __future__ import annotations

import io

import pytest

from dpgrams_core import load_dataset, run, sweep_store
from dpgrams_core.datasets.released_twins import released_twin
from dpgrams_core.errors import DataError
from dpgrams_core.figures import LabLayout, cell_title, costs, lab_panel, panels_of
from dpgrams_core.sweeps import plan_cells, run_cell
from pages._ui.tradeoff_curve import from_file
from pages._ui.tradeoff_files import opened, parquet_of
from pages._ui.tradeoff_grids import ARMS, LabSettings, lab_cells


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
    monkeypatch.setattr("pages._ui.tradeoff_files.MOST_LINES", 5)
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
    monkeypatch.setattr("pages._ui.tradeoff_files.MOST_ROWS", 3)
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
    file = io.BytesIO(parquet_of([result]))
    file.name = "mine.parquet"
    (found,) = from_file(file, settings).values()
    assert found.scores == result.scores
    assert found.cell.dataset is name
    said = []
    monkeypatch.setattr("pages._ui.frame.problem", lambda error: said.append(str(error)))
    assert from_file(file, lab_of("blobs")) is None
    assert said == ["mine.parquet is about other data: choose that data set to see it."]  # and not whose
