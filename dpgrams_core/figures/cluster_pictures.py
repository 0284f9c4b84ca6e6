"""Released centres of image data as pictures, each with the mean of the true class it is matched to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpgrams_core.figures.clusters import Entry, class_names, class_numbers, matched_classes
from dpgrams_core.metrics_clusters import nearest_centres
from dpgrams_core.results import Dataset, refuse_private

Array = np.ndarray
MOST_PICTURES = 20
PIXELS = 112  # the least width of a drawn picture: small images are enlarged here, so that no browser blurs them
# Ink on white paper in the colour of its kind, so that both themes show the same picture.
PRIVATE_INK = np.array([[255, 255, 255], [227, 108, 10], [92, 38, 0]])
TRUTH_INK = np.array([[255, 255, 255], [0, 158, 115], [0, 52, 38]])
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
    """Whether centres of these data can be drawn.

    >>> from dpgrams_core import load_dataset
    >>> has_pictures(load_dataset("digits")), has_pictures(load_dataset("blobs"))
    (True, False)
    """
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
    for number in range(len(centres)):
        mine = classes[members == number]
        most, share = _majority(mine)
        partner = int(matched[number])
        parts = [inked(released[number] / top, PRIVATE_INK)]
        parts.append(inked(truth[partner] / top, TRUTH_INK) if partner >= 0 else np.full_like(parts[0], 255))
        words = f"matched to {names[partner]}, " if partner >= 0 else "matched to none, "
        words += f"{100 * share:.0f} % are {names[most]}s" if most >= 0 else "no record near"
        if len(pictures) < MOST_PICTURES:
            pictures.append(
                CentrePicture(
                    image=np.concatenate([parts[0], np.full((GAP, *parts[0].shape[1:]), 255, np.uint8), parts[1]]),
                    caption=words,
                    alt=f"Released centre {number + 1} as a picture, above the true mean of its class: {words}.",
                )
            )
        rows.append(
            {
                "centre": number + 1,
                "matched true class": names[partner] if partner >= 0 else "none",
                "most records near it are": names[most] if most >= 0 else "–",
                "share of them, %": 100 * share,
                "records near it (not private)": len(mine),
            }
        )
    table = pd.DataFrame(rows)
    return Gallery(tuple(pictures), _sentence(table, data, len(pictures)), table)


def inked(values: Array, ink: Array) -> Array:
    """Grey values in [0, 1] as an image in one ink on white, enlarged by whole pixels; values beyond are cut."""
    at = 2 * np.clip(values, 0, 1)[..., None]
    colour = np.where(at < 1, ink[0] + at * (ink[1] - ink[0]), ink[1] + (at - 1) * (ink[2] - ink[1]))
    factor = -(-PIXELS // values.shape[1])
    return np.repeat(np.repeat(np.rint(colour).astype(np.uint8), factor, axis=0), factor, axis=1)


def _majority(labels: Array) -> tuple[int, float]:
    """The commonest class and its share, or (-1, nan) for no record."""
    if len(labels) == 0:
        return -1, float("nan")
    counts = np.bincount(labels)
    return int(counts.argmax()), float(counts.max() / len(labels))


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
