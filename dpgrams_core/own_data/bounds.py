"""A box bought with privacy budget: noisy counts of one column in public bins, and the bins where records are.

Round 1 counts the records in fixed bins whose ends are 0 and the powers of two, either sign; the box reaches from the
first to the last bin whose noisy count cannot be noise.  Round 2 counts in 16 equal bins of that box and trims the
ends where nothing shows; it is left out, and its budget used in round 1, where n is too small for it to help.

Theorem.  Releasing the counts of T rounds, each with noise N(0, sigma^2) on every count, is (epsilon, delta)-DP for the
replacement of one record when sigma = sqrt(2) z sqrt(T), z the multiplier of the analytic Gaussian mechanism.

Proof.  A record is counted in one bin of a round, or in none, as one whose value is missing.  Replacing it takes 1 from
at most one count and adds 1 to at most one other, so the counts move by at most sqrt(2) in Euclidean norm; they
are whole numbers, so nothing is rounded.  The bins of round 2 depend on round 1's noisy counts only.  T such rounds are
one Gaussian release with multiplier z (privacy/accountants.py).  Thresholds, trimming and rounding are post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpgrams_core.model.checks import asked_epsilon, between
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.results import Guarantee
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRounds
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
SMALLEST_POWER, LARGEST_POWER = -20, 39
FINE_BINS = 16
SENSITIVITY = math.sqrt(2)
FALSE_ALARM = 1e-6  # the chance that noise alone passes for records in any bin of round 1
LEAST_ROWS = 80  # in units of sigma: records over ten bins still stand out
TRIM_ABOVE = 5.5  # noise levels at which records at an end are noticed, and kept
LARGEST_TRIM = 0.1  # round 2 is left out where it could trim more than this share without noticing


@dataclass(frozen=True, kw_only=True)
class RangePlan:
    """The rounds and the noise of an estimate, from n, epsilon and delta alone."""

    n: int
    epsilon: float
    delta: float
    rounds: int
    sigma: float

    @property
    def events(self) -> tuple[GaussianRounds, ...]:
        """What will run, for the ledger."""
        sizes = {"rounds": self.rounds, "n": self.n, "batch_size": self.n}
        return (GaussianRounds(**sizes, sensitivity=SENSITIVITY, noise_scale=self.sigma),)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateRange:
    """Bounds of one column that may be published, the noisy counts of each round, and what they cost."""

    low: float
    high: float
    counts: tuple[Array, ...]
    events: tuple[GaussianRounds, ...]
    guarantee: Guarantee


def plan_range(n: int, epsilon: float, delta: float) -> RangePlan:
    """Choose rounds and noise; refuse where n is too small for any answer, before anything is drawn.

    >>> plan_range(100_000, 0.5, 1e-6).rounds, plan_range(2_000, 0.5, 1e-6).rounds
    (2, 1)
    """
    one = SENSITIVITY * gaussian_multiplier(asked_epsilon("epsilon", epsilon), between("delta", delta, 0, 1))
    if n < LEAST_ROWS * one:
        needed = math.ceil(LEAST_ROWS * one)
        raise DataError(
            f"An estimate of the box with ε = {epsilon:g} and δ = {delta:g} needs at least {needed:,} rows, and there "
            f"are {n:,}. Spend more on it, or state the bounds. Nothing was charged and nothing was drawn."
        )
    two = math.sqrt(2) * one
    unnoticed = 2 * TRIM_ABOVE * two * math.sqrt(FINE_BINS)
    rounds, sigma = (2, two) if unnoticed <= LARGEST_TRIM * n else (1, one)
    return RangePlan(n=n, epsilon=float(epsilon), delta=float(delta), rounds=rounds, sigma=sigma)


def coarse_edges() -> Array:
    """The public ends of the bins of round 1, ascending: 0 and the powers of two from 2^-20 to 2^39, either sign.

    >>> coarse_edges().size
    121
    """
    powers = 2.0 ** np.arange(SMALLEST_POWER, LARGEST_POWER + 1)
    return np.concatenate([-powers[::-1], [0.0], powers])


def bin_counts(values: Array, edges: Array) -> Array:
    """How many values lie in each bin [edge, next edge); one beyond all edges or missing (NaN) is not counted.

    >>> bin_counts(np.array([0.5, 0.7, 1.5, np.nan, np.inf]), np.array([0.0, 1.0, 2.0])).tolist()
    [2.0, 1.0]
    """
    place = np.searchsorted(edges, values, side="right")  # NaN is sorted behind all edges
    return np.bincount(place, minlength=len(edges) + 1)[1:-1].astype(float)


def private_range(values: Array, plan: RangePlan, noise: Noise) -> PrivateRange:
    """Bounds for one column of n numbers, (n,); most records lie inside, a far few may not.

    Any number will do: a missing one is in no bin, and one beyond all bins, infinite or not, in the last.

    Raises
    ------
    DataError
        Where no bin stands out of the noise: records spread over many powers of two, or missing. The budget is spent
        then. It is the noisy counts that say so, which are released.

    Examples
    --------
    >>> from dpgrams_core.privacy.noise import SimulationNoise
    >>> plan = plan_range(20_000, 1.0, 1e-6)
    >>> found = private_range(np.linspace(1980, 2020, 20_000), plan, SimulationNoise(0))
    >>> found.low, found.high, found.guarantee.status
    (1920.0, 2048.0, 'proven')
    """
    if len(values) != plan.n:
        raise ValueError("the plan was made for another number of records; nothing was drawn")
    edges = coarse_edges()
    limit = edges[-1] * (1 - 2**-20)
    kept = np.clip(values, -limit, limit)  # beyond 2^39 a record counts in the last bin
    coarse = noise.independent_gaussian(bin_counts(kept, edges), plan.sigma)
    seen = np.flatnonzero(coarse > -plan.sigma * float(scipy.special.ndtri(FALSE_ALARM / len(coarse))))
    if len(seen) == 0:
        raise DataError(
            "The estimate found no bounds: no range of values stands out of the noise. What it cost is spent. State "
            "the bounds, or spend more on an estimate."
        )
    low, high = float(edges[seen[0]]), float(edges[seen[-1] + 1])
    counts = [coarse]
    if plan.rounds == 2:
        fine_edges = np.linspace(low, high, FINE_BINS + 1)
        fine = noise.independent_gaussian(bin_counts(values, fine_edges), plan.sigma)
        counts.append(fine)
        low, high = trimmed(fine_edges, fine, plan.sigma)
    why = "the bounds are read off noisy counts in public bins, and replacing one record moves the counts of a round"
    guarantee = Guarantee(
        epsilon=plan.epsilon, delta=plan.delta, status="proven", statement=f"Proven: {why} by at most √2."
    )
    return PrivateRange(low=low, high=high, counts=tuple(counts), events=plan.events, guarantee=guarantee)


def trimmed(edges: Array, counts: Array, sigma: float) -> tuple[float, float]:
    """The bounds without the bins at either end in which, taken together, no record shows above the noise."""

    def empty_bins(ordered: Array) -> int:
        level = TRIM_ABOVE * sigma * np.sqrt(np.arange(1, len(ordered) + 1))
        noticed = np.flatnonzero((np.cumsum(ordered) > level) | (ordered > TRIM_ABOVE * sigma))
        return int(noticed[0]) if len(noticed) else 0

    first, last = empty_bins(counts), len(counts) - empty_bins(counts[::-1])
    return (float(edges[first]), float(edges[last])) if first < last else (float(edges[0]), float(edges[-1]))
