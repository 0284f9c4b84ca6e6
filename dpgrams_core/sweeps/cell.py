"""One point of a sweep: its seeds, its runs, and what came of them.

Seeds are derived from the values of a cell, so every method, budget and varied control sees the same draws.
A run is known by its number, so a cell can be split into pieces, extended later and put together again.
"""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpgrams_core.datasets.registry import DATASETS, DatasetInfo, load_dataset
from dpgrams_core.methods.registry import METHODS, run, run_together
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.guarantee import full_status
from dpgrams_core.model.measures import score
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.run import Run, same_but_runs
from dpgrams_core.numerics.statistics import standard_error

QUANTILES = (0.10, 0.25, 0.50, 0.75, 0.90)
# What comes again with the same settings and seeds. All else, such as memory or a file that is not there, may pass.
LASTING = (SpecError, ArithmeticError)
# More runs at a time gain little, and their records are held at once.
RUNS_TOGETHER, RECORDS_TOGETHER = 16, 20_000


class Outcome(NamedTuple):
    """What came of one run: its time, its status and its scores, or the sentence of its failure.

    A ``passing`` failure is worth another try: it says something about the machine and nothing about the cell.
    """

    seconds: float
    status: str
    scores: Mapping[str, float]
    failure: str | None = None
    passing: bool = False


def failed_run(sentence: str, *, passing: bool) -> Outcome:
    """A run without a score."""
    return Outcome(0.0, "none", {}, sentence, passing)


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What came of the runs of a cell, by their rising numbers; fewer than its runs while it is not complete."""

    cell: Run
    outcomes: Mapping[int, Outcome]

    @cached_property
    def _good(self) -> dict[int, Outcome]:
        return {number: outcome for number, outcome in self.outcomes.items() if outcome.failure is None}

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the runs that have scores."""
        return tuple(self._good)

    @cached_property
    def scores(self) -> dict[str, tuple[float, ...]]:
        """All values of each score, in order of the runs; a run that failed is left out."""
        good = self._good.values()
        names = dict.fromkeys(name for outcome in good for name in outcome.scores)
        return {name: tuple(outcome.scores[name] for outcome in good) for name in names}

    @property
    def seconds(self) -> tuple[float, ...]:
        return tuple(outcome.seconds for outcome in self._good.values())

    @property
    def status(self) -> str:
        return next((outcome.status for outcome in reversed(self._good.values())), "none")

    @property
    def failures(self) -> tuple[str, ...]:
        return tuple(outcome.failure for outcome in self.outcomes.values() if outcome.failure is not None)

    @property
    def passing(self) -> tuple[int, ...]:
        return tuple(number for number, outcome in self.outcomes.items() if outcome.passing)

    @property
    def ended(self) -> int:
        """The number of runs that came to an end, good or bad."""
        return len(self.outcomes)

    @property
    def words(self) -> str:
        """The status with what it rests on, as it is shown: a fact of the data set, so old files have it too."""
        info = _known(self.cell)
        return full_status(self.status, None if info is None else info.condition(self.cell.design))

    @property
    def complete(self) -> bool:
        return self.ended >= self.cell.runs

    def row(self) -> dict[str, Any]:
        """One row of the tidy table: mean, standard error and quantiles of every score.

        A run that released no mode has an infinite error; then so has the mean, and there is no spread to give.
        """
        cell, seconds, failures = self.cell, self.seconds, self.failures
        row: dict[str, Any] = {
            "method": cell.method,
            "dataset": str(cell.dataset),
            "n": cell.n,
            "epsilon": cell.epsilon,
            "runs": len(seconds),
            "failures": len(failures),
            "status": self.words,
        }
        for name, values in self.scores.items():
            row |= {name: float(np.mean(values)), f"{name}_se": standard_error(values)}
            # Interpolated where all values are finite; else values that occurred, since infinities have no middle.
            method: Any = "linear" if np.isfinite(values).all() else "inverted_cdf"
            unknown = bool(np.isnan(values).any())
            found = [math.nan] * len(QUANTILES) if unknown else np.quantile(values, QUANTILES, method=method).tolist()
            row |= {f"{name}_q{100 * share:.0f}": value for share, value in zip(QUANTILES, found, strict=True)}
        return row | {
            "seconds": float(np.mean(seconds)) if seconds else math.nan,
            "error": failures[0] if failures else "",
        }


