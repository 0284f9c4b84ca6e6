"""Ours over the printed value, a row for each cell of a printed table and a mark for each method."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets import DATASETS
from dpgrams_core.experiments import Column, Experiment
from dpgrams_core.figures.paper_standing import column_title, measure_words, standings, statuses_of
from dpgrams_core.figures.sensitivity import LOG_SCORES
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, short
from dpgrams_core.guarantees import bare_status
from dpgrams_core.methods import METHODS

# On each side the axis ends at the first of these factors that holds most of its marks; the rest stand at its edge.
EDGES = (3.0, 10.0, 30.0, 100.0, 1_000.0)
MOST = 0.9
TICKS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
ROW_HEIGHT = 23
# A proven method has a full mark, any other private one an open mark, a method without privacy a cross.
FULL: tuple[str, ...] = ("circle", "diamond", "square", "triangle-up")
OPEN: tuple[str, ...] = ("square-open", "triangle-up-open", "pentagon-open", "hexagon-open", "star-open")
CROSSES: tuple[str, ...] = ("x-thin", "cross-thin", "asterisk")

Ends = tuple[float, float]  # of the axis of ratios


def ratio_chart(experiment: Experiment, table: pd.DataFrame, measure: str) -> Chart:
    """Ours over printed on a log axis with the line at 1; a measure without such a ratio is drawn as it is.

    ``table`` holds the rows of one printed table, from ``judged``.
    """
    here = table[table["measure"] == measure]
    printed = bool(here["ratio"].notna().any())
    places = list(dict.fromkeys(zip(here["dataset"], here["n"], here["epsilon"], strict=True)))
    names = dict(zip(places, _place_names(places), strict=True))
    ends = _ends(here["ratio"].dropna().tolist()) if printed else None
    figure = go.Figure()
    for column, mark in _marks(experiment, here):
        mine = here[here["column"] == column.name]
        mine = mine[(mine["ratio"] if printed else mine["ours"]).notna()]
        if len(mine):
            rows = [names[key] for key in zip(mine["dataset"], mine["n"], mine["epsilon"], strict=True)]
            figure.add_trace(_trace(column, mine, rows, mark, ends))
    _axes(figure, measure, ends, list(names.values()))
    return Chart(figure, _sentence(experiment, here, measure, ends), chart_table(here))


def chart_table(here: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the chart, in the order in which they are read."""
    order = ["dataset", "n", "epsilon", "column", "status", "measure", "printed", "printed_se", "ours", "se"]
    return here[[*order, "ratio", "ahead", "clear", "runs", "failures"]].reset_index(drop=True)


def _marks(experiment: Experiment, here: pd.DataFrame) -> list[tuple[Column, str]]:
    """The columns that have rows, and their marks; the last drawn lies on top, so the first column comes last."""
    counts = {"full": 0, "open": 0, "plain": 0}
    found = []
    for column in experiment.columns:
        if not (here["column"] == column.name).any():
            continue
        if not METHODS[column.method].private:
            kind, marks = "plain", CROSSES
        elif {bare_status(words) for words in statuses_of(here, column.name)} == {"proven"}:
            kind, marks = "full", FULL
        else:
            kind, marks = "open", OPEN
        found.append((column, marks[counts[kind] % len(marks)]))
        counts[kind] += 1
    return found[::-1]


def _place_names(places: list[tuple[str, int, float]]) -> list[str]:
    """What tells the rows apart: n and epsilon, or the data set where each has one row."""
    if len({dataset for dataset, _, _ in places}) > 1:
        return [DATASETS[dataset].title for dataset, _, _ in places]
    if len({n for _, n, _ in places}) == 1:
        return [f"ε = {epsilon:g}" for _, _, epsilon in places]
    return [f"n = {n:,}, ε = {epsilon:g}" for _, n, epsilon in places]


def _ends(ratios: list[float]) -> Ends:
    """Where the axis ends, below and above 1."""
    low = _edge([1 / ratio if ratio > 0 else math.inf for ratio in ratios if ratio < 1])
    return 1 / low, _edge([ratio for ratio in ratios if ratio > 1])


def _edge(factors: list[float]) -> float:
    return next((edge for edge in EDGES if sum(factor < edge for factor in factors) >= MOST * len(factors)), EDGES[-1])


def _beyond(ratio: float, ends: Ends) -> bool:
    return not ends[0] < ratio < ends[1]


