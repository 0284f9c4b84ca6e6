"""A released sketch: some thousand noisy Fourier coefficients of the kernel sum, for more columns than a grid can hold.

Their features are those of the Gaussian kernel, with a certified sensitivity: frequencies are differences of vertices.

Take N public vertices p_1, ..., p_N ~ N(0, I / 2h^2).  The differences w = p_i - p_j follow N(0, I / h^2), as random
Fourier features of k_h do, and the features of the m = N (N - 1) / 2 pairs, phi(x) = (cos w x, sin w x) / sqrt(m),
have |phi(x)| = 1 for every x.  Their kernel is

    khat(u) = (1/m) sum_{i<j} cos((p_i - p_j) u) = (|sum_i exp(i p_i u)|^2 - N) / (N (N - 1)) >= -1 / (N - 1).

Sensitivity.  For *any* two places, |phi(x) - phi(y)|^2 = 2 - 2 khat(x - y) <= 2 + 2 / (N - 1): with N = 32 one replaced
record moves the sum of the features by at most 1.437, and of independent frequencies nothing below 2 is certain.
Several blocks of N vertices are averaged, which keeps the bound.  It holds for records anywhere, inside the box or
not, for every bandwidth and number of columns, and for whatever numbers the vertices and the phases are, rounded or
not.  What rounding of the cosines and of the sums adds is in ``sketch_sensitivity`` (rounding.py); besides, the
features are shortened by ``SHORTENED``, so that up to a million records not even the plain bound is exceeded.

The vertices come from a counter through an integer hash, so they are the same on every machine and in every version
of NumPy; no privacy rests on them.  A linear map gives their differences the covariance I / h^2 exactly, so the kernel
is right near its centre; far away its error is about 1 / (N sqrt(blocks)), that of as many independent frequencies.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import scipy

from dpgrams_core.model.checks import box_of, positive, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics.rounding import UNIT, running_sum, with_rounding
from dpgrams_core.numerics.surface import Released

Array = np.ndarray
VERTICES = 32  # of a block
PAIRS = VERTICES * (VERTICES - 1) // 2
SKETCH_SENSITIVITY = math.sqrt(2 + 2 / (VERTICES - 1))
FEWEST_BLOCKS, MOST_BLOCKS = 8, 32
SHORTENED = 1e-6
FARTHEST = 1e9  # bandwidths from the centre of the box; a record beyond it counts as there, so that no phase overflows
MAX_PLACES = 1e12  # bandwidths to the power of d in the box; more than that nothing can search
FALSE_ALARM = 0.001  # over the whole box; strict, since several maps are searched
NEARER = 1.5  # the kernel's error at two or three bandwidths, in units of that far away (measured: 1.1 to 1.4)
CHUNK = 1_024
# The table of ``on_circle``.  A whole number of steps is subtracted in two parts, the first of few enough digits that
# its product with the number is exact.
ANGLES = 1_024
COSINES, SINES = (wave(2 * np.pi / ANGLES * np.arange(ANGLES)) for wave in (np.cos, np.sin))
_PI = Fraction("3.14159265358979323846264338327950288")
STEP = float(2 * _PI / ANGLES)
STEP_HIGH = float(np.float32(STEP))
STEP_LOW = float(2 * _PI / ANGLES - Fraction(STEP_HIGH))
THREADED_CHUNKS = 16


@lru_cache(maxsize=16)
def vertices(d: int, blocks: int) -> Array:
    """The public vertices of ``blocks`` blocks in units of 1 / h, (blocks, VERTICES, d)."""
    gauss = scipy.special.ndtri(hashed(blocks * VERTICES * d)).reshape(blocks, VERTICES, d)
    gauss = gauss - gauss.mean(axis=1, keepdims=True)  # differences do not see the mean of their block
    covariance = 2 * np.einsum("bni,bnj->ij", gauss, gauss) / (blocks * (VERTICES - 1))
    result = gauss @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    result.setflags(write=False)  # the cache hands the same array to everyone
    return result


def hashed(count: int) -> Array:
    """``count`` public numbers that look uniform on (0, 1): the SplitMix64 hash of 1, ..., count."""
    x = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def choose_blocks(n: int, sigma: float) -> int:
    """The public number of blocks: what a quarter of the records does far away stays below the noise, within limits.

    Far from its place a record's kernel is about 1 / (N sqrt(blocks)) instead of zero.
    """
    return min(MOST_BLOCKS, max(FEWEST_BLOCKS, math.ceil((n / (4 * VERTICES * sigma)) ** 2)))


def check_resolution(box: Array, bandwidth: float) -> None:
    """Refuse a bandwidth so small that no search of the box could find what stands in it."""
    sides = box[:, 1] - box[:, 0]
    if float(np.log(sides / bandwidth).sum()) > math.log(MAX_PLACES):
        least = float(np.exp(np.log(sides).mean())) * MAX_PLACES ** (-1 / len(box))
        words = (
            f"the box is too many bandwidths wide to be searched; a bandwidth of at least {1.01 * least:.3g} fits it"
        )
        raise SpecError("bandwidth", bandwidth, words)


def amplitude(blocks: int) -> float:
    """The factor before every cosine and sine."""
    return (1 - SHORTENED) / math.sqrt(blocks * PAIRS)


def sketch_sensitivity(n: int, blocks: int, multiplier: float) -> float:
    """How far replacing one record moves the *computed* sums, for noise of ``multiplier`` times this.

    ``SKETCH_SENSITIVITY`` for real numbers (see the head of this file), and the slack for rounding.  Rounded phases
    keep the bound: whatever a phase is, only how far a wave is off the circle counts.  That is at most 6 u
    (``on_circle``), so what a pair adds is off by 16 u: two waves, their products and the factor before them.  Each
    sum has two products a record (the real part of a complex product).
    """
    sums = {"n": n, "chunk": CHUNK, "numbers": 2 * blocks * PAIRS, "terms": 2}
    return with_rounding(SKETCH_SENSITIVITY, each=16 * UNIT, multiplier=multiplier, **sums)


def on_circle(phases: Array) -> Array:
    """Cosines and sines of phases (b, v, k), one under the other, (b, 2v, k): in a sixth of the time of NumPy's.

    A phase is a whole number of ``STEP`` and a rest of at most half of it.  The cosine and the sine of the first stand
    in a table, those of the rest are polynomials that leave out less than 2e-18, and the two are multiplied.  Off the
    circle: 2 u for the table, 1 u for the polynomials, 2 u for the product.  Along it, about u times the phase.
    """
    blocks, each, k = phases.shape
    result = np.empty((blocks, 2 * each, k))
    turns, left, square, near = (np.empty((each, k)) for _ in range(4))  # once for all blocks, and small: it stays near
    number = np.empty((each, k), dtype=np.int64)
    for phase, cosine, sine in zip(phases, result[:, :each], result[:, each:], strict=True):
        np.multiply(phase, 1 / STEP, out=turns)
        np.rint(turns, out=turns)
        np.copyto(number, turns, casting="unsafe")
        number &= ANGLES - 1
        np.subtract(phase, np.multiply(turns, STEP_HIGH, out=near), out=left)
        left -= np.multiply(turns, STEP_LOW, out=turns)
        np.multiply(left, left, out=square)
        np.multiply(square, 1 / 24, out=near)  # 1 - t^2 / 2 + t^4 / 24
        near -= 0.5
        near *= square
        near += 1.0
        across = np.multiply(square, 1 / 120, out=turns)  # t - t^3 / 6 + t^5 / 120
        across -= 1 / 6
        across *= square
        across += 1.0
        across *= left
        np.take(COSINES, number, out=cosine, mode="wrap")  # with another mode NumPy makes a copy first
        np.take(SINES, number, out=sine, mode="wrap")
        np.multiply(cosine, across, out=left)
        cosine *= near
        cosine -= np.multiply(sine, across, out=square)
        sine *= near
        sine += left
    return result


def waves(x: Array, box: Array, bandwidth: float, blocks: int) -> Array:
    """exp(i p x) for every vertex p, (blocks, VERTICES, k); places are counted from the centre of the box."""
    parts = _wave_parts(x, box, bandwidth, blocks)
    result = np.empty((blocks, VERTICES, len(x)), dtype=complex)
    result.real, result.imag = parts[:, :VERTICES], parts[:, VERTICES:]
    return result


def _wave_parts(x: Array, box: Array, bandwidth: float, blocks: int) -> Array:
    """The real parts of ``waves``, and the imaginary ones under them, (blocks, 2 VERTICES, k)."""
    scaled = np.clip((x - box.mean(axis=1)) / bandwidth, -FARTHEST, FARTHEST)
    phases = vertices(len(box), blocks).reshape(-1, len(box)) @ scaled.T
    return on_circle(phases.reshape(blocks, VERTICES, len(x)))


def feature_sums(points: Array, box: Array, bandwidth: float, blocks: int, chunk: int = CHUNK) -> Array:
    """Sum over the records of all cosines, then all sines, (2m,): one pass over chunks of rows.

    Sensitivity: replacing one record changes the result by at most ``sketch_sensitivity`` in Euclidean norm, for any
    records (see the head of this file).  A record that misses a value adds nothing, and keeps its row, so that all
    others stay in their chunks.

    Since exp(i (p - q) x) = exp(i p x) conj(exp(i q x)), the sums are matrix products of the waves of the
    vertices; only blocks * VERTICES cosines and sines are taken for each record.
    """

    def chunk_sum(start: int) -> Array:
        part = points[start : start + chunk]
        missing = np.isnan(part).any(axis=1)
        parts = _wave_parts(np.where(missing[:, None], 0.0, part), box, bandwidth, blocks)
        parts[:, :, missing] = 0.0
        # A matrix times its own transpose takes half the work, and of a complex one NumPy does not see that.
        products = np.stack([part @ part.T for part in parts])
        cosines, sines = slice(VERTICES), slice(VERTICES, None)
        mixed = products[:, sines, cosines]
        return products[:, cosines, cosines] + products[:, sines, sines] + 1j * (mixed - mixed.swapaxes(1, 2))

    starts = range(0, len(points), chunk)
    if len(starts) < THREADED_CHUNKS:
        total = running_sum(map(chunk_sum, starts), (blocks, VERTICES, VERTICES))
    else:  # cosines take most of the time and leave Python's lock alone; the order of the sum stays the same
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            total = running_sum(pool.map(chunk_sum, starts))
    first, second = np.triu_indices(VERTICES, 1)
    sums = amplitude(blocks) * total[:, first, second].ravel()
    return np.concatenate([sums.real, sums.imag])


def public_points(box: Array, count: int) -> Array:
    """``count`` public places spread evenly over a box, (count, d): multiples of powers of one irrational number.

    The number is the inverse root of x^(d+1) = x + 1, the golden ratio for d = 1; its powers fill a cube evenly.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (len(box) + 1))
    shares = (0.5 + np.arange(1, count + 1)[:, None] * root ** -np.arange(1.0, len(box) + 1)) % 1.0
    return box[:, 0] + shares * (box[:, 1] - box[:, 0])


