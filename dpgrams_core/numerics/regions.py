"""How far a mode that was read off a release may be from what it stands for: post-processing, so free.

A mode is the centre of a bump of the likeliest fit (bumps.py).  With r = (centre, log spread, log records) of all bumps
and M(r) what they add up to, the fit makes the slope of |c - M(r)|^2 / 2 sigma^2 plus the priors zero.  So to first
order it moves by H^-1 times whatever moves that slope, H being the curvature of the loss:

    noise      the coefficients c carry N(0, sigma^2 I) exactly, so the slope has the covariance J J^T / sigma^2, where
               the rows of J are the derivatives of M: in closed form, nothing is estimated;
    sampling   other records of the same law would move c by the sum of their kernels, and so the slope by a sum of J at
               the records: its variance is taken under the law of the fitted bumps, which undoes the smoothing.

The first alone gives the region of the *smoothed density*, that is of where the same reading would put the mode if
there were no noise; both, and what follows, give that of the *population*.  To second order the noise also bends the
loss, by a share of 1 / s where a bump stands s standard deviations above it; what it moves is taken to be larger by
``BENT`` / s (chosen on other shapes by benchmarks/pilot_noise.py).

Fitting spreads takes the smoothing of round peaks back, but a round bump stands beside the top of a lopsided one: its
narrow part and its wide part have other middles.  How a bump changes when its wide part drifts along a column is
T = d^2 M / d(log spread) d(centre).  One Newton step from the end of the fit gives the drift kappa of each mode, with
its covariance from noise and sampling as above; with it the top of a bump is (d + 2) kappa farther back, and the fit
gives way by H^-1 J^T T kappa / sigma^2.  Before it is seen a mode is taken to be lopsided with the chance ``LOPSIDED``,
and kappa then to be normal; given the release, lopsidedness has another chance and moves the mode by an expected square
along every column.  The region is widened until it holds the mode with 95% over both cases.  A drift of first order is
too simple for any shape, so this is an allowance and not a law: ``dpgrams reproduce coverage`` shows what it is worth,
and benchmarks/pilot_lopsided.py chose its two numbers on other shapes.  The kernel of a sketch is not exact either;
what it is off by over the box counts as noise there.

A peak of the release smoothed further is a zero of its slope, so the noise moves it by H^-1 times that of the slope,
with H the curvature there.  That is exact to first order, and again a region of the smoothed density.
"""

from __future__ import annotations

import numpy as np
import scipy

from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.bumps import Bumps, Losses, bumps_at
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import ReleasedSketch, error_scale, hashed, public_points
from dpgrams_core.numerics.threads import threads_of

Array = np.ndarray
STEP = 1e-4  # of a central difference, in the units of the fit
PLACES = 4_096
DRAWS = 400  # public places for each bump that stand for its law
# The share of lopsided modes, and the spread of kappa in units of the bump's own (benchmarks/pilot_lopsided.py).
LOPSIDED, DRIFT = 0.1, 0.15
BENT = 1.0
HELD, HALVINGS = 0.95, 30  # what a region promises, and how finely it is sought


def tangents(h: float, bumps: Bumps, others: Bumps, records: bool = False) -> Array:
    """Products of what bumps change by: (k (2 d + 2), l (2 d + 2)), for each the derivatives of what it adds to the sum
    by centre, log spread and log records, and those by centre and log spread both (drifts).  With ``records`` the
    others stand for single records, and of them only the derivative by log records is taken: (k (2 d + 2), l).

    Along one column two bumps overlap by g(u) = sqrt(h^2 / q) exp(-u^2 / 2q), q = h^2 + s^2 + s'^2; derivatives by a
    place are those of g, and the one by the variance s^2 is half the Laplacian.
    """
    k, d = bumps.centres.shape
    q = h**2 + bumps.spreads[:, None] ** 2 + others.spreads[None, :] ** 2
    orders = []
    for j in range(d):
        u = bumps.centres[:, None, j] - others.centres[None, :, j]
        derived = [np.sqrt(h**2 / q) * np.exp(-0.5 * u * u / q)]
        derived.append(-u / q * derived[0])
        for n in range(1, 6):  # those of a Gaussian, as Hermite polynomials have it
            derived.append(-(u * derived[n] + n * derived[n - 1]) / q)
        orders.append(derived)
    once, twice = np.eye(d, dtype=int), 2 * np.eye(d, dtype=int)
    kinds = [once[[j]] for j in range(d)] + [twice, np.zeros((1, d), dtype=int)] + [once[j] + twice for j in range(d)]
    scale = [
        [some.records] * d + [some.records * some.spreads**2, some.records] + [some.records * some.spreads**2] * d
        for some in (bumps, others)
    ]
    taken = [d + 1] if records else range(len(kinds))
    found = np.zeros((k, len(kinds), len(others.centres), len(taken)))
    for a, rows in enumerate(kinds):
        for b, number in enumerate(taken):
            for row in rows:
                for column in kinds[number]:
                    part = np.prod([orders[j][n] for j, n in enumerate(row + column)], axis=0)
                    found[:, a, :, b] += (-1) ** int(column.sum()) * part
            found[:, a, :, b] *= scale[0][a][:, None] * scale[1][number][None, :]
    return found.reshape(k * len(kinds), -1)


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
    unit = scipy.special.ndtri(hashed(DRAWS * d)).reshape(DRAWS, d)
    unit = (unit - unit.mean(axis=0)) / unit.std(axis=0)
    places = (bumps.centres[:, None] + bumps.spreads[:, None, None] * unit).reshape(-1, d)
    weights = np.repeat(n * bumps.records / bumps.records.sum() / DRAWS, DRAWS)
    return Bumps(places, np.zeros(len(places)), np.ones(len(places))), weights


