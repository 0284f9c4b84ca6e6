"""Free readings of a release: whatever the page offers, the answer is places, never an error."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core import Dataset, run
from dpgrams_core.methods.functional.modes import release_surface
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.model.settings import FACTORS
from dpgrams_core.numerics import bumps as bump_posterior
from dpgrams_core.own_data import postprocess as readings
from dpgrams_core.own_data.postprocess import released_clusters, released_modes
from dpgrams_core.privacy.noise import SimulationNoise
from pages._ui.my_data.results import COUNTS

UPWARD = [factor for factor in FACTORS if factor >= 1]
ASKED = [count for count in COUNTS if isinstance(count, int)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """What is tested does not depend on how long the sampler runs or how finely peaks are looked for."""
    monkeypatch.setattr(bump_posterior, "SWEEPS", 4)
    monkeypatch.setattr(bump_posterior, "BURN_IN", 1)
    monkeypatch.setattr(readings, "PLACES", 200)


def records(d, n, rng):
    return Dataset(name="nobody", kind="modes", points=rng.uniform(-4, 4, (n, d)), box=[(-4, 4)] * d)


def noise_alone(d, n, rng, **settings):
    """A release in which nothing stands above the noise, with nothing read off it yet."""
    spec = FunctionalSpec(epsilon=0.02, **settings)
    return release_surface(records(d, n, rng), spec, SimulationNoise(int(rng.integers(2**31))))


def check(found, count, d):
    assert found.places.shape == (len(found.significance), d)
    assert len(found.places) <= count
    assert np.isfinite(found.places).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", UPWARD)
@pytest.mark.parametrize("d", [1, 2])
def test_any_number_of_peaks_at_any_bandwidth_of_a_release(d, scale, rng):
    release = noise_alone(d, 12 if scale > 2 else 400, rng, bandwidth_scale=scale)
    for count in ASKED:
        found = released_modes(release, 1.0, count)
        check(found, count, d)
        assert len(found.places) >= min(count, 2)


@pytest.mark.parametrize("d", [1, 2])
def test_any_number_of_peaks_at_any_smoothing(d, rng):
    release = noise_alone(d, 400, rng)
    for factor in UPWARD:
        for count in ASKED:
            check(released_modes(release, factor, count), count, d)


@pytest.mark.parametrize("n", [12, 400])
def test_all_defaults_and_the_most_that_the_page_asks_for(n, rng):
    release = run("functional", records(1, n, rng), epsilon=0.5, seed=0)
    check(released_modes(release, 1.0, max(ASKED)), max(ASKED), 1)


def test_more_modes_than_the_box_has_room_for(rng):
    release = run("functional", records(1, 60, rng), epsilon=0.5, seed=0, n_modes=40)
    assert 2 <= len(release.modes) == len(release.significance) < 40
    assert ((release.modes >= -4) & (release.modes <= 4)).all()


def test_more_modes_than_a_sketch_has_room_for(rng):
    spec = FunctionalSpec(epsilon=0.5, bandwidth=6.0)
    found = released_modes(release_surface(records(4, 60, rng), spec, SimulationNoise(0)), 1.0, 10)
    check(found, 9, 4)
    assert len(found.places)


@pytest.mark.parametrize("components", [None, 2])
def test_a_release_of_clusters_read_as_modes_shows_modes_and_no_centres(components, rng):
    points = np.concatenate([rng.normal(place, 0.3, (1500, 3)) for place in (-2, 2)])
    data = Dataset(name="two", kind="clusters", points=points, box=[(-4, 4)] * 3)
    release = run("functional_c", data, epsilon=4.0, seed=0, n_clusters=5, components=components)
    assert len(release.modes) == 5
    for found in (released_modes(release), released_clusters(release, 2, regions=True)):
        assert np.sort(found.places[:, 0]) == pytest.approx([-2, 2], abs=0.3)
        assert found.covariances.shape == (2, 3, 3)
    assert released_modes(release).significance.min() > 5


def test_clusters_of_noise_alone_are_none(rng):
    found = released_clusters(noise_alone(2, 40, rng), 3, regions=True)
    assert found.places.shape == (0, 2)
