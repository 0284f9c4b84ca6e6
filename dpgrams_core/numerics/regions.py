"""How far a mode that was read off a release may be from what it stands for: post-processing, so free.

A mode is the centre of a bump of the likeliest fit (bumps.py).  With r = (centre, log spread, log records) of all bumps
and M(r) what they add up to, the fit makes the slope of |c - M(r)|^2 / 2 sigma^2 plus the priors zero.  So to first
order it moves by H^-1 times whatever moves that slope, H being the curvature of the loss:

    noise      the coefficients c carry N(0, sigma^2 I) exactly, so the slope has the covariance J J^T / sigma^2, where
               the rows of J are the derivatives of M: in closed form, nothing is estimated;
    sampling   other records of the same law would move c by the sum of their kernels, and so the slope by a sum of J at
               the records: its variance is taken under the law of the fitted bumps, which undoes the smoothing.

The first alone gives the region of the *smoothed density*, that is of where the same reading would put the mode if
there were no noise; both give that of the *population*.  Fitting spreads takes the smoothing of round peaks back; what
it does to lopsided ones is not in the region, and ``dpgrams reproduce coverage`` shows what that costs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.bumps import Bumps, Losses, bumps_at
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import hashed

Array = np.ndarray
STEP = 1e-4  # of a central difference, in the units of the fit
DRAWS = 400  # public places for each bump that stand for its law


def tangents(h: float, bumps: Bumps, others: Bumps) -> Array:
    """Products of the derivatives of each bump by (centre, log spread, log records): (k (d + 2), l (d + 2)).

    Along one column two bumps overlap by g(u) = sqrt(h^2 / q) exp(-u^2 / 2q), q = h^2 + s^2 + s'^2; derivatives by a
    place are Hermite polynomials of u times g, those by the variance s^2 half the second derivatives by the place.
    """
    k, d = bumps.centres.shape
    q = h**2 + bumps.spreads[:, None] ** 2 + others.spreads[None, :] ** 2
    orders = []
    for j in range(d):
        u = bumps.centres[:, None, j] - others.centres[None, :, j]
        g = np.sqrt(h**2 / q) * np.exp(-0.5 * u * u / q)
        v, w = u / q, 1 / q
        orders.append([g, -v * g, (v * v - w) * g, (3 * v * w - v**3) * g, (v**4 - 6 * v * v * w + 3 * w * w) * g])
    # Rows and columns name what is derived: place along a column (once), spread (twice along any), records (nothing).
    kinds = [[(j, 1)] for j in range(d)] + [[(j, 2) for j in range(d)], [(0, 0)]]
    scale = [[some.records] * d + [some.records * some.spreads**2, some.records] for some in (bumps, others)]
    found = np.zeros((k, d + 2, len(others.centres), d + 2))
    for a, rows in enumerate(kinds):
        for b, columns in enumerate(kinds):
            for i, p in rows:
                for j, r in columns:
                    power = [0] * d
                    power[i] += p
                    power[j] += r
                    part = np.prod([orders[c][power[c]] for c in range(d)], axis=0)
                    found[:, a, :, b] += (-1) ** r * part
            found[:, a, :, b] *= scale[0][a][:, None] * scale[1][b][None, :]
    return found.reshape(k * (d + 2), -1)


def curvature(surface: BareSurface, bumps: Bumps, reference: float) -> Array:
    """The second derivatives of the loss of the fit at its end, by differences of its exact slope."""
    k, d = bumps.centres.shape
    share = surface.n / k
    theta = np.column_stack(
        [bumps.centres / reference, np.log(bumps.spreads / reference), np.log(bumps.records / share)]
    ).ravel()
    shifts = STEP * np.concatenate([np.eye(len(theta)), -np.eye(len(theta))])
    loss = Losses([surface] * len(shifts), [share] * len(shifts), [k] * len(shifts), reference)  # type: ignore[list-item]
    slopes = np.array(loss(list(range(len(shifts))), [theta + shift for shift in shifts])[1])
    ahead, behind = np.split(slopes, 2)
    found = (ahead - behind) / (2 * STEP)
    scale = np.tile([1 / reference] * d + [1.0, 1.0], k)
    return 0.5 * (found + found.T) * np.outer(scale, scale)


def law_of(bumps: Bumps, n: int) -> tuple[Bumps, Array]:
    """Public places that stand for records of the fitted bumps, as bumps without spread, and records at each."""
    d = bumps.centres.shape[1]
    unit = ndtri(hashed(DRAWS * d)).reshape(DRAWS, d)
    unit = (unit - unit.mean(axis=0)) / unit.std(axis=0)
    places = (bumps.centres[:, None] + bumps.spreads[:, None, None] * unit).reshape(-1, d)
    weights = np.repeat(n * bumps.records / bumps.records.sum() / DRAWS, DRAWS)
    return Bumps(places, np.zeros(len(places)), np.ones(len(places))), weights


def mode_covariances(surface: BareSurface, modes: Array) -> tuple[Array, Array]:
    """Covariances (k, d, d) of modes (k, d) of a release: of the noise alone, and of noise and sampling.

    The first are for the region of the smoothed density, the second for that of the population.
    """
    k, d = modes.shape
    if k == 0:
        return np.empty((0, d, d)), np.empty((0, d, d))
    reference, variance = reference_spread(surface.box), surface.noise_scale**2
    bumps = bumps_at(surface, modes, reference)
    inverse = np.linalg.pinv(curvature(surface, bumps, reference), hermitian=True)
    noise = tangents(surface.bandwidth, bumps, bumps) / variance
    places, weights = law_of(bumps, surface.n)
    each = tangents(surface.bandwidth, bumps, places)[:, d + 1 :: d + 2]  # at the records: what is not derived
    mean = each @ weights
    sampling = ((each * weights) @ each.T - np.outer(mean, mean) / surface.n) / variance**2

    def of_centres(slope: Array) -> Array:
        whole = (inverse @ slope @ inverse).reshape(k, d + 2, k, d + 2)
        return np.stack([whole[j, :d, j, :d] for j in range(k)])

    return of_centres(noise), of_centres(noise + sampling)
