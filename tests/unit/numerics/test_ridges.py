"""Branches traced as ridges of a released surface."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.numerics.ridges import STRONG, WEAK, _joined, trace_ridges
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients

UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])
X = np.linspace(0, 1, 41)


def surface_of(points, sigma, rng, h=0.1):
    exact = coefficients(points, box_bases(UNIT, h))
    return ReleasedSurface(exact + sigma * rng.standard_normal(exact.shape), UNIT, h, sigma, len(points))


def curve_points(rng, curve, low, high, n, spread=0.03):
    x = rng.uniform(low, high, n)
    return np.stack([x, curve(x) + spread * rng.standard_normal(n)], axis=1)


def test_two_branches_are_followed_over_their_whole_length(rng):
    points = np.concatenate(
        [
            curve_points(rng, lambda x: 0.25 + 0.2 * x, 0, 1, 1500),
            curve_points(rng, lambda x: 0.8 - 0.1 * x, 0, 1, 1500),
        ]
    )
    ridges = trace_ridges(surface_of(points, 5.0, rng), X)
    assert len(ridges) == 2
    for ridge in ridges:
        assert len(ridge.x) == len(X)
        truth = 0.25 + 0.2 * ridge.x if ridge.y[0] < 0.5 else 0.8 - 0.1 * ridge.x
        assert np.abs(ridge.y - truth).max() < 0.06
        assert (ridge.height > STRONG).all()


def test_a_branch_ends_where_its_records_end(rng):
    points = np.concatenate(
        [
            curve_points(rng, lambda x: np.full_like(x, 0.2), 0, 0.4, 2000),
            curve_points(rng, lambda x: np.full_like(x, 0.8), 0, 1, 5000),
        ]
    )
    ridges = trace_ridges(surface_of(points, 5.0, rng), X)
    short = next(ridge for ridge in ridges if ridge.y[0] < 0.5)
    # Smoothed by h = 0.1, half of the height is left at the end and 0.4 of it about a quarter of h farther on.
    assert 0.35 < short.x.max() < 0.5
    assert next(ridge for ridge in ridges if ridge.y[0] > 0.5).x.max() == 1.0


def test_pure_noise_gives_its_strongest_ridge_only(rng):
    # No branch can be told from noise; what is given says how little it stands out.
    lengths = []
    for _ in range(20):
        surface = surface_of(np.full((1, 2), 0.5), 50.0, rng)
        ridges = trace_ridges(surface, X)
        lengths.append(len(ridges))
        assert all(ridge.height.max() > STRONG for ridge in ridges[1:])
        assert len(ridges[0].x) >= 1
    assert np.mean(lengths) < 1.5


@pytest.mark.parametrize("h", [3.0, 10.0, 1e3])
def test_a_kernel_wider_than_the_box_has_a_ridge_too(h, rng):
    (ridge,) = trace_ridges(surface_of(np.full((50, 2), 0.5), 5.0, rng, h), X)[:1]
    assert ((ridge.y >= 0) & (ridge.y <= 1)).all()


def test_heights_are_in_units_of_the_noise(rng):
    points = curve_points(rng, lambda x: np.full_like(x, 0.5), 0, 1, 3000)
    surface = surface_of(points, 8.0, rng)
    ridge = trace_ridges(surface, X)[0]
    at = np.stack([ridge.x, ridge.y], axis=1)
    np.testing.assert_allclose(ridge.height, surface.value(at) / surface.noise_at(at), rtol=0.02)
    assert (ridge.height > WEAK).all()


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_peaks_are_joined_to_the_nearest_whatever_their_order(order):
    y = np.array([0.2, 0.6, 0.25, 0.62, 0.9])
    column = np.array([0, 0, 1, 1, 1])
    swap = np.array([*order, 2, 3, 4])
    chains = _joined(column[swap], y[swap], 2, 0.1)
    joined = sorted(sorted(y[swap][chain].tolist()) for chain in chains)
    assert joined == [[0.2, 0.25], [0.6, 0.62], [0.9]]


def test_a_gap_ends_a_chain():
    assert sorted(_joined(np.array([0, 1, 3]), np.array([0.5, 0.5, 0.5]), 4, 0.1)) == [[0, 1], [2]]
