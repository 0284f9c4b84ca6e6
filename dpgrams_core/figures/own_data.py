"""Pictures of a user's own data, in the user's units and column names.

The builders of the public view take a release, a reading of it and a twin drawn from it: no record can reach them.
own_curves.py and own_panels.py hold the rest of them; the picture that holds records is in own_records.py.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import PRIVATE, PRIVATE_MARK, PRIVATE_SCALE, Chart, plain_layout
from dpgrams_core.readings import Reading
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
BAND = "rgba(227,108,10,0.22)"
EDGE = "rgba(96,102,112,0.9)"
# Dark with a light halo: it reads on orange and on the background of both themes.
LABEL = {"size": 13, "color": "#1B1F24", "shadow": "0 0 2px white, 0 0 3px white, 0 0 4px white"}
NODES = 90
HEIGHT = 480


@dataclass(frozen=True, eq=False)
class Units:
    """The user's column names and public box (d, 2): all that is needed to say a result in the user's units.

    >>> Units(("age",), np.array([[0.0, 100.0]])).to_user(np.array([[0.5]]), np.array([[0.0, 1.0]])).tolist()
    [[50.0]]
    """

    columns: tuple[str, ...]
    box: Array

    def to_user(self, points: Array, inner: Array) -> Array:
        """Points (k, d) of an inner box in the user's units."""
        share = (np.asarray(points, dtype=float) - inner[:, 0]) / (inner[:, 1] - inner[:, 0])
        return np.asarray(self.box[:, 0] + share * (self.box[:, 1] - self.box[:, 0]))

    def title(self, number: int) -> str:
        """A column's name for an axis; plotly takes some HTML, a name is none."""
        return html.escape(self.columns[number])


def reading_table(units: Units, reading: Reading, inner: Array, what: str = "mode") -> pd.DataFrame:
    """Modes or centres as a table, in the user's units."""
    table = pd.DataFrame(units.to_user(reading.places, inner), columns=list(units.columns))
    table.insert(0, what, range(1, len(table) + 1), allow_duplicates=True)
    if reading.significance is not None:
        table.insert(len(table.columns), "height above the noise, σ", reading.significance, allow_duplicates=True)
    if reading.shares is not None:
        table.insert(len(table.columns), "share of the rows, %", 100 * reading.shares, allow_duplicates=True)
    return distinct(table)


def density_curve(units: Units, surface: ReleasedSurface, width: float, reading: Reading, regions: bool) -> Chart:
    """One column: the released density with two standard deviations of its noise, and the modes or centres on it."""
    inner, side = surface.box, float(units.box[0, 1] - units.box[0, 0])
    at = np.linspace(inner[0, 0], inner[0, 1], 301)[:, None]
    scale = float(inner[0, 1] - inner[0, 0]) / side  # a density in the user's units
    height = scale * surface.density(at, width)
    noise = scale * surface.noise_at(at, width) / (surface.n * np.sqrt(2 * np.pi) * surface.bandwidth)
    x = units.to_user(at, inner)[:, 0]
    places = units.to_user(reading.places, inner)[:, 0]
    figure = go.Figure(
        [
            go.Scatter(
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([height - 2 * noise, (height + 2 * noise)[::-1]]),
                fill="toself",
                fillcolor=BAND,
                line={"width": 0},
                hoverinfo="skip",
                name="± 2 standard deviations of its noise",
            ),
            go.Scatter(x=x, y=height, mode="lines", line={"color": PRIVATE, "width": 2.5}, name="released density"),
            go.Scatter(
                x=places,
                y=np.interp(places, x, height),
                mode="markers+text",
                marker=PRIVATE_MARK,
                text=_labels(reading),
                textposition="top center",
                textfont={"size": 13},
                name="centres" if regions else "modes",
            ),
        ]
    )
    if regions:
        ordered = np.sort(places)
        for middle in (ordered[1:] + ordered[:-1]) / 2:
            figure.add_vline(x=float(middle), line={"color": EDGE, "dash": "dash", "width": 1.5})
    figure.update_xaxes(title=units.title(0), range=list(units.box[0]), zeroline=False)
    figure.update_yaxes(title="density", rangemode="tozero", zeroline=False)
    return Chart(
        plain_layout(figure, HEIGHT), sentence_of(reading, regions, "curve"), reading_table(units, reading, inner)
    )


