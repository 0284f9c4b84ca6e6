"""How good estimated branches are, against the known conditional modes.

The paper's loss (eq:modal-reg-mse) asks of each estimate how near it is to some branch.  It costs nothing to
miss a branch, so it is shown beside what it forgives: recall, coverage and spurious estimates.
"""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.checks import positive
from dpgrams_core.errors import DataError
from dpgrams_core.results import ConditionalTruth, Dataset, Release, refuse_private

Array = np.ndarray
EVALUATION_POINTS = 101  # equally spaced over the public box, both ends included
WINDOW_OF_SIDE = 0.025  # an estimate speaks for the places within this share of the box's side in x
RADIUS_OF_GAP = 0.25
RADIUS_OF_SIDE = 0.1  # for a truth that never has two branches


def evaluation_grid(box: Array) -> Array:
    """The public places in x at which branches are looked for."""
    # Hundredths, and not linspace: 0.7 must be 0.7, where a branch of the three steps ends.
    return box[0, 0] + (box[0, 1] - box[0, 0]) * (np.arange(EVALUATION_POINTS) / (EVALUATION_POINTS - 1))


def default_branch_radius(truth: ConditionalTruth, box: Array) -> float:
    """A quarter of the smallest gap between branches at one x; a tenth of the box's side where there is no gap."""
    gaps = np.diff(truth.mode_table(evaluation_grid(box)), axis=1)
    gaps = gaps[np.isfinite(gaps)]
    return RADIUS_OF_GAP * float(gaps.min()) if len(gaps) else RADIUS_OF_SIDE * float(box[1, 1] - box[1, 0])


def oracle_loss(truth: ConditionalTruth, curve: Array) -> tuple[float, int]:
    """The mean of eq:modal-reg-mse over the rows (x, y) of a curve, and the number of rows left out.

    A row is left out where the paper's mode set is empty; with no row left the loss is infinite.
    """
    if len(curve) == 0:
        return math.inf, 0
    squares = _distances(truth.paper_table(curve[:, 0]), curve[:, 1]) ** 2
    known = np.isfinite(squares)
    return (float(squares[known].mean()) if known.any() else math.inf), int((~known).sum())


def score_branches(
    truth: ConditionalTruth, curve: Array, box: Array, match_radius: float | None = None
) -> dict[str, float]:
    """The paper's loss and what it does not show.

    Parameters
    ----------
    truth : the law of the data.
    curve : rows (x, y), in any order; several rows may share an x.
    box : the public box, (2, 2).
    match_radius : the distance in y at which an estimate counts for a branch; see ``default_branch_radius``.

    Returns
    -------
    ``mse`` the mean loss of the rows; ``branch_recall`` the share of the true branches, over the places of the
    evaluation grid, that have a row within the radius in y and the window in x; ``spurious`` the share of the
    rows that are not within the radius of any branch at their own x; ``coverage`` the share of the places,
    among those where there is a branch at all, that have a row in the window.

    Examples
    --------
    >>> from dpgrams_core.datasets.regression import SINUSOID, lower_wave
    >>> x = np.linspace(0, 1, 200)
    >>> one_branch = np.stack([x, lower_wave(x)], axis=1)
    >>> score_branches(SINUSOID, one_branch, np.array([[0.0, 1.0], [-1.0, 2.5]]))
    {'mse': 0.0, 'branch_recall': 0.5, 'spurious': 0.0, 'coverage': 1.0}
    """
    radius = default_branch_radius(truth, box) if match_radius is None else positive("match_radius", match_radius)
    mse, _ = oracle_loss(truth, curve)
    places = evaluation_grid(box)
    branches = truth.mode_table(places)
    exists = np.isfinite(branches)
    found, covered = np.zeros(branches.shape, dtype=bool), np.zeros(len(places), dtype=bool)
    window = WINDOW_OF_SIDE * float(box[0, 1] - box[0, 0]) * (1 + 1e-9)  # a row exactly on the edge is in
    rows = curve[np.argsort(curve[:, 0], kind="stable")]
    first = np.searchsorted(rows[:, 0], places - window, side="left")
    last = np.searchsorted(rows[:, 0], places + window, side="right")
    for i in np.flatnonzero(exists.any(axis=1) & (first < last)):
        covered[i] = True
        gaps = np.abs(rows[first[i] : last[i], 1][:, None] - branches[i])
        found[i] = (gaps <= radius).any(axis=0)  # NaN is never near
    near = _distances(truth.mode_table(curve[:, 0]), curve[:, 1]) <= radius if len(curve) else np.empty(0, dtype=bool)
    return {
        "mse": mse,
        "branch_recall": float(found.sum() / max(1, exists.sum())),
        "spurious": float((~near).mean()) if len(curve) else 0.0,
        "coverage": float(covered.sum() / max(1, exists.any(axis=1).sum())),
    }


def score_regression(release: Release, data: Dataset, match_radius: float | None = None) -> dict[str, float]:
    """Score the curve of a release against the law of its data."""
    refuse_private(data)
    if data.truth is None:
        raise DataError(f"The data set {data.name} has no known conditional modes to score against.")
    if release.curve is None:
        raise DataError("This result holds no curve to score.")
    return score_branches(data.truth, release.curve, data.box, match_radius)


def _distances(table: Array, y: Array) -> Array:
    """Distance from each y to the nearest entry of its row of a table padded with NaN; infinite where all are NaN."""
    gaps = np.abs(table - y[:, None])
    return np.where(np.isnan(gaps), np.inf, gaps).min(axis=1)
