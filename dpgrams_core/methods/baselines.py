"""Non-private baselines: mean shift from every data point (Gaussian kernel)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import map_coordinates, spline_filter

from dpgrams_core.bandwidths import BandwidthFacts, choose_bandwidth
from dpgrams_core.density import density_and_gradient
from dpgrams_core.kernels import KERNELS
from dpgrams_core.merging import group_means, merge, radius_groups, weighted_ward_groups
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.specs import MeanShiftSpec

Array = np.ndarray
MAX_STARTS = 20_000
MAX_NODES = 4_000_000
SPLINE_ORDER = 5  # with 3 a shallow mode of the exact sums is lost in one data set of a thousand


def naive_mean_shift(points: Array, h: float, tolerance: float = 1e-12, max_steps: int = 100_000) -> Array:
    """End point of mean shift from every data point, one by one; the reference."""
    ends = np.empty_like(points)
    for i, start in enumerate(points):
        x = start
        for _ in range(max_steps):
            weights = np.exp(-((points - x) ** 2).sum(axis=1) / (2 * h**2))
            moved = weights @ points / weights.sum()
            done = np.linalg.norm(moved - x) < tolerance * h
            x = moved
            if done:
                break
        ends[i] = x
    return ends


@dataclass(frozen=True)
class _Surface:
    """The kernel sum and the two sums of its gradient as splines on a grid."""

    origin: Array
    spacing: float
    coefficients: tuple[Array, ...]

    def shift(self, x: Array) -> Array:
        """Mean-shift step h^2 grad f / f at x of shape (k, d), approximately."""
        where = ((x - self.origin) / self.spacing).T
        total, *sums = (
            map_coordinates(c, where, order=SPLINE_ORDER, prefilter=False, mode="nearest") for c in self.coefficients
        )
        return np.stack(sums, axis=1) / np.maximum(total, 1e-12)[:, None]


def _surface(points: Array, h: float) -> _Surface | None:
    """Exact kernel sums on a tensor grid of spacing h/4, or None when the grid would be too large."""
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
    return _Surface(low, spacing, tuple(spline_filter(s, order=SPLINE_ORDER) for s in sums))


def _exact_shift(points: Array, h: float, x: Array) -> Array:
    density, gradient = density_and_gradient(KERNELS["gaussian"], points, x, h)
    return h**2 * gradient / density[:, None]


def _climb(points: Array, h: float, starts: Array, surface: _Surface | None, tolerance: float) -> Array:
    """Iterate mean shift until every start moves less than tolerance * h."""
    x = starts.copy()
    active = np.arange(len(x))
    for _ in range(5_000):
        checkpoint()
        step = surface.shift(x[active]) if surface is not None else _exact_shift(points, h, x[active])
        x[active] += step
        active = active[np.linalg.norm(step, axis=1) > tolerance * h]
        if len(active) == 0:
            break
    return x


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

    Notes
    -----
    Cost O(n g) for g grid nodes a side, then O(starts) a step, against O(n starts) a step for the loop.
    """
    surface = _surface(points, h)
    ends = _climb(points, h, starts, surface, 1e-5 if surface is not None else 1e-9)
    # Thousands of starts end within rounding of each other: pool them before looking at pairs.
    cells, cell_of = np.unique(np.round(ends / (0.005 * h)), axis=0, return_inverse=True)
    groups = radius_groups(cells * (0.005 * h), 0.05 * h)[cell_of]
    exact = np.stack([_polish(points, h, x) for x in group_means(ends, groups)])
    final = radius_groups(exact, 1e-6 * h)
    return group_means(exact, final), final[groups]


def mean_shift(data: Dataset, spec: MeanShiftSpec, noise: Noise) -> Release:
    """Mean shift from every data point, merged; no privacy at all."""
    refuse_private(data)
    facts = BandwidthFacts(
        n=data.n, d=data.dimension, box=data.box, epsilon=math.inf, beta=spec.beta, points=data.points
    )
    bandwidth = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    stride = math.ceil(data.n / MAX_STARTS)
    ends, labels = fast_mean_shift(data.points, bandwidth.value, data.points[::stride])
    caveats = () if stride == 1 else (f"Started from one record in {stride} only.",)
    if spec.n_modes is None:
        modes = merge(ends, bandwidth.value, None)
    else:
        # Ward weighs an end point by the records that reach it, as merging all n end points would.
        reached = np.bincount(labels, minlength=len(ends))
        modes = group_means(ends, weighted_ward_groups(ends, reached, spec.n_modes), reached)
    return Release(
        method="mean_shift",
        modes=modes,
        spec=replace(spec, bandwidth=bandwidth.value, bandwidth_scale=None),
        events=(),
        guarantee=Guarantee(
            epsilon=math.inf,
            delta=1.0,
            status="none",
            statement="Mean shift reads the records directly and has no privacy.",
            caveats=caveats,
        ),
        _diagnostics=Diagnostics(labels=labels),
    )
