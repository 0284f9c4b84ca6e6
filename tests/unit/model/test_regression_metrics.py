"""Scores of curves by hand: the paper's loss and what it forgives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import DATASETS, DataError, load_dataset, run, score
from dpgrams_core.datasets.regression import SINUSOID, THREE_COMPONENT, BranchMixture, Level, lower_wave, upper_wave
from dpgrams_core.model.measures import default_branch_radius, evaluation_grid, oracle_loss, score_branches

WAVES, STEPS = (np.array(DATASETS[name].box) for name in ("sinusoid", "three_component"))
X = np.linspace(0, 1, 201)


def rows(x, y):
    return np.stack([x, np.broadcast_to(y, np.shape(x))], axis=1)


BOTH = np.concatenate([rows(X, lower_wave(X)), rows(X, upper_wave(X))])


def test_both_branches_exactly():
    expected = {"mse": 0.0, "branch_recall": 1.0, "spurious": 0.0, "coverage": 1.0}
    assert score_branches(SINUSOID, BOTH, WAVES) == expected


def test_the_loss_is_to_the_nearest_branch():
    curve = rows(X, lower_wave(X) + 0.3)
    got = score_branches(SINUSOID, curve, WAVES)
    assert got["mse"] == pytest.approx(0.09)  # the missed upper branch costs nothing; the recall shows it
    assert got["spurious"] == 0
    assert got["branch_recall"] <= 0.5
    assert score_branches(SINUSOID, curve, WAVES, match_radius=0.29)["spurious"] == 1


def test_the_mean_between_the_branches_is_all_spurious():
    got = score_branches(SINUSOID, rows(X, (lower_wave(X) + upper_wave(X)) / 2), WAVES)
    assert got["mse"] == pytest.approx(0.75**2)
    assert (got["branch_recall"], got["spurious"], got["coverage"]) == (0, 1, 1)


def test_by_hand_on_the_steps():
    # One estimate at x = 0.45 (branches 3 and 2) and one at x = 0.9 (branch 1): 5 places of the grid see each.
    curve = np.array([[0.45, 2.9], [0.9, 1.5]])
    got = score_branches(THREE_COMPONENT, curve, STEPS)
    assert got["mse"] == pytest.approx((0.01 + 0.25) / 2)
    assert got["coverage"] == pytest.approx(10 / 101)
    # Of 101 places, 0.40 to 0.50 and 0.60 to 0.70 have two branches, 11 each.
    assert got["branch_recall"] == pytest.approx(5 / (101 + 22))
    assert got["spurious"] == 0.5


def test_the_paper_s_set_is_used_for_the_loss_and_the_real_modes_for_recall():
    law = BranchMixture((Level(0.0), Level(0.3)), ((0.0, 1.0), (0.0, 1.0)), 0.2)  # one mode, at 0.15
    got = score_branches(law, rows(X, 0.15), np.array([[0.0, 1.0], [-1.0, 1.0]]), match_radius=0.05)
    assert got["mse"] == pytest.approx(0.15**2)
    assert (got["branch_recall"], got["spurious"]) == (1, 0)


def test_rows_where_there_is_no_truth_are_left_out_of_the_loss_and_counted():
    curve = np.array([[0.2, 3.1], [-0.5, 3.0], [2.0, 1.0]])
    loss, left_out = oracle_loss(THREE_COMPONENT, curve)
    assert loss == pytest.approx(0.01)
    assert left_out == 2
    assert score_branches(THREE_COMPONENT, curve, STEPS)["spurious"] == pytest.approx(2 / 3)
    assert oracle_loss(THREE_COMPONENT, curve[1:]) == (math.inf, 2)


def test_an_empty_curve():
    expected = {"mse": math.inf, "branch_recall": 0.0, "spurious": 0.0, "coverage": 0.0}
    assert score_branches(SINUSOID, np.empty((0, 2)), WAVES) == expected


def test_the_default_radius_is_a_quarter_of_the_smallest_gap():
    assert default_branch_radius(SINUSOID, WAVES) == pytest.approx(1.5 / 4, abs=1e-6)
    assert default_branch_radius(THREE_COMPONENT, STEPS) == pytest.approx(1 / 4, abs=1e-3)
    alone = BranchMixture((Level(0.0),), ((0.0, 1.0),), 0.1)
    assert default_branch_radius(alone, np.array([[0.0, 1.0], [-2.0, 3.0]])) == pytest.approx(0.5)


def test_the_window_is_a_share_of_the_box_and_closed():
    alone = BranchMixture((Level(0.0),), ((0.0, 10.0),), 0.1)
    box = np.array([[0.0, 10.0], [-1.0, 1.0]])
    assert evaluation_grid(box)[[0, 50, -1]].tolist() == [0, 5, 10]
    # The window is 0.25 each way: a row at 5.05 reaches the places 4.8 to 5.3, both ends included.
    assert score_branches(alone, np.array([[5.05, 0.0]]), box)["coverage"] == pytest.approx(6 / 101)
    assert score_branches(alone, np.array([[5.0, 0.0]]), box)["coverage"] == pytest.approx(5 / 101)


@pytest.mark.parametrize("radius", [0, -1, math.nan, "wide"])
def test_a_bad_radius_is_refused(radius, refused):
    refused(lambda: score_branches(SINUSOID, BOTH, WAVES, radius), "match_radius", radius)


curves = st.lists(st.tuples(st.floats(-0.2, 1.2), st.floats(-1, 4)), max_size=25).map(
    lambda pairs: np.array(pairs, dtype=float).reshape(-1, 2)
)


@given(curve=curves, radius=st.floats(0.01, 1))
def test_the_order_of_the_rows_does_not_matter_and_shares_are_shares(curve, radius):
    got = score_branches(THREE_COMPONENT, curve, STEPS, radius)
    again = score_branches(THREE_COMPONENT, curve[::-1], STEPS, radius)
    assert got == pytest.approx(again)
    assert got["mse"] >= 0
    for name in ("branch_recall", "spurious", "coverage"):
        assert 0 <= got[name] <= 1


@given(curve=curves, more=curves, radius=st.floats(0.01, 1), wider=st.floats(0, 1))
def test_more_rows_and_a_wider_radius_never_lower_the_recall(curve, more, radius, wider):
    got = score_branches(SINUSOID, curve, WAVES, radius)
    longer = score_branches(SINUSOID, np.concatenate([curve, more]), WAVES, radius)
    assert longer["branch_recall"] >= got["branch_recall"]
    assert longer["coverage"] >= got["coverage"]
    loose = score_branches(SINUSOID, curve, WAVES, radius + wider)
    assert loose["branch_recall"] >= got["branch_recall"]
    assert loose["spurious"] <= got["spurious"]


def naive_score(truth, curve, box, radius):
    """One by one, as the words say."""
    losses, spurious, found, total, covered, places = [], 0, 0, 0, 0, 0
    for x, y in curve:
        paper = [m for m in truth.paper_table(np.array([x]))[0] if not np.isnan(m)]
        if paper:
            losses.append(min((y - m) ** 2 for m in paper))
        spurious += not any(abs(y - m) <= radius for m in truth.mode_table(np.array([x]))[0])
    for x in np.arange(101) / 100 * (box[0, 1] - box[0, 0]) + box[0, 0]:
        near = [y for at, y in curve if abs(at - x) <= 0.025 * (box[0, 1] - box[0, 0])]
        modes = [m for m in truth.mode_table(np.array([x]))[0] if not np.isnan(m)]
        places += bool(modes)
        covered += bool(modes) and bool(near)
        total += len(modes)
        found += sum(any(abs(y - m) <= radius for y in near) for m in modes)
    return {
        "mse": float(np.mean(losses)),
        "branch_recall": found / total,
        "spurious": spurious / len(curve),
        "coverage": covered / places,
    }


@pytest.mark.parametrize(("law", "box"), [(SINUSOID, WAVES), (THREE_COMPONENT, STEPS)], ids=["waves", "steps"])
def test_the_score_is_that_of_the_loop(law, box, rng):
    curve = np.stack([rng.uniform(-0.1, 1.1, 30), rng.uniform(*box[1], 30)], axis=1)
    assert score_branches(law, curve, box, 0.3) == pytest.approx(naive_score(law, curve, box, 0.3))


def test_score_knows_regression_data(seed, corners):
    data = load_dataset("sinusoid", n=300, seed=seed)
    release = run("pms", data, seed=0)
    assert score(release, data) == score_branches(data.truth, release.curve, data.box)
    assert score(release, data, match_radius=1e-9)["spurious"] > 0.99
    with pytest.raises(DataError, match="no known conditional modes"):
        score(release, replace(data, truth=None))
    with pytest.raises(DataError, match="no curve"):
        score(run("mean_shift", corners, seed=0), data)
