"""Every bad setting is refused with field, value and range, and before anything is drawn."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from dpgrams_core import METHODS, SpecError, load_dataset, run
from dpgrams_core.methods.baselines.mean_shift import MeanShiftSpec
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.dp_grams.starts import MAX_CANDIDATES, public_grid
from dpgrams_core.model.specs import make_spec, settings_of

NUMBERS = [
    "epsilon",
    "delta",
    "bandwidth",
    "bandwidth_scale",
    "clip_multiplier",
    "step_size",
    "init_bandwidth",
    "suppression_radius",
    "init_fraction",
    "beta",
]
COUNTS = ["batch_size", "n_steps", "n_starts", "n_modes"]
THEOREM_NUMBERS = ["gradient_clip", "density_floor"]


@pytest.mark.usefixtures("nothing_drawn")
class TestRefusedBeforeAnythingIsDrawn:
    @pytest.mark.parametrize("field", NUMBERS)
    @pytest.mark.parametrize(
        ("value", "words"),
        [(0, "above 0|between|above 2"), (-1.0, "above 0|between|above 2"), (math.nan, "finite"), (math.inf, "finite")],
    )
    def test_numbers(self, field, value, words, corners, refused):
        message = refused(lambda: run("dp_grams", corners, **{field: value}), field, value)
        assert re.search(words, message)

    @pytest.mark.parametrize("field", [name for name in NUMBERS if name != "bandwidth"])
    @pytest.mark.parametrize("value", ["wide", [1.0], True, 1j])
    def test_what_is_not_a_number(self, field, value, corners, refused):
        refused(lambda: run("dp_grams", corners, **{field: value}), field, value, "must be a number")

    @pytest.mark.parametrize("field", THEOREM_NUMBERS)
    @pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "x", 1e-300])
    def test_numbers_of_the_theorem(self, field, value, corners, refused):
        refused(lambda: run("dp_grams", corners, calibration="theorem", **{field: value}), field, value)

    @pytest.mark.parametrize("field", THEOREM_NUMBERS)
    def test_numbers_of_the_theorem_in_the_other_calibration(self, field, corners, refused):
        refused(lambda: run("dp_grams", corners, **{field: 0.1}), field, 0.1, "theorem")

    @pytest.mark.parametrize("field", COUNTS)
    @pytest.mark.parametrize("value", [0, -3, 2.5, math.nan, math.inf, "many", True])
    def test_counts(self, field, value, corners, refused):
        refused(lambda: run("dp_grams", corners, **{field: value}), field, value, "whole number of at least 1")

    @pytest.mark.parametrize("field", [name for name in COUNTS if name != "batch_size"])
    def test_counts_have_an_upper_bound(self, field, corners, refused):
        refused(lambda: run("dp_grams", corners, **{field: 1001}), field, 1001, "at most 1000")

    def test_a_batch_larger_than_the_data(self, corners, refused):
        refused(lambda: run("dp_grams", corners, batch_size=301), "batch_size", 301, "between 1 and n = 300")

    @pytest.mark.parametrize("value", [1.0, 1.5])
    def test_delta_of_one_and_above(self, value, corners, refused):
        refused(lambda: run("dp_grams", corners, delta=value), "delta", value, "between 0 and 1")

    def test_delta_too_small_for_the_formula(self, corners, refused):
        refused(lambda: run("dp_grams", corners, delta=1e-320), "delta", 1e-320, "at least 1e-100")

    @pytest.mark.parametrize("value", [1e-5, 1e5])
    def test_a_bandwidth_far_from_the_size_of_the_box(self, value, corners, refused):
        for method in ("dp_grams", "mean_shift"):
            call = lambda method=method: run(method, corners, bandwidth=value)  # noqa: E731
            refused(call, "bandwidth", value, "between 0.00014 and 1.4e+04")

    def test_a_scale_that_makes_the_bandwidth_too_small(self, corners, refused):
        refused(lambda: run("dp_grams", corners, bandwidth_scale=1e-9), "bandwidth_scale", 1e-9, "between 0.00014")

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            ("kernel", "triangle", ("gaussian", "gaussian4", "legendre4")),
            ("calibration", "exact", ("experiments", "theorem")),
            ("bandwidth", "scott", ("above 0", "rate", "h_opt", "silverman")),
            ("kernel", 3, ("gaussian",)),
            ("sigma", 2.0, ("no such option", "epsilon", "clip_multiplier")),
        ],
    )
    def test_unknown_names(self, field, value, words, corners, refused):
        refused(lambda: run("dp_grams", corners, **{field: value}), field, value, *words)

    def test_an_unknown_method(self, corners, refused):
        refused(lambda: run("dp_magic", corners), "method", "dp_magic", "dp_grams", "mean_shift")

    def test_a_method_for_another_kind_of_data(self, table, refused):
        other = table([[0.0], [1.0], [2.0]], kind="regression")
        refused(lambda: run("dp_grams", other), "method", "dp_grams", "modes data", "regression data")

    @pytest.mark.parametrize("value", [-1, 1.5, "x", math.nan])
    def test_a_bad_seed(self, value, corners, refused):
        refused(lambda: run("dp_grams", corners, seed=value), "seed", value, "at least 0")

    def test_the_theorem_needs_a_smooth_kernel(self, corners, refused):
        options = {"calibration": "theorem", "kernel": "legendre4"}
        refused(lambda: run("dp_grams", corners, **options), "kernel", "legendre4", "I_1", "gaussian4")

    def test_delta_too_large_for_the_batch(self, corners, refused):
        options = {"batch_size": 1, "n_steps": 1}  # delta_0 = n delta / (2 T m) must stay below 1
        refused(lambda: run("dp_grams", corners, delta=0.01, **options), "delta", 0.01, "below 0.00667")

    @pytest.mark.parametrize("value", [[], [1.0, 2.0], "grid", [[math.nan, 0.0]], [["a", "b"]], [[10**400, 0]]])
    def test_candidates_that_are_no_table(self, value, corners):
        with pytest.raises(SpecError, match=r"candidates.*finite numbers"):
            run("dp_grams", corners, candidates=value)

    def test_candidates_of_the_wrong_width(self, corners):
        with pytest.raises(SpecError, match=r"candidates.*3 columns.*2 columns"):
            run("dp_grams", corners, candidates=[[0.0, 0.0, 0.0]])

    def test_candidates_outside_the_box(self, corners):
        with pytest.raises(SpecError, match=r"candidates.*1 of 2 points outside.*in the box"):
            run("dp_grams", corners, candidates=[[0.0, 0.0], [7.1, 0.0]])

    def test_too_many_candidates(self, corners):
        with pytest.raises(SpecError, match=r"candidates.*200,001 points.*200,000"):
            run("dp_grams", corners, candidates=np.zeros((MAX_CANDIDATES + 1, 2)))

    def test_a_grid_that_is_too_large(self, corners, refused):
        refused(lambda: run("dp_grams", corners, init_bandwidth=0.01), "init_bandwidth", 0.01, "1,962,801", "200,000")

    def test_a_default_that_follows_from_an_absurd_setting(self, corners):
        # p_floor = G_K / clip_multiplier and A = p_floor / h leave the allowed range; the multiplier does not.
        with pytest.raises(SpecError, match=r"(density_floor|gradient_clip) = .*between 1e-12 and 1e\+12"):
            run("dp_grams", corners, calibration="theorem", clip_multiplier=1e12)

    def test_fewer_than_three_records(self, table, refused):
        refused(lambda: run("dp_grams", table([[0.0], [1.0]])), "n", 2, "at least 3")

    @pytest.mark.parametrize("value", ["x", math.nan, 2.0, -1])
    def test_mean_shift_checks_its_own_settings(self, value, corners, refused):
        refused(lambda: run("mean_shift", corners, beta=value, bandwidth="h_opt"), "beta", value)
        refused(lambda: run("mean_shift", corners, epsilon=1.0), "epsilon", 1.0, "no such option", "bandwidth")


@pytest.mark.parametrize("n", [49, 0, -5, 1_000_001, 99.5, math.nan, "many", None])
def test_a_data_set_of_a_bad_size_is_refused(n, refused):
    if n is None:
        assert load_dataset("four_corners").n == 5000
    else:
        refused(lambda: load_dataset("four_corners", n=n), "n", n, "at least 50 and at most 1000000")


def test_an_unknown_data_set_is_refused(refused):
    refused(lambda: load_dataset("five_corners"), "dataset", "five_corners", "four_corners", "t_mixture")


BOXES = {
    "square": [(-7, 7)] * 2,
    "line": [(0, 1)],
    "shifted": [(3.3, 4.1), (-9.7, -2.2)],
    "long and thin": [(0, 1000), (0, 0.001)],
    **{f"{d} dimensions": [(0, 1)] * d for d in (3, 4, 5, 6, 7, 10)},
}


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES.keys())
@pytest.mark.parametrize("fineness", [2.0, 10.0, 1e6])
def test_the_init_bandwidth_that_the_message_names_really_fits(box, fineness):
    box = np.array(box, dtype=float)
    too_fine = float(np.prod(box[:, 1] - box[:, 0]) / MAX_CANDIDATES) ** (1 / len(box)) / fineness
    with pytest.raises(SpecError) as caught:
        public_grid(box, too_fine)
    named = re.search(r"an init_bandwidth of (\S+) fits this box", str(caught.value))
    assert named is not None
    grid = public_grid(box, float(named[1]))
    assert MAX_CANDIDATES / 50 < len(grid) <= MAX_CANDIDATES  # and it is not wastefully wide


def test_a_box_that_no_grid_fits_says_so():
    # The thin side holds a grid point only at spacings that make the long side far too fine.
    with pytest.raises(SpecError, match="give candidates instead"):
        public_grid(np.array([[0.0, 1000.0], [0.0003, 0.0013]]), 1e-4)


@pytest.mark.parametrize(("low", "high"), [(0.0003, 0.0013), (0.1001, 0.112351), (1.0, 1.5)])
def test_a_grid_that_misses_the_box_names_a_width_that_does_not(low, high):
    box = np.array([[low, high]])
    with pytest.raises(SpecError) as caught:
        public_grid(box, 0.9 * low + 10.0)
    named = re.search(r"it must be at most (\S+)\.$", str(caught.value))
    assert named is not None
    assert len(public_grid(box, float(named[1]))) >= 1


def test_a_spec_is_frozen_and_keyword_only():
    spec = DPGramsSpec(epsilon=2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.epsilon = 3.0
    with pytest.raises(TypeError):
        DPGramsSpec(1.0)
    assert hash(spec) == hash(DPGramsSpec(epsilon=2.0))  # the pages cache on specs


def test_whole_numbers_are_kept_as_ints_and_candidates_as_tuples():
    spec = DPGramsSpec(n_steps=3.0, batch_size=np.int64(7), candidates=[[0, 1], [2, 3]])
    assert (spec.n_steps, type(spec.n_steps), type(spec.batch_size)) == (3, int, int)
    assert spec.candidates == ((0.0, 1.0), (2.0, 3.0))
    assert MeanShiftSpec(n_modes=4.0).n_modes == 4


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(SpecError, match=r"speed.*bandwidth, bandwidth_scale, beta, n_modes"):
        make_spec(MeanShiftSpec, {"speed": 1})


SPECS = [method.spec for method in METHODS.values()]


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.__name__)
class TestWhatASpecDeclares:
    def test_every_setting_has_a_label_and_a_sentence(self, kind):
        for name, declared in settings_of(kind).items():
            assert declared.label, name
            assert declared.words.endswith("."), name
            assert declared.default == getattr(kind(), name)

    def test_every_stop_of_a_slider_and_every_choice_is_allowed(self, kind):
        for name, declared in settings_of(kind).items():
            for value in (*declared.steps, *(declared.choices or ())):
                assert declared.checked(name, value) == value

    def test_what_is_beyond_the_declared_range_is_refused(self, kind):
        for name, declared in settings_of(kind).items():
            if declared.choices is None and name not in ("candidates", "response_grid", "evaluation_points"):
                beyond = [declared.low - 1, *declared.excluded] + ([declared.high * 2] if declared.high else [])
                for value in beyond:
                    with pytest.raises(SpecError, match=name):
                        kind(**{name: value})

    @pytest.mark.parametrize("value", [1e-101, 0.0, 1.0, -1, math.nan, "x"])
    def test_one_rule_for_delta(self, kind, value):
        if "delta" in settings_of(kind):
            assert kind(delta=1e-100).delta == 1e-100
            with pytest.raises(SpecError, match="delta"):
                kind(delta=value)

    @pytest.mark.parametrize("value", [-1, 2, math.inf, "x", None])
    def test_one_rule_for_beta(self, kind, value):
        if "beta" in settings_of(kind):
            with pytest.raises(SpecError, match="beta"):
                kind(beta=value)


def test_a_smoothness_that_no_rate_has_is_refused_before_the_bandwidth_is_computed(corners, refused):
    refused(lambda: run("functional", corners, bandwidth="h_opt", beta=-1), "beta", -1, "above 2")
