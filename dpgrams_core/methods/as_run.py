"""What the calibration ``as_run`` of DP-GRAMS, DP-GRAMS-C and DP-PMS shares: its noise, its price, its words.

``as_run`` repeats the paper's runs, written anew from a description of them.  Both tables of modes come out of it to
every printed digit, mean and standard error, with the authors' seeds.  For clusters it is the same mechanism with
settings that are plausible and not known; DP-PMS is the authors' public code, which did not make the printed column
(dp_pms/as_run.py).  What made the tables of modes is one step from the authors' public code of May 2026: with the
half-width of the lattice that the appendix on RNA-Seq names (R90), and other settings for each data set.  It follows
the printed algorithm: DAP on a lattice, one shared minibatch a round, noise that is correlated by the current iterates.
It differs from the text in these places:

================  ==================================================  ===========================================
                  printed                                             as run
================  ==================================================  ===========================================
contribution      clip_A(grad p_B) / max(p_B, p_floor), or q_i        q_i over the kernel total of the batch,
                  clipped at C* and averaged (subsec:exp-impl)        clipped at C and *summed*
noise             for 2 C / m, or Delta_corr / m (eq:sigma-corr)      for 2 C / m
utility of DAP    records within h_DAP                                within a multiple of h_DAP (modes: 3)
candidates        "fixed public finite candidate set"                 a lattice as wide as 0.90 of the records
bandwidth h       a theory rule or Silverman's                        Silverman's rule on the records
merge radius      h_mode                                              Silverman's rule on the end points
m                 ceil(n / log n)                                     floor(n / log n)
"independent"     runs                                                of the mechanism, on one draw of the records
================  ==================================================  ===========================================

What follows.  q_i carries the 1/m of an average already, so near a mode it is far below C, the clip hardly ever acts,
and the noise is about m times smaller than what the clip bounds would ask for; one record moves the sum by up to 2 C
directly, and through the shared denominator without any such bound.  So no ε is claimed here: status ``none``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy

from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.guarantee import Guarantee
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, refuse_private
from dpgrams_core.numerics.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth
from dpgrams_core.privacy.accountants import poisson_gaussian_epsilon, subsampled_gaussian_epsilon
from dpgrams_core.privacy.calibration import exact_epsilon
from dpgrams_core.privacy.noise import Noise, RepeatedDraws, SimulationNoise

Array = np.ndarray
AS_RUN = "as_run"
QUIET = 1e-12  # added to a kernel total, so that a start without any record stands still
LARGE = 50.0  # an ε of a round from which on log(1 + c (e^ε - 1)) is log c + ε to the last digit, and e^ε may overflow
LEAST_NOISE = 0.005  # over C: below it prices are those without sampling, which is in the thousands either way
MOST_EPSILON = 1e6  # far beyond any noise that is seen, and no formula here overflows yet
ON_THE_DIAGONAL = 1e-8  # of the correlation matrix, so that coinciding starts have a Cholesky factor
PAIRS = 4_000_000  # pairs of (place, record) held in memory at once


def simulation_only(data: Dataset, noise: Noise) -> RepeatedDraws:
    """The draws of a run, or a refusal: no private record comes in here."""
    refuse_private(data)  # whoever asks by name gets the sentence below (``run`` and ``quote``)
    if not isinstance(noise, SimulationNoise):
        raise refused_on_private()
    return RepeatedDraws(noise)


def refused_on_private() -> SpecError:
    """Why private data are refused, naming what is allowed there."""
    return SpecError(
        "calibration",
        AS_RUN,
        "it has no guarantee and reads settings off the records, so it runs on simulated and public data only; for "
        "private data choose one of experiments, theorem, tight",
    )


def refuse_as_run(spec: Any) -> None:
    """For what is made of the parts of the printed algorithm, such as a ladder of its errors."""
    if spec.calibration == AS_RUN:
        allowed = "it has other parts than these; choose one of experiments, theorem, tight"
        raise SpecError("calibration", AS_RUN, allowed)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The rounds of an ascent as the noise formulas see them."""

    n: int
    batch_size: int
    n_steps: int
    epsilon: float  # the ascent's part
    delta: float

    @property
    def noise_of_clip(self) -> float:
        """sigma / C: two formulas by the ascent's part of ε, both for a clipped contribution that is *averaged*.

        The first is not in the paper: it is the second for small ε, and always a little below it.  The second is
        eq:sigma-corr with 2 C for Delta_corr and with one of the three terms of its minimum.
        """
        n, m, rounds, delta = self.n, self.batch_size, self.n_steps, self.delta
        tail = math.log(2.5 * m * rounds / (n * delta))
        if self.epsilon <= 1:
            return 8 / (n * self.epsilon) * math.sqrt(rounds * math.log(2 / delta) * tail)
        each = self.epsilon / (2 * math.sqrt(2 * rounds * math.log(2 / delta)))
        log = math.log(1 + n / m * (math.exp(each) - 1)) if each < LARGE else math.log(n / m) + each
        return 2 / m / log * math.sqrt(2 * tail)

    @property
    def kindest_prices(self) -> tuple[float, float]:
        """What accountants give for the rounds if all is as kind as can be: (replace one record, add or remove one).

        Kind means: one start only, no shared denominator, a public bandwidth and box, and one record changes one
        clipped contribution of the sum, by at most 2 C when it is replaced and C when it is added or removed.  The
        first is for batches without replacement, the lesser of a Rényi bound and the exact price of rounds whose
        batches are known; the second, kinder still, for Poisson samples, by the distribution of the privacy loss.
        Neither depends on the clip multiplier.

        >>> once = Rounds(n=1000, batch_size=144, n_steps=7, epsilon=0.5, delta=1e-6)
        >>> [round(price, 1) for price in once.kindest_prices]
        [63.2, 10.3]
        """
        share, z = self.batch_size / self.n, self.noise_of_clip
        replaced, added = (exact_epsilon(part / math.sqrt(self.n_steps), self.delta) for part in (z / 2, z))
        if z > LEAST_NOISE:
            replaced = min(replaced, subsampled_gaussian_epsilon(z / 2, share, self.n_steps, self.delta))
            added = poisson_gaussian_epsilon(z, share, self.n_steps, self.delta)
        return replaced, added


