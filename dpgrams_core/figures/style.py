"""One colour and one mark for private, non-private and truth, everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

from dpgrams_core.model.measures import Measure


def tint(colour: str, alpha: float) -> str:
    """A colour with less of it, as plotly and a browser read it: ``rgba(227,108,10,0.2)``."""
    return f"rgba({channels(colour)},{alpha:g})"


def channels(colour: str) -> str:
    """The red, green and blue of a colour: ``227,108,10``."""
    return ",".join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))


# What a colour means, on every page, in every picture and report.
TRUTH = "#009E73"
NON_PRIVATE = "#0072B2"
PRIVATE = "#E36C0A"
CAUGHT = "#D81B60"  # neither private nor truth: an alarm, and a mark of another shape
NO_PRIVACY = "#D52A2A"
AHEAD = "#8A5CD6"  # who is ahead of a printed value; no other meaning uses it
GREY = "#808691"  # its tints show on a light and on a dark page
DARK_GREY = "#606670"
INK, SOFT_INK, RULE = "#1B1F24", "#4A515B", "#C9CED6"  # letters and lines on white
WHITE = "white"  # the rim of a mark

QUIET = tint(GREY, 0.55)
FAINT = tint(GREY, 0.1)
SHADE = tint(GREY, 0.12)
# From light to dark; on a white and on a black page all of them can be seen.
PRIVATE_SHADES = ("#F0A25A", PRIVATE, "#BD5600", "#8F4100", "#F5BE8B")
NON_PRIVATE_SHADES = ("#6BB1DD", "#2F8FCB", NON_PRIVATE, "#00568A", "#9CCBEA")
LIGHT_PRIVATE = "#F7C59F"
# Shades of the non-private colour: whatever is drawn in them was read off the records.
NON_PRIVATE_SCALE = [[0.0, tint(NON_PRIVATE, 0.08)], [1.0, tint(NON_PRIVATE, 1)]]
NON_PRIVATE_SURFACE = [[0, "#D6E6F2"], [0.5, "#4A9BCB"], [1, "#00426E"]]
# Without gaps to the page behind it: plotly picks dark or light digits by the cell alone.
NON_PRIVATE_COUNTS = [[0.0, "#DCE8F1"], [1.0, NON_PRIVATE]]
PRIVATE_SCALE = [[0.0, tint(PRIVATE, 0.02)], [1.0, tint(PRIVATE, 1)]]
# Quiet colours for the records: none of them is near orange, blue or green, which have their meaning.
RECORD_TINTS = (
    *("#8E7CC3", "#D9C24A", "#D87CA8", "#8A97A8", "#A67C52"),
    *("#5BC0C8", "#C9A0DC", "#B85C5C", "#C8BFA9", "#6B6B83"),
)

# Ink on white paper in the colour of its kind, so that both themes show the same picture.
PRIVATE_INK, TRUTH_INK = ("#FFFFFF", PRIVATE, "#5C2600"), ("#FFFFFF", TRUTH, "#003426")

# Where all three coincide, the cross and the star stand within the circle.
TRUTH_MARK: dict[str, Any] = {"symbol": "star", "size": 11, "color": TRUTH, "line": {"width": 1, "color": WHITE}}
NON_PRIVATE_MARK: dict[str, Any] = {"symbol": "x-thin", "size": 11, "line": {"width": 2.5, "color": NON_PRIVATE}}
PRIVATE_MARK: dict[str, Any] = {"symbol": "circle", "size": 20, "color": PRIVATE, "opacity": 0.85}
PRIVATE_MARK["line"] = {"width": 1.5, "color": WHITE}
SMALL_PRIVATE_MARK = {**PRIVATE_MARK, "size": 10}  # within the ring of its region
# A released line over a released surface, of which both are orange.
BAND_ON_A_SURFACE = tint("#ffffff", 0.35)
ON_A_SURFACE: dict[str, Any] = {
    "line": {"color": WHITE, "width": 1.5},
    "marker": {"size": 7, "color": PRIVATE, "line": {"width": 1, "color": WHITE}},
}
# Letters that are read on any part of a picture.
LABEL = {"size": 13, "color": INK, "shadow": ", ".join(f"0 0 {width}px {WHITE}" for width in (2, 3, 4))}

HANGING_LEGEND = {"yref": "container", "y": 1.0, "yanchor": "top"}  # one line of it (wide) and four (a phone) fit


@dataclass(frozen=True)
class Theme:
    """What a light and a dark page differ in; Streamlit reads the first four from its own file, held by a test."""

    primary: str
    background: str
    secondary_background: str
    text: str
    private: str  # a private number within a sentence
    plain: str


# Orange is the private colour everywhere, so it is the accent of the controls too.
THEMES = {
    "light": Theme("#B54800", "#FFFFFF", "#F5F6F8", INK, private="#B54800", plain=NON_PRIVATE),
    "dark": Theme("#F08A3C", "#12151A", "#1C2128", "#E8EAED", private="#F08A3C", plain="#56A8DC"),
}


def css_properties() -> str:
    """The colours for the style sheet of the pages, as ``rgb(var(--truth))`` or ``rgba(var(--truth), 0.2)``."""
    meanings = {
        "truth": TRUTH,
        "non-private": NON_PRIVATE,
        "private": PRIVATE,
        "no-privacy": NO_PRIVACY,
        "ahead": AHEAD,
        "grey": GREY,
        "accent": THEMES["light"].primary,
        "on-accent": THEMES["light"].background,
    }

    def root(colours: dict[str, str]) -> str:
        return ":root { " + " ".join(f"--{name}: {channels(colour)};" for name, colour in colours.items()) + " }"

    light, dark = (root({"private-text": item.private, "plain-text": item.plain}) for item in THEMES.values())
    return f"{root(meanings)}\n{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"


@dataclass(frozen=True)
class Chart:
    """A figure with the sentence and the table that say the same; ``title`` tells it from others beside it."""

    figure: BaseFigure
    sentence: str
    table: pd.DataFrame
    title: str = ""


def plain_layout(
    figure: go.Figure, height: int, x: dict[str, Any] | None = None, y: dict[str, Any] | None = None, **more: Any
) -> go.Figure:
    """Margins, legend and interaction shared by all charts, and what is a chart's own: its axes, and ``more``."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 36, "t": 30, "b": 10},  # on the right is room for the mode bar
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "itemsizing": "constant"},
        uirevision="keep",  # a rerun keeps the reader's zoom and camera
        hovermode="closest",
        modebar={"orientation": "v"},  # beside the picture, not over legend or marks
    )
    return figure.update_xaxes(x).update_yaxes(y).update_layout(more)


LOG = {"type": "log", "tickformat": ",.4~r"}  # numbers as ``format.short`` writes them


def scale_bar(words: str) -> dict[str, Any]:
    """The scale of a picture's colours: short, since the mode bar stands above it."""
    return {"title": {"text": words}, "thickness": 10, "len": 0.45, "y": 0, "yanchor": "bottom"}


def score_scale(measure: Measure, values: Iterable[float] = (), span: float = 100) -> dict[str, Any]:
    """The scale of an axis with a score on it; its ticks are as close as some values need (``tick_step``)."""
    return {**LOG, "dtick": tick_step(values, span)} if measure.log_axis else {"rangemode": "tozero"}


def tick_step(values: Iterable[float], span: float) -> str | int:
    """Ticks at 1, 2 and 5 of each decade where positive values span less than this factor, else at decades."""
    known = [value for value in values if 0 < value < math.inf]
    return "D2" if known and max(known) < span * min(known) else 1


CHANCE = "chance that it is noise"
