"""Mixtures: the law of the draws, the density, and modes that are really modes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from dpgrams_core import DATASETS, load_dataset
from dpgrams_core.datasets.mixtures import FOUR_CORNERS, T_MIXTURE, Mixture
from dpgrams_core.datasets.registry import datasets_of

LAWS = {"four_corners": FOUR_CORNERS, "t_mixture": T_MIXTURE}


def gaussians(*means, scale=1.0):
    k = len(means)
    return Mixture(means=means, weights=(1 / k,) * k, scales=(scale,) * k, dofs=(math.inf,) * k)


def triangle(radius):
    angles = [math.pi / 2 + 2 * math.pi * i / 3 for i in range(3)]
    return gaussians(*[(radius * math.cos(a), radius * math.sin(a)) for a in angles])


NAMED = {
    "four corners": (FOUR_CORNERS, 4),
    "t mixture": (T_MIXTURE, 5),
    "two far apart": (gaussians((0.0, 0.0), (4.0, 1.0)), 2),
    "two overlapping": (gaussians((-0.9, 0.0), (0.9, 0.0)), 1),
    # The saddle between them falls along both axes and rises only along the diagonal.
    "two on a diagonal": (gaussians((0.85, 0.85), (-0.85, -0.85)), 2),
    "close triangle": (triangle(1.2), 1),
    # Known from the literature: three components with four modes, one of them at no component.
    "triangle with a ghost mode": (triangle(1.39), 4),
    "wide triangle": (triangle(2.5), 3),
    "one dimension": (gaussians((-2.0,), (2.0,), (2.5,)), 2),
    "three dimensions": (gaussians((0.0, 0.0, 0.0), (3.0, 3.0, 0.0)), 2),
    "unequal": (Mixture(((0.0, 0.0), (1.5, 0.5)), (0.8, 0.2), (1.0, 0.5), (4.0, math.inf)), 2),
}


@pytest.mark.parametrize(("mixture", "count"), NAMED.values(), ids=NAMED.keys())
def test_modes_are_stationary_peaks(mixture, count):
    modes = mixture.modes()
    assert len(modes) == count
    d, step = mixture.dimension, 1e-3 * min(mixture.scales)
    axes = step * np.eye(d)
    for mode in modes:
        value = lambda offset, mode=mode: float(mixture.density((mode + offset)[None])[0])  # noqa: E731
        height = value(np.zeros(d))
        gradient = [(value(a) - value(-a)) / (2 * step) for a in axes]
        assert np.linalg.norm(gradient) * min(mixture.scales) < 1e-6 * height
        hessian = [
            [(value(a + b) - value(a - b) - value(b - a) + value(-a - b)) / (4 * step**2) for a in axes] for b in axes
        ]
        assert np.linalg.eigvalsh(np.array(hessian))[-1] < 0


@pytest.mark.parametrize(
    "name", ["t mixture", "two on a diagonal", "close triangle", "triangle with a ghost mode", "unequal"]
)
def test_no_mode_is_missing_on_a_fine_grid(name):
    mixture, count = NAMED[name]
    axis = np.linspace(-8, 8, 641)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    p = mixture.density(grid.reshape(-1, 2)).reshape(641, 641)
    inner = p[1:-1, 1:-1]
    moves = [(i, j) for i in (0, 1, 2) for j in (0, 1, 2) if (i, j) != (1, 1)]
    peaks = np.logical_and.reduce([inner > p[i : i + 639, j : j + 639] for i, j in moves])
    found = grid[1:-1, 1:-1][peaks]
    assert len(found) == count
    for mode in mixture.modes():
        assert np.linalg.norm(found - mode, axis=1).min() < 0.04


def test_the_ghost_mode_stands_in_the_middle_of_the_triangle():
    modes = triangle(1.39).modes()
    assert np.linalg.norm(modes, axis=1).min() < 1e-6


def test_overlapping_components_share_one_mode_between_them():
    np.testing.assert_allclose(NAMED["two overlapping"][0].modes(), [[0.0, 0.0]], atol=1e-4)


def test_the_four_corners_are_pulled_towards_each_other_by_a_hair():
    modes = FOUR_CORNERS.modes()
    np.testing.assert_allclose(modes, FOUR_CORNERS.means, atol=1e-6)
    assert (np.abs(modes) < 3).all()


def test_the_density_integrates_to_one():
    value, _ = dblquad(lambda y, x: float(FOUR_CORNERS.density(np.array([[x, y]]))[0]), 0, 12, 0, 12, epsabs=1e-7)
    assert 4 * value == pytest.approx(1, abs=1e-6)  # one quadrant of four


@pytest.mark.parametrize(("d", "dof"), [(1, 3.0), (2, 3.0), (2, 15.0), (3, 6.0), (2, math.inf)])
def test_one_component_integrates_to_one(d, dof):
    mixture = Mixture(((0.0,) * d,), (1.0,), (0.7,), (dof,))
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)

    def shell(r):
        point = np.zeros((1, d))
        point[0, 0] = r
        return sphere * r ** (d - 1) * float(mixture.density(point)[0])

    assert quad(shell, 0, 5)[0] + quad(shell, 5, np.inf)[0] == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("name", ["four_corners", "t_mixture"])
def test_components_come_with_their_weights(name, seed, flake_rate):
    data = load_dataset(name, n=20_000, seed=seed)
    counts = np.bincount(data.labels, minlength=DATASETS[name].count)
    assert stats.chisquare(counts).pvalue > flake_rate
    assert stats.chisquare(counts + np.array([400] + [0] * (len(counts) - 2) + [-400])).pvalue < flake_rate


def test_unequal_weights_are_kept(rng, flake_rate):
    mixture = Mixture(((0.0,), (9.0,), (20.0,)), (0.7, 0.2, 0.1), (1.0,) * 3, (math.inf,) * 3)
    points, labels = mixture.sample(20_000, rng)
    assert stats.chisquare(np.bincount(labels), 20_000 * np.array([0.7, 0.2, 0.1])).pvalue > flake_rate
    assert np.array_equal(np.abs(points - 10 * labels[:, None]).argmin(axis=1), np.zeros(20_000))


def test_a_t_component_is_a_multivariate_t_with_its_tail(rng, flake_rate, certain):
    d, dof, scale = 2, 3.0, 0.5
    points, _ = Mixture(((1.0, -2.0),), (1.0,), (scale,), (dof,)).sample(20_000, rng)
    # |x - mean|^2 / (d scale^2) follows F(d, dof) for the multivariate t, and nothing else here.
    squares = ((points - [1.0, -2.0]) ** 2).sum(axis=1) / (d * scale**2)
    assert stats.kstest(squares, stats.f(d, dof).cdf).pvalue > flake_rate
    for wrong in (stats.f(d, 5.0), stats.chi2(d, scale=1 / d)):  # another tail; a Gaussian
        assert stats.kstest(squares, wrong.cdf).pvalue < certain
    product = ((stats.t(dof).rvs((20_000, d), random_state=rng)) ** 2).sum(axis=1) / d
    assert stats.kstest(product, stats.f(d, dof).cdf).pvalue < certain  # a product of t's would be seen


def test_a_gaussian_component_is_gaussian(rng, flake_rate, certain):
    points, _ = Mixture(((0.0, 0.0),), (1.0,), (2.0,), (math.inf,)).sample(20_000, rng)
    squares = (points**2).sum(axis=1) / 4
    assert stats.kstest(squares, stats.chi2(2).cdf).pvalue > flake_rate
    assert stats.kstest(squares * 1.5**2, stats.chi2(2).cdf).pvalue < certain


@pytest.mark.parametrize("name", [*datasets_of("modes"), *datasets_of("regression")])
def test_a_seed_gives_the_same_draw_and_another_seed_another(name, seed):
    one, same, other = (load_dataset(name, n=100, seed=s) for s in (seed, seed, seed + 1))
    assert np.array_equal(one.points, same.points)
    assert not np.array_equal(one.points, other.points)


@pytest.mark.parametrize("name", datasets_of("modes"))
def test_the_modes_of_a_data_set_lie_well_inside_its_public_box(name):
    info = DATASETS[name]
    box, modes = np.array(info.box), LAWS[name].modes()
    assert ((modes > box[:, 0] + 2) & (modes < box[:, 1] - 2)).all()
