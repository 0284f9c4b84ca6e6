"""Choose the constants of functional_c on data that no table shows: python -m benchmarks.pilot_clusters

Clusters of six shapes (round, long, heavy-tailed, even, shells, one large among small ones) in 2 to 8 columns, 3 to 15
of them, 600 to 20,000 records, standardised and whitened as the paper does.  Chosen are the weight of the prior and
with it the steps towards the peaks, then the places, then the steps of the ascent: each time what has the least mean
rank by ARI and by centroid error over all releases.  The constants of before (``FIRST``, chosen with the paper's data
in view) and the chosen ones are then compared on fresh draws.

November 2026, 72 releases: chosen 30, 4,096, 100 and 1 (before: 300, 4,096, 100 and 2).  On 72 fresh ones mean ARI
0.550 instead of 0.517 (+0.033 ± 0.008), logarithm of the centroid error -0.35 instead of -0.39 (+0.04 ± 0.10).
This is the second rule.  The first went by ARI alone and took a cheaper value within a standard error: 30, 2,048, 100
and 0.  A test then showed centres of well-parted clusters a fifth too near the middle, so both measures count.  By then
the paper's tables had been seen with the first choice (26 of 35 cells), so the second rule is not strictly blind.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from dpgrams_core import Dataset, Release
from dpgrams_core.methods.baselines.kmeans import fitted_kmeans
from dpgrams_core.methods.functional import likely_places as module
from dpgrams_core.methods.functional.clusters import K_MEANS_STARTS, bare_release
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.model.measures import centroid_mse, nearest_centres
from dpgrams_core.model.representation import class_means, standardise, whitened_pca
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.privacy.noise import SimulationNoise

DESIGNS = (
    (600, 2, 3, "round"),
    (3_000, 2, 7, "long"),
    (1_500, 3, 5, "heavy"),
    (5_000, 3, 9, "one large"),
    (1_000, 4, 3, "shells"),
    (4_000, 4, 6, "even"),
    (2_000, 5, 8, "long"),
    (12_000, 5, 12, "heavy"),
    (900, 6, 4, "one large"),
    (3_000, 6, 10, "round"),
    (8_000, 8, 5, "even"),
    (20_000, 6, 15, "long"),
)
EPSILONS = (0.25, 1.0, 4.0)
WEIGHTS, PLACES, PEAK_STEPS = (10.0, 30.0, 100.0, 300.0, 1000.0), (1_024, 2_048, 4_096), (0, 1, 2, 3, 4)
STEPS = (30, 100, 300)
FIRST = (300.0, 4_096, 100, 2)  # weight, places, steps, steps towards the peaks


def raw_clusters(n: int, d: int, k: int, shape: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of one shape and of unequal size and distance: records (n, d) and the number of each one's cluster."""
    rng = np.random.default_rng([seed, n, d, k])
    shares = rng.dirichlet(np.full(k, 4.0))
    if shape == "one large":
        shares = np.append(0.4 * rng.dirichlet(np.full(k - 1, 4.0)), 0.6)
    labels = rng.choice(k, size=n, p=shares)
    own = rng.standard_normal((n, d))
    if shape == "heavy":
        own *= np.sqrt(3 / rng.chisquare(3, size=(n, 1)))
    elif shape == "even":
        own = rng.uniform(-math.sqrt(3), math.sqrt(3), size=(n, d))
    elif shape == "shells":
        own = math.sqrt(d) * own / np.linalg.norm(own, axis=1, keepdims=True) + 0.1 * rng.standard_normal((n, d))
    elif shape == "long":
        mixing = rng.standard_normal((k, d, d)) * 0.5 + np.eye(d)
        own = np.einsum("nij,nj->ni", mixing[labels], own)
    return 2.4 * rng.standard_normal((k, d))[labels] + own, labels


def pilot_data(n: int, d: int, k: int, shape: str, seed: int) -> Dataset:
    """The same, whitened in a standard box."""
    points, labels = raw_clusters(n, d, k, shape, seed)
    points = whitened_pca(standardise(points)[0], d).scores
    return Dataset(name="pilot", kind="clusters", points=points, box=[(-4.0, 4.0)] * d, labels=labels)


