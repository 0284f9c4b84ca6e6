"""Private cluster centres from the functional release: one noisy kernel sum, and everything after it free.

The release and its proof are those of modes.py (a surface in up to three columns, a sketch in more).  Centres are
post-processing of it.  With a known number of clusters they are those of k-means over public places, each weighted by
the share of the records that most likely is there (likely_places.py).  Without a known number they are the modes of the
release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgrams_core.methods.baselines.kmeans import fitted_kmeans
from dpgrams_core.methods.functional.likely_places import likely_places
from dpgrams_core.methods.functional.modes import modes_of, release_surface, sized
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalSpec
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
K_MEANS_STARTS = 4
# Chosen on data that no table shows (benchmarks/pilot_clusters.py): mean ARI 0.5138 for none, 0.5143 for one, 0.509,
# 0.503 and 0.496 for two to four.
PEAK_STEPS = 1
# Of the public rule for modes: centres need less smoothing than peaks, since k-means averages the noise of many places.
# On other data (an earlier pilot) it makes little difference from 0.6 to 1.
BANDWIDTH_SCALE = 0.75


def functional_c(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """Release the kernel sum of the data once, and read cluster centres off it (post-processing)."""
    release = read_centres(bare_release(data, spec, noise), data.box)
    return sized(release, data.points) if spec.n_clusters is None else release


def bare_release(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """The part that reads the records: the noisy surface or sketch, and no centre read off it yet."""
    refuse_private(data, noise.door)
    try:
        bare = release_surface(data, _inner(spec), noise)
    except SpecError as error:
        if error.field == "bandwidth_scale":  # name the scale that was given, not its product with the one here
            raise SpecError(error.field, spec.bandwidth_scale, error.allowed) from None
        raise
    as_run = {"bandwidth": bare.spec.bandwidth, "bandwidth_from": bare.spec.bandwidth_from, "bandwidth_scale": None}
    return replace(bare, method="functional_c", spec=replace(spec, **as_run))


def read_centres(bare: Release, box: Array) -> Release:
    """A bare release with the centres that are read off it."""
    count = bare.spec.n_clusters
    if count is None:
        return replace(bare, **modes_of(bare, None))
    assert bare.bare_surface is not None
    return replace(bare, modes=released_centres(bare.bare_surface, count))


def _inner(spec: FunctionalCSpec) -> FunctionalSpec:
    scale = spec.bandwidth_scale
    if spec.bandwidth is None:
        scale = BANDWIDTH_SCALE * (1.0 if scale is None else scale)
    shared = {name: getattr(spec, name) for name in ("epsilon", "delta", "bandwidth", "bandwidth_from")}
    return FunctionalSpec(**shared, bandwidth_scale=scale)


def released_centres(surface: BareSurface, count: int) -> Array:
    """Cluster centres (k, d) of a release: k-means over the likeliest shares of the records.

    There are ``count`` of them, or fewer where the release shows fewer places, as DP-GRAMS-C may find fewer. That is no
    error: the release is drawn and paid for by now.
    """
    places, shares = likely_places(surface)
    # A fixed seed: the same release gives the same centres.
    model = fitted_kmeans(places, min(count, len(places)), K_MEANS_STARTS, 0, shares)
    return towards_peaks(model.cluster_centers_, places, shares, reference_spread(surface.box))


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
