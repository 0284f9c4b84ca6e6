"""Fast partial mean shift against the loop over every record: the same limits."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.naive import naive_partial_mean_shift
from dpgrams_core import load_dataset
from dpgrams_core.methods.baselines.regression import fast_partial_mean_shift


def drawn(name):
    def make(rng):
        data = load_dataset(name, n=100, seed=int(rng.integers(2**31)))
        return data.x, data.y

    return make


MAKERS = {
    "two waves": drawn("sinusoid"),
    "three steps": drawn("three_component"),
    "one cloud": lambda rng: (rng.uniform(0, 1, 80), rng.normal(0, 0.5, 80)),
    "heavy tails": lambda rng: (rng.uniform(0, 1, 80), 0.2 * rng.standard_t(2, 80)),
    "far from the origin": lambda rng: (50 + rng.uniform(0, 1, 80), 50 + rng.normal(0, 0.5, 80)),
    "repeated records": lambda rng: tuple(np.repeat(rng.uniform(0, 1, (2, 20)), 4, axis=1)),
    "few predictors": lambda rng: (rng.integers(0, 4, 80) / 3, rng.normal(0, 0.5, 80)),
    "alone and far": lambda rng: (np.linspace(0, 1, 20), np.append(rng.normal(0, 0.2, 19), 40.0)),
}


def flatness(x, y, h_x, h_y, place, at):
    """Slope of the map at a point: 0 for a sharp mode, 1 where a mode is about to vanish."""
    weights = np.exp(-0.5 * ((x - place) / h_x) ** 2 - 0.5 * ((y - at) / h_y) ** 2)
    weights /= weights.sum()
    return weights @ (y - weights @ y) ** 2 / h_y**2


@pytest.mark.parametrize(("h_x", "h_y"), [(0.05, 0.1), (0.15, 0.15), (0.1, 0.4), (1.0, 0.25)])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_the_limits_are_those_of_the_loop(make, h_x, h_y, rng):
    x, y = make(rng)
    expected = naive_partial_mean_shift(x, y, h_x, h_y, max_steps=20_000)
    ends = fast_partial_mean_shift(x, y, h_x, h_y)
    # A mode that is about to vanish is left out: there the loop itself is short of its limit, and its
    # partner may hide between two places of the grid.
    clear = np.array([flatness(x, y, h_x, h_y, *at) < 0.999 for at in zip(x, expected, strict=True)])
    assert clear.mean() > 0.9
    np.testing.assert_allclose(ends[clear], expected[clear], atol=1e-8 * max(1.0, float(np.abs(y).max())))


def test_some_of_the_records_as_starts(rng):
    x, y = MAKERS["two waves"](rng)
    starts = np.array([3, 50, 7])
    everyone = fast_partial_mean_shift(x, y, 0.1, 0.2)
    np.testing.assert_allclose(fast_partial_mean_shift(x, y, 0.1, 0.2, starts), everyone[starts], atol=1e-9)
