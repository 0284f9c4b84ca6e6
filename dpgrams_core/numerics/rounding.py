"""Rounding: how much farther one record moves a sum that is computed in doubles than the proofs say for real numbers.

Every proof here bounds by D the change of sum_i v(X_i), |v| <= 1, when one record is replaced.  A computer adds up
floating-point numbers, and then *every* partial sum may round differently in the two worlds.  The noise is set for

    (D + 2 (each + summing)) / (1 - lattice)                                                        (``with_rounding``)

and the three parts are derived here.  u = 2^-53 is the unit roundoff; terms of order u^2 are paid for by constants
that are rounded up.

The sum.  Records stand in chunks that their row numbers decide (a record that adds nothing keeps its row), and what a
chunk adds up to is computed from its own records.  So of the chunks only the one with the replaced record differs
between the worlds: all other chunks hold the same doubles, whatever their rounding errors are.  (This takes a library
that adds the same numbers in the same order each time, as BLAS does on one machine with one number of threads; the
tests compare copies in other places of memory.)  In that chunk, b
vectors no longer than 1 are added in some order, possibly with fused operations, which is off by at most
(b - 1) u sum_i |v_i| <= b^2 u (Higham 2002, section 4.2; many records on a grid are added by cells, cell_sums.py).
The chunks are then added with the rounding error of each addition carried along (``running_sum``): off by at most u
times the total and a term of order u^2, together below 3 u n, in any order and for any number of chunks.

Each record.  ``each`` bounds the error of what one record adds.  For the replaced record it counts in both worlds; for
the others it is the same in both (it depends on the record and its row only) and cancels.

Whitening.  Vectors v with v v' <= C (in the order of matrices) are written in the eigenvectors of C and divided by the
roots of the eigenvalues, down to ``SMALLEST_EIGENVALUE`` of the largest one, l.  Two things can go wrong.
(1) The computed eigenvectors and eigenvalues are those of C + E with |E| of the order u l, and for eigenvalues of
1e-10 l that is no small change.  So ``lift`` times l, which is more than |E|, is added to every eigenvalue:
C + E + lift l >= C, the inverse turns the order around, and a change is never longer than in exact arithmetic.  The
backward error of the eigenvalue solver is at most u l times the size of C times a modest constant; we take ``SOLVER``
for that constant, and tests/unit/numerics/test_rounding.py measures it (below 2).
(2) Dividing by the root of a small eigenvalue magnifies every other rounding error, by 1e5 / sqrt(l) at most.  Here l
is at least 1, and |v| <= sqrt(l).  The ``size`` numbers of v are off by (6 + columns) u each (a difference, a quotient,
a square for each column, an exponential and a product), the product with the eigenvectors by (size + 2) u |v|
sqrt(size), and the eigenvectors themselves by ``SOLVER`` size u |v|.  Hence ``whitening_error``.

The lattice.  OpenDP rounds each of the N numbers to a lattice of spacing at most 2^-52 of the noise (noise.py), so both
worlds together are off by at most sqrt(N) 2^-52 sigma.  With sigma = z times the whole sensitivity this gives
lattice = sqrt(N) 2^-52 z.

Draws.  The counts of the exponential mechanism are whole numbers and exact: which side of a threshold a record is on is
decided by that record alone.  A log-weight, epsilon times a count over two, is rounded twice, so the weights of two
neighbouring counts are at most epsilon / 2 + 2 u epsilon n apart: a draw costs at most epsilon (1 + 4 u n), and is
given epsilon / (1 + 4 u n) to begin with (``draw_epsilon``).  The draw itself is exact (noise.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpgrams_core.model.progress import checkpoint

Array = np.ndarray
UNIT = 2.0**-53
# Eigenvalues below this share of the largest are rounding error: nothing along them may leave.
SMALLEST_EIGENVALUE = 1e-10
SOLVER = 10.0
LATTICE = 2.0**-52  # spacing over noise, at most (noise.py)


def lift(size: int) -> float:
    """What is added to every eigenvalue of a matrix of this size, as a share of the largest (head of this file)."""
    return SOLVER * size * UNIT


def whitened_axes(covariance: Array) -> tuple[Array, Array]:
    """Eigenvectors (k, r) whose eigenvalues are more than rounding, and the roots (r,) to divide by."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    return vectors[:, kept], np.sqrt(values[kept] + lift(len(values)) * values[-1])


def whitening_error(size: int, columns: int = 1) -> float:
    """How far a whitened vector of ``size`` kernel values of records with ``columns`` columns is off, at most."""
    magnified = UNIT / math.sqrt(SMALLEST_EIGENVALUE)
    return magnified * (math.sqrt(size) * (size + 8 + columns) + SOLVER * size)


def running_sum(parts: Iterable[Array], shape: tuple[int, ...] = ()) -> Array:
    """The sum of arrays, with the rounding error of every addition carried along: as if rounded once, in any order.

    ``shape`` is that of the sum where there may be no part at all.
    """
    total, lost = np.zeros(shape), np.zeros(shape)
    for part in parts:
        checkpoint()  # a sum over many records ends when nobody waits for it
        after = total + part
        back = after - total
        lost = lost + ((total - (after - back)) + (part - back))
        total = after
    return np.asarray(total + lost)


def summing_error(n: int, chunk: int, terms: int = 1) -> float:
    """How far the sum of n vectors no longer than 1 is off, at most; ``terms`` products make one number of a vector."""
    size = min(n, chunk)
    return UNIT * (terms * size * (terms * size + 3) + 3 * n)


def with_rounding(
    exact: float, *, n: int, chunk: int, each: float, numbers: int, multiplier: float, terms: int = 1
) -> float:
    """The sensitivity that noise is set for: ``exact``, of real numbers, and the slack of the head of this file.

    ``exact`` is the proven change of the sum over n records when one of them is replaced, ``chunk`` how many are added
    without carrying rounding errors along, ``each`` how far the vector that one record adds is off, ``numbers`` how
    many numbers are released, and ``multiplier`` the noise over the sensitivity.
    """
    computed = exact + 2 * (each + summing_error(n, chunk, terms))
    return computed / (1 - math.sqrt(numbers) * LATTICE * multiplier)


def draw_epsilon(epsilon: float, n: int) -> float:
    """What the weights of a draw are set for so that it costs ``epsilon``; counts are up to n."""
    return epsilon / (1 + 4 * UNIT * n)
