"""Merging: hand examples of both rules."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.numerics.merging import group_means, merge, radius_groups, ward_groups, weighted_ward_groups


def column(*values):
    return np.array(values, dtype=float)[:, None]


def test_chains_of_close_points_become_one_mode():
    assert merge(column(0, 1, 2, 9), 1.0, None).ravel().tolist() == [1.0, 9.0]
    assert merge(column(0, 1, 2, 9), 0.99, None).ravel().tolist() == [0.0, 1.0, 2.0, 9.0]


def test_coinciding_points_are_one_group():
    assert radius_groups(column(3, 3, 3), 1e-9).tolist() == [0, 0, 0]
    assert merge(column(3, 3, 3), 0.5, None).ravel().tolist() == [3.0]


def test_a_single_point_is_its_own_mode():
    assert merge(np.array([[1.0, 2.0]]), 0.5, None).tolist() == [[1.0, 2.0]]
    assert merge(np.array([[1.0, 2.0]]), 0.5, 4).tolist() == [[1.0, 2.0]]


def test_ward_gives_the_known_number_of_groups():
    points = column(0.0, 0.1, 5.0, 5.1, 5.3, 20.0)
    assert sorted(merge(points, 99.0, 3).ravel().tolist()) == pytest.approx([0.05, 5.1333333, 20.0])
    assert len(merge(points, 99.0, 1)) == 1
    assert len(merge(points, 99.0, 6)) == 6
    assert len(merge(points, 99.0, 9)) == 6  # fewer points than modes: all of them


def test_ward_ignores_the_radius_and_the_radius_ignores_ward():
    points = column(0, 1, 10)
    assert len(merge(points, 0.01, 2)) == 2
    assert len(merge(points, 100.0, None)) == 1


def test_group_means_by_hand():
    points = np.array([[0.0, 0.0], [2.0, 4.0], [5.0, 5.0]])
    assert group_means(points, np.array([0, 0, 1])).tolist() == [[1.0, 2.0], [5.0, 5.0]]
    assert group_means(points, np.array([2, 2, 0])).tolist() == [[5.0, 5.0], [1.0, 2.0]]  # in order of the numbers
    weighted = group_means(points, np.array([0, 0, 1]), np.array([3, 1, 7]))
    assert weighted.tolist() == [[0.5, 1.0], [5.0, 5.0]]


def test_weights_move_the_cut():
    # Unweighted, 4 joins 5 first and then 0 stands alone; a heavy 4 and 5 are costly to join.
    points = column(0.0, 4.0, 5.5)
    assert len(set(ward_groups(points, 2)[1:].tolist())) == 1
    heavy = weighted_ward_groups(points, np.array([1, 100, 100]), 2)
    assert heavy[0] == heavy[1] != heavy[2]
    light = weighted_ward_groups(points, np.ones(3), 2)
    assert light[1] == light[2] != light[0]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_weighted_ward_never_gives_more_groups_than_points(count):
    groups = weighted_ward_groups(column(1.0, 2.0, 7.0), np.ones(3), count)
    assert len(set(groups.tolist())) == min(count, 3)
