"""The noise of paid columns: each of the three releases has its own scale; two thirds and three halves are caught."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpgrams_core import Dataset
from dpgrams_core.methods.functional.clusters import bare_release
from dpgrams_core.methods.functional.paid import MEAN_SHARE
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.numerics.sketch import SKETCH_SENSITIVITY
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.noise import SimulationNoise

EPSILON, DELTA, SHARE, RUNS = 1.0, 1e-5, 0.4, 60


class Listening(SimulationNoise):
    """Seeded noise that writes down what was added to the exact numbers."""

    def __init__(self, seed):
        super().__init__(seed)
        self.added = []

    def independent_gaussian(self, exact, scale):
        noisy = super().independent_gaussian(exact, scale)
        self.added.append((noisy - exact).ravel())
        return noisy


@pytest.fixture(scope="module")
def noises():
    rng = np.random.default_rng(0)
    points = np.hstack([rng.uniform(-6, 6, (4_000, 4)), np.zeros((4_000, 4))])
    data = Dataset(name="mine", kind="clusters", points=points, box=[(-6.0, 6.0)] * 8)
    spec = FunctionalCSpec(epsilon=EPSILON, delta=DELTA, components=4, component_share=SHARE, n_clusters=3)
    heard = [Listening(seed) for seed in range(RUNS)]
    kinds = {len(bare_release(data, spec, noise).paid.components) for noise in heard}
    assert kinds == {4}  # a sketch in every run, whose sensitivity is known
    return [np.concatenate([noise.added[part] for noise in heard]) for part in range(3)]


@pytest.mark.parametrize("part", range(3), ids=["mean", "moments", "kernel sum"])
def test_the_right_scale_is_accepted_and_others_rejected(part, noises, flake_rate, certain):
    sensitivity = (2.0, math.sqrt(2), SKETCH_SENSITIVITY)[part]
    share = (SHARE * MEAN_SHARE, SHARE * (1 - MEAN_SHARE), 1 - SHARE)[part]
    scale, noise = sensitivity * gaussian_multiplier(EPSILON, DELTA) / math.sqrt(share), noises[part]

    def chance(factor):
        total = float((noise**2).sum()) / (factor * scale) ** 2
        return 2 * min(stats.chi2.cdf(total, noise.size), stats.chi2.sf(total, noise.size))

    assert min(chance(1.0), stats.kstest(noise[:20_000] / scale, "norm").pvalue) > flake_rate / 2
    assert max(chance(2 / 3), chance(3 / 2)) < certain
