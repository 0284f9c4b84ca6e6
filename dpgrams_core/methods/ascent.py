"""What the noisy ascents of DP-GRAMS and DP-PMS share: the noise of each calibration, its event and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpgrams_core.methods.dp_grams.rounds import round_sensitivity, score_noise
from dpgrams_core.model.guarantee import Guarantee
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.numerics.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth, release_bandwidth, scaled_rule
from dpgrams_core.numerics.kernels import KernelConstants
from dpgrams_core.privacy.accountants import draw_of_shift, rounds_multiplier
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import (
    exact_epsilon,
    gaussian_multiplier,
    published_sensitivity,
    published_sigma,
)
from dpgrams_core.privacy.events import Event, ExponentialDraws, GaussianRounds, SubsampledGaussianRounds

FLOOR_OF_TOP = 0.25  # of the density of a usual mode: below it a step of the tight calibration is damped


@dataclass(frozen=True, kw_only=True)
class AscentNoise:
    """Clips, floor and noise of an ascent, as its plan has them.

    ``contribution_clip`` belongs to the experiments calibration, ``gradient_clip`` and ``density_floor`` (A and
    p_floor) to the others.  ``sigma`` is the noise of one coordinate of a step; ``process_noise``, in the tight
    calibration only, that of the kernel sums, which it adds before the step is formed (``sigma`` is then that of the
    score of all rounds together, at the top of a usual mode).
    """

    sensitivity: float
    sigma: float
    contribution_clip: float | None = None
    gradient_clip: float | None = None
    density_floor: float | None = None
    process_noise: float | None = None


@dataclass(frozen=True, kw_only=True)
class AscentPlan(AscentNoise):
    """What the plans of both ascents have."""

    spec: Any
    bandwidth: Bandwidth
    start: ExponentialDraws
    batch_size: int
    n_steps: int


def plan_bandwidth(spec: Any, facts: BandwidthFacts, share: float) -> Bandwidth:
    """The wished bandwidth; in ``tight`` by default a share of that of a functional release with this budget."""
    if spec.calibration != "tight" or spec.bandwidth is not None:
        return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts, spec.bandwidth_from)
    sigma = math.sqrt(2) * gaussian_multiplier(spec.epsilon, spec.delta)
    rule = share * release_bandwidth(n=facts.n, d=facts.d, box=facts.box, sigma=sigma)
    return scaled_rule(rule, spec.bandwidth_scale, facts)


def default_batch(n: int, calibration: str) -> int:
    """m = ceil(n / log n), alg:dpgrams; all records in the tight calibration.

    There, T full-batch rounds compose exactly, and what sampling saves in epsilon it loses, about twice
    over at the usual sizes, in the smaller batch that the noise is divided by.
    """
    return n if calibration == "tight" else math.ceil(n / math.log(n))


def start_draws(spec: Any, fraction: float, count: int, sensitivity: float) -> ExponentialDraws:
    """The draws of the start, and what of the budget they get.

    The paper's: a fraction of ε, shared by the draws, and the ascent has what is left.  In ``tight`` squares add up
    (accountants.py): the start gets the part fraction^2 of what one Gaussian release of (ε, δ) would spend, 1 / z^2, so
    that it alone would cost about the fraction of ε, and the rounds have the part 1 - fraction^2.
    """
    if spec.calibration != "tight":
        return ExponentialDraws(count=count, epsilon_each=spec.epsilon * fraction / count, sensitivity=sensitivity)
    shift = fraction / gaussian_multiplier(spec.epsilon, spec.delta) / math.sqrt(count)
    return ExponentialDraws(count=count, epsilon_each=draw_of_shift(shift), sensitivity=sensitivity)


def ascent_epsilon(spec: Any, fraction: float) -> float:
    """What the ascent alone costs where the start has this fraction: see ``start_draws``."""
    if spec.calibration != "tight":
        return float(spec.epsilon * (1 - fraction))
    return exact_epsilon(gaussian_multiplier(spec.epsilon, spec.delta) / math.sqrt(1 - fraction**2), spec.delta)


def ascent_noise(
    spec: Any,
    constants: KernelConstants,
    h: float,
    d: int,
    *,
    contribution_clip: float,
    clip_multiplier: float,
    top: float,
    numbers: int,
    start: ExponentialDraws,
    epsilon: float,
    n: int,
    batch_size: int,
    n_steps: int,
    nodes: Sequence[int] | None,
) -> AscentNoise:
    """The noise that an ascent on the score in d columns needs for its share ``epsilon`` of the budget.

    experiments  sigma of sigma-exact with S_h replaced by 2 C (subsec:exp-impl), C the clip of a contribution.
    theorem      eq:sigma-corr; p_floor = G_K / clip_multiplier, and A = p_floor / h lets a step move at most h.
    tight        sqrt(2), with its slack for rounding, times the multiplier of the rounds, for the kernel sums, of
                 which a round releases ``numbers`` (off a grid of ``nodes`` where there are many records); the
                 multiplier is the least with which ``start`` and rounds together cost the budget.  p_floor is a part of
                 ``top``, a usual mode's density, over clip_multiplier, and A = clip_multiplier p_floor / h: no step
                 is longer than clip_multiplier h.
    """
    rounds = {"epsilon": epsilon, "delta": spec.delta, "n": n, "batch_size": batch_size, "rounds": n_steps}
    if spec.calibration == "experiments":
        sensitivity = 2 * contribution_clip
        sigma = published_sigma(sensitivity, **rounds)
        return AscentNoise(sensitivity=sensitivity, sigma=sigma, contribution_clip=contribution_clip)
    tight = spec.calibration == "tight"
    usual_floor = (FLOOR_OF_TOP * top if tight else constants.g_k) / clip_multiplier
    floor = usual_floor if spec.density_floor is None else spec.density_floor
    longest = clip_multiplier if tight else 1.0
    clip = longest * floor / h if spec.gradient_clip is None else spec.gradient_clip
    if spec.calibration == "theorem":
        sensitivity = published_sensitivity(constants, h, d, clip, floor)
        sigma, process_noise = published_sigma(sensitivity, **rounds), None
    elif not tight:  # a new one must not borrow another's noise
        raise NotImplementedError(f"no noise is written for the calibration {spec.calibration}")
    else:
        multiplier = rounds_multiplier(spec.epsilon, spec.delta, n, batch_size, n_steps, start)
        sensitivity = round_sensitivity(batch_size, d, numbers, multiplier, nodes)
        process_noise = sensitivity * multiplier
        # What all rounds together leave at the top of a usual mode.
        sigma = score_noise(process_noise / math.sqrt(n_steps), d, h, batch_size, max(floor, top))
    return AscentNoise(
        sensitivity=sensitivity, sigma=sigma, gradient_clip=clip, density_floor=floor, process_noise=process_noise
    )


def rounds_event(chosen: AscentPlan, n: int) -> Event:
    """The description of the ascent of a plan that is priced."""
    rounds = {"rounds": chosen.n_steps, "n": n, "batch_size": chosen.batch_size}
    if chosen.process_noise is not None:
        return GaussianRounds(**rounds, sensitivity=chosen.sensitivity, noise_scale=chosen.process_noise)
    each = chosen.sensitivity / chosen.batch_size
    return SubsampledGaussianRounds(**rounds, sensitivity=each, noise_scale=chosen.sigma, sensitivity_proven=False)


def ascent_guarantee(
    chosen: AscentPlan,
    events: tuple[Event, ...],
    statements: Mapping[str, str],
    caveats: tuple[str, ...],
    start: str,
    neighbours: str,
) -> Guarantee:
    """The guarantee of an ascent with the status of its calibration; of a nominal one the ``start`` alone is proven.

    The method's ``statements`` say what a calibration means for it; the calibration's own words stand for others.
    """
    spec = chosen.spec
    cost = price(events, spec.delta)
    if cost.epsilon > spec.epsilon * (1 + 1e-9):
        raise RuntimeError("the noise was calibrated to less than its price; this is a bug, nothing was released")
    known = CALIBRATIONS[spec.calibration]
    status = known.status
    if status == "nominal":
        caveats = (*caveats, f"{start} alone is proven for its share of ε.")
    if status != "proven" and cost.epsilon < 0.999 * spec.epsilon:
        # The first term of ε_iter binds.
        caveats = (
            *caveats,
            f"You asked for ε = {spec.epsilon:g}, and {cost.epsilon:.3g} is used: the paper's formula for the steps "
            "knows no smaller noise than this, however large ε is.",
        )
    guarantee = Guarantee(
        epsilon=spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-9) else cost.epsilon,
        delta=cost.delta,
        status=status,
        statement=statements.get(spec.calibration, known.words),
        neighbours=neighbours,
        caveats=caveats,
    )
    return guarantee if chosen.bandwidth.public else guarantee.without_public_bandwidth(chosen.bandwidth.rule)
