"""The picture of a round of the attacker's game, and of the score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.auditing.attacker import CROWD, PERSON, Round, Score
from dpgrams_core.figures import style
from dpgrams_core.figures.style import Chart, plain_layout, scale_bar
from dpgrams_core.figures.traces import grid_axes, points
from dpgrams_core.model.format import short, whole_percent

NODES = 60


def round_chart(played: Round) -> Chart:
    """What is left of a released picture without everybody else's hill: noise, and one person's hill somewhere."""
    box = played.surface.box
    x, y = grid_axes(box, NODES)
    heights = played.surface.grid([x, y])
    heat = go.Heatmap(
        x=x,
        y=y,
        z=heights.T.astype(np.float32),
        colorscale=style.PRIVATE_SCALE,
        zsmooth="best",
        colorbar=scale_bar("height"),
        hovertemplate="(%{x:.1f}, %{y:.1f}): %{z:.2f}<extra></extra>",
        name="released picture",
    )
    kinds = (
        (PERSON, "here, if the person was in the data", "circle-open", style.CAUGHT),
        (CROWD, "here, if somebody else was", "square-open", style.NON_PRIVATE),
    )
    marks = [
        # A white rim below each, so that it is seen on every height in both themes.
        points(
            place[:, None],
            name,
            {"symbol": symbol, "size": 24, "color": colour, "line": {"width": width}},
            showlegend=told,
        )
        for place, name, symbol, own in kinds
        for colour, width, told in ((style.WHITE, 7, False), (own, 3, True))
    ]
    here, there = played.heights
    sentence = (
        f"Height at the ring: {short(here)}; at the square: {short(there)}. One person's hill is 1 high; all the rest "
        "is noise, since the hills of everybody else are taken away."
    )
    (left, right), (low, high) = box.tolist()
    across: dict[str, Any] = {"range": [left, right], "constrain": "domain"}
    up: dict[str, Any] = {"range": [low, high], "scaleanchor": "x", "constrain": "domain"}
    table = pd.DataFrame({"place": ["ring", "square"], "height": [here, there]})
    return Chart(plain_layout(go.Figure([heat, *marks]), 400, across, up), sentence, table)


def score_chart(found: Score, who: str) -> Chart:
    """How often somebody was right, with its interval, beside what is allowed."""
    share = found.hits / found.rounds
    bars = {"symmetric": False, "array": [found.high - share], "arrayminus": [share - found.low], "thickness": 3}
    mark = {"symbol": "diamond", "size": 16, "color": style.CAUGHT}
    figure = go.Figure(go.Scatter(x=[share], y=[who], mode="markers", marker=mark, error_x=bars, name=who))
    dashes = (("largest allowed", found.allowed, style.PRIVATE, "solid"), ("a coin", 0.5, style.GREY, "dot"))
    for name, value, colour, dash in dashes:
        line = {"color": colour, "width": 3, "dash": dash}
        side = "top right" if 0.5 < value < 0.75 else "top left"  # neither over the other, nor beyond the edge
        figure.add_vline(value, line=line, annotation_text=f"{name}: {whole_percent(value)}", annotation_position=side)
    x = {"range": [0, 1.02], "tickformat": ".0%", "title": "right guesses"}
    sentence = (
        f"{found.hits} of {found.rounds} right: {whole_percent(share)}. The chance to be right lies between "
        f"{whole_percent(found.low)} and {whole_percent(found.high)} (95%, from {found.rounds} rounds alone)."
    )
    table = pd.DataFrame(
        {"who": [who], "rounds": [found.rounds], "right": [found.hits], "from": [found.low], "to": [found.high]}
    )
    return Chart(plain_layout(figure, 190, x, {}, showlegend=False), sentence, table)
