"""The branches of a regression, and the released surface with the ridges read off it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets.regression import BranchMixture
from dpgrams_core.figures import style
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, TRUTH, WHITE, Chart, plain_layout
from dpgrams_core.figures.traces import (
    BAND_SENTENCE,
    band_columns,
    branch_bands,
    branch_lines,
    drawn_rows,
    line,
    points,
    released_surface,
    trails,
    walkers,
)
from dpgrams_core.model.format import fixed, short, whole_percent
from dpgrams_core.model.measures import default_branch_radius, score_branches
from dpgrams_core.model.results import ConditionalTruth, Dataset, Release, refuse_private
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
CHART_HEIGHT = 470
FRAME: dict[str, Any] = {
    "margin": {"l": 45, "r": 10, "t": 80, "b": 45, "autoexpand": False},
    "legend": style.HANGING_LEGEND,
}
X_AXIS = {"title": "x, the predictor (public)", "zeroline": False}
Y_AXIS = {"title": "y, the response", "zeroline": False}
# Places of the chart of all curves, which is sent anew with each private one: records, ends of PMS, nodes of a line.
MOST_RECORDS, MOST_ENDS, MOST_NODES = 1_000, 500, 200
SHARES = {
    "branch_recall": "branches found, %",
    "spurious": "of the curve on no branch, %",
    "coverage": "of x covered, %",
}
SIGMA = "height above the noise, σ"
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
    law = known_truth(data)
    x = np.linspace(data.box[0, 0], data.box[0, 1], nodes)
    jump = 0.1 * float(data.box[1, 1] - data.box[1, 0])
    parts = []
    for column in law.mode_table(x).T:
        breaks = np.flatnonzero(~(np.abs(np.diff(column)) <= jump)) + 1
        for piece in np.split(np.stack([x, column], axis=1), breaks):
            parts += [piece[np.isfinite(piece[:, 1])], np.full((1, 2), np.nan)]
    return np.concatenate(parts)


def _true_line(data: Dataset, width: float) -> go.Scatter:
    return line(true_branches(data).T, "true branches", TRUTH, width=width, opacity=0.55)


def _over(box: Array) -> dict[str, dict[str, Any]]:
    """Axes over the public box; x is public and y is not, so they say so."""
    return {"x": {"range": list(box[0]), **X_AXIS}, "y": {"range": list(box[1]), **Y_AXIS}}


def branches_chart(data: Dataset, fits: Sequence[tuple[str, Release]], *, records: bool, truth: bool) -> Chart:
    """Curves of several methods over the records and the true branches.

    ``fits`` are (name, release); of two private ones the second has open marks.  Its table has a row for each.
    """
    law = known_truth(data)
    traces: list[go.BaseTraceType] = []
    if records:
        rows = drawn_rows(data.n, MOST_RECORDS)
        mark = {"color": NON_PRIVATE, "size": 4, "opacity": float(np.clip(12 / np.sqrt(len(rows)), 0.08, 0.45))}
        x, y = (values[rows].astype(np.float32) for values in (data.x, data.y))
        traces.append(go.Scatter(x=x, y=y, mode="markers", name="records (not private)", marker=mark, hoverinfo="skip"))
    if truth:
        traces.append(_true_line(data, width=5))
    # Private curves last, so that they lie on top; the first private one is the one with filled marks.
    private = [(name, release) for name, release in fits if release.guarantee.status != "none"]
    traces += [_plain_curve(name, release) for name, release in fits if (name, release) not in private]
    for number, (name, release) in reversed(list(enumerate(private))):
        traces += _private_curve(name, release, opened=number > 0)
    figure = plain_layout(go.Figure(traces), CHART_HEIGHT, **_over(data.box), **FRAME)
    # A line under the pointer: the chart of the conditional density beside this one follows it.
    spike = {"showspikes": True, "spikemode": "across", "spikesnap": "cursor", "spikethickness": 1, "spikedash": "dot"}
    figure.update_xaxes(**spike)
    table, parts = [], []
    for name, release in fits:
        scores = score_branches(law, _curve(release), data.box)
        shares = {title: 100 * scores[measure] for measure, title in SHARES.items()}
        table.append({"curve": name, "guarantee": release.guarantee.words, "oracle MSE": scores["mse"], **shares})
        found = f"{name} {whole_percent(scores['branch_recall'])}"
        parts.append(found + _outside(_curve(release), data.box, "points"))
    sentence = "No curve is chosen: only what is known before any method runs."
    if parts:
        radius = short(default_branch_radius(law, data.box))
        sentence = f"Share of the true branches found, where a curve within {radius} in y counts: {'; '.join(parts)}."
    if any(release.curve_band is not None for _, release in fits):
        sentence += BAND_SENTENCE
    return Chart(figure, sentence, pd.DataFrame(table))


def runs_chart(data: Dataset, runs: Sequence[Release]) -> Chart:
    """The curves of private runs on one data set, one over the other, with what each found."""
    law = known_truth(data)
    traces: list[go.BaseTraceType] = []
    for number, release in enumerate(runs):
        x, y = _curve(release).T
        mark = {"color": PRIVATE, "size": 4, "opacity": 0.4}
        name = {"name": f"private branches, {len(runs)} runs", "legendgroup": "runs", "showlegend": number == 0}
        traces.append(go.Scatter(x=x, y=y, mode="markers", marker=mark, hoverinfo="skip", **name))
    figure = plain_layout(go.Figure([*traces, _true_line(data, width=3)]), CHART_HEIGHT, **_over(data.box), **FRAME)
    scores = [score_branches(law, _curve(release), data.box) for release in runs]
    found, errors = (np.array([one[name] for one in scores]) for name in ("branch_recall", "mse"))
    least, most = (whole_percent(share) for share in (found.min(), found.max()))
    shares = least if least == most else f"{least} to {most}"
    sentence = f"The same data, {len(runs)} private runs: {shares} of the branches found"
    if len(known := errors[np.isfinite(errors)]):
        low, middle, high = (short(value) for value in np.quantile(known, [0, 0.5, 1]))
        sentence += f"; squared error from {low} to {high}, {middle} in the middle"
    table = {"run": range(1, len(runs) + 1), "branches found, %": 100 * found, "oracle MSE": errors}
    return Chart(figure, sentence + ".", pd.DataFrame(table))


def share_near(data: Dataset, curve: Array) -> float:
    """The share of the records whose response is within the matching radius of a single-valued curve (not private)."""
    refuse_private(data)
    order = np.argsort(curve[:, 0], kind="stable")
    heights = np.interp(data.x, curve[order, 0], curve[order, 1])
    return float(np.mean(np.abs(data.y - heights) <= default_branch_radius(known_truth(data), data.box)))


def ridges_chart(data: Dataset, release: Release, nodes: int = 81) -> Chart:
    """The released surface in units of its noise, with the branches read off it."""
    refuse_private(data)
    surface, branches, significance = release.surface, release.branches, release.significance
    assert isinstance(surface, ReleasedSurface)
    assert branches is not None
    assert significance is not None
    curve, unit = _curve(release), np.linspace(0, 1, nodes)
    heights = surface.grid([unit, unit]) / surface.noise_grid([unit, unit])
    x, y = (low + unit * (high - low) for low, high in data.box)
    heat = released_surface(x, y, heights, "x %{x:.2f}, y %{y:.2f}", zmax=float(max(heights.max(), 1.0)))
    greatest: list[str] = []

    def look(sigma: Array) -> dict[str, Any]:
        """White lines, with a word at the highest point of each."""
        greatest.append(fixed(sigma.max(), 1))
        text = ["" if place != sigma.argmax() else f"{greatest[-1]} σ" for place in range(len(sigma))]
        return style.ON_A_SURFACE | {
            "mode": "lines+markers+text",
            "text": text,
            "textposition": "top center",
            "textfont": style.LABEL,
        }

    lines = branch_lines("branches read off it", curve, branches, significance, "x %{x:.2f}, y %{y:.2f}: ", look)
    columns = {"branch": branches + 1, "x": curve[:, 0], "y": curve[:, 1], SIGMA: significance}
    table = pd.DataFrame(columns | band_columns(release.curve_band))
    bands = branch_bands(release.curve_band, curve, branches, style.BAND_ON_A_SURFACE)
    sentence = (
        f"The released surface over (x, y), in units of its known noise (σ): private, and paid for once. "
        f"{len(greatest)} {'branch stands' if len(greatest) == 1 else 'branches stand'} out of it, at most "
        f"{', '.join(greatest)} σ above the noise; its bandwidth is {short(release.spec.bandwidth)} of each side of "
        "the box, by a public rule."
    ) + (BAND_SENTENCE if bands else "")
    return Chart(plain_layout(go.Figure([heat, *bands, *lines]), 420, **_over(data.box)), sentence, table)


def _curve(release: Release) -> Array:
    assert release.curve is not None
    return release.curve


def _plain_curve(name: str, release: Release) -> go.Scatter:
    """A curve without privacy: one line for a mean, a cross for each end point of partial mean shift."""
    rows, mean = _curve(release), release.method == "lowess"
    x, y = rows[drawn_rows(len(rows), MOST_NODES if mean else MOST_ENDS)].T
    return go.Scatter(
        x=x,
        y=y,
        mode="lines" if mean else "markers",
        name=f"{name} (not private)",
        line={"color": NON_PRIVATE, "dash": "dash", "width": 3},
        marker={"symbol": "x-thin", "size": 5, "line": {"width": 1.2, "color": NON_PRIVATE}},
        hovertemplate=name + ": x %{x:.2f}, y %{y:.2f}<extra></extra>",
    )


def _private_curve(name: str, release: Release, *, opened: bool) -> list[go.Scatter]:
    """A private curve: a line for each branch where these are known, else marks."""
    if release.branches is None or release.significance is None:
        return [_private_marks(f"{name} (private)", name, release, opened=opened)]

    def look(sigma: Array) -> dict[str, Any]:
        strength = np.clip(sigma / STRONG_SIGMA, 0.25, 1.0)
        mark = {"symbol": "circle-open" if opened else "circle", "color": PRIVATE, "size": 3 + 5 * strength}
        line = {"color": PRIVATE, "width": 2.5, "dash": "dot" if opened else "solid"}
        return {"line": line, "marker": {**mark, "opacity": strength}}

    where = name + ": x %{x:.2f}, y %{y:.2f}, "
    bands = branch_bands(release.curve_band, _curve(release), release.branches, style.tint(PRIVATE, 0.22))
    return bands + branch_lines(
        f"{name} (private)", _curve(release), release.branches, release.significance, where, look
    )


def _private_marks(title: str, name: str, release: Release, *, opened: bool) -> go.Scatter:
    """A private curve as one mark a row."""
    rim = {"width": 2, "color": PRIVATE} if opened else {"width": 1, "color": WHITE}
    mark = {"symbol": "diamond-open" if opened else "circle", "size": 9, "color": PRIVATE, "line": rim}
    return points(_curve(release).T, title, mark, name + ": x %{x:.2f}, y %{y:.2f}")


def _outside(points: Array, box: Array, what: str) -> str:
    """A clause that counts what a chart over the box does not show, or nothing."""
    count = int(((points[:, 1] < box[1, 0]) | (points[:, 1] > box[1, 1])).sum())
    return f"; {count} of the {len(points)} {what} fell outside this picture" if count else ""


# The conditional density of y at one x: the truth, what was released, and the plain KDE.

PLACES = 51
NODES = 121
LEAST_CERTAIN = 2.0  # a column whose mass is fewer standard deviations of noise than this has no density to show
BAND = style.tint(PRIVATE, 0.22)


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
    """The places x at which slices are made, as text: the names of the frames."""
    return [fixed(x) for x in np.linspace(box[0, 0], box[0, 1], PLACES)]


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
    number = place_names(data.box).index(at)
    widest = float(np.max([slices.truth.max(), slices.plain.max()]))
    figure = plain_layout(
        go.Figure([go.Scatter(shape) for shape in _shapes(release, slices, number)]),
        CHART_HEIGHT,
        {"range": [0, 1.12 * widest], "title": "density of y at this x", "zeroline": False, "nticks": 4},
        {"range": list(data.box[1]), **Y_AXIS},
        annotations=[_label(at)],
        **FRAME,
    )
    modes = _true_modes(slices, number)
    found, sigma = _private_modes(release, slices, number)
    rows = [("true", float(y), np.nan) for y in modes]
    rows += [("private", float(y), np.nan if sigma is None else float(sigma[i])) for i, y in enumerate(found)]
    table = pd.DataFrame(rows, columns=["mode", "y", SIGMA])
    densities = {"true": slices.truth, "released": slices.released, "plain density (not private)": slices.plain}
    for name, density in densities.items():
        if density is not None:
            title = name if density is slices.plain else f"{name} density"
            table[title] = np.interp(table["y"], slices.y, density[number])
    text = f"At x = {at} the truth has {_places(modes)}; the private curve has {_places(found)}."
    if slices.released is not None:
        if np.isnan(slices.released[number]).all():
            text += " What was released at this x is mostly noise, so no density is drawn from it."
        else:
            text += " The band is one standard deviation of the known noise."
    text += " Move the pointer over the chart of the branches, or the slider, for another x."
    return Chart(figure, text, table)


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
        "still": [_plain_values(shape["y"]) if shape["mode"] == "lines" else None for shape in frames[0]],
        "x": [[_plain_values(shape["x"]) for shape in frame] for frame in frames],
        "y": [[None if shape["mode"] == "lines" else _plain_values(shape["y"]) for shape in frame] for frame in frames],
    }


def squeezed(frames: dict[str, Any], **more: Any) -> bytes:
    """``slice_frames``, and what else stands beside them, as a tenth of the bytes; follow_pointer.js reads them.

    Of the densities the changes of their changes are kept, in ten-thousandths: small whole numbers, since a density is
    smooth.  The rest is zlib's.
    """
    bends = [[_bends(values) for values in frame] for frame in frames["x"]]
    return zlib.compress(json.dumps({**frames, **more, "x": bends}, separators=(",", ":"), allow_nan=False).encode())


def _bends(values: list[float | None]) -> list[int | None]:
    """The changes of the changes in ten-thousandths.

    >>> _bends([0.1, 0.2, None, 0.4])
    [1000, 0, None, 1000]
    """
    found: list[int | None] = []
    last = step = 0
    for value in values:
        if value is None:
            found.append(None)
            continue
        step, before, last = round(1e4 * value) - last, step, round(1e4 * value)
        found.append(step - before)
    return found


def _private_modes(release: Release, slices: Slices, number: int) -> tuple[Array, Array | None]:
    """The private curve's responses nearest to a place, if they are within the window, and their heights in σ."""
    curve = _curve(release)
    if len(curve) == 0:
        return np.empty(0), None
    gaps = np.abs(curve[:, 0] - float(slices.x[number]))
    near = (gaps <= gaps.min() + 1e-9) & (gaps <= 1.25 * float(slices.x[1] - slices.x[0]))
    return curve[near, 1], None if release.significance is None else release.significance[near]


