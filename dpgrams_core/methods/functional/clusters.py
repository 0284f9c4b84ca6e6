"""Private cluster centres from the functional release: one noisy kernel sum, and everything after it free.

The release and its proof are those of modes.py (a surface in up to three columns, a sketch in more).  Centres are
post-processing of it: those of k-means over public places, each weighted by the share of the records that most likely
is there (likely_places.py).  A number of clusters that is not known is chosen from the same places and shares, free.
With ``components`` columns are bought first, with a share of the budget (paid.py); centres come back in the data's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from dpgrams_core.methods.baselines.kmeans import fitted_kmeans
from dpgrams_core.methods.functional.likely_places import likely_places
from dpgrams_core.methods.functional.modes import release_surface
from dpgrams_core.methods.functional.paid import SHARE, buy_columns, paid_multipliers
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalSpec
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import noise_ceiling
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
K_MEANS_STARTS = 4
# Chosen on data that no table shows (benchmarks/pilot_clusters.py): mean ARI 0.5138 for none, 0.5143 for one, 0.509,
# 0.503 and 0.496 for two to four.
PEAK_STEPS = 1
# A number that is not known: at most so many, and the largest whose parting is within this share of the best one.  In
# an earlier pilot on other data (with the former PEAK_STEPS and weight) the ARI relative to that with the true number
# was 1.04, 1.05, 1.03, 1.03 and 0.97 for 0, 0.01, 0.02, 0.03 and 0.06; of the first four the last was taken with digits
# in view.
MOST_CLUSTERS, AS_PARTED = 20, 0.03
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
    return replace(bare, modes=centres if bare.paid is None else bare.paid.back(centres))


def _inner(spec: FunctionalCSpec) -> FunctionalSpec:
    scale = spec.bandwidth_scale
    if spec.bandwidth is None:
        scale = BANDWIDTH_SCALE * (1.0 if scale is None else scale)
    shared = {name: getattr(spec, name) for name in ("epsilon", "delta", "bandwidth", "bandwidth_from")}
    return FunctionalSpec(**shared, bandwidth_scale=scale)


def released_centres(surface: BareSurface, count: int | None) -> Array:
    """Cluster centres (k, d) of a release: k-means over the likeliest shares of the records.

    There are ``count`` of them (``None``: as many as part the records best), or fewer where the release shows fewer
    places, as DP-GRAMS-C may find fewer. That is no error: the release is drawn and paid for by now.
    """
    places, shares = likely_places(surface, count or 1)
    if count is None:
        ceiling = noise_ceiling(surface.box, surface.bandwidth)
        if not bool((surface.value(places) > ceiling * surface.noise_at(places)).any()):
            return np.empty((0, surface.dimension))  # nothing stands above the noise, so nothing is counted
    # A fixed seed: the same release gives the same centres.
    counts = [count] if count is not None else range(1, MOST_CLUSTERS + 1)
    fits = [
        fitted_kmeans(places, number, K_MEANS_STARTS, 0, shares).cluster_centers_
        for number in dict.fromkeys(min(number, len(places)) for number in counts)
    ]
    centres = fits[0] if len(fits) == 1 else best_parted(fits, places, shares)
    return towards_peaks(centres, places, shares, reference_spread(surface.box))


def best_parted(fits: Sequence[Array], places: Array, shares: Array) -> Array:
    """Of centres for several counts, those of the largest count that parts the records about as well as the best one.

    How well: the mean over the records of 1 - (distance to the nearest centre) / (distance to the second nearest),
    which is a silhouette by centres (0 for one centre).  It is flat where clusters overlap, and then a centre too few
    costs more than one too many: it joins two clusters, where one too many parts a single one.
    """
    parted = []
    for centres in fits:
        away = np.partition(scipy.spatial.distance.cdist(places, centres), min(1, len(centres) - 1), axis=1)
        nearest, second = away[:, 0], away[:, min(1, len(centres) - 1)]
        ratio = np.divide(nearest, second, out=np.ones(len(away)), where=second > 0)
        parted.append(float(shares @ (1 - ratio)))
    best = max(parted)
    return fits[max(number for number, value in enumerate(parted) if value >= (1 - AS_PARTED) * best)]


def towards_peaks(centres: Array, places: Array, shares: Array, width: float) -> Array:
    """Centres a few mean-shift steps on: records near a centre count more than those at the rim of its cluster.

    The mean of a cluster is drawn by its rim, which noise and its neighbours have a part in; its peak is not.  To the
    end the steps would let centres meet, so there are few.
    """
    for _ in range(PEAK_STEPS):
        square = ((centres[:, None, :] - places[None, :, :]) ** 2).sum(axis=-1) / width**2
        square -= square.min(axis=1, keepdims=True)  # a centre far from all places still has a nearest one
        weights = np.exp(-0.5 * square) * shares
        centres = (weights @ places) / weights.sum(axis=1, keepdims=True)
    return centres
