"""DP-PMS before any draw: a spec, the public facts (n, box, predictors), and the noise that the budget asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from dpgrams_core.methods.as_run import AS_RUN, refuse_as_run
from dpgrams_core.methods.ascent import (
    AscentNoise,
    AscentPlan,
    ascent_epsilon,
    ascent_noise,
    default_batch,
    plan_bandwidth,
    start_draws,
)
from dpgrams_core.methods.dp_grams.plan import check_rounds, default_rounds, usual_top
from dpgrams_core.methods.dp_pms.spec import INIT_FRACTION, DPPMSSpec
from dpgrams_core.methods.dp_pms.starts import Windows, binned_windows, most_filled_bins, sparse_windows
from dpgrams_core.methods.functional.regression import LEAST_RECORDS, UNIT_SQUARE, to_unit
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.settings import CALIBRATIONS, MAX_STARTS
from dpgrams_core.numerics.bandwidths import BandwidthFacts
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.privacy.events import ExponentialDraws

Array = np.ndarray
KERNEL = KERNELS["gaussian"]
# Defaults found by benchmarks/pilot_regression.py on designs other than the paper's; lengths are shares of the box.
INIT_BANDWIDTH = 0.08
START_MULTIPLIER = 8.0
MOST_BINS = 40
N_CANDIDATES = 41
MERGE_RADIUS = 0.1
CLEANUP_RADIUS = 0.15
SIGNIFICANCE = 3.0
# In theorem p_floor = G_K / 0.1, about 1, the mean density over the unit square; in tight no step is above a bandwidth.
CLIP_MULTIPLIER = {name: {"experiments": 0.001, "tight": 1.0, AS_RUN: 0.01}.get(name, 0.1) for name in CALIBRATIONS}
TIGHT_BANDWIDTH_SCALE = 0.75  # of the bandwidth of a functional release with the same budget
GRID_SIZE = 51
# A tight round takes the eigenvectors of a matrix of twice this size: about a second.
MOST_TIGHT_STARTS = 750
# Outside of this the accountant's roots lose the nine digits to which noise and price are compared.
TIGHT_EPSILON = (1e-3, 1e6)


@dataclass(frozen=True, kw_only=True)
class Plan(AscentPlan):
    """A spec with every default filled in, what the predictors decide, and the noise. Lengths in unit-square shares.

    ``sigma`` is the standard deviation of the noise of one mean-shift step.
    """

    spec: DPPMSSpec
    points: Array
    windows: Windows
    response_grid: Array
    evaluation_points: Array
    init_fraction: float
    epsilon_ascent: float
    clip_multiplier: float
    init_bandwidth: float
    reach: float
    merge_radius: float

    @property
    def h(self) -> float:
        """The bandwidth as a number."""
        return self.bandwidth.value

    def filled_spec(self) -> DPPMSSpec:
        """The spec as it ran, with no default left open that applies to it."""
        names = {item.name for item in fields(self)} & {item.name for item in fields(DPPMSSpec)}
        values = {name: getattr(self, name) for name in names - {"bandwidth", "response_grid", "evaluation_points"}}
        spec, count = self.spec, len(self.windows.x)
        binned = spec.starts == "binned"
        return replace(
            spec,
            **self.bandwidth.as_run(),
            n_bins=count if binned else None,
            cleanup_radius=(spec.cleanup_radius or CLEANUP_RADIUS) if binned else None,
            significance=(spec.significance or SIGNIFICANCE) if spec.calibration == "tight" else None,
            start_multiplier=None if binned else spec.start_multiplier or START_MULTIPLIER,
            n_candidates=(spec.n_candidates or N_CANDIDATES) if spec.response_grid is None else None,
            grid_size=(spec.grid_size or GRID_SIZE) if spec.evaluation_points is None else None,
            **values,
        )


def plan(spec: DPPMSSpec, data: Dataset) -> Plan:
    """Fill in the defaults and calibrate the noise; every refusal happens here, before any draw.

    Of the data only n, the box and the predictors are read, all public, unless the bandwidth rule is marked
    data-dependent.
    """
    refuse_as_run(spec)
    check_design(data)
    n, points = data.n, to_unit(data.points, data.box)
    batch_size = default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size
    if batch_size > n:
        raise SpecError("batch_size", batch_size, f"it must be between 1 and n = {n}")
    fraction = INIT_FRACTION if spec.init_fraction is None else spec.init_fraction
    epsilon_ascent = ascent_epsilon(spec, fraction)
    facts = BandwidthFacts(n=n, d=2, box=UNIT_SQUARE, epsilon=epsilon_ascent, beta=3.0, points=points)
    bandwidth = plan_bandwidth(spec, facts, TIGHT_BANDWIDTH_SCALE)
    n_steps = default_rounds(n, spec.calibration) if spec.n_steps is None else spec.n_steps
    init_bandwidth = INIT_BANDWIDTH if spec.init_bandwidth is None else spec.init_bandwidth
    windows = windows_of(spec, points[:, 0], init_bandwidth)
    clip_multiplier = CLIP_MULTIPLIER[spec.calibration] if spec.clip_multiplier is None else spec.clip_multiplier
    start = start_draws(spec, fraction, windows.overlap, 1.0)
    noise = step_noise(
        spec,
        bandwidth.value,
        clip_multiplier,
        numbers=2 * len(windows.x),
        start=start,
        epsilon=epsilon_ascent,
        n=n,
        batch_size=batch_size,
        n_steps=n_steps,
    )
    chosen = Plan(
        spec=spec,
        points=points,
        windows=windows,
        response_grid=response_grid(spec, data.box),
        evaluation_points=evaluation_points(spec, data),
        bandwidth=bandwidth,
        start=start,
        init_fraction=fraction,
        epsilon_ascent=epsilon_ascent,
        batch_size=batch_size,
        n_steps=n_steps,
        clip_multiplier=clip_multiplier,
        init_bandwidth=init_bandwidth,
        reach=default_reach(windows.x, bandwidth.value) if spec.reach is None else spec.reach,
        merge_radius=MERGE_RADIUS if spec.merge_radius is None else spec.merge_radius,
        **vars(noise),
    )
    if noise.process_noise is not None:
        check_rounds(n_steps, 2 * len(windows.x), f"{len(windows.x)} starts")
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


def check_design(data: Dataset) -> None:
    """Refuse data that the method cannot work on; these sentences speak of the public predictors and of n only.

    Of private data not even the predictors are spoken of: they are in the box (door.py), and equal ones are one place.
    """
    if data.dimension != 2:
        raise DataError(
            f"Modal regression takes one predictor and one response; the data have {data.dimension} columns."
        )
    if data.n < LEAST_RECORDS:
        raise DataError(f"The data have {data.n} records; modal regression needs at least {LEAST_RECORDS}.")
    if data.private:
        return
    if float(np.ptp(data.x)) == 0:
        raise DataError("All predictors are equal, so there is no curve to draw; at least two values are needed.")
    outside = int(((data.x < data.box[0, 0]) | (data.x > data.box[0, 1])).sum())
    if outside:
        raise DataError(f"{outside} of {data.n} predictors lie outside the box; widen its first row.")


def windows_of(spec: DPPMSSpec, predictors: Array, radius: float) -> Windows:
    """The public places of the starts and the records that each looks at."""
    tight = spec.calibration == "tight"
    most, who = (MOST_TIGHT_STARTS, "the tight calibration") if tight else (MAX_STARTS, "the method")
    if spec.starts == "binned":
        n_bins = most_filled_bins(predictors, MOST_BINS) if spec.n_bins is None else spec.n_bins
        if n_bins > most:
            raise SpecError("n_bins", n_bins, f"{who} takes at most {most}")
        return binned_windows(predictors, n_bins)
    multiplier = START_MULTIPLIER if spec.start_multiplier is None else spec.start_multiplier
    count = math.ceil(multiplier * math.log(len(predictors)))  # alg:dp-pms
    if count > most:
        largest = math.floor(100 * most / math.log(len(predictors))) / 100
        raise SpecError(
            "start_multiplier",
            multiplier,
            f"{who} takes at most {most} starts and that makes {count}; it must be at most {largest:.10g}",
        )
    return sparse_windows(predictors, count, radius)


def response_grid(spec: DPPMSSpec, box: Array) -> Array:
    """The public candidates for a start's response, in shares of the box; never read off the responses."""
    low, high = box[1]
    if spec.response_grid is None:
        return np.linspace(0, 1, spec.n_candidates or N_CANDIDATES)
    given = np.array(spec.response_grid)
    if given[0] < low or given[-1] > high:
        raise SpecError(
            "response_grid", spec.response_grid, f"it must lie in the box's range of responses, {low:g} to {high:g}"
        )
    return (given - low) / (high - low)


