"""One colour and one mark for private, non-private and truth, everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

TRUTH = "#009E73"
NON_PRIVATE = "#0072B2"
PRIVATE = "#E36C0A"
QUIET = "rgba(128,134,145,0.55)"
# Shades of the non-private colour: whatever is drawn in them was read off the records.
NON_PRIVATE_SCALE = [[0.0, "rgba(0,114,178,0.08)"], [1.0, "rgba(0,114,178,1)"]]
PRIVATE_SCALE = [[0.0, "rgba(227,108,10,0.02)"], [1.0, "rgba(227,108,10,1)"]]

TRUTH_MARK: dict[str, Any] = {"symbol": "star", "size": 12, "color": TRUTH, "line": {"width": 1, "color": "white"}}
NON_PRIVATE_MARK: dict[str, Any] = {"symbol": "x-thin", "size": 15, "line": {"width": 3, "color": NON_PRIVATE}}
PRIVATE_MARK: dict[str, Any] = {
    "symbol": "circle",
    "size": 16,
    "color": PRIVATE,
    "opacity": 0.85,
    "line": {"width": 1.5, "color": "white"},
}


@dataclass(frozen=True)
class Chart:
    """A figure with the sentence and the table that say the same."""

    figure: go.Figure
    sentence: str
    table: pd.DataFrame


def plain_layout(figure: go.Figure, height: int) -> go.Figure:
    """Margins, legend and interaction shared by all charts."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "itemsizing": "constant"},
        uirevision="keep",  # a rerun keeps the reader's zoom and camera
        hovermode="closest",
        modebar={"orientation": "v"},  # beside the picture, not over the legend
    )
    return figure


def short(value: float) -> str:
    """A number with three digits, as people write it."""
    if value != value:
        return "–"
    if value == float("inf"):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}" if abs(value) < 1e7 else f"{value:.1e}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2g}"
