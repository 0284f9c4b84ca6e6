"""The map that private records pass at the release door: into the box, row by row, and once is enough."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgrams_core import DataError, Dataset
from dpgrams_core.methods.door import at_the_door

ANY = st.floats(width=64)  # NaN, infinities, denormals and both zeros among them


@st.composite
def data_sets(draw):
    """Private records of any values, in a box that a release takes."""
    d = draw(st.integers(1, 5))
    sides = []
    for _ in range(d):
        low = draw(st.floats(-1e11, 1e11))
        least = max(2e-12, 4e-9 * abs(low))
        sides.append((low, low + draw(st.floats(least, 1e11))))
    points = draw(arrays(float, st.tuples(st.integers(1, 12), st.just(d)), elements=ANY))
    return Dataset(name="mine", kind="modes", points=points, box=sides, private=True)


@given(data=data_sets(), fill=st.booleans())
def test_every_value_is_in_the_box_or_missing(data, fill):
    low, high = data.box.T
    found = at_the_door(data, fill_missing=fill)
    missing = np.isnan(data.points)
    assert found.private
    assert found.n == data.n
    inside = (found.points >= low) & (found.points <= high)
    assert (inside | (missing & np.isnan(found.points))).all()
    if fill:
        assert inside.all()
        middle = np.broadcast_to(data.box.mean(axis=1), data.points.shape)
        np.testing.assert_array_equal(found.points[missing], middle[missing])
    else:
        np.testing.assert_array_equal(np.isnan(found.points), missing)
    unmoved = (data.points >= low) & (data.points <= high)
    np.testing.assert_array_equal(found.points[unmoved], data.points[unmoved])
    np.testing.assert_array_equal(
        found.points[data.points > high], np.broadcast_to(high, unmoved.shape)[data.points > high]
    )
    np.testing.assert_array_equal(
        found.points[data.points < low], np.broadcast_to(low, unmoved.shape)[data.points < low]
    )


@given(data=data_sets(), fill=st.booleans())
def test_once_is_enough(data, fill):
    once = at_the_door(data, fill_missing=fill)
    np.testing.assert_array_equal(at_the_door(once, fill_missing=fill).points, once.points)


@given(data=data_sets(), fill=st.booleans(), more=st.data())
def test_one_record_in_is_one_record_out(data, fill, more):
    row = more.draw(st.integers(0, data.n - 1))
    points = data.points.copy()
    points[row] = more.draw(arrays(float, data.dimension, elements=ANY))
    other = Dataset(name="mine", kind="modes", points=points, box=data.box, private=True)
    one, two = (at_the_door(item, fill_missing=fill).points for item in (data, other))
    rest = np.arange(data.n) != row
    np.testing.assert_array_equal(one[rest], two[rest])
    alone = Dataset(name="mine", kind="modes", points=points[[row]], box=data.box, private=True)
    np.testing.assert_array_equal(at_the_door(alone, fill_missing=fill).points[0], two[row])
    column = more.draw(st.integers(0, data.dimension - 1))  # a response that is replaced leaves its predictor alone
    points[row] = data.points[row]
    points[row, column] = more.draw(ANY)
    third = at_the_door(
        Dataset(name="mine", kind="modes", points=points, box=data.box, private=True), fill_missing=fill
    )
    others = np.arange(data.dimension) != column
    np.testing.assert_array_equal(third.points[row, others], one[row, others])


@pytest.mark.parametrize(
    "points",
    [
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[np.inf, np.nan]], dtype=np.float16),
        np.array([[2**63, 2**64 - 1]], dtype=np.uint64),
        np.array([[True, False]]),
        [[1, None], [2.5, 3]],
        [[10**400, -(10**400)], [1, None]],
        [[Decimal("1e400"), Fraction(10**400, 3)]],
        np.array([[np.longdouble("1e4000"), 1]]),
        np.array([[5e-324, -0.0]]),
    ],
    ids=["int", "float32", "float16", "uint64", "bool", "None", "long", "Decimal", "longdouble", "denormal"],
)
def test_private_records_of_any_type_of_number(points):
    data = Dataset(name="mine", kind="modes", points=points, box=[(0, 2), (-1, 1)], private=True)
    assert data.points.dtype == float
    found = at_the_door(data, fill_missing=True).points
    assert ((found >= [0, -1]) & (found <= [2, 1])).all()


@pytest.mark.parametrize("points", [[["secretword", 1]], [[10**400, "secretword"]], [[1, 2], [3]], [[object(), 1]]])
def test_what_is_no_number_is_refused_without_being_repeated(points):
    with pytest.raises(DataError) as caught:
        Dataset(name="mine", kind="modes", points=points, box=[(0, 2), (-1, 1)], private=True)
    assert "secretword" not in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_records_that_are_not_private_are_refused_as_before(value):
    with pytest.raises(DataError, match="missing or infinite values"):
        Dataset(name="public", kind="modes", points=[[value], [1.0]], box=[(0, 2)])


def test_records_in_the_box_are_not_copied():
    data = Dataset(name="mine", kind="modes", points=np.zeros((5, 2)), box=[(-1, 1)] * 2, private=True)
    assert at_the_door(data, fill_missing=True) is data


def test_what_passes_the_door_is_private():
    data = Dataset(name="public", kind="modes", points=np.zeros((5, 2)), box=[(-1, 1)] * 2)
    assert at_the_door(data, fill_missing=True).private
