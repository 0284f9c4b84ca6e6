"""The one picture of a user's own data that holds records: for the curator, in the colour of what is not private."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.own_data import HEIGHT, Units
from dpgrams_core.figures.own_panels import panel_axes, panels_figure
from dpgrams_core.figures.style import NON_PRIVATE, NON_PRIVATE_MARK, Chart, plain_layout

Array = np.ndarray
MOST_RECORDS = 3_000
POINTS = {"size": 4, "color": NON_PRIVATE, "opacity": 0.25}


def records_picture(units: Units, points: Array, baseline: Array, name: str, *, line: bool = False) -> Chart:
    """Records (n, d) and what a method without privacy finds, both in the user's units. Not private.

    At most 3,000 records are drawn. ``line`` joins the baseline's places, for a curve.
    """
    shown = points[:: max(1, -(-len(points) // MOST_RECORDS))]
    if len(units.columns) == 1:
        figure = go.Figure(
            go.Histogram(x=points[:, 0], nbinsx=60, name="records", marker={"color": NON_PRIVATE, "opacity": 0.5})
        )
        for place in baseline[:, 0]:
            figure.add_vline(x=float(place), line={"color": NON_PRIVATE, "width": 2})
        figure.update_xaxes(title=units.title(0), range=list(units.box[0]))
        figure.update_yaxes(title="records")
        plain_layout(figure, HEIGHT)
    elif len(units.columns) == 2:
        figure = go.Figure(_traces(shown, baseline, name, (0, 1), line))
        figure.update_xaxes(title=units.title(0), range=list(units.box[0]), zeroline=False)
        figure.update_yaxes(title=units.title(1), range=list(units.box[1]), zeroline=False)
        plain_layout(figure, HEIGHT)
    else:
        figure = panels_figure(units)
        for number, pair in enumerate(combinations(range(len(units.columns)), 2)):
            for trace in _traces(shown, baseline, name, pair, line):
                figure.add_trace(trace.update(showlegend=number == 0, legendgroup=trace.name, **panel_axes(number)))
    table = pd.DataFrame(baseline, columns=list(units.columns))
    what = (
        f"{len(shown):,} of the {len(points):,} records" if len(shown) < len(points) else f"The {len(points):,} records"
    )
    found = "the curve" if line else f"the {len(baseline)} places"
    return Chart(
        figure, f"{what}, and {found} that {name} finds without privacy. Neither may leave the building.", table
    )


def _traces(points: Array, baseline: Array, name: str, pair: tuple[int, int], line: bool) -> list[go.Scatter]:
    i, j = pair
    marks: dict[str, Any] = {"mode": "markers", "marker": NON_PRIVATE_MARK}
    joined: dict[str, Any] = {"mode": "lines", "line": {"color": NON_PRIVATE, "width": 3}}
    return [
        go.Scatter(x=points[:, i], y=points[:, j], mode="markers", marker=POINTS, name="records", hoverinfo="skip"),
        go.Scatter(x=baseline[:, i], y=baseline[:, j], name=name, **(joined if line else marks)),
    ]
