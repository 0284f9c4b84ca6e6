"""Ours over the printed value, a row for each cell of a printed table and a mark for each method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.figures.curve import method_title, whiskers
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, SHADE, Chart, plain_layout, score_scale
from dpgrams_core.figures.traces import points
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.format import short
from dpgrams_core.model.guarantee import bare_status
from dpgrams_core.studies.paper.experiments import Column, Experiment
from dpgrams_core.studies.paper.reproduce import comparison
from dpgrams_core.studies.paper.tables import ONE_RUN
from dpgrams_core.sweeps.cell import CellResult

# On each side the axis ends at the first of these factors that holds most of its marks; the rest stand at its edge.
EDGES = (3.0, 10.0, 30.0, 100.0, 1_000.0)
MOST = 0.9
TICKS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)
ROW_HEIGHT = 23
# A proven method has a full mark, any other private one an open mark, a method without privacy a cross.
SYMBOLS = {
    "proven": ("circle", "diamond", "square", "triangle-up"),
    "private": ("square-open", "triangle-up-open", "pentagon-open", "hexagon-open", "star-open"),
    "plain": ("x-thin", "cross-thin", "asterisk"),
}

Ends = tuple[float, float]  # of the axis of ratios


def ratio_chart(experiment: Experiment, table: pd.DataFrame, measure: str) -> Chart:
    """Ours over printed on a log axis with the line at 1; a measure without such a ratio is drawn as it is.

    ``table`` holds the rows of one printed table, from ``judged``.
    """
    here = table[table["measure"] == measure]
    scored, ratios = experiment.measure(measure), here["ratio"].dropna().tolist()
    places = list(zip(here["dataset"], here["n"], here["epsilon"], strict=True))
    names = _place_names(places)
    ends = _ends(ratios) if ratios else None
    figure = go.Figure()
    for column, mark in _marks(experiment, here):
        mine = (here["column"] == column.name) & here["ratio" if ends else "ours"].notna()
        if mine.any():
            rows = [name for name, drawn in zip(names, mine, strict=True) if drawn]
            figure.add_trace(_trace(column, here[mine], rows, mark, ends))
    rows = list(dict.fromkeys(names))
    x_axis = {"title": scored.axis, **score_scale(scored)}
    if ends:
        low, high = (math.log10(end) for end in ends)
        room = 0.03 * (high - low)
        inner = [tick for tick in TICKS if not _beyond(tick, ends)]
        x_axis = {
            "type": "log",
            "range": [low - room, high + room],
            "tickvals": [ends[0], *inner, ends[1]],
            "ticktext": [f"≤ {short(ends[0])}", *(short(tick) for tick in inner), f"≥ {short(ends[1])}"],
            "title": f"{scored.title}, ours over printed (log; {scored.better} is better)",
        }
        figure.add_vline(x=1, line={"color": QUIET, "width": 3})
        # The shade tells the better side without a colour that means something.
        side = (1, 10 ** (high + room)) if scored.more_is_better else (10 ** (low - room), 1)
        figure.add_vrect(x0=side[0], x1=side[1], fillcolor=SHADE, line_width=0, layer="below")
    y_axis = {"type": "category", "categoryorder": "array", "categoryarray": rows[::-1], "automargin": True}
    # On a narrow screen the legend has a line for each column.
    plain_layout(figure, max(260, ROW_HEIGHT * (len(rows) + len(figure.data)) + 100), x_axis, y_axis)
    figure.update_layout(legend={"y": 1.01})
    order = ["dataset", "n", "epsilon", "column", "status", "measure", "printed", "printed_se", "ours", "se"]
    shown = here[[*order, "ratio", "ahead", "clear", "runs", "failures"]].reset_index(drop=True)
    return Chart(figure, _sentence(experiment, here, measure, ends), shown)


def _marks(experiment: Experiment, here: pd.DataFrame) -> list[tuple[Column, str]]:
    """The columns that have rows, and their marks; the last drawn lies on top, so the proven ones come late."""
    marks = {kind: cycle(symbols) for kind, symbols in SYMBOLS.items()}
    found = []
    for column in experiment.columns:
        if (here["column"] == column.name).any():
            proven = {bare_status(words) for words in statuses_of(here, column.name)} == {"proven"}
            kind = "plain" if not METHODS[column.method].private else "proven" if proven else "private"
            found.append((column, next(marks[kind])))
    return found


def _place_names(places: list[tuple[str, int, float]]) -> list[str]:
    """What tells the rows apart: n and epsilon, or the data set where each has one row."""
    if len({dataset for dataset, _, _ in places}) > 1:
        return [DATASETS[dataset].title for dataset, _, _ in places]
    if len({n for _, n, _ in places}) == 1:
        return [f"ε = {short(epsilon)}" for _, _, epsilon in places]
    return [f"n = {n:,}, ε = {short(epsilon)}" for _, n, epsilon in places]


def _ends(ratios: list[float]) -> Ends:
    """Where the axis ends, below and above 1."""
    below = [1 / ratio if ratio > 0 else math.inf for ratio in ratios if ratio < 1]
    low, high = (
        next((edge for edge in EDGES if sum(factor < edge for factor in factors) >= MOST * len(factors)), EDGES[-1])
        for factors in (below, [ratio for ratio in ratios if ratio > 1])
    )
    return 1 / low, high


def _beyond(ratio: float, ends: Ends) -> bool:
    return not ends[0] < ratio < ends[1]


def _trace(column: Column, mine: pd.DataFrame, rows: list[str], mark: str, ends: Ends | None) -> go.Scatter:
    """The marks of one column: ratios up to the ends of the axis, or the values themselves where it has none."""
    private, title = METHODS[column.method].private, column_title(column)
    colour = PRIVATE if private else NON_PRIVATE
    places = mine["ratio"].clip(*ends) if ends else mine["ours"]
    spreads = (mine["se"] / mine["printed"] if ends else mine["se"]).fillna(0.0)
    if ends:  # a mark at the edge stands for something beyond it, so it has no whisker
        spreads = spreads.where((places > ends[0]) & (places < ends[1]), 0.0)
    below = np.minimum(spreads, 0.98 * places.abs())  # on a log axis none reaches 0
    bars = {"arrayminus": below.tolist(), "symmetric": False, "thickness": 1.2, "width": 0, "color": colour}

    def hover(row: dict[Any, Any]) -> str:
        printed = f", printed {short(row['printed'])}, ratio {short(row['ratio'])}"
        return f"ours {short(row['ours'])}" + ("" if math.isnan(row["printed"]) else printed)

    return points(
        (places.tolist(), rows),
        title if private else f"{title} (not private)",
        {"symbol": mark, "size": 11, "color": colour, "line": {"width": 2, "color": colour}},
        title + ", %{y}: %{customdata}",
        error_x=whiskers(spreads.tolist(), **bars),
        customdata=[hover(row) for row in mine.to_dict("records")],
    )


def _sentence(experiment: Experiment, here: pd.DataFrame, measure: str, ends: Ends | None) -> str:
    scored = experiment.measure(measure)
    words = scored.title
    runs = sorted(set(here[here["runs"] > 0]["runs"]))
    if not runs:
        return "No run of ours succeeded here, so there is nothing to compare."
    means = f"Ours are means of {' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs"
    if ends is None:
        why = f"The paper prints no {words}."
        if here["printed"].notna().any():
            why = f"The {words} of ours and the printed one are not on one scale, so they are not compared."
        return f"{why} {means}; {scored.better} is better."
    side = "above" if scored.more_is_better else "below"
    parts = [
        f"{item.title} ({' or '.join(item.statuses) or 'no run'}) in {item.ahead} of {item.cells} cells"
        + (f", {item.clear} of them by more than two standard errors" if item.ahead and item.judged else "")
        for item in standings(experiment, here, measure)
    ]
    margin = f" minus {short(experiment.margin)}" if experiment.margin and measure == experiment.measures[0] else ""
    text = f"In {words}, ours is at or {side} the printed {experiment.title} value{margin}: {'; '.join(parts)}."
    if not parts:
        text = f"No column of ours stands beside a printed {words} here."
    text += f" The shaded side is where ours is better. {means}; whiskers are standard errors of ours."
    if beyond := sum(_beyond(ratio, ends) for ratio in here["ratio"].dropna()):
        marks = "mark" if beyond == 1 else "marks"
        text += f" {beyond} {marks} at an edge may lie beyond it; the table has the ratios."
    return text


# Who is ahead, ours or the printed value: judged cell by cell and counted column by column.

CLEAR = 2.0  # standard errors between two means that are told apart
# Ours is measured in 50 principal components of the genes, the printed error in all genes: ours would look too good.
OTHER_SCALE = (("rnaseq", "centroid_mse"),)
# All printed runs share one draw of synthetic data (the printed mean shift of the modes has standard error 0 at every
# n), so the printed standard errors hold the noise and not the draw: they cannot say who is clearly ahead.
ONE_DRAW = ("modes_four_corners", "modes_t_mixture", "clustering_blobs")


@dataclass(frozen=True)
class Standing:
    """In how many printed cells a column of ours is at least as good, and in how many of them clearly so."""

    column: Column
    statuses: tuple[str, ...]  # with their conditions; on several data sets there may be several
    ahead: int
    clear: int
    judged: int  # cells in which the printed standard error can say "clearly"
    cells: int
    missing: int  # printed cells of which no run of ours succeeded

    @property
    def title(self) -> str:
        """The column as people call it."""
        return column_title(self.column)


def column_title(column: Column) -> str:
    """A column of ours as people call it."""
    known = f"{METHODS[column.method].title} as run"
    return column.title or (known if column.design else method_title(column.method, column.options.items()))


def judged(experiment: Experiment, results: Sequence[tuple[str, CellResult]]) -> pd.DataFrame:
    """The comparison with the printed values, and for every measure: ratio, ahead and clear.

    ``ratio`` is ours over printed.  ``ahead`` says whether ours is at least as good; the margin of an experiment
    counts for its first measure only.  ``clear`` says whether the means are more than two standard errors of their
    difference apart; without both standard errors nobody can say so, and where the printed one leaves out the draw
    of the data it is None.  Where nothing is printed, or no run of ours succeeded, ``ahead`` and ``clear`` are None;
    where the two are not on one scale, there is no ratio either.
    """
    table = comparison(experiment, results)
    if table.empty:
        return table
    table["ratio"] = table["ours"] / table["printed"].where(table["printed"] != 0)
    other = [place in OTHER_SCALE for place in zip(table["dataset"], table["measure"], strict=True)]
    table.loc[other, "ratio"] = math.nan
    marks = [_mark(experiment, row) for row in table.to_dict("records")]
    table["ahead"], table["clear"] = ([pair[place] for pair in marks] for place in (0, 1))
    return table.astype({"ahead": object, "clear": object})


def _mark(experiment: Experiment, row: dict[Any, Any]) -> tuple[bool | None, bool | None]:
    ours, printed, measure = row["ours"], row["printed"], row["measure"]
    if math.isnan(ours) or math.isnan(printed) or (row["dataset"], measure) in OTHER_SCALE:
        return None, None
    first = measure == experiment.measures[0]
    scored = experiment.measure(measure)
    ahead = experiment.as_good(ours, printed) if first else scored.at_least_as_good(ours, printed)
    if math.isinf(ours):
        return bool(ahead), True
    if row["table"] in ONE_DRAW and measure != "seconds":
        return bool(ahead), None
    # A value within the margin counts as ahead, and never clearly so if it is the worse one.
    lead = (ours - printed) * (1 if scored.more_is_better else -1) * (1 if ahead else -1)
    return bool(ahead), bool(lead > CLEAR * math.hypot(row["se"], row["printed_se"]))


def same_within_errors(row: Mapping[Any, Any]) -> bool:
    """Whether ours and the printed mean are at most two standard errors of their difference apart."""
    return bool(abs(row["ours"] - row["printed"]) <= CLEAR * math.hypot(row["se"], row["printed_se"]))


@dataclass(frozen=True)
class Repetition:
    """A column of the paper's own runs, again: in how many cells it is the printed one, to the digit or nearly."""

    column: Column
    equal: int  # mean and standard error, in every printed digit
    near: int  # within two standard errors, the equal ones among them
    cells: int

    @property
    def words(self) -> str:
        """The counts in a few words."""
        same = f"{self.equal} of {self.cells} to the digit"
        return same if self.equal == self.cells else f"{same}, {self.near} within two standard errors"


