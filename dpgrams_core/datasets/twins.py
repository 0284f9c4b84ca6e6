"""A synthetic twin: a data set drawn from a release, free to experiment on.

A twin is a function of the release and of a seed, so it is post-processing: it costs no privacy however many are drawn,
and a sweep or an audit over it spends nothing more of the budget.  It shows what the release shows and nothing finer.

How it is drawn.  Public places over the box are chosen with probability proportional to the released kernel sum, where
that stands above what noise alone reaches anywhere with a chance of 0.1 %; elsewhere the release may be noise and
gets no records, so thin tails and small groups are missing.  Each place is jittered over its cell.

What is corrected.  The release is the density smoothed by a bandwidth H, so plain draws of a round Gaussian group
of variance s^2 would have variance s^2 + H^2.  Each draw is therefore moved up the slope of the log-density: with
c = -H^2 (Laplacian of log f) / d, which is H^2 / (s^2 + H^2) there, by (1 - sqrt(1 - c)) / c times H^2 grad log f.  For
round Gaussian groups well apart this gives s^2 exactly; for other shapes it is an approximation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpgrams_core.checks import positive, whole
from dpgrams_core.errors import DataError
from dpgrams_core.fourier import error_scale, noise_ceiling, public_points
from dpgrams_core.results import Dataset
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
GRID_DIMENSIONS = 3
GRID_SPACING = 1 / 3  # of the bandwidth, in so many columns at most
MOST_CELLS = 500_000
PLACES = 16_384  # in more columns
ROWS = 10_000  # records sharpened at a time: all at once would not fit into the memory
MOST_SHRINKING = 0.99  # of the variance: noise must not pull a group into one point
MAX_N = 1_000_000


def twin(
    release: ReleasedSurface | ReleasedSketch, n: int | None = None, seed: int = 0, bandwidth: float | None = None
) -> Dataset:
    """A data set drawn from a released surface or sketch; free, since it is post-processing.

    Parameters
    ----------
    release : ``surface`` of a functional release.
    n : number of records; as many as the release was made from by default.
    seed : of the draw. A twin is synthetic, so a seed is safe.
    bandwidth : smooth the release to this first; a larger one hides more noise.

    Returns
    -------
    Dataset : ``private=False``, with the release's box and no known truth.

    Examples
    --------
    >>> from dpgrams_core import load_dataset, run
    >>> release = run("functional", load_dataset("four_corners", n=5000, seed=0), seed=0)
    >>> twin(release.surface, n=1000, seed=1).points.shape
    (1000, 2)
    """
    return TwinLaw.of(release, bandwidth).draw(release.n if n is None else n, seed)


@dataclass(frozen=True, eq=False)
class TwinLaw:
    """What the twins of a release are drawn from: the places (k, d), the cell of each (d,) and its chance (k,).

    Finding it is the slow part of a twin, and it is the same for all twins of a release.
    """

    release: ReleasedSurface | ReleasedSketch
    width: float
    places: Array
    cell: Array
    chances: Array

    @classmethod
    def of(cls, release: ReleasedSurface | ReleasedSketch, bandwidth: float | None = None) -> TwinLaw:
        """The law of a release, smoothed to a bandwidth; a DataError where nothing stands above the noise."""
        width = release.bandwidth if bandwidth is None else positive("bandwidth", bandwidth)
        if release.dimension <= GRID_DIMENSIONS:
            axes, cell = _axes(release)
            places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        else:
            axes, cell = [], _sides(release) * PLACES ** (-1 / release.dimension)
            places = public_points(release.box, PLACES)
        if axes and isinstance(release, ReleasedSurface):  # along the axes: far quicker than place by place
            values, noise = release.grid(axes, width).ravel(), release.noise_grid(axes, width).ravel()
        else:
            values, noise = release.value(places, width), release.noise_at(places, width)
        if isinstance(release, ReleasedSketch):  # its kernel has errors too, and they must not become records
            noise = np.full(len(places), error_scale(values, float(noise[0]), release.box, width, release.blocks))
        weights = np.where(values > noise_ceiling(release.box, width) * noise, values, 0.0)
        if not weights.any():
            raise DataError("Nothing in this release stands above its noise, so no twin can be drawn from it.")
        return cls(release, width, places, cell, weights / weights.sum())

    def draw(self, n: int, seed: int = 0) -> Dataset:
        """A twin; see :func:`twin`."""
        size = whole("n", n, 1, MAX_N)
        rng = np.random.default_rng(whole("seed", seed, 0))
        drawn = self.places[rng.choice(len(self.places), size=size, p=self.chances)]
        if self.release.dimension <= GRID_DIMENSIONS:
            points, wide = drawn + self.cell * rng.uniform(-0.5, 0.5, drawn.shape), self.width
        else:  # scattered places have no cells: a Gaussian jitter, which counts as more smoothing
            jitter = 0.5 * float(np.exp(np.log(self.cell).mean()))
            points = drawn + jitter * rng.standard_normal(drawn.shape)
            wide = math.hypot(self.width, jitter)
        box = self.release.box
        parts = [_sharpened(self.release, points[i : i + ROWS], wide) for i in range(0, size, ROWS)]
        return Dataset(name="twin", kind="modes", points=np.clip(np.concatenate(parts), box[:, 0], box[:, 1]), box=box)


def _sides(release: ReleasedSurface | ReleasedSketch) -> Array:
    return release.box[:, 1] - release.box[:, 0]


def _axes(release: ReleasedSurface | ReleasedSketch) -> tuple[list[Array], Array]:
    """The middles of public cells along each side of the box, and the sides of a cell (d,)."""
    sides = _sides(release)
    counts = np.maximum(1, np.ceil(sides / (GRID_SPACING * release.bandwidth)))
    counts = np.maximum(1, np.floor(counts * min(1.0, MOST_CELLS / counts.prod()) ** (1 / len(sides)))).astype(int)
    lows = release.box[:, 0]
    axes = [low + side / k * (np.arange(k) + 0.5) for low, side, k in zip(lows, sides, counts, strict=True)]
    return axes, sides / counts


def _sharpened(release: ReleasedSurface | ReleasedSketch, points: Array, width: float) -> Array:
    """Points of the smoothed density moved to undo the smoothing (see the head of this file)."""
    value, gradient, laplacian = release.heat(points, width)
    value = np.maximum(value, release.noise_at(points, width))
    slope = gradient / value[:, None]
    bend = laplacian / value - (slope**2).sum(axis=1)
    shrinking = np.clip(-(width**2) * bend / release.dimension, 1e-6, MOST_SHRINKING)
    step = ((1 - np.sqrt(1 - shrinking)) / shrinking * width**2)[:, None] * slope
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return points + step * np.minimum(1.0, 3 * width / np.maximum(length, 1e-300))
