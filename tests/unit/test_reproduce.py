"""The paper's tables beside ours."""

from __future__ import annotations

import math

import pytest

from dpgrams_core.__main__ import main
from dpgrams_core.experiments import CLUSTERING, EXPERIMENTS, KERNELS, MODES, REGRESSION
from dpgrams_core.paper import ONE_RUN, paper_table, printed_numbers
from dpgrams_core.reproduce import comparison, summary, wide
from dpgrams_core.sweeps import run_cell


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


@pytest.mark.parametrize(
    ("table", "dataset", "n", "epsilon", "method", "measure", "mean"),
    [
        ("modes_t_mixture", "t_mixture", 700, 0.1, "dp_grams", "mse", 2.8695),
        ("clustering_blobs", "blobs", 700, 0.5, "dp_grams_c", "ari", 0.744),
        ("clustering_mnist", "mnist", 69_000, 1.0, "dp_kmeans", "centroid_mse", 148.61),
        (ONE_RUN, "rnaseq", 801, 1.0, "mean_shift", "ari", 0.816),
    ],
)
def test_every_kind_of_table_becomes_rows_of_numbers(table, dataset, n, epsilon, method, measure, mean):
    numbers = printed_numbers()
    here = numbers[(numbers["table"] == table) & (numbers["dataset"] == dataset) & (numbers["epsilon"] == epsilon)]
    found = here[(here["n"] == n) & (here["method"] == method) & (here["measure"] == measure)]
    assert found["mean"].tolist() == [mean]


def test_every_printed_cell_is_planned_once_a_column():
    cells = [cell for _, cell in MODES.cells(3, ["functional", "experiments"])]
    assert len(cells) == len(set(cells)) == 80
    for cell in cells:
        options = dict(cell.options)
        assert options["delta"] == 1e-6
        assert options["n_modes"] == (4 if cell.dataset == "four_corners" else 5)


def test_every_printed_number_of_a_method_has_a_cell_of_ours():
    numbers = printed_numbers()
    for experiment in (MODES, REGRESSION, CLUSTERING):
        planned = {
            (experiment.column(name).printed, cell.dataset, cell.n, cell.epsilon)
            for name, cell in experiment.cells(1, experiment.names)
        }
        here = numbers[numbers["table"].str.startswith(experiment.name)]
        for row in here.itertuples():
            wanted = {(row.method, row.dataset, row.n, epsilon) for epsilon in (row.epsilon, math.inf)}
            assert wanted & planned, row


def test_clusters_stay_with_the_papers_draw_and_know_their_number():
    cells = dict(CLUSTERING.cells(20, ["functional", "kmeans"]))
    assert all(cell.draw == 0 for cell in cells.values())
    options = [dict(cell.options) for _, cell in CLUSTERING.cells(20, CLUSTERING.names)]
    assert {item["n_clusters"] for item in options} == {4, 5, 10}
    assert cells["kmeans"].runs == 1


def test_a_fixed_draw_gives_every_run_the_same_records():
    cell = next(cell for name, cell in CLUSTERING.cells(3, ["kmeans"]) if cell.n == 700)
    from dataclasses import replace

    three = run_cell(replace(cell, runs=3, options=(("n_clusters", 1), ("n_init", 1))))
    assert len(set(three.scores["centroid_mse"])) == 1  # the mean of the records
    anew = run_cell(replace(cell, runs=3, options=(("n_clusters", 1), ("n_init", 1)), draw=None))
    assert len(set(anew.scores["centroid_mse"])) == 3


def test_a_baseline_has_one_cell_for_all_epsilons():
    cells = [cell for _, cell in REGRESSION.cells(3, ["pms"])]
    assert [cell.n for cell in cells if cell.dataset == "sinusoid"] == [200, 600, 1200, 2400]


def test_a_finished_cell_lands_in_its_row_and_is_compared():
    wanted = [pair for pair in MODES.cells(2, ["functional"]) if (pair[1].n, pair[1].epsilon) == (5000, 5)]
    table = comparison(MODES, [(column, run_cell(cell)) for column, cell in wanted])
    errors = table[table["measure"] == "mse"]
    assert list(errors["n"]) == [5000, 5000]
    assert list(errors["runs"]) == [2, 2]
    assert list(errors["status"]) == ["proven", "proven"]
    assert list(errors["ahead"]) == list(errors["ours"] <= errors["printed"])
    assert "in 2 of 2 cells (four_corners 1 of 1, t_mixture 1 of 1), 2 of 2" in summary(MODES, table)
    assert "printed dp_grams" in wide(MODES, table, "mse")


def test_regression_stands_beside_both_printed_columns():
    chosen = [
        pair
        for pair in REGRESSION.cells(2, ["functional", "pms"])
        if (pair[1].dataset, pair[1].n) == ("sinusoid", 600) and pair[1].epsilon in (1.0, math.inf)
    ]
    table = comparison(REGRESSION, [(column, run_cell(cell)) for column, cell in chosen])
    errors = table[table["measure"] == "mse"]
    pms = errors[errors["column"] == "pms"]
    assert pms["ours"].nunique() == 1  # one run for the four epsilons
    assert pms["printed"].tolist() == [0.0203, 0.0213, 0.0218, 0.0209]
    assert (errors["column"] == "functional").sum() == 1
    assert "pms" not in summary(REGRESSION, table).split(":")[0]


def test_a_score_where_more_is_better_is_compared_the_other_way():
    wanted = [pair for pair in CLUSTERING.cells(1, ["functional", "dp_kmeans"]) if pair[1].n == 5000]
    wanted = [pair for pair in wanted if pair[1].epsilon == 5.0]
    table = comparison(CLUSTERING, [(column, run_cell(cell)) for column, cell in wanted])
    first = table[(table["measure"] == "ari") & (table["column"] == "functional")].iloc[0]
    assert first["ahead"] == (first["ours"] >= first["printed"] - 0.01)
    assert "at or above the printed DP-GRAMS-C value minus 0.01" in summary(CLUSTERING, table)
    assert "dp_kmeans:" not in summary(CLUSTERING, table)


def test_a_figure_has_our_cells_and_no_printed_number():
    wanted = [pair for pair in KERNELS.cells(1, ["kernel"]) if (pair[1].n, pair[1].epsilon) == (700, 1.0)]
    table = comparison(KERNELS, [(column, run_cell(cell)) for column, cell in wanted])
    assert table["printed"].isna().all()
    assert set(table["value"]) == {"gaussian", "gaussian4"}
    shown = wide(KERNELS, table, "mse")
    assert set(shown["value"]) == {"gaussian", "gaussian4"}  # a column called like the control must not hide it
    assert shown["mse"].str.contains("[0-9]").all()


def test_baselines_are_never_counted_as_rivals_of_the_private_method():
    names = {experiment.name: [column.name for column in experiment.rivals] for experiment in EXPERIMENTS.values()}
    for name in ("modes", "regression", "clustering"):
        assert names[name] == ["functional", "tight", "experiments", "theorem"]


def test_all_experiments_can_be_planned():
    for experiment in EXPERIMENTS.values():
        assert experiment.cells(1, experiment.names)


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
