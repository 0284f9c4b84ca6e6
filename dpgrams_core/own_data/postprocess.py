"""What can be read off a release again and again, for free: everything here sees the release and never a record."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpgrams_core.methods.functional.modes import modes_of, public_starts
from dpgrams_core.model.checks import positive, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Release
from dpgrams_core.numerics.centres import anything_stands_out, centre_covariances, released_centres
from dpgrams_core.numerics.likely_places import likely_places
from dpgrams_core.numerics.merging import radius_groups
from dpgrams_core.numerics.regions import mode_covariances, peak_covariances
from dpgrams_core.numerics.ridges import ridge_bands, trace_ridges
from dpgrams_core.numerics.scaling import SurfaceInUnits
from dpgrams_core.numerics.sketch import ReleasedSketch, error_scale, noise_ceiling, noise_chances, public_points
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
Surface = ReleasedSurface | ReleasedSketch
PLACES = 6_000
MOST_STARTS = 200
STEPS = 40
FOUND_WITHIN = 0.05  # of a side of the box, as a mean over the columns


@dataclass(frozen=True, eq=False)
class Reading:
    """Places (k, d) in the units of the release, how far each stands above the noise, shares of the records, the
    chances that noise alone is as high somewhere, and covariances (k, d, d) for the regions: of the population, or with
    ``smoothed`` of the density that was smoothed further."""

    places: Array
    significance: Array | None = None
    shares: Array | None = None
    chances: Array | None = None
    covariances: Array | None = None
    smoothed: bool = False


def released_modes(release: Release, factor: float = 1.0, count: int | None = None) -> Reading:
    """The modes of a release, smoothed by a factor of at least 1 and cut to a count.

    Without smoothing they are those of ``functional``: all that stand above the noise, or the ``count`` likeliest.
    With it they are the peaks of the smoothed release that noise alone would hardly reach, the ``count`` highest.

    Examples
    --------
    >>> from dpgrams_core import load_dataset, run
    >>> release = run("functional", load_dataset("four_corners", n=5000, seed=0), seed=0)
    >>> len(released_modes(release).places), len(released_modes(release, 1.5, count=2).places)
    (4, 2)
    """
    surface, known = release.bare_surface, release.significance is not None  # otherwise these are no modes of a surface
    if surface is None or (positive("factor", factor) == 1 and count is None and known):
        chances, regions = release.noise_chances, release.mode_covariances if known else None
        return _strongest(Reading(release.modes, release.significance, chances=chances, covariances=regions), count)
    if factor > 1:
        found = _peaks(surface, factor * surface.bandwidth)
        moved = peak_covariances(surface, found.places, factor * surface.bandwidth)
        found = replace(found, covariances=_squared(release, moved), smoothed=True)
    else:
        modes, heights = (modes_of(release, count)[name] for name in ("modes", "significance"))
        found = Reading(modes, heights, covariances=_squared(release, mode_covariances(surface, modes)[1]))
    assert found.significance is not None
    chances = noise_chances(surface.box, factor * surface.bandwidth, found.significance)
    return _strongest(replace(found, places=in_units_of(release, found.places), chances=chances), count)


def released_clusters(release: Release, count: int, regions: bool = False) -> Reading:
    """``count`` cluster centres of a release, and the likeliest share of the records nearest to each, largest first.

    There are none where nothing stands above the noise.  With ``regions`` also the covariances of those of the
    population, which take seconds in a sketch.
    """
    surface = release.bare_surface
    if surface is None:
        raise DataError("This release has no surface, so no clusters can be read off it.")
    places, weights = likely_places(surface, whole("count", count, 1, 40))
    if not anything_stands_out(surface, places):
        return Reading(release.modes[:0], shares=np.empty(0))
    centres = released_centres(surface, count)
    nearest = scipy.spatial.KDTree(centres).query(places)[1]
    shares = np.bincount(nearest, weights=weights, minlength=len(centres)) / weights.sum()
    order = np.argsort(-shares, kind="stable")
    found = Reading(in_units_of(release, centres[order]), shares=shares[order])
    if not regions:
        return found
    return replace(found, covariances=_squared(release, centre_covariances(surface, centres[order])[1]))


def in_units_of(release: Release, places: Array) -> Array:
    """Places (..., d) of the bare surface in the units of the release."""
    if release.paid is not None:
        return release.paid.back(places)
    return release.surface.from_bare(places) if isinstance(release.surface, SurfaceInUnits) else places


def _squared(release: Release, covariances: Array) -> Array:
    """Covariances (k, d, d) of places of the bare surface in the units of the release."""
    if release.paid is not None:
        return np.einsum("aj,kab,bl->kjl", release.paid.ways, covariances, release.paid.ways)
    if not isinstance(release.surface, SurfaceInUnits):
        return covariances
    sides = release.surface.bandwidths / release.surface.bandwidth
    return np.asarray(covariances * np.outer(sides, sides))


def climbs(release: Release, factor: float, steps: int) -> Array:
    """Paths (steps + 1, k, d) of mean shift from public starts on a release smoothed by a factor of at least 1."""
    surface = release.bare_surface
    assert surface is not None
    path = climb_smoothed(surface, public_starts(surface.box), factor * surface.bandwidth, steps)
    return in_units_of(release, path)


def agreement(truth: Array, found: Array, box: Array) -> tuple[float, float, float]:
    """(share of the true places that are found, found places that are none, typical error) of two sets of places.

    A place is found where one of the other set lies within ``FOUND_WITHIN`` of a side of the box (root mean square over
    the columns); the error is the median of these distances over what was found, as a share of a side.

    >>> agreement(np.array([[1.0], [9.0]]), np.array([[1.1], [5.0]]), np.array([[0.0, 10.0]]))
    (0.5, 1.0, 0.01)
    """
    if len(found) == 0:
        return 0.0, 0.0, float("nan")
    sides = box[:, 1] - box[:, 0]
    scale = sides * np.sqrt(len(sides))
    to_found = scipy.spatial.KDTree(found / scale).query(truth / scale)[0]
    to_truth = scipy.spatial.KDTree(truth / scale).query(found / scale)[0]
    near = to_found[to_found <= FOUND_WITHIN]
    error = round(float(np.median(near)), 12) if len(near) else float("nan")
    return len(near) / len(truth), float((to_truth > FOUND_WITHIN).sum()), error


def climb_smoothed(surface: Surface, starts: Array, width: float, steps: int) -> Array:
    """Paths (steps + 1, k, d) of mean shift on a release smoothed to a width, at most a width a step."""
    path = [starts]
    floor = surface.noise_at(starts, width)
    for _ in range(steps):
        checkpoint()
        value, gradient, _ = surface.heat(path[-1], width)
        step = gradient * (width**2 / np.maximum(value, floor))[:, None]
        size = np.linalg.norm(step, axis=1, keepdims=True)
        path.append(path[-1] + step * np.minimum(1.0, width / np.maximum(size, 1e-300)))
    return np.stack(path)


def _peaks(surface: Surface, width: float) -> Reading:
    """Peaks inside the box of the release smoothed to ``width`` that stand above what noise alone reaches."""
    places = public_points(surface.box, PLACES)
    values = surface.value(places, width)

    def noise_at(x: Array) -> Array:
        noise = surface.noise_at(x, width)
        if isinstance(surface, ReleasedSketch):  # the error of its kernel must not become a mode
            noise = np.full(len(x), error_scale(values, float(noise[0]), surface.box, width, surface.blocks))
        return noise

    ceiling = noise_ceiling(surface.box, width)
    starts = _covering(places, values, values > ceiling * noise_at(places), width)
    if not len(starts):
        return Reading(starts, np.empty(0))
    ends = climb_smoothed(surface, starts, width, STEPS)[-1]
    ends = ends[((ends >= surface.box[:, 0]) & (ends <= surface.box[:, 1])).all(axis=1)]
    if not len(ends):
        return Reading(ends, np.empty(0))
    heights, groups = surface.value(ends, width), radius_groups(ends, 0.5 * width)
    tops = np.array([np.flatnonzero(groups == group)[np.argmax(heights[groups == group])] for group in set(groups)])
    significance = heights[tops] / noise_at(ends[tops])
    return Reading(ends[tops][significance > ceiling], significance[significance > ceiling])


def _covering(places: Array, values: Array, alive: Array, width: float) -> Array:
    """The highest place, then the highest that is a width away from it, and so on: no bump is left without a start."""
    chosen: list[int] = []
    alive = alive.copy()
    while alive.any() and len(chosen) < MOST_STARTS:
        chosen.append(int(np.argmax(np.where(alive, values, -np.inf))))
        alive &= np.linalg.norm(places - places[chosen[-1]], axis=1) > width
    return places[chosen]


def _strongest(reading: Reading, count: int | None) -> Reading:
    """The places in the order of their height, at most ``count`` of them."""
    if reading.significance is None:
        return Reading(reading.places[:count])
    order = np.argsort(-reading.significance, kind="stable")[:count]
    chances, regions = (None if one is None else one[order] for one in (reading.chances, reading.covariances))
    places, heights = reading.places[order], reading.significance[order]
    return replace(reading, places=places, significance=heights, chances=chances, covariances=regions)


@dataclass(frozen=True, eq=False)
class Branches:
    """Branch after branch, the most significant first, of a surface smoothed to ``width``.

    ``places`` (rows, 2) are (x, y) in the units of the surface; ``numbers`` (rows,) say which branch, ``heights``
    (rows,) how far it stands above the noise there, in standard deviations.
    """

    places: Array
    numbers: Array
    heights: Array
    width: float
    band: Array | None = None  # (rows, 2): 95 % of where noise may have moved each row


def own_branches(release: Release) -> Branches:
    """The branches as the method itself read them off."""
    assert release.surface is not None
    assert release.curve is not None
    assert release.branches is not None
    assert release.significance is not None
    return Branches(
        release.curve, release.branches, release.significance, release.surface.bandwidth, release.curve_band
    )


def released_branches(release: Release, factor: float = 1.0) -> Branches:
    """The branches of a regression release, smoothed by a factor of at least 1 and traced as its method traces them.

    The noise of the smoothed surface is known as exactly as that of the released one, so heights mean the same.

    Examples
    --------
    >>> from dpgrams_core import load_dataset, run
    >>> release = run("functional_regression", load_dataset("sinusoid", n=1000, seed=0), seed=0)
    >>> branches = released_branches(release, 1.5)
    >>> branches.width == 1.5 * release.surface.bandwidth, branches.places.shape[1]
    (True, 2)
    """
    surface = release.bare_surface
    if release.curve is None or not isinstance(surface, ReleasedSurface):
        raise DataError("This release has no surface over a predictor and a response, so no branches can be read off.")
    if positive("factor", factor) < 1:
        raise SpecError("factor", factor, "a release can be smoothed further, but not sharpened: at least 1")
    width = factor * surface.bandwidth
    ridges = trace_ridges(surface, np.linspace(surface.box[0, 0], surface.box[0, 1], release.spec.grid_size), width)
    rows = [np.stack([ridge.x, ridge.y], axis=1) for ridge in ridges]
    places = np.concatenate(rows)
    ends = [np.stack([places[:, 0], end], axis=1) for end in ridge_bands(surface, places[:, 0], places[:, 1], width).T]
    return Branches(
        places=in_units_of(release, places),
        band=np.stack([in_units_of(release, end)[:, 1] for end in ends], axis=1),
        numbers=np.repeat(np.arange(len(rows)), [len(part) for part in rows]),
        heights=np.concatenate([ridge.height for ridge in ridges]),
        width=width,
    )
