"""What it costs functional_c not to know the number of clusters: python -m benchmarks.unknown_number

ARI with the number unknown, as a share of that with it known, on the same releases.

November 2026, 20 runs, ε = 1, 2, 4: blobs 0.93, 0.93, 0.93 (always 3 of 4), digits 0.96, 1.00, 0.99 (means of
18, 13 and 12 for 10), MNIST 0.94, 0.92, 0.97 (means of 7 to 9 for 10).
"""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from dpgrams_core import load_dataset, run, score

SIZES = {"blobs": 1_000, "digits": None, "mnist": None}
EPSILONS = (1.0, 2.0, 4.0)


def main() -> None:
    """Print one line for each data set and ε."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    print("data set  ε  ARI known  ARI unknown  share  numbers found (true)")
    for name, n in SIZES.items():
        for epsilon in EPSILONS:
            aris: dict[bool, list[float]] = {True: [], False: []}
            numbers = []
            for seed in range(runs):
                data = load_dataset(name, n=n, seed=seed)
                for known, found in aris.items():
                    count = data.n_clusters if known else None
                    release = run("functional_c", data, epsilon=epsilon, delta=1e-5, n_clusters=count, seed=seed)
                    found.append(score(release, data)["ari"])
                numbers.append(len(release.modes))
            known_ari, unknown_ari = np.mean(aris[True]), np.mean(aris[False])
            print(
                f"{name:8}  {epsilon:g}  {known_ari:.3f}  {unknown_ari:.3f}  {unknown_ari / known_ari:.2f}  "
                f"{min(numbers)} to {max(numbers)}, mean {np.mean(numbers):.1f} ({data.n_clusters})",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
