"""Partial mean shift: its release, its bandwidth, and what it refuses."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import DataError, Dataset, load_dataset, run
from dpgrams_core.methods.baselines.regression import (
    MAX_RECORDS,
    PMSSpec,
    fast_partial_mean_shift,
    partial_mean_shift_steps,
)

# The package exports the function under the name of its module.
module = importlib.import_module("dpgrams_core.methods.baselines.regression")


def regression(x, y, box=((0.0, 1.0), (-10.0, 10.0))):
    return Dataset(name="mine", kind="regression", points=np.stack([x, y], axis=1), box=np.array(box))


@pytest.fixture(scope="module")
def waves(seed):
    return load_dataset("sinusoid", n=200, seed=seed)


def test_the_curve_has_a_row_for_every_record_sorted_by_x(waves):
    release = run("pms", waves, seed=0)
    assert release.curve.shape == (200, 2)
    assert release.modes.shape == (0, 2)
    assert np.array_equal(release.curve[:, 0], np.sort(waves.x))
    assert (release.guarantee.status, release.guarantee.epsilon, release.events) == ("none", math.inf, ())
    assert release.guarantee.caveats == ()


def test_every_row_is_a_fixed_point_of_the_step(waves):
    release = run("pms", waves, seed=0, bandwidth=0.1, response_bandwidth=0.2)
    for x, y in release.curve:
        weights = np.exp(-0.5 * ((waves.x - x) / 0.1) ** 2 - 0.5 * ((waves.y - y) / 0.2) ** 2)
        assert abs(weights @ waves.y / weights.sum() - y) < 1e-9


def test_rows_keep_to_the_branches_where_the_bandwidth_is_small(seed):
    data = load_dataset("sinusoid", n=2000, seed=seed)
    curve = run("pms", data, seed=0, bandwidth=0.03, response_bandwidth=0.2).curve
    gap = np.abs(curve[:, 1, None] - data.truth.paper_table(curve[:, 0])).min(axis=1)
    assert np.median(gap) < 0.1


def test_two_clouds_far_apart_in_x_do_not_see_each_other():
    x = np.concatenate([np.linspace(0, 0.1, 10), np.linspace(0.9, 1.0, 10)])
    y = np.concatenate([np.linspace(-0.1, 0.1, 10), np.linspace(0.9, 1.1, 10)])
    curve = run("pms", regression(x, y), seed=0, bandwidth=0.05, response_bandwidth=5.0).curve
    assert np.abs(curve[:10, 1]).max() < 0.11
    assert np.abs(curve[10:, 1] - 1).max() < 0.11


def test_the_default_bandwidth_is_the_stated_rule(waves):
    spread = waves.points.std(axis=0, ddof=1).mean()
    value = run("pms", waves, seed=0).spec.bandwidth
    assert value == pytest.approx(0.9 * spread * 200 ** (-1 / 5))
    half = run("pms", waves, seed=0, bandwidth_scale=0.5).spec
    assert half.bandwidth == pytest.approx(value / 2)
    assert half.response_bandwidth == pytest.approx(value / 2)
    assert run("pms", waves, seed=0, bandwidth="silverman").spec.bandwidth == pytest.approx(spread * 200 ** (-1 / 6))


def test_the_spec_of_the_release_gives_the_same_release(waves):
    release = run("pms", waves, seed=0, bandwidth_scale=0.7)
    again = run("pms", waves, seed=1, **{n: getattr(release.spec, n) for n in PMSSpec.__dataclass_fields__})
    assert np.array_equal(release.curve, again.curve)


def test_a_number_of_steps_is_that_many_plain_steps(waves):
    order = np.argsort(waves.x)
    x, y, at = waves.x[order], waves.y[order], waves.y[order]
    for _ in range(3):
        weights = np.exp(-0.5 * ((x - x[:, None]) ** 2 + (y - at[:, None]) ** 2) / 0.2**2)
        at = weights @ y / weights.sum(axis=1)
    np.testing.assert_allclose(run("pms", waves, seed=0, bandwidth=0.2, n_steps=3).curve[:, 1], at, atol=1e-12)
    many = partial_mean_shift_steps(x, y, 0.2, 0.2, np.arange(200), 1000)
    # A thousand steps are the limit but where a mode is about to vanish.
    assert np.quantile(np.abs(many - fast_partial_mean_shift(x, y, 0.2, 0.2)), 0.9) < 1e-9


def test_small_blocks_give_the_same_rows(waves, monkeypatch):
    whole = {n: run("pms", waves, seed=0, n_steps=n).curve for n in (None, 4)}
    monkeypatch.setattr(module, "CHUNK", 700)
    for n, curve in whole.items():
        np.testing.assert_allclose(run("pms", waves, seed=0, n_steps=n).curve, curve, atol=1e-9)


def test_many_records_start_from_a_part_of_them_and_say_so(waves, monkeypatch):
    everyone = run("pms", waves, seed=0).curve
    monkeypatch.setattr(module, "MAX_PAIRS", 25_000)
    release = run("pms", waves, seed=0)
    assert release.guarantee.caveats == ("Started from one record in 2 only.",)
    np.testing.assert_allclose(release.curve, everyone[::2], atol=1e-9)


@given(
    pairs=st.lists(st.tuples(st.floats(0, 1), st.floats(-3, 3)), min_size=1, max_size=30),
    h_x=st.floats(0.05, 2),
    h_y=st.floats(0.1, 2),
)
def test_ends_stay_within_the_responses_and_keep_their_order(pairs, h_x, h_y):
    x, y = np.array(pairs).T
    ends = fast_partial_mean_shift(x, y, h_x, h_y)
    assert ends.min() >= y.min() - 1e-9
    assert ends.max() <= y.max() + 1e-9
    # At one predictor the step never changes the order of two responses; modes closer than this may be missed.
    same = fast_partial_mean_shift(np.zeros(len(y)), y, h_x, h_y)[np.argsort(y)]
    assert (np.diff(same) > -0.02 * h_y).all()


def test_moving_all_responses_moves_the_curve(waves):
    x, y = waves.x, waves.y
    plain = fast_partial_mean_shift(x, y, 0.1, 0.2)
    np.testing.assert_allclose(fast_partial_mean_shift(x, y + 7, 0.1, 0.2), plain + 7, atol=1e-7)
    np.testing.assert_allclose(fast_partial_mean_shift(x, -y, 0.1, 0.2), -plain, atol=1e-7)


def test_equal_responses_stay_where_they_are():
    curve = run("pms", regression(np.linspace(0, 1, 12), np.full(12, 2.5)), seed=0).curve
    np.testing.assert_allclose(curve[:, 1], 2.5)


def test_bad_data_are_refused_in_a_sentence(corners):
    with pytest.raises(DataError, match="at least 10 records, and there are 9"):
        run("pms", regression(np.linspace(0, 1, 9), np.zeros(9)), seed=0)
    with pytest.raises(DataError, match="All predictors are equal"):
        run("pms", regression(np.full(20, 0.5), np.linspace(0, 1, 20)), seed=0)
    x = np.linspace(0, 1, MAX_RECORDS + 1)
    with pytest.raises(DataError, match=f"at most {MAX_RECORDS}"):
        run("pms", regression(x, x), seed=0)
    with pytest.raises(ValueError, match="it works on regression data"):
        run("pms", corners, seed=0)
    with pytest.raises(DataError, match="no predictor and response"):
        module.pms(corners, PMSSpec(), None)


def test_private_data_are_refused():
    x = np.linspace(0, 1, 30)
    mine = Dataset(
        name="mine", kind="regression", points=np.stack([x, x], axis=1), box=np.array([[0, 1], [0, 1.0]]), private=True
    )
    with pytest.raises(DataError, match="no privacy"):
        run("pms", mine)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bandwidth", 0),
        ("bandwidth", -1.0),
        ("bandwidth", math.nan),
        ("bandwidth", "wide"),
        ("bandwidth", 1e-3),  # hardly a neighbour in y
        ("bandwidth", 1e9),
        ("bandwidth_scale", 0),
        ("response_bandwidth", math.inf),
        ("response_bandwidth", 1e-4),
        ("n_steps", -1),
        ("n_steps", 1.5),
    ],
)
def test_bad_settings_are_refused(field, value, refused, waves):
    refused(lambda: run("pms", waves, seed=0, **{field: value}), field, value)
