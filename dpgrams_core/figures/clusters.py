"""Clusters of one data set by several methods: the records in a plane, the scores, and who wins.

Records are coloured by their nearest estimated centre.  That is evaluation: it says of each record where it lies, which
no guarantee covers, so these colours are never part of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpgrams_core.figures.style import (
    NON_PRIVATE_MARK,
    PRIVATE_MARK,
    TRUTH_MARK,
    Chart,
    plain_layout,
)
from dpgrams_core.guarantees import bare_status
from dpgrams_core.metrics_clusters import nearest_centres
from dpgrams_core.results import Dataset, Release, refuse_private

Array = np.ndarray
MOST_POINTS = 1_500  # records drawn in a panel: a browser without a graphics card must keep up
PANEL_HEIGHT = 300
ROOM = 0.06  # about the records, as a share of the picture
LEVEL = 0.005  # differences in ARI below this are no difference
# Quiet colours for the records: none of them is near orange, blue or green, which have their meaning.
TINTS = (
    *("#8E7CC3", "#D9C24A", "#D87CA8", "#8A97A8", "#A67C52"),
    *("#5BC0C8", "#C9A0DC", "#B85C5C", "#C8BFA9", "#6B6B83"),
)


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
    """Two columns as they are, the first two where the columns are principal components, else those components.

    >>> from dpgrams_core import load_dataset
    >>> plane_of(load_dataset("blobs")).names, plane_of(load_dataset("iris")).names
    (('column 1', 'column 2'), ('component 1', 'component 2'))
    """
    refuse_private(data)
    d, way_back = data.dimension, data.representation
    reduced = way_back is not None and way_back.components.shape[0] < way_back.components.shape[1]
    if d <= 2 or reduced:
        axes = np.eye(d, 2)
        word = "component" if reduced else "column"
        return Plane(np.zeros(d), axes, (f"{word} 1", f"{word} 2"))
    middle = data.points.mean(axis=0)
    axes = np.linalg.svd(data.points - middle, full_matrices=False)[2][:2].T
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])  # the sign is free: fix it
    return Plane(middle, axes, ("component 1", "component 2"))


def class_numbers(data: Dataset) -> Array:
    """The true class of every record as 0, 1, … (not private)."""
    refuse_private(data)
    if data.labels is None:
        raise ValueError("this picture needs a data set with known classes")
    return np.asarray(
        data.labels if data.representation is not None else np.unique_inverse(data.labels).inverse_indices
    )


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


def drawn_rows(n: int, most: int = MOST_POINTS) -> Array:
    """Which records a panel shows: all of them, or always the same evenly spread ones, so that panels agree."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def panel_chart(data: Dataset, entry: Entry, height: int = PANEL_HEIGHT) -> Chart:
    """The records by nearest centre, the centres of one method, and the true ones; all panels share their axes."""
    refuse_private(data)
    plane, centres = plane_of(data), entry.release.modes
    rows = drawn_rows(data.n)
    near = nearest_centres(data.points[rows], centres)
    flat, truth = plane.show(data.points[rows]), plane.show(true_centres(data))
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = ROOM * (high - low) + 1e-9
    matched = matched_classes(data, centres)
    mark = PRIVATE_MARK if entry.private else NON_PRIVATE_MARK
    names = class_names(data)
    figure = go.Figure(
        [
            go.Scatter(
                x=flat[:, 0].astype(np.float32),
                y=flat[:, 1].astype(np.float32),
                mode="markers",
                name="records, by nearest centre (not private)",
                marker={"size": 4, "color": record_colours(near, matched), "opacity": 0.6},
                hoverinfo="skip",
            ),
            _places(
                plane.show(centres),
                f"{entry.title}: centre",
                {**mark, "size": 13},
                [str(number + 1) for number in range(len(centres))],
            ),
            # On top: a good centre lies on it.
            _places(truth, "true class centre", TRUTH_MARK, names),
        ]
    )
    bare = {"zeroline": False, "showgrid": False, "showticklabels": False, "ticks": ""}
    figure.update_xaxes(range=[low[0] - room[0], high[0] + room[0]], title=plane.names[0], **bare)
    figure.update_yaxes(range=[low[1] - room[1], high[1] + room[1]], title=plane.names[1], **bare)
    plain_layout(figure, height)
    figure.update_layout(showlegend=False, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    outside = int(((plane.show(centres) < low - room) | (plane.show(centres) > high + room)).any(axis=1).sum())
    sentence = f"{counted(len(centres), 'centre')} for {counted(len(truth), 'true class')}"
    if not len(centres):
        sentence = f"No centre: nothing stands above the noise, so all records are in one cluster; {len(truth)} classes"
    wish = getattr(entry.release.spec, "n_clusters", None) or 0
    if entry.private and len(centres) < wish:
        sentence += f"; {wish:,} were asked for, and no more were found"
    if outside:
        sentence += f"; {outside} outside this picture: noise carried {'it' if outside == 1 else 'them'} away"
    return Chart(figure, sentence + ".", centres_table(data, entry))


def counted(count: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "centre"), counted(3, "true class")
    ('1 centre', '3 true classes')
    """
    return f"{count:,} {what}" + ("" if count == 1 else "es" if what.endswith("s") else "s")


def record_colours(near: Array, matched: Array) -> list[str]:
    """A colour a record: that of the class its centre is matched to, so that the panels can be compared."""
    spare = iter(range(int(matched.max(initial=-1)) + 1, int(matched.max(initial=-1)) + 1 + len(matched)))
    numbers = [int(number) if number >= 0 else next(spare) for number in matched] or [0]
    return [TINTS[numbers[int(index)] % len(TINTS)] for index in near]


def centres_table(data: Dataset, entry: Entry) -> pd.DataFrame:
    """Every centre of a method with the true class it is matched to."""
    refuse_private(data)
    centres, names = entry.release.modes, class_names(data)
    matched = matched_classes(data, centres)
    truth = true_centres(data)
    gaps = [np.linalg.norm(truth[c] - centre) if c >= 0 else np.nan for c, centre in zip(matched, centres, strict=True)]
    table = {
        "method": [entry.title] * len(centres),
        "centre": range(1, len(centres) + 1),
        "matched true class": [names[number] if number >= 0 else "none" for number in matched],
        "distance to it": gaps,
    }
    return pd.DataFrame(table | {f"column {j + 1}": centres[:, j] for j in range(data.dimension)})


def scores_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """How well each method does, with the status of its guarantee."""
    rows = [
        {
            "method": entry.title,
            "guarantee": entry.release.guarantee.words,
            "ARI": entry.scores["ari"],
            "NMI": entry.scores["nmi"],
            "centroid MSE": entry.scores["centroid_mse"],
            "centres": len(entry.release.modes),
        }
        for entry in entries
    ]
    return pd.DataFrame(rows)


def who_wins(table: pd.DataFrame) -> str:
    """Which private method has the higher ARI, in a sentence; reads a table of scores with the guarantee of each.

    >>> rows = [("Ours", "proven", 0.7), ("DP-k-means", "nominal", 0.5), ("k-means", "none", 0.8)]
    >>> who_wins(pd.DataFrame(rows, columns=["method", "guarantee", "ARI"]))
    'In this run Ours wins among the private ones, by 0.20 in ARI, and its guarantee is proven.'
    >>> rows[0] = ("Ours", "proven, given the representation", 0.7)
    >>> who_wins(pd.DataFrame(rows, columns=["method", "guarantee", "ARI"]))[-59:]
    'ARI, and its guarantee is proven, given the representation.'
    """
    private = table[table["guarantee"] != "none"].sort_values("ARI", ascending=False, kind="stable")
    best, second = private.iloc[0], private.iloc[1]
    gap = float(best["ARI"] - second["ARI"])
    if gap < LEVEL:
        proven = [row for _, row in private.iterrows() if _is_proven(row)]
        only = [f"; only {row['method']} has a guarantee that is {row['guarantee']}" for row in proven]
        return f"In this run the private ones are level{only[0] if len(only) == 1 else ''}."
    text = f"In this run {best['method']} wins among the private ones, by {max(gap, 0.01):.2f} in ARI"
    if _is_proven(best):
        return f"{text}, and its guarantee is {best['guarantee']}."
    other = f", while that of {second['method']} is {second['guarantee']}" if _is_proven(second) else ""
    return f"{text}, but its guarantee is only {best['guarantee']}{other}."


def _is_proven(row: pd.Series) -> bool:
    return bare_status(row["guarantee"]) == "proven"


def _places(points: Array, name: str, mark: dict, labels: Sequence[str]) -> go.Scatter:
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        mode="markers",
        name=name,
        marker=mark,
        text=list(labels),
        hovertemplate=name + " %{text}: (%{x:.2f}, %{y:.2f})<extra></extra>",
    )
