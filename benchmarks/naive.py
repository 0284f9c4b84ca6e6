"""The slow obvious versions that the fast ones of the engine are held to, and timed against (speed.py)."""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.methods.dp_pms.starts import Windows
from dpgrams_core.numerics.kernels import Kernel
from dpgrams_core.numerics.sketch import VERTICES, amplitude, vertices

Array = np.ndarray
TINY = np.finfo(float).tiny


def naive_density_and_gradient(kernel: Kernel, data: Array, at: Array, h: float) -> tuple[Array, Array]:
    """eq:kde-D by two plain loops; the reference that the fast path is tested against."""
    n, d = data.shape
    density, gradient = np.zeros(len(at)), np.zeros((len(at), d))
    for row, x in enumerate(at):
        for record in data:
            u = (x - record) / h
            density[row] += float(kernel.value(u)) / (n * h**d)
            gradient[row] += kernel.gradient(u) / (n * h ** (d + 1))
    return density, gradient


def naive_clipped_score(kernel: Kernel, data: Array, at: Array, h: float, clip: float) -> tuple[Array, float]:
    """Mean of the clipped contributions clip_C(g_i / p), by plain loops."""
    m, d = data.shape
    density, _ = naive_density_and_gradient(kernel, data, at, h)
    score, clipped = np.zeros((len(at), d)), 0
    for row, x in enumerate(at):
        for record in data:
            gradient, floor = kernel.gradient((x - record) / h) / h ** (d + 1), max(density[row], TINY)
            size = math.hypot(*gradient)
            cut = size > clip * floor  # as |q_i| > clip, but without dividing by almost nothing
            clipped += cut
            score[row] += (gradient / size * clip if cut else gradient / floor) / m
    return score, clipped / (m * len(at))


def feature_sums_naive(points: Array, box: Array, bandwidth: float, blocks: int) -> Array:
    """``feature_sums`` as it is defined, one record after the other: the reference that the fast one is held to."""
    first, second = np.triu_indices(VERTICES, 1)
    corners = vertices(len(box), blocks)
    frequencies = (corners[:, first] - corners[:, second]).reshape(-1, len(box)) / bandwidth
    total = np.zeros(2 * len(frequencies))
    for point in points:
        phase = frequencies @ (point - box.mean(axis=1))
        total += np.concatenate([np.cos(phase), np.sin(phase)])
    return amplitude(blocks) * total


def naive_mean_shift(points: Array, h: float, tolerance: float = 1e-12, max_steps: int = 100_000) -> Array:
    """End point of mean shift from every data point, one by one; the reference."""
    ends = np.empty_like(points)
    for i, start in enumerate(points):
        x = start
        for _ in range(max_steps):
            weights = np.exp(-((points - x) ** 2).sum(axis=1) / (2 * h**2))
            moved = weights @ points / weights.sum()
            done = np.linalg.norm(moved - x) < tolerance * h
            x = moved
            if done:
                break
        ends[i] = x
    return ends


def naive_partial_mean_shift(
    x: Array, y: Array, h_x: float, h_y: float, tolerance: float = 1e-12, max_steps: int = 100_000
) -> Array:
    """End point in y of partial mean shift from every record, one by one; the reference.

    The predictor stays where it is and the response moves to the weighted mean of the responses,

        y <- sum_i K((X_i - x)/h_x) K((Y_i - y)/h_y) Y_i / sum_i K((X_i - x)/h_x) K((Y_i - y)/h_y).
    """
    ends = np.empty(len(y))
    for i, (place, response) in enumerate(zip(x, y, strict=True)):
        at = response
        for _ in range(max_steps):
            weights = np.exp(-0.5 * ((x - place) / h_x) ** 2 - 0.5 * ((y - at) / h_y) ** 2)
            moved = weights @ y / weights.sum()
            done = abs(moved - at) < tolerance * h_y
            at = moved
            if done:
                break
        ends[i] = at
    return ends


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


def naive_window_counts(responses: Array, windows: Windows, grid: Array, radius: float) -> Array:
    """c_j(z) by plain loops; the reference."""
    return np.array(
        [[sum(bool(abs(responses[i] - z) <= radius) for i in rows) for z in grid] for rows in windows.members]
    )
