"""DAP draws with the exact probabilities of alg:dap-init, before and after suppression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpgrams_core.methods.dp_grams.starts import draw_anchors
from dpgrams_core.privacy.noise import SimulationNoise

# Candidates on a line and records on top of them: counts 10, 6, 3 and 0 within the radius.
CANDIDATES = np.array([[0.0], [1.0], [5.0], [9.0]])
COUNTS = np.array([10, 6, 3, 0])
RECORDS = np.repeat(CANDIDATES, COUNTS, axis=0)
EPSILON_DRAW = 0.3
RUNS = 5_000


def law(open_, factor):
    """Probabilities with weights exp(factor * eps_draw * n u_j) over the open candidates."""
    weights = np.where(open_, np.exp(factor * EPSILON_DRAW * COUNTS), 0.0)
    return weights / weights.sum()


def pvalue(picks, probabilities):
    counts = np.bincount(picks, minlength=len(probabilities))
    possible = probabilities > 0
    assert counts[~possible].sum() == 0  # a closed candidate was drawn
    return stats.chisquare(counts[possible], counts.sum() * probabilities[possible]).pvalue


@pytest.fixture(scope="module")
def pairs(seed):
    options = {"epsilon_each": EPSILON_DRAW, "draws": 2, "radius": 0.5, "suppression": 1.0}
    options["noise"] = SimulationNoise(seed)
    return np.array([draw_anchors(RECORDS, CANDIDATES, **options).indices for _ in range(RUNS)])


def test_the_first_draw_has_its_probabilities(pairs, flake_rate, certain):
    everything = np.ones(4, dtype=bool)
    assert pvalue(pairs[:, 0], law(everything, 1 / 2)) > flake_rate
    for wrong in (1.0, 1 / 4, 1 / 3, 3 / 4):  # 1: the factor 1/2 forgotten, twice the privacy loss
        assert pvalue(pairs[:, 0], law(everything, wrong)) < certain


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_second_draw_has_its_probabilities_after_suppression(first, pairs, flake_rate):
    second = pairs[pairs[:, 0] == first, 1]
    open_ = np.abs(CANDIDATES[:, 0] - CANDIDATES[first, 0]) > 1.0
    assert pvalue(second, law(open_, 1 / 2)) > flake_rate


def test_wrong_weights_after_suppression_are_rejected(pairs, certain):
    second = pairs[pairs[:, 0] == 2, 1]  # 0, 1 and 9 are open
    open_ = np.array([True, True, False, True])
    assert pvalue(second, law(open_, 1.0)) < certain


def test_after_reopening_the_first_law_holds_again(noise, flake_rate):
    options = {"epsilon_each": EPSILON_DRAW, "draws": 2, "radius": 0.5, "suppression": 100.0, "noise": noise}
    picks = np.array([draw_anchors(RECORDS, CANDIDATES, **options).indices[1] for _ in range(RUNS)])
    assert pvalue(picks, law(np.ones(4, dtype=bool), 1 / 2)) > flake_rate


def test_the_ratio_of_neighbours_stays_within_the_budget():
    # The exact law on neighbouring data: one record moved from the fullest candidate to the emptiest.
    def exact(counts):
        weights = np.exp(EPSILON_DRAW * counts / 2)
        return weights / weights.sum()

    loss = np.log(exact(COUNTS) / exact(COUNTS + np.array([-1, 0, 0, 1])))
    assert EPSILON_DRAW / 2 < np.abs(loss).max() <= EPSILON_DRAW
