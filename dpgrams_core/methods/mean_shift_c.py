"""Mean-shift clustering without privacy: climb from the records, then merge the end points into centres."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpgrams_core.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth
from dpgrams_core.errors import SpecError
from dpgrams_core.merging import group_means, merge, radius_groups, weighted_ward_groups
from dpgrams_core.methods.baselines import fast_mean_shift
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.specs_clusters import MeanShiftCSpec

Array = np.ndarray

EXACT_RECORDS = 5_000  # up to here every record is followed to its exact limit
PAIRS = 40_000_000  # beyond: records times starts; 579 starts for MNIST
LEAST_STARTS, MOST_STEPS = 100, 100
STANDS_STILL = 0.001  # of h: a start that moves less has arrived
SAME_END = 0.1  # of h: ends of bounded climbs this close are one
CHUNK = 1_024  # records at a time: a block of weights fits the cache
SPACINGS = 1.8  # see default_bandwidth


def default_bandwidth(points: Array, count_known: bool) -> float:
    """The bandwidth when none is given, in units of the mean standard deviation s of the columns.

    Number of clusters unknown: Scott's s n^(-1/(d+4)), since every mode becomes a cluster.  Known: 1.8 s n^(-1/d),
    a fixed multiple of the spacing of n records, so that a record has about as many neighbours whatever n and d
    are; this leaves small bumps in place, and Ward's merge joins them.  The factor is chosen for this baseline to
    come near the printed mean shift on all three data sets of tab:real_world_clustering_updated: it is not private.

    >>> points = np.array([[-1.0, 1.0], [1.0, -1.0]] * 32)  # 64 records, each column with standard deviation 1
    >>> round(default_bandwidth(points, True), 6), round(default_bandwidth(points, False), 6)
    (0.225, 0.5)
    """
    n, d = points.shape
    spread = float(points.std(axis=0).mean())
    return SPACINGS * spread * n ** (-1 / d) if count_known else spread * n ** (-1 / (d + 4))


def bounded_climb(points: Array, h: float, starts: Array, most_steps: int = MOST_STEPS) -> Array:
    """Where mean shift from ``starts`` is after at most so many steps, by matrix products.

    Single precision where its rounding stays below a thousandth of an exponent, which is three times as fast.

    Notes
    -----
    Cost O(n starts) a step, for the starts that still move.
    """
    middle = points.mean(axis=0)
    records = (points - middle) / h
    kind = np.float32 if np.square(records).sum(axis=1).max() < 1e4 else np.float64
    records = records.astype(kind)
    with_one = np.concatenate([records, np.ones((len(records), 1), dtype=kind)], axis=1)
    half_square = np.square(records).sum(axis=1) / 2
    at = ((starts - middle) / h).astype(kind)
    moving = np.arange(len(at))
    for _ in range(most_steps):
        checkpoint()
        here = at[moving]
        sums = np.zeros((len(here), with_one.shape[1]), dtype=kind)
        own = np.square(here).sum(axis=1)[:, None] / 2
        for first in range(0, len(records), CHUNK):
            rows = slice(first, first + CHUNK)
            weights = here @ records[rows].T
            weights -= half_square[rows]
            weights -= own
            sums += np.exp(weights, out=weights) @ with_one[rows]
        # Far from all records every weight may be too small for a number: stay.
        seen = sums[:, -1] > 0
        moved = np.where(seen[:, None], sums[:, :-1] / np.where(seen, sums[:, -1], 1)[:, None], here)
        at[moving] = moved
        moving = moving[np.linalg.norm(moved - here, axis=1) > STANDS_STILL]
        if len(moving) == 0:
            break
    return at.astype(float) * h + middle


def mean_shift_c(data: Dataset, spec: MeanShiftCSpec, noise: Noise) -> Release:
    """Mean-shift clustering (alg:dpgrams-c without noise): centres are merged end points; no privacy at all.

    Up to 5,000 records it starts from every record and goes to the limit.  For more it is bounded: from a part of
    the records, drawn by the seed, for at most 100 steps, and the result says so.
    """
    refuse_private(data)
    if spec.n_clusters is not None and spec.n_clusters > data.n:
        raise SpecError("n_clusters", spec.n_clusters, f"there are only {data.n} records")
    bandwidth = _bandwidth(data, spec)
    h = bandwidth.value
    bounded = data.n > EXACT_RECORDS
    wish = max(LEAST_STARTS, PAIRS // data.n) if bounded else data.n
    n_starts = min(data.n, wish if spec.n_starts is None else spec.n_starts)
    starts = data.points[np.sort(noise.batch(data.n, n_starts))]
    caveats = []
    if bounded:
        raw = bounded_climb(data.points, h, starts)
        groups = radius_groups(raw, SAME_END * h)
        ends = group_means(raw, groups)
        caveats.append(
            f"Bounded: climbed from {n_starts:,} of the {data.n:,} records, drawn by the seed, in at most "
            f"{MOST_STEPS} steps each."
        )
    else:
        ends, groups = fast_mean_shift(data.points, h, starts)
        if n_starts < data.n:
            caveats.append(f"Started from {n_starts:,} of the {data.n:,} records, drawn by the seed.")
    if spec.n_clusters is None:
        centres = merge(ends, h, None)
    else:
        reached = np.bincount(groups, minlength=len(ends))
        centres = group_means(ends, weighted_ward_groups(ends, reached, spec.n_clusters), reached)
        if len(centres) < spec.n_clusters:
            caveats.append(f"{spec.n_clusters} clusters were asked for, but there are only {len(centres)} modes.")
    return Release(
        method="mean_shift_c",
        modes=centres,
        spec=replace(spec, bandwidth=h, bandwidth_scale=None, n_starts=n_starts),
        events=(),
        guarantee=Guarantee(
            epsilon=math.inf,
            delta=1.0,
            status="none",
            statement="Mean shift reads the records directly and has no privacy.",
            caveats=tuple(caveats),
        ),
    )


def _bandwidth(data: Dataset, spec: MeanShiftCSpec) -> Bandwidth:
    facts = BandwidthFacts(
        n=data.n, d=data.dimension, box=data.box, epsilon=math.inf, beta=spec.beta, points=data.points
    )
    if spec.bandwidth is not None:
        return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    scale = 1.0 if spec.bandwidth_scale is None else spec.bandwidth_scale
    value = scale * default_bandwidth(data.points, spec.n_clusters is not None)
    if not value > 0:
        raise SpecError("bandwidth", None, "all records are the same, so the default is 0; give a number above 0")
    return choose_bandwidth(value, None, facts)
