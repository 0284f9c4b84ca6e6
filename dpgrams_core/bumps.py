"""Bumps behind a released surface, by maximum likelihood: post-processing, so free.

A Gaussian bump of A records, centre m and spread s adds A phi(m, s) to the kernel sum, where phi is the
kernel smoothed by N(0, s^2 I).  The noise of the release is white in the RKHS of k_h, so the likelihood of
a set of bumps is exp(-|c - sum_j A_j phi_j|^2 / 2 sigma^2), and in that norm

    <c, phi(m, s)>                = the surface smoothed to sqrt(h^2 + s^2), at m,
    <phi(m, s), phi(m', s')>      = (h^2/q)^(d/2) exp(-|m - m'|^2 / 2q),   q = h^2 + s^2 + s'^2.

So everything needs only values of the surface.  Bumps are found one by one (matching pursuit: the place and
spread with the largest <c, phi> / (sigma |phi|), in units of the noise) and fitted together at the end.  When the
count is known and a bump barely stands above the noise, its place is the posterior mean (bump_posterior.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from dpgrams_core.bump_posterior import expected_places
from dpgrams_core.progress import checkpoint
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
SPREADS = (0.0, 0.5, 1.0, 1.5)  # tried in the search, in units of the reference spread
SPREAD_PRIOR = 0.5  # log-standard deviations of the weak priors on spread and on records per bump
RECORDS_PRIOR = 0.5
FALSE_ALARM = 0.05
WEAK = 5.0  # below this many standard deviations of the noise the best fit may sit on a peak of the noise
LOOSE = 0.25  # of the bandwidth: a posterior narrower than this is as well described by its best fit
APART = 1.5  # bandwidths between two bumps when each must be a mode of its own
MOST = 40


@dataclass(frozen=True, eq=False)
class Bumps:
    """Fitted bumps: centres (k, d), spreads (k,), records (k,), and how far each stands above the noise (k,)."""

    centres: Array
    spreads: Array
    records: Array
    significance: Array


def overlap(h: float, centres: Array, spreads: Array) -> Array:
    """Gram matrix <phi_i, phi_j> of bumps, (k, k)."""
    q = h**2 + spreads[:, None] ** 2 + spreads[None, :] ** 2
    square = ((centres[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return (h**2 / q) ** (centres.shape[1] / 2) * np.exp(-0.5 * square / q)


def detection_threshold(surface: ReleasedSurface) -> float:
    """Height, in noise units, that pure noise passes anywhere in the box with at most about 5 %.

    A union bound over the places that are about independent, two per bandwidth along each side.
    """
    sides = (surface.box[:, 1] - surface.box[:, 0]) / surface.bandwidth
    places = float(np.prod(2 * sides + 1))
    return float(-ndtri(FALSE_ALARM / places))


def find_bumps(surface: ReleasedSurface, count: int | None, reference_spread: float) -> Bumps:
    """``count`` bumps, or all that stand above the noise when the count is unknown (at most ``MOST``).

    There are fewer than ``count`` where the box has no place left for one more at this bandwidth.
    """
    d = surface.dimension
    limit = MOST if count is None else count
    threshold = detection_threshold(surface) if count is None else -np.inf
    centres, spreads, records = np.empty((0, d)), np.empty(0), np.empty(0)
    search = _Search(surface, reference_spread)
    for _ in range(limit):
        checkpoint()
        height, place, spread = search.best(centres, spreads, records, apart=count is not None)
        if not height > threshold:
            break
        centres = np.concatenate([centres, place[None]])
        spreads = np.append(spreads, max(spread, 0.25 * reference_spread))
        records = _masses(surface, centres, spreads, surface.n / max(len(centres), count or 0))
    if len(centres):
        share = surface.n / len(centres)
        centres, spreads, records = _fit(surface, centres, spreads, records, reference_spread, share)
    significance = _significance(surface, centres, spreads, records)
    if count is not None:
        centres = _settle_weak(surface, centres, spreads, records, significance, reference_spread)
    return Bumps(centres, spreads, records, significance)


def _settle_weak(
    surface: ReleasedSurface, centres: Array, spreads: Array, records: Array, significance: Array, reference: float
) -> Array:
    """Centres in which the weak bumps stand where they are expected instead of at the highest peak of the noise."""
    weak = np.flatnonzero(significance < WEAK)
    if len(weak) == 0:
        return centres
    mean, deviation = expected_places(
        surface,
        centres,
        spreads,
        records,
        weak,
        reference_spread=reference,
        priors=(SPREAD_PRIOR, RECORDS_PRIOR),
        apart=APART * surface.bandwidth,
    )
    loose = deviation.max(axis=1) > LOOSE * surface.bandwidth
    settled = centres.copy()
    settled[weak[loose]] = mean[loose]
    return settled


def _masses(surface: ReleasedSurface, centres: Array, spreads: Array, share: float) -> Array:
    """Records per bump by least squares with places and spreads held, pulled weakly to an equal share."""
    gram = overlap(surface.bandwidth, centres, spreads)
    pull = (surface.noise_scale / (RECORDS_PRIOR * share)) ** 2
    right = surface.value(centres, np.hypot(surface.bandwidth, spreads)) + pull * share
    masses = np.linalg.solve(gram + pull * np.eye(len(gram)), right)
    return np.clip(masses, 0.05 * share, 5 * share)


class _Search:
    """Maps of <c, phi> / (sigma |phi|) on a grid over the box, one per spread."""

    def __init__(self, surface: ReleasedSurface, reference_spread: float) -> None:
        self.surface = surface
        self.axes = [np.linspace(a, b, int(np.ceil((b - a) / (surface.bandwidth / 3))) + 1) for a, b in surface.box]
        self.nodes = np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, surface.dimension)
        self.maps = []
        for factor in SPREADS:
            spread = factor * reference_spread
            width = float(np.hypot(surface.bandwidth, spread))
            values = surface.grid(self.axes, width).ravel()
            # Sampling noise too: the squared kernels of the records sum to at most (h/width)^d times the value.
            sampling = (surface.bandwidth / width) ** surface.dimension * np.maximum(values, 0.0)
            self.maps.append((spread, values, np.sqrt(surface.noise_grid(self.axes, width).ravel() ** 2 + sampling)))

    def best(self, centres: Array, spreads: Array, records: Array, apart: bool) -> tuple[float, Array, float]:
        """The highest place once the bumps found so far are taken away: height in noise units, place, spread.

        ``apart`` keeps a new bump 1.5 bandwidths from the others: with a known number of modes each bump must be
        a mode of its own, and closer ones have no two peaks at this bandwidth.  Where no place is left, the height is
        minus infinity.
        """
        found = (-np.inf, self.nodes[0], 0.0)
        h, d = self.surface.bandwidth, self.surface.dimension
        for spread, values, noise in self.maps:
            rest = values.copy()
            for centre, other, mass in zip(centres, spreads, records, strict=True):
                q = h**2 + spread**2 + other**2
                square = ((self.nodes - centre) ** 2).sum(axis=1)
                rest -= mass * (h**2 / q) ** (d / 2) * np.exp(-0.5 * square / q)
            height = rest / noise
            if apart:
                for centre in centres:
                    height[((self.nodes - centre) ** 2).sum(axis=1) < (APART * h) ** 2] = -np.inf
            top = int(np.argmax(height))
            if height[top] > found[0]:
                found = (float(height[top]), self.nodes[top], spread)
        return found


def _fit(
    surface: ReleasedSurface, centres: Array, spreads: Array, records: Array, reference: float, share: float
) -> tuple[Array, Array, Array]:
    """Joint maximum of likelihood and weak priors over all bumps, by L-BFGS with the exact gradient."""
    k, d = centres.shape
    h, variance = surface.bandwidth, surface.noise_scale**2

    def unpack(theta: Array) -> tuple[Array, Array, Array]:
        table = theta.reshape(k, d + 2)
        return table[:, :d] * reference, np.exp(table[:, d]) * reference, np.exp(table[:, d + 1]) * share

    def loss(theta: Array) -> tuple[float, Array]:
        checkpoint()
        m, s, a = unpack(theta)
        width = np.hypot(h, s)
        heights, slopes, bends = surface.heat(m, width)
        gram = overlap(h, m, s)
        q = h**2 + s[:, None] ** 2 + s[None, :] ** 2
        gap = m[:, None, :] - m[None, :, :]
        square = (gap**2).sum(axis=-1)
        both = a[:, None] * a[None, :] * gram
        value = (0.5 * both.sum() - (a * heights).sum()) / variance
        # Smoothing obeys the heat equation: d/d(s^2) is half the Laplacian.
        by_centre = (-(both[:, :, None] * gap / q[:, :, None]).sum(axis=1) - a[:, None] * slopes) / variance
        by_square = ((both * (0.5 * square / q**2 - 0.5 * d / q)).sum(axis=1) - 0.5 * a * bends) / variance
        by_mass = (gram @ a - heights) / variance
        table = theta.reshape(k, d + 2)
        value += 0.5 * ((table[:, d] / SPREAD_PRIOR) ** 2).sum() + 0.5 * ((table[:, d + 1] / RECORDS_PRIOR) ** 2).sum()
        slope = np.column_stack(
            [
                by_centre * reference,
                by_square * 2 * s**2 + table[:, d] / SPREAD_PRIOR**2,
                by_mass * a + table[:, d + 1] / RECORDS_PRIOR**2,
            ]
        )
        return float(value), slope.ravel()

    start = np.column_stack([centres / reference, np.log(spreads / reference), np.log(records / share)]).ravel()
    low, high = surface.box[:, 0] / reference, surface.box[:, 1] / reference
    bounds = [*zip(low, high, strict=True), (-3.0, 1.5), (-4.0, 2.0)] * k
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60, "ftol": 1e-7})
    return unpack(result.x)


def _significance(surface: ReleasedSurface, centres: Array, spreads: Array, records: Array) -> Array:
    """How far each bump stands above the noise: its own matched height once the others are taken away."""
    if len(centres) == 0:
        return np.empty(0)
    gram = overlap(surface.bandwidth, centres, spreads)
    width = np.hypot(surface.bandwidth, spreads)
    others = gram @ records - np.diag(gram) * records
    return (surface.value(centres, width) - others) / (surface.noise_scale * np.sqrt(np.diag(gram)))
