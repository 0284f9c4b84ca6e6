"""Theory's slopes: the exponents of the theorems, where they meet, and the lines that are laid over a chart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core.figures.tradeoff import rate_note, rate_traces
from dpgrams_core.numerics.bandwidths import BandwidthFacts, h_opt
from dpgrams_core.studies.rates import (
    measured_slope,
    privacy_exponent,
    rate_line,
    rates,
    sampling_exponent,
)
from dpgrams_core.sweeps.run import plan_cells
from tests.made import made_result

dimensions = st.integers(1, 10)
smoothness = st.floats(2.01, 20)


@pytest.mark.parametrize(
    ("d", "beta", "sampling", "privacy"),
    # By hand from thm:global-holder and thm:lower-bound.
    [(1, 3.0, -4 / 7, -1.0), (2, 3.0, -4 / 8, -4 / 5), (2, 4.0, -6 / 10, -1.0), (6, 3.0, -4 / 12, -4 / 9)],
)
def test_the_exponents_are_those_of_the_theorems(d, beta, sampling, privacy):
    assert sampling_exponent(d, beta) == pytest.approx(sampling)
    assert privacy_exponent(d, beta) == pytest.approx(privacy)


@given(dimensions, smoothness)
def test_the_slopes_are_those_of_the_squared_bias_at_the_optimal_bandwidth(d, beta):
    # An independent way to the same powers: the bias of a gradient is h^(beta - 1), at the h of h-opt.
    def squared_bias(n, epsilon):
        box = np.tile([0.0, 1.0], (d, 1))
        facts = BandwidthFacts(n=n, d=d, box=box, epsilon=epsilon, beta=beta, points=np.empty((0, d)))
        return h_opt(facts) ** (2 * (beta - 1))

    private = measured_slope([1e-7, 1e-8], [squared_bias(10**6, 1e-7), squared_bias(10**6, 1e-8)])
    assert private == pytest.approx(privacy_exponent(d, beta))
    sizes = [10**5, 10**7]
    plain = measured_slope([n / math.log(n) for n in sizes], [squared_bias(n, 100.0) for n in sizes])
    assert plain == pytest.approx(sampling_exponent(d, beta))


def test_a_line_has_its_slope_and_its_anchor():
    x = [0.1, 0.5, 2.0]
    line = rate_line(x, (0.5, 3.0), -0.8)
    assert line[1] == 3.0
    assert measured_slope(x, line) == pytest.approx(-0.8)


def test_a_slope_that_is_not_there_is_not_a_number():
    assert math.isnan(measured_slope([1.0], [1.0]))
    assert math.isnan(measured_slope([1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(measured_slope([1.0, 2.0], [1.0, math.inf]))


def test_what_theory_does_not_cover_is_refused(refused):
    refused(lambda: rates("epsilon", 2, 2.0), "beta", 2.0, "above 2")
    refused(lambda: rates("delta", 2), "variable", "delta")
    refused(lambda: sampling_exponent(0, 3.0), "d", 0)
    refused(lambda: rate_line([1.0], (0.0, 1.0), -1.0), "anchor", 0.0)


def made(law, methods=("dp_grams", "mean_shift"), **grid):
    """Results of a sweep whose MSE is a given function of the cell."""
    cells = plan_cells(methods, "four_corners", runs=1, **grid)
    return [
        made_result(
            cell=cell, scores={"mse": (law(cell),)}, seconds=(0.1,), status="nominal", failures=(), numbers=(0,)
        )
        for cell in cells
    ]


def law(cell):
    return 0.01 if math.isinf(cell.epsilon) else 30 * (cell.n * cell.epsilon) ** -0.8


def test_lines_against_epsilon_pass_through_both_ends_of_the_curve_of_the_largest_n():
    results = made(law, n=[500, 5000], epsilon=[0.1, 1.0, 10.0])
    privacy, level = rate_traces(results)
    assert list(privacy.x) == [0.1, 10.0]
    assert list(privacy.y) == pytest.approx([30 * 500**-0.8, 30 * 50_000**-0.8])  # this law is theory's own
    assert list(level.y) == pytest.approx([30 * 50_000**-0.8] * 2)
    note = rate_note(results)
    assert "slope of −0.8 " in note
    assert "the MSE of DP-GRAMS experiments at n = 5,000" in note
    assert "theory has, for DP-GRAMS," in note
    assert "slopes only" in note
    assert "logarithms" in note


def test_lines_against_n_start_at_the_curves_of_least_and_of_most_epsilon():
    privacy, sampling = rate_traces(made(law, n=[500, 5000], epsilon=[0.1, 1.0]), variable="n")
    assert list(privacy.y) == pytest.approx([30 * 50**-0.8, 30 * 500**-0.8])
    assert list(sampling.y) == pytest.approx([0.01, 0.01 * 10**-0.5])


def test_the_upper_bound_is_laid_over_dp_grams_only_and_says_so():
    grid = {"n": [500, 5000], "epsilon": [0.1, 10.0]}
    other = made(law, ["functional", "mean_shift"], **grid)
    assert rate_traces(other) == []
    assert "is one of DP-GRAMS only" in rate_note(other)
    # Beside another method, whose errors are smaller and come first, it is still DP-GRAMS's own curve.
    both = made(
        lambda cell: law(cell) / (100 if cell.method == "functional" else 1), ["functional", "dp_grams"], **grid
    )
    for variable in ("epsilon", "n"):
        mine = [result for result in both if result.cell.method == "dp_grams"]
        found, alone = (rate_traces(results, variable=variable) for results in (both, mine))
        assert [list(trace.y) for trace in found] == [list(trace.y) for trace in alone]
        assert "of DP-GRAMS experiments at" in rate_note(both, variable=variable)


def test_no_line_is_drawn_without_a_curve():
    assert rate_traces([]) == []
    assert rate_note([]) == ""
    assert rate_traces(made(law, n=[500], epsilon=[1.0])) == []
    assert rate_traces(made(lambda cell: math.inf, n=[500], epsilon=[1.0, 2.0])) == []
