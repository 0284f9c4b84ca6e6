"""DP-PMS: private partial mean shift for modal regression (alg:dp-pms).

Predictors are fixed and public; neighbours differ in one *response*.  Each start (x_j, y_j) keeps its predictor and
moves its response by a noisy mean-shift step.  The three calibrations differ in that step:

``experiments``  The clipped sum of alg:dp-pms, Delta_j = sum_i clip_C(q_i), with noise set for 2 C / m.  Not a
    sensitivity, for two reasons: the q_i share the denominator sum_l w_l, so one response moves all of them; and
    they are *summed*, so one clipped term alone may move by 2 C and not by 2 C / m.
    tests/unit/methods/test_dp_pms_sensitivity.py finds neighbours far beyond it.  Nominal.
``theorem``  h^2 times the response's coordinate of the stabilised score (eq:stabilized-score) of the joint density,
    d = 2, with the noise of eq:sigma-corr.  lem:correlated_noise_privacy speaks of rounds that release the whole
    score at points chosen by earlier rounds; one coordinate of it is post-processing, and replacing a response is
    one way to replace a record.  So the lemma covers this as far as it holds; the paper itself states no theorem for
    DP-PMS, and the lemma's joint step has a gap.  As published.
``tight``  Each round releases F_B and h dF_B/dy at the k states, F_B = sum over the batch of k_h(., (X_i, Y_i)), under
    N(0, sigma^2 C) with C their covariance for a Gaussian process of covariance k_h.  These are 2k of the 3k
    numbers of dp_grams/rounds.py, and its proof holds for any subset: a replaced response changes F_B by
    k_h(., (X, Y)) - k_h(., (X, Y')), of norm at most sqrt(2), and the change of the released numbers, in the norm
    of their noise, is that of a projection.  Quotient, clip, floor, step: post-processing.  Proven.

What follows the rounds (``cleanup``, ``curve_at``) reads only what they released.
"""

from __future__ import annotations

import numpy as np
import scipy

from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.ascent import ascent_guarantee, rounds_event
from dpgrams_core.methods.dp_grams.plan import TIGHT
from dpgrams_core.methods.dp_grams.rounds import block_sums, clip_and_floor, densities, joint_covariance, kernel_sums
from dpgrams_core.methods.dp_grams.run import stabilised_score
from dpgrams_core.methods.dp_grams.tight import prior_length
from dpgrams_core.methods.dp_pms.as_run import dp_pms_as_run
from dpgrams_core.methods.dp_pms.plan import KERNEL, Plan, plan
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.methods.dp_pms.starts import Starts, draw_starts
from dpgrams_core.methods.functional.regression import UNIT_SQUARE, from_unit
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.guarantee import RESPONSE_ONLY
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.noise import Noise

# From the end points of DP-PMS to a curve: post-processing, which reads nothing but what was released.


def cleanup(ends: Array, radius: float) -> Array:
    """Fixed-radius cleanup (app:dp-pms-more): lonely end points go, the others take the mean response around them.

    "Around" is within ``radius`` in the unit square.  Where every end point is lonely, all are kept.

    >>> cleanup(np.array([[0.1, 0.50], [0.15, 0.54], [0.2, 0.9]]), 0.1).tolist()
    [[0.1, 0.52], [0.15, 0.52]]
    """
    near = scipy.spatial.distance.cdist(ends, ends) <= radius
    kept = near.sum(axis=1) > 1
    if not kept.any():
        return ends
    means = (near @ ends[:, 1]) / near.sum(axis=1)
    return np.stack([ends[:, 0], means], axis=1)[kept]


def curve_at(ends: Array, places: Array, reach: float, radius: float) -> Array:
    """Rows (x, y): at each place the end points within ``reach``, responses in chains of ``radius`` merged to means.

    >>> curve_at(np.array([[0.0, 0.1], [0.1, 0.2], [0.1, 0.9]]), np.array([0.05, 0.5]), 0.1, 0.15).round(3).tolist()
    [[0.05, 0.15], [0.05, 0.9]]
    """
    rows = [np.empty((0, 2))]
    for x in places:
        responses = np.sort(ends[np.abs(ends[:, 0] - x) <= reach * (1 + 1e-9), 1])
        if len(responses):
            groups = np.split(responses, np.flatnonzero(np.diff(responses) > radius) + 1)
            rows.append(np.array([(x, group.mean()) for group in groups]))
    return np.concatenate(rows)


