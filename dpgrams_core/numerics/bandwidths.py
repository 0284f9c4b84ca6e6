"""Bandwidth rules, each marked public or data-dependent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.model.checks import positive
from dpgrams_core.model.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class BandwidthFacts:
    """What a rule may use. ``points`` is private; a rule that reads it is not public."""

    n: int
    d: int
    box: np.ndarray
    epsilon: float
    beta: float
    points: np.ndarray


@dataclass(frozen=True)
class BandwidthRule:
    """A named rule; ``public`` is False when it reads the records."""

    name: str
    title: str
    public: bool
    rule: Callable[[BandwidthFacts], float]


def silverman(facts: BandwidthFacts) -> float:
    """Silverman's normal reference rule with the mean marginal standard deviation."""
    spread = float(facts.points.std(axis=0, ddof=1).mean())
    return spread * (4 / (facts.d + 2)) ** (1 / (facts.d + 4)) * facts.n ** (-1 / (facts.d + 4))


def silverman_of_one(values: np.ndarray) -> float:
    """Silverman's rule of thumb for one column, 0.9 min(sd, IQR / 1.34) n^(-1/5).

    >>> round(silverman_of_one(np.arange(10.0)), 3)
    1.719
    """
    low, high = np.percentile(values, [25, 75])
    return 0.9 * min(float(values.std(ddof=1)), float(high - low) / 1.34) * len(values) ** (-1 / 5)


def rate(facts: BandwidthFacts) -> float:
    """(log n / n)^(1/(d+6)), subsubsec:bandwidth-exp."""
    return float((math.log(facts.n) / facts.n) ** (1 / (facts.d + 6)))


# Found with the other defaults by benchmarks/pilot_defaults.py, on mixtures other than the paper's.
RATE_SCALE_OF_BOX = 0.15

# A bandwidth beyond these multiples of the box's side is a slip of the keyboard.
SMALLEST_OF_BOX, LARGEST_OF_BOX = 1e-5, 1e3


def mean_side(box: np.ndarray) -> float:
    """Geometric mean of the sides of a public box: its length scale."""
    return float(np.exp(np.log(box[:, 1] - box[:, 0]).mean()))


def box_rate(facts: BandwidthFacts) -> float:
    """The rate rule times a public fraction of the box, so that units do not matter; the default."""
    return RATE_SCALE_OF_BOX * mean_side(facts.box) * rate(facts)


# The reference bump of the functional release's rule: its spread as a share of the box, its share of the
# records, and its skewness.  Public constants, the same for every data set; benchmarks/pilot_release.py
# measures them on mixtures other than the paper's.
REFERENCE_SPREAD = 1 / 14
REFERENCE_SHARE = 0.2
REFERENCE_SKEWNESS = 0.03


def reference_spread(box: np.ndarray) -> float:
    """The spread of the reference bump in a public box."""
    return REFERENCE_SPREAD * mean_side(box)


def predicted_release_error(h: Any, *, n: int, d: int, box: np.ndarray, sigma: float) -> tuple[Any, Any, Any]:
    """Predicted squared error of a bump's place from a functional release: (privacy, sampling, bias).

    For a Gaussian bump of A records with spread s, released at bandwidth h with noise sigma white in the
    RKHS norm, let phi be the smoothed kernel.  Least squares in that norm has

        privacy   d sigma^2 / (A |d phi|)^2,     |d phi|^2 = (h^2/r)^(d/2) / r,                  r = h^2 + 2 s^2,
        sampling  d E g(X)^2 / (A |d phi|^4),    E g^2 = (h^2/q)^d s^2 / q^2 (q/r')^(d/2 + 1),   q = h^2 + s^2,
                                                                                                r' = q + 2 s^2,
    and smoothing a bump of skewness c moves its peak by about c h^2 / 2s, the bias.  Privacy alone is least
    at h = s sqrt(d), whatever n and epsilon; bias pulls h down where there is enough signal to afford it.

    No other kernel would do much better.  With spectrum S the privacy term is inverse to
    int |w|^2 exp(-s^2 |w|^2) S(w) dw, which a ring |w| = 1/s makes half as large again as a Gaussian does; but
    the kernel of a ring goes below zero, and with it the sensitivity grows.  Over all stationary kernels in the
    plane the best ratio is 1.06 times that of the Gaussian (a linear program: benchmarks/pilot_release.py).
    """
    s, records = reference_spread(box), REFERENCE_SHARE * n
    r, q = h**2 + 2 * s**2, h**2 + s**2
    slope = (h**2 / r) ** (d / 2) / r
    privacy = d * sigma**2 / (records**2 * slope)
    moment = (h**2 / q) ** d / q**2 * s**2 * (q / (q + 2 * s**2)) ** (d / 2 + 1)
    sampling = d * moment / (records * slope**2)
    return privacy, sampling, (REFERENCE_SKEWNESS * h**2 / (2 * s)) ** 2


