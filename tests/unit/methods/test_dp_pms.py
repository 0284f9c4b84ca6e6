"""DP-PMS: the rounds of alg:dp-pms, its curve and its guarantee."""

from __future__ import annotations

import dataclasses
import math
import sys
from importlib import import_module

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_clipped_shift, naive_density_and_gradient, naive_window_counts
from dpgrams_core import DataError, PrivacyLeakWarning, run
from dpgrams_core.methods.dp_grams.rounds import joint_covariance
from dpgrams_core.methods.dp_pms.run import (
    cleanup,
    clipped_shift,
    curve_at,
    linear_parts,
)
from dpgrams_core.methods.dp_pms.starts import (
    binned_windows,
    most_filled_bins,
    sparse_windows,
    window_counts,
)
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.noise import SimulationNoise

CALIBRATIONS = ("experiments", "theorem", "tight")
STARTS = ("sparse", "binned")


class TestTheStep:
    """Delta_j, the clipped sum of normalised contributions."""

    def test_by_hand(self):
        # Two records at the predictor of the start, half a bandwidth above and one below; h = 1.
        batch, at = np.array([[0.0, 0.5], [0.0, -1.0]]), np.zeros((1, 2))
        up, down = math.exp(-0.125), math.exp(-0.5)
        q = np.array([0.5 * up, -down]) / (up + down)
        assert clipped_shift(batch, at, 1.0, 10.0)[0].item() == pytest.approx(q.sum())
        assert clipped_shift(batch, at, 1.0, 0.3)[0].item() == pytest.approx(q[0] - 0.3)
        assert clipped_shift(batch, at, 1.0, 0.3)[1] == 0.5
        assert clipped_shift(batch, at, 1.0, 0.1)[0].item() == pytest.approx(0.0)

    def test_equal_to_the_naive_loop(self, rng):
        for _ in range(30):
            h = float(rng.choice([0.05, 0.3, 2.0]))
            batch, at = rng.uniform(0, 1, (int(rng.integers(1, 40)), 2)), rng.uniform(-0.2, 1.2, (5, 2))
            clip = float(rng.choice([1e-3, 0.02, 5.0]))
            fast, slow = clipped_shift(batch, at, h, clip), naive_clipped_shift(batch, at, h, clip)
            np.testing.assert_allclose(fast[0], slow[0], rtol=1e-9, atol=1e-12)
            assert fast[1] == slow[1]

    def test_starts_in_chunks_give_the_same(self, rng, monkeypatch):
        batch, at = rng.uniform(0, 1, (30, 2)), rng.uniform(0, 1, (11, 2))
        whole = clipped_shift(batch, at, 0.2, 0.01)
        monkeypatch.setattr(sys.modules["dpgrams_core.methods.dp_pms.run"], "_PAIRS", 60)
        parts = clipped_shift(batch, at, 0.2, 0.01)
        np.testing.assert_array_equal(whole[0], parts[0])
        assert whole[1] == parts[1]

    def test_far_from_every_record_nothing_moves(self):
        # All weights are zero, and the indicator of alg:dp-pms takes the quotient out.
        assert clipped_shift(np.zeros((4, 2)), np.full((1, 2), 50.0), 0.1, 1.0) == (np.zeros(1), 0.0)

    @pytest.mark.usefixtures("without_noise")
    @pytest.mark.parametrize("calibration", ["experiments", "theorem"])
    def test_without_noise_clip_and_floor_these_calibrations_are_mean_shift_in_y(self, calibration, waves):
        options = {"clip_multiplier": 1e6} if calibration == "experiments" else {"density_floor": 1e-9}
        if calibration != "experiments":
            options["gradient_clip"] = 1e9
        options |= {"calibration": calibration, "bandwidth": 0.07, "batch_size": waves.n, "n_steps": 1}
        release = run("dp_pms", waves, seed=0, **options)
        side = waves.box[:, 1] - waves.box[:, 0]
        points, at = (waves.points - waves.box[:, 0]) / side, (release.anchors - waves.box[:, 0]) / side
        density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, at, 0.07)
        shift = 0.07**2 * gradient[:, 1] / density * side[1]
        moved = release.trajectories[1] - release.trajectories[0]
        np.testing.assert_allclose(moved[:, 1], shift, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(moved[:, 0], 0.0)  # only the response moves

    @pytest.mark.usefixtures("without_noise")
    @pytest.mark.parametrize("calibration", ["theorem", "tight"])
    def test_clip_and_floor_bound_a_step(self, calibration, waves):
        # A / p_floor h^2 of the side of 3.5, whatever the slope; in tight up to 30 such steps are made after a round.
        options = {"bandwidth": 0.05, "gradient_clip": 3.0, "density_floor": 2.0, "calibration": calibration}
        release = run("dp_pms", waves, seed=1, n_steps=4, **options)
        steps = np.abs(np.diff(release.trajectories[..., 1], axis=0))
        most = 30 if calibration == "tight" else 1
        assert 0 < steps.max() <= most * 3.0 / 2.0 * 0.05**2 * 3.5 * (1 + 1e-9)
        assert release.diagnostics.clipped_share > 0

    def test_tight_releases_values_and_slopes_along_the_response(self, rng):
        at = rng.uniform(0, 1, (4, 2))
        wanted, covariance = linear_parts(at, 0.2)
        assert wanted.tolist() == [0, 1, 2, 3, 5, 7, 9, 11]  # 4 values, then (x, y) slopes in turn
        np.testing.assert_array_equal(covariance, joint_covariance(at, 0.2)[np.ix_(wanted, wanted)])
        # In one dimension the block of the responses alone is that of the process along y.
        line = np.stack([np.full(4, 0.3), at[:, 1]], axis=1)
        np.testing.assert_allclose(linear_parts(line, 0.2)[1], joint_covariance(at[:, 1:], 0.2), atol=1e-12)


class TestTheRounds:
    def test_the_noise_follows_the_joint_states_of_its_round(self, waves, watched_noise):
        seen, batches = watched_noise
        release = run("dp_pms", waves, seed=2, n_steps=5)
        assert len(seen) == len(batches) == 5  # one shared minibatch and one joint draw a round
        side = waves.box[:, 1] - waves.box[:, 0]
        for states, (correlation, scale, columns) in zip(release.trajectories, seen, strict=False):
            unit = (states - waves.box[:, 0]) / side
            np.testing.assert_allclose(correlation, np.exp(-cdist(unit, unit) / release.spec.bandwidth), atol=1e-9)
            assert scale * side[1] == pytest.approx(release.noise_scale)
            assert columns == 1
        assert all(len(set(rows.tolist())) == release.spec.batch_size for rows in batches)

    def test_tight_draws_one_joint_vector_a_round(self, waves, monkeypatch):
        seen = []
        draw = SimulationNoise.covered_gaussian

        def watch(self, tables, covariance, scale):
            tables = list(tables)
            seen.append((tables[0].shape[1], covariance, scale))
            return draw(self, tables, covariance, scale)

        monkeypatch.setattr(SimulationNoise, "covered_gaussian", watch)
        release = run("dp_pms", waves, seed=2, calibration="tight", n_steps=3)
        side, event = waves.box[:, 1] - waves.box[:, 0], release.events[1]
        assert len(seen) == event.rounds == 3
        for states, (size, covariance, scale) in zip(release.trajectories, seen, strict=False):
            unit = (states - waves.box[:, 0]) / side
            assert size == 2 * len(states)
            np.testing.assert_allclose(covariance, linear_parts(unit, release.spec.bandwidth)[1], atol=1e-9)
            assert scale == event.noise_scale

    @pytest.mark.parametrize("calibration", CALIBRATIONS)
    @pytest.mark.parametrize("starts", STARTS)
    def test_shapes_seeds_and_the_way_back_from_the_spec(self, calibration, starts, waves, seed):
        options = {"calibration": calibration, "starts": starts}
        one, same, other = (run("dp_pms", waves, seed=s, **options) for s in (seed, seed, seed + 1))
        k, steps = len(one.anchors), one.spec.n_steps
        assert one.trajectories.shape == (steps + 1, k, 2)
        np.testing.assert_array_equal(one.trajectories[0], one.anchors)
        np.testing.assert_array_equal(one.trajectories[:, :, 0], np.tile(one.anchors[:, 0], (steps + 1, 1)))
        assert one.modes.shape == (0, 2)
        assert one.curve.shape[1] == 2
        assert np.isfinite(one.curve).all()
        np.testing.assert_array_equal(one.trajectories, same.trajectories)
        assert not np.array_equal(one.trajectories, other.trajectories)
        again = run("dp_pms", waves, seed=seed, **vars(one.spec))
        np.testing.assert_array_equal(one.curve, again.curve)
        assert again.spec == one.spec

    @pytest.mark.usefixtures("without_noise")
    @pytest.mark.parametrize("calibration", CALIBRATIONS)
    def test_units_do_not_matter(self, calibration, waves):
        # The same data in other units, in a box in the same units: the same result in those units.  Without the
        # correlated noise, since rounding may turn the eigenvectors that it is drawn in.
        factor, offset = np.array([60.0, 0.01]), np.array([-5.0, 300.0])
        other = dataclasses.replace(
            waves, points=waves.points * factor + offset, box=waves.box * factor[:, None] + offset[:, None], truth=None
        )
        one, two = (run("dp_pms", data, seed=4, calibration=calibration) for data in (waves, other))
        scale = float(np.abs(one.curve[:, 1]).max())
        np.testing.assert_allclose((two.curve - offset) / factor, one.curve, rtol=1e-6, atol=1e-6 * scale)
        assert two.noise_scale == pytest.approx(0.01 * one.noise_scale)

    def test_the_default_number_of_starts(self, waves):
        release = run("dp_pms", waves, seed=0, start_multiplier=3.3)
        assert len(release.anchors) == math.ceil(3.3 * math.log(300))
        binned = run("dp_pms", waves, seed=0, starts="binned", n_bins=7)
        assert len(binned.anchors) == 7


class TestCurve:
    def test_cleanup_by_hand(self):
        ends = np.array([[0.0, 0.0], [0.05, 0.04], [0.5, 0.5], [0.52, 0.58], [0.9, 0.1]])
        np.testing.assert_allclose(cleanup(ends, 0.1), [[0.0, 0.02], [0.05, 0.02], [0.5, 0.54], [0.52, 0.54]])
        np.testing.assert_array_equal(cleanup(ends, 1e-6), ends)  # all lonely: nothing is left out

    def test_the_curve_of_tight_has_the_peaks_that_stand_above_the_noise(self, waves, monkeypatch):
        seen, read = [], PooledRounds.at
        monkeypatch.setattr(PooledRounds, "at", lambda self, x: seen.append(self) or read(self, x))
        few, many = (
            run("dp_pms", waves, seed=3, calibration="tight", significance=least, epsilon=3.0).curve
            for least in (12.0, 2.0)
        )
        assert 1 <= len(few) < len(many)
        side, pooled = waves.box[:, 1] - waves.box[:, 0], seen[-1]
        rows = (many - waves.box[:, 0]) / side
        height, slope = read(pooled, rows)
        assert (height >= 1.9 * pooled.unit).all()  # the mean of near peaks is hardly lower than they are
        assert np.median(np.abs(slope[:, 1])) < 0.05 * np.median(height)  # peaks along y

    def test_where_nothing_stands_above_the_noise_peaks_around_the_highest_are_averaged(self, waves, monkeypatch):
        module = import_module("dpgrams_core.methods.dp_pms.run")

        def row(width, weight):
            monkeypatch.setattr(module, "DOUBT_WIDTH", width)
            monkeypatch.setattr(module, "DOUBT", weight)
            (found,) = run("dp_pms", waves, seed=3, calibration="tight", significance=1e6, epsilon=0.3).curve
            return found

        highest, around, everywhere = row(0.0, 1e6), row(2.0, 2.0), row(1e6, 0.0)
        assert highest[0] == around[0] == everywhere[0]  # at the same place
        low, high = sorted((highest[1], everywhere[1]))
        assert low < around[1] < high  # between the highest peak and the mean of all

    def test_merge_by_hand(self):
        ends = np.array([[0.1, 0.0], [0.2, 0.1], [0.3, 0.2], [0.2, 0.9]])
        rows = curve_at(ends, np.array([0.2, 0.35, 0.8]), 0.1, 0.11)
        np.testing.assert_allclose(rows, [[0.2, 0.1], [0.2, 0.9], [0.35, 0.2]])
        assert curve_at(ends, np.array([0.9]), 0.1, 0.1).shape == (0, 2)

    def test_the_curve_is_post_processing_of_the_end_points(self, waves):
        for starts in STARTS:
            release = run("dp_pms", waves, seed=0, starts=starts, evaluation_points=[0.2, 0.5, 0.9])
            side, spec = waves.box[:, 1] - waves.box[:, 0], release.spec
            ends = (release.trajectories[-1] - waves.box[:, 0]) / side
            assert spec.significance is None  # no height was released to compare
            ends = ends if spec.cleanup_radius is None else cleanup(ends, spec.cleanup_radius)
            rows = curve_at(ends, np.array([0.2, 0.5, 0.9]), spec.reach, spec.merge_radius)
            np.testing.assert_allclose(release.curve, waves.box[:, 0] + rows * side, atol=1e-9)

    def test_sparse_starts_leave_no_evaluation_point_without_a_row(self, waves):
        for multiplier in (0.3, 1.0, 8.0):
            release = run("dp_pms", waves, seed=0, start_multiplier=multiplier, grid_size=33, reach=None)
            places = np.linspace(waves.x.min(), waves.x.max(), 33)
            first, last = release.anchors[0, 0], release.anchors[-1, 0]
            inside = places[(places >= first) & (places <= last)]
            assert set(inside.round(9)) <= set(release.curve[:, 0].round(9))


class TestGuarantee:
    @pytest.mark.parametrize(
        ("calibration", "status", "words"),
        [
            ("experiments", "nominal", "not a proof"),
            ("theorem", "as published", "states no theorem for DP-PMS"),
            ("tight", "proven", "any one response"),
        ],
    )
    def test_status_and_what_is_protected(self, calibration, status, words, waves):
        guarantee = run("dp_pms", waves, seed=0, calibration=calibration).guarantee
        assert guarantee.status == status
        assert words in guarantee.statement
        assert guarantee.neighbours == "replace-one-response"
        assert "predictors are public" in guarantee.caveats[0]
        assert "one response" in guarantee.caveats[0]

    def test_a_release_of_private_data_holds_no_predictor(self, waves):
        release = run("dp_pms", dataclasses.replace(waves, private=True, truth=None), calibration="tight", n_steps=2)
        assert release.anchors is None
        assert release.trajectories is None
        assert len(release.curve)
        assert not set(release.curve[:, 0].tolist()) & set(waves.x.tolist())

    @pytest.mark.parametrize("calibration", CALIBRATIONS)
    def test_a_bandwidth_read_off_the_records_is_nominal(self, calibration, waves):
        guarantee = run("dp_pms", waves, seed=0, calibration=calibration, bandwidth="silverman").guarantee
        assert guarantee.status == "nominal"
        assert "silverman" in guarantee.caveats[-1]

    @pytest.mark.parametrize("calibration", CALIBRATIONS)
    def test_too_little_noise_is_never_released(self, calibration, waves, monkeypatch, nothing_drawn):
        module = sys.modules["dpgrams_core.methods.ascent"]
        name = "rounds_multiplier" if calibration == "tight" else "published_sigma"
        right = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: right(*a, **k) / 1.01)
        with pytest.raises(RuntimeError, match="calibrated to less than its price"):
            run("dp_pms", waves, seed=0, calibration=calibration)

    def test_the_release_door(self, waves):
        mine = dataclasses.replace(waves, private=True, truth=None, labels=None)
        release = run("dp_pms", mine, calibration="tight", n_steps=2)
        assert (release.door, release.seed, release.guarantee.status) == ("release", None, "proven")
        with pytest.raises(DataError, match="not private"):
            _ = release.diagnostics
        with pytest.warns(PrivacyLeakWarning, match="nominal"):
            run("dp_pms", mine, n_steps=2)


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
        # In tight squares add up (accountants.py), and the start alone costs about its share.
        alone = 0.3**2 * 0.8 if calibration == "tight" else 0.24
        assert cost.stages[0][1] == pytest.approx(alone, rel=0.05 if calibration == "tight" else 1e-9)
        assert cost.epsilon == pytest.approx(0.8)
        assert release.guarantee.epsilon == 0.8
        assert release.guarantee.delta == 1e-5

    def test_responses_start_on_the_given_grid(self, waves):
        release = run("dp_pms", waves, seed=0, response_grid=[-0.5, 0.3, 1.9])
        assert set(release.anchors[:, 1].round(12)) <= {-0.5, 0.3, 1.9}
