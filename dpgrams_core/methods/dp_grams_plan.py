"""DP-GRAMS before any draw: a spec, the public facts of the data, and the noise that the budget asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from dpgrams_core.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth, mean_side
from dpgrams_core.errors import SpecError
from dpgrams_core.kernels import Kernel, get_kernel
from dpgrams_core.methods.linear_rounds import round_sensitivity, score_noise
from dpgrams_core.privacy.accountants import rounds_multiplier
from dpgrams_core.privacy.calibration import nominal_sensitivity, published_sensitivity, published_sigma
from dpgrams_core.results import Dataset
from dpgrams_core.specs import MAX_STARTS, DPGramsSpec

# Defaults found by benchmarks/pilot_defaults.py on mixtures other than the paper's.
INIT_BANDWIDTH_OF_BOX = 0.09
SUPPRESSION_OF_BOX = 0.1
STARTS_PER_LOG_N = 0.8
# A tight round takes the eigenvectors of a matrix of this size: about a second.
MOST_NUMBERS_A_ROUND = 1_500


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A spec with every default filled in from public facts (n, d, box), and the noise it needs.

    ``gradient_clip`` and ``density_floor`` are None in the experiments calibration, which has neither.
    ``sigma`` is the noise of a score coordinate; ``process_noise``, in the tight calibration only, that of
    the kernel sums, which it adds before the score is formed.
    """

    spec: DPGramsSpec
    bandwidth: Bandwidth
    kernel: Kernel
    epsilon_init: float
    epsilon_modes: float
    batch_size: int
    n_steps: int
    step_size: float
    n_starts: int
    init_bandwidth: float
    suppression_radius: float
    gradient_clip: float | None
    density_floor: float | None
    sensitivity: float
    sigma: float
    process_noise: float | None

    def filled_spec(self) -> DPGramsSpec:
        """The spec as it ran, with no default left open."""
        names = {item.name for item in fields(self)} & {item.name for item in fields(DPGramsSpec)}
        values = {name: getattr(self, name) for name in names - {"kernel", "bandwidth"}}
        return replace(self.spec, bandwidth=self.bandwidth.value, bandwidth_scale=None, **values)


def plan(spec: DPGramsSpec, data: Dataset) -> Plan:
    """Fill in the defaults and calibrate the noise; every refusal happens here, before any draw.

    Only n, d and the box are read, unless the bandwidth rule is marked data-dependent.
    """
    n, d, side = data.n, data.dimension, mean_side(data.box)
    log_n = math.log(n) if n > 1 else 0.0
    if n < 3:
        raise SpecError("n", n, "at least 3 records are needed")
    batch_size = default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size
    if batch_size > n:
        raise SpecError("batch_size", batch_size, f"it must be between 1 and n = {n}")
    epsilon_modes = spec.epsilon * (1 - spec.init_fraction)
    facts = BandwidthFacts(n=n, d=d, box=data.box, epsilon=epsilon_modes, beta=spec.beta, points=data.points)
    bandwidth = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    h = bandwidth.value
    kernel = get_kernel(spec.kernel)
    n_steps = math.ceil(log_n) if spec.n_steps is None else spec.n_steps
    n_starts = default_starts(n, spec.n_modes) if spec.n_starts is None else spec.n_starts
    noise = needed_noise(
        spec, kernel, h, d, n=n, batch_size=batch_size, n_steps=n_steps, n_starts=n_starts, epsilon=epsilon_modes
    )
    chosen = Plan(
        spec=spec,
        bandwidth=bandwidth,
        kernel=kernel,
        epsilon_init=spec.epsilon * spec.init_fraction,
        epsilon_modes=epsilon_modes,
        batch_size=batch_size,
        n_steps=n_steps,
        step_size=h**2 if spec.step_size is None else spec.step_size,
        n_starts=n_starts,
        init_bandwidth=INIT_BANDWIDTH_OF_BOX * side if spec.init_bandwidth is None else spec.init_bandwidth,
        suppression_radius=SUPPRESSION_OF_BOX * side if spec.suppression_radius is None else spec.suppression_radius,
        gradient_clip=noise.gradient_clip,
        density_floor=noise.density_floor,
        sensitivity=noise.sensitivity,
        sigma=noise.sigma,
        process_noise=noise.process_noise,
    )
    if noise.process_noise is not None and chosen.n_starts * (1 + d) > MOST_NUMBERS_A_ROUND:
        most = MOST_NUMBERS_A_ROUND // (1 + d)
        raise SpecError("n_starts", chosen.n_starts, f"the tight calibration takes at most {most} in {d} dimensions")
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


@dataclass(frozen=True, kw_only=True)
class NeededNoise:
    """Clip, floor and noise of one calibration; see :class:`Plan`."""

    gradient_clip: float | None
    density_floor: float | None
    sensitivity: float
    sigma: float
    process_noise: float | None = None


def needed_noise(
    spec: DPGramsSpec,
    kernel: Kernel,
    h: float,
    d: int,
    *,
    n: int,
    batch_size: int,
    n_steps: int,
    n_starts: int,
    epsilon: float,
) -> NeededNoise:
    """The noise that the ascent needs for its share ``epsilon`` of the budget, by the spec's calibration."""
    constants = kernel.constants(d)
    budget = {"epsilon": epsilon, "delta": spec.delta}
    if spec.calibration == "experiments":
        sensitivity = nominal_sensitivity(spec.clip_multiplier, h, d)
        sigma = published_sigma(sensitivity, **budget, n=n, batch_size=batch_size, rounds=n_steps)
        return NeededNoise(gradient_clip=None, density_floor=None, sensitivity=sensitivity, sigma=sigma)
    check_kernel(spec.calibration, kernel)
    floor = constants.g_k / spec.clip_multiplier if spec.density_floor is None else spec.density_floor
    clip = floor / h if spec.gradient_clip is None else spec.gradient_clip
    if spec.calibration == "theorem":
        sensitivity = published_sensitivity(constants, h, d, clip, floor)
        sigma = published_sigma(sensitivity, **budget, n=n, batch_size=batch_size, rounds=n_steps)
        return NeededNoise(gradient_clip=clip, density_floor=floor, sensitivity=sensitivity, sigma=sigma)
    multiplier = rounds_multiplier(epsilon, spec.delta, n, batch_size, n_steps)
    sensitivity = round_sensitivity(batch_size, d, n_starts * (1 + d), multiplier)
    process_noise = sensitivity * multiplier
    return NeededNoise(
        gradient_clip=clip,
        density_floor=floor,
        sensitivity=sensitivity,
        sigma=score_noise(process_noise, d, h, batch_size, floor),
        process_noise=process_noise,
    )


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


def default_batch(n: int, calibration: str) -> int:
    """m = ceil(n / log n), alg:dpgrams; all records in the tight calibration.

    There, T full-batch rounds compose exactly, and what sampling saves in epsilon it loses, about twice
    over at the usual sizes, in the smaller batch that the noise is divided by.
    """
    return n if calibration == "tight" else math.ceil(n / math.log(n))


def default_starts(n: int, n_modes: int | None) -> int:
    """A multiple of log n (the paper: k of order M log n), and two for every mode that is known of."""
    return min(MAX_STARTS, max(math.ceil(STARTS_PER_LOG_N * math.log(n)), 2 * (n_modes or 0)))