def rounds_of(spec: Any, n: int, init_fraction: float) -> Rounds:
    """The rounds of a spec, refused where the noise formula or the price of its noise has no value."""
    rounds = Rounds(
        n=n,
        batch_size=int(n / math.log(n)) if spec.batch_size is None else spec.batch_size,
        n_steps=math.ceil(math.log(n)) if spec.n_steps is None else spec.n_steps,
        epsilon=(1 - init_fraction) * spec.epsilon,
        delta=spec.delta,
    )
    if rounds.epsilon > MOST_EPSILON:
        raise SpecError("epsilon", rounds.epsilon, f"the ascent's part of it may be {MOST_EPSILON:g} at most as run")
    if rounds.batch_size > n:
        raise SpecError("batch_size", rounds.batch_size, f"it must be between 1 and n = {n}")
    highest = 2.5 * rounds.batch_size * rounds.n_steps / n
    if rounds.delta >= highest:
        raise SpecError("delta", rounds.delta, f"the noise of this calibration needs it below {highest:.3g}")
    return rounds


def bandwidth_of(spec: Any, facts: BandwidthFacts, silverman: float) -> Bandwidth:
    """What is asked for, else Silverman's rule in the form of the authors' code."""
    if spec.bandwidth is not None:
        return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts, spec.bandwidth_from)
    value = (1.0 if spec.bandwidth_scale is None else spec.bandwidth_scale) * silverman
    if not value > 0:
        raise SpecError("bandwidth", None, "Silverman's rule gives 0 on these data; give a number above 0")
    return choose_bandwidth(value, None, facts, "silverman")


