"""Choose what paid columns cost and how they are cut, on data that no table shows: python -m benchmarks.pilot_columns

The clusters of pilot_clusters.py, mixed into four times as many columns with a little noise of their own, in public
ranges of three to six spreads.  Chosen one after the other by mean ARI: the share of the budget, the mean's part of it,
the radius that a record is shortened to, and the sides of the box in spreads.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.pilot_clusters import DESIGNS, raw_clusters
from dpgrams_core import Dataset, run, score
from dpgrams_core.methods.functional import paid

EPSILONS = (0.5, 1.0, 4.0)
TRIED = {
    "SHARE": (0.05, 0.1, 0.2, 0.3, 0.5),
    "MEAN_SHARE": (0.1, 0.2, 0.4),
    "RADIUS": (0.125, 0.25, 0.5, 1.0),
    "BOX_SPREADS": (2.0, 3.0, 4.0),
}


def wide_data(n: int, d: int, k: int, shape: str, seed: int) -> Dataset:
    """Clusters of the pilot in 4 d columns with public ranges."""
    points, labels = raw_clusters(n, d, k, shape, seed)
    rng = np.random.default_rng([seed, n, d, k, 1])
    points = points @ rng.standard_normal((d, 4 * d)) + rng.standard_normal((n, 4 * d))
    half = rng.uniform(3, 6, size=4 * d) * points.std(axis=0)
    points = (points - points.mean(axis=0) + rng.uniform(-0.3, 0.3, size=4 * d) * half) / half
    return Dataset(name="pilot", kind="clusters", points=points, box=[(-1.0, 1.0)] * (4 * d), labels=labels)


@contextmanager
def constants(**wish: float) -> Iterator[None]:
    """Those of paid.py with other values, for a while."""
    usual = {name: getattr(paid, name) for name in wish}
    try:
        for name, value in wish.items():
            setattr(paid, name, value)
        yield
    finally:
        for name, value in usual.items():
            setattr(paid, name, value)


def scores(data: list[tuple[int, int, Dataset]], share: float, **wish: float) -> np.ndarray:
    """ARI (data sets, epsilons)."""
    with constants(**wish):
        return np.array(
            [
                [
                    score(
                        run(
                            "functional_c",
                            one,
                            epsilon=epsilon,
                            delta=1e-5,
                            n_clusters=k,
                            components=min(d, 8),
                            component_share=share,
                            seed=0,
                        ),
                        one,
                    )["ari"]
                    for epsilon in EPSILONS
                ]
                for d, k, one in data
            ]
        )


def main() -> None:
    """Choose, one constant after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1, help="of every design")
    count = parser.parse_args().draws
    data = [(design[1], design[2], wide_data(*design, seed)) for seed in range(count) for design in DESIGNS]
    best: dict[str, float] = {name: getattr(paid, name) for name in TRIED}
    for name, values in TRIED.items():
        found = {}
        for value in values:
            wish = {**best, name: value}
            each = scores(data, wish.pop("SHARE"), **wish)
            found[value] = float(each.mean())
            print(f"{name} {value:g}: ARI {found[value]:.4f}, by epsilon {each.mean(axis=0).round(3)}", flush=True)
        best[name] = max(found, key=lambda value: found[value])
        print(f"{name}: {best[name]:g} chosen", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
