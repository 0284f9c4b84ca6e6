"""Merging end points into modes: radius when their number is unknown, Ward when it is known."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
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


def weighted_ward_groups(points: Array, weights: Array, count: int) -> Array:
    """As ``ward_groups`` with point i repeated ``weights[i]`` times, without holding the repeats.

    Nearest-neighbour chain: two groups that are each other's nearest may be merged at once, since in
    Ward's linkage no later merge can bring a third one closer.  Then the cheapest merges are kept.
    Cost O(k^2) time and O(k) memory for k distinct points.
    """
    centres, sizes = points.astype(float), weights.astype(float)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < len(points) - 1:
        chain = chain or [int(np.argmax(sizes > 0))]  # a size of 0 marks a group that was merged away
        last = chain[-1]
        cost = sizes * sizes[last] / (sizes + sizes[last]) * ((centres - centres[last]) ** 2).sum(axis=1)
        cost[(sizes == 0) | (np.arange(len(sizes)) == last)] = np.inf
        nearest = int(np.argmin(cost))
        if len(chain) > 1 and cost[chain[-2]] <= cost[nearest]:
            one, two = chain.pop(), chain.pop()
            merges.append((float(cost[two]), one, two))
            centres[one] = (sizes[one] * centres[one] + sizes[two] * centres[two]) / (sizes[one] + sizes[two])
            sizes[one], sizes[two] = sizes[one] + sizes[two], 0.0
        else:
            chain.append(nearest)
    kept = [(one, two) for _, one, two in sorted(merges)[: max(0, len(points) - count)]]
    ones, twos = (np.array([pair[side] for pair in kept], dtype=int) for side in (0, 1))
    links = coo_matrix((np.ones(len(kept)), (ones, twos)), shape=(len(points), len(points)))
    _, labels = connected_components(links, directed=False)
    return np.asarray(labels)


def group_means(points: Array, labels: Array, weights: Array | None = None) -> Array:
    """Mean of each group, ordered by group number; ``weights`` says how often each point counts."""
    weights = np.ones(len(points)) if weights is None else weights
    totals = np.bincount(labels, weights=weights)
    sums = np.stack([np.bincount(labels, weights=weights * column) for column in points.T], axis=1)
    return sums[totals > 0] / totals[totals > 0, None]


def merge(points: Array, radius: float, count: int | None) -> Array:
    """Merged modes as in sec:dp-grams: radius merge, or Ward when the count is known.

    >>> merge(np.array([[0.0], [0.1], [5.0]]), 0.5, None).ravel().tolist()
    [0.05, 5.0]
    """
    labels = radius_groups(points, radius) if count is None else ward_groups(points, count)
    return group_means(points, labels)
