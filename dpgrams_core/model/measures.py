"""How good a release is, against the known truth: every score with all that is ever said about it, once.

A measure is one entry of ``MEASURES``.  ``score``, sweeps, pictures, tables, the search for a budget and the reports
take its function, words, direction and axis from there, so that a new one is added here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpgrams_core.model.checks import positive
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.results import ConditionalTruth, Dataset, Release, refuse_private

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A score of a release, and its facts.

    ``of`` computes it from what its kind of data prepares (``MatchedModes``, ``MatchedBranches``, ``LabelledRecords``);
    without it the number is not one of the release, such as the seconds of a run.
    """

    kind: str  # of the data
    name: str
    title: str  # on an axis and in a table
    words: str  # what it says, in a sentence
    of: Callable[[Any], float] | None
    more_is_better: bool = False
    log_axis: bool = False
    share: bool = False  # of something that is counted, so that a sentence says it in percent
    offered: bool = True  # whether the pages let one choose it; the others stand in tables
    has_parts: bool = False  # whether its sources are told apart; of a score up to 1, those of 1 − score
    wish: float = 0.0  # where the search for a budget starts
    format: str = ",.3~r"  # of a value under the pointer
    full_title: str = ""  # where an axis has room for it

    @property
    def better(self) -> str:
        return "more" if self.more_is_better else "less"

    @property
    def axis(self) -> str:
        return f"{self.title} ({self.better} is better)"

    @property
    def error_title(self) -> str:
        return f"1 − {self.title}" if self.more_is_better else self.title

    def as_error(self, value: float) -> float:
        """The score as an error: of a score up to 1 what it lacks."""
        return 1 - value if self.more_is_better else value

    def at_least_as_good(self, value: float, other: float) -> bool:
        """Whether a value is no worse than another; one that is not a number never is."""
        return value >= other if self.more_is_better else value <= other


MEAN_SQUARED_ERROR = "mean squared error (MSE)"
MEASURES: dict[str, dict[str, Measure]] = {"modes": {}, "regression": {}, "clusters": {}}


def register(*measures: Measure) -> None:
    """Make measures known; the first of a kind is its headline."""
    for item in measures:
        MEASURES[item.kind][item.name] = item


def measure(kind: str, name: str, title: str, **facts: Any) -> Callable[[Callable[[Any], float]], None]:
    """Make a function known as a measure; its docstring is what the measure says, in a sentence."""

    def known(of: Callable[[Any], float]) -> None:
        words = " ".join((of.__doc__ or "").split())
        register(Measure(kind=kind, name=name, title=title, words=words, of=of, **facts))

    return known


def measure_of(kind: str, name: str) -> Measure:
    """A score of a kind of data; another name is refused."""
    if name not in scores_of(kind):
        raise SpecError("measure", name, "choose one of " + ", ".join(scores_of(kind)))
    return MEASURES[kind][name]


def scores_of(kind: str) -> dict[str, Measure]:
    """The measures that ``score`` gives."""
    return {name: measure for name, measure in MEASURES[kind].items() if measure.of is not None}


def offered_measures(kind: str) -> dict[str, Measure]:
    """The measures that the pages let one choose."""
    return {name: measure for name, measure in scores_of(kind).items() if measure.offered}


def measure_titles(kind: str) -> dict[str, str]:
    """The offered measures as people call them, for a control."""
    return {name: measure.title for name, measure in offered_measures(kind).items()}


def measures_with_parts(kind: str) -> tuple[str, ...]:
    """The measures whose sources are told apart, errors first."""
    found = [measure for measure in MEASURES[kind].values() if measure.has_parts]
    return tuple(measure.name for measure in sorted(found, key=lambda measure: measure.more_is_better))


def score(release: Release, data: Dataset, match_radius: float | None = None) -> dict[str, float]:
    """Score a release against the truth that the data set carries.

    Not private when the truth comes from the data; the truths here are those of the synthetic mixtures.  Clusters
    take no radius.
    """
    refuse_private(data)
    return _scores(data.kind, _PREPARE[data.kind](release, data, match_radius))


