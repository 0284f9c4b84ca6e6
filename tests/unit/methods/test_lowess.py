"""LOWESS: a smooth mean, its release, and what it refuses."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from dpgrams_core import DataError, Dataset, load_dataset, run

# The package exports the function under the name of its module.
module = importlib.import_module("dpgrams_core.methods.baselines.regression")


def regression(x, y, **more):
    box = np.array([[0.0, 1.0], [-10.0, 10.0]])
    return Dataset(name="mine", kind="regression", points=np.stack([x, y], axis=1), box=box, **more)


def test_the_curve_has_a_row_for_every_record_sorted_by_x(seed):
    data = load_dataset("three_component", n=120, seed=seed)
    release = run("lowess", data, seed=0)
    assert release.curve.shape == (120, 2)
    assert release.modes.shape == (0, 2)
    assert np.array_equal(release.curve[:, 0], np.sort(data.x))
    assert (release.guarantee.status, release.guarantee.epsilon) == ("none", math.inf)


@pytest.mark.parametrize("fraction", [0.2, 0.5, 1.0])
def test_a_line_is_kept_exactly(fraction, rng):
    x = rng.uniform(0, 1, 80)
    curve = run("lowess", regression(x, 3 * x - 1), seed=0, fraction=fraction).curve
    np.testing.assert_allclose(curve[:, 1], 3 * curve[:, 0] - 1, atol=1e-9)


def test_the_fit_at_a_point_is_the_weighted_line_of_its_window(rng):
    x, y = np.sort(rng.uniform(0, 1, 60)), rng.normal(0, 1, 60)
    curve = run("lowess", regression(x, y), seed=0, fraction=0.5, robust_steps=0).curve
    for i in (0, 17, 59):
        distance = np.abs(x - x[i])
        reach = np.sort(distance)[29]  # the 30 nearest records
        weights = np.clip(1 - (distance / reach) ** 3, 0, None) ** 3
        slope, level = np.polyfit(x, y, 1, w=np.sqrt(weights))
        assert curve[i, 1] == pytest.approx(slope * x[i] + level, abs=1e-6)


def test_robust_steps_weigh_an_outlier_down():
    x = np.linspace(0, 1, 50)
    y = np.where(np.arange(50) == 25, 9.0, 0.1 * np.sin(9 * x))
    plain, robust = (run("lowess", regression(x, y), seed=0, robust_steps=k).curve[25, 1] for k in (0, 3))
    assert plain > 0.3
    assert abs(robust) < 0.15


def test_it_runs_between_the_waves_where_no_branch_is(seed):
    data = load_dataset("sinusoid", n=1000, seed=seed)
    curve = run("lowess", data, seed=0).curve
    middle = 0.75 + 0.5 * np.sin(3 * np.pi * curve[:, 0])
    assert np.median(np.abs(curve[:, 1] - middle)) < 0.375  # nearer to the middle than to either branch


def test_skipping_at_large_n_changes_next_to_nothing(seed, monkeypatch):
    data = load_dataset("sinusoid", n=600, seed=seed)
    exact = run("lowess", data, seed=0).curve
    monkeypatch.setattr(module, "EXACT_UP_TO", 100)
    np.testing.assert_allclose(run("lowess", data, seed=0).curve, exact, atol=0.05)


def test_bad_data_are_refused_in_a_sentence(corners):
    with pytest.raises(DataError, match="All predictors are equal"):
        run("lowess", regression(np.full(20, 0.5), np.linspace(0, 1, 20)), seed=0)
    with pytest.raises(DataError, match="at least 10 records"):
        run("lowess", regression(np.linspace(0, 1, 9), np.zeros(9)), seed=0)
    with pytest.raises(ValueError, match="it works on regression data"):
        run("lowess", corners, seed=0)
    x = np.linspace(0, 1, 30)
    with pytest.raises(DataError, match="no privacy"):
        run("lowess", regression(x, x, private=True))


@pytest.mark.parametrize("ties", [5, 15, 25, 29])
def test_many_equal_predictors_give_a_finite_curve_or_a_sentence(ties, rng):
    x = np.concatenate([np.full(ties, 0.5), np.linspace(0, 1, 30 - ties)])
    try:
        curve = run("lowess", regression(x, rng.normal(0, 1, 30)), seed=0, fraction=0.3).curve
    except DataError as error:
        assert "predictors are equal" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(curve).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fraction", 0),
        ("fraction", 1.5),
        ("fraction", math.nan),
        ("fraction", 0.01),
        ("robust_steps", -1),
        ("robust_steps", 2.5),
    ],
)
def test_bad_settings_are_refused(field, value, refused, seed):
    data = load_dataset("sinusoid", n=60, seed=seed)
    refused(lambda: run("lowess", data, seed=0, **{field: value}), field, value)
