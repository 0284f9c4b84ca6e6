"""The records of the paper's tables as they were really drawn: the design "as run" of the data sets, and its seeds.

Where a table comes out to the printed digit, so do its records.  They differ from the text in this: groups of exactly
equal size; two independent t variates a point, where the text has a bivariate t; one draw of the records for all runs
of a size (modes and blobs); blobs about fixed centres; digits in principal components that are not whitened.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpgrams_core.datasets.clusters import BLOB_SPREAD, BLOBS, MAX_N, MIN_N, ClusterTable, standardised
from dpgrams_core.datasets.mixtures import Mixture
from dpgrams_core.datasets.regression import BranchMixture
from dpgrams_core.model.checks import whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.representation import FittedPCA
from dpgrams_core.model.run import TableSeeds

Array = np.ndarray

AS_RUN = "as run"
BLOB_CENTRES = ((-2.0, -2.0), (-2.0, 2.0), (2.0, -2.0), (2.0, 2.0))


def equal_groups(law: Mixture, n: int, seed: int) -> tuple[Array, Array]:
    """n / k records of each of the k components, one after the other; each coordinate of a t is drawn by itself."""
    rng = np.random.default_rng(seed)
    count = len(law.means)
    if n % count:
        raise SpecError("n", n, f"this design has {count} groups of equal size, so it must be a multiple of {count}")
    size, groups = n // count, []
    for mean, scale, dof in zip(law.means, law.scales, law.dofs, strict=True):
        if np.isinf(dof):
            groups.append(rng.multivariate_normal(mean, scale**2 * np.eye(law.dimension), size=size))
        else:
            groups.append(rng.standard_t(dof, size=(size, law.dimension)) * scale + np.array(mean, dtype=float))
    return np.vstack(groups), np.repeat(np.arange(count), size)


def branches(law: BranchMixture, n: int, seed: int) -> tuple[Array, Array]:
    """As ``BranchMixture.sample``, with the predictors of all branches drawn before their responses."""
    rng = np.random.default_rng(seed)
    k = len(law.curves)
    sizes = [n // k] * (k - 1) + [n - (k - 1) * (n // k)]
    x = [rng.uniform(low, high, size) for (low, high), size in zip(law.intervals, sizes, strict=True)]
    away = [rng.normal(0, law.spread, size) for size in sizes]
    y = [curve(own) + noise for curve, own, noise in zip(law.curves, x, away, strict=True)]
    return np.stack([np.concatenate(x), np.concatenate(y)], axis=1), np.repeat(np.arange(k), sizes)


def blobs_as_run(n: int | None, seed: int, default_n: int) -> ClusterTable:
    """make_blobs about four fixed centres, standardised; the seed is its random_state."""
    from sklearn.datasets import make_blobs  # here, since it takes a second to load

    size = whole("n", default_n if n is None else n, MIN_N, MAX_N)
    points, labels = make_blobs(size, centers=np.array(BLOB_CENTRES), cluster_std=BLOB_SPREAD, random_state=seed)
    names = tuple(f"blob {number + 1}" for number in range(BLOBS))
    return standardised(points, labels, "the two standardised coordinates", names)


def plain_pca(table: Array, d: int) -> FittedPCA:
    """The leading d principal components as scikit-learn gives them, signs included, and not whitened."""
    from sklearn.decomposition import PCA  # here, since it takes a second to load

    model = PCA(n_components=d).fit(table)
    return FittedPCA(scores=model.transform(table), scale=np.ones(d), components=model.components_, offset=model.mean_)


# The seeds of the tables, as the authors' scripts have them.


def mode_seeds(sizes: Sequence[int], epsilons: Sequence[float]) -> TableSeeds:
    """One draw of the records a size, 42, 43, …; runs 42 + 100 (number of the size) + 1000 (number of ε) + run."""

    def seeds(n: int, epsilon: float, run: int) -> tuple[int | None, int | None]:
        if n not in sizes:
            return None, None
        place = list(sizes).index(n)
        noise = 42 + 100 * place + 1000 * list(epsilons).index(epsilon) + run if epsilon in epsilons else None
        return 42 + place, noise

    return seeds


def regression_seeds(n: int, epsilon: float, run: int) -> tuple[int | None, int | None]:
    """Fresh records for every run, known by n, ε and the run."""
    if np.isinf(epsilon):
        return None, None
    own = 100_000 * n + 1_000 * int(10 * epsilon) + run
    return 50_000_000 + own, 70_000_000 + own


def blob_seeds(sizes: Sequence[int]) -> TableSeeds:
    """One draw of the records a size, 1041, 2041, …; runs 41 + 10000 (number of the size) + 100 floor(100 ε) + run."""

    def seeds(n: int, epsilon: float, run: int) -> tuple[int | None, int | None]:
        if n not in sizes:
            return None, None
        place = list(sizes).index(n)
        noise = None if np.isinf(epsilon) else 41 + 10_000 * place + 100 * int(100 * epsilon) + run
        return 1_041 + 1_000 * place, noise

    return seeds


def counted_from(first: int) -> TableSeeds:
    """All records, and runs with the seeds ``first``, ``first`` + 1, …, the same for every ε."""

    def seeds(_n: int, epsilon: float, run: int) -> tuple[int | None, int | None]:
        return 0, None if np.isinf(epsilon) else first + run

    return seeds
