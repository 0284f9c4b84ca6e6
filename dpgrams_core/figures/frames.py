"""What a picture shows at every ε, as arrays for the browser: the engine's own results, small enough for one message.

A frame is one simulated run with the seed of the page, so all frames share their unit noise.  The browser shows frames
and nothing between them.  Surfaces are densities, on which one scale serves all frames: what dissolves is what the
noise drowns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpgrams_core.figures.clusters import (
    around,
    class_names,
    in_class_order,
    matched_classes,
    plane_of,
    record_tints,
    true_centres,
)
from dpgrams_core.figures.modes import sure_regions, true_modes, verdict
from dpgrams_core.figures.regression import true_branches
from dpgrams_core.figures.style import CHANCE, RECORD_TINTS
from dpgrams_core.figures.traces import BAND_WORDS, REGION_WORDS, DensityGrid, drawn_rows, grid_axes, to_rings
from dpgrams_core.methods.functional.regression import UNIT_SQUARE
from dpgrams_core.methods.registry import METHODS, run
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import chance_words, fixed, short, sigmas, whole_percent
from dpgrams_core.model.guarantee import status_in_a_line
from dpgrams_core.model.measures import default_match_radius, match_modes, nearest_centres, score
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.model.run import Run
from dpgrams_core.model.specs import settings_of
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
NODES = 60  # of a surface, a side
MOST_BYTES = 400_000  # of a message
MOST_PATHS, MOST_STEPS = 40, 14  # drawn of a release's trajectories, evenly chosen
MOST_ROWS = 60  # of a frame's table
MOST_RECORDS = 1_000  # behind a picture of modes, which they must not hide
GAP_BYTES = 500  # of a frame that is a gap
TOO_LARGE = "it has too many modes to be shown while you drag; let go to see it."
COARSE = 4  # of so many stops the first frames take one


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """One result as it is drawn; where there is none, ``gap`` says why.

    ``places`` (k, 2) are what was found, in doubles; ``layers`` the other arrays of the picture by their names.
    """

    epsilon: float
    seed: int
    gap: str = ""
    sentence: str = ""
    status: str = ""
    guarantee: str = ""
    places: Array = field(default_factory=lambda: np.empty((0, 2)))
    layers: dict[str, Any] = field(default_factory=dict)
    table: Sequence[Sequence[str]] = ()  # its first row has the names of the columns

    def content(self) -> dict[str, Any]:
        """What a message holds of it."""
        return {"text": short(self.epsilon), **vars(self)}


def epsilon_stops(method: str) -> tuple[float, ...]:
    """The ε that a page offers for a method.

    >>> epsilon_stops("functional")[:3]
    (0.01, 0.02, 0.05)
    """
    return tuple(settings_of(METHODS[method].spec)["epsilon"].steps)


def coarse_first(stops: Sequence[float], now: float) -> list[float]:
    """All stops in the order in which their frames are made: a few over the whole range, then the nearest to now.

    >>> coarse_first([1, 2, 3, 4, 5, 6], 2)
    [2, 6, 1, 3, 4, 5]
    """
    here = min(range(len(stops)), key=lambda i: abs(stops[i] - now))
    near = sorted(range(len(stops)), key=lambda i: abs(i - here))
    first = [len(stops) - 1, 0, *range(len(stops) - 1, 0, -COARSE)]
    return list(dict.fromkeys([now, *(stops[i] for i in [*first, *near])]))


def frame(data: Dataset, wanted: Run, title: str) -> Frame:
    """The engine's result for a run as a frame; one that cannot be computed is a gap with its reason."""
    refuse_private(data)
    try:
        release = run(wanted.method, data, seed=wanted.seed, **wanted.settings)
    except (SpecError, DataError, ArithmeticError) as error:
        return _gap(wanted, str(error))
    return frame_of(data, release, wanted, title)


def _gap(wanted: Run | Frame, reason: str) -> Frame:
    return Frame(epsilon=wanted.epsilon, seed=wanted.seed, gap=reason)


