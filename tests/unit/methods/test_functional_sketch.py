"""The functional release in more than three columns: its guarantee, its modes, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from dpgrams_core import run
from dpgrams_core.model.errors import SpecError
from dpgrams_core.numerics.bumps import find_sketch_bumps
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.sketch import (
    PAIRS,
    SKETCH_SENSITIVITY,
    ReleasedSketch,
    feature_sums,
    noise_ceiling,
    sketch_sensitivity,
)
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.noise import SimulationNoise

SIDE = 17.0


def blob_centres(d):
    """Corners of a cube that differ in at least two coordinates: eight times root two apart, or more."""
    corners = 4.0 * np.array([(1, 1, 1, 1), (-1, -1, 1, 1), (1, -1, -1, 1), (-1, 1, -1, -1)])
    return np.concatenate([corners, np.ones((4, d - 4))], axis=1)


@pytest.fixture
def blobs(table, rng):
    """``blobs(d, n)``: four round clusters of standard deviation 1."""

    def make(d, n=5_000):
        centres = blob_centres(d)
        points = centres[rng.integers(0, 4, n)] + rng.normal(0, 1, (n, d))
        return table(points, [(-SIDE / 2, SIDE / 2)] * d, true_modes=centres)

    return make


def release_of(data, seed=0, **settings):
    return run("functional", data, seed=seed, **settings)


def errors(modes, truth):
    """Distances of the best one-to-one matching."""
    distance = np.linalg.norm(modes[:, None] - truth[None], axis=2)
    return distance[linear_sum_assignment(distance)]


@pytest.mark.slow
@pytest.mark.parametrize("d", [4, 5, 6])
def test_an_unknown_number_of_modes_is_found_without_extras(d, blobs, seed):
    data = blobs(d)
    release = release_of(data, seed)
    assert len(release.modes) == 4
    assert errors(release.modes, data.true_modes).max() < 0.6
    ceiling = noise_ceiling(release.surface.box, release.surface.bandwidth)
    assert (release.significance > ceiling).all()


@pytest.mark.slow
def test_a_known_number_of_modes_is_kept_and_right_with_little_data(blobs, seed):
    data = blobs(4, 1_000)
    for count in (1, 4, 6):
        release = release_of(data, seed, n_modes=count)
        assert release.modes.shape == (count, 4)
        assert release.significance.shape == (count,)
    assert errors(release_of(data, seed, n_modes=4).modes, data.true_modes).max() < 1.5


def test_the_guarantee_is_proven_and_priced_at_what_was_asked(blobs):
    data = blobs(4, 500)
    for epsilon in (0.1, 1.0, 5.0):
        release = release_of(data, epsilon=epsilon, n_modes=1)
        multiplier = gaussian_multiplier(epsilon, 1e-6)
        sensitivity = sketch_sensitivity(release.surface.n, release.surface.blocks, multiplier)
        scale = sensitivity * multiplier
        assert math.sqrt(2 + 2 / 31) < sensitivity < math.sqrt(2 + 2 / 31) * (1 + 1e-9)
        assert release.events == (GaussianRelease(sensitivity=sensitivity, noise_scale=scale),)
        assert release.noise_scale == release.surface.noise_scale == scale
        assert (release.guarantee.status, release.guarantee.epsilon, release.guarantee.delta) == (
            "proven",
            epsilon,
            1e-6,
        )
        assert "1.437" in release.guarantee.statement
        assert release.spec.bandwidth == release.surface.bandwidth


def test_a_bandwidth_from_the_records_is_flagged(blobs):
    release = release_of(blobs(4, 500), n_modes=1, bandwidth="silverman")
    assert release.guarantee.status == "nominal"
    assert any("comes from the records" in caveat for caveat in release.guarantee.caveats)


def test_same_seed_same_release_and_other_seed_another(blobs):
    data = blobs(4, 300)
    first, same, other = (release_of(data, seed, n_modes=1) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.surface.coefficients, same.surface.coefficients)
    np.testing.assert_array_equal(first.modes, same.modes)
    assert not np.allclose(first.surface.coefficients, other.surface.coefficients)


def test_too_small_a_bandwidth_is_refused_before_anything_is_drawn(blobs, monkeypatch):
    def drawn(*_, **__):
        raise AssertionError("noise was drawn before the refusal")

    monkeypatch.setattr(SimulationNoise, "independent_gaussian", drawn)
    with pytest.raises(SpecError, match="a bandwidth of at least"):
        release_of(blobs(6, 100), bandwidth=1e-3)
    with pytest.raises(AssertionError, match="drawn"):  # the guard itself works
        release_of(blobs(6, 100), bandwidth=2.0)


@pytest.mark.slow
def test_pure_noise_seldom_shows_a_mode(rng):
    # The threshold allows about 0.1 %; even at 0.5 %, 12 sketches show more than 3 with a chance below 1e-6.
    box = np.array([[-7.0, 7.0]] * 4)
    alarms = 0
    for _ in range(12):
        sketch = ReleasedSketch(10 * rng.standard_normal(16 * PAIRS), box, 1.5, 10.0, 1000)
        alarms += len(find_sketch_bumps(sketch, None, 0.8).centres) > 0
    assert alarms <= 3


@pytest.mark.slow
def test_the_error_of_the_kernel_makes_no_modes(table, rng, seed):
    # So many records in one place that what its kernel leaves elsewhere is far above the noise of the release.
    data = table(rng.normal(0, 1, (20_000, 4)), [(-SIDE / 2, SIDE / 2)] * 4)
    release = release_of(data, seed, epsilon=20.0)
    assert len(release.modes) == 1
    assert np.abs(release.modes).max() < 0.3


def test_without_noise_bumps_are_recovered(rng):
    box = np.array([[-8.5, 8.5]] * 5)
    centres = np.array([[3.0] * 5, [-2.0] * 5])
    points = np.concatenate([rng.normal(centres[0], 0.8, (1200, 5)), rng.normal(centres[1], 1.2, (800, 5))])
    sketch = ReleasedSketch(feature_sums(points, box, 2.0, 32), box, 2.0, 1.0, 2000)
    bumps = find_sketch_bumps(sketch, 2, 1.0)
    order = np.argsort(-bumps.centres[:, 0])
    np.testing.assert_allclose(bumps.centres[order], centres, atol=0.3)
    np.testing.assert_allclose(bumps.records[order], [1200, 800], rtol=0.25)
    assert (bumps.significance > 20).all()


@pytest.mark.slow
def test_paths_have_their_shape_and_climb(blobs, seed):
    data = blobs(5)
    release = release_of(data, seed, epsilon=5.0, n_modes=4)
    steps, starts, columns = release.trajectories.shape
    assert (steps > 5, starts > 10, columns) == (True, True, 5)
    sketch = release.surface
    width = 2 * sketch.bandwidth
    path = climb(sketch, data.true_modes + 0.7, 30, width, sketch.noise_at(data.true_modes, width))
    before, after = (sketch.value(path[k], 2 * sketch.bandwidth) for k in (0, -1))
    assert (after > before).all()


def test_records_outside_the_box_are_counted_and_do_not_move_the_noise(table, rng):
    points = np.concatenate([rng.normal(0, 1, (60, 4)), np.full((5, 4), 1e200)])
    release = release_of(table(points, [(-7.0, 7.0)] * 4), n_modes=1)
    assert release.diagnostics.outside_box == 5
    assert np.isfinite(release.modes).all()
    assert release.noise_scale == pytest.approx(SKETCH_SENSITIVITY * gaussian_multiplier(1.0, 1e-6), rel=1e-9)
