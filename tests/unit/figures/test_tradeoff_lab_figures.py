"""The panels of the Tradeoff page: what is drawn, in which colours, and what the sentences say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpgrams_core.figures.curve import cell_title, method_title
from dpgrams_core.figures.style import NON_PRIVATE_SHADES, PRIVATE_SHADES
from dpgrams_core.figures.tradeoff import (
    LabLayout,
    costs,
    lab_panel,
    lab_sentence,
    lab_table,
    mean_and_error,
    middle,
    panel_title,
    panels_of,
    plus_minus,
)
from dpgrams_core.model.run import Run
from dpgrams_core.sweeps.cell import CellResult
from dpgrams_core.sweeps.run import plan_cells
from tests.made import changed, made_result

BY_METHOD, BY_N, AGAINST_N = LabLayout("epsilon", "method"), LabLayout("epsilon", "n"), LabLayout("n", "epsilon")
METHODS = ["functional", "dp_grams", "mean_shift"]
CELLS = plan_cells(METHODS, "four_corners", n=[500, 1000], epsilon=[0.5, 1.0, 5.0], runs=4)


def made(cell: Run, *mse: float, status: str = "proven", **more: tuple[float, ...]) -> CellResult:
    """A result with these errors, without a run."""
    scores = {"mse": mse, "found": (3.0,) * len(mse)} if mse else {}
    return made_result(
        cell=cell,
        scores={**scores, **more},
        seconds=(0.1,) * max(map(len, (mse, *more.values()))),
        status=status if math.isfinite(cell.epsilon) else "none",
    )


def error_of(cell: Run) -> float:
    """An error that falls with n and epsilon; DP-GRAMS has ten times that of the functional release."""
    private = 0.0 if not math.isfinite(cell.epsilon) else 1 / cell.epsilon
    return (1 + private * (10 if cell.method == "dp_grams" else 1)) * 100 / cell.n


KNOWN = {cell: made(cell, *(error_of(cell) * factor for factor in (0.9, 1.0, 1.0, 1.1))) for cell in CELLS}


def named(figure):
    return {trace.name: trace for trace in figure.data if trace.showlegend}


def test_a_panel_a_method_has_a_shade_for_each_n_and_the_baseline_dashed_and_blue():
    assert panels_of(CELLS, BY_METHOD) == ["Functional release", "DP-GRAMS experiments"]
    figure = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "DP-GRAMS experiments")
    lines = named(figure)
    assert list(lines) == ["n = 500", "n = 1,000", "mean shift, the same marks"]
    assert [lines[name].line.color for name in ("n = 500", "n = 1,000")] == list(PRIVATE_SHADES[:2])
    assert list(lines["n = 1,000"].y) == pytest.approx([2.1, 1.1, 0.3])
    plain = [trace for trace in figure.data if trace.line.dash == "dash"]
    assert [trace.line.color for trace in plain] == list(NON_PRIVATE_SHADES[:2])
    assert [trace.marker.symbol for trace in plain] == [lines[n].marker.symbol for n in ("n = 500", "n = 1,000")]
    assert list(plain[0].y) == pytest.approx([0.2, 0.2])  # the same at every epsilon, from end to end
    assert plain[0].x[0] < 0.5
    assert plain[0].x[1] > 5
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_bands_are_one_standard_error_wide():
    figure = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "Functional release")
    band = next(trace for trace in figure.data if trace.fill == "toself")
    line = named(figure)["n = 500"]
    spread = mean_and_error(KNOWN[CELLS[0]], "mse")[1]
    assert spread == pytest.approx(KNOWN[CELLS[0]].row()["mse_se"])
    assert band.y[0] == pytest.approx(line.y[0] + spread)
    assert band.y[-1] == pytest.approx(line.y[0] - spread)
    assert band.showlegend is False


def test_other_layouts_have_a_line_for_each_method_or_run_over_n():
    assert panels_of(CELLS, BY_N) == [500, 1000]
    assert panel_title(1000, BY_N) == "n = 1,000"
    lines = named(lab_panel(KNOWN, CELLS, "mse", BY_N, 500))
    assert list(lines) == ["Functional release", "DP-GRAMS experiments", "mean shift"]
    looks = {(line.line.dash, line.marker.symbol) for line in lines.values()}
    assert len(looks) == 3  # told apart without colour
    assert panels_of(CELLS, AGAINST_N) == [0.5, 1.0, 5.0]
    lines = named(lab_panel(KNOWN, CELLS, "mse", AGAINST_N, 1.0))
    assert list(lines["mean shift"].x) == [500, 1000]
    assert list(lines["mean shift"].y) == pytest.approx([0.2, 0.1])


def test_your_epsilon_is_marked_where_it_is_the_axis():
    for layout, panel, marks in ((BY_METHOD, "Functional release", [5.0]), (AGAINST_N, 1.0, [])):
        figure = lab_panel(KNOWN, CELLS, "mse", layout, panel, epsilon=5.0)
        assert [line.x0 for line in figure.layout.shapes] == marks
        assert [note.text for note in figure.layout.annotations] == ["your ε = 5" for _ in marks]


def test_numbers_on_a_log_axis_are_written_out():
    """Plotly writes 10,000 as 1e+4 where a format does not forbid it."""
    figure = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "Functional release")
    assert figure.layout.yaxis.tickformat == ",.4~r"


def test_all_panels_share_a_scale_and_axes_stand_while_points_come():
    ranges = {
        lab_panel(KNOWN, CELLS, "mse", BY_METHOD, name).layout.yaxis.range for name in panels_of(CELLS, BY_METHOD)
    }
    assert len(ranges) == 1
    early = {cell: KNOWN[cell] for cell in CELLS[:1]}
    for known in ({}, early, KNOWN):
        figure = lab_panel(known, CELLS, "mse", BY_METHOD, "Functional release")
        assert list(figure.layout.xaxis.tickvals) == [0.5, 1.0, 5.0]
    assert lab_panel(KNOWN, CELLS, "found", BY_METHOD, "Functional release").layout.yaxis.type != "log"


def test_a_run_that_released_nothing_is_a_gap_and_is_said():
    cell = next(cell for cell in CELLS if cell.method == "functional" and cell.n == 1000)
    known = {**KNOWN, cell: made(cell, 0.1, math.inf)}
    line = named(lab_panel(known, CELLS, "mse", BY_METHOD, "Functional release"))["n = 1,000"]
    assert math.isnan(line.y[0])
    assert line.y[1] is not None
    assert "at least one run released nothing" in lab_sentence(known, CELLS, "mse")
    assert "released nothing" not in lab_sentence(KNOWN, CELLS, "mse")


def test_theory_adds_slopes_without_a_height():
    other = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "Functional release", theory=True)
    assert not [trace for trace in other.data if trace.name and trace.name.startswith("theory")]  # it has no bound
    plain = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "DP-GRAMS experiments")
    figure = lab_panel(KNOWN, CELLS, "mse", BY_METHOD, "DP-GRAMS experiments", theory=True)
    extra = [trace for trace in figure.data if trace.name and trace.name.startswith("theory")]
    assert len(extra) == 2
    assert len(figure.data) == len(plain.data) + 2
    privacy = next(trace for trace in extra if "privacy" in trace.name)
    slope = math.log(privacy.y[-1] / privacy.y[0]) / math.log(privacy.x[-1] / privacy.x[0])
    assert slope == pytest.approx(-0.8)  # -2(beta - 1)/(d + beta) with d = 2, beta = 3


def test_the_cost_is_a_ratio_of_means_with_the_error_of_paired_runs():
    found = costs(KNOWN, CELLS, "mse", 1000, 1.0)
    assert [(cost.title, cost.status, cost.plain_title) for cost in found] == [
        ("Functional release", "proven", "Mean shift"),
        ("DP-GRAMS experiments", "proven", "Mean shift"),
    ]
    assert [cost.ratio for cost in found] == pytest.approx([2.0, 11.0])
    # Each run of the method is exactly twice that of the baseline on the same data: no doubt is left.
    assert found[0].ratio_se == pytest.approx(0.0, abs=1e-12)
    crossed = dict(KNOWN)
    plain = next(cell for cell in CELLS if cell.method == "mean_shift" and cell.n == 1000)
    crossed[plain] = made(plain, 0.11, 0.1, 0.1, 0.09)
    assert costs(crossed, CELLS, "mse", 1000, 1.0)[0].ratio_se > 0.05
    alone = {cell: result for cell, result in KNOWN.items() if cell.method != "mean_shift"}
    assert math.isnan(costs(alone, CELLS, "mse", 1000, 1.0)[0].ratio)
    assert costs({}, CELLS, "mse", 1000, 1.0) == []


def test_the_best_baseline_is_the_one_that_a_score_says():
    cells = plan_cells(["functional_c", "kmeans", "mean_shift_c"], "blobs", n=[700], epsilon=[1.0], runs=2)
    aris = {"functional_c": 0.7, "kmeans": 0.9, "mean_shift_c": 0.8}
    known = {cell: made(cell, ari=(aris[cell.method],) * 2) for cell in cells}
    assert costs(known, cells, "ari", 700, 1.0)[0].plain_title == "k-means"


def test_sentence_and_table_say_what_is_there():
    text = lab_sentence(KNOWN, CELLS, "mse")
    for words in (
        "Mean MSE at n = 1,000",
        "functional release 0.3 at ε = 0.5 and 0.12 at ε = 5",
        "mean shift 0.1 without privacy",
        "Means of 4 runs, each on fresh data",
    ):
        assert words in text
    assert "points are complete" not in text
    assert "1 of 14 points are complete" in lab_sentence({CELLS[0]: KNOWN[CELLS[0]]}, CELLS, "mse")
    assert lab_sentence({}, CELLS, "mse").startswith("Nothing to show yet.")
    bad = changed(KNOWN[CELLS[0]], failures=("No.", "No."), failed=(4, 5))
    assert "2 runs could not be made" in lab_sentence({**KNOWN, CELLS[0]: bad}, CELLS, "mse")
    table = lab_table(KNOWN)
    assert len(table) == 14
    assert {"method", "n", "epsilon", "mse", "mse_se", "found", "runs", "failures", "status"} <= set(table)
    assert lab_table({**KNOWN, CELLS[0]: bad})["error"].iloc[0] == "No."


def test_one_draw_of_real_data_is_not_called_fresh():
    cells = plan_cells(["functional_c", "kmeans"], "iris", n=[150], epsilon=[1.0], runs=2)
    known = {cell: made(cell, ari=(0.7, 0.8)) for cell in cells}
    assert "on the same records" in lab_sentence(known, cells, "ari")
    # There one run without noise speaks for all: every private run is held against it.
    scores = {"functional_c": (1.0, 3.0), "kmeans": (0.5,)}
    known = {cell: made(cell, *scores[cell.method], centroid_mse=scores[cell.method]) for cell in cells}
    assert costs(known, cells, "centroid_mse", 150, 1.0)[0].ratio == pytest.approx(4.0)
    blobs = plan_cells("functional_c", "blobs", n=[700], epsilon=[1.0], runs=2)
    for draw, words in ((None, "each on fresh data"), (0, "on the same records")):
        drawn = [replace(cell, data_seed=draw) for cell in blobs]
        assert words in lab_sentence({cell: made(cell, ari=(0.7, 0.8)) for cell in drawn}, drawn, "ari")


def test_names_and_numbers():
    cells = plan_cells("dp_grams", "four_corners", n=[500], epsilon=[1.0], vary=("kernel", ["gaussian", "gaussian4"]))
    assert [cell_title(cell) for cell in cells] == [
        "DP-GRAMS experiments, Gaussian",
        "DP-GRAMS experiments, order-4 Gaussian (smooth)",
    ]
    assert method_title("dp_grams", [("calibration", "as_run")]) == "DP-GRAMS as run"
    assert middle([0.1, 0.5, 2.0, 5.0], 1.0) in (0.5, 2.0)
    assert plus_minus(792.4, 384.2) == "792 ± 380"
    assert plus_minus(math.inf, math.nan) == "∞"
