"""DP-PMS before any draw: a spec, the public facts (n, box, predictors), and the noise that the budget asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from dpgrams_core.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods.dp_pms_starts import Windows, binned_windows, most_filled_bins, sparse_windows
from dpgrams_core.methods.functional_regression import LEAST_RECORDS, UNIT_SQUARE, to_unit
from dpgrams_core.methods.linear_rounds import round_sensitivity, score_noise
from dpgrams_core.privacy.accountants import rounds_multiplier
from dpgrams_core.privacy.calibration import published_sensitivity, published_sigma
from dpgrams_core.results import Dataset
from dpgrams_core.specs import MAX_STARTS
from dpgrams_core.specs_regression import DPPMSSpec

Array = np.ndarray
KERNEL = KERNELS["gaussian"]
# Defaults found by benchmarks/pilot_regression.py on designs other than the paper's; lengths are shares of the box.
INIT_BANDWIDTH = 0.08
START_MULTIPLIER = 8.0
MOST_BINS = 40
N_CANDIDATES = 41
MERGE_RADIUS = 0.1
CLEANUP_RADIUS = 0.15
SIGNIFICANCE = 2.0
# For theorem and tight p_floor = G_K / 0.1 is about 1, the mean density over the unit square.
CLIP_MULTIPLIER = {"experiments": 0.001, "theorem": 0.1, "tight": 0.1}
GRID_SIZE = 51
# A tight round takes the eigenvectors of a matrix of twice this size: about a second.
MOST_TIGHT_STARTS = 750
# Outside of this the accountant's roots lose the nine digits to which noise and price are compared.
TIGHT_EPSILON = (1e-3, 1e6)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A spec with every default filled in, what the predictors decide, and the noise. Lengths in unit-square shares.

    ``contribution_clip`` is C = clip_multiplier / h (experiments only); ``gradient_clip`` and ``density_floor``
    are A and p_floor (theorem and tight only).  ``shift_noise`` is the standard deviation of the noise of one
    mean-shift step; ``process_noise`` (tight only) that of the kernel sums, from which the step is formed.
    """

    spec: DPPMSSpec
    points: Array
    windows: Windows
    response_grid: Array
    evaluation_points: Array
    bandwidth: Bandwidth
    epsilon_init: float
    epsilon_ascent: float
    batch_size: int
    n_steps: int
    clip_multiplier: float
    init_bandwidth: float
    reach: float
    merge_radius: float
    contribution_clip: float | None
    gradient_clip: float | None
    density_floor: float | None
    sensitivity: float
    shift_noise: float
    process_noise: float | None

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
            bandwidth=self.h,
            bandwidth_scale=None,
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
    check_design(data)
    n, points = data.n, to_unit(data.points, data.box)
    batch_size = default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size
    if batch_size > n:
        raise SpecError("batch_size", batch_size, f"it must be between 1 and n = {n}")
    epsilon_ascent = spec.epsilon * (1 - spec.init_fraction)
    facts = BandwidthFacts(n=n, d=2, box=UNIT_SQUARE, epsilon=epsilon_ascent, beta=3.0, points=points)
    bandwidth = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    n_steps = math.ceil(math.log(n)) if spec.n_steps is None else spec.n_steps
    init_bandwidth = INIT_BANDWIDTH if spec.init_bandwidth is None else spec.init_bandwidth
    windows = windows_of(spec, points[:, 0], init_bandwidth)
    clip_multiplier = CLIP_MULTIPLIER[spec.calibration] if spec.clip_multiplier is None else spec.clip_multiplier
    noise = needed_noise(
        spec,
        bandwidth.value,
        clip_multiplier,
        n=n,
        batch_size=batch_size,
        n_steps=n_steps,
        n_starts=len(windows.x),
        epsilon=epsilon_ascent,
    )
    chosen = Plan(
        spec=spec,
        points=points,
        windows=windows,
        response_grid=response_grid(spec, data.box),
        evaluation_points=evaluation_points(spec, data),
        bandwidth=bandwidth,
        epsilon_init=spec.epsilon * spec.init_fraction,
        epsilon_ascent=epsilon_ascent,
        batch_size=batch_size,
        n_steps=n_steps,
        clip_multiplier=clip_multiplier,
        init_bandwidth=init_bandwidth,
        reach=default_reach(windows.x, bandwidth.value) if spec.reach is None else spec.reach,
        merge_radius=MERGE_RADIUS if spec.merge_radius is None else spec.merge_radius,
        contribution_clip=noise.contribution_clip,
        gradient_clip=noise.gradient_clip,
        density_floor=noise.density_floor,
        sensitivity=noise.sensitivity,
        shift_noise=noise.shift_noise,
        process_noise=noise.process_noise,
    )
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


