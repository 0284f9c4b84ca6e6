"""Every method and calibration side by side at one setting.

Nothing private is drawn here: rows come from the plans, which fix noise and guarantee before any draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpgrams_core.datasets.registry import MAX_N, MIN_N, load_dataset
from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.ascent import rounds_event
from dpgrams_core.methods.baselines.mean_shift import MeanShiftSpec
from dpgrams_core.methods.dp_grams.plan import Plan, default_rounds, plan
from dpgrams_core.methods.dp_grams.rounds import SENSITIVITY as ROUND_SENSITIVITY
from dpgrams_core.methods.dp_grams.rounds import kernel_sums
from dpgrams_core.methods.dp_grams.run import guarantee_of, typical_score
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.functional.modes import SENSITIVITY as RELEASE_SENSITIVITY
from dpgrams_core.methods.functional.modes import guarantee_of as release_guarantee
from dpgrams_core.methods.functional.modes import release_event
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Guarantee, refuse_private
from dpgrams_core.model.run import Run
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.numerics import bandwidths
from dpgrams_core.numerics.density import clipped_score
from dpgrams_core.numerics.surface import box_bases
from dpgrams_core.privacy.accountants import rounds_epsilon, rounds_multiplier
from dpgrams_core.privacy.accounting import batch_epsilon, price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import Event, ExponentialDraws, GaussianRelease, GaussianRounds
from dpgrams_core.sweeps.run import CellResult

Array = np.ndarray
Options = tuple[tuple[str, Any], ...]

# How far off a mode will be, predicted from public facts alone: a rough guide, before anything is drawn.
#
# The reference bump of bandwidths.py (a share w of the records, spread s a fixed part of the box) stands in for a
# mode of the data.  It has density p_0 = w (2 pi q)^(-d/2) at its top, q = h^2 + s^2; its smoothed score is -x / q.

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
        return self.privacy + self.sampling + self.bias >= self.blind


def blind_error(box: Array) -> float:
    """Mean squared distance of two random points of the box."""
    return float(((box[:, 1] - box[:, 0]) ** 2).sum() / 6)


def predicted_mean_shift(h: float, *, n: int, box: Array) -> Prediction:
    """Mean shift run to its end: only the sample and the smoothing move the peak."""
    q = h**2 + _spread(box) ** 2
    sampling = len(box) * _score_variance(h, box) / n * q**2
    return Prediction(0.0, sampling, _smoothing_bias(h, box), blind_error(box))


def predicted_ascent(chosen: Plan, *, n: int, box: Array) -> Prediction:
    """DP-GRAMS, for a start that belongs to the bump and for one private mode a bump.

    Near the top a round is x <- a x + eta (noise), a = 1 - eta kappa / q, where kappa <= 1 is what clip and floor
    leave of the pull.  After T rounds the variance of a coordinate is eta^2 sigma^2 (1 + a^2 + ... + a^(2(T-1))):
    the privacy term, with sigma the noise of a score coordinate at p_0.  A fresh batch adds
    its own variance v (1/m - 1/n) to each round, and the sample itself moves the fixed point by v q^2 / n.
    A start lies within h_DAP of the top, about uniformly; what T rounds leave of it, a^(2T) h_DAP^2 / (d + 2),
    counts with the smoothing bias.  Not in it: starts that reach no mode, other bumps nearby, several starts
    averaged by the merge, and noise beyond the reach of the bump.

    The tight calibration reads all rounds together and climbs on what they give to the end: there the gradient's noise
    over the curvature p_0 / q moves the peak, by sigma q with sigma the noise of all rounds together.
    """
    h, d, rounds, eta = chosen.bandwidth.value, len(box), chosen.n_steps, chosen.step_size
    s = _spread(box)
    q = h**2 + s**2
    top = bandwidths.REFERENCE_SHARE * (2 * math.pi * q) ** (-d / 2)
    if chosen.process_noise is not None:
        moved = (2 * math.pi) ** (-d / 2) / (chosen.batch_size * h ** (d + 1)) / top * q
        privacy = d * (chosen.process_noise * moved) ** 2 / rounds
        sampling = d * _score_variance(h, box) / chosen.batch_size * q**2
        return Prediction(privacy, sampling, _smoothing_bias(h, box), blind_error(box))
    sigma = chosen.sigma
    if chosen.density_floor is None or chosen.gradient_clip is None:
        kappa = _clipped_pull(chosen, s, d)
    else:
        height = max(top, chosen.density_floor)
        kappa = top / height
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


def _spread(box: Array) -> float:
    return bandwidths.REFERENCE_SPREAD * bandwidths.mean_side(box)


def _score_variance(h: float, box: Array) -> float:
    """Variance of a coordinate of grad k_h(X) / p_0 over one record: v of the sampling term.

    E g^2 = w (2 pi h^2)^-d h^-4 (h^2 / (h^2 + 2 s^2))^(d/2) s^2 h^2 / (h^2 + 2 s^2), a Gaussian integral.
    """
    d, s = len(box), _spread(box)
    r, q = h**2 + 2 * s**2, h**2 + s**2
    # The powers of h and of 2 pi are gathered: for a tiny h each of them alone would overflow.
    return (q * q / (h * h * r)) ** (d / 2) * s**2 / (bandwidths.REFERENCE_SHARE * h**2 * r)


def _smoothing_bias(h: float, box: Array) -> float:
    """(c h^2 / 2 s)^2, as in the rule of the functional release."""
    return float((bandwidths.REFERENCE_SKEWNESS * h**2 / (2 * _spread(box))) ** 2)


def _clipped_pull(chosen: Plan, s: float, d: int) -> float:
    """kappa of the experiments calibration: the clipped mean contribution on a lattice bump, over x / q.

    The bump holds a share w of the records, so clipping g_i / (w p) at C is clipping g_i / p at w C.
    """
    h = chosen.bandwidth.value
    side = scipy.special.ndtri((np.arange(_NODES_A_SIDE) + 0.5) / _NODES_A_SIDE)
    lattice = s * np.stack(np.meshgrid(*[side] * d, indexing="ij"), axis=-1).reshape(-1, d)
    away = 0.25 * math.hypot(h, s)
    assert chosen.contribution_clip is not None  # the plan of this calibration has one
    clip = chosen.contribution_clip * bandwidths.REFERENCE_SHARE
    at = np.zeros((1, d))
    at[0, 0] = away
    clipped, _ = clipped_score(chosen.kernel, lattice, at, h, clip)
    plain, _ = clipped_score(chosen.kernel, lattice, at, h, math.inf)
    return float(np.clip(clipped[0, 0] / plain[0, 0], 0.0, 1.0)) if plain[0, 0] else 1.0


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """What all methods are compared at; ``None`` means each method's own default. Public values."""

    dataset: str = "four_corners"
    n: int = 5_000
    epsilon: float = 1.0
    delta: float = 1e-6
    batch_size: int | None = None
    n_steps: int | None = None
    clip_multiplier: float = 1.0
    bandwidth_scale: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A method with the options that ``run`` and a sweep take."""

    key: str
    title: str
    method: str
    options: Options = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A candidate with its guarantee, noise and prediction; ``signal`` is what the noise hides (not private)."""

    candidate: Candidate
    guarantee: Guarantee
    bandwidth: float
    events: tuple[Event, ...]
    stages: tuple[tuple[str, float], ...]
    prediction: Prediction
    noise: float | None = None
    signal: float | None = None
    hides: str = "score"
    facts: str = ""

    @property
    def ratio(self) -> float | None:
        if self.noise is None or self.signal is None:
            return None
        return self.noise / self.signal if self.signal > 0 else math.inf


