"""DP-PMS: private partial mean shift for modal regression (alg:dp-pms).

Predictors are fixed and public; neighbours differ in one *response*.  Each start (x_j, y_j) keeps its predictor and
moves its response by a noisy mean-shift step.  The three calibrations differ in that step:

``experiments``  The clipped sum of alg:dp-pms, Delta_j = sum_i clip_C(q_i), with noise set for 2 C / m.  Not a
    sensitivity, for two reasons: the q_i share the denominator sum_l w_l, so one response moves all of them; and
    they are *summed*, so one clipped term alone may move by 2 C and not by 2 C / m.  tests/unit/
    test_dp_pms_sensitivity.py finds neighbours far beyond it.  Nominal.
``theorem``  h^2 times the response's coordinate of the stabilised score (eq:stabilized-score) of the joint density,
    d = 2, with the noise of eq:sigma-corr.  lem:correlated_noise_privacy speaks of rounds that release the whole
    score at points chosen by earlier rounds; one coordinate of it is post-processing, and replacing a response is
    one way to replace a record.  So the lemma covers this as far as it holds; the paper itself states no theorem for
    DP-PMS, and the lemma's joint step has a gap.  As published.
``tight``  Each round releases F_B and h dF_B/dy at the k states, F_B = sum over the batch of k_h(., (X_i, Y_i)), under
    N(0, sigma^2 C) with C their covariance for a Gaussian process of covariance k_h.  These are 2k of the 3k
    numbers of linear_rounds.py, and its proof holds for any subset: a replaced response changes F_B by
    k_h(., (X, Y)) - k_h(., (X, Y')), of norm at most sqrt(2), and the change of the released numbers, in the norm
    of their noise, is that of a projection.  Quotient, clip, floor, step: post-processing.  Proven.

What follows the rounds (dp_pms_curve.py) reads only what they released.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from dpgrams_core.errors import DataError
from dpgrams_core.guarantees import RESPONSE_ONLY
from dpgrams_core.methods.dp_grams import stabilised_score
from dpgrams_core.methods.dp_pms_curve import cleanup, curve_at, significant
from dpgrams_core.methods.dp_pms_plan import KERNEL, Plan, plan
from dpgrams_core.methods.dp_pms_starts import draw_starts
from dpgrams_core.methods.functional_regression import from_unit
from dpgrams_core.methods.linear_rounds import block_sums, clip_and_floor, densities, joint_covariance, kernel_sums
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.events import Event, GaussianRounds, SubsampledGaussianRounds
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.specs_regression import DPPMSSpec

Array = np.ndarray
_PAIRS = 2_000_000  # pairs of (start, record) held in memory at once

__all__ = ["Plan", "clipped_shift", "dp_pms", "plan"]


def naive_clipped_shift(batch: Array, at: Array, h: float, clip: float) -> tuple[Array, float]:
    """Delta_j of alg:dp-pms by plain loops, and the share of clipped contributions; the reference."""
    shift, cut = np.zeros(len(at)), 0
    for j, (x, y) in enumerate(at):
        weights = [math.exp(-((a - x) ** 2 + (b - y) ** 2) / (2 * h**2)) for a, b in batch]
        total = sum(weights)
        for weight, (_, b) in zip(weights, batch, strict=True):
            q = weight * (b - y) / total if total != 0 else 0.0
            cut += abs(q) > clip
            shift[j] += max(-clip, min(q, clip))
    return shift, cut / (len(batch) * len(at))


def clipped_shift(batch: Array, at: Array, h: float, clip: float) -> tuple[Array, float]:
    """Delta_j of alg:dp-pms: the sum of clipped normalised contributions, (k,), and the share of clipped ones."""
    shift, cut = np.zeros(len(at)), 0
    rows = max(1, _PAIRS // len(batch))
    for start in range(0, len(at), rows):
        checkpoint()
        part = slice(start, start + rows)
        distance = batch[None, :, 1] - at[part, None, 1]
        weights = np.exp(-0.5 * ((batch[None, :, 0] - at[part, None, 0]) ** 2 + distance**2) / h**2)
        total = weights.sum(axis=1, keepdims=True)
        q = weights * distance / np.where(total == 0, 1.0, total)
        cut += int((np.abs(q) > clip).sum())
        shift[part] = np.clip(q, -clip, clip).sum(axis=1)
    return shift, cut / (len(batch) * len(at))


def linear_parts(at: Array, h: float) -> tuple[Array, Array]:
    """Which of the 3k numbers of ``kernel_sums`` a round of ``tight`` releases, and their covariance C (2k, 2k).

    The k values and the k slopes along the response; the slopes along the predictor are not needed.
    """
    k = len(at)
    wanted = np.concatenate([np.arange(k), k + 2 * np.arange(k) + 1])
    return wanted, joint_covariance(at, h)[np.ix_(wanted, wanted)]


def shift_from_sums(sums: Array, chosen: Plan) -> tuple[Array, float]:
    """h^2 clip_A(dp/dy) / max(p, p_floor) from (F_B, h dF_B/dy), noisy or not: eq:stabilized-score along y."""
    assert chosen.gradient_clip is not None  # the plan fills both
    assert chosen.density_floor is not None
    k = len(sums) // 2
    both = np.concatenate([sums[:k], np.stack([np.zeros(k), sums[k:]], axis=1).ravel()])
    density, gradient = densities(both, 2, chosen.h, chosen.batch_size)
    score, share = clip_and_floor(density, gradient, chosen.gradient_clip, chosen.density_floor)
    return chosen.h**2 * score[:, 1], share


def exact_shift(chosen: Plan, batch: Array, at: Array) -> tuple[Array, float]:
    """The step of the calibration before its noise, (k,), and the share of clipped contributions or slopes."""
    if chosen.contribution_clip is not None:
        return clipped_shift(batch, at, chosen.h, chosen.contribution_clip)
    if chosen.process_noise is not None:
        wanted, _ = linear_parts(at, chosen.h)
        return shift_from_sums(kernel_sums(batch, at, chosen.h)[wanted], chosen)
    assert chosen.gradient_clip is not None
    assert chosen.density_floor is not None
    score, share = stabilised_score(KERNEL, batch, at, chosen.h, chosen.gradient_clip, chosen.density_floor)
    return chosen.h**2 * score[:, 1], share


def noisy_shift(chosen: Plan, batch: Array, at: Array, noise: Noise) -> tuple[Array, float, Array | None]:
    """One round's released steps (k,) with the noise of the current joint states, and the share of clipped ones.

    For ``tight`` also how many standard deviations of its noise each released kernel sum stands above 0, (k,).
    """
    if chosen.process_noise is not None:
        wanted, covariance = linear_parts(at, chosen.h)
        tables = (table[:, wanted] for table in block_sums(batch, at, chosen.h))
        sums = noise.covered_gaussian(tables, covariance, chosen.process_noise)
        return *shift_from_sums(sums, chosen), sums[: len(at)] / chosen.process_noise
    shift, share = exact_shift(chosen, batch, at)
    correlation = np.exp(-cdist(at, at) / chosen.h)  # K_t of alg:dp-pms
    return shift + noise.correlated_gaussian(correlation, chosen.shift_noise, 1)[:, 0], share, None


def ascend(chosen: Plan, starts: Array, noise: Noise) -> tuple[Array, float, Array | None]:
    """The rounds of alg:dp-pms on the unit square: trajectories (T+1, k, 2), clipped share, last significance."""
    at, path, clipped = starts, [starts], []
    height: Array | None = None
    for _ in range(chosen.n_steps):
        checkpoint()
        batch = chosen.points[noise.batch(len(chosen.points), chosen.batch_size)]
        shift, share, height = noisy_shift(chosen, batch, at, noise)
        at = np.stack([at[:, 0], at[:, 1] + chosen.spec.step_size * shift], axis=1)
        path.append(at)
        clipped.append(share)
    return np.stack(path), float(np.mean(clipped)), height


def dp_pms(data: Dataset, spec: DPPMSSpec, noise: Noise) -> Release:
    """Draw the starts, climb in the response with noise, merge at the evaluation points.

    ``curve`` has rows (x, y), several for an x with several branches; ``modes`` is empty.  ``noise_scale`` is the
    standard deviation of the noise of one step, in units of the response.  Anchors and trajectories stay at predictors
    of records.  Nothing protects those, so a release of private data goes without them.

    Examples
    --------
    >>> from dpgrams_core.privacy.noise import SimulationNoise
    >>> x = np.linspace(0, 1, 400)
    >>> points = np.stack([x, np.where(np.arange(400) % 2, 0.2, 0.8)], axis=1)
    >>> data = Dataset(name="two lines", kind="regression", points=points, box=[(0, 1), (0, 1)])
    >>> release = dp_pms(data, DPPMSSpec(epsilon=20, calibration="tight", grid_size=2), SimulationNoise(0))
    >>> release.guarantee.status, release.curve.round(1).tolist()
    ('proven', [[0.0, 0.2], [0.0, 0.8], [1.0, 0.2], [1.0, 0.8]])

    Notes
    -----
    Cost O(k (batch_size n_steps + n candidates)) time, and k^3 n_steps for the correlated noise.
    """
    refuse_private(data, noise.door)
    chosen = plan(spec, data)
    refuse_a_grid_beside_the_data(chosen, data)
    events = (chosen.windows.event(chosen.epsilon_init), rounds_event(chosen))
    guarantee = guarantee_of(chosen, events)  # the price comes before the draw
    starts = draw_starts(
        chosen.points[:, 1],
        chosen.windows,
        chosen.response_grid,
        epsilon=chosen.epsilon_init,
        radius=chosen.init_bandwidth,
        noise=noise,
    )
    path, clipped, height = ascend(chosen, starts.points, noise)
    filled = chosen.filled_spec()
    ends = significant(path[-1], height, filled.significance)
    ends = ends if filled.cleanup_radius is None else cleanup(ends, filled.cleanup_radius)
    curve = curve_at(ends, chosen.evaluation_points, chosen.reach, chosen.merge_radius)
    side = float(data.box[1, 1] - data.box[1, 0])
    some = chosen.points[:: max(1, data.n // 1000)]
    # The pull that has to be seen through the noise: a bandwidth away from a record, where a start has yet to climb.
    away = chosen.points[:: max(1, data.n // 100)].copy()
    away[:, 1] += np.where(np.arange(len(away)) % 2, 1, -1) * chosen.bandwidth.value
    typical, _ = exact_shift(chosen, some, away)
    return Release(
        method="dp_pms",
        modes=np.empty((0, 2)),
        curve=from_unit(curve, data.box),
        anchors=None if data.private else from_unit(starts.points, data.box),
        trajectories=None if data.private else from_unit(path, data.box),
        noise_scale=side * chosen.shift_noise,
        spec=filled,
        events=events,
        guarantee=guarantee,
        _diagnostics=Diagnostics(
            candidates=data.box[1, 0] + side * chosen.response_grid,
            utilities=starts.utilities,
            score_size=side * float(np.median(np.abs(typical))),
            clipped_share=clipped,
        ),
    )


def refuse_a_grid_beside_the_data(chosen: Plan, data: Dataset) -> None:
    """Say so where no response is near the response grid. Never for private data: the answer would tell of them."""
    if data.private:
        return
    gaps = np.abs(chosen.points[:, 1, None] - chosen.response_grid).min(axis=1)
    if (gaps > chosen.init_bandwidth).all():
        raise DataError(
            "The response grid misses the data: no response lies within init_bandwidth of any of its points. "
            "Check the box or the response_grid; nothing was drawn."
        )


def rounds_event(chosen: Plan) -> Event:
    """The description of the ascent that is priced."""
    if chosen.process_noise is not None:
        return GaussianRounds(
            rounds=chosen.n_steps,
            n=len(chosen.points),
            batch_size=chosen.batch_size,
            sensitivity=chosen.sensitivity,
            noise_scale=chosen.process_noise,
        )
    return SubsampledGaussianRounds(
        rounds=chosen.n_steps,
        n=len(chosen.points),
        batch_size=chosen.batch_size,
        sensitivity=chosen.sensitivity / chosen.batch_size,
        noise_scale=chosen.shift_noise,
        sensitivity_proven=False,
    )


STATEMENTS = {
    "experiments": (
        "nominal",
        "ε is nominal: the noise is set as in the paper's experiments, for a mean of clipped contributions, while "
        "DP-PMS sums contributions that share one denominator. One response can move the result more than this noise "
        "covers, so this is not a proof.",
    ),
    "theorem": (
        "as published",
        "The start is proven. For the ascent we use the noise that the paper states for DP-GRAMS, whose lemma covers "
        "the response's direction too; one step of its proof for several starts at once has a gap, and the paper "
        "states no theorem for DP-PMS itself, so we say “as published”.",
    ),
    "tight": (
        "proven",
        "Proven: each step releases kernel sums and their slopes along the response under noise from the matching "
        "Gaussian process, which covers any one response wherever the steps lead; this ε is exact or an upper bound.",
    ),
}


def guarantee_of(chosen: Plan, events: tuple[Event, ...]) -> Guarantee:
    """The guarantee with its status and what it protects."""
    spec = chosen.spec
    cost = price(events, spec.delta)
    if cost.epsilon > spec.epsilon * (1 + 1e-9):
        raise RuntimeError("the noise was calibrated to less than its price; this is a bug, nothing was released")
    status, statement = STATEMENTS[spec.calibration]
    caveats = ["The predictors are public: neighbours differ in one response, and only the responses are protected."]
    if status == "nominal":
        caveats.append("The start alone is proven for its share of ε.")
    if status != "proven" and cost.epsilon < 0.999 * spec.epsilon:
        caveats.append(
            f"At this ε the noise no longer falls (the first term of ε_iter binds): only {cost.epsilon:.3g} is spent."
        )
    guarantee = Guarantee(
        epsilon=spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-9) else cost.epsilon,
        delta=cost.delta,
        status=status,
        statement=statement,
        neighbours=RESPONSE_ONLY,
        caveats=tuple(caveats),
    )
    return guarantee if chosen.bandwidth.public else guarantee.without_public_bandwidth(chosen.bandwidth.rule)
