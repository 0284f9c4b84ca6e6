"""The functional release for regression: its guarantee, its branches, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import Dataset, load_dataset, run
from dpgrams_core.methods.functional.modes import SENSITIVITY
from dpgrams_core.methods.functional.regression import UNIT_SQUARE, from_unit, to_unit
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics.surface import box_bases, coefficients
from dpgrams_core.privacy.calibration import gaussian_multiplier

BOX = np.array([[0.0, 1.0], [-1.0, 2.5]])


def regression(points, box=BOX, **more):
    return Dataset(name="table", kind="regression", points=np.asarray(points, dtype=float), box=box, **more)


def test_the_guarantee_is_proven_and_priced_at_what_was_asked():
    data = load_dataset("sinusoid", n=500, seed=0)
    for epsilon in (0.1, 1.0, 5.0):
        release = run("functional_regression", data, epsilon=epsilon, delta=1e-5, seed=0)
        assert (release.guarantee.status, release.guarantee.epsilon) == ("proven", epsilon)
        assert release.noise_scale == pytest.approx(math.sqrt(2) * gaussian_multiplier(epsilon, 1e-5))
        assert "response" in release.guarantee.statement


def test_no_neighbour_moves_the_release_more_than_stated(rng):
    # Responses far apart, near, outside the box, and whole records; the search may choose any bandwidth.
    worst = 0.0
    for h in (0.02, 0.05, 0.1, 0.3):
        bases = box_bases(UNIT_SQUARE, h)
        records = rng.uniform(-0.3, 1.3, (400, 2))
        others = records.copy()
        others[:200, 1] = rng.uniform(-1, 2, 200)
        others[200:] = rng.uniform(-0.3, 1.3, (200, 2))
        for one, two in zip(records, others, strict=True):
            change = coefficients(one[None], bases) - coefficients(two[None], bases)
            worst = max(worst, float(np.linalg.norm(change)))
    assert 1.41 < worst <= SENSITIVITY


@pytest.mark.parametrize("name", ["sinusoid", "three_component"])
def test_the_branches_are_found_with_enough_data(name, seed):
    data = load_dataset(name, n=20_000, seed=seed)
    release = run("functional_regression", data, epsilon=2.0, seed=seed)
    truth = data.truth.mode_table(release.curve[:, 0])
    error = np.sqrt(np.nanmin((truth - release.curve[:, 1:]) ** 2, axis=1))
    assert np.median(error) < 0.1
    assert len(set(release.branches.tolist())) >= truth.shape[1]
    assert len(release.branches) == len(release.significance) == len(release.curve)


def test_units_do_not_matter(seed):
    data = load_dataset("sinusoid", n=1000, seed=seed)
    stretch, shift = np.array([40.0, 0.01]), np.array([-3.0, 100.0])
    moved = regression(data.points * stretch + shift, (data.box * stretch[:, None]) + shift[:, None])
    first, second = (run("functional_regression", each, seed=seed) for each in (data, moved))
    np.testing.assert_allclose(first.curve * stretch + shift, second.curve, rtol=1e-6)


def test_the_unit_square_and_back(rng):
    points = rng.normal(0, 3, (50, 2))
    np.testing.assert_allclose(from_unit(to_unit(points, BOX), BOX), points, atol=1e-12)


@pytest.mark.parametrize(
    ("field", "value"),
    [("delta", 0.0), ("epsilon", -1.0), ("grid_size", 1), ("grid_size", 5000), ("bandwidth", "silverman")],
)
def test_bad_values_are_refused_before_anything_is_drawn(field, value, nothing_drawn):
    with pytest.raises(SpecError, match=field):
        run("functional_regression", load_dataset("sinusoid", n=100, seed=0), seed=0, **{field: value})


def test_too_few_records_are_refused(nothing_drawn):
    with pytest.raises(DataError, match="needs at least 10"):
        run("functional_regression", regression(np.full((9, 2), 0.5)), seed=0)


def test_data_of_another_kind_are_refused(nothing_drawn):
    with pytest.raises(SpecError, match="it works on regression data"):
        run("functional_regression", load_dataset("four_corners", n=100, seed=0), seed=0)


def test_equal_predictors_give_one_place_and_no_error(seed):
    points = np.stack([np.full(3000, 0.5), np.random.default_rng(seed).normal(1.0, 0.1, 3000)], axis=1)
    release = run("functional_regression", regression(points), epsilon=2.0, seed=seed)
    assert np.abs(release.curve[:, 0] - 0.5).max() < 0.4
    assert np.abs(release.curve[release.significance > 5, 1] - 1.0).max() < 0.3


def test_responses_outside_the_box_are_counted():
    points = np.stack([np.linspace(0, 1, 100), np.where(np.arange(100) < 7, 50.0, 0.5)], axis=1)
    assert run("functional_regression", regression(points), seed=0).diagnostics.outside_box == 7


def test_private_data_go_through_the_release_door():
    data = load_dataset("sinusoid", n=600, seed=0)
    release = run("functional_regression", regression(data.points, data.box, private=True), epsilon=1.0)
    assert (release.door, release.seed) == ("release", None)
    with pytest.raises(DataError):
        release.diagnostics  # noqa: B018


def test_the_band_is_wider_with_more_noise_and_moves_with_the_units():
    data = load_dataset("sinusoid", n=2000, seed=0)
    wide, narrow = (run("functional_regression", data, epsilon=epsilon, seed=0) for epsilon in (0.5, 5.0))
    assert np.median(np.ptp(wide.curve_band, axis=1)) > 3 * np.median(np.ptp(narrow.curve_band, axis=1))
    for release in (wide, narrow):
        assert (release.curve_band[:, 0] <= release.curve[:, 1]).all()
        assert (release.curve[:, 1] <= release.curve_band[:, 1]).all()
        assert release.curve_band.min() >= data.box[1, 0]
        assert release.curve_band.max() <= data.box[1, 1]
    other = np.array([[0.0, 100.0], [-1000.0, 2500.0]])
    far = regression(data.points * [100, 1000], box=other)
    moved = run("functional_regression", far, epsilon=5.0, seed=0)
    np.testing.assert_allclose(moved.curve_band, 1000 * narrow.curve_band, rtol=1e-6, atol=1e-3)
