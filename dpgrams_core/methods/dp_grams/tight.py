"""DP-GRAMS with a proof, round after round, and what is read off its rounds (the ``tight`` calibration).

Only two things here see records: the draws of the start (starts.py) and the kernel sums of a round (rounds.py), each
with its sensitivity argument there, and one price for both (privacy/accountants.py).  Where a round looks is decided by
what the earlier ones released.  Everything else is post-processing of released numbers, and free:

- All rounds so far are read together, as noisy linear observations of one function (numerics/pooled.py), and the points
  climb on that estimate: p and grad p, cut and floored as in eq:stabilized-score.
- The estimate at an end point is its *height*.  Ends below the noise are dropped; near ones are one mode, placed at
  their mean with heights as weights.  Where the number of modes is known the highest are kept, elsewhere those that a
  valley parts from every higher one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpgrams_core.methods.dp_grams.plan import TIGHT, Plan
from dpgrams_core.methods.dp_grams.rounds import block_sums, clip_and_floor, densities, joint_covariance, round_grid
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.bandwidths import REFERENCE_SPREAD, mean_side
from dpgrams_core.numerics.centres import K_MEANS_STARTS, fitted_kmeans
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.numerics.surface import box_bases, coefficients, functionals
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
VALLEY_PLACES = 13  # on the way from one mode to another
LEAST_WEIGHT = 1.0  # units of noise above which a place counts for a centre (benchmarks/pilot_reading.py)
Reading = Callable[[Array, PooledRounds, int | None], tuple[Array, Array]]


@dataclass(frozen=True)
class Climbed:
    """What the rounds gave: paths (T+1, k, d), the rounds read together, and the share of cut steps."""

    path: Array
    pooled: PooledRounds
    clipped_share: float


def prior_length(h: float, box: Array) -> float:
    """The length over which a kernel sum varies: a bandwidth, and the spread of a usual bump."""
    return math.hypot(h, TIGHT.prior_spread * REFERENCE_SPREAD * mean_side(box))


def pooled_score(chosen: Plan, pooled: PooledRounds, at: Array) -> tuple[Array, float]:
    """The score of the estimate so far, cut and floored, and the share of cut ones."""
    assert chosen.gradient_clip is not None  # the plan fills both
    assert chosen.density_floor is not None
    height, slope = pooled.at(at)
    found = densities(np.concatenate([height, slope.ravel()]), at.shape[1], chosen.bandwidth.value, chosen.batch_size)
    return clip_and_floor(*found, chosen.gradient_clip, chosen.density_floor, of_score=True)


def climb_rounds(chosen: Plan, points: Array, box: Array, starts: Array, noise: Noise) -> Climbed:
    """The rounds from the drawn starts: release, read all so far together, climb a few steps.

    Sensitivity: one record of the batch moves the sums of a round by at most ``chosen.sensitivity`` in the norm of its
    noise, wherever its points are (rounds.py); the points are functions of earlier releases.

    Notes
    -----
    Cost O(T (batch_size k d + (k (1 + d))^3) + (T k (1 + d))^3) time; with many records these are added once, on a grid
    of g nodes: O(batch_size + T g (k (1 + d))^2) in place of T batch_size k d.
    """
    assert chosen.process_noise is not None
    h = chosen.bandwidth.value
    pooled = PooledRounds(
        h=h,
        length=prior_length(h, box),
        prior=TIGHT.prior * chosen.batch_size,
        noise=chosen.process_noise,
        axes=tuple(range(len(box))),
        box=box,
    )
    x, path, clipped = starts, [starts], []
    gridded = round_grid(chosen.batch_size, starts.size + len(starts), box, h) is not None
    bases, on_grid = box_bases(box, h) if gridded else (), None
    for left in reversed(range(chosen.n_steps)):
        checkpoint()
        chosen_rows = noise.batch(len(points), chosen.batch_size)
        whole = chosen.batch_size == len(points)
        covariance = joint_covariance(x, h)
        if gridded:
            if on_grid is None or not whole:
                on_grid = coefficients(points if whole else points.take(chosen_rows, axis=0), bases)
            sums = noise.projected_gaussian(on_grid, functionals(x, bases), covariance, chosen.process_noise)
        else:
            tables = block_sums(points.take(chosen_rows, axis=0), x, h)
            sums = noise.covered_gaussian(tables, covariance, chosen.process_noise)
        pooled.add(x, sums, covariance)
        for _ in range(TIGHT.climb_a_round if left else TIGHT.last_climb):
            score, share = pooled_score(chosen, pooled, x)
            x = np.clip(x + chosen.step_size * score, box[:, 0], box[:, 1])
            clipped.append(share)
        path.append(x)
    return Climbed(np.stack(path), pooled, float(np.mean(clipped)))


def read_modes(ends: Array, pooled: PooledRounds, count: int | None) -> tuple[Array, Array]:
    """Modes (k, d) and their heights (k,), the highest first, from end points and the rounds read together."""
    seen = pooled.seen(ends, TIGHT.trusted)
    ends = ends[seen] if seen.any() else ends
    heights, _ = pooled.at(ends)
    least = (TIGHT.least_height if count is None else TIGHT.least_height_known) * pooled.unit
    if count is None:
        least = max(least, TIGHT.least_of_highest * float(heights.max()))
    kept = heights >= min(least, float(heights.max()))
    ends, heights = ends[kept], np.maximum(heights[kept], np.finfo(float).tiny)
    modes: list[Array] = []
    tops, free = [], np.ones(len(ends), dtype=bool)
    for top in np.argsort(-heights, kind="stable"):
        if free[top]:
            near = free & (np.linalg.norm(ends - ends[top], axis=1) <= TIGHT.merge * pooled.h)
            free &= ~near
            if count is None and not _apart(ends[top], float(heights[top]), modes, pooled):
                continue
            modes.append(heights[near] @ ends[near] / heights[near].sum())
            tops.append(heights[top])
    return np.array(modes)[:count], np.array(tops)[:count]


def read_centres(ends: Array, pooled: PooledRounds, count: int | None) -> tuple[Array, Array]:
    """Cluster centres (k, d) and the heights there: of a known number by k-means over places that rounds looked at.

    Each place weighs what the estimate stands above ``LEAST_WEIGHT`` there.  A cluster is more than its peak, and
    means of many places have less noise.  Without a known number the modes are the centres.
    """
    if count is None:
        return read_modes(ends, pooled, None)
    places = pooled.points
    weights = pooled.at(places)[0] - LEAST_WEIGHT * pooled.unit
    kept = weights > 0
    if not kept.any():
        return read_modes(ends, pooled, count)
    places = places[kept]
    number = min(count, len(np.unique(places, axis=0)))
    # A fixed seed: the same release gives the same centres.
    centres = fitted_kmeans(places, number, K_MEANS_STARTS, 0, weights[kept]).cluster_centers_
    heights = pooled.at(centres)[0]
    order = np.argsort(-heights, kind="stable")
    return centres[order], heights[order]


def _apart(place: Array, height: float, higher: list[Array], pooled: PooledRounds) -> bool:
    """Whether the way to every higher mode leads through a valley."""
    if not higher:
        return True
    parts = np.linspace(0, 1, VALLEY_PLACES)[None, :, None]
    ways = place + parts * (np.array(higher)[:, None, :] - place)
    lowest = pooled.at(ways.reshape(-1, len(place)))[0].reshape(len(higher), -1).min(axis=1)
    return bool((lowest <= height - TIGHT.least_valley * pooled.unit).all())
