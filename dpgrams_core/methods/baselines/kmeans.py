"""k-means without privacy, and DP-k-means as diffprivlib has it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.methods.functional.modes import outside_box
from dpgrams_core.model import settings
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.guarantee import ADD_OR_REMOVE
from dpgrams_core.model.results import Dataset, Diagnostics, Guarantee, Release, refuse_private
from dpgrams_core.model.specs import Spec, setting
from dpgrams_core.numerics.centres import fitted_kmeans
from dpgrams_core.numerics.scaling import middle_and_half
from dpgrams_core.privacy.noise import Noise, SimulationNoise

Array = np.ndarray

# Constants of Su et al. (2016) as diffprivlib has them; the tests watch the library use them.
LIBRARY_RHO = 0.225
MAX_ROUNDS, MIN_ROUNDS = 7, 2
# Below this diffprivlib's rejection sampler turns for minutes; above, the noise is far below rounding.
SMALLEST_EPSILON, LARGEST_EPSILON = 0.001, 1_000.0
BOUNDS = {"box": "the public box", "records": "the records, as the paper's tables were run"}


@dataclass(frozen=True, kw_only=True)
class KMeansSpec(Spec):
    """Settings of k-means.

    ``n_clusters``: ``None`` means as many as the data set has classes.  ``n_init`` is the number of seeded starts
    (k-means++), of which the one with the smallest sum of squares is kept.
    """

    n_clusters: int | None = settings.n_clusters()
    n_init: int = settings.count("Starts", "Seeded starts (k-means++); the best is kept.", 100, default=10)


@dataclass(frozen=True, kw_only=True)
class DPKMeansSpec(Spec):
    """Public settings of DP-k-means as diffprivlib has it. It claims pure ε, so there is no δ.

    ``n_clusters``: ``None`` means as many as the data set has classes.  ``bounds`` is "box", the public box of the
    data, or "records": as the paper's tables were run, without any bounds given, so that the library reads them off
    the records (and warns of that).  The library then has the seed of the run itself, and the printed columns come out
    (of MNIST, whose seeds are not known, nearly).
    """

    epsilon: float = settings.epsilon(
        low=SMALLEST_EPSILON,
        high=LARGEST_EPSILON,
        refusal=f"for this method it must lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}",
    )
    n_clusters: int | None = settings.n_clusters()
    bounds: str = setting("box", label="Bounds", words="Where the bounds come from.", choices=BOUNDS, titles=BOUNDS)


def kmeans(data: Dataset, spec: KMeansSpec, noise: Noise) -> Release:
    """k-means from scikit-learn; no privacy at all."""
    refuse_private(data)
    count = known_clusters(data, spec.n_clusters)
    model = fitted_kmeans(data.points, count, spec.n_init, noise.library_seed())
    return Release(
        method="kmeans",
        modes=model.cluster_centers_,
        spec=replace(spec, n_clusters=count),
        events=(),
        guarantee=Guarantee.no_privacy("k-means"),
        _diagnostics=Diagnostics(labels=model.labels_),
    )


@dataclass(frozen=True)
class LibraryBudget:
    """How diffprivlib 0.6.6 really spends the ε that its k-means is given.

    Every round draws, for each cluster that holds a record, one geometric noise on its count (``count`` of ε) and one
    bounded Laplace noise on each of the d columns of its sum (``column`` of ε each).  Clusters are disjoint, so one
    record that is added or removed touches one cluster a round, and rounds add up.

    The library computes the two shares as Su et al. do, cbrt(4 d rho^2) to 1, and then gives each to the other
    (``_split_epsilon`` returns them in the opposite order of its caller).  So the sum is not ε but
    ε (1 + d c) / (d + c) with c = cbrt(4 d rho^2): less than ε for d up to 4, *more* from d = 5 on.
    """

    rounds: int
    count: float
    column: float
    columns: int

    @property
    def add_or_remove(self) -> float:
        """ε of all rounds when one record is added or removed, if every cluster held a record."""
        return self.rounds * (self.count + self.columns * self.column)


def library_budget(epsilon: float, *, clusters: int, n: int, d: int) -> LibraryBudget:
    """What diffprivlib 0.6.6 does with ε: the number of rounds and the share of every draw (public facts only)."""
    ratio = float(np.cbrt(4 * d * LIBRARY_RHO**2))
    least = math.sqrt(500 * clusters**3 / n**2 * (d + ratio) ** 3)
    rounds = int(max(min(epsilon / least, MAX_ROUNDS), MIN_ROUNDS))
    unit = epsilon / rounds / (d + ratio)
    return LibraryBudget(rounds=rounds, count=unit, column=ratio * unit, columns=d)


def dp_kmeans(data: Dataset, spec: DPKMeansSpec, noise: Noise) -> Release:
    """DP-k-means by diffprivlib (DPLloyd of Su et al. 2016), with the public box as its bounds; ε is *nominal*.

    Why not "proven" or "as published".  The published algorithm adds noise to the count and the sum of *every*
    cluster in every round.  The library skips a cluster that holds no record: its centre stays where the library's
    random start put it, away from the edge of the box, while one record in that cluster sends the centre anywhere.
    Whether a cluster is empty thus shows without any noise.  With 200 records in one corner or one of them in the
    opposite corner, ε = 1, an event has probability 0 in one world and about 0.36 in the other
    (tests/statistical/test_dp_kmeans.py), so that no ε holds for any δ below that.  See also ``LibraryBudget``.

    The library's ``labels_`` and ``inertia_`` are exact and are thrown away here.  Records are taken relative to the
    middle of the box: the library prices a sum by the width of its bounds, and a record may add more than that to a
    sum when the bounds are far from 0.
    """
    refuse_private(data, noise.door)
    count = known_clusters(data, spec.n_clusters)
    budget = library_budget(spec.epsilon, clusters=count, n=data.n, d=data.dimension)
    model_class, accountant = _diffprivlib()
    middle, half = middle_and_half(data.box)
    bounds: Any = (-half, half)
    seed = noise.library_seed()
    if spec.bounds == "records":
        if data.private or not isinstance(noise, SimulationNoise):
            raise SpecError("bounds", spec.bounds, "they are read off the private records; choose box")
        middle, bounds, seed = np.zeros(data.dimension), None, noise.seed
    model = model_class(
        count,
        epsilon=float(spec.epsilon),
        bounds=bounds,
        random_state=seed,
        accountant=accountant(),  # one of its own: a user's default accountant is nobody else's business
    )
    with warnings.catch_warnings():
        if bounds is None:  # the caveat below says what the library warns of
            warnings.simplefilter("ignore")
        centres = model.fit(data.points - middle).cluster_centers_ + middle
    return Release(
        method="dp_kmeans",
        modes=centres,
        spec=replace(spec, n_clusters=count),
        events=(),
        guarantee=_library_guarantee(spec.epsilon, budget, spec.bounds),
        door=noise.door,
        _diagnostics=Diagnostics(outside_box=outside_box(data)),
    )


def known_clusters(data: Dataset, wish: int | None) -> int:
    """The number of clusters that a method which cannot do without it is to find."""
    count = data.n_clusters if wish is None else wish
    if count is None:
        raise SpecError("n_clusters", None, "the data set does not say how many classes it has; give a whole number")
    if count > data.n:
        raise SpecError("n_clusters", count, f"there are only {data.n} records")
    return count


def _library_guarantee(epsilon: float, budget: LibraryBudget, bounds: str) -> Guarantee:
    read = () if bounds == "box" else ("The bounds are read off the records and not paid for, as in the paper.",)
    statement = (
        "ε is nominal: it is what diffprivlib's k-means claims, and the claim does not hold. A cluster without "
        "any record gets no noise there, so one record can show whatever ε is."
    )
    caveats = (
        f"Were no cluster ever empty, its {budget.rounds} rounds would spend ε = {budget.add_or_remove:.3g} when "
        f"one record is added or removed (the library swaps two shares of ε), and at most "
        f"{2 * budget.add_or_remove:.3g} when one is replaced, as all other methods here count it.",
        "Its noise is drawn in floating point, which no proof covers.",
        *read,
    )
    facts = {"status": "nominal", "neighbours": ADD_OR_REMOVE}
    return Guarantee(epsilon=epsilon, delta=0.0, statement=statement, caveats=caveats, **facts)


def _diffprivlib() -> tuple[Any, Any]:
    """diffprivlib's k-means and its accountant, loaded only where they run."""
    with warnings.catch_warnings():  # at import the library sets a warning filter for the whole program
        from diffprivlib.accountant import BudgetAccountant  # type: ignore[import-untyped]
        from diffprivlib.models import KMeans  # type: ignore[import-untyped]
    return KMeans, BudgetAccountant
