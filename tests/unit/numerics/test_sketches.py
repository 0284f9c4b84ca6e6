"""The released sketch: features, evaluation, smoothing, merging, saving; and its sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.naive import feature_sums_naive
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics import sketch as module
from dpgrams_core.numerics.sketch import (
    MOST_BLOCKS,
    PAIRS,
    SKETCH_SENSITIVITY,
    VERTICES,
    ReleasedSketch,
    check_resolution,
    choose_blocks,
    feature_sums,
    public_points,
    vertices,
)
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients

BLOCKS = 8


def exact_sketch(points, box, h, blocks=BLOCKS, noise_scale=1.0):
    return ReleasedSketch(feature_sums(points, box, h, blocks), box, h, noise_scale, len(points))


@pytest.fixture(params=[2, 4, 6], ids="d={}".format)
def case(request, rng, case_in):
    return case_in(request.param, 1.3, rng)


def test_the_fast_sums_are_the_naive_ones_in_any_chunks(case):
    points, box, h, _ = case
    naive = feature_sums_naive(points, box, h, BLOCKS)
    np.testing.assert_allclose(feature_sums(points, box, h, BLOCKS), naive, atol=1e-12)
    np.testing.assert_allclose(feature_sums(points, box, h, BLOCKS, chunk=7), naive, atol=1e-12)


def test_without_noise_the_sketch_is_the_kernel_sum_up_to_the_stated_error(case, kernel_sum):
    points, box, h, x = case
    for width in (h, 1.6 * h):
        exact = kernel_sum(points, x, width) * (h / width) ** len(box)
        error = exact_sketch(points, box, h, MOST_BLOCKS).value(x, width) - exact
        # Forty errors of about 1 / (N sqrt(blocks)), and ten times that for what they may have in common.
        assert np.abs(error).max() < 10 * math.sqrt(len(points)) / (VERTICES * math.sqrt(MOST_BLOCKS))


def test_more_blocks_bring_less_error(rng, kernel_sum):
    box = np.array([[-9.0, 9.0]] * 5)
    points, x = rng.normal(0, 1, (500, 5)), rng.uniform(-9, 9, (400, 5))
    exact = kernel_sum(points, x, 1.5)
    few, many = (np.std(exact_sketch(points, box, 1.5, blocks).value(x) - exact) for blocks in (1, 32))
    assert many < 0.5 * few  # one over the root of 32, in expectation


def test_it_agrees_with_the_surface_in_two_columns(rng):
    box = np.array([[-5.0, 5.0], [-4.0, 4.0]])
    points, x = rng.normal(0, 1, (400, 2)), rng.uniform(-2, 2, (30, 2))
    surface = ReleasedSurface(coefficients(points, box_bases(box, 1.0)), box, 1.0, 1.0, 400)
    sketch = exact_sketch(points, box, 1.0, MOST_BLOCKS)
    for width in (None, 1.5):
        peak = float(surface.value(np.zeros((1, 2)), width)[0])
        np.testing.assert_allclose(sketch.value(x, width), surface.value(x, width), atol=0.1 * peak)
        np.testing.assert_allclose(sketch.density(x, width), surface.density(x, width), atol=0.02)
        np.testing.assert_allclose(sketch.gradient(x, width), surface.gradient(x, width), atol=0.2 * peak)


def test_derivatives_match_finite_differences(case, assert_slopes):
    points, box, h, x = case
    assert_slopes(exact_sketch(points, box, h), x, 1.2 * h)


def test_one_bandwidth_for_each_place(case):
    points, box, h, x = case
    sketch, widths = exact_sketch(points, box, h), h * np.linspace(1, 2, len(case[3]))
    for k, width in enumerate(widths):
        assert sketch.value(x, widths)[k] == pytest.approx(sketch.value(x[k : k + 1], width)[0])
        assert sketch.noise_at(x, widths)[k] == pytest.approx(sketch.noise_at(x[k : k + 1], width)[0])


def test_the_stated_noise_is_the_noise(case, rng):
    _, box, h, x = case
    size = 2 * PAIRS * 1
    for width in (h, 1.3 * h):
        values = [
            ReleasedSketch(2.5 * rng.standard_normal(size), box, h, 2.5, 10).value(x[:3], width) for _ in range(400)
        ]
        stated = ReleasedSketch(np.zeros(size), box, h, 2.5, 10).noise_at(x[:3], width)
        # The standard deviation of 400 draws has a relative standard error of 3.5 %; six of them.
        np.testing.assert_allclose(np.std(values, axis=0), stated, rtol=0.21)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"bandwidth": -1.0}, SpecError),
        ({"n": "many"}, SpecError),
        ({"noise_scale": math.inf}, SpecError),
        ({"coefficients": np.zeros(7)}, DataError),
        ({"coefficients": np.full(2 * PAIRS, np.nan)}, DataError),
        ({"coefficients": np.array([{"a": 1}] * 2 * PAIRS, dtype=object)}, DataError),
        ({"box": np.zeros((4, 2))}, SpecError),
    ],
)
def test_numbers_that_no_sketch_has_are_refused(changes, error):
    right = {
        "coefficients": np.zeros(2 * PAIRS),
        "box": [[0.0, 1.0]] * 4,
        "bandwidth": 1.0,
        "noise_scale": 1.0,
        "n": 10,
    }
    assert ReleasedSketch(**right).n == 10
    with pytest.raises(error):
        ReleasedSketch(**(right | changes))


def test_smoothing_can_only_go_up(case):
    points, box, h, x = case
    with pytest.raises(SpecError, match=r"bandwidth = .*at least 1\.3"):
        exact_sketch(points, box, h).value(x, 0.9 * h)


def test_places_with_the_wrong_columns_are_refused_and_no_places_give_nothing(case):
    points, box, h, x = case
    sketch = exact_sketch(points, box, h)
    for wrong in (x[:, :1], x[0], np.zeros((3, len(box) + 1))):
        for ask in (sketch.value, sketch.gradient, sketch.heat, sketch.noise_at):
            with pytest.raises(DataError, match=f"{len(box)} columns"):
                ask(wrong)
    none = np.empty((0, len(box)))
    assert sketch.value(none).shape == (0,)
    assert sketch.gradient(none).shape == none.shape


def test_the_public_rules():
    sizes = [choose_blocks(n, 6.0) for n in (100, 2_000, 3_000, 10**6)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == MOST_BLOCKS
    assert choose_blocks(3_000, 60.0) <= choose_blocks(3_000, 6.0)
    check_resolution(np.array([[0.0, 1.0]] * 4), 0.01)
    with pytest.raises(SpecError, match="a bandwidth of at least") as refused:
        check_resolution(np.array([[0.0, 1.0]] * 6), 1e-3)
    least = float(str(refused.value).split("at least ")[1].split(" ")[0])
    check_resolution(np.array([[0.0, 1.0]] * 6), least)


def test_the_frequencies_are_the_same_everywhere():
    # The first outputs of SplitMix64 from state 0, as its author publishes them.
    expected = [((number >> 11) + 0.5) * 2.0**-53 for number in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4)]
    np.testing.assert_array_equal(module.hashed(2), expected)
    corners = vertices(5, 9)
    gaps = corners[:, :, None, :] - corners[:, None, :, :]
    covariance = np.einsum("bijk,bijl->kl", gaps, gaps) / (2 * 9 * PAIRS)
    np.testing.assert_allclose(covariance, np.eye(5), atol=1e-12)


def test_public_places_fill_the_box():
    box = np.array([[-1.0, 1.0]] * 4)
    places = public_points(box, 4096)
    halves = ((places > 0) @ (2 ** np.arange(4))).astype(int)
    np.testing.assert_allclose(np.bincount(halves, minlength=16) / 4096, 1 / 16, atol=0.005)


def test_the_errors_of_the_kernel_stay_below_their_ceiling(rng):
    # Ten thousand records in one place and no noise: all that is seen far away is the error of the kernel.
    box = np.array([[-9.0, 9.0]] * 4)
    for blocks in (2, 8, 32):
        places = rng.uniform(-9, 9, (20_000, 4))
        values = exact_sketch(np.zeros((1, 4)), box, 1.5, blocks).value(places) * 10_000
        far = values[(places**2).sum(axis=1) > (7 * 1.5) ** 2]
        scale = module.error_scale(values, 1.0, box, 1.5, blocks)
        assert far.max() < module.noise_ceiling(box, 1.5) * scale
        assert scale > 3 * module.error_scale(values[:0], 1.0, box, 1.5, blocks) == 3.0


class TestSensitivity:
    """One replaced record moves the sums by at most sqrt(2 + 2/31), anywhere, inside the box or not."""

    def norm(self, box, h, record, other, blocks=BLOCKS):
        change = feature_sums(record[None], box, h, blocks) - feature_sums(other[None], box, h, blocks)
        return float(np.linalg.norm(change))

    @pytest.mark.parametrize("d", [4, 6])
    @pytest.mark.parametrize("h", [0.3, 1.0, 4.0])
    def test_a_search_finds_none_above_it_and_some_above_root_two(self, d, h, rng):
        box = np.array([[-3.0, 3.0]] * d)
        reach = max(3.0, 8 * h)
        pairs = [rng.uniform(-reach, reach, (2, d)) for _ in range(100)]
        worst = max(pairs, key=lambda pair: self.norm(box, h, *pair))
        climbed = minimize(
            lambda numbers: -self.norm(box, h, numbers[:d], numbers[d:]),
            worst.ravel(),
            method="Nelder-Mead",
            options={"maxfev": 150},
        )
        found = max(self.norm(box, h, *worst), -climbed.fun)
        # The kernel of the features is below zero somewhere, so sqrt(2) would be a false bound.
        assert math.sqrt(2) * (1 + 1e-4) < found <= SKETCH_SENSITIVITY

    def test_vertices_exist_that_reach_it(self, monkeypatch):
        # The roots of unity: their waves sum to zero, so no smaller constant holds for whatever vertices.
        roots = (2 * math.pi * np.arange(VERTICES) / VERTICES).reshape(1, VERTICES, 1)
        monkeypatch.setattr(module, "vertices", lambda d, blocks: roots)
        norm = self.norm(np.array([[-1.0, 1.0]]), 1.0, np.array([0.0]), np.array([1.0]), blocks=1)
        assert SKETCH_SENSITIVITY * (1 - 1e-5) < norm <= SKETCH_SENSITIVITY

    @pytest.mark.parametrize("far", [1e3, 1e12, 1e300])
    def test_records_far_away_and_huge_keep_it(self, far, rng):
        box = np.array([[-3.0, 3.0]] * 4)
        for _ in range(20):
            record, other = far * rng.normal(0, 1, (2, 4))
            assert self.norm(box, 0.5, record, other) <= SKETCH_SENSITIVITY
            assert 0.9 < self.norm(box, 0.5, record, np.zeros(4)) <= SKETCH_SENSITIVITY

    def test_every_record_has_length_one(self, rng):
        box = np.array([[-3.0, 3.0]] * 5)
        for point in rng.normal(0, 5, (20, 5)):
            length = float(np.linalg.norm(feature_sums(point[None], box, 0.7, BLOCKS)))
            assert 1 - 2e-6 < length < 1

    def test_rounding_in_large_sums_is_covered(self, rng):
        box = np.array([[-3.0, 3.0]] * 4)
        points = rng.normal(0, 1, (60_000, 4))
        other = points.copy()
        other[7] = 2.9
        whole = feature_sums(points, box, 0.7, BLOCKS) - feature_sums(other, box, 0.7, BLOCKS)
        alone = feature_sums(points[7:8], box, 0.7, BLOCKS) - feature_sums(other[7:8], box, 0.7, BLOCKS)
        # The features are shortened by SHORTENED; what sums lose must stay far below that.
        assert float(np.linalg.norm(whole - alone)) < 0.01 * module.SHORTENED
