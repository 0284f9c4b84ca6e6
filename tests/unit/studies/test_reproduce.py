"""The paper's tables beside ours."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpgrams_core import SpecError, load_dataset
from dpgrams_core.cli import sweep as commands_sweep
from dpgrams_core.cli.main import main
from dpgrams_core.datasets.real import DATA_VARIABLE
from dpgrams_core.methods.registry import run
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES, BandwidthFacts
from dpgrams_core.studies.paper import shipped as finished
from dpgrams_core.studies.paper.experiments import (
    CLUSTERING,
    EXPERIMENTS,
    GROUPS,
    KERNELS,
    MODES,
    REGRESSION,
    SENSITIVITY,
)
from dpgrams_core.studies.paper.reproduce import comparison, summary, wide
from dpgrams_core.studies.paper.tables import ONE_RUN, paper_table, printed_numbers
from dpgrams_core.sweeps.run import run_cell
from tests.made import changed, made_result


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
    assert all(cell.data_seed == 0 for cell in cells.values())
    options = [dict(cell.options) for _, cell in CLUSTERING.cells(20, CLUSTERING.names)]
    assert {item["n_clusters"] for item in options} == {4, 5, 10}
    assert cells["kmeans"].runs == 1


def test_a_fixed_draw_gives_every_run_the_same_records():
    cell = next(cell for name, cell in CLUSTERING.cells(3, ["kmeans"]) if cell.n == 700)
    three = run_cell(replace(cell, runs=3, options=(("n_clusters", 1), ("n_init", 1))))
    assert len(set(three.scores["centroid_mse"])) == 1  # the mean of the records
    anew = run_cell(replace(cell, runs=3, options=(("n_clusters", 1), ("n_init", 1)), data_seed=None))
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
    assert set(table["value"]) == {"gaussian", "gaussian4", "legendre4"}
    shown = wide(KERNELS, table, "mse")
    assert set(shown["value"]) == set(table["value"])  # a column called like the control must not hide it
    assert shown["mse"].str.contains("[0-9]").all()


def test_baselines_are_never_counted_as_rivals_of_the_private_method():
    names = {experiment.name: [column.name for column in experiment.rivals] for experiment in EXPERIMENTS.values()}
    for name in ("modes", "regression", "clustering"):
        assert names[name] == ["experiments", "theorem", "tight", "functional"]


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


def test_the_kernels_share_the_bandwidth_of_the_papers_rule():
    cells = [cell for _, cell in KERNELS.cells(1, KERNELS.names)]
    assert len(cells) == 3 * 4 * 4
    assert {cell.value for cell in cells} == {"gaussian", "gaussian4", "legendre4"}
    data = load_dataset("four_corners", n=700, seed=0)
    here = [dict(cell.options) for cell in cells if (cell.n, cell.epsilon) == (700, 0.5)]
    releases = [run("dp_grams", data, epsilon=0.5, seed=0, **options) for options in here]
    spent = 0.5 * (1 - releases[0].spec.init_fraction)
    facts = BandwidthFacts(n=700, d=2, box=data.box, epsilon=spent, beta=3.0, points=data.points)
    assert [release.spec.bandwidth for release in releases] == [BANDWIDTH_RULES["h_opt"].rule(facts)] * 3


def test_the_default_minibatch_is_among_those_that_are_drawn():
    for name, cell in SENSITIVITY.cells(1, ["batch_size"]):
        assert name == cell.varied
        assert math.ceil(cell.n / math.log(cell.n)) in [
            other.value for _, other in SENSITIVITY.cells(1, ["batch_size"]) if other.n == cell.n
        ]


def made_up(cell, **change):
    """A finished cell without any work."""
    runs = tuple(cell.numbers)
    scores = dict.fromkeys(("mse", "found", "branch_recall", "ari"), (0.5,) * len(runs))
    whole = made_result(
        cell=cell, scores=scores, seconds=(0.1,) * len(runs), status="nominal", failures=(), numbers=runs
    )
    return changed(whole, **change)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for finished tables, with one of an earlier day."""
    monkeypatch.setattr(finished, "FOLDER", tmp_path / "results")
    finished.shipped.cache_clear()
    finished.ship("kernels", [made_up(cell) for _, cell in KERNELS.cells(2, ["kernel"])], command="a", seed=0, date="b")
    before = {path: path.read_bytes() for path in finished.FOLDER.iterdir()}
    yield lambda: before == {path: path.read_bytes() for path in finished.FOLDER.iterdir()}
    finished.shipped.cache_clear()


@pytest.fixture
def streamed(monkeypatch):
    """``streamed(results)``: what a sweep of some cells gives instead of running; returns the sweeps that began."""

    def use(results):
        begun = []

        def stream(cells, *_, **__):
            begun.append(cells)
            yield from results(cells)

        monkeypatch.setattr(commands_sweep, "stream_partial", stream)
        return begun

    return use


