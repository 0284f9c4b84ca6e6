"""A released sketch: some thousand noisy Fourier coefficients of the kernel sum, for more columns than a grid can hold.

The features and the proof of how far one record moves them stand in fourier.py.  Everything here is
post-processing of the noisy coefficients: they can be saved, merged, smoothed and evaluated anywhere, for free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpgrams_core.archives import ReleaseFile
from dpgrams_core.checks import box_of, positive, whole
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.fourier import CHUNK, MOST_BLOCKS, PAIRS, SKETCH_SENSITIVITY, VERTICES, amplitude, vertices, waves

__all__ = ["SKETCH_SENSITIVITY", "ReleasedSketch"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ReleasedSketch(ReleaseFile):
    """The noisy coefficients (2m,) with the public facts needed to use them. All of it may be published.

    Examples
    --------
    >>> from dpgrams_core.fourier import feature_sums
    >>> box = np.array([[0.0, 10.0]] * 4)
    >>> sketch = ReleasedSketch(feature_sums(np.full((100, 4), 5.0), box, 2.0, 8), box, 2.0, 1.0, 100)
    >>> sketch.value(np.array([[5.0] * 4])).round(2).tolist()
    [100.0]
    """

    kind: ClassVar[str] = "sketch"

    coefficients: Array
    box: Array
    bandwidth: float
    noise_scale: float
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "box", box_of(self.box))
        positive("bandwidth", self.bandwidth)
        whole("n", self.n, 1)
        if not 0 <= self.noise_scale < math.inf:
            raise SpecError("noise_scale", self.noise_scale, "it must be at least 0 and finite")
        numbers, size = self.coefficients, self.coefficients.size
        if numbers.shape != (size,) or size % (2 * PAIRS) or not 1 <= size // (2 * PAIRS) <= MOST_BLOCKS:
            raise DataError(f"A sketch has {2 * PAIRS} numbers, or up to {MOST_BLOCKS} times as many.")
        if numbers.dtype.kind != "f" or not np.isfinite(numbers).all():
            raise DataError("The sketch holds something other than finite numbers.")
        # value(x) = sum_ij form_ij exp(i (p_i - p_j) x), a Hermitian form in the waves of each block.
        first, second = np.triu_indices(VERTICES, 1)
        halves = 0.5 * amplitude(self.blocks) * (numbers[: size // 2] - 1j * numbers[size // 2 :])
        form = np.zeros((self.blocks, VERTICES, VERTICES), dtype=complex)
        form[:, first, second] = halves.reshape(self.blocks, -1)
        form[:, second, first] = form[:, first, second].conj()
        corners = vertices(self.dimension, self.blocks) / self.bandwidth
        squares = ((corners[:, :, None, :] - corners[:, None, :, :]) ** 2).sum(axis=-1)
        object.__setattr__(self, "_built", (form, corners, squares))

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.box)

    @property
    def blocks(self) -> int:
        """Number of blocks of frequencies."""
        return int(self.coefficients.size) // (2 * PAIRS)

    def value(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """The noisy kernel sum at x (k, d); about n p(x) (2 pi)^(d/2) h^d, as of ``ReleasedSurface``.

        A larger bandwidth H (one for all x, or one each) smooths the sketch for free: convolution with
        N(0, H^2 - h^2) multiplies each frequency by exp(-(H^2 - h^2) |w|^2 / 2).
        """
        return self._collect(x, bandwidth, 0)[0]

    def gradient(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """Gradient of ``value``, (k, d)."""
        return self._collect(x, bandwidth, 1)[1]

    def heat(self, x: Array, bandwidth: float | Array | None = None) -> tuple[Array, Array, Array]:
        """Value (k,), gradient (k, d) and Laplacian (k,) at x in one pass."""
        return self._collect(x, bandwidth, 2)

    def noise_at(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """Standard deviation of the noise in ``value`` at x, exactly; the same everywhere."""
        extra, back = np.unique(self._extra(bandwidth), return_inverse=True)
        first, second = np.triu_indices(VERTICES, 1)
        square = self._built[2][:, first, second]  # type: ignore[attr-defined]
        norms = [amplitude(self.blocks) * float(np.linalg.norm(np.exp(-0.5 * t * square))) for t in extra]
        return self.noise_scale * np.broadcast_to(np.array(norms)[back.ravel()], len(self._places(x)))

    def density(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """The noisy density estimate at x; it may be negative where noise is."""
        d = self.dimension
        return self.value(x, bandwidth) / (self.n * (2 * math.pi) ** (d / 2) * self.bandwidth**d)

    def merged(self, other: ReleasedSketch) -> ReleasedSketch:
        """The sketch of two disjoint sets of records together: numbers add, noises add in square.

        Each set of records keeps the guarantee that its own sketch was released with.
        """
        same = self.bandwidth == other.bandwidth and self.blocks == other.blocks and np.array_equal(self.box, other.box)
        if not same:
            raise DataError("Two sketches add up only with the same box, bandwidth and number of coefficients.")
        noise = math.hypot(self.noise_scale, other.noise_scale)
        return ReleasedSketch(self.coefficients + other.coefficients, self.box, self.bandwidth, noise, self.n + other.n)

    def _places(self, x: Array) -> Array:
        """x as a table of places with the sketch's columns."""
        places = np.asarray(x, dtype=float)
        if places.ndim != 2 or places.shape[1] != self.dimension:
            raise DataError(f"Places must be a table with {self.dimension} columns, one place a row.")
        return places

    def _extra(self, bandwidth: float | Array | None) -> Array:
        """Variance of the smoothing that leads to a bandwidth."""
        if bandwidth is None:
            return np.zeros(1)
        width = np.atleast_1d(np.asarray(bandwidth, dtype=float))
        least = positive("bandwidth", float(np.min(width)))
        if least < self.bandwidth * (1 - 1e-12):
            raise SpecError(
                "bandwidth", least, f"a release can only be smoothed further: at least {self.bandwidth:.4g}"
            )
        return np.maximum(0.0, width**2 - self.bandwidth**2)

    def _collect(self, x: Array, bandwidth: float | Array | None, orders: int) -> tuple[Array, Array, Array]:
        """Value, gradient (from order 1) and Laplacian (order 2) at all x, in groups of one bandwidth."""
        places = self._places(x)
        extra = np.broadcast_to(self._extra(bandwidth), len(places))
        value, laplacian = np.zeros(len(places)), np.zeros(len(places))
        gradient = np.zeros(places.shape)
        for smoothing in np.unique(extra):
            rows = np.flatnonzero(extra == smoothing)
            form, corners, squares = self._built  # type: ignore[attr-defined]
            form = form * np.exp(-0.5 * smoothing * squares) if smoothing > 0 else form
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK]
                wave = waves(places[part], self.box, self.bandwidth, self.blocks)
                ends = wave * (form @ wave.conj())
                value[part] = ends.real.sum(axis=(0, 1))
                if orders >= 1:
                    gradient[part] = -2 * np.einsum("bnk,bnd->kd", ends.imag, corners)
                if orders >= 2:
                    laplacian[part] = -(wave * ((form * squares) @ wave.conj())).real.sum(axis=(0, 1))
        return value, gradient, laplacian
