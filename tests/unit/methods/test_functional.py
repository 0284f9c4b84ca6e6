"""The functional release: its guarantee, its modes, its bandwidth rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import load_dataset, run, score
from dpgrams_core.methods.functional.modes import parted_modes
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.numerics.bandwidths import REFERENCE_SPREAD, predicted_release_error, release_bandwidth
from dpgrams_core.numerics.bumps import Bumps, detection_threshold, find_bumps, overlap
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.sketch import ReleasedSketch
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.privacy.calibration import gaussian_multiplier

BOX = np.array([[-7.0, 7.0], [-7.0, 7.0]])


def test_the_guarantee_is_proven_and_priced_at_what_was_asked():
    data = load_dataset("four_corners", n=1000, seed=0)
    for epsilon in (0.1, 1.0, 5.0):
        release = run("functional", data, epsilon=epsilon, delta=1e-6, seed=0)
        assert release.guarantee.status == "proven"
        assert release.guarantee.epsilon == epsilon
        assert release.guarantee.delta == 1e-6
        assert release.noise_scale == pytest.approx(math.sqrt(2) * gaussian_multiplier(epsilon, 1e-6))
        assert release.surface.noise_scale == release.noise_scale


def test_a_bandwidth_from_the_records_is_flagged():
    data = load_dataset("four_corners", n=500, seed=0)
    release = run("functional", data, bandwidth="silverman", seed=0)
    assert any("comes from the records" in caveat for caveat in release.guarantee.caveats)
    assert release.guarantee.status == "nominal"


@pytest.mark.parametrize("calibration", ["tight", "theorem", "experiments"])
def test_no_calibration_is_more_than_nominal_with_a_bandwidth_from_the_records(calibration):
    data = load_dataset("four_corners", n=500, seed=0)
    guarantee = run("dp_grams", data, bandwidth="silverman", calibration=calibration, seed=0).guarantee
    assert guarantee.status == "nominal"
    assert "roven: " not in guarantee.statement
    assert sum("comes from the records" in caveat for caveat in guarantee.caveats) == 1


def test_same_seed_same_release_and_other_seed_another():
    data = load_dataset("four_corners", n=500, seed=0)
    first, same, other = (run("functional", data, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.surface.coefficients, same.surface.coefficients)
    assert not np.allclose(first.surface.coefficients, other.surface.coefficients)


def test_an_unknown_number_of_modes_is_found_without_extras(seed):
    for name, k in (("four_corners", 4), ("t_mixture", 5)):
        data = load_dataset(name, n=5000, seed=seed)
        release = run("functional", data, epsilon=1.0, seed=seed)
        found = score(release, data)
        assert (found["found"], found["missed"], found["spurious"]) == (k, 0, 0)
        assert len(release.significance) == len(release.modes)
        assert (release.significance > detection_threshold(release.surface)).all()


def test_a_known_number_of_modes_is_kept():
    data = load_dataset("four_corners", n=700, seed=1)
    for count in (1, 4, 6):
        assert len(run("functional", data, n_modes=count, seed=0).modes) == count


def test_pure_noise_seldom_shows_a_mode(seed):
    # The threshold allows about 5 %; 60 surfaces of noise alone show more than 12 with a chance below 1e-5.
    bases = box_bases(BOX, 1.2)
    shape = tuple(len(basis.whitening) for basis in bases)
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(60):
        surface = ReleasedSurface(10 * rng.standard_normal(shape), BOX, 1.2, 10.0, 1000)
        alarms += len(find_bumps(surface, None, 0.8).centres) > 0
    assert alarms <= 12


@pytest.mark.parametrize(("gap", "stays"), [(0.4, True), (0.6, False)])
def test_the_middle_of_a_bump_that_covers_several_peaks_is_no_mode(gap, stays):
    """It was one for as long as a bump stood there alone, and most false modes of weak releases were such middles."""
    surface = run("functional", load_dataset("four_corners", n=1000, seed=0), seed=0).surface
    middle, peak = np.array([[1.0, 1.0]]), np.array([[1.0, 1.0 + gap * surface.bandwidth]])
    bumps = Bumps(middle, np.ones(1), np.ones(1), np.array([6.0]))
    ((modes, significance),) = parted_modes([surface], [bumps], [peak])
    np.testing.assert_array_equal(modes, middle if stays else peak)
    assert significance.tolist() == [6.0]


def test_without_noise_bumps_are_recovered(rng):
    points = np.concatenate([rng.normal((-3, 2), 0.8, (600, 2)), rng.normal((3, -1), 1.1, (400, 2))])
    surface = ReleasedSurface(coefficients(points, box_bases(BOX, 1.0)), BOX, 1.0, 1.0, 1000)
    bumps = find_bumps(surface, 2, 0.85)
    order = np.argsort(bumps.centres[:, 0])
    np.testing.assert_allclose(bumps.centres[order], [(-3, 2), (3, -1)], atol=0.2)
    np.testing.assert_allclose(bumps.spreads[order], [0.8, 1.1], rtol=0.15)
    np.testing.assert_allclose(bumps.records[order], [600, 400], rtol=0.15)
    assert (bumps.significance > 50).all()


def test_overlap_is_the_inner_product_of_the_coefficients(rng):
    # Coefficients of many draws of a bump approach those of the bump itself.
    centres, spreads = np.array([[0.0, 0.0], [1.0, -0.5]]), np.array([0.6, 0.9])
    bases = box_bases(BOX, 1.0)
    vectors = [
        coefficients(rng.normal(centre, spread, (100_000, 2)), bases).ravel() / 100_000
        for centre, spread in zip(centres, spreads, strict=True)
    ]
    gram = np.array([[a @ b for b in vectors] for a in vectors])
    np.testing.assert_allclose(gram, overlap(1.0, centres, spreads), rtol=0.02)


def test_paths_climb(rng):
    data = load_dataset("four_corners", n=5000, seed=0)
    surface = run("functional", data, epsilon=5.0, seed=0).surface
    path = climb(surface, data.true_modes + rng.uniform(-1, 1, (4, 2)), 25, surface.bandwidth, surface.noise_scale)
    heights = [surface.value(x) for x in path]
    assert (heights[-1] > heights[0]).all()
    assert np.abs(path[-1] - data.true_modes).max() < 0.3


def test_records_outside_the_box_are_counted_and_do_not_move_the_noise():
    points = np.concatenate([np.zeros((60, 2)), np.full((5, 2), 40.0)])
    data = Dataset(name="outside", kind="modes", points=points, box=BOX)
    release = run("functional", data, seed=0)
    assert release.diagnostics.outside_box == 5
    assert release.noise_scale == pytest.approx(math.sqrt(2) * gaussian_multiplier(1.0, 1e-6))


def test_more_than_three_columns_get_a_sketch(rng):
    points = rng.normal(0, 1, (300, 4)) + rng.choice([-4.0, 4.0], (300, 1))
    data = Dataset(name="wide", kind="modes", points=points, box=np.array([[-7.0, 7.0]] * 4))
    release = run("functional", data, epsilon=5.0, n_modes=2, seed=0)
    assert isinstance(release.surface, ReleasedSketch)
    assert release.guarantee.status == "proven"
    assert np.abs(np.sort(release.modes, axis=0) - [[-4.0] * 4, [4.0] * 4]).max() < 1.5


@pytest.mark.parametrize(("field", "value"), [("delta", 0.0), ("delta", 1.0), ("epsilon", 0.0), ("n_modes", 0)])
def test_bad_values_are_refused_before_anything_is_drawn(field, value, nothing_drawn):
    with pytest.raises(SpecError, match=field):
        run("functional", load_dataset("four_corners", n=100, seed=0), seed=0, **{field: value})


class TestBandwidthRule:
    """One public rule from n, epsilon, delta, d and the box."""

    def rule(self, n, epsilon, box=BOX, d=2):
        sigma = math.sqrt(2) * gaussian_multiplier(epsilon, 1e-6)
        return release_bandwidth(n=n, d=d, box=box, sigma=sigma)

    def test_it_falls_with_more_data_and_more_budget(self):
        assert self.rule(500, 0.5) > self.rule(5000, 0.5) > self.rule(500_000, 0.5)
        assert self.rule(5000, 0.1) > self.rule(5000, 1.0) > self.rule(5000, 5.0)

    def test_it_scales_with_the_box(self):
        assert self.rule(1000, 1.0, 3 * BOX) == pytest.approx(3 * self.rule(1000, 1.0), rel=0.02)

    def test_where_noise_rules_it_is_root_d_times_the_reference_spread(self):
        for d in (1, 2, 3):
            box = np.array([[0.0, 1 / REFERENCE_SPREAD]] * d)  # reference spread 1
            assert self.rule(50, 0.01, box, d) == pytest.approx(math.sqrt(d), rel=0.02)

    def test_it_minimises_the_predicted_error(self):
        sigma = math.sqrt(2) * gaussian_multiplier(1.0, 1e-6)
        h = self.rule(2000, 1.0)
        facts = {"n": 2000, "d": 2, "box": BOX, "sigma": sigma}
        best = sum(predicted_release_error(h, **facts))
        for factor in (0.8, 1.25):
            assert sum(predicted_release_error(h * factor, **facts)) > best


def test_the_predicted_privacy_error_is_the_measured_one(rng):
    # One bump without sampling noise: the spread of the fitted place over noise draws against the formula.
    n, h = 2000, 1.0
    sigma = 20.0
    spread = REFERENCE_SPREAD * (BOX[0, 1] - BOX[0, 0])
    bases = box_bases(BOX, h)
    records = 0.2 * n
    points = rng.normal(0, spread, (100_000, 2))
    exact = coefficients(points, bases) * records / 100_000
    places = []
    for _ in range(120):
        surface = ReleasedSurface(exact + sigma * rng.standard_normal(exact.shape), BOX, h, sigma, n)
        places.append(find_bumps(surface, 1, spread).centres[0])
    measured = float((np.asarray(places) - np.mean(places, axis=0)).var(axis=0).sum())
    predicted, _, _ = predicted_release_error(h, n=n, d=2, box=BOX, sigma=sigma)
    # 240 squared deviations have a relative standard error of 9 %; 45 % is five of them.
    assert measured == pytest.approx(predicted, rel=0.45)