def noise_ceiling(box: Array, bandwidth: float) -> float:
    """Height, in units of the noise, that noise alone passes anywhere in the box with a chance of about 0.1 %.

    A union bound over the places that are about independent, two a bandwidth along each side.
    """
    return float(-scipy.special.ndtri(FALSE_ALARM / independent_places(box, bandwidth)))


def noise_chances(box: Array, bandwidth: float, heights: Array) -> Array:
    """The chance (k,) that noise alone reaches each height, in its units, anywhere in the box: the same union bound."""
    return np.minimum(1.0, independent_places(box, bandwidth) * scipy.special.ndtr(-heights))


def independent_places(box: Array, bandwidth: float) -> float:
    """About how many places of a box have noise of their own: two a bandwidth along each side."""
    return float(np.prod(2 * (box[:, 1] - box[:, 0]) / bandwidth + 1))


def error_scale(values: Array, noise: float, box: Array, bandwidth: float, blocks: int) -> float:
    """The unit for ``noise_ceiling`` in a sketch: its noise, and the error of its kernel as seen over the box.

    A kernel sum is never negative, so what is negative in ``values`` (of the sketch at many places) is error, whatever
    the records are: its median gives the standard deviation.  What this has beyond the noise comes from the kernel.
    Far away that is a mean of |sum_i exp(i p_i u)|^2 / N over the blocks, each about exponential, so its law is gamma
    and reaches farther than a normal one; its share is stretched by the ratio of the two quantiles, and by
    ``NEARER`` since most of the box is far from the records and the error near them is larger.
    """
    negative = values[values < 0]
    seen = 1.4826 * float(np.median(-negative)) if len(negative) else 0.0
    chance = FALSE_ALARM / independent_places(box, bandwidth)
    reach = NEARER * math.sqrt(blocks) * (float(scipy.special.gammainccinv(blocks, chance)) / blocks - 1)
    return math.hypot(noise, reach / float(-scipy.special.ndtri(chance)) * math.sqrt(max(0.0, seen**2 - noise**2)))