def mode_covariances(surface: BareSurface, modes: Array) -> tuple[Array, Array]:
    """Covariances (k, d, d) of modes (k, d) of a release: of the noise alone, and of noise, sampling and lopsidedness.

    The first are for the region of the smoothed density, the second for that of the population.
    """
    k, d = modes.shape
    if k == 0:
        return np.empty((0, d, d)), np.empty((0, d, d))
    with threads_of("scipy.linalg").limit(limits=1):
        return _by_noise_and_all(surface, modes)


def _by_noise_and_all(surface: BareSurface, modes: Array) -> tuple[Array, Array]:
    k, d = modes.shape
    reference, variance = reference_spread(surface.box), surface.noise_scale**2
    bumps = bumps_at(surface, modes, reference)
    number = np.arange(k * (2 * d + 2)).reshape(k, 2 * d + 2)
    fitted, drifts = number[:, : d + 2].ravel(), number[:, d + 2 :].ravel()
    inverse = np.linalg.pinv(curvature(surface, bumps, reference), hermitian=True)
    noise = tangents(surface.bandwidth, bumps, bumps) / variance
    places, weights = law_of(bumps, surface.n)
    each = tangents(surface.bandwidth, bumps, places, records=True)
    mean = each @ weights
    sampling = ((each * weights) @ each.T - np.outer(mean, mean) / surface.n) / variance**2
    every = _kernel_error(surface) * noise + sampling

    def of_centres(slope: Array) -> Array:
        whole = (inverse @ slope[np.ix_(fitted, fitted)] @ inverse).reshape(k, d + 2, k, d + 2)
        return np.stack([whole[j, :d, j, :d] for j in range(k)])

    away = np.zeros((len(drifts), number.size))  # of all slopes: what the fit leaves of those by the drifts
    away[:, drifts] = np.eye(len(drifts))
    away[:, fitted] = -noise[np.ix_(drifts, fitted)] @ inverse
    step = np.linalg.pinv(away @ noise[:, drifts], hermitian=True)
    kappa = step @ (_drift_slopes(surface, bumps) / variance)
    uncertain = step @ away @ every @ away.T @ step
    moves = away[:, fitted].reshape(k * d, k, d + 2)[:, :, :d].reshape(k * d, k * d).T - (d + 2) * np.eye(k * d)
    both, by_noise = of_centres(every), of_centres(noise)
    norms = (1 + 2 * (bumps.spreads / surface.bandwidth) ** 2) ** (-d / 4)  # of what a bump of one record adds
    bent = by_noise * (BENT * surface.noise_scale / (bumps.records * norms))[:, None, None]
    both += bent
    for j, spread in enumerate(bumps.spreads):
        own = slice(j * d, (j + 1) * d)
        both[j] = widened(both[j], *lopsidedness(kappa[own], uncertain[own, own], spread, moves[own, own]))
    return by_noise + bent, both


def _kernel_error(surface: BareSurface) -> float:
    """How much larger than the noise is what a release is off by, as squares: the kernel of a sketch is not exact."""
    if not isinstance(surface, ReleasedSketch):
        return 1.0
    values = surface.value(public_points(surface.box, PLACES))
    noise = float(surface.noise_at(surface.box.mean(axis=1)[None])[0])
    return (error_scale(values, noise, surface.box, surface.bandwidth, surface.blocks) / noise) ** 2


def _drift_slopes(surface: BareSurface, bumps: Bumps) -> Array:
    """Products of what the bumps leave of the release with the drift of each bump along each column, (k d,)."""

    def left(log_factor: float) -> Array:
        width = np.hypot(surface.bandwidth, bumps.spreads * np.exp(log_factor))
        known = bumps.heights(bumps.centres, width, surface.bandwidth)[1]
        return np.asarray(surface.heat(bumps.centres, width)[1] - known)

    return ((left(STEP) - left(-STEP)) / (2 * STEP) * bumps.records[:, None]).ravel()


