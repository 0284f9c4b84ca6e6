"""Results of cells that nobody ran, for tests of what is made of results."""

from __future__ import annotations

from dpgrams_core.sweeps.cell import CellResult, Outcome, failed_run
from dpgrams_core.sweeps.store import read_runs, results_of


def made_result(cell, *, scores, seconds, status="nominal", numbers=None, failures=(), failed=(), passing=()):
    """A result with one value a run in each score, and failures beside them."""
    numbers = range(len(seconds)) if numbers is None else numbers
    outcomes = {
        number: Outcome(took, status, {name: values[place] for name, values in scores.items()})
        for place, (number, took) in enumerate(zip(numbers, seconds, strict=True))
    }
    outcomes |= {
        number: failed_run(text, passing=number in passing) for number, text in zip(failed, failures, strict=True)
    }
    return CellResult(cell=cell, outcomes=dict(sorted(outcomes.items())))


def changed(result, **change):
    """The same result with other scores, times, statuses or failures."""
    bad = {number: outcome.failure for number, outcome in result.outcomes.items() if outcome.failure is not None}
    same = {
        "cell": result.cell,
        "scores": result.scores,
        "seconds": result.seconds,
        "status": result.status,
        "numbers": result.numbers,
        "failures": tuple(bad.values()),
        "failed": tuple(bad),
        "passing": result.passing,
    }
    return made_result(**{**same, **change})


def results_in(path):
    """All cells of a results file, each with the runs that are there."""
    return list(results_of(read_runs(path)[0]))
