"""The runs that the Tradeoff page keeps for all visitors of a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpgrams_core.model.errors import DataError
from dpgrams_core.sweeps.cell import split
from dpgrams_core.sweeps.run import plan_cells, run_cell
from pages._ui.jobs import RunMemory


def test_memory_joins_pieces_and_answers_for_any_number_of_runs():
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=6)
    whole, kept = run_cell(cell), RunMemory()
    for piece in reversed(list(split(cell, 2))):
        kept.add(run_cell(piece))
    assert kept.finished(cell).scores == whole.scores
    assert kept.finished(replace(cell, runs=4)).scores["mse"] == whole.scores["mse"][:4]
    more = kept.finished(replace(cell, runs=9))
    assert (more.ended, more.complete) == (6, False)
    assert kept.finished(replace(cell, seed=1)).ended == 0


def test_memory_forgets_what_was_not_used_for_longest():
    cells = plan_cells("mean_shift", "four_corners", n=[60, 70, 80], epsilon=[1.0], runs=2)
    kept = RunMemory(most_runs=4)
    for cell in cells[:2]:
        kept.add(run_cell(cell))
    kept.finished(cells[0])  # somebody looks at the first one
    kept.add(run_cell(cells[2]))
    assert [kept.finished(cell).ended for cell in cells] == [2, 0, 2]


def test_a_running_jobs_cells_are_never_forgotten_and_too_many_at_once_are_refused():
    cells = plan_cells("mean_shift", "four_corners", n=[60, 70, 80, 90], epsilon=[1.0], runs=2)
    kept = RunMemory(most_runs=4)
    with kept.held(cells[:1]):
        for cell in cells[:3]:
            kept.add(run_cell(cell))
        assert [kept.finished(cell).ended for cell in cells[:3]] == [2, 0, 2]  # the oldest is being made
        with pytest.raises(DataError, match="busy with other large sweeps"), kept.held(cells[1:3]):
            pass
    kept.add(run_cell(cells[1]))
    kept.add(run_cell(cells[3]))
    assert [kept.finished(cell).ended for cell in cells] == [0, 2, 0, 2]
    with kept.held(cells[1:3]):
        pass  # there is room again
