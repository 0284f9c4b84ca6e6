"""Mean shift: its step, climbs by it, and merging their ends into modes (by Ward where their number is known)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from dpgrams_core.model.progress import checkpoint

Array = np.ndarray
FEW = 64  # points whose distances are looked at one by one


def limited_step(value: Array, gradient: Array, floor: Array | float, width: float | Array) -> Array:
    """A mean-shift step width^2 grad f / f (k, d), at most ``width`` long.

    Where the noisy value is below the floor, as where it is not positive, the step follows the gradient alone.
    """
    step = gradient * (np.asarray(width) ** 2 / np.maximum(value, floor))[:, None]
    size = np.linalg.norm(step, axis=1)
    return step * np.minimum(1.0, width / np.maximum(size, 1e-300))[:, None]


def climb(release: Any, starts: Array, steps: int, width: float, floor: Array | float) -> Array:
    """Paths (steps + 1, k, d) of mean shift on a released surface or sketch smoothed to ``width``."""
    path = [starts]
    for _ in range(steps):
        value, gradient, _ = release.heat(path[-1], width)
        path.append(path[-1] + limited_step(value, gradient, floor, width))
    return np.stack(path)


def climb_to_rest(shift: Callable[[Array], Array], starts: Array, still: float, most_steps: int) -> Array:
    """Where the starts (k, d) end by steps of ``shift``: each goes on until it moves at most ``still``."""
    at = starts.copy()
    moving = np.arange(len(at))
    for _ in range(most_steps):
        checkpoint()
        step = shift(at[moving])
        at[moving] += step
        moving = moving[np.linalg.norm(step, axis=1) > still]
        if len(moving) == 0:
            break
    return at


def radius_groups(points: Array, radius: float) -> Array:
    """Group number of each point: chains of points within ``radius`` of each other.

    Connected components, so the result does not depend on the order of the points.
    """
    if len(points) <= FEW:
        near = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1) <= radius**2
        labels = np.arange(len(points))
        while True:  # the smallest number among the neighbours, until nothing changes
            smallest = np.where(near, labels, len(points)).min(axis=1, initial=len(points))
            if np.array_equal(smallest, labels):
                return np.unique(labels, return_inverse=True)[1]
            labels = smallest
    trees = [scipy.spatial.KDTree(points) for _ in range(2)]
    pairs = trees[0].sparse_distance_matrix(trees[1], radius, output_type="coo_matrix")
    # Explicit zeros (coinciding points) must count as links.
    pairs.data[:] = 1
    _, labels = scipy.sparse.csgraph.connected_components(pairs, directed=False)
    return np.asarray(labels)


def ward_groups(points: Array, count: int) -> Array:
    """Group number of each point for Ward's linkage cut at ``count`` groups."""
    if len(points) <= count:
        return np.arange(len(points))
    hierarchy = scipy.cluster.hierarchy
    return np.asarray(hierarchy.fcluster(hierarchy.linkage(points, method="ward"), count, criterion="maxclust")) - 1


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
    links = scipy.sparse.coo_matrix((np.ones(len(kept)), (ones, twos)), shape=(len(points), len(points)))
    _, labels = scipy.sparse.csgraph.connected_components(links, directed=False)
    return np.asarray(labels)


def group_means(points: Array, labels: Array, weights: Array | None = None) -> Array:
    """Mean of each group, ordered by group number; ``weights`` says how often each point counts."""
    weights = np.ones(len(points)) if weights is None else weights
    totals = np.bincount(labels, weights=weights)
    sums = np.stack([np.bincount(labels, weights=weights * column) for column in points.T], axis=1)
    return sums[totals > 0] / totals[totals > 0, None]


def merge(points: Array, radius: float, count: int | None) -> Array:
    """Merged modes as in sec:dp-grams: radius merge, or Ward when the count is known."""
    labels = radius_groups(points, radius) if count is None else ward_groups(points, count)
    return group_means(points, labels)


def merge_reached(ends: Array, labels: Array, radius: float, count: int | None) -> Array:
    """``merge`` of all end points, given the distinct ones and which of them each start reaches.

    Ward weighs an end by the starts that reach it, as merging all end points would.
    """
    if count is None:
        return merge(ends, radius, None)
    reached = np.bincount(labels, minlength=len(ends))
    return group_means(ends, weighted_ward_groups(ends, reached, count), reached)
