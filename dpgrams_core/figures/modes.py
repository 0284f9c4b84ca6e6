"""The pictures of the Modes page, after fig:bivariate_gauss_fourpanel and fig:bivariate_4mix_grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.figures.style import (
    NON_PRIVATE_MARK,
    NON_PRIVATE_SCALE,
    PRIVATE,
    PRIVATE_MARK,
    PRIVATE_SCALE,
    TRUTH,
    TRUTH_MARK,
    Chart,
    plain_layout,
    short,
)
from dpgrams_core.figures.traces import (
    FAINT,
    DensityGrid,
    contours,
    marks,
    player,
    square_axes,
    trails,
    true_modes,
    walkers,
)
from dpgrams_core.metrics import default_match_radius, match_modes, recovery_rates
from dpgrams_core.results import Dataset, Release, refuse_private
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray


def surface_chart(data: Dataset, grid: DensityGrid, bandwidth: float) -> Chart:
    """(a) The KDE surface in three dimensions with the true modes on it."""
    refuse_private(data)
    truth = true_modes(data)
    columns = np.abs(grid.x[:, None] - truth[:, 0]).argmin(axis=0)
    rows = np.abs(grid.y[:, None] - truth[:, 1]).argmin(axis=0)
    heights = grid.z[columns, rows]
    figure = go.Figure(
        [
            go.Surface(
                x=grid.x,
                y=grid.y,
                z=grid.z.T.astype(np.float32),
                colorscale=[[0, "#D6E6F2"], [0.5, "#4A9BCB"], [1, "#00426E"]],
                showscale=False,
                name="plain KDE (not private)",
                hovertemplate="(%{x:.2f}, %{y:.2f}) density %{z:.3g}<extra></extra>",
            ),
            go.Scatter3d(
                x=truth[:, 0],
                y=truth[:, 1],
                z=heights * 1.02 + 0.02 * grid.z.max(),
                mode="markers",
                name="true modes",
                marker={"symbol": "diamond", "size": 6, "color": TRUTH, "line": {"width": 1, "color": "white"}},
            ),
        ]
    )
    figure.update_layout(
        scene={
            "xaxis_title": "x",
            "yaxis_title": "y",
            "zaxis_title": "density",
            "aspectratio": {"x": 1, "y": 1, "z": 0.6},
            "camera": {"eye": {"x": 1.2, "y": -1.4, "z": 0.9}, "center": {"x": 0, "y": 0, "z": -0.14}},
        }
    )
    table = pd.DataFrame({"x": truth[:, 0], "y": truth[:, 1], "KDE height": heights})
    table.insert(0, "true mode", range(1, len(truth) + 1))
    sentence = (
        f"The plain kernel density of the {data.n:,} simulated points (bandwidth {short(bandwidth)}), with the "
        f"{len(truth)} true modes in green. It is read off the records and is not private."
    )
    return Chart(plain_layout(figure, 420), sentence, table)


def anchors_chart(data: Dataset, release: Release) -> Chart:
    """(b) DAP candidates coloured by utility, with the anchors that were drawn."""
    refuse_private(data)
    diagnostics = release.diagnostics
    assert diagnostics.candidates is not None
    assert diagnostics.utilities is not None
    assert release.anchors is not None
    candidates, counts = diagnostics.candidates, np.rint(diagnostics.utilities * data.n).astype(int)
    anchors = release.anchors
    order = np.arange(1, len(anchors) + 1)
    figure = go.Figure(
        [
            (go.Scattergl if len(candidates) > 3000 else go.Scatter)(
                x=candidates[:, 0],
                y=candidates[:, 1],
                mode="markers",
                name="candidates, by records nearby (not private)",
                marker={
                    "color": counts,
                    "colorscale": NON_PRIVATE_SCALE,
                    "size": float(np.clip(260 / np.sqrt(len(candidates)), 3, 14)),
                    "symbol": "square",
                    "colorbar": {"title": {"text": "records"}, "thickness": 10, "len": 0.8},
                },
                hovertemplate="(%{x:.2f}, %{y:.2f}): %{marker.color} records<extra></extra>",
            ),
            go.Scatter(
                x=anchors[:, 0],
                y=anchors[:, 1],
                mode="markers+text",
                name="drawn anchors (private)",
                text=[str(i) for i in order],
                textposition="top center",
                textfont={"color": PRIVATE, "size": 13},
                marker={"symbol": "circle-open", "size": 15, "color": PRIVATE, "line": {"width": 3}},
                hovertemplate="anchor %{text}: (%{x:.2f}, %{y:.2f})<extra></extra>",
            ),
        ]
    )
    square_axes(figure, data.box)
    index = [int(((candidates - anchor) ** 2).sum(axis=1).argmin()) for anchor in anchors]
    table = pd.DataFrame(
        {"anchor": order, "x": anchors[:, 0], "y": anchors[:, 1], "records nearby (not private)": counts[index]}
    )
    draw = release.events[0]
    spread = np.exp(min(draw.epsilon_each * (counts.max() - np.median(counts)) / 2, 700))
    times = f"{short(float(spread))} times" if spread < 1e6 else "over a million times"
    sentence = (
        f"{len(anchors)} anchors drawn from {len(candidates):,} public candidates with ε = "
        f"{short(draw.epsilon_each)} each: the best candidate is {times} as likely "
        f"in a draw as the middle one."
    )
    return Chart(plain_layout(figure, 420), sentence, table)


def released_chart(data: Dataset, release: Release, nodes: int = 70) -> Chart:
    """The released surface: private, with each mode's height above the noise."""
    refuse_private(data)
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    x, y = (np.linspace(low, high, nodes) for low, high in data.box)
    heights = surface.grid([x, y]) / surface.noise_scale
    significance = release.significance if release.significance is not None else np.empty(0)
    figure = go.Figure(
        [
            go.Heatmap(
                x=x,
                y=y,
                z=heights.T.astype(np.float32),
                colorscale=PRIVATE_SCALE,
                zmin=0,
                zsmooth="best",
                colorbar={"title": {"text": "σ"}, "thickness": 10, "len": 0.8},
                name="released surface (private)",
                hovertemplate="(%{x:.2f}, %{y:.2f}): %{z:.1f} σ<extra></extra>",
            ),
            go.Scatter(
                x=release.modes[:, 0],
                y=release.modes[:, 1],
                mode="markers+text",
                name="private modes, in units of the noise (σ)",
                text=[f"{value:.1f} σ" for value in significance],
                textposition="top center",
                # Dark with a light halo: it reads on orange and on the background of both themes.
                textfont={"size": 13, "color": "#1B1F24", "shadow": "0 0 2px white, 0 0 3px white, 0 0 4px white"},
                marker=PRIVATE_MARK,
                showlegend=True,
                hovertemplate="(%{x:.3f}, %{y:.3f}) stands %{text} above the noise<extra></extra>",
            ),
        ]
    )
    square_axes(figure, data.box)
    table = pd.DataFrame({"x": release.modes[:, 0], "y": release.modes[:, 1], "height above the noise": significance})
    table.insert(0, "private mode", range(1, len(table) + 1))
    if len(significance):
        sentence = (
            f"The released surface itself, in units of its known noise: private, and all that follows is free. "
            f"The weakest of the {len(significance)} modes stands {significance.min():.1f} σ above the noise "
            "(a mode is weighed with the whole bump around it, so its σ can exceed the colour under it)."
        )
    else:
        sentence = "The released surface, in units of its known noise: nothing stands above the noise at this ε and n."
    return Chart(plain_layout(figure, 420), sentence, table)


