"""The errors a user can meet."""

from __future__ import annotations

import pickle

from dpgrams_core.model.errors import DataError, SpecError


def test_a_spec_error_is_one_sentence_with_field_value_and_range():
    error = SpecError("epsilon", -1, "it must be above 0")
    assert str(error) == "epsilon = -1 is not allowed: it must be above 0."
    assert isinstance(error, ValueError)


def test_a_spec_error_survives_the_way_between_processes():
    error = SpecError("n", 3, "at least 50")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is SpecError
    assert (copy.field, copy.value, copy.allowed, str(copy)) == ("n", 3, "at least 50", str(error))


def test_a_value_too_long_for_the_screen_is_cut():
    assert len(str(SpecError("n", 10**4000, "at most 10"))) < 400
    assert "too long" in str(SpecError("n", 10**5000, "at most 10"))  # Python itself refuses to print this


def test_a_data_error_is_no_spec_error():
    assert not issubclass(DataError, SpecError)
