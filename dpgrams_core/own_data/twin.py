"""A synthetic twin: a data set drawn from a release, free to experiment on.

A twin is a function of the release and of a seed, so it is post-processing: it costs no privacy however many are drawn,
and a sweep or an audit over it spends nothing more of the budget.  It shows what the release shows and nothing finer.
For a sweep the twin is a data set of its own (``released_twin``): every run draws its records anew, and what the
release shows counts as the truth.  It is in no list and carries its release, so a name in a link or in a file opens
nobody's twin.  Its letters stand for the content, so runs on the same twin, and on no other, have the same name.

How it is drawn.  Public places over the box are chosen with probability proportional to the released kernel sum, where
that stands above what noise alone reaches anywhere with a chance of 0.1 %; elsewhere the release may be noise and
gets no records, so thin tails and small groups are missing.  Each place is jittered over its cell.

What is corrected.  The release is the density smoothed by a bandwidth H, so plain draws of a round Gaussian group
of variance s^2 would have variance s^2 + H^2.  Each draw is therefore moved up the slope of the log-density: with
c = -H^2 (Laplacian of log f) / d, which is H^2 / (s^2 + H^2) there, by (1 - sqrt(1 - c)) / c times H^2 grad log f.  For
round Gaussian groups well apart this gives s^2 exactly; for other shapes it is an approximation.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpgrams_core.datasets.registry import MAX_N, MIN_N
from dpgrams_core.model.checks import box_of, frozen_array, one_of, positive, whole
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.measures import evaluation_grid, nearest_centres
from dpgrams_core.model.representation import Representation
from dpgrams_core.model.results import Dataset, scaled_box
from dpgrams_core.model.run import DatasetInfo
from dpgrams_core.numerics.scaling import BareSurface, SurfaceInUnits, rescaled
from dpgrams_core.numerics.sketch import ReleasedSketch, error_scale, noise_ceiling, public_points
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
GRID_DIMENSIONS = 3
GRID_SPACING = 1 / 3  # of the bandwidth, in so many columns at most
MOST_CELLS = 500_000
PLACES = 16_384  # in more columns
ROWS = 10_000  # records sharpened at a time: all at once would not fit into the memory
MOST_SHRINKING = 0.99  # of the variance: noise must not pull a group into one point
KINDS = ("modes", "regression", "clusters")
MOST_LAWS = 64  # in one process
EPSILONS, MOST_N, QUICK_COLUMNS = (0.1, 0.25, 0.5, 1.0, 5.0), 20_000, 2  # of a sweep over a twin, to begin with


def twin(
    release: BareSurface | SurfaceInUnits, n: int | None = None, seed: int = 0, bandwidth: float | None = None
) -> Dataset:
    """A data set drawn from the ``surface`` of a functional release; free, since it is post-processing.

    It has n records, by default as many as the release was made from, its box and units and no known truth.  A twin is
    synthetic, so a seed is safe.  A ``bandwidth`` smooths the release first; a larger one hides more noise.

    >>> from dpgrams_core import load_dataset, run
    >>> release = run("functional", load_dataset("four_corners", n=5000, seed=0), seed=0)
    >>> twin(release.surface, n=1000, seed=1).points.shape
    (1000, 2)
    """
    if isinstance(release, SurfaceInUnits):
        drawn = twin(release.bare, n, seed, bandwidth)
        return replace(drawn, points=release.from_bare(drawn.points), box=release.box, scaled=True)
    return TwinLaw.of(release, bandwidth).draw(release.n if n is None else n, seed)


@dataclass(frozen=True, eq=False)
class TwinLaw:
    """What the twins of a release are drawn from: the places (k, d), the cell of each (d,) and its chance (k,).

    Finding it is the slow part of a twin, and it is the same for all twins of a release.
    """

    release: BareSurface
    width: float
    places: Array
    cell: Array
    chances: Array

    @classmethod
    def of(cls, release: BareSurface, bandwidth: float | None = None) -> TwinLaw:
        """The law of a release, smoothed to a bandwidth; a DataError where nothing stands above the noise."""
        width = release.bandwidth if bandwidth is None else positive("bandwidth", bandwidth)
        if release.dimension <= GRID_DIMENSIONS:
            axes, cell = _axes(release)
            places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        else:
            axes, cell = [], np.diff(release.box)[:, 0] * PLACES ** (-1 / release.dimension)
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


def _axes(release: BareSurface) -> tuple[list[Array], Array]:
    """The middles of public cells along each side of the box, and the sides of a cell (d,)."""
    sides = np.diff(release.box)[:, 0]
    counts = np.maximum(1, np.ceil(sides / (GRID_SPACING * release.bandwidth)))
    counts = np.maximum(1, np.floor(counts * min(1.0, MOST_CELLS / counts.prod()) ** (1 / len(sides)))).astype(int)
    lows = release.box[:, 0]
    axes = [low + side / k * (np.arange(k) + 0.5) for low, side, k in zip(lows, sides, counts, strict=True)]
    return axes, sides / counts


def _sharpened(release: BareSurface, points: Array, width: float) -> Array:
    """Points of the smoothed density moved to undo the smoothing (see the head of this file)."""
    value, gradient, laplacian = release.heat(points, width)
    value = np.maximum(value, release.noise_at(points, width))
    slope = gradient / value[:, None]
    bend = laplacian / value - (slope**2).sum(axis=1)
    shrinking = np.clip(-(width**2) * bend / release.dimension, 1e-6, MOST_SHRINKING)
    step = ((1 - np.sqrt(1 - shrinking)) / shrinking * width**2)[:, None] * slope
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return points + step * np.minimum(1.0, 3 * width / np.maximum(length, 1e-300))


@dataclass(frozen=True, eq=False)
class ShownBranches:
    """The branches of a released curve as a known law: straight between its rows, nothing beyond a branch's ends.

    ``curve`` (rows, 2) and the number of the branch of each row.

    Examples
    --------
    >>> law = ShownBranches(np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0], [2.0, 5.0]]), np.array([0, 0, 1, 1]))
    >>> law.mode_table(np.array([0.5, 1.5])).tolist()
    [[1.5, nan], [2.5, 5.0]]
    """

    curve: Array
    branches: Array

    def mode_table(self, x: Array) -> Array:
        """The branches at every x, ascending, NaN where there are fewer, (len(x), branches)."""
        x = np.asarray(x, dtype=float)
        columns = []
        for number in np.unique(self.branches):
            rows = self.curve[self.branches == number]
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            columns.append(np.interp(x, rows[:, 0], rows[:, 1], left=np.nan, right=np.nan))
        return np.sort(np.stack(columns, axis=1), axis=1)

    def paper_table(self, x: Array) -> Array:
        """The same: what the release shows is all that is known."""
        return self.mode_table(x)


@dataclass(frozen=True, eq=False)
class TwinSource:
    """What a twin is drawn from, and what is taken for true about it; ``name`` stands for all of its content."""

    release: BareSurface
    kind: str
    box: Array
    truth: Array
    branches: Array | None
    name: str = ""

    def __post_init__(self) -> None:
        digest, release = hashlib.sha256(), self.release
        facts = (release.kind, release.bandwidth, release.noise_scale, release.n, self.kind)
        digest.update(repr(facts).encode())
        for array in (release.coefficients, release.box, self.box, self.truth, self.branches):
            some = np.empty(0) if array is None else np.ascontiguousarray(array, dtype=float)
            digest.update(repr(some.shape).encode() + some.tobytes())
        object.__setattr__(self, "name", f"twin-{digest.hexdigest()[:12]}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TwinSource) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __call__(self, info: DatasetInfo, n: int | None, seed: int) -> Dataset:
        """Draw a twin of n records."""
        drawn = _law(self).draw(whole("n", info.default_n if n is None else n, MIN_N, MAX_N), seed)
        points = rescaled(drawn.points, drawn.box, self.box)
        known: dict[str, Any]
        if self.kind == "modes":
            known = {"true_modes": self.truth}
        elif self.kind == "regression":
            known = {"truth": self.curves()}
        else:  # the columns as they are, and the centres that count as true, also one that no record is nearest to
            k, d = self.truth.shape
            centres = Representation(
                space="the columns of the release, scaled by their box",
                fitted=False,
                scale=np.ones(d),
                components=np.eye(d),
                offset=np.zeros(d),
                centroids=self.truth,
                class_names=tuple(f"centre {number + 1}" for number in range(k)),
            )
            known = {"labels": nearest_centres(points, self.truth), "representation": centres}
        return Dataset(name="twin", kind=self.kind, points=points, box=self.box, **known)

    def curves(self) -> ShownBranches:
        """The branches of a released curve."""
        assert self.branches is not None
        return ShownBranches(self.truth, self.branches)


@lru_cache(maxsize=MOST_LAWS)
def _law(source: TwinSource) -> TwinLaw:
    """The law of a twin, found once in a process however often its release arrives with a task."""
    return TwinLaw.of(source.release)


def released_twin(
    release: BareSurface | SurfaceInUnits,
    kind: str,
    box: Array,
    truth: Array,
    *,
    branches: Array | None = None,
    title: str = "the twin of a release",
) -> DatasetInfo:
    """The twin of a release as a data set, for ``load_dataset``, ``sweep`` and all that take one.

    That of a user's table is scaled by its box: errors in columns of different units add up only there.  A release
    that shows nothing above its noise is a DataError.

    Parameters
    ----------
    box : the box of the data that the release was made from, (d, 2); the twin has the same columns.
    truth : what the release shows, in that box: its modes or centres (k, d), or the rows (x, y) of its curve.
    branches : the branch of each row of a curve.
    title : as people call it, in the middle of a sentence.

    Examples
    --------
    >>> from dpgrams_core import load_dataset, run
    >>> data = load_dataset("four_corners", n=2000, seed=0)
    >>> release = run("functional", data, epsilon=1.0, seed=0)
    >>> twin = released_twin(release.surface, "modes", data.box, release.modes)
    >>> load_dataset(twin, n=500, seed=1).points.shape
    (500, 2)
    """
    if isinstance(release, SurfaceInUnits):
        scaled = scaled_box(release.dimension)
        places = rescaled(np.asarray(truth, dtype=float), box_of(box), scaled)
        return released_twin(release.bare, kind, scaled, places, branches=branches, title=title)
    one_of("kind", kind, KINDS)
    shown = frozen_array(truth)
    if len(shown) == 0:
        raise DataError("Nothing in this release stands above its noise, so a twin of it would have nothing to find.")
    bounds = box_of(box)
    if not len(bounds) == release.dimension == shown.shape[1]:
        raise DataError("The release, its box and what it shows do not have the same number of columns.")
    if kind == "regression" and (branches is None or len(branches) != len(shown)):
        raise DataError("A released curve needs the number of the branch of each of its rows.")
    numbers = frozen_array(branches, int) if kind == "regression" else None
    source = TwinSource(release, kind, frozen_array(bounds), shown, numbers)
    _law(source)  # nothing above the noise is said now
    default_n = min(max(release.n, MIN_N), MAX_N)
    most = min(default_n, MOST_N)  # a sweep begins with about a quarter, half and all of the release's n
    return DatasetInfo(
        name=source.name,
        kind=kind,
        title=title,
        description="Records drawn from a paid release. What the release shows counts as the truth.",
        box=tuple((float(low), float(high)) for low, high in bounds),
        default_n=default_n,
        source=source,
        synthetic=True,
        sizes=tuple(sorted({max(MIN_N, int(float(f"{most / part:.2g}"))) for part in (4, 2)} | {most})),
        epsilons=EPSILONS,
        delta=1e-6 if kind == "modes" else 1e-5,
        count=None if kind == "regression" else len(shown),
        branches_end=kind == "regression"
        and bool(np.isnan(source.curves().mode_table(evaluation_grid(source.box))).any()),
        slow=len(bounds) > QUICK_COLUMNS,
    )
