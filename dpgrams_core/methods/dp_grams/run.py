"""DP-GRAMS: noisy ascent on a private score from private anchors (alg:dpgrams)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.ascent import ascent_guarantee, rounds_event
from dpgrams_core.methods.dp_grams.as_run import dp_grams_as_run
from dpgrams_core.methods.dp_grams.plan import Plan, plan
from dpgrams_core.methods.dp_grams.rounds import clip_and_floor
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.dp_grams.starts import Anchors, candidate_set, draw_anchors, public_grid
from dpgrams_core.methods.dp_grams.tight import Reading, climb_rounds, read_modes
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.numerics.density import clipped_score, density_and_gradient
from dpgrams_core.numerics.kernels import Kernel
from dpgrams_core.numerics.merging import merge
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
Score = Callable[[Plan, Array, Array], tuple[Array, float]]


def stabilised_score(
    kernel: Kernel, batch: Array, at: Array, h: float, clip: float, floor: float
) -> tuple[Array, float]:
    """clip_A(grad p_B) / max(p_B, p_floor), eq:stabilized-score, and the share of clipped gradients."""
    return clip_and_floor(*density_and_gradient(kernel, batch, at, h), clip, floor)


def exact_score(chosen: Plan, batch: Array, at: Array) -> tuple[Array, float]:
    """The score of the calibration before its noise, (k, d), and the share of clipped contributions or gradients."""
    h = chosen.bandwidth.value
    if chosen.contribution_clip is not None:
        return clipped_score(chosen.kernel, batch, at, h, chosen.contribution_clip)
    assert chosen.gradient_clip is not None  # the plan fills both
    assert chosen.density_floor is not None
    return stabilised_score(chosen.kernel, batch, at, h, chosen.gradient_clip, chosen.density_floor)


def ascend(chosen: Plan, points: Array, starts: Array, noise: Noise, score: Score = exact_score) -> tuple[Array, Array]:
    """The rounds of alg:dpgrams, one minibatch for all starts: trajectories (T+1, k, d), clipped share of each round.

    Notes
    -----
    Cost O(n_steps * (batch_size k d + k^3)) time.  The rounds of ``tight`` are in tight.py.
    """
    x = starts
    path, clipped = [x], []
    for _ in range(chosen.n_steps):
        checkpoint()
        batch = points.take(noise.batch(len(points), chosen.batch_size), axis=0)
        exact, share = score(chosen, batch, x)
        away = scipy.spatial.distance.cdist(x, x)
        correlation = np.exp(-away / chosen.bandwidth.value)  # K_t, of the *current* iterates
        x = x + chosen.step_size * (exact + noise.correlated_gaussian(correlation, chosen.sigma, x.shape[1]))
        path.append(x)
        clipped.append(share)
    return np.stack(path), np.array(clipped)


def draw_starts(chosen: Plan, points: Array, box: Array, noise: Noise) -> Anchors:
    """The start of a plan: DAP (alg:dap-init) on the public candidates asked for, or on its public grid."""
    wish = chosen.spec.candidates
    return draw_anchors(
        points,
        public_grid(box, chosen.init_bandwidth) if wish is None else candidate_set(wish, box),
        epsilon_each=chosen.start.epsilon_each,
        draws=chosen.start.count,
        radius=chosen.utility_radius,
        suppression=chosen.suppression_radius,
        noise=noise,
    )


def typical_score(chosen: Plan, points: Array) -> float:
    """Median size of the exact score at a record (not private): what the noise has to be small against.

    A thousand records and a hundred places are enough for one figure on a card.
    """
    batch = points[:: max(1, len(points) // 1000)]
    exact, _ = exact_score(chosen, batch, points[:: max(1, len(points) // 100)])
    return float(np.median(np.linalg.norm(exact, axis=1)))


def dp_grams(data: Dataset, spec: DPGramsSpec, noise: Noise, reading: Reading = read_modes) -> Release:
    """Run DAP, the noisy ascent and the merge; see the guarantee for what is proven.

    In ``tight`` a ``reading`` of the rounds takes the place of the merge.

    Notes
    -----
    Cost O(n_starts * (batch_size * n_steps * d + grid)) time.
    """
    refuse_private(data, noise.door)
    if spec.calibration == AS_RUN:
        return dp_grams_as_run(data, spec, noise)
    chosen = plan(spec, data)
    events = (chosen.start, rounds_event(chosen, data.n))
    guarantee = guarantee_of(chosen, events)  # the price comes before the draw
    anchors = draw_starts(chosen, data.points, data.box, noise)
    heights = significance = pooled = None
    if chosen.process_noise is None:
        path, shares = ascend(chosen, data.points, anchors.points, noise)
        modes, clipped = merge(path[-1], chosen.bandwidth.value, spec.n_modes), float(shares.mean())
    else:
        climbed = climb_rounds(chosen, data.points, data.box, anchors.points, noise)
        path, clipped, pooled = climbed.path, climbed.clipped_share, climbed.pooled
        modes, heights = reading(path[-1], pooled, spec.n_modes)
        significance = heights / pooled.unit
    return Release(
        method="dp_grams",
        modes=modes,
        heights=heights,
        significance=significance,
        anchors=anchors.points,
        trajectories=path,
        pooled=pooled,
        noise_scale=chosen.sigma,
        spec=chosen.filled_spec(),
        events=events,
        guarantee=guarantee,
        _diagnostics=Diagnostics(
            candidates=anchors.candidates,
            utilities=anchors.utilities,
            score_size=typical_score(chosen, data.points),
            clipped_share=clipped,
        ),
    )


STATEMENTS = {
    "experiments": (
        "ε is nominal: the noise is the one that the paper's text describes, for clipped contributions that share "
        "one denominator. One record can move the result more than this noise covers, so this is not a proof."
    ),
    "theorem": (
        "The start is proven. For the ascent the paper states this ε, but one step of its proof for "
        "several starts at once has a gap, so we say “as published”."
    ),
    "tight": (
        "Proven: each round releases kernel sums and their gradients under noise from the matching Gaussian "
        "process, which covers any one record wherever the rounds lead; start and rounds are priced together, and "
        "this ε is an upper bound."
    ),
}


def guarantee_of(chosen: Plan, events: tuple[Event, ...]) -> Guarantee:
    """The guarantee with its status: what the published argument gives, or only a nominal figure."""
    return ascent_guarantee(chosen, events, STATEMENTS, (), "The start (DAP)", "replace-one")
