"""The search behind ``needed_budget``: which value to try next, and what the tried values show together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from dpgrams_core.auditing.bounds import clopper_pearson
from dpgrams_core.datasets import DATASETS
from dpgrams_core.methods import METHODS
from dpgrams_core.needed_words import answer_words, caution_words

VERDICTS = ("reaches", "misses", "open", "running")


class Counts(NamedTuple):
    """How many of the runs at a value reached the target so far; a run that failed for good is among the runs."""

    successes: int
    runs: int
    failures: int = 0
    reason: str = ""  # of the first failure
    guarantee: str = ""  # the status that the runs have


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: the value of ``sought`` for which a score reaches ``target`` with ``probability``."""

    sought: str
    method: str
    dataset: str
    fixed: float
    measure: str
    more_is_better: bool
    target: float
    probability: float
    low: float
    high: float
    runs: int
    confidence: float
    most_values: int
    precision: float

    @property
    def tail(self) -> float:
        """The chance of error of one bound: all of them together err with at most 1 - confidence."""
        return (1 - self.confidence) / self.most_values

    def reached(self, score: float) -> bool:
        """Whether one run reached the target; a score that is not a number did not."""
        return score >= self.target if self.more_is_better else score <= self.target

    def power(self, share: float) -> float:
        """The chance that a value which truly reaches the target in this share of runs is shown to reach the wish."""
        counts = np.arange(self.runs + 1)
        shown = counts[clopper_pearson(counts, self.runs, self.tail)[0] > self.probability]
        return float(stats.binom.sf(shown[0] - 1, self.runs, share)) if len(shown) else 0.0

    @property
    def wish(self) -> str:
        """The wish in words."""
        names = {"mse_per_true_mode": "MSE per true mode", "centroid_mse": "centroid MSE", "branch_recall": "recall"}
        name = names.get(self.measure, self.measure.upper() if len(self.measure) == 3 else self.measure)
        side = "at least" if self.more_is_better else "at most"
        return f"{name} {side} {self.target:g} in {100 * self.probability:.10g} % of runs"

    @property
    def setting(self) -> str:
        """Method, data set and the value that is held."""
        held = f"n = {self.fixed:,.0f}" if self.sought == "epsilon" else f"ε = {self.fixed:g}"
        private = METHODS[self.method].private
        return f"{METHODS[self.method].title} on {DATASETS[self.dataset].title}" + (f" at {held}" if private else "")

    def show(self, value: float) -> str:
        """A value of what is sought."""
        return f"ε = {value:g}" if self.sought == "epsilon" else f"n = {value:,.0f}"