def _trace(column: Column, mine: pd.DataFrame, rows: list[str], mark: str, ends: Ends | None) -> go.Scatter:
    """The marks of one column: ratios up to the ends of the axis, or the values themselves where it has none."""
    private = METHODS[column.method].private
    colour = PRIVATE if private else NON_PRIVATE
    title = column_title(column)
    places = [min(max(ratio, ends[0]), ends[1]) for ratio in mine["ratio"]] if ends else mine["ours"].tolist()
    spreads = (mine["se"] / mine["printed"] if ends else mine["se"]).tolist()
    # A mark at the edge stands for something beyond it, so it has no whisker; on a log axis none reaches 0.
    known = [
        0.0 if spread != spread or (ends and _beyond(place, ends)) else spread
        for spread, place in zip(spreads, places, strict=True)
    ]
    return go.Scatter(
        x=places,
        y=rows,
        mode="markers",
        name=title if private else f"{title} (not private)",
        marker={"symbol": mark, "size": 11, "color": colour, "line": {"width": 2, "color": colour}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": known,
            "arrayminus": [min(spread, 0.98 * abs(place)) for spread, place in zip(known, places, strict=True)],
            "thickness": 1.2,
            "width": 0,
            "color": colour,
        },
        customdata=[_hover(row) for row in mine.to_dict("records")],
        hovertemplate=title + ", %{y}: %{customdata}<extra></extra>",
    )


def _hover(row: dict[Any, Any]) -> str:
    printed = "" if math.isnan(row["printed"]) else f", printed {short(row['printed'])}, ratio {short(row['ratio'])}"
    return f"ours {short(row['ours'])}{printed}"


def _axes(figure: go.Figure, measure: str, ends: Ends | None, rows: list[str]) -> None:
    words, more = measure_words(measure)
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=rows[::-1], automargin=True)
    better = "more" if more else "less"
    if ends:
        low, high = (math.log10(end) for end in ends)
        room = 0.03 * (high - low)
        inner = [tick for tick in TICKS if not _beyond(tick, ends)]
        figure.update_xaxes(
            type="log",
            range=[low - room, high + room],
            tickvals=[ends[0], *inner, ends[1]],
            ticktext=[f"≤ {ends[0]:.1g}", *(f"{tick:g}" for tick in inner), f"≥ {ends[1]:,g}"],
            title=f"{words}, ours over printed (log; {better} is better)",
        )
        figure.add_vline(x=1, line={"color": QUIET, "width": 3})
        # The shade tells the better side without a colour that means something.
        side = (1, 10 ** (high + room)) if more else (10 ** (low - room), 1)
        figure.add_vrect(x0=side[0], x1=side[1], fillcolor="rgba(128,134,145,0.12)", line_width=0, layer="below")
    else:
        scale = {"type": "log", "tickformat": ".4~g"} if measure in LOG_SCORES else {"rangemode": "tozero"}
        figure.update_xaxes(title=f"{words} ({better} is better)", **scale)
    plain_layout(figure, max(260, ROW_HEIGHT * len(rows) + 150))
    figure.update_layout(legend={"y": 1.01, "traceorder": "reversed"})


def _sentence(experiment: Experiment, here: pd.DataFrame, measure: str, ends: Ends | None) -> str:
    words, more = measure_words(measure)
    runs = sorted(set(here[here["runs"] > 0]["runs"]))
    if not runs:
        return "No run of ours succeeded here, so there is nothing to compare."
    means = f"Ours are means of {' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs"
    if ends is None:
        why = f"The paper prints no {words}."
        if here["printed"].notna().any():
            why = f"The {words} of ours and the printed one are not on one scale, so they are not compared."
        return f"{why} {means}; {'more' if more else 'less'} is better."
    side = "above" if more else "below"
    parts = [
        f"{item.title} ({' or '.join(item.statuses) or 'no run'}) in {item.ahead} of {item.cells} cells"
        + (f", {item.clear} of them by more than two standard errors" if item.ahead and item.judged else "")
        for item in standings(experiment, here, measure)
    ]
    margin = f" minus {experiment.margin:g}" if experiment.margin and measure == experiment.measures[0] else ""
    text = f"In {words}, ours is at or {side} the printed {experiment.title} value{margin}: {'; '.join(parts)}."
    if not parts:
        text = f"No column of ours stands beside a printed {words} here."
    text += f" The shaded side is where ours is better. {means}; whiskers are standard errors of ours."
    beyond = sum(_beyond(ratio, ends) for ratio in here["ratio"].dropna())
    if beyond:
        text += (
            f" {beyond} {'mark' if beyond == 1 else 'marks'} at an edge may lie beyond it; the table has the ratios."
        )
    return text
