"""That the methods find what they should, with the chance of a false alarm worked out for any seed."""

from __future__ import annotations

import numpy as np

from dpgrams_core import load_dataset, run, score
from dpgrams_core.sweeps.cell import derived_seed

RUNS = 20


def test_mean_shift_is_accurate_on_the_four_corners(seed):
    # Over 1000 draws the MSE had mean 0.01254 and standard deviation 0.00619 (a gamma law of shape 4.1),
    # so the mean of 20 draws passes 0.02 with a chance of 2e-6.
    errors = []
    for number in range(RUNS):
        data = load_dataset("four_corners", n=1000, seed=derived_seed(seed, "accuracy", number))
        errors.append(score(run("mean_shift", data, seed=0), data)["mse"])
    assert np.mean(errors) < 0.02


def test_the_default_run_finds_all_four_corners(seed):
    # 3998 of 4000 runs found all four.  Three misses in 20 runs then have a chance of 1.4e-7, and of
    # 2.4e-5 even at 0.0028, the upper end of a 99.9 % confidence interval for the rate of misses.
    complete = 0
    for number in range(RUNS):
        data = load_dataset("four_corners", n=5000, seed=derived_seed(seed, "data", number))
        release = run("dp_grams", data, epsilon=1.0, seed=derived_seed(seed, "noise", number))
        complete += score(release, data)["missed"] == 0
    assert complete >= 18
