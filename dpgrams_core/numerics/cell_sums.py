"""Kernel sums of many records, by Taylor series about the middles of cells: much less work for each record.

Along an axis a record x in a cell with middle c and half-width w adds, with t = (x - c) / w,

    k_h(., x) = sum_{a < TERMS} t^a (w^a / a!) d^a k_h(., c)  +  remainder,

so the sum over the records of a cell needs only their moments, sums of t^a (and of t^a s^b in two columns).  The
derivatives are public numbers, whitened once for each cell (``derivatives``).

Error.  In the RKHS of k_h, |d^m k_h(., x)|^2 = (2m - 1)!! / h^(2m), so the remainder is no longer than
(w/h)^m sqrt((2m - 1)!!) / m! at m = ``TERMS`` (Taylor's integral form), 6e-10 for w = 0.3 h.  Whitening is a projection
in that space and shortens: nothing is magnified (``REMAINDER``).

Rounding.  The terms of one record are together no longer than ``LENGTH`` = sum_a (w/h)^a sqrt((2a - 1)!!) / a! along an
axis, below 1.4.  A whitened derivative is off like a whitened kernel vector (rounding.py), times its length and for a
polynomial that takes 4a more operations: the sum over a is below twice ``whitening_error``.  The moments of a chunk of
b records are added in pieces of ``PIECE`` records, the pieces of a cell after another, then multiplied by the
derivatives, which adds up as many numbers as cells have moments along each axis.  A number is so rounded at most
``depth`` times one after the other, and all errors of a chunk are together at most depth u b LENGTH^d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpgrams_core.numerics.rounding import UNIT, whitening_error

Array = np.ndarray
CELL = 0.6  # bandwidths
TERMS = 12
MOST_CELLS = 160  # along an axis; with more, the moments would be more numbers than a chunk has records
ROWS = 131_072  # of a chunk: with fewer the cells are emptier, with more what is in between leaves the cache
PIECE = 2_048  # records


def _taylor(a: int) -> float:
    """The length of the a-th term at the edge of a cell, at most: (w/h)^a sqrt((2a - 1)!!) / a!."""
    double_factorial = math.prod(range(1, 2 * a, 2))
    return (CELL / 2) ** a * math.sqrt(double_factorial) / math.factorial(a)


REMAINDER = _taylor(TERMS)
LENGTH = sum(_taylor(a) for a in range(TERMS))


def cell_counts(nodes: Sequence[int], spacing: float) -> list[int] | None:
    """Cells along each axis for so many nodes ``spacing`` bandwidths apart; None where there would be too many."""
    counts = [max(1, math.ceil((each - 1) * spacing / CELL)) for each in nodes]
    return counts if len(counts) <= 2 and max(counts) <= MOST_CELLS else None


def cell_error(nodes: Sequence[int], cells: Sequence[int], n: int) -> float:
    """How far what one record adds to ``cell_sum``, and the sums over n records, are off (head of this file)."""
    d, size = len(nodes), min(n, ROWS)
    depth = PIECE + math.ceil(size / PIECE) + TERMS * (sum(cells) + d) + 2
    each = sum(2 * whitening_error(count) for count in nodes)
    return each + d * LENGTH * REMAINDER + depth * UNIT * size * LENGTH**d


def derivatives(nodes: Array, whitening: Array, bandwidth: float, cells: int) -> Array:
    """Whitened w^a / a! d^a k_h(nodes, c) at the middles c of equal cells between the outer nodes, (r, cells * TERMS).

    By Hermite polynomials: d^a exp(-u^2 / 2) = (-1)^a He_a(u) exp(-u^2 / 2).
    """
    half = (nodes[-1] - nodes[0]) / (2 * cells)
    u = (nodes[:, None] - (nodes[0] + half * (2 * np.arange(cells) + 1))) / bandwidth
    before, polynomial, scale, table = np.zeros_like(u), np.exp(-0.5 * u * u), 1.0, []
    for a in range(TERMS):  # the sign is in u, which points from the middle to the node
        table.append(whitening @ (scale * polynomial))
        before, polynomial = polynomial, u * polynomial - a * before
        scale *= half / bandwidth / (a + 1)
    return np.stack(table, axis=-1).reshape(len(whitening), -1)


def cell_sum(points: Array, low: Array, high: Array, tables: Sequence[Array]) -> Array:
    """What the records (n, d) between ``low`` and ``high`` add to the coefficients, d = 1 or 2."""
    if len(tables) == 1:  # as if the second column had one cell and a series of one term
        points = np.append(points, np.zeros((len(points), 1)), axis=1)
        return cell_sum(points, np.append(low, 0.0), np.append(high, 1.0), [tables[0], np.ones((1, 1))])[:, 0]
    counts = [max(1, table.shape[1] // TERMS) for table in tables]
    # A column at a time: NumPy is slow where the last axis has two numbers.
    places = [(x - a) * (count / (b - a)) for x, a, b, count in zip(points.T, low, high, counts, strict=True)]
    numbers = [np.minimum(x.astype(np.int64), count - 1) for x, count in zip(places, counts, strict=True)]
    cell = numbers[0] * counts[1] + numbers[1]
    order = np.argsort(cell.astype(np.uint16), kind="stable")  # few enough numbers for a sort in linear time
    inner = [(2 * (x - number) - 1).take(order) for x, number in zip(places, numbers, strict=True)]
    cell = cell.take(order)
    terms = [table.shape[1] // count for table, count in zip(tables, counts, strict=True)]
    moments = np.zeros((math.prod(counts), *terms))
    for start in range(0, len(cell), PIECE):  # what a piece needs stays in the processor's cache
        here = cell[start : start + PIECE]
        left, right = (_powers(t[start : start + PIECE], each) for t, each in zip(inner, terms, strict=True))
        right = right.T
        edges = [0, *(np.flatnonzero(np.diff(here)) + 1).tolist(), len(here)]
        for number, (first, last) in zip(here[edges[:-1]].tolist(), pairwise(edges), strict=True):
            own = moments[number]
            own += left[:, first:last] @ right[first:last]
    square = moments.reshape(*counts, *terms).swapaxes(1, 2).reshape(counts[0] * terms[0], -1)
    return np.asarray(tables[0] @ square @ tables[1].T)


def _powers(t: Array, terms: int) -> Array:
    """t^0, t^1, ..., (terms, n)."""
    powers = np.ones((terms, len(t)))
    for a in range(1, terms):
        np.multiply(powers[a - 1], t, out=powers[a])
    return powers
