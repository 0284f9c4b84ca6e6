"""Released surfaces read together: the same places on many surfaces of one box and bandwidth, and fits of many bumps.

One run asks a surface hundreds of times for its height at a few places, and most of that time is spent in calls, not
in sums.  Here the places of many runs are one table.  Nothing depends on who else is in it: what is not computed number
by number (products of matrices, sums over a run's bumps) is computed for each run by itself, in the same order.  So a
run gives the same numbers alone and among others, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.merging import limited_step
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
Losses = Callable[[list[int], list[Array]], tuple[list[float], list[Array]]]
STILL = 1e-10
PLACES = 128  # that are looked at in one step
MEMORY, LINE_SEARCH, FLAT = 10, 20, 1e-5  # of L-BFGS-B, as SciPy has them
WANTS_LOSS, NEW_ITERATION, STOPPED, TOO_MANY = 3, 1, 5, 504  # its words


class Surfaces:
    """Some surfaces in the plane over one box, of one bandwidth."""

    def __init__(self, surfaces: Sequence[ReleasedSurface]) -> None:
        first = surfaces[0]
        if any(not np.array_equal(one.box, first.box) or one.bandwidth != first.bandwidth for one in surfaces):
            raise ValueError("surfaces that are read together have one box and one bandwidth")
        self.bandwidth, self._bases = first.bandwidth, first.bases
        self._tables = [one.coefficients @ self._bases[1].whitening for one in surfaces]
        self._axis = np.repeat([0, 1], [len(basis.nodes) for basis in self._bases])
        self._nodes = np.concatenate([basis.nodes for basis in self._bases])[:, None]

    def heat(self, x: Array, width: Array | float, who: list[int], ends: list[int]) -> tuple[Array, Array, Array]:
        """Value (k,), gradient (k, 2) and Laplacian (k,) at x (k, 2), of which each surface of ``who`` has some rows.

        Its rows are those between one of ``ends``, which begin with 0, and the next.
        """
        by_second, by_first = self._contracted(x, width, who, ends, 3)
        slope = np.empty(x.shape)
        slope[:, 0], slope[:, 1] = by_first[0], by_second[1]
        return by_second[0], slope, by_first[1] + by_second[2]

    def slope(self, x: Array, width: Array | float, who: list[int], ends: list[int]) -> tuple[Array, Array]:
        """Value and gradient alone."""
        by_second, by_first = self._contracted(x, width, who, ends, 2)
        slope = np.empty(x.shape)
        slope[:, 0], slope[:, 1] = by_first[0], by_second[1]
        return by_second[0], slope

    def _contracted(
        self, x: Array, width: Array | float, who: list[int], ends: list[int], orders: int
    ) -> tuple[Array, Array]:
        """Derivatives by the second column (orders, k), and those of order 1 and up by the first (orders - 1, k)."""
        if len(x) == 1:  # beside an empty column: a sum over one alone would be taken in another order
            by_second, by_first = self._contracted(np.repeat(x, 2, axis=0), np.repeat(width, 2), who, ends, orders)
            return by_second[:, :1], by_first[:, :1]
        narrow = 1 / np.asarray(width)
        u = (x.T.take(self._axis, axis=0) - self._nodes) * narrow
        kernels = np.empty((len(u), orders, len(x)))
        square = u * u
        bell = np.multiply(np.exp(-0.5 * square), self.bandwidth * narrow, out=kernels[:, 0])
        u *= -narrow
        np.multiply(bell, u, out=kernels[:, 1])
        if orders == 3:
            square -= 1
            square *= narrow * narrow
            np.multiply(bell, square, out=kernels[:, 2])
        one = self._bases[0].whitening
        left, right = kernels[: one.shape[1]], kernels[one.shape[1] :]
        shape = (len(one), orders)
        if len(who) == 1 and ends[1] == len(x):
            first = (one @ left.reshape(len(left), -1)).reshape(*shape, -1)
            half = (self._tables[who[0]] @ right.reshape(len(right), -1)).reshape(*shape, -1)
        else:
            first, half = np.zeros((2, *shape, len(x)))
            for number, (low, high) in zip(who, pairwise(ends), strict=True):
                first[..., low:high] = (one @ left[..., low:high].reshape(len(left), -1)).reshape(*shape, high - low)
                own = self._tables[number] @ right[..., low:high].reshape(len(right), -1)
                half[..., low:high] = own.reshape(*shape, high - low)
        products = np.empty((len(one), 2 * orders - 1, len(x)))
        np.multiply(first[:, :1], half, out=products[:, :orders])
        np.multiply(first[:, 1:], half[:, :1], out=products[:, orders:])
        sums = np.add.reduce(products, axis=0)
        return sums[:orders], sums[orders:]

    def climbs(self, starts: Sequence[Array], steps: int, width: float, floors: Sequence[float]) -> list[Array]:
        """For each surface its paths (steps + 1, k, 2) of mean shift from its own starts (``merging.climb``).

        A few surfaces at a time: what a step needs then stays in the processor's cache.
        """
        paths: list[Array] = []
        for group in _groups([len(some) for some in starts]):
            ends = [0, *np.cumsum([len(starts[number]) for number in group]).tolist()]
            at = np.concatenate([starts[number] for number in group])
            floor = np.repeat([floors[number] for number in group], np.diff(ends))
            path = [at]
            for _ in range(steps if len(at) else 0):
                checkpoint()
                value, slope = self.slope(path[-1], width, group, ends)
                path.append(path[-1] + limited_step(value, slope, floor, width))
            whole = np.stack(path) if len(at) else np.empty((steps + 1, 0, 2))
            paths.extend(whole[:, low:high] for low, high in pairwise(ends))
        return paths

    def ends(self, starts: Sequence[Array], steps: int, width: float, floors: Sequence[float]) -> list[Array]:
        """Where such climbs end (k, 2); a surface whose places all move less than ``STILL`` bandwidths has ended."""
        at = list(starts)
        for group in _groups([len(some) for some in starts]):
            left: list[int] = []
            rest = [number for number in group if len(starts[number])]
            for _ in range(steps):
                checkpoint()
                if rest != left:
                    left, ends = rest, [0, *np.cumsum([len(at[number]) for number in rest]).tolist()]
                    x = np.concatenate([at[number] for number in left]) if left else np.empty((0, 2))
                    floor = np.repeat([floors[number] for number in left], np.diff(ends))
                if not left:
                    break
                step = limited_step(*self.slope(x, width, left, ends), floor, width)
                moving, x = np.abs(step).max(axis=1) > STILL * width, x + step
                rows = list(zip(left, pairwise(ends), strict=True))
                for number, (low, high) in rows:
                    at[number] = x[low:high]
                rest = [number for number, (low, high) in rows if moving[low:high].any()]
        return at


def _groups(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of consecutive surfaces that have at most ``PLACES`` places together, or one that has more."""
    group: list[int] = []
    for number, size in enumerate(sizes):
        if group and sum(sizes[other] for other in group) + size > PLACES:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


