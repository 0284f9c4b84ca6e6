"""How good a release is, against the known truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpgrams_core.checks import positive
from dpgrams_core.errors import DataError
from dpgrams_core.metrics_clusters import score_clusters
from dpgrams_core.metrics_regression import score_regression
from dpgrams_core.results import Dataset, Release, refuse_private

Array = np.ndarray


@dataclass(frozen=True)
class Matching:
    """One-to-one matching of true modes and estimates with the least total squared distance.

    ``estimate_of[j]`` is the estimate matched to true mode j, or -1;
    ``distance[j]`` its distance, or the distance to the nearest estimate where none is matched.
    """

    estimate_of: Array
    distance: Array
    n_estimates: int
    squared_total: float


def match_modes(truth: Array, estimates: Array) -> Matching:
    """Hungarian matching on squared distances."""
    k = len(truth)
    estimate_of = np.full(k, -1)
    if len(estimates) == 0:
        return Matching(estimate_of, np.full(k, np.inf), 0, 0.0)
    square = cdist(truth, estimates, "sqeuclidean")
    rows, columns = linear_sum_assignment(square)
    estimate_of[rows] = columns
    distance = np.sqrt(square.min(axis=1))
    distance[rows] = np.sqrt(square[rows, columns])
    return Matching(estimate_of, distance, len(estimates), float(square[rows, columns].sum()))


def default_match_radius(truth: Array) -> float:
    """A sixth of the smallest distance between true modes (1.0 for both of the paper's mixtures)."""
    gaps = cdist(truth, truth)[np.triu_indices(len(truth), 1)]
    return float(gaps.min()) / 6 if len(gaps) else 1.0


def score_modes(truth: Array, estimates: Array, match_radius: float | None = None) -> dict[str, float]:
    """The paper's matching MSE (MMMSE) and what it does not show.

    ``mse`` divides the matched squared error by max(k, k_hat), so extra modes make it smaller;
    ``mse_per_true_mode`` averages over true modes, an unmatched one counting with its nearest
    estimate; ``found`` true modes have their match within ``match_radius``, ``missed`` do not;
    ``spurious`` estimates are not the match of a found mode.
    """
    radius = default_match_radius(truth) if match_radius is None else positive("match_radius", match_radius)
    matching = match_modes(truth, estimates)
    matched = matching.estimate_of >= 0
    found = int((matched & (matching.distance <= radius)).sum())
    size = max(len(truth), matching.n_estimates)
    return {
        "mse": matching.squared_total / size if matching.n_estimates else float("inf"),
        "mse_per_true_mode": float((matching.distance**2).mean()),
        "found": float(found),
        "missed": float(len(truth) - found),
        "spurious": float(matching.n_estimates - found),
    }


def recovery_rates(truth: Array, runs: list[Array], match_radius: float | None = None) -> Array:
    """Share of the runs in which each true mode was found, (k,)."""
    radius = default_match_radius(truth) if match_radius is None else match_radius
    found = []
    for estimates in runs:
        matching = match_modes(truth, estimates)
        found.append((matching.estimate_of >= 0) & (matching.distance <= radius))
    return np.mean(found, axis=0)


def score(release: Release, data: Dataset, match_radius: float | None = None) -> dict[str, float]:
    """Score a release against the truth that the data set carries.

    Not private when the truth comes from the data; the truths here are those of the
    synthetic mixtures.  Regression data are scored by ``metrics_regression.score_branches``, clusters
    by ``metrics_clusters.score_clusters`` (which takes no radius).
    """
    refuse_private(data)
    if data.kind == "regression":
        return score_regression(release, data, match_radius)
    if data.kind == "clusters":
        return score_clusters(release, data)
    if data.true_modes is None:
        raise DataError(f"The data set {data.name} has no known modes to score against.")
    return score_modes(data.true_modes, release.modes, match_radius)
