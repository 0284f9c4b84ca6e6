"""Where the error comes from: the same draws run again with one ingredient more each time.

A ladder of runs goes from a method without privacy to the method itself.  Its errors are means over the same draws
of data and noise, and the difference between two neighbouring steps is what the ingredient between them costs *in
this order*: ingredients act on each other, and another order would share the same total out differently.

The switched-off draws are simulations with no guarantee whatever.  They need the truth to be known, are refused for
private data, and only their scores leave this file, never a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from dpgrams_core.cells import Cell
from dpgrams_core.error_ladders import LADDERS
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import DIED, Lost, Processes, stream_tasks
from dpgrams_core.ladder_parts import Rung
from dpgrams_core.ladder_runs import Errors, LadderStore, check_first_run, ladder_runs, run_ladder
from dpgrams_core.sweep_plan import plan_cells

__all__ = ["LADDERS", "ErrorSources", "ErrorStep", "Rung", "error_sources", "stream_error_sources"]

IN_THIS_ORDER = (
    "The parts are differences between neighbouring runs, switched on in this order; another order would share "
    "the same total out differently."
)


@dataclass(frozen=True, kw_only=True)
class ErrorStep:
    """One step of the ladder: its mean error and what it adds to the step before, with standard errors.

    ``change`` of the first step is its whole error.  Both standard errors are NaN with fewer than two runs.
    """

    key: str
    title: str
    words: str
    error: float
    error_se: float
    change: float
    change_se: float
    runs: int

    @property
    def clear(self) -> bool:
        """Whether the change is more than two standard errors from zero."""
        return abs(self.change) > 2 * self.change_se


@dataclass(frozen=True, kw_only=True)
class ErrorSources:
    """The steps of a ladder so far; their changes add up to ``total``, the error of the method itself."""

    method: str
    dataset: str
    n: int
    epsilon: float
    measure: str
    steps: tuple[ErrorStep, ...]
    runs: int
    wanted: int
    failures: int = 0

    @property
    def total(self) -> float:
        """The mean error of the method as it is."""
        return self.steps[-1].error

    @property
    def complete(self) -> bool:
        """Whether all runs came to an end."""
        return self.runs + self.failures >= self.wanted

    @property
    def sentence(self) -> str:
        """The ladder in words."""
        name = _measure_words(self.measure)
        if not math.isfinite(self.total) or not math.isfinite(self.steps[0].error):
            return (
                f"In at least one of {self.runs} runs nothing was released, so the mean {name} is infinite and has "
                "no parts. Choose a larger ε or n."
            )
        first, rest = self.steps[0], self.steps[1:]
        worth = 0.01 * max(abs(step.change) for step in self.steps)  # less is in the table, not in the sentence
        told = sorted((step for step in rest if step.clear and abs(step.change) > worth), key=lambda step: -step.change)
        text = f"Of the mean {name} of {_figure(self.total)}, {_figure(first.error)} is there with {first.words}"
        text += "".join(f"; {step.words} adds {_figure(step.change)}" for step in told if step.change > 0)
        text += "".join(f"; {step.words} takes {_figure(-step.change)} off" for step in told if step.change < 0) + "."
        unclear = [step.title.lower() for step in rest if not step.clear and abs(step.change) > worth]
        if self.runs > 1 and unclear:
            text += f" Within two standard errors of zero: {', '.join(unclear)}."
        text += f" Means of {self.runs} {'run' if self.runs == 1 else 'runs'} on the same draws. {IN_THIS_ORDER}"
        text += f" {note}" if (note := LADDERS[self.method].note) else ""
        return text + (f" {self.failures} could not be made." if self.failures else "")


def _figure(value: float) -> str:
    return f"{value:.3g}"


def _measure_words(measure: str) -> str:
    names = {"mse": "MSE", "mse_per_true_mode": "MSE per true mode", "centroid_mse": "centroid MSE"}
    return names.get(measure, f"1 − {measure.upper()}")


def error_sources(
    method: str,
    dataset: str,
    *,
    n: int,
    epsilon: float = 1.0,
    measure: str | None = None,
    runs: int = 20,
    seed: int = 0,
    executor: str | Processes = "serial",
    store: LadderStore | None = None,
    **options: Any,
) -> ErrorSources:
    """Tell the sources of a method's error apart by switching them on one at a time.

    Parameters
    ----------
    method : one of ``LADDERS``: "dp_grams" or "functional" of modes, "dp_pms" or "functional_regression",
        "dp_grams_c" or "functional_c" of clusters.
    dataset : a synthetic or public data set with a known truth.
    measure : "mse" or "mse_per_true_mode" of modes, "mse" of regression, "centroid_mse", "ari" or "nmi" of clusters;
        ARI and NMI are counted as 1 − score, so that every measure is an error.
    runs : each on a draw of its own; all steps of the ladder see the same draws, those of a sweep with this seed.
    store : its runs are not made again, and new ones are added to it; the result is the same.
    **options : fields of the method's spec.

    Returns
    -------
    sources : the changes of all steps add up to the error that a sweep of the method reports.

    Examples
    --------
    >>> found = error_sources("functional", "four_corners", n=500, epsilon=1.0, runs=3, n_modes=4)
    >>> [step.key for step in found.steps]
    ['sampling', 'noise', 'merge']
    >>> abs(sum(step.change for step in found.steps) - found.total) < 1e-12
    True
    """
    *_, last = stream_error_sources(
        method,
        dataset,
        n=n,
        epsilon=epsilon,
        measure=measure,
        runs=runs,
        seed=seed,
        executor=executor,
        store=store,
        **options,
    )
    return last


def stream_error_sources(
    method: str,
    dataset: str,
    *,
    n: int,
    epsilon: float = 1.0,
    measure: str | None = None,
    runs: int = 20,
    seed: int = 0,
    executor: str | Processes = "serial",
    store: LadderStore | None = None,
    **options: Any,
) -> Iterator[ErrorSources]:
    """What is there of the ladder in the store, and the ladder again after each further run.

    Closing the iterator stops the rest; with the same store it can be continued later, and ends at the same result.

    Wrong settings are refused here, at the call, before anything runs.  A run that fails is left out and counted.
    """
    if method not in LADDERS:
        raise SpecError("method", method, "the parts of the error are told apart for " + ", ".join(LADDERS))
    ladder = LADDERS[method]
    chosen = ladder.measures[0] if measure is None else measure
    if chosen not in ladder.measures:
        raise SpecError("measure", measure, "choose one of " + ", ".join(ladder.measures))
    (cell,) = plan_cells(method, dataset, n=[n], epsilon=[epsilon], runs=runs, seed=seed, **options)
    check_first_run(cell)
    return _stream(cell, chosen, executor, store)


def _stream(cell: Cell, measure: str, executor: str | Processes, store: LadderStore | None) -> Iterator[ErrorSources]:
    runs = ladder_runs(cell, measure)
    known: dict[int, Errors | Lost] = {}
    if store is not None:
        known = {run.number: found for run in runs if (found := store.finished(run)) is not None}
    if (so_far := _summary(cell, measure, known)) is not None:
        yield so_far
    outcomes = stream_tasks(run_ladder, [run for run in runs if run.number not in known], executor)
    try:
        for run, outcome in outcomes:
            known[run.number] = outcome
            if store is not None and outcome != Lost(DIED):  # that one is worth another try
                store.add(run, outcome)
            if (so_far := _summary(cell, measure, known)) is not None:
                yield so_far
    finally:
        outcomes.close()  # type: ignore[attr-defined]
    if so_far is None:
        reason = next(found.sentence for _, found in sorted(known.items()) if isinstance(found, Lost))
        raise DataError(f"None of {len(known)} runs could be made, so there is no error to part. {reason}")


def _summary(cell: Cell, measure: str, known: Mapping[int, Errors | Lost]) -> ErrorSources | None:
    """Means and paired differences of the runs so far, in order of the runs; None where none could be made."""
    runs = [errors for _, errors in sorted(known.items()) if not isinstance(errors, Lost)]
    if not runs:
        return None
    steps = []
    for place, rung in enumerate(LADDERS[cell.method].rungs):
        errors = [run[place] for run in runs]
        changes = [run[place] - run[place - 1] for run in runs] if place else errors
        steps.append(
            ErrorStep(
                key=rung.key,
                title=rung.title,
                words=rung.words,
                error=fmean(errors),
                error_se=_standard_error(errors),
                change=fmean(changes) if _finite(changes) else math.nan,
                change_se=_standard_error(changes),
                runs=len(runs),
            )
        )
    return ErrorSources(
        method=cell.method,
        dataset=cell.dataset,
        n=cell.n,
        epsilon=cell.epsilon,
        measure=measure,
        steps=tuple(steps),
        runs=len(runs),
        wanted=cell.runs,
        failures=len(known) - len(runs),
    )


def _finite(values: Sequence[float]) -> bool:
    return all(math.isfinite(value) for value in values)


def _standard_error(values: Sequence[float]) -> float:
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 and _finite(values) else math.nan


def shares(sources: ErrorSources) -> Mapping[str, float]:
    """The part of each step in the total; parts below zero make the rest more than all of it.

    >>> parts = shares(error_sources("functional", "four_corners", n=300, runs=2, n_modes=4))
    >>> round(sum(parts.values()), 9)
    1.0
    """
    return {step.key: step.change / sources.total for step in sources.steps}