class _Descent:
    """One run of SciPy's L-BFGS-B that says when it wants a loss instead of calling for it."""

    def __init__(self, step: Any, start: Array, low: Array, high: Array, most: int, tolerance: float) -> None:
        size, m, self._step = len(start), MEMORY, step
        self.x = np.clip(start, low, high)
        self._low, self._high, self._most = low, high, most
        self._factor = tolerance / np.finfo(float).eps
        self._bound, self._whole = np.full(size, 2, dtype=np.int32), np.zeros(3 * size, dtype=np.int32)
        self._work = np.zeros(2 * m * size + 5 * size + 11 * m * m + 8 * m)
        self._kept: list[Array] = [
            np.zeros(2, dtype=np.int32),
            np.zeros(4, dtype=np.int32),
            np.zeros(44, dtype=np.int32),
            np.zeros(29),
        ]
        self._line = np.zeros(2, dtype=np.int32)
        self._iterations = 0

    def wants(self, value: Any, slope: Array) -> bool:
        """Go on from a loss and its slope at ``x`` to the next ``x`` where they are wanted; False where it ends."""
        task = self._kept[0]
        while True:
            self._step(
                MEMORY, self.x, self._low, self._high, self._bound, value, slope, self._factor, FLAT,
                self._work, self._whole, *self._kept, LINE_SEARCH, self._line,
            )  # fmt: skip
            if task[0] == WANTS_LOSS:
                return True
            if task[0] != NEW_ITERATION:
                return False
            self._iterations += 1
            if self._iterations >= self._most:
                task[:] = STOPPED, TOO_MANY


def minimised(
    losses: Losses, starts: Sequence[Array], low: Sequence[Array], high: Sequence[Array], most: int, tolerance: float
) -> list[Array]:
    """Where L-BFGS-B ends from each start within its bounds; all runs that want a loss get it in one call.

    SciPy's own steps, but it offers no way to be asked for them one by one: so the function behind ``minimize`` is
    called, and tests/unit/numerics/test_together.py holds it against ``minimize`` to the last digit.
    """
    from scipy.optimize import _lbfgsb  # here, since it takes its time to load

    runs = [_Descent(_lbfgsb.setulb, *each, most, tolerance) for each in zip(starts, low, high, strict=True)]
    waiting = [number for number, run in enumerate(runs) if run.wants(np.array(0.0), np.zeros(len(run.x)))]
    while waiting:
        checkpoint()
        values, slopes = losses(waiting, [runs[number].x for number in waiting])
        answered = zip(waiting, values, slopes, strict=True)
        waiting = [number for number, value, slope in answered if runs[number].wants(value, slope)]
    return [run.x for run in runs]
