"""The ladders of error of the functional releases: from the exact records to what is read off noisy sums. Simulation.

Every step reads the release as the method does, as many modes or clusters as there are.
"""

from __future__ import annotations

import numpy as np

from dpgrams_core.methods.dp_pms.ladder import all_records, check_baseline
from dpgrams_core.methods.functional import clusters, modes, regression
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalRegressionSpec, FunctionalSpec
from dpgrams_core.methods.ladder import Ladder, On, Rung, true_count, without_noise
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.numerics import centres
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.bumps import find_bumps
from dpgrams_core.numerics.ridges import trace_ridges
from dpgrams_core.numerics.sketch import check_resolution
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases
from dpgrams_core.privacy.noise import SimulationNoise

Array = np.ndarray


MODE_RUNGS = (
    Rung("sampling", "Without noise", "reading the exact surface"),
    Rung("noise", "Noise", "the noise of the surface"),
    Rung("merge", "Number of modes", "the number of modes as set instead of the true one"),
)


def _prepare_modes(data: Dataset, spec: FunctionalSpec) -> FunctionalSpec:
    if data.dimension > modes.GRID_DIMENSIONS:
        raise SpecError("dataset", data.name, f"the surface is parted in up to {modes.GRID_DIMENSIONS} columns")
    modes.choose_release_bandwidth(spec, data)
    return spec


def _modes(spec: FunctionalSpec, data: Dataset, seed: int, on: On) -> Array:
    surface = modes.release_surface(data, spec, SimulationNoise(seed)).surface
    assert isinstance(surface, ReleasedSurface)
    if "noise" not in on:
        surface = without_noise(surface, data.points, data)
    return find_bumps(surface, true_count(data), reference_spread(data.box)).centres


CENTRE_RUNGS = (
    Rung("sampling", "Without privacy", "k-means on the records"),
    Rung("peaks", "Towards the modes", "a few steps from the means of the clusters towards their modes"),
    Rung("reading", "Kernel sum", "reading the exact kernel sum on public places instead of the records"),
    Rung("noise", "Noise", "the noise of the release"),
    Rung("merge", "Number of clusters", "the number of clusters as set, or as the release shows it"),
)


def _prepare_centres(data: Dataset, spec: FunctionalCSpec) -> FunctionalCSpec:
    true_count(data)
    if spec.components is not None:
        raise SpecError("components", spec.components, "the error is parted in the columns as they are; leave it out")
    h = modes.choose_release_bandwidth(clusters._inner(spec), data).value
    if data.dimension > modes.GRID_DIMENSIONS:
        check_resolution(data.box, h)
    else:
        box_bases(data.box, h)
    return spec


def _centres(spec: FunctionalCSpec, data: Dataset, seed: int, on: On) -> Array:
    count = true_count(data)
    if "reading" in on:
        released = clusters.bare_release(data, spec, SimulationNoise(seed)).bare_surface
        assert released is not None
        return centres.released_centres(
            released if "noise" in on else without_noise(released, data.points, data), count
        )
    # With as many starts and the same fixed seed as k-means on a release has.
    means = np.asarray(centres.fitted_kmeans(data.points, count, centres.K_MEANS_STARTS, 0).cluster_centers_)
    if "peaks" not in on:
        return means
    return centres.towards_peaks(means, data.points, np.full(data.n, 1 / data.n), reference_spread(data.box))


BRANCH_RUNGS = (
    Rung("sampling", "Without privacy", "partial mean shift from every record at its own bandwidth"),
    Rung("bandwidth", "Bandwidth", "the bandwidth of the release"),
    Rung("reading", "Reading", "reading branches off the exact surface where they would stand above its noise"),
    Rung("noise", "Noise", "the noise of the surface"),
)


def _prepare_branches(data: Dataset, spec: FunctionalRegressionSpec) -> FunctionalRegressionSpec:
    h = modes.choose_release_bandwidth(regression.joint_spec(spec), regression.on_unit_square(data)).value
    box_bases(regression.UNIT_SQUARE, h)
    check_baseline(data, h)
    return spec


def _branches(spec: FunctionalRegressionSpec, data: Dataset, seed: int, on: On) -> Array:
    if "bandwidth" not in on:
        return all_records(data)
    surface = regression.release_joint(data, spec, SimulationNoise(seed)).surface
    assert isinstance(surface, ReleasedSurface)
    if "reading" not in on:
        return all_records(data, surface.bandwidth)
    exact = without_noise(surface, regression.to_unit(data.points, data.box), data)
    ridges = trace_ridges(exact, np.linspace(0, 1, spec.grid_size))
    return regression.from_unit(np.concatenate([np.stack([ridge.x, ridge.y], axis=1) for ridge in ridges]), data.box)


FUNCTIONAL_LADDER = Ladder(MODE_RUNGS, _prepare_modes, _modes)
FUNCTIONAL_C_LADDER = Ladder(CENTRE_RUNGS, _prepare_centres, _centres)
FUNCTIONAL_REGRESSION_LADDER = Ladder(BRANCH_RUNGS, _prepare_branches, _branches)
