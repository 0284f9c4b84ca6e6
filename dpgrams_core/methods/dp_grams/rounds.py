"""The rounds of DP-GRAMS with a proof (the ``tight`` calibration).

Let k_h(x, y) = exp(-|x - y|^2 / 2h^2) and F_B = sum over the batch of k_h(., X_i).  A round releases F_B and
h grad F_B at the current points; density, clip, floor and quotient (eq:stabilized-score) come afterwards.

Why sqrt(2) covers a round.  Replacing one record of the batch changes F_B by k_h(., X) - k_h(., X'), of squared
norm 2 - 2 k_h(X, X') <= 2 in the RKHS of k_h.  Values and derivatives at any points are inner products of
F_B with functions of that RKHS whose Gram matrix is C, the joint covariance of the values and derivatives of
a Gaussian process of covariance k_h.  With noise N(0, sigma^2 C), the Mahalanobis norm of a change is the
norm of its projection on the span of these functions, over sigma: at most sqrt(2) / sigma, for any points,
coinciding ones included, and also for points that earlier rounds have chosen.  (Hall, Rinaldo & Wasserman
2013; nothing here needs the Lipschitz step of lem:correlated_noise_privacy that has a gap.)  In doubles one record
moves a round a little farther; ``round_sensitivity`` says how far.

Many records.  Weighing each at each point takes long, and all rounds look at one and the same function.  So with many
records (``round_grid``) F_B is projected once, on the grid of the functional release: one replaced record moves its
coefficients c by at most sqrt(2) in Euclidean norm (numerics/surface.py), and a round releases G c with independent
noise of sigma.  G are the whitened functionals of its points.  Its norm is at most 1, since projection shortens; but
nothing rests on that: G is made of released points alone, its norm is computed, and it is divided by it where that is
above 1 (``Noise.projected_gaussian``).  So a round moves by at most sqrt(2), whatever G is, and needs no step of its
own through small roots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dpgrams_core.numerics.cell_sums import cell_counts
from dpgrams_core.numerics.rounding import SMALLEST_EIGENVALUE, UNIT, running_sum, whitening_error, with_rounding
from dpgrams_core.numerics.surface import CHUNK as GRID_CHUNK
from dpgrams_core.numerics.surface import SPACING, node_counts, record_error

Array = np.ndarray

SENSITIVITY = math.sqrt(2)  # of real numbers; ``round_sensitivity`` adds the slack for rounding
_PAIRS = 400_000  # pairs of (point, record) held in memory at once
BLOCK = 8  # records that are added before they are divided by roots of eigenvalues
CHUNK = 4_096  # records that are added without carrying rounding errors along
MOST_PRODUCTS = 10_000_000  # numbers of G


def round_grid(batch_size: int, numbers: int, box: Array, h: float) -> tuple[int, ...] | None:
    """Nodes along each axis of the grid that many records are added on, from public facts; None: there is no grid.

    It pays where it has fewer nodes than there are blocks of records, and where G fits the memory.

    >>> square = np.array([[0.0, 10.0], [0.0, 10.0]])
    >>> round_grid(1_000_000, 150, square, 0.5), round_grid(20_000, 150, square, 0.5)
    ((56, 56), None)
    """
    nodes = node_counts(box, h)
    size = float(np.prod(nodes))
    if batch_size <= GRID_CHUNK or size * BLOCK > batch_size or size * numbers > MOST_PRODUCTS:
        return None
    counts = tuple(int(count) for count in nodes)
    return counts if cell_counts(counts, SPACING) else None


def round_sensitivity(
    batch_size: int, columns: int, numbers: int, multiplier: float, nodes: Sequence[int] | None = None
) -> float:
    """How far replacing one record moves the *computed* sums of a round, for noise of ``multiplier`` times this.

    sqrt(2) for real numbers (see the head of this file), and the slack of numerics/rounding.py.  BLOCK records are
    added before they are whitened: the vector is up to BLOCK times as long, so its error is BLOCK times
    ``whitening_error``, and its own sum, off by BLOCK^2 u, is magnified as everything before whitening is.

    On a grid of ``nodes`` (``round_grid``) the slack is that of the functional release's sums, and what the product
    G c rounds.  Its sums run along one axis and then along the other, so a number is rounded at most sum(nodes) + 2
    times one after the other; the rows of G are no longer than 1 and c no longer than the number of records.

    >>> slack = [round_sensitivity(n, 2, 30, 11.0) / SENSITIVITY - 1 for n in (10**3, 10**6)]
    >>> 1e-9 < slack[0] < slack[1] < 1e-6
    True
    """
    if nodes is not None:
        product = (sum(nodes) + 2) * UNIT * math.sqrt(numbers) * batch_size
        each = record_error(nodes, batch_size) + product
        return with_rounding(
            SENSITIVITY, n=batch_size, chunk=GRID_CHUNK, each=each, numbers=numbers, multiplier=multiplier
        )
    return with_rounding(
        SENSITIVITY,
        n=batch_size,
        chunk=CHUNK,
        each=BLOCK * whitening_error(numbers, columns) + BLOCK**2 * UNIT / math.sqrt(SMALLEST_EIGENVALUE),
        numbers=numbers,
        multiplier=multiplier,
    )


def joint_covariance(at: Array, h: float) -> Array:
    """C: covariance of (f, h grad f) at the rows of ``at`` (k, d) for a Gaussian process f of covariance k_h.

    The order is that of :func:`kernel_sums`: k values, then the k gradients row by row.  Every variance is 1.

    >>> joint_covariance(np.zeros((1, 2)), 0.7)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    k, d = at.shape
    u = (at[:, None, :] - at[None, :, :]) / h
    values = np.exp(-0.5 * (u**2).sum(axis=2))
    # With u = (x - y)/h:  Cov(f(x), h d_j f(y)) = u_j k_h,  Cov(h d_i f(x), h d_j f(y)) = (1{i=j} - u_i u_j) k_h.
    mixed = (u * values[:, :, None]).reshape(k, k * d)
    slopes = (np.eye(d)[None, :, None, :] - u.transpose(0, 2, 1)[..., None] * u[:, None, :, :]) * values[
        :, None, :, None
    ]
    return np.block([[values, mixed], [mixed.T, slopes.reshape(k * d, k * d)]])


