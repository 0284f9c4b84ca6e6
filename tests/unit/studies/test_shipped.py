"""The finished tables that come with the project: complete, unedited, and what the engine gives when asked again."""

from __future__ import annotations

import json
import shutil
import zlib
from datetime import UTC, datetime

import numpy as np
import pytest

from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.run import same_but_runs
from dpgrams_core.studies.paper import shipped as module
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, KERNELS
from dpgrams_core.studies.paper.reproduce import comparison
from dpgrams_core.studies.paper.shipped import manifest_file, ship, shipped, shipped_file
from dpgrams_core.studies.paper.tables import ONE_RUN, printed_numbers
from dpgrams_core.sweeps import cell as cells
from dpgrams_core.sweeps import store as sweep_store
from dpgrams_core.sweeps.cell import split
from dpgrams_core.sweeps.run import run_cell
from tests.made import changed

PRINTED = ("modes", "regression", "clustering")
# Data and columns whose runs take seconds: one of them a day. Mean shift on all of MNIST takes minutes: never.
SLOW = {("mnist", "functional"), ("mnist", "tight"), ("mnist", "kmeans"), ("digits", "mean_shift")}
NEVER = {("mnist", "mean_shift")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty place for finished tables."""
    monkeypatch.setattr(module, "FOLDER", tmp_path / "results")
    shipped.cache_clear()
    yield tmp_path / "results"
    shipped.cache_clear()


@pytest.fixture
def small(folder):
    cells = [cell for _, cell in KERNELS.cells(2, KERNELS.names) if (cell.n, cell.epsilon) == (700, 1.0)]
    results = [run_cell(cell) for cell in cells]
    ship("kernels", results, command="a test", seed=0, date="2026-01-02")
    return results


def test_a_table_comes_back_as_it_was(small):
    table = shipped("kernels")
    assert [column for column, _ in table.results] == ["kernel"] * 3
    assert [result.scores for _, result in table.results] == [result.scores for result in small]
    for words in ("a test", "seed 0", "2026-01-02", "numpy"):
        assert words in table.made


CHANGED = "was changed after it was made"


def edited(path, change_table=lambda table: table, sealed=False, **facts):
    """Change a finished table by hand; ``sealed``: with a checksum that is right again."""
    table, before = sweep_store.read_facts(path)
    table, after = change_table(table), {**before, **facts}
    if sealed:
        after["checksum"] = module.checksum(table.to_pylist(), after)
    sweep_store.write_runs(path, table, after)


def better(table):
    column = np.array(table["mse"]) * np.array([0.9] + [1.0] * (len(table) - 1))
    return table.set_column(table.schema.get_field_index("mse"), "mse", [column])


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(
    "change",
    [{"change_table": better}, {"command": "another"}, {"seed": 1}, {"date": "2030-01-01"}, {"versions": {}}],
)
def test_an_edit_by_hand_is_noticed_in_runs_and_in_what_made_them(small, change, sealed):
    path = shipped_file("kernels")
    edited(path, sealed=sealed, **change)
    if not sealed:  # the checksum alone must tell
        manifest_file().write_text(json.dumps({path.name: module._digest(path)}))
    with pytest.raises(DataError, match=CHANGED):
        shipped("kernels")


def test_a_table_that_no_list_names_is_not_shown(small):
    manifest_file().unlink()
    with pytest.raises(DataError, match=CHANGED):
        shipped("kernels")


def test_the_list_names_every_file_that_comes_with_the_project():
    listed = json.loads(manifest_file().read_text())
    assert listed == {path.name: module._digest(path) for path in module.FOLDER.iterdir()}
    assert set(listed) == {shipped_file(name).name for name in EXPERIMENTS}
    assert manifest_file().parent != module.FOLDER


def test_a_missing_table_says_how_to_make_it(folder):
    with pytest.raises(DataError, match="run reproduce sensitivity --ship"):
        shipped("sensitivity_regression")


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def today():
    """What is sampled today: other runs tomorrow, and with every seed of the tests."""
    return datetime.now(UTC).date()


def sampled(name, rng):
    """One run of every column of every table of an experiment that can be made here, as (place, result, number)."""
    found = {}
    for column, result in shipped(name).results:
        if result.cell.dataset != "rnaseq":  # it does not come with the project
            found.setdefault((result.cell.dataset, column), []).append(result)
    for place, results in found.items():
        result = results[rng.integers(len(results))]
        yield place, result, int(rng.choice(result.numbers))


MEASURED_SINCE = {"inertia"}  # the finished tables of clusters are older than this measure


def check_again(result, number, day):
    """Make one run again: it must end well, with the same guarantee and the same scores."""
    (piece,) = split(result.cell, 1, skip=set(result.cell.numbers) - {number})
    again, at = run_cell(piece), result.numbers.index(number)
    words = f"{piece}, sampled on {day}"
    assert again.failures == (), words
    assert again.status == result.status, words
    assert set(again.scores) - MEASURED_SINCE == set(result.scores) - MEASURED_SINCE, words
    for measure, values in result.scores.items():
        assert again.scores[measure][0] == pytest.approx(values[at], rel=1e-6, abs=1e-9), (words, measure)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_run_of_every_column_of_every_table_gives_the_same_again(name, seed, today):
    rng = np.random.default_rng([seed, today.toordinal(), zlib.crc32(name.encode())])
    tables, columns = EXPERIMENTS[name].tables, EXPERIMENTS[name].names
    checked = set()
    for place, result, number in sampled(name, rng):
        if place not in SLOW | NEVER or name != "clustering":
            check_again(result, number, today)
        checked.add(place)
    assert checked == {(table.dataset, column) for table in tables for column in columns if table.dataset != "rnaseq"}


@pytest.mark.slow
def test_one_of_the_slow_columns_gives_the_same_again(seed, today):
    rng = np.random.default_rng([seed, today.toordinal()])
    slow = {place: (result, number) for place, result, number in sampled("clustering", rng) if place in SLOW}
    assert set(slow) == SLOW
    check_again(*slow[sorted(SLOW)[rng.integers(len(SLOW))]], today)


@pytest.mark.parametrize("broken", ["an error", "another guarantee", "another score", "a score less"])
def test_the_sample_tells_an_engine_that_gives_something_else(small, broken, monkeypatch, today):
    right = cells.score

    def wrong(release, data):
        if broken == "an error":
            raise RuntimeError("broken")
        scores = right(release, data)
        return {**scores, "mse": 1.001 * scores["mse"]} if broken == "another score" else scores

    monkeypatch.setattr(cells, "score", wrong)
    ((_, result, number),) = sampled("kernels", np.random.default_rng(0))
    if broken == "another guarantee":
        result = changed(result, status="proven")
    if broken == "a score less":
        result = changed(result, scores={**result.scores, "one_more": result.scores["mse"]})
    with pytest.raises(AssertionError, match=str(today)):
        check_again(result, number, today)


def test_files_are_small():
    sizes = {name: shipped_file(name).stat().st_size for name in EXPERIMENTS}
    assert sum(sizes.values()) < 2_000_000, sizes


def test_a_copy_elsewhere_is_read_as_well(folder):
    original = ASSETS / "results"
    shutil.copytree(original, folder)
    shutil.copy(original.with_name("results.json"), folder.with_name("results.json"))
    assert shipped("clustering").results
