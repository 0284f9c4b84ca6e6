"""The pictures of the Modes page, after fig:bivariate_gauss_fourpanel and fig:bivariate_4mix_grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.figures import style, traces
from dpgrams_core.figures.style import CHANCE, NON_PRIVATE_MARK, PRIVATE, PRIVATE_MARK, TRUTH_MARK, Chart, plain_layout
from dpgrams_core.figures.traces import (
    REGION_SENTENCE,
    REGION_WORDS,
    DensityGrid,
    contours,
    named,
    points,
    trails,
    walkers,
    weak_sentence,
)
from dpgrams_core.model.format import chance_words, short, sigmas
from dpgrams_core.model.guarantee import status_in_a_line
from dpgrams_core.model.measures import default_match_radius, match_modes, recovery_rates, score
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.numerics.bumps import WEAK
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray


def true_modes(data: Dataset) -> Array:
    """The known modes; these pictures are for data that have them."""
    refuse_private(data)
    if data.true_modes is None:
        raise ValueError("this picture needs a data set with known modes")
    return data.true_modes


def _square_axes(box: Array) -> dict[str, dict[str, Any]]:
    """Axes over the public box with equal scales."""
    common = {"constrain": "domain", "zeroline": False}
    x = {"range": list(box[0]), "title": "x", **common}
    return {"x": x, "y": {"range": list(box[1]), "title": "y", "scaleanchor": "x", **common}}


def _marks(places: Array, name: str, mark: dict) -> go.Scatter:
    return points(places.T, name, mark, name + ": (%{x:.3f}, %{y:.3f})")


def _table(what: str, places: Array, **more: Any) -> pd.DataFrame:
    x, y = places.T
    return pd.DataFrame({what: range(1, len(places) + 1), "x": x, "y": y, **more})


def surface_chart(data: Dataset, grid: DensityGrid, bandwidth: float) -> Chart:
    """(a) The KDE surface in three dimensions with the true modes on it."""
    truth = true_modes(data)
    columns = np.abs(grid.x[:, None] - truth[:, 0]).argmin(axis=0)
    rows = np.abs(grid.y[:, None] - truth[:, 1]).argmin(axis=0)
    heights = grid.z[columns, rows]
    surface = go.Surface(
        x=grid.x,
        y=grid.y,
        z=grid.z.T.astype(np.float32),
        colorscale=style.NON_PRIVATE_SURFACE,
        showscale=False,
        name="plain density (not private)",
        hovertemplate="(%{x:.2f}, %{y:.2f}) density %{z:.3g}<extra></extra>",
    )
    x, y = truth.T
    mark = {**TRUTH_MARK, "symbol": "diamond", "size": 6}
    above = heights * 1.02 + 0.02 * grid.z.max()
    modes = go.Scatter3d(x=x, y=y, z=above, mode="markers", name="true modes", marker=mark)
    scene = {
        "xaxis_title": "x",
        "yaxis_title": "y",
        "zaxis_title": "density",
        "aspectratio": {"x": 1, "y": 1, "z": 0.6},
        "camera": {"eye": {"x": 1.2, "y": -1.4, "z": 0.9}, "center": {"x": 0, "y": 0, "z": -0.14}},
    }
    sentence = (
        f"The plain density of the {data.n:,} simulated points (bandwidth {short(bandwidth)}), with the "
        f"{len(truth)} true modes in green. It is read off the records and is not private."
    )
    table = _table("true mode", truth, **{"height of the density": heights})
    return Chart(plain_layout(go.Figure([surface, modes]), 420, scene=scene), sentence, table)


def anchors_chart(data: Dataset, release: Release) -> Chart:
    """(b) DAP candidates coloured by utility, with the anchors that were drawn; as run, these have no guarantee."""
    refuse_private(data)
    candidates, utilities, anchors = release.diagnostics.candidates, release.diagnostics.utilities, release.anchors
    assert candidates is not None
    assert utilities is not None
    assert anchors is not None
    counts = np.rint(utilities * data.n).astype(int)
    shade = {
        "color": counts,
        "colorscale": style.NON_PRIVATE_SCALE,
        "size": float(np.clip(260 / np.sqrt(len(candidates)), 3, 14)),
        "symbol": "square",
        "colorbar": style.scale_bar("records"),
    }
    x, y = candidates.T
    drawn = (go.Scattergl if len(candidates) > 3000 else go.Scatter)(
        x=x,
        y=y,
        mode="markers",
        name="candidates, by records nearby (not private)",
        marker=shade,
        hovertemplate="(%{x:.2f}, %{y:.2f}): %{marker.color} records<extra></extra>",
    )
    mark = {"symbol": "circle-open", "size": 15, "color": PRIVATE, "line": {"width": 3}}
    numbers = named([str(i + 1) for i in range(len(anchors))], {**style.LABEL, "size": 15})
    hover = "anchor %{text}: (%{x:.2f}, %{y:.2f})"
    priced = release.events  # none where no accountant can price it
    title = "drawn anchors (private)" if priced else "drawn anchors (no guarantee)"
    figure = go.Figure([drawn, points(anchors.T, title, mark, hover, **numbers)])
    index = [int(((candidates - anchor) ** 2).sum(axis=1).argmin()) for anchor in anchors]
    table = _table("anchor", anchors, **{"records nearby (not private)": counts[index]})
    each = priced[0].epsilon_each if priced else release.spec.init_fraction * release.spec.epsilon / len(anchors)
    spread = np.exp(min(each * (counts.max() - np.median(counts)) / 2, 700))
    times = f"{short(float(spread))} times" if spread < 1e6 else "over a million times"
    sentence = (
        f"{len(anchors)} anchors drawn from {len(candidates):,} {'public ' if priced else ''}candidates with "
        f"ε = {short(each)} each: the "
        f"best candidate is {times} as likely in a draw as the middle one."
    )
    return Chart(plain_layout(figure, 420, **_square_axes(data.box)), sentence, table)


def verdict(data: Dataset, release: Release, title: str) -> str:
    """What a method found, how well, and with which guarantee, as HTML."""
    refuse_private(data)
    status, name = status_in_a_line(release.guarantee.words), f'<b class="private">{title}</b>'
    if len(release.modes) == 0:
        return f"{name} reports <b>no mode</b>: nothing stands above its noise; <b>{status}</b>."
    scores = score(release, data)
    text = f"{name} found <b>{int(scores['found'])} of {int(scores['found'] + scores['missed'])}</b> modes"
    if scores["spurious"]:
        text += f" and <b>{int(scores['spurious'])}</b> not there"
    return f'{text}, error <b class="private">{short(scores["mse_per_true_mode"])}</b>, <b>{status}</b>.'


def sure_regions(release: Release) -> tuple[Array, Array]:
    """Which modes stand far enough above the noise for a region, (k,), and the covariances of all, (k, d, d)."""
    both, heights = release.mode_covariances, release.significance
    if both is None or heights is None:
        return np.zeros(len(release.modes), dtype=bool), np.full((len(release.modes), 2, 2), np.nan)
    return (heights >= WEAK) & np.isfinite(both).all(axis=(1, 2)), both


def region_sentence(release: Release) -> str:
    """What the regions mean for somebody who decides, and where they are not to be trusted; empty without any."""
    sure, both = sure_regions(release)
    noise = release.noise_covariances
    if noise is None or not len(sure):
        return ""
    weak = weak_sentence(sure)
    if not sure.any():
        return weak
    wide, part = (float(np.sqrt(np.trace(c[sure], axis1=1, axis2=2) / 2).mean()) for c in (both, noise))
    return (
        f" Each ring{REGION_SENTENCE} A mode is off by about {short(wide)} along each column; by {short(part)} if only "
        f"the noise counted.{weak}"
    )


def chance_sentence(release: Release) -> str:
    """How likely the weakest mode is only noise, and how often a list of modes has a false one; empty without any."""
    chances = release.noise_chances
    if chances is None or not len(chances):
        return ""
    text = f" The {CHANCE} and not a bump of these records' smoothed density: {chance_words(float(chances.max()))} "
    text += "for the weakest, with all places looked at."
    if getattr(release.spec, "n_modes", None) is None:
        text += " As many modes as stand out are shown: where there is none, at most 5 lists in 100 have one."
    return text


def _region_columns(release: Release) -> dict[str, Array]:
    """± of 95 % along each column for the table, of the population; empty without regions."""
    halves = release.half_widths
    return {} if halves is None else {f"± {name} (95%)": halves[:, j] for j, name in enumerate("xy")}


def released_chart(data: Dataset, release: Release, nodes: int = 70) -> Chart:
    """The released surface: private, with each mode's height above the noise."""
    refuse_private(data)
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    x, y = traces.grid_axes(data.box, nodes)
    heights = surface.grid([x, y]) / surface.noise_scale
    top = float(max(heights.max(), 1.0))  # without it the colours would begin at the lowest noise and not at 0
    heat = traces.released_surface(x, y, heights, "(%{x:.2f}, %{y:.2f})", zmax=top)
    significance = release.significance if release.significance is not None else np.empty(0)
    title, hover = "private modes, in units of the noise (σ)", "(%{x:.3f}, %{y:.3f}) stands %{text} above the noise"
    labels = named([sigmas(value) for value in significance], style.LABEL)
    sure, both = sure_regions(release)
    regions = [traces.rings(release.modes[sure], both[sure], REGION_WORDS, PRIVATE)] if sure.any() else []
    marks = points(release.modes.T, title, style.SMALL_PRIVATE_MARK, hover, showlegend=True, **labels)
    figure = go.Figure([heat, *regions, marks])
    sentence = "The released surface, in units of its known noise: nothing stands above the noise at this ε and n."
    if len(significance):
        sentence = (
            f"The released surface itself, in units of its known noise: private, and all that follows is free. "
            f"The weakest of the {len(significance)} modes stands {sigmas(significance.min())} above the noise "
            "(a mode is weighed with the whole bump around it, so its σ can exceed the colour under it)."
            + chance_sentence(release)
            + region_sentence(release)
        )
    columns = {"height above the noise": significance, **_region_columns(release)}
    if release.noise_chances is not None:
        columns |= {CHANCE: release.noise_chances}
    table = _table("private mode", release.modes, **columns)
    return Chart(plain_layout(figure, 420, **_square_axes(data.box)), sentence, table)


