"""What DP-PMS refuses, in a sentence and before anything is drawn, and what it takes at the edge."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import DataError, SpecError, load_dataset, run
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.methods.dp_pms.starts import binned_windows

CALIBRATIONS = ("experiments", "theorem", "tight")
STARTS = ("sparse", "binned")


@pytest.fixture(scope="module")
def few_waves(seed):
    return load_dataset("sinusoid", n=50, seed=seed)


@pytest.fixture(scope="session")
def design(table):
    """A maker of regression data from x and y in the box (0, 1) x (0, 2)."""

    def make(x, y, **more):
        points = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)], axis=1)
        return table(points, [(0.0, 1.0), (0.0, 2.0)], kind="regression", **more)

    return make


@pytest.mark.usefixtures("nothing_drawn")
class TestRefusedBeforeAnythingIsDrawn:
    @pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(DPPMSSpec)])
    def test_odd_values(self, field, waves):
        starts = {"starts": "binned"} if field in ("n_bins", "cleanup_radius") else {}
        calibration = {"calibration": "tight"} if field in ("gradient_clip", "density_floor", "significance") else {}
        for value in (0, -1.0, math.nan, math.inf, "odd", [], True, 1j):
            with pytest.raises(SpecError) as caught:
                run("dp_pms", waves, **(starts | calibration | {field: value}))
            assert caught.value.field == field
            assert field in str(caught.value)

    @pytest.mark.parametrize("field", ["response_grid", "evaluation_points"])
    @pytest.mark.parametrize("value", [(0.5, 0.1), (0.1, 0.1, 0.2), (0.1, math.nan), 0.5, (0.1, "x")])
    def test_unsorted_repeated_or_no_numbers(self, field, value, waves, refused):
        refused(lambda: run("dp_pms", waves, **{field: value}), field, value, "ascending order, none twice")

    def test_evaluation_points_outside_the_box(self, waves, refused):
        refused(lambda: run("dp_pms", waves, evaluation_points=(0.5, 1.5)), "evaluation_points", (0.5, 1.5), "0 to 1")

    def test_a_response_grid_outside_the_box(self, waves, refused):
        refused(lambda: run("dp_pms", waves, response_grid=(7.0, 9.0)), "response_grid", (7.0, 9.0), "-1 to 2.5")

    def test_a_response_grid_that_misses_the_data(self, design, rng):
        data = design(rng.uniform(0, 1, 40), rng.uniform(1.5, 1.9, 40))
        with pytest.raises(DataError, match=r"response grid misses the data.*nothing was drawn"):
            run("dp_pms", data, response_grid=[0.0, 0.2])
        beside = design(rng.uniform(0, 1, 40), rng.uniform(5.5, 5.9, 40))  # the responses are outside the box
        with pytest.raises(DataError, match=r"Check the box"):
            run("dp_pms", beside)

    def test_predictors_all_equal(self, design, rng):
        for starts in STARTS:
            with pytest.raises(DataError, match="All predictors are equal"):
                run("dp_pms", design(np.full(40, 0.3), rng.uniform(0, 2, 40)), starts=starts)

    def test_predictors_outside_the_box(self, design, rng):
        x = rng.uniform(0, 1, 40)
        x[:3] = 1.5
        with pytest.raises(DataError, match="3 of 40 predictors lie outside the box"):
            run("dp_pms", design(x, rng.uniform(0, 2, 40)))

    def test_fewer_than_ten_records(self, design):
        with pytest.raises(DataError, match=r"9 records.*at least 10"):
            run("dp_pms", design(np.linspace(0, 1, 9), np.ones(9)))

    def test_three_columns(self, table):
        with pytest.raises(DataError, match="3 columns"):
            run("dp_pms", table(np.zeros((20, 3)), kind="regression"))

    def test_a_bin_with_no_record_names_a_number_that_works(self, design, rng):
        x = np.concatenate([rng.uniform(0, 0.3, 20), rng.uniform(0.7, 1, 20)])
        data = design(x, rng.uniform(0, 2, 40))
        with pytest.raises(SpecError, match=r"n_bins = 10.*would hold no record") as caught:
            run("dp_pms", data, starts="binned", n_bins=10)
        named = int(re.search(r"(\d+) bins are all filled", str(caught.value))[1])
        assert binned_windows(x, named).overlap == 1
        assert 2 <= named < 10

    def test_a_batch_larger_than_the_data(self, waves, refused):
        refused(lambda: run("dp_pms", waves, batch_size=301), "batch_size", 301, "between 1 and n = 300")

    def test_too_many_starts(self, waves, refused):
        refused(lambda: run("dp_pms", waves, start_multiplier=500.0), "start_multiplier", 500.0, "at most 175.32")
        options = {"calibration": "tight", "start_multiplier": 150.0}
        refused(lambda: run("dp_pms", waves, **options), "start_multiplier", 150.0, "tight", "750 starts")

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ({"n_bins": 5}, "n_bins"),
            ({"cleanup_radius": 0.1}, "cleanup_radius"),
            ({"starts": "binned", "start_multiplier": 3.0}, "start_multiplier"),
            ({"gradient_clip": 1.0}, "gradient_clip"),
            ({"density_floor": 1.0}, "density_floor"),
            ({"significance": 2.0}, "significance"),
            ({"significance": 2.0, "calibration": "theorem"}, "significance"),
            ({"response_grid": (0.0, 1.0), "n_candidates": 5}, "n_candidates"),
            ({"evaluation_points": (0.1, 0.9), "grid_size": 5}, "grid_size"),
        ],
    )
    def test_a_setting_that_nothing_would_read(self, options, field, waves, refused):
        refused(lambda: run("dp_pms", waves, **options), field, options[field], "leave it out")

    @pytest.mark.parametrize("value", [1e-6, 1e-4, 1e7, 1e11])
    def test_an_epsilon_beyond_the_precision_of_the_accountant(self, value, waves, refused):
        options = {"calibration": "tight", "epsilon": value}
        refused(lambda: run("dp_pms", waves, **options), "epsilon", value, "between 0.001 and 1e+06")

    def test_data_of_another_kind(self, corners, refused):
        refused(lambda: run("dp_pms", corners), "method", "dp_pms", "regression data", "modes data")

    def test_delta_too_large_for_the_batch(self, waves, refused):
        options = {"batch_size": 1, "n_steps": 1}
        refused(lambda: run("dp_pms", waves, delta=0.01, **options), "delta", 0.01, "below 0.00667")


def test_for_private_data_the_response_grid_is_never_compared_with_the_responses(design, rng):
    # Refusing would tell that no response is there, and nobody paid for that.
    data = design(rng.uniform(0, 1, 40), rng.uniform(1.5, 1.9, 40), private=True)
    release = run("dp_pms", data, calibration="tight", response_grid=[0.0, 0.2], n_steps=1)
    assert len(release.curve)


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("x", [np.full(40, 0.3), np.full(40, math.nan), np.where(np.arange(40) % 2, 7.0, math.nan)])
def test_for_private_data_no_predictor_is_refused(x, starts, design, rng):
    data = design(x, rng.uniform(0, 2, 40), private=True)
    release = run("dp_pms", data, calibration="tight", starts=starts, n_steps=1)
    assert np.isfinite(release.curve).all()
    assert any("predictors are public" in caveat for caveat in release.guarantee.caveats)


def test_default_bins_are_all_filled(design, rng):
    x = np.concatenate([rng.uniform(0, 0.3, 20), rng.uniform(0.7, 1, 20)])
    release = run("dp_pms", design(x, rng.uniform(0, 2, 40)), seed=0, starts="binned")
    assert release.spec.n_bins == len(release.anchors) >= 2


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_ten_records_and_repeated_predictors_run(calibration, design, rng):
    data = design(np.repeat([0.2, 0.8], 5), rng.uniform(0, 2, 10))
    for starts in STARTS:
        release = run("dp_pms", data, seed=0, calibration=calibration, starts=starts)
        assert np.isfinite(release.curve).all()


FIELDS = [
    *("epsilon", "delta", "bandwidth", "bandwidth_scale", "clip_multiplier", "step_size", "init_fraction"),
    *("init_bandwidth", "gradient_clip", "density_floor", "significance", "reach", "merge_radius"),
]
FOLLOWING = {
    "clip_multiplier": ("gradient_clip", "density_floor"),
    "density_floor": ("gradient_clip",),
    "delta": ("epsilon",),  # with a δ of nearly 1 the rounds cost no ε at all
    "init_fraction": ("epsilon",),  # a share of nearly 1 leaves too little of ε for the ascent
}


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@given(field=st.sampled_from(FIELDS), power=st.floats(-300, 300) | st.floats(-13, 13))
def test_a_number_of_any_size_gives_a_finite_curve_or_a_sentence_that_names_it(calibration, field, power, few_waves):
    value = 10.0**power
    try:
        release = run("dp_pms", few_waves, seed=0, calibration=calibration, n_steps=3, **{field: value})
    except (SpecError, DataError) as error:
        refusal = error
    else:
        refusal = None
    if isinstance(refusal, SpecError):
        assert refusal.field in (field, *FOLLOWING.get(field, ()))
        return
    if refusal:  # no response is near a grid point
        assert field == "init_bandwidth"
        assert "response grid misses the data" in str(refusal)
        return
    assert field == "bandwidth_scale" or getattr(release.spec, field) == value  # it is a part of the bandwidth then
    assert np.isfinite(release.curve).all()
    assert 0 < release.noise_scale < math.inf
    assert 0 < release.guarantee.epsilon <= release.spec.epsilon * (1 + 1e-9)


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("field", FIELDS)
def test_a_number_beyond_any_use_is_refused_by_its_name(field, few_waves, refused):
    for calibration in CALIBRATIONS:
        for value in (1e300,) if field == "init_fraction" else (1e-300, 1e300):
            options = {"calibration": calibration, field: value}
            refused(lambda options=options: run("dp_pms", few_waves, **options), field, value)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_a_number_a_little_beside_the_default_is_taken(calibration, few_waves):
    defaults = run("dp_pms", few_waves, seed=0, calibration=calibration, n_steps=3).spec
    read = [field for field in FIELDS if getattr(defaults, field) is not None]
    assert len(read) >= 9
    for field in read:
        value = 0.9 * getattr(defaults, field)
        release = run("dp_pms", few_waves, seed=0, calibration=calibration, n_steps=3, **{field: value})
        assert getattr(release.spec, field) == value
        assert np.isfinite(release.curve).all()
