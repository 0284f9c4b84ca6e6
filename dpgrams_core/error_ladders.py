"""The runs behind ``error_sources``: a method with some of its ingredients switched off.

Simulation only.  What is switched off here carries no guarantee, so no Release is formed of it: a run with switched
draws returns modes, or the rows of a curve, to this file, and this file returns their errors.  The ladders of modes and
of DP-GRAMS-C stand here, the others in error_ladders_regression.py and error_ladders_clusters.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import REFERENCE_SPREAD, mean_side
from dpgrams_core.bumps import find_bumps
from dpgrams_core.density import clipped_score, density_and_gradient
from dpgrams_core.error_ladders_clusters import CLUSTER_LADDERS
from dpgrams_core.error_ladders_regression import REGRESSION_LADDERS
from dpgrams_core.errors import SpecError
from dpgrams_core.kernels import KERNELS
from dpgrams_core.ladder_parts import (
    CLUSTER_MEASURES,
    MOST_STEPS,
    NO_CLIP,
    NO_FLOOR,
    Ladder,
    Rung,
    SwitchedNoise,
    true_count,
)
from dpgrams_core.merging import group_means, merge, weighted_ward_groups
from dpgrams_core.methods import run
from dpgrams_core.methods.baselines import fast_mean_shift
from dpgrams_core.methods.dap import candidate_set, draw_anchors, public_grid
from dpgrams_core.methods.dp_grams import rounds_of, stabilised_score
from dpgrams_core.methods.dp_grams_c import public_candidates
from dpgrams_core.methods.dp_grams_plan import Plan, plan
from dpgrams_core.methods.functional import GRID_DIMENSIONS, choose_release_bandwidth, release_event
from dpgrams_core.metrics import score
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.specs import DPGramsSpec, FunctionalSpec, make_spec
from dpgrams_core.specs_clusters import DPGramsCSpec
from dpgrams_core.surfaces import ReleasedSurface, box_bases, coefficients

Array = np.ndarray
MODE_MEASURES = ("mse", "mse_per_true_mode")
MORE_IS_BETTER = ("ari", "nmi")
MOST_RECORD_STARTS = 150  # where no grid makes mean shift from every record quick


def ladder_errors(method: str, data: Dataset, seed: int, measure: str, options: dict[str, Any]) -> tuple[float, ...]:
    """The error of every step of the ladder on one data set with one seed; the last is that of ``run`` itself.

    Examples
    --------
    >>> from dpgrams_core.datasets import load_dataset
    >>> data = load_dataset("four_corners", n=300, seed=0)
    >>> errors = ladder_errors("dp_grams", data, 0, "mse", {"epsilon": 1.0})
    >>> errors[-1] == score(run("dp_grams", data, seed=0, epsilon=1.0), data)["mse"]
    True
    """
    refuse_private(data)
    ladder = LADDERS[method]
    prepared = ladder.prepare(data, options)
    errors = [_error(_bare(found, data.kind), data, measure) for found in ladder.estimates(prepared, data, seed)]
    return (*errors, _error(run(method, data, seed=seed, **options), data, measure))


def _bare(found: Array, kind: str) -> Release:
    """What the score takes. It says of itself that it has no guarantee, and does not leave this file."""
    nothing = Guarantee(epsilon=float("inf"), delta=1.0, status="none", statement="A simulation without noise.")
    curve = found if kind == "regression" else None
    modes = np.empty((0, 2)) if kind == "regression" else found
    return Release(method="simulation", modes=modes, curve=curve, spec=None, events=(), guarantee=nothing)


def _error(release: Release, data: Dataset, measure: str) -> float:
    value = score(release, data)[measure]
    return 1 - value if measure in MORE_IS_BETTER else value


# The ascent: DP-GRAMS and DP-GRAMS-C.


def _prepare_ascent(data: Dataset, options: dict[str, Any]) -> Plan:
    spec = make_spec(DPGramsSpec, options)
    return _plan(spec, data)


def _prepare_cluster_ascent(data: Dataset, options: dict[str, Any]) -> Plan:
    spec = make_spec(DPGramsCSpec, options)
    shared = {item.name: getattr(spec, item.name) for item in fields(DPGramsSpec) if item.name != "n_modes"}
    shared["candidates"] = public_candidates(data, spec.candidates)
    return _plan(DPGramsSpec(**shared, n_modes=spec.n_clusters), data)


def _plan(spec: DPGramsSpec, data: Dataset) -> Plan:
    if spec.kernel != "gaussian":
        raise SpecError(
            "kernel",
            spec.kernel,
            "where the estimate of such a kernel is zero or negative only the clip bounds a step, so there is no run "
            "without it to compare with; choose gaussian",
        )
    return plan(spec, data)


def _ascent_modes(chosen: Plan, data: Dataset, seed: int) -> Iterator[Array]:
    """Modes of the steps in order: each has one ingredient more than the one before."""
    count = true_count(data)
    yield _mean_shift_modes(data, chosen.bandwidth.value, count)
    yield _ascended(chosen, data, seed, count, to_the_end=True)
    yield _ascended(chosen, data, seed, count)
    yield _ascended(chosen, data, seed, count, clip=True)
    yield _ascended(chosen, data, seed, count, clip=True, batches=True)
    yield _ascended(chosen, data, seed, count, clip=True, batches=True, ascent=True)
    yield _ascended(chosen, data, seed, count, clip=True, batches=True, ascent=True, start=True)


def _mean_shift_modes(data: Dataset, h: float, count: int) -> Array:
    """Mean shift from every record, merged by Ward with each end weighing what reaches it."""
    stride = 1 if data.dimension == 2 else -(-data.n // MOST_RECORD_STARTS)
    ends, labels = fast_mean_shift(data.points, h, data.points[::stride])
    reached = np.bincount(labels, minlength=len(ends))
    return group_means(ends, weighted_ward_groups(ends, reached, count), reached)


def _ascended(
    chosen: Plan,
    data: Dataset,
    seed: int,
    count: int,
    *,
    to_the_end: bool = False,
    clip: bool = False,
    batches: bool = False,
    ascent: bool = False,
    start: bool = False,
) -> Array:
    """The ascent of alg:dpgrams with the ingredients that are on, merged to the true count."""
    door = SwitchedNoise(data, seed, chosen.batch_size, start=start, batches=batches, ascent=ascent)
    h = chosen.bandwidth.value
    if not batches:
        chosen = replace(chosen, batch_size=data.n)
    if not clip and chosen.gradient_clip is not None:
        chosen = replace(chosen, gradient_clip=NO_CLIP, density_floor=NO_FLOOR)
    wish = chosen.spec.candidates
    anchors = draw_anchors(
        data.points,
        public_grid(data.box, chosen.init_bandwidth) if wish is None else candidate_set(wish, data.box),
        epsilon=chosen.epsilon_init,
        draws=chosen.n_starts,
        radius=chosen.init_bandwidth,
        suppression=chosen.suppression_radius,
        noise=door,
    )
    if to_the_end:
        return merge(_climbed(data.points, anchors.points, h), h, count)
    longest = chosen.spec.clip_multiplier * h ** -(data.dimension + 1) if clip else NO_CLIP

    def exact_score(batch: Array, at: Array) -> tuple[Array, float]:
        if chosen.gradient_clip is not None and chosen.density_floor is not None:
            return stabilised_score(chosen.kernel, batch, at, h, chosen.gradient_clip, chosen.density_floor)
        return clipped_score(chosen.kernel, batch, at, h, longest)

    path, _ = rounds_of(chosen, data.points, anchors.points, exact_score, door)
    return merge(path[-1], h, count)


def _climbed(points: Array, starts: Array, h: float) -> Array:
    """Where mean shift from a few starts ends; one that sees no record stays where it is."""
    x = starts.copy()
    moving = np.arange(len(x))
    for _ in range(MOST_STEPS):
        density, gradient = density_and_gradient(KERNELS["gaussian"], points, x[moving], h)
        step = h**2 * gradient / np.maximum(density, NO_FLOOR)[:, None]
        x[moving] += step
        moving = moving[np.linalg.norm(step, axis=1) > 1e-6 * h]
        if len(moving) == 0:
            break
    return x


# The functional release.


def _prepare_release(data: Dataset, options: dict[str, Any]) -> FunctionalSpec:
    if data.dimension > GRID_DIMENSIONS:
        raise SpecError("dataset", data.name, f"the surface is parted in up to {GRID_DIMENSIONS} columns")
    spec = make_spec(FunctionalSpec, options)
    choose_release_bandwidth(spec, data)
    return spec


def _release_modes(spec: FunctionalSpec, data: Dataset, seed: int) -> Iterator[Array]:
    """Modes read off the exact surface, and off the noisy one, as many as there are."""
    refuse_private(data)
    h = choose_release_bandwidth(spec, data).value
    sigma = release_event(spec, data.n, data.box, h).noise_scale
    exact = coefficients(data.points, box_bases(data.box, h))
    noisy = SimulationNoise(seed).independent_gaussian(exact, sigma)
    for values in (exact, noisy):
        surface = ReleasedSurface(values, data.box, h, sigma, data.n)
        bumps = find_bumps(surface, true_count(data), REFERENCE_SPREAD * mean_side(data.box))
        yield bumps.centres


_ASCENT_RUNGS = (
    Rung("sampling", "Without privacy", "mean shift from every record at the same bandwidth"),
    Rung("few_starts", "Few starts", "few starts, the fullest public places, instead of every record"),
    Rung("few_steps", "Few steps", "a fixed number of steps instead of climbing to the end"),
    Rung("clipping", "Clipping", "clipping"),
    Rung("subsampling", "Minibatches", "minibatches instead of all records"),
    Rung("noise", "Noise", "the noise of the ascent"),
    Rung("start", "Private start", "drawing the starts privately"),
    Rung("merge", "Merge", "the merge as set instead of one that knows the true number"),
)
_RELEASE_RUNGS = (
    Rung("sampling", "Without noise", "reading the exact surface"),
    Rung("noise", "Noise", "the noise of the surface"),
    Rung("merge", "Number of modes", "the number of modes as set instead of the true one"),
)

LADDERS: dict[str, Ladder] = {
    "dp_grams": Ladder(_ASCENT_RUNGS, MODE_MEASURES, _prepare_ascent, _ascent_modes),
    "dp_grams_c": Ladder(_ASCENT_RUNGS, CLUSTER_MEASURES, _prepare_cluster_ascent, _ascent_modes),
    "functional": Ladder(_RELEASE_RUNGS, MODE_MEASURES, _prepare_release, _release_modes),
    **REGRESSION_LADDERS,
    **CLUSTER_LADDERS,
}