def block_sums(batch: Array, at: Array, h: float) -> Iterator[Array]:
    """(F_B, h grad F_B) at the rows of ``at``, in tables of k (1 + d) columns: a row for each BLOCK of records.

    Notes
    -----
    Cost O(m k d) time, in chunks of records.
    """
    k, d = at.shape
    rows = max(BLOCK, min(CHUNK, _PAIRS // (k * d)) // BLOCK * BLOCK)
    for start in range(0, len(batch), rows):
        part = batch[start : start + rows]
        blocks = -(-len(part) // BLOCK)
        # Plain differences: the expanded square would lose digits that no noise covers.
        away = [(part[:, axis, None] - at[None, :, axis]) / h for axis in range(d)]
        weights = away[0] * away[0]
        for u in away[1:]:
            weights += u * u
        weights *= -0.5
        np.exp(weights, out=weights)
        table = np.empty((blocks, k * (1 + d)))
        table[:, :k] = _in_blocks(weights, blocks)
        for axis, u in enumerate(away):
            u *= weights
            table[:, k + axis :: d] = _in_blocks(u, blocks)
        yield table


def _in_blocks(rows: Array, blocks: int) -> Array:
    """The sums of BLOCK rows each; the last block may have fewer."""
    whole = len(rows) // BLOCK
    sums = rows[: whole * BLOCK].reshape(whole, BLOCK, rows.shape[1]).sum(axis=1)
    return sums if whole == blocks else np.concatenate([sums, rows[whole * BLOCK :].sum(axis=0)[None]])


def kernel_sums(batch: Array, at: Array, h: float) -> Array:
    """(F_B, h grad F_B) at the rows of ``at`` as one vector of k (1 + d) numbers."""
    return running_sum(table.sum(axis=0) for table in block_sums(batch, at, h))


def densities(sums: Array, d: int, h: float, batch_size: int) -> tuple[Array, Array]:
    """p_B (k,) and grad p_B (k, d), eq:kde-D, from the kernel sums, noisy or not."""
    k = len(sums) // (1 + d)
    scale = (2 * math.pi) ** (-d / 2) / (batch_size * h**d)
    return sums[:k] * scale, sums[k:].reshape(k, d) * (scale / h)


def score_noise(process_noise: float, d: int, h: float, batch_size: int, floor: float) -> float:
    """Standard deviation of the noise of one gradient coordinate over p_floor: comparable with theorem's sigma.

    Both are the noise of one score coordinate where the floor is active; where the density exceeds the
    floor, the noise of this calibration is smaller than this figure.

    >>> round(score_noise(6.0, 2, 1.0, 1000, 0.02), 4)
    0.0477
    """
    return process_noise / h * (2 * math.pi) ** (-d / 2) / (batch_size * h**d) / floor


def clip_and_floor(
    density: Array, gradient: Array, clip: float, floor: float, *, of_score: bool = False
) -> tuple[Array, float]:
    """clip_A(gradient) / max(density, p_floor), eq:stabilized-score, and the share of clipped gradients.

    With ``of_score`` the quotient is cut instead, at A / p_floor, so that a step is as long on a high mode as on a low
    one; that is for released numbers, where a clip bounds nothing that noise would have to cover.
    """
    height = np.maximum(density, floor)
    with np.errstate(over="ignore"):  # a clip that is as good as none
        longest = np.minimum(clip * (height / floor if of_score else np.ones_like(height)), np.finfo(float).max)
    size = np.linalg.norm(gradient, axis=1)
    factor = longest / np.maximum(size, longest)  # 1 where the gradient is short enough
    return gradient * (factor / height)[:, None], float((size > longest).mean())
