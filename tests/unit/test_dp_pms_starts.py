"""Where DP-PMS starts, what its draws look at, and what they cost."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpgrams_core import load_dataset, run
from dpgrams_core.methods.dp_pms_starts import (
    binned_windows,
    most_filled_bins,
    naive_window_counts,
    sparse_windows,
    window_counts,
)
from dpgrams_core.privacy.accounting import price

CALIBRATIONS = ("experiments", "theorem", "tight")
STARTS = ("sparse", "binned")


@pytest.fixture(scope="module")
def waves(seed):
    return load_dataset("sinusoid", n=300, seed=seed)


class TestStarts:
    def test_counts_equal_the_naive_loop(self, rng):
        for _ in range(10):
            x, y = rng.uniform(0, 1, (2, 40))
            grid, radius = np.linspace(0, 1, 9), float(rng.choice([0.05, 0.2]))
            for windows in (sparse_windows(x, 6, radius), binned_windows(x, most_filled_bins(x, 8))):
                fast = window_counts(y, windows, grid, radius)
                np.testing.assert_array_equal(fast, naive_window_counts(y, windows, grid, radius))

    def test_large_windows_are_counted_in_parts(self, rng):
        x, y = rng.uniform(0, 1, (2, 25_000))
        windows = sparse_windows(x, 1, 1.0)
        counts = window_counts(y, windows, np.array([0.5]), 0.1)
        assert counts.item() == int((np.abs(y - 0.5) <= 0.1).sum())

    def test_windows_depend_on_the_predictors_alone_and_so_does_the_price(self, waves, rng):
        other = dataclasses.replace(waves, points=np.stack([waves.x, rng.uniform(-1, 2.5, waves.n)], axis=1))
        for starts in STARTS:
            one, two = (run("dp_pms", data, seed=0, starts=starts) for data in (waves, other))
            np.testing.assert_array_equal(one.anchors[:, 0], two.anchors[:, 0])
            assert one.events == two.events
            assert one.spec == two.spec

    def test_overlap_by_brute_force(self, rng):
        for _ in range(20):
            x = rng.uniform(0, 1, int(rng.integers(10, 60)))
            windows = sparse_windows(x, int(rng.integers(1, 12)), float(rng.choice([0.01, 0.1, 0.6])))
            touched = [sum(i in rows.tolist() for rows in windows.members) for i in range(len(x))]
            assert windows.overlap == max(touched) >= 1

    def test_disjoint_bins_give_every_draw_the_whole_share(self, waves):
        event = run("dp_pms", waves, seed=0, starts="binned", n_bins=9, epsilon=2.0, init_fraction=0.25).events[0]
        assert (event.count, event.epsilon_each, event.sensitivity) == (1, 0.5, 1.0)

    def test_windows_that_hold_everything_cost_the_printed_split(self, waves):
        # h_score above the whole range: every record is in all k windows, and epsilon_init / k is the price.
        event = run("dp_pms", waves, seed=0, init_bandwidth=1.0, start_multiplier=2.0, init_fraction=0.5).events[0]
        k = math.ceil(2 * math.log(300))
        assert (event.count, event.epsilon_each) == (k, pytest.approx(0.5 / k))

    @pytest.mark.parametrize("starts", STARTS)
    @pytest.mark.parametrize("calibration", CALIBRATIONS)
    def test_the_parts_add_up_to_the_budget(self, starts, calibration, waves):
        release = run("dp_pms", waves, seed=0, starts=starts, calibration=calibration, epsilon=0.8, init_fraction=0.3)
        cost = price(release.events, 1e-5)
        assert cost.stages[0][1] == pytest.approx(0.24)
        assert cost.epsilon == pytest.approx(0.8)
        assert release.guarantee.epsilon == 0.8
        assert release.guarantee.delta == 1e-5

    def test_responses_start_on_the_given_grid(self, waves):
        release = run("dp_pms", waves, seed=0, response_grid=[-0.5, 0.3, 1.9])
        assert set(release.anchors[:, 1].round(12)) <= {-0.5, 0.3, 1.9}