def least_runs(probability: float, confidence: float = 0.95, most_values: int = 10) -> int:
    """With fewer runs than this not even a perfect record shows that a value reaches, or misses, the wish.

    probability^runs and (1 - probability)^runs must fall below the tail, (1 - confidence) / most_values.

    Examples
    --------
    >>> [least_runs(probability) for probability in (0.5, 0.9, 0.95, 0.99)]
    [8, 51, 104, 528]
    """
    harder = max(probability, 1 - probability)
    return math.ceil(math.log((1 - confidence) / most_values) / math.log(harder) + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One tried value: the share of runs that reached the target, its exact interval, and what that shows."""

    value: float
    successes: int
    runs: int
    failures: int
    reason: str
    interval: tuple[float, float]
    verdict: str

    @property
    def share(self) -> float:
        """The share of runs that reached the target."""
        return self.successes / self.runs if self.runs else math.nan


def judged(question: Question, value: float, counts: Counts) -> Tried:
    """Clopper-Pearson bounds, each wrong with chance at most ``question.tail``, and a verdict once all runs are in."""
    low, high = clopper_pearson(np.array([counts.successes]), max(1, counts.runs), question.tail)
    interval = (float(low[0]), float(high[0])) if counts.runs else (0.0, 1.0)
    if counts.runs < question.runs:
        verdict = "running"
    elif interval[0] > question.probability:
        verdict = "reaches"
    else:
        verdict = "misses" if interval[1] < question.probability else "open"
    return Tried(
        value=value,
        successes=counts.successes,
        runs=counts.runs,
        failures=counts.failures,
        reason=counts.reason,
        interval=interval,
        verdict=verdict,
    )


@dataclass(frozen=True, kw_only=True)
class NeededBudget:
    """What the tried values show together, never a bare number: see ``sentence``.

    ``misses_at`` is the highest value shown to miss and ``reaches_at`` the lowest above it shown to reach; either
    is None where nothing is shown.
    """

    question: Question
    tried: tuple[Tried, ...]  # in order of their values
    finished: bool
    guarantee: str = ""

    @property
    def misses_at(self) -> float | None:
        """The highest value that is shown to miss."""
        return max((item.value for item in self.tried if item.verdict == "misses"), default=None)

    @property
    def reaches_at(self) -> float | None:
        """The lowest value above all that miss that is shown to reach."""
        floor = self.misses_at or 0.0
        return min(
            (item.value for item in self.tried if item.verdict == "reaches" and item.value > floor), default=None
        )

    @property
    def turns(self) -> bool:
        """Whether a lower value was shown to reach and a higher one to miss: then more is not always better."""
        floor = self.misses_at or 0.0
        return any(item.verdict == "reaches" and item.value < floor for item in self.tried)

    @property
    def estimate(self) -> float | None:
        """Where the line through the shares, in the logarithm of the value, crosses the wished probability."""
        lowest, highest = self.misses_at or 0.0, self.reaches_at or math.inf
        known = [item for item in self.tried if item.verdict != "running" and lowest <= item.value <= highest]
        wished = self.question.probability
        below = [place for place, item in enumerate(known) if item.share < wished]
        if not below or below[-1] + 1 >= len(known):
            return None
        left, right = known[below[-1]], known[below[-1] + 1]
        part = (wished - left.share) / (right.share - left.share)
        return left.value * (right.value / left.value) ** part

    @property
    def status(self) -> str:
        """ "searching", "already", "not reachable", "bracketed" or "open"."""
        verdicts = {item.value: item.verdict for item in self.tried}
        if verdicts.get(self.question.high) == "misses":
            return "not reachable"
        if verdicts.get(self.question.low) == "reaches" and self.misses_at is None:
            return "already"
        if not self.finished:
            return "searching"
        return "bracketed" if self.misses_at is not None and self.reaches_at is not None else "open"

    @property
    def sentence(self) -> str:
        """The answer in words, with its uncertainty."""
        return f"{answer_words(self)} {caution_words(self)}"


def next_value(question: Question, tried: Sequence[Tried]) -> float | None:
    """The value to try next: both ends, then the middle of the wider gap beside what is shown; None when done."""
    verdicts = {item.value: item.verdict for item in tried}
    if question.high not in verdicts:
        return question.high
    if verdicts[question.high] == "misses":
        return None
    if question.low not in verdicts:
        return question.low
    if verdicts[question.low] == "reaches" or len(tried) >= question.most_values:
        return None
    so_far = NeededBudget(question=question, tried=tuple(tried), finished=False)
    misses, reaches = so_far.misses_at, so_far.reaches_at
    values = sorted(verdicts)
    gaps = []
    if misses is not None:
        gaps.append((misses, values[values.index(misses) + 1]))
    if reaches is not None:
        gaps.append((values[values.index(reaches) - 1], reaches))
    low, high = max(gaps, key=lambda gap: gap[1] / gap[0], default=(1.0, 1.0))
    middle = float(f"{math.sqrt(low * high):.3g}")
    if question.sought == "n":
        middle = float(round(middle))
    return middle if high / low > question.precision and low < middle < high else None


def search(question: Question, tries: Callable[[float], Iterator[Counts]]) -> Iterator[NeededBudget]:
    """The search as it goes: ``tries(value)`` gives growing counts and ends when all runs of the value are in.

    Examples
    --------
    >>> asked = Question(
    ...     sought="epsilon", method="functional", dataset="four_corners", fixed=1000.0, measure="mse",
    ...     more_is_better=False, target=0.05, probability=0.9, low=0.1, high=10.0, runs=100, confidence=0.95,
    ...     most_values=8, precision=1.2,
    ... )
    >>> *_, last = search(asked, lambda value: iter([Counts(100 if value > 0.7 else 20, 100)]))
    >>> last.status, last.misses_at < 0.7 < last.reaches_at
    ('bracketed', True)
    """
    done: list[Tried] = []
    guarantee = ""
    while (value := next_value(question, done)) is not None:
        latest: Tried | None = None
        for counts in tries(value):
            guarantee = counts.guarantee or guarantee
            latest = judged(question, value, counts)
            if latest.verdict == "running":
                yield _found(question, [*done, latest], False, guarantee)
        if latest is None or latest.verdict == "running":
            raise RuntimeError("the runs of a tried value ended early; this is a bug")
        done.append(latest)
        yield _found(question, done, next_value(question, done) is None, guarantee)


def _found(question: Question, tried: Sequence[Tried], finished: bool, guarantee: str) -> NeededBudget:
    ordered = tuple(sorted(tried, key=lambda item: item.value))
    return NeededBudget(question=question, tried=ordered, finished=finished, guarantee=guarantee)
