"""Regression data: the law of the draws, and conditional modes that are really modes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from dpgrams_core import DATASETS, DataError, load_dataset
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.datasets.regression import SINUSOID, THREE_COMPONENT, BranchMixture, Level

CLOSE = BranchMixture((Level(0.0), Level(0.3)), ((0.0, 1.0), (0.5, 1.0)), 0.2)  # overlapping: one mode between them
LAWS = {"sinusoid": SINUSOID, "three_component": THREE_COMPONENT, "close": CLOSE}
PLACES = np.array([0.0, 0.1, 0.39, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.9, 1.0])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_the_conditional_density_is_one_at_every_x(law):
    y = np.linspace(-4, 7, 8001)
    np.testing.assert_allclose(trapezoid(law.conditional_density(PLACES, y), y, axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_the_conditional_modes_are_the_peaks_of_the_density_on_a_fine_grid(law):
    y = np.linspace(-2, 5, 14_001)
    density = law.conditional_density(PLACES, y)
    for modes, p in zip(law.mode_table(PLACES), density, strict=True):
        inner = p[1:-1]
        peaks = y[1:-1][(inner > p[:-2]) & (inner >= p[2:]) & (inner > 1e-9)]
        np.testing.assert_allclose(modes[np.isfinite(modes)], peaks, atol=1e-3)


def test_overlapping_branches_share_a_mode_that_the_paper_counts_twice():
    assert np.isfinite(CLOSE.mode_table(np.array([0.75]))).sum() == 1
    assert CLOSE.paper_table(np.array([0.75])).tolist() == [[0.0, 0.3]]


@pytest.mark.parametrize(
    ("x", "modes"),
    [(0.1, [3]), (0.4, [2, 3]), (0.5, [2, 3]), (0.51, [2]), (0.59, [2]), (0.6, [1, 2]), (0.7, [1, 2]), (0.71, [1])],
)
def test_the_three_steps_have_the_paper_s_piecewise_set(x, modes):
    table = THREE_COMPONENT.paper_table(np.array([x]))[0]
    assert table[np.isfinite(table)].tolist() == modes


def test_the_waves_are_the_paper_s_curves():
    wave = 0.5 * np.sin(3 * np.pi * PLACES)
    np.testing.assert_allclose(SINUSOID.paper_table(PLACES), np.stack([wave, 1.5 + wave], axis=1), atol=1e-12)


def test_outside_every_interval_there_is_no_mode():
    x = np.array([-0.5, 1.5])
    assert np.isnan(THREE_COMPONENT.mode_table(x)).all()
    assert np.isnan(THREE_COMPONENT.paper_table(x)).all()
    assert (THREE_COMPONENT.conditional_density(x, np.linspace(0, 4, 9)) == 0).all()


@pytest.mark.parametrize(
    ("name", "n", "sizes"), [("sinusoid", 201, [100, 101]), ("three_component", 200, [66, 66, 68])]
)
def test_the_last_branch_takes_the_rest(name, n, sizes, seed):
    assert np.bincount(load_dataset(name, n=n, seed=seed).labels).tolist() == sizes


@pytest.mark.parametrize("name", datasets_of("regression"))
def test_the_draws_follow_their_law(name, seed, flake_rate, certain):
    data, law = load_dataset(name, n=30_000, seed=seed), LAWS[name]
    for number, (curve, (low, high)) in enumerate(zip(law.curves, law.intervals, strict=True)):
        mine = data.labels == number
        x, residual = data.x[mine], data.y[mine] - curve(data.x[mine])
        assert stats.kstest(x, stats.uniform(low, high - low).cdf).pvalue > flake_rate
        assert stats.kstest(residual, stats.norm(0, law.spread).cdf).pvalue > flake_rate
        for factor in (2 / 3, 3 / 2):
            assert stats.kstest(residual, stats.norm(0, factor * law.spread).cdf).pvalue < certain


@pytest.mark.parametrize("name", datasets_of("regression"))
def test_the_box_holds_the_branches_with_room(name):
    info = DATASETS[name]
    (x_low, x_high), (low, high) = info.box
    modes = LAWS[name].mode_table(np.linspace(x_low, x_high, 101))
    assert np.nanmin(modes) > low + 2 * LAWS[name].spread
    assert np.nanmax(modes) < high - 2 * LAWS[name].spread


def test_a_data_set_tells_its_conditional_modes(seed):
    data = load_dataset("three_component", n=60, seed=seed)
    np.testing.assert_allclose(data.conditional_modes(0.45), [2.0, 3.0], atol=1e-4)
    one, two = data.conditional_modes(np.array([0.1, 0.65]))
    assert (len(one), len(two)) == (1, 2)
    assert np.array_equal(data.points, np.stack([data.x, data.y], axis=1))


def test_other_data_have_no_predictor_and_no_conditional_modes(corners):
    for ask in (lambda: corners.x, lambda: corners.y):
        with pytest.raises(DataError, match="no predictor and response"):
            ask()
    with pytest.raises(DataError, match="no known conditional modes"):
        corners.conditional_modes(0.5)
