"""From utility to budget: which epsilon, or how many records, reach a target often enough.

"MSE at most 0.05 with 90 % probability" is a statement about a probability p(x) that only simulations know, x being
epsilon or n.  Every value x that is tried is simulated on fresh draws, and the share of runs that reach the target
has an exact (Clopper-Pearson) interval.  A value is *shown to reach* the wished probability when the whole interval
lies above it, *shown to miss* when it lies below, and open otherwise.  The answer is the bracket between the two.

The error of all these statements together.  At one value only one of the two can be wrong, so each bound has the
tail (1 - confidence) / most_values.  The next value depends on what came before, but its draws do not, so the union
bound over the at most ``most_values`` values holds although they are chosen along the way.

Nothing says that p grows with x.  The bracket takes the highest value that is shown to miss and the lowest above it
that is shown to reach; between and beyond tried values it is an assumption that p does not turn, and it is said so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpgrams_core.datasets.registry import MAX_N, MIN_N, dataset_info
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import asked_epsilon, between, finite, one_of, positive, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import percent, whole_percent, written
from dpgrams_core.model.guarantee import bare_status
from dpgrams_core.model.measures import Measure, measure_of, scores_of
from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.numerics.statistics import clopper_pearson
from dpgrams_core.sweeps.cell import derived_seed, settled
from dpgrams_core.sweeps.executors import Processes
from dpgrams_core.sweeps.plan import MAX_RUNS, check_kinds, plan_cells
from dpgrams_core.sweeps.run import EXECUTORS, RunStore, stream_partial

USUAL_RUNS = 60  # of each value, where these are enough
MOST_VALUES = 10  # that are tried
MARGIN = 0.3  # a value that misses the target this much less often than allowed should be recognised


def needed_epsilon(
    method: str, dataset: AnyDataset, *, n: int, low: float = 0.05, high: float = 20.0, **how: Any
) -> NeededBudget:
    """The epsilon that a target needs at n records, as a bracket; see :func:`stream_needed` for the settings.

    >>> easy = {"target": 500.0, "probability": 0.5, "low": 0.5, "high": 50.0, "runs": 10, "most_values": 3}
    >>> found = needed_epsilon("dp_grams", "four_corners", n=300, **easy)
    >>> found.status, [tried.verdict for tried in found.tried]
    ('already', ['reaches', 'reaches'])
    """
    *_, last = stream_needed("epsilon", method, dataset, n=n, low=low, high=high, **how)
    return last


def needed_n(
    method: str, dataset: AnyDataset, *, epsilon: float | None = None, low: int = 200, high: int = 50_000, **how: Any
) -> NeededBudget:
    """The number of records that a target needs at epsilon, as a bracket; see :func:`stream_needed`."""
    *_, last = stream_needed("n", method, dataset, epsilon=epsilon, low=low, high=high, **how)
    return last


def stream_needed(
    sought: str,
    method: str,
    dataset: AnyDataset,
    *,
    low: float,
    high: float,
    target: float = 0.05,
    measure: str | None = None,
    probability: float = 0.9,
    n: int | None = None,
    epsilon: float | None = None,
    runs: int | None = None,
    confidence: float = 0.95,
    most_values: int = MOST_VALUES,
    precision: float = 1.2,
    seed: int = 0,
    executor: str | Processes = "serial",
    store: RunStore | None = None,
    **options: Any,
) -> Iterator[NeededBudget]:
    """The search as it goes, again after every few runs; closing the iterator stops it and what came is kept.

    With the same store it can be continued later, and ends at the same result.  Wrong settings are refused here, at
    the call.

    Parameters
    ----------
    sought : "epsilon" (then give ``n``) or "n" (then give ``epsilon``).
    low, high : where to search; both ends are tried first.
    target : the wished score: at most this for an error, at least this for a score of which more is better.
    measure : a score of the kind of data; its headline ("mse", for clusters "ari") by default.
    probability : the wished share of runs that reach the target.
    runs : simulations for each tried value; too few to show anything are refused. By default 60, or as many as this
        probability and confidence need.
    confidence : with which all statements hold together.
    most_values : tried at most.
    precision : values closer than this ratio are not told apart.
    executor : "serial", "processes" (all cores) or a pool of one's own; the result is the same.
    store : its runs are not made again, and new ones are added to it; the result is the same.
    **options : fields of the method's spec.
    """
    one_of("sought", sought, ("epsilon", "n"))
    check_kinds("method", [method], dataset)
    kind = METHODS[method].kind
    if sought == "epsilon" and not METHODS[method].private:
        raise SpecError("method", method, "it has no privacy, so no epsilon changes its result; ask for n")
    name = next(iter(scores_of(kind))) if measure is None else one_of("measure", measure, scores_of(kind))
    lowest, highest = _ends(sought, low, high)
    question = Question(
        sought=sought,
        method=method,
        dataset=dataset,
        fixed=_fixed(sought, n, epsilon, METHODS[method].private),
        measure=name,
        target=finite("target", target),
        probability=between("probability", probability, 0, 1),
        low=lowest,
        high=highest,
        runs=USUAL_RUNS if runs is None else whole("runs", runs, 1, MAX_RUNS),
        confidence=between("confidence", confidence, 0, 1),
        most_values=whole("most_values", most_values, 2, 100),
        precision=positive("precision", precision),
    )
    if question.precision <= 1:
        raise SpecError("precision", precision, "it is a ratio of two values and must be above 1")
    question = _with_enough_runs(question, runs)

    def cell_at(value: float) -> Run:
        size, budget = (question.fixed, value) if sought == "epsilon" else (value, question.fixed)
        budget = budget if math.isfinite(budget) else 1.0  # a method without privacy does not read it
        # Fresh draws for every value: the choice of a value must not depend on its own draws.
        own = derived_seed(seed, "needed", sought, value)
        cells = plan_cells(method, dataset, n=[int(size)], epsilon=[budget], runs=question.runs, seed=own, **options)
        return cells[0]

    for end in (lowest, highest):
        cell_at(end)  # a wrong option is refused before anything runs
    if isinstance(executor, str):
        one_of("executor", executor, EXECUTORS)
    return _searched(question, cell_at, executor, store)


def _with_enough_runs(question: Question, runs: int | None) -> Question:
    """The question with as many runs as it needs where nobody said how many; too few are refused."""
    least = least_runs(question.probability, question.confidence, question.most_values)
    if runs is None and least <= MAX_RUNS:
        return replace(question, runs=max(USUAL_RUNS, least))
    if question.runs >= least:
        return question
    field, given = ("probability", question.probability) if runs is None else ("runs", runs)
    raise SpecError(
        field,
        given,
        f"with fewer than {least:,} runs for each value not even a perfect record would show "
        f"{question.probability:g} at this confidence" + (f", and {MAX_RUNS:,} are the most" if runs is None else ""),
    )


def _searched(
    question: Question, cell_at: Callable[[float], Run], executor: str | Processes, store: RunStore | None
) -> Iterator[NeededBudget]:
    # One pool for all values: starting one takes longer than many a value.
    with Processes() if executor == "processes" else nullcontext(executor) as pool:

        def tries(value: float) -> Iterator[Counts]:
            results = stream_partial([cell_at(value)], pool, store=store)
            try:
                for result in results:
                    known = settled(result)
                    yield Counts(  # a run that these settings do not allow did not reach the target
                        successes=sum(map(question.reached, known.scores.get(question.measure, ()))),
                        runs=known.ended,
                        failures=len(known.failures),
                        reason=known.failures[0] if known.failures else "",
                        guarantee=known.words,
                    )
            finally:
                results.close()  # type: ignore[attr-defined]
            if result.passing:
                reason = (result.outcomes[result.passing[0]].failure or "").rstrip(".")
                raise DataError(
                    f"{len(result.passing)} of {question.runs} runs at {question.show(value)} did not come back: "
                    f"{reason}. They count neither way, so the search stops here. Start it again to make them."
                )

        yield from search(question, tries)


def _ends(sought: str, low: float, high: float) -> tuple[float, float]:
    if sought == "n":
        ends = (float(whole("low", low, MIN_N, MAX_N)), float(whole("high", high, MIN_N, MAX_N)))
    else:
        ends = (asked_epsilon("low", low), asked_epsilon("high", high))
    if ends[0] >= ends[1]:
        raise SpecError("low", low, f"it must be below high = {high:g}")
    return ends


def _fixed(sought: str, n: int | None, epsilon: float | None, private: bool) -> float:
    """The value of what is not sought; the sought one must be left out, and without privacy there is no epsilon."""
    if sought == "n" and not private:
        epsilon = math.inf
    field, given, other = ("n", n, epsilon) if sought == "epsilon" else ("epsilon", epsilon, n)
    if other is not None:
        raise SpecError(sought, other, f"it is what is sought; give low and high and the fixed {field}")
    if given is None:
        raise SpecError(field, None, f"give the {field} at which {sought} is sought")
    if field == "n":
        return float(whole("n", given, MIN_N, MAX_N))
    return asked_epsilon("epsilon", given) if private else math.inf


@dataclass(frozen=True)
class Counts:
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
    dataset: AnyDataset
    fixed: float
    measure: str
    target: float
    probability: float
    low: float
    high: float
    runs: int
    confidence: float
    most_values: int
    precision: float

    @property
    def scored(self) -> Measure:
        return measure_of(METHODS[self.method].kind, self.measure)

    @property
    def tail(self) -> float:
        """The chance of error of one bound: all of them together err with at most 1 - confidence."""
        return (1 - self.confidence) / self.most_values

    def reached(self, score: float) -> bool:
        """Whether one run reached the target; a score that is not a number did not."""
        return self.scored.at_least_as_good(score, self.target)

    def power(self, share: float) -> float:
        """The chance that a value which truly reaches the target in this share of runs is shown to reach the wish."""

        counts = np.arange(self.runs + 1)
        shown = counts[clopper_pearson(counts, self.runs, self.tail)[0] > self.probability]
        return float(scipy.stats.binom.sf(shown[0] - 1, self.runs, share)) if len(shown) else 0.0

    @property
    def wish(self) -> str:
        side = "at least" if self.scored.more_is_better else "at most"
        return f"{self.scored.title} {side} {written(self.target)} in {percent(self.probability)} of runs"

    @property
    def setting(self) -> str:
        """Method, data set and the value that is held."""
        method = METHODS[self.method]
        held = f" at n = {self.fixed:,.0f}" if self.sought == "epsilon" else f" at ε = {written(self.fixed)}"
        return f"{method.title} on {dataset_info(self.dataset).title}{held if method.private else ''}"

    def show(self, value: float) -> str:
        return f"ε = {written(value)}" if self.sought == "epsilon" else f"n = {value:,.0f}"


def least_runs(probability: float, confidence: float = 0.95, most_values: int = 10) -> int:
    """With fewer runs than this not even a perfect record shows that a value reaches, or misses, the wish.

    probability^runs and (1 - probability)^runs must fall below the tail, (1 - confidence) / most_values.

    >>> [least_runs(probability) for probability in (0.5, 0.9, 0.95, 0.99)]
    [8, 51, 104, 528]
    """
    harder = max(probability, 1 - probability)
    return math.ceil(math.log((1 - confidence) / most_values) / math.log(harder) + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Tried(Counts):
    """One tried value: the share of runs that reached the target, its exact interval, and what that shows."""

    value: float
    interval: tuple[float, float]
    verdict: str  # "running", "reaches", "misses" or "open"

    @property
    def share(self) -> float:
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
    return Tried(*astuple(counts), value=value, interval=interval, verdict=verdict)


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
        return max((item.value for item in self.tried if item.verdict == "misses"), default=None)

    @property
    def reaches_at(self) -> float | None:
        floor = self.misses_at or 0.0
        above = (item.value for item in self.tried if item.verdict == "reaches" and item.value > floor)
        return min(above, default=None)

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
        return f"{_answer(self)} {_caution(self)}"


def _answer(found: NeededBudget) -> str:
    asked = found.question
    top = f"For {asked.wish}, {asked.setting}"
    if found.status == "not reachable":
        (last,) = (item for item in found.tried if item.value == asked.high)
        reached = f"{last.successes} of {last.runs} runs reached it"
        return f"{top}: not reachable up to {asked.show(asked.high)}, where {reached} (shown to miss)."
    if found.status == "already":
        return f"{top} needs no more than {asked.show(asked.low)}, the lowest value tried, which is shown to reach it."
    if found.misses_at is not None and found.reaches_at is not None:
        near = ""
        if found.estimate is not None:
            near = f"; the shares cross near {asked.show(float(f'{found.estimate:.2g}'))}"
        return (
            f"{top} needs more than {asked.show(found.misses_at)} (shown to miss) and no more than "
            f"{asked.show(found.reaches_at)} (shown to reach it){near}."
        )
    if found.reaches_at is not None:
        shown = f"needs no more than {asked.show(found.reaches_at)} (shown to reach it)"
        return f"{top} {shown}; no lower value is shown to miss."
    if found.misses_at is not None:
        return f"{top} needs more than {asked.show(found.misses_at)} (shown to miss); no value is shown to reach it."
    return f"{top}: nothing is shown yet."


def _caution(found: NeededBudget) -> str:
    """How sure that is, how easily it is seen, and what is not shown."""
    asked = found.question
    # How often so many runs recognise a value that is better than the wish, so that an open one is understood.
    share = 1 - MARGIN * (1 - asked.probability)
    often = asked.power(share)
    tries = "over 99%" if often > 0.99 else "under 1%" if often < 0.01 else whole_percent(often)
    text = (
        f"All that is called shown holds together with {percent(asked.confidence)} confidence, shared among at "
        f"most {asked.most_values} values of {asked.runs} runs each on fresh draws ({len(found.tried)} tried"
        + ("). " if found.finished else " so far). ")
        + f"With {asked.runs} runs, a true share of {percent(share)} is recognised in {tries} of tries. "
    )
    if found.turns:
        text += "A lower value was shown to reach it and a higher one to miss, so more is not always better here."
    else:
        text += "Between and beyond the tried values nothing is shown: the share need not grow with every step."
    failures = sum(item.failures for item in found.tried)
    if failures:
        reason = next(item.reason for item in found.tried if item.failures)
        runs = "1 run" if failures == 1 else f"{failures} runs"
        text += f" {runs} could not be made and count as misses ({reason.rstrip('.')})."
    bare = bare_status(found.guarantee)
    unproven = bare in ("nominal", "as published")
    if unproven or bare != found.guarantee:
        text += f" The ε of this method is {found.guarantee}{', not proven' * unproven}."
    return text


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

    >>> asked = Question(
    ...     sought="epsilon", method="functional", dataset="four_corners", fixed=1000.0, measure="mse",
    ...     target=0.05, probability=0.9, low=0.1, high=10.0, runs=100, confidence=0.95,
    ...     most_values=8, precision=1.2,
    ... )
    >>> *_, last = search(asked, lambda value: iter([Counts(100 if value > 0.7 else 20, 100)]))
    >>> last.status, last.misses_at < 0.7 < last.reaches_at
    ('bracketed', True)
    """
    done: list[Tried] = []
    guarantee = ""

    def found(tried: Sequence[Tried], finished: bool) -> NeededBudget:
        ordered = tuple(sorted(tried, key=lambda item: item.value))
        return NeededBudget(question=question, tried=ordered, finished=finished, guarantee=guarantee)

    while (value := next_value(question, done)) is not None:
        latest: Tried | None = None
        for counts in tries(value):
            guarantee = counts.guarantee or guarantee
            latest = judged(question, value, counts)
            if latest.verdict == "running":
                yield found([*done, latest], False)
        if latest is None or latest.verdict == "running":
            raise RuntimeError("the runs of a tried value ended early; this is a bug")
        done.append(latest)
        yield found(done, next_value(question, done) is None)
