"""Kernel density, gradient and clipped contributions at a few points."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.kernels import Kernel

Array = np.ndarray
_CHUNK = 2_000_000  # pairs of (point, record) held in memory at once
_TINY = np.finfo(float).tiny
_HUGE = np.finfo(float).max


def density_and_gradient(kernel: Kernel, data: Array, at: Array, h: float) -> tuple[Array, Array]:
    """KDE and its gradient (eq:kde-D) at ``at`` (k, d), in chunks of records: O(n k d) time."""
    n, d = data.shape
    density, gradient = np.zeros(len(at)), np.zeros((len(at), d))
    for records in _chunks(data, len(at)):
        if kernel.name == "gaussian":
            weights = np.exp(-0.5 * squared_distances(at, records) / h**2)
            total = weights.sum(axis=1)
            density += total
            gradient += (weights @ records - at * total[:, None]) / h**2
        else:
            u = (at[:, None, :] - records[None, :, :]) / h
            density += kernel.value(u).sum(axis=1)
            gradient += kernel.gradient(u).sum(axis=1) / h
    scale = _gaussian_constant(d) if kernel.name == "gaussian" else 1.0
    return density * scale / (n * h**d), gradient * scale / (n * h**d)


def clipped_score(kernel: Kernel, data: Array, at: Array, h: float, clip: float) -> tuple[Array, float]:
    """The score of subsec:exp-impl, as the text describes it, and the share of clipped contributions.

    q_i(x) = g_i(x) / p(x), each cut to length ``clip`` = C_* (eq:clip-constant-exp), then averaged.
    Where the density estimate is zero or negative (order-4 kernels) it is taken as the smallest
    positive number, so that contributions keep their direction and are cut to C_*.
    """
    m, d = data.shape
    density, _ = density_and_gradient(kernel, data, at, h)
    density = np.maximum(density, _TINY)
    score, clipped = np.zeros((len(at), d)), 0
    for records in _chunks(data, len(at)):
        with np.errstate(over="ignore", divide="ignore"):  # an overflowing contribution is cut to C_* below
            if kernel.name == "gaussian":
                square = squared_distances(at, records)
                weights = np.exp(-0.5 * square / h**2) * (_gaussian_constant(d) / h ** (d + 2))
                weights /= density[:, None]
                size = weights * np.sqrt(square)
                cut = size > clip
                weights[cut] = clip / np.sqrt(square[cut])
                score += weights @ records - at * weights.sum(axis=1)[:, None]
            else:
                q = kernel.gradient((at[:, None, :] - records[None, :, :]) / h)
                # Not the root of summed squares: those of a far record underflow, and it would pass the clip.
                direction_size = np.hypot.reduce(np.abs(q), axis=-1)
                factor = np.minimum(1 / (h ** (d + 1) * density), _HUGE)[:, None]  # 0 * inf would not be a number
                cut = direction_size * factor > clip
                safe = np.where(direction_size > 0, direction_size, 1.0)
                score += (q * np.where(cut, clip / safe, factor)[:, :, None]).sum(axis=1)
            clipped += int(cut.sum())
    return score / m, clipped / (m * len(at))


def grid_density(kernel: Kernel, data: Array, axes: list[Array], h: float) -> Array:
    """KDE on a two-dimensional tensor grid by one matrix product per chunk of records.

    Product kernels separate, so n x (g_1 + g_2) kernel values are enough.
    """
    n, d = data.shape
    total = np.zeros([len(axis) for axis in axes])
    for records in _chunks(data, sum(len(axis) for axis in axes)):
        first, second = (kernel.profile((axis[:, None] - records[None, :, j]) / h) for j, axis in enumerate(axes))
        total += first @ second.T
    return total / (n * h**d)


def squared_distances(at: Array, data: Array) -> Array:
    """Pairwise squared distances (k, m); never below zero."""
    centre = at.mean(axis=0)  # moving the origin to the points limits cancellation
    a, b = at - centre, data - centre
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2 * a @ b.T
    return np.maximum(square, 0.0)


def _chunks(data: Array, width: int) -> Iterator[Array]:
    rows = max(1, _CHUNK // max(1, width))
    for start in range(0, len(data), rows):
        checkpoint()
        yield data[start : start + rows]


def _gaussian_constant(d: int) -> float:
    return (2 * math.pi) ** (-d / 2)
