"""Pictures of a user's own data in the public view, in the user's units and column names.

The builders take a release in the units of the columns, a reading of it and a twin drawn from it: no record can reach
them.  The picture that holds records is in own_records.py.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.figures import style
from dpgrams_core.figures.style import (
    CHANCE,
    PRIVATE,
    PRIVATE_MARK,
    SMALL_PRIVATE_MARK,
    WHITE,
    Chart,
    plain_layout,
    tint,
)
from dpgrams_core.figures.traces import (
    BAND_SENTENCE,
    CENTRE_SENTENCE,
    CENTRE_WORDS,
    PEAK_SENTENCE,
    PEAK_WORDS,
    REGION_SENTENCE,
    REGION_WORDS,
    Places,
    band,
    band_columns,
    branch_bands,
    branch_lines,
    grid_axes,
    points,
    released_surface,
    rings,
    trails,
    weak_sentence,
)
from dpgrams_core.model.format import chance_words, fixed, short, sigmas, whole_percent
from dpgrams_core.model.results import Release
from dpgrams_core.numerics.bumps import WEAK
from dpgrams_core.numerics.ridges import NORMAL_95
from dpgrams_core.numerics.scaling import SurfaceInUnits
from dpgrams_core.own_data.postprocess import Branches, Reading, own_branches

Array = np.ndarray
BAND, TWIN = tint(PRIVATE, 0.22), tint(PRIVATE, 0.35)
BORDER = {"color": tint(style.DARK_GREY, 0.9), "width": 1.5, "dash": "dash"}
NODES = 90
HEIGHT = 480
MOST_TWIN = 700
HIGH = "height above the noise, σ"


@dataclass(frozen=True, eq=False)
class Units:
    """The user's column names and public box (d, 2): what the axes of a picture say."""

    columns: tuple[str, ...]
    box: Array

    def title(self, number: int) -> str:
        """A column's name for an axis; plotly takes some HTML, a name is none."""
        return html.escape(self.columns[number])

    def axis(self, number: int) -> dict[str, Any]:
        """The settings of an axis over a column's side of the box; two columns have two units, so scales differ."""
        return {"title": self.title(number), "range": list(self.box[number]), "zeroline": False}


def reading_table(units: Units, reading: Reading, what: str = "mode") -> pd.DataFrame:
    """Modes or centres as a table."""
    shares = None if reading.shares is None else 100 * reading.shares
    more = {HIGH: reading.significance, CHANCE: reading.chances, "share of the rows, %": shares}
    if reading.covariances is not None:
        more |= {f"± {name} (95%)": half for name, half in zip(units.columns, _half_widths(reading).T, strict=True)}
    return _numbered(units, what, np.arange(1, len(reading.places) + 1), reading.places, more)


def _sure(reading: Reading) -> Array:
    """Which places have a region, (k,): centres, and modes that stand far enough above the noise."""
    if reading.covariances is None or reading.significance is None:
        return np.full(len(reading.places), reading.covariances is not None)
    return np.asarray(reading.significance >= WEAK)


def _half_widths(reading: Reading) -> Array:
    """± of 95 % along each column, (k, d); missing where a mode is not sure."""
    assert reading.covariances is not None
    spreads = np.sqrt(np.diagonal(reading.covariances, axis1=1, axis2=2))
    return np.where(_sure(reading)[:, None], NORMAL_95 * spreads, np.nan)


def _region_words(reading: Reading) -> tuple[str, str]:
    """What a region is called, and what it is made to hold."""
    if reading.shares is not None:
        return CENTRE_WORDS, CENTRE_SENTENCE
    return (PEAK_WORDS, PEAK_SENTENCE) if reading.smoothed else (REGION_WORDS, REGION_SENTENCE)


def _rings(reading: Reading, columns: tuple[int, int] = (0, 1)) -> list[go.Scatter]:
    """The regions of the sure places in two of the columns, under one name."""
    sure = _sure(reading)
    if not sure.any():
        return []
    assert reading.covariances is not None
    pair, (name, _) = list(columns), _region_words(reading)
    return [rings(reading.places[sure][:, pair], reading.covariances[sure][:, pair][:, :, pair], name, PRIVATE)]


def _numbered(units: Units, what: str, numbers: Array, places: Array, more: dict[str, Array | None]) -> pd.DataFrame:
    """Places with their numbers and further columns; all names differ, also where a user's column is called as ours."""
    table = pd.DataFrame(places, columns=list(units.columns))
    table.insert(0, what, numbers, allow_duplicates=True)
    for name, values in more.items():
        if values is not None:
            table.insert(len(table.columns), name, values, allow_duplicates=True)
    names: list[str] = []
    for name in table.columns:
        while name in names:
            name = f"{name} "
        names.append(name)
    return table.set_axis(names, axis=1)


