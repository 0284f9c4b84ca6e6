"""The pictures of the Regression page as units: what is drawn, what is said, and what stands in the table."""

from __future__ import annotations

import json
import math
import re
import zlib

import numpy as np
import pytest

from dpgrams_core import load_dataset, run, score
from dpgrams_core.figures.curve import tradeoff_chart
from dpgrams_core.figures.regression import (
    ascent_chart,
    branches_chart,
    conditional_slices,
    place_names,
    ridges_chart,
    share_near,
    slice_chart,
    slice_frames,
    squeezed,
    true_branches,
)
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, TRUTH
from dpgrams_core.figures.traces import BAND_WORDS
from dpgrams_core.methods.functional.regression import to_unit
from dpgrams_core.studies.comparison import pooled
from dpgrams_core.sweeps.run import plan_cells, run_cell
from tests.drawn import trace
from tests.made import changed


@pytest.fixture(scope="module")
def scene():
    data = load_dataset("sinusoid", n=600, seed=0)
    made = {name: run(name, data, seed=0) for name in ("functional_regression", "dp_pms", "pms", "lowess")}
    return {"data": data, **made}


def fits(scene):
    names = {"functional_regression": "Functional", "dp_pms": "DP-PMS", "pms": "PMS", "lowess": "LOWESS"}
    return [(title, scene[name]) for name, title in names.items()]


def test_every_curve_has_the_colour_of_its_kind(scene):
    figure = branches_chart(scene["data"], fits(scene), records=True, truth=True).figure
    assert trace(figure, "true branches").line.color == TRUTH
    assert trace(figure, "records (not private)").marker.color == NON_PRIVATE
    assert trace(figure, "PMS (not private)").marker.line.color == NON_PRIVATE
    lowess = trace(figure, "LOWESS (not private)")
    assert (lowess.line.color, lowess.line.dash, lowess.mode) == (NON_PRIVATE, "dash", "lines")
    assert trace(figure, "Functional (private)").line.color == PRIVATE
    assert trace(figure, "DP-PMS (private)").marker.color == PRIVATE
    assert trace(figure, "DP-PMS (private)").marker.symbol == "diamond-open"  # the second private one


def test_few_places_are_sent_of_many_records():
    """The chart goes out anew at every ε: with all of 100,000 records that was a megabyte."""
    many, few = (load_dataset("sinusoid", n=n, seed=0) for n in (30_000, 1_200))
    lowess, pms = run("lowess", many), run("pms", few)
    records, line = branches_chart(many, [("LOWESS", lowess)], records=True, truth=False).figure.data
    (ends,) = branches_chart(few, [("PMS", pms)], records=False, truth=False).figure.data
    assert [len(one.x) for one in (records, line, ends)] == [1_000, 200, 500]
    assert (line.x[0], line.x[-1]) == (lowess.curve[0, 0], lowess.curve[-1, 0])


def test_every_branch_is_one_line_and_together_they_are_the_release(scene):
    release = scene["functional_regression"]
    figure = branches_chart(scene["data"], [("Functional", release)], records=False, truth=False).figure
    lines, bands = ([item for item in figure.data if (item.name == BAND_WORDS) is band] for band in (False, True))
    assert len(lines) == len(bands) == len(np.unique(release.branches))
    rows = np.concatenate([np.column_stack([item.x, item.y]) for item in lines])
    np.testing.assert_array_equal(rows, release.curve)
    for number, band in enumerate(bands):  # the upper edge there, and the lower one back
        edges = release.curve_band[release.branches == number]
        np.testing.assert_array_equal(band.y, np.concatenate([edges[:, 1], edges[::-1, 0]]))
    assert sum(item.showlegend for item in lines) == sum(item.showlegend for item in bands) == 1
    sizes = np.concatenate([item.marker.size for item in lines])
    order = np.argsort(release.significance)
    assert (np.diff(sizes[order]) >= 0).all()  # what stands higher above the noise is drawn larger
    assert sizes.max() > sizes.min()