@dataclass(frozen=True, eq=False)
class ReleasedSketch(Released):
    """The noisy coefficients (2m,) with the public facts needed to use them. All of it may be published.

    Everything here is post-processing of them: they can be smoothed and evaluated anywhere, for free.
    """

    kind: ClassVar[str] = "sketch"

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

    @cached_property
    def _built(self) -> tuple[Array, Array, Array]:
        # value(x) = sum_ij form_ij exp(i (p_i - p_j) x), a Hermitian form in the waves of each block; p; |p_i - p_j|^2.
        numbers, half = self.coefficients, self.coefficients.size // 2
        first, second = np.triu_indices(VERTICES, 1)
        halves = 0.5 * amplitude(self.blocks) * (numbers[:half] - 1j * numbers[half:])
        form = np.zeros((self.blocks, VERTICES, VERTICES), dtype=complex)
        form[:, first, second] = halves.reshape(self.blocks, -1)
        form[:, second, first] = form[:, first, second].conj()
        corners = vertices(self.dimension, self.blocks) / self.bandwidth
        return form, corners, ((corners[:, :, None, :] - corners[:, None, :, :]) ** 2).sum(axis=-1)

    @property
    def blocks(self) -> int:
        return int(self.coefficients.size) // (2 * PAIRS)

    def exact(self, points: Array) -> Array:
        """The coefficients that these points have without noise: for points that are public."""
        return feature_sums(points, self.box, self.bandwidth, self.blocks)

    def value(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """The noisy kernel sum at x (k, d), smoothed to a larger bandwidth H where one is given.

        Convolution with N(0, H^2 - h^2) multiplies each frequency by exp(-(H^2 - h^2) |w|^2 / 2).
        """
        return self._collect(x, bandwidth, 0)[0]

    def gradient(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        return self._collect(x, bandwidth, 1)[1]

    def heat(self, x: Array, bandwidth: float | Array | None = None) -> tuple[Array, Array, Array]:
        """Value (k,), gradient (k, d) and Laplacian (k,) at x in one pass."""
        return self._collect(x, bandwidth, 2)

    def noise_at(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """Standard deviation of the noise in ``value`` at x, exactly; the same everywhere."""
        extra, back = np.unique(self._extra(bandwidth), return_inverse=True)
        first, second = np.triu_indices(VERTICES, 1)
        square = self._built[2][:, first, second]
        norms = [amplitude(self.blocks) * float(np.linalg.norm(np.exp(-0.5 * t * square))) for t in extra]
        return self.noise_scale * np.broadcast_to(np.array(norms)[back.ravel()], len(self._places(x)))

    def _places(self, x: Array) -> Array:
        places = np.asarray(x, dtype=float)
        if places.ndim != 2 or places.shape[1] != self.dimension:
            raise DataError(f"Places must be a table with {self.dimension} columns, one place a row.")
        return places

    def _extra(self, bandwidth: float | Array | None) -> Array:
        if bandwidth is None:
            return np.zeros(1)
        width = np.atleast_1d(np.asarray(bandwidth, dtype=float))
        self.refuse_narrower(width)
        return np.maximum(0.0, width**2 - self.bandwidth**2)

    def _collect(self, x: Array, bandwidth: float | Array | None, orders: int) -> tuple[Array, Array, Array]:
        """Value, gradient (from order 1) and Laplacian (order 2) at all x, in groups of one bandwidth."""
        places = self._places(x)
        extra = np.broadcast_to(self._extra(bandwidth), len(places))
        value, laplacian = np.zeros(len(places)), np.zeros(len(places))
        gradient = np.zeros(places.shape)
        for smoothing in np.unique(extra):
            rows = np.flatnonzero(extra == smoothing)
            form, corners, squares = self._built
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
