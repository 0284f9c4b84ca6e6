"""DP-GRAMS: the rounds of alg:dpgrams, its defaults and its guarantee."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_density_and_gradient
from dpgrams_core import load_dataset, run
from dpgrams_core.methods.baselines.mean_shift import fast_mean_shift
from dpgrams_core.methods.dp_grams.plan import INIT_BANDWIDTH_OF_BOX, SUPPRESSION_OF_BOX, default_starts
from dpgrams_core.methods.dp_grams.run import stabilised_score
from dpgrams_core.model import settings
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.merging import merge

INACTIVE = {"calibration": "theorem", "gradient_clip": 1e9, "density_floor": 1e-12}  # neither clip nor floor bites


def test_the_defaults_are_those_of_the_paper(corners):
    spec = run("dp_grams", corners, seed=0).spec
    assert spec.n_steps == math.ceil(math.log(300)) == 6
    assert spec.batch_size == math.ceil(300 / math.log(300)) == 53
    assert spec.step_size == pytest.approx(spec.bandwidth**2)
    assert spec.n_starts == default_starts(300, None, "experiments") == math.ceil(0.8 * math.log(300))
    assert spec.init_bandwidth == pytest.approx(INIT_BANDWIDTH_OF_BOX * 14)  # the sides of this box are 14
    assert spec.suppression_radius == pytest.approx(SUPPRESSION_OF_BOX * 14)


def test_a_known_number_of_modes_asks_for_more_starts_but_never_too_many():
    assert default_starts(300, 4, "theorem") == 8
    assert default_starts(300, 900, "tight") == 1000  # the spec's own upper bound


def test_trajectories_start_at_the_anchors_and_end_in_the_modes(corners):
    release = run("dp_grams", corners, seed=3, n_starts=7, n_steps=4)
    assert release.trajectories.shape == (5, 7, 2)
    assert np.array_equal(release.trajectories[0], release.anchors)
    np.testing.assert_allclose(release.modes, merge(release.trajectories[-1], release.spec.bandwidth, None))
    known = run("dp_grams", corners, seed=3, n_starts=7, n_steps=4, n_modes=3)
    assert len(known.modes) == 3
    np.testing.assert_allclose(known.modes, merge(known.trajectories[-1], 1.0, 3))


@pytest.mark.parametrize("calibration", ["experiments", "theorem"])
@pytest.mark.parametrize("kernel", ["gaussian", "gaussian4"])
def test_a_seed_fixes_the_result_and_another_changes_it(calibration, kernel, corners, seed):
    options = {"calibration": calibration, "kernel": kernel}
    one, same, other = (run("dp_grams", corners, seed=s, **options) for s in (seed, seed, seed + 1))
    assert np.array_equal(one.trajectories, same.trajectories)
    assert not np.array_equal(one.trajectories, other.trajectories)
    assert one.seed == seed


def test_without_a_seed_a_fresh_one_is_drawn_and_recorded(corners):
    one, two = (run("dp_grams", corners) for _ in range(2))
    assert one.seed != two.seed
    assert np.array_equal(run("dp_grams", corners, seed=one.seed).modes, one.modes)


@pytest.mark.parametrize(
    "options", [{}, {"calibration": "theorem"}, {"bandwidth": "silverman"}, {"kernel": "legendre4"}]
)
def test_the_spec_of_a_release_runs_to_the_same_release(options, corners):
    release = run("dp_grams", corners, seed=5, **options)
    again = run("dp_grams", corners, seed=5, **vars(release.spec))
    assert np.array_equal(release.trajectories, again.trajectories)
    assert again.spec == release.spec


@pytest.mark.usefixtures("without_noise")
def test_without_noise_the_score_is_the_gradient_of_the_log_density(corners):
    release = run(
        "dp_grams", corners, seed=1, bandwidth=0.9, n_steps=1, batch_size=corners.n, step_size=0.01, **INACTIVE
    )
    density, gradient = naive_density_and_gradient(KERNELS["gaussian"], corners.points, release.anchors, 0.9)
    moved = (release.trajectories[1] - release.trajectories[0]) / 0.01
    np.testing.assert_allclose(moved, gradient / density[:, None], rtol=1e-9, atol=1e-10)


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("options", [INACTIVE, {"calibration": "experiments", "clip_multiplier": 1e9}])
def test_without_noise_a_full_batch_is_mean_shift(options, corners):
    # The default step h^2 is mean shift's, so the rounds end where mean shift ends.
    release = run("dp_grams", corners, seed=1, bandwidth=1.0, n_steps=400, batch_size=corners.n, **options)
    limits, labels = fast_mean_shift(corners.points, 1.0, release.anchors)
    np.testing.assert_allclose(release.trajectories[-1], limits[labels], atol=1e-6)


@pytest.mark.usefixtures("without_noise")
def test_clip_and_floor_bound_a_step(corners):
    options = {
        "calibration": "theorem",
        "bandwidth": 0.5,
        "gradient_clip": 0.01,
        "density_floor": 0.02,
        "step_size": 1.0,
    }
    release = run("dp_grams", corners, seed=1, n_steps=3, **options)
    steps = np.linalg.norm(np.diff(release.trajectories, axis=0), axis=-1)
    assert steps.max() <= 0.01 / 0.02 * (1 + 1e-9)  # A / p_floor
    assert release.diagnostics.clipped_share > 0


def test_the_stabilised_score_by_hand():
    # One record at 0, d = 1, h = 1, start at 1: p = phi(1) = 0.241971 and p' = -0.241971.
    one, at = np.zeros((1, 1)), np.ones((1, 1))
    score = lambda clip, floor: stabilised_score(KERNELS["gaussian"], one, at, 1.0, clip, floor)  # noqa: E731
    assert score(1.0, 0.1)[0].item() == pytest.approx(-1.0)
    assert score(1.0, 0.1)[1] == 0.0
    assert score(0.1, 0.1)[0].item() == pytest.approx(-0.1 / 0.24197072)
    assert score(0.1, 0.1)[1] == 1.0
    assert score(1.0, 0.5)[0].item() == pytest.approx(-0.24197072 / 0.5)
    assert score(0.1, 0.5)[0].item() == pytest.approx(-0.2)


def test_the_noise_of_a_round_follows_the_iterates_of_that_round(corners, watched_noise):
    seen, batches = watched_noise
    release = run("dp_grams", corners, seed=2)
    h = release.spec.bandwidth
    assert len(seen) == len(batches) == release.spec.n_steps  # one shared minibatch a round, one joint draw
    for x, (correlation, scale, columns) in zip(release.trajectories, seen, strict=False):
        np.testing.assert_allclose(correlation, np.exp(-cdist(x, x) / h))
        assert (scale, columns) == (release.noise_scale, 2)
    for rows in batches:
        assert len(set(rows.tolist())) == release.spec.batch_size
    assert len({tuple(sorted(rows.tolist())) for rows in batches}) == len(batches)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.05, 0.3])
def test_a_start_far_from_every_record_stays_a_number(kernel, bandwidth, table, rng):
    # The density there is 0 (or below, for order 4); the score must not become nan.
    data = table(rng.normal(8, 0.1, (60, 2)))
    release = run(
        "dp_grams", data, seed=0, kernel=kernel, bandwidth=bandwidth, epsilon=1e6, candidates=[(-8.0, -8.0), (8.0, 8.0)]
    )
    assert np.isfinite(release.trajectories).all()


def test_candidates_of_the_user_are_where_the_rounds_start(corners):
    given = [(3.0, 3.0), (-3.0, -3.0), (0.0, 5.0)]
    release = run("dp_grams", corners, seed=0, candidates=given, n_starts=9)
    assert {tuple(row) for row in release.anchors.tolist()} <= set(given)


class TestGuarantee:
    def test_experiments_are_nominal(self, corners):
        guarantee = run("dp_grams", corners, seed=0).guarantee
        assert guarantee.status == "nominal"
        assert "not a proof" in guarantee.statement
        assert guarantee.neighbours == "replace-one"

    def test_the_theorem_is_as_published(self, corners):
        guarantee = run("dp_grams", corners, seed=0, calibration="theorem").guarantee
        assert guarantee.status == "as published"
        assert "gap" in guarantee.statement

    def test_no_calibration_is_called_proven(self, corners):
        for kernel in KERNELS:
            for calibration in ("experiments", "theorem"):
                if kernel == "legendre4" and calibration == "theorem":
                    continue
                status = run("dp_grams", corners, seed=0, kernel=kernel, calibration=calibration).guarantee.status
                assert status != "proven"

    def test_mean_shift_has_none(self, corners):
        guarantee = run("mean_shift", corners, seed=0).guarantee
        assert (guarantee.status, guarantee.epsilon) == ("none", math.inf)

    def test_too_little_noise_is_never_released(self, corners, monkeypatch):
        # The package has a function of the module's name, so the module itself is looked up.
        module = sys.modules["dpgrams_core.methods.ascent"]
        right = module.published_sigma
        monkeypatch.setattr(module, "published_sigma", lambda *a, **k: right(*a, **k) / 1.01)
        with pytest.raises(RuntimeError, match="calibrated to less than its price"):
            run("dp_grams", corners, seed=0)


@pytest.mark.parametrize(("method", "dataset"), [("dp_grams", "four_corners"), ("dp_pms", "sinusoid")])
def test_a_calibration_without_noise_of_its_own_borrows_none(method, dataset, monkeypatch):
    monkeypatch.setitem(settings.CALIBRATIONS, "new", settings.Calibration("proven", "Not written yet."))
    with pytest.raises(NotImplementedError, match="no noise is written for the calibration new"):
        run(method, load_dataset(dataset, n=200), seed=0, calibration="new", clip_multiplier=0.01)
