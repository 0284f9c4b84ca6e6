"""The pieces the pictures of modes are made of: grids, marks, paths and the player."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dpgrams_core.density import grid_density
from dpgrams_core.figures.style import PRIVATE, QUIET
from dpgrams_core.kernels import get_kernel
from dpgrams_core.results import Dataset, refuse_private

Array = np.ndarray
FAINT = "rgba(128,134,145,0.10)"  # a tint that shows on a light and on a dark page


@dataclass(frozen=True)
class DensityGrid:
    """A plain KDE on a grid over the public box. Not private."""

    x: Array
    y: Array
    z: Array  # (len(x), len(y))


def density_grid(data: Dataset, kernel: str, bandwidth: float, nodes: int = 70) -> DensityGrid:
    """The plain KDE of a two-dimensional data set on nodes x nodes points of its box."""
    refuse_private(data)
    x, y = (np.linspace(low, high, nodes) for low, high in data.box)
    return DensityGrid(x, y, grid_density(get_kernel(kernel), data.points, [x, y], bandwidth))


def true_modes(data: Dataset) -> Array:
    """The known modes; these pictures are for data that have them."""
    refuse_private(data)
    if data.true_modes is None:
        raise ValueError("this picture needs a data set with known modes")
    return data.true_modes


def contours(grid: DensityGrid, levels: int = 9) -> go.Contour:
    """Contour lines of a plain KDE (not private), in a quiet grey."""
    return go.Contour(
        x=grid.x,
        y=grid.y,
        z=grid.z.T.astype(np.float32),
        contours={"coloring": "lines", "start": 0, "end": float(grid.z.max()), "size": float(grid.z.max()) / levels},
        colorscale=[[0, QUIET], [1, QUIET]],
        line={"width": 1},
        showscale=False,
        hoverinfo="skip",
        name="plain KDE (not private)",
    )


def marks(points: Array, name: str, mark: dict) -> go.Scatter:
    """Points under one name and one mark."""
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        mode="markers",
        name=name,
        marker=mark,
        hovertemplate=name + ": (%{x:.3f}, %{y:.3f})<extra></extra>",
    )


def trails(path: Array, step: int) -> go.Scatter:
    """All paths up to a step as one line with gaps."""
    gap = np.full((1, path.shape[1], 2), np.nan)
    joined = np.concatenate([path[: step + 1], gap]).transpose(1, 0, 2).reshape(-1, 2)
    return go.Scatter(
        x=joined[:, 0],
        y=joined[:, 1],
        mode="lines",
        name="ascent",
        line={"width": 1.5, "color": PRIVATE},
        opacity=0.55,
        hoverinfo="skip",
    )


def walkers(path: Array, step: int) -> go.Scatter:
    """Where every start stands at a step."""
    return go.Scatter(
        x=path[step, :, 0],
        y=path[step, :, 1],
        mode="markers",
        name="starts on their way",
        showlegend=False,
        marker={"symbol": "circle-open", "size": 9, "color": PRIVATE, "line": {"width": 2}},
        hovertemplate="start %{pointNumber}: (%{x:.2f}, %{y:.2f})<extra></extra>",
    )


def square_axes(figure: go.Figure, box: Array) -> None:
    """Axes over the public box with equal scales."""
    figure.update_xaxes(range=list(box[0]), title="x", constrain="domain", zeroline=False)
    figure.update_yaxes(range=list(box[1]), title="y", scaleanchor="x", constrain="domain", zeroline=False)


def player(figure: go.Figure, steps: int) -> None:
    """Play and pause buttons and a step slider, all in the browser."""
    # Without a redraw plotly drops the contours from the first frame on.
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    moving = {"frame": {"duration": 350, "redraw": True}, "fromcurrent": True, "transition": {"duration": 0}}
    figure.update_layout(
        updatemenus=[
            {
                "type": "buttons",
                "showactive": False,
                "bgcolor": "rgba(128,134,145,0.2)",
                "direction": "left",
                "x": 0,
                "xanchor": "left",
                "y": -0.14,
                "yanchor": "top",
                "pad": {"t": 12, "r": 8},
                "buttons": [
                    {"label": "▶ Play", "method": "animate", "args": [None, moving]},
                    {"label": "❚❚", "method": "animate", "args": [[None], still]},
                ],
            }
        ],
        sliders=[
            {
                "active": steps - 1,
                "x": 0.36,  # clear of the buttons on a phone
                "len": 0.64,
                "y": -0.14,
                "yanchor": "top",
                "pad": {"t": 12},
                "currentvalue": {"prefix": "step ", "xanchor": "right"},
                "steps": [{"label": str(t), "method": "animate", "args": [[str(t)], still]} for t in range(steps)],
            }
        ],
    )