def contour_chart(data: Dataset, grid: DensityGrid, release: Release, baseline: Release, height: int = 640) -> Chart:
    """(c) Contours with true modes, mean shift and private modes, and the paths to them."""
    truth, path = true_modes(data), release.trajectories
    sure, both = sure_regions(release)
    figure = go.Figure(
        [
            contours(grid),
            *(() if path is None else (trails(path), walkers(path))),
            *([traces.rings(release.modes[sure], both[sure], REGION_WORDS, PRIVATE)] if sure.any() else []),
            _marks(release.modes, "private modes", PRIVATE_MARK),
            _marks(baseline.modes, "mean shift (not private)", NON_PRIVATE_MARK),
            _marks(truth, "true modes", TRUTH_MARK),
        ]
    )
    plain_layout(figure, height, **_square_axes(data.box))
    how = "released at once"
    if path is not None:
        how = f"after {len(path) - 1} noisy steps from {path.shape[1]} starts"
        if release.surface is not None:
            how = f"fitted to the released surface; the paths climb it from {path.shape[1]} public starts"
    matching, radius = match_modes(truth, release.modes), default_match_radius(truth)
    found = (matching.estimate_of >= 0) & (matching.distance <= radius)
    # One row more for the true modes that have no match.
    matched = np.vstack([release.modes, np.full(2, np.nan)])[matching.estimate_of]
    own = {"private x": matched[:, 0], "private y": matched[:, 1], "private distance": matching.distance}
    nearest = match_modes(truth, baseline.modes).distance
    table = _table("true mode", truth, **own, found=np.where(found, "yes", "no"), **{"mean-shift distance": nearest})
    sentence = (
        f"{len(release.modes)} private modes {how}; "
        f"a true mode counts as found when its match lies within {short(radius)}."
    )
    outside = int(((release.modes < data.box[:, 0]) | (release.modes > data.box[:, 1])).any(axis=1).sum())
    if outside:
        sentence += f" {outside} of the private modes fell outside this picture: noise carried them out of the box."
    return Chart(figure, sentence + region_sentence(release), table)