def lopsidedness(kappa: Array, covariance: Array, spread: float, moves: Array) -> tuple[float, float]:
    """How likely a mode is lopsided, and the expected square of how far it is then moved by drifts through ``moves``,
    for an estimate ``kappa`` (d,) of its drift with its covariance."""
    prior = (DRIFT * spread) ** 2 * np.eye(len(kappa))
    covariance = covariance + 1e-9 * prior
    shrink = prior @ np.linalg.inv(prior + covariance)
    # Twice the logarithm of how much likelier the estimate is for a lopsided mode than for another one.
    size = np.linalg.slogdet(np.eye(len(kappa)) + np.linalg.solve(covariance, prior))[1]
    evidence = kappa @ np.linalg.solve(covariance, shrink @ kappa) - size
    moved = moves @ shrink @ kappa
    square = moved @ moved + np.trace(moves @ shrink @ covariance @ moves.T)
    return float(scipy.special.expit(0.5 * evidence + scipy.special.logit(LOPSIDED))), float(square)


def widened(covariance: Array, chance: float, square: float) -> Array:
    """The least covariance + t I whose region holds a normal error of ``covariance`` or, with that chance, of it and
    ``square`` along every column, with ``HELD`` over both."""
    d = len(covariance)
    plain = np.linalg.eigvalsh(covariance)

    def held(more: float, t: float) -> float:
        """The chance of the region of + t I where the error is of + more I: a sum of squares, by its two moments."""
        weights = (plain + more) / (plain + t)
        freedom = weights.sum() ** 2 / (weights**2).sum()
        return float(scipy.special.chdtr(freedom, scipy.special.chdtri(d, 1 - HELD) * freedom / weights.sum()))

    low, high = 0.0, square
    for _ in range(HALVINGS):
        t = (low + high) / 2
        if (1 - chance) * held(0.0, t) + chance * held(square, t) < HELD:
            low = t
        else:
            high = t
    return np.asarray(covariance + high * np.eye(d))


def peak_covariances(surface: BareSurface, peaks: Array, width: float) -> Array:
    """Covariances (k, d, d) by the noise of the peaks (k, d) of a release that is smoothed to a width.

    Noise that is white in the norm of k_h has, smoothed to w, the correlation exp(-|u|^2 / 2q) with q = 2 w^2 - h^2; so
    its slope has the variance of its value over q along every column.
    """
    k, d = peaks.shape
    if k == 0:
        return np.empty((0, d, d))
    step = STEP * width * np.eye(d)
    ahead, behind = (surface.gradient((peaks + sign * step[:, None]).reshape(-1, d), width) for sign in (1, -1))
    bends = ((ahead - behind) / (2 * STEP * width)).reshape(d, k, d).swapaxes(0, 1)
    inverse = np.linalg.pinv(0.5 * (bends + bends.swapaxes(1, 2)), hermitian=True)
    slope = surface.noise_at(peaks, width) ** 2 / (2 * width**2 - surface.bandwidth**2)
    return np.asarray(slope[:, None, None] * (inverse @ inverse))


def round_covariances(rounds: PooledRounds, modes: Array) -> tuple[Array, Array]:
    """Covariances (k, d, d) of the peaks (k, d) of what rounds show together: by their noise and by where they did not
    look; and by sampling and lopsidedness, too.  NaN where there is no peak.

    A peak is a zero of the slope, of which the rounds leave a known part unknown.  Other records of the same law would
    move it by the slopes of their kernels, whose squares are those of a kernel of h / sqrt 2.  A lopsided mode is moved
    by smoothing, which nothing undoes here: it is allowed for as if nothing were seen of it.
    """
    k, d = modes.shape
    if k == 0:
        return np.empty((0, d, d)), np.empty((0, d, d))
    h = rounds.h
    step = STEP * h * np.eye(d)
    ahead, behind = (rounds.at((modes + sign * step[:, None]).reshape(-1, d))[1] for sign in (1, -1))
    bends = ((ahead - behind) / (2 * STEP * h)).reshape(d, k, d).swapaxes(0, 1)  # of h times the gradient
    bends = 0.5 * (bends + bends.swapaxes(1, 2))
    peak = (np.linalg.eigvalsh(bends).max(axis=1) < 0)[:, None, None]
    inverse = np.linalg.inv(np.where(peak, bends, np.eye(d)))
    heights, slopes = rounds.at(modes)
    short = np.einsum("kij,kj->ki", inverse, slopes)  # how far the climb ended from the peak
    noise = inverse @ rounds.slope_covariances(modes) @ inverse + short[:, :, None] * short[:, None, :]
    heights = np.maximum(heights, 0.0)
    sampling = heights[:, None, None] * 2 ** (-d / 2 - 1) * inverse @ inverse
    spread = np.sqrt(max(rounds.length**2 - h**2, 0.0))
    moved = ((d + 2) * DRIFT * spread * h**2 / (h**2 + spread**2)) ** 2
    both = np.stack([widened(c, LOPSIDED, moved) for c in noise + sampling])
    return np.where(peak, noise, np.nan), np.where(peak, both, np.nan)
