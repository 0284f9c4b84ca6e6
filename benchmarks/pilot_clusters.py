"""Choose the constants of functional_c on data other than the paper's: python benchmarks/pilot_clusters.py

Gaussian clusters of unequal size and shape in 2 to 6 columns, standardised and whitened as the paper does.  Printed
is the mean ARI over all of them and all epsilons, for each bandwidth (as a multiple of the rule for modes), and each
weight of the prior; then for each number of steps towards the peaks.  k-means without privacy stands beside them.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from dpgrams_core import Dataset, run
from dpgrams_core.methods.functional import likely_places
from dpgrams_core.model.representation import standardise, whitened_pca
from dpgrams_core.numerics.bandwidths import release_bandwidth
from dpgrams_core.privacy.calibration import gaussian_multiplier

SHAPES = ((700, 2, 3), (2_000, 2, 5), (1_000, 3, 4), (1_500, 4, 6), (2_000, 5, 8), (900, 6, 4), (2_500, 6, 10))
EPSILONS = (0.25, 1.0, 4.0)
SCALES, WEIGHTS, STEPS = (0.6, 0.75, 0.9, 1.0), (10.0, 30.0, 100.0), (0, 1, 2, 3, 4)


def pilot_data(n: int, d: int, k: int, seed: int) -> Dataset:
    """Clusters of unequal size, shape and distance, whitened in a standard box."""
    rng = np.random.default_rng([seed, n, d, k])
    labels = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 6.0)))
    centres = 2.2 * rng.standard_normal((k, d))
    mixing = rng.standard_normal((k, d, d)) * 0.4 + np.eye(d)
    points = centres[labels] + np.einsum("nij,nj->ni", mixing[labels], rng.standard_normal((n, d)))
    points = whitened_pca(standardise(points)[0], d).scores
    return Dataset(name="pilot", kind="clusters", points=points, box=[(-4.0, 4.0)] * d, labels=labels)


def ari(data: Dataset, centres: np.ndarray) -> float:
    """ARI of the records by their nearest centre."""
    nearest = ((data.points[:, None] - centres[None]) ** 2).sum(axis=-1).argmin(axis=1)
    return float(adjusted_rand_score(data.labels, nearest))


def main() -> None:
    """Print the mean ARI of every pair of constants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    draws = [(pilot_data(*shape, seed), shape[2]) for shape in SHAPES for seed in range(runs)]
    plain = np.mean([ari(d, KMeans(k, n_init=10, random_state=0).fit(d.points).cluster_centers_) for d, k in draws])
    print(f"k-means without privacy: {plain:.3f} over {len(draws)} draws")
    usual = likely_places.PRIOR_WEIGHT
    for scale in SCALES:
        for weight in WEIGHTS:
            likely_places.PRIOR_WEIGHT = weight
            found = {epsilon: [] for epsilon in EPSILONS}
            for number, (data, k) in enumerate(draws):
                for epsilon in EPSILONS:
                    sigma = math.sqrt(2) * gaussian_multiplier(epsilon, 1e-5)
                    h = scale * release_bandwidth(n=data.n, d=data.dimension, box=data.box, sigma=sigma)
                    options = {"epsilon": epsilon, "delta": 1e-5, "bandwidth": h, "n_clusters": k}
                    found[epsilon].append(ari(data, run("functional_c", data, seed=number, **options).modes))
            each = "  ".join(f"{epsilon:g}: {np.mean(values):.3f}" for epsilon, values in found.items())
            print(f"bandwidth x {scale:g}, prior {weight:g}: {np.mean(list(found.values())):.3f}   {each}", flush=True)
    likely_places.PRIOR_WEIGHT = usual
    constants = sys.modules["dpgrams_core.methods.functional.clusters"]  # the package has the function under this name
    for steps in STEPS:
        constants.PEAK_STEPS = steps
        values = [
            ari(data, run("functional_c", data, seed=number, epsilon=epsilon, delta=1e-5, n_clusters=k).modes)
            for number, (data, k) in enumerate(draws)
            for epsilon in EPSILONS
        ]
        print(f"{steps} steps towards the peaks: {np.mean(values):.4f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
