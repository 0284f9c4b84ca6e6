"""A noisy histogram, smoothed: what most practitioners would do for private modes, with the same guarantee as ours.

Theorem.  Let c(X) be the counts of the records in the cells of a public grid over the public box, a record beyond the
box counting in the nearest cell.  Releasing c(X) + N(0, 2 z^2 I), z the multiplier of the analytic Gaussian mechanism,
is (epsilon, delta)-DP for the replacement of one record.

Proof.  A record is in exactly one cell.  Replacing it takes 1 from one count and adds 1 to another, or changes nothing:
a Euclidean change of at most sqrt(2), whatever the two records are (the counts are whole numbers below 2^53, so no
rounding; ``with_rounding`` still pays for the lattice of the noise).  Smoothing and reading peaks see the noisy counts
alone (post-processing).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpgrams_core.methods.functional.modes import outside_box
from dpgrams_core.model import settings
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec
from dpgrams_core.numerics.bandwidths import release_bandwidth
from dpgrams_core.numerics.rounding import with_rounding
from dpgrams_core.numerics.sketch import noise_ceiling
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
SENSITIVITY = math.sqrt(2)
MOST_COLUMNS, MOST_CELLS = 3, 200_000
# Both of the public bandwidth rule of the functional release, chosen on other mixtures (benchmarks/pilot_histogram.py).
CELL_OF_RULE, SMOOTHING_OF_RULE = 0.8, 0.8
STATEMENT = (
    "Proven: one record is in one cell of the public grid, so replacing it moves the counts by at most √2. "
    "Smoothing and modes are computed from the noisy counts alone. It is paid for once."
)


@dataclass(frozen=True, kw_only=True)
class NoisyHistogramSpec(Spec):
    """Public settings of the noisy histogram.

    ``cells`` along each side and ``smoothing``, the standard deviation of the Gaussian that smooths the noisy counts in
    the units of the box; ``None`` means a public rule of n, ε, δ and the box.
    """

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-6)
    cells: int | None = settings.count(
        "Cells along a side", "Cells of the public grid along each side of the box.", 1_000, low=2, empty="auto"
    )
    smoothing: float | None = settings.bandwidth("How far noisy counts are smoothed; it costs nothing.", rules=False)
    n_modes: int | None = settings.n_modes(40)


def noisy_histogram(data: Dataset, spec: NoisyHistogramSpec, noise: Noise) -> Release:
    """Count records in public cells, add Gaussian noise once, smooth, and take the peaks that persist."""
    refuse_private(data, noise.door)
    d, sides = data.dimension, data.box[:, 1] - data.box[:, 0]
    if d > MOST_COLUMNS:
        raise SpecError("method", "noisy_histogram", f"a grid of cells takes at most {MOST_COLUMNS} columns, not {d}")
    multiplier = gaussian_multiplier(spec.epsilon, spec.delta)
    rule = release_bandwidth(n=data.n, d=d, box=data.box, sigma=SENSITIVITY * multiplier)
    width = SMOOTHING_OF_RULE * rule if spec.smoothing is None else float(spec.smoothing)
    wish = np.ceil(sides / (CELL_OF_RULE * rule)) if spec.cells is None else np.full(d, spec.cells)
    shape = tuple(int(count) for count in np.clip(wish, 2, None))
    if math.prod(shape) > MOST_CELLS:
        most = int(MOST_CELLS ** (1 / d))
        raise SpecError("cells", spec.cells, f"in {d} columns there may be at most {most} along a side")
    numbers = math.prod(shape)
    sensitivity = with_rounding(SENSITIVITY, n=data.n, chunk=1, each=0.0, numbers=numbers, multiplier=multiplier)
    event = GaussianRelease(sensitivity=sensitivity, noise_scale=sensitivity * multiplier)
    checkpoint()
    noisy = noise.independent_gaussian(cell_counts(data.points, data.box, shape), event.noise_scale)
    modes, significance = histogram_modes(noisy, data.box, width, event.noise_scale, spec.n_modes)
    return Release(
        method="noisy_histogram",
        modes=modes,
        significance=significance,
        noise_scale=event.noise_scale,
        spec=replace(spec, smoothing=width, cells=max(shape)),
        events=(event,),
        guarantee=Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="proven", statement=STATEMENT),
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def cell_counts(points: Array, box: Array, shape: tuple[int, ...]) -> Array:
    """Records in every cell; those beyond the box are in the nearest one."""
    low, high = box.T
    shares = (np.clip(points, low, high) - low) / (high - low)
    cells = np.minimum((shares * np.array(shape)).astype(int), np.array(shape) - 1)
    flat = np.ravel_multi_index(tuple(cells.T), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(float)


def histogram_modes(
    noisy: Array, box: Array, width: float, noise_scale: float, count: int | None
) -> tuple[Array, Array]:
    """Peaks of the smoothed counts and how far each persists above the noise: post-processing.

    They are read on a grid of a third of the smoothing, with heights of a kernel sum (1 above its own record).  A peak
    persists as far as it stands above the highest saddle to a higher one; the highest stands above 0.  A known count
    takes the most persistent; else all that persist beyond what noise alone reaches anywhere in the box.
    """
    sides = box[:, 1] - box[:, 0]
    fine = [max(3, min(int(MOST_CELLS ** (1 / len(box))), math.ceil(3 * side / width))) for side in sides]
    smooth, spread, axes = noisy, np.array(1.0), []
    for axis, ((low, high), cells, nodes) in enumerate(zip(box, noisy.shape, fine, strict=True)):
        middles = low + (np.arange(cells) + 0.5) * (high - low) / cells
        places = low + (np.arange(nodes) + 0.5) * (high - low) / nodes
        weights = np.exp(-0.5 * ((places[:, None] - middles[None, :]) / width) ** 2)
        smooth = np.moveaxis(np.tensordot(weights, smooth, axes=(1, axis)), 0, axis)
        spread = np.multiply.outer(spread, np.sqrt((weights**2).sum(axis=1)))
        axes.append(places)
    peaks, persistence = persistent_peaks(smooth)
    significance = persistence / (noise_scale * spread.ravel()[peaks])
    order = np.argsort(-significance, kind="stable")
    kept = order[:count] if count is not None else order[significance[order] > noise_ceiling(box, width)]
    found = np.stack(np.unravel_index(peaks[kept], smooth.shape), axis=-1)
    return _between_nodes(smooth, found, axes), significance[kept]


def persistent_peaks(values: Array) -> tuple[Array, Array]:
    """Flat places of all local maxima of a table and their persistence; the highest has its height above 0.

    Places are taken from the highest down and joined with taller neighbours along the axes: where two hills meet, the
    lower one ends, and its persistence is its height above that saddle.
    """
    flat, shape = values.ravel(), values.shape
    steps = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    coordinates = np.stack(np.unravel_index(np.arange(flat.size), shape), axis=-1)
    root = np.full(flat.size, -1)
    persistence: dict[int, float] = {}

    def top(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = int(root[place])
        return place

    for place in np.argsort(-flat, kind="stable"):
        place = int(place)
        near = [
            place + sign * step
            for axis, step in enumerate(steps)
            for sign in (-1, 1)
            if 0 <= coordinates[place, axis] + sign < shape[axis]
        ]
        tops = sorted({top(other) for other in near if root[other] >= 0}, key=lambda hill: -flat[hill])
        root[place] = tops[0] if tops else place
        for lower in tops[1:]:
            persistence[lower] = float(flat[lower] - flat[place])
            root[lower] = tops[0]
    highest = int(np.argmax(flat))
    persistence[highest] = max(float(flat[highest]), 0.0)
    places = np.array(list(persistence))
    return places, np.array(list(persistence.values()))


def _between_nodes(values: Array, found: Array, axes: list[Array]) -> Array:
    """Each peak at the top of the parabola through its node and the two beside it, along each axis."""
    modes = np.empty((len(found), len(axes)))
    for row, place in enumerate(found):
        for axis, nodes in enumerate(axes):
            i, step, away = int(place[axis]), nodes[1] - nodes[0], 0.0
            if 0 < i < len(nodes) - 1:
                line = values[tuple(slice(None) if other == axis else place[other] for other in range(len(axes)))]
                bend = line[i - 1] - 2 * line[i] + line[i + 1]
                away = 0.5 * (line[i - 1] - line[i + 1]) / bend if bend < 0 else 0.0
            modes[row, axis] = nodes[i] + np.clip(away, -0.5, 0.5) * step
    return modes
