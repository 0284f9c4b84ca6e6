"""What every functional release shares: its guarantee, and what is said of the records of a simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpgrams_core.bandwidths import Bandwidth
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.results import Dataset, Guarantee, Release
from dpgrams_core.specs import FunctionalSpec

SIZED_AT = 200


def proven_release(spec: FunctionalSpec, bandwidth: Bandwidth, event: GaussianRelease, statement: str) -> Guarantee:
    """The guarantee of one Gaussian release: proven, unless the bandwidth was read off the records."""
    cost = price((event,), spec.delta)
    guarantee = Guarantee(
        epsilon=spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-6) else cost.epsilon,
        delta=cost.delta,
        status="proven",
        statement=statement,
    )
    return guarantee if bandwidth.public else guarantee.without_public_bandwidth(bandwidth.rule)


def outside_box(data: Dataset) -> int:
    """How many records lie outside the public box: they count less there, and the guarantee still holds.

    Private records are in it by now, and how many were not is nobody's business.
    """
    if data.private:
        return 0
    return int(((data.points < data.box[:, 0]) | (data.points > data.box[:, 1])).any(axis=1).sum())


def sized(release: Release, points: np.ndarray) -> Release:
    """The same with the height that its noise hides, the median at some records, among the diagnostics."""
    assert release.surface is not None
    some = points[:: max(1, len(points) // SIZED_AT)]
    size = float(np.median(release.surface.value(some)))
    return replace(release, _diagnostics=replace(release.diagnostics, score_size=size))
