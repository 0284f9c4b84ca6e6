"""Budget to noise scale: the sensitivities the paper states and its sigma."""

from __future__ import annotations

import math
from functools import lru_cache

import scipy

from dpgrams_core.model.checks import between, positive
from dpgrams_core.model.errors import SpecError
from dpgrams_core.numerics.kernels import KernelConstants

SMALL_HALF = 0.01  # a multiplier above 50, so an epsilon of less than about 0.1


def published_sensitivity(constants: KernelConstants, h: float, d: int, gradient_clip: float, floor: float) -> float:
    """Delta_{h,corr}(A, p_floor), eq:def-Delta-corr: the joint sensitivity times the batch size.

    The paper's argument: the score is a Lipschitz function of (p_B, grad p_B) with constants A / p_floor^2 and 1 /
    p_floor, and both of those lie in the RKHS of the correlation kernel with norms sqrt(I_0) h^-d and sqrt(I_1)
    h^-(d+1).  The Lipschitz bound is pointwise and does not carry over to the RKHS norm, so the joint bound can fail
    (tests/unit/methods/test_sensitivity.py shows it); results that use it are marked "as published", never "proven".
    """
    gradient = math.sqrt(constants.i_1) / floor * h ** -(d + 1)
    density = gradient_clip * math.sqrt(constants.i_0) / floor**2 * h**-d
    return 2 * math.sqrt(2) * (gradient + density)


def nominal_sensitivity(clip_multiplier: float, h: float, d: int) -> float:
    """2 C_* = 2 clip_multiplier h^-(d+1) (eq:clip-constant-exp), times the batch size.

    Not a sensitivity: the contributions g_i / p_B share the denominator p_B, so replacing one
    record moves all of them, and nothing is said about several starts at once.
    """
    return 2 * clip_multiplier * h ** -(d + 1)


def round_epsilon(epsilon: float, delta: float, n: int, batch_size: int, rounds: int) -> float:
    """epsilon_iter, the least of three terms (before sigma-exact)."""
    return min(
        math.log1p((math.e - 1) * batch_size / n),
        epsilon / (2 * math.sqrt(2 * rounds * math.log(2 / delta))),
        math.sqrt(epsilon / (4 * rounds)),
    )


def published_sigma(sensitivity: float, *, epsilon: float, delta: float, n: int, batch_size: int, rounds: int) -> float:
    """sigma of eq:sigma-corr and sigma-exact for a sensitivity that is still to be divided by m."""
    inside = 2.5 * batch_size * rounds / (n * delta)
    if inside <= 1.25:
        largest = 2 * batch_size * rounds / n
        raise SpecError(
            "delta", delta, f"with batch_size {batch_size}, n_steps {rounds} and n {n} it must be below {largest:.3g}"
        )
    epsilon_iter = round_epsilon(epsilon, delta, n, batch_size, rounds)
    epsilon_0 = math.log1p(n * math.expm1(epsilon_iter) / batch_size)
    return sensitivity / batch_size / epsilon_0 * math.sqrt(2 * math.log(inside))


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """The least delta at which Gaussian noise of ``multiplier`` times the sensitivity is (epsilon, delta)-DP.

    Exact, not a bound (Balle & Wang 2018, theorem 8).

    >>> gaussian_delta(1.0, 4.2247) < 1.001e-6
    True
    """
    half, tail = 0.5 / multiplier, epsilon * multiplier
    if half < SMALL_HALF:
        return _small_shift_delta(half, tail)
    # exp(epsilon) Phi(-half - tail) in logarithms: exp(epsilon) alone overflows for large epsilon.
    return float(scipy.special.ndtr(half - tail) - math.exp(epsilon + float(scipy.special.log_ndtr(-half - tail))))


def _small_shift_delta(half: float, tail: float) -> float:
    """The same for a small shift, where the two terms differ by little and their difference would be rounding error.

    With m(t) = (1 - Phi(t)) / phi(t) it is phi(t - s) (m(t - s) - m(t + s)), s and t for half and tail.  The bracket is
    odd in s; m' = t m - 1 and m^(k+1) = t m^(k) + k m^(k-1) give its series.
    """
    m = math.sqrt(math.pi / 2) * float(scipy.special.erfcx(tail / math.sqrt(2)))
    derivatives = [m, tail * m - 1]
    for order in range(1, 5):
        derivatives.append(tail * derivatives[order] + order * derivatives[order - 1])
    bracket = -2 * sum(derivatives[k] * half**k / math.factorial(k) for k in (1, 3, 5))
    return math.exp(-0.5 * (tail - half) ** 2) / math.sqrt(2 * math.pi) * bracket


@lru_cache(maxsize=256, typed=True)  # many runs ask for the same few
def exact_epsilon(multiplier: float, delta: float) -> float:
    """The least epsilon of Gaussian noise of ``multiplier`` times the sensitivity: the inverse of the exact curve.

    >>> round(exact_epsilon(4.2247, 1e-6), 4)
    1.0
    """
    if gaussian_delta(0.0, multiplier) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, multiplier) > delta:
        high *= 2
    root = scipy.optimize.brentq
    return float(root(lambda epsilon: gaussian_delta(epsilon, multiplier) - delta, 0.0, high, xtol=1e-25, rtol=1e-13))


@lru_cache(maxsize=256, typed=True)  # many runs ask for the same few
def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """z(epsilon, delta): the least noise, in units of the sensitivity, of one Gaussian release.

    >>> round(gaussian_multiplier(1.0, 1e-6), 4)
    4.2247
    """
    positive("epsilon", epsilon)
    between("delta", delta, 0, 1)
    low, high = 1e-6, 1.0
    while gaussian_delta(epsilon, high) > delta:
        low, high = high, high * 2
    while gaussian_delta(epsilon, low) < delta:
        low /= 2
    root = scipy.optimize.brentq(lambda z: gaussian_delta(epsilon, z) - delta, low, high, xtol=1e-300, rtol=1e-12)
    return float(root) * (1 + 1e-11)  # on the safe side of the root
