"""The runs of a cell while they come: every run is handled once, however many pieces there are.

``cells.join`` looks at all the runs that it is given, so a cell that was joined anew with each of its pieces would
take the time of the square of its runs.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from dpgrams_core.cells import Cell, CellResult, join


class Gathered:
    """What is known of a cell so far: ``result`` is what ``join`` gives for all the pieces.

    Examples
    --------
    >>> from dpgrams_core.cells import run_cell, split
    >>> from dpgrams_core.sweeps import plan_cells
    >>> (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=4)
    >>> first, second = map(run_cell, split(cell, 2))
    >>> so_far = Gathered(cell, [second])
    >>> so_far.add(first)
    >>> so_far.result == join(cell, [first, second])
    True
    """

    def __init__(self, cell: Cell, before: list[CellResult]) -> None:
        self.cell = cell
        self._take(join(cell, before))

    def _take(self, result: CellResult) -> None:
        self._numbers, self._seconds = list(result.numbers), list(result.seconds)
        self._scores = {name: list(values) for name, values in result.scores.items()}
        self._failed, self._failures = list(result.failed), list(result.failures)
        self._passing = list(result.passing)
        self._status = result.status

    def add(self, piece: CellResult) -> None:
        """Take in a piece: its runs are put in their place, and no other run is looked at."""
        if not self._is_new(piece):
            self._take(join(self.cell, [self.result, piece]))
            return
        first = piece.cell.first_run
        good, bad, passing = (bisect_left(known, first) for known in (self._numbers, self._failed, self._passing))
        if piece.numbers and good == len(self._numbers):
            self._status = piece.status  # that of the last run
        pairs: list[tuple[list[Any], tuple[Any, ...], int]] = [
            (self._numbers, piece.numbers, good),
            (self._seconds, piece.seconds, good),
            *((self._scores.setdefault(name, []), values, good) for name, values in piece.scores.items()),
            (self._failed, piece.failed, bad),
            (self._failures, piece.failures, bad),
            (self._passing, piece.passing, passing),
        ]
        for known, new, place in pairs:
            known[place:place] = new

    def _is_new(self, piece: CellResult) -> bool:
        """Whether nothing is known yet of any of its runs, so that they belong together in one gap."""
        runs, own = piece.cell.numbers, self.cell.numbers
        inside = own.start <= runs.start and runs.stop <= own.stop
        alike = not (self._scores and piece.scores) or self._scores.keys() == piece.scores.keys()
        free = all(
            bisect_left(known, runs.start) == bisect_left(known, runs.stop) for known in (self._numbers, self._failed)
        )
        return inside and alike and free

    @property
    def result(self) -> CellResult:
        """What is known so far."""
        return CellResult(
            cell=self.cell,
            scores={name: tuple(values) for name, values in self._scores.items()},
            seconds=tuple(self._seconds),
            status=self._status,
            failures=tuple(self._failures),
            numbers=tuple(self._numbers),
            failed=tuple(self._failed),
            passing=tuple(self._passing),
        )
