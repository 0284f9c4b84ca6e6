"""The noise of the rivals' releases: the right scale is accepted, two thirds and three halves of it are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpgrams_core import load_dataset
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.specs import make_spec
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.noise import SimulationNoise

EPSILON, DELTA, RUNS = 1.0, 1e-5, 40


class Listening(SimulationNoise):
    """Seeded noise that writes down what was added to the exact numbers."""

    def __init__(self, seed):
        super().__init__(seed)
        self.added = []

    def independent_gaussian(self, exact, scale):
        noisy = super().independent_gaussian(exact, scale)
        self.added.append((noisy - exact).ravel())
        return noisy


def added(method, dataset, options):
    data, entry = load_dataset(dataset, n=500, seed=0), METHODS[method]
    spec = make_spec(entry.spec, {"epsilon": EPSILON, "delta": DELTA, **options})
    noises = [Listening(seed) for seed in range(RUNS)]
    for noise in noises:
        entry.function(data, spec, noise)
    return np.concatenate([part for noise in noises for part in noise.added])


# What a replaced record moves, in the unit of the released numbers, and how many rounds share the budget.
CASES = {
    "noisy_histogram": ("four_corners", {"cells": 12}, math.sqrt(2), 1),
    "noisy_kmeans": ("blobs", {"n_rounds": 4, "clip_radius": 0.3}, 2 * 0.3 * math.sqrt(2), 4),
    "hash_tree": ("blobs", {"depth": 5}, math.sqrt(2), 6),
}


@pytest.mark.parametrize("method", CASES)
def test_the_right_scale_is_accepted_and_others_rejected(method, flake_rate, certain):
    dataset, options, moved, rounds = CASES[method]
    noise = added(method, dataset, options)
    scale = moved * gaussian_multiplier(EPSILON, DELTA) * math.sqrt(rounds)

    def chance(factor):
        total = float((noise**2).sum()) / (factor * scale) ** 2
        return 2 * min(stats.chi2.cdf(total, noise.size), stats.chi2.sf(total, noise.size))

    assert min(chance(1.0), stats.kstest(noise / scale, "norm").pvalue) > flake_rate / 2
    assert max(chance(2 / 3), chance(3 / 2)) < certain
