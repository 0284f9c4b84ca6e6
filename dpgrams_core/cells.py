"""One point of a sweep: its seeds, its runs, and what came of them.

Seeds are derived from the values of a cell, so every method, budget and varied control sees the same draws.
A run is known by its number, so a cell can be split into pieces, extended later and put together again.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.datasets import DATASETS, load_dataset
from dpgrams_core.errors import SpecError
from dpgrams_core.guarantees import full_status
from dpgrams_core.methods import run
from dpgrams_core.metrics import score
from dpgrams_core.progress import checkpoint

QUANTILES = (0.10, 0.25, 0.50, 0.75, 0.90)
# What comes again with the same settings and seeds. All else, such as memory or a file that is not there, may pass.
LASTING = (SpecError, ArithmeticError)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of a sweep: a method on one data set, n and epsilon, for ``runs`` runs from ``first_run`` on."""

    method: str
    dataset: str
    n: int
    epsilon: float  # inf for a method without privacy
    runs: int
    seed: int
    options: tuple[tuple[str, Any], ...]
    first_run: int = 0
    varied: str = ""  # the option that the sweep varies, where the method has it
    draw: int | None = None  # the seed of one draw of the data for all runs; None draws anew for each

    @property
    def numbers(self) -> range:
        """The numbers of the runs."""
        return range(self.first_run, self.first_run + self.runs)

    @property
    def value(self) -> Any:
        """The value of the varied option; NaN where the method does not have it."""
        return dict(self.options).get(self.varied, math.nan)


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The scores of every run of a cell, in order of the runs; a run that failed is left out.

    ``numbers`` are the run numbers of the scores and ``failed`` those of the failures; both together are fewer
    than the runs of the cell while it is not complete.  ``passing`` are those of ``failed`` that are worth another
    try: they say something about the machine and nothing about the cell.
    """

    cell: Cell
    scores: dict[str, tuple[float, ...]]
    seconds: tuple[float, ...]
    status: str
    failures: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()

    @property
    def ended(self) -> int:
        """The number of runs that came to an end, good or bad."""
        return len(self.seconds) + len(self.failures)

    @property
    def words(self) -> str:
        """The status with what it rests on, as it is shown: a fact of the data set, so old files have it too."""
        known = self.cell.dataset in DATASETS
        return full_status(self.status, DATASETS[self.cell.dataset].condition if known else None)

    @property
    def complete(self) -> bool:
        """Whether every run of the cell came to an end."""
        return self.ended >= self.cell.runs

    def row(self) -> dict[str, Any]:
        """One row of the tidy table: mean, standard error and quantiles of every score.

        A run that released no mode has an infinite error; then so has the mean, and there is no spread to give.
        """
        cell = self.cell
        row: dict[str, Any] = {
            "method": cell.method,
            "dataset": cell.dataset,
            "n": cell.n,
            "epsilon": cell.epsilon,
            "runs": len(self.seconds),
            "failures": len(self.failures),
            "status": self.words,
        }
        for name, values in self.scores.items():
            finite = bool(np.isfinite(values).all())
            row[name] = float(np.mean(values)) if values else math.nan
            spread = len(values) > 1 and finite
            row[f"{name}_se"] = float(np.std(values, ddof=1) / math.sqrt(len(values))) if spread else math.nan
            row |= {f"{name}_q{100 * share:.0f}": value for share, value in _quantiles(values, finite)}
        row["seconds"] = float(np.mean(self.seconds)) if self.seconds else math.nan
        row["error"] = self.failures[0] if self.failures else ""
        return row


def _quantiles(values: Sequence[float], finite: bool) -> Iterator[tuple[float, float]]:
    """Interpolated where all values are finite; else values that occurred, since infinities have no middle."""
    if not values or np.isnan(values).any():
        return zip(QUANTILES, [math.nan] * len(QUANTILES), strict=True)
    found = np.quantile(values, QUANTILES, method="linear" if finite else "inverted_cdf")
    return zip(QUANTILES, found.tolist(), strict=True)


def derived_seed(seed: int, *parts: object) -> int:
    """A seed from values, the same on every machine and in every process."""
    text = "/".join(repr(part) for part in parts)
    return int(np.random.SeedSequence([seed, zlib.crc32(text.encode())]).generate_state(1)[0])


def data_seed(cell: Cell, run_number: int) -> int:
    """Seed of the data of a run: it knows no method and no epsilon, so all of them share the draw."""
    if cell.draw is not None:
        return cell.draw
    return derived_seed(cell.seed, "data", cell.dataset, cell.n, run_number)


def noise_seed(cell: Cell, run_number: int) -> int:
    """Seed of the noise of a run: it knows no option, so that a varied control is compared on the same noise."""
    return derived_seed(cell.seed, "noise", cell.method, cell.dataset, cell.n, cell.epsilon, run_number)


def run_cell(cell: Cell) -> CellResult:
    """All runs of a cell. A run that fails is recorded with its sentence and does not stop the rest."""
    scores: dict[str, list[float]] = {}
    seconds: list[float] = []
    numbers: list[int] = []
    failures: list[str] = []
    passing: list[int] = []
    status = "none"
    options = dict(cell.options)
    if math.isfinite(cell.epsilon):
        options["epsilon"] = cell.epsilon
    for number in cell.numbers:
        checkpoint()
        try:
            data = load_dataset(cell.dataset, n=cell.n, seed=data_seed(cell, number))
            started = time.perf_counter()
            release = run(cell.method, data, seed=noise_seed(cell, number), **options)
            taken = time.perf_counter() - started
            found = score(release, data)
        except Exception as error:
            failures.append(failure_text(error))
            passing += [] if isinstance(error, LASTING) else [number]
            continue
        seconds.append(taken)
        numbers.append(number)
        status = release.guarantee.status
        for name, value in found.items():
            scores.setdefault(name, []).append(value)
    return CellResult(
        cell=cell,
        scores={name: tuple(values) for name, values in scores.items()},
        seconds=tuple(seconds),
        status=status,
        failures=tuple(failures),
        numbers=tuple(numbers),
        failed=tuple(sorted(set(cell.numbers) - set(numbers))),
        passing=tuple(passing),
    )


def claimed_status(cell: Cell, status: str) -> str:
    """The status of a run that an earlier version wrote down: a setting that was picked on the records is nominal.

    >>> from dpgrams_core.sweeps import plan_cells
    >>> tight = {"n": [100], "epsilon": [1.0], "calibration": "tight"}
    >>> usual, picked = plan_cells("dp_grams_c", "digits", **tight, vary=("clip_multiplier", [1, 0.1]))
    >>> claimed_status(usual, "proven"), claimed_status(picked, "proven")
    ('proven', 'nominal')
    """
    if status == "none" or cell.dataset not in DATASETS:
        return status
    options = dict(cell.options)
    picked = any(options.get(name) == value for name, value in DATASETS[cell.dataset].picked)
    return "nominal" if picked else status


def failure_text(error: BaseException) -> str:
    """The sentence of an error; one that was not written for people comes with its kind."""
    expected = isinstance(error, (ValueError, ArithmeticError, MemoryError))
    return str(error) if expected and str(error) else f"{type(error).__name__}: {error}".rstrip(": ")


def failed_result(cell: Cell, sentence: str) -> CellResult:
    """A cell of which no run came back, which may be different next time."""
    return CellResult(
        cell=cell,
        scores={},
        seconds=(),
        status="none",
        failures=(sentence,) * cell.runs,
        failed=tuple(cell.numbers),
        passing=tuple(cell.numbers),
    )


def settled(result: CellResult) -> CellResult:
    """What is known of a cell for good: without the failures that are worth another try."""
    if not result.passing:
        return result
    passing = set(result.passing)
    kept = [place for place, number in enumerate(result.failed) if number not in passing]
    return replace(
        result,
        failures=tuple(result.failures[place] for place in kept),
        failed=tuple(result.failed[place] for place in kept),
        passing=(),
    )


def same_but_runs(cell: Cell) -> Cell:
    """The cell without its choice of runs and without how it is shown: equal for all pieces of one cell."""
    return replace(cell, first_run=0, runs=1, varied="")


def split(cell: Cell, size: int, skip: Iterable[int] = ()) -> Iterator[Cell]:
    """Pieces of at most ``size`` runs that make up the cell, without the runs to skip.

    >>> from dpgrams_core.sweeps import plan_cells
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


