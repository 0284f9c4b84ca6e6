"""How far off a mode will be, predicted from public facts alone: a rough guide, before anything is drawn.

The reference bump of bandwidths.py (a share w of the records, spread s a fixed part of the box) stands in for a
mode of the data.  It has density p_0 = w (2 pi q)^(-d/2) at its top, q = h^2 + s^2; its smoothed score is -x / q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpgrams_core.bandwidths import (
    REFERENCE_SHARE,
    REFERENCE_SKEWNESS,
    REFERENCE_SPREAD,
    mean_side,
    predicted_release_error,
)
from dpgrams_core.density import clipped_score
from dpgrams_core.methods.dp_grams_plan import Plan

Array = np.ndarray
_NODES_A_SIDE = 24  # of the lattice that stands for the reference bump


@dataclass(frozen=True)
class Prediction:
    """Squared error of the place of a mode that is reached, by cause; ``blind`` is that of a random guess."""

    privacy: float
    sampling: float
    bias: float
    blind: float

    @property
    def total(self) -> float:
        """The sum, but never worse than a guess: where noise wins, the formulas say nothing."""
        return min(self.privacy + self.sampling + self.bias, self.blind)

    @property
    def lost(self) -> bool:
        """Whether no more is predicted than a random guess."""
        return self.privacy + self.sampling + self.bias >= self.blind


def blind_error(box: Array) -> float:
    """Mean squared distance of two random points of the box."""
    return float(((box[:, 1] - box[:, 0]) ** 2).sum() / 6)


def predicted_release(h: float, *, n: int, box: Array, sigma: float) -> Prediction:
    """The functional release: the prediction that its bandwidth rule minimises."""
    parts = predicted_release_error(h, n=n, d=len(box), box=box, sigma=sigma)
    return Prediction(*parts, blind_error(box))


def predicted_mean_shift(h: float, *, n: int, box: Array) -> Prediction:
    """Mean shift run to its end: only the sample and the smoothing move the peak."""
    q = h**2 + (REFERENCE_SPREAD * mean_side(box)) ** 2
    sampling = len(box) * _score_variance(h, box) / n * q**2
    return Prediction(0.0, sampling, _smoothing_bias(h, box), blind_error(box))


def predicted_ascent(chosen: Plan, *, n: int, box: Array) -> Prediction:
    """DP-GRAMS, for a start that belongs to the bump and for one private mode a bump.

    Near the top a round is x <- a x + eta (noise), a = 1 - eta kappa / q, where kappa <= 1 is what clip and floor
    leave of the pull.  After T rounds the variance of a coordinate is eta^2 sigma^2 (1 + a^2 + ... + a^(2(T-1))):
    the privacy term, with sigma the noise of a score coordinate at p_0 (in the tight calibration the noisy
    gradient is clipped afterwards, so that no step is longer than eta A / max(p_0, p_floor)).  A fresh batch adds
    its own variance v (1/m - 1/n) to each round, and the sample itself moves the fixed point by v q^2 / n.
    A start lies within h_DAP of the top, about uniformly; what T rounds leave of it, a^(2T) h_DAP^2 / (d + 2),
    counts with the smoothing bias.  Not in it: starts that reach no mode, other bumps nearby, several starts
    averaged by the merge, and noise beyond the reach of the bump.
    """
    h, d, rounds, eta = chosen.bandwidth.value, len(box), chosen.n_steps, chosen.step_size
    s = REFERENCE_SPREAD * mean_side(box)
    q = h**2 + s**2
    top = REFERENCE_SHARE * (2 * math.pi * q) ** (-d / 2)
    sigma = chosen.sigma
    if chosen.density_floor is None or chosen.gradient_clip is None:
        kappa = _clipped_pull(chosen, s, d)
    else:
        height = max(top, chosen.density_floor)
        kappa = top / height
        if chosen.process_noise is not None:
            sigma = min(sigma * chosen.density_floor / height, chosen.gradient_clip / height / math.sqrt(d))
    with np.errstate(over="ignore"):
        powers = (1 - eta * kappa / q) ** (2.0 * np.arange(rounds + 1))
    gain = eta**2 * float(powers[:-1].sum())
    variance = _score_variance(h, box)
    batch = gain * kappa**2 * variance * (1 / chosen.batch_size - 1 / n)
    return Prediction(
        d * gain * sigma**2,
        d * (batch + variance / n * q**2),
        _smoothing_bias(h, box) + d * float(powers[-1]) * chosen.init_bandwidth**2 / (d + 2),
        blind_error(box),
    )


def _score_variance(h: float, box: Array) -> float:
    """Variance of a coordinate of grad k_h(X) / p_0 over one record: v of the sampling term.

    E g^2 = w (2 pi h^2)^-d h^-4 (h^2 / (h^2 + 2 s^2))^(d/2) s^2 h^2 / (h^2 + 2 s^2), a Gaussian integral.
    """
    d, s = len(box), REFERENCE_SPREAD * mean_side(box)
    r, q = h**2 + 2 * s**2, h**2 + s**2
    # The powers of h and of 2 pi are gathered: for a tiny h each of them alone would overflow.
    return (q * q / (h * h * r)) ** (d / 2) * s**2 / (REFERENCE_SHARE * h**2 * r)


def _smoothing_bias(h: float, box: Array) -> float:
    """(c h^2 / 2 s)^2, as in the rule of the functional release."""
    return float((REFERENCE_SKEWNESS * h**2 / (2 * REFERENCE_SPREAD * mean_side(box))) ** 2)


def _clipped_pull(chosen: Plan, s: float, d: int) -> float:
    """kappa of the experiments calibration: the clipped mean contribution on a lattice bump, over x / q.

    The bump holds a share w of the records, so clipping g_i / (w p) at C is clipping g_i / p at w C.
    """
    h = chosen.bandwidth.value
    side = ndtri((np.arange(_NODES_A_SIDE) + 0.5) / _NODES_A_SIDE)
    lattice = s * np.stack(np.meshgrid(*[side] * d, indexing="ij"), axis=-1).reshape(-1, d)
    away = 0.25 * math.hypot(h, s)
    clip = chosen.spec.clip_multiplier * h ** -(d + 1) * REFERENCE_SHARE
    at = np.zeros((1, d))
    at[0, 0] = away
    clipped, _ = clipped_score(chosen.kernel, lattice, at, h, clip)
    plain, _ = clipped_score(chosen.kernel, lattice, at, h, math.inf)
    return float(np.clip(clipped[0, 0] / plain[0, 0], 0.0, 1.0)) if plain[0, 0] else 1.0
