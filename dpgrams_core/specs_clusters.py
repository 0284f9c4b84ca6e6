"""Public settings of the clustering methods, checked at construction."""

from __future__ import annotations

from dataclasses import dataclass

from dpgrams_core.checks import asked_epsilon, between, finite, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.specs import SMALLEST_DELTA, DPGramsSpec, _check_bandwidth

MAX_CLUSTERS = 100
MAX_STARTS = 20_000
# Below this diffprivlib's rejection sampler turns for minutes; above, the noise is far below rounding.
SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 1_000.0


@dataclass(frozen=True, kw_only=True)
class KMeansSpec:
    """Settings of k-means, which has no privacy.

    ``n_clusters``: ``None`` means as many as the data set has classes.  ``n_init`` is the number of seeded starts
    (k-means++), of which the one with the smallest sum of squares is kept.
    """

    n_clusters: int | None = None
    n_init: int = 10

    def __post_init__(self) -> None:
        _check_clusters(self)
        object.__setattr__(self, "n_init", whole("n_init", self.n_init, 1, 100))


@dataclass(frozen=True, kw_only=True)
class DPKMeansSpec:
    """Public settings of DP-k-means as diffprivlib has it. It claims pure ε, so there is no δ.

    ``n_clusters``: ``None`` means as many as the data set has classes.  The bounds are the public box of the data.
    """

    epsilon: float = 1.0
    n_clusters: int | None = None

    def __post_init__(self) -> None:
        if not SMALLEST_EPSILON <= finite("epsilon", self.epsilon) <= LARGEST_EPSILON:
            raise SpecError(
                "epsilon",
                self.epsilon,
                f"for this method it must lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}",
            )
        _check_clusters(self)


@dataclass(frozen=True, kw_only=True)
class MeanShiftCSpec:
    """Settings of mean-shift clustering, which has no privacy.

    ``bandwidth`` is a number or a rule; ``None`` means the method's own, which depends on n, d and the spread.
    ``n_clusters``: ``None`` means unknown, and end points within a bandwidth are one cluster, as in alg:dpgrams-c.
    ``n_starts`` records are climbed from, drawn by the seed; ``None`` means all, up to the bound of the method.
    """

    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    beta: float = 3.0
    n_clusters: int | None = None
    n_starts: int | None = None

    def __post_init__(self) -> None:
        _check_bandwidth(self)
        if finite("beta", self.beta) <= 2:
            raise SpecError("beta", self.beta, "the paper's rates need a smoothness above 2")
        _check_clusters(self)
        if self.n_starts is not None:
            object.__setattr__(self, "n_starts", whole("n_starts", self.n_starts, 1, MAX_STARTS))


@dataclass(frozen=True, kw_only=True)
class FunctionalCSpec:
    """Public settings of clustering by the functional release.

    ``n_clusters``: ``None`` means unknown, and every mode that stands above the noise is a centre.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    n_clusters: int | None = None

    def __post_init__(self) -> None:
        asked_epsilon("epsilon", self.epsilon)
        between("delta", self.delta, SMALLEST_DELTA, 1)
        _check_bandwidth(self)
        _check_clusters(self)


@dataclass(frozen=True, kw_only=True)
class DPGramsCSpec(DPGramsSpec):
    """Public settings of DP-GRAMS-C (alg:dpgrams-c): those of DP-GRAMS, and the number of clusters.

    ``n_clusters``: ``None`` means unknown, and end points within a bandwidth are one cluster.
    """

    n_clusters: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_modes is not None:
            raise SpecError("n_modes", self.n_modes, "for clusters the count is n_clusters")
        _check_clusters(self)


def _check_clusters(spec: KMeansSpec | DPKMeansSpec | MeanShiftCSpec | FunctionalCSpec | DPGramsCSpec) -> None:
    if spec.n_clusters is not None:
        object.__setattr__(spec, "n_clusters", whole("n_clusters", spec.n_clusters, 1, MAX_CLUSTERS))