def repetitions(experiment: Experiment, table: pd.DataFrame) -> list[Repetition]:
    """Every column with the records and seeds of the paper, counted by the first measure, without the single runs."""
    found = []
    for column in (item for item in experiment.columns if item.design and len(table)):
        mine = table[(table["column"] == column.name) & (table["measure"] == experiment.measures[0])]
        mine = mine[mine["printed"].notna() & (mine["table"] != ONE_RUN)]
        rows, equal = mine.to_dict("records"), mine["equal"].astype(bool)
        near = sum(same or same_within_errors(row) for same, row in zip(equal, rows, strict=True))
        found += [Repetition(column, int(equal.sum()), int(near), len(rows))] if rows else []
    return found


def statuses_of(table: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Each status that the guarantee of a column has; of runs that succeeded, since a failed one has none."""
    mine = table[(table["column"] == column) & (table["runs"] > 0)]
    return tuple(map(str, dict.fromkeys(mine["status"])))


def standings(experiment: Experiment, table: pd.DataFrame, measure: str = "") -> list[Standing]:
    """Every column that stands in for the paper's private method, counted; without the table of single runs
    unless it is the only one."""
    if table.empty:
        return []
    wanted = measure or experiment.measures[0]
    here = table[(table["measure"] == wanted) & table["printed"].notna()]
    if here["table"].nunique() > 1:
        here = here[here["table"] != ONE_RUN]
    found = []
    for column in experiment.rivals:
        mine = here[here["column"] == column.name]
        known = mine[mine["ahead"].notna()]
        ahead = known["ahead"].astype(bool)
        if len(mine):
            found.append(
                Standing(
                    column,
                    statuses_of(table, column.name),
                    ahead=int(ahead.sum()),
                    clear=int((ahead & known["clear"].eq(True)).sum()),
                    judged=int(known["clear"].notna().sum()),
                    cells=len(known),
                    missing=len(mine) - len(known),
                )
            )
    return found