def contour_chart(data: Dataset, grid: DensityGrid, release: Release, baseline: Release, height: int = 640) -> Chart:
    """(c) Contours with true modes, mean shift and private modes; the ascent plays step by step."""
    refuse_private(data)
    truth = true_modes(data)
    path = release.trajectories
    assert path is not None
    figure = go.Figure(
        [
            contours(grid),
            trails(path, len(path) - 1),
            walkers(path, len(path) - 1),
            marks(release.modes, "private modes", PRIVATE_MARK),
            marks(baseline.modes, "mean shift (not private)", NON_PRIVATE_MARK),
            marks(truth, "true modes", TRUTH_MARK),
        ]
    )
    # Frames change the trails, the walkers and, before the last one, hide the merged modes.
    figure.frames = [
        go.Frame(
            name=str(t),
            data=[trails(path, t), walkers(path, t), go.Scatter(visible=t == len(path) - 1)],
            traces=[1, 2, 3],
        )
        for t in range(len(path))
    ]
    square_axes(figure, data.box)
    player(figure, len(path))
    outside = int(((release.modes < data.box[:, 0]) | (release.modes > data.box[:, 1])).any(axis=1).sum())
    matching = match_modes(truth, release.modes)
    nearest = match_modes(truth, baseline.modes)
    radius = default_match_radius(truth)
    table = pd.DataFrame(
        {
            "true mode": range(1, len(truth) + 1),
            "x": truth[:, 0],
            "y": truth[:, 1],
            "private x": _matched(release.modes, matching.estimate_of, 0),
            "private y": _matched(release.modes, matching.estimate_of, 1),
            "private distance": matching.distance,
            "found": [
                "yes" if i >= 0 and r <= radius else "no"
                for i, r in zip(matching.estimate_of, matching.distance, strict=True)
            ],
            "mean-shift distance": nearest.distance,
        }
    )
    how = f"after {len(path) - 1} noisy steps from {path.shape[1]} starts"
    if release.surface is not None:
        how = f"fitted to the released surface; the paths climb it from {path.shape[1]} public starts"
    sentence = (
        f"{len(release.modes)} private modes {how}; "
        f"a true mode counts as found when its match lies within {short(radius)}."
    )
    if outside:
        sentence += f" {outside} of the private modes fell outside this picture: noise carried them out of the box."
    plain_layout(figure, height)
    # Fixed margins: plotly's own would shift the marks against the ticks while the ascent plays.
    # The legend hangs from the top, so that one line of it (wide) and four (a phone) both sit right.
    figure.update_layout(
        margin={"l": 45, "r": 10, "t": 85, "b": 130, "autoexpand": False},
        legend={"yref": "container", "y": 1.0, "yanchor": "top"},
    )
    return Chart(figure, sentence, table)


