"""The finished tables that come with the project: complete, unedited, and what the engine gives when asked again."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpgrams_core import shipped as module
from dpgrams_core.cells import same_but_runs, split
from dpgrams_core.errors import DataError
from dpgrams_core.experiments import EXPERIMENTS, KERNELS
from dpgrams_core.paper import ONE_RUN, printed_numbers
from dpgrams_core.reproduce import comparison
from dpgrams_core.shipped import ship, shipped, shipped_file, shipped_results
from dpgrams_core.sweeps import run_cell

SAMPLED = 3  # runs of each table that are made again, others with every seed of the tests
PRINTED = ("modes", "regression", "clustering")


def can_be_made_here(cell):
    """RNA-Seq does not come with the project, and mean shift on all of MNIST takes minutes."""
    return cell.dataset != "rnaseq" and (cell.dataset, cell.method) != ("mnist", "mean_shift_c")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty place for finished tables."""
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    shipped.cache_clear()
    yield tmp_path
    shipped.cache_clear()


@pytest.fixture
def small(folder):
    cells = [cell for _, cell in KERNELS.cells(2, KERNELS.names) if (cell.n, cell.epsilon) == (700, 1.0)]
    results = [run_cell(cell) for cell in cells]
    ship("kernels", results, command="a test", seed=0, date="2026-01-02")
    return results


def test_a_table_comes_back_as_it_was(small):
    table = shipped("kernels")
    assert [column for column, _ in table.results] == ["kernel", "kernel"]
    assert [result.scores for _, result in table.results] == [result.scores for result in small]
    for words in ("a test", "seed 0", "2026-01-02", "numpy"):
        assert words in table.made


def test_its_runs_serve_a_sweep_that_asks_for_the_same(small):
    cells = [result.cell for result in small]
    assert {cell: found.scores for cell, found in shipped_results(cells).items()} == {
        result.cell: result.scores for result in small
    }


def test_an_edit_by_hand_is_noticed(small, folder):
    path = shipped_file("kernels")
    table = pq.read_table(path)
    edited = table.set_column(
        table.schema.get_field_index("mse"),
        "mse",
        [np.array(table["mse"]) * np.array([0.9] + [1.0] * (len(table) - 1))],
    )
    pq.write_table(edited.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(DataError, match="was changed after it was made"):
        shipped("kernels")


def test_a_missing_table_says_how_to_make_it(folder):
    with pytest.raises(DataError, match="run reproduce sensitivity --ship"):
        shipped("sensitivity_regression")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_ships_all_its_cells(name):
    experiment = EXPERIMENTS[name]
    planned = {same_but_runs(cell): cell.runs for _, cell in experiment.cells(experiment.runs, experiment.names)}
    found = {same_but_runs(result.cell): len(result.seconds) for _, result in shipped(name).results}
    assert found == planned


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_number_has_one_of_ours_beside_it(name):
    experiment = EXPERIMENTS[name]
    table = comparison(experiment, shipped(name).results)
    ours = {
        (row.table, row.dataset, row.n, row.epsilon, experiment.column(row.column).printed, row.measure)
        for row in table.itertuples()
    }
    printed = printed_numbers()
    here = printed[printed["table"].str.startswith(name)]
    keys = ["table", "dataset", "n", "epsilon", "method", "measure"]
    assert set(here[keys].itertuples(index=False, name=None)) <= ours


def test_the_table_of_single_runs_is_among_them():
    table = comparison(EXPERIMENTS["clustering"], shipped("clustering").results)
    assert ONE_RUN in set(table["table"])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_sample_of_runs_gives_the_same_again(name, rng):
    results = [result for _, result in shipped(name).results if can_be_made_here(result.cell)]
    for place in rng.choice(len(results), size=min(SAMPLED, len(results)), replace=False):
        result = results[place]
        number = int(rng.choice(result.numbers))
        (piece,) = split(result.cell, 1, skip=set(result.cell.numbers) - {number})
        again = run_cell(piece)
        at = result.numbers.index(number)
        for measure, values in again.scores.items():
            assert values[0] == pytest.approx(result.scores[measure][at], rel=1e-6, abs=1e-9), (piece, measure)


def test_files_are_small():
    sizes = {name: shipped_file(name).stat().st_size for name in EXPERIMENTS}
    assert sum(sizes.values()) < 2_000_000, sizes


def test_a_copy_elsewhere_is_read_as_well(folder):
    original = module.Path(module.__file__).parents[1] / "assets" / "results" / "clustering.parquet"
    shutil.copy(original, folder / "clustering.parquet")
    assert shipped("clustering").results
