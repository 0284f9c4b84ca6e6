"""What (epsilon, delta) means for one person: beliefs before and after, odds, and the best possible test.

Let A and B be two values that your record may have, all other records known to whoever looks, P_A and P_B the
laws of the result in the two cases, and p their belief in A before.  Their belief afterwards is
R = p P_A / (p P_A + (1 - p) P_B).  Replace-one privacy speaks of exactly this pair.

delta = 0.  P_A <= e^epsilon P_B everywhere, so the odds grow at most e^epsilon-fold and R <= b with
b = p e^epsilon / (p e^epsilon + 1 - p), whatever the result is.

delta > 0.  R may pass b, and *not* only with probability delta: with exactly calibrated Gaussian noise at
epsilon = 1, delta = 1e-6 it does with probability 2e-5 under A (Meiser 2018 on this misreading).  What holds is
a bound on the part above b.  With m = p P_A + (1 - p) P_B the law of the result as they expect it,

    E_m (R - b)_+ = integral (p P_A - b m)_+ = p (1 - b) integral (P_A - e^epsilon P_B)_+ <= p (1 - b) delta,

since b (1 - p) = p (1 - b) e^epsilon and the last integral is the largest P_A(S) - e^epsilon P_B(S).  By Markov's
inequality P_m(R > b + t) <= p (1 - b) delta / t.  Both hold for every (epsilon, delta)-DP mechanism.

Tests.  A test that says A with probability alpha under B says it under A with probability at most
min(1, e^epsilon alpha + delta, 1 - e^-epsilon (1 - delta - alpha)) (Wasserman & Zhou 2010; Dong, Roth & Su 2022).

Guesses.  Let a fair coin choose between A and B.  A test guesses right with probability (1 - alpha + power) / 2, which
is largest where the two lines meet, at alpha = (1 - delta) / (1 + e^epsilon): the power is 1 - alpha there, and so is
the chance to be right, (e^epsilon + delta) / (1 + e^epsilon).  Against one Gaussian release the two errors are equal at
alpha = Phi(-1 / (2 z)), and the chance to be right is Phi(1 / (2 z)) for the multiplier z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpgrams_core.model.checks import between, finite
from dpgrams_core.model.errors import SpecError

Array = np.ndarray
PRIORS = (0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90)
MARGIN = 0.01  # "a point surer"


@dataclass(frozen=True, kw_only=True)
class Belief:
    """How sure someone can become that a record is A rather than B.

    ``least`` and ``most`` bound the belief afterwards where delta plays no part; ``excess`` is the largest
    average of what goes above ``most``, ``chance_above`` the largest chance of more than ``MARGIN`` above it.
    """

    before: float
    least: float
    most: float
    excess: float
    chance_above: float


def belief(prior: float, epsilon: float, delta: float = 0.0) -> Belief:
    """The bounds on a belief; see the head of this file for the proof.

    >>> after = belief(0.5, 1.0, 1e-6)
    >>> round(after.least, 3), round(after.most, 3)
    (0.269, 0.731)
    >>> after.chance_above < 1 / 74_000
    True
    """
    p = between("prior", prior, 0, 1)
    loss, slack = _checked(epsilon, delta)
    shrink = math.exp(-loss)
    rest = (1 - p) * shrink / (p + (1 - p) * shrink)  # 1 - most, without the digits that a subtraction loses
    excess = p * rest * slack
    return Belief(
        before=p,
        least=p * shrink / (p * shrink + 1 - p),
        most=p / (p + (1 - p) * shrink),
        excess=excess,
        chance_above=min(1.0, excess / MARGIN) if rest > MARGIN else 0.0,
    )


def odds_factor(epsilon: float) -> float:
    """How many times the odds can grow.

    >>> round(odds_factor(1.0), 3)
    2.718
    """
    return math.exp(min(_checked(epsilon, 0.0)[0], 700.0))


def largest_power(false_alarms: Array, epsilon: float, delta: float) -> Array:
    """The largest chance of a true alarm of any test with these chances of a false one.

    >>> largest_power(np.array([0.0, 0.1, 1.0]), math.log(2), 0.05).round(3).tolist()
    [0.05, 0.25, 1.0]
    """
    loss, slack = _checked(epsilon, delta)
    alpha = np.asarray(false_alarms, dtype=float)
    steep = math.exp(min(loss, 700.0)) * alpha + slack
    flat = 1 - math.exp(-loss) * (1 - slack - alpha)
    return np.minimum(1.0, np.minimum(steep, flat))


def gaussian_power(false_alarms: Array, multiplier: float) -> Array:
    """The exact power of the best test against one Gaussian release (Dong, Roth & Su 2022).

    ``multiplier`` is the noise over the sensitivity, so the two means are 1 / multiplier standard deviations
    apart and the power is Phi(Phi^-1(alpha) + 1 / multiplier) (Neyman & Pearson).

    >>> gaussian_power(np.array([0.5]), 1.0).round(4).tolist()
    [0.8413]
    """
    return np.asarray(scipy.special.ndtr(scipy.special.ndtri(np.asarray(false_alarms, dtype=float)) + 1 / multiplier))


def largest_accuracy(epsilon: float, delta: float) -> float:
    """The largest chance that anybody guesses right which of two worlds a result is from, each as likely as the other.

    >>> round(largest_accuracy(0.0, 0.0), 3), round(largest_accuracy(1.0, 0.0), 3), round(largest_accuracy(0.0, 0.2), 3)
    (0.5, 0.731, 0.6)
    """
    loss, slack = _checked(epsilon, delta)
    shrink = math.exp(-loss)
    return (1 + slack * shrink) / (1 + shrink)


def gaussian_accuracy(multiplier: float) -> float:
    """The same for one Gaussian release of this multiplier: exactly what its best attacker reaches.

    >>> round(gaussian_accuracy(0.5), 4)
    0.8413
    """
    return float(scipy.special.ndtr(0.5 / multiplier))


def meeting_point(epsilon: float, multiplier: float) -> float:
    """The false alarms at which ``gaussian_power`` meets the bound of its own (epsilon, delta).

    There the likelihood ratio is e^epsilon: Phi(-1 / (2 z) - epsilon z) (Balle & Wang 2018).
    """
    return float(scipy.special.ndtr(-0.5 / multiplier - epsilon * multiplier))


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    loss, slack = finite("epsilon", epsilon), finite("delta", delta)
    if loss < 0:
        raise SpecError("epsilon", epsilon, "it must be at least 0")
    if not 0 <= slack < 1:
        raise SpecError("delta", delta, "it must be at least 0 and below 1")
    return loss, slack