def stopped_after(count, error):
    def results(cells):
        yield from map(made_up, cells[:count])
        raise error

    return results


def test_a_whole_table_is_shipped(folder, streamed):
    streamed(lambda cells: map(made_up, reversed(cells)))
    assert main(["reproduce", "kernels", "--ship"]) == 0
    table = finished.shipped("kernels")
    assert table.facts["command"] == "python -m dpgrams_core reproduce kernels --runs 20"
    planned = [cell for _, cell in KERNELS.cells(20, ["kernel"])]
    assert [result.cell for _, result in table.results] == planned


@pytest.mark.slow
def test_a_column_by_itself_takes_the_place_of_its_own_and_leaves_the_others(folder, streamed, capsys):
    regression = EXPERIMENTS["regression"]
    before = [made_up(cell) for _, cell in regression.cells(20, regression.names)]
    finished.ship("regression", before, command="a", seed=0, date="b")
    streamed(lambda cells: (made_up(cell, seconds=(9.0,) * 20) for cell in cells))
    assert main(["reproduce", "regression", "--columns", "pms_as_run", "--ship"]) == 0
    finished.shipped.cache_clear()
    table = finished.shipped("regression")
    assert [result.cell for _, result in table.results] == [result.cell for result in before]
    assert {
        column: {result.seconds[0] for name, result in table.results if name == column} for column in regression.names
    } == {column: {9.0 if column == "pms_as_run" else 0.1} for column in regression.names}
    finished.ship("regression", before[1:], command="a", seed=0, date="b")
    finished.shipped.cache_clear()
    begun = streamed(lambda _: ())
    assert main(["reproduce", "regression", "--columns", "pms_as_run", "--ship"]) == 2
    assert "has 167 of 168 cells of the other columns, so all must be made; leave it out" in capsys.readouterr().err
    assert begun == []


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("what", ["kernels", "sensitivity"])
def test_ctrl_c_stops_at_once_and_shows_what_is_finished(what, count, folder, streamed, capsys, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    begun = streamed(stopped_after(count, KeyboardInterrupt()))
    assert main(["reproduce", what]) == 130
    out, err = capsys.readouterr()
    assert len(begun) == 1  # no other experiment after it
    assert ("0.5" in out) == (count > 0)
    assert ("No run is finished" in out) == (count == 0)
    assert err.endswith("stopped\n")
    if what == "kernels":
        assert main(["reproduce", what, "--ship"]) == 130
        assert folder()


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (lambda cells: map(made_up, cells[1:]), "1 of its 48 cells are not complete, or have failures"),
        (
            lambda cells: (
                made_up(cell, seconds=(0.1,) * 19, numbers=tuple(range(19)), failed=(19,), failures=("oops",))
                for cell in cells
            ),
            "48 of its 48 cells are not complete, or have failures",
        ),
        (stopped_after(3, SpecError("scheduler", "tcp://a", "it or its workers went away")), "workers went away"),
    ],
)
def test_a_part_of_a_table_is_shown_and_never_shipped(results, words, folder, streamed, capsys):
    streamed(results)
    assert main(["reproduce", "kernels", "--ship"]) == 2
    out, err = capsys.readouterr()
    assert "fig:kernel_order_validation, mse" in out
    assert words in err.splitlines()[-1]
    assert folder()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["modes", "--columns", "functional"], "No finished table of modes comes with this version"),
        (["kernels", "--runs", "19"], "runs = 19 is not allowed: the finished table of kernels has at least 20"),
        (["clustering"], "The RNA-Seq data do not come with this project"),
        (["all"], "The RNA-Seq data do not come with this project"),
    ],
)
def test_what_cannot_be_shipped_is_refused_before_any_run(words, sentence, folder, streamed, capsys, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    begun = streamed(lambda _: ())
    assert main(["reproduce", *words, "--ship"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")
    assert begun == []
    assert folder()


def test_tables_without_their_data_are_left_out_and_named(streamed, capsys, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    begun = streamed(lambda cells: map(made_up, cells))
    assert main(["reproduce", "clustering", "--columns", "functional"]) == 0
    out, err = capsys.readouterr()
    assert {cell.dataset for cell in begun[0]} == {"blobs", "digits", "mnist"}
    assert "The tables of rnaseq are left out. The RNA-Seq data do not come with this project" in err
    assert "clustering_blobs" in out


def test_a_column_that_only_some_experiments_have_is_refused_before_any_run(streamed, capsys):
    begun = streamed(lambda _: ())
    assert len(GROUPS["sensitivity"]) == 3
    assert main(["reproduce", "sensitivity", "--columns", "step_size"]) == 2
    assert begun == []
    assert "columns = 'step_size'" in capsys.readouterr().err
