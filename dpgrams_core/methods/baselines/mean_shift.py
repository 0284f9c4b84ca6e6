"""Mean shift without privacy (Gaussian kernel): modes from every record, and clusters from its merged end points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from dpgrams_core.model import settings
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec
from dpgrams_core.numerics.bandwidths import BandwidthFacts, choose_bandwidth
from dpgrams_core.numerics.density import density_and_gradient
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.merging import climb_to_rest, group_means, merge_reached, radius_groups
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
MAX_NODES = 4_000_000
MAX_STARTS = 20_000
RULE = "the rule's bandwidth"
# Of clusters.
EXACT_RECORDS = 5_000  # up to here every record is followed to its exact limit
PAIRS = 40_000_000  # beyond: records times starts; 579 starts for MNIST
LEAST_STARTS, MOST_STEPS = 100, 100
STANDS_STILL = 0.001  # of h: a start that moves less has arrived
SAME_END = 0.1  # of h: ends of bounded climbs this close are one
CHUNK = 1_024  # records at a time: a block of weights fits the cache
SPACINGS = 1.8  # see default_bandwidth
# Of the grid.
SPLINE_ORDER = 5  # with 3 a shallow mode of the exact sums is lost in one data set of a thousand


@dataclass(frozen=True, kw_only=True)
class MeanShiftSpec(Spec):
    """Settings of mean shift from every data point."""

    bandwidth: float | str | None = settings.bandwidth()
    bandwidth_scale: float | None = settings.bandwidth_scale(RULE)
    beta: float = settings.beta()
    n_modes: int | None = settings.n_modes(None)


@dataclass(frozen=True, kw_only=True)
class MeanShiftCSpec(Spec):
    """Settings of mean-shift clustering.

    ``bandwidth`` is a number or a rule; ``None`` means the method's own, which depends on n, d and the spread.
    ``n_clusters``: ``None`` means unknown, and end points within a bandwidth are one cluster, as in alg:dpgrams-c.
    ``n_starts`` records are climbed from, drawn by the seed; ``None`` means all, up to the bound of the method.
    """

    bandwidth: float | str | None = settings.bandwidth()
    bandwidth_scale: float | None = settings.bandwidth_scale(RULE)
    beta: float = settings.beta()
    n_clusters: int | None = settings.n_clusters()
    n_starts: int | None = settings.count("Starts, k", "Records that are climbed from; empty: all.", MAX_STARTS)


def _grid_shift(points: Array, h: float) -> Callable[[Array], Array] | None:
    """Mean-shift step h^2 grad f / f at x (k, d), approximately: splines of exact sums on a grid of spacing h/4.

    None when the grid would be too large.
    """

    spacing = h / 4
    low, high = points.min(axis=0) - 2 * h, points.max(axis=0) + 2 * h
    counts = np.ceil((high - low) / spacing).astype(int) + 1
    if len(counts) != 2 or math.prod(counts.tolist()) > MAX_NODES:
        return None
    sums = [np.zeros(counts) for _ in range(3)]
    axes = [low[j] + spacing * np.arange(counts[j]) for j in range(2)]
    rows = max(1, 4_000_000 // int(counts.sum()))
    for start in range(0, len(points), rows):
        checkpoint()
        records = points[start : start + rows]
        offsets = [records[None, :, j] - axes[j][:, None] for j in range(2)]
        first, second = (np.exp(-0.5 * (offset / h) ** 2) for offset in offsets)
        sums[0] += first @ second.T
        sums[1] += (first * offsets[0]) @ second.T
        sums[2] += first @ (second * offsets[1]).T
    splines = [scipy.ndimage.spline_filter(table, order=SPLINE_ORDER) for table in sums]

    def shift(x: Array) -> Array:
        where = ((x - low) / spacing).T
        total, *slopes = (
            scipy.ndimage.map_coordinates(spline, where, order=SPLINE_ORDER, prefilter=False, mode="nearest")
            for spline in splines
        )
        return np.stack(slopes, axis=1) / np.maximum(total, 1e-12)[:, None]

    return shift


def _exact_shift(points: Array, h: float, x: Array) -> Array:
    density, gradient = density_and_gradient(KERNELS["gaussian"], points, x, h)
    return h**2 * gradient / density[:, None]


def _polish(points: Array, h: float, x: Array) -> Array:
    """Exact limit of mean shift from x (d,): plain steps, and Newton steps once they are safe.

    Newton solves shift(x) = 0; it is used only where the map contracts (all eigenvalues of its
    Jacobian below 1, a strict mode) and the step is short, so it cannot leave the mode's basin.
    """
    for _ in range(10_000):
        checkpoint()
        away = points - x
        weights = np.exp(-0.5 * (away * away).sum(axis=1) / h**2)
        weights /= weights.sum()
        shift = weights @ away
        jacobian = ((away * weights[:, None]).T @ away - np.outer(shift, shift)) / h**2
        largest = np.linalg.eigvalsh(jacobian)[-1]
        step = np.linalg.solve(np.eye(len(x)) - jacobian, shift) if largest < 0.999 else shift
        close = np.linalg.norm(step) < 0.1 * h
        x = x + (step if close else shift)
        if close and np.linalg.norm(step) < 1e-10 * h:
            break
    return x


def fast_mean_shift(points: Array, h: float, starts: Array) -> tuple[Array, Array]:
    """Limits of mean shift from ``starts``: the distinct end points (k, d) and the number of each start's.

    Two stages.  First every start climbs a spline of the exact kernel sums on a fine grid (or the exact
    sums where no grid fits), which is enough to tell where it goes; then one representative of each
    group is followed to its exact limit.

    Cost O(n g) for g grid nodes a side, then O(starts) a step, against O(n starts) a step for the loop.
    """
    on_grid = _grid_shift(points, h)
    ends = climb_to_rest(on_grid or partial(_exact_shift, points, h), starts, (1e-5 if on_grid else 1e-9) * h, 5_000)
    # Thousands of starts end within rounding of each other: pool them before looking at pairs.
    cells, cell_of = np.unique(np.round(ends / (0.005 * h)), axis=0, return_inverse=True)
    groups = radius_groups(cells * (0.005 * h), 0.05 * h)[cell_of]
    exact = np.stack([_polish(points, h, x) for x in group_means(ends, groups)])
    final = radius_groups(exact, 1e-6 * h)
    return group_means(exact, final), final[groups]


def mean_shift(data: Dataset, spec: MeanShiftSpec, noise: Noise) -> Release:
    """Mean shift from every data point, merged; no privacy at all."""
    refuse_private(data)
    h = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, _facts(data, spec)).value
    stride = math.ceil(data.n / MAX_STARTS)
    ends, labels = fast_mean_shift(data.points, h, data.points[::stride])
    caveats = () if stride == 1 else (f"Started from one record in {stride} only.",)
    return Release(
        method="mean_shift",
        modes=merge_reached(ends, labels, h, spec.n_modes),
        spec=replace(spec, bandwidth=h, bandwidth_scale=None),
        events=(),
        guarantee=Guarantee.no_privacy("Mean shift", caveats),
        _diagnostics=Diagnostics(labels=labels),
    )


def default_bandwidth(points: Array, count_known: bool) -> float:
    """The bandwidth when none is given, in units of the mean standard deviation s of the columns.

    Number of clusters unknown: Scott's s n^(-1/(d+4)), since every mode becomes a cluster.  Known: 1.8 s n^(-1/d),
    a fixed multiple of the spacing of n records, so that a record has about as many neighbours whatever n and d
    are; this leaves small bumps in place, and Ward's merge joins them.  The factor is chosen for this baseline to
    come near the printed mean shift on all three data sets of tab:real_world_clustering_updated: it is not private.
    """
    n, d = points.shape
    spread = float(points.std(axis=0).mean())
    return SPACINGS * spread * n ** (-1 / d) if count_known else spread * n ** (-1 / (d + 4))


def bounded_climb(points: Array, h: float, starts: Array) -> Array:
    """Where mean shift from ``starts`` is after at most so many steps, by matrix products.

    Single precision where its rounding stays below a thousandth of an exponent, which is three times as fast.  Cost
    O(n starts) a step, for the starts that still move.
    """
    middle = points.mean(axis=0)
    records = (points - middle) / h
    kind = np.float32 if np.square(records).sum(axis=1).max() < 1e4 else np.float64
    records = records.astype(kind)
    with_one = np.concatenate([records, np.ones((len(records), 1), dtype=kind)], axis=1)
    half_square = np.square(records).sum(axis=1) / 2

    def shift(here: Array) -> Array:
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
        return np.where(seen[:, None], sums[:, :-1] / np.where(seen, sums[:, -1], 1)[:, None] - here, 0)

    at = climb_to_rest(shift, ((starts - middle) / h).astype(kind), STANDS_STILL, MOST_STEPS)
    return at.astype(float) * h + middle


def mean_shift_c(data: Dataset, spec: MeanShiftCSpec, noise: Noise) -> Release:
    """Mean-shift clustering (alg:dpgrams-c without noise): centres are merged end points; no privacy at all.

    Up to 5,000 records it starts from every record and goes to the limit.  For more it is bounded: from a part of
    the records, drawn by the seed, for at most 100 steps, and the result says so.
    """
    refuse_private(data)
    if spec.n_clusters is not None and spec.n_clusters > data.n:
        raise SpecError("n_clusters", spec.n_clusters, f"there are only {data.n} records")
    h = _bandwidth(data, spec)
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
    centres = merge_reached(ends, groups, h, spec.n_clusters)
    if spec.n_clusters is not None and len(centres) < spec.n_clusters:
        caveats.append(f"{spec.n_clusters} clusters were asked for, but there are only {len(centres)} modes.")
    return Release(
        method="mean_shift_c",
        modes=centres,
        spec=replace(spec, bandwidth=h, bandwidth_scale=None, n_starts=n_starts),
        events=(),
        guarantee=Guarantee.no_privacy("Mean shift", tuple(caveats)),
    )


def _facts(data: Dataset, spec: MeanShiftSpec | MeanShiftCSpec) -> BandwidthFacts:
    return BandwidthFacts(
        n=data.n, d=data.dimension, box=data.box, epsilon=math.inf, beta=spec.beta, points=data.points
    )


def _bandwidth(data: Dataset, spec: MeanShiftCSpec) -> float:
    if spec.bandwidth is not None:
        return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, _facts(data, spec)).value
    scale = 1.0 if spec.bandwidth_scale is None else spec.bandwidth_scale
    value = scale * default_bandwidth(data.points, spec.n_clusters is not None)
    if not value > 0:
        raise SpecError("bandwidth", None, "all records are the same, so the default is 0; give a number above 0")
    return choose_bandwidth(value, None, _facts(data, spec)).value
