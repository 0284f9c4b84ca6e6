"""What one event costs, by several accountants side by side.

What "noise multiplier" means in dp-accounting 0.6.0 under ``NeighboringRelation.REPLACE_ONE``
--------------------------------------------------------------------------------------------
Found by comparing with the exact curve of one Gaussian release (``gaussian_delta``); kept by
tests/unit/test_accountants.py.  Our multiplier z is noise / (change when one record is *replaced*).

- ``RdpAccountant`` with ``GaussianDpEvent(z)``: the same z.  Seven rounds at 8 cost 1.5447 at delta 1e-6,
  just above the exact 1.4357 of one release at 8 / sqrt(7).
- ``RdpAccountant`` with ``SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(z))``: the same z, of the
  *batch* statistic.  At m = n it gives 1.5447 again; at m = n - 1 it jumps to 2.20, since the theorem has a
  factor that is lost once amplification is.
- ``PLDAccountant`` with ``GaussianDpEvent(z)``: noise / (change when one record is *added*), and it takes
  replacing for twice that.  Seven rounds at 8 cost 3.0706, the exact price of one release at 4 / sqrt(7).
  Our z is its 2 z.  It does not take ``SampledWithoutReplacementDpEvent``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from dpgrams_core.checks import between, positive, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.privacy.calibration import exact_epsilon, gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease, GaussianRounds
from dpgrams_core.privacy.subsampling import subsampled_gaussian_epsilon
from dpgrams_core.progress import checkpoint

PricedEvent = GaussianRelease | GaussianRounds
_LEAST_SAMPLED_MULTIPLIER = 0.05  # below it sampling gains nothing worth its computation
# The orders dp-accounting is asked for: its loops cost order^2, and these lose below 1%.
_RENYI_ORDERS = (*(1 + x / 10 for x in range(1, 20)), *range(3, 65), 80, 96, 128, 192, 256, 512, 1024)


@dataclass(frozen=True)
class Quote:
    """epsilon by one accountant; ``None`` with the reason where it cannot price the event."""

    epsilon: float | None
    reason: str = ""


def as_rounds(event: PricedEvent) -> GaussianRounds:
    """One release of all records is one full-batch round."""
    if isinstance(event, GaussianRounds):
        return event
    if not isinstance(event, GaussianRelease):
        raise SpecError("event", event, "these accountants price Gaussian releases with a proven sensitivity only")
    return GaussianRounds(rounds=1, n=1, batch_size=1, sensitivity=event.sensitivity, noise_scale=event.noise_scale)


def rounds_epsilon(event: GaussianRounds, delta: float) -> float:
    """The price used on results: the least of the proven figures that cost no waiting.

    Full batch: T rounds at z are exactly one release at z / sqrt(T), also when later rounds depend on earlier
    ones.  Minibatch: the same figure still holds (it prices the rounds as if the batches were known), and
    where sampling gains, the Rényi bound of subsampling.py is lower.

    >>> event = GaussianRounds(rounds=7, n=1000, batch_size=1000, sensitivity=1.0, noise_scale=8.0)
    >>> round(rounds_epsilon(event, 1e-6), 4)
    1.4357
    """
    return _rounds_epsilon(event.multiplier, event.share, event.rounds, delta)


def _rounds_epsilon(multiplier: float, share: float, rounds: int, delta: float) -> float:
    if rounds == 0:
        return 0.0
    known = exact_epsilon(multiplier / math.sqrt(rounds), delta)
    if share == 1 or multiplier < _LEAST_SAMPLED_MULTIPLIER:
        return known
    return min(known, subsampled_gaussian_epsilon(multiplier, share, rounds, delta))


@lru_cache(maxsize=4096)
def rounds_multiplier(epsilon: float, delta: float, n: int, batch_size: int, rounds: int) -> float:
    """The least noise multiplier of ``rounds`` rounds whose price is at most ``epsilon``.

    >>> round(rounds_multiplier(1.0, 1e-6, 1000, 1000, 7) / 7**0.5, 4)  # that of one release
    4.2247
    """
    positive("epsilon", epsilon)
    between("delta", delta, 0, 1)
    share = whole("batch_size", batch_size, 1, n) / n
    full = gaussian_multiplier(epsilon, delta) * math.sqrt(rounds)
    if share == 1:
        return full

    def excess(log_multiplier: float) -> float:
        checkpoint()
        return _rounds_epsilon(math.exp(log_multiplier), share, rounds, delta) - epsilon

    high, low = full, full / 2
    while excess(math.log(low)) <= 0:
        high, low = low, low / 2
    if excess(math.log(high)) >= 0:
        return high
    found = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-12, rtol=1e-14))
    while excess(math.log(found)) > 0:  # to the safe side of the root
        found *= 1 + 1e-9
    return min(found, full)


def _one_round(event: GaussianRounds, delta: float) -> float:
    """epsilon of one round at ``delta``: the exact Gaussian curve, amplified by sampling without replacement.

    (epsilon_0, delta_0) on the batch is (log(1 + q (exp(epsilon_0) - 1)), q delta_0) on all records.
    """
    epsilon_0 = exact_epsilon(event.multiplier, min(delta / event.share, 1.0))
    if epsilon_0 > 500:  # exp would overflow; the amplified figure tends to this
        return epsilon_0 + math.log(event.share)
    return math.log1p(event.share * math.expm1(epsilon_0))


def basic(event: GaussianRounds, delta: float) -> Quote:
    """Epsilons and deltas of the rounds added up."""
    return Quote(event.rounds * _one_round(event, delta / event.rounds))


def advanced(event: GaussianRounds, delta: float) -> Quote:
    """Advanced composition (Dwork, Rothblum & Vadhan), half of delta for the rounds and half for itself."""
    once = _one_round(event, delta / (2 * event.rounds))
    if once > 500:
        return Quote(math.inf, "one round alone costs too much for this theorem")
    spread = math.sqrt(2 * event.rounds * math.log(2 / delta)) * once
    return Quote(spread + event.rounds * once * math.expm1(once))


def renyi(event: GaussianRounds, delta: float) -> Quote:
    """dp-accounting's Rényi accountant; see the top of this file for its multiplier."""
    import dp_accounting  # takes a second to load, and only this comparison needs it
    from dp_accounting import rdp

    each = dp_accounting.GaussianDpEvent(event.multiplier)
    if not event.full_batch:
        each = dp_accounting.SampledWithoutReplacementDpEvent(event.n, event.batch_size, each)
    accountant = rdp.RdpAccountant(_RENYI_ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE)
    with np.errstate(all="ignore"):  # its alternating sums may take the logarithm of 0
        accountant.compose(each, event.rounds)
    return Quote(float(accountant.get_epsilon(delta)))


