"""How the columns of clustering data came from the original ones, and the way back.

Clustering runs in few columns: standardised, projected on principal components, and each component divided by its
standard deviation ("whitened").  What a centre there stands for is seen in the original standardised space, where
the paper measures the error of centres, and on images as a picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgrams_core.model.checks import freeze
from dpgrams_core.numerics.scaling import middle_and_half

Array = np.ndarray

# How far one replaced record moves the released sums of the digits when the representation is fitted again, in units of
# the bound that the noise is made for: benchmarks/refit.py says how it is measured, and a test measures it again.
REFIT_TIMES = 233
FITTED_CAVEAT = (
    "The representation (scaling and principal components) was fitted on the records and is not paid for: the "
    "guarantee takes it as public, as the paper does. It is more than a formality: with one digits image replaced by a "
    f"white one and the representation fitted again, the sums move {REFIT_TIMES} times the stated bound."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Representation:
    """A linear map from the columns back to the original standardised space of p columns.

    ``standard = points * scale @ components + offset`` with ``scale`` (d,), ``components`` (d, p) whose rows are
    orthonormal, and ``offset`` (p,).  ``space`` says in words what the p columns are.  ``centroids`` (classes, p)
    are the means of the true classes there, the reference of the centroid error.  ``fitted`` is True where the map
    was computed from the records: then it is *not* private, and every private result says so.
    Images also have ``picture_shape`` and, per pixel, the mean and scale that undo the standardising.
    """

    space: str
    fitted: bool
    scale: Array
    components: Array
    offset: Array
    centroids: Array
    class_names: tuple[str, ...]
    picture_shape: tuple[int, int] | None = None
    picture_mean: Array | None = None
    picture_scale: Array | None = None

    def __post_init__(self) -> None:
        freeze(self, "scale", "components", "offset", "centroids", "picture_mean", "picture_scale")
        d, p = self.components.shape
        if self.scale.shape != (d,) or self.offset.shape != (p,) or self.centroids.shape != (len(self.class_names), p):
            raise ValueError("scale, components, offset and centroids do not fit each other")

    @property
    def caveats(self) -> tuple[str, ...]:
        return (FITTED_CAVEAT,) if self.fitted else ()

    def to_standard(self, centres: Array) -> Array:
        """Centres (k, d) in the original standardised space, (k, p)."""
        return (centres * self.scale) @ self.components + self.offset

    def from_standard(self, vectors: Array) -> Array:
        """Vectors (k, p) of the original standardised space as points (k, d); undoes ``to_standard``."""
        return ((vectors - self.offset) @ self.components.T) / self.scale

    def pictures(self, centres: Array) -> Array:
        """Centres (k, d) as images (k, rows, columns) in the original grey values."""
        if self.picture_shape is None or self.picture_mean is None or self.picture_scale is None:
            raise ValueError("these data are no images")
        pixels = self.to_standard(centres) * self.picture_scale + self.picture_mean
        return pixels.reshape(len(centres), *self.picture_shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidColumns:
    """Columns that were bought with a share of the budget: all of it was released, and to use them takes nothing else.

    A record is mapped by the public ``ranges`` (p, 2) to u in [-1, 1]^p, clipped, and its new columns are
    t = components (u - middle), clipped to ``box`` (d, 2), with ``components`` (d, p) orthonormal.  ``sums`` are the
    noisy numbers that all of this was computed from: those of the mean, and those of the second moments.
    """

    ranges: Array
    middle: Array
    components: Array
    box: Array
    sums: tuple[Array, Array]

    def __post_init__(self) -> None:
        freeze(self, "ranges", "middle", "components", "box")

    def project(self, points: Array) -> Array:
        """Records or places (n, p) in the new columns, (n, d); a record that misses a value misses all of them."""
        return np.clip((in_ranges(points, self.ranges) - self.middle) @ self.components.T, *self.box.T)

    def back(self, places: Array) -> Array:
        """Places (..., d) of the new columns in those of the data, (..., p)."""
        middle, half = middle_and_half(self.ranges)
        return middle + (places @ self.components + self.middle) * half

    @property
    def ways(self) -> Array:
        """How far a step along each new column goes in the columns of the data, (d, p)."""
        return self.components * middle_and_half(self.ranges)[1]

    def place_of(self, points: Array) -> Array:
        """The places (..., d) of which ``back`` made these points (..., p)."""
        middle, half = middle_and_half(self.ranges)
        return ((points - middle) / half - self.middle) @ self.components.T


def in_ranges(points: Array, ranges: Array) -> Array:
    """Records (n, p) with every column moved from its public range (p, 2) to -1 to 1, and clipped there."""
    middle, half = middle_and_half(ranges)
    with np.errstate(all="ignore"):  # far outside is infinite, and clipped; a warning would tell of a record
        return np.clip((points - middle) / half, -1.0, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedPCA:
    """Whitened scores (n, d) of a table and the map back, as ``Representation`` wants it."""

    scores: Array
    scale: Array
    components: Array
    offset: Array


def standardise(table: Array) -> tuple[Array, Array, Array]:
    """Every column with mean 0 and spread 1: (table, mean, scale). A constant column becomes 0."""
    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale = np.where(scale > 1e-12 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
    return (table - mean) / scale, mean, scale


def whitened_pca(table: Array, d: int) -> FittedPCA:
    """The leading d principal components, each divided by its standard deviation.

    By the eigenvectors of the smaller of the two products of the table with itself.  The sign of a component is
    free; here the entry that is largest in size is positive, so that every machine gives the same picture.
    scikit-learn's PCA gives the same up to rounding (1e-12), by a full decomposition where there are more columns than
    records: eighteen times as long for 300 records of 3,000 columns, and RNA-Seq has 20,531.  So it is written out.
    Cost O(n p min(n, p)): some seconds for 70,000 images of 784 pixels and for 801 tumours of 20,531 genes.
    """
    n, p = table.shape
    offset = table.mean(axis=0)
    centred = table - offset
    if p <= n:
        values, vectors = np.linalg.eigh(centred.T @ centred)
        components = vectors[:, ::-1][:, :d].T
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        components = (vectors[:, ::-1][:, :d] / np.sqrt(values[::-1][:d])).T @ centred
    scale = np.sqrt(values[::-1][:d] / (n - 1))
    largest = np.argmax(np.abs(components), axis=1)
    components = components * np.sign(components[np.arange(d), largest])[:, None]
    return FittedPCA(scores=(centred @ components.T) / scale, scale=scale, components=components, offset=offset)


def class_means(table: Array, labels: Array, classes: int) -> Array:
    """The mean of each class, (classes, p); ``labels`` are 0, 1, …, and every class has a record."""
    return np.stack([table[labels == number].mean(axis=0) for number in range(classes)])
