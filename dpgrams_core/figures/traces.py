"""The pieces the pictures are made of: lines, marks, grids and paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpgrams_core.figures.style import PRIVATE, PRIVATE_SCALE, QUIET, scale_bar
from dpgrams_core.model.format import short
from dpgrams_core.model.results import Dataset, refuse_private
from dpgrams_core.numerics.bumps import WEAK
from dpgrams_core.numerics.density import grid_density
from dpgrams_core.numerics.kernels import get_kernel

Array = np.ndarray
Values = Sequence[Any] | Array
Places = tuple[Values, Values] | Array  # x and y


MOST_POINTS = 1_500  # records in a picture: a browser without a graphics card must keep up
RING_POINTS, RING_SIZE = 61, 5.991  # of an ellipse; the 95 % point of chi-square with two degrees of freedom


def drawn_rows(n: int, most: int = MOST_POINTS) -> Array:
    """Which records a picture shows: all of them, or always the same evenly spread ones, so that pictures agree."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def line(
    at: Places,
    name: str,
    colour: str,
    hover: str = "",
    dash: str | None = None,
    width: float | None = None,
    **more: Any,
) -> go.Scatter:
    """A line through (x, y) under one name; without a text for the pointer it says nothing there."""
    x, y = at
    look = {"color": colour, "dash": dash, "width": width}
    return go.Scatter(x=x, y=y, mode="lines", name=name, line=look, **_told(hover), **more)


def points(at: Places, name: str, mark: dict, hover: str = "", mode: str = "markers", **more: Any) -> go.Scatter:
    """Marks at (x, y) under one name; without a text for the pointer they say nothing there."""
    x, y = at
    return go.Scatter(x=x, y=y, mode=mode, name=name, marker=mark, **_told(hover), **more)


def _told(hover: str) -> dict[str, str]:
    return {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}


def named(texts: Sequence[str], font: dict) -> dict[str, Any]:
    """A text above every mark, for ``points``."""
    return {"mode": "markers+text", "text": texts, "textposition": "top center", "textfont": font}


def band(x: Values, low: Values, high: Values, fill: str, name: str | None, **more: Any) -> go.Scatter:
    """What lies between two edges."""
    edge = {"line": {"width": 0}, "mode": "lines", "fill": "toself", "fillcolor": fill, "hoverinfo": "skip"}
    return go.Scatter(x=[*x, *x[::-1]], y=[*high, *low[::-1]], name=name, **edge, **more)


def to_rings(covariances: Array) -> Array:
    """What turns a circle of radius 1 to the 95 % region of each covariance (k, 2, 2); one along a line stays flat."""
    values, ways = np.linalg.eigh(covariances)
    return np.asarray(ways * np.sqrt(RING_SIZE * np.maximum(values, 0.0))[:, None, :])


def rings(places: Array, covariances: Array, name: str, colour: str, **more: Any) -> go.Scatter:
    """The 95 % region of each place (k, 2) as an ellipse, all under one name."""
    angle = np.linspace(0, 2 * np.pi, RING_POINTS)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    drawn = [
        np.vstack([at + (turn @ circle).T, [np.nan] * 2])
        for at, turn in zip(places, to_rings(covariances), strict=True)
    ]
    return line(np.concatenate(drawn).T if drawn else ([], []), name, colour, width=2, **more)


REGION_WORDS = "95% region of the true mode"
REGION_SENTENCE = (
    " is made to hold its true mode 95 times in 100: it allows for the noise, for other records that might have come, "
    "and for how lopsided the release lets one expect a mode to be, since smoothing moves such a one."
)
CENTRE_WORDS = "95% region of the population's centre"
CENTRE_SENTENCE = (
    " is made to hold, 95 times in 100, where the same reading would put the centre with everybody's records and no "
    "noise: it allows for the noise, for other records that might have come, and for the reading. It comes from "
    "releases that were drawn again from this one."
)
PEAK_WORDS = "95% region of the mode without noise"
PEAK_SENTENCE = (
    " is made to hold, 95 times in 100, where the mode of the density smoothed this far would be without noise. It "
    "allows for the noise alone, not for other records or for smoothing."
)


def weak_sentence(sure: Array) -> str:
    """Which modes have no region, of those (k,) that are sure or not; empty where all are."""
    if sure.all():
        return ""
    return (
        f" {int((~sure).sum())} of {len(sure)} modes stand less than {short(WEAK)} σ above the noise: a region "
        "there is not to be trusted, and none is drawn."
    )


