"""What dpgrams_core/methods/work.py predicts beside what runs take, and the machine's number that it rests on.

Run: .venv/bin/python -m benchmarks.costs
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import dpgrams_core as dg
from dpgrams_core.methods.work import UNIT_SECONDS
from dpgrams_core.numerics.density import clipped_score
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.studies.costs import audit_seconds, run_seconds

CASES: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("dp_grams", "four_corners", 5_000, {}),
    ("dp_grams", "four_corners", 1_000_000, {}),
    ("dp_grams", "four_corners", 1_000_000, {"batch_size": 1_000_000}),
    ("dp_grams", "four_corners", 100_000, {"calibration": "tight", "batch_size": 10_000, "n_steps": 1_000}),
    ("dp_grams", "four_corners", 5_000, {"n_starts": 1_000, "n_steps": 50}),
    ("dp_grams", "four_corners", 5_000, {"n_starts": 300, "calibration": "tight"}),
    ("dp_grams", "four_corners", 20_000, {"kernel": "gaussian4", "n_starts": 100, "n_steps": 30}),
    ("dp_grams", "four_corners", 5_000, {"init_bandwidth": 0.032, "n_starts": 500}),
    ("functional", "four_corners", 5_000, {}),
    ("functional", "four_corners", 1_000_000, {}),
    ("functional", "four_corners", 50_000, {"bandwidth_scale": 0.2}),
    ("functional", "four_corners", 1_000, {"bandwidth_scale": 0.3, "n_modes": 10, "epsilon": 0.05}),
    ("mean_shift", "four_corners", 5_000, {}),
    ("mean_shift", "four_corners", 1_000_000, {}),
    ("mean_shift", "four_corners", 100_000, {"bandwidth_scale": 0.2}),
    ("functional_regression", "sinusoid", 1_200, {}),
    ("functional_regression", "sinusoid", 50_000, {"bandwidth_scale": 0.2}),
    ("dp_pms", "sinusoid", 1_200, {}),
    ("dp_pms", "sinusoid", 50_000, {"n_steps": 1_000}),
    ("dp_pms", "sinusoid", 20_000, {"start_multiplier": 50.0, "calibration": "tight"}),
    ("pms", "sinusoid", 1_200, {}),
    ("pms", "sinusoid", 20_000, {}),
    ("lowess", "sinusoid", 50_000, {}),
    ("functional_c", "blobs", 1_000, {}),
    ("functional_c", "blobs", 100_000, {"bandwidth_scale": 0.2}),
    ("functional_c", "digits", 1_797, {"n_clusters": 10}),
    ("dp_grams_c", "blobs", 100_000, {"n_clusters": 100, "batch_size": 100_000}),
    ("dp_grams_c", "digits", 1_797, {"n_clusters": 10}),
    ("kmeans", "blobs", 100_000, {"n_clusters": 100}),
    ("dp_kmeans", "blobs", 100_000, {"n_clusters": 100}),
    ("mean_shift_c", "digits", 1_797, {"n_clusters": 10}),
    ("mean_shift_c", "blobs", 20_000, {"n_clusters": 10}),
)


def main() -> None:
    """The unit, then every case."""
    threadpool_limits(1)
    points = dg.load_dataset("four_corners", n=200_000, seed=0).points
    started = time.process_time()
    clipped_score(KERNELS["gaussian"], points, points[:20], 0.6, 5.0)
    unit = (time.process_time() - started) / (20 * len(points))
    print(f"one record at one place of a step: {1e9 * unit:.1f} ns; the model says {1e9 * UNIT_SECONDS:.1f} ns\n")
    print(f"{'':92s} {'predicted':>10s} {'measured':>10s} {'ratio':>7s}")
    ratios = []
    for method, dataset, n, options in CASES:
        data = dg.load_dataset(dataset, n=n, seed=0)
        predicted = run_seconds(method, n=n, box=data.box, **options)
        started = time.process_time()
        dg.run(method, data, seed=0, **options)
        ratios.append(_line(f"{method}, {dataset}, n = {n:,} {options or ''}", predicted, started))
    box = dg.load_dataset("four_corners", n=100, seed=0).box
    for method in ("functional", "dp_grams"):
        predicted = audit_seconds(method, n=200, box=box, trials=400)
        started = time.process_time()
        dg.audit(method, trials=400)
        ratios.append(_line(f"audit of {method}, 400 runs in each world", predicted, started))
    low, middle, high = np.exp(np.quantile(np.log(ratios), [0.1, 0.5, 0.9]))
    print(f"\npredicted / measured: {low:.2f} to {high:.2f} for four fifths of the cases, middle {middle:.2f}")


def _line(words: str, predicted: float, started: float) -> float:
    measured = max(time.process_time() - started, 1e-4)
    print(f"{words:92s} {predicted:8.3f} s {measured:8.3f} s {predicted / measured:7.2f}", flush=True)
    return predicted / measured


if __name__ == "__main__":
    main()
