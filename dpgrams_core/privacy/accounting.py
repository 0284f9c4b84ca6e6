"""Events to (epsilon, delta): the price that stands on every result.

Exponential draws add up; before Gaussian rounds with a proven sensitivity they are priced together with these, by
accountants.py.
The rounds of alg:dpgrams are priced by the paper's own composition (cor:full_dp), backwards through
eq:sigma-corr: noise scale -> epsilon of one round on the batch (classical Gaussian mechanism) ->
amplified by sampling without replacement -> advanced composition with delta/2 to spare.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpgrams_core.model.errors import SpecError
from dpgrams_core.privacy.accountants import draw_shift, rounds_epsilon
from dpgrams_core.privacy.calibration import exact_epsilon
from dpgrams_core.privacy.events import (
    Event,
    ExponentialDraws,
    GaussianRelease,
    GaussianRounds,
    SubsampledGaussianRounds,
)

TOGETHER = "beside draws, one kind that spends δ is priced: Gaussian releases, or a single event of rounds"


@dataclass(frozen=True)
class Price:
    """What a sequence of events costs, stage by stage and in all."""

    epsilon: float
    delta: float
    stages: tuple[tuple[str, float], ...]


def batch_epsilon(event: SubsampledGaussianRounds, delta: float) -> float:
    """epsilon of one round for the batch it saw, at delta_0 = n delta / (2 T m)."""
    delta_0 = event.n * delta / (2 * event.rounds * event.batch_size)
    return event.sensitivity / event.noise_scale * math.sqrt(2 * math.log(1.25 / delta_0))


def gaussian_rounds_epsilon(event: SubsampledGaussianRounds, delta: float) -> float:
    """epsilon of all rounds, as lem:correlated_noise_privacy states it.

    The classical Gaussian mechanism needs epsilon_0 <= 1; a larger one has no price here.
    """
    epsilon_0 = batch_epsilon(event, delta)
    if epsilon_0 > 1 + 1e-9:
        return math.inf
    share = event.batch_size / event.n
    epsilon_iter = math.log1p(share * math.expm1(epsilon_0))
    linear = 2 * math.sqrt(2 * event.rounds * math.log(2 / delta)) * epsilon_iter
    quadratic = 4 * event.rounds * epsilon_iter**2
    return max(linear, quadratic)


def price(events: Iterable[Event], delta: float) -> Price:
    """Total cost at a given delta.

    >>> price([ExponentialDraws(count=4, epsilon_each=0.025, sensitivity=0.001)], 1e-6).epsilon
    0.1

    Several Gaussian releases, each chosen with the ones before it in view, are one whose 1 / z^2 is the sum of theirs:

    >>> half = GaussianRelease(sensitivity=1.0, noise_scale=4.2247 * math.sqrt(2))
    >>> round(price([half, half], 1e-6).epsilon, 4)
    1.0
    """
    events = tuple(events)
    if len(events) == 2:
        start, rounds = events
        if isinstance(start, ExponentialDraws) and isinstance(rounds, GaussianRounds):
            return _started_rounds(start, rounds, delta)
    stages: list[tuple[str, float]] = []
    spent_delta = 0.0
    releases = [event for event in events if isinstance(event, GaussianRelease)]
    if len(releases) > 1:
        parts = [(event.sensitivity / event.noise_scale) ** 2 for event in releases]
        total = exact_epsilon(1 / math.sqrt(math.fsum(parts)), delta)
        names = (f"release {number} of {len(parts)}" for number in range(1, len(parts) + 1))
        stages += [(name, part / math.fsum(parts) * total) for name, part in zip(names, parts, strict=True)]
        spent_delta = delta
        events = tuple(event for event in events if not isinstance(event, GaussianRelease))
    if (len(releases) > 1) + sum(not isinstance(event, ExponentialDraws) for event in events) > 1:
        # Their δ would add up, and the price would not be that of this δ.
        raise SpecError("events", [type(event).__name__ for event in events], TOGETHER)
    for event in events:
        if isinstance(event, ExponentialDraws):
            stages.append(("start (DAP)", event.count * event.epsilon_each))
        elif isinstance(event, GaussianRelease):
            stages.append(("the release", exact_epsilon(event.noise_scale / event.sensitivity, delta)))
            spent_delta = delta
        elif isinstance(event, GaussianRounds):
            stages.append(("ascent", rounds_epsilon(event, delta)))
            spent_delta = delta
        elif isinstance(event, SubsampledGaussianRounds):
            stages.append(("ascent", gaussian_rounds_epsilon(event, delta)))
            spent_delta = delta
        else:
            raise SpecError("event", event, "no accountant here can price it")
    return Price(sum(value for _, value in stages), spent_delta, tuple(stages))


def _started_rounds(start: ExponentialDraws, rounds: GaussianRounds, delta: float) -> Price:
    """Draws and then rounds: one price, and each one's part of it by what it spends in the squared units of shifts."""
    total = rounds_epsilon(rounds, delta, start)
    drawn = start.count * draw_shift(start.epsilon_each) ** 2
    part = drawn / (drawn + rounds.rounds / rounds.multiplier**2) if drawn else 0.0
    stages = (("start (DAP)", part * total), ("ascent", (1 - part) * total))
    return Price(total, delta if rounds.rounds else 0.0, stages)