def frame_of(data: Dataset, release: Release, wanted: Run, title: str) -> Frame:
    """The frame of a release that is there already."""
    refuse_private(data)
    guarantee = release.guarantee
    drawn = FRAMES[data.kind](data, release, title)
    return replace(
        drawn,
        epsilon=wanted.epsilon,
        seed=wanted.seed,
        sentence=f"At ε = {short(wanted.epsilon)} {drawn.sentence}",
        status=guarantee.words,
        guarantee=guarantee.statement,
    )


def _modes_frame(data: Dataset, release: Release, title: str) -> Frame:
    truth = true_modes(data)
    matching = match_modes(truth, release.modes)
    radius = default_match_radius(truth)
    near = matching.distance <= radius
    found = {int(i): k for k, i in enumerate(matching.estimate_of) if i >= 0 and near[k]}
    sigma = release.significance
    chances = release.noise_chances
    heads = ["above the noise"] if sigma is not None else []
    heads += [*([CHANCE] if chances is not None else []), f"true mode within {short(radius)}"]
    table = [["private mode", "x", "y", *heads]]
    for i, (x, y) in enumerate(release.modes[:MOST_ROWS]):
        height = [sigmas(sigma[i])] if sigma is not None else []
        height += [chance_words(chances[i])] if chances is not None else []
        table.append([str(i + 1), fixed(x, 3), fixed(y, 3), *height, str(found[i] + 1) if i in found else "none"])
    layers = {
        "sigma": sigma,
        "anchors": some(release.anchors, MOST_PATHS),
        "tracks": some(release.trajectories, MOST_STEPS, MOST_PATHS),
        "surface": density(release, data.box),
        "regions": _regions(release),
    }
    return _drawn(verdict(data, release, title) + outside(data.box, release.modes), release.modes, layers, table)


def _regions(release: Release) -> Array | None:
    """What turns a circle of radius 1 to the 95 % region of each sure mode, (k, 2, 2); NaN for the others."""
    sure, both = sure_regions(release)
    if not sure.any():
        return None
    both = np.where(sure[:, None, None], both, np.eye(2))
    return np.where(sure[:, None, None], to_rings(both), np.nan)


def outside(box: Array, places: Array) -> str:
    """A sentence that counts what a picture over the box does not show, or nothing."""
    count = int(((places < box[:, 0]) | (places > box[:, 1])).any(axis=1).sum())
    return f" {count} of the {len(places)} fell outside this picture: noise carried them there." if count else ""


def _drawn(sentence: str, places: Array, layers: dict[str, Any], table: list[list[str]]) -> Frame:
    kept = {name: _small(layer) for name, layer in layers.items() if layer is not None}
    return Frame(epsilon=np.nan, seed=0, sentence=sentence, places=places, layers=kept, table=table)


def _small(layer: Any) -> Any:
    return layer.astype(np.float32) if isinstance(layer, np.ndarray) and layer.dtype == np.float64 else layer


def some(values: Array | None, *most: int) -> Array | None:
    """At most so many of an array along its first axes, evenly chosen.

    >>> some(np.arange(10), 3).tolist()
    [0, 4, 9]
    """
    if values is None:
        return None
    for axis, (count, few) in enumerate(zip(values.shape, most, strict=False)):
        values = values.take(_few(count, few), axis)
    return values