Array = np.ndarray
_PAIRS = 2_000_000  # pairs of (start, record) held in memory at once
# Of the highest peak at the same x.  The kernel smears a branch over its end and halves it there, so that beside an
# equal one what is below a half lies beyond an end; benchmarks/pilot_regression.py has the same.
SHOULDER = 0.5
# Where nothing stands above the noise: bandwidths of x around the highest peak from which peaks are averaged, and how
# fast their weights grow with the height in units of noise.  Of the same pilot.
DOUBT_WIDTH, DOUBT = 2.0, 2.0


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
    """h^2 times the score along y, cut and floored, from (F_B, h dF_B/dy), noisy or not (eq:stabilized-score)."""
    assert chosen.gradient_clip is not None  # the plan fills both
    assert chosen.density_floor is not None
    k = len(sums) // 2
    both = np.concatenate([sums[:k], np.stack([np.zeros(k), sums[k:]], axis=1).ravel()])
    density, gradient = densities(both, 2, chosen.h, chosen.batch_size)
    score, share = clip_and_floor(density, gradient, chosen.gradient_clip, chosen.density_floor, of_score=True)
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


def pooled_rounds(chosen: Plan) -> PooledRounds:
    """The rounds of ``tight`` read together, before the first of them."""
    assert chosen.process_noise is not None
    return PooledRounds(
        h=chosen.h,
        length=prior_length(chosen.h, UNIT_SQUARE),
        prior=TIGHT.prior * chosen.batch_size,
        noise=chosen.process_noise,
        axes=(1,),
        box=UNIT_SQUARE,
    )


def pooled_steps(chosen: Plan, pooled: PooledRounds, at: Array, steps: int) -> tuple[Array, float]:
    """Where ``steps`` steps along the response lead on the estimate of all rounds so far, and the share of cut ones."""
    cut = []
    for _ in range(steps):
        height, slope = pooled.at(at)
        shift, share = shift_from_sums(np.concatenate([height, slope[:, 1]]), chosen)
        moved = np.clip(at[:, 1] + chosen.spec.step_size * shift, 0.0, 1.0)
        at = np.stack([at[:, 0], moved], axis=1)
        cut.append(share)
    return at, float(np.mean(cut))


def climb_rounds(chosen: Plan, starts: Array, noise: Noise) -> tuple[Array, float, PooledRounds]:
    """The rounds of ``tight``: release, read all so far together, climb a few steps along the response.

    One response moves the numbers of a round by at most ``chosen.sensitivity`` in the norm of its noise, wherever
    its states are (head of this file); the states are functions of earlier releases, and the rest is post-processing.
    """
    assert chosen.process_noise is not None
    pooled, at, path, clipped = pooled_rounds(chosen), starts, [starts], []
    for left in reversed(range(chosen.n_steps)):
        checkpoint()
        batch = chosen.points.take(noise.batch(len(chosen.points), chosen.batch_size), axis=0)
        wanted, covariance = linear_parts(at, chosen.h)
        tables = (table[:, wanted] for table in block_sums(batch, at, chosen.h))
        pooled.add(at, noise.covered_gaussian(tables, covariance, chosen.process_noise), covariance)
        at, share = pooled_steps(chosen, pooled, at, TIGHT.climb_a_round if left else TIGHT.last_climb)
        path.append(at)
        clipped.append(share)
    return np.stack(path), float(np.mean(clipped)), pooled


def read_curve(chosen: Plan, ends: Array, pooled: PooledRounds) -> Array:
    """Rows (x, y): at each place the peaks along y of the estimate that the end points within reach lead to.

    A peak counts where it stands above the noise and is no shoulder of a higher one; peaks within the merge radius are
    one, the mean with heights as weights.  Where nothing stands above the noise one row is given: at the place of the
    highest peak the mean of those around it, since which of them is highest is mostly noise.
    """
    filled = chosen.filled_spec()
    assert filled.significance is not None
    places = chosen.evaluation_points
    number, end = np.nonzero(np.abs(places[:, None] - ends[None, :, 0]) <= chosen.reach * (1 + 1e-9))
    at, _ = pooled_steps(chosen, pooled, np.stack([places[number], ends[end, 1]], axis=1), TIGHT.last_climb)
    heights = pooled.at(at)[0] / pooled.unit
    rows = []
    for place in np.unique(number):
        here = number == place
        kept = here & (heights >= max(filled.significance, SHOULDER * float(heights[here].max())))
        order = np.argsort(at[kept, 1], kind="stable")
        y, weights = at[kept, 1][order], heights[kept][order]
        for group in np.split(np.arange(len(y)), np.flatnonzero(np.diff(y) > chosen.merge_radius) + 1):
            if len(group):
                rows.append((places[place], float(np.average(y[group], weights=weights[group]))))
    if rows:
        return np.array(rows)
    x = at[int(np.argmax(heights)), 0]
    near = np.abs(at[:, 0] - x) <= DOUBT_WIDTH * chosen.h
    weights = np.exp(DOUBT * (heights[near] - heights[near].max()))
    return np.array([(x, float(np.average(at[near, 1], weights=weights)))])


