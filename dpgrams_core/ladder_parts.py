"""What the ladders of ``error_sources`` are built of: their steps, draws that can be switched off, and refusals.

Simulation only: what is switched off here carries no guarantee, and private data are refused at the door.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dpgrams_core.errors import SpecError
from dpgrams_core.fourier import feature_sums
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, refuse_private
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.surfaces import ReleasedSurface, coefficients

Array = np.ndarray
Released = TypeVar("Released", bound=ReleasedSurface | ReleasedSketch)
CLUSTER_MEASURES = ("centroid_mse", "ari", "nmi")
NO_CLIP, NO_FLOOR = np.finfo(float).max, np.finfo(float).tiny
MOST_STEPS = 2_000  # of mean shift to the end; fifty are usual


@dataclass(frozen=True)
class Rung:
    """A step of a ladder: its name, and in words what is switched on with it."""

    key: str
    title: str
    words: str


@dataclass(frozen=True)
class Ladder:
    """The steps for a method, the measures it is scored by, and the functions that check and run it.

    ``estimates`` gives the modes, or the rows of the curve, of every step but the last, which is the method itself.
    """

    rungs: tuple[Rung, ...]
    measures: tuple[str, ...]
    prepare: Callable[[Dataset, dict[str, Any]], Any]
    estimates: Callable[[Any, Dataset, int], Iterator[Array]]
    note: str = ""  # what a reader has to know of the measures


class SwitchedNoise(SimulationNoise):
    """Seeded draws, some of them switched off; it takes the data, so that private data are refused at the door.

    What is off is drawn and left out, so that what stays on draws the same numbers with and without it.
    """

    door = "switched off"

    def __init__(self, data: Dataset, seed: int, batch_size: int, *, start: bool, batches: bool, ascent: bool) -> None:
        refuse_private(data)
        super().__init__(seed)
        self._batch_size = batch_size
        self._start, self._batches, self._ascent = start, batches, ascent

    def gumbel_argmax(self, log_weights: Array) -> int:
        """The drawn index, or that of the largest weight."""
        drawn = super().gumbel_argmax(log_weights)
        return drawn if self._start else int(np.argmax(log_weights))

    def batch(self, n: int, size: int) -> Array:
        """The drawn records, or all of them."""
        drawn = super().batch(n, self._batch_size if size == n else size)
        return drawn if self._batches else np.arange(n)

    def correlated_gaussian(self, correlation: Array, scale: float, columns: int) -> Array:
        """The noise of a round, or zeros."""
        drawn = super().correlated_gaussian(correlation, scale, columns)
        return drawn if self._ascent else np.zeros_like(drawn)

    def covered_gaussian(self, tables: Iterable[Array], covariance: Array, scale: float) -> Array:
        """The noisy sums of a round, or the exact ones."""
        kept = np.vstack(list(tables))
        drawn = super().covered_gaussian([kept], covariance, scale)
        return drawn if self._ascent else kept.sum(axis=0)


def true_count(data: Dataset) -> int:
    """How many modes or clusters there are."""
    refuse_private(data)
    count = data.n_clusters if data.true_modes is None else len(data.true_modes)
    if count is None:
        raise SpecError("dataset", data.name, "its true modes or classes are not known, so there is no error to part")
    return count


def without_noise(release: Released, points: Array, data: Dataset) -> Released:
    """The same surface or sketch with exact sums of ``points`` in place of the noisy ones, for data that are public.

    It still says how large the noise would be, so that whatever is read off it is read as off the noisy one.
    """
    refuse_private(data)
    if isinstance(release, ReleasedSketch):
        exact = feature_sums(points, release.box, release.bandwidth, release.blocks)
    else:
        exact = coefficients(points, release.bases)
    return replace(release, coefficients=exact)