def derived_seed(seed: int, *parts: object) -> int:
    """A seed from values, the same on every machine and in every process."""
    text = "/".join(repr(part) for part in parts)
    return int(np.random.SeedSequence([seed, zlib.crc32(text.encode())]).generate_state(1)[0])


def data_seed(cell: Run, run_number: int) -> int:
    """Seed of the data of a run: it knows no method and no epsilon, so all of them share the draw."""
    if cell.data_seed is not None:
        return cell.data_seed
    printed = _printed_seeds(cell, run_number)[0]
    if printed is not None:
        return printed
    return derived_seed(cell.seed, "data", str(cell.dataset), cell.n, run_number)


def _printed_seeds(cell: Run, run_number: int) -> tuple[int | None, int | None]:
    """The seeds of a printed table, where the design has it: with the seed 0 a sweep makes the very runs of the table.

    >>> from dpgrams_core.sweeps.run import plan_cells
    >>> (cell,) = plan_cells("dp_grams", "four_corners", n=[1000], epsilon=[0.25], design="as run")
    >>> data_seed(cell, 7), noise_seed(cell, 7)
    (43, 1149)
    """
    info = _known(cell)
    design = None if info is None or cell.seed != 0 else info.design(cell.design)
    return (None, None) if design is None else design.seeds(cell.n, cell.epsilon, run_number)


def noise_seed(cell: Run, run_number: int) -> int:
    """Seed of the noise of a run: it knows no option, so that a varied control is compared on the same noise."""
    if not cell.derived:
        return cell.seed
    printed = _printed_seeds(cell, run_number)[1]
    if printed is not None:
        return printed
    return derived_seed(cell.seed, "noise", cell.method, str(cell.dataset), cell.n, cell.epsilon, run_number)


def run_cell(cell: Run) -> CellResult:
    """All runs of a cell. A run that fails is recorded with its sentence and does not stop the rest."""
    # A method without privacy has a budget only where that tells draws of its data apart.
    private = cell.method not in METHODS or METHODS[cell.method].private
    options = cell.settings if private else dict(cell.options)
    outcomes: dict[int, Outcome] = {}
    together = cell.method in METHODS and METHODS[cell.method].together is not None and cell.n <= RECORDS_TOGETHER
    data, drawn = None, None
    held: dict[int, Dataset] = {}
    for number in cell.numbers:
        checkpoint()
        try:
            if data is None or data_seed(cell, number) != drawn:  # repeated runs on one draw share its sums
                drawn = data_seed(cell, number)
                data = load_dataset(cell.dataset, n=cell.n, seed=drawn, design=cell.design).for_many_runs()
            held[number] = data
        except Exception as error:
            outcomes[number] = _failed(error)
        if len(held) == (RUNS_TOGETHER if together else 1):
            outcomes |= _outcomes(cell, held, options)
            held = {}
    outcomes |= _outcomes(cell, held, options)
    outcomes = {number: outcomes[number] for number in cell.numbers}
    return CellResult(cell=cell, outcomes=outcomes)


def _outcomes(cell: Run, held: dict[int, Dataset], options: dict[str, Any]) -> dict[int, Outcome]:
    """What runs of a cell give, each on its own data; where one of several fails, they are run one by one."""
    if len(held) > 1:
        try:
            started = time.perf_counter()
            seeds = [noise_seed(cell, number) for number in held]
            releases = run_together(cell.method, list(held.values()), seeds, **options)
            taken = (time.perf_counter() - started) / len(held)
            return {
                number: Outcome(taken, release.guarantee.status, score(release, held[number]))
                for number, release in zip(held, releases, strict=True)
            }
        except Exception:
            logging.getLogger(__name__).info("Runs that failed together are run one by one.", exc_info=True)
    outcomes = {}
    for number, data in held.items():
        checkpoint()
        try:
            started = time.perf_counter()
            release = run(cell.method, data, seed=noise_seed(cell, number), **options)
            taken = time.perf_counter() - started
            outcomes[number] = Outcome(taken, release.guarantee.status, score(release, data))
        except Exception as error:
            outcomes[number] = _failed(error)
    return outcomes