def candidates(settings: ComparisonSettings) -> tuple[Candidate, ...]:
    """The methods to compare; ``tight`` also with all records a round where the batch is smaller.

    >>> [item.key for item in candidates(ComparisonSettings(batch_size=500))]
    ['tight', 'theorem', 'experiments', 'tight_full', 'functional', 'mean_shift']
    """
    budget: dict[str, Any] = {"epsilon": settings.epsilon, "delta": settings.delta}
    scale = {"bandwidth_scale": settings.bandwidth_scale}
    ascent = {**budget, **scale, "clip_multiplier": settings.clip_multiplier}
    if settings.n_steps is not None:
        ascent["n_steps"] = settings.n_steps
    batch = {} if settings.batch_size is None else {"batch_size": settings.batch_size}
    partial = settings.batch_size not in (None, settings.n)
    found: list[tuple[str, str, str, dict[str, Any]]] = []
    for name in CALIBRATIONS:
        if name == AS_RUN:  # it has other parts, and no plan to compare by
            continue
        title = f"{METHODS['dp_grams'].title} {name}" + (" (minibatch)" if name == "tight" and partial else "")
        found.append((name, title, "dp_grams", {**ascent, **batch, "calibration": name}))
    if partial:
        options = {**ascent, "batch_size": settings.n, "calibration": "tight"}
        found.append(("tight_full", "DP-GRAMS tight (all records)", "dp_grams", options))
    for name, options in (("functional", budget | scale), ("mean_shift", scale)):
        found.append((name, METHODS[name].title, name, options))
    return tuple(Candidate(key, title, method, tuple(sorted(options.items()))) for key, title, method, options in found)


