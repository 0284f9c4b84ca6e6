"""The branches of a regression, and the released surface with the ridges read off it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import (
    NON_PRIVATE,
    PRIVATE,
    PRIVATE_SCALE,
    TRUTH,
    Chart,
    plain_layout,
    short,
)
from dpgrams_core.metrics_regression import default_branch_radius, score_branches
from dpgrams_core.results import ConditionalTruth, Dataset, Release, refuse_private
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
CHART_HEIGHT = 470
MARGIN = {"l": 45, "r": 10, "t": 80, "b": 45, "autoexpand": False}
MANY_POINTS = 3_000  # beyond it the records are drawn by the graphics card
STRONG_SIGMA = 10.0  # a ridge this far above the noise is drawn at full strength


def known_truth(data: Dataset) -> ConditionalTruth:
    """The known law; these pictures are for data that have one."""
    refuse_private(data)
    if data.truth is None:
        raise ValueError("this picture needs a data set with known conditional modes")
    return data.truth


def true_branches(data: Dataset, nodes: int = 401) -> Array:
    """The true conditional modes over x as rows (x, y), with a row of NaN wherever a line must not go on.

    The table of modes is sorted, so a column jumps where a branch begins or ends; a line stops there.
    """
    refuse_private(data)
    x = np.linspace(data.box[0, 0], data.box[0, 1], nodes)
    jump = 0.1 * float(data.box[1, 1] - data.box[1, 0])
    parts = []
    for column in known_truth(data).mode_table(x).T:
        breaks = np.flatnonzero(~(np.abs(np.diff(column)) <= jump)) + 1
        for piece in np.split(np.stack([x, column], axis=1), breaks):
            parts += [piece[np.isfinite(piece[:, 1])], np.full((1, 2), np.nan)]
    return np.concatenate(parts)


def branches_chart(data: Dataset, fits: Sequence[tuple[str, Release]], *, records: bool, truth: bool) -> Chart:
    """Curves of several methods over the records and the true branches.

    ``fits`` are (name, release); of two private ones the second has open marks.  Its table has a row for each.
    """
    refuse_private(data)
    traces: list[go.BaseTraceType] = []
    if records:
        traces.append(_records(data))
    if truth:
        rows = true_branches(data)
        line = {"color": TRUTH, "width": 5}
        traces.append(
            go.Scatter(
                x=rows[:, 0],
                y=rows[:, 1],
                mode="lines",
                name="true branches",
                line=line,
                opacity=0.55,
                hoverinfo="skip",
            )
        )
    # Private curves last, so that they lie on top; the first private one is the one with filled marks.
    private = [(name, release) for name, release in fits if release.guarantee.status != "none"]
    for name, release in [fit for fit in fits if fit not in private]:
        traces.append(_plain_curve(name, release))
    for number, (name, release) in reversed(list(enumerate(private))):
        traces += _private_curve(name, release, opened=number > 0)
    figure = go.Figure(traces)
    plot_axes(figure, data.box)
    # A line under the pointer: the chart of the conditional density beside this one follows it.
    spike = {"showspikes": True, "spikemode": "across", "spikesnap": "cursor", "spikethickness": 1, "spikedash": "dot"}
    figure.update_xaxes(**spike)
    plain_layout(figure, CHART_HEIGHT)
    figure.update_layout(margin=MARGIN, legend={"yref": "container", "y": 1.0, "yanchor": "top"})
    return Chart(figure, _branches_sentence(data, fits), scores_table(data, fits))


def scores_table(data: Dataset, fits: Sequence[tuple[str, Release]]) -> pd.DataFrame:
    """How good each curve is, against the truth, with the status of its guarantee."""
    refuse_private(data)
    rows = []
    for name, release in fits:
        scores = score_branches(known_truth(data), curve_of(release), data.box)
        rows.append(
            {
                "curve": name,
                "guarantee": release.guarantee.words,
                "oracle MSE": scores["mse"],
                "branches found, %": 100 * scores["branch_recall"],
                "of the curve on no branch, %": 100 * scores["spurious"],
                "of x covered, %": 100 * scores["coverage"],
            }
        )
    return pd.DataFrame(rows)


def share_near(data: Dataset, curve: Array) -> float:
    """The share of the records whose response is within the matching radius of a single-valued curve (not private)."""
    refuse_private(data)
    order = np.argsort(curve[:, 0], kind="stable")
    heights = np.interp(data.x, curve[order, 0], curve[order, 1])
    return float(np.mean(np.abs(data.y - heights) <= default_branch_radius(known_truth(data), data.box)))


def ridges_chart(data: Dataset, release: Release, nodes: int = 81) -> Chart:
    """The released surface in units of its noise, with the branches read off it."""
    refuse_private(data)
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    assert release.branches is not None
    assert release.significance is not None
    curve, unit = curve_of(release), np.linspace(0, 1, nodes)
    heights = surface.grid([unit, unit]) / surface.noise_grid([unit, unit])
    x, y = (low + unit * (high - low) for low, high in data.box)
    figure = go.Figure(
        go.Heatmap(
            x=x,
            y=y,
            z=heights.T.astype(np.float32),
            colorscale=PRIVATE_SCALE,
            zmin=0,
            zmax=float(max(heights.max(), 1.0)),
            zsmooth="best",
            colorbar={"title": {"text": "σ"}, "thickness": 10, "len": 0.8},
            name="released surface (private)",
            hovertemplate="x %{x:.2f}, y %{y:.2f}: %{z:.1f} σ<extra></extra>",
        )
    )
    for number in np.unique(release.branches):
        mine = release.branches == number
        sigma = release.significance[mine]
        top = int(np.argmax(sigma))
        figure.add_trace(
            go.Scatter(
                x=curve[mine, 0],
                y=curve[mine, 1],
                mode="lines+markers+text",
                name="branches read off it",
                legendgroup="branches",
                showlegend=bool(number == 0),
                line={"color": "white", "width": 1.5},
                marker={"size": 7, "color": PRIVATE, "line": {"width": 1, "color": "white"}},
                text=[f"{sigma[top]:.1f} σ" if i == top else "" for i in range(len(sigma))],
                customdata=sigma,
                textposition="top center",
                textfont={"size": 13, "color": "#1B1F24", "shadow": "0 0 2px white, 0 0 3px white, 0 0 4px white"},
                hovertemplate="x %{x:.2f}, y %{y:.2f}: %{customdata:.1f} σ above the noise<extra></extra>",
            )
        )
    plot_axes(figure, data.box)
    table = pd.DataFrame(
        {
            "branch": release.branches + 1,
            "x": curve[:, 0],
            "y": curve[:, 1],
            "height above the noise, σ": release.significance,
        }
    )
    greatest = [f"{release.significance[release.branches == i].max():.1f}" for i in np.unique(release.branches)]
    sentence = (
        f"The released surface over (x, y), in units of its known noise (σ): private, and paid for once. "
        f"{len(greatest)} {'ridge stands' if len(greatest) == 1 else 'ridges stand'} out of it, at most "
        f"{', '.join(greatest)} σ above the noise; its bandwidth is {short(release.spec.bandwidth)} of each side of "
        "the box, by a public rule."
    )
    return Chart(plain_layout(figure, 420), sentence, table)


def plot_axes(figure: go.Figure, box: Array) -> None:
    """Axes over the public box; x is public and y is not, so they say so."""
    figure.update_xaxes(range=list(box[0]), title="x, the predictor (public)", zeroline=False)
    figure.update_yaxes(range=list(box[1]), title="y, the response", zeroline=False)


def curve_of(release: Release) -> Array:
    """The rows of a release of a curve."""
    assert release.curve is not None
    return release.curve


def _records(data: Dataset) -> go.BaseTraceType:
    kind = go.Scattergl if data.n > MANY_POINTS else go.Scatter
    opacity = float(np.clip(12 / np.sqrt(data.n), 0.08, 0.45))
    return kind(
        x=data.x.astype(np.float32),
        y=data.y.astype(np.float32),
        mode="markers",
        name="records (not private)",
        marker={"color": NON_PRIVATE, "size": 4, "opacity": opacity},
        hoverinfo="skip",
    )


def _plain_curve(name: str, release: Release) -> go.Scatter:
    """A curve without privacy: one line for a mean, a cross for each end point of partial mean shift."""
    curve = curve_of(release)
    one_line = release.method == "lowess"
    return go.Scatter(
        x=curve[:, 0],
        y=curve[:, 1],
        mode="lines" if one_line else "markers",
        name=f"{name} (not private)",
        line={"color": NON_PRIVATE, "dash": "dash", "width": 3},
        marker={"symbol": "x-thin", "size": 5, "line": {"width": 1.2, "color": NON_PRIVATE}},
        hovertemplate=name + ": x %{x:.2f}, y %{y:.2f}<extra></extra>",
    )


def _private_curve(name: str, release: Release, *, opened: bool) -> list[go.Scatter]:
    """A private curve: a line for each branch where these are known, else marks."""
    curve = curve_of(release)
    if release.branches is None or release.significance is None:
        return [private_marks(name, curve, opened=opened)]
    strength = np.clip(release.significance / STRONG_SIGMA, 0.25, 1.0)
    traces = []
    for number in np.unique(release.branches):
        mine = release.branches == number
        mark: dict[str, Any] = {"symbol": "circle-open" if opened else "circle", "color": PRIVATE}
        traces.append(
            go.Scatter(
                x=curve[mine, 0],
                y=curve[mine, 1],
                mode="lines+markers",
                name=f"{name} (private)",
                legendgroup=name,
                showlegend=bool(number == 0),
                line={"color": PRIVATE, "width": 2.5, "dash": "dot" if opened else "solid"},
                marker={**mark, "size": 3 + 5 * strength[mine], "opacity": strength[mine]},
                customdata=release.significance[mine],
                hovertemplate=name + ": x %{x:.2f}, y %{y:.2f}, %{customdata:.1f} σ above the noise<extra></extra>",
            )
        )
    return traces


def private_marks(name: str, curve: Array, *, opened: bool) -> go.Scatter:
    """A private curve as one mark a row."""
    line = {"width": 2, "color": PRIVATE} if opened else {"width": 1, "color": "white"}
    return go.Scatter(
        x=curve[:, 0],
        y=curve[:, 1],
        mode="markers",
        name=f"{name} (private)" if "private" not in name else name,
        marker={"symbol": "diamond-open" if opened else "circle", "size": 9, "color": PRIVATE, "line": line},
        hovertemplate=name + ": x %{x:.2f}, y %{y:.2f}<extra></extra>",
    )


def outside(points: Array, box: Array, what: str) -> str:
    """A clause that counts what a chart over the box does not show, or nothing."""
    count = int(((points[:, 1] < box[1, 0]) | (points[:, 1] > box[1, 1])).sum())
    return f"; {count} of the {len(points)} {what} fell outside this picture" if count else ""


def _branches_sentence(data: Dataset, fits: Sequence[tuple[str, Release]]) -> str:
    radius = default_branch_radius(known_truth(data), data.box)
    parts = []
    for name, release in fits:
        scores = score_branches(known_truth(data), curve_of(release), data.box)
        text = f"{name} {100 * scores['branch_recall']:.0f} %"
        parts.append(text + outside(curve_of(release), data.box, "points"))
    if not parts:
        return "No curve is chosen: only what is known before any method runs."
    return (
        f"Share of the true branches found, where a curve within {short(radius)} in y counts: " + "; ".join(parts) + "."
    )