def runs_chart(
    data: Dataset, grid: DensityGrid, runs: list[Release], baseline: Release, columns: int = 5, row_height: int = 165
) -> Chart:
    """(e) Private runs on one data set, side by side, with the recovery of each true mode."""
    refuse_private(data)
    truth = true_modes(data)
    rows = -(-len(runs) // columns)
    layout = make_subplots(rows, columns, horizontal_spacing=0.012, vertical_spacing=0.02).layout
    coarse = DensityGrid(grid.x[::2], grid.y[::2], grid.z[::2, ::2])
    traces = []
    for i, release in enumerate(runs):
        axes = {"xaxis": f"x{i + 1}", "yaxis": f"y{i + 1}"}
        traces.append(contours(coarse, levels=4).update(axes))
        for points, name, mark, size in (
            (release.modes, "private modes", PRIVATE_MARK, 10),
            (baseline.modes, "mean shift (not private)", NON_PRIVATE_MARK, 9),
            (truth, "true modes", TRUTH_MARK, 7),
        ):
            trace = marks(points, name, {**mark, "size": size, "line": {**mark["line"], "width": 1.5}})
            traces.append(trace.update({**axes, "showlegend": i == 0, "legendgroup": name}))
    figure = go.Figure(traces, layout)
    bare = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "constrain": "domain"}
    for i in range(len(runs)):
        suffix = str(i + 1) if i else ""
        figure.layout[f"xaxis{suffix}"].update(range=list(data.box[0]), **bare)
        figure.layout[f"yaxis{suffix}"].update(range=list(data.box[1]), scaleanchor=f"x{suffix}", **bare)
    rates = recovery_rates(truth, [release.modes for release in runs])
    counts = np.rint(rates * len(runs)).astype(int)
    table = pd.DataFrame(
        {
            "true mode": range(1, len(truth) + 1),
            "x": truth[:, 0],
            "y": truth[:, 1],
            "found in runs": counts,
            "recovery rate": rates,
        }
    )
    whole = [bool(np.all(recovery_rates(truth, [release.modes]) == 1)) for release in runs]  # every mode was found
    sentence = (
        f"The same data, {len(runs)} private runs: all {len(truth)} modes found in {sum(whole)} of {len(runs)}; "
        f"each mode by itself in {', '.join(map(str, counts))} of {len(runs)} runs (in the order of the table)."
    )
    plain_layout(figure, row_height * rows + 60)
    # Each tinted square is one run; the theme's padding would make the tints overlap.
    figure.update_layout(plot_bgcolor=FAINT, margin={"pad": 0}, legend={"y": 1.01})
    return Chart(figure, sentence, table)


def _matched(points: Array, index: Array, axis: int) -> list[float]:
    return [float(points[i, axis]) if i >= 0 else float("nan") for i in index]
