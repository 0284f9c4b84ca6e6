"""(d) Error against epsilon, from the cells of a sweep that are there so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, Chart, plain_layout, short
from dpgrams_core.methods import METHODS
from dpgrams_core.sweeps import Cell, CellResult

DASHES = ("solid", "dot", "dash", "longdash", "dashdot")
MARKS = ("circle", "square", "diamond", "triangle-up", "pentagon")


def tradeoff_chart(results: Sequence[CellResult], cells: Sequence[Cell], current_epsilon: float) -> Chart:
    """MSE against epsilon on log axes with standard errors; mean shift as dashed lines.

    ``cells`` are all that will come, so that the axes stand still while the curve fills in.
    """
    n_cells = len(cells)
    epsilons = sorted({cell.epsilon for cell in cells if math.isfinite(cell.epsilon)})
    epsilon_range = (epsilons[0] / 1.15, epsilons[-1] * 1.15)
    table = pd.DataFrame([result.row() for result in results])
    figure = go.Figure()
    sizes = sorted(set(table["n"])) if len(table) else []
    for i, n in enumerate(sizes):
        mine = table[(table["n"] == n)]
        private = mine[mine["epsilon"] < math.inf].sort_values("epsilon")
        figure.add_trace(
            go.Scatter(
                x=private["epsilon"],
                y=private["mse"].where(private["mse"] < math.inf),  # no mode in some run: a gap, not a point
                error_y={"type": "data", "array": private["mse_se"], "thickness": 1.5, "width": 4},
                mode="lines+markers",
                name=f"{METHODS[private['method'].iloc[0]].title}, n = {n:,}" if len(private) else f"n = {n:,}",
                line={"color": PRIVATE, "dash": DASHES[i % 5]},
                marker={"symbol": MARKS[i % 5], "size": 9, "color": PRIVATE},
                hovertemplate="ε = %{x:g}: MSE %{y:.3g}<extra></extra>",
            )
        )
        for _, row in mine[mine["epsilon"] == math.inf].iterrows():
            figure.add_trace(
                go.Scatter(
                    x=list(epsilon_range),
                    y=[row["mse"]] * 2,
                    mode="lines",
                    name=f"mean shift, n = {n:,} (not private)",
                    line={"color": NON_PRIVATE, "dash": "dash", "width": 2},
                    hovertemplate="mean shift: MSE %{y:.3g}<extra></extra>",
                )
            )
    if epsilon_range[0] <= current_epsilon <= epsilon_range[1]:
        figure.add_vline(x=current_epsilon, line={"color": PRIVATE, "width": 1, "dash": "dot"})
    figure.update_xaxes(
        type="log",
        title="ε (stronger privacy on the left)",
        range=[math.log10(value) for value in epsilon_range],
        tickvals=epsilons,
        ticktext=[f"{value:g}" for value in epsilons],
    )
    figure.update_yaxes(type="log", title="mean squared error (MSE)", dtick=1, tickformat=".4~g")
    sentence = _sentence(table, len(results), n_cells)
    columns = ["method", "n", "epsilon", "mse", "mse_se", "mse_per_true_mode", "found", "missed", "spurious"]
    shown = table[[*columns, "runs", "failures", "status"]] if len(table) else table
    return Chart(plain_layout(figure, 420), sentence, shown)


def _sentence(table: pd.DataFrame, done: int, n_cells: int) -> str:
    if not len(table) or not (table["epsilon"] < math.inf).any():
        return f"{done} of {n_cells} points so far."
    largest = table[table["n"] == table["n"].max()]
    private = largest[largest["epsilon"] < math.inf].sort_values("epsilon")
    first, last = private.iloc[0], private.iloc[-1]
    plain = largest[largest["epsilon"] == math.inf]
    runs = int(table["runs"].max())
    text = f"At n = {int(first['n']):,} the error falls from {short(first['mse'])} at ε = {first['epsilon']:g}"
    text += f" to {short(last['mse'])} at ε = {last['epsilon']:g}"
    if len(plain):
        text += f"; without privacy it is {short(float(plain['mse'].iloc[0]))}"
    if (private["mse"] == math.inf).any():
        text += " (∞: at least one run released no mode, because nothing stood above its noise)"
    text += f". Means of {runs} runs on fresh data, with standard errors."
    if done < n_cells:
        text += f" {done} of {n_cells} points so far."
    return text
