"""From counts to a lower bound on epsilon that holds with a stated probability.

For an (epsilon, delta)-DP mechanism and any event S, P(S | world 1) <= e^epsilon P(S | world 0) + delta.
So if S is chosen before the counts are seen, log((P_1 - delta) / P_0) with a lower confidence bound for
P_1 and an upper one for P_0 is a lower confidence bound for epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

from dpgrams_core.auditing.statistics import TRAINED, train, with_trained
from dpgrams_core.results import AuditTest

Array = np.ndarray
MAX_THRESHOLDS = 150
BOUNDS_USED = 4  # two tests (the roles of the worlds swapped), each with two one-sided bounds


def clopper_pearson(counts: Array, trials: int, tail: float) -> tuple[Array, Array]:
    """Exact lower and upper confidence bounds for probabilities, each wrong with chance at most ``tail``.

    >>> low, high = clopper_pearson(np.array([0, 50, 100]), 100, 0.025)
    >>> [round(float(x), 3) for x in (low[1], high[1], high[0])]
    [0.398, 0.602, 0.036]
    """
    counts = np.asarray(counts, dtype=float)
    missed = trials - counts
    # The parameters must be above 0; at the ends the bound is 0 or 1 and is put in by hand.
    low = np.where(counts == 0, 0.0, betaincinv(np.maximum(counts, 1), missed + 1, tail))
    high = np.where(missed == 0, 1.0, 1 - betaincinv(np.maximum(missed, 1), counts + 1, tail))
    return low, high


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
    null: Array,
    other: Array,
    *,
    names: Sequence[str],
    delta: float,
    tail: float,
    chosen: tuple[int, bool, float],
    swapped: bool,
) -> AuditTest:
    """The bound of a chosen test on fresh trials; never below 0, which is what no information gives."""
    column, above, threshold = chosen
    counts = []
    for rows in (other, null):
        values = rows[:, column]
        counts.append(int((values > threshold if above else values <= threshold).sum()))
    intervals = [
        tuple(float(bound) for bound in clopper_pearson(np.array(count), len(rows), tail))
        for count, rows in zip(counts, (other, null), strict=True)
    ]
    (true_low, true_high), (false_low, false_high) = intervals
    ratio = float(log_ratio(np.array(true_low), np.array(false_high), delta))
    return AuditTest(
        statistic=names[column],
        above=above,
        threshold=threshold,
        swapped=swapped,
        trials=len(null),
        true_positives=counts[0],
        false_positives=counts[1],
        true_positive_interval=(true_low, true_high),
        false_positive_interval=(false_low, false_high),
        epsilon_lower=max(0.0, ratio),
        null_values=tuple(null[:, column].tolist()),
        other_values=tuple(other[:, column].tolist()),
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
        tests.append(
            measure(
                null[1::2],
                other[1::2],
                names=[*names, TRAINED],
                delta=delta,
                tail=tail,
                chosen=chosen,
                swapped=swapped,
            )
        )
    return tests[0], tests[1]
