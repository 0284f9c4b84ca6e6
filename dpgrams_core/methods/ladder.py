"""What a ladder of error is built of: a method run again and again, each time with one more of its ingredients.

Simulation only: what is switched off carries no guarantee, and private data are refused at the door.  So no Release is
formed of such a run: it gives modes, or the rows of a curve, to whoever measures their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, refuse_private
from dpgrams_core.numerics.merging import climb_to_rest
from dpgrams_core.numerics.sketch import ReleasedSketch
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.privacy.noise import SimulationNoise

Array = np.ndarray
Released = TypeVar("Released", bound=ReleasedSurface | ReleasedSketch)
Switched = TypeVar("Switched", bound=Any)  # the plan of an ascent
On = frozenset[str]  # the keys of the rungs whose ingredients are on
NO_CLIP, NO_FLOOR = np.finfo(float).max, np.finfo(float).tiny
NO_NOISE = 1e-6  # of kernel sums, in records
MOST_STEPS = 2_000  # of mean shift to the end; fifty are usual


@dataclass(frozen=True)
class Rung:
    """A step of a ladder: its name, and in words what is switched on with it."""

    key: str
    title: str
    words: str


@dataclass(frozen=True)
class Ladder:
    """The steps from a method without privacy to the method itself, which is the last one.

    ``prepare`` takes the data and the method's spec, refuses what a step could not run on, and makes the plan.
    ``estimate`` gives the modes, or the rows of a curve, with the ingredients of some of the rungs.
    """

    rungs: tuple[Rung, ...]
    prepare: Callable[[Dataset, Any], Any]
    estimate: Callable[[Any, Dataset, int, On], Array]

    def estimates(self, prepared: Any, data: Dataset, seed: int) -> Iterator[Array]:
        """What every step but the last gives, each with one ingredient more than the one before."""
        refuse_private(data)
        keys = [rung.key for rung in self.rungs]
        return (self.estimate(prepared, data, seed, On(keys[:count])) for count in range(1, len(keys)))


def ascent_rungs(plain: str, *reading: Rung) -> tuple[Rung, ...]:
    """The rungs of a noisy ascent: from ``plain``, every record climbing without privacy, to how its ends are read."""
    return (
        Rung("sampling", "Without privacy", plain),
        Rung("few_starts", "Few starts", "few starts, the fullest public places, instead of every record"),
        Rung("few_steps", "Few steps", "a fixed number of steps instead of climbing to the end"),
        Rung("clipping", "Clipping", "clipping"),
        Rung("subsampling", "Minibatches", "minibatches instead of all records"),
        Rung("noise", "Noise", "the noise of the ascent"),
        Rung("start", "Private start", "drawing the starts privately"),
        *reading,
    )


def switched(chosen: Switched, data: Dataset, seed: int, on: On) -> tuple[Switched, SwitchedNoise]:
    """The plan of an ascent without what is off, and the draws that fit it."""
    refuse_private(data)
    door = SwitchedNoise(data, seed, chosen.batch_size, on)
    if "subsampling" not in on:
        chosen = replace(chosen, batch_size=data.n)
    if "clipping" not in on and chosen.contribution_clip is not None:
        chosen = replace(chosen, contribution_clip=NO_CLIP)
    if "noise" not in on and chosen.process_noise is not None:
        chosen = replace(chosen, process_noise=NO_NOISE)  # what is exact is read as exact
    if "clipping" not in on and chosen.process_noise is not None:
        kernel = (2 * math.pi * chosen.bandwidth.value**2) ** (-data.dimension / 2) / data.n  # the top of one record
        chosen = replace(chosen, gradient_clip=NO_CLIP, density_floor=1e-3 * kernel)
    elif "clipping" not in on and chosen.contribution_clip is None:
        chosen = replace(chosen, gradient_clip=NO_CLIP, density_floor=NO_FLOOR)
    return chosen, door


class SwitchedNoise(SimulationNoise):
    """Seeded draws, some of them switched off; it takes the data, so that private data are refused at the door.

    What is off is drawn and left out, so that what stays on draws the same numbers with and without it.
    """

    door = "switched off"

    def __init__(self, data: Dataset, seed: int, batch_size: int, on: On) -> None:
        refuse_private(data)
        super().__init__(seed)
        self._batch_size, self._on = batch_size, on

    def gumbel_argmax(self, log_weights: Array) -> int:
        drawn = super().gumbel_argmax(log_weights)
        return drawn if "start" in self._on else int(np.argmax(log_weights))

    def batch(self, n: int, size: int) -> Array:
        drawn = super().batch(n, self._batch_size if size == n else size)
        return drawn if "subsampling" in self._on else np.arange(n)

    def correlated_gaussian(self, correlation: Array, scale: float, columns: int) -> Array:
        drawn = super().correlated_gaussian(correlation, scale, columns)
        return drawn if "noise" in self._on else np.zeros_like(drawn)

    def covered_gaussian(self, tables: Iterable[Array], covariance: Array, scale: float) -> Array:
        kept = np.vstack(list(tables))
        drawn = super().covered_gaussian([kept], covariance, scale)
        return drawn if "noise" in self._on else kept.sum(axis=0)

    def projected_gaussian(self, coefficients: Array, functionals: Array, covariance: Array, scale: float) -> Array:
        drawn = super().projected_gaussian(coefficients, functionals, covariance, scale)
        exact = np.tensordot(functionals, coefficients, axes=coefficients.ndim)
        return drawn if "noise" in self._on else np.asarray(exact)


def climbed(starts: Array, shift: Callable[[Array], Array], h: float) -> Array:
    """Where mean shift ends from a few starts (k, d), by its step ``shift``; a start without a step stays."""
    return climb_to_rest(shift, starts, 1e-6 * h, MOST_STEPS)


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
    return replace(release, coefficients=release.exact(points))
