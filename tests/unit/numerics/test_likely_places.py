"""The likeliest shares of the records on public places: against a plain solver, and where they end up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpgrams_core.numerics import likely_places as module
from dpgrams_core.numerics.likely_places import (
    GRID_NOISES,
    GRID_WEIGHT,
    grounds_of,
    likeliest_shares,
    likely_places,
    spread_places,
)
from dpgrams_core.numerics.sketch import ReleasedSketch, choose_blocks, feature_sums
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients

CENTRES = np.array([[-2.0, -1.0], [1.5, 1.5], [1.0, -2.0]])
BOX = np.array([[-4.0, 4.0], [-4.0, 4.0]])


def surface_of(points, rng, sigma=3.0, h=0.6):
    exact = coefficients(points, box_bases(BOX, h))
    return ReleasedSurface(exact + sigma * rng.standard_normal(exact.shape), BOX, h, sigma, len(points))


def sketch_of(points, rng, sigma=5.0, h=1.0):
    box = np.tile([-4.0, 4.0], (points.shape[1], 1))
    exact = feature_sums(points, box, h, choose_blocks(len(points), sigma))
    return ReleasedSketch(exact + sigma * rng.standard_normal(exact.shape), box, h, sigma, len(points))


def posterior(shares, kernel, values, prior, noise):
    """What is to be as small as possible, as it is defined at the head of likely_places.py."""
    fit = (0.5 * shares @ kernel @ shares - values @ shares) / noise**2
    return fit + GRID_WEIGHT * np.sum(shares * np.log(shares / prior))


def small_problem(rng, places=12, noise=0.01):
    x = np.sort(rng.uniform(-3, 3, places))
    kernel = np.exp(-0.5 * (x[:, None] - x[None]) ** 2)
    truth = rng.dirichlet(np.full(places, 0.3))
    return kernel, kernel @ truth + noise * rng.standard_normal(places), rng.dirichlet(np.full(places, 5.0)), noise


def test_the_shares_are_those_of_a_plain_solver(rng):
    kernel, values, prior, noise = small_problem(rng)
    found = likeliest_shares(values, lambda p: kernel @ p, prior, noise, GRID_WEIGHT, steps=3_000)

    def loss(logs):
        shares = np.exp(logs - logs.max())
        return posterior(shares / shares.sum(), kernel, values, prior, noise) / GRID_WEIGHT

    best = minimize(loss, np.log(prior), method="BFGS")
    assert posterior(found, kernel, values, prior, noise) / GRID_WEIGHT <= best.fun + 1e-4 * abs(best.fun) + 1e-3


def test_the_usual_number_of_steps_comes_close(rng):
    kernel, values, prior, noise = small_problem(rng)
    usual, far = (
        posterior(
            likeliest_shares(values, lambda p: kernel @ p, prior, noise, GRID_WEIGHT, **steps),
            kernel,
            values,
            prior,
            noise,
        )
        for steps in ({}, {"steps": 5_000})
    )
    start = posterior(prior, kernel, values, prior, noise)
    assert start - usual > 0.9 * (start - far)


def test_shares_are_positive_and_sum_to_one(rng):
    points = np.concatenate([rng.normal(centre, 0.5, (300, 2)) for centre in CENTRES])
    grounds = grounds_of(surface_of(points, rng))
    shares, prior = grounds.likeliest(grounds.values)
    assert (shares > 0).all()
    assert shares.sum() == pytest.approx(1.0)
    assert prior.sum() == pytest.approx(1.0)


def test_without_signal_the_prior_stands(rng):
    points = rng.normal(0.0, 1.0, (50, 2))
    grounds = grounds_of(surface_of(points, rng, sigma=5_000.0))
    shares, prior = grounds.likeliest(grounds.values)
    assert 0.5 * np.abs(shares - prior).sum() < 0.05


@pytest.mark.parametrize("columns", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_the_places_shown_are_near_the_records(rng, columns):
    centres = np.hstack([CENTRES, np.zeros((3, columns - 2))])
    points = np.concatenate([rng.normal(centre, 0.5, (2_000, columns)) for centre in centres])
    release = surface_of(points, rng) if columns == 2 else sketch_of(points, rng)
    places, shares = likely_places(release)
    nearest = np.linalg.norm(places[:, None] - centres[None], axis=-1).min(axis=1)
    typical = np.linalg.norm(points[:, None] - centres[None], axis=-1).min(axis=1).mean()
    assert (shares @ nearest) / shares.sum() < 1.5 * typical


def test_nodes_within_the_noise_are_left_out_unless_too_few_remain(rng):
    """With a weak prior far nodes have more than their tiny prior share by noise alone, and would draw a centre."""
    points = np.concatenate([rng.normal(centre, 0.3, (400, 2)) for centre in CENTRES])
    release = surface_of(points, rng, sigma=10.0)
    (sure, _), (every, _) = likely_places(release), likely_places(release, least=10**6)
    away = [np.linalg.norm(places[:, None] - CENTRES, axis=-1).min(axis=1).max() for places in (sure, every)]
    assert away[0] < 2.0 < away[1]
    assert (release.value(sure) > GRID_NOISES * release.noise_at(sure)).all()


def test_the_kernel_between_places_is_the_gaussian_one(rng):
    places = rng.normal(size=(40, 4))
    plain = np.exp(-0.5 * ((places[:, None] - places[None]) ** 2).sum(axis=-1) / 0.7**2)
    np.testing.assert_allclose(module._kernel(places, 0.7), plain, atol=2e-6)


def test_spread_places_have_the_law_of_the_prior():
    box = np.array([[-4.0, 4.0], [0.0, 80.0], [-1.0, 1.0], [2.0, 3.0], [-4.0, 4.0]])
    places = spread_places(box, 4_096)
    assert ((places >= box[:, 0]) & (places <= box[:, 1])).all()
    scaled = (places - box.mean(axis=1)) / (box[:, 1] - box[:, 0]) * 8
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, atol=0.02)


def test_the_same_release_gives_the_same_places(rng):
    points = np.concatenate([rng.normal(centre, 0.5, (300, 2)) for centre in CENTRES])
    release = surface_of(points, rng)
    for one, two in zip(likely_places(release), likely_places(release), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("columns", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_many_releases_at_once_have_the_shares_of_each(rng, columns):
    points = np.concatenate([rng.normal(centre[0], 0.5, (300, columns)) for centre in CENTRES])
    grounds = grounds_of(surface_of(points, rng) if columns == 2 else sketch_of(points, rng))
    values = np.stack([grounds.values, 0.5 * grounds.values, grounds.values[::-1]], axis=1)
    together = grounds.likeliest(values)
    for number in range(3):
        for one, all_of_them in zip(grounds.likeliest(values[:, number]), together, strict=True):
            np.testing.assert_allclose(all_of_them[:, number], one, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("columns", [2, 5])
def test_the_noise_of_a_twin_is_that_of_the_release(rng, columns):
    points = rng.normal(0.0, 1.0, (300, columns))
    release = surface_of(points, rng) if columns == 2 else sketch_of(points, rng)
    grounds = grounds_of(release)
    numbers = rng.normal(0.0, release.noise_scale, (100, *release.coefficients.shape))
    spread = np.std([grounds.values_of(one) for one in numbers], axis=0) * release.n
    assert np.median(spread / release.noise_at(grounds.places)) == pytest.approx(1.0, abs=0.1)
