"""A score against one varied control, as in the paper's appendix figures (fig:bivariate_4mix_hparam and its kin)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.errors import SpecError
from dpgrams_core.figures.sensitivity_words import (
    default_value,
    none_is_best,
    not_made,
    value_words,
    varied_control,
)
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, short
from dpgrams_core.figures.tradeoff import DASHES, MARKS, method_title
from dpgrams_core.sweeps import Cell, CellResult, tidy

# What can be on the y axis: its name in words, and whether more is better.
SCORES = {
    "mse": ("MSE", False),
    "mse_per_true_mode": ("MSE per true mode", False),
    "missed": ("missed modes", False),
    "spurious": ("spurious modes", False),
    "found": ("modes found", True),
    "branch_recall": ("recall of branches", True),
    "coverage": ("coverage", True),
    "ari": ("ARI", True),
    "nmi": ("NMI", True),
    "centroid_mse": ("centroid MSE", False),
}
LOG_SCORES = ("mse", "mse_per_true_mode", "centroid_mse")
CONTROLS = {
    "clip_multiplier": "clip multiplier",
    "batch_size": "minibatch size m",
    "step_size": "step size η",
    "bandwidth": "bandwidth h",
    "bandwidth_scale": "bandwidth, as a multiple of its rule",
    "n_steps": "number of steps T",
    "n_starts": "number of starts k",
    "init_fraction": "share of ε for the start",
}
LOG_RATIO = 8.0  # values that span more than this are read on a log axis
MOST_TICKS = 8  # more values, such as shares of several n, get the axis's own ticks
MOST_BANDS = 3  # more bands over each other hide the curves
BAND_COLOURS = {PRIVATE: "rgba(227,108,10,0.13)", NON_PRIVATE: "rgba(0,114,178,0.13)"}

Line = tuple[str, int, float]  # method in words, n, epsilon


def control_title(name: str) -> str:
    """A control as people call it.

    >>> control_title("batch_size"), control_title("density_floor")
    ('minibatch size m', 'density floor')
    """
    return CONTROLS.get(name, name.replace("_", " "))


def checked_score(measure: str) -> tuple[str, bool]:
    """The measure in words, and whether more is better."""
    if measure not in SCORES:
        raise SpecError("measure", measure, "choose one of " + ", ".join(SCORES))
    return SCORES[measure]


def sensitivity_chart(results: Sequence[CellResult], cells: Sequence[Cell], measure: str = "mse") -> Chart:
    """A score against the varied control, one line for each method, n and epsilon of the sweep.

    ``cells`` are all that will come, so that the axis stands still.  Lines are means with standard errors; with up
    to three of them a band holds the middle 80 % of the runs.  A method that does not have the control is a level
    line.  A thin upright line marks the default of the control, where it is one number for the whole picture.  The
    axis is logarithmic where the values span a factor of eight.
    """
    words, better = checked_score(measure)
    control = varied_control(cells)
    lines = list(dict.fromkeys(_line(cell) for cell in cells if cell.varied))
    label = _labels(list(dict.fromkeys(_line(cell) for cell in cells)))
    values = list(dict.fromkeys(cell.value for cell in cells if cell.varied))
    numeric = all(isinstance(value, (int, float)) for value in values)
    logarithmic = numeric and min(values) > 0 and max(values) >= LOG_RATIO * min(values)
    figure = go.Figure()
    for number, line in enumerate(lines):
        mine = _points(results, line, measure)
        if not len(mine):
            continue
        mine = mine.sort_values("value") if numeric else mine.astype({"value": str})
        colour = PRIVATE if math.isfinite(line[2]) else NON_PRIVATE
        if len(lines) <= MOST_BANDS:
            figure.add_trace(_band(mine, measure, colour))
        figure.add_trace(_curve(mine, measure, label(line), colour, number))
    for result in results:
        if not result.cell.varied:
            figure.add_trace(_level(result, values, measure, label(_line(result.cell))))
    usual = default_value(cells)
    if usual is not None and numeric and min(values) <= usual <= max(values):
        _mark_default(figure, usual, logarithmic)
    axis = {"type": "log" if logarithmic else "linear" if numeric else "category"}
    figure.update_xaxes(title=control_title(control), **axis)
    if numeric and len(values) <= MOST_TICKS:
        figure.update_xaxes(tickvals=values, ticktext=[value_words(value) for value in values])
    scale: dict[str, Any] = {"type": "log", "tickformat": ".4~g"} if measure in LOG_SCORES else {"rangemode": "tozero"}
    figure.update_yaxes(title=f"{words} ({'more' if better else 'less'} is better)", **scale)
    sentence = _sentence(results, cells, lines, label, measure)
    return Chart(plain_layout(figure, 420), sentence, sensitivity_table(results, measure))


def _mark_default(figure: go.Figure, value: float, logarithmic: bool) -> None:
    figure.add_vline(x=value, line={"color": QUIET, "width": 1})
    figure.add_annotation(
        text="default",
        x=math.log10(value) if logarithmic else value,  # plotly wants the logarithm here, and not for the line
        y=1,
        yref="paper",
        yanchor="top",
        xanchor="left",
        showarrow=False,
    )


def sensitivity_table(results: Sequence[CellResult], measure: str) -> pd.DataFrame:
    """The columns that the picture shows, in the order of the sweep's own table."""
    table = tidy(results)
    shown = ["method", "n", "epsilon", "varied", "value", measure, f"{measure}_se", f"{measure}_q10", f"{measure}_q90"]
    return table[[name for name in (*shown, "runs", "failures", "status", "error") if name in table]]


