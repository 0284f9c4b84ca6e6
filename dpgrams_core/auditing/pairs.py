"""Neighbouring data sets: two worlds that differ in one record, small so that thousands of runs are fast.

A guarantee holds for every n and every pair of neighbours, so an audit may choose both.  It may also
choose every public setting; ``settings`` are those under which a leak shows best (candidates at the
record's two places, all records in one round), and any of them can be overridden.

Some pairs hold values that no ordinary record has: beyond every box, near the largest double, infinite, missing.  Only
private data may hold those, so these pairs are played through the release door alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpgrams_core.checks import one_of, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.results import Dataset, frozen_array, refuse_private

Array = np.ndarray
Records = tuple[Array, Array, Array]  # the common records, and the last one in each of the two worlds
BOX = ((-5.0, 5.0), (-5.0, 5.0))
UNIT_BOX = ((0.0, 1.0), (0.0, 1.0))
MIN_RECORDS, MAX_RECORDS, DEFAULT_RECORDS = 10, 100_000, 200
CLUSTER_RADIUS = 0.3
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
DOORS = ("simulation", "release")
POINTS, RESPONSES = ("modes", "clusters"), ("regression",)
# Bandwidths in the box of the pairs.  At the release door every number costs 25 microseconds, so there are fewer.
BANDWIDTHS = {"simulation": 1.0, "release": 2.5}


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourPair:
    """Two data sets that differ in one record, which is at ``old`` in the first and at ``new`` in the second.

    A value that only private data may hold has its place here as the release door gives it (methods/door.py).
    """

    name: str
    first: Dataset = field(repr=False)
    second: Dataset = field(repr=False)
    old: Array
    new: Array
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("old", "new"):
            box = self.first.box
            place = np.clip(getattr(self, name), box[:, 0], box[:, 1]) if self.first.private else getattr(self, name)
            object.__setattr__(self, name, frozen_array(np.where(np.isnan(place), box.mean(axis=1), place)))


@dataclass(frozen=True)
class BuiltIn:
    """A pair that comes with the audit: for which kinds of data, and whether it needs the release door."""

    make: Callable[[int], Records]
    kinds: tuple[str, ...] = POINTS
    extreme: bool = False


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


def _extreme(*record: float) -> Callable[[int], Records]:
    """A tight cluster; one of its records has these values instead."""
    return lambda n: (_cluster(n - 1, -3, -3), np.array([-3.0, -3.0]), np.array(record))


def _response(value: float) -> Callable[[int], Records]:
    """Predictors close together with one response; the last record has another one."""

    def make(n: int) -> Records:
        x = np.linspace(0.45, 0.55, n)
        rest = np.stack([x[:-1], np.full(n - 1, 0.5)], axis=1)
        return rest, np.array([x[-1], 0.5]), np.array([x[-1], value])

    return make


PAIRS: dict[str, BuiltIn] = {
    "far_record": BuiltIn(_far_record),
    "moved_record": BuiltIn(_moved_record),
    "cluster_boundary": BuiltIn(_cluster_boundary),
    "counted_worst_case": BuiltIn(_counted_worst_case),
    "largest_record": BuiltIn(_extreme(1.79e308, 1.79e308), extreme=True),
    "overflowing_record": BuiltIn(_extreme(2e154, -2e154), extreme=True),
    "infinite_record": BuiltIn(_extreme(math.inf, -math.inf), extreme=True),
    "missing_record": BuiltIn(_extreme(math.nan, 3.0), extreme=True),
    "far_response": BuiltIn(_response(0.9), RESPONSES),
    "largest_response": BuiltIn(_response(1.79e308), RESPONSES, extreme=True),
    "infinite_response": BuiltIn(_response(-math.inf), RESPONSES, extreme=True),
    "missing_response": BuiltIn(_response(math.nan), RESPONSES, extreme=True),
}


def pairs_for(kind: str, door: str = "simulation") -> list[str]:
    """The built-in pairs for a kind of data, those that the door does not take left out; the first is the default.

    >>> pairs_for("regression"), pairs_for("regression", "release")[1]
    (['far_response'], 'largest_response')
    """
    return [name for name, pair in PAIRS.items() if kind in pair.kinds and (door == "release" or not pair.extreme)]


def neighbour_pair(
    pair: str | tuple[Dataset, Dataset], n: int | None = None, *, kind: str | None = None, door: str = "simulation"
) -> NeighbourPair:
    """A built-in pair by name, or two data sets of your own that differ in exactly one record.

    Parameters
    ----------
    kind : of the data, where a built-in pair serves several; the first of them where it is left out.
    door : at the release door both worlds are marked private.

    Examples
    --------
    >>> pair = neighbour_pair("far_record", n=50)
    >>> pair.first.n, int((pair.first.points != pair.second.points).any(axis=1).sum())
    (50, 1)
    >>> neighbour_pair("infinite_record", door="release").new.tolist()
    [5.0, -5.0]
    """
    if not isinstance(pair, str):
        return _own_pair(pair, n, door)
    built_in = PAIRS[one_of("pair", pair, PAIRS)]
    kind = built_in.kinds[0] if kind is None else kind
    if kind not in built_in.kinds:
        raise SpecError("pair", pair, f"for {kind} data choose one of " + ", ".join(pairs_for(kind, "release")))
    if built_in.extreme and door != "release":
        raise SpecError("pair", pair, "only private data may hold its values: choose the release door for it")
    count = whole("n", DEFAULT_RECORDS if n is None else n, MIN_RECORDS, MAX_RECORDS)
    rest, old, new = built_in.make(count)
    box = np.array(UNIT_BOX if kind in RESPONSES else BOX)

    def world(record: Array) -> Dataset:
        points = np.concatenate([rest, record[None]])
        return Dataset(name=pair, kind=kind, points=points, box=box, private=door == "release")

    found = NeighbourPair(name=pair, first=world(old), second=world(new), old=old, new=new)
    return replace(found, settings=_settings(found, count, door))


def _settings(pair: NeighbourPair, count: int, door: str) -> dict[str, Any]:
    """The public settings under which a leak shows best; each method takes those that it knows."""
    shared = {"batch_size": count, "n_steps": 1}
    if pair.first.kind in RESPONSES:  # one step from one public start, towards records a bandwidth away from it
        start = {"start_multiplier": 0.1, "init_fraction": 0.01, "init_bandwidth": 0.25, "response_grid": (0.3,)}
        return shared | start | {"bandwidth": 0.2, "evaluation_points": (0.5,)}
    candidates = (tuple(pair.old.tolist()), tuple(pair.new.tolist()))
    return shared | {"bandwidth": BANDWIDTHS[door], "candidates": candidates, "n_clusters": 2}


def _own_pair(pair: Any, n: int | None, door: str) -> NeighbourPair:
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
    if door == "release":  # the path that private data take, for data that are not
        first, second = replace(first, private=True), replace(second, private=True)
    return NeighbourPair(name="own pair", first=first, second=second, old=old, new=new)
