"""From the end points of DP-PMS to a curve: post-processing, which reads nothing but what was released."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray


def significant(ends: Array, height: Array | None, least: float | None) -> Array:
    """The end points whose released height is at least ``least``, or the highest one where none is.

    Free (post-processing) where the heights were released, so in ``tight`` only; elsewhere all end points stay.
    """
    if height is None or least is None:
        return ends
    return ends[height >= min(least, float(height.max()))]


def cleanup(ends: Array, radius: float) -> Array:
    """Fixed-radius cleanup (app:dp-pms-more): lonely end points go, the others take the mean response around them.

    "Around" is within ``radius`` in the unit square.  Where every end point is lonely, all are kept.

    >>> cleanup(np.array([[0.1, 0.50], [0.15, 0.54], [0.2, 0.9]]), 0.1).tolist()
    [[0.1, 0.52], [0.15, 0.52]]
    """
    near = cdist(ends, ends) <= radius
    kept = near.sum(axis=1) > 1
    if not kept.any():
        return ends
    means = (near @ ends[:, 1]) / near.sum(axis=1)
    return np.stack([ends[:, 0], means], axis=1)[kept]


def curve_at(ends: Array, places: Array, reach: float, radius: float) -> Array:
    """Rows (x, y): at each place the end points within ``reach``, responses in chains of ``radius`` merged to means.

    >>> curve_at(np.array([[0.0, 0.1], [0.1, 0.2], [0.1, 0.9]]), np.array([0.05, 0.5]), 0.1, 0.15).round(3).tolist()
    [[0.05, 0.15], [0.05, 0.9]]
    """
    rows = [np.empty((0, 2))]
    for x in places:
        responses = np.sort(ends[np.abs(ends[:, 0] - x) <= reach * (1 + 1e-9), 1])
        if len(responses):
            groups = np.split(responses, np.flatnonzero(np.diff(responses) > radius) + 1)
            rows.append(np.array([(x, group.mean()) for group in groups]))
    return np.concatenate(rows)
