"""A chart as a browser gets it, made once: plotly takes most of a page's time to build, copy and check a figure."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.io
from plotly.basedatatypes import BaseFigure

from dpgrams_core.figures.style import Chart

FEW = 64  # numbers that are sent in full precision: marks, whose coordinates people read
SOLID = {"surface", "mesh3d", "scatter3d"}
MARKED = {"scatter", "scattergl", "bar"}  # traces whose colours are all given


class Told(dict[str, Any]):
    """A figure's parts, and the text that they were read from."""

    def __init__(self, text: str) -> None:
        super().__init__(json.loads(text))
        self.text = text


class Sent(BaseFigure):  # type: ignore[misc]  # plotly has no types
    """A figure of which there is only what is sent; Streamlit and plotly ask it for nothing else."""

    def __init__(self, figure: BaseFigure) -> None:
        # As text: thousands of lists and dictionaries would be looked through at every collection of garbage.
        told = plotly.io.to_json(_lean(_single(figure.to_dict())), validate=False)
        # Plotly writes each / in six letters, for JSON that stands in HTML; arrays in base64 are full of them.
        self._sent = told.replace("\\u002f", "/")

    @property
    def size(self) -> int:
        """How many letters are sent."""
        return len(self._sent)

    def to_dict(self) -> Told:
        """What is sent."""
        return Told(self._sent)


def sent(chart: Chart) -> Chart:
    """The same chart, its long arrays in single precision.

    >>> import pandas as pd, plotly.graph_objects as go
    >>> whole = Chart(go.Figure(go.Scatter(y=np.arange(100.0))), "Up.", pd.DataFrame())
    >>> sent(whole).figure.to_dict()["data"][0]["y"]["dtype"]
    'f4'
    """
    return replace(chart, figure=Sent(chart.figure))


def _lean(figure: dict[str, Any]) -> dict[str, Any]:
    """Without what the template says about traces and axes of other kinds, which is most of it."""
    template = figure["layout"].get("template", {})
    kinds = {trace.get("type", "scatter") for trace in figure["data"]}
    looks = {kind: look for kind, look in template.get("data", {}).items() if kind in kinds}
    unused = {"polar", "ternary", "geo", *(() if kinds & SOLID else ("scene",)), *(("colorscale",) * (kinds <= MARKED))}
    layout = {name: look for name, look in template.get("layout", {}).items() if name not in unused}
    traces = [_coded(trace) for trace in figure["data"]]
    whole = {**figure["layout"], "template": {**template, "data": looks, "layout": layout}}
    return {**figure, "data": traces, "layout": whole}


def _coded(trace: dict[str, Any]) -> dict[str, Any]:
    """The colours of many marks as numbers of a scale that holds each once."""
    marker = trace.get("marker", {})
    colours = marker.get("color")
    if not isinstance(colours, list | tuple) or len(colours) <= FEW or not all(isinstance(one, str) for one in colours):
        return trace
    places = {colour: place for place, colour in enumerate(dict.fromkeys(colours))}
    if not 2 <= len(places) <= 256:
        return trace
    last = len(places) - 1
    scale = [[place / last, colour] for colour, place in places.items()]
    codes = base64.b64encode(bytes(map(places.__getitem__, colours))).decode()
    coded = {"color": {"dtype": "u1", "bdata": codes}, "colorscale": scale, "cmin": 0, "cmax": last}
    return {**trace, "marker": {**marker, **coded, "showscale": False}}


def _single(part: Any) -> Any:
    """Arrays of doubles, which plotly writes in base64, in half their length."""
    if isinstance(part, list | tuple):
        return [_single(one) for one in part]
    if not isinstance(part, dict):
        return part
    if part.get("dtype") != "f8" or "bdata" not in part:
        return {name: _single(one) for name, one in part.items()}
    numbers = np.frombuffer(base64.b64decode(part["bdata"]))
    if len(numbers) <= FEW:
        return part
    return {**part, "dtype": "f4", "bdata": base64.b64encode(numbers.astype(np.float32).tobytes()).decode()}
