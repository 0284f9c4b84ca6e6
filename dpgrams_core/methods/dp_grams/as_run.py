"""DP-GRAMS and DP-GRAMS-C as the paper's tables were run (methods/as_run.py says how that differs from the text).

Steps are in the units of mean shift: a step moves by sum_i clip_C(q_i), q_i = w_i (X_i - x) / sum_l w_l, with
C = clip_multiplier h^(1-d), which is C* h^2.  The order of the draws is that of the authors' code, so that a seed means
what it meant there: first the starts, one weighted choice each; then in each round the records, and a block of normals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from dpgrams_core.methods import as_run
from dpgrams_core.methods.dp_grams.spec import DPGramsCSpec, DPGramsSpec
from dpgrams_core.methods.dp_grams.starts import candidate_set
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.numerics.bandwidths import BandwidthFacts
from dpgrams_core.numerics.merging import group_means, ward_groups
from dpgrams_core.privacy.noise import Noise, RepeatedDraws

Array = np.ndarray
# Of data that no table of the paper has: the defaults of the authors' clustering function.
USUAL = {"clip_multiplier": 0.1, "starts_per_log_n": 5.0, "init_fraction": 0.1, "utility_steps": 3.0}
BOX_QUANTILE = 0.90  # "robust R90 rule", named in the appendix on RNA-Seq
MOST_CANDIDATES = 1_000_000  # RNA-Seq has 531,441


def silverman(points: Array) -> float:
    """h^2 = (2/d) tr(covariance) (4 / ((2d + 1) n))^(2/(d+4)), for the records and again for the end points.

    >>> round(silverman(np.array([[0.0, 0.0], [2.0, 2.0]])), 4)
    1.7167
    """
    n, d = points.shape
    total = float(np.trace(np.atleast_2d(np.cov(points.T)))) if n > 1 else 0.0
    return math.sqrt(2 / d * total * (4 / ((2 * d + 1) * n)) ** (2 / (d + 4)))


@dataclass(frozen=True, kw_only=True)
class PlanAsRun(as_run.PlanAsRun):
    """With what only DP-GRAMS has: its lattice, and radii of its own."""

    utility_radius: float
    suppression_radius: float
    step_size: float
    candidates: Array


def plan_as_run(spec: DPGramsSpec, data: Dataset) -> PlanAsRun:
    """Fill in what is left out; every refusal happens here, before any draw."""
    refuse_private(data)
    n, d = data.n, data.dimension
    if n < 3:
        raise SpecError("n", n, "at least 3 records are needed")
    if spec.kernel != "gaussian":
        raise SpecError("kernel", spec.kernel, "the tables were run with the Gaussian kernel; choose gaussian")
    log_n = math.log(n)
    usual: dict[str, Any] = {**USUAL, **dict(data.as_run)}
    share = usual["init_fraction"] if spec.init_fraction is None else spec.init_fraction
    spacing = (log_n / n) ** (1 / (d + 6)) if spec.init_bandwidth is None else spec.init_bandwidth
    rounds = as_run.rounds_of(spec, n, share)
    facts = BandwidthFacts(n=n, d=d, box=data.box, epsilon=rounds.epsilon, beta=spec.beta, points=data.points)
    bandwidth = as_run.bandwidth_of(spec, facts, silverman(data.points))
    multiplier = usual["clip_multiplier"] if spec.clip_multiplier is None else spec.clip_multiplier
    chosen = PlanAsRun(
        spec=spec,
        bandwidth=bandwidth,
        clip_multiplier=multiplier,
        clip=multiplier * bandwidth.value ** (1 - d),
        init_fraction=share,
        n_starts=math.ceil(usual["starts_per_log_n"] * log_n) if spec.n_starts is None else spec.n_starts,
        init_bandwidth=spacing,
        utility_radius=usual["utility_steps"] * spacing,
        suppression_radius=2 * log_n ** (-1 / d) if spec.suppression_radius is None else spec.suppression_radius,
        step_size=1.0 if spec.step_size is None else spec.step_size,
        candidates=_candidates(spec, data, spacing, usual.get("lattice_side")),
        rounds=rounds,
    )
    if chosen.n_starts > len(chosen.candidates):
        allowed = f"it must be between 1 and the number of candidates, {len(chosen.candidates):,}"
        raise SpecError("n_starts", chosen.n_starts, allowed)
    chosen.filled_spec()  # a default that is itself out of range is refused here too
    return chosen


def _candidates(spec: DPGramsSpec, data: Dataset, spacing: float, side: int | None) -> Array:
    """Those given, the data set's own, or a lattice as wide as nine tenths of the records, rounded outward.

    In six dimensions the lattice of the digits has 47 million points, which the printed time of a run rules out; theirs
    has ``side`` points along each axis instead.
    """
    if spec.candidates is not None:
        return candidate_set(spec.candidates, data.box)
    if data.candidates is not None:
        return np.asarray(data.candidates)
    d = data.dimension
    half = float(np.quantile(np.abs(data.points).max(axis=1), BOX_QUANTILE))
    if side is None:
        steps = math.ceil(half / spacing)
        size = (2 * steps + 1) ** d
        if size > MOST_CANDIDATES:
            allowed = f"the lattice would have {size:,} points and may have {MOST_CANDIDATES:,}; widen it"
            raise SpecError("init_bandwidth", spacing, f"{allowed}, or give candidates")
        axis = np.arange(-steps, steps + 1) * spacing
    else:
        axis = np.linspace(-half, half, side)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)


def utilities(chosen: PlanAsRun, points: Array) -> Array:
    """The share of the records within the utility radius of every candidate."""
    found = np.empty(len(chosen.candidates))
    for part in as_run.parts(len(found), len(points)):
        away = scipy.spatial.distance.cdist(chosen.candidates[part], points)
        found[part] = (away <= chosen.utility_radius).mean(axis=1)
    return found


def summed_contributions(batch: Array, at: Array, h: float, clip: float) -> tuple[Array, float]:
    """sum_i clip_C(q_i) at every place, (k, d), and the share of contributions that were clipped."""
    total, cut = np.empty_like(at), 0
    for part in as_run.parts(len(at), len(batch) * at.shape[1]):
        away = batch[None] - at[part, None]
        weights = np.exp(-0.5 * (away**2).sum(axis=-1) / h**2)
        pulls = weights[..., None] * away / (weights.sum(axis=1)[:, None, None] + as_run.QUIET)
        lengths = np.linalg.norm(pulls, axis=-1, keepdims=True)
        total[part] = (pulls * np.minimum(1, clip / np.maximum(lengths, as_run.QUIET))).sum(axis=1)
        cut += int((lengths > clip).sum())
    return total, cut / (len(batch) * len(at))


def ascend(chosen: PlanAsRun, points: Array, starts: Array, draws: RepeatedDraws) -> tuple[Array, float]:
    """Trajectories (T + 1, k, d), and the mean share of clipped contributions."""
    x, path, clipped = starts, [starts], []
    for _ in range(chosen.rounds.n_steps):
        checkpoint()
        batch = points.take(draws.batch(len(points), chosen.rounds.batch_size), axis=0)
        pull, share = summed_contributions(batch, x, chosen.h, chosen.clip)
        x = x + chosen.step_size * (pull + chosen.sigma * as_run.correlated_noise(x, chosen.h, draws))
        path.append(x)
        clipped.append(share)
    return np.stack(path), float(np.mean(clipped))


def greedy_merge(ends: Array, radius: float) -> Array:
    """In the order of the starts: all within the radius of the first one left are averaged.

    >>> greedy_merge(np.array([[0.0], [4.0], [1.0], [1.8]]), 1.0).ravel().tolist()
    [0.5, 4.0, 1.8]
    """
    left, modes = np.ones(len(ends), dtype=bool), []
    for place, point in enumerate(ends):
        if left[place]:
            near = left & (np.linalg.norm(ends - point, axis=1) <= radius)
            modes.append(ends[near].mean(axis=0))
            left &= ~near
    return np.array(modes)


def dp_grams_as_run(data: Dataset, spec: DPGramsSpec, noise: Noise) -> Release:
    """DP-GRAMS as it was run; with ``n_modes`` the end points are merged to that count by Ward's linkage."""
    draws = as_run.simulation_only(data, noise)
    chosen = plan_as_run(spec, data)
    share = utilities(chosen, data.points)
    anchors = chosen.candidates[as_run.draw_starts(chosen, chosen.candidates, share, chosen.suppression_radius, draws)]
    path, clipped = ascend(chosen, data.points, anchors, draws)
    ends = path[-1]
    known = spec.n_modes
    modes = greedy_merge(ends, silverman(ends)) if known is None else group_means(ends, ward_groups(ends, known))
    some, places = (data.points[:: max(1, data.n // size)] for size in (1000, 100))
    pull, _ = summed_contributions(some, places, chosen.h, math.inf)
    return Release(
        method="dp_grams",
        modes=modes,
        anchors=anchors,
        trajectories=path,
        noise_scale=chosen.sigma / chosen.h**2,  # a step is h^2 times a score
        spec=chosen.filled_spec(),
        events=(),  # no accountant can price it
        guarantee=_guarantee(chosen, data),
        _diagnostics=Diagnostics(
            candidates=chosen.candidates,
            utilities=share,
            score_size=float(np.median(np.linalg.norm(pull, axis=1))) / chosen.h**2,
            clipped_share=clipped,
        ),
    )


def dp_grams_c_as_run(data: Dataset, spec: DPGramsCSpec, noise: Noise) -> Release:
    """DP-GRAMS-C as it was run: Ward's linkage to the *true* number of classes, unless another is given."""
    as_run.simulation_only(data, noise)
    count = data.n_clusters if spec.n_clusters is None else spec.n_clusters
    own = {item.name: getattr(spec, item.name) for item in fields(DPGramsSpec)}
    release = dp_grams_as_run(data, DPGramsSpec(**{**own, "n_modes": count}), noise)
    filled = {item.name: getattr(release.spec, item.name) for item in fields(DPGramsSpec)}
    return replace(release, method="dp_grams_c", spec=replace(spec, **{**filled, "n_modes": None, "n_clusters": count}))


AGREEMENT = {
    "modes": (
        "It is what made the printed tables of modes: on their records, with their settings and seeds, they come out "
        "to every digit."
    ),
    "clusters": (
        "It is the mechanism of the authors' public code with plausible settings: those of the printed tables of "
        "clusters are not known, and these agree with it within noise or less well, in no cell to the digit."
    ),
}


def _guarantee(chosen: PlanAsRun, data: Dataset) -> Guarantee:
    read = ["the clip multiplier, the number of starts and their share of ε, which were picked for each data set"]
    if not chosen.bandwidth.public:
        read.append("the bandwidth (Silverman's rule on the records), and with it the clip and the noise")
    if chosen.spec.candidates is None and data.candidates is None:
        read.append("the width of the lattice of candidates (nine tenths of the records lie in it)")
    if data.kind == "clusters":
        read.append("the number of classes, and the scaling and principal components where there are any")
    return as_run.guarantee_as_run(
        chosen.rounds,
        epsilon=chosen.spec.epsilon,
        what=AGREEMENT[data.kind],
        read="; ".join(read),
        attacked=as_run.ATTACKED,
    )
