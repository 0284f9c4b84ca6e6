"""Ours beside the printed values: who is ahead, how it is counted, and what the picture shows."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from dpgrams_core.figures.paper import column_title, judged, ratio_chart, standings, statuses_of
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.studies.paper.experiments import CLUSTERING, MODES, REGRESSION
from dpgrams_core.studies.paper.reproduce import comparison, summary
from dpgrams_core.studies.paper.tables import ONE_RUN
from dpgrams_core.sweeps.cell import CellResult, failed_result
from tests.made import made_result

STATUS = {"functional": "proven", "tight": "proven", "theorem": "as published", "experiments": "nominal"}


def result(column, cell, **scores) -> CellResult:
    """A finished cell with these scores, each a tuple with one value a run."""
    runs = max((len(values) for values in scores.values()), default=0)
    private = METHODS[cell.method].private
    return made_result(
        cell=cell,
        scores={name: values for name, values in scores.items() if name != "seconds"},
        seconds=scores.get("seconds", (0.01,) * runs),
        status=STATUS.get(column, "nominal") if private else "none",
        failures=(),
        numbers=tuple(range(runs)),
    )


def cells_of(experiment, columns, **wanted):
    return [
        (column, cell)
        for column, cell in experiment.cells(3, columns)
        if all(getattr(cell, name) == value for name, value in wanted.items())
    ]


def one(experiment, column, scores, **wanted) -> pd.Series:
    """The judged row of the first measure, for one cell."""
    (pair,) = cells_of(experiment, [column], **wanted)
    table = judged(experiment, [(column, result(*pair, **scores))])
    return table[(table["measure"] == experiment.measures[0]) & (table["table"] != ONE_RUN)].iloc[0]


PLACE = {"dataset": "four_corners", "n": 1_000, "epsilon": 1.0}
# Printed for two waves, n = 1200, epsilon = 1: 0.0438 with a standard error of 0.0018.
WAVES = {"dataset": "sinusoid", "n": 1_200, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("values", "ahead", "clear"),
    [
        ((0.001, 0.002, 0.003), True, True),
        ((0.03, 0.04, 0.05), True, False),
        ((0.04, 0.05, 0.06), False, False),
        ((0.4, 0.41, 0.42), False, True),
        ((0.1, math.inf, 0.1), False, True),  # a run that released nothing
        ((0.001,), True, False),  # one run has no standard error, so nobody can say "clearly"
    ],
)
def test_less_is_better_and_two_standard_errors_are_clear(values, ahead, clear):
    row = one(REGRESSION, "functional", {"mse": values}, **WAVES)
    assert row["printed"] == 0.0438
    assert (row["ahead"], row["clear"]) == (ahead, clear)
    assert row["ratio"] == pytest.approx(sum(values) / len(values) / 0.0438)


@pytest.mark.parametrize(
    ("experiment", "column", "place"),
    [
        (MODES, "functional", PLACE),
        (MODES, "mean_shift", {"dataset": "four_corners", "n": 1_000}),  # printed with a standard error of 0
        (CLUSTERING, "functional", {"dataset": "blobs", "n": 1_000, "epsilon": 1.0}),
    ],
)
def test_where_the_printed_error_leaves_out_the_draw_nobody_is_clearly_ahead(experiment, column, place):
    for value in (0.0001, 0.9):  # far from what is printed, on both sides
        row = one(experiment, column, {experiment.measures[0]: (value, 1.01 * value)}, **place)
        assert row["ahead"] == ((value < 0.01) != experiment.measure(experiment.measures[0]).more_is_better)
        assert row["clear"] is None
    table = judged(experiment, filled(experiment, ["functional"]))
    (item,) = standings(experiment, table)
    assert (item.judged, item.cells) == ((0, 40) if experiment is MODES else (15, 35))
    if experiment is MODES:
        chart = ratio_chart(MODES, table[table["table"] == "modes_four_corners"], "mse")
        assert "of them by more than two standard errors" not in chart.sentence
        seconds = table[table["measure"] == "seconds"]
        assert seconds["clear"].notna().any()  # time is not drawn


@pytest.mark.parametrize(
    ("ari", "ahead", "clear"),
    [(0.43, True, True), (0.37, True, False), (0.34, False, True)],
)
def test_within_the_margin_counts_as_ahead_but_never_clearly(ari, ahead, clear):
    values = (ari - 0.0001, ari, ari + 0.0001)
    row = one(CLUSTERING, "functional", {"ari": values}, dataset="digits", epsilon=1.0)
    assert (row["printed"], row["ahead"]) == (0.376, ahead)
    assert row["clear"] == (clear and abs(ari - 0.376) > 2 * row["printed_se"])


def test_a_cell_without_a_run_is_not_judged_and_has_no_say_in_the_status():
    pairs = cells_of(MODES, ["functional"], dataset="four_corners", n=1_000)
    results = [("functional", failed_result(pairs[0][1], "no data"))]
    results += [(column, result(column, cell, mse=(0.001, 0.002))) for column, cell in pairs[1:]]
    table = judged(MODES, results)
    assert table[table["runs"] == 0]["ahead"].isna().all()
    assert statuses_of(table, "functional") == ("proven",)
    (item,) = standings(MODES, table)
    assert (item.ahead, item.cells, item.missing) == (4, 4, 1)


def filled(experiment, columns):
    """Every cell of some columns, with scores that fall on both sides of the printed ones."""
    found = []
    for place, (column, cell) in enumerate(experiment.cells(3, columns)):
        level = 0.003 * 3 ** (place % 7)
        scores = dict.fromkeys(experiment.measures, (level, 1.1 * level, 0.9 * level))
        found.append((column, result(column, cell, **scores)))
    return found


@pytest.mark.parametrize("experiment", [MODES, REGRESSION, CLUSTERING], ids=lambda item: item.name)
def test_counts_are_those_of_the_command_line(experiment):
    results = [pair for pair in filled(experiment, experiment.names) if pair[1].cell.epsilon in (0.5, 1.0)]
    lines = summary(experiment, comparison(experiment, results)).splitlines()
    compared = [line for line in lines if "printed digits" not in line]  # what was run, again, is no rival
    counted = {line.split(":")[0]: re.search(r"in (\d+) of (\d+) cells", line).groups() for line in compared}
    found = standings(experiment, judged(experiment, results))
    assert {item.column.name: (str(item.ahead), str(item.cells)) for item in found} == counted
    assert any(0 < item.ahead < item.cells for item in found)
    assert all(item.clear <= item.ahead for item in found)


def test_quick_means_are_those_of_the_sweeps():
    results = [pair for pair in filled(MODES, ["functional", "mean_shift"]) if pair[1].cell.n == 700]
    ours = judged(MODES, results)
    columns = [name for name in ours if name not in ("ratio", "ahead", "clear")]
    pd.testing.assert_frame_equal(ours[columns], comparison(MODES, results)[columns])


def chart_of(experiment, table_name, measure, columns):
    table = judged(experiment, filled(experiment, columns))
    here = table[table["table"] == table_name]
    return ratio_chart(experiment, here, measure), here[here["measure"] == measure]


def test_marks_stand_at_their_ratios_and_tell_the_guarantee():
    chart, here = chart_of(MODES, "modes_four_corners", "mse", MODES.names)
    traces = {trace.name: trace for trace in chart.figure.data}
    assert list(traces)[-2:] == ["Functional release", "Mean shift (not private)"]  # drawn last, so they lie on top
    assert all(traces[name].marker.color == PRIVATE for name in traces if "not private" not in name)
    assert traces["Mean shift (not private)"].marker.color == NON_PRIVATE
    for name, full in (("Functional release", True), ("DP-GRAMS tight", True), ("DP-GRAMS experiments", False)):
        assert traces[name].marker.symbol.endswith("-open") != full
    low, high = (10**end for end in chart.figure.layout.xaxis.range)
    mine = here[here["column"] == "functional"]
    for x, ratio in zip(traces["Functional release"].x, mine["ratio"], strict=True):
        assert x == pytest.approx(ratio) or (not low * 1.2 < ratio < high / 1.2)
        assert low < x < high
    assert len(chart.table) == len(here) == 120
    assert chart.figure.layout.shapes[0].x0 == 1  # where both are equal


def test_the_sentence_says_who_is_ahead_and_with_which_guarantee():
    chart, here = chart_of(MODES, "modes_t_mixture", "mse", ["functional", "experiments"])
    for column, status in (("functional", "proven"), ("experiments", "nominal")):
        ahead = here[here["column"] == column]["ahead"].sum()
        title = column_title(MODES.column(column))
        assert f"{title} ({status}) in {ahead} of 20 cells" in chart.sentence
    assert "at or below the printed DP-GRAMS value:" in chart.sentence
    assert "means of 3 runs" in chart.sentence


@pytest.mark.parametrize("ours", [math.inf, 1e-9, 0.0, 1e6])
def test_what_is_off_the_axis_stands_at_its_edge_and_is_counted(ours):
    (pair,) = cells_of(MODES, ["functional"], **PLACE)
    table = judged(MODES, [("functional", result(*pair, mse=(ours, ours)))])
    chart = ratio_chart(MODES, table, "mse")
    low, high = (10**end for end in chart.figure.layout.xaxis.range)
    (x,) = chart.figure.data[0].x
    assert low < x < high
    assert (x > 1) == (ours > 1)
    assert chart.figure.data[0].error_x.array == (0.0,)
    assert "1 mark at an edge may lie beyond it" in chart.sentence


def test_a_measure_that_the_paper_does_not_print_is_drawn_as_it_is():
    chart, here = chart_of(MODES, "modes_four_corners", "found", ["functional"])
    assert list(chart.figure.data[0].x) == here["ours"].tolist()
    assert "The paper prints no modes found" in chart.sentence
    assert "more is better" in chart.sentence


def test_the_table_of_single_runs_has_a_row_for_each_data_set_and_no_clear_lead():
    chart, here = chart_of(CLUSTERING, ONE_RUN, "ari", ["functional", "kmeans"])
    assert set(chart.figure.data[-1].y) == {"Four blobs", "MNIST", "Cancer RNA-Seq"}
    assert not here["clear"].astype(bool).any()  # a single printed run has no standard error
    assert "printed DP-GRAMS-C value minus 0.01" in chart.sentence


def test_what_is_on_another_scale_is_shown_and_not_compared():
    chart, here = chart_of(CLUSTERING, "clustering_rnaseq", "centroid_mse", ["functional", "dp_kmeans"])
    assert here["printed"].notna().all()
    assert here[["ratio", "ahead", "clear"]].isna().all(axis=None)
    assert "not on one scale, so they are not compared" in chart.sentence
    assert list(chart.figure.data[0].x) == here[here["column"] == "functional"]["ours"].tolist()
    _, same = chart_of(CLUSTERING, "clustering_rnaseq", "ari", ["functional"])
    assert same["ahead"].notna().all()


def test_without_a_run_there_is_nothing_to_compare():
    pairs = cells_of(MODES, ["functional"], dataset="four_corners")
    table = judged(MODES, [(column, failed_result(cell, "no data")) for column, cell in pairs])
    chart = ratio_chart(MODES, table, "mse")
    assert chart.sentence == "No run of ours succeeded here, so there is nothing to compare."
    assert len(chart.table) == 20


def test_every_measure_has_words():
    for experiment in (MODES, REGRESSION, CLUSTERING):
        for measure in experiment.measures:
            assert experiment.measure(measure).title
