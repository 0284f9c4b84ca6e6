"""All rounds read together: the regression against a slow one, and against the sums themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.methods.dp_grams.rounds import joint_covariance, kernel_sums
from dpgrams_core.numerics.pooled import HAIR, HAIR_OF_PRIOR, PooledRounds, linear_covariance

H, LENGTH, PRIOR, NOISE = 0.6, 0.8, 40.0, 3.0


def parts(at, axes):
    """Which of the numbers of a round are released."""
    (k, d) = at.shape
    return [*range(k), *(k + d * row + axis for row in range(k) for axis in axes)]


def pooled(points, places, axes, noise=NOISE, extra=None):
    """Rounds at ``places`` with the exact sums, or with ``extra`` added to them."""
    found = PooledRounds(
        h=H, length=LENGTH, prior=PRIOR, noise=noise, axes=axes, box=np.tile([-5.0, 5.0], (places[0].shape[1], 1))
    )
    for number, at in enumerate(places):
        rows = parts(at, axes)
        sums = kernel_sums(points, at, H)[rows] + (0.0 if extra is None else extra[number][: len(rows)])
        found.add(at, sums, joint_covariance(at, H)[np.ix_(rows, rows)])
    return found


@pytest.mark.parametrize("d", [1, 2, 3])
def test_at_its_own_length_the_covariance_is_that_of_a_round(d, rng):
    at = rng.normal(0, 1, (5, d))
    np.testing.assert_allclose(linear_covariance(at, at, H, H), joint_covariance(at, H), atol=1e-14)


def test_the_covariance_at_another_length_is_that_of_scaled_slopes(rng):
    # h grad f of a process of length l is (h / l) times l grad f.
    at = rng.normal(0, 1, (4, 2))
    scale = np.repeat([1.0, H / LENGTH], [4, 8])
    expected = joint_covariance(at, LENGTH) * np.outer(scale, scale)
    np.testing.assert_allclose(linear_covariance(at, at, LENGTH, H), expected, atol=1e-14)


@pytest.mark.parametrize(("d", "axes"), [(1, (0,)), (2, (0, 1)), (2, (1,)), (3, (0, 1, 2))])
def test_it_is_the_posterior_mean_by_the_textbook(d, axes, rng):
    points, x = rng.normal(0, 0.7, (30, d)), rng.normal(0, 0.7, (4, d))
    places = [rng.normal(0, 0.7, (3, d)) for _ in range(3)]
    extra = rng.normal(0, 5, (3, 3 * (1 + d)))
    found = pooled(points, places, axes, extra=extra)
    released = np.concatenate(
        [
            kernel_sums(points, at, H)[parts(at, axes)] + more[: len(parts(at, axes))]
            for at, more in zip(places, extra, strict=True)
        ]
    )
    total = np.block(
        [
            [
                PRIOR**2 * linear_covariance(a, b, LENGTH, H)[np.ix_(parts(a, axes), parts(b, axes))]
                + (NOISE**2 * joint_covariance(a, H)[np.ix_(parts(a, axes), parts(a, axes))] if a is b else 0.0)
                for b in places
            ]
            for a in places
        ]
    ) + (HAIR * NOISE**2 + HAIR_OF_PRIOR * PRIOR**2) * np.eye(len(released))
    between = np.hstack([linear_covariance(x, b, LENGTH, H)[:, parts(b, axes)] for b in places])
    expected = PRIOR**2 * between @ np.linalg.solve(total, released)
    height, slope = found.at(x)
    np.testing.assert_allclose(np.concatenate([height, slope.ravel()]), expected, rtol=1e-7, atol=1e-7)


def test_without_noise_it_is_the_kernel_sum_where_it_was_seen(rng):
    points = rng.normal(0, 0.7, (200, 2))
    places = [rng.uniform(-1, 1, (12, 2)) for _ in range(4)]
    found, x = pooled(points, places, (0, 1), noise=0.01), rng.uniform(-0.8, 0.8, (10, 2))
    height, slope = found.at(x)
    exact = kernel_sums(points, x, H)
    np.testing.assert_allclose(height, exact[:10], rtol=1e-2)
    np.testing.assert_allclose(slope, exact[10:].reshape(10, 2), atol=0.5)


def test_slopes_are_those_of_the_heights(rng):
    found = pooled(rng.normal(0, 0.7, (50, 2)), [rng.normal(0, 1, (5, 2)) for _ in range(2)], (0, 1))
    x, step = rng.normal(0, 1, (6, 2)), 1e-5
    for axis in range(2):
        move = step * np.eye(2)[axis]
        numeric = H * (found.at(x + move)[0] - found.at(x - move)[0]) / (2 * step)
        np.testing.assert_allclose(found.at(x)[1][:, axis], numeric, rtol=1e-4, atol=1e-4)


def test_the_unit_falls_with_the_rounds_and_places_are_seen_within_a_bandwidth(rng):
    at = np.zeros((1, 2))
    found = pooled(rng.normal(0, 1, (10, 2)), [at] * 4, (0, 1))
    assert found.unit == NOISE / 2
    assert found.seen(np.array([[0.0, 0.99 * H], [0.8 * H, 0.8 * H]]), 1.0).tolist() == [True, False]


def test_the_same_place_seen_again_is_a_mean(rng):
    at, extra = np.zeros((1, 1)), np.array([[4.0, 0.0], [-2.0, 0.0]])
    points = rng.normal(0, 0.3, (20, 1))
    height, _ = pooled(points, [at, at], (0,), extra=extra).at(at)
    kept = PRIOR**2 / (PRIOR**2 + NOISE**2 / 2)
    assert height[0] == pytest.approx(kept * (kernel_sums(points, at, H)[0] + 1.0), rel=1e-5)


@pytest.mark.parametrize(("d", "axes"), [(1, (0,)), (2, (0, 1)), (2, (1,)), (3, (0, 1, 2))])
def test_a_grid_in_any_units_has_the_heights_of_its_places(d, axes, rng):
    found = pooled(rng.normal(0, 0.7, (30, d)), [rng.normal(0, 0.7, (3, d)) for _ in range(2)], axes)
    sides = [np.linspace(-1, 1, 4 + i) for i in range(d)]
    places = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
    expected = found.at(places.reshape(-1, d))[0].reshape(places.shape[:-1]) / found.unit
    np.testing.assert_allclose(found.grid_in_noise(sides, found.box), expected, atol=1e-9)
    scale, shift = np.array([2.0, 30.0, 0.1])[:d], np.array([1.0, -4.0, 7.0])[:d]  # of each column's units
    there = [side * scale[i] + shift[i] for i, side in enumerate(sides)]
    box = found.box * scale[:, None] + shift[:, None]
    np.testing.assert_allclose(found.grid_in_noise(there, box), expected, atol=1e-9)
