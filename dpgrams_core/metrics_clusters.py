"""How good released centres are, against the true classes.

Records are assigned to their nearest centre.  These labels are evaluation only: they say of each record where it
lies, which no guarantee covers, so they never enter a Release.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpgrams_core.errors import DataError
from dpgrams_core.results import Dataset, Release, refuse_private

Array = np.ndarray
ROWS = 20_000  # records at a time, so that many centres do not fill the memory


def nearest_centres(points: Array, centres: Array) -> Array:
    """The number of the nearest centre of every record (alg:dpgrams-c, last loop); *not* private.

    >>> nearest_centres(np.array([[0.0], [0.9], [5.0]]), np.array([[0.0], [4.0]])).tolist()
    [0, 0, 1]
    """
    if len(centres) == 0:
        return np.zeros(len(points), dtype=int)  # with no centre all records are together
    parts = [points[start : start + ROWS] for start in range(0, len(points), ROWS)]
    return np.concatenate([cdist(part, centres, "sqeuclidean").argmin(axis=1) for part in parts])


def centroid_mse(reference: Array, centres: Array) -> float:
    """The matching error of eq:MMMSE: Hungarian, squared lengths, divided by max(k, k_hat); infinite with no centre.

    >>> centroid_mse(np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[4.0, 1.0], [0.0, 1.0]]))
    1.0
    """
    if len(centres) == 0:
        return math.inf
    square = cdist(reference, centres, "sqeuclidean")
    rows, columns = linear_sum_assignment(square)
    return float(square[rows, columns].sum()) / max(len(reference), len(centres))


def score_clusters(release: Release, data: Dataset) -> dict[str, float]:
    """ARI and NMI of the nearest-centre labels, and the error of the centres in the original standardised space.

    The centroid error is in squared lengths and is not divided by the number of columns of that space.  Data
    without a representation are scored in the columns they have, against the means of their classes.
    """
    refuse_private(data)
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # here: it takes a second to load

    if data.labels is None:
        raise DataError(f"The data set {data.name} has no known classes to score against.")
    if release.modes.ndim != 2 or (len(release.modes) and release.modes.shape[1] != data.dimension):
        raise DataError(f"The centres do not have the {data.dimension} columns of the data set {data.name}.")
    labels = nearest_centres(data.points, release.modes)
    if data.representation is not None:
        reference, centres = data.representation.centroids, data.representation.to_standard(release.modes)
    else:
        classes = [data.labels == name for name in np.unique(data.labels)]
        reference, centres = np.stack([data.points[mine].mean(axis=0) for mine in classes]), release.modes
    return {
        "ari": float(adjusted_rand_score(data.labels, labels)),
        "nmi": float(normalized_mutual_info_score(data.labels, labels)),
        "centroid_mse": centroid_mse(reference, centres),
    }
