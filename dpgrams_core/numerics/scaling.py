"""One public box moved to another, and a released surface that is asked in the units of the user's columns.

Columns in different units share one bandwidth only once each is scaled by its side of the public box.  Methods see the
scaled columns; whoever asks for a result has the columns' own units.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from dpgrams_core.numerics.sketch import ReleasedSketch
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
BareSurface = ReleasedSurface | ReleasedSketch


def rescaled(points: Array, source: Array, target: Array) -> Array:
    """Points (..., d) of one box (d, 2) at the same places of another, column by column."""
    if np.array_equal(source, target):
        return np.asarray(points, dtype=float)
    # A record far outside is infinite then, and goes to the edge at the door.  Silently: a warning would tell of it.
    with np.errstate(all="ignore"):
        moved = np.asarray(points - source[:, 0], dtype=float)
        moved /= source[:, 1] - source[:, 0]  # in place: records may nearly fill the memory
        moved *= target[:, 1] - target[:, 0]
        moved += target[:, 0]
    return moved


def middle_and_half(box: Array) -> tuple[Array, Array]:
    """The middle (d,) of a box (d, 2), and half of each side: (points - middle) / half lies in -1 to 1."""
    return box.mean(axis=1), (box[:, 1] - box[:, 0]) / 2


@dataclass(frozen=True, eq=False)
class SurfaceInUnits:
    """A released surface or sketch over a box (d, 2) in the user's units; ``bare`` is the one that its method made.

    ``bandwidth`` is that of the scaled columns, as in the settings; ``bandwidths`` says it in the units of each column.
    """

    bare: BareSurface
    box: Array

    kind = property(attrgetter("bare.kind"))
    coefficients = property(attrgetter("bare.coefficients"))
    dimension = property(attrgetter("bare.dimension"))
    n = property(attrgetter("bare.n"))
    noise_scale = property(attrgetter("bare.noise_scale"))
    bandwidth = property(attrgetter("bare.bandwidth"))

    @property
    def bandwidths(self) -> Array:
        """The bandwidth in the units of each column, (d,)."""
        return self.bare.bandwidth / self._stretch

    @property
    def _stretch(self) -> Array:
        """How much longer a unit of each column is in the box of the bare surface, (d,)."""
        inner, outer = (box[:, 1] - box[:, 0] for box in (self.bare.box, self.box))
        return np.asarray(inner / outer)

    def to_bare(self, points: Array) -> Array:
        """Points (..., d) in the units of the columns, in the box of the bare surface."""
        return rescaled(points, self.box, self.bare.box)

    def from_bare(self, points: Array) -> Array:
        return rescaled(points, self.bare.box, self.box)

    def value(self, x: Array, bandwidth: float | None = None) -> Array:
        return self.bare.value(self.to_bare(x), bandwidth)

    def gradient(self, x: Array, bandwidth: float | None = None) -> Array:
        """Gradient of ``value``, (k, d), by the units of each column."""
        return self.bare.gradient(self.to_bare(x), bandwidth) * self._stretch

    def noise_at(self, x: Array, bandwidth: float | None = None) -> Array:
        return self.bare.noise_at(self.to_bare(x), bandwidth)

    def density(self, x: Array, bandwidth: float | None = None) -> Array:
        """The noisy density estimate at x, by the units of the columns; it may be negative where noise is."""
        return self.bare.density(self.to_bare(x), bandwidth) * float(np.prod(self._stretch))

    def grid_in_noise(self, axes: list[Array], bandwidth: float | None = None) -> Array:
        """``value`` over its noise on a tensor grid; only a surface on a grid has it."""
        assert isinstance(self.bare, ReleasedSurface)
        inner = [rescaled(axis[:, None], self.box[[j]], self.bare.box[[j]])[:, 0] for j, axis in enumerate(axes)]
        return self.bare.grid(inner, bandwidth) / self.bare.noise_grid(inner, bandwidth)
