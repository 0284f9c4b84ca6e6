"""The starts of DP-PMS: public predictor places, and a private response drawn for each (alg:dp-pms).

What a start costs.  Neighbours differ in one *response*; the predictors X_i are fixed and public.  The draw of
start j looks at the records of its window W_j, which the predictors alone decide: |X_i - x_j| <= h_score, or, with
bins, the bin of x_j.  Its law on the public grid has weights exp(epsilon_draw c_j(z) / 2) with
c_j(z) = N_j u_j(z), the number of responses of W_j within h_score of z.  (a) Replacing Y_i moves c_j(z) by at
most 1 where i is in W_j, so the draw is (epsilon_draw, 0)-DP, and by nothing elsewhere, so that draw keeps its
law.  (b) The draws are independent of each other.  So the joint law changes by a factor of at most
exp(epsilon_draw r_i), with r_i the number of windows that hold X_i, and all draws together are
(epsilon_draw max_i r_i, 0)-DP.  The largest overlap max_i r_i is public, as the predictors are.  In the ``tight``
calibration the same draws are priced together with the rounds (accountants.py), again as max_i r_i of them: the others
are the same in both worlds.

Hence epsilon_draw = epsilon_init / max_i r_i here.  The paper's epsilon_init / k is the special case in which every
window holds every record; for disjoint bins the overlap is 1 and each draw has all of epsilon_init.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.rounding import draw_epsilon
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray


@dataclass(frozen=True)
class Windows:
    """Public places x_j (k,) and the records that the draw at each looks at, as record numbers."""

    x: Array
    members: tuple[Array, ...]
    n: int

    @property
    def overlap(self) -> int:
        """The largest number of windows that hold one and the same record."""
        return int(np.bincount(np.concatenate(self.members), minlength=self.n).max())


def sparse_windows(predictors: Array, count: int, radius: float) -> Windows:
    """``count`` places at evenly spread ranks of the predictors, each with all records within ``radius``.

    >>> windows = sparse_windows(np.array([0.0, 0.1, 0.5, 0.9]), 2, 0.45)
    >>> windows.x.tolist(), [rows.tolist() for rows in windows.members], windows.overlap
    ([0.1, 0.9], [[0, 1, 2], [2, 3]], 2)
    """
    ordered = np.sort(predictors)
    places = ordered[((np.arange(count) + 0.5) * len(ordered) / count).astype(int)]
    members = tuple(np.flatnonzero(np.abs(predictors - x) <= radius) for x in places)
    return Windows(places, members, len(predictors))


def bin_numbers(predictors: Array, n_bins: int) -> Array:
    """The number of each record's bin, for bins of equal width from the least to the largest predictor.

    Where all predictors are equal, they are in the first bin.
    """
    low, high = float(predictors.min()), float(predictors.max())
    if low == high:
        return np.zeros(len(predictors), dtype=int)
    return np.minimum(((predictors - low) / (high - low) * n_bins).astype(int), n_bins - 1)


def most_filled_bins(predictors: Array, at_most: int) -> int:
    """The largest number of bins, up to ``at_most``, of which none is empty; 1 always is possible."""
    counts = range(at_most, 0, -1)
    return next(count for count in counts if len(np.unique(bin_numbers(predictors, count))) == count)


def binned_windows(predictors: Array, n_bins: int) -> Windows:
    """One place in the middle of each bin; its window is the bin, so that no two share a record.

    >>> windows = binned_windows(np.array([0.0, 0.1, 0.6, 1.0]), 2)
    >>> windows.x.tolist(), [rows.tolist() for rows in windows.members], windows.overlap
    ([0.25, 0.75], [[0, 1], [2, 3]], 1)
    """
    bins = bin_numbers(predictors, n_bins)
    empty = n_bins - len(np.unique(bins))
    if empty:
        most = most_filled_bins(predictors, n_bins)
        raise SpecError("n_bins", n_bins, f"{empty} of these bins would hold no record; {most} bins are all filled")
    low, high = float(predictors.min()), float(predictors.max())
    places = low + (np.arange(n_bins) + 0.5) / n_bins * (high - low)
    return Windows(places, tuple(np.flatnonzero(bins == number) for number in range(n_bins)), len(predictors))


def window_counts(responses: Array, windows: Windows, grid: Array, radius: float) -> Array:
    """c_j(z) = N_j u_j(z): responses of window j within ``radius`` of z, (k, len(grid)).

    Notes
    -----
    Cost O(sum_j N_j len(grid)) time, one window at a time.
    """
    counts = np.zeros((len(windows.members), len(grid)), dtype=int)
    for row, members in enumerate(windows.members):
        checkpoint()
        for part in np.array_split(responses[members], len(members) // 10_000 + 1):
            counts[row] += (np.abs(part[:, None] - grid) <= radius).sum(axis=0)
    return counts


@dataclass(frozen=True)
class Starts:
    """The joint states (x_j, y_j) (private) with the utilities that led to them (not private)."""

    points: Array
    utilities: Array


def draw_starts(
    responses: Array, windows: Windows, grid: Array, *, epsilon_each: float, radius: float, noise: Noise
) -> Starts:
    """One response of the public grid for each window, by the exponential mechanism with ``epsilon_each``.

    Priced as ``windows.overlap`` draws, by the argument at the top of this file.  Counts are exact; a hair of epsilon
    pays for the rounding of the log-weights (numerics/rounding.py).
    """
    counts = window_counts(responses, windows, grid, radius)
    epsilon_draw = draw_epsilon(epsilon_each, len(responses))
    picks = [noise.gumbel_argmax(epsilon_draw * row / 2) for row in counts]
    sizes = np.array([max(len(rows), 1) for rows in windows.members])
    return Starts(
        points=np.stack([windows.x, grid[picks]], axis=1),
        utilities=counts / sizes[:, None],
    )
