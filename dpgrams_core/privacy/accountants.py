"""What one event costs, by several accountants side by side.

What "noise multiplier" means in dp-accounting 0.6.0 under ``NeighboringRelation.REPLACE_ONE`` was found by comparing
with the exact curve of one Gaussian release (``gaussian_delta``); kept by tests/unit/privacy/test_accountants.py.  Our
multiplier z is noise / (change when one record is *replaced*).

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

import numpy as np
import scipy

from dpgrams_core.model.checks import between, positive, whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.privacy.calibration import exact_epsilon, gaussian_multiplier
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRelease, GaussianRounds

# Rényi price of Gaussian rounds on batches drawn without replacement, for all orders at once.
#
# The bound is theorem 27 of Wang, Balle & Kasiviswanathan (2019), for replace-one neighbours and any
# mechanism whose batch statistic has a bounded sensitivity; dp-accounting computes the same one.  Here it is
# vectorised (its loops take about a second, a slider needs milliseconds), and the central moments, which
# dp-accounting takes as alternating sums that cancel, are integrals of a positive function (at multiplier
# 300, share 0.145 and 7 rounds cancellation makes dp-accounting say 0.063 where the theorem gives 0.008).

Array = np.ndarray

_WHOLE_ORDERS = np.unique(np.concatenate([np.arange(2, 65), np.geomspace(65, 2048, 45).astype(int)]))
_BROKEN_ORDERS = np.concatenate([np.arange(1.02, 2, 0.02), np.arange(2.1, 11, 0.1)])
_ALWAYS = 16  # the largest order that is kept however little noise there is
_LOSS_STEPS = 40_000  # between the smallest and the largest loss of rounds on Poisson samples
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
    at_whole = np.logaddexp(0.0, scipy.special.logsumexp(weighted, axis=1))
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
    log_gamma = scipy.special.gammaln
    table = log_gamma(orders + 1) - log_gamma(j + 1) - log_gamma(np.maximum(orders - j, 0) + 1)
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
    return scipy.special.logsumexp(even[:, None] * size[None, :] + density[None, :], axis=1)


@lru_cache(maxsize=512)
def poisson_gaussian_epsilon(multiplier: float, share: float, rounds: int, delta: float) -> float:
    """epsilon at ``delta`` of Gaussian rounds on Poisson samples when one record is added or removed.

    ``multiplier`` is the noise over what one record adds.  By dp-accounting's privacy-loss distribution, whose steps
    here grow with the loss: the figure is rounded upwards, by less than a part in a thousand.

    >>> round(poisson_gaussian_epsilon(6.19, 0.144, 7, 1e-6), 2)
    0.26
    """
    from dp_accounting.pld import privacy_loss_distribution  # takes a second to load, and only this needs it

    largest = rounds / (2 * multiplier**2) + 6 * rounds / multiplier
    one = privacy_loss_distribution.from_gaussian_mechanism(
        multiplier, sampling_prob=share, value_discretization_interval=max(1e-4, largest / _LOSS_STEPS)
    )
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta))


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


# Draws of the exponential mechanism and Gaussian rounds, one after the other, priced together.
#
# A draw with weights exp(e u / 2) for utilities of sensitivity 1 has *bounded range*: the logarithm L of the likelihood
# ratio of its outcome lies in an interval of length e, since numerators move it by e / 2 either way and the
# denominator moves all outcomes alike.  Two bounds of one draw follow, both for any earlier outcomes.
#
# Gaussian.  Of all laws with that range and E exp(-L) = 1 those with two values are the least private, whatever hockey
# stick is asked for (it is convex in exp(-L)).  Such a law is a test of two coins whose log-odds differ by e, a
# trade-off curve with one corner.  The curve of a Gaussian shift m is convex, so it lies below that curve as soon as it
# lies below the corner: as soon as m >= ndtri(p) - ndtri(q) for coins p, q.  Over all coins with log-odds e apart that
# is largest for log-odds +-e/2.  So a draw is no worse than a Gaussian release at multiplier 1 / ``draw_shift(e)``,
# and such releases compose exactly.
#
# Rényi.  By Hoeffding's lemma the divergence of order a is at most a e^2 / 8 (so a draw is e^2/8-zCDP: Rogers and
# Steinke 2021).  It is added to that of the rounds at every order.
#
# And the draws may be paid for apart, e each.  The least of the three is the price.

_ZCDP_ORDERS = 1 + np.geomspace(1e-3, 1e5, 2_000)
_LINEAR_DRAW = 1e-3  # below it the slope at 0, which is never too small, and no digits are lost


def draw_shift(epsilon: float) -> float:
    """m: a draw of the exponential mechanism with epsilon is no worse than a Gaussian release at multiplier 1/m.

    >>> round(draw_shift(1.0), 4), round(draw_shift(1e-6) / 1e-6, 4)  # below sqrt(2 pi) / 4 times epsilon
    (0.6239, 0.6267)
    """
    if epsilon < _LINEAR_DRAW:
        return math.sqrt(2 * math.pi) / 4 * epsilon
    return -2 * float(scipy.special.ndtri_exp(scipy.special.log_expit(-epsilon / 2))) * (1 + 1e-12)


def draw_of_shift(shift: float) -> float:
    """The epsilon of a draw that is no worse than a Gaussian release at multiplier 1 / ``shift``.

    >>> round(draw_of_shift(draw_shift(0.7)), 9)
    0.7
    """
    if shift < _LINEAR_DRAW / 2:
        return 4 / math.sqrt(2 * math.pi) * shift
    return 2 * float(scipy.special.log_ndtr(shift / 2) - scipy.special.log_ndtr(-shift / 2))


def rounds_epsilon(event: GaussianRounds, delta: float, start: ExponentialDraws | None = None) -> float:
    """The price used on results: the least of the proven figures that cost no waiting, of rounds and their start.

    Full batch: T rounds at z are exactly one release at z / sqrt(T), also when later rounds depend on earlier
    ones.  Minibatch: the same figure still holds (it prices the rounds as if the batches were known), and
    where sampling gains, the Rényi bound (``subsampled_gaussian_epsilon``) is lower.  Draws before them: the comment
    above.

    >>> event = GaussianRounds(rounds=7, n=1000, batch_size=1000, sensitivity=1.0, noise_scale=8.0)
    >>> start = ExponentialDraws(count=20, epsilon_each=0.05, sensitivity=1.0)
    >>> round(rounds_epsilon(event, 1e-6), 4), round(rounds_epsilon(event, 1e-6, start), 4)
    (1.4357, 1.5704)
    """
    return _rounds_epsilon(event.multiplier, event.share, event.rounds, delta, start)


def _rounds_epsilon(
    multiplier: float, share: float, rounds: int, delta: float, start: ExponentialDraws | None = None
) -> float:
    apart = 0.0 if start is None else start.count * start.epsilon_each
    if rounds == 0:
        return apart
    sampled = share < 1 and multiplier >= _LEAST_SAMPLED_MULTIPLIER
    found = [apart + exact_epsilon(multiplier / math.sqrt(rounds), delta)]
    if sampled:
        found.append(apart + subsampled_gaussian_epsilon(multiplier, share, rounds, delta))
    if start is not None:
        shifts = rounds / multiplier**2 + start.count * draw_shift(start.epsilon_each) ** 2
        found.append(exact_epsilon(1 / math.sqrt(shifts), delta))
        draws = start.count * start.epsilon_each**2 / 8
        orders = _ZCDP_ORDERS
        found.append(epsilon_of_renyi(orders, orders * (draws + rounds / (2 * multiplier**2)), delta))
        if sampled:
            orders, moments = cumulants(multiplier, share)
            found.append(epsilon_of_renyi(orders, orders * draws + rounds * moments / (orders - 1), delta))
    return min(found)


@lru_cache(maxsize=4096)
def rounds_multiplier(
    epsilon: float, delta: float, n: int, batch_size: int, rounds: int, start: ExponentialDraws | None = None
) -> float:
    """The least noise multiplier of ``rounds`` rounds that cost, together with their ``start``, at most ``epsilon``.

    >>> round(rounds_multiplier(1.0, 1e-6, 1000, 1000, 7) / 7**0.5, 4)  # that of one release
    4.2247
    """
    positive("epsilon", epsilon)
    between("delta", delta, 0, 1)
    share = whole("batch_size", batch_size, 1, n) / n
    full = gaussian_multiplier(epsilon, delta) * math.sqrt(rounds)
    if share == 1 and start is None:
        return full
    if start is not None:
        # The Gaussian bound alone, as a place to seek from: what it leaves for the rounds must be above 0.
        left = 1 / gaussian_multiplier(epsilon, delta) ** 2 - start.count * draw_shift(start.epsilon_each) ** 2
        if left <= 0:
            raise SpecError("epsilon_each", start.epsilon_each, f"{start.count} draws alone cost more than {epsilon:g}")
        full = math.sqrt(rounds / left)

    def excess(log_multiplier: float) -> float:
        checkpoint()
        return _rounds_epsilon(math.exp(log_multiplier), share, rounds, delta, start) - epsilon

    high, low = full, full / 2
    while excess(math.log(low)) <= 0:
        high, low = low, low / 2
    if excess(math.log(high)) >= 0:
        return high

    found = math.exp(scipy.optimize.brentq(excess, math.log(low), math.log(high), xtol=1e-12, rtol=1e-14))
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
    without = np.exp(inner + scipy.special.log_ndtr(-half - tail))
    return np.maximum(share * (scipy.special.ndtr(half - tail) - without), 0.0)


def exact(event: GaussianRounds, delta: float) -> Quote:
    """The exact price of full-batch rounds: one release at z / sqrt(T)."""
    if not event.full_batch:
        return Quote(None, "no closed form for batches drawn without replacement")
    return Quote(exact_epsilon(event.multiplier / math.sqrt(event.rounds), delta))


@dataclass(frozen=True)
class Accountant:
    """A way to price rounds, and its name as people read it."""

    title: str
    function: Callable[[GaussianRounds, float], Quote]

    def __call__(self, event: GaussianRounds, delta: float) -> Quote:
        return self.function(event, delta)


# Whoever prices side by side asks all of them in this order: a new one is one line here.
ACCOUNTANTS = {
    "basic": Accountant("basic", basic),
    "advanced": Accountant("advanced", advanced),
    "renyi": Accountant("Rényi", renyi),
    "loss distribution": Accountant("loss distribution", loss_distribution),
    "exact": Accountant("exact", exact),
}


def quotes(event: PricedEvent, delta: float) -> dict[str, Quote]:
    """epsilon of one event at ``delta`` by every accountant.

    >>> event = GaussianRounds(rounds=7, n=1000, batch_size=1000, sensitivity=1.0, noise_scale=8.0)
    >>> {name: round(quote.epsilon, 2) for name, quote in quotes(event, 1e-6).items()}
    {'basic': 3.9, 'advanced': 11.31, 'renyi': 1.54, 'loss distribution': 1.44, 'exact': 1.44}

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
