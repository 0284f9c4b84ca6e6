"""A search for neighbours that break sqrt(2), the sensitivity of a round of ``tight``: it must fail, and come close."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpgrams_core.methods.dp_grams.rounds import SENSITIVITY, joint_covariance, kernel_sums
from dpgrams_core.numerics.rounding import SMALLEST_EIGENVALUE
from dpgrams_core.privacy.noise import SimulationNoise

ROUNDING = 1e-6  # of the sensitivity


class Recorder(SimulationNoise):
    """Noise that is left out, so that what the noise covers can be seen."""

    def __init__(self):
        super().__init__(0)
        self._rng = self

    def standard_normal(self, size):
        return np.zeros(size)


def mahalanobis(change, covariance):
    """Norm of a change in the directions that are released."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    return float(np.linalg.norm((change @ vectors[:, kept]) / np.sqrt(values[kept])))


def change_norm(points, row, record, starts, h):
    """The change of a round's vector, from whole sums as the code forms them, in units of the noise scale."""
    other = points.copy()
    other[row] = record
    return mahalanobis(kernel_sums(points, starts, h) - kernel_sums(other, starts, h), joint_covariance(starts, h))


def start_sets(rng, d, h):
    """Start sets that a trajectory can reach: spread, close, coinciding, on a line, on the records' side."""
    base = h * rng.normal(0, 1, (4, d))
    axis = np.eye(d)[0]
    yield "spread", h * rng.normal(0, 2, (6, d))
    yield "coinciding", base[[0, 0, 1, 1, 1]]
    for gap in (1e-2, 1e-4, 1e-7, 1e-12):
        yield f"{gap} apart", np.concatenate([base, base + gap * h * rng.normal(0, 1, base.shape)])
    yield "short segment", h * 0.05 * np.arange(12)[:, None] * axis
    yield "long segment", h * np.linspace(-3, 3, 25)[:, None] * axis


@pytest.mark.parametrize(("d", "h"), list(itertools.product([1, 2, 3], [0.3, 1.0, 5.0])))
def test_random_and_adversarial_neighbours(d, h, rng, record_property):
    largest = 0.0
    for _ in range(8):
        points = h * rng.normal(0, 1.5, (int(rng.integers(1, 60)), d))
        for _, starts in start_sets(rng, d, h):
            # From one start onto another, from a start to far away, and anywhere.
            near, far = starts[rng.integers(len(starts))], np.full(d, 1e3 * h)
            for record, row in itertools.product((near, far, h * rng.normal(0, 2, d)), (0,)):
                points[0] = starts[rng.integers(len(starts))] if rng.random() < 0.7 else points[0]
                largest = max(largest, change_norm(points, row, record, starts, h))
    record_property("largest share of sqrt(2)", largest / SENSITIVITY)
    assert 0.9 * SENSITIVITY < largest <= SENSITIVITY * (1 + ROUNDING)


@pytest.mark.parametrize("d", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_neighbours_found_by_local_ascent(d, rng):
    h, points = 1.0, rng.normal(0, 1, (30, d))
    best = 0.0
    for _ in range(6):
        begin = rng.normal(0, 0.7, (5, d))  # three starts, the record and what replaces it, all free

        def loss(numbers):
            places = numbers.reshape(5, d)
            data = points.copy()
            data[0] = places[3]
            return -change_norm(data, 0, places[4], places[:3], h)

        first = -loss(begin.ravel())
        climbed = -minimize(loss, begin.ravel(), method="Nelder-Mead", options={"maxfev": 1_200}).fun
        assert climbed >= first
        best = max(best, climbed)
    assert 0.95 * SENSITIVITY < best <= SENSITIVITY * (1 + ROUNDING)


@pytest.mark.parametrize(("d", "gap"), [(1, 0.001304), (2, 0.00121)])
@pytest.mark.parametrize("m", [1_000, 16_000])
def test_the_data_that_break_the_published_bound_do_not_break_this(d, gap, m):
    # 999 records at 0, the last at -1 or +1, two starts almost together: 8 times Delta_corr there.
    axis = np.eye(d)[0]
    points = np.zeros((m, d))
    points[-1] = -axis
    starts = np.stack([0 * axis, gap * axis])
    norm = change_norm(points, m - 1, axis, starts, 1.0)
    exact = math.sqrt(2 - 2 * math.exp(-2))  # of the whole function; two starts see a part of it
    assert 0.5 < norm <= exact * (1 + ROUNDING)
    fifty = 0.05 * np.linspace(0, 1, 50)[:, None] * axis
    assert change_norm(points, m - 1, axis, fifty, 1.0) <= exact * (1 + ROUNDING)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("n", [1_000, 100_000])
def test_rounding_in_large_sums_stays_far_below_the_noise(n, offset, rng):
    # Starts almost together and all mass beside them: large sums over the smallest eigenvalues that are kept.
    for gap in (1e-2, 1e-3, 1e-4, 1e-5):
        close = gap * rng.normal(0, 1, (4, 2))
        starts = offset + np.concatenate([close, rng.normal(0, 1, (2, 2))])
        points = offset + rng.normal(0, 0.1, (n, 2))
        other = points.copy()
        other[0] = offset + 1.0
        whole = kernel_sums(points, starts, 1.0) - kernel_sums(other, starts, 1.0)
        alone = kernel_sums(points[:1], starts, 1.0) - kernel_sums(other[:1], starts, 1.0)
        assert mahalanobis(whole - alone, joint_covariance(starts, 1.0)) < ROUNDING * SENSITIVITY


def test_nothing_leaves_where_no_noise_covers_it(rng):
    # Coinciding starts: a vector that differs between them is rounding (or a bug), and is not released.
    starts = rng.normal(0, 1, (3, 2))[[0, 0, 1, 2]]
    covariance = joint_covariance(starts, 1.0)
    bare = np.zeros(12)
    bare[0], bare[1] = 1.0, -1.0  # the values at the two coinciding starts
    np.testing.assert_allclose(Recorder().covered_gaussian([bare], covariance, 1.0), 0.0, atol=1e-12)
    # ...while a true vector of sums passes unchanged.
    sums = kernel_sums(rng.normal(0, 1, (20, 2)), starts, 1.0)
    np.testing.assert_allclose(Recorder().covered_gaussian([sums], covariance, 1.0), sums, atol=1e-10)
