"""Regions in the pictures of modes: rings where a mode is sure, words where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpgrams_core as dg
from dpgrams_core.figures import traces
from dpgrams_core.figures.modes import released_chart
from dpgrams_core.figures.traces import REGION_WORDS
from dpgrams_core.model.results import Release

DATA = dg.load_dataset("four_corners", n=2000, seed=0)


@pytest.fixture(scope="module")
def released() -> Release:
    return dg.run("functional", DATA, epsilon=1.0, seed=0)


def test_a_ring_stands_where_the_covariance_says() -> None:
    ring = traces.rings(np.array([[1.0, 2.0]]), np.array([[[4.0, 0.0], [0.0, 1.0]]]), "ring", "red")
    assert np.nanmax(ring.x) - 1 == pytest.approx(2 * np.sqrt(5.991), rel=1e-3)
    assert np.nanmax(ring.y) - 2 == pytest.approx(np.sqrt(5.991), rel=1e-3)


def test_the_picture_of_the_release_has_a_ring_for_each_sure_mode(released: Release) -> None:
    chart = released_chart(DATA, released)
    (ring,) = [trace for trace in chart.figure.data if trace.name == REGION_WORDS]
    assert np.isnan(ring.x).sum() == len(released.modes) == 4
    assert "95 times in 100" in chart.sentence
    assert "not to be trusted" not in chart.sentence
    assert (chart.table["± x (95%)"] > 0).all()
    np.testing.assert_array_equal(chart.table["chance that it is noise"], released.noise_chances)
    assert "chance that it is noise" in chart.sentence
    assert "at most 5 lists in 100" in chart.sentence


def test_a_weak_mode_has_no_ring_and_it_is_said(released: Release) -> None:
    chart = released_chart(DATA, replace(released, significance=np.array([9.0, 9.0, 9.0, 4.5])))
    (ring,) = [trace for trace in chart.figure.data if trace.name == REGION_WORDS]
    assert np.isnan(ring.x).sum() == 3
    assert "1 of 4 modes stand less than 5 σ above the noise: a region there is not to be trusted" in chart.sentence
    assert np.isnan(chart.table["± x (95%)"].iloc[3])
