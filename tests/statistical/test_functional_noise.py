"""The noise of the functional release, both ways, through the public path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpgrams_core import load_dataset, run
from dpgrams_core.numerics.surface import box_bases, coefficients
from dpgrams_core.privacy.calibration import gaussian_multiplier

ALPHA = 1e-6  # chance of a false alarm of each test, for any seed


@pytest.fixture
def noise(seed):
    """What a run added to the exact coefficients."""
    data = load_dataset("four_corners", n=500, seed=seed)
    release = run("functional", data, epsilon=1.0, delta=1e-6, bandwidth=0.7, seed=seed)
    return release.surface.coefficients - coefficients(data.points, box_bases(data.box, 0.7))


def p_value(noise, scale):
    """Two-sided chi-square test that independent numbers have this standard deviation."""
    total = float((noise**2).sum()) / scale**2
    return 2 * min(chi2.cdf(total, noise.size), chi2.sf(total, noise.size))


def test_the_right_scale_is_accepted_and_others_rejected(noise):
    scale = math.sqrt(2) * gaussian_multiplier(1.0, 1e-6)
    assert p_value(noise, scale) > ALPHA
    for factor in (2 / 3, 3 / 2):
        assert p_value(noise, factor * scale) < ALPHA


def test_it_is_gaussian_and_independent(noise):
    flat = noise.ravel() / (math.sqrt(2) * gaussian_multiplier(1.0, 1e-6))
    assert kstest(flat, "norm").pvalue > ALPHA
    neighbours = float(np.corrcoef(flat[:-1], flat[1:])[0, 1])
    assert abs(neighbours) < 5 / math.sqrt(flat.size)
