"""Two kinds of made-up data for the page of a user's own: a file to try it with, and a stand-in for a file."""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.datasets.clusters import BOX_SIDE
from dpgrams_core.datasets.mixtures import Mixture
from dpgrams_core.model.checks import one_of, whole
from dpgrams_core.model.results import Dataset
from dpgrams_core.numerics.sketch import public_points

EXAMPLE_ROWS = 3_000
EXAMPLE_MISSING = 12
# What anyone could say about these columns without looking at the records.
EXAMPLE_BOX = {"age": (0.0, 100.0), "income": (0.0, 120.0), "commute": (0.0, 120.0), "sleep": (0.0, 14.0)}
# Mean age, income (thousands a year), minutes on the way to work and hours of sleep, and their spreads, by group.
_GROUPS = (
    (0.35, (24.0, 22.0, 25.0, 8.0), (4.0, 5.0, 9.0, 0.9)),
    (0.40, (44.0, 62.0, 55.0, 6.6), (7.0, 10.0, 13.0, 0.8)),
    (0.25, (69.0, 33.0, 12.0, 7.2), (6.0, 7.0, 5.0, 0.8)),
)
STAND_IN_GROUPS = 4
STAND_IN_SPREAD = 1 / 14  # of a side of the box, as in the reference bump of the public bandwidth rule


def example_csv(seed: int) -> bytes:
    """A small CSV file of people who do not exist: three groups, four numeric columns, one of text, some cells missing.

    Another seed makes other people, so each has a budget of its own in a ledger.

    >>> example_csv(0).splitlines()[0]
    b'age,income,commute,sleep,town'
    """
    rng = np.random.default_rng(whole("seed", seed, 0))
    group = rng.choice(len(_GROUPS), size=EXAMPLE_ROWS, p=[share for share, _, _ in _GROUPS])
    means, spreads = (np.array([item[part] for item in _GROUPS])[group] for part in (1, 2))
    bounds = np.array(list(EXAMPLE_BOX.values()))
    values = np.clip(means + spreads * rng.standard_normal(means.shape), bounds[:, 0], bounds[:, 1])
    missing = set(rng.choice(EXAMPLE_ROWS, size=EXAMPLE_MISSING, replace=False).tolist())
    towns = rng.choice(["north", "south", "east"], size=EXAMPLE_ROWS)
    lines = [",".join([*EXAMPLE_BOX, "town"])]
    for number, (row, town) in enumerate(zip(values, towns, strict=True)):
        cells = [f"{value:.1f}" for value in row]
        if number in missing:
            cells[-1] = ""
        lines.append(",".join([*cells, str(town)]))
    return ("\n".join(lines) + "\n").encode()


def stand_in(n: int, dimension: int, kind: str = "modes", seed: int = 0) -> Dataset:
    """Round groups made by a formula, with the size and the number of columns of a file that nothing is known about.

    Four equal groups stand at public places of the box from -4 to 4, which is what every file's box is scaled to; for
    regression it is one wave with its responses around it.  It shows what a budget gives on easy data of this size.

    Examples
    --------
    >>> made = stand_in(500, 3)
    >>> made.points.shape, made.private, len(made.true_modes)
    ((500, 3), False, 4)
    """
    size = whole("n", n, 1)
    columns = whole("dimension", dimension, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    box = np.array([(-BOX_SIDE, BOX_SIDE)] * columns)
    if one_of("kind", kind, ("modes", "clusters", "regression")) == "regression":
        x = rng.uniform(-BOX_SIDE, BOX_SIDE, size)
        y = wave(x) + 2 * BOX_SIDE * STAND_IN_SPREAD / 2 * rng.standard_normal(size)
        points = np.column_stack([x, np.clip(y, -BOX_SIDE, BOX_SIDE)])
        return Dataset(name="stand-in", kind=kind, points=points, box=box)
    centres = _apart(0.75 * box, columns)
    mixture = Mixture(
        means=tuple(map(tuple, centres.tolist())),
        weights=(1 / len(centres),) * len(centres),
        scales=(2 * BOX_SIDE * STAND_IN_SPREAD,) * len(centres),
        dofs=(math.inf,) * len(centres),
    )
    points, labels = mixture.sample(size, rng)
    return Dataset(
        name="stand-in",
        kind=kind,
        points=np.clip(points, box[:, 0], box[:, 1]),
        box=box,
        true_modes=centres,
        labels=labels if kind == "clusters" else None,
    )


def wave(x: np.ndarray) -> np.ndarray:
    """The one branch of the stand-in for regression, within the box."""
    return 0.5 * BOX_SIDE * np.sin(np.pi * np.asarray(x) / BOX_SIDE)


def _apart(box: np.ndarray, columns: int) -> np.ndarray:
    """Four public places in a box, far from each other: evenly along a line, or the farthest of many."""
    if columns == 1:
        return np.linspace(box[0, 0], box[0, 1], STAND_IN_GROUPS)[:, None]
    places = public_points(box, 256)
    chosen = [int(np.argmin(places.sum(axis=1)))]
    while len(chosen) < STAND_IN_GROUPS:
        gaps = np.linalg.norm(places[:, None, :] - places[chosen][None], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(gaps)))
    return places[chosen]
