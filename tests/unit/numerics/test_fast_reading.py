"""Reading modes off a surface in few steps against the slow way, which is kept in benchmarks/slow_reading.py."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import slow_reading
from dpgrams_core import load_dataset
from dpgrams_core.methods.functional.modes import FunctionalSpec, release_surface
from dpgrams_core.numerics.bumps import Bumps, _Map, _Search, find_bumps
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases
from dpgrams_core.privacy.noise import SimulationNoise

BOX = np.array([[-8.0, 8.0], [-3.0, 9.0], [0.0, 5.0]])


def random_surface(d, rng):
    shape = [len(basis.whitening) for basis in box_bases(BOX[:d], 1.2)]
    return ReleasedSurface(30 * rng.normal(size=shape), BOX[:d], 1.2, 6.0, 1_000)


def random_bumps(k, d, rng):
    places = rng.uniform(BOX[:d, 0], BOX[:d, 1], (k, d))
    return Bumps(places, rng.uniform(0.2, 2, k), rng.uniform(10, 300, k))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 5])
def test_value_slope_and_bend(d, k, rng):
    surface = random_surface(d, rng)
    x, width = rng.uniform(-2, 4, (k, d)), 1.2 + rng.random(k)
    for wish in (None, 1.5, width):
        for fast, slow in zip(surface.heat(x, wish), slow_reading.slow(surface).heat(x, wish), strict=True):
            assert fast.shape == slow.shape
            np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("apart", [True, False])
def test_the_highest_place_that_is_left(d, apart, rng):
    surface = random_surface(d, rng)
    for k in (0, 1, 4):
        bumps = random_bumps(k, d, rng)
        fast = _Search(surface, 0.9).best(bumps, apart)
        slow = slow_reading.Search(surface, 0.9).best(bumps, apart)
        np.testing.assert_allclose(fast[0], slow[0], rtol=1e-12)
        assert fast[1].tolist() == slow[1].tolist()
        assert fast[2] == pytest.approx(slow[2])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_what_bumps_add_on_a_grid(d, rng):
    surface = random_surface(d, rng)
    many = [random_bumps(3, d, rng) for _ in range(2)]
    tables = [np.stack([getattr(bumps, name) for bumps in many]) for name in ("centres", "spreads", "records")]
    fast = _Map(surface, 0.5, 0.9 * np.array((0.3, 0.7, 1.0, 1.4))).of_bumps(*tables)
    np.testing.assert_allclose(fast, slow_reading.Map(surface, 0.9).of_bumps(*tables), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n", [300, 4_000])
@pytest.mark.parametrize("count", [None, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_same_bumps_are_found_weak_ones_too(n, count, epsilon, seed):
    data = load_dataset("four_corners", n=n, seed=seed)
    surface = release_surface(data, FunctionalSpec(epsilon=epsilon), SimulationNoise(seed)).surface
    fast, slow = find_bumps(surface, count, 1.0), slow_reading.find_bumps(slow_reading.slow(surface), count, 1.0)
    # A long fit of many bumps under one peak stops where rounding lets it: its loss is flat there.
    np.testing.assert_allclose(fast.centres, slow.centres, atol=1e-3)
    np.testing.assert_allclose(fast.significance, slow.significance, rtol=1e-3)
    if count is not None:
        np.testing.assert_allclose(fast.centres, slow.centres, atol=1e-8)
