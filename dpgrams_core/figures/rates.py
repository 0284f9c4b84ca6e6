"""Theory's slopes, to be laid over measured curves on log axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from dpgrams_core.figures.style import QUIET
from dpgrams_core.figures.tradeoff_scores import cell_title
from dpgrams_core.rates import UP_TO_LOGARITHMS, UPPER_BOUND_OF, Rate, measured_slope, rate_line, rates
from dpgrams_core.sweeps import Cell, CellResult

OTHERS = (
    "Theory’s lines are left out here: its upper bound (thm:global-holder) is one of DP-GRAMS only. Its lower bound "
    "(thm:lower-bound) holds for every private method, and has the same slopes."
)
RATE_DASHES = {"privacy": "longdashdot", "sampling": "dashdot"}
Point = tuple[float, float]


def rate_trace(rate: Rate, x_values: Sequence[float], anchor: Point) -> go.Scatter:
    """One slope as a grey line through a measured point."""
    return go.Scatter(
        x=list(x_values),
        y=rate_line(x_values, anchor, rate.exponent),
        mode="lines",
        name=rate.title,
        line={"color": QUIET, "dash": RATE_DASHES[rate.term], "width": 2},
        hoverinfo="skip",
    )


def rate_traces(
    results: Sequence[CellResult], *, variable: str = "epsilon", d: int = 2, beta: float = 3.0
) -> list[go.Scatter]:
    """Theory's slopes through measured points of MSE, as traces for a chart with the same variable on its axis.

    The upper bound is one of DP-GRAMS, so that is the curve they are laid over; without one there are none.
    The privacy term goes through the point at the smallest value of the curve where privacy costs most: against
    epsilon that of the largest n, against n that of the smallest epsilon.  The sampling term goes through the
    largest epsilon of the curve, and against n through the smallest n of the largest epsilon (or of no privacy).

    Examples
    --------
    >>> from dpgrams_core.sweeps import plan_cells, run_cell
    >>> cells = plan_cells("dp_grams", "four_corners", n=[300], epsilon=[1.0, 4.0], runs=2)
    >>> [trace.name for trace in rate_traces([run_cell(cell) for cell in cells])]
    ['theory, privacy term: ε^−0.8', 'theory, sampling term: level in ε']
    """
    privacy, sampling = rates(variable, d, beta)
    _, noisy, quiet = _curves(results, variable)
    if len(noisy) < 2:
        return []
    ends = [noisy[0][0], noisy[-1][0]]
    anchor = noisy[-1] if variable == "epsilon" else quiet[0]
    return [rate_trace(privacy, ends, noisy[0]), rate_trace(sampling, ends, anchor)]


def rate_note(results: Sequence[CellResult], *, variable: str = "epsilon", d: int = 2, beta: float = 3.0) -> str:
    """The measured slope beside theory's, in words, and whose they are; "" where there is no curve yet."""
    private = [result for result in results if math.isfinite(result.cell.epsilon)]
    if private and not any(result.cell.method == UPPER_BOUND_OF for result in private):
        return OTHERS
    cell, noisy, _ = _curves(results, variable)
    if cell is None or len(noisy) < 2:
        return ""
    symbol = "ε" if variable == "epsilon" else "n"
    slope = measured_slope([x for x, _ in noisy], [y for _, y in noisy])
    privacy, sampling = (f"{rate.exponent:.2g}".replace("-", "−") for rate in rates(variable, d, beta))
    found = f"{slope:.2g}".replace("-", "−")
    held = f"n = {cell.n:,}" if variable == "epsilon" else f"ε = {cell.epsilon:g}"
    return (
        f"Between {symbol} = {noisy[0][0]:,.6g} and {noisy[-1][0]:,.6g} the MSE of {cell_title(cell)} at {held} goes "
        f"with a measured slope of {found} on log axes; theory has, for DP-GRAMS, {privacy} where privacy leads and "
        f"{sampling} where sampling does, for smoothness β = {beta:g} in {d} {'column' if d == 1 else 'columns'}. "
        f"{UP_TO_LOGARITHMS}"
    )


def _curves(results: Sequence[CellResult], variable: str) -> tuple[Cell | None, list[Point], list[Point]]:
    """A cell of the measured curve on which privacy leads, that curve, and the one on which sampling does.

    Of several kinds of DP-GRAMS, such as calibrations, it is the first.  Against n, sampling leads without privacy,
    or else at the largest epsilon.
    """
    known = [(result.cell, result.row()) for result in results if not result.cell.varied]
    points = [(cell, float(row["mse"])) for cell, row in known if 0 < row.get("mse", math.nan) < math.inf]
    first = next((cell for cell, _ in points if cell.method == UPPER_BOUND_OF), None)
    if first is None:
        return None, [], []
    mine = [item for item in points if cell_title(item[0]) == cell_title(first)]
    if variable == "epsilon":
        largest = max((cell for cell, _ in mine), key=lambda cell: cell.n)
        curve = sorted((cell.epsilon, mse) for cell, mse in mine if cell.n == largest.n)
        return largest, curve, curve
    plain = [item for item in points if math.isinf(item[0].epsilon)] or mine
    lowest = min((cell for cell, _ in mine), key=lambda cell: cell.epsilon)
    highest = max(cell.epsilon for cell, _ in plain)
    noisy = sorted((float(cell.n), mse) for cell, mse in mine if cell.epsilon == lowest.epsilon)
    quiet = sorted((float(cell.n), mse) for cell, mse in plain if cell.epsilon == highest)
    return lowest, noisy, quiet
