"""Synthetic twins: where their records lie, how wide their groups are, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core import load_dataset, run
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics.merging import merge
from dpgrams_core.numerics.sketch import PAIRS, ReleasedSketch, feature_sums
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.own_data.twin import twin


@pytest.fixture(scope="module")
def corners_release(seed):
    return run("functional", load_dataset("four_corners", n=5000, seed=seed), epsilon=1.0, seed=seed)


def quadrants(points):
    return (points > 0) @ np.array([1, 2])


def test_four_corners_come_back(corners_release, seed):
    data = twin(corners_release.surface, seed=seed)
    assert (data.name, data.kind, data.private, data.n, data.true_modes) == ("twin", "modes", False, 5000, None)
    np.testing.assert_array_equal(data.box, corners_release.surface.box)
    shares = np.bincount(quadrants(data.points), minlength=4) / data.n
    # Twice 5000 records: a share has a standard error below 0.009, and the release's noise adds a few per cent.
    np.testing.assert_allclose(shares, 0.25, atol=0.07)
    for corner in range(4):
        group = data.points[quadrants(data.points) == corner]
        np.testing.assert_allclose(np.abs(group.mean(axis=0)), 3.0, atol=0.3)


@pytest.mark.slow
def test_mean_shift_on_the_twin_finds_the_four_modes(corners_release, seed):
    points = twin(corners_release.surface, n=1500, seed=seed).points
    x = points[::5].copy()
    for _ in range(60):
        weights = np.exp(-0.5 * ((x[:, None] - points[None]) ** 2).sum(axis=-1))
        x = weights @ points / weights.sum(axis=1, keepdims=True)
    modes = merge(x, 1.0, None)
    truth = np.array([(3, 3), (3, -3), (-3, 3), (-3, -3)])
    distance = np.linalg.norm(truth[:, None] - modes[None], axis=-1)
    assert (distance.min(axis=1) < 0.5).all()


def test_the_smoothing_is_undone(corners_release, seed):
    surface = corners_release.surface
    assert surface.bandwidth > 0.7  # otherwise there would be little to undo
    for width in (surface.bandwidth, 1.5 * surface.bandwidth):
        points = twin(surface, seed=seed, bandwidth=width).points
        variance = np.mean([points[quadrants(points) == corner].var(axis=0) for corner in range(4)])
        # The truth is 1, and 1 + width^2 without the correction; where smoothed groups overlap a part of it stays.
        assert 0.75 < variance < 1 + 0.3 * width**2


@pytest.mark.parametrize("d", [1, 3])
def test_one_and_three_columns(d, rng, seed):
    box = np.array([[-8.0, 8.0]] * d)
    points = rng.normal(2, 1, (3000, d))
    surface = ReleasedSurface(coefficients(points, box_bases(box, 1.5)), box, 1.5, 6.0, 3000)
    drawn = twin(surface, seed=seed).points
    np.testing.assert_allclose(drawn.mean(axis=0), 2.0, atol=0.3)
    np.testing.assert_allclose(drawn.std(axis=0), 1.0, atol=0.3)


@pytest.mark.parametrize("d", [4, 6])
def test_a_sketch_has_a_twin_too(d, rng, seed):
    box = np.array([[-8.5, 8.5]] * d)
    centres = np.stack([np.full(d, 4.0), np.full(d, -3.0)])
    points = centres[rng.integers(0, 2, 4000)] + rng.normal(0, 1, (4000, d))
    exact = feature_sums(points, box, 2.2, 16)
    sketch = ReleasedSketch(exact + 6 * rng.standard_normal(exact.shape), box, 2.2, 6.0, 4000)
    drawn = twin(sketch, n=1500, seed=seed).points
    distance = np.linalg.norm(drawn[:, None] - centres[None], axis=-1)
    nearest = distance.argmin(axis=1)
    assert (distance.min(axis=1) < 3 * np.sqrt(d)).mean() > 0.95  # few records of noise
    for k in range(2):
        group = drawn[nearest == k]
        assert 0.3 < len(group) / 1500 < 0.7
        np.testing.assert_allclose(group.mean(axis=0), centres[k], atol=1.0)
        assert group.std(axis=0).mean() < 1.9  # smoothed it would be at least 2.4


def test_seeds_repeat_and_differ(corners_release):
    first, same, other = (twin(corners_release.surface, n=200, seed=seed).points for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


def test_drawing_a_twin_changes_nothing_of_the_release(corners_release):
    before = corners_release.surface.coefficients.copy()
    twin(corners_release.surface, n=100)
    np.testing.assert_array_equal(before, corners_release.surface.coefficients)


def test_noise_alone_has_no_twin(rng):
    box = np.array([[-5.0, 5.0]] * 2)
    shape = tuple(len(basis.whitening) for basis in box_bases(box, 1.0))
    refusals = 0
    for _ in range(12):  # each passes with a chance of about 0.1 %
        try:
            twin(ReleasedSurface(10 * rng.standard_normal(shape), box, 1.0, 10.0, 500))
        except DataError as error:
            refusals += "stands above its noise" in str(error)
    assert refusals >= 9
    nothing = ReleasedSketch(np.zeros(2 * PAIRS), np.array([[-5.0, 5.0]] * 5), 1.0, 10.0, 500)
    with pytest.raises(DataError, match="stands above its noise"):
        twin(nothing)


@pytest.mark.parametrize(
    ("field", "value"), [("n", 0), ("n", 2.5), ("n", 10**9), ("seed", -1), ("bandwidth", 0.0), ("bandwidth", 1e-3)]
)
def test_bad_values_get_a_sentence(corners_release, field, value):
    with pytest.raises(SpecError, match=field):
        twin(corners_release.surface, **{field: value})
