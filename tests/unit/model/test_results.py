"""Data sets and releases: read-only, and diagnostics kept apart."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpgrams_core import DataError, Dataset, Guarantee, Release, SpecError, run


@pytest.fixture(scope="module")
def release(corners):
    return run("dp_grams", corners, seed=1)


@pytest.mark.parametrize("name", ["points", "box", "true_modes", "labels"])
def test_the_arrays_of_a_data_set_cannot_be_changed(name, corners):
    with pytest.raises(ValueError, match="read-only"):
        getattr(corners, name)[0] = 0


@pytest.mark.parametrize("name", ["modes", "anchors", "trajectories"])
def test_the_arrays_of_a_release_cannot_be_changed(name, release):
    with pytest.raises(ValueError, match="read-only"):
        getattr(release, name)[0] = 0


@pytest.mark.parametrize("name", ["candidates", "utilities"])
def test_the_arrays_of_diagnostics_cannot_be_changed(name, release):
    with pytest.raises(ValueError, match="read-only"):
        getattr(release.diagnostics, name)[0] = 0


def test_the_fields_of_a_release_cannot_be_set(release):
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.seed = 3


def test_a_data_set_does_not_follow_the_array_it_was_made_from(table):
    mine = np.zeros((3, 1))
    data = table(mine)
    mine[:] = 5
    assert data.points.max() == 0


def test_the_known_modes_are_not_the_cache_itself(corners):
    from dpgrams_core.datasets.mixtures import FOUR_CORNERS

    with pytest.raises(ValueError, match="read-only"):
        FOUR_CORNERS.modes()[0] = 0
    assert np.allclose(corners.true_modes, FOUR_CORNERS.modes())


def test_diagnostics_are_refused_where_there_are_none(release):
    without = dataclasses.replace(release, _diagnostics=None)
    with pytest.raises(DataError, match="not private"):
        _ = without.diagnostics


def test_diagnostics_do_not_show_in_a_printed_release(release):
    assert release.diagnostics.utilities is not None
    assert "utilities" not in repr(release)


def test_the_labels_of_records_stay_in_the_diagnostics(corners):
    shifted = run("mean_shift", corners, seed=0)
    assert len(shifted.diagnostics.labels) == corners.n
    assert not hasattr(shifted, "labels")


def test_printing_a_data_set_shows_no_record(table):
    assert "123.456" not in repr(table([[123.456], [1.0]]))


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros((3, 0)), np.zeros(3), np.zeros((2, 2, 2))])
def test_points_must_be_a_table(points):
    with pytest.raises(DataError, match="at least one row"):
        Dataset(name="x", kind="modes", points=points, box=[(0, 1)])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_missing_value_is_named_without_the_records(bad, table):
    with pytest.raises(DataError, match="missing or infinite") as caught:
        table([[123.456], [bad]])
    assert "123.456" not in str(caught.value)


def test_the_box_must_fit_the_points(table):
    with pytest.raises(DataError, match=r"2 rows.*1 columns"):
        table([[0.0]], box=[(0, 1), (0, 1)])
    with pytest.raises(SpecError, match="empty"):
        table([[0.0]], box=[(1, 1)])


def test_a_guarantee_has_a_known_status():
    with pytest.raises(ValueError, match="unknown status"):
        Guarantee(epsilon=1, delta=0, status="certified", statement="")
    with pytest.raises(ValueError, match="unknown neighbours"):
        Guarantee(epsilon=1, delta=0, status="proven", statement="", neighbours="replace-two")
    assert Guarantee(epsilon=1, delta=0, status="proven", statement="").neighbours == "replace-one"


def test_a_release_copies_what_it_is_given():
    mine = np.zeros((1, 1))
    made = Release(
        method="x",
        modes=mine,
        spec=None,
        events=(),
        guarantee=Guarantee(epsilon=1, delta=0, status="none", statement=""),
    )
    mine[:] = 9
    assert made.modes.max() == 0
    assert made.anchors is None


def test_private_data_take_every_word_for_a_missing_value():
    import pandas as pd

    rows = [[1.0, 2.0], [pd.NA, None], [pd.NaT, float("nan")]]
    for points in (rows, pd.DataFrame(rows)):
        data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 2, private=True)
        assert np.isnan(data.points[1:]).all()
