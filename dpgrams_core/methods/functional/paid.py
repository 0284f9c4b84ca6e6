"""Columns that are paid for: principal components bought with a share of the budget, from public ranges alone.

Every record is mapped by the public range of each column to u in [-1, 1]^p, clipped.  Two releases come first:

    mean      sum_i u_i / sqrt(p), and from it the middle m, clipped to [-1, 1]^p;
    moments   sum_i v_i v_i', v = (u - m) / max(r, |u - m|), r = sqrt(p) / 2: the diagonal, and sqrt(2) times what is
              above it, so that the Euclidean norm of these p (p + 1) / 2 numbers is the Frobenius norm of the matrix.

Their leading eigenvectors are the new columns, and the kernel sum of the records in these is the third release.

Theorem.  Let z be the multiplier of the analytic Gaussian mechanism at (epsilon, delta), and let the three have
independent noise of z_1, z_2, z_3 times the sensitivities 2, sqrt(2) and that of the kernel sum (modes.py), with
1 / z_1^2 + 1 / z_2^2 + 1 / z_3^2 = 1 / z^2.  All of it together is (epsilon, delta)-DP for the replacement of one
record, n public.

Proof.  (1) |u| <= sqrt(p), so a record adds a vector no longer than 1, and replacing it moves the sum by at most 2.
(2) Given m, v is a function of one record with |v| <= 1.  For any two such vectors
|vv' - ww'|_F^2 = |v|^4 + |w|^4 - 2 (v.w)^2 <= 2, with equality for orthogonal unit vectors.
(3) Given m and the components, the new columns are a function of one record, so neighbours stay neighbours, and the
kernel sum moves by at most its sensitivity wherever the records lie.
The middle, the components, how many of them stand above the noise, and the box are computed from releases before them
(post-processing).  Each release is a Gaussian mechanism of multiplier z_i whatever came before, and Gaussian mechanisms
compose exactly, also adaptively, to one of multiplier (sum 1 / z_i^2)^(-1/2) (Dong, Roth & Su 2022, corollary 3.3).

A record that misses a value adds nothing to any of the sums: to replace it moves them by at most 1, 1 and 1.
Rounding.  u is in [-1, 1]^p exactly, since clipping is exact, and u / sqrt(p) is off by 2 units in the last place.  The
length of u - m is off by (p / 2 + 2) units, so v v' by less than p + 12 with its own products; ``with_rounding`` has
these, doubled, and the slack for sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.representation import PaidColumns, in_ranges
from dpgrams_core.model.results import Dataset, refuse_private
from dpgrams_core.numerics.rounding import UNIT, running_sum, with_rounding
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
MEAN_SENSITIVITY, MOMENT_SENSITIVITY = 2.0, math.sqrt(2)  # of real numbers
CHUNK = 1_024
MOST_COLUMNS = 1_000
# Chosen on data that no table shows (benchmarks/pilot_columns.py, 36 releases a value).  Of the whole budget for the
# columns: mean ARI 0.447, 0.478, 0.503, 0.519 and 0.534 for 0.05, 0.1, 0.2, 0.3 and 0.5; of that for the mean: 0.529,
# 0.534 and 0.517 for 0.1, 0.2 and 0.4.
SHARE, MEAN_SHARE = 0.5, 0.2
RADIUS = 0.5  # r / sqrt(p): 0.367, 0.469, 0.534 and 0.434 for 0.125, 0.25, 0.5 and 1
BOX_SPREADS = 4.0  # of a component, either way: 0.469, 0.534 and 0.542 for 2, 3 and 4
MOST_ASPECT = 5.0  # sides of the box: beyond it a grid would have too many numbers


@dataclass(frozen=True)
class ColumnSums:
    """What the first release adds up over records of public ranges, and with the ``middle`` of it the second."""

    ranges: tuple[tuple[float, float], ...]
    middle: tuple[float, ...] = ()

    def __call__(self, points: Array) -> Array:
        p = len(self.ranges)
        first, second = np.triu_indices(p)
        weights = np.where(first == second, 1.0, math.sqrt(2))

        def part(rows: Array) -> Array:
            u = in_ranges(rows, np.array(self.ranges))
            missing = np.isnan(u).any(axis=1)
            if not self.middle:
                return np.asarray(np.where(missing[:, None], 0.0, u / math.sqrt(p)).sum(axis=0))
            way = np.where(missing[:, None], 0.0, u - self.middle)
            v = way / np.maximum(RADIUS * math.sqrt(p), np.linalg.norm(way, axis=1))[:, None]
            return np.asarray((v.T @ v)[first, second] * weights)

        size = len(first) if self.middle else p
        return running_sum((part(points[at : at + CHUNK]) for at in range(0, len(points), CHUNK)), (size,))


def column_events(n: int, p: int, multipliers: Sequence[float]) -> tuple[GaussianRelease, GaussianRelease]:
    """Sensitivity and noise of the mean and of the moments, from public facts alone."""
    exact = (MEAN_SENSITIVITY, 4 * UNIT, p), (MOMENT_SENSITIVITY, 2 * (p + 12) * UNIT, p * (p + 1) // 2)
    found = []
    for (real, each, numbers), z in zip(exact, multipliers, strict=True):
        sensitivity = with_rounding(real, n=n, chunk=CHUNK, each=each, numbers=numbers, multiplier=z)
        found.append(GaussianRelease(sensitivity=sensitivity, noise_scale=sensitivity * z))
    return found[0], found[1]


def paid_multipliers(multiplier: float, share: float) -> tuple[float, float, float]:
    """z_1, z_2 and z_3 of the theorem for z: mean, moments, and what is left for the kernel sum."""
    parts = share * MEAN_SHARE, share * (1 - MEAN_SHARE), 1 - share
    return tuple(multiplier / math.sqrt(part) for part in parts)  # type: ignore[return-value]  # three of them


def buy_columns(
    data: Dataset, components: int, multipliers: Sequence[float], noise: Noise
) -> tuple[PaidColumns, tuple[GaussianRelease, GaussianRelease]]:
    """The part of the release that makes columns: at most ``components`` of them, and those that stand above the noise.

    The ranges are the public box of the data.  Everything is refused before anything is drawn.
    """
    refuse_private(data, noise.door)
    p, n = data.dimension, data.n
    if components > p:
        raise SpecError("components", components, f"the data set {data.name} has {p} columns")
    if p > MOST_COLUMNS:
        raise SpecError("components", components, f"they are bought from at most {MOST_COLUMNS:,} columns, not {p:,}")
    events = column_events(n, p, multipliers)
    ranges = tuple((float(low), float(high)) for low, high in data.box)
    mean = noise.independent_gaussian(data.add_up(ColumnSums(ranges)), events[0].noise_scale)
    middle = np.clip(mean * math.sqrt(p) / n, -1.0, 1.0)
    sums = ColumnSums(ranges, tuple(middle.tolist()))
    moments = noise.independent_gaussian(data.add_up(sums), events[1].noise_scale)
    directions, spreads = leading(moments, p, n, components, events[1].noise_scale)
    half = np.minimum(BOX_SPREADS * spreads, 2 * math.sqrt(p))  # nothing is farther from the middle
    half = np.maximum(half, half[0] / MOST_ASPECT)
    box = np.stack([-half, half], axis=1)
    return PaidColumns(ranges=data.box, middle=middle, components=directions, box=box, sums=(mean, moments)), events


def leading(moments: Array, p: int, n: int, most: int, noise: float) -> tuple[Array, Array]:
    """Orthonormal directions (d, p) of noisy second moments and the records' spread along each (post-processing).

    The noise is a random matrix whose eigenvalues end at 2 t, t = noise sqrt(p / 2) (a semicircle); an eigenvalue below
    that says nothing, and one above it belongs to a direction with l + t^2 / l = eigenvalue.  One is always kept.
    """
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p)] = moments
    matrix = (matrix + matrix.T) / np.where(np.eye(p) == 1, 2.0, math.sqrt(2))
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1].T
    edge = noise * math.sqrt(p / 2)
    kept = max(1, int((values[:most] > 2 * edge).sum()))
    top, directions = np.maximum(values[:kept], 2 * edge), vectors[:kept]
    strength = (top + np.sqrt(top**2 - 4 * edge**2)) / 2
    largest = np.argmax(np.abs(directions), axis=1)  # the sign is free: every machine gives the same one
    directions = directions * np.sign(directions[np.arange(kept), largest])[:, None]
    return directions, np.sqrt(strength / n) * RADIUS * math.sqrt(p)
