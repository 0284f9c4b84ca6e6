"""A released surface: a noisy kernel sum that may be evaluated anywhere, smoothed and sampled.

For f(x) = sum_i k_h(x, X_i) with k_h(x, y) = exp(-|x - y|^2 / 2h^2), let V be the span of k_h(., g) over
the nodes g of a public tensor grid.  V is a tensor product, so it has an orthonormal basis (in the
RKHS of k_h) of products a_r(x_1) b_s(x_2) ..., with, for each axis,

    a(x) = Lambda^(-1/2) U^T k_h(nodes, x),      k_h(nodes, nodes) = U Lambda U^T.

The coefficients of the projection of f on V are sum_i a_r(X_i1) b_s(X_i2) ...: a sum over records.
Projection shortens, so replacing a record moves them by at most |k_h(., X) - k_h(., X')| <= sqrt(2).
What leaves is those coefficients plus independent N(0, sigma^2); everything in this file is
post-processing of them.  Directions with eigenvalues below rounding are dropped: no noise would
cover what they carry.  ``surface_sensitivity`` adds what rounding can do (numerics/rounding.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from dpgrams_core.model.checks import box_of, positive
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics.cell_sums import PIECE, ROWS, cell_counts, cell_error, cell_sum, derivatives
from dpgrams_core.numerics.rounding import running_sum, whitened_axes, whitening_error, with_rounding

Array = np.ndarray
SPACING = 0.4  # of the bandwidth; the projection then loses less than 1e-3 of a record's kernel
PADDING = 1.0  # bandwidths beyond the box, so that records at its edge are represented as well
MAX_COEFFICIENTS = 2_000_000
CHUNK = 20_000  # records


@dataclass(frozen=True)
class AxisBasis:
    """The orthonormal functions a_1, ..., a_r of one axis."""

    nodes: Array  # (g,)
    whitening: Array  # (r, g): Lambda^(-1/2) U^T
    bandwidth: float

    def values(self, x: Array, bandwidth: float | Array | None = None, derivative: int = 0) -> Array:
        """a_r(x), or its derivative, shape (r, k); smoothed to a larger bandwidth (one for all x or each).

        Smoothing convolves with a Gaussian of variance bandwidth^2 - h^2, which turns k_h into
        (h / bandwidth) k_bandwidth along each axis.
        """
        width = self.bandwidth if bandwidth is None else bandwidth
        u = (x[None, :] - self.nodes[:, None]) / width
        kernel = np.exp(-0.5 * u * u) * (self.bandwidth / width)
        if derivative == 1:
            kernel *= -u / width
        elif derivative == 2:
            kernel *= (u * u - 1) / width**2
        return self.whitening @ kernel

    def jets(self, x: Array, width: float | Array) -> Array:
        """``values`` with the first and the second derivative, (r, 3, k), in one pass."""
        u = (x[None, :] - self.nodes[:, None]) / width
        kernels = np.empty((len(u), 3, len(x)))
        np.multiply(np.exp(-0.5 * u * u), self.bandwidth / width, out=kernels[:, 0])
        np.multiply(kernels[:, 0], -u / width, out=kernels[:, 1])
        np.multiply(kernels[:, 0], (u * u - 1) / width**2, out=kernels[:, 2])
        return (self.whitening @ kernels.reshape(len(u), -1)).reshape(-1, 3, len(x))


@lru_cache(maxsize=16)
def axis_basis(low: float, high: float, bandwidth: float) -> AxisBasis:
    """The basis of one axis of a public box; many runs over one box ask for the same."""
    low, high = low - PADDING * bandwidth, high + PADDING * bandwidth
    count = math.ceil((high - low) / (SPACING * bandwidth)) + 1
    nodes = np.linspace(low, high, count)
    gram = np.exp(-0.5 * ((nodes[:, None] - nodes[None, :]) / bandwidth) ** 2)
    axes, root = whitened_axes(gram)
    # An eigenvector's sign is up to the machine's library, and the noise of a seed must not be.  So each points the way
    # of one fixed vector, which has no symmetry and no smoothness that would make it orthogonal to some of them.
    signs = np.sign(np.cos(np.arange(count) ** 2) @ axes)
    whitening = (axes * (signs / root)).T
    for shared in (nodes, whitening):
        shared.flags.writeable = False
    return AxisBasis(nodes, whitening, bandwidth)


def node_counts(box: Array, bandwidth: float) -> Array:
    """The number of nodes along each axis, as floats, since it may be beyond any whole number."""
    return np.asarray(np.ceil(((box[:, 1] - box[:, 0]) / bandwidth + 2 * PADDING) / SPACING) + 1)


def box_bases(box: Array, bandwidth: float) -> tuple[AxisBasis, ...]:
    """One basis per axis, bounded in size before anything is computed."""
    size = float(np.prod(node_counts(box, bandwidth)))
    if size > MAX_COEFFICIENTS:
        factor = (size / MAX_COEFFICIENTS) ** (1 / len(box))
        words = f"the released grid would have {size:,.0f} numbers and may have {MAX_COEFFICIENTS:,}"
        least = f"a bandwidth of at least {bandwidth * factor * 1.1:.3g} fits this box"
        raise SpecError("bandwidth", bandwidth, f"{words}; {least}")
    return tuple(axis_basis(low, high, bandwidth) for low, high in box)


def surface_sensitivity(n: int, box: Array, bandwidth: float, multiplier: float) -> float:
    """How far replacing one record moves the *computed* coefficients, for noise of ``multiplier`` times this.

    sqrt(2) for real numbers (see the head of this file), and the slack for rounding: what a record adds is a product
    over the axes of whitened vectors no longer than 1, so their errors add up.
    """
    counts = [int(count) for count in node_counts(box, bandwidth)]
    each, numbers = record_error(counts, n), math.prod(counts)
    return with_rounding(math.sqrt(2), n=n, chunk=CHUNK, each=each, numbers=numbers, multiplier=multiplier)


def record_error(counts: Sequence[int], n: int) -> float:
    """How far what one of n records adds to the coefficients is off, for so many nodes along each axis."""
    cells = cell_counts(counts, SPACING) if n > CHUNK else None
    return cell_error(counts, cells, n) if cells else sum(whitening_error(count) for count in counts)


def coefficients(points: Array, bases: tuple[AxisBasis, ...], chunk: int = CHUNK) -> Array:
    """sum_i a_r(X_i1) b_s(X_i2) ..., in one pass over chunks of records.

    Sensitivity: replacing one record changes the result by at most ``surface_sensitivity`` in Euclidean norm, for any
    records (see the head of this file).  A record that misses a value adds nothing, and keeps its row, so that all
    others stay in their chunks.

    More records than one chunk are added by cells (cell_sums.py), in chunks of ``ROWS``; those beyond the outer nodes,
    of which private data have none, as few are, in pieces.
    """
    shape = tuple(len(basis.whitening) for basis in bases)
    cells = cell_counts([len(basis.nodes) for basis in bases], SPACING) if len(points) > CHUNK else None
    if cells is None:
        parts = (_direct_sum(points[start : start + chunk], bases) for start in range(0, len(points), chunk))
        return running_sum(parts, shape)
    low, high = (np.array([basis.nodes[end] for basis in bases]) for end in (0, -1))
    tables = [
        derivatives(basis.nodes, basis.whitening, basis.bandwidth, count)
        for basis, count in zip(bases, cells, strict=True)
    ]

    def chunk_sum(block: Array) -> Array:
        within = np.logical_and.reduce([(low[j] <= x) & (x <= high[j]) for j, x in enumerate(block.T)])
        if within.all():
            return cell_sum(block, low, high, tables)
        beyond = block[~within]
        beyond = beyond[~np.isnan(beyond).any(axis=1)]
        pieces = (_direct_sum(beyond[start : start + PIECE], bases) for start in range(0, len(beyond), PIECE))
        return running_sum([cell_sum(block[within], low, high, tables), *pieces])

    return running_sum((chunk_sum(points[start : start + ROWS]) for start in range(0, len(points), ROWS)), shape)


def _direct_sum(block: Array, bases: tuple[AxisBasis, ...]) -> Array:
    """What some records add to the coefficients, from the kernel between every record and every node."""
    places = np.where(np.isnan(block).any(axis=1, keepdims=True), np.inf, block)  # where every kernel is 0
    factors = [basis.values(places[:, j]) for j, basis in enumerate(bases)]
    if len(factors) == 1:
        return np.asarray(factors[0].sum(axis=1))
    if len(factors) == 2:
        return factors[0] @ factors[1].T
    first, second, third = factors  # one function of the first axis at a time: with all, a chunk would take a gigabyte
    return np.stack([(row * second) @ third.T for row in first])


def functionals(x: Array, bases: tuple[AxisBasis, ...]) -> Array:
    """What k_h(., x) and h times its derivatives are in the basis, (k (1 + d), *coefficients), for x (k, d).

    Their products with the coefficients are the kernel sum and h times its gradient at x: first the k values, then the
    gradients row by row.
    """
    (k, d), h = x.shape, bases[0].bandwidth
    values = [[h**order * basis.values(x[:, j], None, order).T for order in (0, 1)] for j, basis in enumerate(bases)]
    found = np.empty((k * (1 + d), *(len(basis.whitening) for basis in bases)))
    for derived in range(-1, d):  # no column, then each
        table = values[0][derived == 0]
        for j in range(1, d):
            table = table[..., None] * np.expand_dims(values[j][derived == j], tuple(range(1, 1 + j)))
        found[slice(k) if derived < 0 else slice(k + derived, None, d)] = table
    return found


@dataclass(frozen=True, eq=False)
class Released:
    """What a surface and a sketch have in common: noisy coefficients with the public facts needed to use them."""

    coefficients: Array
    box: Array
    bandwidth: float
    noise_scale: float
    n: int

    @property
    def dimension(self) -> int:
        return len(self.box)

    def value(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        """The noisy kernel sum at x (k, d); about n p(x) (2 pi)^(d/2) h^d.

        A larger bandwidth (one for all x, or one each) smooths what was released, for free.
        """
        raise NotImplementedError

    def density(self, x: Array, bandwidth: float | None = None) -> Array:
        """The noisy density estimate at x; it may be negative where noise is."""
        d = self.dimension
        return self.value(x, bandwidth) / (self.n * (2 * math.pi) ** (d / 2) * self.bandwidth**d)

    def refuse_narrower(self, bandwidth: float | Array) -> None:
        """Refuse a bandwidth below that of the release."""
        least = positive("bandwidth", float(np.min(bandwidth)))
        if least < self.bandwidth * (1 - 1e-12):
            allowed = f"a release can only be smoothed further: at least {self.bandwidth:.4g}"
            raise SpecError("bandwidth", least, allowed)


@dataclass(frozen=True, eq=False)
class ReleasedSurface(Released):
    """The noisy coefficients on a grid, and all that may be asked of them. All of it may be published."""

    kind: ClassVar[str] = "surface"

    def __post_init__(self) -> None:
        object.__setattr__(self, "box", box_of(self.box))
        expected = tuple(len(basis.whitening) for basis in self.bases)
        if self.coefficients.shape != expected:
            raise DataError("The surface's coefficients do not fit its box and bandwidth.")

    @cached_property
    def bases(self) -> tuple[AxisBasis, ...]:
        return box_bases(self.box, self.bandwidth)

    def exact(self, points: Array) -> Array:
        """The coefficients that these points have without noise: for points that are public."""
        return coefficients(points, self.bases)

    def value(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        width = self._width(bandwidth)
        return self._product([basis.values(x[:, j], width) for j, basis in enumerate(self.bases)])

    def gradient(self, x: Array, bandwidth: float | Array | None = None) -> Array:
        return self.heat(x, bandwidth)[1]

    def heat(self, x: Array, bandwidth: float | Array | None = None) -> tuple[Array, Array, Array]:
        """Value (k,), gradient (k, d) and Laplacian (k,) at x in one pass over the bases."""
        width, d = self._width(bandwidth), self.dimension
        if d == 2:  # the same sums in few steps, since modes are sought by hundreds of such calls
            first, second = (basis.jets(x[:, j], width) for j, basis in enumerate(self.bases))
            half = (self.coefficients @ second.reshape(len(second), -1)).reshape(-1, 3, len(x))
            value, by_y, bend_y = (first[:, :1] * half).sum(axis=0)
            by_x, bend_x = (first[:, 1:] * half[:, :1]).sum(axis=0)
            return value, np.stack([by_x, by_y], axis=1), bend_x + bend_y
        orders = [[basis.values(x[:, j], width, order) for order in range(3)] for j, basis in enumerate(self.bases)]

        def contract(wanted: list[int]) -> Array:
            return self._product([orders[j][wanted[j]] for j in range(d)])

        slopes = np.stack([contract([int(i == j) for i in range(d)]) for j in range(d)], axis=1)
        bends = sum(contract([2 * int(i == j) for i in range(d)]) for j in range(d))
        return contract([0] * d), slopes, np.asarray(bends)

    def grid(self, axes: list[Array], bandwidth: float | None = None) -> Array:
        width = self._width(bandwidth)
        result = self.coefficients
        for basis, axis in zip(self.bases, axes, strict=True):
            # Contracting the first remaining axis each time leaves the new one last.
            result = np.tensordot(result, basis.values(axis, width), axes=(0, 0))
        return result

    def noise_at(self, x: Array, bandwidth: float | None = None) -> Array:
        """Standard deviation of the noise in ``value`` at x, exactly."""
        width = self._width(bandwidth)
        parts = [(basis.values(x[:, j], width) ** 2).sum(axis=0) for j, basis in enumerate(self.bases)]
        return self.noise_scale * np.sqrt(np.prod(parts, axis=0))

    def noise_grid(self, axes: list[Array], bandwidth: float | None = None) -> Array:
        """``noise_at`` on a tensor grid, from one pass along each axis."""
        width = self._width(bandwidth)
        parts = [(basis.values(axis, width) ** 2).sum(axis=0) for basis, axis in zip(self.bases, axes, strict=True)]
        squares = parts[0]
        for part in parts[1:]:
            squares = np.multiply.outer(squares, part)
        return self.noise_scale * np.sqrt(squares)

    def _width(self, bandwidth: float | Array | None) -> float | Array:
        if bandwidth is None:
            return self.bandwidth
        self.refuse_narrower(bandwidth)
        return bandwidth

    def _product(self, factors: list[Array]) -> Array:
        """Sum over coefficients of the product of basis values (or derivatives) at each x."""
        result = np.tensordot(self.coefficients, factors[-1], axes=(self.dimension - 1, 0))
        for factor in reversed(factors[:-1]):
            result = (result * factor).sum(axis=-2)
        return result
