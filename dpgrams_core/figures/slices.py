"""The conditional density of y at one x: the truth, what was released, and the plain KDE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets.regression import BranchMixture
from dpgrams_core.figures.regression import CHART_HEIGHT, MARGIN, known_truth
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, PRIVATE_MARK, TRUTH, TRUTH_MARK, Chart, plain_layout
from dpgrams_core.results import Dataset, Release, refuse_private
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
PLACES = 51
NODES = 121
LEAST_CERTAIN = 2.0  # a column whose mass is fewer standard deviations of noise than this has no density to show
BAND = "rgba(227,108,10,0.22)"


@dataclass(frozen=True, eq=False)
class Slices:
    """Conditional densities at places x (g,) over responses y (v,), each (g, v), and the true ``modes`` (g, most).

    ``released`` is NaN where the surface is mostly noise, and ``noise`` its standard deviation; both are None
    where a method releases no surface.  ``plain`` is not private.
    """

    x: Array
    y: Array
    modes: Array
    truth: Array
    plain: Array
    released: Array | None
    noise: Array | None


def place_names(box: Array) -> list[str]:
    """The places x at which slices are made, as text: the names of the frames.

    >>> place_names(np.array([[0.0, 1.0], [-1.0, 2.5]]))[:3]
    ['0.00', '0.02', '0.04']
    """
    return [f"{x:.2f}" for x in np.linspace(box[0, 0], box[0, 1], PLACES)]


def conditional_slices(data: Dataset, release: Release) -> Slices:
    """Slices of the true law, of the released surface if there is one, and of the plain KDE.

    The KDE has the release's bandwidth, a share of the box's sides, so that what differs is the noise.
    """
    refuse_private(data)
    law = known_truth(data)
    assert isinstance(law, BranchMixture)  # it has a density, not only its modes
    x, y = (np.linspace(low, high, count) for (low, high), count in zip(data.box, (PLACES, NODES), strict=True))
    width_x, width_y = release.spec.bandwidth * (data.box[:, 1] - data.box[:, 0])
    weights = np.exp(-0.5 * ((x[:, None] - data.x) / width_x) ** 2)
    bumps = np.exp(-0.5 * ((y[None, :] - data.y[:, None]) / width_y) ** 2) / (width_y * np.sqrt(2 * np.pi))
    plain = (weights @ bumps) / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    released, noise = _released(release, float(data.box[1, 1] - data.box[1, 0]))
    return Slices(x, y, law.mode_table(x), law.conditional_density(x, y), plain, released, noise)


def _released(release: Release, side: float) -> tuple[Array | None, Array | None]:
    """The released surface along y at each x, divided by its mass there, and the noise divided likewise."""
    if not isinstance(release.surface, ReleasedSurface):
        return None, None
    surface = release.surface
    axes = [np.linspace(0, 1, PLACES), np.linspace(0, 1, NODES)]
    heights, noise = surface.grid(axes), surface.noise_grid(axes)
    step = side / (NODES - 1)
    mass = heights.sum(axis=1, keepdims=True) * step
    # The mass is linear in the released coefficients, so its noise is known exactly too.
    along_x, along_y = (basis.values(axis) for basis, axis in zip(surface.bases, axes, strict=True))
    total = float((along_y.sum(axis=1) ** 2).sum())
    doubt = surface.noise_scale * step * np.sqrt((along_x**2).sum(axis=0) * total)[:, None]
    mass = np.where(mass > LEAST_CERTAIN * doubt, mass, np.nan)
    return heights / mass, noise / mass


def slice_chart(data: Dataset, release: Release, slices: Slices, at: str) -> Chart:
    """The densities at the place named ``at``; ``slice_frames`` has them for every other place.

    y goes up as in the chart of the branches beside it, and the density to the right.
    """
    refuse_private(data)
    chosen = place_names(data.box).index(at)
    widest = float(np.max([slices.truth.max(), slices.plain.max()]))
    figure = go.Figure([_trace(shape) for shape in _shapes(release, slices, chosen)])
    figure.update_xaxes(range=[0, 1.12 * widest], title="density of y at this x", zeroline=False, nticks=4)
    figure.update_yaxes(range=list(data.box[1]), title="y, the response", zeroline=False)
    plain_layout(figure, CHART_HEIGHT)
    figure.update_layout(
        margin=MARGIN,
        legend={"yref": "container", "y": 1.0, "yanchor": "top"},
        annotations=[_label(at)],
    )
    return Chart(figure, _sentence(release, slices, chosen, at), _table(release, slices, chosen))


def slice_frames(data: Dataset, release: Release, slices: Slices) -> dict[str, Any]:
    """What changes in ``slice_chart`` from place to place, as plain values for the browser.

    ``names`` and ``labels`` of the places, and for each place the ``x`` and ``y`` of every trace; a y that never
    changes stands once, under ``still``.
    """
    refuse_private(data)
    names = place_names(data.box)
    frames = [_shapes(release, slices, number) for number in range(len(names))]
    return {
        "names": names,
        "labels": [_label(name) for name in names],
        "still": [_plain_values(shape.y) if shape.mark is None else None for shape in frames[0]],
        "x": [[_plain_values(shape.x) for shape in frame] for frame in frames],
        "y": [[None if shape.mark is None else _plain_values(shape.y) for shape in frame] for frame in frames],
    }


def private_modes(release: Release, x: float, window: float) -> tuple[Array, Array | None]:
    """The private curve's responses at the place nearest to x, if one is within the window, and their heights in σ."""
    assert release.curve is not None
    if len(release.curve) == 0:
        return np.empty(0), None
    gaps = np.abs(release.curve[:, 0] - x)
    near = (gaps <= gaps.min() + 1e-9) & (gaps <= window)
    return release.curve[near, 1], None if release.significance is None else release.significance[near]


