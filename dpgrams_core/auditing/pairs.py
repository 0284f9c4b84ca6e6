"""Neighbouring data sets: two worlds that differ in one record, small so that thousands of runs are fast.

A guarantee holds for every n and every pair of neighbours, so an audit may choose both.  It may also
choose every public setting; ``settings`` are those under which a leak shows best (candidates at the
record's two places, all records in one round), and any of them can be overridden.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpgrams_core.checks import one_of, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.results import Dataset, frozen_array, refuse_private

Array = np.ndarray
BOX = ((-5.0, 5.0), (-5.0, 5.0))
MIN_RECORDS, MAX_RECORDS, DEFAULT_RECORDS = 10, 100_000, 200
CLUSTER_RADIUS = 0.3
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourPair:
    """Two data sets that differ in one record, which is at ``old`` in the first and at ``new`` in the second."""

    name: str
    first: Dataset = field(repr=False)
    second: Dataset = field(repr=False)
    old: Array
    new: Array
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "old", frozen_array(self.old))
        object.__setattr__(self, "new", frozen_array(self.new))


def _cluster(count: int, x: float, y: float) -> Array:
    """``count`` records spread evenly over a small disc: a sunflower, so nothing is drawn at random."""
    number = np.arange(count) + 0.5
    radius, angle = CLUSTER_RADIUS * np.sqrt(number / max(count, 1)), GOLDEN_ANGLE * number
    return np.array([x, y]) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _far_record(n: int) -> tuple[Array, Array, Array]:
    """A tight cluster; one of its records moves to a place that is otherwise empty."""
    return _cluster(n - 1, -3, -3), np.array([-3.0, -3.0]), np.array([3.0, 3.0])


def _moved_record(n: int) -> tuple[Array, Array, Array]:
    """A tight cluster in the middle; a lone record moves from one corner to the opposite one."""
    return _cluster(n - 1, 0, 0), np.array([-3.0, -3.0]), np.array([3.0, 3.0])


def _cluster_boundary(n: int) -> tuple[Array, Array, Array]:
    """Two clusters of the same size; the last record decides which of them is the larger."""
    half = (n - 1) // 2
    rest = np.concatenate([_cluster(half, -1.5, 0), _cluster(n - 1 - half, 1.5, 0)])
    return rest, np.array([-1.5, 0.0]), np.array([1.5, 0.0])


def _counted_worst_case(n: int) -> tuple[Array, Array, Array]:
    """All records but one in one point; the last one bandwidth to its left or to its right."""
    return np.zeros((n - 1, 2)), np.array([-1.0, 0.0]), np.array([1.0, 0.0])


PAIRS: dict[str, Callable[[int], tuple[Array, Array, Array]]] = {
    "far_record": _far_record,
    "moved_record": _moved_record,
    "cluster_boundary": _cluster_boundary,
    "counted_worst_case": _counted_worst_case,
}


def neighbour_pair(pair: str | tuple[Dataset, Dataset], n: int | None = None) -> NeighbourPair:
    """A built-in pair by name, or two data sets of your own that differ in exactly one record.

    Examples
    --------
    >>> pair = neighbour_pair("far_record", n=50)
    >>> pair.first.n, int((pair.first.points != pair.second.points).any(axis=1).sum())
    (50, 1)
    """
    if not isinstance(pair, str):
        return _own_pair(pair, n)
    make = PAIRS[one_of("pair", pair, PAIRS)]
    count = whole("n", DEFAULT_RECORDS if n is None else n, MIN_RECORDS, MAX_RECORDS)
    rest, old, new = make(count)

    def world(record: Array) -> Dataset:
        return Dataset(name=pair, kind="modes", points=np.concatenate([rest, record[None]]), box=np.array(BOX))

    settings = {
        "bandwidth": 1.0,
        "batch_size": count,
        "n_steps": 1,
        "candidates": (tuple(old.tolist()), tuple(new.tolist())),
    }
    return NeighbourPair(name=pair, first=world(old), second=world(new), old=old, new=new, settings=settings)


def _own_pair(pair: Any, n: int | None) -> NeighbourPair:
    """The user's own neighbours, or a refusal that never repeats a value of the data."""
    if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(data, Dataset) for data in pair)):
        raise SpecError("pair", type(pair).__name__, "give one of " + ", ".join(PAIRS) + ", or two Datasets in a tuple")
    first, second = pair
    shown = "two data sets"
    for data in pair:
        refuse_private(data)
    if first.kind != second.kind or first.points.shape != second.points.shape:
        raise SpecError("pair", shown, "both must be of one kind and have the same number of records and columns")
    if not np.array_equal(first.box, second.box):
        raise SpecError("pair", shown, "both must have the same box, since the box is public")
    if n is not None and n != first.n:
        raise SpecError("n", n, f"the pair has {first.n} records; leave n out")
    rows = np.flatnonzero((first.points != second.points).any(axis=1))
    if len(rows) != 1:
        raise SpecError(
            "pair", shown, f"they must differ in exactly one record, row by row, and differ in {len(rows)} rows"
        )
    old, new = first.points[rows[0]], second.points[rows[0]]
    return NeighbourPair(name="own pair", first=first, second=second, old=old, new=new)
