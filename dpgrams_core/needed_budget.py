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
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dpgrams_core.cells import Cell, CellResult, derived_seed, settled
from dpgrams_core.checks import asked_epsilon, between, finite, one_of, positive, whole
from dpgrams_core.datasets import DATASETS, MAX_N, MIN_N
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import Processes
from dpgrams_core.methods import METHODS
from dpgrams_core.needed_search import Counts, NeededBudget, Question, Tried, least_runs, search
from dpgrams_core.sweep_plan import MAX_RUNS, plan_cells
from dpgrams_core.sweeps import EXECUTORS, RunStore, stream_partial

__all__ = ["MEASURES", "NeededBudget", "Tried", "least_runs", "needed_epsilon", "needed_n", "stream_needed"]

USUAL_RUNS = 60  # of each value, where these are enough
MOST_VALUES = 10  # that are tried
# Each kind's measures, and whether more is better.
MEASURES: dict[str, dict[str, bool]] = {
    "modes": {"mse": False, "mse_per_true_mode": False, "missed": False, "spurious": False, "found": True},
    "regression": {"mse": False, "branch_recall": True, "coverage": True},
    "clusters": {"ari": True, "nmi": True, "centroid_mse": False},
}


def needed_epsilon(
    method: str, dataset: str, *, n: int, low: float = 0.05, high: float = 20.0, **how: Any
) -> NeededBudget:
    """The epsilon that a target needs at n records, as a bracket; see :func:`stream_needed` for the settings.

    Examples
    --------
    >>> easy = {"target": 500.0, "probability": 0.5, "low": 0.5, "high": 50.0, "runs": 10, "most_values": 3}
    >>> found = needed_epsilon("dp_grams", "four_corners", n=300, **easy)
    >>> found.status, [tried.verdict for tried in found.tried]
    ('already', ['reaches', 'reaches'])
    """
    *_, last = stream_needed("epsilon", method, dataset, n=n, low=low, high=high, **how)
    return last


def needed_n(
    method: str, dataset: str, *, epsilon: float | None = None, low: int = 200, high: int = 50_000, **how: Any
) -> NeededBudget:
    """The number of records that a target needs at epsilon, as a bracket; see :func:`stream_needed`."""
    *_, last = stream_needed("n", method, dataset, epsilon=epsilon, low=low, high=high, **how)
    return last


def stream_needed(
    sought: str,
    method: str,
    dataset: str,
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
    measure : one of ``MEASURES`` for the kind of data; "mse", for clusters "ari", by default.
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
    one_of("method", method, METHODS)
    one_of("dataset", dataset, DATASETS)
    kind = METHODS[method].kind
    if DATASETS[dataset].kind != kind:
        raise SpecError("dataset", dataset, f"{method} works on {kind} data")
    if sought == "epsilon" and not METHODS[method].private:
        raise SpecError("method", method, "it has no privacy, so no epsilon changes its result; ask for n")
    name = next(iter(MEASURES[kind])) if measure is None else one_of("measure", measure, MEASURES[kind])
    lowest, highest = _ends(sought, low, high)
    question = Question(
        sought=sought,
        method=method,
        dataset=dataset,
        fixed=_fixed(sought, n, epsilon, METHODS[method].private),
        measure=name,
        more_is_better=MEASURES[kind][name],
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

    def cell_at(value: float) -> Cell:
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
    question: Question, cell_at: Callable[[float], Cell], executor: str | Processes, store: RunStore | None
) -> Iterator[NeededBudget]:
    if executor != "processes":
        yield from search(question, _simulations(question, cell_at, executor, store))
        return
    with Processes() as pool:  # one for all values: starting one takes longer than many a value
        yield from search(question, _simulations(question, cell_at, pool, store))


def _simulations(
    question: Question, cell_at: Callable[[float], Cell], executor: str | Processes, store: RunStore | None
) -> Callable[[float], Iterator[Counts]]:
    def tries(value: float) -> Iterator[Counts]:
        results = stream_partial([cell_at(value)], executor, store=store)
        try:
            for result in results:
                yield _counts(question, settled(result))
        finally:
            results.close()  # type: ignore[attr-defined]
        if result.passing:
            reason = result.failures[result.failed.index(result.passing[0])].rstrip(".")
            raise DataError(
                f"{len(result.passing)} of {question.runs} runs at {question.show(value)} did not come back: {reason}. "
                "They count neither way, so the search stops here. Start it again to make them."
            )

    return tries


def _counts(question: Question, result: CellResult) -> Counts:
    """A run that these settings do not allow did not reach the target."""
    return Counts(
        successes=sum(question.reached(found) for found in result.scores.get(question.measure, ())),
        runs=result.ended,
        failures=len(result.failures),
        reason=result.failures[0] if result.failures else "",
        guarantee=result.words,
    )


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
