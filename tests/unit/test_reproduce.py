"""The paper's tables beside ours."""

from __future__ import annotations

import pytest

from dpgrams_core.__main__ import main
from dpgrams_core.reproduce import MODE_COLUMNS, column_of, mode_cells, mode_table, paper_table, summary
from dpgrams_core.sweeps import run_cell


def test_the_printed_tables_are_those_of_the_paper():
    table = paper_table("modes_four_corners")
    assert table["delta"] == 1e-6
    assert len(table["rows"]) == 20
    first = table["rows"][0]
    assert (first["n"], first["epsilon"], first["dp_grams_mse"]["mean"]) == (700, 0.1, 0.7375)


def test_every_printed_cell_is_planned_once_a_column():
    cells = mode_cells(3, ("functional", "experiments"))
    assert len(cells) == 80
    assert len(set(cells)) == 80
    for cell in cells:
        options = dict(cell.options)
        assert options["delta"] == 1e-6
        assert options["n_modes"] == (4 if cell.dataset == "four_corners" else 5)


@pytest.mark.parametrize("column", [name for name, _, _ in MODE_COLUMNS])
def test_cells_know_their_column(column):
    assert {column_of(cell) for cell in mode_cells(1, (column,))} == {column}


def test_a_finished_cell_lands_in_its_row_and_is_compared():
    wanted = [cell for cell in mode_cells(2, ("functional",)) if (cell.n, cell.epsilon) == (5000, 5.0)]
    table = mode_table([run_cell(cell) for cell in wanted])
    assert len(table) == 40
    done = table[table["functional mse"].notna()]
    assert list(done["n"]) == [5000, 5000]
    assert list(done["functional runs"]) == [2, 2]
    assert list(done["functional ahead"]) == list(done["functional mse"] <= done["printed"])
    assert "in 2 of 40 cells, 2 of 24" in summary(table)


def test_bad_runs_are_refused_on_the_command_line(capsys):
    assert main(["reproduce", "modes", "--runs", "0", "--columns", "functional"]) == 2
    assert "runs = 0" in capsys.readouterr().err
