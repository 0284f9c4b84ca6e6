"""The one picture of a user's own data that holds records: for the curator, in the colour of what is not private."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.own_data import HEIGHT, Units, panels_figure
from dpgrams_core.figures.style import NON_PRIVATE, WHITE, Chart, plain_layout
from dpgrams_core.figures.traces import points

Array = np.ndarray
MOST_RECORDS = 3_000
CROSS = {"symbol": "x", "size": 13, "color": NON_PRIVATE, "line": {"width": 1.5, "color": WHITE}}  # over its records
SMALL = {"size": 4, "color": NON_PRIVATE, "opacity": 0.25}


def records_picture(units: Units, records: Array, baseline: Array, name: str, *, line: bool = False) -> Chart:
    """Records (n, d) and what a method without privacy finds, both in the user's units. Not private.

    At most 3,000 records are drawn. ``line`` joins the baseline's places, for a curve.
    """
    shown = records[:: max(1, -(-len(records) // MOST_RECORDS))]
    mode = "lines" if line else "markers"
    look = {"line": {"color": NON_PRIVATE, "width": 3}} if line else {"marker": CROSS}

    def pair(i: int, j: int) -> list[go.Scatter]:
        places = go.Scatter(x=baseline[:, i], y=baseline[:, j], mode=mode, name=name, **look)
        return [points((shown[:, i], shown[:, j]), "records", SMALL), places]

    if len(units.columns) == 1:
        half = {"color": NON_PRIVATE, "opacity": 0.5}
        figure = go.Figure(go.Histogram(x=records[:, 0], nbinsx=60, name="records", marker=half))
        for place in baseline[:, 0]:
            figure.add_vline(x=float(place), line={"color": NON_PRIVATE, "width": 2})
        plain_layout(figure, HEIGHT, {"title": units.title(0), "range": list(units.box[0])}, {"title": "records"})
    elif len(units.columns) == 2:
        figure = plain_layout(go.Figure(pair(0, 1)), HEIGHT, units.axis(0), units.axis(1))
    else:
        figure = panels_figure(units, pair)
    what = f"The {len(records):,} records"
    if len(shown) < len(records):
        what = f"{len(shown):,} of the {len(records):,} records"
    found = "the curve" if line else f"the {len(baseline)} places"
    sentence = f"{what}, and {found} that {name} finds without privacy. Neither may leave the building."
    return Chart(figure, sentence, pd.DataFrame(baseline, columns=list(units.columns)))
