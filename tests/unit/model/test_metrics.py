"""Scores by hand: the paper's MSE and what it hides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import DataError, run, score
from dpgrams_core.figures.tradeoff import LabLayout, lab_panel, lab_sentence
from dpgrams_core.model.measures import (
    MEASURES,
    Measure,
    default_match_radius,
    match_modes,
    measure_of,
    measure_titles,
    recovery_rates,
    score_modes,
    scores_of,
)
from dpgrams_core.studies.needed_budget import stream_needed
from dpgrams_core.sweeps.run import plan_cells, run_cell, sweep

SQUARE = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])


def test_a_perfect_estimate():
    expected = {"mse": 0.0, "mse_per_true_mode": 0.0, "found": 4.0, "missed": 0.0, "spurious": 0.0}
    assert score_modes(SQUARE, SQUARE[::-1]) == expected


def test_as_many_estimates_as_modes():
    estimates = SQUARE + np.array([[0.5, 0.0], [0.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
    got = score_modes(SQUARE, estimates, match_radius=1.0)
    assert got["mse"] == pytest.approx((0.25 + 4.0) / 4)
    assert got["mse_per_true_mode"] == pytest.approx((0.25 + 4.0) / 4)
    assert (got["found"], got["missed"], got["spurious"]) == (3, 1, 1)


def test_fewer_estimates_than_modes():
    # Two of four modes, both exact: the paper's MSE is 0 and forgives the misses; the other columns do not.
    got = score_modes(SQUARE, SQUARE[:2])
    assert got["mse"] == 0
    assert got["mse_per_true_mode"] == pytest.approx((36 + 36) / 4)  # each missed mode to its nearest estimate
    assert (got["found"], got["missed"], got["spurious"]) == (2, 2, 0)


def test_more_estimates_than_modes():
    # Extra estimates make the paper's MSE smaller: the denominator is the larger count.
    estimates = np.concatenate([SQUARE + np.array([1.0, 0.0]), [[20.0, 20.0]] * 4])
    got = score_modes(SQUARE, estimates, match_radius=1.0)
    assert got["mse"] == pytest.approx(4 / 8)
    assert got["mse_per_true_mode"] == pytest.approx(1.0)
    assert (got["found"], got["missed"], got["spurious"]) == (4, 0, 4)


def test_the_matching_is_the_best_one_and_not_the_greedy_one():
    # Greedy takes the closest pair 0 and 1 first and then pays 4.5^2; the best matching pays 6.25 in all.
    matching = match_modes(np.array([[0.0], [3.0]]), np.array([[1.0], [-1.5]]))
    assert matching.estimate_of.tolist() == [1, 0]
    assert matching.squared_total == pytest.approx(2.25 + 4.0)


def test_a_mode_with_no_match_gets_the_distance_to_its_nearest_estimate():
    matching = match_modes(np.array([[0.0], [10.0], [11.0]]), np.array([[10.5]]))
    assert (matching.estimate_of >= 0).sum() == 1
    assert matching.distance.tolist() == pytest.approx([10.5, 0.5, 0.5])


def test_one_estimate_cannot_find_two_modes():
    got = score_modes(np.array([[0.0], [0.2]]), np.array([[0.1]]), match_radius=1.0)
    assert (got["found"], got["missed"], got["spurious"]) == (1, 1, 0)


def test_no_estimate_at_all():
    got = score_modes(SQUARE, np.empty((0, 2)))
    assert got["mse"] == math.inf
    assert (got["found"], got["missed"], got["spurious"]) == (0, 4, 0)


def test_the_radius_of_a_match_is_part_of_it():
    truth = np.array([[0.0], [6.0]])
    assert default_match_radius(truth) == 1.0
    assert score_modes(truth, truth + 1.0)["found"] == 2  # at exactly the radius
    assert score_modes(truth, truth + 1.0001)["found"] == 0
    assert default_match_radius(np.array([[5.0, 5.0]])) == 1.0  # one mode: no distance to take


@pytest.mark.parametrize("radius", [0, -1, math.nan, "wide"])
def test_a_bad_radius_is_refused(radius, refused):
    refused(lambda: score_modes(SQUARE, SQUARE, radius), "match_radius", radius)


def test_recovery_rates_are_shares_of_runs():
    runs = [SQUARE, SQUARE[:2], SQUARE + 10.0, SQUARE[1:]]
    assert recovery_rates(SQUARE, runs, 1.0).tolist() == [0.5, 0.75, 0.5, 0.5]


def test_a_release_is_scored_against_the_truth_of_its_data(corners, table):
    release = run("mean_shift", corners, seed=0, n_modes=4)
    assert score(release, corners) == score_modes(corners.true_modes, release.modes)
    with pytest.raises(DataError, match="no known modes"):
        score(release, table(corners.points))


TOY = Measure(
    kind="modes",
    name="toy_count",
    title="toy count",
    words="How many modes were released.",
    of=lambda found: len(found.estimates),
    more_is_better=True,
)


def test_a_measure_is_one_entry_and_is_known_to_scores_sweeps_pictures_and_the_search(monkeypatch):
    monkeypatch.setitem(MEASURES, "modes", {**MEASURES["modes"], TOY.name: TOY})
    table = sweep(["functional", "mean_shift"], "four_corners", n=[100], epsilon=[1.0], runs=2)
    assert {"toy_count", "toy_count_se"} <= set(table.columns)
    cells = plan_cells(["functional", "mean_shift"], "four_corners", n=[100], epsilon=[1.0], runs=2)
    known = {cell: run_cell(cell) for cell in cells}
    figure = lab_panel(known, cells, "toy_count", LabLayout("epsilon", "n"), 100)
    assert figure.layout.yaxis.title.text == "toy count (more is better)"
    assert "Mean toy count at n = 100" in lab_sentence(known, cells, "toy_count")
    assert measure_titles("modes")["toy_count"] == "toy count"
    asked = {"measure": "toy_count", "target": 0, "probability": 0.5, "runs": 8, "most_values": 2}
    (*_, found) = stream_needed("epsilon", "functional", "four_corners", n=100, low=1.0, high=2.0, **asked)
    assert found.question.wish == "toy count at least 0 in 50% of runs"
    assert found.status == "already"


def test_every_measure_says_what_it_is(refused):
    for kind, measures in MEASURES.items():
        for name, measure in measures.items():
            assert (measure.kind, measure.name) == (kind, name)
            assert measure.title
            assert measure.words.endswith(".")
            assert measure.axis.endswith(f"({measure.better} is better)")
    assert [next(iter(measures)) for measures in MEASURES.values()] == ["mse", "mse", "ari"]
    assert list(scores_of("modes")) == ["mse", "mse_per_true_mode", "found", "missed", "spurious"]
    refused(lambda: measure_of("modes", "ari"), "measure", "ari")
