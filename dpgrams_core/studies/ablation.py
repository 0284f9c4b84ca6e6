"""Where the error comes from: the same draws run again with one ingredient more each time.

A ladder of runs (``Method.ladder``) goes from a method without privacy to the method itself.  Its errors are means over
the same draws of data and noise, and the difference between two neighbouring steps is what the ingredient between them
costs *in this order*: ingredients act on each other, and another order would share the same total out differently.

The switched-off draws are simulations with no guarantee whatever.  They need the truth to be known, are refused for
private data, and only their scores leave this file, never a release.  Each run can be made in any process, and is kept
so that none is made twice.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from dpgrams_core.datasets.registry import load_dataset
from dpgrams_core.methods.ladder import Ladder, Rung
from dpgrams_core.methods.registry import METHODS, run
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import short
from dpgrams_core.model.measures import Measure, measure_of, measures_with_parts, score
from dpgrams_core.model.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.model.specs import make_spec
from dpgrams_core.numerics.statistics import standard_error
from dpgrams_core.sweeps.cell import data_seed, noise_seed, split
from dpgrams_core.sweeps.executors import DIED, Lost, Processes, stream_tasks
from dpgrams_core.sweeps.plan import plan_cells

MOST_RUNS_KEPT = 100_000  # a run is some eight numbers
IN_THIS_ORDER = (
    "The parts are differences between neighbouring runs, switched on in this order; another order would share "
    "the same total out differently."
)
MISSES_ARE_FREE = "This MSE asks how near the curve is to some branch; a branch that is missed costs nothing in it."

Errors = tuple[float, ...]  # of every step of the ladder, in order
LadderRun = tuple[Run, str]  # a single run, whose draws the ladder has, and the measure of the errors


def ladders() -> dict[str, Ladder]:
    """The ladders of all methods that have one."""
    return {name: method.ladder for name, method in METHODS.items() if method.ladder is not None}


@dataclass(frozen=True, kw_only=True)
class ErrorStep(Rung):
    """One step of the ladder: its mean error and what it adds to the step before, with standard errors.

    ``change`` of the first step is its whole error.  Both standard errors are NaN with fewer than two runs.
    """

    error: float
    error_se: float
    change: float
    change_se: float
    runs: int

    @property
    def clear(self) -> bool:
        return abs(self.change) > 2 * self.change_se


@dataclass(frozen=True, kw_only=True)
class ErrorSources:
    """The steps of a ladder so far; their changes add up to ``total``, the error of the method itself."""

    cell: Run
    measure: str
    steps: tuple[ErrorStep, ...]
    runs: int
    failures: int = 0

    @property
    def scored(self) -> Measure:
        return measure_of(METHODS[self.cell.method].kind, self.measure)

    @property
    def wanted(self) -> int:
        return self.cell.runs

    @property
    def total(self) -> float:
        return self.steps[-1].error

    @property
    def complete(self) -> bool:
        return self.runs + self.failures >= self.wanted

    @property
    def sentence(self) -> str:
        name = self.scored.error_title
        if not math.isfinite(self.total) or not math.isfinite(self.steps[0].error):
            return (
                f"In at least one of {self.runs} runs nothing was released, so the mean {name} is infinite and has "
                "no parts. Choose a larger ε or n."
            )
        first, rest = self.steps[0], self.steps[1:]
        worth = 0.01 * max(abs(step.change) for step in self.steps)  # less is in the table, not in the sentence
        told = sorted((step for step in rest if step.clear and abs(step.change) > worth), key=lambda step: -step.change)
        text = f"Of the mean {name} of {short(self.total)}, {short(first.error)} is there with {first.words}"
        text += "".join(f"; {step.words} adds {short(step.change)}" for step in told if step.change > 0)
        text += "".join(f"; {step.words} takes {short(-step.change)} off" for step in told if step.change < 0) + "."
        unclear = [step.title.lower() for step in rest if not step.clear and abs(step.change) > worth]
        if self.runs > 1 and unclear:
            text += f" Within two standard errors of zero: {', '.join(unclear)}."
        text += f" Means of {self.runs} {'run' if self.runs == 1 else 'runs'} on the same draws. {IN_THIS_ORDER}"
        text += f" {MISSES_ARE_FREE}" if METHODS[self.cell.method].kind == "regression" else ""
        return text + (f" {self.failures} could not be made." if self.failures else "")


class LadderMemory:
    """Finished runs of ladders, for several threads; what was not used for longest is forgotten first.

    >>> memory = LadderMemory()
    >>> some = error_sources("functional", "four_corners", n=300, runs=2, store=memory)
    >>> more = error_sources("functional", "four_corners", n=300, runs=3, store=memory)  # makes one run
    >>> len(memory), more.runs
    (3, 3)
    """

    def __init__(self, most_runs: int = MOST_RUNS_KEPT) -> None:
        self.most_runs = most_runs
        self._known: OrderedDict[LadderRun, Errors | Lost] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def finished(self, run: LadderRun) -> Errors | Lost | None:
        with self._lock:
            if run in self._known:
                self._known.move_to_end(run)
            return self._known.get(run)

    def add(self, run: LadderRun, outcome: Errors | Lost) -> None:
        with self._lock:
            self._known[run] = outcome
            self._known.move_to_end(run)
            while len(self._known) > self.most_runs:
                self._known.popitem(last=False)


def error_sources(method: str, dataset: AnyDataset, **how: Any) -> ErrorSources:
    """Tell the sources of a method's error apart; the settings are those of :func:`stream_error_sources`.

    >>> found = error_sources("functional", "four_corners", n=500, epsilon=1.0, runs=3, n_modes=4)
    >>> [step.key for step in found.steps]
    ['sampling', 'noise', 'merge']
    >>> abs(sum(step.change for step in found.steps) - found.total) < 1e-12
    True
    """
    *_, last = stream_error_sources(method, dataset, **how)
    return last


def stream_error_sources(
    method: str,
    dataset: AnyDataset,
    *,
    n: int,
    epsilon: float = 1.0,
    measure: str | None = None,
    runs: int = 20,
    seed: int = 0,
    executor: str | Processes = "serial",
    store: LadderMemory | None = None,
    **options: Any,
) -> Iterator[ErrorSources]:
    """The ladder as far as the store knows it, and again after each further run.

    Closing the iterator stops the rest; with the same store it can be continued later, and ends at the same result.
    Wrong settings are refused here, at the call, before anything runs.  A run that fails is left out and counted.

    Parameters
    ----------
    method : one of ``ladders``: "dp_grams" or "functional" of modes, "dp_pms" or "functional_regression",
        "dp_grams_c" or "functional_c" of clusters.
    dataset : a synthetic or public data set with a known truth.
    measure : one of ``measures_with_parts`` of the method's kind, by default the first; ARI and NMI are counted as
        1 − score, so that every measure is an error.
    runs : each on a draw of its own; all steps of the ladder see the same draws, those of a sweep with this seed.
    store : its runs are not made again, and new ones are added to it; the result is the same.
    **options : fields of the method's spec.

    Returns
    -------
    sources : the changes of all steps add up to the error that a sweep of the method reports.
    """
    if method not in ladders():
        raise SpecError("method", method, "the parts of the error are told apart for " + ", ".join(ladders()))
    measures = measures_with_parts(METHODS[method].kind)
    chosen = measures[0] if measure is None else measure
    if chosen not in measures:
        raise SpecError("measure", measure, "choose one of " + ", ".join(measures))
    (cell,) = plan_cells(method, dataset, n=[n], epsilon=[epsilon], runs=runs, seed=seed, **options)
    # The plan of the first run is made, and nothing is drawn: settings that do not fit the data are refused.
    prepared(method, load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, 0), design=cell.design), _options(cell))
    return _stream(cell, chosen, executor, store)


def _stream(cell: Run, measure: str, executor: str | Processes, store: LadderMemory | None) -> Iterator[ErrorSources]:
    known: dict[int, Errors | Lost] = {}
    runs = ladder_runs(cell, measure)
    if store is not None:
        known = {run.first_run: found for run, _ in runs if (found := store.finished((run, measure))) is not None}
    if (so_far := _summary(cell, measure, known)) is not None:
        yield so_far
    outcomes = stream_tasks(run_ladder, [run for run in runs if run[0].first_run not in known], executor)
    try:
        for run, outcome in outcomes:
            known[run[0].first_run] = outcome
            if store is not None and outcome != Lost(DIED):  # that one is worth another try
                store.add(run, outcome)
            if (so_far := _summary(cell, measure, known)) is not None:
                yield so_far
    finally:
        outcomes.close()  # type: ignore[attr-defined]
    if so_far is None:
        reason = next(found.sentence for _, found in sorted(known.items()) if isinstance(found, Lost))
        raise DataError(f"None of {len(known)} runs could be made, so there is no error to part. {reason}")


def _summary(cell: Run, measure: str, known: Mapping[int, Errors | Lost]) -> ErrorSources | None:
    """Means and paired differences of the runs so far, in order of the runs; None where none could be made."""
    runs = [errors for _, errors in sorted(known.items()) if not isinstance(errors, Lost)]
    if not runs:
        return None
    steps = []
    for place, rung in enumerate(ladders()[cell.method].rungs):
        errors = [run[place] for run in runs]
        changes = [run[place] - run[place - 1] for run in runs] if place else errors
        change = fmean(changes) if all(map(math.isfinite, changes)) else math.nan
        error_se, change_se = standard_error(errors), standard_error(changes)
        numbers = {"error": fmean(errors), "error_se": error_se, "change": change, "change_se": change_se}
        steps.append(ErrorStep(rung.key, rung.title, rung.words, runs=len(runs), **numbers))
    failures = len(known) - len(runs)
    return ErrorSources(cell=cell, measure=measure, steps=tuple(steps), runs=len(runs), failures=failures)


def ladder_runs(cell: Run, measure: str) -> list[LadderRun]:
    """The runs of a ladder on the draws of a cell; those of a cell with more runs begin with the same ones."""
    return [(run, measure) for run in split(cell, 1)]


def run_ladder(ladder_run: LadderRun) -> Errors:
    """The errors of one run: not those of the cell's scores, which are of the method as it is, but of every step."""
    cell, measure = ladder_run
    data = load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, cell.first_run), design=cell.design)
    return ladder_errors(cell.method, data, noise_seed(cell, cell.first_run), measure, _options(cell))


