"""The noise of the sketch, both ways, through the method that releases it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpgrams_core.methods.functional.modes import release_surface
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.numerics.sketch import feature_sums
from dpgrams_core.privacy.calibration import gaussian_multiplier

SCALE = math.sqrt(2 + 2 / 31) * gaussian_multiplier(1.0, 1e-6)


@pytest.fixture
def added(rng, table, noise):
    """What a run added to the exact coefficients."""
    data = table(rng.normal(0, 1, (300, 4)), [(-5.0, 5.0)] * 4)
    spec = FunctionalSpec(epsilon=1.0, delta=1e-6, bandwidth=1.5)
    sketch = release_surface(data, spec, noise).surface
    return sketch.coefficients - feature_sums(data.points, data.box, 1.5, sketch.blocks)


def p_value(numbers, scale):
    """Two-sided chi-square test that independent numbers have this standard deviation."""
    total = float((numbers**2).sum()) / scale**2
    return 2 * min(chi2.cdf(total, numbers.size), chi2.sf(total, numbers.size))


def test_the_right_scale_is_accepted_and_others_rejected(added, flake_rate, certain):
    assert p_value(added, SCALE) > flake_rate
    for factor in (2 / 3, 3 / 2):
        assert p_value(added, factor * SCALE) < certain


def test_it_is_gaussian_and_independent(added, flake_rate):
    flat = added / SCALE
    assert kstest(flat, "norm").pvalue > flake_rate
    for lag in (1, 496, flat.size // 2):  # neighbours, next block, cosine and sine of one frequency
        correlation = float(np.corrcoef(flat[:-lag], flat[lag:])[0, 1])
        assert abs(correlation) < 5.2 / math.sqrt(flat.size - lag)
