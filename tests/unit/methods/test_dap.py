"""DAP: counts, grid, draws, suppression and reopening (alg:dap-init)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dpgrams_core import run
from dpgrams_core.methods.dp_grams.starts import candidate_set, draw_anchors, public_grid
from dpgrams_core.privacy.noise import SimulationNoise

BOX = np.array([[-7.0, 7.0], [-7.0, 7.0]])


@pytest.fixture
def draw(corners, noise):
    def call(**changes):
        options = {"epsilon_each": 1 / 6, "draws": 6, "radius": 1.0, "suppression": 2.0, "noise": noise, **changes}
        grid = options.pop("candidates", public_grid(BOX, 1.0))
        return draw_anchors(corners.points, grid, **options)

    return call


def test_the_grid_is_the_box_cut_with_whole_multiples():
    assert public_grid(np.array([[-0.9, 2.1]]), 0.5).ravel().tolist() == [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    assert len(public_grid(BOX, 1.0)) == 15 * 15
    # Rounding must not lose the end points: 0.3 / 0.1 is below 3 in floating point.
    assert len(public_grid(np.array([[-0.3, 0.3]]), 0.1)) == 7


@pytest.mark.parametrize("draws", [1, 3, 17, 200])
def test_as_many_anchors_as_asked_for_all_on_the_grid(draws, draw):
    anchors = draw(draws=draws)
    assert anchors.points.shape == (draws, 2)
    assert np.array_equal(anchors.points, anchors.candidates[anchors.indices])
    assert np.allclose(anchors.points, np.round(anchors.points))


def test_anchors_are_apart_until_the_grid_reopens(draw):
    for suppression in (1.0, 2.0, 3.5):
        anchors = draw(draws=5, suppression=suppression)
        gaps = cdist(anchors.points, anchors.points)[np.triu_indices(5, 1)]
        assert gaps.min() > suppression


def test_a_neighbour_at_exactly_the_radius_is_suppressed(draw):
    # alg:dap-init removes |z_j - a| <= rho, so two candidates 2.0 apart cannot both be drawn in a round.
    pair = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    for _ in range(20):
        chosen = set(draw(candidates=pair, draws=2, suppression=2.0, epsilon_each=1e-6).indices.tolist())
        assert chosen != {0, 1}


def test_the_grid_reopens_when_everything_is_closed(draw):
    anchors = draw(draws=7, suppression=100.0)  # every draw closes everything
    assert len(anchors.points) == 7
    line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    indices = draw(candidates=line, draws=6, suppression=0.5).indices.tolist()
    assert sorted(indices[:3]) == [0, 1, 2]  # each once, then the grid is open again
    assert sorted(indices[3:]) == [0, 1, 2]


def test_utilities_are_shares_of_records_within_the_radius(draw, corners):
    anchors = draw(candidates=np.array([[3.0, 3.0], [0.0, 0.0], [6.9, -6.9]]), draws=1, radius=1.5)
    expected = [(np.linalg.norm(corners.points - z, axis=1) <= 1.5).mean() for z in anchors.candidates]
    np.testing.assert_allclose(anchors.utilities, expected)


def test_a_rich_budget_starts_at_the_highest_counts(draw):
    anchors = draw(epsilon_each=1e6, draws=1)
    assert anchors.utilities[anchors.indices[0]] == anchors.utilities.max()


def test_the_event_says_what_was_drawn(corners):
    event = run("dp_grams", corners, seed=0, epsilon=3.0, init_fraction=0.3, n_starts=6).events[0]
    assert event.count == 6
    assert event.epsilon_each == pytest.approx(0.15)
    assert event.sensitivity == pytest.approx(1 / corners.n)


def test_the_weights_are_those_of_the_algorithm(draw, monkeypatch):
    # exp(n eps_draw u_j / 2) for open candidates, nothing for closed ones.
    seen = []

    def record(self, log_weights):
        seen.append(log_weights.copy())
        return int(np.argmax(log_weights))

    monkeypatch.setattr(SimulationNoise, "gumbel_argmax", record)
    anchors = draw(epsilon_each=0.4, draws=3, suppression=1.0)
    expected = 300 * (1.2 / 3) * anchors.utilities / 2
    np.testing.assert_allclose(seen[0], expected)
    away = cdist(anchors.candidates, anchors.points)
    for round_, weights in enumerate(seen):
        closed = (away[:, :round_] <= 1.0).any(axis=1)
        assert (weights[closed] == -np.inf).all()
        np.testing.assert_allclose(weights[~closed], expected[~closed])


def test_candidates_of_the_user_are_used_as_they_are():
    given = ((0.0, 1.0), (-7.0, 7.0), (7.0, -7.0))  # the border belongs to the box
    assert candidate_set(given, BOX).tolist() == [list(row) for row in given]