def default_batch(n: int, calibration: str) -> int:
    """m = ceil(n / log n) as in alg:dpgrams; all records in the tight calibration (see dp_grams_plan.py)."""
    return n if calibration == "tight" else math.ceil(n / math.log(n))


@dataclass(frozen=True, kw_only=True)
class NeededNoise:
    """Clips, floor and noise of one calibration; see :class:`Plan`."""

    sensitivity: float
    shift_noise: float
    contribution_clip: float | None = None
    gradient_clip: float | None = None
    density_floor: float | None = None
    process_noise: float | None = None


def needed_noise(
    spec: DPPMSSpec,
    h: float,
    clip_multiplier: float,
    *,
    n: int,
    batch_size: int,
    n_steps: int,
    n_starts: int,
    epsilon: float,
) -> NeededNoise:
    """The noise that the ascent needs for its share ``epsilon`` of the budget, by the spec's calibration.

    experiments  sigma of sigma-exact with S_h replaced by 2 C, C = clip_multiplier / h, as subsec:exp-impl does for
                 DP-GRAMS.  That formula divides by m, for a *mean* of clipped terms; alg:dp-pms *sums* them.
    theorem      eq:sigma-corr at d = 2 for the score of the joint density, of which only the response's
                 coordinate is used; p_floor and A follow the clip multiplier as in DP-GRAMS.
    tight        sqrt(2), with its slack for rounding, times the multiplier of the rounds, for the kernel sums.

    A score is turned into a mean-shift step by h^2, and so is its noise.
    """
    budget = {"epsilon": epsilon, "delta": spec.delta}
    if spec.calibration == "experiments":
        clip = clip_multiplier / h
        sigma = published_sigma(2 * clip, **budget, n=n, batch_size=batch_size, rounds=n_steps)
        return NeededNoise(sensitivity=2 * clip, shift_noise=sigma, contribution_clip=clip)
    constants = KERNEL.constants(2)
    floor = constants.g_k / clip_multiplier if spec.density_floor is None else spec.density_floor
    clip = floor / h if spec.gradient_clip is None else spec.gradient_clip
    if spec.calibration == "theorem":
        sensitivity = h**2 * published_sensitivity(constants, h, 2, clip, floor)
        sigma = published_sigma(sensitivity, **budget, n=n, batch_size=batch_size, rounds=n_steps)
        return NeededNoise(sensitivity=sensitivity, shift_noise=sigma, gradient_clip=clip, density_floor=floor)
    low, high = TIGHT_EPSILON
    if not low <= epsilon <= high:
        share = f"its share for the ascent, {epsilon:.3g}, must lie between {low:g} and {high:g} in this calibration"
        raise SpecError("epsilon", spec.epsilon, share)
    multiplier = rounds_multiplier(epsilon, spec.delta, n, batch_size, n_steps)
    sensitivity = round_sensitivity(batch_size, 2, 2 * n_starts, multiplier)
    process_noise = sensitivity * multiplier
    return NeededNoise(
        sensitivity=sensitivity,
        shift_noise=h**2 * score_noise(process_noise, 2, h, batch_size, floor),
        gradient_clip=clip,
        density_floor=floor,
        process_noise=process_noise,
    )
