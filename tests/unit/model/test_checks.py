"""The checks on public values: each gives the value back or a sentence that says what is allowed."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpgrams_core import SpecError
from dpgrams_core.model.checks import (
    LARGEST,
    SMALLEST,
    SMALLEST_EPSILON,
    asked_epsilon,
    between,
    box_of,
    finite,
    one_of,
    positive,
    whole,
)

NOT_NUMBERS = ["1", None, [1.0], True, np.True_, 1j, Decimal(1), np.array(1.0)]


@pytest.mark.parametrize("check", [finite, positive], ids=["finite", "positive"])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_not_a_number_is_refused(check, value, refused):
    refused(lambda: check("epsilon", value), "epsilon", value, "must be a number")


@pytest.mark.parametrize("check", [finite, positive], ids=["finite", "positive"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), 10**309])
def test_infinite_and_nan_are_refused(check, value):
    # A whole number may be too large for a float; that is not the user's OverflowError to read.
    with pytest.raises(SpecError, match="finite") as caught:
        check("epsilon", value)
    assert repr(value)[:300] in str(caught.value)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), Fraction(4, 2)])
def test_any_kind_of_real_number_is_taken_as_a_float(value):
    for number in (finite("x", value), positive("x", value), between("x", value, 1, 3)):
        assert number == 2.0
        assert type(number) is float


@pytest.mark.parametrize("value", [0, -0.0, -1, -1e-300])
def test_positive_refuses_zero_and_below(value, refused):
    refused(lambda: positive("bandwidth", value), "bandwidth", value, "above 0")


@pytest.mark.parametrize("value", [5e-324, SMALLEST / 1.01, LARGEST * 1.01, 1e308])
def test_positive_refuses_numbers_that_would_overflow_a_formula(value, refused):
    refused(lambda: positive("bandwidth", value), "bandwidth", value, "1e-12", "1e+12")


def test_positive_keeps_both_of_its_bounds():
    assert positive("x", SMALLEST) == SMALLEST
    assert positive("x", LARGEST) == LARGEST


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5])
def test_between_is_strict(value, refused):
    refused(lambda: between("delta", value, 0, 1), "delta", value, "strictly between 0 and 1")


@pytest.mark.parametrize("value", [3, 3.0, np.int32(3), np.float64(3), Fraction(6, 2)])
def test_whole_takes_any_whole_number_as_an_int(value):
    assert whole("n", value, 1) == 3
    assert type(whole("n", value, 1)) is int


@pytest.mark.parametrize("value", [0, 11, 2.5, math.nan, math.inf, -math.inf, "3", None, True, [3]], ids=repr)
def test_whole_refuses_with_the_range(value, refused):
    refused(lambda: whole("n", value, 1, 10), "n", value, "whole number of at least 1 and at most 10")


def test_whole_without_an_upper_bound_takes_any_size():
    assert whole("seed", 10**400, 0) == 10**400


def test_one_of_lists_what_may_be_chosen(refused):
    assert one_of("kernel", "a", {"a", "b"}) == "a"
    for value in ("c", 3, None, ["a"]):
        refused(lambda value=value: one_of("kernel", value, {"b", "a"}), "kernel", value, "one of a, b")


@pytest.mark.parametrize(
    "value",
    [[], [1, 2], [[1, 2, 3]], [[1], [2, 3]], "box", None, {"a": 1}, [["a", "b"]], [[1, 2j]]],
    ids=repr,
)
def test_a_box_of_the_wrong_shape_is_refused(value, refused):
    refused(lambda: box_of(value), "box", value, "(lower, upper) pair")


@pytest.mark.parametrize("value", [[[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0], [3.0, 2.0]]])
def test_an_empty_box_is_refused(value, refused):
    refused(lambda: box_of(value), "box", value, "empty", "below its upper bound")


@pytest.mark.parametrize("value", [[[0.0, math.inf]], [[math.nan, 1.0]]])
def test_an_endless_box_is_refused(value, refused):
    refused(lambda: box_of(value), "box", value, "finite")


def test_a_good_box_keeps_its_numbers():
    assert box_of(((0, 1), (-2, 3))).tolist() == [[0.0, 1.0], [-2.0, 3.0]]


@pytest.mark.parametrize("value", [9.99e-7, 1e-9, SMALLEST])
def test_a_budget_below_the_least_is_refused_with_its_range(value, refused):
    refused(lambda: asked_epsilon("epsilon", value), "epsilon", value, "between 1e-06 and 1e+12")
    assert asked_epsilon("epsilon", SMALLEST_EPSILON) == 1e-6
