"""The pictures of the Guarantee page as units: what is drawn, what is said, and what stands in the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import load_dataset
from dpgrams_core.figures.guarantee import accountants_chart, budget_chart, errors_chart, power_chart, records_chart
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE
from dpgrams_core.privacy.accountants import ACCOUNTANTS, Quote, quotes
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.studies.comparison import ComparisonSettings, NoiseCurve, compare, comparison_cell, tight_rounds
from dpgrams_core.sweeps.run import run_cell
from tests.made import changed

SETTINGS = ComparisonSettings(n=300, epsilon=2.0, n_steps=4)


@pytest.fixture(scope="module")
def rows():
    return compare(SETTINGS, load_dataset("four_corners", n=300, seed=0))


def trace(figure, words):
    found = [item for item in figure.data if words in item.name]
    assert len(found) == 1, f"{len(found)} traces called {words}"
    return found[0]


def test_the_three_curves_of_the_best_test():
    chart = power_chart(1.0, 1e-6, gaussian_multiplier(1.0, 1e-6))
    bound, exact = trace(chart.figure, "allows"), trace(chart.figure, "exactly")
    np.testing.assert_array_equal(bound.x, exact.x)
    assert (np.asarray(exact.y) <= np.asarray(bound.y) + 1e-12).all()
    assert (np.asarray(exact.y) >= np.asarray(exact.x) - 1e-12).all()
    assert bound.line.color == exact.line.color == PRIVATE
    row = chart.table[chart.table["false alarms"] == 0.05].iloc[0]
    assert row["allowed by (ε, δ)"] == pytest.approx(math.e * 0.05 + 1e-6)
    assert "at most 14%" in chart.sentence
    assert "never passes the bound" in chart.sentence


def test_errors_say_what_is_missing_and_then_what_was_measured(rows):
    empty = errors_chart(rows, {}, 2, 1.0)
    assert f"0 of {2 * len(rows)} runs so far" in empty.sentence
    assert list(trace(empty.figure, "predicted").x) == [row.prediction.total for row in rows]
    measured = {row.candidate.key: run_cell(comparison_cell(row.candidate, SETTINGS, 2, 0)) for row in rows}
    chart = errors_chart(rows, measured, 2, 1.0)
    assert "means of 2 runs" in chart.sentence
    values = [measured[row.candidate.key].row()["mse_per_true_mode"] for row in rows]
    shown = [math.inf if x is None else x for x in trace(chart.figure, "measured").x]
    np.testing.assert_allclose(shown, values)
    np.testing.assert_allclose(chart.table["measured error"], values)
    assert list(chart.table["status"]) == ["proven", "as published", "nominal", "proven", "none"]
    assert list(chart.table["runs"]) == [2] * 5
    assert trace(chart.figure, "measured").marker.color == (PRIVATE,) * 4 + (NON_PRIVATE,)


def test_a_method_that_released_no_mode_has_no_point_but_a_word(rows):
    measured = {row.candidate.key: run_cell(comparison_cell(row.candidate, SETTINGS, 1, 0)) for row in rows}
    whole = measured["functional"]
    measured["functional"] = changed(whole, scores={**whole.scores, "mse_per_true_mode": (math.inf,)})
    chart = errors_chart(rows, measured, 1, 1.0)
    assert trace(chart.figure, "measured").x[3] is None
    assert "released no mode" in chart.sentence


def test_the_budget_adds_up_to_epsilon(rows):
    chart = budget_chart(rows, SETTINGS.delta)
    spent = chart.table.groupby("method")["ε"].sum()
    np.testing.assert_allclose(spent, SETTINGS.epsilon, rtol=1e-6)
    assert list(chart.table[chart.table["method"] == "Functional release"]["stage"]) == ["the release"]
    ascent = chart.table[chart.table["stage"] == "ascent"]
    assert (ascent["rounds or draws"] == 4).all()
    assert (ascent["one round or draw alone, ε"] < ascent["ε"]).all()
    # Where draws are priced by adding; in tight squares add up.
    start = chart.table[chart.table["stage"] == "start (DAP)"].iloc[-1]
    assert start["one round or draw alone, ε"] * start["rounds or draws"] == pytest.approx(start["ε"])
    drawn = {item.name: list(item.x) for item in chart.figure.data}
    assert drawn["start (DAP)"][-1] is None
    assert drawn["the one release"][-1] == pytest.approx(2.0, rel=1e-6)


def test_accountants_fill_in_and_are_never_dropped_silently():
    settings = ComparisonSettings(n=300, batch_size=60, n_steps=4)
    quoted = {1.0: quotes(tight_rounds(settings, 1.0), settings.delta)}
    half = accountants_chart((0.5, 1.0), quoted, 0.7, "4 rounds")
    assert "1 of 2 points so far" in half.sentence
    assert "exact cannot price: no closed form for batches" in half.sentence
    assert np.isnan(trace(half.figure, "exact (cannot price)").y).all()
    assert "exact: no closed form" in half.table["cannot price"].iloc[0]
    quoted[0.5] = {name: Quote(0.5) for name in ACCOUNTANTS} | {"advanced": Quote(math.inf, "too much")}
    chart = accountants_chart((0.5, 1.0), quoted, 0.7, "4 rounds")
    assert "advanced cannot price: too much (at ε = 0.5)" in chart.sentence
    assert list(trace(chart.figure, "basic").x) == [0.5, 1.0]
    assert list(trace(chart.figure, "basic").y) == [0.5, quoted[1.0]["basic"].epsilon]
    assert "points so far" not in chart.sentence
    assert len(chart.table) == 2


def test_nothing_quoted_yet_is_a_chart_too():
    chart = accountants_chart((0.5, 1.0), {}, 0.7, "4 rounds")
    assert "0 of 2 points so far" in chart.sentence
    assert len(chart.table) == 0


def test_records_needed_are_said_for_every_method():
    sizes = (100, 10_000, 1_000_000)
    curves = (
        NoiseCurve("slow", sizes, (100.0, 10.0, 1.0)),
        NoiseCurve("middle", sizes, (10.0, 1.0, 0.1)),
        NoiseCurve("quick", sizes, (0.1, 0.01, 0.001)),
    )
    chart = records_chart(curves, 5_000, 3)
    assert "quick below n = 100; middle near n = 90,000; slow beyond n = 1,000,000." in chart.sentence
    assert list(chart.table["useful from about n"]) == ["beyond n = 1,000,000", "90,000", "below n = 100"]
    assert list(chart.table["noise equals the signal near n"])[1] == "10,000"
    assert [item.name for item in chart.figure.data] == ["slow", "middle", "quick"]
    early = records_chart([NoiseCurve("slow", (100,), (100.0,))], 5_000, 3)
    assert "1 of 3 sizes so far" in early.sentence
    assert "near n" not in early.sentence
    assert "0 of 3 sizes so far" in records_chart([NoiseCurve("slow", (), ())], 5_000, 3).sentence