def evaluation_points(spec: DPPMSSpec, data: Dataset) -> Array:
    """The places x at which modes are given, in shares of the box: by default spread over the predictors.

    On private data they are spread over the box: the guarantee takes the predictors as public, yet the smallest and
    the largest of them are values of records, and need not stand in every file that leaves.
    """
    low, high = data.box[0]
    if spec.evaluation_points is None:
        first, last = (low, high) if data.private else (data.x.min(), data.x.max())
        return (np.linspace(first, last, spec.grid_size or GRID_SIZE) - low) / (high - low)
    given = np.array(spec.evaluation_points)
    if given[0] < low or given[-1] > high:
        raise SpecError(
            "evaluation_points",
            spec.evaluation_points,
            f"they must lie in the box's range of predictors, {low:g} to {high:g}",
        )
    return (given - low) / (high - low)


def default_reach(places: Array, h: float) -> float:
    """The bandwidth, or half the widest gap between starts where that is more, so that every x has one near."""
    return max(h, float(np.diff(np.sort(places)).max(initial=0.0)) / 2)


def step_noise(
    spec: DPPMSSpec,
    h: float,
    clip_multiplier: float,
    *,
    start: ExponentialDraws,
    epsilon: float,
    **rounds: int,
) -> AscentNoise:
    """The noise of a mean-shift step along the response: that of a score at d = 2 (ascent.py), times h^2.

    experiments  C = clip_multiplier / h, as subsec:exp-impl does for DP-GRAMS.  That formula divides by m, for a *mean*
                 of clipped terms; alg:dp-pms *sums* them, and they are steps already.
    theorem      the score of the joint density, of which only the response's coordinate is used.
    """
    low, high = TIGHT_EPSILON
    if spec.calibration == "tight" and not low <= epsilon <= high:
        share = f"its share for the ascent, {epsilon:.3g} with this δ, must lie between {low:g} and {high:g}"
        raise SpecError("epsilon", spec.epsilon, share)
    noise = ascent_noise(
        spec,
        KERNEL.constants(2),
        h,
        2,
        contribution_clip=clip_multiplier / h,
        clip_multiplier=clip_multiplier,
        top=usual_top(h, 2, 1.0),
        start=start,
        epsilon=epsilon,
        nodes=None,
        **rounds,
    )
    if noise.contribution_clip is not None:
        return noise
    sensitivity = noise.sensitivity if noise.process_noise is not None else h**2 * noise.sensitivity
    return replace(noise, sensitivity=sensitivity, sigma=h**2 * noise.sigma)
