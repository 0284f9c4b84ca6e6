"""Regression without privacy: partial mean shift (Chen et al. 2016, algorithm 1), and LOWESS."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpgrams_core.model import settings
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec, setting
from dpgrams_core.numerics.bandwidths import BandwidthFacts, choose_bandwidth, silverman_of_one
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
MIN_RECORDS, MAX_RECORDS = 10, 50_000
MAX_PAIRS = 25_000_000  # starts times records; beyond it not every record is started from
CHUNK = 2_000_000  # numbers in one block of kernel weights
NODES_A_BANDWIDTH, PIECES = 6, 16  # grid in y: exact sums at the nodes, cubics at the pieces between
MAX_POLISH = 100
POLISHED = 1e-11  # of h_y: a Newton step below this is rounding
DEFAULT_SCALE = 0.9
LEAST_OF_RANGE = 1 / 250  # a narrower bandwidth in y has hardly a neighbour, and needs thousands of nodes
RESPONSE_RULE, LOG_N = "silverman_y", 0
EXACT_UP_TO = 2_000  # records of LOWESS; beyond it, lines are fitted at places a thousandth of the range apart


@dataclass(frozen=True, kw_only=True)
class PMSSpec(Spec):
    """Settings of partial mean shift.

    ``bandwidth`` is a number or a rule and serves both axes, as in alg:dp-pms; ``None`` means Silverman's rule of
    thumb, 0.9 s n^(-1/5), with s the mean of the two standard deviations.  ``response_bandwidth`` replaces it in
    y.  ``n_steps`` stops after so many steps, or with ``LOG_N`` after ceil(log n); ``None`` goes to the limit.
    With "silverman_y" (Silverman's rule on the responses alone) and ``LOG_N`` steps it is the baseline of the
    paper's tables, to every printed digit on their records.
    """

    bandwidth: float | str | None = settings.bandwidth(more={RESPONSE_RULE: "Silverman on y (reads the data)"})
    bandwidth_scale: float | None = settings.bandwidth_scale("the rule's bandwidth")
    response_bandwidth: float | None = setting(None, label="Bandwidth in y", words="Replaces the bandwidth in y.")
    n_steps: int | None = settings.count(
        "Steps, T", "Stops after so many steps, 0: after log n; empty: at the limit.", settings.MAX_STEPS, low=LOG_N
    )


@dataclass(frozen=True, kw_only=True)
class LowessSpec(Spec):
    """Settings of LOWESS: the share of the records in each local line, and how often outliers are weighed down."""

    fraction: float = setting(
        1 / 3,
        label="Share of the records",
        words="The share of the records in each local line.",
        low=0,
        high=1,
        excluded=(0,),
        refusal="it must be above 0 and at most 1",
    )
    robust_steps: int = settings.count("Robust steps", "How often outliers are weighed down.", 100, low=0, default=3)


def fast_partial_mean_shift(x: Array, y: Array, h_x: float, h_y: float, starts: Array | None = None) -> Array:
    """The limits of partial mean shift from the records ``starts`` (all of them by default), without iterating it.

    At a fixed predictor the map y -> m(y) is a weighted mean whose slope is a variance over h_y^2, so it never
    falls: the iterates move one way and stop at the first fixed point that they meet.  That point is the first
    root of m(y) - y above or below the start.  Values and slopes on a grid in y, joined by cubics, bracket it,
    and Newton's method on the exact sums, kept inside the bracket, finds it.

    Cost O(starts n nodes) as matrix products, then a handful of exact steps, against thousands for the loop.
    Two roots within a hundredth of h_y are seen as none: only a mode that is about to vanish has such a partner.
    """
    starts = np.arange(len(x)) if starts is None else starts
    low, high = float(y.min()) - h_y, float(y.max()) + h_y  # past every record
    nodes = np.linspace(low, high, math.ceil(NODES_A_BANDWIDTH * (high - low) / h_y) + 1)
    away = y[:, None] - nodes[None, :]
    kernel = np.exp(-0.5 * (away / h_y) ** 2)
    sums = np.concatenate([kernel, kernel * away, kernel * away**2], axis=1)
    ends = np.empty(len(starts))
    rows = max(1, CHUNK // max(len(x), PIECES * len(nodes)))
    for first in range(0, len(starts), rows):
        checkpoint()
        chosen = starts[first : first + rows]
        weights = np.exp(-0.5 * ((x[None, :] - x[chosen, None]) / h_x) ** 2)
        total, one, two = np.split(weights @ sums, 3, axis=1)
        # Where every weight is too small for a float, the start's own record is all there is: back to it.
        empty = total < 1e-290
        total = np.where(empty, 1.0, total)
        shift = np.where(empty, y[chosen, None] - nodes, one / total)
        slope = np.where(empty, -1.0, (two / total - shift**2) / h_y**2 - 1)
        ends[first : first + rows] = _first_fixed_point(weights, y, h_y, y[chosen], nodes, _joined(nodes, shift, slope))
    return ends


def partial_mean_shift_steps(x: Array, y: Array, h_x: float, h_y: float, starts: Array, n_steps: int) -> Array:
    """Where the records ``starts`` are after so many plain steps; the limit may still be far."""
    ends = y[starts].astype(float)
    rows = max(1, CHUNK // len(x))
    for first in range(0, len(starts), rows):
        checkpoint()
        weights = np.exp(-0.5 * ((x[None, :] - x[starts[first : first + rows], None]) / h_x) ** 2)
        at = ends[first : first + rows]  # a view: the steps below are written through
        for _ in range(n_steps):
            checkpoint()
            at += _shift_and_slope(weights, y, h_y, at)[0]
    return ends


def _joined(nodes: Array, value: Array, slope: Array) -> Array:
    """Cubics through the values and slopes (rows, nodes), at ``PIECES`` places in every gap and the last node."""
    t = np.arange(PIECES) / PIECES
    gap = nodes[1] - nodes[0]
    inner = (
        value[:, :-1, None] * ((1 + 2 * t) * (1 - t) ** 2)
        + value[:, 1:, None] * (t * t * (3 - 2 * t))
        + gap * slope[:, :-1, None] * (t * (1 - t) ** 2)
        + gap * slope[:, 1:, None] * (t * t * (t - 1))
    )
    return np.concatenate([inner.reshape(len(value), -1), value[:, -1:]], axis=1)


def _shift_and_slope(weights: Array, y: Array, h_y: float, at: Array) -> tuple[Array, Array]:
    """m(y) - y and the slope of m at one place for each row of weights, exactly."""
    away = y[None, :] - at[:, None]
    mass = weights * np.exp(-0.5 * (away / h_y) ** 2)
    total = np.maximum(mass.sum(axis=1), 1e-300)
    mass *= away
    shift = mass.sum(axis=1) / total
    mass *= away
    return shift, (mass.sum(axis=1) / total - shift**2) / h_y**2


def _first_fixed_point(weights: Array, y: Array, h_y: float, start: Array, nodes: Array, shift: Array) -> Array:
    """For each row the fixed point that mean shift from ``start`` meets first; ``shift`` is that of ``_joined``."""
    places = np.linspace(nodes[0], nodes[-1], PIECES * (len(nodes) - 1) + 1)
    number = np.arange(len(places))
    above = np.searchsorted(places, start, side="left")[:, None]  # the first place at or above the start
    upper = np.argmax((shift <= 0) & (number >= above), axis=1)
    lower = len(places) - 1 - np.argmax(((shift >= 0) & (number < above))[:, ::-1], axis=1)
    up = _shift_and_slope(weights, y, h_y, start)[0] >= 0
    # The bracket is one place wider than the cubics say, but never reaches back behind the start.
    low = np.where(up, np.maximum(start, places[np.maximum(upper - 2, 0)]), places[np.maximum(lower - 1, 0)])
    last = len(places) - 1
    high = np.where(up, places[np.minimum(upper + 1, last)], np.minimum(start, places[np.minimum(lower + 2, last)]))
    at = np.clip(np.where(up, places[upper], places[lower]), low, high)
    active = np.arange(len(at))
    for _ in range(MAX_POLISH):
        checkpoint()
        now = at[active]
        change, slope = _shift_and_slope(weights[active], y, h_y, now)
        low[active] = np.where(change > 0, now, low[active])
        high[active] = np.where(change < 0, now, high[active])
        safe = slope < 0.9999
        newton = change / np.where(safe, 1 - slope, 1.0)
        small = (np.abs(newton) <= POLISHED * h_y) & (safe | (change == 0))
        inside = (now + newton > low[active]) & (now + newton < high[active]) & safe
        # Outside the bracket, or where the map is too flat for Newton, halve the bracket instead.
        at[active] = np.where(inside | small, now + newton, (low[active] + high[active]) / 2)
        active = active[~small & (high[active] - low[active] > POLISHED * h_y)]
        if len(active) == 0:
            break
    return at


def usable_records(data: Dataset) -> tuple[Array, Array]:
    """Predictors and responses of regression data, sorted by predictor, or a DataError that says what is wrong."""
    refuse_private(data)
    x, y = data.x, data.y
    if data.n < MIN_RECORDS:
        raise DataError(f"A regression needs at least {MIN_RECORDS} records, and there are {data.n}.")
    if x.min() == x.max():
        raise DataError("All predictors are equal, so there is no curve to draw.")
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _bandwidth(data: Dataset, spec: PMSSpec) -> float:
    """The bandwidth asked for; by default 0.9 s n^(-1/5) with s the mean of the two standard deviations.

    Silverman's rule of thumb in one dimension, since only y is climbed.  The paper names no rule for PMS.  Followed
    to the limit, this one has the printed errors of the sinusoid within a fifth, and errors up to two fifths above
    the printed ones on the three steps.  The paper's single h (subsubsec:bandwidth-exp) by Silverman's rule in two
    dimensions has larger errors in the limit, and comes closest to both tables after only ten steps
    (``bandwidth="silverman", n_steps=10``).
    """
    facts = BandwidthFacts(n=data.n, d=2, box=data.box, epsilon=math.inf, beta=3.0, points=data.points)
    if spec.bandwidth == RESPONSE_RULE:
        value = (1.0 if spec.bandwidth_scale is None else spec.bandwidth_scale) * silverman_of_one(data.y)
        if not value > 0:
            raise SpecError("bandwidth", spec.bandwidth, "this rule gives 0 on these data; give a number above 0")
        return choose_bandwidth(value, None, facts).value
    if spec.bandwidth is not None:
        return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts).value
    spread = float(data.points.std(axis=0, ddof=1).mean())
    value = DEFAULT_SCALE * spread * data.n ** (-1 / 5)
    return choose_bandwidth(value if spec.bandwidth_scale is None else spec.bandwidth_scale * value, None, facts).value


def pms(data: Dataset, spec: PMSSpec, noise: Noise) -> Release:
    """Partial mean shift from every record: curve rows (X_i, end point of record i), sorted by x; no privacy at all."""
    refuse_private(data)
    x, y = usable_records(data)
    if data.n > MAX_RECORDS:
        raise DataError(f"Partial mean shift looks at all pairs of records and takes at most {MAX_RECORDS} of them.")
    h_x = _bandwidth(data, spec)
    h_y = h_x if spec.response_bandwidth is None else spec.response_bandwidth
    if h_y < LEAST_OF_RANGE * float(np.ptp(y)):
        field = "bandwidth" if spec.response_bandwidth is None else "response_bandwidth"
        allowed = f"in y it must be at least {LEAST_OF_RANGE:g} of the range of the responses"
        raise SpecError(field, getattr(spec, field), allowed)
    stride = math.ceil(data.n**2 / MAX_PAIRS)
    starts = np.arange(0, data.n, stride)
    if spec.n_steps is None:
        ends = fast_partial_mean_shift(x, y, h_x, h_y, starts)
    else:
        steps = math.ceil(math.log(data.n)) if spec.n_steps == LOG_N else spec.n_steps
        ends = partial_mean_shift_steps(x, y, h_x, h_y, starts, steps)
    caveats = () if stride == 1 else (f"Started from one record in {stride} only.",)
    return Release(
        method="pms",
        modes=np.empty((0, 2)),
        curve=np.stack([x[starts], ends], axis=1),
        spec=replace(spec, bandwidth=h_x, bandwidth_scale=None, response_bandwidth=h_y),
        events=(),
        guarantee=Guarantee.no_privacy("Partial mean shift", caveats),
    )


def lowess(data: Dataset, spec: LowessSpec, noise: Noise) -> Release:
    """LOWESS by statsmodels: curve rows (X_i, smoothed response), sorted by x."""
    refuse_private(data)
    # Imported here since it takes a second to load, which nobody else should wait for.
    from statsmodels.nonparametric.smoothers_lowess import lowess as smooth  # type: ignore[import-untyped]

    x, y = usable_records(data)
    if spec.fraction * data.n < 3:
        raise SpecError("fraction", spec.fraction, f"with {data.n} records it must be at least {3 / data.n:.3g}")
    skip = 0.0 if data.n <= EXACT_UP_TO else 0.001 * float(x[-1] - x[0])
    with np.errstate(all="ignore"):  # a window without spread in x gives NaN, which is looked for below
        fitted = smooth(y, x, frac=spec.fraction, it=spec.robust_steps, delta=skip, is_sorted=True, return_sorted=False)
    if not np.isfinite(fitted).all():
        raise DataError("Too many predictors are equal for a local line; take a larger fraction.")
    return Release(
        method="lowess",
        modes=np.empty((0, 2)),
        curve=np.stack([x, fitted], axis=1),
        spec=spec,
        events=(),
        guarantee=Guarantee.no_privacy("LOWESS"),
    )
