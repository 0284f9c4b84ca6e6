"""DP-GRAMS: noisy ascent on a private score from private anchors (alg:dpgrams)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.spatial.distance import cdist

from dpgrams_core.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth, mean_side
from dpgrams_core.density import clipped_score, density_and_gradient
from dpgrams_core.errors import SpecError
from dpgrams_core.kernels import Kernel, get_kernel
from dpgrams_core.merging import merge
from dpgrams_core.methods.dap import candidate_set, draw_anchors, public_grid
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import nominal_sensitivity, published_sensitivity, published_sigma
from dpgrams_core.privacy.events import Event, SubsampledGaussianRounds
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, Diagnostics, Guarantee, Release
from dpgrams_core.specs import MAX_STARTS, DPGramsSpec

Array = np.ndarray

# Defaults found by benchmarks/pilot_defaults.py on mixtures other than the paper's.
INIT_BANDWIDTH_OF_BOX = 0.09
SUPPRESSION_OF_BOX = 0.1
STARTS_PER_LOG_N = 0.8


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A spec with every default filled in from public facts (n, d, box), and the noise it needs.

    ``gradient_clip`` and ``density_floor`` are None in the experiments calibration, which has neither.
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
    batch_size = math.ceil(n / log_n) if spec.batch_size is None else spec.batch_size
    if batch_size > n:
        raise SpecError("batch_size", batch_size, f"it must be between 1 and n = {n}")
    epsilon_modes = spec.epsilon * (1 - spec.init_fraction)
    facts = BandwidthFacts(n=n, d=d, box=data.box, epsilon=epsilon_modes, beta=spec.beta, points=data.points)
    bandwidth = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts)
    h = bandwidth.value
    kernel = get_kernel(spec.kernel)
    n_steps = math.ceil(log_n) if spec.n_steps is None else spec.n_steps
    constants = kernel.constants(d)
    floor, clip = spec.density_floor, spec.gradient_clip
    if spec.calibration == "theorem":
        if not kernel.smooth:
            raise SpecError(
                "kernel",
                spec.kernel,
                "this kernel jumps at its edge, so I_1 is infinite and the theorem calibration has no noise "
                "scale; choose gaussian or gaussian4, or the experiments calibration",
            )
        floor = constants.g_k / spec.clip_multiplier if floor is None else floor
        clip = floor / h if clip is None else clip
        sensitivity = published_sensitivity(constants, h, d, clip, floor)
    else:
        sensitivity = nominal_sensitivity(spec.clip_multiplier, h, d)
    sigma = published_sigma(
        sensitivity, epsilon=epsilon_modes, delta=spec.delta, n=n, batch_size=batch_size, rounds=n_steps
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
        n_starts=default_starts(n, spec.n_modes) if spec.n_starts is None else spec.n_starts,
        init_bandwidth=INIT_BANDWIDTH_OF_BOX * side if spec.init_bandwidth is None else spec.init_bandwidth,
        suppression_radius=SUPPRESSION_OF_BOX * side if spec.suppression_radius is None else spec.suppression_radius,
        gradient_clip=clip,
        density_floor=floor,
        sensitivity=sensitivity,
        sigma=sigma,
    )
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


def default_starts(n: int, n_modes: int | None) -> int:
    """A multiple of log n (the paper: k of order M log n), and two for every mode that is known of."""
    return min(MAX_STARTS, max(math.ceil(STARTS_PER_LOG_N * math.log(n)), 2 * (n_modes or 0)))


def stabilised_score(
    kernel: Kernel, batch: Array, at: Array, h: float, clip: float, floor: float
) -> tuple[Array, float]:
    """clip_A(grad p_B) / max(p_B, p_floor), eq:stabilized-score, and the share of clipped gradients."""
    density, gradient = density_and_gradient(kernel, batch, at, h)
    size = np.linalg.norm(gradient, axis=1)
    factor = clip / np.maximum(size, clip)  # 1 where the gradient is short enough
    return gradient * (factor / np.maximum(density, floor))[:, None], float((size > clip).mean())


def ascend(
    points: Array,
    starts: Array,
    score: Callable[[Array, Array], tuple[Array, float]],
    *,
    sigma: float,
    h: float,
    batch_size: int,
    n_steps: int,
    step_size: float,
    noise: SimulationNoise,
) -> tuple[Array, Array]:
    """The rounds of alg:dpgrams: trajectories (T+1, k, d) and the clipped share of each round.

    The noise of a round has covariance sigma^2 K_t with K_t the exponential kernel of the
    *current* iterates, the same minibatch serving all starts.
    """
    x = starts
    path, clipped = [x], []
    for _ in range(n_steps):
        batch = points[noise.batch(len(points), batch_size)]
        exact, share = score(batch, x)
        correlation = np.exp(-cdist(x, x) / h)
        x = x + step_size * (exact + noise.correlated_gaussian(correlation, sigma, x.shape[1]))
        path.append(x)
        clipped.append(share)
    return np.stack(path), np.array(clipped)


def typical_score(points: Array, score: Callable[[Array, Array], tuple[Array, float]]) -> float:
    """Median size of the exact score at a record (not private): what the noise has to be small against.

    A thousand records and a hundred places are enough for one figure on a card.
    """
    batch = points[:: max(1, len(points) // 1000)]
    exact, _ = score(batch, points[:: max(1, len(points) // 100)])
    return float(np.median(np.linalg.norm(exact, axis=1)))


def dp_grams(data: Dataset, spec: DPGramsSpec, noise: SimulationNoise) -> Release:
    """Run DAP, the noisy ascent and the merge; see the guarantee for what is proven.

    Notes
    -----
    Cost O(n_starts * (batch_size * n_steps * d + grid)) time.
    """
    chosen = plan(spec, data)
    h = chosen.bandwidth.value
    if spec.candidates is None:
        candidates = public_grid(data.box, chosen.init_bandwidth)
    else:
        candidates = candidate_set(spec.candidates, data.box)
    anchors = draw_anchors(
        data.points,
        candidates,
        epsilon=chosen.epsilon_init,
        draws=chosen.n_starts,
        radius=chosen.init_bandwidth,
        suppression=chosen.suppression_radius,
        noise=noise,
    )

    def score(batch: Array, at: Array) -> tuple[Array, float]:
        if chosen.gradient_clip is not None and chosen.density_floor is not None:
            return stabilised_score(chosen.kernel, batch, at, h, chosen.gradient_clip, chosen.density_floor)
        return clipped_score(chosen.kernel, batch, at, h, spec.clip_multiplier * h ** -(data.dimension + 1))

    path, clipped = ascend(
        data.points,
        anchors.points,
        score,
        sigma=chosen.sigma,
        h=h,
        batch_size=chosen.batch_size,
        n_steps=chosen.n_steps,
        step_size=chosen.step_size,
        noise=noise,
    )
    rounds = SubsampledGaussianRounds(
        rounds=chosen.n_steps,
        n=data.n,
        batch_size=chosen.batch_size,
        sensitivity=chosen.sensitivity / chosen.batch_size,
        noise_scale=chosen.sigma,
        sensitivity_proven=False,
    )
    events = (anchors.event, rounds)
    return Release(
        method="dp_grams",
        modes=merge(path[-1], h, spec.n_modes),
        anchors=anchors.points,
        trajectories=path,
        noise_scale=chosen.sigma,
        spec=chosen.filled_spec(),
        events=events,
        guarantee=guarantee_of(chosen, events),
        _diagnostics=Diagnostics(
            candidates=anchors.candidates,
            utilities=anchors.utilities,
            score_size=typical_score(data.points, score),
            clipped_share=float(clipped.mean()),
        ),
    )


def guarantee_of(chosen: Plan, events: tuple[Event, ...]) -> Guarantee:
    """The guarantee with its status: what the published argument gives, or only a nominal figure."""
    spec = chosen.spec
    cost = price(events, spec.delta)
    caveats = []
    if spec.calibration == "theorem":
        status = "as published"
        statement = (
            "The start is proven. For the ascent the paper proves this ε, but one step of its proof for "
            "several starts at once has a gap, so we say “as published”."
        )
    else:
        status = "nominal"
        statement = (
            "ε is nominal: the noise is set as in the paper's experiments, for clipped contributions that share "
            "one denominator. One record can move the result more than this noise covers, so this is not a proof."
        )
        caveats.append("The start (DAP) alone is proven for its share of ε.")
    if not chosen.bandwidth.public:
        caveats.append(
            f"The bandwidth comes from the records ({chosen.bandwidth.rule}) and is not paid for: "
            "only for public or synthetic data."
        )
    if cost.epsilon > spec.epsilon * (1 + 1e-9):
        raise RuntimeError("the noise was calibrated to less than its price; this is a bug, nothing was released")
    if cost.epsilon < 0.999 * spec.epsilon:
        caveats.append(
            f"At this ε the noise no longer falls (the first term of ε_iter binds): only {cost.epsilon:.3g} is spent."
        )
    return Guarantee(
        epsilon=spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-9) else cost.epsilon,
        delta=cost.delta,
        status=status,
        statement=statement,
        caveats=tuple(caveats),
    )