BAND_WORDS = "95% band of each branch, noise alone"
BAND_SENTENCE = (
    " The band says how far noise may have moved a branch: at each x it is made to hold, 95 times in 100, where the "
    "same reading would put it without noise. It allows for the noise alone, not for other records or for smoothing, "
    "and is not to be trusted where a branch hardly stands above the noise."
)


def branch_bands(
    band_of: Array | None, curve: Array, branches: Array, fill: str, shown: Sequence[int] | None = None
) -> list[go.Scatter]:
    """The band of each branch of a curve (or those ``shown``), under one name; none where there is no band."""
    traces: list[go.Scatter] = []
    for number in () if band_of is None else np.unique(branches) if shown is None else shown:
        mine = branches == number
        low, high = band_of[mine].T  # type: ignore[index]
        listed = {"showlegend": not traces, "legendgroup": BAND_WORDS}
        traces.append(band(curve[mine, 0], low, high, fill, BAND_WORDS, **listed))
    return traces


def band_columns(band_of: Array | None, rows: Array | slice = slice(None)) -> dict[str, Array | None]:
    """A band as two columns of a table."""
    if band_of is None:
        return {}
    return dict(zip(("lower (95%)", "upper (95%)"), band_of[rows].T, strict=True))


def branch_lines(
    name: str,
    curve: Array,
    branches: Array,
    sigma: Array,
    where: str,
    look: Callable[[Array], dict[str, Any]],
    shown: Sequence[int] | None = None,
) -> list[go.Scatter]:
    """A line with marks for each branch of a curve (or those ``shown``), which looks as its heights ``sigma`` say."""
    numbers = np.unique(branches) if shown is None else shown
    hover = where + "%{customdata:.1f} σ above the noise<extra></extra>"
    common = {"mode": "lines+markers", "name": name, "legendgroup": name, "hovertemplate": hover}
    traces = []
    for number in numbers:
        mine = branches == number
        x, y = curve[mine].T
        listed = bool(number == numbers[0])
        traces.append(
            go.Scatter(x=x, y=y, showlegend=listed, customdata=sigma[mine]).update(common | look(sigma[mine]))
        )
    return traces


@dataclass(frozen=True)
class DensityGrid:
    """A plain KDE on a grid over the public box. Not private."""

    x: Array
    y: Array
    z: Array  # (len(x), len(y))


def grid_axes(box: Array, nodes: int) -> list[Array]:
    """So many places along each side of a box."""
    return [np.linspace(low, high, nodes) for low, high in box]


def density_grid(data: Dataset, kernel: str, bandwidth: float, nodes: int = 70) -> DensityGrid:
    """The plain KDE of a two-dimensional data set on nodes x nodes points of its box."""
    refuse_private(data)
    x, y = grid_axes(data.box, nodes)
    return DensityGrid(x, y, grid_density(get_kernel(kernel), data.points, [x, y], bandwidth))


def contours(grid: DensityGrid, levels: int = 9) -> go.Contour:
    """Contour lines of a plain density (not private), in a quiet grey."""
    top = float(grid.z.max())
    return go.Contour(
        x=grid.x,
        y=grid.y,
        z=grid.z.T.astype(np.float32),
        contours={"coloring": "lines", "start": 0, "end": top, "size": top / levels},
        colorscale=[[0, QUIET], [1, QUIET]],
        line={"width": 1},
        showscale=False,
        hoverinfo="skip",
        name="plain density (not private)",
    )


def released_surface(
    x: Array, y: Array, heights: Array, where: str, name: str = "released surface (private)", **more: Any
) -> go.Heatmap:
    """A released surface (private) in units of its known noise."""
    return go.Heatmap(
        x=x,
        y=y,
        z=heights.T.astype(np.float32),
        colorscale=PRIVATE_SCALE,
        zmin=0,
        zsmooth="best",
        colorbar=scale_bar("σ"),
        name=name,
        hovertemplate=where + ": %{z:.1f} σ<extra></extra>",
        **more,
    )


def trails(path: Array, name: str = "ascent", width: float = 1.5) -> go.Scatter:
    """All paths (steps, k, 2) as one line with gaps."""
    gap = np.full((1, *path.shape[1:]), np.nan)
    joined = np.concatenate([path, gap]).transpose(1, 0, 2).reshape(-1, 2)
    return line(joined.T, name, PRIVATE, width=width, opacity=0.55)


def walkers(path: Array) -> go.Scatter:
    """Where every start ends."""
    mark = {"symbol": "circle-open", "size": 9, "color": PRIVATE, "line": {"width": 2}}
    hover = "start %{pointNumber}: (%{x:.2f}, %{y:.2f})"
    return points(path[-1].T, "ends of the starts", mark, hover, showlegend=False)
