"""The paper's tables beside ours."""

from __future__ import annotations

import pytest

from dpgrams_core.__main__ import main
from dpgrams_core.reproduce import EXPERIMENTS, experiment_cells, experiment_table, paper_table, summary
from dpgrams_core.sweeps import run_cell

MODES, REGRESSION = EXPERIMENTS["modes"], EXPERIMENTS["regression"]


@pytest.mark.parametrize(
    ("name", "delta", "rows", "first"),
    [
        ("modes_four_corners", 1e-6, 20, (700, 0.1, "dp_grams_mse", 0.7375)),
        ("regression_sinusoid", 1e-5, 16, (200, 0.1, "dp_pms_mse", 3.5963)),
    ],
)
def test_the_printed_tables_are_those_of_the_paper(name, delta, rows, first):
    table = paper_table(name)
    assert table["delta"] == delta
    assert len(table["rows"]) == rows
    row = table["rows"][0]
    assert (row["n"], row["epsilon"], first[2], row[first[2]]["mean"]) == first


def test_every_printed_cell_is_planned_once_a_column():
    cells = [cell for _, cell in experiment_cells(MODES, 3, ["functional", "experiments"])]
    assert len(cells) == len(set(cells)) == 80
    for cell in cells:
        options = dict(cell.options)
        assert options["delta"] == 1e-6
        assert options["n_modes"] == (4 if cell.dataset == "four_corners" else 5)


def test_a_baseline_has_one_cell_for_all_epsilons():
    cells = [cell for _, cell in experiment_cells(REGRESSION, 3, ["pms"])]
    assert [cell.n for cell in cells if cell.dataset == "sinusoid"] == [200, 600, 1200, 2400]


def test_a_finished_cell_lands_in_its_row_and_is_compared():
    wanted = [pair for pair in experiment_cells(MODES, 2, ["functional"]) if (pair[1].n, pair[1].epsilon) == (5000, 5)]
    table = experiment_table(MODES, [(column, run_cell(cell)) for column, cell in wanted])
    assert len(table) == 40
    done = table[table["functional mse"].notna()]
    assert list(done["n"]) == [5000, 5000]
    assert list(done["functional runs"]) == [2, 2]
    assert list(done["functional status"]) == ["proven", "proven"]
    assert list(done["functional ahead"]) == list(done["functional mse"] <= done["printed"])
    assert "in 2 of 40 cells (four_corners 1 of 20, t_mixture 1 of 20), 2 of 24" in summary(MODES, table)


def test_regression_stands_beside_both_printed_columns():
    chosen = [
        pair
        for pair in experiment_cells(REGRESSION, 2, ["functional", "pms"])
        if (pair[1].dataset, pair[1].n) == ("sinusoid", 600) and pair[1].epsilon in (1.0, float("inf"))
    ]
    table = experiment_table(REGRESSION, [(column, run_cell(cell)) for column, cell in chosen])
    here = table[(table["dataset"] == "sinusoid") & (table["n"] == 600)]
    assert here["pms mse"].nunique() == 1  # one run for the four epsilons
    assert here["pms printed"].tolist() == [0.0203, 0.0213, 0.0218, 0.0209]
    assert here["functional mse"].notna().sum() == 1
    assert "pms" not in summary(REGRESSION, table).split(":")[0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["modes", "--runs", "0", "--columns", "functional"], "runs = 0"),
        (["modes", "--columns", "pms"], "columns = 'pms' is not allowed"),
    ],
)
def test_bad_wishes_are_refused_on_the_command_line(words, sentence, capsys):
    assert main(["reproduce", *words]) == 2
    assert sentence in capsys.readouterr().err
