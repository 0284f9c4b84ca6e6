"""Branches that are read off a release again: those of the method, and those of a smoother surface, for free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DataError, Dataset, SpecError, load_dataset, run
from dpgrams_core.figures.own_data import Units, branches_map
from dpgrams_core.model.units import in_units
from dpgrams_core.own_data.postprocess import own_branches, released_branches


@pytest.fixture(scope="module")
def data():
    return load_dataset("three_component", n=3_000, seed=0)


@pytest.fixture(scope="module")
def release(data):
    return in_units(run("functional_regression", data, epsilon=2.0, seed=0), data.box, data.box)


def test_without_smoothing_they_are_those_of_the_method(release):
    mine, again = own_branches(release), released_branches(release)
    np.testing.assert_allclose(again.places, mine.places, atol=1e-12)
    np.testing.assert_array_equal(mine.places, release.curve)
    np.testing.assert_allclose(again.heights, mine.heights)
    np.testing.assert_array_equal(again.numbers, mine.numbers)
    assert again.width == mine.width == release.surface.bandwidth


@pytest.mark.parametrize("factor", [1.2, 2.0, 3.0])
def test_smoothed_ones_are_peaks_of_the_smoothed_surface_in_units_of_its_noise(factor, release):
    surface, found = release.surface, released_branches(release, factor)
    width = factor * surface.bandwidth
    assert found.width == width
    at = surface.value(found.places, width) / surface.noise_at(found.places, width)
    np.testing.assert_allclose(found.heights, at, rtol=0.01)
    for step in (-0.2, 0.2):  # lower on either side in y
        beside = found.places + np.array([0, step * factor * surface.bandwidths[1]])
        assert (surface.value(beside, width) / surface.noise_at(beside, width) < at + 1e-9).all()
    tops = [found.heights[found.numbers == number].max() for number in np.unique(found.numbers)]
    assert tops == sorted(tops, reverse=True)


def test_branches_closer_than_the_bandwidth_become_one(release):
    counts = [len(np.unique(released_branches(release, factor).numbers)) for factor in (1.0, 3.0)]
    assert counts[0] >= 3
    assert counts[1] == 1


def test_a_release_that_is_too_sharp_stands_further_above_its_noise_when_it_is_smoothed():
    data = load_dataset("sinusoid", n=1_200, seed=1)
    sharp = run("functional_regression", data, epsilon=2.0, bandwidth_scale=0.4, seed=1)
    heights = [released_branches(sharp, factor).heights.max() for factor in (1.0, 2.0)]
    assert heights[1] > 1.2 * heights[0]


def test_the_picture_says_so(data, release):
    units = Units(("age", "pay"), np.array([[0.0, 100.0], [0.0, 50.0]]))
    release = in_units(release, data.box, units.box)
    plain = branches_map(units, release)
    assert "smoothed" not in plain.sentence
    chart = branches_map(units, release, smoothed=released_branches(release, 2.0))
    assert "on the released surface, smoothed further to 2 times its bandwidth" in chart.sentence
    assert not np.array_equal(chart.figure.data[0].z, plain.figure.data[0].z)
    assert chart.table["age"].between(0, 100).all()
    assert chart.table["pay"].between(0, 50).all()


def test_a_branch_below_the_noise_is_hidden_only_when_someone_asks(data, release):
    low = replace(release, significance=-np.ones(len(release.curve)))
    assert len(branches_map(Units(("x", "y"), data.box), low).table) == len(release.curve)
    assert len(branches_map(Units(("x", "y"), data.box), low, least=0.5).table) == 0


def test_what_cannot_be(release):
    with pytest.raises(SpecError, match="not sharpened"):
        released_branches(release, 0.9)
    data = Dataset(name="few", kind="modes", points=np.zeros((50, 2)), box=[(-4, 4)] * 2)
    with pytest.raises(DataError, match="no branches can be read off"):
        released_branches(run("functional", data, seed=0))
