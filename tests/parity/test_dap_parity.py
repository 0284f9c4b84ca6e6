"""Counts by the tree and by cells against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.methods.dp_grams import starts
from dpgrams_core.methods.dp_grams.starts import ball_counts, counts_by_cells, naive_counts, public_grid


@pytest.fixture(autouse=True, params=[starts.MANY, 0], ids=["tree", "cells"])
def way(request, monkeypatch):
    """In the plane both ways, whatever the number of records."""
    monkeypatch.setattr(starts, "MANY", request.param)


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


@pytest.mark.parametrize("radius", [1e-6, 0.1, 0.5, 1.0, 3.0, 100.0])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-3, 10.0), (1e4, 1e5)])
def test_cells_count_as_all_distances_do(radius, scale, offset, rng):
    """Also on a lattice, where many records lie on the very edge of a ball or of a cell, and far outside all balls."""
    for spread in (rng.normal, lambda *shape: 0.5 * rng.integers(-4, 5, shape[-1])):
        points, candidates = (scale * (offset + 3 * spread(0, 1, (count, 2))) for count in (300, 7))
        counts = counts_by_cells(points, candidates, scale * radius)
        assert np.array_equal(counts, naive_counts(points, candidates, scale * radius))


def test_a_million_records_are_counted_by_cells(rng, monkeypatch):
    seen = []
    monkeypatch.setattr(starts, "counts_by_cells", lambda *asked: seen.append(asked) or np.zeros(1))
    monkeypatch.setattr(starts, "MANY", 200)
    ball_counts(np.zeros((201, 2)), np.zeros((1, 2)), 1.0)
    ball_counts(np.zeros((200, 2)), np.zeros((1, 2)), 1.0)
    ball_counts(np.zeros((201, 3)), np.zeros((1, 3)), 1.0)
    assert len(seen) == 1
