"""Small examples of numerics, one of each function."""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.merging import merge
from dpgrams_core.numerics.rounding import draw_epsilon, running_sum, whitened_axes, whitening_error, with_rounding
from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.numerics.sketch import (
    SKETCH_SENSITIVITY,
    ReleasedSketch,
    choose_blocks,
    feature_sums,
    public_points,
    sketch_sensitivity,
)
from dpgrams_core.numerics.statistics import clopper_pearson, standard_error
from dpgrams_core.numerics.surface import surface_sensitivity


def test_constants():
    assert round(KERNELS["gaussian"].constants(2).i_0, 7) == 0.0388618


def test_merge():
    assert merge(np.array([[0.0], [0.1], [5.0]]), 0.5, None).ravel().tolist() == [0.05, 5.0]


def test_whitened_axes():
    axes, root = whitened_axes(np.ones((2, 2)))
    assert (axes.shape, root.round(6).tolist()) == ((2, 1), [1.414214])


def test_whitening_error():
    assert whitening_error(30) < 1e-8 < whitening_error(300)


def test_running_sum():
    assert running_sum(np.array([x]) for x in (1.0, 1e100, 1.0, -1e100)).tolist() == [2.0]


def test_with_rounding():
    sums = {"chunk": 20_000, "each": 1e-9, "numbers": 900, "multiplier": 4.2}
    assert 1 + 2e-9 < with_rounding(1.0, n=10**3, **sums) < with_rounding(1.0, n=10**6, **sums) < 1 + 1e-6


def test_draw_epsilon():
    assert 1 - draw_epsilon(1.0, 1000) < 1e-12


def test_rescaled():
    assert rescaled(
        np.array([[0.0, 4.0]]), np.array([[-4.0, 4.0]] * 2), np.array([[0.0, 100.0], [0.0, 9.0]])
    ).tolist() == [[50.0, 9.0]]


def test_choose_blocks():
    assert (choose_blocks(500, 6.0), choose_blocks(3_000, 6.0), choose_blocks(500_000, 6.0)) == (8, 16, 32)


def test_sketch_sensitivity():
    assert 0 < sketch_sensitivity(10**6, 32, 4.2) / SKETCH_SENSITIVITY - 1 < 1e-8


def test_public_points():
    assert public_points(np.array([[0.0, 2.0]]), 3).ravel().round(3).tolist() == [0.236, 1.472, 0.708]


def test_released_sketch():
    box = np.array([[0.0, 10.0]] * 4)
    sketch = ReleasedSketch(feature_sums(np.full((100, 4), 5.0), box, 2.0, 8), box, 2.0, 1.0, 100)
    assert sketch.value(np.array([[5.0] * 4])).round(2).tolist() == [100.0]


def test_standard_error():
    assert repr((standard_error([1.0, 3.0]), standard_error([1.0]))) == "(1.0, nan)"


def test_clopper_pearson():
    low, high = clopper_pearson(np.array([0, 50, 100]), 100, 0.025)
    assert [round(float(x), 3) for x in (low[1], high[1], high[0])] == [0.398, 0.602, 0.036]


def test_surface_sensitivity():
    box = np.array([[0.0, 10.0], [0.0, 10.0]])
    slack = [surface_sensitivity(n, box, 1.0, 4.2) / math.sqrt(2) - 1 for n in (10**3, 10**6)]
    assert 1e-9 < slack[0] < 1e-7 < slack[1] < 3e-7  # a million records are added by cells, whose series has an end
