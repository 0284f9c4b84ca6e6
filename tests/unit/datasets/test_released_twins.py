"""Twins of releases as data sets of a sweep: what is true of them, who can find them, and how they travel."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DATASETS, Dataset, load_dataset, run, score, sweep
from dpgrams_core.datasets.registry import MIN_N, datasets_of, same_records
from dpgrams_core.figures.tradeoff import lab_sentence
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.run import same_but_runs
from dpgrams_core.numerics.sketch import ReleasedSketch, feature_sums
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.own_data import twin as twins
from dpgrams_core.own_data.twin import ShownBranches, released_twin
from dpgrams_core.studies.ablation import error_sources
from dpgrams_core.studies.needed_budget import needed_epsilon
from dpgrams_core.sweeps.cell import join, run_cell
from dpgrams_core.sweeps.executors import Processes
from dpgrams_core.sweeps.run import plan_cells, stream_partial
from dpgrams_core.sweeps.store import ResultsFile
from tests.made import results_in

KINDS = {
    "modes": ("four_corners", "functional", {}),
    "regression": ("sinusoid", "functional_regression", {}),
    "clusters": ("blobs", "functional_c", {"n_clusters": 4}),
}


@pytest.fixture(scope="module")
def released(seed):
    """A release of each kind, clear enough to show what there is, with its data."""
    found = {}
    for kind, (name, method, options) in KINDS.items():
        data = load_dataset(name, n=2000, seed=seed)
        found[kind] = (data, run(method, data, epsilon=5.0, seed=seed, **options))
    return found


def twin_of(released, kind, **change):
    data, release = released[kind]
    truth = release.modes if release.curve is None else release.curve
    how = {"box": data.box, "truth": truth, "branches": release.branches} | change
    return released_twin(how.pop("release", release.surface), kind, **how)


@pytest.mark.parametrize("kind", KINDS)
def test_a_twin_is_a_data_set_with_the_columns_of_the_data(released, kind, seed):
    data, _ = released[kind]
    name = twin_of(released, kind)
    drawn = load_dataset(name, n=500, seed=seed)
    assert (drawn.kind, drawn.private, drawn.n, drawn.dimension) == (kind, False, 500, data.dimension)
    np.testing.assert_array_equal(drawn.box, data.box)
    assert ((drawn.points >= data.box[:, 0]) & (drawn.points <= data.box[:, 1])).all()
    # About where the data are: a tenth of a side is several standard errors and the error of the release.
    sides = data.box[:, 1] - data.box[:, 0]
    assert (np.abs(drawn.points.mean(axis=0) - data.points.mean(axis=0)) < 0.1 * sides).all()
    np.testing.assert_array_equal(drawn.points, load_dataset(name, n=500, seed=seed).points)
    assert not np.allclose(drawn.points, load_dataset(name, n=500, seed=seed + 1).points)
    assert load_dataset(name).n == name.default_n == data.n
    for wrong in (MIN_N - 1, 10**9, 2.5):
        with pytest.raises(SpecError, match="n = "):
            load_dataset(name, n=wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_release_shows_counts_as_the_truth(released, kind, seed):
    # The release scored on its own twin has no error, and one that was moved has.
    _, release = released[kind]
    data = load_dataset(twin_of(released, kind), n=400, seed=seed)
    own = score(release, data)
    side = data.box[-1, 1] - data.box[-1, 0]
    if release.curve is None:
        moved = replace(release, modes=release.modes + 0.2 * side)
    else:
        moved = replace(release, curve=release.curve + np.array([0.0, 0.2 * side]))
    worse = score(moved, data)
    error = "centroid_mse" if kind == "clusters" else "mse"
    assert own[error] == pytest.approx(0.0, abs=1e-20)
    assert worse[error] > 1e-3
    if kind == "modes":
        assert (own["missed"], own["spurious"]) == (0.0, 0.0)
        assert twin_of(released, kind).count == len(release.modes)
    elif kind == "regression":
        assert (own["branch_recall"], own["spurious"]) == (1.0, 0.0)
        assert worse["branch_recall"] < 0.5
    else:
        assert own["ari"] == own["nmi"] == 1.0
        assert worse["ari"] < 1.0


def test_a_centre_that_no_record_is_nearest_to_still_counts(released):
    data, release = released["clusters"]
    far = np.vstack([release.modes, data.box[:, 0]])  # in an empty corner
    drawn = load_dataset(twin_of(released, "clusters", truth=far), n=200, seed=0)
    assert 4 not in drawn.labels
    assert drawn.n_clusters == 5
    assert drawn.representation.caveats == ()
    assert score(replace(release, modes=release.modes), drawn)["centroid_mse"] == pytest.approx(0.0, abs=1e-20)


def test_a_branch_ends_where_the_release_ends_it():
    law = ShownBranches(np.array([[2.0, 1.0], [1.0, 0.0], [1.0, 5.0], [3.0, 3.0]]), np.array([4, 4, 7, 7]))
    table = law.mode_table(np.array([0.9, 1.0, 1.5, 2.5, 3.1]))
    nan = np.nan
    np.testing.assert_allclose(table, [[nan, nan], [0, 5], [0.5, 4.5], [3.5, nan], [nan, nan]])
    np.testing.assert_array_equal(table, law.paper_table(np.array([0.9, 1.0, 1.5, 2.5, 3.1])))


def test_a_sketch_of_five_columns_has_a_twin_for_a_sweep(rng, seed):
    box = np.array([[-8.5, 8.5]] * 5)
    centres = np.stack([np.full(5, 4.0), np.full(5, -3.0)])
    points = centres[rng.integers(0, 2, 4000)] + rng.normal(0, 1, (4000, 5))
    exact = feature_sums(points, box, 2.2, 16)
    sketch = ReleasedSketch(exact + 6 * rng.standard_normal(exact.shape), box, 2.2, 6.0, 4000)
    name = pickle.loads(pickle.dumps(released_twin(sketch, "clusters", box, centres)))
    table = sweep("kmeans", name, n=[400], epsilon=[1.0], runs=2, seed=seed, n_clusters=2)
    assert table["failures"].tolist() == [0]
    assert table["ari"][0] > 0.9


def test_the_name_stands_for_the_content(released):
    data, release = released["modes"]
    name = twin_of(released, "modes")
    assert name == twin_of(released, "modes", title="another title")
    surface = release.surface
    louder = ReleasedSurface(
        surface.coefficients + 1e-9, surface.box, surface.bandwidth, surface.noise_scale, surface.n
    )
    others = [
        twin_of(released, "modes", truth=release.modes + 1e-9),
        twin_of(released, "modes", truth=release.modes[:-1]),
        twin_of(released, "modes", box=2 * data.box),
        twin_of(released, "modes", release=louder),
        released_twin(surface, "clusters", data.box, release.modes),
    ]
    assert len({name, *others}) == 6


def test_a_twin_is_in_no_list_and_its_letters_alone_find_nothing(released):
    listed = list(DATASETS)
    name = twin_of(released, "modes")
    letters = str(name)
    assert list(DATASETS) == listed
    assert len(DATASETS) == len(listed)
    assert name not in datasets_of("modes")
    assert name not in DATASETS
    assert letters not in DATASETS
    for call in (
        lambda: load_dataset(letters, n=100),
        lambda: plan_cells("functional", letters, n=[100], epsilon=[1.0]),
        lambda: needed_epsilon("functional", letters, n=100),
    ):
        with pytest.raises(SpecError, match=f"dataset = '{letters}' is not allowed.*choose one of blobs, ") as refused:
            call()
        assert "twin" not in str(refused.value).split("choose")[1]


@pytest.mark.slow
def test_workers_give_the_runs_of_this_process_and_no_second_copy(released):
    name = twin_of(released, "modes")
    cells = plan_cells(["functional", "mean_shift"], name, n=[100, 200], epsilon=[1.0], runs=2, n_modes=4)
    with Processes(1) as pool:
        found = {result.cell: result for result in stream_partial(cells, pool)}
    for cell in cells:
        assert found[cell].scores == run_cell(cell).scores
        assert found[cell].scores["mse"]
        assert found[cell].cell.dataset is name  # the release is not kept once more for every result


@pytest.mark.slow
def test_what_a_store_keeps_of_a_worker_has_no_second_copy(released):
    name = twin_of(released, "modes")
    cells = plan_cells("functional", name, n=[100], epsilon=[1.0], runs=2, n_modes=4)
    kept = []

    class Store:
        def finished(self, cell):
            return join(cell, [])

        def add(self, result):
            kept.append(result)

    with Processes(1) as pool:
        list(stream_partial(cells, pool, store=Store(), piece_runs=1))
    assert [result.cell.dataset is name for result in kept] == [True, True]


def test_a_release_that_arrives_again_is_not_worked_out_again(released, seed):
    name = twin_of(released, "modes")
    first = load_dataset(name, n=100, seed=seed)
    before = twins._law.cache_info().misses
    again = pickle.loads(pickle.dumps(name))
    assert again == name
    assert again is not name
    np.testing.assert_array_equal(load_dataset(again, n=100, seed=seed).points, first.points)
    assert twins._law.cache_info().misses == before


def test_a_twin_stays_what_it_is_in_cells_and_files(released, tmp_path):
    name = twin_of(released, "clusters")
    (cell,) = plan_cells("kmeans", name, n=[100], epsilon=[1.0], runs=2, n_clusters=4)
    assert same_but_runs(cell).dataset is name
    assert deepcopy(cell) == cell
    result = run_cell(cell)
    assert result.failures == ()
    with ResultsFile(tmp_path / "results.parquet") as store:
        store.add(result)
    read = ResultsFile(tmp_path / "results.parquet")
    assert read.finished(cell).scores == result.scores
    assert [found.cell.dataset for found in results_in(read.path)] == [str(name)]


def test_every_run_draws_the_twin_anew_and_the_sentence_says_so(released):
    name = twin_of(released, "clusters")
    n = name.default_n
    assert not same_records(name, n)
    cells = plan_cells(["kmeans", "functional_c"], name, n=[100], epsilon=[5.0], runs=2, n_clusters=4)
    known = {cell: run_cell(cell) for cell in cells}
    assert "each on fresh data" in lab_sentence(known, cells, "ari")
    # The public data set of the same size is the other case.
    assert same_records("iris", 150)


def test_other_questions_can_be_asked_of_a_twin(released):
    name = twin_of(released, "modes", title="the twin of release 7")
    count = name.count
    parts = error_sources("functional", name, n=200, runs=2, n_modes=count)
    assert sum(step.change for step in parts.steps) == pytest.approx(parts.total)
    easy = {"target": 500.0, "probability": 0.5, "low": 0.5, "high": 50.0, "runs": 10, "most_values": 3}
    assert "the twin of release 7" in needed_epsilon("functional", name, n=100, **easy).sentence


def test_a_release_that_shows_nothing_has_no_twin(released):
    data, release = released["modes"]
    surface = release.surface
    with pytest.raises(DataError, match="above its noise"):
        twin_of(released, "modes", truth=np.empty((0, 2)))
    silent = ReleasedSurface(
        np.zeros_like(surface.coefficients), surface.box, surface.bandwidth, surface.noise_scale, surface.n
    )
    with pytest.raises(DataError, match="above its noise"):
        twin_of(released, "modes", release=silent)
    with pytest.raises(SpecError, match="kind"):
        released_twin(surface, "trees", data.box, release.modes)
    with pytest.raises(DataError, match="same number of columns"):
        twin_of(released, "modes", truth=release.modes[:, :1])
    with pytest.raises(DataError, match="branch of each"):
        twin_of(released, "regression", branches=None)


def test_a_twin_of_few_records_can_be_drawn_at_the_least_n(released):
    data, release = released["modes"]
    surface = release.surface
    few = ReleasedSurface(surface.coefficients, surface.box, surface.bandwidth, surface.noise_scale, 12)
    name = twin_of(released, "modes", release=few)
    assert name.default_n == MIN_N
    assert isinstance(load_dataset(name), Dataset)
    assert len(data.box) == len(name.box)
