"""Choose the constants of functional_c on data that no table shows: python -m benchmarks.pilot_clusters

Clusters of six shapes (round, long, heavy-tailed, even, shells, one large among small ones) in 2 to 8 columns, 3 to 15
of them, 600 to 20,000 records, standardised and whitened as the paper does.  Chosen are, apart for grids (up to three
columns) and sketches, the weight of the prior, the steps towards the peaks, and for grids how many noises the release
must be above at a node, for sketches the places and the steps of the ascent: each time what has the least mean rank by
ARI and by centroid error over all releases.  The constants of before are then compared on fresh draws.

November 2026.  The first rule went by ARI alone and took a cheaper value within a standard error: 30, 2,048, 100 and 0.
A test then showed centres of well-parted clusters a fifth too near the middle, so both measures count.  The second rule
(``SECOND``) took one weight for all 72 releases: 30, 4,096, 100 and 1; ``FIRST``, with the paper's data in view, was
300, 4,096, 100 and 2.  On 72 fresh ones mean ARI 0.550 instead of 0.517 (+0.033 ± 0.008), logarithm of the centroid
error -0.35 instead of -0.39 (+0.04 ± 0.10).
The third, here, is for grids: with a weight of 30 a centre often went to far nodes that are within the noise.  Of 125
choices on 72 grids it took 100, 3 noises and 1.  On 72 fresh grids mean ARI is 0.443 (``SECOND`` 0.472, difference
-0.029 ± 0.008; ``FIRST`` 0.441), logarithm of the centroid error -1.40 (``SECOND`` -0.93, difference -0.47 ± 0.14;
``FIRST`` -1.21): a better place for the centres, for which ARI pays, most of it at epsilon 0.25 (0.396 instead of
0.457).  Before it a wider trial on the same grids also dropped whole clusters within the noise, which ranked lower.  On
the fresh grids the choice is not the best of that trial: by rank 30 with 3 noises (0.459, -1.35) and 100 without noises
(0.461, -1.36) are before it, so the weight is confirmed there and the gain by the noises is not.  Sketches keep the
choice of the second rule; the choice on sketches alone was not run to its end.
None of it is strictly blind: the paper's tables had been seen with the first rule's choice (26 of 35 cells) before the
second, and the blobs' with the second's (a centroid error of 0.92) before the third.
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
from dpgrams_core.methods.functional.clusters import bare_release
from dpgrams_core.methods.functional.modes import GRID_DIMENSIONS
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.model.measures import centroid_mse, nearest_centres
from dpgrams_core.model.representation import class_means, standardise, whitened_pca
from dpgrams_core.numerics import likely_places as module
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.centres import K_MEANS_STARTS, fitted_kmeans
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import ReleasedSketch
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
STEPS, NOISES = (30, 100, 300), (-math.inf, 1.0, 2.0, 3.0, 5.0)
# Weight, places, steps, noises of a node, steps towards the peaks: with the paper's data in view, and without noises.
FIRST, SECOND = (300.0, 4_096, 100, -math.inf, 2), (30.0, 4_096, 100, -math.inf, 1)


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
def constants(weight: float, places: int, steps: int, noises: float) -> Iterator[None]:
    """Those of likely_places.py with other values, for a while; a release needs those of a grid or of a sketch."""
    usual = {name: getattr(module, name) for name in ("GRID_WEIGHT", "SKETCH_WEIGHT", "SKETCH_PLACES", "GRID_NOISES")}
    usual_steps = module.likeliest_shares.__defaults__
    vars(module).update(GRID_WEIGHT=weight, SKETCH_WEIGHT=weight, SKETCH_PLACES=places, GRID_NOISES=noises)
    module.likeliest_shares.__defaults__ = (steps,)
    try:
        yield
    finally:
        vars(module).update(usual)
        module.likeliest_shares.__defaults__ = usual_steps


def centres(surface: BareSurface, count: int) -> list[np.ndarray]:
    """``released_centres`` after each number of mean-shift steps towards the peaks."""
    places, shares = module.likely_places(surface, count)
    found = [fitted_kmeans(places, min(count, len(places)), K_MEANS_STARTS, 0, shares).cluster_centers_]
    for _ in PEAK_STEPS[1:]:
        square = ((found[-1][:, None, :] - places[None, :, :]) ** 2).sum(axis=-1) / reference_spread(surface.box) ** 2
        weights = np.exp(-0.5 * (square - square.min(axis=1, keepdims=True))) * shares
        found.append((weights @ places) / weights.sum(axis=1, keepdims=True))
    return found


def ari(data: Dataset, found: np.ndarray) -> float:
    """ARI of the records by their nearest centre."""
    return float(adjusted_rand_score(data.labels, nearest_centres(data.points, found)))


Drawn = list[tuple[float, Dataset, Release]]


def draws(seeds: range, most_columns: int = 99) -> tuple[Drawn, Drawn]:
    """Releases of all designs, (grids, sketches), drawn once; any constants read their centres off the same ones."""
    found: tuple[Drawn, Drawn] = [], []
    for seed in seeds:
        for design in DESIGNS:
            if design[1] > most_columns:
                continue
            data = pilot_data(*design, seed)
            for epsilon in EPSILONS:
                spec = FunctionalCSpec(epsilon=epsilon, delta=1e-5, n_clusters=design[2])
                release = bare_release(data, spec, SimulationNoise(seed))
                found[isinstance(release.surface, ReleasedSketch)].append((epsilon, data, release))
    return found


def scores(releases: Drawn, weight: float, places: int, steps: int, noises: float = -math.inf) -> np.ndarray:
    """(steps towards the peaks, releases, 2): ARI, and the logarithm of the centroid error."""
    found = []
    with constants(weight, places, steps, noises):
        for _, data, bare in releases:
            k = bare.spec.n_clusters
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


def compared(releases: Drawn, old: tuple[float, ...], new: tuple[float, ...]) -> None:
    """Print what the new constants change on some releases, in all and at each epsilon."""
    before, after = (scores(releases, c[0], int(c[1]), int(c[2]), c[3])[int(c[4])] for c in (old, new))
    error = (after - before).std(axis=0, ddof=1) / np.sqrt(len(releases))
    print(f"  {before.mean(axis=0)} with {old}, {after.mean(axis=0)} with {new}: ± {error}", flush=True)
    for epsilon in EPSILONS:
        here = [number for number, one in enumerate(releases) if one[0] == epsilon]
        print(f"    epsilon {epsilon:g}: {before[here].mean(axis=0)} -> {after[here].mean(axis=0)}", flush=True)


def main() -> None:
    """Choose, and compare on fresh draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2, help="of every design")
    parser.add_argument("--grid-draws", type=int, default=6, help="of every design in up to three columns")
    counts = parser.parse_args()
    grids = draws(range(counts.grid_draws), most_columns=GRID_DIMENSIONS)[0]
    print(f"{len(grids)} grids; weight, noises of a node and steps towards the peaks")
    choices = {(w, z, p): each for w in WEIGHTS for z in NOISES for p, each in enumerate(scores(grids, w, 0, 100, z))}
    weight, noises, peaks = chosen(choices)
    fresh, _ = draws(range(100, 100 + counts.grid_draws), most_columns=GRID_DIMENSIONS)
    print(f"{len(fresh)} fresh grids, ARI and log centroid MSE")
    for old in (FIRST, SECOND):
        compared(fresh, old, (weight, 0, 100, noises, peaks))
    _, sketches = draws(range(counts.draws))
    print(f"{len(sketches)} sketches; weight and steps towards the peaks, with 2,048 places and 100 steps")
    weight, peaks = chosen({(w, p): each for w in WEIGHTS for p, each in enumerate(scores(sketches, w, 2_048, 100))})
    print("places, and then steps")
    (places,) = chosen({(m,): scores(sketches, weight, m, 100)[int(peaks)] for m in PLACES})
    (steps,) = chosen({(s,): scores(sketches, weight, int(places), s)[int(peaks)] for s in STEPS})
    _, fresh = draws(range(100, 100 + counts.draws))
    print(f"{len(fresh)} fresh sketches")
    compared(fresh, FIRST, (weight, places, steps, -math.inf, peaks))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
