"""Theory's slopes, to be laid over measured curves on log axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from dpgrams_core.figures.style import QUIET
from dpgrams_core.rates import UP_TO_LOGARITHMS, Rate, measured_slope, rate_line, rates
from dpgrams_core.sweeps import CellResult

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
    noisy, quiet = _curves(results, variable)
    if len(noisy) < 2:
        return []
    ends = [noisy[0][0], noisy[-1][0]]
    anchor = noisy[-1] if variable == "epsilon" else quiet[0]
    return [rate_trace(privacy, ends, noisy[0]), rate_trace(sampling, ends, anchor)]


def rate_note(results: Sequence[CellResult], *, variable: str = "epsilon", d: int = 2, beta: float = 3.0) -> str:
    """The measured slope beside theory's, in words; "" where there is no curve yet."""
    noisy, _ = _curves(results, variable)
    if len(noisy) < 2:
        return ""
    symbol = "ε" if variable == "epsilon" else "n"
    slope = measured_slope([x for x, _ in noisy], [y for _, y in noisy])
    privacy, sampling = (f"{rate.exponent:.2g}".replace("-", "−") for rate in rates(variable, d, beta))
    found = f"{slope:.2g}".replace("-", "−")
    return (
        f"Between {symbol} = {noisy[0][0]:,.6g} and {noisy[-1][0]:,.6g} the MSE goes with a measured slope of {found} "
        f"on log axes; theory has {privacy} where privacy leads and {sampling} where sampling does, for smoothness "
        f"β = {beta:g} in {d} {'column' if d == 1 else 'columns'}. {UP_TO_LOGARITHMS}"
    )


def _curves(results: Sequence[CellResult], variable: str) -> tuple[list[Point], list[Point]]:
    """The measured curve on which privacy leads, and the one (against n) on which sampling does."""
    known = [(result.cell, result.row()) for result in results if not result.cell.varied]
    points = [(cell, float(row["mse"])) for cell, row in known if 0 < row.get("mse", math.nan) < math.inf]
    private = [item for item in points if math.isfinite(item[0].epsilon)]
    if not private:
        return [], []
    first = private[0][0]  # theory speaks of one method at a time: the first one
    mine = [item for item in private if (item[0].method, item[0].options) == (first.method, first.options)]
    if variable == "epsilon":
        largest = max(cell.n for cell, _ in mine)
        curve = sorted((cell.epsilon, mse) for cell, mse in mine if cell.n == largest)
        return curve, curve
    lowest = min(cell.epsilon for cell, _ in mine)
    highest = max(cell.epsilon for cell, _ in points)
    noisy = sorted((float(cell.n), mse) for cell, mse in mine if cell.epsilon == lowest)
    quiet = sorted((float(cell.n), mse) for cell, mse in points if cell.epsilon == highest)
    return noisy, quiet
