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
from functools import partial
from typing import Any

import numpy as np

from dpgrams_core.model.checks import frozen_array, one_of, whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, refuse_private

Array = np.ndarray
Records = tuple[Array, Array, Array]  # the common records, and the last one in each of the two worlds
BOX = ((-5.0, 5.0), (-5.0, 5.0))
UNIT_BOX = ((0.0, 1.0), (0.0, 1.0))
MIN_RECORDS, MAX_RECORDS, DEFAULT_RECORDS = 10, 100_000, 200
CLUSTER_RADIUS, CORNER = 0.3, (-3.0, -3.0)
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
    only_modes: bool = False  # whether the attacker sees the final modes and nothing of the way to them

    def __post_init__(self) -> None:
        for name in ("old", "new"):
            box = self.first.box
            place = np.clip(getattr(self, name), box[:, 0], box[:, 1]) if self.first.private else getattr(self, name)
            object.__setattr__(self, name, frozen_array(np.where(np.isnan(place), box.mean(axis=1), place)))


@dataclass(frozen=True)
class BuiltIn:
    """A pair that comes with the audit: its words, for which kinds of data, and whether it needs the release door.

    ``records`` is its usual n; ``settings`` are public settings of its own in place of those of ``_settings``;
    ``only_modes`` says that the attacker sees the final modes alone.
    """

    title: str
    words: str
    make: Callable[[int], Records]
    kinds: tuple[str, ...] = POINTS
    extreme: bool = False
    records: int = DEFAULT_RECORDS
    settings: Callable[[int], dict[str, Any]] | None = None
    only_modes: bool = False


def _cluster(count: int, x: float, y: float) -> Array:
    """``count`` records spread evenly over a small disc: a sunflower, so nothing is drawn at random."""
    number = np.arange(count) + 0.5
    radius, angle = CLUSTER_RADIUS * np.sqrt(number / max(count, 1)), GOLDEN_ANGLE * number
    return np.array([x, y]) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _moved(middle: float, *new: float) -> Callable[[int], Records]:
    """A tight cluster around a place on the diagonal, and a record that moves away from one corner."""
    return lambda n: (_cluster(n - 1, middle, middle), np.array(CORNER), np.array(new))


def _cluster_boundary(n: int) -> Records:
    """Two clusters of the same size; the last record decides which of them is the larger."""
    half = (n - 1) // 2
    rest = np.concatenate([_cluster(half, -1.5, 0), _cluster(n - 1 - half, 1.5, 0)])
    return rest, np.array([-1.5, 0.0]), np.array([1.5, 0.0])


def _counted_worst_case(n: int) -> Records:
    """All records but one in one point; the last one bandwidth to its left or to its right."""
    return np.zeros((n - 1, 2)), np.array([-1.0, 0.0]), np.array([1.0, 0.0])


def _one_pile(n: int) -> Records:
    """All records in one point; the last among them, or 3.1 away."""
    return np.zeros((n - 1, 2)), np.zeros(2), np.array([3.1, 0.0])


def _fourth_corner(n: int) -> Records:
    """A third of the records at each of three corners, three at the fourth; the last at a corner or at the fourth."""
    corners = np.array([(3.0, -3.0), (-3.0, 3.0), (-3.0, -3.0)])
    most = corners[np.arange(n - 4) % 3]
    return np.concatenate([most, np.full((3, 2), 3.0)]), corners[0], np.full(2, 3.0)


def _whole_ascent(bandwidth: float, starts: int) -> Callable[[int], dict[str, Any]]:
    """A whole ascent from a public lattice, with a public bandwidth and the clip of the paper's scripts."""

    def settings(n: int) -> dict[str, Any]:
        spacing = (math.log(n) / n) ** (1 / 8)  # h_DAP in two columns
        steps = math.floor(BOX[0][1] / spacing)
        axis = np.arange(-steps, steps + 1) * spacing
        lattice = tuple((float(x), float(y)) for x in axis for y in axis)
        shares = {"init_fraction": 0.5, "clip_multiplier": 0.08}
        return shares | {"bandwidth": bandwidth, "candidates": lattice, "n_starts": starts, "n_clusters": 4}

    return settings


