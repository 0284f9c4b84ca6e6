"""Regions of cluster centres: what their draws are for, units, and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

import dpgrams_core as dg
from dpgrams_core.numerics import centres
from dpgrams_core.numerics.centres import centre_covariances

TRUTH = np.array([[-2.0, -2.0], [2.0, 2.0], [2.0, -2.0]])


def release_of(epsilon: float, n: int = 1_800, seed: int = 0) -> dg.Release:
    points = np.concatenate([np.random.default_rng(seed).normal(centre, 0.4, (n // 3, 2)) for centre in TRUTH])
    data = dg.Dataset(name="three", kind="clusters", points=points, box=[(-4, 4)] * 2)
    return dg.run("functional_c", data, epsilon=epsilon, n_clusters=3, seed=seed)


def test_centres_have_regions_and_the_population_is_less_certain() -> None:
    release = release_of(2.0)
    noise, both, halves = release.noise_covariances, release.mode_covariances, release.half_widths
    assert noise is not None
    assert both is not None
    assert halves is not None
    assert noise.shape == both.shape == (3, 2, 2)
    assert (np.linalg.eigvalsh(noise) > 0).all()
    assert (np.trace(both, axis1=1, axis2=2) > np.trace(noise, axis1=1, axis2=2)).all()
    np.testing.assert_allclose(halves, 1.959964 * np.sqrt(np.diagonal(both, axis1=1, axis2=2)))
    assert release.noise_chances is None  # a centre need not stand out


def test_the_same_release_has_the_same_regions_whatever_was_drawn_before() -> None:
    one, two = (release_of(1.0, seed=4).mode_covariances for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_less_noise_makes_them_smaller() -> None:
    few, many = (release_of(epsilon, n=600).noise_covariances for epsilon in (0.5, 8.0))
    assert np.trace(few, axis1=1, axis2=2).mean() > 4 * np.trace(many, axis1=1, axis2=2).mean()


def test_one_draw_that_ended_elsewhere_does_not_make_a_region_and_two_do() -> None:
    away = np.random.default_rng(0).normal(0, 0.01, (centres.DRAWS, 1, 2))
    away[0] = 5.0
    assert np.trace(centres._without_farthest(away)[0]) < 0.001
    away[1] = 5.0
    assert np.trace(centres._without_farthest(away)[0]) > 1.0


def test_a_normal_law_gets_its_covariance() -> None:
    rng, d = np.random.default_rng(0), 2
    held = []
    for _ in range(4_000):
        covariance = centres._widening(d) * centres._without_farthest(rng.normal(0, 1, (centres.DRAWS, 1, d)))[0]
        error = rng.normal(0, 1, d)
        held.append(error @ np.linalg.solve(covariance, error) <= 5.991)
    assert np.mean(held) == pytest.approx(0.95, abs=0.012)  # 3.5 standard errors


def test_kmeans_has_one_thread_however_many_points_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, fit = [], KMeans.fit

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(*arguments, **options)

    monkeypatch.setattr(KMeans, "fit", watched)
    with threadpool_limits(2):  # as on a machine with two cores; the tests themselves have one
        for n in (10, 30_000):
            centres.fitted_kmeans(np.arange(n)[:, None] % 3.0, 3, 1, 0)
    assert set(seen) == {1}


@pytest.mark.filterwarnings("error")
def test_a_centre_that_is_nearest_to_no_place_has_a_region_too() -> None:
    points = np.random.default_rng(0).normal(0, 0.1, (2_000, 1))
    data = dg.Dataset(name="one", kind="clusters", points=points, box=[(-4, 4)])
    release = dg.run("functional_c", data, epsilon=1.0, n_clusters=10, seed=0)
    assert np.isfinite(release.mode_covariances).all()


def test_no_centre_has_no_region() -> None:
    release = release_of(2.0)
    assert release.bare_surface is not None
    for each in centre_covariances(release.bare_surface, np.empty((0, 2))):
        assert each.shape == (0, 2, 2)
