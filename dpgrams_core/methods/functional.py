"""The functional release: one noisy kernel sum, spent once, and everything after it free.

Theorem.  Let f_X(x) = sum_i exp(-|x - X_i|^2 / 2h^2), c(X) its coefficients in a fixed orthonormal set of the
RKHS of this kernel (surfaces.py), and sigma = sqrt(2) z(epsilon, delta) with z the multiplier of the analytic
Gaussian mechanism.  Releasing c(X) + N(0, sigma^2 I) is (epsilon, delta)-DP for the replacement of one record.

Proof.  Replacing X_i by X' changes f by k(., X') - k(., X_i), of squared RKHS norm
k(X', X') + k(X_i, X_i) - 2 k(X', X_i) = 2 - 2 k(X', X_i) <= 2, since k > 0.  Coefficients in an orthonormal set
are no longer than the function, so c changes by at most sqrt(2) in Euclidean norm, and the Gaussian mechanism
with noise sqrt(2) z has the stated guarantee (Balle & Wang 2018, theorem 8).  Surface, gradient, modes, paths
and synthetic twins are functions of the release (post-processing).  This is the mechanism of Hall, Rinaldo &
Wasserman (2013) with the exact multiplier, released as coefficients instead of values.  In doubles one record moves
the sums a little farther; ``release_event`` sets the noise for that (privacy/rounding.py).

Missing values.  A private record that misses one adds nothing to f, and n stays the number of rows (door.py).
Replacing a record by such a one, or the other way, changes f by k(., X_i), of norm 1 < sqrt(2): the same noise
covers it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import (
    REFERENCE_SPREAD,
    Bandwidth,
    BandwidthFacts,
    choose_bandwidth,
    mean_side,
    release_bandwidth,
)
from dpgrams_core.bumps import Bumps, find_bumps
from dpgrams_core.errors import SpecError
from dpgrams_core.merging import radius_groups
from dpgrams_core.methods.functional_sketch import modes_of_sketch, release_sketch
from dpgrams_core.methods.released import outside_box, proven_release, sized
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.specs import FunctionalSpec
from dpgrams_core.surfaces import ReleasedSurface, box_bases, coefficients, surface_sensitivity

Array = np.ndarray
SENSITIVITY = math.sqrt(2)  # of real numbers; ``release_event`` adds the slack for rounding
GRID_DIMENSIONS = 3
PATH_STEPS = 12
PATH_STARTS_A_SIDE = 6


def choose_release_bandwidth(spec: FunctionalSpec, data: Dataset) -> Bandwidth:
    """The wished bandwidth, or the public rule of this release times the public scale; refused beyond the box."""
    if spec.bandwidth is None:
        sigma = SENSITIVITY * gaussian_multiplier(spec.epsilon, spec.delta)
        value = release_bandwidth(n=data.n, d=data.dimension, box=data.box, sigma=sigma)
        chosen = Bandwidth(value * (spec.bandwidth_scale or 1.0), "release", True)
    else:
        facts = BandwidthFacts(
            n=data.n, d=data.dimension, box=data.box, epsilon=spec.epsilon, beta=spec.beta, points=data.usable_points
        )
        chosen = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    if chosen.value > mean_side(data.box):
        # The bandwidth itself is not repeated: it may have been read off private records.
        fixed = isinstance(spec.bandwidth, (int, float)) or spec.bandwidth_scale is None
        name = "bandwidth" if fixed else "bandwidth_scale"
        raise SpecError(
            name,
            getattr(spec, name),
            "the bandwidth is wider than the box, so there would be nothing to see in it; "
            f"for this box h must be at most {mean_side(data.box):.3g}",
        )
    return chosen


def release_event(spec: FunctionalSpec, n: int, box: Array, h: float) -> GaussianRelease:
    """Sensitivity and noise of a surface on a grid, from public facts alone."""
    multiplier = gaussian_multiplier(spec.epsilon, spec.delta)
    sensitivity = surface_sensitivity(n, box, h, multiplier)
    return GaussianRelease(sensitivity=sensitivity, noise_scale=sensitivity * multiplier)


def climb(surface: ReleasedSurface, starts: Array, steps: int) -> Array:
    """Paths (steps + 1, k, d) of mean shift on a released surface: x + h^2 grad f / f, at most h a step.

    Where the noisy surface is not positive the step follows the gradient alone.
    """
    h = surface.bandwidth
    path = [starts]
    for _ in range(steps):
        x = path[-1]
        value, gradient, _ = surface.heat(x, h)
        step = h**2 * gradient / np.maximum(value, surface.noise_scale)[:, None]
        size = np.linalg.norm(step, axis=1, keepdims=True)
        path.append(x + step * np.minimum(1.0, h / np.maximum(size, 1e-300)))
    return np.stack(path)


def public_starts(box: Array) -> Array:
    """A public lattice of starts for the paths that are drawn."""
    per_side = max(2, round(PATH_STARTS_A_SIDE ** min(1.0, 2 / len(box))))
    axes = [np.linspace(low, high, per_side + 2)[1:-1] for low, high in box]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))


def distinct_modes(surface: ReleasedSurface, bumps: Bumps) -> tuple[Array, Array]:
    """One mode for each peak of the surface that the bumps stand on, with its significance.

    Several bumps under one peak describe its shape, not several modes: bumps whose climbs end together are
    one mode, placed at the most significant of them when it is alone and at the peak otherwise.
    """
    if len(bumps.centres) == 0:
        return bumps.centres, bumps.significance
    peaks = climb(surface, bumps.centres, 40)[-1]
    groups = radius_groups(peaks, surface.bandwidth)
    modes, heights = [], []
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        best = members[np.argmax(bumps.significance[members])]
        modes.append(bumps.centres[best] if len(members) == 1 else peaks[best])
        heights.append(bumps.significance[best])
    return np.array(modes), np.array(heights)


def release_surface(data: Dataset, spec: FunctionalSpec, noise: Noise) -> Release:
    """The part that reads the records: the noisy surface with its guarantee, and no mode read off it yet.

    Notes
    -----
    Cost O(n g d) for g nodes a side, one pass over the records.
    """
    refuse_private(data, noise.door)
    bandwidth = choose_release_bandwidth(spec, data)
    if data.dimension > GRID_DIMENSIONS:
        return release_sketch(data, spec, noise, bandwidth)
    h = bandwidth.value
    bases = box_bases(data.box, h)
    event = release_event(spec, data.n, data.box, h)
    sigma = event.noise_scale
    guarantee = guarantee_of(spec, bandwidth, event)  # priced before anything is drawn
    exact = coefficients(data.points, bases)
    surface = ReleasedSurface(noise.independent_gaussian(exact, sigma), data.box, h, sigma, data.n)
    return Release(
        method="functional",
        modes=np.empty((0, data.dimension)),
        surface=surface,
        noise_scale=sigma,
        spec=replace(spec, bandwidth=h, bandwidth_scale=None),
        events=(event,),
        guarantee=guarantee,
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def functional(data: Dataset, spec: FunctionalSpec, noise: Noise) -> Release:
    """Release the kernel sum of the data once, and read its modes off the release (post-processing).

    On a grid in up to three columns, as a sketch (functional_sketch.py) in more.
    """
    return sized(read_modes(release_surface(data, spec, noise), data.box), data.points)


def read_modes(bare: Release, box: Array) -> Release:
    """A bare release with the modes that are read off it."""
    return replace(bare, **modes_of(bare, bare.spec.n_modes))


def modes_of(bare: Release, n_modes: int | None) -> dict[str, Any]:
    """Modes, their significance and the paths to them, as fields of a release."""
    surface = bare.surface
    if isinstance(surface, ReleasedSketch):
        return modes_of_sketch(surface, n_modes)
    assert surface is not None
    bumps = find_bumps(surface, n_modes, REFERENCE_SPREAD * mean_side(surface.box))
    modes, significance = distinct_modes(surface, bumps) if n_modes is None else (bumps.centres, bumps.significance)
    trajectories = climb(surface, public_starts(surface.box), PATH_STEPS)
    return {"modes": modes, "significance": significance, "trajectories": trajectories}


def guarantee_of(spec: FunctionalSpec, bandwidth: Bandwidth, event: GaussianRelease) -> Guarantee:
    """The guarantee of a surface on a grid."""
    return proven_release(
        spec,
        bandwidth,
        event,
        "Proven: replacing one record changes the whole released surface by at most √2 in the norm of its noise, "
        "and its modes, paths and heights are computed from that surface alone. It is paid for once.",
    )