def ascend(chosen: Plan, starts: Array, noise: Noise) -> tuple[Array, float]:
    """The rounds of alg:dp-pms on the unit square: trajectories (T+1, k, 2), clipped share."""
    at, path, clipped = starts, [starts], []
    for _ in range(chosen.n_steps):
        checkpoint()
        batch = chosen.points.take(noise.batch(len(chosen.points), chosen.batch_size), axis=0)
        shift, share = exact_shift(chosen, batch, at)
        away = scipy.spatial.distance.cdist(at, at)
        correlation = np.exp(-away / chosen.h)  # K_t of alg:dp-pms, of the current joint states
        shift = shift + noise.correlated_gaussian(correlation, chosen.sigma, 1)[:, 0]
        at = np.stack([at[:, 0], at[:, 1] + chosen.spec.step_size * shift], axis=1)
        path.append(at)
        clipped.append(share)
    return np.stack(path), float(np.mean(clipped))


def starts_of(chosen: Plan, noise: Noise) -> Starts:
    """The starts of a plan, drawn."""
    return draw_starts(
        chosen.points[:, 1],
        chosen.windows,
        chosen.response_grid,
        epsilon_each=chosen.start.epsilon_each,
        radius=chosen.init_bandwidth,
        noise=noise,
    )


def cleaned(chosen: Plan, ends: Array) -> Array:
    """The end points that are read: of bins those in company."""
    filled = chosen.filled_spec()
    return ends if filled.cleanup_radius is None else cleanup(ends, filled.cleanup_radius)


def dp_pms(data: Dataset, spec: DPPMSSpec, noise: Noise) -> Release:
    """Draw the starts, climb in the response with noise, merge at the evaluation points.

    ``curve`` has rows (x, y), several for an x with several branches; ``modes`` is empty.  ``noise_scale`` is the
    standard deviation of the noise of one step, in units of the response.  Anchors, trajectories and rounds stay at
    predictors of records.  Nothing protects those, so a release of private data goes without them.

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
    if spec.calibration == AS_RUN:
        return dp_pms_as_run(data, spec, noise)
    chosen = plan(spec, data)
    refuse_a_grid_beside_the_data(chosen, data)
    events = (chosen.start, rounds_event(chosen, data.n))
    guarantee = guarantee_of(chosen, events)  # the price comes before the draw
    starts, pooled = starts_of(chosen, noise), None
    if chosen.process_noise is None:
        path, clipped = ascend(chosen, starts.points, noise)
        ends = cleaned(chosen, path[-1])
        curve = curve_at(ends, chosen.evaluation_points, chosen.reach, chosen.merge_radius)
    else:
        path, clipped, pooled = climb_rounds(chosen, starts.points, noise)
        curve = read_curve(chosen, path[-1], pooled)
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
        pooled=None if data.private else pooled,
        noise_scale=side * chosen.sigma,
        spec=chosen.filled_spec(),
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


STATEMENTS = {
    "experiments": (
        "ε is nominal: the noise is the one that the paper's text describes, for a mean of clipped contributions, "
        "while DP-PMS sums contributions that share one denominator. One response can move the result more than this "
        "noise covers, so this is not a proof."
    ),
    "theorem": (
        "The start is proven. For the ascent we use the noise that the paper states for DP-GRAMS, whose lemma covers "
        "the response's direction too; one step of its proof for several starts at once has a gap, and the paper "
        "states no theorem for DP-PMS itself, so we say “as published”."
    ),
    "tight": (
        "Proven: each step releases kernel sums and their slopes along the response under noise from the matching "
        "Gaussian process, which covers any one response wherever the steps lead; this ε is exact or an upper bound."
    ),
}


def guarantee_of(chosen: Plan, events: tuple[Event, ...]) -> Guarantee:
    """The guarantee with its status and what it protects."""
    public = "The predictors are public: neighbours differ in one response, and only the responses are protected."
    return ascent_guarantee(chosen, events, STATEMENTS, (public,), "The start", RESPONSE_ONLY)
