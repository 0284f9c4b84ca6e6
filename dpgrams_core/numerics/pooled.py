"""All rounds of a noisy ascent read together: a Gaussian-process regression, post-processing and so free.

A round releases values and scaled derivatives of one and the same kernel sum F at its points, with noise whose
covariance is known exactly: sigma^2 C, C that of values and derivatives of a process of covariance
exp(-|x - y|^2 / 2 h^2).  Later rounds stand at other points, but they are noisy linear observations of the same F.
With the prior that F is itself a Gaussian process, of standard deviation ``prior`` and covariance
exp(-|x - y|^2 / 2 l^2), its posterior mean is a weighted sum over all that was released, and its slope is known
everywhere.  The length l is above h: a record adds a bump as wide as h, records that stand together add one that is
wider, and the noise varies over h.
"""

from __future__ import annotations

import copy
import string
from typing import Any

import numpy as np
import scipy

from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.numerics.threads import threads_of

Array = np.ndarray
# Parts of the noise's and the prior's variance: they keep coinciding points from being two, and the matrix from being
# singular but for rounding, however little noise there is.
HAIR, HAIR_OF_PRIOR = 1e-6, 1e-8


def linear_covariance(a: Array, b: Array, length: float, h: float) -> Array:
    """Covariance of (f, h grad f) at the rows of ``a`` and ``b`` for a process that varies over ``length``.

    Blocks in the order of the rounds: values, then the gradients row by row, (k (1 + d), l (1 + d)).

    >>> linear_covariance(np.zeros((1, 1)), np.zeros((1, 1)), 2.0, 1.0).diagonal().tolist()
    [1.0, 0.25]
    """
    (k, d), count, ratio = a.shape, len(b), h / length
    u = (a[:, None, :] - b[None, :, :]) / length
    values = np.exp(-0.5 * np.einsum("kld,kld->kl", u, u))
    mixed = ratio * u * values[:, :, None]
    found = np.empty((k * (1 + d), count * (1 + d)))
    found[:k, :count] = values
    found[:k, count:] = mixed.reshape(k, count * d)
    found[k:, :count] = -mixed.transpose(0, 2, 1).reshape(k * d, count)
    slopes = -ratio * mixed[:, None, :, :] * u.transpose(0, 2, 1)[..., None]
    for axis in range(d):
        slopes[:, axis, :, axis] += ratio**2 * values
    found[k:, count:] = slopes.reshape(k * d, count * d)
    return found


