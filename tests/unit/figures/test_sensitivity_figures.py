"""Scores against a varied control, and kernels in panels: what is drawn, said and tabled, from made-up results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core.figures.sensitivity import kernel_chart, sensitivity_chart
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE
from dpgrams_core.sweeps.cell import failed_result
from dpgrams_core.sweeps.run import plan_cells, sweep
from tests.made import made_result


def made(cells, law, runs=4, spread=0.01):
    """Results whose scores are a given function of the cell, plus a small spread over the runs."""
    results = []
    for cell in cells:
        centre = law(cell)
        values = tuple(centre * (1 + spread * (number - (runs - 1) / 2)) for number in range(runs))
        results.append(
            made_result(
                cell=cell,
                scores={"mse": values, "found": values},
                seconds=(0.1,) * runs,
                status="nominal",
                failures=(),
                numbers=tuple(range(runs)),
            )
        )
    return results


def planned(methods="dp_grams", vary=("clip_multiplier", [0.1, 1.0, 10.0]), **grid):
    return plan_cells(methods, "four_corners", runs=4, vary=vary, **{"n": [500], "epsilon": [1.0], **grid})


def valley(cell):
    return 0.02 if not cell.varied else 0.1 * (1 + math.log10(cell.value) ** 2) * 1000 / cell.n


def named(chart, name):
    (found,) = [trace for trace in chart.figure.data if trace.name == name]
    return found


def test_a_line_for_each_n_and_a_level_for_what_has_no_such_control():
    cells = planned(["dp_grams", "mean_shift"], n=[500, 1000])
    results = made(cells, valley)
    chart = sensitivity_chart(results, cells)
    line = named(chart, "DP-GRAMS, n = 1,000")
    assert list(line.x) == [0.1, 1.0, 10.0]
    assert list(line.y) == pytest.approx([0.2, 0.1, 0.2])
    assert line.line.color == PRIVATE
    level = named(chart, "Mean shift, n = 500 (not private)")
    assert level.line.color == NON_PRIVATE
    assert list(level.y) == pytest.approx([0.02, 0.02])
    assert "at 1, " in chart.sentence
    assert len(chart.table) == len(cells)


def test_the_band_holds_the_middle_of_the_runs_and_is_left_out_among_many_lines():
    cells = planned()
    results = made(cells, valley, spread=0.2)
    band = named(sensitivity_chart(results, cells), "middle 80% of runs")
    expected = [np.quantile(result.scores["mse"], share) for share in (0.9, 0.1) for result in results]
    assert list(band.y) == pytest.approx([*expected[:3], *expected[:2:-1]])
    many = planned(n=[500, 600, 700, 800])
    names = [trace.name for trace in sensitivity_chart(made(many, valley), many).figure.data]
    assert len(names) == 4
    assert "middle 80% of runs" not in names


@pytest.mark.parametrize(
    ("vary", "kind"),
    [
        (("clip_multiplier", [0.1, 1.0, 10.0]), "log"),
        (("step_size", [0.5, 1.0, 1.5]), "linear"),
        (("bandwidth", ["rate", "box_rate"]), "category"),
        (("bandwidth", ["rate", 1.0]), "category"),
    ],
)
def test_the_axis_fits_the_values(vary, kind):
    cells = planned(vary=vary)
    chart = sensitivity_chart(made(cells, lambda cell: 0.1), cells)
    assert chart.figure.layout.xaxis.type == kind
    assert chart.figure.layout.yaxis.type == "log"


def test_the_sentence_names_the_best_and_what_is_not_told_apart_from_it():
    cells = planned(vary=("clip_multiplier", [0.5, 1.0, 2.0]))
    means = {0.5: 0.100, 1.0: 0.101, 2.0: 0.4}
    text = sensitivity_chart(made(cells, lambda cell: means[cell.value]), cells).sentence
    assert "best, 0.1, at 0.5" in text
    assert "worst, 0.4, at 2 (" in text
    assert "not told apart from the best: 1)" in text
    more = sensitivity_chart(made(cells, lambda cell: means[cell.value]), cells, measure="found")
    assert "best, 0.4, at 2," in more.sentence
    assert "not told apart from the best" not in more.sentence
    assert "more is better" in more.figure.layout.yaxis.title.text
    assert more.figure.layout.yaxis.type != "log"


@pytest.mark.parametrize(
    ("method", "dataset", "vary", "n", "default"),
    [
        ("dp_grams", "four_corners", ("clip_multiplier", [0.1, 10.0]), [500, 1000], 1.0),
        ("dp_grams", "four_corners", ("clip_multiplier", [2.0, 10.0]), [500], None),  # beyond the axis
        ("dp_grams", "four_corners", ("bandwidth_scale", [0.5, 2.0]), [500], 1.0),
        ("dp_grams", "four_corners", ("batch_size", [10, 200]), [500], 81.0),  # ceil(n / log n)
        ("dp_grams", "four_corners", ("batch_size", [10, 200]), [500, 1000], None),  # another for each n
        ("dp_grams", "four_corners", ("step_size", [0.1, 1.0]), [500], None),  # h squared, which a run works out
        ("dp_pms", "sinusoid", ("clip_multiplier", [0.0005, 0.05]), [500], 0.001),
        ("dp_pms", "sinusoid", ("step_size", [0.5, 1.5]), [500], 1.0),
    ],
)
def test_the_default_is_marked_where_it_is_one_number(method, dataset, vary, n, default):
    cells = plan_cells(method, dataset, runs=4, vary=vary, n=n, epsilon=[1.0])
    figure = sensitivity_chart(made(cells, lambda cell: 0.1), cells).figure
    assert [line.x0 for line in figure.layout.shapes] == ([] if default is None else [default])
    assert [note.text for note in figure.layout.annotations] == ["default"] * (default is not None)
    if default is not None and figure.layout.xaxis.type == "log":
        assert figure.layout.annotations[0].x == pytest.approx(math.log10(default))


@pytest.mark.parametrize("chart", [sensitivity_chart, kernel_chart])
def test_runs_that_could_not_be_made_are_counted_with_the_first_sentence(chart):
    vary = (
        ("kernel", ["gaussian", "gaussian4", "legendre4"]) if chart is kernel_chart else ("batch_size", [50, 60, 120])
    )
    cells = planned(vary=vary, n=[100])
    reason = "batch_size = 120 is not allowed: it must be between 1 and n = 100."
    some = [*made(cells[:2], lambda cell: 0.1), failed_result(cells[2], reason)]
    said = chart(some, cells).sentence
    assert f" 4 runs could not be made; the first: {reason}" in said
    assert "so far" not in said
    all_failed = chart([failed_result(cell, reason) for cell in cells], cells)
    assert all_failed.sentence == f"All runs so far could not be made; the first: {reason}"
    assert list(all_failed.table["error"]) == [reason] * 3
    assert "could not be made" not in chart(made(cells, lambda cell: 0.1), cells).sentence


def test_the_picture_fills_in_and_an_infinite_mean_is_a_gap():
    cells = planned()
    assert sensitivity_chart([], cells).sentence == "0 of 3 points so far."
    results = made(cells, lambda cell: math.inf if cell.value == 0.1 else valley(cell), spread=0.0)
    chart = sensitivity_chart(results, cells)
    assert np.isnan(named(chart, "DP-GRAMS").y[0])
    assert "∞ at some values" in chart.sentence
    assert sensitivity_chart(results[:2], cells).sentence.endswith("2 of 3 points so far.")


def test_a_real_sweep_has_the_same_table():
    from dpgrams_core.sweeps.run import run_cell

    cells = planned(n=[120])
    table = sweep(
        "dp_grams", "four_corners", n=[120], epsilon=[1.0], runs=4, vary=("clip_multiplier", [0.1, 1.0, 10.0])
    )
    chart = sensitivity_chart([run_cell(cell) for cell in cells], cells)
    assert list(chart.table["mse"]) == list(table["mse"])
    assert list(named(chart, "DP-GRAMS").y) == pytest.approx(list(table["mse"]))


def test_pictures_of_the_wrong_sweep_are_refused(refused):
    plain = plan_cells("dp_grams", "four_corners", n=[500], epsilon=[1.0])
    refused(lambda: sensitivity_chart([], plain), "vary", [])
    refused(lambda: sensitivity_chart([], planned(), measure="speed"), "measure", "speed")
    refused(lambda: kernel_chart([], planned()), "vary", "clip_multiplier", "kernel")


KERNELS = ("kernel", ["gaussian", "gaussian4"])


def kernel_law(cell):
    # Gaussian is better at epsilon 0.2, order 4 at 2, and between them they tie.
    better = {0.2: "gaussian", 2.0: "gaussian4"}.get(cell.epsilon)
    return 0.01 if not cell.varied else (0.1 if cell.value == better else 0.1 if better is None else 0.3)


def test_kernels_share_a_panel_for_each_epsilon():
    cells = planned(["dp_grams", "mean_shift"], vary=KERNELS, n=[500, 1000], epsilon=[0.2, 1.0, 2.0], bandwidth="h_opt")
    chart = kernel_chart(made(cells, kernel_law), cells)
    assert [note.text for note in chart.figure.layout.annotations] == ["ε = 0.2", "ε = 1", "ε = 2"]
    lines = [trace for trace in chart.figure.data if trace.legendgroup == "gaussian4"]
    assert [list(trace.y) for trace in lines] == [
        pytest.approx([0.3, 0.3]),
        pytest.approx([0.1] * 2),
        pytest.approx([0.1] * 2),
    ]
    assert [trace.showlegend for trace in lines] == [True, False, False]
    assert {trace.line.color for trace in lines} == {PRIVATE}
    assert len({trace.xaxis for trace in lines}) == 3
    plain = [trace for trace in chart.figure.data if trace.name == "not private"]
    assert [trace.line.color for trace in plain] == [NON_PRIVATE] * 3
    assert len(chart.table) == len(cells)


def test_the_sentence_counts_who_is_better_and_who_is_not_told_apart():
    cells = planned(vary=KERNELS, n=[500, 1000], epsilon=[0.2, 1.0, 2.0])
    text = kernel_chart(made(cells, kernel_law), cells).sentence
    assert text.startswith("The better MSE in 6 settings of n and ε: Gaussian 2, order-4 Gaussian 2, too close to ")
    assert kernel_chart([], cells).sentence == "0 of 12 points so far."
    one = planned(vary=("kernel", ["gaussian"]))
    assert "one kernel only" in kernel_chart(made(one, lambda cell: 0.1), one).sentence
