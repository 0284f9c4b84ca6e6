"""What holds for every merge."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from dpgrams_core.numerics.merging import group_means, merge, radius_groups, ward_groups, weighted_ward_groups

# Whole coordinates have exact distances, so that a point at exactly the radius is no matter of rounding.
tables = st.tuples(st.integers(1, 12), st.integers(1, 3)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(-9, 9).map(float))
)
radii = st.sampled_from([0.5, 1.0, 1.5, 3.0, 7.0])


def as_partition(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def as_set(points):
    return sorted(np.round(points, 9).tolist())


@given(points=tables, radius=radii)
def test_groups_are_exactly_the_chains_within_the_radius(points, radius):
    labels = radius_groups(points, radius)
    near = cdist(points, points) <= radius
    same = labels[:, None] == labels[None, :]
    assert (same | ~near).all()  # whoever is near is together
    reach = np.linalg.matrix_power(near.astype(int), len(points)) > 0
    assert np.array_equal(same, reach)  # and nobody else is


@given(points=tables, radius=radii, data=st.data())
def test_the_order_of_the_points_does_not_matter(points, radius, data):
    order = data.draw(st.permutations(range(len(points))))
    assert as_set(merge(points[order], radius, None)) == as_set(merge(points, radius, None))


@given(points=tables, radius=radii)
def test_merging_again_changes_nothing_once_the_modes_are_apart(points, radius):
    modes = merge(points, radius, None)
    gaps = cdist(modes, modes)[np.triu_indices(len(modes), 1)]
    again = merge(modes, radius, None)
    if not len(gaps) or gaps.min() > radius + 1e-9:
        assert as_set(again) == as_set(modes)
    else:  # the mean of a chain may come close to another mode; then the second merge must join them
        assert len(again) < len(modes) or gaps.min() > radius - 1e-9


@given(points=tables, radius=radii)
def test_a_wider_radius_never_gives_more_groups(points, radius):
    assert len(merge(points, 2 * radius, None)) <= len(merge(points, radius, None)) <= len(points)


@given(points=tables, radius=radii)
def test_means_lie_between_their_points_and_keep_the_centre(points, radius):
    labels = radius_groups(points, radius)
    means = group_means(points, labels)
    assert (means >= points.min(axis=0) - 1e-12).all()
    assert (means <= points.max(axis=0) + 1e-12).all()
    centre = np.bincount(labels) @ means / len(points)
    np.testing.assert_allclose(centre, points.mean(axis=0), atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 30), count=st.integers(1, 10))
def test_ward_gives_the_asked_number_in_any_order(seed, size, count):
    # Random real coordinates: with ties Ward's own order of merges is a choice.
    rng = np.random.default_rng(seed)
    points, order = rng.normal(size=(size, 2)), rng.permutation(size)
    labels = ward_groups(points, count)
    assert len(set(labels.tolist())) == min(size, count)
    assert as_partition(ward_groups(points[order], count)) == as_partition(labels[order])


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 25), count=st.integers(1, 8))
def test_weighted_ward_is_ward_with_repeated_points(seed, size, count):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(size, 2)), rng.integers(1, 9, size)
    mine = weighted_ward_groups(points, weights, count)
    if size > count:
        repeated = ward_groups(np.repeat(points, weights, axis=0), count)[np.cumsum(weights) - 1]
        assert as_partition(mine) == as_partition(repeated)
    else:
        assert len(set(mine.tolist())) == size