class PooledRounds:
    """The regression over the rounds so far.

    Parameters
    ----------
    h : the bandwidth, which also scales the released derivatives.
    length : of the prior, at least about h.
    prior : its standard deviation, in the units of the sums.
    noise : sigma.
    axes : the columns whose derivatives are released; all of them, or the response alone.
    box : (d, 2), in whose units the places are.

    Examples
    --------
    >>> at = np.array([[0.0], [1.0]])
    >>> rounds = PooledRounds(h=1.0, length=1.0, prior=1e6, noise=1.0, axes=(0,), box=np.array([(0, 1)]))
    >>> rounds.add(at, np.array([1.0, 0.6065, 0.0, -0.6065]), linear_covariance(at, at, 1.0, 1.0))
    >>> height, slope = rounds.at(np.array([[0.5]]))
    >>> round(float(height[0]), 2), round(float(slope[0, 0]), 2)
    (0.88, -0.44)
    """

    def __init__(
        self, *, h: float, length: float, prior: float, noise: float, axes: tuple[int, ...], box: Array
    ) -> None:
        self.h, self.length, self.prior, self.noise, self.axes, self.box = h, length, prior, noise, axes, box
        self.shown = box  # that of the user's columns, where what was read off the rounds is in their units
        self.rounds: list[tuple[Array, Array, Array]] = []  # places, released numbers, covariance of their noise
        self.points = np.empty((0, 0))  # all that the rounds looked at

    def shown_in(self, box: Array) -> PooledRounds:
        """The same for results that are in the units of another box."""
        found = copy.copy(self)
        found.shown = box
        return found

    @property
    def unit(self) -> float:
        """The noise of a height where all rounds look at the same place: what heights are compared with."""
        return self.noise / float(np.sqrt(len(self.rounds)))

    def wanted(self, k: int, d: int) -> Array:
        """Of the values and all derivatives at k points the numbers that are released."""
        return np.concatenate([np.arange(k), (k + d * np.arange(k)[:, None] + np.array(self.axes)).ravel()])

    def add(self, at: Array, sums: Array, covariance: Array) -> None:
        """One more round: its points (k, d), the numbers that it released, and the covariance of their noise."""
        self.rounds.append((at, sums, covariance))
        d = at.shape[1]
        self.points, rows, factor = self._solver()
        values = len(self.points)
        solved = np.zeros(values * (1 + d))
        released = np.concatenate([numbers for _, numbers, _ in self.rounds])
        solved[rows] = self.prior**2 * scipy.linalg.cho_solve(factor, released)
        self._weights, self._slope_weights = solved[:values], solved[values:].reshape(values, d)

    def _solver(self) -> tuple[Array, Array, Any]:
        """All places, which of the numbers of one large round at all of them are released (values first), and the
        factor of the covariance of these: of the function and of their noise."""
        points = [place for place, _, _ in self.rounds]
        everywhere = np.concatenate(points)
        d, order = everywhere.shape[1], []
        ends = np.cumsum([0, *map(len, points)])
        for low, place in zip(ends, points, strict=False):
            wanted, k = self.wanted(len(place), d), len(place)
            slopes = wanted[k:] - k
            order.append(np.concatenate([low + np.arange(k), ends[-1] + low * d + slopes]))
        rows = np.concatenate(order)
        total = self.prior**2 * linear_covariance(everywhere, everywhere, self.length, self.h)[np.ix_(rows, rows)]
        start = 0
        for _, numbers, own in self.rounds:
            part = slice(start, start + len(numbers))
            total[part, part] += self.noise**2 * own
            start += len(numbers)
        total[np.diag_indices(len(total))] += HAIR * self.noise**2 + HAIR_OF_PRIOR * self.prior**2
        with threads_of("scipy.linalg").limit(limits=1):
            return everywhere, rows, scipy.linalg.cho_factor(total, lower=True)

    def slope_covariances(self, x: Array) -> Array:
        """What the rounds leave unknown of h times the gradient at places, (k, d, d): by their noise, and because they
        looked elsewhere."""
        everywhere, rows, factor = self._solver()
        found = []
        for place in x[:, None]:
            own = linear_covariance(place, place, self.length, self.h)[1:, 1:]
            across = linear_covariance(place, everywhere, self.length, self.h)[1:, rows]
            known = self.prior**2 * across @ scipy.linalg.cho_solve(factor, across.T)
            found.append(self.prior**2 * (own - known))
        return np.stack(found) if found else np.empty((0, x.shape[1], x.shape[1]))

    def seen(self, x: Array, bandwidths: float) -> Array:
        """Whether some round looked within so many bandwidths of each place, (k,)."""
        return np.asarray(scipy.spatial.distance.cdist(x, self.points).min(axis=1) <= bandwidths * self.h)

    def grid_in_noise(self, axes: list[Array], box: Array) -> Array:
        """Heights over their noise on a tensor grid of places in ``box``: that of the rounds, in any units.

        Those of ``at``, one axis after the other: the kernel is a product over axes.
        """
        away, kernels = [], []
        for i, axis in enumerate(axes):
            own = rescaled(np.asarray(axis)[:, None], box[[i]], self.box[[i]])
            away.append((own - self.points[:, i]) / self.length)
            kernels.append(np.exp(-0.5 * away[i] ** 2))
        names = string.ascii_lowercase[: len(axes)]
        every_axis = ",".join(f"{name}z" for name in names) + f",z->{names}"
        heights = np.einsum(every_axis, *kernels, self._weights, optimize=True)
        for i, pull in enumerate(away):
            sloped = [kernel * pull if j == i else kernel for j, kernel in enumerate(kernels)]
            weights = self.h / self.length * self._slope_weights[:, i]
            heights += np.einsum(every_axis, *sloped, weights, optimize=True)
        return np.asarray(heights / self.unit)

    def at(self, x: Array) -> tuple[Array, Array]:
        """Heights (k,) and h times gradients (k, d) of the posterior mean."""
        ratio = self.h / self.length
        places, weights = self.points / self.length, self._slope_weights
        x = x / self.length
        away = [x[:, axis, None] - places[None, :, axis] for axis in range(x.shape[1])]
        square, pull = np.zeros_like(away[0]), np.zeros_like(away[0])
        for axis, u in enumerate(away):
            square += u * u
            pull += u * weights[:, axis]
        kernel = np.exp(-0.5 * square)
        parts = kernel * (self._weights + ratio * pull)
        moments = np.stack([(parts * u).sum(axis=1) for u in away], axis=1)
        return parts.sum(axis=1), ratio**2 * (kernel @ weights) - ratio * moments