def _failed(error: Exception) -> Outcome:
    return failed_run(failure_text(error), passing=not isinstance(error, LASTING))


def claimed_status(cell: Run, status: str) -> str:
    """The status of a run that an earlier version wrote down: a setting that was picked on the records is nominal.

    >>> from dpgrams_core.sweeps.run import plan_cells
    >>> tight = {"n": [100], "epsilon": [1.0], "calibration": "tight"}
    >>> usual, picked = plan_cells("dp_grams_c", "digits", **tight, vary=("clip_multiplier", [1, 0.1]))
    >>> claimed_status(usual, "proven"), claimed_status(picked, "proven")
    ('proven', 'nominal')
    """
    info = _known(cell)
    picked = info is not None and any(dict(cell.options).get(name) == value for name, value in info.picked)
    return "nominal" if picked and status != "none" else status


def _known(cell: Run) -> DatasetInfo | None:
    """What is known of its data set; nothing of a name in a file that is not listed here."""
    return cell.dataset if isinstance(cell.dataset, DatasetInfo) else DATASETS.get(cell.dataset)


def failure_text(error: BaseException) -> str:
    """The sentence of an error; one that was not written for people comes with its kind."""
    expected = isinstance(error, (ValueError, ArithmeticError, MemoryError))
    return str(error) if expected and str(error) else f"{type(error).__name__}: {error}".rstrip(": ")


def failed_result(cell: Run, sentence: str) -> CellResult:
    """A cell of which no run came back, which may be different next time."""
    return CellResult(cell=cell, outcomes=dict.fromkeys(cell.numbers, failed_run(sentence, passing=True)))


def settled(result: CellResult) -> CellResult:
    """What is known of a cell for good: without the failures that are worth another try."""
    lasting = {number: outcome for number, outcome in result.outcomes.items() if not outcome.passing}
    return replace(result, outcomes=lasting)


def split(cell: Run, size: int, skip: Iterable[int] = ()) -> Iterator[Run]:
    """Pieces of at most ``size`` runs that make up the cell, without the runs to skip.

    >>> from dpgrams_core.sweeps.run import plan_cells
    >>> (cell,) = plan_cells("mean_shift", "four_corners", n=[100], epsilon=[1.0], runs=10)
    >>> [list(piece.numbers) for piece in split(cell, 4, skip=[1])]
    [[0], [2, 3, 4, 5], [6, 7, 8, 9]]
    """
    known = set(skip)
    start: int | None = None
    for number in cell.numbers:
        if start is not None and (number in known or number - start == size):
            yield replace(cell, first_run=start, runs=number - start)
            start = None
        if start is None and number not in known:
            start = number
    if start is not None:
        yield replace(cell, first_run=start, runs=cell.first_run + cell.runs - start)


def take_in(known: dict[int, Outcome], more: Mapping[int, Outcome]) -> None:
    """Add the outcomes of runs; one that came twice counts once: a good one, else a failure that lasts."""
    for number, outcome in more.items():
        if number not in known or _badness(outcome) < _badness(known[number]):
            known[number] = outcome


def _badness(outcome: Outcome) -> int:
    return (outcome.failure is not None) + outcome.passing


def join(cell: Run, pieces: Iterable[CellResult]) -> CellResult:
    """What is known of a cell from its pieces: all of them together give what the whole cell gives."""
    known: dict[int, Outcome] = {}
    for piece in pieces:
        if same_but_runs(piece.cell) != same_but_runs(cell):
            raise ValueError("pieces of different cells cannot be joined")
        take_in(known, piece.outcomes)
    return CellResult(cell=cell, outcomes={number: known[number] for number in sorted(known) if number in cell.numbers})