def _true_modes(slices: Slices, number: int) -> Array:
    row = slices.modes[number]
    return row[np.isfinite(row)]


def _label(name: str) -> dict:
    corner = {"x": 1, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "top"}
    return {"text": f"<b>x = {name}</b>", **corner, "showarrow": False, "font": {"size": 17}}


def _plain_values(values: Array) -> list[float | None]:
    return [None if value != value else value for value in np.round(values, 4).tolist()]


def _shapes(release: Release, slices: Slices, number: int) -> list[dict[str, Any]]:
    """The same traces in the same order for every place."""
    shapes: list[dict[str, Any]] = []
    y, truth = slices.y, slices.truth[number]

    def add(name: str, x: Array, y: Array, mode: str, **look: Any) -> None:
        hover = name + ": density %{x:.2f} at y = %{y:.2f}<extra></extra>"
        told = {"hovertemplate": hover, "cliponaxis": mode == "lines", "showlegend": mode == "lines"}
        shapes.append({"x": x, "y": y, "mode": mode, "name": name, **told, **look})

    def thick(colour: str, dash: str | None = None) -> dict[str, Any]:
        return {"color": colour, "width": 2.5, "dash": dash}

    # Without a released density a private mode has a place but no height: it stands on the axis.
    heights = np.zeros(NODES)
    if slices.released is not None and slices.noise is not None:
        middle, spread = slices.released[number], slices.noise[number]
        heights = np.nan_to_num(middle)
        edges, around = np.concatenate([middle - spread, (middle + spread)[::-1]]), np.concatenate([y, y[::-1]])
        fill = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0}, "hoverinfo": "skip", "hovertemplate": None}
        add("± 1 σ", edges, around, "lines", **(fill | {"showlegend": False}))
        add("released (private)", middle, y, "lines", line=thick(PRIVATE))
    add("plain density (not private)", slices.plain[number], y, "lines", line=thick(NON_PRIVATE, "dash"))
    add("truth", truth, y, "lines", line=thick(TRUTH))
    modes, (found, _) = _true_modes(slices, number), _private_modes(release, slices, number)
    add("true modes", np.interp(modes, y, truth), modes, "markers", marker=style.TRUTH_MARK)
    add("private modes", np.interp(found, y, heights), found, "markers", marker={**style.PRIVATE_MARK, "size": 12})
    return shapes