def _few(count: int, most: int) -> Array:
    """The numbers 0 to count - 1, or so many of them, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def density(release: Release, box: Array) -> dict[str, Any] | None:
    """The released surface, or what the rounds of tight show together, over a box of two columns as a density."""
    surface, rounds = release.surface, release.pooled
    if rounds is not None and len(box) == 2:
        heights = rounds.unit * rounds.grid_in_noise(grid_axes(box, NODES), rounds.box)
        return sixteen_bits(heights / (release.spec.batch_size * 2 * np.pi * rounds.h**2))
    if not isinstance(surface, ReleasedSurface) or surface.dimension != 2:
        return None
    heights = surface.grid(grid_axes(box, NODES))
    return sixteen_bits(heights / (surface.n * 2 * np.pi * surface.bandwidth**2))


def sixteen_bits(heights: Array) -> dict[str, Any]:
    """Heights (nodes, nodes) in 2^16 steps between their least and their largest.

    >>> sixteen_bits(np.array([[0.0, 1.0], [0.5, 1.0]]))["steps"].tolist()
    [[0, 65535], [32768, 65535]]
    """
    low, high = float(heights.min()), float(heights.max())
    steps = np.rint((heights - low) / max(high - low, 1e-300) * 65535).astype(np.uint16)
    return {"low": low, "high": high, "steps": steps}


def _regression_frame(data: Dataset, release: Release, title: str) -> Frame:
    curve, sigma = release.rows, release.significance
    heights = [""] * len(curve) if sigma is None else [sigmas(value) for value in sigma]
    table = [["row of the curve", "x (public)", "y", "above the noise"]]
    table += [
        [str(i + 1), fixed(curve[i, 0], 3), fixed(curve[i, 1], 3), heights[i]] for i in _few(len(curve), MOST_ROWS)
    ]
    layers: dict[str, Any] = {
        "sigma": sigma,
        "anchors": some(release.anchors, MOST_PATHS),
        "tracks": some(release.trajectories, MOST_STEPS, MOST_PATHS),
        "branches": None if release.branches is None else release.branches.astype(np.uint16),
        "band": None if release.curve_band is None else sixteen_bits(release.curve_band),
        "surface": density(release, UNIT_SQUARE),  # the method's own, whose sides are those of the box
    }
    return _drawn(branches_verdict(data, release, title) + outside(data.box, curve), curve, layers, table)


def branches_verdict(data: Dataset, release: Release, title: str) -> str:
    """How much of the branches a method found, how well, and with which guarantee, as HTML."""
    refuse_private(data)
    status, name = status_in_a_line(release.guarantee.words), f'<b class="private">{title}</b>'
    if len(release.rows) == 0:
        return f"{name} reports <b>no branch</b>: nothing stands above its noise; <b>{status}</b>."
    scores = score(release, data)
    return (
        f"{name} finds <b>{whole_percent(scores['branch_recall'])}</b> of the branches, "
        f"<b>{whole_percent(scores['spurious'])}</b> of its curve lies on none, "
        f'squared error <b class="private">{short(scores["mse"])}</b>, <b>{status}</b>.'
    )


def _clusters_frame(data: Dataset, release: Release, title: str) -> Frame:
    plane, scores, ordered = plane_of(data), score(release, data), in_class_order(data, release)
    centres, box, names = ordered.modes, clusters_box(data), class_names(data)
    matched = matched_classes(data, centres)
    shown = plane.show(centres)
    table = [["centre", *plane.names, "true class"]]
    for i, place in enumerate(shown[:MOST_ROWS]):
        name = names[matched[i]] if matched[i] >= 0 else "none"
        table.append([str(i + 1), *(fixed(value, 3) for value in place), name])
    near = nearest_centres(data.points[drawn_rows(data.n)], centres)
    flat = data.dimension == 2
    layers: dict[str, Any] = {"tints": record_tints(near, matched), "surface": density(release, box) if flat else None}
    if flat:
        layers |= {"anchors": some(release.anchors, MOST_PATHS)}
        layers |= {"tracks": some(release.trajectories, MOST_STEPS, MOST_PATHS)}
    none = "" if len(centres) else " (no centre: nothing stands above its noise)"
    sentence = (
        f'<b class="private">{title}</b> has ARI <b class="private">{fixed(scores["ari"])}</b>{none}, NMI '
        f"{fixed(scores['nmi'])}, centroid MSE {short(scores['centroid_mse'])}, inertia {short(scores['inertia'])}, "
        f"<b>{status_in_a_line(release.guarantee.words)}</b>."
    )
    return _drawn(sentence + outside(box, shown), shown, layers, table)


FRAMES: dict[str, Callable[[Dataset, Release, str], Frame]] = {
    "modes": _modes_frame,
    "regression": _regression_frame,
    "clusters": _clusters_frame,
}


# What stays the same in all frames of a picture.


def modes_scene(data: Dataset, baseline: Release, grid: DensityGrid | None, regions: bool = False) -> dict[str, Any]:
    """The axes, some records, the true modes, those of mean shift, and grey lines where no private surface is; the
    legend names the ``regions`` that frames have of a method."""
    refuse_private(data)
    legend = [["truth", "true modes"], ["plain", "mean shift (not private)"], ["private", "private modes"]]
    legend.append(["records", "simulated records (not private)"])
    records = data.points[drawn_rows(data.n, MOST_RECORDS)].astype(np.float32)
    still: dict[str, Any] = {"truth": true_modes(data), "plain": baseline.modes, "records": records}
    if grid is not None:
        still["grey"] = sixteen_bits(grid.z)
        legend.append(["grey", "plain density (not private)"])
    legend += [["region", REGION_WORDS]] * regions
    return {"box": data.box.tolist(), "names": ["x", "y"], "equal": True, "legend": legend, "still": still}


def regression_scene(data: Dataset, lowess: Release, bands: bool = False) -> dict[str, Any]:
    """The axes, some records, the true branches and the line of LOWESS; the legend names the ``bands`` of a method."""
    refuse_private(data)
    legend = [["truth_line", "true branches"], ["private", "private branches"], *[["band", BAND_WORDS]] * bands]
    legend += [["plain_line", "LOWESS (not private)"], ["records", "records (not private)"]]
    line = lowess.rows[np.argsort(lowess.rows[:, 0], kind="stable")]
    still = {"records": data.points[drawn_rows(data.n)], "truth_line": true_branches(data), "plain_line": line}
    names = ["x, the predictor (public)", "y, the response"]
    return {"box": data.box.tolist(), "names": names, "equal": False, "legend": legend, "still": _still(still)}


def clusters_scene(data: Dataset, plain: Release) -> dict[str, Any]:
    """The plane, the records in it, the means of the true classes and the centres of a method without privacy."""
    plane = plane_of(data)
    legend = [["truth", "centre of a true class"], ["private", "private centre"], ["plain", "k-means (not private)"]]
    legend.append(["records", "records by nearest private centre (evaluation, not released)"])
    records = plane.show(data.points[drawn_rows(data.n)])
    still = {"records": records, "truth": plane.show(true_centres(data)), "plain": plane.show(plain.modes)}
    box, names = clusters_box(data).tolist(), list(plane.names)
    look = {"equal": False, "legend": legend, "tints": RECORD_TINTS}
    return {"box": box, "names": names, **look, "still": _still(still)}


def clusters_box(data: Dataset) -> Array:
    """What the picture of clusters shows of its plane."""
    return around(plane_of(data).show(data.points[drawn_rows(data.n)]))


def _still(layers: dict[str, Array]) -> dict[str, Array]:
    return {name: layer.astype(np.float32) for name, layer in layers.items()}


def message(name: str, scene: dict[str, Any], frames: Sequence[Frame]) -> bytes:
    """All that the browser needs of a picture, for the handle of that name; the frames that matter most come first.

    Of results with very many modes not all may fit: the last ones are gaps then.  They are sent in the order of ε and
    seed.
    """
    room, sent = MOST_BYTES - len(pack({"name": name, **scene})), []
    for number, one in enumerate(frames):
        shown = one if len(pack(one.content())) < room - GAP_BYTES * (len(frames) - number) else _gap(one, TOO_LARGE)
        room -= len(pack(shown.content()))
        sent.append(shown)
    sent.sort(key=lambda one: (one.epsilon, one.seed))
    return pack({"name": name, **scene, "frames": [one.content() for one in sent]})


def pack(content: dict[str, Any]) -> bytes:
    """Nested dicts and lists with arrays in them: the length of a JSON text, the text, and the arrays behind it.

    In the text an array is {"array": type, "at": byte, "shape": [...]}, from the first byte after the text and its
    padding; each begins at a multiple of 8.

    >>> pack({"a": 1})[4:]
    b'{"a": 1}    '
    """
    arrays: list[bytes] = []

    def placed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            place = sum(map(len, arrays))
            arrays.append(_padded(np.ascontiguousarray(value).tobytes(), b"\0"))
            return {"array": value.dtype.str[1:], "at": place, "shape": value.shape}
        if isinstance(value, dict):
            return {name: placed(item) for name, item in value.items()}
        return [placed(item) for item in value] if isinstance(value, (list, tuple)) else value

    text = json.dumps(placed(content), ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return b"".join([len(text).to_bytes(4, "little"), text, *arrays])


def _padded(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 8)
