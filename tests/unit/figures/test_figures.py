"""Figure builders as units: what is drawn, what is said, and what stands in the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import load_dataset, run
from dpgrams_core.figures.curve import tradeoff_chart
from dpgrams_core.figures.modes import anchors_chart, contour_chart, released_chart, runs_chart, surface_chart
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, TRUTH
from dpgrams_core.figures.traces import density_grid
from dpgrams_core.model.format import short
from dpgrams_core.model.measures import match_modes
from dpgrams_core.sweeps.run import plan_cells, run_cell
from tests.drawn import trace


@pytest.fixture(scope="module")
def scene():
    data = load_dataset("four_corners", n=800, seed=0)
    return {
        "data": data,
        "private": run("dp_grams", data, seed=0),
        "functional": run("functional", data, seed=0),
        "plain": run("mean_shift", data, seed=0),
        "grid": density_grid(data, "gaussian", 1.0),
    }


def test_the_surface_is_the_kde_and_carries_the_true_modes(scene):
    chart = surface_chart(scene["data"], scene["grid"], 1.0)
    np.testing.assert_allclose(np.asarray(chart.figure.data[0].z), scene["grid"].z.T, rtol=1e-6)
    assert trace(chart.figure, "true modes").marker.color == TRUTH
    assert len(chart.table) == 4
    assert "not private" in chart.sentence


def test_the_density_grid_integrates_to_about_one(scene):
    grid = scene["grid"]
    cell = (grid.x[1] - grid.x[0]) * (grid.y[1] - grid.y[0])
    assert grid.z.sum() * cell == pytest.approx(1, abs=0.03)


def test_anchors_and_utilities_are_those_of_the_run(scene):
    chart = anchors_chart(scene["data"], scene["private"])
    drawn = trace(chart.figure, "drawn anchors (private)")
    np.testing.assert_array_equal(np.column_stack([drawn.x, drawn.y]), scene["private"].anchors)
    counts = np.asarray(chart.figure.data[0].marker.color)
    np.testing.assert_allclose(counts / 800, scene["private"].diagnostics.utilities)
    assert list(chart.table["anchor"]) == list(range(1, len(scene["private"].anchors) + 1))


def test_the_contours_show_three_colours_and_play_every_step(scene):
    chart = contour_chart(scene["data"], scene["grid"], scene["private"], scene["plain"])
    path = scene["private"].trajectories
    assert trace(chart.figure, "true modes").marker.color == TRUTH
    assert trace(chart.figure, "private modes").marker.color == PRIVATE
    assert trace(chart.figure, "mean shift (not private)").marker.line.color == NON_PRIVATE
    ends = chart.figure.data[2]
    np.testing.assert_array_equal(np.column_stack([ends.x, ends.y]), path[-1])
    distances = match_modes(scene["data"].true_modes, scene["private"].modes).distance
    np.testing.assert_allclose(chart.table["private distance"], distances)


def test_modes_outside_the_picture_are_counted(scene):
    swamped = run("dp_grams", scene["data"], calibration="theorem", epsilon=0.2, seed=0)
    box = scene["data"].box
    outside = int(((swamped.modes < box[:, 0]) | (swamped.modes > box[:, 1])).any(axis=1).sum())
    assert outside > 0
    sentence = contour_chart(scene["data"], scene["grid"], swamped, scene["plain"]).sentence
    assert f"{outside} of the private modes fell outside this picture" in sentence


def test_the_released_surface_is_drawn_in_units_of_its_noise(scene):
    release = scene["functional"]
    chart = released_chart(scene["data"], release)
    heat = chart.figure.data[0]
    expected = release.surface.grid([np.asarray(heat.x), np.asarray(heat.y)]) / release.noise_scale
    np.testing.assert_allclose(np.asarray(heat.z), expected.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(chart.table["height above the noise"], release.significance)
    assert f"{release.significance.min():.1f} σ above the noise" in chart.sentence


def test_two_methods_side_by_side_share_their_axes(scene):
    charts = [
        contour_chart(scene["data"], scene["grid"], scene[name], scene["plain"]) for name in ("private", "functional")
    ]
    for axis in ("xaxis", "yaxis"):
        first, second = (chart.figure.layout[axis].range for chart in charts)
        assert first == second
    np.testing.assert_array_equal(charts[0].figure.layout.xaxis.range, scene["data"].box[0])


def test_repeated_runs_fit_a_narrow_column(scene):
    runs = [scene["private"]] * 6
    wide = runs_chart(scene["data"], scene["grid"], runs, scene["plain"])
    narrow = runs_chart(scene["data"], scene["grid"], runs, scene["plain"], columns=2, row_height=100)
    assert wide.figure.layout.yaxis6.domain[0] == 0  # five in the first row, the sixth in the second and last
    assert narrow.figure.layout.yaxis5.domain == narrow.figure.layout.yaxis6.domain
    assert narrow.figure.layout.height == 360
    assert narrow.sentence == wide.sentence


def test_repeated_runs_are_counted_per_mode(scene):
    runs = [run("functional", scene["data"], epsilon=2.0, seed=seed) for seed in range(6)]
    chart = runs_chart(scene["data"], scene["grid"], runs, scene["plain"])
    assert "all 4 modes found in 6 of 6" in chart.sentence
    assert list(chart.table["found in runs"]) == [6, 6, 6, 6]
    assert sum(item.name == "private modes" for item in chart.figure.data) == 6
    told = [item.name for item in chart.figure.data if item.showlegend]
    assert told.count("plain density (not private)") == 1


def test_the_curve_shows_what_is_there_and_says_what_is_missing():
    cells = plan_cells(["mean_shift", "dp_grams"], "four_corners", n=[500], epsilon=[0.5, 5.0], runs=2)
    results = [run_cell(cell) for cell in cells]
    half = tradeoff_chart(results[:2], cells, 1.0)
    assert "2 of 3 points so far" in half.sentence
    chart = tradeoff_chart(results, cells, 1.0)
    curve = trace(chart.figure, "DP-GRAMS, n = 500")
    assert list(curve.x) == [0.5, 5.0]
    np.testing.assert_allclose(curve.y, [np.mean(result.scores["mse"]) for result in results[1:]])
    assert "Means of 2 runs" in chart.sentence
    assert {"found", "missed", "spurious", "mse_per_true_mode"} <= set(chart.table.columns)
    assert math.isinf(chart.table["epsilon"].max())


def two_methods(n):
    plan = {"dataset": "four_corners", "n": n, "epsilon": [0.5, 5.0], "runs": 2}
    cells = plan_cells(["mean_shift", "dp_grams"], calibration="experiments", **plan)
    return cells + plan_cells("dp_grams", calibration="tight", **plan)


def test_the_curve_tells_two_private_methods_apart_without_another_colour():
    cells = two_methods([500])
    results = [run_cell(cell) for cell in cells]
    chart = tradeoff_chart(results, cells, 1.0)
    first = trace(chart.figure, "DP-GRAMS experiments, n = 500")
    second = trace(chart.figure, "DP-GRAMS tight, n = 500")
    assert first.line.color == second.line.color == PRIVATE
    assert first.line.dash != second.line.dash
    assert first.marker.symbol != second.marker.symbol
    for curve, mine in ((first, results[1:3]), (second, results[3:])):
        np.testing.assert_allclose(curve.y, [np.mean(result.scores["mse"]) for result in mine])
    assert "the error of DP-GRAMS experiments goes from" in chart.sentence
    assert "the error of DP-GRAMS tight goes from" in chart.sentence
    assert list(dict.fromkeys(chart.table["method"])) == ["Mean shift", "DP-GRAMS experiments", "DP-GRAMS tight"]


def test_a_curve_keeps_its_look_while_the_rest_fills_in():
    cells = two_methods([200, 500])
    results = [run_cell(cell) for cell in cells]
    whole = {item.name: item for item in tradeoff_chart(results, cells, 1.0).figure.data}
    looks = {
        (item.line.color, item.line.dash, item.marker.symbol)
        for item in whole.values()
        if item.error_y.array is not None
    }
    assert len(looks) == 4  # two methods at two sizes: no two alike
    for done in range(1, len(results)):
        chart = tradeoff_chart(results[:done], cells, 1.0)
        assert f"{done} of {len(cells)} points so far" in chart.sentence
        for item in chart.figure.data:
            assert item.line == whole[item.name].line
            assert item.marker == whole[item.name].marker


def test_the_line_of_the_chosen_epsilon_is_named():
    cells = plan_cells("functional", "four_corners", n=[500], epsilon=[0.5, 5.0], runs=1)
    (note,) = tradeoff_chart([], cells, 2.0).figure.layout.annotations
    assert note.text == "your ε = 2"
    assert note.x == pytest.approx(math.log10(2))
    assert not tradeoff_chart([], cells, 0.1).figure.layout.annotations


def test_a_run_without_modes_is_a_gap_with_a_reason():
    cells = plan_cells("functional", "four_corners", n=[60], epsilon=[0.02, 5.0], runs=2)
    chart = tradeoff_chart([run_cell(cell) for cell in cells], cells, 1.0)
    assert np.isnan(np.asarray(chart.figure.data[0].y, dtype=float)[0])
    assert "released no mode" in chart.sentence


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (math.inf, "∞"), (math.nan, "–"), (1234.5, "1,230"), (0.05, "0.05"), (2e-5, "2e-5")]
)
def test_numbers_are_written_as_people_write_them(value, text):
    assert short(value) == text