def join(cell: Cell, pieces: Iterable[CellResult]) -> CellResult:
    """What is known of a cell from its pieces, in order of the runs; a run that came twice counts once.

    All pieces together give what the whole cell gives.  Of two failures of a run the one that lasts is kept.
    """
    good: dict[int, tuple[CellResult, int]] = {}
    bad: dict[int, tuple[bool, str]] = {}
    for piece in pieces:
        if same_but_runs(piece.cell) != same_but_runs(cell):
            raise ValueError("pieces of different cells cannot be joined")
        for place, number in enumerate(piece.numbers):
            good.setdefault(number, (piece, place))
        passing = set(piece.passing)
        for number, text in zip(piece.failed, piece.failures, strict=True):
            if number not in bad or (bad[number][0] and number not in passing):
                bad[number] = (number in passing, text)
    numbers = sorted(number for number in good if number in cell.numbers)
    failed = sorted(number for number in bad if number in cell.numbers and number not in good)
    found = [good[number] for number in numbers]
    names = dict.fromkeys(name for piece, _ in found for name in piece.scores)
    return CellResult(
        cell=cell,
        scores={name: tuple(piece.scores[name][place] for piece, place in found) for name in names},
        seconds=tuple(piece.seconds[place] for piece, place in found),
        status=found[-1][0].status if found else "none",
        failures=tuple(bad[number][1] for number in failed),
        numbers=tuple(numbers),
        failed=tuple(failed),
        passing=tuple(number for number in failed if bad[number][0]),
    )
