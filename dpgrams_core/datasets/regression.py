"""Regression data with several branches: a mixture of curves, and the modes of its conditional density.

Each component k has its own predictors, uniform on an interval, and responses N(curve_k(x), spread^2), so

    p(y | x)  is proportional to  sum_k share_k 1{x in interval_k} / length_k  N(y; curve_k(x), spread^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
FIXED_POINT_STEPS = 2_000
SAME_MODE = 1e-6


def upper_wave(x: Array) -> Array:
    """1.5 + 0.5 sin(3 pi x)."""
    return 1.5 + 0.5 * np.sin(3 * np.pi * x)


def lower_wave(x: Array) -> Array:
    """0.5 sin(3 pi x)."""
    return 0.5 * np.sin(3 * np.pi * x)


@dataclass(frozen=True)
class Level:
    """A constant curve."""

    height: float

    def __call__(self, x: Array) -> Array:
        return np.full(np.shape(x), self.height)


@dataclass(frozen=True)
class BranchMixture:
    """Curves, the interval of the predictors of each, and the spread of the responses about them."""

    curves: tuple[Callable[[Array], Array], ...]
    intervals: tuple[tuple[float, float], ...]
    spread: float

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n points (x, y), as equal shares as n allows (the last takes the rest), and the branch of each."""
        k = len(self.curves)
        sizes = [n // k] * (k - 1) + [n - (k - 1) * (n // k)]
        points, labels = [], []
        for number, (curve, (low, high), size) in enumerate(zip(self.curves, self.intervals, sizes, strict=True)):
            x = rng.uniform(low, high, size)
            points.append(np.stack([x, curve(x) + self.spread * rng.standard_normal(size)], axis=1))
            labels.append(np.full(size, number))
        return np.concatenate(points), np.concatenate(labels)

    def weights(self, x: Array) -> Array:
        """Weight of each component in p(y | x), (len(x), k); zero where its interval does not reach."""
        parts = [
            np.where((x >= low) & (x <= high), 1 / (high - low), 0.0) for low, high in self.intervals
        ]  # the shares are equal
        table = np.stack(parts, axis=1)
        return table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)

    def conditional_density(self, x: Array, y: Array) -> Array:
        """p(y | x) for every pair, (len(x), len(y))."""
        centres = np.stack([curve(x) for curve in self.curves], axis=1)
        u = (y[None, None, :] - centres[:, :, None]) / self.spread
        parts = np.exp(-0.5 * u * u) / (self.spread * np.sqrt(2 * np.pi))
        return np.einsum("gk,gky->gy", self.weights(x), parts)

    def mode_table(self, x: Array) -> Array:
        """The modes of p(. | x), (len(x), k), ascending, NaN where there are fewer than k.

        Mean shift on the exact mixture from every centre, all x at once; modes that meet are one.
        """
        x = np.asarray(x, dtype=float)
        centres = np.stack([curve(x) for curve in self.curves], axis=1)
        weights = self.weights(x)
        at = centres.copy()
        for _ in range(FIXED_POINT_STEPS):
            pull = weights[:, None, :] * np.exp(-0.5 * ((at[:, :, None] - centres[:, None, :]) / self.spread) ** 2)
            moved = (pull * centres[:, None, :]).sum(axis=2) / np.maximum(pull.sum(axis=2), 1e-300)
            moved = np.where(weights > 0, moved, np.nan)
            done = bool(np.nanmax(np.abs(moved - at), initial=0.0) < 1e-12)
            at = moved
            if done:
                break
        at = np.sort(at, axis=1)
        same = np.diff(at, axis=1, prepend=-np.inf) < SAME_MODE
        return np.sort(np.where(same, np.nan, at), axis=1)

    def paper_table(self, x: Array) -> Array:
        """The curves themselves where their interval reaches, as the paper's metric takes them, (len(x), k)."""
        x = np.asarray(x, dtype=float)
        centres = np.stack([curve(x) for curve in self.curves], axis=1)
        return np.sort(np.where(self.weights(x) > 0, centres, np.nan), axis=1)


SINUSOID = BranchMixture(
    curves=(upper_wave, lower_wave), intervals=((0.0, 1.0), (0.0, 1.0)), spread=0.15
)  # sec:sinusoidal-modal-regression

THREE_COMPONENT = BranchMixture(
    curves=(Level(3.0), Level(2.0), Level(1.0)), intervals=((0.0, 0.5), (0.4, 0.7), (0.6, 1.0)), spread=0.2
)  # app:dp-pms-more
