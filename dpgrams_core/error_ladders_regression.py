"""Ladders of error for modal regression: from partial mean shift without privacy to DP-PMS and to the release.

Simulation only, as in error_ladders.py.  Every step gives rows (x, y): the steps of DP-PMS its end points as they are,
until the last one merges them to a curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpgrams_core.errors import SpecError
from dpgrams_core.ladder_parts import (
    MOST_STEPS,
    NO_CLIP,
    NO_FLOOR,
    Ladder,
    Rung,
    SwitchedNoise,
    without_noise,
)
from dpgrams_core.methods.dp_pms import ascend, clipped_shift, plan, refuse_a_grid_beside_the_data
from dpgrams_core.methods.dp_pms_curve import cleanup, significant
from dpgrams_core.methods.dp_pms_plan import Plan
from dpgrams_core.methods.dp_pms_starts import draw_starts
from dpgrams_core.methods.functional import choose_release_bandwidth
from dpgrams_core.methods.functional_regression import UNIT_SQUARE, from_unit, release_joint, to_unit
from dpgrams_core.methods.pms import LEAST_OF_RANGE, MAX_RECORDS, pms
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, refuse_private
from dpgrams_core.ridges import trace_ridges
from dpgrams_core.specs import FunctionalRegressionSpec, FunctionalSpec, make_spec
from dpgrams_core.specs_baselines import PMSSpec
from dpgrams_core.specs_regression import DPPMSSpec
from dpgrams_core.surfaces import ReleasedSurface, box_bases

Array = np.ndarray
REGRESSION_MEASURES = ("mse",)
MISSES_ARE_FREE = "This MSE asks how near the curve is to some branch; a branch that is missed costs nothing in it."


def _on_unit_square(data: Dataset) -> Dataset:
    """The data as both methods see them, each axis in units of its side of the box."""
    return Dataset(name=data.name, kind="regression", points=to_unit(data.points, data.box), box=UNIT_SQUARE)


def _check_baseline(data: Dataset, h: float) -> None:
    """Refuse what partial mean shift, the first step, cannot be run on, before anything runs."""
    if data.truth is None:
        raise SpecError("dataset", data.name, "its true branches are not known, so there is no error to part")
    if data.n > MAX_RECORDS:
        raise SpecError("n", data.n, f"partial mean shift, the first step, takes at most {MAX_RECORDS} records")
    least = LEAST_OF_RANGE * float(np.ptp(to_unit(data.points, data.box)[:, 1]))
    if h < least:
        raise SpecError(
            "bandwidth", h, f"partial mean shift, the first step, needs at least {least:.2g} of the side of the box"
        )


def _all_records(data: Dataset, h: float) -> Array:
    """Partial mean shift from every record with the bandwidth ``h``, a share of the box's sides."""
    found = pms(_on_unit_square(data), PMSSpec(bandwidth=h), SimulationNoise(0)).curve  # it draws nothing
    assert found is not None
    return from_unit(found, data.box)


# DP-PMS.


def _prepare_ascent(data: Dataset, options: dict[str, Any]) -> Plan:
    chosen = plan(make_spec(DPPMSSpec, options), data)
    refuse_a_grid_beside_the_data(chosen, data)
    _check_baseline(data, chosen.h)
    return chosen


def _ascent_curves(chosen: Plan, data: Dataset, seed: int) -> Iterator[Array]:
    """Rows of the steps in order: each has one ingredient more than the one before."""
    yield _all_records(data, chosen.h)
    for on in (
        {"to_the_end": True},
        {},
        {"clip": True},
        {"clip": True, "batches": True},
        {"clip": True, "batches": True, "ascent": True},
    ):
        yield from_unit(_ended(chosen, data, seed, **on)[0], data.box)
    ends, heights = _ended(chosen, data, seed, clip=True, batches=True, ascent=True, start=True)
    yield from_unit(ends, data.box)
    yield from_unit(_kept(chosen, ends, heights), data.box)


def _ended(
    chosen: Plan,
    data: Dataset,
    seed: int,
    *,
    to_the_end: bool = False,
    clip: bool = False,
    batches: bool = False,
    ascent: bool = False,
    start: bool = False,
) -> tuple[Array, Array | None]:
    """End points (k, 2) of alg:dp-pms on the unit square with the ingredients that are on, and their heights."""
    door = SwitchedNoise(data, seed, chosen.batch_size, start=start, batches=batches, ascent=ascent)
    if not batches:
        chosen = replace(chosen, batch_size=data.n)
    if not clip and chosen.contribution_clip is not None:
        chosen = replace(chosen, contribution_clip=NO_CLIP)
    elif not clip:
        chosen = replace(chosen, gradient_clip=NO_CLIP, density_floor=NO_FLOOR)
    starts = draw_starts(
        chosen.points[:, 1],
        chosen.windows,
        chosen.response_grid,
        epsilon=chosen.epsilon_init,
        radius=chosen.init_bandwidth,
        noise=door,
    ).points
    if to_the_end:
        return _climbed(chosen.points, starts, chosen.h), None
    path, _, heights = ascend(chosen, starts, door)
    return path[-1], heights


