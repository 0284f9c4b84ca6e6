"""Kernels against each other on the same bandwidth, a panel for each epsilon (fig:kernel_order_validation)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.errors import SpecError
from dpgrams_core.figures.sensitivity import LOG_SCORES, checked_score, sensitivity_table
from dpgrams_core.figures.sensitivity_words import none_is_best, not_made, varied_control
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, Chart, plain_layout
from dpgrams_core.figures.tradeoff import DASHES, MARKS
from dpgrams_core.kernels import KERNELS
from dpgrams_core.sweeps import Cell, CellResult


def kernel_chart(results: Sequence[CellResult], cells: Sequence[Cell], measure: str = "mse") -> Chart:
    """A score against n, one line a kernel and one panel an epsilon, with standard errors.

    The cells are those of a sweep with ``vary=("kernel", [...])`` of one method.  Every bandwidth rule reads n,
    epsilon and beta and no kernel, so the kernels of a panel share their bandwidth; the paper's rule is ``h_opt``.
    """
    words, better = checked_score(measure)
    if varied_control(cells) != "kernel":
        raise SpecError("vary", varied_control(cells), "this picture compares kernels; vary kernel")
    kernels = list(dict.fromkeys(cell.value for cell in cells if cell.varied))
    epsilons = sorted({cell.epsilon for cell in cells if cell.varied})
    sizes = sorted({cell.n for cell in cells})
    columns = min(2, len(epsilons))
    rows = -(-len(epsilons) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[f"ε = {epsilon:g}" for epsilon in epsilons],
        shared_xaxes=True,
        shared_yaxes="all",
        horizontal_spacing=0.06,
        vertical_spacing=0.28 / rows,
    )
    for place, epsilon in enumerate(epsilons):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        for number, kernel in enumerate(kernels):
            mine = _rows(results, measure, epsilon=epsilon, kernel=kernel)
            if len(mine):
                figure.add_trace(_curve(mine, measure, kernel, number, shown=place == 0), **where)
        plain = _rows(results, measure, epsilon=math.inf, kernel=None)
        if len(plain):
            figure.add_trace(_plain(plain, measure, shown=place == 0), **where)
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{n:,}" for n in sizes])
    for column in range(1, columns + 1):
        figure.update_xaxes(title="n", row=rows, col=column)
    scale: dict[str, Any] = (
        {"type": "log", "tickformat": ".4~g", "dtick": _tick_step(results, measure)}
        if measure in LOG_SCORES
        else {"rangemode": "tozero"}
    )
    figure.update_yaxes(**scale)
    figure.update_yaxes(title=f"{words} ({'more' if better else 'less'} is better)", col=1)
    plain_layout(figure, 260 * rows + 120)
    figure.update_layout(legend={"y": 1.12 if rows == 1 else 1.06}, margin={"t": 70})
    return Chart(figure, _sentence(results, cells, measure, epsilons), sensitivity_table(results, measure))


def _tick_step(results: Sequence[CellResult], measure: str) -> str | int:
    """Ticks at 1, 2 and 5 of each decade where the scores span few, else at decades."""
    means = [value for result in results if 0 < (value := result.row().get(measure, math.nan)) < math.inf]
    return "D2" if means and max(means) < 30 * min(means) else 1


def _rows(results: Sequence[CellResult], measure: str, *, epsilon: float, kernel: str | None) -> pd.DataFrame:
    """The cells of one line so far, in order of n."""
    found = [
        result.row()
        for result in results
        if result.cell.epsilon == epsilon
        and measure in result.scores
        and (not result.cell.varied if kernel is None else result.cell.varied and result.cell.value == kernel)
    ]
    return pd.DataFrame(found).sort_values("n") if found else pd.DataFrame()


def _curve(mine: pd.DataFrame, measure: str, kernel: str, number: int, *, shown: bool) -> go.Scatter:
    title = KERNELS[kernel].title
    return go.Scatter(
        x=mine["n"],
        y=mine[measure].where(mine[measure] < math.inf),
        error_y={"type": "data", "array": mine[f"{measure}_se"], "thickness": 1.5, "width": 4},
        mode="lines+markers",
        name=title,
        legendgroup=kernel,
        showlegend=shown,
        line={"color": PRIVATE, "dash": DASHES[2 * number % 5]},
        marker={"symbol": MARKS[number % 5] + ("-open" if number else ""), "size": 9, "color": PRIVATE},
        hovertemplate=title + ", n = %{x:,}: %{y:.3g}<extra></extra>",
    )


def _plain(plain: pd.DataFrame, measure: str, *, shown: bool) -> go.Scatter:
    return go.Scatter(
        x=plain["n"],
        y=plain[measure],
        mode="lines+markers",
        name="not private",
        legendgroup="not private",
        showlegend=shown,
        line={"color": NON_PRIVATE, "dash": "dash", "width": 2},
        marker={"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": NON_PRIVATE}},
        hovertemplate="not private, n = %{x:,}: %{y:.3g}<extra></extra>",
    )


def _sentence(results: Sequence[CellResult], cells: Sequence[Cell], measure: str, epsilons: Sequence[float]) -> str:
    """In how many settings which kernel is better by more than two standard errors."""
    words, better = checked_score(measure)
    wins: dict[str, int] = {}
    settings = 0
    for epsilon in epsilons:
        mine = [item for item in results if item.cell.epsilon == epsilon and item.cell.varied and item.complete]
        for n in sorted({item.cell.n for item in mine}):
            here = [(item.row(), item.cell.value) for item in mine if item.cell.n == n and measure in item.scores]
            here.sort(key=lambda item: item[0][measure], reverse=better)
            if len(here) < 2:
                continue
            settings += 1
            (first, kernel), (second, _) = here[0], here[1]
            spread = math.hypot(first[f"{measure}_se"], second[f"{measure}_se"])
            if abs(first[measure] - second[measure]) > 2 * spread:
                wins[kernel] = wins.get(kernel, 0) + 1
    so_far = "" if len(results) >= len(cells) else f" {len(results)} of {len(cells)} points so far."
    names = dict.fromkeys(cell.value for cell in cells if cell.varied)
    if not settings:
        one = "There is one kernel only, so nothing is compared."
        return one if len(names) == 1 and results else none_is_best(results, cells)
    lead = "better" if len(names) == 2 else "best"
    parts = [f"{KERNELS[name].title} has the {lead} {words} in {wins.get(name, 0)}" for name in names]
    told = sum(wins.values())
    runs = max(len(item.seconds) for item in results)
    return (
        f"Of {settings} {'setting' if settings == 1 else 'settings'} of n and ε, {', '.join(parts)}, and in "
        f"{settings - told} the best two are within two standard errors. Same draws and same bandwidth for all "
        f"kernels; means of {runs} runs with standard errors.{not_made(results)}{so_far}"
    )
