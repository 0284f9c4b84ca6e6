"""What counts and repeated runs show: the standard error of a mean, and exact bounds of a probability."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

Array = np.ndarray


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean of some runs; NaN with fewer than two, or where one is not finite."""
    known = len(values) > 1 and bool(np.isfinite(values).all())
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if known else math.nan


def clopper_pearson(counts: Array, trials: int, tail: float) -> tuple[Array, Array]:
    """Exact lower and upper confidence bounds for probabilities, each wrong with chance at most ``tail``."""
    counts = np.asarray(counts, dtype=float)
    missed = trials - counts
    # The parameters must be above 0; at the ends the bound is 0 or 1 and is put in by hand.
    low = np.where(counts == 0, 0.0, scipy.special.betaincinv(np.maximum(counts, 1), missed + 1, tail))
    high = np.where(missed == 0, 1.0, 1 - scipy.special.betaincinv(np.maximum(missed, 1), counts + 1, tail))
    return low, high
