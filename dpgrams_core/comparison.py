"""Every method and calibration side by side at one setting.

Nothing private is drawn here: rows come from the plans, which fix noise and guarantee before any draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import Bandwidth, BandwidthFacts, choose_bandwidth, release_bandwidth
from dpgrams_core.density import clipped_score
from dpgrams_core.methods.dp_grams import guarantee_of, rounds_event, stabilised_score, typical_score
from dpgrams_core.methods.dp_grams_plan import Plan, plan
from dpgrams_core.methods.functional import SENSITIVITY as RELEASE_SENSITIVITY
from dpgrams_core.methods.functional import guarantee_of as release_guarantee
from dpgrams_core.methods.functional import release_event
from dpgrams_core.methods.linear_rounds import SENSITIVITY as ROUND_SENSITIVITY
from dpgrams_core.methods.linear_rounds import kernel_sums
from dpgrams_core.predictions import Prediction, predicted_ascent, predicted_mean_shift, predicted_release
from dpgrams_core.privacy.accountants import rounds_epsilon, rounds_multiplier
from dpgrams_core.privacy.accounting import batch_epsilon, price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import Event, ExponentialDraws, GaussianRelease, GaussianRounds
from dpgrams_core.results import Dataset, Guarantee, refuse_private
from dpgrams_core.specs import CALIBRATIONS, DPGramsSpec, FunctionalSpec, MeanShiftSpec
from dpgrams_core.surfaces import box_bases
from dpgrams_core.sweeps import Cell, CellResult

Array = np.ndarray
Options = tuple[tuple[str, Any], ...]


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


@dataclass(frozen=True, kw_only=True)
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
        """Noise over what it hides."""
        if self.noise is None or self.signal is None:
            return None
        return self.noise / self.signal if self.signal > 0 else math.inf


def candidates(settings: ComparisonSettings) -> tuple[Candidate, ...]:
    """The methods to compare; ``tight`` also with all records a round where the batch is smaller.

    >>> [item.key for item in candidates(ComparisonSettings(batch_size=500))]
    ['experiments', 'theorem', 'tight', 'tight_full', 'functional', 'mean_shift']
    """
    budget: dict[str, Any] = {"epsilon": settings.epsilon, "delta": settings.delta}
    scale = {"bandwidth_scale": settings.bandwidth_scale}
    ascent = {**budget, **scale, "clip_multiplier": settings.clip_multiplier}
    if settings.n_steps is not None:
        ascent["n_steps"] = settings.n_steps
    batch = {} if settings.batch_size is None else {"batch_size": settings.batch_size}
    partial = settings.batch_size not in (None, settings.n)
    found = []
    for name in CALIBRATIONS:
        title = f"DP-GRAMS, {name}" + (" (minibatch)" if name == "tight" and partial else "")
        found.append(_candidate(name, title, "dp_grams", {**ascent, **batch, "calibration": name}))
    if partial:
        options = {**ascent, "batch_size": settings.n, "calibration": "tight"}
        found.append(_candidate("tight_full", "DP-GRAMS, tight (all records)", "dp_grams", options))
    found.append(_candidate("functional", "Functional release", "functional", {**budget, **scale}))
    found.append(_candidate("mean_shift", "Mean shift", "mean_shift", scale))
    return tuple(found)


def _candidate(key: str, title: str, method: str, options: dict[str, Any]) -> Candidate:
    return Candidate(key=key, title=title, method=method, options=tuple(sorted(options.items())))


def compare(settings: ComparisonSettings, data: Dataset) -> tuple[Row, ...]:
    """One row for each candidate, from plans alone; refuses what a run would refuse.

    Examples
    --------
    >>> from dpgrams_core import load_dataset
    >>> rows = compare(ComparisonSettings(n=1000), load_dataset("four_corners", n=1000, seed=0))
    >>> [(row.candidate.key, row.guarantee.status) for row in rows][:3]
    [('experiments', 'nominal'), ('theorem', 'as published'), ('tight', 'proven')]
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
    start = ExponentialDraws(
        count=chosen.n_starts, epsilon_each=chosen.epsilon_init / chosen.n_starts, sensitivity=1 / data.n
    )
    events = (start, rounds_event(chosen, data.n))
    return Row(
        candidate=candidate,
        guarantee=data.qualified(guarantee_of(chosen, events), spec),
        bandwidth=chosen.bandwidth.value,
        events=events,
        stages=price(events, spec.delta).stages,
        prediction=predicted_ascent(chosen, n=data.n, box=data.box),
        noise=chosen.sigma,
        signal=typical_score(records, _score_of(chosen, data.dimension)),
        facts=f"m = {chosen.batch_size:,}, T = {chosen.n_steps}, k = {chosen.n_starts}",
    )


