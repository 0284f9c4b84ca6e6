"""The functional release for modal regression: one noisy kernel sum over (x, y), and its branches read off it.

Neighbours: one *response* is replaced; the predictors are public (subsec:private-modal-regression).  The release is
that of modes.py over the unit square, each axis divided by its side of the public box.  Replacing the response of
record i changes the kernel sum by k(., (x_i, y')) - k(., (x_i, y_i)), of norm at most sqrt(2): the same proof, and the
predictors may change as well, so the guarantee also holds when a whole record (x, y) is replaced.  No refusal here
depends on the predictors either, and a private record that misses a value adds nothing (modes.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgrams_core.methods.functional.modes import release_surface, sized
from dpgrams_core.methods.functional.spec import FunctionalRegressionSpec, FunctionalSpec
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.numerics.ridges import ridge_bands, trace_ridges
from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
UNIT_SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])
LEAST_RECORDS = 10


def to_unit(points: Array, box: Array) -> Array:
    """Points of a box in units of its sides, (n, d)."""
    return rescaled(points, box, UNIT_SQUARE)


def from_unit(points: Array, box: Array) -> Array:
    """The inverse of ``to_unit``."""
    return rescaled(points, UNIT_SQUARE, box)


def on_unit_square(data: Dataset) -> Dataset:
    """The data as modal regression sees them, each axis in units of its side of the box."""
    return replace(data, points=to_unit(data.points, data.box), box=UNIT_SQUARE)


def joint_spec(spec: FunctionalRegressionSpec) -> FunctionalSpec:
    """The settings of the release over the unit square."""
    return FunctionalSpec(
        epsilon=spec.epsilon, delta=spec.delta, bandwidth=spec.bandwidth, bandwidth_scale=spec.bandwidth_scale
    )


def release_joint(data: Dataset, spec: FunctionalRegressionSpec, noise: Noise) -> Release:
    """The part that reads the records: the noisy kernel sum over the unit square, no branch read off it yet."""
    refuse_private(data, noise.door)
    if data.n < LEAST_RECORDS:
        raise DataError(f"The data have {data.n} records; modal regression needs at least {LEAST_RECORDS}.")
    bare = release_surface(on_unit_square(data), joint_spec(spec), noise)
    statement = (
        "Proven: replacing one record, its response or all of it, changes the whole released surface by at "
        "most √2 in the norm of its noise, and the branches are computed from that surface alone. It is paid for once."
    )
    used = replace(spec, bandwidth=bare.spec.bandwidth, bandwidth_scale=None)
    guarantee = replace(bare.guarantee, statement=statement)
    return replace(bare, method="functional_regression", spec=used, guarantee=guarantee)


def functional_regression(data: Dataset, spec: FunctionalRegressionSpec, noise: Noise) -> Release:
    """Release the joint kernel sum once and trace the branches of y given x on it (post-processing).

    ``curve`` has rows (x, y), branch after branch, the most significant first; ``significance`` (rows,) says how
    far each stands above the noise, and ``curve_band`` (rows, 2) how far noise may have moved it.
    """
    return sized(read_branches(release_joint(data, spec, noise), data.box), to_unit(data.points, data.box))


def read_branches(bare: Release, box: Array) -> Release:
    """A bare release with the branches that are read off it, in the units of the data's box."""
    surface = bare.surface
    assert isinstance(surface, ReleasedSurface)
    ridges = trace_ridges(surface, np.linspace(0, 1, bare.spec.grid_size))
    rows = [np.stack([ridge.x, ridge.y], axis=1) for ridge in ridges]
    places = np.concatenate(rows)
    band = ridge_bands(surface, *places.T)
    return replace(
        bare,
        curve_band=rescaled(band, UNIT_SQUARE, box[[1, 1]]),
        curve=from_unit(places, box),
        branches=np.repeat(np.arange(len(rows)), [len(part) for part in rows]),
        significance=np.concatenate([ridge.height for ridge in ridges]),
    )
