"""Counts by the tree against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.methods.dp_grams.starts import ball_counts, naive_counts, public_grid


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.3, 1.0, 6.0])
def test_ball_counts(d, radius, rng):
    points = rng.normal(0, 1.5, (300, d))
    candidates = public_grid(np.array([[-3.0, 3.0]] * d), 1.0)
    counts = ball_counts(points, candidates, radius)
    assert np.array_equal(counts, naive_counts(points, candidates, radius))
    assert counts.sum() > 0


def test_records_on_the_border_count():
    # Halves have exact squares, so "at exactly the radius" is not a matter of rounding.
    points = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, -1.5], [2.0, 0.0]])
    centre = np.zeros((1, 2))
    assert ball_counts(points, centre, 1.5).tolist() == naive_counts(points, centre, 1.5).tolist() == [3]


def test_repeated_records_count_each_time():
    points = np.zeros((500, 2))
    assert ball_counts(points, np.array([[0.0, 0.5], [3.0, 3.0]]), 1.0).tolist() == [500, 0]