def _options(cell: Run) -> dict[str, Any]:
    return {**dict(cell.options), "epsilon": cell.epsilon}


def prepared(method: str, data: Dataset, options: dict[str, Any]) -> Any:
    """The plan of a ladder's runs; what does not fit the data is refused."""
    refuse_private(data)
    return ladders()[method].prepare(data, make_spec(METHODS[method].spec, options))


def ladder_errors(method: str, data: Dataset, seed: int, measure: str, options: dict[str, Any]) -> Errors:
    """The error of every step of the ladder on one data set with one seed; the last is that of ``run`` itself.

    >>> data = load_dataset("four_corners", n=300, seed=0)
    >>> errors = ladder_errors("dp_grams", data, 0, "mse", {"epsilon": 1.0})
    >>> errors[-1] == score(run("dp_grams", data, seed=0, epsilon=1.0), data)["mse"]
    True
    """
    found = ladders()[method].estimates(prepared(method, data, options), data, seed)
    releases = [*(_bare(estimate, data.kind) for estimate in found), run(method, data, seed=seed, **options)]
    as_error = measure_of(data.kind, measure).as_error
    return tuple(as_error(score(release, data)[measure]) for release in releases)


def _bare(found: np.ndarray, kind: str) -> Release:
    """What the score takes. It says of itself that it has no guarantee, and does not leave this file."""
    nothing = Guarantee(epsilon=float("inf"), delta=1.0, status="none", statement="A simulation without noise.")
    curve = found if kind == "regression" else None
    modes = np.empty((0, 2)) if kind == "regression" else found
    return Release(method="simulation", modes=modes, curve=curve, spec=None, events=(), guarantee=nothing)
