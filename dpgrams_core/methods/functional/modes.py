"""The functional release: one noisy kernel sum, spent once, and everything after it free.

Theorem.  Let f_X(x) = sum_i exp(-|x - X_i|^2 / 2h^2), c(X) its coefficients in a fixed orthonormal set of the
RKHS of this kernel (numerics/surface.py), and sigma = sqrt(2) z(epsilon, delta) with z the multiplier of the analytic
Gaussian mechanism.  Releasing c(X) + N(0, sigma^2 I) is (epsilon, delta)-DP for the replacement of one record.

Proof.  Replacing X_i by X' changes f by k(., X') - k(., X_i), of squared RKHS norm
k(X', X') + k(X_i, X_i) - 2 k(X', X_i) = 2 - 2 k(X', X_i) <= 2, since k > 0.  Coefficients in an orthonormal set
are no longer than the function, so c changes by at most sqrt(2) in Euclidean norm, and the Gaussian mechanism
with noise sqrt(2) z has the stated guarantee (Balle & Wang 2018, theorem 8).  Surface, gradient, modes, paths
and synthetic twins are functions of the release (post-processing).  This is the mechanism of Hall, Rinaldo &
Wasserman (2013) with the exact multiplier, released as coefficients instead of values.  In doubles one record moves
the sums a little farther; ``release_event`` sets the noise for that (numerics/rounding.py).

In more columns than a grid can hold.  Let phi be the Fourier features of numerics/sketch.py, with |phi(x)| <= 1 and
|phi(x) - phi(y)| <= Delta for all x and y, Delta^2 = 2 + 2/31 (and a slack for rounding).  Releasing
sum_i phi(X_i) + N(0, (Delta z)^2 I) has the same guarantee by the same proof: replacing X_i by X' changes the sum by
phi(X') - phi(X_i), at most Delta long.  The frequencies follow from the number of columns and the bandwidth alone.

Missing values.  A private record that misses one adds nothing to the sum, and n stays the number of rows (door.py).
Replacing a record by such a one, or the other way, changes f by k(., X_i), of norm 1 < sqrt(2), and a sketch by
|phi| <= 1 < Delta: the same noise covers it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.numerics.bandwidths import (
    Bandwidth,
    BandwidthFacts,
    choose_bandwidth,
    mean_side,
    reference_spread,
    release_bandwidth,
)
from dpgrams_core.numerics.bumps import (
    SEARCH_SPREADS,
    Bumps,
    bumps_on,
    find_bumps,
    find_bumps_together,
    find_sketch_bumps,
)
from dpgrams_core.numerics.cell_sums import ROWS as GRID_CHUNK
from dpgrams_core.numerics.merging import climb, radius_groups
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import CHUNK as SKETCH_CHUNK
from dpgrams_core.numerics.sketch import (
    SKETCH_SENSITIVITY,
    ReleasedSketch,
    check_resolution,
    choose_blocks,
    feature_sums,
    public_points,
    sketch_sensitivity,
)
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients, surface_sensitivity
from dpgrams_core.numerics.together import Surfaces
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
SENSITIVITY = math.sqrt(2)  # of real numbers; ``release_event`` adds the slack for rounding
GRID_DIMENSIONS = 3
PATH_STEPS, PATH_STARTS, PATH_STARTS_A_SIDE = 12, 36, 6
PEAK_STEPS = 40  # from a bump to the peak that it stands on
GIVES_WAY = 0.5  # bandwidths from its peak at which a centre does (benchmarks/pilot_peaks.py)
SIZED_AT = 200  # records
ON_A_GRID = (
    "Proven: replacing one record changes the whole released surface by at most √2 in the norm of its noise, "
    "and its modes, paths and heights are computed from that surface alone. It is paid for once."
)
IN_A_SKETCH = (
    f"Proven: replacing one record moves the whole released sketch by at most {SKETCH_SENSITIVITY:.3f}, wherever "
    "the record lies, and its modes, paths and heights are computed from that sketch alone. It is paid for once."
)


def choose_release_bandwidth(spec: FunctionalSpec, data: Dataset, multiplier: float | None = None) -> Bandwidth:
    """The wished bandwidth, or the public rule of this release times the public scale; refused beyond the box."""
    if spec.bandwidth is None:
        sigma = SENSITIVITY * (multiplier or gaussian_multiplier(spec.epsilon, spec.delta))
        value = release_bandwidth(n=data.n, d=data.dimension, box=data.box, sigma=sigma)
        chosen = Bandwidth(value * (spec.bandwidth_scale or 1.0), "release", True)
    else:
        facts = BandwidthFacts(
            n=data.n, d=data.dimension, box=data.box, epsilon=spec.epsilon, beta=spec.beta, points=data.usable_points
        )
        chosen = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts, spec.bandwidth_from)
    if chosen.value > mean_side(data.box):
        # The bandwidth itself is not repeated: it may have been read off private records.
        fixed = isinstance(spec.bandwidth, (int, float)) or spec.bandwidth_scale is None
        name = "bandwidth" if fixed else "bandwidth_scale"
        allowed = "the bandwidth is wider than the box, so there would be nothing to see in it; for this box h must be"
        raise SpecError(name, getattr(spec, name), f"{allowed} at most {mean_side(data.box):.3g}")
    return chosen


def release_event(
    spec: FunctionalSpec, n: int, box: Array, h: float, multiplier: float | None = None
) -> GaussianRelease:
    """Sensitivity and noise of a surface on a grid, from public facts alone."""
    multiplier = multiplier or gaussian_multiplier(spec.epsilon, spec.delta)
    sensitivity = surface_sensitivity(n, box, h, multiplier)
    return GaussianRelease(sensitivity=sensitivity, noise_scale=sensitivity * multiplier)


def public_starts(box: Array) -> Array:
    """A public lattice of starts for the paths that are drawn."""
    per_side = max(2, round(PATH_STARTS_A_SIDE ** min(1.0, 2 / len(box))))
    axes = [np.linspace(low, high, per_side + 2)[1:-1] for low, high in box]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))


def distinct_modes(surface: BareSurface, bumps: Bumps) -> tuple[Array, Array]:
    """One mode for each peak of the release that the bumps stand on, with its significance.

    Several bumps under one peak describe its shape (a long cluster needs many round bumps), not several modes: bumps
    whose climbs end together are one mode; in a sketch the most significant of them, on a grid by ``parted_modes``.
    """
    if len(bumps.centres) == 0:
        return bumps.centres, bumps.significance
    h, sketched = surface.bandwidth, isinstance(surface, ReleasedSketch)
    floor = surface.noise_at(bumps.centres, h) if sketched else surface.noise_scale
    peaks = climb(surface, bumps.centres, PEAK_STEPS, h, floor)[-1]
    if not sketched:
        return parted_modes([surface], [bumps], [peaks])[0]
    best = np.sort([some[np.argmax(bumps.significance[some])] for some in _under_one_peak(peaks, h)])
    return bumps.centres[best], bumps.significance[best]


def _under_one_peak(peaks: Array, h: float) -> list[Array]:
    """The numbers of the bumps whose climbs end together."""
    groups = radius_groups(peaks, h)
    return [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]


def parted_modes(surfaces: Sequence[Any], found: Sequence[Bumps], peaks: Sequence[Array]) -> list[tuple[Array, Array]]:
    """``distinct_modes`` on grids, given where the climb from each bump ends.

    Where several bumps stand on one peak, the fit begins again with one bump for each peak, as if that number had been
    known: a peak of the bare surface has two to eight times the error of a fitted centre.  A centre that leaves its
    peak by more than half a bandwidth gives way to it: its bump may cover several peaks, and then its middle,
    which lies between them, is none.
    """
    h = surfaces[0].bandwidth

    def given_way(bumps: Bumps, tops: Array) -> tuple[Array, Array]:
        near = np.linalg.norm(bumps.centres - tops, axis=1, keepdims=True) <= GIVES_WAY * h
        return np.where(near, bumps.centres, tops), bumps.significance

    modes = [given_way(bumps, ends) for bumps, ends in zip(found, peaks, strict=True)]
    places: dict[int, Array] = {}
    for number, (bumps, ends) in enumerate(zip(found, peaks, strict=True)):
        members = _under_one_peak(ends, h) if len(ends) else []
        if len(members) < len(ends):
            places[number] = ends[[some[np.argmax(bumps.significance[some])] for some in members]]
    if places:
        again = bumps_on(
            [surfaces[number] for number in places], list(places.values()), reference_spread(surfaces[0].box)
        )
        for (number, tops), bumps in zip(places.items(), again, strict=True):
            modes[number] = given_way(bumps, tops)
    return modes


Box = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class KernelSums:
    """What a functional release adds up over records of a public box: on a grid, or as so many blocks of a sketch.

    It can be sent to where records are, and called there on some of them at a time.
    """

    box: Box
    bandwidth: float
    blocks: int = 0

    @property
    def chunk(self) -> int:
        """How many records are added at once: the price covers the rounding of sums over so many (rounding.py)."""
        return SKETCH_CHUNK if self.blocks else GRID_CHUNK

    def __call__(self, points: Array) -> Array:
        if self.blocks:
            return feature_sums(points, np.array(self.box), self.bandwidth, self.blocks)
        return coefficients(points, box_bases(np.array(self.box), self.bandwidth))


def release_surface(data: Dataset, spec: FunctionalSpec, noise: Noise, multiplier: float | None = None) -> Release:
    """The part that reads the records: the noisy surface or sketch with its guarantee, and no mode read off it yet.

    One pass over the records, of cost O(n g d) for g nodes a side; as a sketch O(n b) for the b = 32 blocks of 32
    vertices at most.  ``multiplier`` is the noise over the sensitivity where a part of the budget is spent elsewhere.
    """
    refuse_private(data, noise.door)
    multiplier = multiplier or gaussian_multiplier(spec.epsilon, spec.delta)
    bandwidth = choose_release_bandwidth(spec, data, multiplier)
    h = bandwidth.value
    box: Box = tuple(map(tuple, data.box.tolist()))
    released: type[BareSurface]
    if data.dimension > GRID_DIMENSIONS:
        check_resolution(data.box, h)
        blocks = choose_blocks(data.n, SKETCH_SENSITIVITY * multiplier)
        sensitivity = sketch_sensitivity(data.n, blocks, multiplier)
        event = GaussianRelease(sensitivity=sensitivity, noise_scale=sensitivity * multiplier)
        sums = KernelSums(box, h, blocks)
        released, statement = ReleasedSketch, IN_A_SKETCH
    else:
        sums = KernelSums(box, h)
        box_bases(data.box, h)  # refused before it is priced where there would be too many of them
        event = release_event(spec, data.n, data.box, h, multiplier)
        released, statement = ReleasedSurface, ON_A_GRID
    guarantee = guarantee_of(spec, bandwidth, event, statement)  # priced before anything is drawn
    noisy = noise.independent_gaussian(data.add_up(sums), event.noise_scale)
    return Release(
        method="functional",
        modes=np.empty((0, data.dimension)),
        surface=released(noisy, data.box, h, event.noise_scale, data.n),
        noise_scale=event.noise_scale,
        spec=replace(spec, **bandwidth.as_run()),
        events=(event,),
        guarantee=guarantee,
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def guarantee_of(
    spec: FunctionalSpec, bandwidth: Bandwidth, event: GaussianRelease, statement: str = ON_A_GRID
) -> Guarantee:
    """The guarantee of one Gaussian release: proven, unless the bandwidth was read off the records."""
    cost = price((event,), spec.delta)
    epsilon = spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-6) else cost.epsilon
    guarantee = Guarantee(epsilon=epsilon, delta=cost.delta, status="proven", statement=statement)
    return guarantee if bandwidth.public else guarantee.without_public_bandwidth(bandwidth.rule)


def outside_box(data: Dataset) -> int:
    """How many records lie outside the public box: they count less there, and the guarantee still holds.

    Private records are in it by now, and how many were not is nobody's business.
    """
    if data.private:
        return 0
    outside = [(x < low) | (x > high) for x, (low, high) in zip(data.points.T, data.box, strict=True)]
    return int(np.count_nonzero(np.logical_or.reduce(outside)))


def sized(release: Release, points: Array) -> Release:
    """The same with the height that its noise hides, the median at some records, among the diagnostics."""
    assert release.surface is not None
    some = points[:: max(1, len(points) // SIZED_AT)]
    size = float(np.median(release.surface.value(some)))
    return replace(release, _diagnostics=replace(release.diagnostics, score_size=size))


def functional(data: Dataset, spec: FunctionalSpec, noise: Noise) -> Release:
    """Release the kernel sum of the data once, and read its modes off the release (post-processing)."""
    return sized(read_modes(release_surface(data, spec, noise), data.box), data.points)


def functional_together(data: Sequence[Dataset], spec: FunctionalSpec, noises: Sequence[Noise]) -> list[Release]:
    """``functional`` of each of some data sets with its own noise: the same releases, whose modes are read together."""
    bare = [release_surface(one, spec, noise) for one, noise in zip(data, noises, strict=True)]
    return [sized(release, one.points) for release, one in zip(read_together(bare), data, strict=True)]


def read_modes(bare: Release, box: Array) -> Release:
    """A bare release with the modes that are read off it."""
    return replace(bare, **modes_of(bare, bare.spec.n_modes))


def read_together(bare: Sequence[Release]) -> list[Release]:
    """``read_modes`` of each, those on a grid in the plane of one box and bandwidth together."""
    read: dict[int, Release] = {}
    groups: dict[Any, list[int]] = {}
    for number, release in enumerate(bare):
        surface = release.bare_surface
        assert surface is not None
        key = (surface.kind, surface.box.tobytes(), surface.bandwidth, release.spec.n_modes)
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        surfaces = [bare[number].bare_surface for number in numbers]
        found = surface_modes(surfaces, bare[numbers[0]].spec.n_modes)
        read |= {number: replace(bare[number], **fields) for number, fields in zip(numbers, found, strict=True)}
    return [read[number] for number in range(len(bare))]


def modes_of(bare: Release, n_modes: int | None) -> dict[str, Any]:
    """Modes, their significance and the paths to them, as fields of a release."""
    assert bare.bare_surface is not None
    return surface_modes([bare.bare_surface], n_modes)[0]


def surface_modes(surfaces: Sequence[Any], n_modes: int | None) -> list[dict[str, Any]]:
    """``modes_of`` some surfaces or sketches of one box and bandwidth."""
    if isinstance(surfaces[0], ReleasedSurface) and surfaces[0].dimension == 2:
        return _plane_modes(surfaces, n_modes)
    return [_modes(surface, n_modes) for surface in surfaces]


def _plane_modes(surfaces: Sequence[ReleasedSurface], n_modes: int | None) -> list[dict[str, Any]]:
    """In the plane, where the climbs from the bumps and those that are drawn are one for all surfaces."""
    box, h = surfaces[0].box, surfaces[0].bandwidth
    bumps = find_bumps_together(surfaces, n_modes, reference_spread(box))
    together, floors, starts = Surfaces(surfaces), [surface.noise_scale for surface in surfaces], public_starts(box)
    if n_modes is not None:
        paths = together.climbs([starts] * len(surfaces), PATH_STEPS, h, floors)
        return [_fields(one.centres, one.significance, path) for one, path in zip(bumps, paths, strict=True)]
    drawn = len(starts)
    both = together.climbs([np.concatenate([starts, one.centres]) for one in bumps], PATH_STEPS, h, floors)
    peaks = together.ends([path[-1, drawn:] for path in both], PEAK_STEPS - PATH_STEPS, h, floors)
    modes = parted_modes(surfaces, bumps, peaks)
    return [_fields(*found, path[:, :drawn]) for found, path in zip(modes, both, strict=True)]


def _modes(surface: BareSurface, n_modes: int | None) -> dict[str, Any]:
    reference, width = reference_spread(surface.box), surface.bandwidth
    if isinstance(surface, ReleasedSketch):
        bumps, starts = find_sketch_bumps(surface, n_modes, reference), public_points(surface.box, PATH_STARTS)
        width = math.hypot(width, SEARCH_SPREADS[-1] * reference)
        floor: Array | float = surface.noise_at(starts, width)
    else:
        bumps, starts = find_bumps(surface, n_modes, reference), public_starts(surface.box)
        floor = surface.noise_scale
    modes, significance = distinct_modes(surface, bumps) if n_modes is None else (bumps.centres, bumps.significance)
    return _fields(modes, significance, climb(surface, starts, PATH_STEPS, width, floor))


def _fields(modes: Array, significance: Array, trajectories: Array) -> dict[str, Any]:
    return {"modes": modes, "significance": significance, "trajectories": trajectories}
