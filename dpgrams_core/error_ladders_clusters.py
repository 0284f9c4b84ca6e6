"""The ladder of error of clusters by the functional release: from k-means on the records to centres read off it.

Simulation only, as in error_ladders.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import REFERENCE_SPREAD, mean_side
from dpgrams_core.fourier import check_resolution
from dpgrams_core.ladder_parts import CLUSTER_MEASURES, Ladder, Rung, true_count, without_noise
from dpgrams_core.methods.functional import GRID_DIMENSIONS, choose_release_bandwidth
from dpgrams_core.methods.functional_c import K_MEANS_STARTS, _inner, bare_release, released_centres, towards_peaks
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, refuse_private
from dpgrams_core.specs import make_spec
from dpgrams_core.specs_clusters import FunctionalCSpec
from dpgrams_core.surfaces import box_bases

Array = np.ndarray


def _prepare(data: Dataset, options: dict[str, Any]) -> FunctionalCSpec:
    spec = make_spec(FunctionalCSpec, options)
    true_count(data)
    h = choose_release_bandwidth(_inner(spec), data).value
    if data.dimension > GRID_DIMENSIONS:
        check_resolution(data.box, h)
    else:
        box_bases(data.box, h)
    return spec


def _centres(spec: FunctionalCSpec, data: Dataset, seed: int) -> Iterator[Array]:
    """Centres of the steps in order, as many as there are clusters: each has one ingredient more than the last."""
    refuse_private(data)
    count = true_count(data)
    means = _record_means(data.points, count)
    yield means
    yield towards_peaks(means, data.points, np.full(data.n, 1 / data.n), REFERENCE_SPREAD * mean_side(data.box))
    noisy = bare_release(data, spec, SimulationNoise(seed)).surface
    assert noisy is not None
    yield released_centres(without_noise(noisy, data.points, data), count)
    yield released_centres(noisy, count)


def _record_means(points: Array, count: int) -> Array:
    """k-means on the records, with as many starts and the same fixed seed as k-means on a release has."""
    from sklearn.cluster import KMeans  # here, since it takes a second to load

    with warnings.catch_warnings():
        # Fewer distinct records than clusters: some centres coincide, and the result is still right.
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        model = KMeans(count, n_init=K_MEANS_STARTS, random_state=0).fit(points)
    return np.asarray(model.cluster_centers_)


CLUSTER_LADDERS: dict[str, Ladder] = {
    "functional_c": Ladder(
        (
            Rung("sampling", "Without privacy", "k-means on the records"),
            Rung("peaks", "Towards the peaks", "a few steps from the means of the clusters towards their peaks"),
            Rung("reading", "Kernel sum", "reading the exact kernel sum on public places instead of the records"),
            Rung("noise", "Noise", "the noise of the release"),
            Rung("merge", "Number of clusters", "the number of clusters as set, or peaks where it is unknown"),
        ),
        CLUSTER_MEASURES,
        _prepare,
        _centres,
    ),
}
