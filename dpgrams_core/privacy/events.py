"""Frozen descriptions of what ran. They hold public facts only; accounting.py prices them."""

from __future__ import annotations

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


Event = GaussianRelease | ExponentialDraws | SubsampledGaussianRounds
