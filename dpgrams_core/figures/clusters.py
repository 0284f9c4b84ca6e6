"""Clusters of one data set by several methods: the records in a plane, the scores, and who wins.

Records are coloured by their nearest estimated centre.  That is evaluation: it says of each record where it lies, which
no guarantee covers, so these colours are never part of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpgrams_core.figures import style
from dpgrams_core.figures.style import Chart, channels, plain_layout
from dpgrams_core.figures.traces import CENTRE_SENTENCE, CENTRE_WORDS, drawn_rows, points, rings
from dpgrams_core.model.format import fixed, short, whole_percent
from dpgrams_core.model.guarantee import bare_status
from dpgrams_core.model.measures import nearest_centres, scores_of
from dpgrams_core.model.results import Dataset, Release, refuse_private

Array = np.ndarray
PANEL_POINTS = 500  # records drawn in a panel, which is a quarter of the page wide
RUNS_HEIGHT = 460
PANEL_HEIGHT = 300
ROOM = 0.06  # about the records, as a share of the picture
LEVEL = 0.005  # differences in ARI below this are no difference


@dataclass(frozen=True)
class Entry:
    """One method on the page: what people call it, what it gave, and how good that is (``score`` of it)."""

    title: str
    release: Release
    scores: dict[str, float]

    @property
    def private(self) -> bool:
        """Whether it claims any privacy at all."""
        return self.release.guarantee.status != "none"


@dataclass(frozen=True, eq=False)
class Plane:
    """A public-looking flat view of the columns: ``(points - middle) @ axes``, and what its axes are called."""

    middle: Array
    axes: Array
    names: tuple[str, str]

    def show(self, points: Array) -> Array:
        """Points (k, d) in the plane, (k, 2)."""
        return (points - self.middle) @ self.axes


def plane_of(data: Dataset) -> Plane:
    """Two columns as they are, the first two where the columns are principal components, else those components."""
    refuse_private(data)
    d, way_back = data.dimension, data.representation
    reduced = way_back is not None and way_back.components.shape[0] < way_back.components.shape[1]
    if d <= 2 or reduced:
        word = "component" if reduced else "column"
        return Plane(np.zeros(d), np.eye(d, 2), (f"{word} 1", f"{word} 2"))
    middle = data.points.mean(axis=0)
    axes = np.linalg.svd(data.points - middle, full_matrices=False)[2][:2].T
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])  # the sign is free: fix it
    return Plane(middle, axes, ("component 1", "component 2"))


def class_numbers(data: Dataset) -> Array:
    """The true class of every record as 0, 1, … (not private)."""
    refuse_private(data)
    if data.labels is None:
        raise ValueError("this picture needs a data set with known classes")
    known = data.representation is not None
    return np.asarray(data.labels if known else np.unique_inverse(data.labels).inverse_indices)


def true_centres(data: Dataset) -> Array:
    """The means of the true classes in the columns of the data, (classes, d); those of the whole table if known."""
    refuse_private(data)
    if data.representation is not None:
        return data.representation.from_standard(data.representation.centroids)
    numbers = class_numbers(data)
    return np.stack([data.points[numbers == number].mean(axis=0) for number in range(numbers.max() + 1)])


def class_names(data: Dataset) -> list[str]:
    """The true classes by name."""
    refuse_private(data)
    if data.representation is not None:
        return list(data.representation.class_names)
    return [str(number + 1) for number in range(class_numbers(data).max() + 1)]


def matched_classes(data: Dataset, centres: Array) -> Array:
    """The true class that each centre is matched to, one to one with the least squared distance; -1 for the rest.

    The distance is that of the centroid error: in the original standardised space where there is one.
    """
    refuse_private(data)
    found = np.full(len(centres), -1)
    if len(centres):
        way_back = data.representation
        truth = true_centres(data) if way_back is None else way_back.centroids
        mine = centres if way_back is None else way_back.to_standard(centres)
        rows, columns = linear_sum_assignment(cdist(truth, mine, "sqeuclidean"))
        found[columns] = rows
    return found


def in_class_order(data: Dataset, release: Release) -> Release:
    """The same centres numbered by the true class that they are matched to, so that all pictures agree; for the eye."""
    refuse_private(data)
    matched = matched_classes(data, release.modes)
    order = np.array(sorted(range(len(matched)), key=lambda number: (matched[number] < 0, matched[number])), dtype=int)
    heights = None if release.significance is None else release.significance[order]
    return replace(release, modes=release.modes[order], significance=heights)


def panel_chart(data: Dataset, entry: Entry, height: int = PANEL_HEIGHT) -> Chart:
    """The records by nearest centre, the centres of one method, and the true ones; all panels share their axes."""
    refuse_private(data)
    plane, centres, truth = plane_of(data), entry.release.modes, true_centres(data)
    records, shown = data.points[drawn_rows(data.n, PANEL_POINTS)], plane.show(centres)
    flat = plane.show(records)
    low, high = around(plane.show(data.points[drawn_rows(data.n)])).T
    names, matched = class_names(data), matched_classes(data, centres)
    mark = {"size": 4, "color": record_colours(nearest_centres(records, centres), matched), "opacity": 0.6}
    own = {**(style.PRIVATE_MARK if entry.private else style.NON_PRIVATE_MARK), "size": 13}
    figure = go.Figure(
        [
            points(flat.astype(np.float32).T, "records, by nearest centre (not private)", mark),
            _places(shown, f"{entry.title}: centre", own, [str(number + 1) for number in range(len(centres))]),
            # On top: a good centre lies on it.
            _places(plane.show(truth), "true class centre", style.TRUTH_MARK, names),
        ]
    )
    bare = {"zeroline": False, "showgrid": False, "showticklabels": False, "ticks": ""}
    x, y = ({"range": [low[i], high[i]], "title": plane.names[i], **bare} for i in (0, 1))
    plain_layout(figure, height, x, y, showlegend=False, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    outside = int(((shown < low) | (shown > high)).any(axis=1).sum())
    sentence = f"{counted(len(centres), 'centre')} for {counted(len(truth), 'true class')}"
    if not len(centres):
        sentence = f"No centre: nothing stands above the noise, so all records are in one cluster; {len(truth)} classes"
    wish = getattr(entry.release.spec, "n_clusters", None) or 0
    if entry.private and len(centres) < wish:
        sentence += f"; {wish:,} were asked for, and no more were found"
    if outside:
        sentence += f"; {outside} outside this picture: noise carried {'it' if outside == 1 else 'them'} away"
    table = {
        "method": [entry.title] * len(centres),
        "centre": range(1, len(centres) + 1),
        "matched true class": [names[number] if number >= 0 else "none" for number in matched],
        "distance to it": np.where(matched >= 0, np.linalg.norm(truth[matched] - centres, axis=1), np.nan),
    }
    columns = {f"column {j + 1}": centres[:, j] for j in range(data.dimension)}
    return Chart(figure, sentence + ".", pd.DataFrame(table | columns))


def runs_chart(data: Dataset, runs: Sequence[Release], scores: Sequence[dict[str, float]]) -> Chart:
    """The centres of private runs on one data set, one over the other, with the scores of each."""
    refuse_private(data)
    plane, truth = plane_of(data), true_centres(data)
    flat = plane.show(data.points[drawn_rows(data.n)])
    centres = plane.show(np.concatenate([release.modes for release in runs]))
    faint = {"size": 4, "color": style.GREY, "opacity": 0.35}
    own = {**style.PRIVATE_MARK, "size": 9, "opacity": 0.6}
    figure = go.Figure(
        [
            points(flat.astype(np.float32).T, "records (not private)", faint),
            points(centres.T, f"private centres, {len(runs)} runs", own),
            _places(plane.show(truth), "true class centre", style.TRUTH_MARK, class_names(data)),
        ]
    )
    x, y = ({"range": list(side), "title": plane.names[i], "zeroline": False} for i, side in enumerate(around(flat)))
    plain_layout(figure, RUNS_HEIGHT, x, y)
    ari = np.array([one["ari"] for one in scores])
    sentence = (
        f"The same data, {len(runs)} private runs: ARI from {fixed(ari.min())} to {fixed(ari.max())}, "
        f"{fixed(float(np.median(ari)))} in the middle."
    )
    table = pd.DataFrame([{"run": number, **one} for number, one in enumerate(scores, start=1)])
    return Chart(figure, sentence, table)


def sure_chart(data: Dataset, entry: Entry) -> Chart:
    """The centres of a release with the region of each, of the population."""
    refuse_private(data)
    plane, release = plane_of(data), entry.release
    both, noise = release.mode_covariances, release.noise_covariances
    assert both is not None
    assert noise is not None
    flat, names = plane.show(data.points[drawn_rows(data.n)]), [str(number + 1) for number in range(len(both))]
    if release.paid is not None:
        ways = release.paid.ways
        both, noise = (np.einsum("ai,kab,bj->kij", ways, c, ways) for c in (both, noise))
    in_plane = np.einsum("ai,kab,bj->kij", plane.axes, both, plane.axes)
    own = {**style.PRIVATE_MARK, "size": 7}  # within its ring
    figure = go.Figure(
        [
            points(
                flat.astype(np.float32).T, "records (not private)", {"size": 4, "color": style.GREY, "opacity": 0.35}
            ),
            rings(plane.show(release.modes), in_plane, CENTRE_WORDS, style.PRIVATE),
            _places(plane.show(release.modes), "private centre", own, names),
            _places(plane.show(true_centres(data)), "true class centre", style.TRUTH_MARK, class_names(data)),
        ]
    )
    x, y = ({"range": list(side), "title": plane.names[i], "zeroline": False} for i, side in enumerate(around(flat)))
    plain_layout(figure, RUNS_HEIGHT, x, y)
    wide, part = (float(np.sqrt(np.trace(c, axis1=1, axis2=2) / c.shape[1]).mean()) for c in (both, noise))
    # Each is from a few draws, so the noise alone may come out as the larger one.
    noisy = f"by {short(part)} if only the noise counted" if part < 0.95 * wide else "nearly all of it by the noise"
    sentence = (
        f"Each ring{CENTRE_SENTENCE} A centre is off by about {short(wide)} along each column; {noisy}. "
        "That is no region of the mean of a true class, which k-means need not find."
        + (" The paid components are taken as they are: what moves these is not counted." if release.paid else "")
    )
    halves = np.asarray(release.half_widths)
    table = pd.DataFrame({"centre": names})
    for j in range(data.dimension):
        table[f"column {j + 1}"], table[f"± column {j + 1} (95%)"] = release.modes[:, j], halves[:, j]
    return Chart(figure, sentence, table)


def around(flat: Array) -> Array:
    """The box (2, 2) of a picture of these places, with some room about them."""
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = ROOM * (high - low) + 1e-9
    return np.stack([low - room, high + room], axis=1)


def _places(places: Array, name: str, mark: dict, labels: list[str]) -> go.Scatter:
    return points(places.T, name, mark, name + " %{text}: (%{x:.2f}, %{y:.2f})", text=labels)


def counted(count: int, what: str) -> str:
    """A number of things, in words: "1 centre", "3 true classes"."""
    return f"{count:,} {what}" + ("" if count == 1 else "es" if what.endswith("s") else "s")


def record_colours(near: Array, matched: Array) -> list[str]:
    """A colour a record: that of the class its centre is matched to, so that the panels can be compared."""
    return [style.RECORD_TINTS[number] for number in record_tints(near, matched)]


def record_tints(near: Array, matched: Array) -> Array:
    """The same as numbers of the tints."""
    spare = count(int(matched.max(initial=-1)) + 1)
    numbers = [int(number) if number >= 0 else next(spare) for number in matched] or [0]
    return np.array(numbers, dtype=np.uint8)[near] % len(style.RECORD_TINTS)


def scores_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """How well each method does, with the status of its guarantee."""
    rows = [
        {
            "method": entry.title,
            "guarantee": entry.release.guarantee.words,
            **{measure.title: entry.scores[name] for name, measure in scores_of("clusters").items()},
            "centres": len(entry.release.modes),
        }
        for entry in entries
    ]
    return pd.DataFrame(rows)


def who_wins(table: pd.DataFrame) -> str:
    """Which private method has the higher ARI, in a sentence; reads a table of scores with the guarantee of each."""
    private = table[table["guarantee"] != "none"].sort_values("ARI", ascending=False, kind="stable")
    if len(private) == 1:
        return f"Only {private['method'].iloc[0]} claims a guarantee, and that is {private['guarantee'].iloc[0]}."
    best, second = private.iloc[0], private.iloc[1]
    gap = float(best["ARI"] - second["ARI"])
    if gap < LEVEL:
        proven = [row for _, row in private.iterrows() if _is_proven(row)]
        only = [f"; only {row['method']} has a guarantee that is {row['guarantee']}" for row in proven]
        return f"In this run the private ones are level{only[0] if len(only) == 1 else ''}."
    text = f"In this run {best['method']} wins among the private ones, by {fixed(max(gap, 0.01))} in ARI"
    if _is_proven(best):
        return f"{text}, and its guarantee is {best['guarantee']}."
    other = f", while that of {second['method']} is {second['guarantee']}" if _is_proven(second) else ""
    return f"{text}, but its guarantee is only {best['guarantee']}{other}."


def _is_proven(row: pd.Series) -> bool:
    return bare_status(row["guarantee"]) == "proven"


# Released centres of image data as pictures, each with the mean of the true class it is matched to.

MOST_PICTURES = 20
PIXELS = 112  # the least width of a drawn picture: small images are enlarged here, so that no browser blurs them
GAP = 6


@dataclass(frozen=True, eq=False)
class CentrePicture:
    """A released centre above the mean of its true class, as one image (rows, columns, 3) with words for it."""

    image: Array
    caption: str
    alt: str


@dataclass(frozen=True, eq=False)
class Gallery:
    """The pictures of all centres, with the sentence and the table that say the same."""

    pictures: tuple[CentrePicture, ...]
    sentence: str
    table: pd.DataFrame


def has_pictures(data: Dataset) -> bool:
    """Whether centres of these data can be drawn."""
    return data.representation is not None and data.representation.picture_shape is not None


def centre_pictures(data: Dataset, entry: Entry) -> Gallery:
    """Every released centre through the inverse map, beside the true class mean that it is matched to.

    The pictures are functions of the released centres and of the representation, which is assumed public; what is
    written under them is read off the records: evaluation, not private.
    """
    refuse_private(data)
    way_back = data.representation
    if way_back is None or way_back.picture_shape is None or way_back.picture_scale is None:
        raise ValueError("these data are no images")
    centres, names = entry.release.modes, class_names(data)
    matched = matched_classes(data, centres)
    released = way_back.pictures(centres)
    truth = (way_back.centroids * way_back.picture_scale + way_back.picture_mean).reshape(-1, *way_back.picture_shape)
    top = float(truth.max())
    classes, members = class_numbers(data), nearest_centres(data.points, centres)
    pictures: list[CentrePicture] = []
    rows = []
    for number, partner in enumerate(matched):
        counts = np.bincount(classes[members == number], minlength=1)
        size = int(counts.sum())
        most, share = (names[int(counts.argmax())], 100 * (counts.max() / size)) if size else ("–", np.nan)
        partner_name = names[partner] if partner >= 0 else "none"
        if number < MOST_PICTURES:
            above = inked(released[number] / top, style.PRIVATE_INK)
            below = inked(truth[partner] / top, style.TRUTH_INK) if partner >= 0 else np.full_like(above, 255)
            words = f"matched to {partner_name}, " + (
                f"{whole_percent(share / 100)} are {most}s" if size else "no record near"
            )
            image = np.concatenate([above, np.full((GAP, *above.shape[1:]), 255, np.uint8), below])
            alt = f"Released centre {number + 1} as a picture, above the true mean of its class: {words}."
            pictures.append(CentrePicture(image, words, alt))
        rows.append(
            {
                "centre": number + 1,
                "matched true class": partner_name,
                "most records near it are": most,
                "share of them, %": share,
                "records near it (not private)": size,
            }
        )
    table = pd.DataFrame(rows)
    return Gallery(tuple(pictures), _sentence(table, data, len(pictures)), table)


def inked(values: Array, ink: Sequence[str]) -> Array:
    """Grey values in [0, 1] as an image in one ink on white, enlarged by whole pixels; values beyond are cut."""
    at = 2 * np.clip(values, 0, 1)[..., None]
    white, full, dark = (np.array([int(part) for part in channels(shade).split(",")]) for shade in ink)
    colour = np.where(at < 1, white + at * (full - white), full + (at - 1) * (dark - full))
    factor = -(-PIXELS // values.shape[1])
    return np.repeat(np.repeat(np.rint(colour).astype(np.uint8), factor, axis=0), factor, axis=1)


def _sentence(table: pd.DataFrame, data: Dataset, drawn: int) -> str:
    if not len(table):
        return "Nothing stands above the noise, so there is no centre to draw."
    shown = set(table["most records near it are"]) - {"–"}
    missing = [name for name in class_names(data) if name not in shown]
    text = f"{len(shown)} of the {len(class_names(data))} classes are the commonest one of some released centre"
    if missing:
        text += f"; no centre stands for {', '.join(missing)}"
    if drawn < len(table):
        text += f". The first {drawn} of {len(table)} centres are drawn"
    return (
        text
        + f". Drawn through {data.dimension} principal components, so fine strokes are lost even without noise. The "
        "words under a picture are read off the records: evaluation, not private."
    )


# True classes against clusters, in counts of records: evaluation, and never part of a release.

MOST_WRITTEN = 12  # with more columns the counts no longer fit their cells


def confusion_chart(data: Dataset, entry: Entry) -> Chart:
    """True classes against the clusters of one method, in counts of records (evaluation, not private)."""
    refuse_private(data)
    names, centres = class_names(data), entry.release.modes
    clusters = nearest_centres(data.points, centres)
    counts = np.zeros((len(names), max(len(centres), 1)), dtype=int)
    np.add.at(counts, (class_numbers(data), clusters), 1)
    columns = [str(number + 1) for number in range(counts.shape[1])]
    size = counts.sum(axis=1, keepdims=True)
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=names,
            z=100 * counts / np.maximum(size, 1),
            text=counts,
            texttemplate="%{text:,}" if counts.shape[1] <= MOST_WRITTEN else None,
            colorscale=style.NON_PRIVATE_COUNTS,
            zmin=0,
            zmax=100,
            xgap=2,
            ygap=2,
            showscale=False,
            hovertemplate="true class %{y}, cluster %{x}: %{text:,} records, %{z:.0f}% of the class<extra></extra>",
        )
    )
    x_axis = {
        "title": "cluster of its nearest released centre",
        "type": "category",
        "side": "bottom",
        "showgrid": False,
    }
    y_axis = {"title": "true class", "type": "category", "autorange": "reversed", "showgrid": False}
    plain_layout(figure, 120 + 30 * len(names), x_axis, y_axis, margin={"t": 10})
    main = int(counts.max(axis=0).sum())
    empty = int((counts.sum(axis=0) == 0).sum())
    sentence = (
        f"{whole_percent(main / data.n)} of the records are in a cluster whose commonest class is their own"
        + (f"; {counted(empty, 'cluster')} without any record" if empty else "")
        + ". Read off the records and their true classes: evaluation, not private, never part of a release."
    )
    table = pd.DataFrame(counts, columns=[f"cluster {name}" for name in columns])
    table.insert(0, "true class", names)
    return Chart(figure, sentence, table)