def _label(name: str) -> dict:
    return {
        "text": f"<b>x = {name}</b>",
        "x": 1,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "top",
        "showarrow": False,
        "font": {"size": 17},
    }


def _plain_values(values: Array) -> list[float | None]:
    return [None if value != value else value for value in np.round(values, 4).tolist()]


@dataclass(frozen=True, eq=False)
class _Shape:
    """One trace of a slice: a line (or the outline of a band), or marks."""

    name: str
    x: Array
    y: Array
    line: dict[str, Any] | None = None
    mark: dict[str, Any] | None = None
    fill: str | None = None


def _shapes(release: Release, slices: Slices, number: int) -> list[_Shape]:
    """The same traces in the same order for every place."""
    shapes, y = [], slices.y
    if slices.released is not None and slices.noise is not None:
        middle, spread = slices.released[number], slices.noise[number]
        band = np.concatenate([middle - spread, (middle + spread)[::-1]])
        shapes.append(_Shape("± 1 σ", band, np.concatenate([y, y[::-1]]), line={"width": 0}, fill=BAND))
        shapes.append(_Shape("released (private)", middle, y, line={"color": PRIVATE, "width": 2.5}))
    plain = {"color": NON_PRIVATE, "width": 2.5, "dash": "dash"}
    shapes.append(_Shape("plain KDE (not private)", slices.plain[number], y, line=plain))
    shapes.append(_Shape("truth", slices.truth[number], y, line={"color": TRUTH, "width": 2.5}))
    modes = _true_modes(slices, number)
    shapes.append(_Shape("true modes", np.interp(modes, y, slices.truth[number]), modes, mark=TRUTH_MARK))
    found, _ = private_modes(release, float(slices.x[number]), _window(slices))
    # Without a released density a private mode has a place but no height: it stands on the axis.
    heights = np.zeros(NODES) if slices.released is None else np.nan_to_num(slices.released[number])
    mark = {**PRIVATE_MARK, "size": 12}
    shapes.append(_Shape("private modes", np.interp(found, y, heights), found, mark=mark))
    return shapes


def _trace(shape: _Shape) -> go.Scatter:
    told = "skip" if shape.fill else None
    return go.Scatter(
        x=shape.x,
        y=shape.y,
        mode="lines" if shape.mark is None else "markers",
        name=shape.name,
        line=shape.line,
        marker=shape.mark,
        fill="toself" if shape.fill else None,
        fillcolor=shape.fill,
        cliponaxis=shape.mark is None,
        showlegend=shape.mark is None and not shape.fill,
        hoverinfo=told,
        hovertemplate=None if told else shape.name + ": density %{x:.2f} at y = %{y:.2f}<extra></extra>",
    )


def _true_modes(slices: Slices, number: int) -> Array:
    row = slices.modes[number]
    return row[np.isfinite(row)]


def _window(slices: Slices) -> float:
    return 1.25 * float(slices.x[1] - slices.x[0])


def _table(release: Release, slices: Slices, number: int) -> pd.DataFrame:
    """The modes at this x, and the densities there."""
    found, sigma = private_modes(release, float(slices.x[number]), _window(slices))
    rows = [("true", float(y), np.nan) for y in _true_modes(slices, number)]
    rows += [("private", float(y), np.nan if sigma is None else float(sigma[i])) for i, y in enumerate(found)]
    table = pd.DataFrame(rows, columns=["mode", "y", "height above the noise, σ"])
    table["true density"] = np.interp(table["y"], slices.y, slices.truth[number])
    if slices.released is not None:
        table["released density"] = np.interp(table["y"], slices.y, slices.released[number])
    table["plain KDE (not private)"] = np.interp(table["y"], slices.y, slices.plain[number])
    return table


def _sentence(release: Release, slices: Slices, number: int, at: str) -> str:
    found, _ = private_modes(release, float(slices.x[number]), _window(slices))
    text = f"At x = {at} the truth has {_places(_true_modes(slices, number))}; the private curve has {_places(found)}."
    if slices.released is not None:
        if np.isnan(slices.released[number]).all():
            text += " What was released at this x is mostly noise, so no density is drawn from it."
        else:
            text += " The band is one standard deviation of the known noise."
    return text + " Move the pointer over the chart of the branches, or the slider, for another x."


def _places(modes: Array) -> str:
    if len(modes) == 0:
        return "no mode there"
    if len(modes) > 4:
        return f"{len(modes)} modes between y = {modes.min():.2f} and {modes.max():.2f}"
    return ("a mode" if len(modes) == 1 else f"{len(modes)} modes") + " at y = " + ", ".join(f"{y:.2f}" for y in modes)
