"""DP-PMS as in the authors' public code of May 2026 (methods/as_run.py says how such runs differ from the text).

The printed tables of regression do **not** come from it, or from any code that is public.  Their records are known, and
the baseline, PMS, comes out of them to every printed digit; the private column does not.  This code has about the
printed errors of the sinusoid for n >= 600 at epsilon = 0.1, half of them at larger epsilon, and mostly errors many
times smaller than the printed ones on the three steps (larger at n = 2000, epsilon = 1).  Clipped contributions
are summed, as alg:dp-pms prints it; it prints no formula of the noise, and here it is that of their mean (2 C / m).
Against alg:dp-pms it has besides:

- starts at records: the exponential mechanism draws among the records themselves, so that first responses of records
  are released as they are (their predictors too, which the paper takes as public);
- a utility that is the share of near responses among the records near in x, weighted by n, where its sensitivity is one
  over the *local* count;
- a fresh minibatch for every start and round, with noise that is accounted for one a round;
- noise correlated over the response alone;
- no merge: the end points are the curve, and the error is averaged over them.

Lengths are in the units of the columns: one h for both, as in the authors' code, whose draws are not repeated one by
one.  So means of runs differ by luck: of the three steps at n = 500 and epsilon = 0.1, twelve runs of that code gave
0.154 +- 0.017 and twenty of ours 0.216 +- 0.017; 40 times twelve of ours on the same records have the mean 0.190, from
0.157 to 0.276.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.methods import as_run
from dpgrams_core.methods.dp_pms.plan import CLIP_MULTIPLIER, check_design
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.guarantee import RESPONSE_ONLY
from dpgrams_core.model.results import Dataset, Diagnostics, Release, refuse_private
from dpgrams_core.numerics.bandwidths import BandwidthFacts, silverman_of_one
from dpgrams_core.privacy.noise import Noise, RepeatedDraws

Array = np.ndarray
USUAL = {"clip_multiplier": CLIP_MULTIPLIER["as_run"], "starts_per_log_n": 20.0, "init_fraction": 0.1}
SUPPRESSION = 2.5  # times (log n)^(-1/2), in the plane of predictor and response
# What only the printed algorithm reads, with the value that stands for "left out".
NOT_READ: dict[str, Any] = {
    "starts": "sparse",
    "n_candidates": None,
    "response_grid": None,
    "grid_size": None,
    "evaluation_points": None,
    "reach": None,
    "merge_radius": None,
}


@dataclass(frozen=True, kw_only=True)
class PlanAsRun(as_run.PlanAsRun):
    """With what only DP-PMS has: the number of starts for each log n."""

    start_multiplier: float


def plan_as_run(spec: DPPMSSpec, data: Dataset) -> PlanAsRun:
    """Fill in what is left out; every refusal happens here, before any draw."""
    refuse_private(data)
    check_design(data)
    for name, empty in NOT_READ.items():
        if getattr(spec, name) != empty:
            allowed = "the as_run calibration starts at records and has no curve to merge; leave it out"
            raise SpecError(name, getattr(spec, name), allowed)
    n, log_n = data.n, math.log(data.n)
    usual: dict[str, Any] = {**USUAL, **dict(data.as_run)}
    share = usual["init_fraction"] if spec.init_fraction is None else spec.init_fraction
    rounds = as_run.rounds_of(spec, n, share)
    facts = BandwidthFacts(n=n, d=2, box=data.box, epsilon=rounds.epsilon, beta=3.0, points=data.points)
    bandwidth = as_run.bandwidth_of(spec, facts, silverman_of_one(data.y))
    clip = usual["clip_multiplier"] if spec.clip_multiplier is None else spec.clip_multiplier
    multiplier = usual["starts_per_log_n"] if spec.start_multiplier is None else spec.start_multiplier
    starts = math.ceil(multiplier * log_n)
    if starts > n:
        allowed = f"that makes {starts:,} starts, and there are {n:,} records to start at; it must be at most"
        raise SpecError("start_multiplier", multiplier, f"{allowed} {math.floor(100 * n / log_n) / 100:g}")
    chosen = PlanAsRun(
        spec=spec,
        bandwidth=bandwidth,
        clip_multiplier=clip,
        clip=clip / bandwidth.value,
        init_fraction=share,
        start_multiplier=multiplier,
        n_starts=starts,
        init_bandwidth=bandwidth.value if spec.init_bandwidth is None else spec.init_bandwidth,
        rounds=rounds,
    )
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


def utilities(points: Array, window: float) -> Array:
    """At every record: of the records within the window in x, the share that is within it in y too."""
    found = np.empty(len(points))
    for part in as_run.parts(len(points), 2 * len(points)):
        near_x, near_y = (np.abs(points[part, None, axis] - points[None, :, axis]) <= window for axis in (0, 1))
        found[part] = (near_x & near_y).sum(axis=1) / near_x.sum(axis=1)
    return found


def shifts(chosen: PlanAsRun, points: Array, at: Array, draws: RepeatedDraws) -> tuple[Array, float]:
    """sum_i clip_C(q_i) for every start on a minibatch of its own, (k,), and the share of clipped contributions."""
    size, cut, moved = chosen.rounds.batch_size, 0, np.empty(len(at))
    for part in as_run.parts(len(at), 2 * size):
        here = at[part]
        batch = points[np.stack([draws.batch(len(points), size) for _ in here])]
        away = batch[..., 1] - here[:, None, 1]
        weights = np.exp(-0.5 * ((batch[..., 0] - here[:, None, 0]) ** 2 + away**2) / chosen.h**2)
        pulls = weights * away / (weights.sum(axis=1, keepdims=True) + as_run.QUIET)
        cut += int((np.abs(pulls) > chosen.clip).sum())
        moved[part] = np.clip(pulls, -chosen.clip, chosen.clip).sum(axis=1)
    return moved, cut / (len(at) * size)


def dp_pms_as_run(data: Dataset, spec: DPPMSSpec, noise: Noise) -> Release:
    """DP-PMS as in the authors' public code; ``curve`` has one row for every start."""
    draws = as_run.simulation_only(data, noise)
    chosen = plan_as_run(spec, data)
    points = np.asarray(data.points)
    share = utilities(points, chosen.init_bandwidth)
    apart = SUPPRESSION / math.sqrt(math.log(len(points)))
    at = points[as_run.draw_starts(chosen, points, share, apart, draws)]
    path, clipped = [at], []
    for _ in range(chosen.rounds.n_steps):
        shift, cut = shifts(chosen, points, at, draws)
        drawn = as_run.correlated_noise(at[:, 1:], chosen.h, draws)
        at = np.stack([at[:, 0], at[:, 1] + spec.step_size * shift + chosen.sigma * drawn[:, 0]], axis=1)
        path.append(at)
        clipped.append(cut)
    read = (
        "the records that are started at, whose values are released as they are; the bandwidth (Silverman's rule on "
        "the responses), and with it the clip and the noise; the clip multiplier, the number of starts and their share "
        "of ε"
    )
    what = (
        "It is the authors' public code of May 2026 on the records of the printed tables; those tables come from code "
        "that is not public, and their private column does not come out of it."
    )
    guarantee = as_run.guarantee_as_run(
        chosen.rounds, epsilon=spec.epsilon, what=what, read=read, attacked=as_run.NOT_ATTACKED
    )
    return Release(
        method="dp_pms",
        modes=np.empty((0, 2)),
        curve=at[np.argsort(at[:, 0], kind="stable")],
        anchors=path[0],
        trajectories=np.stack(path),
        noise_scale=chosen.sigma,
        spec=chosen.filled_spec(),
        events=(),  # no accountant can price it
        guarantee=replace(guarantee, neighbours=RESPONSE_ONLY),
        _diagnostics=Diagnostics(utilities=share, clipped_share=float(np.mean(clipped))),
    )
