"""What goes in (Dataset) and what comes out (Release, Guarantee, Diagnostics)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpgrams_core.checks import box_of
from dpgrams_core.errors import DataError

STATUSES = ("proven", "as published", "nominal", "none")


def frozen_array(value: Any, dtype: type | None = float) -> np.ndarray:
    """A read-only copy, so that a shared result cannot be changed by whoever holds it."""
    array = np.array(value, dtype=dtype)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Points with their public box, and the truth where it is known.

    ``points`` has shape (n, d), ``box`` (d, 2), ``true_modes`` (k, d).
    ``private=True`` marks data whose records must be protected.
    """

    name: str
    kind: str
    points: np.ndarray = field(repr=False)
    box: np.ndarray
    true_modes: np.ndarray | None = None
    labels: np.ndarray | None = field(default=None, repr=False)
    private: bool = False

    def __post_init__(self) -> None:
        points = frozen_array(self.points)
        if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] < 1:
            raise DataError("The points must be a table with at least one row and one column.")
        if not np.isfinite(points).all():
            raise DataError("The points hold missing or infinite values; drop those rows first.")
        object.__setattr__(self, "points", points)
        box = frozen_array(box_of(self.box))
        if box.shape[0] != points.shape[1]:
            raise DataError(f"The box has {box.shape[0]} rows, but the points have {points.shape[1]} columns.")
        object.__setattr__(self, "box", box)
        if self.true_modes is not None:
            object.__setattr__(self, "true_modes", frozen_array(self.true_modes))
        if self.labels is not None:
            object.__setattr__(self, "labels", frozen_array(self.labels, None))

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return int(self.points.shape[0])

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee that a result really has."""

    epsilon: float
    delta: float
    status: str
    statement: str
    neighbours: str = "replace-one"
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"unknown status {self.status!r}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnostics:
    """What is *not* private: for simulations and public data only, never part of a download."""

    candidates: np.ndarray | None = None
    utilities: np.ndarray | None = None
    score_size: float | None = None
    clipped_share: float | None = None
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("candidates", "utilities", "labels"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen_array(value, None))


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """What a method gives out. Every field here may be published; diagnostics may not.

    ``modes`` (k, d); ``anchors`` (starts, d); ``trajectories`` (steps + 1, starts, d).
    ``noise_scale`` is the standard deviation of the noise on each score coordinate.
    """

    method: str
    modes: np.ndarray
    spec: Any
    events: tuple[Any, ...]
    guarantee: Guarantee
    anchors: np.ndarray | None = None
    trajectories: np.ndarray | None = None
    noise_scale: float | None = None
    door: str = "simulation"
    seed: int | None = None
    _diagnostics: Diagnostics | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("modes", "anchors", "trajectories"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen_array(value))

    @property
    def diagnostics(self) -> Diagnostics:
        """The non-private by-products; refused where the data are private."""
        if self._diagnostics is None:
            raise DataError(
                "Diagnostics are not private and are kept for simulations and public data only; this result has none."
            )
        return self._diagnostics