def density_curve(units: Units, surface: SurfaceInUnits, width: float, reading: Reading, regions: bool) -> Chart:
    """One column: the released density with two standard deviations of its noise, and the modes or centres on it."""
    x = np.linspace(units.box[0, 0], units.box[0, 1], 301)
    height = surface.density(x[:, None], width)
    noise = surface.noise_at(x[:, None], width) / (surface.n * np.sqrt(2 * np.pi) * surface.bandwidths[0])
    places, reach = reading.places[:, 0], {}
    if _sure(reading).any():
        reach = {"error_x": {"array": _half_widths(reading)[:, 0], "color": PRIVATE}}
    figure = go.Figure(
        [
            band(x, height - 2 * noise, height + 2 * noise, BAND, "± 2 standard deviations of its noise"),
            go.Scatter(x=x, y=height, mode="lines", line={"color": PRIVATE, "width": 2.5}, name="released density"),
            _marks((places, np.interp(places, x, height)), reading, regions, textfont={"size": 13}, **reach),
        ]
    )
    if regions:
        ordered = np.sort(places)
        for middle in (ordered[1:] + ordered[:-1]) / 2:
            figure.add_vline(x=float(middle), line=BORDER)
    plain_layout(figure, HEIGHT, units.axis(0), {"title": "density", "rangemode": "tozero", "zeroline": False})
    return Chart(figure, sentence_of(reading, regions, "curve"), reading_table(units, reading, _what(regions)))


def surface_map(
    units: Units,
    surface: SurfaceInUnits,
    width: float,
    reading: Reading,
    *,
    paths: Array | None = None,
    regions: bool = False,
) -> Chart:
    """Two columns: the released surface in units of its noise with modes, or with centres and their regions."""
    figure = go.Figure(_heat(units, surface, width))
    if regions and len(reading.places) > 1:
        x, y = grid_axes(units.box, NODES)
        still = {"showscale": False, "hoverinfo": "skip", "showlegend": False}
        zero = {"coloring": "none", "start": 0, "end": 0, "size": 1}
        for border in _borders([x, y], reading.places, surface.bandwidths):
            figure.add_trace(go.Contour(x=x, y=y, z=border.T.astype(np.float32), contours=zero, line=BORDER, **still))
    if paths is not None:
        figure.add_trace(_climbs(paths))
    hover = "(%{x:.4g}, %{y:.4g}) %{text}<extra></extra>"
    figure.add_traces(_rings(reading))
    figure.add_trace(
        _marks(reading.places.T, reading, regions, textfont=style.LABEL, showlegend=True, hovertemplate=hover)
    )
    plain_layout(figure, HEIGHT, units.axis(0), units.axis(1))
    return Chart(figure, sentence_of(reading, regions, "surface"), reading_table(units, reading, _what(regions)))


def _what(regions: bool) -> str:
    return "cluster" if regions else "mode"


def _marks(at: Places, reading: Reading, regions: bool, **how: Any) -> go.Scatter:
    """Modes or centres, labelled by their height where it is known and by their number otherwise."""
    labels = [str(number) for number in range(1, len(reading.places) + 1)]
    if reading.significance is not None:
        labels = [sigmas(value) for value in reading.significance]
    x, y = at
    common = {"mode": "markers+text", "marker": SMALL_PRIVATE_MARK, "text": labels, "textposition": "top center"}
    return go.Scatter(x=x, y=y, name="centres" if regions else "modes", **common, **how)


def _heat(units: Units, surface: SurfaceInUnits, width: float) -> go.Heatmap:
    """The released surface over the box, in units of its noise."""
    axes = grid_axes(units.box, NODES)
    return _in_noise(units, axes, surface.grid_in_noise(axes, width), "released surface")


def _in_noise(units: Units, axes: list[Array], heights: Array, name: str) -> go.Heatmap:
    where = f"{units.title(0)} %{{x:.4g}}, {units.title(1)} %{{y:.4g}}"
    return released_surface(axes[0], axes[1], heights, where, name, zmax=float(max(heights.max(), 1.0)))


def _borders(axes: list[Array], centres: Array, scale: Array) -> list[Array]:
    """For each centre a function on the grid that is 0 at the border of its region and positive inside.

    ``scale`` (d,) is what counts as one in each column: centres were found in columns that share a bandwidth.
    """
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    distance = np.linalg.norm((grid[:, :, None, :] - centres) / scale, axis=-1)
    return [np.delete(distance, k, axis=2).min(axis=2) - distance[:, :, k] for k in range(len(centres))]


