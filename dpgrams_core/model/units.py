"""A user's columns keep their units: the scaling by the public box happens on the way in, and is undone on the way out.

Both are maps by public numbers.  On the way in each record is mapped by itself, so two data sets that differ in one
record do so afterwards, and on the way out it is post-processing: no guarantee changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpgrams_core.model.results import Dataset, Release
from dpgrams_core.numerics.scaling import SurfaceInUnits, rescaled

Array = np.ndarray


def scaled_by_box(data: Dataset) -> Dataset:
    """Data as methods see them, in ``data.method_box``; those that are not to be scaled as they are."""
    if not data.scaled:
        return data
    moved: dict[str, Any] = {}
    for name in ("points", "candidates", "true_modes"):
        if getattr(data, name) is not None:
            moved[name] = rescaled(getattr(data, name), data.box, data.method_box)
            moved[name].setflags(write=False)  # so that a data set takes it without another copy
    return replace(data, box=data.method_box, scaled=False, **moved)


def in_units(release: Release, seen: Array, box: Array) -> Release:
    """A release of the box that its method saw, with every place in it at the same place of the user's box."""
    names = ("modes", "anchors", "trajectories", "curve")
    places = {name: getattr(release, name) for name in names}
    moved: dict[str, Any] = {n: rescaled(value, seen, box) for n, value in places.items() if value is not None}
    if release.curve_band is not None:
        moved["curve_band"] = rescaled(release.curve_band, seen[[1, 1]], box[[1, 1]])
    moved["spec"] = settings_moved(release.spec, seen, box)
    if release.paid is not None:  # its surface has columns of its own, which have no units
        moved["paid"] = replace(release.paid, ranges=box)
    elif release.bare_surface is not None:
        moved["surface"] = SurfaceInUnits(release.bare_surface, box)
    if release.pooled is not None:
        moved["pooled"] = release.pooled.shown_in(box)
    found = release._diagnostics
    if found is not None and found.candidates is not None:  # points, or for regression responses
        rows = slice(None) if found.candidates.ndim == 2 else slice(1, 2)
        tried = found.candidates.reshape(len(found.candidates), -1)
        again = rescaled(tried, seen[rows], box[rows]).reshape(found.candidates.shape)
        moved["_diagnostics"] = replace(found, candidates=again)
    return replace(release, **moved)


def settings_moved(spec: Any, source: Array, target: Array) -> Any:
    """The settings of a method with the places among them moved from one box to another; lengths stay as they are."""
    moved: dict[str, Any] = {}
    candidates = getattr(spec, "candidates", None)
    if candidates is not None and len(candidates[0]) == len(source):  # otherwise the method refuses them
        moved["candidates"] = tuple(map(tuple, rescaled(np.array(candidates), source, target).tolist()))
    for column, name in enumerate(("evaluation_points", "response_grid")):
        if getattr(spec, name, None) is not None:
            values = np.array(getattr(spec, name))[:, None]
            moved[name] = tuple(rescaled(values, source[[column]], target[[column]])[:, 0].tolist())
    return replace(spec, **moved) if moved else spec
