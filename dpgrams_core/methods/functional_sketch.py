"""The functional release in more columns than a grid can hold: one noisy sketch, and everything after it free.

Theorem.  Let phi be the Fourier features of fourier.py, with |phi(x)| <= 1 and |phi(x) - phi(y)| <= Delta for all x and
y, Delta^2 = 2 + 2/31 (and a slack for rounding), and sigma = Delta z(epsilon, delta) with z the multiplier of the
analytic Gaussian mechanism.  Releasing sum_i phi(X_i) + N(0, sigma^2 I) is (epsilon, delta)-DP for the replacement of
one record.

Proof.  Replacing X_i by X' changes the sum by phi(X') - phi(X_i), at most Delta long; the Gaussian mechanism with noise
Delta z has the stated guarantee (Balle & Wang 2018, theorem 8).  The frequencies follow from the number of columns and
the bandwidth alone.  Values, modes, paths and synthetic twins are functions of the release (post-processing).

Missing values.  A private record that misses one adds nothing to the sum, and n stays the number of rows (door.py).
Replacing a record by such a one, or the other way, moves the sum by |phi| <= 1 < Delta: the same noise covers it.

Modes.  The noise is white in the features and their kernel is the Gaussian one up to a known error, so bumps are found
as in bumps.py: one by one where what is left stands highest above the noise, over a public set of places at two
smoothings (broad peaks first), and then each is moved to the peak of what the others leave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import REFERENCE_SPREAD, Bandwidth, mean_side
from dpgrams_core.bumps import overlap
from dpgrams_core.fourier import (
    SKETCH_SENSITIVITY,
    check_resolution,
    choose_blocks,
    error_scale,
    feature_sums,
    noise_ceiling,
    public_points,
    sketch_sensitivity,
)
from dpgrams_core.merging import radius_groups
from dpgrams_core.methods.released import outside_box, proven_release
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset, Diagnostics, Release, refuse_private
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.specs import FunctionalSpec

Array = np.ndarray
CANDIDATES = 8_192
SEARCH_SPREADS = (1.0, 2.0)  # in units of the reference spread
FIT_SPREADS = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
SPREAD_PRIOR = 0.5  # log-standard deviations of the weak priors on spread and on records per bump, as in bumps.py
RECORDS_PRIOR = 0.5
CLIMBED = 6  # best places of each search that are climbed
SWEEPS = 5
MOST = 40
PATH_STARTS, PATH_STEPS = 36, 12


@dataclass(frozen=True, eq=False)
class SketchBumps:
    """Bumps in a sketch: centres (k, d), spreads (k,), records (k,)."""

    centres: Array
    spreads: Array
    records: Array

    def without(self, j: int) -> SketchBumps:
        """All bumps but one."""
        return SketchBumps(*(np.delete(part, j, axis=0) for part in (self.centres, self.spreads, self.records)))

    def heights(self, x: Array, width: Array | float, h: float) -> tuple[Array, Array]:
        """What these bumps add to a sketch of bandwidth h smoothed to ``width``: values (k,), gradients (k, d)."""
        value, slope = np.zeros(len(x)), np.zeros(x.shape)
        for centre, spread, mass in zip(self.centres, self.spreads, self.records, strict=True):
            q = np.broadcast_to(np.asarray(width, dtype=float) ** 2 + spread**2, len(x))
            gap = x - centre
            part = mass * (h**2 / q) ** (x.shape[1] / 2) * np.exp(-0.5 * (gap**2).sum(axis=1) / q)
            value += part
            slope -= (part / q)[:, None] * gap
        return value, slope


def release_sketch(data: Dataset, spec: FunctionalSpec, noise: Noise, bandwidth: Bandwidth) -> Release:
    """The part that reads the records: the noisy sketch with its guarantee, and no mode read off it yet.

    Notes
    -----
    Cost O(n b) for the b = 32 blocks of 32 vertices at most, one pass over the records.
    """
    refuse_private(data, noise.door)
    h = bandwidth.value
    check_resolution(data.box, h)
    multiplier = gaussian_multiplier(spec.epsilon, spec.delta)
    blocks = choose_blocks(data.n, SKETCH_SENSITIVITY * multiplier)
    sensitivity = sketch_sensitivity(data.n, blocks, multiplier)
    sigma = sensitivity * multiplier
    event = GaussianRelease(sensitivity=sensitivity, noise_scale=sigma)
    # Priced before anything is drawn.
    guarantee = proven_release(
        spec,
        bandwidth,
        event,
        f"Proven: replacing one record moves the whole released sketch by at most {SKETCH_SENSITIVITY:.3f}, wherever "
        "the record lies, and its modes, paths and heights are computed from that sketch alone. It is paid for once.",
    )
    exact = feature_sums(data.points, data.box, h, blocks)
    sketch = ReleasedSketch(noise.independent_gaussian(exact, sigma), data.box, h, sigma, data.n)
    return Release(
        method="functional",
        modes=np.empty((0, data.dimension)),
        surface=sketch,
        noise_scale=sigma,
        spec=replace(spec, bandwidth=h, bandwidth_scale=None),
        events=(event,),
        guarantee=guarantee,
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def modes_of_sketch(sketch: ReleasedSketch, n_modes: int | None) -> dict[str, Any]:
    """Modes, their significance and the paths to them (post-processing), as fields of a release."""
    reference = REFERENCE_SPREAD * mean_side(sketch.box)
    bumps, significance = find_sketch_bumps(sketch, n_modes, reference)
    modes = bumps.centres
    if n_modes is None:
        modes, significance = distinct_modes(sketch, modes, significance)
    width = math.hypot(sketch.bandwidth, SEARCH_SPREADS[-1] * reference)
    trajectories = climb(sketch, public_points(sketch.box, PATH_STARTS), PATH_STEPS, width)
    return {"modes": modes, "significance": significance, "trajectories": trajectories}


def climb(sketch: ReleasedSketch, starts: Array, steps: int, width: float) -> Array:
    """Paths (steps + 1, k, d) of mean shift on a sketch smoothed to ``width``, at most ``width`` a step.

    Where the noisy sketch is not positive the step follows the gradient alone.
    """
    path = [starts]
    floor = sketch.noise_at(starts, width)
    for _ in range(steps):
        value, gradient, _ = sketch.heat(path[-1], width)
        path.append(path[-1] + _step(value, gradient, floor, width))
    return np.stack(path)


def _step(value: Array, gradient: Array, floor: Array, width: float | Array) -> Array:
    """A mean-shift step, at most ``width`` long."""
    step = gradient * (np.asarray(width) ** 2 / np.maximum(value, floor))[:, None]
    size = np.linalg.norm(step, axis=1)
    return step * np.minimum(1.0, width / np.maximum(size, 1e-300))[:, None]


def distinct_modes(sketch: ReleasedSketch, modes: Array, significance: Array) -> tuple[Array, Array]:
    """One mode for each peak of the sketch that bumps stand on: the most significant of its bumps.

    Several bumps under one peak describe its shape (a long cluster needs many round bumps), not several modes.
    """
    if len(modes) == 0:
        return modes, significance
    groups = radius_groups(climb(sketch, modes, 40, sketch.bandwidth)[-1], sketch.bandwidth)
    order = np.argsort(-significance, kind="stable")
    _, first = np.unique(groups[order], return_index=True)
    best = np.sort(order[first])
    return modes[best], significance[best]


def find_sketch_bumps(sketch: ReleasedSketch, count: int | None, reference: float) -> tuple[SketchBumps, Array]:
    """``count`` bumps, or all that stand above the noise when the count is unknown, and the significance of each.

    There are fewer than ``count`` where the box has no place left for one more, as in bumps.py.
    """
    search = _Search(sketch, reference)
    threshold = -np.inf if count is not None else noise_ceiling(sketch.box, sketch.bandwidth)
    bumps = SketchBumps(np.empty((0, sketch.dimension)), np.empty(0), np.empty(0))
    for number in range(1, (MOST if count is None else count) + 1):
        checkpoint()
        height, place = search.best(bumps, apart=count is not None)
        if not height > threshold:
            break
        share = sketch.n / max(number, count or 0)
        centres, spreads = np.vstack([bumps.centres, place]), np.append(bumps.spreads, reference)
        bumps = _with_masses(sketch, centres, spreads, share)
        bumps = _refined(sketch, bumps, reference, share)
    for _ in range(SWEEPS if len(bumps.centres) else 0):
        checkpoint()
        bumps = _refined(sketch, bumps, reference, sketch.n / len(bumps.centres))
    return bumps, search.significance(bumps)


def _with_masses(sketch: ReleasedSketch, centres: Array, spreads: Array, share: float) -> SketchBumps:
    """Records per bump by least squares with places and spreads held, pulled weakly to an equal share."""
    gram = overlap(sketch.bandwidth, centres, spreads)
    pull = (sketch.noise_scale / (RECORDS_PRIOR * share)) ** 2
    right = sketch.value(centres, np.hypot(sketch.bandwidth, spreads)) + pull * share
    masses = np.linalg.solve(gram + pull * np.eye(len(gram)), right)
    return SketchBumps(centres, spreads, np.clip(masses, 0.05 * share, 5 * share))


def _refined(sketch: ReleasedSketch, bumps: SketchBumps, reference: float, share: float) -> SketchBumps:
    """Each bump in turn at the peak of what the others leave, with the likeliest spread tried; then all masses."""
    h, d = sketch.bandwidth, sketch.dimension
    tried = reference * np.array(FIT_SPREADS)
    widths = np.hypot(h, tried)
    norms = (h**2 / (h**2 + 2 * tried**2)) ** (d / 4)
    for j in range(len(bumps.centres)):
        others = bumps.without(j)
        place = bumps.centres[j]
        found = sketch.value(np.tile(place, (len(tried), 1)), widths)
        found = found - others.heights(np.tile(place, (len(tried), 1)), widths, h)[0]
        fit = 0.5 * (np.maximum(found, 0.0) / norms / max(sketch.noise_scale, 1e-9)) ** 2
        spread = float(tried[np.argmax(fit - 0.5 * (np.log(FIT_SPREADS) / SPREAD_PRIOR) ** 2)])
        width = math.hypot(h, spread)
        value, gradient, _ = sketch.heat(place[None], width)
        known = others.heights(place[None], width, h)
        floor = sketch.noise_at(place[None], width)
        # The peak of a bump of this spread at this smoothing has the variance width^2 + spread^2: Newton's step.
        move = _step(value - known[0], gradient - known[1], floor, math.hypot(width, spread))
        moved = np.clip(place + move[0], sketch.box[:, 0], sketch.box[:, 1])
        centres, spreads = bumps.centres.copy(), bumps.spreads.copy()
        centres[j], spreads[j] = moved, spread
        bumps = SketchBumps(centres, spreads, bumps.records)
    return _with_masses(sketch, bumps.centres, bumps.spreads, share)


class _Search:
    """The sketch over the public places, smoothed in two ways."""

    def __init__(self, sketch: ReleasedSketch, reference: float) -> None:
        self.sketch, self.places = sketch, public_points(sketch.box, CANDIDATES)
        self.widths = [math.hypot(sketch.bandwidth, factor * reference) for factor in SEARCH_SPREADS]
        self.values = [sketch.value(self.places, width) for width in self.widths]

    def scale(self, rest: Array, width: float) -> float:
        """The noise of the release, with the error of the kernel where that is seen over the box."""
        noise = float(self.sketch.noise_at(self.places[:1], width)[0])
        return error_scale(rest, noise, self.sketch.box, self.sketch.bandwidth, self.sketch.blocks)

    def best(self, bumps: SketchBumps, apart: bool) -> tuple[float, Array]:
        """The highest place above the noise once the bumps found so far are taken away: height and place.

        ``apart`` keeps a new bump 1.5 bandwidths from the others, as in bumps.py; where no place is left, the height is
        minus infinity.
        """
        h, d = self.sketch.bandwidth, self.sketch.dimension
        found = (-np.inf, self.places[0])
        for width, values in zip(self.widths, self.values, strict=True):
            rest = values - bumps.heights(self.places, width, h)[0]
            scale = self.scale(rest, width)
            sampling = (h / width) ** d  # times the value: sum of squares of the records' kernels, at most

            def height(value: Array, left: Array, scale: float = scale, sampling: float = sampling) -> Array:
                return left / np.sqrt(scale**2 + sampling * np.maximum(value, 0.0))

            x = self.places[np.argsort(-np.where(self._free(self.places, bumps, apart), height(values, rest), -np.inf))]
            x = x[:CLIMBED]
            for _ in range(8):
                value, gradient, _ = self.sketch.heat(x, width)
                known = bumps.heights(x, width, h)
                moved = x + _step(value - known[0], gradient - known[1], np.full(len(x), scale), width)
                moved = np.clip(moved, self.sketch.box[:, 0], self.sketch.box[:, 1])
                x = np.where(self._free(moved, bumps, apart)[:, None], moved, x)
            value = self.sketch.value(x, width)
            heights = height(value, value - bumps.heights(x, width, h)[0])
            heights = np.where(self._free(x, bumps, apart), heights, -np.inf)
            top = int(np.argmax(heights))
            if heights[top] > found[0]:
                found = (float(heights[top]), x[top])
        return found

    def significance(self, bumps: SketchBumps) -> Array:
        """How far each bump stands above the noise: its own matched height once the others are taken away."""
        h, result = self.sketch.bandwidth, np.empty(len(bumps.centres))
        rest = self.values[0] - bumps.heights(self.places, self.widths[0], h)[0]
        excess = self.scale(rest, self.widths[0]) / float(self.sketch.noise_at(self.places[:1], self.widths[0])[0])
        for j, spread in enumerate(bumps.spreads):
            place, width = bumps.centres[j : j + 1], math.hypot(h, float(spread))
            left = self.sketch.value(place, width) - bumps.without(j).heights(place, width, h)[0]
            result[j] = left[0] / (excess * self.sketch.noise_at(place, width)[0])
        return result

    def _free(self, x: Array, bumps: SketchBumps, apart: bool) -> Array:
        if not apart or len(bumps.centres) == 0:
            return np.ones(len(x), dtype=bool)
        square = ((x[:, None, :] - bumps.centres[None]) ** 2).sum(axis=-1)
        return square.min(axis=1) >= (1.5 * self.sketch.bandwidth) ** 2