def test_curves_can_be_shown_one_by_one(scene):
    for fit in fits(scene):
        chart = branches_chart(scene["data"], [fit], records=False, truth=False)
        figure = chart.figure
        assert ("allows for the noise alone" in chart.sentence) == (fit[1].curve_band is not None)
        bands = set() if fit[1].curve_band is None else {BAND_WORDS}
        assert {item.name.split(" (")[0] for item in figure.data} == {fit[0], *bands}
    empty = branches_chart(scene["data"], [], records=True, truth=True)
    assert {item.name for item in empty.figure.data} == {"records (not private)", "true branches"}
    assert "No curve is chosen" in empty.sentence
    assert len(empty.table) == 0


def test_the_table_under_the_branches_has_the_scores(scene):
    chart = branches_chart(scene["data"], fits(scene), records=True, truth=True)
    assert list(chart.table["guarantee"]) == ["proven", "nominal", "none", "none"]
    for row, (title, release) in zip(chart.table.to_dict("records"), fits(scene), strict=True):
        scores = score(release, scene["data"])
        assert row["curve"] == title
        assert row["oracle MSE"] == scores["mse"]
        assert row["branches found, %"] == pytest.approx(100 * scores["branch_recall"])
        assert f"{title} {100 * scores['branch_recall']:.0f}%" in chart.sentence


def test_points_outside_the_picture_are_counted(scene):
    swamped = run("dp_pms", scene["data"], calibration="theorem", epsilon=0.2, seed=0)
    low, high = scene["data"].box[1]
    count = int(((swamped.curve[:, 1] < low) | (swamped.curve[:, 1] > high)).sum())
    assert count > 0
    sentence = branches_chart(scene["data"], [("DP-PMS", swamped)], records=True, truth=True).sentence
    assert f"{count} of the {len(swamped.curve)} points fell outside this picture" in sentence


@pytest.mark.parametrize("name", ["sinusoid", "three_component"])
def test_the_true_branches_are_the_modes_and_never_jump(name):
    data = load_dataset(name, n=100, seed=0)
    rows = true_branches(data)
    known = np.isfinite(rows[:, 1])
    for x, y in rows[known][::37]:
        assert np.abs(data.conditional_modes(x) - y).min() < 1e-9
    joined = known[1:] & known[:-1]
    assert np.abs(np.diff(rows[:, 1]))[joined].max() < 0.1 * np.ptp(data.box[1])
    x = np.linspace(*data.box[0], 401)
    assert known.sum() == sum(len(modes) for modes in data.conditional_modes(x))  # none is lost


def test_the_share_of_records_near_a_mean(scene):
    data = scene["data"]
    near = share_near(data, scene["lowess"].curve)
    assert near < 0.1  # the waves' mean runs where hardly any record is
    order = np.argsort(data.x)
    assert share_near(data, np.column_stack([data.x, data.y])[order]) == 1.0


