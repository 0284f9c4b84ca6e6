"""What holds for every setting, however odd."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpgrams_core import SpecError, load_dataset, run
from dpgrams_core.methods.baselines.mean_shift import MeanShiftSpec
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.model.checks import LARGEST, SMALLEST, SMALLEST_EPSILON
from dpgrams_core.model.specs import make_spec

sizes = st.floats(SMALLEST, LARGEST)
counts = st.integers(1, 1000)
good = st.fixed_dictionaries(
    {},
    optional={
        "epsilon": st.floats(SMALLEST_EPSILON, LARGEST),
        "delta": st.floats(1e-100, 1, exclude_max=True),
        "kernel": st.sampled_from(["gaussian", "gaussian4", "legendre4"]),
        "bandwidth": st.one_of(st.none(), sizes, st.sampled_from(["rate", "h_opt", "silverman", "box_rate"])),
        "bandwidth_scale": st.one_of(st.none(), sizes),
        "beta": st.floats(2, 50, exclude_min=True),
        "clip_multiplier": sizes,
        "batch_size": st.one_of(st.none(), counts),
        "n_steps": st.one_of(st.none(), counts),
        "n_starts": st.one_of(st.none(), counts, counts.map(float)),
        "init_fraction": st.floats(0, 1, exclude_min=True, exclude_max=True),
        "n_modes": st.one_of(st.none(), counts),
        "candidates": st.one_of(st.none(), st.lists(st.tuples(sizes, sizes), min_size=1, max_size=4)),
    },
)
NUMBERS = ["epsilon", "delta", "bandwidth", "bandwidth_scale", "clip_multiplier", "step_size", "init_fraction"]
NUMBERS += ["suppression_radius", "init_bandwidth", "gradient_clip", "density_floor", "beta"]
FIELDS = [field.name for field in dataclasses.fields(DPGramsSpec)]
odd = st.one_of(
    st.floats(),
    st.integers(),
    st.integers(10**300, 10**320),
    st.text(max_size=5),
    st.none(),
    st.booleans(),
    st.complex_numbers(),
    st.lists(st.floats(), max_size=2),
    st.fractions(),
    st.decimals(),
    st.floats(width=32).map(np.float32),
    st.just(10**5000),
)


@given(options=good)
def test_a_spec_is_the_same_after_a_round_trip(options):
    spec = make_spec(DPGramsSpec, options)
    again = make_spec(DPGramsSpec, dataclasses.asdict(spec))
    assert again == spec
    assert hash(again) == hash(spec)
    for name, value in options.items():
        if name != "candidates":
            assert getattr(spec, name) == value


def error_of(kind, options):
    """The SpecError of these options, or None; any other exception passes and fails the test."""
    try:
        make_spec(kind, options)
    except SpecError as error:
        return error
    return None


@pytest.mark.parametrize("field", FIELDS)
@given(value=odd, theorem=st.booleans())
@settings(max_examples=40)
def test_an_odd_value_is_taken_or_refused_with_a_spec_error_and_nothing_else(field, value, theorem):
    error = error_of(DPGramsSpec, {"calibration": "theorem" if theorem else "experiments", field: value})
    assert error is None or (error.field == field and field in str(error))


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(MeanShiftSpec)])
@given(value=odd)
@settings(max_examples=25)
def test_the_same_for_mean_shift(field, value):
    error = error_of(MeanShiftSpec, {field: value})
    assert error is None or (error.field == field and field in str(error))


@pytest.fixture(scope="module")
def small(seed):
    return load_dataset("four_corners", n=60, seed=seed)


@given(
    field=st.sampled_from(NUMBERS),
    power=st.floats(-330, 308),
    kernel=st.sampled_from(["gaussian", "gaussian4"]),
    theorem=st.booleans(),
)
@example(field="clip_multiplier", power=12.0, kernel="gaussian", theorem=True)
@example(field="step_size", power=12.0, kernel="gaussian4", theorem=False)
@example(field="delta", power=-320.0, kernel="gaussian", theorem=False)
def test_a_number_of_any_size_gives_finite_modes_or_a_spec_error(field, power, kernel, theorem, small):
    value = 10.0**power
    options = {"calibration": "theorem"} if theorem or field in ("gradient_clip", "density_floor") else {}
    try:
        release = run("dp_grams", small, seed=0, kernel=kernel, **(options | {field: value}))
    except SpecError:
        return
    assert np.isfinite(release.modes).all()
    assert math.isfinite(release.noise_scale)
    assert release.guarantee.epsilon <= release.spec.epsilon * (1 + 1e-9)
