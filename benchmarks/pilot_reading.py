"""The pilot behind what ``tight`` reads off its rounds, on data other than the paper's.

Run: .venv/bin/python -m benchmarks.pilot_reading modes   (or centres; some minutes)

Reading is free, so one run of the engine is read many times, each time with a constant or two changed.

Modes: the twenty mixtures of pilot_tight.py, three sizes, four epsilons, three runs.  The loss is the mean logarithm of
the squared error of a mode, where a mode missed and a mode too many count as a quarter of the side each; beside it the
spurious modes of a run for n >= 2000 and epsilon >= 0.5.  With an unknown number (differences have standard errors of
0.03 to 0.05):

- least height 3, 4, 5 with a valley of 0.5: -9.00, -9.11, -9.06: we kept 4;
- valley 0, 0.25, 0.5, 1, 2, 4 with a height of 4: -8.99, -9.14, -9.11, -9.05, -8.94, -8.55, with 0.05 spurious a run
  for 0 and none else.  The rule had 4 before this pilot was run, and has 0.5 now;
- least part of the highest 0, 0.05, 0.1, 0.15, 0.2 (valley 2): -8.45, -8.87, -8.94, -8.83, -8.64, with 0.12, 0.02,
  0, 0, 0 spurious: we kept 0.1;
- bandwidths trusted 0.5, 1, 1.5, 2 and all (valley 2): -8.93, -8.94, -8.85, -8.63, -8.53, with 0, 0, 0.02, 0.09, 0.13
  spurious: we kept 1.

With a known number nothing but merging matters by more than 0.01: 0.4, 0.8 and 1.2 bandwidths give -9.11, -9.21 and
-9.23; we kept 0.8.

Centres: the clusters that pilot_clusters.py had then (Gaussian, in 2 to 6 columns), twelve draws each, mean ARI.  In
two columns k-means over the places that rounds looked at has 0.533; over a lattice of spacing 0.15, 0.25, 0.5, 1
bandwidths it had 0.502, 0.499, 0.502, 0.495 (standard error of the difference 0.009), so the lattice, which had been
tried on blobs, is gone.  Least weight 0, 0.5, 1, 1.5, 2, 3, 4: 0.522, 0.522, 0.533, 0.536, 0.531, 0.536, 0.523 in two
columns and 0.268, 0.266, 0.275, 0.280, 0.290,
0.287, 0.278 in three to six (standard error 0.007): we kept 1, though 2 may be a little better.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from benchmarks import pilot_clusters
from benchmarks.pilot_tight import MISS, MIXTURES, pilot_data
from dpgrams_core import Dataset
from dpgrams_core.methods.dp_grams import tight
from dpgrams_core.methods.dp_grams.clusters import modes_spec
from dpgrams_core.methods.dp_grams.plan import TightRule
from dpgrams_core.methods.dp_grams.run import dp_grams
from dpgrams_core.methods.dp_grams.spec import DPGramsCSpec, DPGramsSpec
from dpgrams_core.numerics.bandwidths import mean_side
from dpgrams_core.privacy.noise import SimulationNoise

Array = np.ndarray
SEEDS, CLUSTER_SEEDS = 3, 12
SIZES, EPSILONS = (1_000, 2_000, 5_000), (0.25, 0.5, 1.0, 5.0)
LARGE, LOUD = 2_000, 0.5  # the sizes and budgets at which spurious modes are counted
UNKNOWN: list[dict[str, float]] = [
    {},
    *({"least_height": height, "least_valley": valley} for height in (3, 4, 5) for valley in (0.0, 0.25, 0.5, 1, 2, 4)),
    *({"least_of_highest": part} for part in (0.0, 0.05, 0.15, 0.2)),
    *({"trusted": far} for far in (0.5, 1.5, 2.0, 99.0)),
    *({"merge": near} for near in (0.4, 1.2)),
]
KNOWN: list[dict[str, float]] = [
    {},
    *({"least_height_known": height} for height in (0.5, 1.0, 2.0, 3.0)),
    *({"trusted": far} for far in (0.5, 1.5, 2.0, 99.0)),
    *({"merge": near} for near in (0.4, 1.2)),
]
CENTRES: list[dict[str, float]] = [
    {},
    *({"LEAST_WEIGHT": least} for least in (0.0, 0.5, 1.5, 2.0, 3.0, 4.0)),
]


def errors_of(found: Array, truth: Array, side: float) -> tuple[float, int]:
    """The squared error of a mode in squared sides, and how many modes are spurious.

    A missed mode counts as a quarter of the side and so does a spurious one, which has no true mode of its own
    within half the smallest gap between true ones.
    """
    squares = cdist(found, truth, "sqeuclidean")
    rows, columns = linear_sum_assignment(squares)
    half = (cdist(truth, truth) + 1e9 * np.eye(len(truth))).min() / 2
    spurious = len(found) - int((squares[rows, columns] <= half**2).sum())
    each = np.full(len(truth), MISS)
    each[columns] = np.minimum(squares[rows, columns] / side**2, MISS)
    beyond = max(0, len(found) - len(truth))
    return float((each.sum() + MISS * beyond) / len(truth)), spurious


def readings(data: Dataset, spec: DPGramsSpec, seed: int, tries: list[dict[str, float]], read: Any) -> Iterator[Array]:
    """What one run of the engine gives, read with each of the tried constants."""
    kept: list[Any] = []

    def hold(*seen: Any) -> tuple[Array, Array]:
        kept.extend(seen)
        return tight.read_modes(*seen)

    dp_grams(data, spec, SimulationNoise(seed), hold)
    for wish in tries:
        rule = {name: value for name, value in wish.items() if name.islower()}
        usual = {name: getattr(tight, name) for name in ("TIGHT", *wish) if hasattr(tight, name)}
        tight.TIGHT = replace(TightRule(), **rule)  # type: ignore[attr-defined]  # a constant everywhere but here
        for name in wish.keys() - rule.keys():
            setattr(tight, name, wish[name])
        yield read(*kept)[0]
        for name, value in usual.items():
            setattr(tight, name, value)


def modes() -> None:
    """Print for every try the mean log error of a mode, and the spurious ones of a run."""
    for known, tries in ((False, UNKNOWN), (True, KNOWN)):
        losses: list[list[float]] = [[] for _ in tries]
        extra: list[list[int]] = [[] for _ in tries]
        for number, seed in product(range(MIXTURES), range(SEEDS)):
            for n in SIZES:
                for epsilon in EPSILONS:
                    data = pilot_data(number, n, 1000 * seed + round(100 * epsilon))
                    assert data.true_modes is not None
                    count = len(data.true_modes) if known else None
                    spec = DPGramsSpec(epsilon=epsilon, delta=1e-6, calibration="tight", n_modes=count)
                    for i, found in enumerate(readings(data, spec, 100 * seed + number, tries, tight.read_modes)):
                        error, spurious = errors_of(found, data.true_modes, mean_side(data.box))
                        losses[i].append(math.log(error))
                        if n >= LARGE and epsilon >= LOUD:
                            extra[i].append(spurious)
        print("number known" if known else "number unknown")
        for wish, loss, spurious in zip(tries, losses, extra, strict=True):
            luck = np.std(np.array(loss) - np.array(losses[0])) / math.sqrt(len(loss))
            print(f"  {np.mean(loss):.3f} (±{luck:.3f} against the rule), spurious {np.mean(spurious):.2f}  {wish}")


def centres() -> None:
    """Print for every try the mean ARI, in two columns and in more."""
    found: dict[bool, list[list[float]]] = {True: [], False: []}
    for n, d, k, shape in pilot_clusters.DESIGNS:
        for seed in range(CLUSTER_SEEDS):
            data = pilot_clusters.pilot_data(n, d, k, shape, seed)
            for epsilon in pilot_clusters.EPSILONS:
                wish = DPGramsCSpec(epsilon=epsilon, delta=1e-5, calibration="tight", n_clusters=k)
                tries = readings(data, modes_spec(data, wish), seed, CENTRES, tight.read_centres)
                found[d == 2].append([pilot_clusters.ari(data, places) for places in tries])
    for flat, table in found.items():
        print("two columns" if flat else "three to six columns")
        for wish, each in zip(CENTRES, np.array(table).T, strict=True):
            luck = np.std(each - np.array(table)[:, 0]) / math.sqrt(len(each))
            print(f"  {each.mean():.3f} (±{luck:.3f} against the rule)  {wish}")


if __name__ == "__main__":
    with threadpool_limits(1):
        {"modes": modes, "centres": centres}[sys.argv[1]]()
