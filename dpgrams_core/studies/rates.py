"""The rates of the paper's theory for the squared error of a mode: slopes only, since its constants are not known.

Upper bound, DP-GRAMS (thm:global-holder, beta > 2), with T of order log n:

    C (log n / n)^(2 (beta - 1) / (d + 2 beta))
        + C (T d polylog(n, delta) / (n epsilon_modes)^2)^((beta - 1) / (d + beta))

Lower bound, any (epsilon, delta)-private estimator (thm:lower-bound, beta > 1, delta = o(1/n)):

    C n^(-2 (beta - 1) / (d + 2 beta))  +  C (n epsilon)^(-2 (beta - 1) / (d + beta))

So both bounds have the same two slopes and differ by logarithms and constants.  The first term is what sampling
costs and does not know epsilon; the second is what privacy costs.  Which one leads is decided near the epsilon at
which they are of one order, n^(-beta / (d + 2 beta)), that of the two regimes of h-opt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from dpgrams_core.model.checks import finite, one_of, positive, whole
from dpgrams_core.model.errors import SpecError

VARIABLES = ("epsilon", "n")
UPPER_BOUND_OF = "dp_grams"  # the method that thm:global-holder is about; the lower bound is about every private one
UP_TO_LOGARITHMS = (
    "Theory's lines show slopes only: the upper and the lower bound share them up to logarithms, their constants are "
    "not known, and each line is laid through a measured point. They hold for the worst density and for a bandwidth "
    "that follows n and ε (h-opt); at a bandwidth held fixed the error of the noise alone goes about like 1/(nε)²."
)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One term of the bounds: how the squared error falls with epsilon or n where this term leads."""

    term: str  # "sampling" or "privacy"
    variable: str
    exponent: float

    @property
    def title(self) -> str:
        symbol = "ε" if self.variable == "epsilon" else "n"
        if self.exponent == 0:
            return f"theory, {self.term} term: level in {symbol}"
        return f"theory, {self.term} term: {symbol}^{self.exponent:.3g}".replace("-", "−")


def sampling_exponent(d: int, beta: float) -> float:
    """The power of n in the term without epsilon: -2 (beta - 1) / (d + 2 beta).

    >>> sampling_exponent(2, 3.0)
    -0.5
    """
    d, beta = _checked(d, beta)
    return -2 * (beta - 1) / (d + 2 * beta)


def privacy_exponent(d: int, beta: float) -> float:
    """The power of n epsilon in the term of privacy: -2 (beta - 1) / (d + beta).

    >>> privacy_exponent(2, 3.0)
    -0.8
    """
    d, beta = _checked(d, beta)
    return -2 * (beta - 1) / (d + beta)


def rates(variable: str, d: int, beta: float = 3.0) -> tuple[Rate, Rate]:
    """The slopes of both terms, privacy first, of the squared error against epsilon or n.

    Parameters
    ----------
    variable : "epsilon" (n held) or "n" (epsilon held).
    d : columns of the data.
    beta : smoothness of the density, above 2 as the upper bound asks.

    >>> [(rate.term, rate.exponent) for rate in rates("epsilon", 2)]
    [('privacy', -0.8), ('sampling', 0.0)]
    >>> [(rate.term, rate.exponent) for rate in rates("n", 2)]
    [('privacy', -0.8), ('sampling', -0.5)]
    """
    one_of("variable", variable, VARIABLES)
    privacy, sampling = privacy_exponent(d, beta), sampling_exponent(d, beta)
    return (
        Rate(term="privacy", variable=variable, exponent=privacy),
        Rate(term="sampling", variable=variable, exponent=sampling if variable == "n" else 0.0),
    )


def rate_line(x_values: Sequence[float], anchor: tuple[float, float], exponent: float) -> list[float]:
    """y = y0 (x / x0)^exponent: a straight line on log axes through the anchor (x0, y0).

    >>> rate_line([1.0, 2.0, 4.0], (2.0, 3.0), -1.0)
    [6.0, 3.0, 1.5]
    """
    x0, y0 = positive("anchor", anchor[0]), positive("anchor", anchor[1])
    return [y0 * (positive("x", x) / x0) ** exponent for x in x_values]


def measured_slope(x_values: Sequence[float], y_values: Sequence[float]) -> float:
    """The least-squares slope of log y against log x: what a curve really does, to hold against theory.

    NaN with fewer than two points, or where an error is not positive and finite.

    >>> round(measured_slope([1.0, 10.0, 100.0], [5.0, 0.5, 0.05]), 6)
    -1.0
    """
    if len(set(x_values)) < 2 or not all(0 < y < math.inf for y in y_values):
        return math.nan
    return linear_regression([math.log(x) for x in x_values], [math.log(y) for y in y_values]).slope


def _checked(d: int, beta: float) -> tuple[int, float]:
    if finite("beta", beta) <= 2:
        raise SpecError("beta", beta, "the upper bound needs a smoothness above 2")
    return whole("d", d, 1), float(beta)
