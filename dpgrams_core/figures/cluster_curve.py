"""Scores of clusterings against epsilon, from the cells of a sweep that are there so far."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets import DATASETS
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, short
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.paper import PAPER_TABLES
from dpgrams_core.sweeps import Cell, CellResult

# What can be on the axis: its name in a score, in words, and whether more is better.
MEASURES = {
    "ari": ("ARI", True),
    "nmi": ("NMI", True),
    "centroid_mse": ("centroid MSE", False),
}
PLAIN_DASHES = ("dash", "dot")
COLUMNS = ("method", "n", "epsilon", "ari", "ari_se", "nmi", "nmi_se", "centroid_mse", "centroid_mse_se")


def cluster_curve_chart(
    results: Sequence[CellResult], cells: Sequence[Cell], measure: str, current_epsilon: float
) -> Chart:
    """One score against epsilon, with standard errors; methods without privacy as dashed lines.

    ``cells`` are all that will come, so that the axis stands still while the curve fills in.  The first private
    method has full marks, the second open ones and a dashed line.  Grey marks are what the paper prints.
    """
    words, better = MEASURES[measure]
    epsilons = sorted({cell.epsilon for cell in cells if math.isfinite(cell.epsilon)})
    ends = (epsilons[0] / 1.2, epsilons[-1] * 1.2)
    table = pd.DataFrame([{**result.row(), "method": _title(result.cell)} for result in results])
    figure = go.Figure()
    for trace in [*_plain(table, cells, measure, ends), *_private(table, cells, measure), *_printed(cells, measure)]:
        figure.add_trace(trace)
    if ends[0] <= current_epsilon <= ends[1]:
        figure.add_vline(x=current_epsilon, line={"color": PRIVATE, "width": 1, "dash": "dot"})
        figure.add_annotation(
            text=f"your ε = {current_epsilon:g}",
            x=math.log10(current_epsilon),  # plotly wants the logarithm here, and here only
            y=0,
            yref="paper",
            yanchor="bottom",
            xanchor="right" if current_epsilon > math.sqrt(ends[0] * ends[1]) else "left",
            showarrow=False,
        )
    figure.update_xaxes(
        type="log",
        title="ε (stronger privacy on the left)",
        range=[math.log10(value) for value in ends],
        tickvals=epsilons,
        ticktext=[f"{value:g}" for value in epsilons],
    )
    title = f"{words} ({'more' if better else 'less'} is better)"
    scale: dict[str, Any] = {"rangemode": "tozero"} if better else {"type": "log", "tickformat": ".4~g"}
    figure.update_yaxes(title=title, **scale)
    plain_layout(figure, 440)
    shown = table[[*[name for name in COLUMNS if name in table], "runs", "failures", "status"]] if len(table) else table
    return Chart(figure, curve_sentence(table, cells, measure, current_epsilon), shown)


def curve_sentence(table: pd.DataFrame, cells: Sequence[Cell], measure: str, current_epsilon: float) -> str:
    """Which private method is better at the epsilon on the curve that is nearest to the chosen one."""
    words, better = MEASURES[measure]
    done, total = len(table), len(cells)
    so_far = f"{done} of {total} points so far."
    private = table[table["epsilon"] < math.inf] if done else table
    if not len(private):
        return so_far
    at = min(private["epsilon"], key=lambda value: abs(math.log(value / current_epsilon)))
    here = private[private["epsilon"] == at].sort_values(measure, ascending=not better, kind="stable")
    parts = [f"{row['method']} {_with_error(row, measure)}" for _, row in here.iterrows()]
    plain = table[table["epsilon"] == math.inf]
    parts += [f"{row['method']} {short(row[measure])} without privacy" for _, row in plain.iterrows()]
    text = f"Mean {words} at ε = {at:g}: {', '.join(parts)}."
    if len(here) > 1:
        first, second = here.iloc[0], here.iloc[1]
        spread = math.hypot(first[f"{measure}_se"], second[f"{measure}_se"])  # nan with one run: then no verdict
        gap = abs(first[measure] - second[measure])
        if gap > 2 * spread:
            text += f" {first['method']} wins there."
        elif gap <= 2 * spread:
            text += " Within two standard errors, neither wins there."
    runs = sorted({int(value) for value in private["runs"]})
    text += f" Means over {runs[-1]} {'run' if runs[-1] == 1 else 'runs'}"
    same = same_records(cells[0].dataset, cells[0].n)
    text += " of the noise on the same records." if same else " on fresh draws of the records."
    failed = int(table["failures"].sum())
    if failed:
        text += f" {failed} {'run' if failed == 1 else 'runs'} could not be made and are left out."
    return text if done == total else f"{text} {so_far}"


def same_records(dataset: str, n: int) -> bool:
    """Whether every draw of n records is the same: all records of a real data set, never of a synthetic twin.

    >>> same_records("digits", 1797), same_records("digits", 500), same_records("blobs", 1000)
    (True, False, False)
    """
    info = DATASETS[dataset]
    return dataset != "blobs" and info.draw is None and n == info.default_n


@lru_cache(maxsize=1)
def _paper() -> Any:
    return json.loads(PAPER_TABLES.read_text())


def printed_scores(dataset: str, n: int, measure: str) -> list[tuple[float, float]]:
    """What the paper prints for its DP-GRAMS-C at this n: (epsilon, mean); real data are printed whole only.

    >>> printed_scores("digits", 1797, "ari")[0]
    (0.25, 0.384)
    >>> printed_scores("iris", 150, "ari")
    []
    """
    rows = _paper().get(f"clustering_{dataset}", {"rows": []})["rows"]
    whole = DATASETS[dataset].default_n
    return [(row["epsilon"], row["dp_grams_c"][measure]["mean"]) for row in rows if row.get("n", whole) == n]


def _title(cell: Cell) -> str:
    return method_title(cell.method, cell.options)


def _with_error(row: pd.Series, measure: str) -> str:
    error = row[f"{measure}_se"]
    return short(row[measure]) + (f" ± {error:.2g}" if error == error else "")


def _plain(table: pd.DataFrame, cells: Sequence[Cell], measure: str, ends: tuple[float, float]) -> list[go.Scatter]:
    """The methods without privacy, each a level line."""
    names = list(dict.fromkeys(_title(cell) for cell in cells if not math.isfinite(cell.epsilon)))
    found = []
    for _, row in table[table["epsilon"] == math.inf].iterrows() if len(table) else ():
        found.append(
            go.Scatter(
                x=list(ends),
                y=[row[measure]] * 2,
                mode="lines",
                name=f"{row['method']} (not private)",
                line={"color": NON_PRIVATE, "dash": PLAIN_DASHES[names.index(row["method"]) % 2], "width": 2},
                hovertemplate=row["method"] + ": %{y:.3g}<extra></extra>",
            )
        )
    return found


def _private(table: pd.DataFrame, cells: Sequence[Cell], measure: str) -> list[go.Scatter]:
    """The private methods in the order of the cells, so that each keeps its look while the curve fills in."""
    found = []
    names = dict.fromkeys(_title(cell) for cell in cells if math.isfinite(cell.epsilon))
    for number, name in enumerate(names if len(table) else ()):
        mine = table[(table["method"] == name) & (table["epsilon"] < math.inf)].sort_values("epsilon")
        if not len(mine):
            continue
        found.append(
            go.Scatter(
                x=mine["epsilon"],
                y=mine[measure].where(mine[measure] < math.inf),  # no centre in some run: a gap, not a point
                error_y={"type": "data", "array": mine[f"{measure}_se"], "thickness": 1.5, "width": 4},
                mode="lines+markers",
                name=f"{name} ({mine['status'].iloc[0]})",
                line={"color": PRIVATE, "dash": "dash" if number else "solid"},
                marker={
                    "symbol": "square-open" if number else "circle",
                    "size": 9,
                    "color": PRIVATE,
                    "line": {"width": 2 if number else 0},
                },
                hovertemplate=name + ", ε = %{x:g}: %{y:.3g}<extra></extra>",
            )
        )
    return found


def _printed(cells: Sequence[Cell], measure: str) -> list[go.Scatter]:
    """The paper's own numbers, as small grey marks."""
    points = printed_scores(cells[0].dataset, cells[0].n, measure)
    if not points:
        return []
    return [
        go.Scatter(
            x=[epsilon for epsilon, _ in points],
            y=[value for _, value in points],
            mode="markers",
            name="DP-GRAMS-C as the paper prints it",
            marker={"symbol": "triangle-down", "size": 9, "color": QUIET},
            hovertemplate="printed in the paper, ε = %{x:g}: %{y:.3g}<extra></extra>",
        )
    ]