@contextmanager
def constants(weight: float, places: int, steps: int) -> Iterator[None]:
    """Those of likely_places.py with other values, for a while."""
    usual = module.PRIOR_WEIGHT, module.SKETCH_PLACES, module.likeliest_shares.__defaults__
    module.PRIOR_WEIGHT, module.SKETCH_PLACES, module.likeliest_shares.__defaults__ = weight, places, (steps,)
    try:
        yield
    finally:
        module.PRIOR_WEIGHT, module.SKETCH_PLACES, module.likeliest_shares.__defaults__ = usual


def centres(surface: BareSurface, count: int) -> list[np.ndarray]:
    """``released_centres`` after each number of mean-shift steps towards the peaks."""
    places, shares = module.likely_places(surface)
    found = [fitted_kmeans(places, min(count, len(places)), K_MEANS_STARTS, 0, shares).cluster_centers_]
    for _ in PEAK_STEPS[1:]:
        square = ((found[-1][:, None, :] - places[None, :, :]) ** 2).sum(axis=-1) / reference_spread(surface.box) ** 2
        weights = np.exp(-0.5 * (square - square.min(axis=1, keepdims=True))) * shares
        found.append((weights @ places) / weights.sum(axis=1, keepdims=True))
    return found


def ari(data: Dataset, found: np.ndarray) -> float:
    """ARI of the records by their nearest centre."""
    return float(adjusted_rand_score(data.labels, nearest_centres(data.points, found)))


def draws(seeds: range) -> list[tuple[int, float, Dataset, Release]]:
    """Releases of all designs, drawn once; any constants read their centres off the same ones."""
    found = []
    for seed in seeds:
        for design in DESIGNS:
            data = pilot_data(*design, seed)
            for epsilon in EPSILONS:
                spec = FunctionalCSpec(epsilon=epsilon, delta=1e-5, n_clusters=design[2])
                found.append((design[2], epsilon, data, bare_release(data, spec, SimulationNoise(seed))))
    return found


def scores(releases: list[tuple[int, float, Dataset, Release]], weight: float, places: int, steps: int) -> np.ndarray:
    """(steps towards the peaks, releases, 2): ARI, and the logarithm of the centroid error."""
    found = []
    with constants(weight, places, steps):
        for k, _, data, bare in releases:
            truth = class_means(data.points, data.labels, k)
            found.append([(ari(data, some), np.log(centroid_mse(truth, some))) for some in centres(bare.surface, k)])
    return np.array(found).swapaxes(0, 1)


def chosen(table: dict[tuple[float, ...], np.ndarray]) -> tuple[float, ...]:
    """The key with the least mean rank by both measures over all releases; every key is printed."""
    every = np.array(list(table.values()))
    ranks = (rankdata(-every[..., 0], axis=0) + rankdata(every[..., 1], axis=0)).mean(axis=1) / 2
    best = int(np.argmin(ranks))
    for number, (key, each) in enumerate(table.items()):
        mark = " <- chosen" if number == best else ""
        mean = each.mean(axis=0)
        print(f"{key}: rank {ranks[number]:.2f}, ARI {mean[0]:.4f}, log centroid MSE {mean[1]:.3f}{mark}", flush=True)
    return list(table)[best]


def main() -> None:
    """Choose, and compare on fresh draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2, help="of every design")
    count = parser.parse_args().draws
    releases = draws(range(count))
    print(f"{len(releases)} releases; weight and steps towards the peaks, with 2,048 places and 100 steps")
    weight, peaks = chosen({(w, p): each for w in WEIGHTS for p, each in enumerate(scores(releases, w, 2_048, 100))})
    print("places, and then steps")
    (places,) = chosen({(m,): scores(releases, weight, m, 100)[int(peaks)] for m in PLACES})
    (steps,) = chosen({(s,): scores(releases, weight, int(places), s)[int(peaks)] for s in STEPS})
    fresh = draws(range(100, 100 + count))
    old = scores(fresh, *FIRST[:3])[FIRST[3]]
    new = scores(fresh, weight, int(places), int(steps))[int(peaks)]
    error = (new - old).std(axis=0, ddof=1) / np.sqrt(len(fresh))
    print(f"{len(fresh)} fresh releases, ARI and log centroid MSE: {old.mean(axis=0)} with {FIRST}")
    print(f"{new.mean(axis=0)} with {(weight, places, steps, peaks)}: {(new - old).mean(axis=0)} ± {error}")
    for epsilon in EPSILONS:
        here = [number for number, one in enumerate(fresh) if one[1] == epsilon]
        print(f"  epsilon {epsilon:g}: {old[here].mean(axis=0)} -> {new[here].mean(axis=0)}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