def compare(settings: ComparisonSettings, data: Dataset) -> tuple[Row, ...]:
    """One row for each candidate, from plans alone; refuses what a run would refuse.

    >>> from dpgrams_core import load_dataset
    >>> rows = compare(ComparisonSettings(n=1000), load_dataset("four_corners", n=1000, seed=0))
    >>> [(row.candidate.key, row.guarantee.status) for row in rows][:3]
    [('tight', 'proven'), ('theorem', 'as published'), ('experiments', 'nominal')]
    """
    refuse_private(data)
    rows = tuple(row_of(item, data, data.points) for item in candidates(settings))
    for row in rows:
        if row.candidate.method == "functional":
            box_bases(data.box, row.bandwidth)  # refuses a grid that is too large, as the run would
    return rows


def row_of(candidate: Candidate, data: Dataset, records: Array) -> Row:
    """The row of one candidate on data of which n, d and the box count; ``records`` show what the noise hides."""
    refuse_private(data)
    build = {"dp_grams": _ascent_row, "functional": _functional_row, "mean_shift": _mean_shift_row}
    return build[candidate.method](candidate, data, records)


def _ascent_row(candidate: Candidate, data: Dataset, records: Array) -> Row:
    spec = DPGramsSpec(**dict(candidate.options))
    chosen = plan(spec, data)
    events = (chosen.start, rounds_event(chosen, data.n))
    return Row(
        candidate=candidate,
        guarantee=data.qualified(guarantee_of(chosen, events), spec),
        bandwidth=chosen.bandwidth.value,
        events=events,
        stages=price(events, spec.delta).stages,
        prediction=predicted_ascent(chosen, n=data.n, box=data.box),
        noise=chosen.sigma,
        signal=typical_score(chosen, records),
        facts=f"m = {chosen.batch_size:,}, T = {chosen.n_steps}, k = {chosen.n_starts}",
    )


def _functional_row(candidate: Candidate, data: Dataset, records: Array) -> Row:
    spec = FunctionalSpec(**dict(candidate.options))
    wanted = RELEASE_SENSITIVITY * gaussian_multiplier(spec.epsilon, spec.delta)
    rule = bandwidths.release_bandwidth(n=data.n, d=data.dimension, box=data.box, sigma=wanted)
    bandwidth = bandwidths.Bandwidth(rule * (spec.bandwidth_scale or 1.0), "release", True)
    event = release_event(spec, data.n, data.box, bandwidth.value)
    facts: dict[str, Any] = {"n": data.n, "d": data.dimension, "box": data.box, "sigma": event.noise_scale}
    errors = bandwidths.predicted_release_error(bandwidth.value, **facts)  # what its bandwidth rule minimises
    return Row(
        candidate=candidate,
        guarantee=data.qualified(release_guarantee(spec, bandwidth, event), spec),
        bandwidth=bandwidth.value,
        events=(event,),
        stages=price((event,), spec.delta).stages,
        prediction=Prediction(*errors, blind_error(data.box)),
        noise=event.noise_scale,
        signal=typical_height(records, bandwidth.value, data.n),
        hides="height",
        facts="one release",
    )


def _mean_shift_row(candidate: Candidate, data: Dataset, _: Array) -> Row:
    spec = MeanShiftSpec(**dict(candidate.options))
    facts = bandwidths.BandwidthFacts(
        n=data.n, d=data.dimension, box=data.box, epsilon=math.inf, beta=spec.beta, points=data.points
    )
    h = bandwidths.choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts).value
    return Row(
        candidate=candidate,
        guarantee=Guarantee.no_privacy("Mean shift"),
        bandwidth=h,
        events=(),
        stages=(),
        prediction=predicted_mean_shift(h, n=data.n, box=data.box),
    )


