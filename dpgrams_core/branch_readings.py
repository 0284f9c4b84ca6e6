"""The branches of a regression release, read off it again at a larger bandwidth: for free, and never off a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dpgrams_core.checks import positive
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.methods.functional_regression import from_unit, to_unit
from dpgrams_core.results import Release
from dpgrams_core.ridges import trace_ridges
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Branches:
    """Branch after branch, the most significant first, of a surface smoothed to ``width``.

    ``places`` (rows, 2) are (x, y) in the box of the surface; ``numbers`` (rows,) say which branch, ``heights`` (rows,)
    how far it stands above the noise there, in standard deviations.
    """

    places: Array
    numbers: Array
    heights: Array
    width: float


@dataclass(frozen=True, eq=False)
class _Smoothed:
    """As much of a released surface as tracing its ridges needs, at a larger bandwidth."""

    surface: ReleasedSurface
    bandwidth: float

    @property
    def box(self) -> Array:
        return self.surface.box

    def grid(self, axes: list[Array]) -> Array:
        return self.surface.grid(axes, self.bandwidth)

    def noise_grid(self, axes: list[Array]) -> Array:
        return self.surface.noise_grid(axes, self.bandwidth)


def own_branches(release: Release, box: Array) -> Branches:
    """The branches as the method itself read them off; ``box`` (2, 2) is that of the data, which the curve is in."""
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    assert release.curve is not None
    assert release.branches is not None
    assert release.significance is not None
    places = from_unit(to_unit(release.curve, box), surface.box)
    return Branches(places, release.branches, release.significance, surface.bandwidth)


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
    surface, spec = release.surface, cast(Any, release.spec)
    if release.curve is None or not isinstance(surface, ReleasedSurface):
        raise DataError("This release has no surface over a predictor and a response, so no branches can be read off.")
    if positive("factor", factor) < 1:
        raise SpecError("factor", factor, "a release can be smoothed further, but not sharpened: at least 1")
    smoothed = cast(ReleasedSurface, _Smoothed(surface, factor * surface.bandwidth))
    ridges = trace_ridges(smoothed, np.linspace(surface.box[0, 0], surface.box[0, 1], spec.grid_size))
    rows = [np.stack([ridge.x, ridge.y], axis=1) for ridge in ridges]
    return Branches(
        places=np.concatenate(rows),
        numbers=np.repeat(np.arange(len(rows)), [len(part) for part in rows]),
        heights=np.concatenate([ridge.height for ridge in ridges]),
        width=smoothed.bandwidth,
    )
