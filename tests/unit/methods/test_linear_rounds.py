"""DP-GRAMS with a proof: the kernel sums, their covariance, the plan and the guarantee of ``tight``."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_density_and_gradient
from dpgrams_core import load_dataset, run
from dpgrams_core.methods.ascent import FLOOR_OF_TOP
from dpgrams_core.methods.baselines.mean_shift import fast_mean_shift
from dpgrams_core.methods.dp_grams import plan as plan_module
from dpgrams_core.methods.dp_grams import tight
from dpgrams_core.methods.dp_grams.plan import TIGHT, plan, usual_top
from dpgrams_core.methods.dp_grams.rounds import (
    densities,
    joint_covariance,
    kernel_sums,
    round_grid,
    round_sensitivity,
    score_noise,
)
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.numerics.bandwidths import mean_side, release_bandwidth
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.surface import box_bases, coefficients, functionals
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRounds
from dpgrams_core.privacy.noise import SimulationNoise


def process_kernel(x, y, h):
    return math.exp(-float(((x - y) ** 2).sum()) / (2 * h * h))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_covariance_is_that_of_values_and_slopes(d, rng):
    # Slopes as central differences of the process: Cov(f(x + s) - f(x - s), ...) / 2s, bilinear in the kernel.
    h, step = 0.8, 1e-3
    at = rng.normal(0, 0.7, (3, d))
    functionals = [[(1.0, x)] for x in at]
    for x, axis in ((x, axis) for x in at for axis in np.eye(d)):
        functionals.append([(h / (2 * step), x + step * axis), (-h / (2 * step), x - step * axis)])
    expected = [
        [sum(a * b * process_kernel(x, y, h) for a, x in one for b, y in two) for two in functionals]
        for one in functionals
    ]
    np.testing.assert_allclose(joint_covariance(at, h), expected, atol=1e-5)


def test_the_covariance_is_the_gram_matrix_of_the_sums(rng):
    # One record at one of the points: the sums are that point's row of the covariance.
    at = rng.normal(0, 0.7, (4, 2))
    covariance = joint_covariance(at, 0.8)
    for row, x in enumerate(at):
        np.testing.assert_allclose(kernel_sums(x[None, :], at, 0.8), covariance[row], atol=1e-14)
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


@pytest.mark.parametrize("d", [1, 2, 3])
def test_densities_from_the_sums_are_those_of_the_naive_loops(d, rng, monkeypatch):
    monkeypatch.setattr(sys.modules["dpgrams_core.methods.dp_grams.rounds"], "_PAIRS", 40)  # several chunks
    points, at, h = rng.normal(0, 1, (57, d)), rng.normal(0, 1, (5, d)), 0.6
    found = densities(kernel_sums(points, at, h), d, h, 57)
    for ours, naive in zip(found, naive_density_and_gradient(KERNELS["gaussian"], points, at, h), strict=True):
        np.testing.assert_allclose(ours, naive, rtol=1e-10, atol=1e-14)


class TestRun:
    def test_the_defaults(self, corners):
        spec = run("dp_grams", corners, seed=0, calibration="tight").spec
        assert spec.batch_size == corners.n  # all records: see default_batch
        assert (spec.n_steps, spec.n_starts, spec.init_fraction) == (TIGHT.rounds, TIGHT.starts, TIGHT.init_fraction)
        side = mean_side(corners.box)
        assert spec.init_bandwidth == pytest.approx(TIGHT.spacing * side)
        sigma = math.sqrt(2) * gaussian_multiplier(1.0, 1e-6)
        wide = release_bandwidth(n=corners.n, d=2, box=corners.box, sigma=sigma)
        assert spec.bandwidth == pytest.approx(TIGHT.bandwidth_scale * wide)
        floor = FLOOR_OF_TOP * usual_top(spec.bandwidth, 2, side)
        assert spec.density_floor == pytest.approx(floor, rel=1e-6)
        assert spec.gradient_clip == pytest.approx(floor / spec.bandwidth, rel=1e-6)

    def test_the_rule_reads_public_facts_only(self, corners):
        moved = dataclasses.replace(corners, points=np.clip(-0.5 * corners.points, *corners.box.T))
        assert plan(DPGramsSpec(calibration="tight"), corners) == plan(DPGramsSpec(calibration="tight"), moved)

    @pytest.mark.parametrize(
        "options",
        [
            {"epsilon": 0.3},
            {"delta": 1e-3},
            {"bandwidth": 2.0},
            {"bandwidth_scale": 1.5},
            {"clip_multiplier": 0.05},
            {"batch_size": 40},
            {"n_starts": 5},
            {"n_steps": 6},
            {"init_fraction": 0.9},
            {"init_bandwidth": 2.0},
            {"suppression_radius": 4.0},
            {"step_size": 0.01},
        ],
    )
    def test_every_setting_acts(self, options, corners):
        usual, other = (run("dp_grams", corners, seed=3, calibration="tight", **each) for each in ({}, options))
        assert usual.modes.shape != other.modes.shape or not np.allclose(usual.modes, other.modes, atol=1e-6)
        assert other.guarantee.epsilon == options.get("epsilon", 1.0)

    def test_a_small_clip_keeps_the_ends_near_the_starts(self, corners):
        release = run("dp_grams", corners, seed=0, calibration="tight", clip_multiplier=0.01)
        steps = TIGHT.last_climb + TIGHT.climb_a_round * (TIGHT.rounds - 1)
        moved = np.linalg.norm(release.trajectories[-1] - release.anchors, axis=1)
        assert 0 < moved.max() <= 0.01 * steps * release.spec.bandwidth * (1 + 1e-9)

    def test_a_seed_fixes_the_result_and_the_spec_runs_to_the_same(self, corners, seed):
        one, same, other = (run("dp_grams", corners, seed=s, calibration="tight") for s in (seed, seed, seed + 1))
        assert np.array_equal(one.trajectories, same.trajectories)
        assert not np.array_equal(one.trajectories, other.trajectories)
        again = run("dp_grams", corners, seed=seed, **vars(one.spec))
        assert np.array_equal(one.trajectories, again.trajectories)
        assert again.spec == one.spec

    @pytest.mark.usefixtures("without_noise")
    def test_without_noise_the_ends_are_modes_of_mean_shift(self, corners):
        release = run("dp_grams", corners, seed=1, bandwidth=1.0, epsilon=100.0, calibration="tight", n_modes=4)
        limits, _ = fast_mean_shift(corners.points, 1.0, release.modes)
        assert len(release.modes) == 4
        assert cdist(release.modes, limits).min(axis=1).max() < 0.1
        exact = kernel_sums(corners.points, release.modes, 1.0)[:4]
        np.testing.assert_allclose(release.heights, exact, rtol=0.05)

    def test_heights_and_significance_stand_beside_the_modes(self, corners):
        release = run("dp_grams", corners, seed=1, calibration="tight", n_modes=4)
        assert release.heights.shape == release.significance.shape == (len(release.modes),)
        assert (np.diff(release.heights) <= 0).all()
        unit = release.events[1].noise_scale / math.sqrt(release.spec.n_steps)
        np.testing.assert_allclose(release.significance, release.heights / unit)

    def test_each_round_releases_the_sums_at_its_own_points_once(self, corners, monkeypatch):
        seen, draw = [], SimulationNoise.covered_gaussian

        def watch(self, tables, covariance, scale):
            tables = list(tables)
            seen.append((np.vstack(tables).sum(axis=0), covariance, scale))
            return draw(self, tables, covariance, scale)

        monkeypatch.setattr(SimulationNoise, "covered_gaussian", watch)
        release = run("dp_grams", corners, seed=2, calibration="tight")
        h = release.spec.bandwidth
        assert len(seen) == release.spec.n_steps
        for x, (exact, covariance, scale) in zip(release.trajectories, seen, strict=False):
            np.testing.assert_allclose(covariance, joint_covariance(x, h))
            np.testing.assert_allclose(exact, kernel_sums(corners.points, x, h))
            assert scale == release.events[1].noise_scale

    @pytest.mark.parametrize("batch_size", [None, 53])
    def test_the_price_is_the_budget_and_it_is_proven(self, batch_size, corners):
        release = run("dp_grams", corners, seed=0, calibration="tight", batch_size=batch_size, epsilon=0.8)
        draws, rounds = release.events
        assert isinstance(draws, ExponentialDraws)
        assert isinstance(rounds, GaussianRounds)
        numbers = 3 * release.spec.n_starts
        assert rounds.sensitivity == round_sensitivity(rounds.batch_size, 2, numbers, rounds.multiplier)
        assert math.sqrt(2) < rounds.sensitivity < math.sqrt(2) * (1 + 1e-6)
        assert price(release.events, 1e-6).epsilon == pytest.approx(0.8, rel=1e-8)
        guarantee = release.guarantee
        assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("proven", 0.8, 1e-6)
        assert guarantee.caveats == ()
        assert release.noise_scale == pytest.approx(
            score_noise(
                rounds.noise_scale / math.sqrt(rounds.rounds),
                2,
                release.spec.bandwidth,
                rounds.batch_size,
                usual_top(release.spec.bandwidth, 2, mean_side(corners.box)),
            )
        )

    def test_a_bandwidth_from_the_records_is_still_flagged(self, corners):
        assert run("dp_grams", corners, seed=0, calibration="tight", bandwidth="silverman").guarantee.caveats

    def test_too_little_noise_is_never_released(self, corners, monkeypatch):
        module = sys.modules["dpgrams_core.methods.ascent"]
        right = module.rounds_multiplier
        monkeypatch.setattr(module, "rounds_multiplier", lambda *a: right(*a) / 1.01)
        with pytest.raises(RuntimeError, match="calibrated to less than its price"):
            run("dp_grams", corners, seed=0, calibration="tight")

    @pytest.mark.usefixtures("nothing_drawn")
    @pytest.mark.parametrize(("kernel", "reason"), [("legendre4", "jumps"), ("gaussian4", "Gaussian process")])
    def test_other_kernels_are_refused_with_the_reason(self, kernel, reason, corners, refused):
        refused(
            lambda: run("dp_grams", corners, seed=0, calibration="tight", kernel=kernel),
            "kernel",
            kernel,
            reason,
            "choose gaussian",
        )

    @pytest.mark.usefixtures("nothing_drawn")
    def test_more_starts_than_a_round_can_take_are_refused(self, corners, refused):
        options = {"calibration": "tight", "n_starts": 900, "init_bandwidth": 0.2}
        refused(lambda: run("dp_grams", corners, seed=0, **options), "n_starts", 900, "at most 500")

    @pytest.mark.usefixtures("nothing_drawn")
    def test_more_rounds_than_can_be_read_together_are_refused(self, corners, refused):
        options = {"calibration": "tight", "n_steps": 31}
        refused(lambda: run("dp_grams", corners, seed=0, **options), "n_steps", 31, "at most 30 rounds")

    @pytest.mark.parametrize("options", [{"epsilon": 1e6}, {"epsilon": 1e-3}, {"delta": 1e-12}, {"batch_size": 1}])
    def test_extreme_budgets_stay_numbers(self, options, corners):
        release = run("dp_grams", corners, seed=0, calibration="tight", **options)
        assert np.isfinite(release.trajectories).all()
        assert release.guarantee.epsilon <= options.get("epsilon", 1.0) * (1 + 1e-9)

    def test_starts_that_coincide_stay_together(self, corners):
        release = run("dp_grams", corners, seed=0, calibration="tight", candidates=[(3.0, 3.0)] * 5, n_starts=5)
        np.testing.assert_allclose(release.trajectories, release.trajectories[:, :1].repeat(5, axis=1), atol=1e-4)


class TestAgainstTheTheorem:
    """The noise on a score coordinate, same data, same budget, same density."""

    @pytest.mark.parametrize("batch_size", [145, 1_000])
    def test_at_least_twenty_times_less_noise(self, batch_size, seed, record_property):
        data = load_dataset("four_corners", n=1_000, seed=seed)
        scale = {
            name: run(
                "dp_grams", data, seed=0, epsilon=1.0, calibration=name, batch_size=batch_size, density_floor=0.02
            ).noise_scale
            for name in ("theorem", "tight")
        }
        record_property("factor", scale["theorem"] / scale["tight"])
        assert scale["theorem"] > 20 * scale["tight"]

    @pytest.mark.parametrize("floor", [0.005, 0.02, 0.1])
    def test_for_other_floors_too(self, floor, seed):
        data = load_dataset("four_corners", n=1_000, seed=seed)
        options = {"seed": 0, "epsilon": 1.0, "bandwidth": 1.0, "density_floor": floor}
        theorem = run("dp_grams", data, calibration="theorem", **options).noise_scale
        assert theorem > 20 * run("dp_grams", data, calibration="tight", **options).noise_scale


ON_A_GRID = {"calibration": "tight", "bandwidth": 1.2, "n_starts": 8}


@pytest.fixture
def many_records():
    return load_dataset("four_corners", n=30_000, seed=3)


class TestManyRecords:
    """Records that are added on a grid, against the way in which each is weighed at each point."""

    @pytest.mark.parametrize("d", [1, 2])
    def test_products_with_functionals_are_the_kernel_sums(self, d, rng):
        box = np.array([[-3.0, 5.0], [0.0, 6.0]])[:d]
        bases, at = box_bases(box, 0.9), rng.uniform(box[:, 0], box[:, 1], (6, d))
        points = rng.uniform(box[:, 0], box[:, 1], (25_000, d))
        found = np.tensordot(functionals(at, bases), coefficients(points, bases), axes=d)
        np.testing.assert_allclose(found, kernel_sums(points, at, 0.9), atol=25_000 * 1e-5)
        few = np.tensordot(functionals(at, bases), coefficients(points[:3], bases), axes=d)
        np.testing.assert_allclose(few, kernel_sums(points[:3], at, 0.9), atol=3e-5)

    @pytest.mark.parametrize("batch_size", [None, 28_000])
    def test_a_run_is_the_same_but_for_what_the_grid_leaves_out(self, batch_size, many_records, monkeypatch):
        calls = []
        monkeypatch.setattr(tight, "coefficients", lambda *facts: calls.append(1) or coefficients(*facts))
        fast = run("dp_grams", many_records, seed=1, batch_size=batch_size, **ON_A_GRID)
        assert len(calls) == (1 if batch_size is None else fast.spec.n_steps)
        for module in (tight, plan_module):
            monkeypatch.setattr(module, "round_grid", lambda *_: None)
        slow = run("dp_grams", many_records, seed=1, batch_size=batch_size, **ON_A_GRID)
        np.testing.assert_allclose(fast.trajectories, slow.trajectories, atol=1e-5)
        np.testing.assert_allclose(fast.heights, slow.heights, rtol=1e-5)
        assert fast.events[1].sensitivity == pytest.approx(slow.events[1].sensitivity, rel=1e-6)

    def test_the_price_is_set_for_the_way_that_is_taken(self, many_records):
        release = run("dp_grams", many_records, seed=0, **ON_A_GRID)
        rounds, nodes = release.events[1], round_grid(30_000, 24, many_records.box, 1.2)
        assert nodes is not None
        assert rounds.sensitivity == round_sensitivity(30_000, 2, 24, rounds.multiplier, nodes)
        assert rounds.sensitivity > round_sensitivity(30_000, 2, 24, rounds.multiplier) > math.sqrt(2)

    def test_a_grid_is_taken_only_where_it_pays(self, many_records):
        assert round_grid(20_000, 24, many_records.box, 1.2) is None  # no seeded number changes
        assert round_grid(30_000, 24, many_records.box, 0.1) is None
        assert round_grid(30_000, 24, np.tile(many_records.box[:1], (3, 1)), 1.2) is None
        assert round_grid(10**9, 4_000_000, many_records.box, 1.2) is None