def _climbed(points: Array, starts: Array, h: float) -> Array:
    """Where partial mean shift from a few starts ends; one that sees no record stays where it is."""
    at = starts.copy()
    moving = np.arange(len(at))
    for _ in range(MOST_STEPS):
        shift, _ = clipped_shift(points, at[moving], h, NO_CLIP)
        at[moving, 1] += shift
        moving = moving[np.abs(shift) > 1e-6 * h]
        if len(moving) == 0:
            break
    return at


def _kept(chosen: Plan, ends: Array, heights: Array | None) -> Array:
    """The end points that the method's own reading leaves: those of ``tight`` by height, those of bins by company."""
    filled = chosen.filled_spec()
    ends = significant(ends, heights, filled.significance)
    return ends if filled.cleanup_radius is None else cleanup(ends, filled.cleanup_radius)


# The functional release.


def _prepare_release(data: Dataset, options: dict[str, Any]) -> FunctionalRegressionSpec:
    spec = make_spec(FunctionalRegressionSpec, options)
    inner = FunctionalSpec(
        epsilon=spec.epsilon, delta=spec.delta, bandwidth=spec.bandwidth, bandwidth_scale=spec.bandwidth_scale
    )
    h = choose_release_bandwidth(inner, _on_unit_square(data)).value
    box_bases(UNIT_SQUARE, h)
    _check_baseline(data, h)
    return spec


def _release_curves(spec: FunctionalRegressionSpec, data: Dataset, seed: int) -> Iterator[Array]:
    """Partial mean shift at its own bandwidth and at that of the release, and the branches of the exact surface."""
    refuse_private(data)
    noisy = release_joint(data, spec, SimulationNoise(seed)).surface
    assert isinstance(noisy, ReleasedSurface)
    own = pms(data, PMSSpec(), SimulationNoise(0)).curve
    assert own is not None
    yield own
    yield _all_records(data, noisy.bandwidth)
    yield _branches(without_noise(noisy, to_unit(data.points, data.box), data), spec, data.box)


def _branches(surface: ReleasedSurface, spec: FunctionalRegressionSpec, box: Array) -> Array:
    """Rows of the branches of a surface over the unit square, read as the method reads them."""
    ridges = trace_ridges(surface, np.linspace(0, 1, spec.grid_size))
    return from_unit(np.concatenate([np.stack([ridge.x, ridge.y], axis=1) for ridge in ridges]), box)


_ASCENT_RUNGS = (
    Rung("sampling", "Without privacy", "partial mean shift from every record at the same bandwidth"),
    Rung("few_starts", "Few starts", "few starts, the fullest public places, instead of every record"),
    Rung("few_steps", "Few steps", "a fixed number of steps instead of climbing to the end"),
    Rung("clipping", "Clipping", "clipping"),
    Rung("subsampling", "Minibatches", "minibatches instead of all records"),
    Rung("noise", "Noise", "the noise of the ascent"),
    Rung("start", "Private start", "drawing the starts privately"),
    Rung("cleanup", "Cleanup", "the cleanup of end points (weak ones in tight, lonely ones with bins)"),
    Rung("merge", "Merge", "merging the end points near each place into the curve instead of taking each where it is"),
)
_RELEASE_RUNGS = (
    Rung("sampling", "Without privacy", "partial mean shift from every record at its own bandwidth"),
    Rung("bandwidth", "Bandwidth", "the bandwidth of the release"),
    Rung("reading", "Reading", "reading branches off the exact surface where they would stand above its noise"),
    Rung("noise", "Noise", "the noise of the surface"),
)

REGRESSION_LADDERS: dict[str, Ladder] = {
    "dp_pms": Ladder(_ASCENT_RUNGS, REGRESSION_MEASURES, _prepare_ascent, _ascent_curves, MISSES_ARE_FREE),
    "functional_regression": Ladder(
        _RELEASE_RUNGS, REGRESSION_MEASURES, _prepare_release, _release_curves, MISSES_ARE_FREE
    ),
}
