"""Pictures of a user's own data: in the user's units, and in the public view without a way for records to get in."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import Dataset, load_dataset, run
from dpgrams_core.figures import own_data
from dpgrams_core.figures.own_data import (
    Units,
    ascent_map,
    branches_map,
    density_curve,
    pair_panels,
    reading_table,
    surface_map,
    twin_curve,
)
from dpgrams_core.figures.own_records import records_picture
from dpgrams_core.figures.traces import CENTRE_WORDS, PEAK_WORDS, REGION_WORDS
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.units import in_units
from dpgrams_core.numerics.ridges import NORMAL_95
from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.own_data.examples import EXAMPLE_BOX, EXAMPLE_MISSING, EXAMPLE_ROWS, example_csv, stand_in
from dpgrams_core.own_data.postprocess import Reading, agreement, released_clusters, released_modes
from dpgrams_core.own_data.reading.table import read_table

BOX = np.array([[0.0, 100.0], [-1.0, 3.0]])
AGES = np.array([[10.0, 90.0]])
TWO = Units(("age", "<b>pay</b>"), BOX)


@pytest.fixture(scope="module")
def flat():
    return in_units(run("functional", stand_in(4_000, 2), epsilon=2.0, seed=0), stand_in(1, 2).box, BOX)


@pytest.fixture(scope="module")
def line():
    return in_units(run("functional", stand_in(4_000, 1), epsilon=2.0, seed=0), stand_in(1, 1).box, AGES)


def test_no_public_picture_takes_records():
    builders = [
        function
        for module in (own_data,)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
    ]
    assert len(builders) > 10
    for function in builders:
        types = {str(item.annotation) for item in inspect.signature(function).parameters.values()}
        assert not any("Dataset" in kind or "OwnData" in kind for kind in types), function.__name__


def test_modes_of_ones_own_data_have_regions_where_they_are_sure(flat, line):
    found = released_modes(flat)
    weak = replace(found, significance=np.where(np.arange(len(found.places)) == 1, 4.9, found.significance))
    for reading, count in ((found, len(found.places)), (weak, len(found.places) - 1)):
        chart = surface_map(TWO, flat.surface, flat.surface.bandwidth, reading)
        (ring,) = [trace for trace in chart.figure.data if trace.name == REGION_WORDS]
        assert np.isnan(np.array(ring.x)).sum() == count
        assert "95 times in 100" in chart.sentence
        assert ("not to be trusted" in chart.sentence) == (reading is weak)
        half = chart.table["± <b>pay</b> (95%)"]
        assert half.notna().sum() == count
        spread = np.sqrt(flat.mode_covariances[:, 1, 1][np.argsort(-flat.significance)])
        assert half.iloc[0] == pytest.approx(NORMAL_95 * spread[0])  # in the units of the column
    panels = pair_panels(TWO, found, None)
    assert REGION_WORDS in [trace.name for trace in panels.figure.data]
    of_line = released_modes(line, count=4)  # read anew, since a number is given
    chart = density_curve(Units(("age",), AGES), line.surface, line.surface.bandwidth, of_line, False)
    reach = [trace.error_x.array for trace in chart.figure.data if trace.error_x.array is not None]
    np.testing.assert_allclose(reach[0], NORMAL_95 * np.sqrt(of_line.covariances[:, 0, 0]))
    assert 0 < reach[0][0] < 20  # years
    smoothed = surface_map(TWO, flat.surface, 1.5 * flat.surface.bandwidth, released_modes(flat, 1.5))
    names = [trace.name for trace in smoothed.figure.data]
    assert PEAK_WORDS in names  # of that density, and not of the population
    assert REGION_WORDS not in names
    centres = surface_map(TWO, flat.surface, flat.surface.bandwidth, released_clusters(flat, 4, True), regions=True)
    assert CENTRE_WORDS in [trace.name for trace in centres.figure.data]
    assert centres.table["± <b>pay</b> (95%)"].notna().all()


def test_density_is_one_over_the_users_box(line):
    units = Units(("age",), AGES)
    chart = density_curve(units, line.surface, line.surface.bandwidth, released_modes(line), regions=False)
    curve = chart.figure.data[1]
    assert (curve.x[0], curve.x[-1]) == (10.0, 90.0)
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=0.05)
    truth = rescaled(stand_in(10, 1).true_modes, stand_in(1, 1).box, AGES)[:, 0]
    assert np.sort(chart.table["age"]) == pytest.approx(np.sort(truth), abs=3)
    borders = density_curve(units, line.surface, line.surface.bandwidth, released_clusters(line, 4), regions=True)
    assert len(borders.figure.layout.shapes) == 3


def test_surface_in_the_users_units_with_regions(flat):
    reading = released_clusters(flat, 4)
    assert reading.shares.sum() == pytest.approx(1)
    chart = surface_map(TWO, flat.surface, flat.surface.bandwidth, reading, regions=True)
    heat, *borders, centres = chart.figure.data
    assert (heat.x[0], heat.x[-1], heat.y[0], heat.y[-1]) == (0, 100, -1, 3)
    assert len(borders) == 4
    truth = rescaled(stand_in(10, 2).true_modes, stand_in(1, 2).box, BOX)
    share, extra, _ = agreement(truth, np.column_stack([centres.x, centres.y]), BOX)
    assert (share, extra) == (1, 0)
    assert chart.figure.layout.yaxis.title.text == "&lt;b&gt;pay&lt;/b&gt;"
    assert "about 2" in chart.sentence  # four shares of about a quarter
    places = np.array(reading.places)
    border = own_data._borders([np.array([places[0, 0]]), np.array([places[0, 1]])], places, flat.surface.bandwidths)
    assert border[0].item() > 0 > max(other.item() for other in border[1:])


def test_smoothing_and_counting_are_free_and_agree(flat):
    plain = released_modes(flat)
    smoothed = released_modes(flat, 1.5)
    assert agreement(plain.places, smoothed.places, flat.surface.box)[:2] == (1, 0)
    assert len(released_modes(flat, 1.0, 2).places) == len(released_modes(flat, 1.5, 2).places) == 2
    noise = Dataset(name="none", kind="modes", points=np.zeros((1, 2)), box=[(-4, 4)] * 2)
    nothing = in_units(run("functional", noise, epsilon=0.1, seed=0), noise.box, BOX)
    chart = surface_map(TWO, nothing.surface, nothing.surface.bandwidth, released_modes(nothing, 1.5))
    assert "nothing stands above its noise" in chart.sentence
    assert len(chart.table) == 0


def test_a_small_group_beside_a_wide_one_is_not_smoothed_over():
    rng = np.random.default_rng(0)
    wide, small = 1.2 * rng.standard_normal((18_000, 2)) - [1, 1], 0.3 * rng.standard_normal((2_000, 2)) + [3, 3]
    data = Dataset(name="two", kind="modes", points=np.clip(np.vstack([wide, small]), -4, 4), box=[(-4, 4)] * 2)
    release = run("functional", data, epsilon=5.0, seed=0)
    found = released_modes(release, 1.35).places
    assert agreement(np.array([[-1.0, -1.0], [3.0, 3.0]]), found, data.box)[:2] == (1, 0)


def test_branches_and_ascents():
    data = load_dataset("sinusoid", n=2_000, seed=0)
    release = in_units(run("functional_regression", data, epsilon=2.0, seed=0), data.box, BOX)
    chart = branches_map(TWO, release)
    assert chart.table["age"].between(0, 100).all()
    assert branches_map(TWO, release, least=1e9).sentence.startswith("0 branches")
    climbed = run("dp_grams", stand_in(2_000, 1), epsilon=1.0, calibration="tight", seed=0)
    up = ascent_map(Units(("age",), stand_in(1, 1).box), climbed)
    assert "no surface" in up.sentence
    assert len(up.table) == len(climbed.modes)
    two = in_units(
        run("dp_grams", stand_in(2_000, 2), epsilon=1.0, calibration="tight", seed=0), stand_in(1, 2).box, BOX
    )
    across = ascent_map(TWO, two)
    assert "its rounds show together" in across.sentence
    heat = across.figure.data[0]
    assert (min(heat.x), max(heat.x)) == tuple(BOX[0])
    assert np.max(heat.z) == pytest.approx(two.significance.max(), rel=0.1)
    with pytest.raises(DataError, match="no surface"):
        released_clusters(climbed, 2)


def test_panels_for_every_pair():
    units = Units(("a", "b", "c", "d"), np.array([[0.0, 1.0]] * 4))
    reading = Reading(np.full((2, 4), 0.25), np.array([9.0, 5.0]))
    chart = pair_panels(units, reading, np.full((50, 4), 0.5))
    assert len(chart.figure.data) == 2 * 6
    assert chart.table.shape == (2, 6)
    assert "the weakest stands 5.0 σ" in chart.sentence
    records = records_picture(units, np.full((9_000, 4), 0.5), reading.places, "mean shift")
    assert len(records.figure.data[0].x) <= 3_000
    assert "Neither may leave the building" in records.sentence


def test_a_column_may_be_called_as_one_of_ours():
    units = Units(("mode", "height above the noise, σ"), BOX)
    table = reading_table(units, Reading(np.zeros((1, 2)), np.ones(1)))
    assert len(set(table.columns)) == 4


def test_twin_curve_says_what_it_drew():
    chart = twin_curve([0.1, 1.0, 5.0], [[0.0, 0.5], [1.0, 1.0]], [[1, 2], [0, 0]], paid=1.0)
    assert chart.table["found again, %"].tolist() == [25, 100]
    assert re.search(r"at ε = 1 100%.*at ε = 0.1 25%", chart.sentence)


def test_agreement_counts_what_is_missing_and_what_is_not_there():
    box = np.array([[0.0, 1.0], [0.0, 10.0]])
    truth = np.array([[0.2, 2.0], [0.8, 8.0]])
    assert agreement(truth, truth + np.array([0.0, 0.1]), box) == (1, 0, pytest.approx(0.01 / np.sqrt(2)))
    assert agreement(truth, np.array([[0.5, 5.0]]), box)[:2] == (0, 1)
    assert agreement(truth, np.empty((0, 2)), box)[:2] == (0, 0)


def test_the_example_is_what_the_page_says_it_is():
    table = read_table(example_csv(1), "example.csv")
    assert table.n_rows == EXAMPLE_ROWS
    assert table.numeric == tuple(EXAMPLE_BOX)
    assert np.isnan(table.values["sleep"]).sum() == EXAMPLE_MISSING
    assert table.content != read_table(example_csv(2), "example.csv").content
    for name, (low, high) in EXAMPLE_BOX.items():
        assert np.nanmin(table.values[name]) >= low
        assert np.nanmax(table.values[name]) <= high


@pytest.mark.parametrize("d", [1, 2, 6])
def test_a_stand_in_has_four_groups_apart(d):
    made = stand_in(2_000, d, "clusters")
    gaps = np.linalg.norm(made.true_modes[:, None] - made.true_modes[None], axis=-1)[np.triu_indices(4, 1)]
    assert gaps.min() > 3 * 8 / 14  # more than three spreads
    for group in range(4):
        assert made.points[made.labels == group].mean(axis=0) == pytest.approx(made.true_modes[group], abs=0.2)
