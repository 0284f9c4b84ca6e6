"""A chart as a browser gets it, made once: plotly takes most of a page's time to build, copy and check a figure."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from plotly.basedatatypes import BaseFigure

from dpgrams_core.figures.style import Chart

FEW = 64  # numbers that are sent in full precision: marks, whose coordinates people read


class Sent(BaseFigure):  # type: ignore[misc]  # plotly has no types
    """A figure of which there is only what is sent; Streamlit and plotly ask it for nothing else."""

    def __init__(self, figure: BaseFigure) -> None:
        self._sent = _single(figure.to_dict())

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return _size(self._sent)

    def to_dict(self) -> dict[str, Any]:
        """What is sent.  Nobody may change it: all who look at this chart get the same."""
        return self._sent


def sent(chart: Chart) -> Chart:
    """The same chart, its long arrays in single precision.

    >>> import pandas as pd, plotly.graph_objects as go
    >>> whole = Chart(go.Figure(go.Scatter(y=np.arange(100.0))), "Up.", pd.DataFrame())
    >>> sent(whole).figure.to_dict()["data"][0]["y"]["dtype"]
    'f4'
    """
    return replace(chart, figure=Sent(chart.figure))


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


def _size(part: Any) -> int:
    if isinstance(part, dict):
        return sum(len(name) + _size(one) for name, one in part.items())
    if isinstance(part, list):
        return sum(map(_size, part))
    return len(part) if isinstance(part, str) else 8
