"""What holds for every sketch and every twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgrams_core.model.errors import DataError
from dpgrams_core.numerics import sketch as module
from dpgrams_core.numerics.sketch import (
    PAIRS,
    SKETCH_SENSITIVITY,
    VERTICES,
    ReleasedSketch,
    feature_sums,
    public_points,
)
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.own_data.twin import twin

anything = st.floats(-1e300, 1e300, allow_nan=False)
places = st.floats(-20, 20)


@given(
    d=st.integers(1, 9),
    h=st.floats(1e-3, 1e3),
    blocks=st.integers(1, 4),
    numbers=st.lists(st.one_of(anything, places), min_size=18, max_size=18),
)
def test_no_two_records_are_farther_apart_than_the_sensitivity(d, h, blocks, numbers):
    box = np.array([[-10.0, 10.0]] * d)
    record, other = (np.array(numbers[start : start + d]) for start in (0, 9))
    one, two = (feature_sums(point[None], box, h, blocks) for point in (record, other))
    assert np.linalg.norm(one) <= 1
    assert np.linalg.norm(one - two) <= SKETCH_SENSITIVITY


@given(
    corners=arrays(float, (1, VERTICES, 2), elements=st.floats(-50, 50)),
    record=arrays(float, (2,), elements=places),
    other=arrays(float, (2,), elements=places),
)
def test_the_bound_does_not_rest_on_which_vertices_they_are(corners, record, other):
    box, usual = np.array([[-10.0, 10.0]] * 2), module.vertices
    module.vertices = lambda d, blocks: corners
    try:
        one, two = (feature_sums(point[None], box, 1.0, 1) for point in (record, other))
    finally:
        module.vertices = usual
    assert np.linalg.norm(one - two) <= SKETCH_SENSITIVITY


@given(parts=st.lists(st.integers(0, 30), min_size=2, max_size=5), numbers=st.integers(0, 2**31))
def test_sums_over_parts_add_up(parts, numbers):
    box = np.array([[-1.0, 1.0]] * 4)
    points = np.random.default_rng(numbers).normal(0, 1, (sum(parts), 4))
    pieces = np.split(points, np.cumsum(parts)[:-1])
    total = sum(feature_sums(piece, box, 0.8, 2) for piece in pieces)
    np.testing.assert_allclose(total, feature_sums(points, box, 0.8, 2), atol=1e-10)


@given(d=st.integers(1, 12), count=st.integers(1, 300), low=st.floats(-1e6, 1e6), side=st.floats(1e-3, 1e6))
def test_public_places_lie_in_the_box(d, count, low, side):
    box = np.array([[low, low + side]] * d)
    found = public_points(box, count)
    assert found.shape == (count, d)
    assert ((found >= box[:, 0]) & (found <= box[:, 1])).all()


@given(numbers=st.integers(0, 2**31), width=st.floats(1, 5))
@settings(max_examples=20)
def test_smoothing_lowers_the_noise_and_nothing_is_infinite(numbers, width):
    rng = np.random.default_rng(numbers)
    box = np.array([[-2.0, 2.0]] * 4)
    sketch = ReleasedSketch(rng.standard_normal(2 * PAIRS), box, 0.5, 1.0, 100)
    x = rng.uniform(-1e6, 1e6, (5, 4))
    assert (sketch.noise_at(x, width * 0.5) <= sketch.noise_at(x) * (1 + 1e-12)).all()
    assert all(np.isfinite(part).all() for part in sketch.heat(x, width * 0.5))


@given(
    d=st.integers(1, 4),
    n=st.integers(1, 60),
    centre=st.floats(-3, 3),
    spread=st.floats(0, 3),
    noise=st.floats(0.01, 30),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=25)
def test_a_twin_lies_in_the_box_or_is_refused_with_a_sentence(d, n, centre, spread, noise, seed):
    rng = np.random.default_rng(seed)
    box = np.array([[-3.0, 3.0]] * d)
    points = rng.normal(centre, spread, (200, d))
    if d <= 3:
        exact = coefficients(points, box_bases(box, 1.0))
        release = ReleasedSurface(exact + noise * rng.standard_normal(exact.shape), box, 1.0, noise, 200)
    else:
        exact = feature_sums(points, box, 1.0, 1)
        release = ReleasedSketch(exact + noise * rng.standard_normal(exact.shape), box, 1.0, noise, 200)
    try:
        data = twin(release, n=n, seed=seed)
    except DataError:
        with pytest.raises(DataError, match="stands above its noise"):
            twin(release, n=n, seed=seed)
        return
    assert data.points.shape == (n, d)
    assert ((data.points >= box[:, 0]) & (data.points <= box[:, 1])).all()
    assert not data.private


def test_the_constant_is_what_the_head_of_the_file_says():
    assert math.isclose(SKETCH_SENSITIVITY, 1.437, abs_tol=5e-4)
