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
# What the table shows, of modes or of branches.
COLUMNS = [
    *("method", "n", "epsilon", "mse", "mse_se", "mse_per_true_mode", "found", "missed", "branch_recall"),
    *("spurious", "coverage", "runs", "failures", "status"),
]
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
    """MSE against epsilon on log axes with standard errors; methods without privacy as dashed lines.

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
                    mode="lines+markers",
                    marker={"symbol": MARKS[i % 5], "size": 9, "color": NON_PRIVATE},  # the same n, the same mark
                    cliponaxis=False,
                    name=f"{_in_a_text(row['method'])}, n = {n:,} (not private)",
                    line={"color": NON_PRIVATE, "dash": "dash", "width": 2},
                    hovertemplate=_in_a_text(row["method"]) + f", n = {n:,}: MSE %{{y:.3g}}<extra></extra>",
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
    figure.update_yaxes(type="log", title="mean squared error (MSE)", dtick=_tick_step(table), tickformat=".4~g")
    sentence = _sentence(table, names, len(results), n_cells)
    shown = table[[name for name in COLUMNS if name in table]] if len(table) else table
    return Chart(plain_layout(figure, 420), sentence, shown)


def _tick_step(table: pd.DataFrame) -> str | int:
    """Ticks at 1, 2 and 5 of each decade where errors span few decades, else at decades."""
    errors = [value for value in table.get("mse", ()) if 0 < value < math.inf]
    return "D2" if errors and max(errors) < 100 * min(errors) else 1


def _title(cell: Cell) -> str:
    return method_title(cell.method, cell.options)


def _in_a_text(title: str) -> str:
    """A title within a sentence: "Mean shift" but "LOWESS"."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


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
    runs = str(int(table["runs"].max()))
    if len(plain) and plain["runs"].iloc[0] < private["runs"].max():
        runs += f" ({_in_a_text(plain['method'].iloc[0])} {int(plain['runs'].iloc[0])})"
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
    if "branch_recall" in private and len(names) == 1:
        found = [100 * float(value) for value in private["branch_recall"].iloc[[0, -1]]]
        text += f", and the share of branches found goes from {found[0]:.0f} % to {found[1]:.0f} %"
    text += f". Means of {runs} runs on fresh data, with standard errors."
    if done < n_cells:
        text += f" {done} of {n_cells} points so far."
    return text
