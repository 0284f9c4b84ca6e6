"""Small examples of methods, one of each function."""

from __future__ import annotations

import numpy as np

from dpgrams_core.methods.baselines.kmeans import library_budget
from dpgrams_core.methods.baselines.mean_shift import default_bandwidth
from dpgrams_core.methods.baselines.regression import fast_partial_mean_shift
from dpgrams_core.methods.registry import METHODS


def test_library_budget():
    plane, six = (library_budget(1.0, clusters=5, n=801, d=d) for d in (2, 6))
    assert (round(plane.add_or_remove, 3), round(six.add_or_remove, 3)) == (0.905, 1.047)


def test_default_bandwidth():
    points = np.array([[-1.0, 1.0], [1.0, -1.0]] * 32)  # 64 records, each column with standard deviation 1
    assert (round(default_bandwidth(points, True), 6), round(default_bandwidth(points, False), 6)) == (0.225, 0.5)


def test_fast_partial_mean_shift():
    x, y = np.zeros(4), np.array([0.0, 0.2, 5.0, 5.2])
    assert fast_partial_mean_shift(x, y, 1.0, 1.0).round(3).tolist() == [0.1, 0.1, 5.1, 5.1]


def test_status_with():
    assert (METHODS["dp_grams"].status_with({"calibration": "tight"}), METHODS["kmeans"].status_with({})) == (
        "proven",
        "none",
    )
