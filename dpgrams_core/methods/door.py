"""What the release door does to every private record before a method sees it: into the public box with it.

A value beyond the box, infinite ones included, goes to the nearest edge of its side.  A missing value (NaN) has one of
two places.  The functional releases add up a function of each record, and there a record that misses a value adds
nothing, while n stays the number of rows.  The other methods need a number for every value, and there it stands in the
middle of its side.

Why no guarantee suffers.  Both are maps of one value by public numbers, so two data sets that differ in one record
differ in at most that record afterwards, and in its response alone if they did so before.  What a functional release
adds for a record has norm at most 1 (functional/modes.py).  So with nothing in its place on one side the sum moves by
at most 1, and between two records by at most sqrt(2), or 1.437 in a sketch: the price covers both.

Why it is here.  Beyond the door every number is finite and in the box, and the box is within the bounds of
``checks.release_box``.  Only so can no record make a sum overflow: that would end a release that was charged, which
tells of the record, or send something that is no number to a sampler, whose proof is about numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgrams_core.model.results import Dataset


def at_the_door(data: Dataset, *, fill_missing: bool) -> Dataset:
    """Data as a method may see them at the release door: private, and every value in the box or missing.

    ``fill_missing`` puts missing values in the middle of their side, for methods that need a number for every value.

    >>> points = [[0.5, np.inf], [np.nan, -1e308]]
    >>> mine = Dataset(name="mine", kind="modes", points=points, box=[(0, 1), (0, 4)], private=True)
    >>> at_the_door(mine, fill_missing=False).points.tolist()
    [[0.5, 4.0], [nan, 0.0]]
    >>> at_the_door(mine, fill_missing=True).points.tolist()
    [[0.5, 4.0], [0.5, 0.0]]
    """
    low, high = data.box.T
    if data.private and bool(((data.points >= low) & (data.points <= high)).all()):
        return data  # nothing to do, and no copy of what may nearly fill the memory
    points = np.clip(data.points, low, high)
    if fill_missing:
        points = np.where(np.isnan(points), data.box.mean(axis=1), points)
    return replace(data, points=points, private=True)