def _climbs(path: Array) -> go.Scatter:
    return trails(path, name="climbs from public starts", width=1.2)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else f"No {what}"


def sentence_of(reading: Reading, regions: bool, of: str) -> str:
    """What a picture shows, in words and numbers."""
    count = len(reading.places)
    if regions:
        listed = "" if reading.shares is None else ", ".join(whole_percent(share) for share in reading.shares)
        shares = f", with about {listed} of the rows" if listed else ""
        border = " Dashed: the borders between them." if of != "density" and count > 1 else ""
        return f"{_counted(count, 'cluster centre')} read off the released {of}{shares}.{border}" + (
            _region_sentence(reading, of)
        )
    if count == 0:
        return f"The released {of}: nothing stands above its noise at this ε and this number of rows."
    least = reading.significance
    weakest = "" if least is None else f"; the weakest stands {sigmas(least.min())} above it"
    if reading.chances is not None:
        weakest += f" ({CHANCE}, with all places looked at: {chance_words(float(reading.chances.max()))})"
    text = (
        f"{_counted(count, 'mode')} of the released {of}, in units of its known noise (σ){weakest}. The σ of a mode "
        "weighs the bump that is its own, so it can differ from the height of everything together."
    )
    return text + _region_sentence(reading, of)


def _region_sentence(reading: Reading, of: str) -> str:
    """What the regions mean, and which modes have none; empty without any."""
    if reading.covariances is None:
        return ""
    sure = _sure(reading)
    drawn = (
        f" Each {'line across a mark' if of == 'curve' else 'ring'}{_region_words(reading)[1]}" if sure.any() else ""
    )
    return drawn + weak_sentence(sure)


def branches_map(units: Units, release: Release, least: float = 0.0, smoothed: Branches | None = None) -> Chart:
    """A response over a predictor: the released surface, and the branches that stand ``least`` σ above the noise.

    They are those of the release, or with ``smoothed`` those of the same surface at a larger bandwidth.
    """
    surface = release.surface
    assert isinstance(surface, SurfaceInUnits)
    found = smoothed or own_branches(release)
    curve, branches, sigma = found.places, found.numbers, found.heights
    tops = {int(number): float(sigma[branches == number].max()) for number in branches}
    shown = [number for number, top in sorted(tops.items()) if top >= least or least <= 0]
    where = "(%{x:.4g}, %{y:.4g}): "
    lines = branch_lines("branches", curve, branches, sigma, where, lambda _: style.ON_A_SURFACE, shown)
    bands = branch_bands(found.band, curve, branches, style.BAND_ON_A_SURFACE, shown)
    figure = go.Figure([_heat(units, surface, found.width), *bands, *lines])
    plain_layout(figure, HEIGHT, units.axis(0), units.axis(1))
    kept = np.isin(branches, shown)
    more = {HIGH: sigma[kept], **band_columns(found.band, kept)}
    table = _numbered(units, "branch", branches[kept] + 1, curve[kept], more)
    count = f"{len(shown)} branch{'' if len(shown) == 1 else 'es'} of the response over the predictor"
    times = found.width / surface.bandwidth
    further = f", smoothed further to {short(times)} times its bandwidth" if times > 1 else ""
    sentence = f"{count} on the released surface{further}, coloured in units of its known noise (σ). "
    if shown:
        sentence += f"At their highest they stand {', '.join(fixed(tops[number], 1) for number in shown)} σ above it."
    return Chart(figure, sentence + (BAND_SENTENCE if bands else ""), table)


def ascent_map(units: Units, release: Release) -> Chart:
    """One or two columns without a released surface (DP-GRAMS): its noisy paths and the modes they were merged to.

    In two columns over what its rounds show together, where it has them.
    """
    assert release.trajectories is not None
    path, places, rounds = release.trajectories, release.modes, release.pooled
    more, below = "This method releases no surface, so nothing more can be read off it.", []
    up = {"title": "step", "zeroline": False}
    if len(units.columns) == 1:  # a line has no height: time goes up
        steps = np.broadcast_to(np.arange(len(path))[:, None, None], path.shape)
        path = np.concatenate([path, steps], axis=2)
        places = np.column_stack([places, np.full(len(places), len(path) - 1)])
    else:
        up = units.axis(1)
        if rounds is not None:
            axes = grid_axes(units.box, NODES)
            below = [_in_noise(units, axes, rounds.grid_in_noise(axes, units.box), "released rounds, read together")]
            more = (
                "Coloured: what its rounds show together, in units of their known noise (σ); a guess where none looked."
            )
    x, y = places.T
    figure = go.Figure([*below, _climbs(path), go.Scatter(x=x, y=y, mode="markers", marker=PRIVATE_MARK, name="modes")])
    sentence = f"{_counted(len(release.modes), 'mode')} where {path.shape[1]} noisy climbs end. {more}"
    table = reading_table(units, Reading(release.modes, release.significance))
    return Chart(plain_layout(figure, HEIGHT, units.axis(0), up), sentence, table)


