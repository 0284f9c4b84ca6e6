"""A user's own data in three to six columns: one panel for each pair of columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.figures.own_data import Units, reading_table, sentence_of
from dpgrams_core.figures.style import PRIVATE_MARK, Chart, plain_layout
from dpgrams_core.readings import Reading

Array = np.ndarray
TWIN = "rgba(227,108,10,0.35)"
MOST_TWIN = 700


def pair_panels(units: Units, inner: Array, reading: Reading, twin: Array | None, regions: bool = False) -> Chart:
    """Three or more columns: modes or centres in every pair of them, over synthetic records drawn from the release."""
    figure = panels_figure(units)
    pairs = list(combinations(range(len(units.columns)), 2))
    places = units.to_user(reading.places, inner)
    synthetic = units.to_user(twin[:MOST_TWIN], inner) if twin is not None else np.empty((0, len(units.columns)))
    for number, (i, j) in enumerate(pairs):
        axes = panel_axes(number)
        figure.add_trace(
            go.Scatter(
                x=synthetic[:, i],
                y=synthetic[:, j],
                mode="markers",
                marker={"size": 3, "color": TWIN},
                name="synthetic twin (drawn from the release)",
                legendgroup="twin",
                showlegend=number == 0,
                hoverinfo="skip",
                **axes,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=places[:, i],
                y=places[:, j],
                mode="markers+text",
                marker={**PRIVATE_MARK, "size": 18},
                text=[str(k) for k in range(1, len(places) + 1)],
                textfont={"size": 11, "color": "white"},
                name="centres" if regions else "modes",
                legendgroup="modes",
                showlegend=number == 0,
                hovertemplate="%{text}: (%{x:.4g}, %{y:.4g})<extra></extra>",
                **axes,
            )
        )
    table = reading_table(units, reading, inner, "cluster" if regions else "mode")
    sentence = (
        sentence_of(reading, regions, "density")
        + " Each panel shows two of the columns; numbers are the rows of the table."
    )
    return Chart(figure, sentence, table)


def panels_figure(units: Units) -> go.Figure:
    """Empty panels for all pairs of columns."""
    pairs = list(combinations(range(len(units.columns)), 2))
    wide = min(3, len(pairs))
    rows = -(-len(pairs) // wide)
    figure = make_subplots(rows, wide, horizontal_spacing=0.11, vertical_spacing=0.22 / rows)
    for number, (i, j) in enumerate(pairs):
        suffix = str(number + 1) if number else ""
        small = {"title_font": {"size": 12}, "title_standoff": 4, "nticks": 4, "zeroline": False}
        figure.layout[f"xaxis{suffix}"].update(title=units.title(i), range=list(units.box[i]), **small)
        figure.layout[f"yaxis{suffix}"].update(title=units.title(j), range=list(units.box[j]), **small)
    return plain_layout(figure, 60 + 250 * rows)


def panel_axes(number: int) -> dict[str, str]:
    """The axes of a panel, as plotly names them."""
    suffix = str(number + 1) if number else ""
    return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
