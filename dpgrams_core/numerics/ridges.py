"""Branches of a conditional density, traced as ridges of a released surface: post-processing, so free.

At every x of a public grid the peaks in y of the surface are read off and joined to those at the next x.  The
noise is known exactly, so a branch counts when it stands STRONG standard deviations above the noise somewhere, and
is followed as far as it stands WEAK of them; a peak below RELATIVE of the highest one at the same x is the shoulder of
a branch that ends nearby, smeared over its end by the kernel, and not a branch.  The strongest ridge is always given,
with its height, so that nothing is hidden where nothing is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
WEAK, STRONG = 2.5, 4.0
RELATIVE = 0.4
BAND_NODES = 60  # a bandwidth, along y; between them the slope is a line
NORMAL_95 = 1.959964
NODES_PER_BANDWIDTH = 10  # along y; a parabola through three of them places a peak to a thousandth of a bandwidth


@dataclass(frozen=True, eq=False)
class Ridge:
    """One branch: x (g,), y (g,) and how far it stands above the noise at each, in standard deviations (g,)."""

    x: Array
    y: Array
    height: Array


def trace_ridges(surface: ReleasedSurface, x: Array, width: float | None = None) -> list[Ridge]:
    """The branches of a surface over (x, y) at increasing places x, the most significant first.

    ``width`` is a larger bandwidth that the surface is smoothed to first.
    """
    bandwidth = surface.bandwidth if width is None else width
    column, y, height = _peaks_in_y(surface, x, bandwidth)
    chains = _joined(column, y, len(x), bandwidth)
    ridges = [Ridge(x[column[chain]], y[chain], height[chain]) for chain in chains]
    ridges.sort(key=lambda ridge: -float(ridge.height.max()))
    return [ridge for number, ridge in enumerate(ridges) if number == 0 or ridge.height.max() > STRONG]


def ridge_bands(surface: ReleasedSurface, x: Array, y: Array, width: float | None = None) -> Array:
    """The 95 % band (rows, 2), lower and upper, of branches at rows (x, y): of the smoothed density, by noise alone.

    Where the surface without noise has its peak in y, its slope is 0, so the released slope there is noise of exactly
    known spread: the places around y whose slope noise may have made hold that peak in 95 of 100 releases.  No
    linearisation is needed.  A band ends at the box at the latest.
    """
    bandwidth = surface.bandwidth if width is None else width
    across, along = surface.bases
    low, high = surface.box[1]
    nodes = np.linspace(low, high, int(np.ceil((high - low) / bandwidth * BAND_NODES)) + 2)
    slope, places = along.values(nodes, bandwidth, 1), across.values(x, bandwidth)
    spread = surface.noise_scale * np.sqrt(np.outer((places**2).sum(axis=0), (slope**2).sum(axis=0)))
    heights = places.T @ surface.coefficients @ slope / spread
    found = np.empty((len(x), 2))
    for number, (row, at) in enumerate(zip(heights, y, strict=True)):
        found[number] = low, high
        rising, falling = (
            np.flatnonzero((nodes < at) & (row > NORMAL_95)),
            np.flatnonzero((nodes > at) & (row < -NORMAL_95)),
        )
        if len(rising):  # from the last place below that is surely uphill to where noise may have made the slope
            found[number, 0] = min(at, np.interp(-NORMAL_95, -row[rising[-1] :][:2], nodes[rising[-1] :][:2]))
        if len(falling):
            found[number, 1] = max(at, np.interp(NORMAL_95, -row[: falling[0] + 1][-2:], nodes[: falling[0] + 1][-2:]))
    return found


def _peaks_in_y(surface: ReleasedSurface, x: Array, bandwidth: float) -> tuple[Array, Array, Array]:
    """Peaks in y at each x of a grid: number of the x, place, height in units of the noise."""
    low, high = surface.box[1]
    steps = int(np.ceil((high - low) / bandwidth * NODES_PER_BANDWIDTH))
    y = np.linspace(low, high, max(2, steps) + 1)  # a peak needs a place on either side, however wide the kernel
    heights = surface.grid([x, y], bandwidth) / surface.noise_grid([x, y], bandwidth)
    inner = heights[:, 1:-1]
    column, row = np.nonzero((inner > heights[:, :-2]) & (inner >= heights[:, 2:]))
    top = heights[column, row + 1]
    enough = (top > WEAK) & (top >= RELATIVE * heights.max(axis=1)[column])
    if not enough.any():  # the one highest place of all
        column, row = (np.array([i]) for i in np.unravel_index(int(np.argmax(inner)), inner.shape))
        enough = np.array([True])
    column, row = column[enough], row[enough] + 1
    left, top, right = heights[column, row - 1], heights[column, row], heights[column, row + 1]
    bend = left - 2 * top + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, 1.0), 0.0)
    return column, y[row] + np.clip(shift, -1, 1) * (y[1] - y[0]), top


def _joined(column: Array, y: Array, columns: int, reach: float) -> list[list[int]]:
    """Peaks joined from one x to the next, nearest first, at most ``reach`` apart; as lists of their numbers."""
    finished: list[list[int]] = []
    growing: list[list[int]] = []
    for number in range(columns):
        here = np.flatnonzero(column == number).tolist()
        pairs = sorted(
            (abs(float(y[chain[-1]] - y[peak])), i, peak) for i, chain in enumerate(growing) for peak in here
        )
        taken: set[int] = set()
        grown: set[int] = set()
        for gap, i, peak in pairs:
            if gap <= reach and peak not in taken and i not in grown:
                growing[i].append(peak)
                taken.add(peak)
                grown.add(i)
        finished += [chain for i, chain in enumerate(growing) if i not in grown]
        growing = [growing[i] for i in sorted(grown)] + [[peak] for peak in here if peak not in taken]
    return finished + growing
