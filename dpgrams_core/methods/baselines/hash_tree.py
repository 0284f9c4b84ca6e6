"""Clustering by a tree of hashes: a variant after Chang, Ghazi, Kumar and Manurangsi (2021), "Locally private k-means
in one round".  It is written anew from the idea of that paper and is not the authors' code, so their bounds on the
error are not claimed for it, and their own program may do better or worse: a private summary of few weighted places,
then k-means on it.

Records get a hash of L bits, the sides of L hyperplanes on which they lie (SimHash).  A tree of all prefixes holds
noisy counts; a prefix is split while its noisy count is large.  Every leaf gives its noisy mean, weighted by its noisy
count, and k-means without privacy on these places is free.

What is ours, and why.  The published method is for the addition or removal of a record with Laplace noise on counts and
Gaussian noise on sums.  Here all noise is Gaussian and the price is that of *replacing* a record, as for all methods
of this project, so that no conversion by a factor of two is needed:

Theorem.  At each level of the tree a record is counted in one node, so replacing it moves the counts of a level by at
most sqrt(2).  The sums of the leaves, with every record shortened to length R and divided by sqrt(2) R, move by at most
sqrt(2): two leaves by R each, or one by 2 R.  With noise sqrt(2) z sqrt(L + 1) on each number all L + 1 rounds are
(epsilon, delta)-DP together (Gaussian rounds compose exactly, and which nodes a level has follows from the levels
before).  The hyperplanes are public: they follow from the number of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpgrams_core.methods.baselines.kmeans import known_clusters
from dpgrams_core.methods.functional.modes import outside_box
from dpgrams_core.model import settings
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec
from dpgrams_core.numerics.centres import fitted_kmeans
from dpgrams_core.numerics.rounding import UNIT, running_sum, with_rounding
from dpgrams_core.numerics.scaling import middle_and_half
from dpgrams_core.numerics.sketch import public_points
from dpgrams_core.privacy.accountants import rounds_multiplier
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRounds
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
CHUNK = 2_048
RADIUS = 0.5  # R as a share of half the diagonal of the box
MOST_DEPTH = 12
SPLIT_NOISES = 4.0  # a node is split while its count is above so many noises
STARTS = 10
STATEMENT = (
    "Proven: a record is counted in one node of every level and added to one leaf, so replacing it moves each round by "
    "at most √2 in the unit of its noise; the rounds compose exactly."
)


@dataclass(frozen=True, kw_only=True)
class HashTreeSpec(Spec):
    """Public settings of the hash tree. ``n_clusters``: ``None`` means as many as the data set has classes."""

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-5)
    n_clusters: int | None = settings.n_clusters()
    depth: int | None = settings.count("Depth", "Levels of the tree of hashes (L).", MOST_DEPTH, empty="auto")


def hash_tree(data: Dataset, spec: HashTreeSpec, noise: Noise) -> Release:
    """Noisy counts level by level, noisy sums of the leaves, and k-means over the leaves' means (post-processing)."""
    refuse_private(data, noise.door)
    count, d = known_clusters(data, spec.n_clusters), data.dimension
    depth = public_depth(data.n, spec.epsilon, spec.delta) if spec.depth is None else spec.depth
    middle, half = middle_and_half(data.box)
    multiplier = rounds_multiplier(spec.epsilon, spec.delta, data.n, data.n, depth + 1)
    sensitivity = with_rounding(
        math.sqrt(2),
        n=data.n,
        chunk=CHUNK,
        each=32 * (d + 4) * UNIT / RADIUS,
        numbers=2**depth * max(d, 1),
        multiplier=multiplier,
    )
    event = GaussianRounds(
        rounds=depth + 1, n=data.n, batch_size=data.n, sensitivity=sensitivity, noise_scale=sensitivity * multiplier
    )
    scaled = (np.clip(data.points, *data.box.T) - middle) / half
    codes = hashes(scaled, depth)
    open_, leaves = np.array([0]), []  # prefixes of a level, and (level, prefix, noisy count) of those not split
    counts = np.array([float(data.n)])  # n is public
    for level in range(1, depth + 1):
        split = counts > SPLIT_NOISES * event.noise_scale
        leaves += [
            (level - 1, int(node), float(size)) for node, size in zip(open_[~split], counts[~split], strict=True)
        ]
        open_ = np.concatenate([2 * open_[split], 2 * open_[split] + 1])
        sizes = np.bincount(codes >> (depth - level), minlength=2**level)[open_].astype(float)
        counts = noise.independent_gaussian(sizes, event.noise_scale)
    leaves += [(depth, int(node), float(size)) for node, size in zip(open_, counts, strict=True)]
    unit = math.sqrt(2) * RADIUS * math.sqrt(d)
    sums = noise.independent_gaussian(leaf_sums(scaled, codes, depth, leaves) / unit, event.noise_scale) * unit
    weights = np.maximum([size for _, _, size in leaves], 1.0)
    # The mean of a small leaf is mostly noise: it is divided by no less than what a node needs to be split.
    places = np.clip(sums / np.maximum(weights, SPLIT_NOISES * event.noise_scale)[:, None], -1.0, 1.0)
    model = fitted_kmeans(places, min(count, len(places)), STARTS, 0, weights)  # a fixed seed: the same release again
    return Release(
        method="hash_tree",
        modes=model.cluster_centers_ * half + middle,
        anchors=places * half + middle,
        noise_scale=event.noise_scale,
        spec=replace(spec, n_clusters=count, depth=depth),
        events=(event,),
        guarantee=Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="proven", statement=STATEMENT),
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def public_depth(n: int, epsilon: float, delta: float) -> int:
    """The most levels at which an even tree's leaves are as large as a node that is split (at least one)."""
    z = math.sqrt(2) * gaussian_multiplier(epsilon, delta)
    deep = [level for level in range(1, MOST_DEPTH + 1) if n / 2**level >= SPLIT_NOISES * z * math.sqrt(level + 1)]
    return max(deep, default=1)


def hashes(points: Array, depth: int) -> Array:
    """Of every record the sides of ``depth`` public hyperplanes through the middle of the box, as one number."""
    directions = scipy.special.ndtri(public_points(np.tile([0.0, 1.0], (points.shape[1], 1)), depth))
    return np.asarray((points @ directions.T > 0) @ (1 << np.arange(depth)[::-1]))


def leaf_sums(points: Array, codes: Array, depth: int, leaves: list[tuple[int, int, float]]) -> Array:
    """(leaves, d): the sum of the records of each leaf, every record shortened to ``RADIUS``."""
    of_code = np.empty(2**depth, dtype=int)
    for number, (level, node, _) in enumerate(leaves):
        of_code[node << (depth - level) : (node + 1) << (depth - level)] = number
    d = points.shape[1]

    def part(start: int) -> Array:
        rows, there = points[start : start + CHUNK], of_code[codes[start : start + CHUNK]]
        length = np.linalg.norm(rows, axis=1) / (RADIUS * math.sqrt(d))
        table = np.zeros((len(leaves), d))
        np.add.at(table, there, rows / np.maximum(1.0, length)[:, None])
        return table

    return running_sum((part(start) for start in range(0, len(points), CHUNK)), (len(leaves), d))
