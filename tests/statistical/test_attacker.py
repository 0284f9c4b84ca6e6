"""The largest score that ε allows, against an attacker who plays as well as one can."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpgrams_core.auditing import attacker
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.meaning import gaussian_accuracy, largest_accuracy, largest_power

ROUNDS = 4_000


def hits(mechanism, epsilon, rng):
    seeds = rng.integers(2**31, size=ROUNDS).tolist()
    played = [attacker.play(mechanism, epsilon, seed) for seed in seeds]
    return sum((one.heights[0] > one.heights[1]) == one.inside for one in played)


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_best_attacker_reaches_what_the_noise_says_and_no_more(epsilon, rng, flake_rate):
    expected = gaussian_accuracy(gaussian_multiplier(epsilon, attacker.DELTA))
    assert stats.binomtest(hits("honest", epsilon, rng), ROUNDS, expected).pvalue > flake_rate
    assert expected < largest_accuracy(epsilon, attacker.DELTA)


def test_a_broken_mechanism_is_beaten(rng, certain):
    found = attacker.score(ROUNDS, hits("broken", 0.5, rng), 0.5)
    assert found.by_luck < certain
    assert found.caught


def test_a_wrong_bound_would_be_seen(rng, certain):
    wrong = gaussian_accuracy(gaussian_multiplier(5.0, attacker.DELTA) * 2)  # as if there were twice the noise
    assert stats.binomtest(hits("honest", 5.0, rng), ROUNDS, wrong).pvalue < certain


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-6), (2.0, 0.05)])
def test_the_largest_accuracy_is_that_of_the_best_test(epsilon, delta):
    alarms = np.linspace(0, 1, 200_001)
    best = ((1 - alarms + largest_power(alarms, epsilon, delta)) / 2).max()
    assert largest_accuracy(epsilon, delta) == pytest.approx(best, abs=1e-5)
