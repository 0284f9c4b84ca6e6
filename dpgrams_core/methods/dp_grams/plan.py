"""DP-GRAMS before any draw: a spec, the public facts of the data, and the noise that the budget asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from dpgrams_core.methods.as_run import refuse_as_run
from dpgrams_core.methods.ascent import (
    AscentPlan,
    ascent_epsilon,
    ascent_noise,
    default_batch,
    plan_bandwidth,
    start_draws,
)
from dpgrams_core.methods.dp_grams.rounds import round_grid
from dpgrams_core.methods.dp_grams.spec import CLIP_MULTIPLIER, DPGramsSpec
from dpgrams_core.methods.dp_grams.starts import grid_size
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.settings import MAX_STARTS
from dpgrams_core.numerics.bandwidths import REFERENCE_SHARE, REFERENCE_SPREAD, BandwidthFacts, mean_side
from dpgrams_core.numerics.kernels import Kernel, get_kernel
from dpgrams_core.privacy.calibration import nominal_sensitivity

# Defaults found by benchmarks/pilot_defaults.py on mixtures other than the paper's.
INIT_BANDWIDTH_OF_BOX = 0.09
SUPPRESSION_OF_BOX = 0.1
STARTS_PER_LOG_N = 0.8
INIT_FRACTION = 0.3
# A tight round takes the eigenvectors of a matrix of this size: about a second.
MOST_NUMBERS_A_ROUND = 1_500
# All rounds are read together by a matrix of this size: seconds.
MOST_NUMBERS_TOGETHER = 4_500


@dataclass(frozen=True, kw_only=True)
class TightRule:
    """The one public rule of the tight calibration: with it n, ε, δ, d and the box decide every default.

    Constants of benchmarks/pilot_tight.py and pilot_reading.py, found on mixtures other than the paper's.  Lengths are
    shares of the box's side; ``bandwidth_scale`` multiplies the bandwidth of a functional release of the same budget,
    and ``prior`` is the standard deviation of the kernel sum before anything is seen, as a part of n.  Heights and the
    valley are in units of the noise of all rounds together.
    """

    starts: int = 50
    starts_per_mode: int = 3
    rounds: int = 3
    init_fraction: float = 0.15
    spacing: float = 0.065  # of the public grid
    radius_in_spacings: float = 2.0  # around a candidate in which records are counted
    suppression: float = 0.1
    bandwidth_scale: float = 0.75
    prior: float = 0.12
    prior_spread: float = 0.7  # of a usual bump's spread, which the kernel sum varies over besides the bandwidth
    climb_a_round: int = 3
    last_climb: int = 30
    least_height: float = 4.0  # of an end point where the number of modes is unknown
    least_height_known: float = 1.5  # ... and where it is known, so that the highest can be kept
    least_valley: float = 0.5  # that parts a mode from every higher one, where their number is unknown
    least_of_highest: float = 0.1  # of the highest mode, where their number is unknown
    trusted: float = 1.0  # bandwidths from a place that a round looked at, beyond which the estimate is a guess
    merge: float = 0.8  # bandwidths within which end points are one mode


TIGHT = TightRule()


@dataclass(frozen=True, kw_only=True)
class Plan(AscentPlan):
    """A spec with every default filled in from public facts (n, d, box), and the noise of its scores."""

    spec: DPGramsSpec
    kernel: Kernel
    clip_multiplier: float
    epsilon_modes: float
    step_size: float
    n_starts: int
    init_fraction: float
    init_bandwidth: float
    suppression_radius: float

    @property
    def utility_radius(self) -> float:
        """The radius around a candidate in which DAP counts records."""
        return self.init_bandwidth * (TIGHT.radius_in_spacings if self.process_noise is not None else 1.0)

    def filled_spec(self) -> DPGramsSpec:
        """The spec as it ran, with no default left open."""
        names = {item.name for item in fields(self)} & {item.name for item in fields(DPGramsSpec)}
        values = {name: getattr(self, name) for name in names - {"kernel", "bandwidth"}}
        return replace(self.spec, **self.bandwidth.as_run(), **values)


def plan(spec: DPGramsSpec, data: Dataset) -> Plan:
    """Fill in the defaults and calibrate the noise; every refusal happens here, before any draw.

    Only n, d and the box are read, unless the bandwidth rule is marked data-dependent.
    """
    refuse_as_run(spec)
    n, d, side = data.n, data.dimension, mean_side(data.box)
    if n < 3:
        raise SpecError("n", n, "at least 3 records are needed")
    batch_size = default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size
    if batch_size > n:
        raise SpecError("batch_size", batch_size, f"it must be between 1 and n = {n}")
    tight = spec.calibration == "tight"
    fraction = (TIGHT.init_fraction if tight else INIT_FRACTION) if spec.init_fraction is None else spec.init_fraction
    epsilon_modes = ascent_epsilon(spec, fraction)
    clip_multiplier = CLIP_MULTIPLIER if spec.clip_multiplier is None else spec.clip_multiplier
    facts = BandwidthFacts(n=n, d=d, box=data.box, epsilon=epsilon_modes, beta=spec.beta, points=data.points)
    bandwidth = plan_bandwidth(spec, facts, TIGHT.bandwidth_scale)
    h = bandwidth.value
    kernel = get_kernel(spec.kernel)
    n_steps = default_rounds(n, spec.calibration) if spec.n_steps is None else spec.n_steps
    spacing = default_spacing(spec.calibration) * side if spec.init_bandwidth is None else spec.init_bandwidth
    n_starts = default_starts(n, spec.n_modes, spec.calibration) if spec.n_starts is None else spec.n_starts
    if tight:  # starts at one place see the same noisy sums, so a second one is a draw paid for nothing
        places = grid_size(data.box, spacing) if spec.candidates is None else len(spec.candidates)
        if spec.n_starts is not None and n_starts > places > 0:
            allowed = f"it must be between 1 and the number of candidates, {places:,.0f}, in the tight calibration"
            raise SpecError("n_starts", n_starts, allowed)
        n_starts = int(min(n_starts, max(1, places)))
    if spec.calibration != "experiments":
        check_kernel(spec.calibration, kernel)
    start = start_draws(spec, fraction, n_starts, 1 / n)
    noise = ascent_noise(
        spec,
        kernel.constants(d),
        h,
        d,
        contribution_clip=nominal_sensitivity(clip_multiplier, h, d) / 2,  # C_* of eq:clip-constant-exp
        clip_multiplier=clip_multiplier,
        top=usual_top(h, d, side),
        start=start,
        numbers=n_starts * (1 + d),
        nodes=round_grid(batch_size, n_starts * (1 + d), data.box, h),
        epsilon=epsilon_modes,
        n=n,
        batch_size=batch_size,
        n_steps=n_steps,
    )
    chosen = Plan(
        spec=spec,
        bandwidth=bandwidth,
        kernel=kernel,
        start=start,
        init_fraction=fraction,
        clip_multiplier=clip_multiplier,
        epsilon_modes=epsilon_modes,
        batch_size=batch_size,
        n_steps=n_steps,
        step_size=h**2 if spec.step_size is None else spec.step_size,
        n_starts=n_starts,
        init_bandwidth=spacing,
        suppression_radius=(TIGHT.suppression if tight else SUPPRESSION_OF_BOX) * side
        if spec.suppression_radius is None
        else spec.suppression_radius,
        **vars(noise),
    )
    if noise.process_noise is not None and chosen.n_starts * (1 + d) > MOST_NUMBERS_A_ROUND:
        most = MOST_NUMBERS_A_ROUND // (1 + d)
        raise SpecError("n_starts", chosen.n_starts, f"the tight calibration takes at most {most} in {d} dimensions")
    if noise.process_noise is not None:
        check_rounds(n_steps, n_starts * (1 + d), f"{n_starts} starts in {d} dimensions")
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


def check_rounds(n_steps: int, numbers: int, words: str) -> None:
    """Refuse more rounds of so many numbers than the tight calibration can read together."""
    most = MOST_NUMBERS_TOGETHER // numbers
    if n_steps > most:
        raise SpecError("n_steps", n_steps, f"the tight calibration reads at most {most} rounds together with {words}")


def check_kernel(calibration: str, kernel: Kernel) -> None:
    """Refuse a kernel that the calibration has no bound for."""
    if not kernel.smooth:
        raise SpecError(
            "kernel",
            kernel.name,
            f"this kernel jumps at its edge, so I_1 is infinite and the {calibration} calibration has no noise "
            + ("scale; choose gaussian or gaussian4" if calibration == "theorem" else "scale; choose gaussian")
            + ", or the experiments calibration",
        )
    if calibration == "tight" and kernel.name != "gaussian":
        raise SpecError(
            "kernel",
            kernel.name,
            "the tight calibration adds noise from a Gaussian process whose covariance is the kernel itself, "
            "and this kernel is not that of the process used; choose gaussian",
        )


def usual_top(h: float, d: int, side: float) -> float:
    """The smoothed density at the top of the reference bump (bandwidths.py), a public number."""
    q = h**2 + (REFERENCE_SPREAD * side) ** 2
    return float(REFERENCE_SHARE * (2 * math.pi * q) ** (-d / 2))


def default_rounds(n: int, calibration: str) -> int:
    """T = ceil(log n), alg:dpgrams; a few in ``tight``, where every round is read together with the others."""
    return TIGHT.rounds if calibration == "tight" else math.ceil(math.log(n))


def default_spacing(calibration: str) -> float:
    """h_DAP, the spacing of the public grid, as a share of the box."""
    return TIGHT.spacing if calibration == "tight" else INIT_BANDWIDTH_OF_BOX


def default_starts(n: int, n_modes: int | None, calibration: str) -> int:
    """A multiple of log n (the paper: k of order M log n), and two for every mode that is known of.

    In ``tight`` enough to have one near every mode, whatever n is: a start costs little there.
    """
    if calibration == "tight":
        return min(MAX_STARTS, max(TIGHT.starts, TIGHT.starts_per_mode * (n_modes or 0)))
    return min(MAX_STARTS, max(math.ceil(STARTS_PER_LOG_N * math.log(n)), 2 * (n_modes or 0)))
