"""k-means with a proof: Lloyd's rounds with Gaussian noise on sums and counts.

Theorem.  Centres c_1..c_k are public, or were released before.  Every record X, in the public box scaled to [-1, 1]^d,
adds the vector (clip(X - c_j, r), r) to the block j of its nearest centre and nothing to the other blocks, where clip
shortens to length r.  Replacing one record moves the sum of all these by at most D = 2 r, and T such sums with noise
D z sqrt(T) each, z the multiplier of the analytic Gaussian mechanism, are (epsilon, delta)-DP together, also when the
centres of a round are computed from the rounds before.

Proof.  If the two records add to different blocks, the change has squared length at most 2 (r^2 + r^2) = (2 r)^2.  If
to the same block, the counts cancel and the change is clip(X - c) - clip(X' - c), at most 2 r long.  Gaussian rounds of
one multiplier compose exactly, adaptively, to one release at multiplier / sqrt(T) (their zCDP costs 1 / 2 z^2 T add up
to 1 / 2 z^2; for Gaussians the exact curve is sharper than zCDP's conversion).  Starts are public; the steps of the
centres see noisy sums alone (post-processing).  ``each`` below bounds the rounding of one record's vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpgrams_core.methods.baselines.kmeans import known_clusters
from dpgrams_core.methods.functional.modes import outside_box
from dpgrams_core.model import settings
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec, setting
from dpgrams_core.numerics.rounding import UNIT, running_sum, with_rounding
from dpgrams_core.numerics.scaling import middle_and_half
from dpgrams_core.numerics.sketch import public_points
from dpgrams_core.privacy.accountants import rounds_multiplier
from dpgrams_core.privacy.events import GaussianRounds
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
CHUNK = 2_048
CANDIDATES = 4_096
START_REACH = 0.5  # starts stand in the middle half of the box: records of standardised columns hardly ever beyond
ROUNDS, RADIUS = 5, 0.25
LEAST_COUNT = 3.0  # in units of a count's noise: a cluster of fewer records takes a shorter step
STATEMENT = (
    "Proven: in every round a record adds to one cluster only, its way from that centre shortened to a public radius, "
    "so replacing it moves all noisy sums and counts by at most twice that radius; the rounds compose exactly."
)


@dataclass(frozen=True, kw_only=True)
class NoisyKMeansSpec(Spec):
    """Public settings of noisy k-means.

    ``n_clusters``: ``None`` means as many as the data set has classes.  ``clip_radius`` is the longest way from a
    record to its centre that counts, as a share of half the diagonal of the box.
    """

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-5)
    n_clusters: int | None = settings.n_clusters()
    n_rounds: int = settings.count("Rounds", "Noisy rounds of Lloyd's algorithm (T).", 50, default=ROUNDS)
    clip_radius: float = setting(
        RADIUS,
        label="Clip radius",
        words="Longest way from record to centre that counts, as a share of half the box's diagonal.",
        low=0.01,
        high=1.0,
    )


def noisy_kmeans(data: Dataset, spec: NoisyKMeansSpec, noise: Noise) -> Release:
    """Lloyd's rounds from public starts, each with noisy sums and counts; ``trajectories`` are the released rounds."""
    refuse_private(data, noise.door)
    count, d, rounds = known_clusters(data, spec.n_clusters), data.dimension, spec.n_rounds
    middle, half = middle_and_half(data.box)
    radius = spec.clip_radius * math.sqrt(d)
    multiplier = rounds_multiplier(spec.epsilon, spec.delta, data.n, data.n, rounds)
    # What a record adds is at most sqrt(2) radii long, which is the unit here.  Its way and its length are off by some
    # roundings of numbers up to 2 sqrt(d), relative to the radius.
    sensitivity = (
        math.sqrt(2)
        * radius
        * with_rounding(
            math.sqrt(2),
            n=data.n,
            chunk=CHUNK,
            each=32 * (d + 4) * UNIT / spec.clip_radius,
            numbers=count * (d + 1),
            multiplier=multiplier,
        )
    )
    event = GaussianRounds(
        rounds=rounds, n=data.n, batch_size=data.n, sensitivity=sensitivity, noise_scale=sensitivity * multiplier
    )
    scaled = (np.clip(data.points, *data.box.T) - middle) / half
    centres = packed_starts(count, d)
    path = [centres]
    for _ in range(rounds):
        noisy = noise.independent_gaussian(round_sums(scaled, centres, radius), event.noise_scale)
        # What a few records say of their centre is mostly noise: a step is divided by no less than some noises.
        enough = np.maximum(noisy[:, -1], LEAST_COUNT * event.noise_scale) / radius
        centres = np.clip(centres + noisy[:, :-1] / enough[:, None], -1.0, 1.0)
        path.append(centres)
    released = np.stack(path) * half + middle
    return Release(
        method="noisy_kmeans",
        modes=released[-1],
        anchors=released[0],
        trajectories=released,
        noise_scale=event.noise_scale,
        spec=replace(spec, n_clusters=count),
        events=(event,),
        guarantee=Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="proven", statement=STATEMENT),
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def packed_starts(count: int, d: int) -> Array:
    """Public starts (k, d) far from each other and from the sides: the first in the middle, each next the farthest."""
    places = public_points(np.tile([-START_REACH, START_REACH], (d, 1)), CANDIDATES)
    chosen = [int(np.argmin((places**2).sum(axis=1)))]
    away = np.full(len(places), np.inf)
    sides = 2 * (START_REACH - np.abs(places).max(axis=1))  # a sphere must fit in, as between two starts
    for _ in range(count - 1):
        away = np.minimum(away, np.linalg.norm(places - places[chosen[-1]], axis=1))
        chosen.append(int(np.argmax(np.minimum(away, sides) if count > 2**d else away)))
    return np.asarray(places[chosen])


def round_sums(points: Array, centres: Array, radius: float) -> Array:
    """(k, d + 1): of every cluster the sum of clipped ways from its centre, and its count times the radius."""
    k, d = centres.shape

    def part(rows: Array) -> Array:
        near = ((rows[:, None, :] - centres[None]) ** 2).sum(axis=-1).argmin(axis=1)
        way = rows - centres[near]
        way = way / np.maximum(1.0, np.linalg.norm(way, axis=1) / radius)[:, None]
        table = np.zeros((k, d + 1))
        np.add.at(table, near, np.column_stack([way, np.full(len(rows), radius)]))
        return table

    parts = (part(points[start : start + CHUNK]) for start in range(0, len(points), CHUNK))
    return running_sum(parts, (k, d + 1))
