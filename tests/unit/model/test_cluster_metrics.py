"""ARI, NMI and the error of centres: worked examples, and what each does with too few, too many or no centres."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import DataError, load_dataset, score
from dpgrams_core.model.measures import centroid_mse, nearest_centres, score_modes
from dpgrams_core.model.representation import Representation
from dpgrams_core.model.results import Guarantee, Release


def released(centres):
    guarantee = Guarantee(epsilon=math.inf, delta=1.0, status="none", statement="")
    return Release(method="test", modes=np.asarray(centres, dtype=float), spec=None, events=(), guarantee=guarantee)


@pytest.fixture
def six(table):
    """Six records on a line in three pairs."""
    points = [[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]]
    return table(points, kind="clusters", labels=[0, 0, 1, 1, 2, 2])


def test_the_right_centres_score_full_marks(six):
    scores = score(released([[8.5], [0.5], [4.5]]), six)
    assert scores == {"ari": pytest.approx(1.0), "nmi": pytest.approx(1.0), "centroid_mse": 0.0, "inertia": 1.5}


def test_a_worked_example(six):
    # Two centres: {0, 1} and {4, 5, 8, 9}.  Of the 15 pairs 3 are together in both, 3 in the classes, 7 in the
    # clusters, so ARI = (3 - 3 * 7 / 15) / ((3 + 7) / 2 - 3 * 7 / 15) = 1.6 / 3.6.
    scores = score(released([[0.5], [6.5]]), six)
    assert scores["ari"] == pytest.approx(1.6 / 3.6)
    classes, clusters = math.log(3), -(math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3)
    assert scores["nmi"] == pytest.approx(clusters / ((classes + clusters) / 2))  # the clusters follow from the classes
    assert scores["centroid_mse"] == pytest.approx(2.0**2 / 3)  # 0.5 is exact, 6.5 is 2 away, over max(3, 2)
    assert scores["inertia"] == pytest.approx(2 * 0.5**2 + 2 * 2.5**2 + 2 * 1.5**2)


def test_extra_centres_divide_by_their_number(six):
    assert score(released([[0.5], [4.5], [9.5], [100.0]]), six)["centroid_mse"] == pytest.approx(1.0 / 4)


def test_one_centre_tells_nothing(six):
    scores = score(released([[3.0]]), six)
    assert (scores["ari"], scores["nmi"]) == (0.0, 0.0)


def test_no_centre_at_all(six):
    scores = score(released(np.empty((0, 1))), six)
    assert (scores["ari"], scores["nmi"], scores["centroid_mse"]) == (0.0, 0.0, math.inf)
    assert scores["inertia"] == math.inf


def test_centroids_are_matched_one_to_one_as_modes_are(rng):
    for k, found in ((4, 4), (5, 2), (2, 6)):
        reference, centres = rng.normal(size=(k, 3)), rng.normal(size=(found, 3))
        assert centroid_mse(reference, centres) == pytest.approx(score_modes(reference, centres)["mse"])


def test_the_error_is_measured_in_the_original_space(table, rng):
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0][:2]
    way_back = Representation(
        space="five columns",
        fitted=False,
        scale=np.array([2.0, 0.5]),
        components=turn,
        offset=np.arange(5.0),
        centroids=np.array([[0.0, 0.0], [1.0, 1.0]]) * [2.0, 0.5] @ turn + np.arange(5.0),
        class_names=("one", "two"),
    )
    data = table([[0.0, 0.0], [1.0, 1.0]], kind="clusters", labels=[0, 1], representation=way_back)
    assert score(released([[0.0, 0.0], [1.0, 1.0]]), data)["centroid_mse"] == pytest.approx(0.0, abs=1e-20)
    # A step of 1 in the first column is 2 long there; squared, not divided by five columns, over two centres.
    assert score(released([[1.0, 0.0], [1.0, 1.0]]), data)["centroid_mse"] == pytest.approx(4.0 / 2)


def test_a_part_of_a_class_that_the_six_components_lose_counts(monkeypatch):
    # The centroids of the digits in all 64 pixels are not on the plane of six components.
    data = load_dataset("digits")
    best = data.representation.from_standard(data.representation.centroids)
    lost = data.representation.centroids - data.representation.to_standard(best)
    assert score(released(best), data)["centroid_mse"] == pytest.approx(np.square(lost).sum() / 10)
    assert np.square(lost).sum() > 1


def test_assignments_in_parts_are_those_of_the_whole(rng, monkeypatch):
    points, centres = rng.normal(size=(107, 3)), rng.normal(size=(5, 3))
    expected = np.square(points[:, None] - centres[None]).sum(axis=2).argmin(axis=1)
    monkeypatch.setattr("dpgrams_core.model.measures.ROWS", 10)
    assert np.array_equal(nearest_centres(points, centres), expected)


def test_data_without_classes_cannot_be_scored(table):
    with pytest.raises(DataError, match="no known classes"):
        score(released([[0.0]]), table([[0.0], [1.0]], kind="clusters"))


def test_centres_of_another_width_cannot_be_scored(six):
    with pytest.raises(DataError, match="do not have the 1 columns"):
        score(released([[0.0, 0.0]]), six)