def surface_map(
    units: Units,
    surface: ReleasedSurface,
    width: float,
    reading: Reading,
    *,
    paths: Array | None = None,
    regions: bool = False,
) -> Chart:
    """Two columns: the released surface in units of its noise with modes, or with centres and their regions."""
    inner = surface.box
    axes = [np.linspace(low, high, NODES) for low, high in inner]
    heights = surface.grid(axes, width) / surface.noise_grid(axes, width)
    x, y = (units.to_user(np.column_stack(axes), inner)[:, number] for number in (0, 1))
    figure = go.Figure(heat(units, x, y, heights))
    places = units.to_user(reading.places, inner)
    if regions and len(reading.places) > 1:
        for border in _borders(axes, reading.places):
            figure.add_trace(_border(x, y, border))
    if paths is not None:
        figure.add_trace(path_lines(np.stack([units.to_user(step, inner) for step in paths])))
    figure.add_trace(
        go.Scatter(
            x=places[:, 0],
            y=places[:, 1],
            mode="markers+text",
            marker=PRIVATE_MARK,
            text=_labels(reading),
            textposition="top center",
            textfont=LABEL,
            name="centres" if regions else "modes",
            showlegend=True,
            hovertemplate="(%{x:.4g}, %{y:.4g}) %{text}<extra></extra>",
        )
    )
    own_axes(figure, units)
    return Chart(
        plain_layout(figure, HEIGHT),
        sentence_of(reading, regions, "surface"),
        reading_table(units, reading, inner, "cluster" if regions else "mode"),
    )


def heat(units: Units, x: Array, y: Array, heights: Array) -> go.Heatmap:
    """The released surface over the box, in units of its noise."""
    return go.Heatmap(
        x=x,
        y=y,
        z=heights.T.astype(np.float32),
        colorscale=PRIVATE_SCALE,
        zmin=0,
        zmax=float(max(heights.max(), 1.0)),
        zsmooth="best",
        colorbar={"title": {"text": "σ"}, "thickness": 10, "len": 0.8},
        name="released surface",
        hovertemplate=f"{units.title(0)} %{{x:.4g}}, {units.title(1)} %{{y:.4g}}: %{{z:.1f}} σ<extra></extra>",
    )


def _borders(axes: list[Array], centres: Array) -> list[Array]:
    """For each centre a function on the grid that is 0 at the border of its region and positive inside."""
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    distance = np.linalg.norm(grid[:, :, None, :] - centres, axis=-1)
    return [np.delete(distance, k, axis=2).min(axis=2) - distance[:, :, k] for k in range(len(centres))]


def _border(x: Array, y: Array, border: Array) -> go.Contour:
    return go.Contour(
        x=x,
        y=y,
        z=border.T.astype(np.float32),
        contours={"coloring": "none", "start": 0, "end": 0, "size": 1},
        line={"color": EDGE, "width": 1.5, "dash": "dash"},
        showscale=False,
        hoverinfo="skip",
        showlegend=False,
    )


def path_lines(path: Array) -> go.Scatter:
    """All paths (steps, k, 2) as one line with gaps."""
    gap = np.full((1, *path.shape[1:]), np.nan)
    joined = np.concatenate([path, gap]).transpose(1, 0, 2).reshape(-1, 2)
    return go.Scatter(
        x=joined[:, 0],
        y=joined[:, 1],
        mode="lines",
        line={"color": PRIVATE, "width": 1.2},
        opacity=0.55,
        hoverinfo="skip",
        name="climbs from public starts",
    )


def own_axes(figure: go.Figure, units: Units) -> None:
    """Axes over the user's box; two columns have two units, so the scales differ."""
    figure.update_xaxes(title=units.title(0), range=list(units.box[0]), zeroline=False)
    figure.update_yaxes(title=units.title(1), range=list(units.box[1]), zeroline=False)


def _labels(reading: Reading) -> list[str]:
    if reading.significance is not None:
        return [f"{value:.1f} σ" for value in reading.significance]
    return [str(number) for number in range(1, len(reading.places) + 1)]


def counted(count: int, what: str) -> str:
    """A number of things in words."""
    return f"{count} {what}{'' if count == 1 else 's'}" if count else f"No {what}"


def sentence_of(reading: Reading, regions: bool, of: str) -> str:
    """What a picture shows, in words and numbers."""
    count = len(reading.places)
    if regions:
        shares = "" if reading.shares is None else ", with about " + _listed_shares(reading.shares) + " of the rows"
        border = " Dashed: the borders between them." if of != "density" and count > 1 else ""
        return f"{counted(count, 'cluster centre')} read off the released {of}{shares}.{border}"
    if count == 0:
        return f"The released {of}: nothing stands above its noise at this ε and this number of rows."
    weakest = (
        "" if reading.significance is None else f"; the weakest stands {reading.significance.min():.1f} σ above it"
    )
    return (
        f"{counted(count, 'mode')} of the released {of}, in units of its known noise (σ){weakest}. The σ of a mode "
        "weighs the bump that is its own, so it can differ from the height of everything together."
    )


def _listed_shares(shares: Array) -> str:
    return ", ".join(f"{100 * share:.0f} %" for share in shares)


def distinct(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose column names differ: a user's column may be called as one of ours."""
    seen: set[str] = set()
    names = []
    for name in table.columns:
        while name in seen:
            name = f"{name} "
        seen.add(name)
        names.append(name)
    return table.set_axis(names, axis=1)
