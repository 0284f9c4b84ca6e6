"""Where weak bumps are expected: the sampler against exact sums, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpgrams_core import load_dataset
from dpgrams_core.model.measures import score_modes
from dpgrams_core.numerics.bumps import (
    APART,
    BURN_IN,
    CHAINS,
    RECORDS_PRIOR,
    SPACING,
    SPREAD_PRIOR,
    SWEEPS,
    WEAK_SPREADS,
    Bumps,
    _Map,
    _matched,
    _settle_weak,
    expected_places,
    find_bumps,
    overlap,
)
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients

BOX = np.array([[-7.0, 7.0], [-7.0, 7.0]])
BANDWIDTH = 1.4


def noisy_surface(points, sigma, rng, box=BOX, h=BANDWIDTH):
    exact = coefficients(points, box_bases(box, h))
    return ReleasedSurface(exact + sigma * rng.standard_normal(exact.shape), box, h, sigma, len(points))


def exact_posterior(surface, centre, mass, spread):
    """Mean and variance of the place of one bump beside a fixed one, summed over the grid in the plainest way."""
    h, variance, share = surface.bandwidth, surface.noise_scale**2, surface.n / 2
    precision = 1 / (RECORDS_PRIOR * share) ** 2
    nodes, logs = [], []
    grid = _Map(surface, SPACING, np.array(WEAK_SPREADS))
    for x in grid.axes[0]:
        for y in grid.axes[1]:
            node = np.array([[x, y]])
            if np.linalg.norm(node[0] - centre) < APART * h:
                continue
            for factor in WEAK_SPREADS:
                gram = overlap(h, np.concatenate([node, centre[None]]), np.array([factor, spread]))
                b = (surface.value(node, np.hypot(h, factor))[0] - mass * gram[0, 1]) / variance + share * precision
                g = gram[0, 0] / variance + precision
                nodes.append(node[0])
                logs.append(b**2 / (2 * g) - 0.5 * np.log(g / precision) - 0.5 * (np.log(factor) / SPREAD_PRIOR) ** 2)
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    mean = weight @ np.array(nodes)
    return mean, weight @ (np.array(nodes) - mean) ** 2


def test_one_weak_bump_has_the_exact_posterior_mean(rng, flake_rate):
    points = np.concatenate([rng.normal(-3, 1, (250, 2)), rng.normal(3, 1, (250, 2))])
    surface = noisy_surface(points, 60.0, rng)
    bumps = Bumps(np.array([[-3.0, -3.0], [0.0, 0.0]]), np.ones(2), np.full(2, 250.0))
    mean, deviation = expected_places(surface, bumps, np.array([1]), 1.0)
    exact_mean, exact_variance = exact_posterior(surface, bumps.centres[0], 250.0, 1.0)
    # With one bump, every Gibbs step is an independent draw from the posterior; Bonferroni over two coordinates.
    draws = CHAINS * (SWEEPS - BURN_IN)
    allowed = stats.norm.isf(flake_rate / 4) * np.sqrt(exact_variance / draws)
    assert (np.abs(mean[0] - exact_mean) < allowed).all()
    assert (deviation[0] < 3 * np.sqrt(exact_variance)).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_map_of_bumps_is_their_overlap(d, rng):
    box = np.array([[-3.0, 3.0]] * d)
    grid = _Map(noisy_surface(rng.normal(0, 1, (60, d)), 1.0, rng, box), SPACING, np.array(WEAK_SPREADS))
    centres, spreads, records = rng.uniform(-2, 2, (1, 2, d)), np.array([[0.5, 1.2]]), np.array([[30.0, 50.0]])
    got = grid.of_bumps(centres, spreads, records)
    index = tuple(rng.integers(0, len(axis)) for axis in grid.axes)
    node = np.array([axis[i] for axis, i in zip(grid.axes, index, strict=True)])
    for number, spread in enumerate(grid.spreads):
        gram = overlap(1.4, np.concatenate([node[None], centres[0]]), np.array([spread, *spreads[0]]))
        assert got[(0, number, *index)] == pytest.approx(gram[0, 1:] @ records[0], rel=1e-10)


def test_the_same_release_gives_the_same_places(rng):
    surface = noisy_surface(rng.normal(0, 2, (200, 2)), 40.0, rng)
    first, second = (find_bumps(surface, 3, 1.0).centres for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_strong_bumps_stay_where_they_fit_best(rng):
    data = load_dataset("four_corners", n=5000, seed=0)
    bumps = find_bumps(noisy_surface(data.points, 6.0, rng), 4, 1.0)
    assert bumps.significance.min() > 20
    assert np.abs(np.sort(bumps.centres, axis=0) - np.sort(data.true_modes, axis=0)).max() < 0.3


def test_samples_are_matched_before_they_are_averaged(rng):
    truth = np.array([[0.0, 0.0], [5.0, 5.0], [-5.0, 4.0]])
    samples = np.stack([rng.permutation(truth) for _ in range(60)])
    matched = _matched(samples, truth + rng.normal(0, 0.5, truth.shape))
    np.testing.assert_allclose(matched.mean(axis=0), truth)
    np.testing.assert_allclose(matched.std(axis=0), 0, atol=1e-12)


def test_no_weak_bump_no_sampling(rng):
    surface = noisy_surface(rng.normal(0, 1, (60, 2)), 1.0, rng)
    bumps = Bumps(np.zeros((1, 2)), np.ones(1), np.ones(1), np.array([9.0]))
    assert _settle_weak(surface, bumps, 1.0) is bumps


@pytest.mark.slow
def test_where_the_noise_is_strong_the_expected_place_beats_the_best_fit(rng):
    # Four corners at about epsilon 0.1: the best fits jump between peaks of the noise.  The gain is about 6 with a
    # standard deviation of about 5 a release, so the mean of 24 is some six of its standard errors above zero.
    data = load_dataset("four_corners", n=700, seed=0)
    best, expected = [], []
    for _ in range(24):
        surface = noisy_surface(data.points, 51.0, rng)
        found = find_bumps(surface, 4, 1.0)
        expected.append(score_modes(data.true_modes, found.centres)["mse"])
        # The same fit without its last step.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dpgrams_core.numerics.bumps._settle_weak", lambda surface, bumps, *rest: bumps)
            best.append(score_modes(data.true_modes, find_bumps(surface, 4, 1.0).centres)["mse"])
    assert np.mean(expected) < np.mean(best)
