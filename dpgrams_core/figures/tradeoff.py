"""(d) Error against epsilon, from the cells of a sweep that are there so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, Chart, plain_layout, short
from dpgrams_core.methods import METHODS
from dpgrams_core.sweeps import Cell, CellResult

DASHES = ("solid", "dot", "dash", "longdash", "dashdot")
MARKS = ("circle", "square", "diamond", "triangle-up", "pentagon")


def method_title(method: str, options: Iterable[tuple[str, Any]] = ()) -> str:
    """A method as people call it, with its calibration where one was chosen.

    Examples
    --------
    >>> method_title("dp_grams", [("calibration", "tight")])
    'DP-GRAMS tight'
    >>> method_title("functional")
    'Functional release'
    """
    return " ".join([METHODS[method].title, *(value for name, value in options if name == "calibration")])


def tradeoff_chart(results: Sequence[CellResult], cells: Sequence[Cell], current_epsilon: float) -> Chart:
    """MSE against epsilon on log axes with standard errors; mean shift as dashed lines.

    ``cells`` are all that will come, so that the axes stand still while the curve fills in.  Every private
    method is orange; with two of them the second has dashed lines and open marks.
    """
    n_cells = len(cells)
    epsilons = sorted({cell.epsilon for cell in cells if math.isfinite(cell.epsilon)})
    epsilon_range = (epsilons[0] / 1.15, epsilons[-1] * 1.15)
    # In the order of the cells, so that a method keeps its look while the curve fills in.
    names = list(dict.fromkeys(_title(cell) for cell in cells if math.isfinite(cell.epsilon)))
    table = pd.DataFrame([{**result.row(), "method": _title(result.cell)} for result in results])
    figure = go.Figure()
    for i, n in enumerate(sorted(set(table["n"])) if len(table) else []):
        mine = table[table["n"] == n]
        for j, name in enumerate(names):
            private = mine[(mine["method"] == name) & (mine["epsilon"] < math.inf)].sort_values("epsilon")
            if len(private):
                figure.add_trace(_curve(private, f"{name}, n = {n:,}", size=i, method=j, methods=len(names)))
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
        figure.add_annotation(
            text=f"your ε = {current_epsilon:g}",
            x=math.log10(current_epsilon),  # plotly wants the logarithm here, and here only
            y=1,
            yref="paper",
            yanchor="top",
            xanchor="right" if current_epsilon > 1 else "left",
            showarrow=False,
        )
    figure.update_xaxes(
        type="log",
        title="ε (stronger privacy on the left)",
        range=[math.log10(value) for value in epsilon_range],
        tickvals=epsilons,
        ticktext=[f"{value:g}" for value in epsilons],
    )
    figure.update_yaxes(type="log", title="mean squared error (MSE)", dtick=1, tickformat=".4~g")
    sentence = _sentence(table, names, len(results), n_cells)
    columns = ["method", "n", "epsilon", "mse", "mse_se", "mse_per_true_mode", "found", "missed", "spurious"]
    shown = table[[*columns, "runs", "failures", "status"]] if len(table) else table
    return Chart(plain_layout(figure, 420), sentence, shown)


def _title(cell: Cell) -> str:
    return method_title(cell.method, cell.options)


def _curve(private: pd.DataFrame, name: str, *, size: int, method: int, methods: int) -> go.Scatter:
    """One private method at one n: the mark says n, and the dash says n or, with several methods, the method."""
    opened = "-open" if method % 2 else ""
    return go.Scatter(
        x=private["epsilon"],
        y=private["mse"].where(private["mse"] < math.inf),  # no mode in some run: a gap, not a point
        error_y={"type": "data", "array": private["mse_se"], "thickness": 1.5, "width": 4},
        mode="lines+markers",
        name=name,
        line={"color": PRIVATE, "dash": DASHES[(2 * method if methods > 1 else size) % 5]},
        marker={"symbol": MARKS[size % 5] + opened, "size": 9, "color": PRIVATE, "line": {"width": 2 if opened else 0}},
        hovertemplate=name + ", ε = %{x:g}: MSE %{y:.3g}<extra></extra>",
    )


def _sentence(table: pd.DataFrame, names: Sequence[str], done: int, n_cells: int) -> str:
    if not len(table) or not (table["epsilon"] < math.inf).any():
        return f"{done} of {n_cells} points so far."
    largest = table[table["n"] == table["n"].max()]
    private = largest[largest["epsilon"] < math.inf].sort_values("epsilon")
    plain = largest[largest["epsilon"] == math.inf]
    runs = int(table["runs"].max())
    parts = []
    for name in names:
        mine = private[private["method"] == name]
        if len(mine):
            first, last = mine.iloc[0], mine.iloc[-1]
            whose = "the error" if len(names) == 1 else f"the error of {name}"
            parts.append(
                f"{whose} goes from {short(first['mse'])} at ε = {first['epsilon']:g}"
                f" to {short(last['mse'])} at ε = {last['epsilon']:g}"
            )
    if len(plain):
        parts.append(f"without privacy it is {short(float(plain['mse'].iloc[0]))}")
    text = f"At n = {int(largest['n'].iloc[0]):,} " + "; ".join(parts)
    if (private["mse"] == math.inf).any():
        text += " (∞: at least one run released no mode, because nothing stood above its noise)"
    text += f". Means of {runs} runs on fresh data, with standard errors."
    if done < n_cells:
        text += f" {done} of {n_cells} points so far."
    return text