def test_the_released_surface_is_drawn_in_units_of_its_noise(scene):
    release, data = scene["functional_regression"], scene["data"]
    chart = ridges_chart(data, release)
    heat = chart.figure.data[0]
    places = np.array([[heat.x[5], heat.y[60]], [heat.x[40], heat.y[20]]])
    unit = to_unit(places, data.box)
    expected = release.surface.value(unit) / release.surface.noise_at(unit)
    np.testing.assert_allclose([heat.z[60][5], heat.z[20][40]], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(chart.table[["x", "y"]], release.curve)
    np.testing.assert_array_equal(chart.table["height above the noise, σ"], release.significance)
    edges = chart.table[["lower (95%)", "upper (95%)"]].to_numpy()
    np.testing.assert_array_equal(edges, release.curve_band)
    assert (edges[:, 0] <= chart.table["y"]).all()
    assert (chart.table["y"] <= edges[:, 1]).all()
    assert "95 times in 100" in chart.sentence
    for number in np.unique(release.branches):
        assert f"{release.significance[release.branches == number].max():.1f}" in chart.sentence


def test_the_ascent_ends_where_the_method_ended_and_x_never_moves(scene):
    release = scene["dp_pms"]
    chart = ascent_chart(scene["data"], release)
    path = release.trajectories
    ends = trace(chart.figure, "ends of the starts")
    np.testing.assert_array_equal(np.column_stack([ends.x, ends.y]), path[-1])
    np.testing.assert_array_equal(ends.x, release.anchors[:, 0])
    anchors = trace(chart.figure, "anchors drawn (private)")
    np.testing.assert_array_equal(np.column_stack([anchors.x, anchors.y]), release.anchors)
    np.testing.assert_array_equal(chart.table["end y"], path[-1][:, 1])
    first = np.abs(scene["data"].conditional_modes(path[-1][0, 0]) - path[-1][0, 1]).min()
    assert chart.table["distance to the nearest branch"][0] == pytest.approx(first)
    assert f"{len(path) - 1} noisy steps" in chart.sentence


def test_the_slices_are_densities(scene):
    slices = conditional_slices(scene["data"], scene["functional_regression"])
    step = slices.y[1] - slices.y[0]
    np.testing.assert_allclose(slices.truth.sum(axis=1) * step, 1, atol=0.01)
    np.testing.assert_allclose(slices.released.sum(axis=1) * step, 1, atol=1e-9)
    assert (np.abs(slices.plain.sum(axis=1) * step - 1) < 0.15).all()  # some of its mass lies outside the box
    number = 10
    unit = to_unit(np.column_stack([np.full(len(slices.y), slices.x[number]), slices.y]), scene["data"].box)
    surface = scene["functional_regression"].surface
    ratio = slices.noise[number] / slices.released[number]
    np.testing.assert_allclose(ratio, surface.noise_at(unit) / surface.value(unit), rtol=1e-8)


def test_the_plain_kde_of_a_slice_equals_a_loop(scene):
    data, release = scene["data"], scene["dp_pms"]
    slices = conditional_slices(data, release)
    assert slices.released is None
    assert slices.noise is None
    width = release.spec.bandwidth * np.ptp(data.box, axis=1)
    x, y = slices.x[17], slices.y[50]
    top = bottom = 0.0
    for a, b in data.points:
        weight = math.exp(-((a - x) ** 2) / (2 * width[0] ** 2))
        top += weight * math.exp(-((b - y) ** 2) / (2 * width[1] ** 2)) / (width[1] * math.sqrt(2 * math.pi))
        bottom += weight
    assert slices.plain[17, 50] == pytest.approx(top / bottom)


def test_the_chosen_slice_is_told_in_words_and_numbers(scene):
    data, release = scene["data"], scene["functional_regression"]
    chart = slice_chart(data, release, conditional_slices(data, release), "0.46")
    modes = data.conditional_modes(0.46)
    assert f"the truth has 2 modes at y = {modes[0]:.2f}, {modes[1]:.2f}" in chart.sentence
    np.testing.assert_allclose(chart.table[chart.table["mode"] == "true"]["y"], modes)
    private = chart.table[chart.table["mode"] == "private"]
    near = np.isclose(release.curve[:, 0], 0.46)
    np.testing.assert_allclose(np.sort(private["y"]), np.sort(release.curve[near, 1]))
    told = re.search(r"the private curve has 2 modes at y = (.*?), (.*?)\. ", chart.sentence)
    assert float(told[1]) < float(told[2])  # as the truth is told
    assert trace(chart.figure, "truth").line.color == TRUTH
    assert trace(chart.figure, "released (private)").line.color == PRIVATE
    assert trace(chart.figure, "plain density (not private)").line.color == NON_PRIVATE


@pytest.mark.parametrize("name", ["functional_regression", "dp_pms"])
def test_the_frames_show_at_every_place_what_the_chart_would(scene, name):
    data, release = scene["data"], scene[name]
    slices = conditional_slices(data, release)
    frames = slice_frames(data, release, slices)
    json.dumps(frames, allow_nan=False)  # what a browser can read
    assert frames["names"] == place_names(data.box)
    for number in (0, 13, 50):
        figure = slice_chart(data, release, slices, frames["names"][number]).figure
        assert figure.layout.annotations[0].to_plotly_json() == frames["labels"][number]
        for i, item in enumerate(figure.data):
            y = frames["still"][i] if frames["still"][i] is not None else frames["y"][number][i]
            np.testing.assert_allclose(frames["x"][number][i], item.x, atol=1e-4)
            np.testing.assert_allclose(y, item.y, atol=1e-4)


@pytest.mark.parametrize("name", ["functional_regression", "dp_pms"])
def test_squeezed_frames_are_the_same_frames(scene, name):
    release = scene[name]
    frames = slice_frames(scene["data"], release, conditional_slices(scene["data"], release))
    small = squeezed(frames, rest="0.46")
    assert len(small) < len(json.dumps(frames)) / 5
    read = json.loads(zlib.decompress(small))
    summed = [  # as follow_pointer.js does
        [[None if one is None else next(sums) for one in bends] for bends, sums in ((b, _sums(b)) for b in frame)]
        for frame in read["x"]
    ]
    assert summed == frames["x"]
    assert {**read, "x": frames["x"]} == {**frames, "rest": "0.46"}


def _sums(bends):
    last = step = 0
    for bend in bends:
        if bend is not None:
            step += bend
            last += step
            yield last / 1e4


def test_a_slice_without_a_surface_shows_the_private_modes_on_the_axis(scene):
    data, release = scene["data"], scene["dp_pms"]
    chart = slice_chart(data, release, conditional_slices(data, release), "0.50")
    assert "released (private)" not in [item.name for item in chart.figure.data]
    found = trace(chart.figure, "private modes")
    assert len(found.y) > 0
    assert (np.asarray(found.x) == 0).all()
    assert "released density" not in chart.table


def test_where_all_is_noise_no_density_is_drawn_and_it_is_said():
    data = load_dataset("sinusoid", n=50, seed=0)
    release = run("functional_regression", data, epsilon=0.01, seed=0)
    slices = conditional_slices(data, release)
    lost = np.flatnonzero(np.isnan(slices.released).all(axis=1))
    assert len(lost) > 0
    name = place_names(data.box)[lost[0]]
    assert "mostly noise" in slice_chart(data, release, slices, name).sentence
    json.dumps(slice_frames(data, release, slices), allow_nan=False)


def test_the_curve_has_a_pms_line_for_every_n_and_the_recall_in_its_table():
    cells = []
    for n in (100, 200):
        cells += plan_cells("functional_regression", "sinusoid", n=[n], epsilon=[0.5, 1.0], runs=2)
        cells += plan_cells("pms", "sinusoid", n=[n], epsilon=[0.5], runs=1)
    results = [run_cell(cell) for cell in cells]
    chart = tradeoff_chart(results, cells, 1.0)
    for n, result in zip((100, 200), (results[2], results[5]), strict=True):
        line = trace(chart.figure, f"partial mean shift, n = {n} (not private)")
        assert line.line.color == NON_PRIVATE
        assert line.line.dash == "dash"
        assert line.y[0] == result.scores["mse"][0]
        assert line.marker.symbol == trace(chart.figure, f"Functional release, n = {n}").marker.symbol
    assert {"branch_recall", "spurious", "coverage", "status"} <= set(chart.table.columns)
    assert "Means of 2 (partial mean shift 1) runs" in chart.sentence
    recall = [np.mean(result.scores["branch_recall"]) for result in results[3:5]]
    assert f"share of branches found goes from {100 * recall[0]:.0f}% to {100 * recall[1]:.0f}%" in chart.sentence


def test_the_curve_has_ticks_to_read_within_one_decade_and_over_many():
    cells = plan_cells("functional_regression", "sinusoid", n=[100], epsilon=[0.5, 1.0], runs=1)

    def ticks(*errors):
        results = [
            changed(result, scores={**result.scores, "mse": (error,)})
            for result, error in zip((run_cell(cell) for cell in cells), errors, strict=True)
        ]
        return tradeoff_chart(results, cells, 1.0).figure.layout.yaxis.dtick

    assert ticks(0.02, 0.09) == "D2"
    assert ticks(0.02, 900.0) == 1


def test_pieces_of_a_cell_make_one_point():
    cells = plan_cells("functional_regression", "sinusoid", n=[100], epsilon=[1.0], runs=2)
    pieces = [
        run_cell(plan_cells("functional_regression", "sinusoid", n=[100], epsilon=[1.0], runs=2, seed=i)[0])
        for i in range(2)
    ]
    chart = tradeoff_chart([pooled(pieces)], cells, 1.0)
    assert list(chart.table["runs"]) == [4]
    assert chart.table["mse"][0] == pytest.approx(np.mean([piece.scores["mse"] for piece in pieces]))