def runs_chart(
    data: Dataset, grid: DensityGrid, runs: list[Release], baseline: Release, columns: int = 5, row_height: int = 165
) -> Chart:
    """(e) Private runs on one data set, side by side, with the recovery of each true mode."""
    truth = true_modes(data)
    rows = -(-len(runs) // columns)
    figure = make_subplots(rows, columns, horizontal_spacing=0.012, vertical_spacing=0.02)
    coarse = DensityGrid(grid.x[::2], grid.y[::2], grid.z[::2, ::2])
    bare = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "constrain": "domain"}
    drawn = []
    for i, release in enumerate(runs):
        suffix = str(i + 1) if i else ""
        figure.layout[f"xaxis{suffix}"].update(range=list(data.box[0]), **bare)
        figure.layout[f"yaxis{suffix}"].update(range=list(data.box[1]), scaleanchor=f"x{suffix}", **bare)
        axes = {"xaxis": f"x{i + 1}", "yaxis": f"y{i + 1}"}
        drawn.append(contours(coarse, levels=4).update({**axes, "showlegend": i == 0}))
        for places, name, mark, size in (
            (release.modes, "private modes", PRIVATE_MARK, 13),
            (baseline.modes, "mean shift (not private)", NON_PRIVATE_MARK, 7),
            (truth, "true modes", TRUTH_MARK, 6),
        ):
            trace = _marks(places, name, {**mark, "size": size, "line": {**mark["line"], "width": 1.5}})
            drawn.append(trace.update({**axes, "showlegend": i == 0, "legendgroup": name}))
    figure = plain_layout(go.Figure(drawn, figure.layout), row_height * rows + 60)
    # Each tinted square is one run; the theme's padding would make the tints overlap.
    figure.update_layout(plot_bgcolor=style.FAINT, margin={"pad": 0}, legend={"y": 1.01})
    rates = recovery_rates(truth, [release.modes for release in runs])
    counts = np.rint(rates * len(runs)).astype(int)
    whole = [bool(np.all(recovery_rates(truth, [release.modes]) == 1)) for release in runs]  # every mode was found
    sentence = (
        f"The same data, {len(runs)} private runs: all {len(truth)} modes found in {sum(whole)} of {len(runs)}; "
        f"each mode by itself in {', '.join(map(str, counts))} of {len(runs)} runs (in the order of the table)."
    )
    return Chart(figure, sentence, _table("true mode", truth, **{"found in runs": counts, "recovery rate": rates}))
