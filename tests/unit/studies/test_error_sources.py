"""The ladder of errors: it ends at the method itself, and each step changes with its own ingredient only."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from dpgrams_core import Dataset, load_dataset, run, score, sweep
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE
from dpgrams_core.figures.tradeoff import error_sources_chart
from dpgrams_core.methods.ladder import SwitchedNoise
from dpgrams_core.model.errors import DataError
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.studies import ablation as module
from dpgrams_core.studies.ablation import LadderMemory, error_sources, ladder_errors, ladders, stream_error_sources
from dpgrams_core.sweeps.executors import DIED, Lost

PLACE = {rung.key: place for place, rung in enumerate(ladders()["dp_grams"].rungs)}


@pytest.fixture(scope="module")
def blobs(seed):
    return load_dataset("blobs", n=200, seed=seed)


def ladder(data, seed, **options):
    return ladder_errors("dp_grams", data, seed, "mse", {"n_starts": 8, **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"calibration": "theorem"},
        {"calibration": "tight"},
        {"calibration": "tight", "batch_size": 100},
        {"batch_size": 40, "n_steps": 3, "step_size": 0.2, "clip_multiplier": 0.3},
    ],
)
def test_with_everything_on_the_ladder_is_the_method_itself(corners, seed, options):
    # The step before the last is put together here, the last is run(): with the count known they are one.
    errors = ladder(corners, seed, n_modes=4, **options)
    assert errors[PLACE["start"]] == errors[PLACE["merge"]]
    own = score(run("dp_grams", corners, seed=seed, n_starts=8, n_modes=4, **options), corners)["mse"]
    assert errors[-1] == own


def test_the_same_holds_for_clusters_and_for_the_surface(blobs, corners, seed):
    errors = ladder_errors("dp_grams_c", blobs, seed, "ari", {"n_clusters": 4})
    assert errors[-2] == errors[-1] == 1 - score(run("dp_grams_c", blobs, seed=seed, n_clusters=4), blobs)["ari"]
    errors = ladder_errors("functional", corners, seed, "mse", {"n_modes": 4})
    assert errors[1] == errors[2] == score(run("functional", corners, seed=seed, n_modes=4), corners)["mse"]
    assert errors[0] == ladder_errors("functional", corners, seed + 1, "mse", {"n_modes": 4})[0] != errors[1]


@pytest.mark.parametrize(
    ("first_touched", "one", "other"),
    [
        ("few_steps", {"n_steps": 2}, {"n_steps": 6}),
        ("few_steps", {"step_size": 0.1}, {"step_size": 0.5}),
        ("clipping", {"clip_multiplier": 0.05}, {"clip_multiplier": 0.5}),
        ("subsampling", {"batch_size": 30}, {"batch_size": 90}),
        ("subsampling", {"calibration": "tight", "batch_size": 30}, {"calibration": "tight", "batch_size": 90}),
        ("noise", {"epsilon": 0.5}, {"epsilon": 5.0}),
        ("merge", {"n_modes": None}, {"n_modes": 1}),
    ],
)
def test_a_setting_first_shows_at_its_own_step(corners, seed, first_touched, one, other, assert_first_differ_at):
    assert_first_differ_at(PLACE[first_touched], ladder(corners, seed, **one), ladder(corners, seed, **other))


def test_the_share_for_the_start_shows_at_the_start_when_the_noise_is_held(
    corners, seed, monkeypatch, assert_first_differ_at
):
    # The split of epsilon moves the noise too, so the noise is taken out of the comparison altogether.
    monkeypatch.setattr(SimulationNoise, "independent_gaussian", lambda self, exact, scale: exact)
    a, b = (ladder(corners, seed, init_fraction=share, epsilon=30.0, n_modes=4) for share in (0.001, 0.9))
    assert_first_differ_at(PLACE["start"], a, b)


def test_without_clip_and_floor_all_calibrations_climb_the_same_density(corners, seed):
    # Two codes for one exact score: their steps agree to rounding until their own clips come in.
    one, other = (ladder(corners, seed, calibration=name) for name in ("experiments", "theorem"))
    assert other[: PLACE["clipping"]] == pytest.approx(one[: PLACE["clipping"]], rel=1e-6)
    # The tight calibration has starts of its own: from all of them it climbs to nearly the same modes.
    tight = ladder(corners, seed, calibration="tight", epsilon=50.0, bandwidth=1.0)
    assert tight[PLACE["few_steps"]] == pytest.approx(tight[0], abs=0.05)


def test_the_parts_add_up_to_what_a_sweep_reports(seed):
    options = {"calibration": "tight", "n_modes": 4}
    found = error_sources("dp_grams", "four_corners", n=200, epsilon=2.0, runs=4, seed=seed, **options)
    table = sweep("dp_grams", "four_corners", n=[200], epsilon=[2.0], runs=4, seed=seed, **options)
    assert found.total == pytest.approx(float(table["mse"].iloc[0]), rel=1e-12)
    assert found.steps[-1].error_se == pytest.approx(float(table["mse_se"].iloc[0]), rel=1e-9)
    assert sum(step.change for step in found.steps) == pytest.approx(found.total, rel=1e-9)
    by_key = {step.key: step for step in found.steps}
    assert by_key["subsampling"].change == by_key["merge"].change == 0  # all records a round, and the count is known
    assert found.complete
    assert "in this order" in found.sentence


def test_a_stream_has_a_ladder_after_every_run_and_ends_at_the_whole(seed):
    how = {"n": 120, "epsilon": 1.0, "runs": 3, "seed": seed}
    seen = list(stream_error_sources("dp_grams", "four_corners", **how))
    assert [(item.runs, item.complete) for item in seen] == [(1, False), (2, False), (3, True)]
    assert math.isnan(seen[0].steps[0].change_se)
    assert seen[-1] == error_sources("dp_grams", "four_corners", **how)


def test_private_data_are_refused_before_anything_is_drawn(corners, nothing_drawn):
    private = Dataset(
        name="mine", kind="modes", points=corners.points, box=corners.box, true_modes=corners.true_modes, private=True
    )
    for method in ladders():
        with pytest.raises(DataError, match="The data are private"):
            ladder_errors(method, private, 0, "mse", {})
    with pytest.raises(DataError, match="The data are private"):
        SwitchedNoise(private, 0, 10, frozenset({"start"}))
    with pytest.raises(DataError, match="The data are private"):
        ladders()["functional"].estimates(None, private, 0)


@pytest.mark.parametrize(
    ("method", "options", "field", "value"),
    [
        ("mean_shift", {}, "method", "mean_shift"),
        ("dp_grams", {"measure": "ari"}, "measure", "ari"),
        ("dp_grams", {"kernel": "legendre4"}, "kernel", "legendre4"),
        ("dp_grams", {"batch_size": 1000}, "batch_size", 1000),
        ("dp_grams", {"runs": 0}, "runs", 0),
        ("functional", {"clip_multiplier": 2.0}, "clip_multiplier", 2.0),
    ],
)
def test_wrong_settings_are_refused_at_the_call(refused, nothing_drawn, method, options, field, value):
    refused(lambda: stream_error_sources(method, "four_corners", n=200, **options), field, value)


def test_runs_that_fail_are_left_out_and_none_left_is_said(monkeypatch):
    whole = ladder_errors
    failing = []

    def sometimes(method, data, seed, measure, options):
        if failing and failing.pop():
            raise ArithmeticError("planted")
        return whole(method, data, seed, measure, options)

    monkeypatch.setattr(module, "ladder_errors", sometimes)
    failing[:] = [False, True, False]
    found = error_sources("dp_grams", "four_corners", n=120, runs=3, seed=0)
    assert (found.runs, found.failures, found.complete) == (2, 1, True)
    assert "1 could not be made" in found.sentence
    failing[:] = [True, True]
    with pytest.raises(DataError, match=r"None of 2 runs could be made.*planted"):
        error_sources("dp_grams", "four_corners", n=120, runs=2, seed=0)


@pytest.fixture
def made(monkeypatch):
    """The runs that are made, as (seed of the noise, measure); those on the second draw fail."""
    found, order = [], {}

    def counting(method, data, noise, measure, options):
        found.append((noise, measure))
        if order.setdefault(noise, len(order)) == 1:
            raise ArithmeticError("planted")
        return ladder_errors(method, data, noise, measure, options)

    monkeypatch.setattr(module, "ladder_errors", counting)
    return found


@pytest.mark.slow
def test_a_stopped_ladder_makes_no_run_twice_and_ends_at_the_same_parts(made, seed):
    how = {"method": "functional", "dataset": "four_corners", "n": 100, "seed": seed}
    whole = error_sources(runs=4, **how)
    wanted = made.copy()
    assert (whole.runs, whole.failures, len(set(wanted))) == (3, 1, 4)
    made.clear()
    kept = LadderMemory()
    for steps, runs in ((1, [1]), (2, [1, 1])):  # what was kept comes first, and then the run that fails
        stopped = stream_error_sources(runs=4, store=kept, **how)
        assert [item.runs for item in islice(stopped, steps)] == runs
        stopped.close()
    assert made == wanted[:2]
    assert error_sources(runs=4, store=kept, **how) == whole
    assert made == wanted
    assert list(stream_error_sources(runs=4, store=kept, **how)) == [whole]
    assert error_sources(runs=5, store=kept, **how).runs == 4
    assert len(made) == 4 + 1
    error_sources(runs=1, store=kept, measure="mse_per_true_mode", **how)
    assert len(made) == 5 + 1  # errors of another kind


def test_a_run_whose_worker_died_is_tried_again(monkeypatch, seed):
    how = {"method": "functional", "dataset": "four_corners", "n": 100, "runs": 2, "seed": seed}

    def one_dies(function, runs, executor):
        return ((run, Lost(DIED) if run[0].first_run == 0 else function(run)) for run in runs)

    kept = LadderMemory()
    monkeypatch.setattr(module, "stream_tasks", one_dies)
    assert error_sources(store=kept, **how).failures == 1
    monkeypatch.undo()
    assert error_sources(store=kept, **how) == error_sources(**how)


def test_a_memory_of_ladders_forgets_what_was_not_used_for_longest(seed):
    (cell,) = module.plan_cells("functional", "four_corners", n=[100], epsilon=[1.0], runs=3, seed=seed)
    runs = module.ladder_runs(cell, "mse")
    kept = LadderMemory(most_runs=2)
    for run_of_two in runs[:2]:
        kept.add(run_of_two, (0.5,))
    kept.finished(runs[0])  # somebody looks at the first one
    kept.add(runs[2], (0.25,))
    assert [kept.finished(item) for item in runs] == [(0.5,), None, (0.25,)]


def test_nothing_released_is_said_and_not_drawn():
    found = error_sources("functional", "four_corners", n=50, epsilon=0.02, runs=2, seed=0)
    assert math.isinf(found.total)
    assert "infinite" in found.sentence
    chart = error_sources_chart(found)
    assert len(chart.figure.data) == 0
    assert len(chart.table) == 3


def test_the_bars_begin_where_the_one_before_ends(seed):
    found = error_sources("dp_grams", "four_corners", n=120, runs=2, seed=seed)
    chart = error_sources_chart(found)
    parts, whole = chart.figure.data
    for place, step in enumerate(found.steps):
        assert parts.base[place] + parts.x[place] == pytest.approx(step.error)
    assert whole.x[0] == found.total
    assert parts.marker.color == (NON_PRIVATE, *[PRIVATE] * 7)
    assert [shape == "/" for shape in parts.marker.pattern.shape] == [step.change < 0 for step in found.steps]
    assert chart.table["change"].sum() == pytest.approx(found.total)
    assert chart.sentence.startswith("Of the mean MSE of")