def typical_height(records: Array, h: float, n: int) -> float:
    """Median height of the kernel sum of n records at a record (not private), from a thousand of them."""
    some = records[:: max(1, len(records) // 1000)]
    at = records[:: max(1, len(records) // 100)]
    return float(np.median(kernel_sums(some, at, h)[: len(at)])) * n / len(some)


def round_epsilon_alone(event: Event, delta: float) -> float | None:
    """epsilon of a single round at ``delta``, where the event has rounds; T rounds cost less than T of these."""
    if isinstance(event, GaussianRounds):
        return rounds_epsilon(replace(event, rounds=1), delta)
    if isinstance(event, (ExponentialDraws, GaussianRelease)):
        return None
    return math.log1p(event.batch_size / event.n * math.expm1(batch_epsilon(event, delta)))


def tight_rounds(settings: ComparisonSettings, epsilon: float) -> GaussianRounds:
    """The rounds of the tight calibration at these settings, with noise for ``epsilon`` on the ascent alone.

    >>> tight_rounds(ComparisonSettings(n=1000, n_steps=7), 1.0).full_batch
    True
    """
    rounds = default_rounds(settings.n, "tight") if settings.n_steps is None else settings.n_steps
    batch = settings.n if settings.batch_size is None else settings.batch_size
    noise = ROUND_SENSITIVITY * rounds_multiplier(epsilon, settings.delta, settings.n, batch, rounds)
    sizes = {"rounds": rounds, "n": settings.n, "batch_size": batch}
    return GaussianRounds(**sizes, sensitivity=ROUND_SENSITIVITY, noise_scale=noise)


def comparison_cell(candidate: Candidate, settings: ComparisonSettings, runs: int, seed: int) -> Run:
    """The runs that measure a candidate; all candidates of one seed see the same data."""
    options = tuple((name, value) for name, value in candidate.options if name != "epsilon")
    private = METHODS[candidate.method].private
    return Run(
        method=candidate.method,
        dataset=settings.dataset,
        n=settings.n,
        epsilon=settings.epsilon if private else math.inf,
        runs=runs,
        seed=seed,
        data_seed=None,
        derived=True,
        options=options,
    )


def pooled(results: Sequence[CellResult]) -> CellResult:
    """Cells of one candidate that differ only in their seed, as one; its runs are numbered anew."""
    outcomes = dict(enumerate(outcome for result in results for outcome in result.outcomes.values()))
    return CellResult(
        cell=replace(results[0].cell, runs=sum(result.cell.runs for result in results)), outcomes=outcomes
    )


# How many records each method needs: noise over what it hides as n grows, from plans alone.

USEFUL_RATIO = 1 / 3  # noise over what it hides; above it the guarantee card says "rough", above 1 "swamps"
CURVE_SIZES = tuple(round(10 ** (2 + i / 4)) for i in range(17))  # 100 to 1,000,000
_REFERENCE_N = 2_000


@dataclass(frozen=True)
class NoiseCurve:
    """Noise over what it hides as n grows, one method; nan where the settings cannot run."""

    title: str
    sizes: tuple[int, ...]
    ratios: tuple[float, ...]

    def stays_below(self, limit: float) -> float | None:
        """The n from which on the ratio stays at most ``limit``; None if that is beyond the curve."""
        above = [i for i, ratio in enumerate(self.ratios) if not ratio <= limit]
        if not above:
            return float(self.sizes[0])
        last = above[-1]
        if last == len(self.sizes) - 1:
            return None
        if math.isnan(self.ratios[last]):
            return float(self.sizes[last + 1])
        # A straight line between the two points on log scales.
        (x0, x1), (y0, y1) = np.log(self.sizes[last : last + 2]), np.log(self.ratios[last : last + 2])
        return float(math.exp(x0 + (x1 - x0) * (math.log(limit) - y0) / (y1 - y0)))


def noise_ratios(settings: ComparisonSettings, size: int) -> dict[str, float]:
    """Noise over signal at one n for every private candidate, by its key, without a run; nan where it cannot run.

    The plan sets the noise; what it hides is measured on one reference sample of the data set's law (synthetic)
    at this n's bandwidth.  A chosen batch keeps its share of the records.

    >>> sorted(noise_ratios(ComparisonSettings(), 1000))
    ['experiments', 'functional', 'theorem', 'tight']
    """
    n = whole("n", size, MIN_N, MAX_N)
    law = load_dataset(settings.dataset, n=_REFERENCE_N, seed=0)
    blank = Dataset(name=law.name, kind=law.kind, points=np.zeros((n, law.dimension)), box=law.box)
    batch = None
    if settings.batch_size is not None:
        batch = min(n, max(1, round(settings.batch_size / settings.n * n)))
    found = {}
    for item in candidates(replace(settings, n=n, batch_size=batch)):
        if not METHODS[item.method].private:
            continue
        checkpoint()
        try:
            ratio = row_of(item, blank, law.points).ratio
        except SpecError:  # a gap: this n cannot be run with these settings
            ratio = None
        found[item.key] = math.nan if ratio is None else ratio
    return found


def curves_from(settings: ComparisonSettings, found: Mapping[int, Mapping[str, float]]) -> tuple[NoiseCurve, ...]:
    """One curve a candidate from the ratios of some n."""
    sizes = tuple(sorted(found))
    return tuple(
        # Where the share rounds to all records, tight stands once and serves for both.
        NoiseCurve(item.title, sizes, tuple(found[n].get(item.key, found[n]["tight"]) for n in sizes))
        for item in candidates(settings)
        if METHODS[item.method].private
    )