@dataclass(frozen=True, kw_only=True)
class PlanAsRun:
    """The settings of a run: those asked for, else those of the data set's table, else the usual ones."""

    spec: Any
    bandwidth: Bandwidth
    clip_multiplier: float
    clip: float  # C, the longest contribution to a step
    init_fraction: float
    n_starts: int
    init_bandwidth: float
    rounds: Rounds

    @property
    def h(self) -> float:
        """The bandwidth as a number."""
        return self.bandwidth.value

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a step."""
        return self.clip * self.rounds.noise_of_clip

    def filled_spec(self) -> Any:
        """The spec as it ran; a lattice of candidates stays unsaid, since it is read off the records."""
        names = {item.name for item in fields(self)} & {item.name for item in fields(self.spec)}
        values = {name: getattr(self, name) for name in names - {"bandwidth", "candidates"}}
        ran: dict[str, Any] = {"batch_size": self.rounds.batch_size, "n_steps": self.rounds.n_steps}
        return replace(self.spec, **self.bandwidth.as_run(), **values, **ran)


def parts(count: int, each: int) -> Iterator[slice]:
    """Slices of ``count`` places with about ``PAIRS`` numbers in all, when a place has ``each``."""
    rows = max(1, PAIRS // max(1, each))
    for first in range(0, count, rows):
        checkpoint()
        yield slice(first, first + rows)


def draw_starts(chosen: PlanAsRun, places: Array, share: Array, radius: float, draws: RepeatedDraws) -> Array:
    """The numbers of the chosen places, each by its share of the records and farther than ``radius`` from the others.

    When all are suppressed, those never chosen are open again.
    """
    open_, picked = np.ones(len(places), dtype=bool), list[int]()
    scale = chosen.rounds.n * chosen.init_fraction * chosen.spec.epsilon / chosen.n_starts
    for _ in range(chosen.n_starts):
        checkpoint()
        if not open_.any():
            open_[:] = True
            open_[picked] = False
        left = np.flatnonzero(open_)
        picked.append(draws.weighted(left, scale * share[left] / 2))
        open_ &= np.linalg.norm(places - places[picked[-1]], axis=1) > radius
    return np.array(picked)


def correlated_noise(at: Array, h: float, draws: RepeatedDraws) -> Array:
    """Standard normals at the current iterates, correlated by K_t."""
    correlation = np.exp(-scipy.spatial.distance.cdist(at, at) / h) + ON_THE_DIAGONAL * np.eye(len(at))
    return np.asarray(np.linalg.cholesky(correlation) @ draws.normals(at.shape))


# What a distinguishing game found on the authors' code of May 2026 for modes, n = 1,000, δ = 1e-6, and what it did not.
ATTACKED = (
    "An attack on the authors' public code for modes (n = 1,000) that sees whole trajectories found an ε of at least "
    "4.3 at nominal 0.1, 3.1 at nominal 1 and, in an exact simulation with more trials, 6.0 at nominal 1 and 5.0 at "
    "nominal 5. From the final modes alone the simulation found 0.65 at nominal 0.1, and nothing was caught at "
    "nominal 1 and 5, which proves nothing."
)
NOT_ATTACKED = "No attack on this method was played; the one on DP-GRAMS as run, with the same noise, caught it."


def guarantee_as_run(rounds: Rounds, *, epsilon: float, what: str, read: str, attacked: str) -> Guarantee:
    """Status ``none``, with what is known: what is read off the records, the kindest price, and what an attack found.

    ``what`` names the tables and how near they are, ``read`` what is read off the records.
    """
    replaced, added = rounds.kindest_prices
    statement = (
        f"No guarantee: ε = {epsilon:g} is the paper's name for this run. {what} It sums clipped contributions under "
        "noise that is set for their mean, and settings are read off the records."
    )
    kind = (
        f"In the kindest case (one start, public settings, one record moves one clipped contribution) an accountant "
        f"gives the ascent, whose part of ε is {rounds.epsilon:.3g}, an ε of {added:.3g} when a record is added or "
        f"removed and {replaced:.3g} when one is replaced. In fact contributions share a denominator, so that no "
        "bound holds."
    )
    return Guarantee(
        epsilon=math.inf,
        delta=1.0,
        status="none",
        statement=statement,
        caveats=(f"Not paid for: {read}.", kind, attacked),
    )
