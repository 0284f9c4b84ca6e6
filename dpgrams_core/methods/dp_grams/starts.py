"""DAP initialisation: private anchors on a public grid (alg:dap-init)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.rounding import draw_epsilon
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
MAX_CANDIDATES = 200_000
EDGE = 1e-9  # of a radius: far more than the rounding of a distance
CELLS = 250  # along a side: the numbers of all of them fit 16 bits, and such a sort takes linear time
EDGE_OF_CELL = 1e-6  # of its side
MANY = 200  # records for each candidate


def public_grid(box: Array, spacing: float) -> Array:
    """Z = Q intersected with spacing * integers^d (dap-grid-construction), bounded in size.

    >>> public_grid(np.array([[-1.0, 1.0]]), 0.5).ravel().tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    size = grid_size(box, spacing)
    if size == 0:
        narrowest = float((box[:, 1] - box[:, 0]).min())
        raise SpecError("init_bandwidth", spacing, f"the grid misses the box; it must be at most {narrowest:.10g}")
    if size > MAX_CANDIDATES:
        fits = _spacing_that_fits(box, spacing)
        advice = "give candidates instead" if fits is None else f"an init_bandwidth of {fits:g} fits this box"
        raise SpecError(
            "init_bandwidth",
            spacing,
            f"the grid would have {size:,.0f} points and may have {MAX_CANDIDATES:,}; {advice}",
        )
    axes = [spacing * np.arange(a, b + 1) for a, b in zip(*_grid_range(box, spacing), strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))


def _grid_range(box: Array, spacing: float) -> tuple[Array, Array]:
    """First and last whole multiple of the spacing in each side of the box."""
    with np.errstate(over="ignore"):  # far too fine a grid: an infinite number of points is the right answer
        # A hair of slack keeps the end points that rounding would push out.
        return np.ceil(box[:, 0] / spacing - 1e-9), np.floor(box[:, 1] / spacing + 1e-9)


def grid_size(box: Array, spacing: float) -> float:
    """Number of points of ``public_grid``; a float, since it may be beyond any whole number."""
    first, last = _grid_range(box, spacing)
    return math.prod(max(0.0, float(count)) for count in last - first + 1)


def _spacing_that_fits(box: Array, spacing: float) -> float | None:
    """The next wider spacing, in steps of 2 % and three digits, whose grid is neither empty nor too large."""
    longest = float((box[:, 1] - box[:, 0]).max())
    wider = max(spacing, longest / MAX_CANDIDATES / 2)
    while wider <= longest:
        wider = float(f"{1.02 * wider:.3g}")
        if 0 < grid_size(box, wider) <= MAX_CANDIDATES:
            return wider
    return None


def candidate_set(candidates: tuple[tuple[float, ...], ...], box: Array) -> Array:
    """A public candidate set given by the user, checked against the box."""
    table = np.array(candidates)
    if table.shape[1] != len(box):
        raise SpecError("candidates", f"{table.shape[1]} columns", f"the data have {len(box)} columns")
    outside = int(((table < box[:, 0]) | (table > box[:, 1])).any(axis=1).sum())
    if outside:
        raise SpecError(
            "candidates", f"{outside} of {len(table)} points outside the box", "every candidate must lie in the box"
        )
    if len(table) > MAX_CANDIDATES:
        raise SpecError("candidates", f"{len(table):,} points", f"at most {MAX_CANDIDATES:,} candidates")
    return table


def naive_counts(points: Array, candidates: Array, radius: float) -> Array:
    """Records within ``radius`` of each candidate, by all n x N distances; the reference."""
    return np.array([int((np.linalg.norm(points - z, axis=1) <= radius).sum()) for z in candidates])


def ball_counts(points: Array, candidates: Array, radius: float) -> Array:
    """n u_j of eq:uj-def: records within ``radius`` of each candidate, the same numbers as ``naive_counts``.

    A tree of the records counts those that are surely inside.  At the very edge of a ball its answer depends on how
    the tree was built, and so on *other* records: with many records on an edge, one replaced record could move a count
    by all of them.  So where any record is that near to an edge, its own distance decides.

    Many records in the plane are counted by cells, in a third of the time.
    """
    if points.shape[1] == 2 and len(points) > MANY * len(candidates):
        return counts_by_cells(points, candidates, radius)
    # Without balance it is built in a third of the time.
    tree = scipy.spatial.KDTree(points, leafsize=64, balanced_tree=False, compact_nodes=False)
    counts, perhaps = (
        np.array(tree.query_ball_point(candidates, radius * (1 + side), return_length=True)) for side in (-EDGE, EDGE)
    )
    for number in np.flatnonzero(counts != perhaps):
        counts[number] = naive_counts(points, candidates[[number]], radius)[0]
    return counts


