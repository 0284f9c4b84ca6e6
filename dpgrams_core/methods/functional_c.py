"""Private cluster centres from the functional release: one noisy kernel sum, and everything after it free.

The release and its proof are those of functional.py (a surface in up to three columns, a sketch in more).  Centres are
post-processing of it.  With a known number of clusters in few columns they are those of k-means over the nodes of a
public grid, each weighted by the released kernel sum where that stands above the noise; in many columns, where no grid
is fine enough, they are the bumps fitted to the sketch.  Without a known number they are the modes of the release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.cluster import KMeans

from dpgrams_core.bandwidths import REFERENCE_SPREAD, mean_side
from dpgrams_core.errors import SpecError
from dpgrams_core.methods.functional import functional, release_surface
from dpgrams_core.methods.functional_sketch import find_sketch_bumps
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.results import Dataset, Release
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.specs import FunctionalSpec
from dpgrams_core.specs_clusters import FunctionalCSpec
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
ABOVE_NOISE = 3.0  # standard deviations of the noise that a node must stand above to carry weight
NODES_A_BANDWIDTH = 4
MOST_NODES = 60_000
K_MEANS_STARTS = 4


def functional_c(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """Release the kernel sum of the data once, and read cluster centres off it (post-processing)."""
    count = spec.n_clusters
    bare = functional(data, _inner(spec), noise) if count is None else bare_release(data, spec, noise)
    return replace(
        bare,
        method="functional_c",
        modes=bare.modes if count is None else released_centres(bare, count),
        spec=replace(spec, bandwidth=bare.spec.bandwidth, bandwidth_scale=None),
        guarantee=replace(bare.guarantee, caveats=(*bare.guarantee.caveats, *data.representation_caveats)),
    )


def bare_release(data: Dataset, spec: FunctionalCSpec, noise: Noise) -> Release:
    """The part that reads the records: the noisy surface or sketch, and no centre read off it yet."""
    return release_surface(data, _inner(spec), noise)


def _inner(spec: FunctionalCSpec) -> FunctionalSpec:
    shared = ("epsilon", "delta", "bandwidth", "bandwidth_scale")
    return FunctionalSpec(**{name: getattr(spec, name) for name in shared})


def released_centres(bare: Release, count: int) -> Array:
    """``count`` cluster centres (k, d) of a release."""
    if isinstance(bare.surface, ReleasedSketch):
        sketch = bare.surface
        return find_sketch_bumps(sketch, count, REFERENCE_SPREAD * mean_side(sketch.box))[0].centres
    assert isinstance(bare.surface, ReleasedSurface)
    return weighted_centres(bare.surface, count)


def weighted_centres(surface: ReleasedSurface, count: int) -> Array:
    """k-means over public grid nodes weighted by the released kernel sum where it stands above the noise.

    Where fewer nodes than clusters do, all nodes with a positive sum count.
    """
    sides = surface.box[:, 1] - surface.box[:, 0]
    each = np.ceil(sides / surface.bandwidth * NODES_A_BANDWIDTH)
    each = np.maximum(2, np.floor(each * min(1.0, MOST_NODES / each.prod()) ** (1 / len(sides)))).astype(int)
    axes = [np.linspace(low, high, k) for (low, high), k in zip(surface.box, each, strict=True)]
    values, noise = surface.grid(axes).ravel(), surface.noise_grid(axes).ravel()
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(len(values), -1)
    weights = np.where(values > ABOVE_NOISE * noise, values, 0.0)
    if (weights > 0).sum() < count:
        weights = np.maximum(values, 0.0)
    kept = weights > 0
    if kept.sum() < count:
        raise SpecError("n_clusters", count, f"the release shows only {int(kept.sum())} places that could be centres")
    # A fixed seed: the same release gives the same centres.
    model = KMeans(count, n_init=K_MEANS_STARTS, random_state=0).fit(nodes[kept], sample_weight=weights[kept])
    centres: Array = model.cluster_centers_
    return centres