def _scores(kind: str, prepared: Any) -> dict[str, float]:
    return {name: float(measure.of(prepared)) for name, measure in scores_of(kind).items() if measure.of}


# Modes.


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
    square = scipy.spatial.distance.cdist(truth, estimates, "sqeuclidean")
    rows, columns = scipy.optimize.linear_sum_assignment(square)
    estimate_of[rows] = columns
    distance = np.sqrt(square.min(axis=1))
    distance[rows] = np.sqrt(square[rows, columns])
    return Matching(estimate_of, distance, len(estimates), float(square[rows, columns].sum()))


def default_match_radius(truth: Array) -> float:
    """A sixth of the smallest distance between true modes (1.0 for both of the paper's mixtures)."""
    gaps = scipy.spatial.distance.cdist(truth, truth)[np.triu_indices(len(truth), 1)]
    return float(gaps.min()) / 6 if len(gaps) else 1.0


@dataclass(frozen=True)
class MatchedModes:
    """What the measures of modes look at: true modes, estimates, and their matching within a radius."""

    truth: Array
    estimates: Array
    radius: float

    @cached_property
    def matching(self) -> Matching:
        return match_modes(self.truth, self.estimates)

    @cached_property
    def is_found(self) -> Array:
        """Of every true mode, whether its match lies within the radius."""
        return (self.matching.estimate_of >= 0) & (self.matching.distance <= self.radius)

    @property
    def mse(self) -> float:
        """The paper's matching error (eq:MMMSE); infinite with no estimate."""
        size = max(len(self.truth), self.matching.n_estimates)
        return self.matching.squared_total / size if self.matching.n_estimates else math.inf


def score_modes(truth: Array, estimates: Array, match_radius: float | None = None) -> dict[str, float]:
    """The paper's matching MSE (MMMSE) and what it does not show; ``MEASURES`` says what each score is."""
    return _scores("modes", _matched_modes(truth, estimates, match_radius))


def recovery_rates(truth: Array, runs: list[Array], match_radius: float | None = None) -> Array:
    """Share of the runs in which each true mode was found, (k,)."""
    return np.mean([_matched_modes(truth, estimates, match_radius).is_found for estimates in runs], axis=0)


def _matched_modes(truth: Array, estimates: Array, match_radius: float | None) -> MatchedModes:
    radius = default_match_radius(truth) if match_radius is None else positive("match_radius", match_radius)
    return MatchedModes(truth, estimates, radius)


def _prepare_modes(release: Release, data: Dataset, match_radius: float | None) -> MatchedModes:
    if data.true_modes is None:
        raise DataError(f"The data set {data.name} has no known modes to score against.")
    return _matched_modes(data.true_modes, release.modes, match_radius)


# Regression: how good estimated branches are, against the known conditional modes.
#
# The paper's loss (eq:modal-reg-mse) asks of each estimate how near it is to some branch.  It costs nothing to
# miss a branch, so it is shown beside what it forgives: recall, coverage and spurious estimates.

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


def _distances(table: Array, y: Array) -> Array:
    """Distance from each y to the nearest entry of its row of a table padded with NaN; infinite where all are NaN."""
    gaps = np.abs(table - y[:, None])
    return np.where(np.isnan(gaps), np.inf, gaps).min(axis=1)


@dataclass(frozen=True)
class MatchedBranches:
    """What the measures of regression look at: the law, the rows (x, y) of a curve, the public box, and a radius."""

    truth: ConditionalTruth
    curve: Array
    box: Array
    radius: float

    @cached_property
    def at_places(self) -> tuple[Array, Array, Array]:
        """On the evaluation grid: which branches exist and which are found, (g, most), and which places are covered.

        A branch is found by a row within the radius in y and the window in x; a place with a branch is covered by
        any row in its window.
        """
        places = evaluation_grid(self.box)
        branches = self.truth.mode_table(places)
        exists = np.isfinite(branches)
        found, covered = np.zeros(branches.shape, dtype=bool), np.zeros(len(places), dtype=bool)
        window = WINDOW_OF_SIDE * float(self.box[0, 1] - self.box[0, 0]) * (1 + 1e-9)  # a row exactly on the edge is in
        rows = self.curve[np.argsort(self.curve[:, 0], kind="stable")]
        first = np.searchsorted(rows[:, 0], places - window, side="left")
        last = np.searchsorted(rows[:, 0], places + window, side="right")
        for i in np.flatnonzero(exists.any(axis=1) & (first < last)):
            covered[i] = True
            gaps = np.abs(rows[first[i] : last[i], 1][:, None] - branches[i])
            found[i] = (gaps <= self.radius).any(axis=0)  # NaN is never near
        return exists, found, covered


