"""What tests of the ladders of errors share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def assert_first_differ_at():
    """``assert_first_differ_at(place, one, other)``: what is switched off cannot matter, to the last bit."""

    def check(place, one, other):
        assert one[:place] == other[:place]
        assert one[place] != other[place]

    return check
