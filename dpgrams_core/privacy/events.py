"""Frozen descriptions of what ran. They hold public facts only; accounting.py prices them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExponentialDraws:
    """``count`` draws of the exponential mechanism in sequence, each (epsilon_each, 0)-DP.

    Each draw has weights exp(epsilon_each * utility / (2 * sensitivity)).
    """

    count: int
    epsilon_each: float
    sensitivity: float


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianRounds:
    """``rounds`` Gaussian releases, each on ``batch_size`` of ``n`` records without replacement.

    ``sensitivity`` is the change of the released vector (in the norm of the noise) that the
    noise was calibrated to; ``sensitivity_proven`` says whether that figure has a proof.
    """

    rounds: int
    n: int
    batch_size: int
    sensitivity: float
    noise_scale: float
    sensitivity_proven: bool


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """One release of all records with independent Gaussian noise of standard deviation ``noise_scale``.

    ``sensitivity`` is the proven Euclidean change of the released vector when one record is replaced.
    """

    sensitivity: float
    noise_scale: float


@dataclass(frozen=True, kw_only=True)
class GaussianRounds:
    """``rounds`` Gaussian releases in sequence with a *proven* sensitivity, each on a fresh batch.

    ``sensitivity`` is the proven change, in the norm of the noise, of the statistic of one batch when one
    record of that batch is replaced; it holds whatever the earlier rounds released (they may choose where
    the next one looks).  ``noise_scale`` is the noise in the same unit.  A batch is ``batch_size`` of ``n``
    records without replacement, drawn anew each round; ``batch_size == n`` means all of them.

    >>> event = GaussianRounds(rounds=7, n=100, batch_size=100, sensitivity=2.0, noise_scale=16.0)
    >>> event.multiplier, event.full_batch
    (8.0, True)
    """

    rounds: int
    n: int
    batch_size: int
    sensitivity: float
    noise_scale: float

    def __post_init__(self) -> None:
        if self.rounds < 0 or not 1 <= self.batch_size <= self.n:
            raise ValueError("rounds must be at least 0 and batch_size between 1 and n")
        if not (0 < self.sensitivity < math.inf and 0 < self.noise_scale < math.inf):
            raise ValueError("sensitivity and noise_scale must be above 0")

    @property
    def multiplier(self) -> float:
        """Noise in units of the sensitivity under replace-one."""
        return self.noise_scale / self.sensitivity

    @property
    def share(self) -> float:
        """The part of the records that one round looks at."""
        return self.batch_size / self.n

    @property
    def full_batch(self) -> bool:
        return self.batch_size == self.n


Event = GaussianRelease | ExponentialDraws | SubsampledGaussianRounds | GaussianRounds