def pair_panels(units: Units, reading: Reading, twin: Array | None, regions: bool = False) -> Chart:
    """Three or more columns: modes or centres in every pair of them, over synthetic records drawn from the release."""
    synthetic = twin[:MOST_TWIN] if twin is not None else np.empty((0, len(units.columns)))
    numbers = [str(k) for k in range(1, len(reading.places) + 1)]
    large, letters = {**PRIVATE_MARK, "size": 18}, {"size": 11, "color": WHITE}
    hover, written = "%{text}: (%{x:.4g}, %{y:.4g})", {"text": numbers, "textfont": letters}

    def pair(i: int, j: int) -> list[go.Scatter]:
        name, small = "synthetic twin (drawn from the release)", {"size": 3, "color": TWIN}
        below = points((synthetic[:, i], synthetic[:, j]), name, small)
        places = reading.places[:, i], reading.places[:, j]
        named = "centres" if regions else "modes"
        return [below, *_rings(reading, (i, j)), points(places, named, large, hover, "markers+text", **written)]

    sentence = sentence_of(reading, regions, "density")
    sentence += " Each panel shows two of the columns; numbers are the rows of the table."
    return Chart(panels_figure(units, pair), sentence, reading_table(units, reading, _what(regions)))


def panels_figure(units: Units, traces_of: Callable[[int, int], list[go.Scatter]]) -> go.Figure:
    """A panel for each pair of columns; the legend is that of the first."""
    pairs = list(combinations(range(len(units.columns)), 2))
    wide = min(3, len(pairs))
    rows = -(-len(pairs) // wide)
    figure = make_subplots(rows, wide, horizontal_spacing=0.11, vertical_spacing=0.22 / rows)
    small = {"title_font": {"size": 12}, "title_standoff": 4, "nticks": 4}
    for number, pair in enumerate(pairs):
        suffix = str(number + 1) if number else ""
        for axis, column in zip("xy", pair, strict=True):
            figure.layout[f"{axis}axis{suffix}"].update(**units.axis(column), **small)
        for trace in traces_of(*pair):
            here = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "showlegend": number == 0}
            figure.add_trace(trace.update(here | {"legendgroup": trace.name}))
    return plain_layout(figure, 60 + 250 * rows)


def twin_curve(epsilons: list[float], found: list[list[float]], extra: list[list[float]], paid: float) -> Chart:
    """Share found against ε on a synthetic twin: the mean of some simulated releases at each ε, and each of them."""
    x = epsilons[: len(found)]
    means = [100 * float(np.mean(values)) for values in found]
    each = [(epsilon, 100 * value) for epsilon, values in zip(x, found, strict=True) for value in values]
    mark = {"size": 7, "color": PRIVATE, "opacity": 0.35}
    thick = {"color": PRIVATE, "width": 2.5}
    figure = go.Figure(
        [
            go.Scatter(
                x=[place for place, _ in each],
                y=[share for _, share in each],
                mode="markers",
                marker=mark,
                name="each simulated release",
            ),
            go.Scatter(x=x, y=means, mode="lines+markers", line=thick, name="their mean"),
        ]
    )
    figure.add_vline(x=paid, line=BORDER)
    ends = [float(np.log10(min(epsilons)) - 0.1), float(np.log10(max(epsilons)) + 0.1)]
    across = {"type": "log", "title": "ε", "tickvals": epsilons, "range": ends, "zeroline": False}
    plain_layout(figure, 340, across, {"title": "found again, %", "range": [-4, 106], "zeroline": False})
    table = pd.DataFrame(
        {"ε": x, "found again, %": means, "not there, mean": [float(np.mean(values)) for values in extra]}
    )
    most, least = (whole_percent(means[end] / 100) for end in (-1, 0))
    sentence = (
        f"Simulated releases of the twin: at ε = {short(x[-1])} {most} of what it was drawn from is found "
        f"again, at ε = {short(x[0])} {least}. The dashed line is the ε that was paid. Free: the twin comes "
        "from the release, not from the records."
    )
    return Chart(figure, sentence, table)
