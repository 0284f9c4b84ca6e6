"""The anchors of DP-PMS and their ascent in the response, step by step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.regression import curve_of, known_truth, outside, plot_axes, private_marks, true_branches
from dpgrams_core.figures.style import PRIVATE, TRUTH, Chart, plain_layout, short
from dpgrams_core.figures.traces import player, trails, walkers
from dpgrams_core.metrics_regression import default_branch_radius
from dpgrams_core.results import Dataset, Release, refuse_private


def ascent_chart(data: Dataset, release: Release) -> Chart:
    """The anchors of DP-PMS and their noisy steps in y, which play; the predictor never moves."""
    refuse_private(data)
    path, anchors = release.trajectories, release.anchors
    assert path is not None
    assert anchors is not None
    last = len(path) - 1
    rows = true_branches(data)
    figure = go.Figure(
        [
            go.Scatter(
                x=rows[:, 0],
                y=rows[:, 1],
                mode="lines",
                name="true branches",
                line={"color": TRUTH, "width": 4},
                opacity=0.55,
                hoverinfo="skip",
            ),
            go.Scatter(
                x=anchors[:, 0],
                y=anchors[:, 1],
                mode="markers",
                name="anchors drawn (private)",
                marker={"symbol": "line-ew", "size": 11, "line": {"width": 3, "color": PRIVATE}},
                hovertemplate="anchor: x %{x:.2f}, y %{y:.2f}<extra></extra>",
            ),
            trails(path, last),
            walkers(path, last),
            private_marks("private curve", curve_of(release), opened=False),
        ]
    )
    figure.frames = [
        go.Frame(
            name=str(step),
            data=[trails(path, step), walkers(path, step), go.Scatter(visible=step == last)],
            traces=[2, 3, 4],
        )
        for step in range(len(path))
    ]
    plot_axes(figure, data.box)
    player(figure, len(path))
    plain_layout(figure, 580)
    # Fixed margins, as in the ascent of the Modes page: plotly's own would move the axes while it plays.
    figure.update_layout(
        margin={"l": 45, "r": 10, "t": 80, "b": 145, "autoexpand": False},
        legend={"yref": "container", "y": 1.0, "yanchor": "top"},
    )
    ends = path[-1]
    gaps = np.abs(known_truth(data).mode_table(ends[:, 0]) - ends[:, 1:])
    nearest = np.where(np.isnan(gaps), np.inf, gaps).min(axis=1)
    table = pd.DataFrame(
        {
            "start": range(1, len(ends) + 1),
            "x (public)": ends[:, 0],
            "anchor y": anchors[:, 1],
            "end y": ends[:, 1],
            "distance to the nearest branch": nearest,
        }
    )
    draw, radius = release.events[0], default_branch_radius(known_truth(data), data.box)
    sentence = (
        f"{len(ends)} anchors, each at a public x with its y drawn with ε = {short(draw.epsilon_each)}, then {last} "
        f"noisy steps in y; x never moves. {int((nearest <= radius).sum())} of the {len(ends)} ends lie within "
        f"{short(radius)} of a true branch{outside(ends, data.box, 'ends')}."
    )
    return Chart(figure, sentence, table)
