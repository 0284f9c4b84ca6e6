"""The search for the epsilon or n that a target needs: tried values, their intervals, and the bracket."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout
from dpgrams_core.methods import METHODS
from dpgrams_core.needed_search import NeededBudget

BAND = "rgba(128,134,145,0.18)"
LOOKS = {
    "reaches": ("shown to reach", "circle"),
    "misses": ("shown to miss", "x"),
    "open": ("not shown either way", "circle-open"),
    "running": ("still running", "circle-dot"),
}


def needed_chart(found: NeededBudget) -> Chart:
    """Share of runs that reach the target against the tried values, with the wished share and the bracket."""
    asked = found.question
    colour = PRIVATE if METHODS[asked.method].private else NON_PRIVATE
    ends = (asked.low / 1.15, asked.high * 1.15)
    figure = go.Figure()
    left, right = found.misses_at, found.reaches_at
    if left is not None and right is not None:
        figure.add_vrect(x0=left, x1=right, fillcolor=BAND, line_width=0, layer="below")
    for verdict, (name, symbol) in LOOKS.items():
        mine = [item for item in found.tried if item.verdict == verdict]
        if not mine:
            continue
        figure.add_trace(
            go.Scatter(
                x=[item.value for item in mine],
                y=[item.share for item in mine],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [item.interval[1] - item.share for item in mine],
                    "arrayminus": [item.share - item.interval[0] for item in mine],
                    "thickness": 1.5,
                    "width": 5,
                },
                mode="markers",
                name=name,
                marker={"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2, "color": colour}},
                customdata=[[item.successes, item.runs] for item in mine],
                hovertemplate=name + ", %{x:,.4~g}: %{customdata[0]} of %{customdata[1]} runs<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=list(ends),
            y=[asked.probability] * 2,
            mode="lines",
            name=f"wished: {100 * asked.probability:.10g} %",
            line={"color": QUIET, "dash": "dash", "width": 2},
            hoverinfo="skip",
        )
    )
    title = "ε (stronger privacy on the left)" if asked.sought == "epsilon" else "n, number of records"
    figure.update_xaxes(
        type="log", title=title, range=[math.log10(end) for end in ends], dtick="D2", tickformat=",.4~g"
    )
    figure.update_yaxes(title="share of runs that reach the target", range=[-0.03, 1.03], tickformat=".0%")
    return Chart(plain_layout(figure, 400), found.sentence, _table(found))


def _table(found: NeededBudget) -> pd.DataFrame:
    symbol = "ε" if found.question.sought == "epsilon" else "n"
    return pd.DataFrame(
        [
            {
                symbol: item.value,
                "reached": item.successes,
                "runs": item.runs,
                "share": item.share,
                "low": item.interval[0],
                "high": item.interval[1],
                "verdict": LOOKS[item.verdict][0],
                "failures": item.failures,
            }
            for item in found.tried
        ],
        columns=[symbol, "reached", "runs", "share", "low", "high", "verdict", "failures"],
    )
