"""Checks on public values, shared by every spec. Each returns the value or raises a SpecError."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np

from dpgrams_core.model.errors import SpecError

# Far outside any sensible setting, and near enough that no formula built on them can overflow.
SMALLEST, LARGEST = 1e-12, 1e12
# The least ε that can be asked for: down to it every noise and its price are checked against exact arithmetic, and
# nothing useful is left of any data far above it.
SMALLEST_EPSILON = 1e-6


def finite(field: str, value: object) -> float:
    """A real number that is neither infinite nor NaN."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise SpecError(field, value, "it must be a number")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond the range of a float
        number = math.inf
    if not math.isfinite(number):
        raise SpecError(field, value, "it must be finite")
    return number


def positive(field: str, value: object) -> float:
    """A finite number above zero, and within reason."""
    number = finite(field, value)
    if number <= 0:
        raise SpecError(field, value, "it must be above 0")
    if not SMALLEST <= number <= LARGEST:
        raise SpecError(field, value, f"it must lie between {SMALLEST:g} and {LARGEST:g}")
    return number


def asked_epsilon(field: str, value: object) -> float:
    """A privacy budget that somebody asks for; shares of it may be smaller."""
    number = positive(field, value)
    if number < SMALLEST_EPSILON:
        raise SpecError(field, value, f"it must lie between {SMALLEST_EPSILON:g} and {LARGEST:g}")
    return number


def between(field: str, value: object, low: float, high: float) -> float:
    """A finite number strictly between two bounds."""
    number = finite(field, value)
    if not low < number < high:
        raise SpecError(field, value, f"it must lie strictly between {low:g} and {high:g}")
    return number


def whole(field: str, value: object, low: int, high: int | None = None, why: str = "") -> int:
    """A whole number of at least ``low`` and, where given, at most ``high``."""
    upper = "" if high is None else f" and at most {high}"
    allowed = f"it must be a whole number of at least {low}{upper}{why}"
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        with suppress(OverflowError, ValueError):  # infinite or not a number
            number = int(value)  # type: ignore[call-overload]
            if number == value and number >= low and (high is None or number <= high):
                return number
    raise SpecError(field, value, allowed)


def one_of(field: str, value: object, allowed: Collection[str]) -> str:
    """One of a set of names."""
    if not isinstance(value, str) or value not in allowed:
        raise SpecError(field, value, "choose one of " + ", ".join(sorted(allowed)))
    return value


def frozen_array(value: Any, dtype: type | None = float) -> np.ndarray:
    """A read-only copy, so that a shared result cannot be changed by whoever holds it; a read-only array as it is."""
    fits = isinstance(value, np.ndarray) and value.dtype == (dtype or value.dtype)
    if fits and not value.flags.writeable and value.base is None:
        return value  # private records may nearly fill the memory
    array = np.array(value, dtype=dtype)
    array.setflags(write=False)
    return array


def freeze(holder: Any, *names: str, dtype: type | None = float) -> None:
    """Make the arrays that a frozen dataclass has under some names read-only."""
    for name in names:
        if getattr(holder, name) is not None:
            object.__setattr__(holder, name, frozen_array(getattr(holder, name), dtype))


def box_of(value: object) -> np.ndarray:
    """A public box as an array of shape (d, 2) with lower < upper in every row."""
    try:
        box = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        box = np.empty(0)
    if box.ndim != 2 or box.shape[1] != 2 or box.shape[0] < 1:
        raise SpecError("box", value, "give one (lower, upper) pair of numbers for each column")
    if not np.isfinite(box).all():
        raise SpecError("box", box.tolist(), "every bound must be finite")
    if (box[:, 0] >= box[:, 1]).any():
        raise SpecError("box", box.tolist(), "the box is empty: each lower bound must be below its upper bound")
    return box


def release_box(value: object) -> np.ndarray:
    """A public box that private records can be put into: in it no formula of a method overflows or loses all digits.

    It is refused by its bounds alone, which are public, before a record is looked at.
    """
    box = box_of(value)
    if np.abs(box).max() > LARGEST:
        raise SpecError("box", box.tolist(), f"every bound must lie between {-LARGEST:g} and {LARGEST:g}")
    sides = box[:, 1] - box[:, 0]
    if (sides < np.maximum(SMALLEST, 1e-9 * np.abs(box).max(axis=1))).any():
        raise SpecError("box", box.tolist(), "the bounds are too close together to tell numbers apart")
    return box