def release_bandwidth(*, n: int, d: int, box: np.ndarray, sigma: float) -> float:
    """The public bandwidth of a functional release: the least predicted error. Reads n, d, the box and sigma only.

    sigma is a function of (epsilon, delta), so this is a rule of n, epsilon, delta, d and the box.
    """
    widest = reference_spread(box) * math.sqrt(d)
    grid = widest * np.geomspace(0.3, 1.0, 141)
    privacy, sampling, bias = predicted_release_error(grid, n=n, d=d, box=box, sigma=sigma)
    return float(grid[int(np.argmin(privacy + sampling + bias))])


def h_opt(facts: BandwidthFacts) -> float:
    """The two-regime rule h-opt with smoothness beta and the ascent's share of epsilon."""
    n, d, beta = facts.n, facts.d, facts.beta
    noise_free = math.log(n) / n
    threshold = noise_free ** (-d / (2 * (d + 2 * beta))) * (n * math.log(n)) ** -0.5
    if facts.epsilon >= threshold:
        return float(noise_free ** (1 / (d + 2 * beta)))
    return float((n * facts.epsilon) ** (-2 / (2 * d + 2 * beta)))


BANDWIDTH_RULES: dict[str, BandwidthRule] = {
    rule.name: rule
    for rule in (
        BandwidthRule("box_rate", "rate rule × box (public)", True, box_rate),
        BandwidthRule("rate", "rate rule (public)", True, rate),
        BandwidthRule("h_opt", "two-regime rule with β (public)", True, h_opt),
        BandwidthRule("silverman", "Silverman (reads the data)", False, silverman),
    )
}


@dataclass(frozen=True)
class Bandwidth:
    """A chosen bandwidth and where it came from."""

    value: float
    rule: str
    public: bool

    def as_run(self) -> dict[str, Any]:
        """What a spec that ran says of it: the number, and for one read off the records by which rule.

        Without that word a spec that is run again would take its number for a public one.
        """
        read = None if self.public else self.rule
        return {"bandwidth": self.value, "bandwidth_scale": None, "bandwidth_from": read}


def choose_bandwidth(
    wish: float | str | None, scale: float | None, facts: BandwidthFacts, read_by: str | None = None
) -> Bandwidth:
    """A fixed value as it is, or a rule's value (``box_rate`` by default) times the public scale.

    A fixed value that was ``read_by`` a rule is as public as that rule.
    """
    if wish is not None and not isinstance(wish, str):
        value = _fits_box("bandwidth", wish, positive("bandwidth", wish), facts)
        return Bandwidth(value, read_by or "fixed", read_by is None or BANDWIDTH_RULES[read_by].public)
    name = "box_rate" if wish is None else wish
    if name not in BANDWIDTH_RULES:
        raise SpecError("bandwidth", wish, "give a number above 0 or one of " + ", ".join(BANDWIDTH_RULES))
    rule = BANDWIDTH_RULES[name]
    value = (1.0 if scale is None else scale) * rule.rule(facts)
    if not value > 0:
        raise SpecError("bandwidth", wish, "this rule gives 0 on these data; give a number above 0")
    field, given = ("bandwidth", name) if scale is None else ("bandwidth_scale", scale)
    return Bandwidth(_fits_box(field, given, value, facts, rule.public), rule.name, rule.public)


def scaled_rule(value: float, scale: float | None, facts: BandwidthFacts) -> Bandwidth:
    """The value of a method's own public rule times the public scale."""
    field, given = ("bandwidth", "auto") if scale is None else ("bandwidth_scale", scale)
    return Bandwidth(_fits_box(field, given, value * (1.0 if scale is None else scale), facts), "release", True)


def _fits_box(field: str, given: object, value: float, facts: BandwidthFacts, public: bool = True) -> float:
    """The bandwidth, refused where it is so far from the size of the box that sums lose all digits."""
    low, high = (factor * mean_side(facts.box) for factor in (SMALLEST_OF_BOX, LARGEST_OF_BOX))
    if not low <= value <= high:
        # What a rule reads off the records is not repeated: the data may be private.
        found = f"it gives h = {value:.3g}, and " if public else ""
        raise SpecError(field, given, f"{found}for this box h must lie between {low:.3g} and {high:.3g}")
    return value
