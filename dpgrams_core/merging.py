"""Merging end points into modes: radius when their number is unknown, Ward when it is known."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

Array = np.ndarray


def radius_groups(points: Array, radius: float) -> Array:
    """Group number of each point: chains of points within ``radius`` of each other.

    Connected components, so the result does not depend on the order of the points.
    """
    pairs = KDTree(points).sparse_distance_matrix(KDTree(points), radius, output_type="coo_matrix")
    # Explicit zeros (coinciding points) must count as links.
    pairs.data[:] = 1
    _, labels = connected_components(pairs, directed=False)
    return np.asarray(labels)


def ward_groups(points: Array, count: int) -> Array:
    """Group number of each point for Ward's linkage cut at ``count`` groups."""
    if len(points) <= count:
        return np.arange(len(points))
    return np.asarray(fcluster(linkage(points, method="ward"), count, criterion="maxclust")) - 1


def group_means(points: Array, labels: Array) -> Array:
    """Mean of each group, ordered by group number."""
    counts = np.bincount(labels)
    sums = np.stack([np.bincount(labels, weights=column) for column in points.T], axis=1)
    return sums[counts > 0] / counts[counts > 0, None]


def merge(points: Array, radius: float, count: int | None) -> Array:
    """Merged modes as in sec:dp-grams: radius merge, or Ward when the count is known.

    >>> merge(np.array([[0.0], [0.1], [5.0]]), 0.5, None).ravel().tolist()
    [0.05, 5.0]
    """
    labels = radius_groups(points, radius) if count is None else ward_groups(points, count)
    return group_means(points, labels)