def _response(value: float) -> Callable[[int], Records]:
    """Predictors close together with one response; the last record has another one."""

    def make(n: int) -> Records:
        x = np.linspace(0.45, 0.55, n)
        rest = np.stack([x[:-1], np.full(n - 1, 0.5)], axis=1)
        return rest, np.array([x[-1], 0.5]), np.array([x[-1], value])

    return make


_extreme = partial(BuiltIn, extreme=True)
PAIRS: dict[str, BuiltIn] = {
    "far_record": BuiltIn(
        "A record leaves the crowd",
        "One of 200 records leaves a tight cluster for an empty place.",
        _moved(-3, 3.0, 3.0),
    ),
    "moved_record": BuiltIn(
        "A loner moves", "A record far from the cluster moves from one corner to the opposite one.", _moved(0, 3.0, 3.0)
    ),
    "cluster_boundary": BuiltIn(
        "The deciding vote", "Two clusters of equal size; the last record makes one the larger.", _cluster_boundary
    ),
    "counted_worst_case": BuiltIn(
        "Left or right of a pile", "199 records in one point; the last stands left or right of it.", _counted_worst_case
    ),
    "lonely_record": BuiltIn(
        "A lonely record",
        "1,000 records in one place; the last with them, or 3.1 away, alone. The whole ascent is seen.",
        _one_pile,
        records=1_000,
        settings=_whole_ascent(0.642, 40),
    ),
    "small_cluster": BuiltIn(
        "A small cluster",
        "1,000 records at three corners, and 3 or 4 of them at the fourth. Only the final modes are seen.",
        _fourth_corner,
        records=1_000,
        settings=_whole_ascent(1.22, 12),
        only_modes=True,
    ),
    "largest_record": _extreme(
        "A record near the largest number",
        "One record of 200 stands at 1.79e308, far beyond the box.",
        _moved(-3, 1.79e308, 1.79e308),
    ),
    "overflowing_record": _extreme(
        "A record whose square overflows",
        "One record of 200 stands at 2e154: its square is no number.",
        _moved(-3, 2e154, -2e154),
    ),
    "infinite_record": _extreme(
        "An infinite record", "The values of one record of 200 are infinite.", _moved(-3, math.inf, -math.inf)
    ),
    "missing_record": _extreme(
        "A record that misses a value", "One record of 200 misses a value.", _moved(-3, math.nan, 3.0)
    ),
    "far_response": BuiltIn(
        "A response leaves the others", "One of 200 equal responses moves from 0.5 to 0.9.", _response(0.9), RESPONSES
    ),
    "largest_response": _extreme(
        "A response near the largest number", "One of 200 responses is 1.79e308.", _response(1.79e308), RESPONSES
    ),
    "infinite_response": _extreme(
        "An infinite response", "One of 200 responses is minus infinity.", _response(-math.inf), RESPONSES
    ),
    "missing_response": _extreme(
        "A missing response", "One of 200 responses is missing.", _response(math.nan), RESPONSES
    ),
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
    count = whole("n", built_in.records if n is None else n, MIN_RECORDS, MAX_RECORDS)
    rest, old, new = built_in.make(count)
    box = np.array(UNIT_BOX if kind in RESPONSES else BOX)

    def world(record: Array) -> Dataset:
        points = np.concatenate([rest, record[None]])
        return Dataset(name=pair, kind=kind, points=points, box=box, private=door == "release")

    found = NeighbourPair(name=pair, first=world(old), second=world(new), old=old, new=new)
    own = _settings(found, count, door) if built_in.settings is None else built_in.settings(count)
    return replace(found, settings=own, only_modes=built_in.only_modes)


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
