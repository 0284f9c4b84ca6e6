"""The ladders of DP-PMS and of its functional release: they end at the method, each step with its own ingredient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.naive import naive_partial_mean_shift
from dpgrams_core import load_dataset, run, score, sweep
from dpgrams_core.figures.tradeoff import error_sources_chart
from dpgrams_core.methods.dp_pms.ladder import all_records
from dpgrams_core.methods.dp_pms.run import (
    ascend,
    cleaned,
    climb_rounds,
    clipped_shift,
    curve_at,
    read_curve,
    starts_of,
)
from dpgrams_core.methods.functional.regression import from_unit, to_unit
from dpgrams_core.methods.ladder import climbed, switched
from dpgrams_core.model.errors import DataError
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.studies.ablation import error_sources, ladder_errors, ladders, prepared, stream_error_sources

PLACE = {rung.key: place for place, rung in enumerate(ladders()["dp_pms"].rungs)}
EVERYTHING = frozenset(list(PLACE)[: PLACE["cleanup"]])
SETTINGS = [
    {},
    {"calibration": "theorem"},
    {"calibration": "tight"},
    {"calibration": "tight", "batch_size": 60, "starts": "binned", "n_bins": 8},
    {"starts": "binned", "cleanup_radius": 0.1},
    {"batch_size": 40, "n_steps": 3, "step_size": 0.5, "clip_multiplier": 1e-4},
]


@pytest.fixture(scope="module")
def waves(seed):
    return load_dataset("sinusoid", n=150, seed=seed)


def ladder(data, seed, **options):
    return ladder_errors("dp_pms", data, seed, "mse", options)


def read(chosen, data, seed):
    """The end points of DP-PMS that are kept, and its curve, put together of its parts."""
    chosen, door = switched(chosen, data, seed, EVERYTHING)
    starts = starts_of(chosen, door).points
    if chosen.process_noise is None:
        kept = cleaned(chosen, ascend(chosen, starts, door)[0][-1])
        return kept, curve_at(kept, chosen.evaluation_points, chosen.reach, chosen.merge_radius)
    path, _, pooled = climb_rounds(chosen, starts, door)
    heights = pooled.at(path[-1])[0] / pooled.unit
    kept = path[-1][heights >= min(chosen.filled_spec().significance, heights.max())]
    return kept, read_curve(chosen, path[-1], pooled)


@pytest.mark.parametrize("options", SETTINGS)
def test_with_everything_on_the_ladder_is_dp_pms_itself(waves, seed, options):
    # The ladder's own ends, cleaned up and merged as the method merges them, are the method's to the last bit.
    chosen = prepared("dp_pms", waves, options)
    kept, curve = read(chosen, waves, seed)
    own = run("dp_pms", waves, seed=seed, **options)
    rows = list(ladders()["dp_pms"].estimates(chosen, waves, seed))
    assert np.array_equal(rows[PLACE["start"]], own.trajectories[-1])
    assert np.array_equal(rows[PLACE["cleanup"]], from_unit(kept, waves.box))
    assert np.array_equal(from_unit(curve, waves.box), own.curve)
    errors = ladder(waves, seed, **options)
    assert len(errors) == len(PLACE)
    assert errors[-1] == score(own, waves)["mse"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first_touched", "one", "other"),
    [
        ("sampling", {"bandwidth": 0.08}, {"bandwidth": 0.1}),
        ("few_starts", {"start_multiplier": 3.0}, {"start_multiplier": 6.0}),
        ("few_steps", {"n_steps": 2}, {"n_steps": 6}),
        ("few_steps", {"step_size": 0.1}, {"step_size": 0.5}),
        ("clipping", {"clip_multiplier": 1e-5}, {"clip_multiplier": 1e-4}),
        ("clipping", {"calibration": "tight", "density_floor": 1.0}, {"calibration": "tight", "density_floor": 3.0}),
        ("subsampling", {"batch_size": 30}, {"batch_size": 90}),
        ("subsampling", {"calibration": "tight", "batch_size": 30}, {"calibration": "tight", "batch_size": 90}),
        ("noise", {"epsilon": 0.5}, {"epsilon": 5.0}),
        ("noise", {"epsilon": 0.5, "calibration": "tight"}, {"epsilon": 5.0, "calibration": "tight"}),
        ("merge", {"merge_radius": 1e-6}, {"merge_radius": 10.0}),
    ],
)
def test_a_setting_first_shows_at_its_own_step(waves, seed, first_touched, one, other, assert_first_differ_at):
    assert_first_differ_at(PLACE[first_touched], ladder(waves, seed, **one), ladder(waves, seed, **other))


def test_the_share_for_the_start_shows_at_the_start_when_the_noise_is_held(
    waves, seed, monkeypatch, assert_first_differ_at
):
    # The split of epsilon moves the noise too, so the noise is taken out of the comparison altogether.
    monkeypatch.setattr(SimulationNoise, "independent_gaussian", lambda self, exact, scale: exact)
    a, b = (ladder(waves, seed, init_fraction=share, epsilon=30.0) for share in (0.001, 0.9))
    assert_first_differ_at(PLACE["start"], a, b)


def test_cleanup_is_a_step_only_where_the_method_has_one(waves, seed):
    chosen = prepared("dp_pms", waves, {"calibration": "tight", "significance": 1.0})
    rows = list(ladders()["dp_pms"].estimates(chosen, waves, seed))
    kept, _ = read(chosen, waves, seed)
    assert 1 <= len(kept) < len(rows[PLACE["start"]])
    plain = ladder(waves, seed)
    assert plain[PLACE["cleanup"]] == plain[PLACE["start"]]
    near, far = (ladder(waves, seed, starts="binned", cleanup_radius=radius) for radius in (0.01, 3.0))
    assert near[: PLACE["cleanup"]] == far[: PLACE["cleanup"]]
    assert near[PLACE["cleanup"]] != far[PLACE["cleanup"]]  # within 3 in the unit square everything is one company


def test_what_is_off_is_the_same_for_any_seed_of_the_noise(waves, seed):
    a, b = (ladder(waves, number) for number in (seed, seed + 1))
    place = PLACE["subsampling"]
    assert a[:place] == b[:place]
    assert all(one != other for one, other in zip(a[place:], b[place:], strict=True))
    a, b = (ladder_errors("functional_regression", waves, number, "mse", {}) for number in (seed, seed + 1))
    assert a[:3] == b[:3]
    assert a[3] != b[3]


def test_without_clip_and_floor_all_calibrations_climb_the_same_density(waves, seed):
    # Two codes for one exact step: they agree to rounding until their own clips come in.
    one, other, tight = (ladder(waves, seed, calibration=name) for name in ("experiments", "theorem", "tight"))
    assert other[: PLACE["clipping"]] == pytest.approx(one[: PLACE["clipping"]], rel=1e-6)
    # The tight calibration has a bandwidth of its own, and reads its rounds together: nearly where mean shift ends.
    assert tight[PLACE["few_steps"]] == pytest.approx(tight[PLACE["few_starts"]], rel=0.5)


def test_the_first_steps_are_partial_mean_shift_to_its_end(waves):
    few = replace(waves, points=waves.points[:40])
    unit = to_unit(few.points, few.box)
    found = to_unit(all_records(few, 0.1), few.box)
    order = np.argsort(unit[:, 0], kind="stable")
    assert found[:, 1] == pytest.approx(naive_partial_mean_shift(*unit.T, 0.1, 0.1, 1e-10)[order], abs=1e-6)
    starts = np.array([[0.3, 0.2], [0.3, 0.9], [0.8, 40.0]])
    along_y = lambda at: np.stack([np.zeros(len(at)), clipped_shift(unit, at, 0.1, np.inf)[0]], axis=1)  # noqa: E731
    ends = climbed(starts, along_y, 0.1)
    assert np.array_equal(ends[:, 0], starts[:, 0])
    assert np.abs(clipped_shift(unit, ends, 0.1, np.inf)[0]).max() < 1e-6
    assert ends[2, 1] == 40.0  # it sees no record
    assert starts[0, 1] == 0.2  # the starts of the next step


def test_the_ladder_of_the_surface_is_the_release_with_its_noise_taken_out(waves, seed, monkeypatch):
    errors = ladder_errors("functional_regression", waves, seed, "mse", {})
    own = run("functional_regression", waves, seed=seed)
    assert errors[-1] == score(own, waves)["mse"]
    assert errors[0] == score(run("pms", waves, seed=seed), waves)["mse"]
    monkeypatch.setattr(SimulationNoise, "independent_gaussian", lambda self, exact, scale: exact)
    exact = ladder_errors("functional_regression", waves, seed, "mse", {})
    assert exact[3] == exact[2] == errors[2]


@pytest.mark.parametrize(
    ("first_touched", "one", "other"),
    [(1, {"bandwidth": 0.08}, {"bandwidth": 0.12}), (2, {"grid_size": 11}, {"grid_size": 31})],
)
def test_a_setting_of_the_surface_first_shows_at_its_own_step(waves, seed, first_touched, one, other):
    a, b = (ladder_errors("functional_regression", waves, seed, "mse", options) for options in (one, other))
    assert a[:first_touched] == b[:first_touched]
    assert a[first_touched] != b[first_touched]


@pytest.mark.parametrize("method", ["dp_pms", "functional_regression"])
def test_the_parts_add_up_to_what_a_sweep_reports(seed, method):
    how = {"epsilon": 2.0, "runs": 3, "seed": seed}
    found = error_sources(method, "sinusoid", n=120, **how)
    table = sweep(method, "sinusoid", n=[120], **{**how, "epsilon": [2.0]})
    assert found.total == pytest.approx(float(table["mse"].iloc[0]), rel=1e-12)
    assert sum(step.change for step in found.steps) == pytest.approx(found.total, rel=1e-9)
    assert [step.key for step in found.steps] == [rung.key for rung in ladders()[method].rungs]
    assert "in this order" in found.sentence
    assert "a branch that is missed costs nothing" in found.sentence  # the paper's loss forgives it: say so
    assert len(error_sources_chart(found).table) == len(found.steps)


def test_private_data_and_data_without_a_truth_are_refused(waves, refused, nothing_drawn):
    private, unknown = replace(waves, private=True), replace(waves, truth=None)
    for method in ("dp_pms", "functional_regression"):
        with pytest.raises(DataError, match="The data are private"):
            ladder_errors(method, private, 0, "mse", {})
        with pytest.raises(DataError, match="The data are private"):
            ladders()[method].estimates(prepared(method, waves, {}), private, 0)
        refused(lambda method=method: prepared(method, unknown, {}), "dataset", waves.name, "not known")


@pytest.mark.parametrize(
    ("method", "options", "field", "value"),
    [
        ("pms", {}, "method", "pms"),
        ("dp_pms", {"measure": "mse_per_true_mode"}, "measure", "mse_per_true_mode"),
        ("dp_pms", {"batch_size": 1000}, "batch_size", 1000),
        ("dp_pms", {"n_bins": 4}, "n_bins", 4),
        ("dp_pms", {"bandwidth": 0.0005}, "bandwidth", 0.0005),
        ("dp_pms", {"n": 50_001}, "n", 50_001),
        ("functional_regression", {"bandwidth": 0.0005}, "bandwidth", 0.0005),
        ("functional_regression", {"clip_multiplier": 2.0}, "clip_multiplier", 2.0),
    ],
)
def test_wrong_settings_are_refused_at_the_call(refused, nothing_drawn, method, options, field, value):
    refused(lambda: stream_error_sources(method, "sinusoid", **{"n": 150, **options}), field, value)


def test_a_response_grid_beside_the_data_is_refused_at_the_call(nothing_drawn):
    with pytest.raises(DataError, match="misses the data"):
        stream_error_sources("dp_pms", "sinusoid", n=50, response_grid=(-0.99,), init_bandwidth=1e-6)