def counts_by_cells(points: Array, candidates: Array, radius: float) -> Array:
    """``naive_counts`` in the plane, from square cells that are sorted once.

    The records of a cell that lies in a ball, surely in spite of rounding, count together; of every other cell that the
    ball may reach, each record's own distance decides, as there.  Which cells these are is decided by the candidates
    and the radius, so here too no record has a say in how another one counts.
    """
    low = candidates.min(axis=0) - 1.1 * radius
    side = float((candidates.max(axis=0) + 1.1 * radius - low).max()) / CELLS
    places = [(x - least) / side for x, least in zip(points.T, low, strict=True)]
    reached = np.logical_and.reduce([(x >= 0) & (x < CELLS) for x in places])
    if not reached.all():  # the others are in no ball
        points, places = points[reached], [x[reached] for x in places]
    number = places[0].astype(np.int64) * CELLS + places[1].astype(np.int64)
    records = points.take(np.argsort(number.astype(np.uint16), kind="stable"), axis=0)
    begins = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=CELLS**2))])
    rows, size = np.arange(CELLS), radius / side

    def count(z: Array) -> int:
        x, y = (z - low) / side
        away = np.abs(rows + 0.5 - x)
        near, far = np.maximum(away - 0.5 - EDGE_OF_CELL, 0.0), away + 0.5 + EDGE_OF_CELL
        # Of each row the cells from ``first`` to ``last`` are reached, and those from ``whole`` to ``end`` lie within.
        half = np.sqrt(np.maximum(size**2 - near**2, 0.0)) + EDGE_OF_CELL
        last = np.clip(np.where(near <= size, np.floor(y + half) + 1, 0), 0, CELLS)
        first = np.clip(np.floor(y - half), 0, last)
        half = np.sqrt(np.maximum(size**2 - far**2, 0.0)) - EDGE_OF_CELL
        whole = np.clip(np.ceil(y - half), first, last)
        end = np.clip(np.where(far < size, np.floor(y + half), 0), whole, last)
        one, two, three, four = begins[rows * CELLS + np.array([first, whole, end, last]).astype(np.int64)]
        start, length = np.concatenate([one, three]), np.concatenate([two - one, four - three])
        after = np.cumsum(length)
        unsure = np.arange(after[-1]) + np.repeat(start - after + length, length)
        return int((three - two).sum()) + int(naive_counts(records.take(unsure, axis=0), z[None], radius)[0])

    return np.array([count(z) for z in candidates])


@dataclass(frozen=True)
class Anchors:
    """The chosen candidates (private) with the utilities that led to them (not private)."""

    indices: Array
    points: Array
    candidates: Array
    utilities: Array


def draw_anchors(
    points: Array,
    candidates: Array,
    *,
    epsilon_each: float,
    draws: int,
    radius: float,
    suppression: float,
    noise: Noise,
) -> Anchors:
    """``draws`` anchors by the exponential mechanism with suppression, each for ``epsilon_each``.

    Sensitivity: the replaced record can only leave the ball of z_j and its replacement only enter it,
    so each count n u_j moves by at most 1; the candidates still open in a round depend only on
    earlier draws.  So each draw with weights exp(epsilon_each n u_j / 2) is
    (epsilon_each, 0)-DP, of bounded range (accountants.py), and the draws compose (thm:dp_init_privacy).  Counts are
    exact; the weights are set for a hair less than epsilon_each, which pays for the rounding of the log-weights
    (numerics/rounding.py).
    """
    counts = ball_counts(points, candidates, radius)
    log_weights = draw_epsilon(epsilon_each, len(points)) * counts / 2
    tree = scipy.spatial.KDTree(candidates)
    open_ = np.ones(len(candidates), dtype=bool)
    chosen = []
    for _ in range(draws):
        checkpoint()
        if not open_.any():
            open_[:] = True
        pick = noise.gumbel_argmax(np.where(open_, log_weights, -math.inf))
        chosen.append(pick)
        open_[tree.query_ball_point(candidates[pick], suppression)] = False
        open_[pick] = False
    indices = np.array(chosen)
    return Anchors(
        indices=indices,
        points=candidates[indices],
        candidates=candidates,
        utilities=counts / len(points),
    )
