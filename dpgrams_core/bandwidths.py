"""Bandwidth rules, each marked public or data-dependent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpgrams_core.checks import positive
from dpgrams_core.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class BandwidthFacts:
    """What a rule may use. ``points`` is private; a rule that reads it is not public."""

    n: int
    d: int
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


def rate(facts: BandwidthFacts) -> float:
    """(log n / n)^(1/(d+6)), subsubsec:bandwidth-exp."""
    return float((math.log(facts.n) / facts.n) ** (1 / (facts.d + 6)))


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


def choose_bandwidth(wish: float | str, scale: float, facts: BandwidthFacts) -> Bandwidth:
    """A fixed value as it is, or a rule's value times the public scale."""
    if not isinstance(wish, str):
        return Bandwidth(positive("bandwidth", wish), "fixed", True)
    if wish not in BANDWIDTH_RULES:
        raise SpecError("bandwidth", wish, "give a number above 0 or one of " + ", ".join(BANDWIDTH_RULES))
    rule = BANDWIDTH_RULES[wish]
    value = scale * rule.rule(facts)
    if not value > 0:
        raise SpecError("bandwidth", wish, "this rule gives 0 on these data; give a number above 0")
    return Bandwidth(value, rule.name, rule.public)
