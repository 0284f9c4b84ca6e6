"""The twin of a release as a data set of its own, so that a sweep can run on it.

Every run draws its records anew from the release (twins.py) with a seed of its own.  That is post-processing, so it
costs no privacy, however long the sweep.  What the release shows counts as the truth: its modes, its centres (each
record belongs to the nearest), or the branches of its curve.

A twin has no place in a list.  Its name *carries* it: ``TwinName`` is a text with the release attached, and takes it
along into a worker process.  A plain text with the same letters finds nothing, so a name in a link or in a file opens
nobody's twin.  The letters stand for the content, so runs on the same twin, and on no other, have the same name.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.checks import box_of, one_of
from dpgrams_core.datasets import MAX_N, MIN_N, DatasetInfo
from dpgrams_core.datasets.twins import TwinLaw
from dpgrams_core.errors import DataError
from dpgrams_core.metrics_clusters import nearest_centres
from dpgrams_core.representations import Representation
from dpgrams_core.results import Dataset, frozen_array
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.surfaces import ReleasedSurface

__all__ = ["ShownBranches", "TwinName", "released_twin"]

Array = np.ndarray
KINDS = ("modes", "regression", "clusters")
MOST_KEPT = 64  # in one process; a name that is older brings its release along again


@dataclass(frozen=True, eq=False)
class ShownBranches:
    """The branches of a released curve as a known law: straight between its rows, nothing beyond a branch's ends.

    ``curve`` (rows, 2) and the number of the branch of each row.

    Examples
    --------
    >>> law = ShownBranches(np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0], [2.0, 5.0]]), np.array([0, 0, 1, 1]))
    >>> law.mode_table(np.array([0.5, 1.5])).tolist()
    [[1.5, nan], [2.5, 5.0]]
    """

    curve: Array
    branches: Array

    def mode_table(self, x: Array) -> Array:
        """The branches at every x, ascending, NaN where there are fewer, (len(x), branches)."""
        x = np.asarray(x, dtype=float)
        columns = []
        for number in np.unique(self.branches):
            rows = self.curve[self.branches == number]
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            columns.append(np.interp(x, rows[:, 0], rows[:, 1], left=np.nan, right=np.nan))
        return np.sort(np.stack(columns, axis=1), axis=1)

    def paper_table(self, x: Array) -> Array:
        """The same: what the release shows is all that is known."""
        return self.mode_table(x)


@dataclass(frozen=True, eq=False)
class _Source:
    """What a twin is drawn from, and what is taken for true about it; called with (n, seed), it draws."""

    law: TwinLaw
    kind: str
    box: Array
    truth: Array
    branches: Array | None
    title: str

    def __call__(self, n: int, seed: int) -> Dataset:
        drawn = self.law.draw(n, seed)
        share = (drawn.points - drawn.box[:, 0]) / (drawn.box[:, 1] - drawn.box[:, 0])
        points = self.box[:, 0] + share * (self.box[:, 1] - self.box[:, 0])
        known: dict[str, Any] = {}
        if self.kind == "modes":
            known["true_modes"] = self.truth
        elif self.kind == "regression":
            assert self.branches is not None
            known["truth"] = ShownBranches(self.truth, self.branches)
        else:
            known["labels"] = nearest_centres(points, self.truth)
            known["representation"] = self._centres()
        return Dataset(name="twin", kind=self.kind, points=points, box=self.box, **known)

    def _centres(self) -> Representation:
        """The columns as they are, and the centres that count as true, also one that no drawn record is nearest to."""
        k, d = self.truth.shape
        return Representation(
            space="the columns of the release, scaled by their box",
            fitted=False,
            scale=np.ones(d),
            components=np.eye(d),
            offset=np.zeros(d),
            centroids=self.truth,
            class_names=tuple(f"centre {number + 1}" for number in range(k)),
        )

    def letters(self) -> str:
        """A name for this content: the released numbers and what is taken for true."""
        digest, release = hashlib.sha256(), self.law.release
        facts = (release.kind, release.bandwidth, release.noise_scale, release.n, self.kind)
        digest.update(repr(facts).encode())
        for array in (release.coefficients, release.box, self.box, self.truth, self.branches):
            some = np.empty(0) if array is None else np.ascontiguousarray(array, dtype=float)
            digest.update(repr(some.shape).encode() + some.tobytes())
        return f"twin-{digest.hexdigest()[:12]}"


class TwinName(str):
    """The name of a twin, which carries the twin: use it wherever the name of a data set goes.

    It equals the text of its letters, so results are found by it; only the name itself can be drawn from.
    """

    info: DatasetInfo

    def __reduce__(self) -> tuple[Any, ...]:
        source = self.info.draw
        assert isinstance(source, _Source)
        release = source.law.release
        facts = (release.coefficients, release.box, release.bandwidth, release.noise_scale, release.n)
        rest = (source.kind, source.box, source.truth, source.branches, source.title)
        return _arrived, (str(self), type(release), facts, rest)


_kept: OrderedDict[str, TwinName] = OrderedDict()  # so that a release that arrives with every task is built once
_lock = threading.Lock()


def released_twin(
    release: ReleasedSurface | ReleasedSketch,
    kind: str,
    box: Array,
    truth: Array,
    *,
    branches: Array | None = None,
    title: str = "the twin of a release",
) -> TwinName:
    """The twin of a release as a data set: a name for ``load_dataset``, ``sweep`` and all that take one.

    Parameters
    ----------
    release : ``surface`` of a functional release.
    kind : "modes", "regression" or "clusters".
    box : the box of the data that the release was made from, (d, 2); the twin has the same columns.
    truth : what the release shows, in that box: its modes or centres (k, d), or the rows (x, y) of its curve.
    branches : the branch of each row of a curve.
    title : as people call it, in the middle of a sentence.

    Raises
    ------
    DataError : where the release shows nothing above its noise.

    Examples
    --------
    >>> from dpgrams_core import load_dataset, run
    >>> data = load_dataset("four_corners", n=2000, seed=0)
    >>> release = run("functional", data, epsilon=1.0, seed=0)
    >>> name = released_twin(release.surface, "modes", data.box, release.modes)
    >>> load_dataset(name, n=500, seed=1).points.shape
    (500, 2)
    """
    one_of("kind", kind, KINDS)
    shown = frozen_array(truth)
    if len(shown) == 0:
        raise DataError("Nothing in this release stands above its noise, so a twin of it would have nothing to find.")
    bounds = box_of(box)
    if not len(bounds) == release.dimension == shown.shape[1]:
        raise DataError("The release, its box and what it shows do not have the same number of columns.")
    if kind == "regression" and (branches is None or len(branches) != len(shown)):
        raise DataError("A released curve needs the number of the branch of each of its rows.")
    numbers = frozen_array(branches, int) if kind == "regression" else None
    source = _Source(TwinLaw.of(release), kind, frozen_array(bounds), shown, numbers, title)
    return _named(source.letters(), source)


def _named(letters: str, source: _Source) -> TwinName:
    name = TwinName(letters)
    name.info = DatasetInfo(
        name=letters,
        kind=source.kind,
        title=source.title,
        description="Records drawn from a paid release. What the release shows counts as the truth.",
        mixture=None,
        box=tuple((float(low), float(high)) for low, high in source.box),
        default_n=min(max(source.law.release.n, MIN_N), MAX_N),
        draw=source,
        modes=source.truth if source.kind == "modes" else None,
    )
    with _lock:
        _kept[letters] = name
        _kept.move_to_end(letters)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return name


def _arrived(
    letters: str, family: type[ReleasedSurface] | type[ReleasedSketch], facts: tuple[Any, ...], rest: tuple[Any, ...]
) -> TwinName:
    """A name that came from another process, or back from one: the one that is known here, or a new one."""
    with _lock:
        known = _kept.get(letters)
    return _named(letters, _Source(TwinLaw.of(family(*facts)), *rest)) if known is None else known