def _line(cell: Cell) -> Line:
    """The line that a cell lies on; what is varied is not in its name, even where it is the calibration."""
    options = [item for item in cell.options if item[0] != cell.varied]
    return method_title(cell.method, options), cell.n, cell.epsilon


def _labels(lines: Sequence[Line]) -> Callable[[Line], str]:
    """Names that say only what differs between the lines, and the method always."""
    several_n = len({n for _, n, _ in lines}) > 1
    several_epsilon = len({epsilon for _, _, epsilon in lines if math.isfinite(epsilon)}) > 1

    def label(line: Line) -> str:
        name, n, epsilon = line
        parts = [name]
        if several_n:
            parts.append(f"n = {n:,}")
        if several_epsilon and math.isfinite(epsilon):
            parts.append(f"ε = {epsilon:g}")
        return ", ".join(parts) + ("" if math.isfinite(epsilon) else " (not private)")

    return label


def _points(results: Sequence[CellResult], line: Line, measure: str) -> pd.DataFrame:
    """The cells of one line so far; an infinite mean is a gap, not a point."""
    return pd.DataFrame(
        [
            {"value": result.cell.value, **result.row()}
            for result in results
            if result.cell.varied and _line(result.cell) == line and measure in result.scores
        ]
    )


def _band(mine: pd.DataFrame, measure: str, colour: str) -> go.Scatter:
    known = mine[(mine[f"{measure}_q90"] < math.inf)]
    x, low, high = (known[name].tolist() for name in ("value", f"{measure}_q10", f"{measure}_q90"))
    return go.Scatter(
        x=[*x, *x[::-1]],
        y=[*high, *low[::-1]],
        fill="toself",
        fillcolor=BAND_COLOURS[colour],
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        name="middle 80 % of runs",
        showlegend=False,
    )


def _curve(mine: pd.DataFrame, measure: str, name: str, colour: str, number: int) -> go.Scatter:
    return go.Scatter(
        x=mine["value"],
        y=mine[measure].where(mine[measure] < math.inf),
        error_y={"type": "data", "array": mine[f"{measure}_se"], "thickness": 1.5, "width": 4},
        mode="lines+markers",
        name=name,
        line={"color": colour, "dash": DASHES[number % 5]},
        marker={"symbol": MARKS[number % 5], "size": 9, "color": colour},
        hovertemplate=name + ", %{x}: %{y:.3g}<extra></extra>",
    )


def _level(result: CellResult, values: Sequence[Any], measure: str, name: str) -> go.Scatter:
    """A method that does not have the control: one mean for all values."""
    mean = result.row().get(measure, math.nan)
    private = math.isfinite(result.cell.epsilon)
    numbers = all(isinstance(value, (int, float)) for value in values)
    ends = [min(values), max(values)] if numbers else [str(values[0]), str(values[-1])]
    return go.Scatter(
        x=ends,
        y=[mean, mean],
        mode="lines",
        name=name,
        line={"color": PRIVATE if private else NON_PRIVATE, "dash": "dash", "width": 2},
        hovertemplate=name + ": %{y:.3g}<extra></extra>",
    )


def _sentence(
    results: Sequence[CellResult],
    cells: Sequence[Cell],
    lines: Sequence[Line],
    label: Callable[[Line], str],
    measure: str,
) -> str:
    """Best value of each line, and which others cannot be told from it."""
    words, better = checked_score(measure)
    control = control_title(varied_control(cells))
    parts = []
    for line in lines:
        mine = _points(results, line, measure)
        finite = mine[mine[measure] < math.inf] if len(mine) else mine
        if len(finite) < 2:
            continue
        ordered = finite.sort_values(measure, ascending=not better, kind="stable")
        best, worst = ordered.iloc[0], ordered.iloc[-1]
        spread = 2 * (finite[f"{measure}_se"] ** 2 + best[f"{measure}_se"] ** 2) ** 0.5
        near = finite[((finite[measure] - best[measure]).abs() <= spread) & (finite["value"] != best["value"])]
        at_best, at_worst = value_words(best["value"]), value_words(worst["value"])
        text = f"{label(line)}: mean {words} is best, {short(best[measure])}, at {at_best}, and worst, "
        text += f"{short(worst[measure])}, at {at_worst}"
        if len(near):
            text += f" (not told apart from the best: {', '.join(map(value_words, near['value']))})"
        if len(finite) < len(mine):
            text += "; ∞ at some values, where a run released nothing"
        parts.append(text)
    if not parts:
        return none_is_best(results, cells)
    so_far = f" {len(results)} of {len(cells)} points so far." if len(results) < len(cells) else ""
    runs = max(len(result.seconds) for result in results)
    head = f"{control[:1].upper()}{control[1:]} varied, all else held. "
    end = f". Means of {runs} runs on the same draws; values within two standard errors are not told apart."
    return head + ". ".join(parts) + end + not_made(results) + so_far
