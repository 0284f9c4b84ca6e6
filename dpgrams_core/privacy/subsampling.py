"""Rényi price of Gaussian rounds on batches drawn without replacement, for all orders at once.

The bound is theorem 27 of Wang, Balle & Kasiviswanathan (2019), for replace-one neighbours and any
mechanism whose batch statistic has a bounded sensitivity; dp-accounting computes the same one.  Here it is
vectorised (its loops take about a second, a slider needs milliseconds), and the central moments, which
dp-accounting takes as alternating sums that cancel, are integrals of a positive function (at multiplier
300, share 0.145 and 7 rounds cancellation makes dp-accounting say 0.063 where the theorem gives 0.008).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

Array = np.ndarray

_WHOLE_ORDERS = np.unique(np.concatenate([np.arange(2, 65), np.geomspace(65, 2048, 45).astype(int)]))
_BROKEN_ORDERS = np.concatenate([np.arange(1.02, 2, 0.02), np.arange(2.1, 11, 0.1)])
_ALWAYS = 16  # the largest order that is kept however little noise there is
_STEP = 0.25  # of the integration, in standard deviations; its relative error is below exp(-100)


def subsampled_gaussian_epsilon(multiplier: float, share: float, rounds: int, delta: float) -> float:
    """epsilon at ``delta`` of ``rounds`` Gaussian releases, each on a fresh ``share`` of the records.

    ``multiplier`` is the noise over the sensitivity of the batch statistic under replace-one.

    >>> round(subsampled_gaussian_epsilon(4.0, 0.145, 7, 1e-6), 4)  # as dp-accounting has it
    0.7754
    """
    orders, moments = cumulants(multiplier, share)
    return epsilon_of_renyi(orders, rounds * moments / (orders - 1), delta)


def cumulants(multiplier: float, share: float) -> tuple[Array, Array]:
    """Orders and (order - 1) times the Rényi divergence of one round, bounded by theorem 27.

    Orders far above the multiplier never give the least epsilon and are left out; that is always valid
    (any subset of orders is) and keeps the price monotone in the multiplier.
    """
    whole = _orders_up_to(max(_ALWAYS, math.floor(64 * multiplier)))
    terms = _log_moment_bounds(multiplier, int(whole[-1]))  # the terms j = 2, 3, ...
    j = np.arange(2, 2 + len(terms))
    weighted = _log_binomials(int(whole[-1])) + j * math.log(share) + terms
    at_whole = np.logaddexp(0.0, logsumexp(weighted, axis=1))
    # Between whole orders the cumulant lies below its chord (corollary 10); it is 0 at order 1.
    chord = np.interp(_BROKEN_ORDERS, np.append(1, whole), np.append(0.0, at_whole))
    return np.append(whole, _BROKEN_ORDERS), np.append(at_whole, chord)


def epsilon_of_renyi(orders: Array, divergences: Array, delta: float) -> float:
    """The least epsilon at ``delta`` over the orders (Canonne, Kamath & Steinke 2020, proposition 12)."""
    if bool((delta**2 + np.expm1(-divergences) > 0).any()):
        return 0.0  # delta <= sqrt(1 - exp(-divergence)), by Bretagnolle and Huber
    bounds = divergences + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(bounds.min()))


def _orders_up_to(largest: int) -> Array:
    return _WHOLE_ORDERS[: int(np.searchsorted(_WHOLE_ORDERS, largest, side="right"))]


@lru_cache(maxsize=8)
def _log_binomials(largest: int) -> Array:
    """log C(order, j) for the whole orders up to ``largest`` (rows), j = 2..largest (columns); -inf for j > order."""
    orders = _orders_up_to(largest)[:, None]
    j = np.arange(2, largest + 1)[None, :]
    table = gammaln(orders + 1) - gammaln(j + 1) - gammaln(np.maximum(orders - j, 0) + 1)
    return np.where(j <= orders, table, -np.inf)


def _log_moment_bounds(multiplier: float, largest: int) -> Array:
    """log of the factor of share^j C(order, j) in theorem 27, j = 2..largest."""
    j = np.arange(2, largest + 1)
    central = log_central_moments(multiplier, largest + 1)  # even orders 2, 4, ...
    below, above = central[j // 2 - 1], central[(j + 1) // 2 - 1]
    ternary = math.log(4) + 0.5 * (below + above)
    plain = math.log(2) + 0.5 * j * (j - 1) / multiplier**2
    return np.minimum(ternary, plain)


def log_central_moments(multiplier: float, largest: int) -> Array:
    """log E(L - 1)^l for even l = 2, 4, .. up to ``largest``, L the likelihood ratio of two Gaussians.

    The two are one sensitivity apart, log L is N(-s^2/2, s^2) with s = 1/multiplier.  The sum over a uniform
    grid of a smooth positive function is exact to rounding.

    >>> import numpy as np
    >>> np.allclose(np.exp(log_central_moments(2.0, 2)), np.expm1(0.25))
    True
    """
    s = 1 / multiplier
    reach = math.sqrt(largest) + 12
    u = np.arange(-reach, largest * s + reach, _STEP)
    x = s * u - 0.5 * s * s
    with np.errstate(divide="ignore"):  # a grid point at x = 0 adds nothing
        size = np.maximum(x, 0.0) + np.log(-np.expm1(-np.abs(x)))
    density = -0.5 * u * u + math.log(_STEP / math.sqrt(2 * math.pi))
    even = np.arange(2, largest + 1, 2)
    return logsumexp(even[:, None] * size[None, :] + density[None, :], axis=1)
