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


class Sent(BaseFigure):  # type: ignore[misc]  # plotly has no types
    """A figure of which there is only what is sent; Streamlit and plotly ask it for nothing else."""

    def __init__(self, figure: BaseFigure) -> None:
        # As text: thousands of lists and dictionaries would be looked through at every collection of garbage.
        self._sent = plotly.io.to_json(_lean(_single(figure.to_dict())), validate=False)

    @property
    def size(self) -> int:
        """How many letters are sent."""
        return len(self._sent)

    def to_dict(self) -> dict[str, Any]:
        """What is sent."""
        found: dict[str, Any] = json.loads(self._sent)
        return found


def sent(chart: Chart) -> Chart:
    """The same chart, its long arrays in single precision.

    >>> import pandas as pd, plotly.graph_objects as go
    >>> whole = Chart(go.Figure(go.Scatter(y=np.arange(100.0))), "Up.", pd.DataFrame())
    >>> sent(whole).figure.to_dict()["data"][0]["y"]["dtype"]
    'f4'
    """
    return replace(chart, figure=Sent(chart.figure))


def _lean(figure: dict[str, Any]) -> dict[str, Any]:
    """Without what the template says about traces of other kinds, which is most of it."""
    template = figure["layout"].get("template", {})
    kinds = {trace.get("type", "scatter") for trace in figure["data"]}
    looks = {kind: look for kind, look in template.get("data", {}).items() if kind in kinds}
    return {**figure, "layout": {**figure["layout"], "template": {**template, "data": looks}}}


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