def _functional_row(candidate: Candidate, data: Dataset, records: Array) -> Row:
    spec = FunctionalSpec(**dict(candidate.options))
    wanted = RELEASE_SENSITIVITY * gaussian_multiplier(spec.epsilon, spec.delta)
    rule = release_bandwidth(n=data.n, d=data.dimension, box=data.box, sigma=wanted)
    bandwidth = Bandwidth(rule * (spec.bandwidth_scale or 1.0), "release", True)
    event = release_event(spec, data.n, data.box, bandwidth.value)
    sigma = event.noise_scale
    return Row(
        candidate=candidate,
        guarantee=data.qualified(release_guarantee(spec, bandwidth, event), spec),
        bandwidth=bandwidth.value,
        events=(event,),
        stages=price((event,), spec.delta).stages,
        prediction=predicted_release(bandwidth.value, n=data.n, box=data.box, sigma=sigma),
        noise=sigma,
        signal=typical_height(records, bandwidth.value, data.n),
        hides="height",
        facts="one release",
    )


def _mean_shift_row(candidate: Candidate, data: Dataset, _: Array) -> Row:
    spec = MeanShiftSpec(**dict(candidate.options))
    facts = BandwidthFacts(
        n=data.n, d=data.dimension, box=data.box, epsilon=math.inf, beta=spec.beta, points=data.points
    )
    h = choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts).value
    return Row(
        candidate=candidate,
        guarantee=Guarantee(
            epsilon=math.inf,
            delta=1.0,
            status="none",
            statement="Mean shift reads the records directly and has no privacy.",
        ),
        bandwidth=h,
        events=(),
        stages=(),
        prediction=predicted_mean_shift(h, n=data.n, box=data.box),
    )


def _score_of(chosen: Plan, d: int) -> Callable[[Array, Array], tuple[Array, float]]:
    """The exact score of a plan, as the run forms it."""
    h, clip, floor = chosen.bandwidth.value, chosen.gradient_clip, chosen.density_floor

    def score(batch: Array, at: Array) -> tuple[Array, float]:
        if clip is not None and floor is not None:
            return stabilised_score(chosen.kernel, batch, at, h, clip, floor)
        return clipped_score(chosen.kernel, batch, at, h, chosen.spec.clip_multiplier * h ** -(d + 1))

    return score


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
    rounds = math.ceil(math.log(settings.n)) if settings.n_steps is None else settings.n_steps
    batch = settings.n if settings.batch_size is None else settings.batch_size
    multiplier = rounds_multiplier(epsilon, settings.delta, settings.n, batch, rounds)
    return GaussianRounds(
        rounds=rounds,
        n=settings.n,
        batch_size=batch,
        sensitivity=ROUND_SENSITIVITY,
        noise_scale=multiplier * ROUND_SENSITIVITY,
    )


def comparison_cell(candidate: Candidate, settings: ComparisonSettings, runs: int, seed: int) -> Cell:
    """The runs that measure a candidate; all candidates of one seed see the same data."""
    options = tuple((name, value) for name, value in candidate.options if name != "epsilon")
    private = candidate.method != "mean_shift"
    return Cell(
        method=candidate.method,
        dataset=settings.dataset,
        n=settings.n,
        epsilon=settings.epsilon if private else math.inf,
        runs=runs,
        seed=seed,
        options=options,
    )


def pooled(results: Sequence[CellResult]) -> CellResult:
    """Cells of one candidate that differ only in their seed, as one."""
    first = results[0]
    return CellResult(
        cell=replace(first.cell, runs=sum(result.cell.runs for result in results)),
        scores={
            name: tuple(value for result in results for value in result.scores.get(name, ()))
            for name in {name: None for result in results for name in result.scores}
        },
        seconds=tuple(value for result in results for value in result.seconds),
        status=first.status,
        failures=tuple(text for result in results for text in result.failures),
    )
