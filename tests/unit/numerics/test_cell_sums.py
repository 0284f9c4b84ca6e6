"""Sums by cells against the kernel between every record and every node, and their error against the stated bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core.numerics import cell_sums, surface
from dpgrams_core.numerics.cell_sums import CELL, REMAINDER, cell_counts, cell_error, cell_sum, derivatives
from dpgrams_core.numerics.rounding import running_sum
from dpgrams_core.numerics.surface import CHUNK, SPACING, _direct_sum, box_bases, coefficients, surface_sensitivity

BOXES = {
    "line": np.array([[-3.0, 9.0]]),
    "square": np.array([[0.0, 10.0]] * 2),
    "oblong": np.array([[1e6, 1e6 + 4.0], [-50.0, 40.0]]),
    "one cell": np.array([[0.0, 0.01]] * 2),
}


def naive(points, bases):
    """The reference: one exponential for every record and node."""
    return running_sum(_direct_sum(points[start : start + 1_000], bases) for start in range(0, len(points), 1_000))


def places_in(box, n, rng):
    """Records all over a box, on its rim, on the borders of cells and in one pile."""
    side = box[:, 1] - box[:, 0]
    even = box[:, 0] + rng.random((n, len(box))) * side
    pile = np.clip(box.mean(axis=1) + 1e-9 * rng.normal(size=even.shape), box[:, 0], box[:, 1])
    rim = np.where(rng.random(even.shape) < 0.5, box[:, 0], box[:, 1])
    return np.choose(rng.integers(3, size=(n, 1)), [even, pile, rim])


@pytest.mark.parametrize("name", BOXES)
def test_they_are_the_sums_over_all_pairs(name, rng):
    box, n = BOXES[name], 3 * CHUNK
    bases = box_bases(box, 1.0)
    points = places_in(box, n, rng)
    nodes = [len(basis.nodes) for basis in bases]
    cells = cell_counts(nodes, SPACING)
    found, wanted = coefficients(points, bases), naive(points, bases)
    assert found.shape == wanted.shape
    each = np.linalg.norm(found - wanted) / n
    assert each < cell_error(nodes, cells, n)
    assert each < 4 * REMAINDER + 1e-10
    assert not np.array_equal(found, wanted)  # they were computed another way


def test_a_record_at_the_rim_of_a_cell_is_off_by_no_more_than_the_remainder(rng):
    bases = box_bases(BOXES["square"], 1.0)
    cells = cell_counts([len(basis.nodes) for basis in bases], SPACING)
    low, high = (np.array([basis.nodes[end] for basis in bases]) for end in (0, -1))
    tables = [derivatives(b.nodes, b.whitening, b.bandwidth, count) for b, count in zip(bases, cells, strict=True)]
    borders = low + (high - low) / cells * rng.integers(1, min(cells), size=(40, 1))
    errors = [
        np.linalg.norm(cell_sum(record[None], low, high, tables) - _direct_sum(record[None], bases))
        for record in borders
    ]
    assert REMAINDER / 100 < max(errors) < cell_error([len(b.nodes) for b in bases], cells, 1)
    assert max(high - low) / min(cells) <= CELL * (1 + 1e-12)


def test_fewer_terms_would_not_keep_the_bound(rng, monkeypatch):
    box = BOXES["square"]
    points, bases = places_in(box, CHUNK + 1, rng), box_bases(box, 1.0)
    wanted = naive(points, bases)
    monkeypatch.setattr(cell_sums, "TERMS", 5)
    assert np.linalg.norm(coefficients(points, bases) - wanted) > surface_sensitivity(len(points), box, 1.0, 4.2) - 1


def test_records_beyond_the_nodes_missing_ones_and_infinite_ones(rng):
    box = BOXES["square"]
    bases = box_bases(box, 1.0)
    points = rng.normal(5, 4, (2 * CHUNK, 2))
    points[:5] = [[np.nan, 1], [1, np.nan], [np.inf, 3], [-np.inf, -np.inf], [1e150, 2]]
    rest = points[5:]
    within = ((rest >= -1) & (rest <= 11)).all(axis=1)
    assert 0.1 < within.mean() < 0.9
    np.testing.assert_allclose(coefficients(points, bases), naive(rest, bases), atol=1e-6, rtol=0)
    everywhere = np.full((CHUNK + 1, 2), 1e150)
    assert not coefficients(everywhere, bases).any()


@pytest.mark.parametrize("other", [np.array([9.9, 0.1]), np.array([np.nan, 3.0])], ids=["elsewhere", "missing"])
def test_replacing_one_of_many_records_stays_within_the_sensitivity(other, rng):
    box = BOXES["square"]
    bases = box_bases(box, 1.0)
    points = places_in(box, 150_000, rng)
    points[140_000] = 0.0
    second = points.copy()
    second[140_000] = other
    change = np.linalg.norm(coefficients(points, bases) - coefficients(second, bases))
    sensitivity = surface_sensitivity(len(points), box, 1.0, 4.2)
    alone = _direct_sum(points[140_000][None], bases) - _direct_sum(second[140_000][None], bases)
    assert change <= sensitivity
    assert abs(change - np.linalg.norm(alone)) < (sensitivity - math.sqrt(2)) / 2


def test_all_other_chunks_hold_the_same_doubles(rng, monkeypatch):
    seen = []
    monkeypatch.setattr(surface, "ROWS", 5_000)
    monkeypatch.setattr(surface, "running_sum", lambda parts, shape=(): seen.append(list(parts)) or seen[-1][0])
    points, bases = rng.uniform(0, 10, (CHUNK + 5_000, 2)), box_bases(BOXES["square"], 1.0)
    second = points.copy()
    second[7_000] = 1.0
    coefficients(points, bases)
    coefficients(second, bases)
    assert [np.array_equal(one, two) for one, two in zip(*seen, strict=True)] == [True, False, True, True, True]


@pytest.mark.slow
def test_too_many_cells_are_none(rng):
    box = np.array([[0.0, 200.0]] * 2)
    bases = box_bases(box, 1.0)
    assert cell_counts([len(basis.nodes) for basis in bases], SPACING) is None
    points = rng.uniform(0, 200, (CHUNK + 1, 2))
    whole = running_sum(_direct_sum(points[start : start + CHUNK], bases) for start in range(0, len(points), CHUNK))
    assert np.array_equal(coefficients(points, bases), whole)
