"""More pictures of a user's own data in the public view: branches, noisy climbs, and ε on a synthetic twin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.branch_readings import Branches, own_branches
from dpgrams_core.figures.own_data import (
    EDGE,
    HEIGHT,
    NODES,
    Units,
    counted,
    distinct,
    heat,
    own_axes,
    path_lines,
    reading_table,
)
from dpgrams_core.figures.style import PRIVATE, PRIVATE_MARK, Chart, plain_layout, short
from dpgrams_core.readings import Reading
from dpgrams_core.results import Release
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray


def branches_map(
    units: Units, release: Release, inner: Array, least: float = 0.0, smoothed: Branches | None = None
) -> Chart:
    """A response over a predictor: the released surface, and the branches that stand ``least`` σ above the noise.

    They are those of the release, or with ``smoothed`` those of the same surface at a larger bandwidth.
    """
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    found = smoothed or own_branches(release, inner)
    curve, branches, significance = units.to_user(found.places, surface.box), found.numbers, found.heights
    axes = [np.linspace(low, high, NODES) for low, high in surface.box]
    heights = surface.grid(axes, found.width) / surface.noise_grid(axes, found.width)
    x, y = (units.to_user(np.column_stack(axes), surface.box)[:, number] for number in (0, 1))
    figure = go.Figure(heat(units, x, y, heights))
    tops = {int(number): float(significance[branches == number].max()) for number in branches}
    shown = [number for number, top in sorted(tops.items()) if top >= least or least <= 0]
    for number in shown:
        mine = branches == number
        figure.add_trace(
            go.Scatter(
                x=curve[mine, 0],
                y=curve[mine, 1],
                mode="lines+markers",
                name="branches",
                legendgroup="branches",
                showlegend=number == shown[0],
                line={"color": "white", "width": 1.5},
                marker={"size": 7, "color": PRIVATE, "line": {"width": 1, "color": "white"}},
                customdata=significance[mine],
                hovertemplate="(%{x:.4g}, %{y:.4g}): %{customdata:.1f} σ above the noise<extra></extra>",
            )
        )
    own_axes(figure, units)
    kept = np.isin(branches, shown)
    table = pd.DataFrame(curve[kept], columns=list(units.columns))
    table.insert(0, "branch", branches[kept] + 1, allow_duplicates=True)
    table.insert(3, "height above the noise, σ", significance[kept], allow_duplicates=True)
    count = f"{len(shown)} branch{'' if len(shown) == 1 else 'es'} of the response over the predictor"
    times = found.width / surface.bandwidth
    further = f", smoothed further to {times:.3g} times its bandwidth" if times > 1 else ""
    sentence = f"{count} on the released surface{further}, coloured in units of its known noise (σ). "
    if shown:
        sentence += f"At their highest they stand {', '.join(f'{tops[number]:.1f}' for number in shown)} σ above it."
    return Chart(plain_layout(figure, HEIGHT), sentence, distinct(table))


def ascent_map(units: Units, release: Release, inner: Array) -> Chart:
    """One or two columns without a released surface (DP-GRAMS): its noisy paths and the modes they were merged to."""
    assert release.trajectories is not None
    flat = len(units.columns) == 1
    path = np.stack([units.to_user(step, inner) for step in release.trajectories])
    places = units.to_user(release.modes, inner)
    if flat:  # a line has no height: time goes up
        steps = np.broadcast_to(np.arange(len(path))[:, None, None], path.shape)
        path = np.concatenate([path, steps], axis=2)
        places = np.column_stack([places, np.full(len(places), len(path) - 1)])
    figure = go.Figure(
        [
            path_lines(path),
            go.Scatter(x=places[:, 0], y=places[:, 1], mode="markers", marker=PRIVATE_MARK, name="modes"),
        ]
    )
    figure.update_xaxes(title=units.title(0), range=list(units.box[0]), zeroline=False)
    figure.update_yaxes(title="step" if flat else units.title(1), zeroline=False)
    if not flat:
        figure.update_yaxes(range=list(units.box[1]))
    reading = Reading(release.modes, release.significance)
    sentence = (
        f"{counted(len(release.modes), 'mode')} where {path.shape[1]} noisy climbs end. This method releases no "
        "surface, so nothing more can be read off it."
    )
    return Chart(plain_layout(figure, HEIGHT), sentence, reading_table(units, reading, inner))


def twin_curve(epsilons: list[float], found: list[list[float]], extra: list[list[float]], paid: float) -> Chart:
    """Share found against ε on a synthetic twin: the mean of some simulated releases at each ε, and each of them."""
    done = len(found)
    x = epsilons[:done]
    means = [100 * float(np.mean(values)) for values in found]
    figure = go.Figure(
        [
            go.Scatter(
                x=[e for e, values in zip(x, found, strict=True) for _ in values],
                y=[100 * value for values in found for value in values],
                mode="markers",
                marker={"size": 7, "color": PRIVATE, "opacity": 0.35},
                name="each simulated release",
            ),
            go.Scatter(x=x, y=means, mode="lines+markers", line={"color": PRIVATE, "width": 2.5}, name="their mean"),
        ]
    )
    figure.add_vline(x=paid, line={"color": EDGE, "dash": "dash", "width": 1.5})
    ends = [float(np.log10(min(epsilons)) - 0.1), float(np.log10(max(epsilons)) + 0.1)]
    figure.update_xaxes(type="log", title="ε", tickvals=epsilons, range=ends, zeroline=False)
    figure.update_yaxes(title="found again, %", range=[-4, 106], zeroline=False)
    table = pd.DataFrame(
        {"ε": x, "found again, %": means, "not there, mean": [float(np.mean(values)) for values in extra]}
    )
    sentence = (
        f"Simulated releases of the twin: at ε = {short(x[-1])} {means[-1]:.0f} % of what it was drawn from is found "
        f"again, at ε = {short(x[0])} {means[0]:.0f} %. The dashed line is the ε that was paid. Free: the twin comes "
        "from the release, not from the records."
    )
    return Chart(plain_layout(figure, 340), sentence, table)
