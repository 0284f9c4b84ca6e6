"""Private cluster centres from the functional release: one noisy kernel sum, and everything after it free.

The release and its proof are those of modes.py (a surface in up to three columns, a sketch in more).  Centres are
post-processing of it: those of k-means over public places, each weighted by the share of the records that most likely
is there (likely_places.py).  A number of clusters that is not known is chosen from the same places and shares, free.
With ``components`` columns are bought first, with a share of the budget (paid.py); centres come back in the data's own.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpgrams_core.methods.functional.modes import release_surface
from dpgrams_core.methods.functional.paid import SHARE, buy_columns, paid_multipliers
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalSpec
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.numerics.centres import released_centres
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
# Of the public rule for modes: centres need less smoothing than peaks, since k-means averages the noise of many places.
# On other data (an earlier pilot) it makes little difference from 0.6 to 1.
BANDWIDTH_SCALE = 0.75
PAID = (
    "Proven, the columns included: their ranges are public, and the mean, the second moments that give the components, "
    "and the kernel sum in these each have noise for one replaced record; the three compose exactly."
)


def functional_c(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """Release the kernel sum of the data once, and read cluster centres off it (post-processing)."""
    return read_centres(bare_release(data, spec, noise), data.box)


def bare_release(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """The part that reads the records: the noisy surface or sketch, and no centre read off it yet."""
    refuse_private(data, noise.door)
    if spec.components is not None:
        return _paid_release(data, spec, spec.components, noise)
    try:
        bare = release_surface(data, _inner(spec), noise)
    except SpecError as error:
        if error.field == "bandwidth_scale":  # name the scale that was given, not its product with the one here
            raise SpecError(error.field, spec.bandwidth_scale, error.allowed) from None
        raise
    as_run = {"bandwidth": bare.spec.bandwidth, "bandwidth_from": bare.spec.bandwidth_from, "bandwidth_scale": None}
    return replace(bare, method="functional_c", spec=replace(spec, **as_run))


def _paid_release(data: Dataset, spec: FunctionalCSpec, components: int, noise: Noise) -> Release:
    """The columns, and the noisy kernel sum of the records in them; its price is that of all three releases."""
    *columns, last = paid_multipliers(gaussian_multiplier(spec.epsilon, spec.delta), spec.component_share or SHARE)
    paid, bought = buy_columns(data, components, columns, noise)
    points = paid.project(data.points)
    seen = Dataset(name=data.name, kind=data.kind, points=points, box=paid.box, private=data.private)
    bare = release_surface(seen, _inner(spec), noise, last)
    events = (*bought, *bare.events)
    cost = price(events, spec.delta)
    epsilon = spec.epsilon if math.isclose(cost.epsilon, spec.epsilon, rel_tol=1e-6) else cost.epsilon
    guarantee = Guarantee(epsilon=epsilon, delta=cost.delta, status="proven", statement=PAID)
    none = np.empty((0, data.dimension))
    return replace(bare, method="functional_c", spec=spec, modes=none, events=events, guarantee=guarantee, paid=paid)


def read_centres(bare: Release, box: Array) -> Release:
    """A bare release with the centres that are read off it, in the columns of the data."""
    assert bare.bare_surface is not None
    centres = released_centres(bare.bare_surface, bare.spec.n_clusters)
    nothing = None if len(centres) else np.empty(0)  # it was read, and nothing stands above the noise
    return replace(bare, modes=centres if bare.paid is None else bare.paid.back(centres), significance=nothing)


def _inner(spec: FunctionalCSpec) -> FunctionalSpec:
    scale = spec.bandwidth_scale
    if spec.bandwidth is None:
        scale = BANDWIDTH_SCALE * (1.0 if scale is None else scale)
    shared = {name: getattr(spec, name) for name in ("epsilon", "delta", "bandwidth", "bandwidth_from")}
    return FunctionalSpec(**shared, bandwidth_scale=scale)
