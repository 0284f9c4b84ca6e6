"""Covariances of modes: the closed forms against slow ones, units, and where there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import dpgrams_core as dg
from dpgrams_core.model.results import Release
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.bumps import Bumps, find_bumps, overlap
from dpgrams_core.numerics.pooled import PooledRounds, linear_covariance
from dpgrams_core.numerics.regions import peak_covariances, round_covariances, tangents, widened
from dpgrams_core.numerics.sketch import noise_chances
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases
from dpgrams_core.own_data.postprocess import climb_smoothed

BUMPS = Bumps(np.array([[0.0, 0.3], [0.8, -0.2]]), np.array([0.5, 0.9]), np.array([3.0, 5.0]))


def moved(at: np.ndarray) -> Bumps:
    table = at.reshape(-1, 4)
    return Bumps(table[:, :2], np.exp(table[:, 2]), np.exp(table[:, 3]))


def test_the_products_of_derivatives_are_those_of_differences() -> None:
    at = np.column_stack([BUMPS.centres, np.log(BUMPS.spreads), np.log(BUMPS.records)]).ravel()
    step = 1e-4 * np.eye(len(at))

    def product(one: np.ndarray, two: np.ndarray) -> float:
        first, second = moved(one), moved(two)
        both = overlap(0.7, np.vstack([first.centres, second.centres]), np.append(first.spreads, second.spreads))
        return float(first.records @ both[:2, 2:] @ second.records)

    slow = [
        [
            (product(at + a, at + b) - product(at + a, at - b) - product(at - a, at + b) + product(at - a, at - b))
            / (4 * 1e-8)
            for b in step
        ]
        for a in step
    ]
    fitted = [0, 1, 2, 3, 6, 7, 8, 9]  # of each bump: centre, spread and records, and then its drifts
    np.testing.assert_allclose(tangents(0.7, BUMPS, BUMPS)[np.ix_(fitted, fitted)], slow, rtol=1e-5, atol=1e-4)


def test_a_drift_is_what_a_wider_bump_changes_by_where_its_centre_moves() -> None:
    """So its products are differences, by the spread, of those of the centre."""
    step, both = 1e-4, tangents(0.7, BUMPS, BUMPS)
    ahead, behind = (
        tangents(0.7, Bumps(BUMPS.centres, BUMPS.spreads * np.exp(by), BUMPS.records), BUMPS) for by in (step, -step)
    )
    for bump in (0, 6):
        for column in (0, 1):
            slow = (ahead[bump + column] - behind[bump + column]) / (2 * step)
            np.testing.assert_allclose(both[bump + 4 + column], slow, rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def released() -> Release:
    return dg.run("functional", dg.load_dataset("four_corners", n=2000, seed=0), epsilon=1.0, seed=0, n_modes=4)


def test_covariances_are_positive_and_the_population_is_less_certain(released: Release) -> None:
    noise, both = released.noise_covariances, released.mode_covariances
    assert noise is not None
    assert both is not None
    assert noise.shape == both.shape == (4, 2, 2)
    assert (np.linalg.eigvalsh(noise) > 0).all()
    assert (np.linalg.eigvalsh(both - noise) > 0).all()


def test_less_noise_makes_the_first_kind_smaller_and_leaves_the_sampling() -> None:
    data = dg.load_dataset("four_corners", n=2000, seed=0)
    few, many = (dg.run("functional", data, epsilon=e, seed=0, n_modes=4, bandwidth=1.0) for e in (1.0, 10.0))
    assert np.trace(few.noise_covariances[0]) > 10 * np.trace(many.noise_covariances[0])
    sampling = [np.trace(each.mode_covariances[0] - each.noise_covariances[0]) for each in (few, many)]
    assert sampling[0] == pytest.approx(sampling[1], rel=0.5)


def test_covariances_are_in_the_units_of_the_columns() -> None:
    points = dg.load_dataset("four_corners", n=2000, seed=0).points
    plain, grams = (
        dg.load_table(
            pd.DataFrame({"a": points[:, 0], "b": factor * points[:, 1]}),
            columns=["a", "b"],
            box=[(-8, 8), (-8 * factor, 8 * factor)],
        )
        for factor in (1, 1000)
    )
    one, two = (dg.run("functional", data, epsilon=1.0, n_modes=4) for data in (plain, grams))
    assert one.noise_covariances is not None
    assert two.noise_covariances is not None
    ratio = np.median(two.noise_covariances[:, 1, 1]) / np.median(one.noise_covariances[:, 1, 1])
    assert 1e5 < ratio < 1e7


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.9])
def test_a_widened_region_holds_what_it_promises_over_both_cases(chance: float) -> None:
    plain, square = np.array([[1.0, 0.3], [0.3, 0.5]]), 6.0
    wide = widened(plain, chance, square)
    rng = np.random.default_rng(0)
    error = rng.multivariate_normal([0, 0], plain, 200_000)
    error += (rng.random(len(error)) < chance)[:, None] * rng.normal(0, np.sqrt(square), error.shape)
    held = (error * np.linalg.solve(wide, error.T).T).sum(axis=1) <= 5.991
    assert held.mean() == pytest.approx(0.95, abs=0.005)
    assert widened(plain, 0.0, square) == pytest.approx(plain, abs=1e-6)
    assert widened(plain, 1.0, square) == pytest.approx(plain + square * np.eye(2))


def test_modes_that_were_not_read_off_a_surface_have_none() -> None:
    release = dg.run("mean_shift", dg.load_dataset("four_corners", n=200, seed=0), seed=0)
    assert release.noise_covariances is None
    assert release.mode_covariances is None


@pytest.mark.slow
def test_a_sketch_has_covariances_too() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(centre, 0.3, (2000, 4)) for centre in (-2, 2)])
    frame = pd.DataFrame(points, columns=list("abcd"))
    data = dg.load_table(frame, columns=list("abcd"), box=[(-4, 4)] * 4)
    release = dg.run("functional", data, epsilon=5.0, n_modes=2)
    assert release.mode_covariances is not None
    assert release.mode_covariances.shape == (2, 4, 4)
    assert (np.linalg.eigvalsh(release.mode_covariances) > 0).all()
    # What its kernel is off by is no lopsided mode: a region for those would be ten times as wide.
    error = np.linalg.norm(np.sort(release.modes, axis=0) - [[-2], [2]], axis=1).mean() / 2
    assert np.sqrt(np.trace(release.mode_covariances, axis1=1, axis2=2) / 4).max() < 4 * error


def test_the_highest_bump_of_noise_alone_is_told_from_a_mode_with_all_places_counted() -> None:
    """Without the number of places about half of all surfaces of noise would have a bump that passes for a mode."""
    box, h, rng = np.array([(-7.0, 7.0)] * 2), 1.4, np.random.default_rng(0)
    shape = [len(basis.whitening) for basis in box_bases(box, h)]
    heights = []
    for _ in range(60):
        noise = ReleasedSurface(rng.normal(0, 3, shape), box, h, 3.0, 500)
        heights.append(find_bumps(noise, 1, reference_spread(box)).significance[0])
    assert (noise_chances(box, h, np.array(heights)) <= 0.05).mean() <= 0.05
    assert (ndtr(-np.array(heights)) <= 0.05).mean() > 0.3


def test_modes_have_the_chance_that_they_are_noise_and_other_results_none() -> None:
    data = dg.load_dataset("four_corners", n=2000, seed=0)
    release = dg.run("functional", data, epsilon=1.0, seed=0)
    assert release.noise_chances is not None
    assert (release.noise_chances < 1e-4).all()
    asked = dg.run("functional", data, epsilon=0.05, seed=0, n_modes=4)  # as many as wished, noise or not
    assert asked.noise_chances is not None
    assert asked.noise_chances.max() > 0.05
    assert dg.run("mean_shift", data, seed=0).noise_chances is None
    line = dg.run("functional_regression", dg.load_dataset("sinusoid", n=500, seed=0), seed=0)
    assert line.noise_chances is None


@pytest.mark.parametrize("sketch", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_peaks_of_a_release_smoothed_further_move_as_their_covariances_say(sketch: bool) -> None:
    """Against noise drawn anew: the peak climbs from where it is without."""
    d = 4 if sketch else 2
    rng = np.random.default_rng(3)
    data = dg.Dataset(name="one", kind="modes", points=rng.normal(0.3, 0.8, (4000, d)), box=[(-4, 4)] * d)
    surface = dg.run("functional", data, epsilon=2.0, n_modes=1, seed=0).surface
    assert surface is not None
    width = 1.4 * surface.bandwidth
    exact = surface.exact(data.points)
    start = climb_smoothed(replace(surface, coefficients=exact), np.full((1, d), 0.3), width, 60)[-1]
    found = []
    for _ in range(100):
        noise = rng.normal(0, surface.noise_scale, exact.shape)
        found.append(climb_smoothed(replace(surface, coefficients=exact + noise), start, width, 60)[-1][0] - start[0])
    covariance = peak_covariances(surface, start, width)[0]
    squares = np.einsum("ri,ij,rj->r", found, np.linalg.inv(covariance), found)
    assert squares.mean() == pytest.approx(d, rel=0.4)  # 2/3 or 3/2 of the covariance would be off by half
    assert peak_covariances(surface, np.empty((0, d)), width).shape == (0, d, d)


def rounds_of(rng: np.random.Generator, noise: float = 0.5) -> tuple[PooledRounds, np.ndarray]:
    """Two rounds of one function with a peak near 0.5, and all places and numbers."""
    rounds = PooledRounds(h=1.0, length=1.4, prior=5.0, noise=noise, axes=(0, 1), box=np.array([(-3.0, 3.0)] * 2))
    for _ in range(2):
        at = rng.uniform(-1.5, 2.5, (9, 2))
        away = at - 0.5
        values = 6 * np.exp(-0.5 * (away**2).sum(axis=1) / 1.5)
        sums = np.concatenate([values, (-away / 1.5 * values[:, None]).ravel()])
        rounds.add(at, sums, linear_covariance(at, at, 1.0, 1.0))
    return rounds, rounds.points


def test_what_rounds_leave_unknown_is_the_law_of_the_slope_given_their_numbers(rng: np.random.Generator) -> None:
    """Against draws of function and noise, whose numbers the rounds read again."""
    rounds, places = rounds_of(rng)
    x, count = np.array([[0.4, 0.6]]), 400
    joint = rounds.prior**2 * linear_covariance(np.vstack([x, places]), np.vstack([x, places]), rounds.length, rounds.h)
    drawn = rng.multivariate_normal(np.zeros(len(joint)), joint, count, method="eigh")
    k = 1 + len(places)
    errors = []
    for one in drawn:
        again = PooledRounds(h=1.0, length=1.4, prior=5.0, noise=0.5, axes=(0, 1), box=rounds.box)
        values, slopes = one[:k], one[k:].reshape(k, 2)
        for part in (slice(1, 10), slice(10, 19)):
            at = places[slice(part.start - 1, part.stop - 1)]
            own = linear_covariance(at, at, 1.0, 1.0)
            exact = np.concatenate([values[part], slopes[part].ravel()])
            again.add(at, exact + rng.multivariate_normal(np.zeros(len(own)), 0.25 * own, method="eigh"), own)
        errors.append(again.at(x)[1][0] - slopes[0])
    covariance = rounds.slope_covariances(x)[0]
    squares = np.einsum("ri,ij,rj->r", errors, np.linalg.inv(covariance), errors)
    assert squares.mean() == pytest.approx(2, abs=0.4)  # four standard errors; 2/3 or 3/2 of it would be off by more


def test_a_mode_of_rounds_has_a_region_where_it_is_a_peak(rng: np.random.Generator) -> None:
    rounds, _ = rounds_of(rng)
    noise, both = round_covariances(rounds, np.array([[0.5, 0.5], [2.9, 2.9]]))
    assert (np.linalg.eigvalsh(noise[0]) > 0).all()
    assert (np.linalg.eigvalsh(both[0] - noise[0]) > 0).all()
    assert np.isnan(both[1]).all()  # at the foot of the hill
    quieter = round_covariances(rounds_of(np.random.default_rng(0), noise=0.05)[0], np.array([[0.5, 0.5]]))[0]
    assert np.trace(quieter[0]) < np.trace(noise[0])
    for each in round_covariances(rounds, np.empty((0, 2))):
        assert each.shape == (0, 2, 2)


def test_modes_of_the_tight_dp_grams_have_regions_in_the_units_of_the_columns() -> None:
    points = dg.load_dataset("four_corners", n=2000, seed=0).points
    found = []
    for factor in (1, 1000):
        frame = pd.DataFrame({"a": points[:, 0], "b": factor * points[:, 1]})
        data = dg.load_table(frame, columns=["a", "b"], box=[(-8, 8), (-8 * factor, 8 * factor)])
        public = replace(data, private=False)
        found.append(dg.run("dp_grams", public, epsilon=1.0, n_modes=4, calibration="tight", seed=0))
    one, two = (release.half_widths for release in found)
    assert one is not None
    assert two is not None
    np.testing.assert_allclose(two / [1, 1000], one, rtol=1e-6)
    assert ((one > 0.05) & (one < 1.0)).all()
    assert dg.run("dp_grams", public, epsilon=1.0, calibration="experiments", seed=0).mode_covariances is None