def loss_distribution(event: GaussianRounds, delta: float, interval: float = 1e-4) -> Quote:
    """The composed privacy-loss distribution, rounded upwards to steps of ``interval``.

    One round on a share q of the records has the curve q delta_z(log(1 + (exp(epsilon) - 1) / q)) for
    epsilon >= 0 (Balle, Barthe & Gaboardi 2018), and, replacing being symmetric, the mirrored one below 0.
    The pair of distributions with this whole curve dominates every round (Zhu, Dong & Wang 2022), so its
    self-composition is an upper bound.  Composing the two sides apart, as for Poisson sampling, is not.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    widest = math.log1p(event.share * math.expm1(min(exact_epsilon(event.multiplier, 1e-6 * delta), 500.0)))
    steps = math.ceil(widest / interval) + 1
    if steps > 1_000_000:
        return Quote(None, "one round alone has an epsilon above 100")
    above = _curve(np.arange(steps + 1) * interval, event.multiplier, event.share)
    factor = np.exp(-np.arange(steps, 0, -1) * interval)
    below = 1 - factor + factor * above[:0:-1]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -steps, steps, np.minimum.accumulate(np.clip(np.concatenate([below, above]), 0.0, 1.0))
    )
    composed = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(event.rounds)
    return Quote(float(composed.get_epsilon_for_delta(delta)))


def _curve(epsilon: np.ndarray, multiplier: float, share: float) -> np.ndarray:
    """delta of one sampled round for every epsilon >= 0."""
    inner = np.log1p(np.expm1(epsilon) / share)
    half, tail = 0.5 / multiplier, inner * multiplier
    return np.maximum(share * (ndtr(half - tail) - np.exp(inner + log_ndtr(-half - tail))), 0.0)


def exact(event: GaussianRounds, delta: float) -> Quote:
    """The exact price of full-batch rounds: one release at z / sqrt(T)."""
    if not event.full_batch:
        return Quote(None, "no closed form for batches drawn without replacement")
    return Quote(exact_epsilon(event.multiplier / math.sqrt(event.rounds), delta))


ACCOUNTANTS: MappingProxyType[str, Callable[[GaussianRounds, float], Quote]] = MappingProxyType(
    {"basic": basic, "advanced": advanced, "renyi": renyi, "loss distribution": loss_distribution, "exact": exact}
)


def quotes(event: PricedEvent, delta: float) -> dict[str, Quote]:
    """epsilon of one event at ``delta`` by every accountant.

    Examples
    --------
    >>> event = GaussianRounds(rounds=7, n=1000, batch_size=1000, sensitivity=1.0, noise_scale=8.0)
    >>> {name: round(quote.epsilon, 2) for name, quote in quotes(event, 1e-6).items()}
    {'basic': 3.9, 'advanced': 11.31, 'renyi': 1.54, 'loss distribution': 1.44, 'exact': 1.44}

    Notes
    -----
    A second or two the first time (dp-accounting is loaded), up to one afterwards for minibatches.
    """
    between("delta", delta, 0, 1)
    rounds = as_rounds(event)
    if rounds.rounds == 0:
        return {name: Quote(0.0, "nothing was released") for name in ACCOUNTANTS}
    found = {}
    for name, accountant in ACCOUNTANTS.items():
        checkpoint()
        found[name] = accountant(rounds, delta)
    return found