def score_branches(
    truth: ConditionalTruth, curve: Array, box: Array, match_radius: float | None = None
) -> dict[str, float]:
    """The paper's loss and what it does not show, of the rows (x, y) of a curve in any order."""
    return _scores("regression", _matched_branches(truth, curve, box, match_radius))


def _matched_branches(truth: ConditionalTruth, curve: Array, box: Array, match_radius: float | None) -> MatchedBranches:
    radius = default_branch_radius(truth, box) if match_radius is None else positive("match_radius", match_radius)
    return MatchedBranches(truth, curve, box, radius)


def _prepare_branches(release: Release, data: Dataset, match_radius: float | None) -> MatchedBranches:
    if data.truth is None:
        raise DataError(f"The data set {data.name} has no known conditional modes to score against.")
    if release.curve is None:
        raise DataError("This result holds no curve to score.")
    return _matched_branches(data.truth, release.curve, data.box, match_radius)


# Clusters: how good released centres are, against the true classes.
#
# Records are assigned to their nearest centre.  These labels are evaluation only: they say of each record where it
# lies, which no guarantee covers, so they never enter a Release.

ROWS = 20_000  # records at a time, so that many centres do not fill the memory


def nearest_centres(points: Array, centres: Array) -> Array:
    """The number of the nearest centre of every record (alg:dpgrams-c, last loop); *not* private."""
    if len(centres) == 0:
        return np.zeros(len(points), dtype=int)  # with no centre all records are together
    parts = [points[start : start + ROWS] for start in range(0, len(points), ROWS)]
    return np.concatenate([scipy.spatial.distance.cdist(part, centres, "sqeuclidean").argmin(axis=1) for part in parts])


def centroid_mse(reference: Array, centres: Array) -> float:
    """The matching error of eq:MMMSE: Hungarian, squared lengths, divided by max(k, k_hat); infinite with no centre."""
    return MatchedModes(reference, centres, math.inf).mse


@dataclass(frozen=True)
class LabelledRecords:
    """What the measures of clusters look at: records with their true classes, and the released centres."""

    data: Dataset
    classes: Array
    centres: Array

    @cached_property
    def labels(self) -> Array:
        """The nearest centre of every record; *not* private."""
        return nearest_centres(self.data.points, self.centres)


def _prepare_clusters(release: Release, data: Dataset, match_radius: float | None) -> LabelledRecords:  # noqa: ARG001
    if data.labels is None:
        raise DataError(f"The data set {data.name} has no known classes to score against.")
    if release.modes.ndim != 2 or (len(release.modes) and release.modes.shape[1] != data.dimension):
        raise DataError(f"The centres do not have the {data.dimension} columns of the data set {data.name}.")
    return LabelledRecords(data, data.labels, release.modes)


_PREPARE: dict[str, Callable[[Release, Dataset, float | None], Any]] = {
    "modes": _prepare_modes,
    "regression": _prepare_branches,
    "clusters": _prepare_clusters,
}

# Every measure, in the order in which tables show them.


@measure("modes", "mse", "MSE", log_axis=True, has_parts=True, wish=0.05, full_title=MEAN_SQUARED_ERROR)
def _(found: MatchedModes) -> float:
    """Matched squared error over the larger of the true and the released count, so extra modes make it less."""
    return found.mse


