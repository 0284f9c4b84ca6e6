"""DP-GRAMS: noisy ascent on a private score from private anchors (alg:dpgrams)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from dpgrams_core.density import clipped_score, density_and_gradient
from dpgrams_core.kernels import Kernel
from dpgrams_core.merging import merge
from dpgrams_core.methods.dap import candidate_set, draw_anchors, public_grid
from dpgrams_core.methods.dp_grams_plan import Plan, plan
from dpgrams_core.methods.linear_rounds import ascend_linear, clip_and_floor
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.events import Event, GaussianRounds, SubsampledGaussianRounds
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.specs import DPGramsSpec

Array = np.ndarray

__all__ = ["Plan", "ascend", "dp_grams", "plan", "stabilised_score"]


def stabilised_score(
    kernel: Kernel, batch: Array, at: Array, h: float, clip: float, floor: float
) -> tuple[Array, float]:
    """clip_A(grad p_B) / max(p_B, p_floor), eq:stabilized-score, and the share of clipped gradients."""
    return clip_and_floor(*density_and_gradient(kernel, batch, at, h), clip, floor)


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
    noise: Noise,
) -> tuple[Array, Array]:
    """The rounds of alg:dpgrams: trajectories (T+1, k, d) and the clipped share of each round.

    The noise of a round has covariance sigma^2 K_t with K_t the exponential kernel of the
    *current* iterates, the same minibatch serving all starts.
    """
    x = starts
    path, clipped = [x], []
    for _ in range(n_steps):
        checkpoint()
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


def dp_grams(data: Dataset, spec: DPGramsSpec, noise: Noise) -> Release:
    """Run DAP, the noisy ascent and the merge; see the guarantee for what is proven.

    Notes
    -----
    Cost O(n_starts * (batch_size * n_steps * d + grid)) time.
    """
    refuse_private(data, noise.door)
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

    path, clipped = rounds_of(chosen, data.points, anchors.points, score, noise)
    events = (anchors.event, rounds_event(chosen, data.n))
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


def rounds_of(
    chosen: Plan,
    points: Array,
    starts: Array,
    score: Callable[[Array, Array], tuple[Array, float]],
    noise: Noise,
) -> tuple[Array, Array]:
    """The ascent of the plan's calibration: trajectories and the clipped share of each round."""
    h, size = chosen.bandwidth.value, chosen.batch_size
    steps, step = chosen.n_steps, chosen.step_size
    if chosen.process_noise is None:
        return ascend(
            points, starts, score, sigma=chosen.sigma, h=h, batch_size=size, n_steps=steps, step_size=step, noise=noise
        )
    assert chosen.gradient_clip is not None  # the plan fills both
    assert chosen.density_floor is not None
    return ascend_linear(
        points,
        starts,
        process_noise=chosen.process_noise,
        h=h,
        clip=chosen.gradient_clip,
        floor=chosen.density_floor,
        batch_size=size,
        n_steps=steps,
        step_size=step,
        noise=noise,
    )


def rounds_event(chosen: Plan, n: int) -> Event:
    """The description of the ascent that is priced."""
    if chosen.process_noise is not None:
        return GaussianRounds(
            rounds=chosen.n_steps,
            n=n,
            batch_size=chosen.batch_size,
            sensitivity=chosen.sensitivity,
            noise_scale=chosen.process_noise,
        )
    return SubsampledGaussianRounds(
        rounds=chosen.n_steps,
        n=n,
        batch_size=chosen.batch_size,
        sensitivity=chosen.sensitivity / chosen.batch_size,
        noise_scale=chosen.sigma,
        sensitivity_proven=False,
    )


def guarantee_of(chosen: Plan, events: tuple[Event, ...]) -> Guarantee:
    """The guarantee with its status: what the published argument gives, or only a nominal figure."""
    spec = chosen.spec
    cost = price(events, spec.delta)
    caveats = []
    if spec.calibration == "theorem":
        status = "as published"
        statement = (
            "The start is proven. For the ascent the paper states this ε, but one step of its proof for "
            "several starts at once has a gap, so we say “as published”."
        )
    elif spec.calibration == "tight":
        status = "proven"
        statement = (
            "Proven: each step releases kernel sums and their gradients under noise from the matching Gaussian "
            "process, which covers any one record wherever the steps lead, and this ε is exact or an upper bound."
        )
    else:
        status = "nominal"
        statement = (
            "ε is nominal: the noise is set as in the paper's experiments, for clipped contributions that share "
            "one denominator. One record can move the result more than this noise covers, so this is not a proof."
        )
        caveats.append("The start (DAP) alone is proven for its share of ε.")
    if cost.epsilon > spec.epsilon * (1 + 1e-9):
        raise RuntimeError("the noise was calibrated to less than its price; this is a bug, nothing was released")
    if status != "proven" and cost.epsilon < 0.999 * spec.epsilon:
        caveats.append(
            f"At this ε the noise no longer falls (the first term of ε_iter binds): only {cost.epsilon:.3g} is spent."
        )
    guarantee = Guarantee(
        epsilon=spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-9) else cost.epsilon,
        delta=cost.delta,
        status=status,
        statement=statement,
        caveats=tuple(caveats),
    )
    return guarantee if chosen.bandwidth.public else guarantee.without_public_bandwidth(chosen.bandwidth.rule)
