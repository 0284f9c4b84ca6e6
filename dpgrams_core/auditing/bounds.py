"""From counts to a lower bound on epsilon that holds with a stated probability.

For an (epsilon, delta)-DP mechanism and any event S, P(S | world 1) <= e^epsilon P(S | world 0) + delta.
So if S is chosen before the counts are seen, log((P_1 - delta) / P_0) with a lower confidence bound for
P_1 and an upper one for P_0 is a lower confidence bound for epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from dpgrams_core.auditing.statistics import LIKELIHOOD, TRAINED, train, with_trained
from dpgrams_core.model.results import AuditTest, GaussianFit
from dpgrams_core.numerics.statistics import clopper_pearson
from dpgrams_core.privacy.calibration import exact_epsilon

Array = np.ndarray
MAX_THRESHOLDS = 150
NOT_NORMAL = 1e-4  # below this chance the fit of a normal law is not believed
BOUNDS_USED = 4  # two tests (the roles of the worlds swapped), each with two one-sided bounds


def log_ratio(true_low: Array, false_high: Array, delta: float) -> Array:
    """log((P_1 - delta) / P_0), minus infinity where nothing is left above delta; not yet cut at 0."""
    gain = np.maximum(np.asarray(true_low, dtype=float) - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(gain) - np.log(false_high)


def _thresholds(values: Array) -> Array:
    """Places to cut: between neighbouring values, close together at both ends, where the ratios are large."""
    distinct = np.unique(values)
    cuts = (distinct[1:] + distinct[:-1]) / 2
    if len(cuts) <= MAX_THRESHOLDS:
        return cuts
    half = np.geomspace(1, len(cuts) / 2, MAX_THRESHOLDS // 2).astype(int) - 1
    return cuts[np.unique(np.concatenate([half, len(cuts) - 1 - half]))]


def choose_test(null: Array, other: Array, delta: float, tail: float) -> tuple[int, bool, float]:
    """The column, direction and threshold with the best bound on these trials (rows).

    The event is "value above threshold" (True) or "value at most threshold" (False).
    """
    best: tuple[float, int, bool, float] = (-math.inf, 0, True, math.inf)
    for column in range(null.shape[1]):
        cuts = _thresholds(np.concatenate([null[:, column], other[:, column]]))
        if len(cuts) == 0:
            continue
        false = len(null) - np.searchsorted(np.sort(null[:, column]), cuts, side="right")
        true = len(other) - np.searchsorted(np.sort(other[:, column]), cuts, side="right")
        for above in (True, False):
            hits, alarms = (true, false) if above else (len(other) - true, len(null) - false)
            low, _ = clopper_pearson(hits, len(other), tail)
            _, high = clopper_pearson(alarms, len(null), tail)
            found = log_ratio(low, high, delta)
            top = int(np.argmax(found))
            if found[top] > best[0]:
                best = (float(found[top]), column, above, float(cuts[top]))
    return best[1:]


def measure(
    null: Array, other: Array, chosen: tuple[int, bool, float], *, name: str, delta: float, tail: float, swapped: bool
) -> AuditTest:
    """The bound of a chosen test on fresh trials; never below 0, which is what no information gives."""
    column, above, threshold = chosen
    worlds = [rows[:, column] for rows in (other, null)]
    counts = [int((values > threshold if above else values <= threshold).sum()) for values in worlds]
    (true_low, true_high), (false_low, false_high) = (
        tuple(float(bound) for bound in clopper_pearson(np.array(count), len(values), tail))
        for count, values in zip(counts, worlds, strict=True)
    )
    return AuditTest(
        statistic=name,
        above=above,
        threshold=threshold,
        swapped=swapped,
        trials=len(null),
        true_positives=counts[0],
        false_positives=counts[1],
        true_positive_interval=(true_low, true_high),
        false_positive_interval=(false_low, false_high),
        epsilon_lower=max(0.0, float(log_ratio(np.array(true_low), np.array(false_high), delta))),
        null_values=tuple(worlds[1].tolist()),
        other_values=tuple(worlds[0].tolist()),
    )


def both_tests(
    first: Array, second: Array, names: Sequence[str], *, delta: float, error: float
) -> tuple[AuditTest, AuditTest]:
    """The test and its mirror image for statistics of trials (rows) in the two worlds.

    Even trials choose statistic, direction and threshold; odd ones are counted.  Both bounds hold at
    once with probability at least 1 - ``error`` (Bonferroni over two tests with two bounds each).
    """
    tail = error / BOUNDS_USED
    rule = train(first[::2], second[::2])
    worlds = [with_trained(rows, rule) for rows in (first, second)]
    tests = []
    for swapped in (False, True):
        null, other = reversed(worlds) if swapped else worlds
        chosen = choose_test(null[::2], other[::2], delta, tail)
        name = [*names, TRAINED][chosen[0]]
        tests.append(measure(null[1::2], other[1::2], chosen, name=name, delta=delta, tail=tail, swapped=swapped))
    return tests[0], tests[1]


def gaussian_fit(
    first: Array, second: Array, names: Sequence[str], *, delta: float, error: float, coupled: bool
) -> GaussianFit | None:
    """A bound from the likelihood ratio's two means and spread; None without one, or where it is not normal.

    Where the released numbers are Gaussian with one known covariance, their projection on the difference of the two
    worlds is the best statistic (Neyman and Pearson), normal in both worlds.  The lower end for the distance of the
    means is Student's, from the differences of ``coupled`` trials (both worlds with the same noise, so that the noise
    cancels) or else from the two samples.  The upper end for the spread is that of chi-square, of the wider world.
    All three ends hold at once with probability 1 - ``error``.
    """

    column = next((place for place, name in enumerate(names) if LIKELIHOOD in name), None)
    if column is None or len(first) < 20:
        return None
    worlds = [first[:, column], second[:, column]]
    spreads = [float(values.std(ddof=1)) for values in worlds]
    if min(spreads) <= 0 or min(float(scipy.stats.normaltest(values).pvalue) for values in worlds) < NOT_NORMAL:
        return None
    count, tail = len(first), error / 3
    apart, wide = abs(float(worlds[1].mean() - worlds[0].mean())), max(spreads)
    slack = float((worlds[1] - worlds[0]).std(ddof=1)) if coupled else math.hypot(*spreads)
    degrees = count - 1 if coupled else 2 * count - 2
    least = apart - float(scipy.stats.t.isf(tail / 2, degrees)) * slack / math.sqrt(count)  # either sign of the shift
    widest = wide * math.sqrt((count - 1) / float(scipy.stats.chi2.ppf(tail, count - 1)))
    shift = max(0.0, least) / widest
    return GaussianFit(
        statistic=names[column],
        trials=count,
        shift=apart / wide,
        shift_lower=shift,
        epsilon_lower=exact_epsilon(1 / shift, delta) if shift > 0 else 0.0,
    )