def _places(modes: Array) -> str:
    if len(modes) == 0:
        return "no mode there"
    if len(modes) > 4:
        return f"{len(modes)} modes between y = {fixed(modes.min())} and {fixed(modes.max())}"
    return (
        ("a mode" if len(modes) == 1 else f"{len(modes)} modes")
        + " at y = "
        + ", ".join(fixed(y) for y in sorted(modes))
    )


# The anchors of DP-PMS and their ascent in the response, step by step.


def ascent_chart(data: Dataset, release: Release) -> Chart:
    """The anchors of DP-PMS and their noisy steps in y; the predictor never moves.

    As run the anchors are records, and no accountant can price their draw.
    """
    law = known_truth(data)
    path, anchors = release.trajectories, release.anchors
    assert path is not None
    assert anchors is not None
    mark = {"symbol": "line-ew", "size": 11, "line": {"width": 3, "color": PRIVATE}}
    drawn = "anchors drawn (private)" if release.events else "anchors, which are records (not private)"
    figure = go.Figure(
        [
            _true_line(data, width=4),
            points(anchors.T, drawn, mark, "anchor: x %{x:.2f}, y %{y:.2f}"),
            trails(path),
            walkers(path),
            _private_marks("private curve", "private curve", release, opened=False),
        ]
    )
    plain_layout(figure, CHART_HEIGHT, **_over(data.box), **FRAME)
    x, end = path[-1].T
    gaps = np.abs(law.mode_table(x) - end[:, None])
    nearest = np.where(np.isnan(gaps), np.inf, gaps).min(axis=1)
    table = pd.DataFrame(
        {
            "start": range(1, len(end) + 1),
            "x (public)": x,
            "anchor y": anchors[:, 1],
            "end y": end,
            "distance to the nearest branch": nearest,
        }
    )
    radius = default_branch_radius(law, data.box)
    what = "each a record as it is"
    if release.events:
        what = f"each at a public x with its y drawn with ε = {short(release.events[0].epsilon_each)}"
    sentence = (
        f"{len(end)} anchors, {what}, then {len(path) - 1} noisy steps in y; x never moves. "
        f"{int((nearest <= radius).sum())} of the {len(end)} ends lie within {short(radius)} of a true branch"
        f"{_outside(path[-1], data.box, 'ends')}."
    )
    return Chart(figure, sentence, table)