@measure("modes", "mse_per_true_mode", "MSE per true mode", log_axis=True, has_parts=True, wish=0.05)
def _(found: MatchedModes) -> float:
    """Squared error averaged over the true modes; an unmatched one counts with its nearest estimate."""
    return float((found.matching.distance**2).mean())


@measure("modes", "found", "modes found", more_is_better=True, wish=4.0)
def _(found: MatchedModes) -> float:
    """True modes that have their match within the radius."""
    return float(found.is_found.sum())


@measure("modes", "missed", "missed modes", offered=False)
def _(found: MatchedModes) -> float:
    """True modes that have no match within the radius."""
    return float(len(found.truth) - found.is_found.sum())


@measure("modes", "spurious", "spurious modes")
def _(found: MatchedModes) -> float:
    """Released modes that are not the match of a found mode."""
    return float(found.matching.n_estimates - found.is_found.sum())


@measure("regression", "mse", "MSE", log_axis=True, has_parts=True, wish=0.05, full_title=MEAN_SQUARED_ERROR)
def _(found: MatchedBranches) -> float:
    """Mean squared distance of the curve's rows to the nearest true branch; a missed branch costs nothing."""
    return oracle_loss(found.truth, found.curve)[0]


@measure("regression", "branch_recall", "branch recall", more_is_better=True, share=True, wish=0.9)
def _(found: MatchedBranches) -> float:
    """Share of the true branches, over all x, that the curve comes near to."""
    exists, near, _ = found.at_places
    return float(near.sum() / max(1, exists.sum()))


@measure("regression", "spurious", "spurious part", offered=False, share=True)
def _(found: MatchedBranches) -> float:
    """Share of the curve that is near no true branch at its own x."""
    if not len(found.curve):
        return 0.0
    near = _distances(found.truth.mode_table(found.curve[:, 0]), found.curve[:, 1]) <= found.radius
    return float((~near).mean())


@measure("regression", "coverage", "coverage", more_is_better=True, share=True, wish=0.9)
def _(found: MatchedBranches) -> float:
    """Share of the places with a branch at which the curve has a point."""
    exists, _, covered = found.at_places
    return float(covered.sum() / max(1, exists.any(axis=1).sum()))


@measure("clusters", "ari", "ARI", more_is_better=True, has_parts=True, wish=0.8)
def _(found: LabelledRecords) -> float:
    """Adjusted Rand index of the nearest-centre labels: 1 is the true classes, 0 is chance."""
    from sklearn.metrics import adjusted_rand_score  # here: it takes a second to load

    return float(adjusted_rand_score(found.classes, found.labels))


@measure("clusters", "nmi", "NMI", more_is_better=True, has_parts=True, wish=0.8)
def _(found: LabelledRecords) -> float:
    """Normalised mutual information of the nearest-centre labels and the true classes, from 0 to 1."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(found.classes, found.labels))


@measure("clusters", "centroid_mse", "centroid MSE", log_axis=True, has_parts=True, wish=0.5)
def _(found: LabelledRecords) -> float:
    """Matched squared error of the centres against the means of the true classes, standardised."""
    # In squared lengths of the original standardised space, not divided by its columns; data without a representation
    # are scored in the columns they have.
    data = found.data
    if data.representation is not None:
        return centroid_mse(data.representation.centroids, data.representation.to_standard(found.centres))
    means = [data.points[found.classes == name].mean(axis=0) for name in np.unique(found.classes)]
    return centroid_mse(np.stack(means), found.centres)


@measure("clusters", "inertia", "inertia", log_axis=True, has_parts=True, wish=500.0)
def _(found: LabelledRecords) -> float:
    """Sum of the squared distances of all records to their nearest centre: what k-means makes small."""
    # In the columns that methods see, as scikit-learn has it; without a centre there is nothing to be near to.
    if len(found.centres) == 0:
        return math.inf
    return float(((found.data.points - found.centres[found.labels]) ** 2).sum())


for _kind in MEASURES:  # a sweep takes the time; no release has it
    register(Measure(kind=_kind, name="seconds", title="seconds", words="Time of one run on this machine.", of=None))
