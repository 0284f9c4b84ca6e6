"""A search for responses whose replacement breaks what DP-PMS is calibrated to: where it must fail, and where not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from dpgrams_core import load_dataset
from dpgrams_core.methods.dp_grams.rounds import SENSITIVITY, kernel_sums
from dpgrams_core.methods.dp_grams.run import stabilised_score
from dpgrams_core.methods.dp_pms.plan import plan
from dpgrams_core.methods.dp_pms.run import clipped_shift, linear_parts
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.methods.dp_pms.starts import binned_windows, most_filled_bins, sparse_windows, window_counts
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.rounding import SMALLEST_EIGENVALUE
from dpgrams_core.privacy.calibration import published_sensitivity

ROUNDING = 1e-6


def replaced(points, row, response):
    """The neighbour: one response is another, the predictor stays."""
    other = points.copy()
    other[row, 1] = response
    return other


class TestStarts:
    """The joint law of all draws, computed exactly, against (epsilon_draw times overlap)."""

    EPSILON = 0.7

    def log_laws(self, responses, windows, grid, radius):
        """Logarithm of the law of each draw, (k, candidates)."""
        each = self.EPSILON / windows.overlap
        weights = each * window_counts(responses, windows, grid, radius) / 2
        return weights - np.log(np.exp(weights).sum(axis=1, keepdims=True))

    def loss(self, responses, row, response, windows, grid, radius):
        """The largest log-ratio of the joint laws over all outcomes: the draws are independent, so it is a sum."""
        other = responses.copy()
        other[row] = response
        change = self.log_laws(responses, windows, grid, radius) - self.log_laws(other, windows, grid, radius)
        return float(change.max(axis=1).sum()), float(-change.min(axis=1).sum())

    @pytest.mark.parametrize("starts", ["sparse", "binned"])
    def test_no_neighbour_exceeds_the_share_and_some_come_near(self, starts, rng):
        grid, radius, largest = np.linspace(0, 1, 11), 0.08, 0.0
        for _ in range(60):
            x, y = rng.uniform(0, 1, (2, int(rng.integers(10, 60))))
            if rng.random() < 0.5:
                y = np.where(rng.random(len(y)) < 0.9, 0.5, y)  # piles: the laws are far from uniform
            windows = sparse_windows(x, 7, radius) if starts == "sparse" else binned_windows(x, most_filled_bins(x, 7))
            touched = np.bincount(np.concatenate(windows.members), minlength=len(x))
            for row in (int(touched.argmax()), int(rng.integers(len(x)))):
                for response in (0.0, 0.5, float(rng.uniform(0, 1))):
                    largest = max(largest, *self.loss(y, row, response, windows, grid, radius))
        assert 0.6 * self.EPSILON < largest <= self.EPSILON * (1 + 1e-9)

    def test_the_share_of_a_record_is_what_its_own_windows_cost(self, rng):
        # A record in fewer windows than the most is protected better, in proportion.
        x, y = rng.uniform(0, 1, (2, 50))
        windows = sparse_windows(x, 9, 0.15)
        touched = np.bincount(np.concatenate(windows.members), minlength=50)
        for row in range(50):
            share = self.EPSILON * touched[row] / windows.overlap
            assert max(self.loss(y, row, 0.4, windows, np.linspace(0, 1, 11), 0.1)) <= share * (1 + 1e-9) + 1e-12

    def test_pricing_overlapping_windows_as_if_disjoint_would_be_caught(self, rng):
        # The search is worth something: with all of epsilon for each of several shared windows it finds a breach.
        x = np.linspace(0.49, 0.51, 40)
        y = np.where(np.arange(40) < 39, 0.5, 0.0)
        windows = sparse_windows(x, 5, 0.1)
        assert windows.overlap == 5
        one, two = (y.copy(), y.copy())
        two[-1] = 0.5
        laws = []
        for responses in (one, two):
            weights = self.EPSILON * window_counts(responses, windows, np.linspace(0, 1, 11), 0.08) / 2
            laws.append(weights - np.log(np.exp(weights).sum(axis=1, keepdims=True)))
        assert np.abs(laws[0] - laws[1]).max(axis=1).sum() > 2 * self.EPSILON


def change_norm(points, row, response, states, h):
    """The change of a tight round's vector in units of its noise scale, from whole sums as the code forms them."""
    wanted, covariance = linear_parts(states, h)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    change = (kernel_sums(points, states, h) - kernel_sums(replaced(points, row, response), states, h))[wanted]
    return float(np.linalg.norm((change @ vectors[:, kept]) / np.sqrt(values[kept])))


def state_sets(rng, h):
    """Joint states that a run can reach: spread, one above another, almost or quite together."""
    base = rng.uniform(0, 1, (4, 2))
    column = np.stack([np.full(12, 0.5), 0.5 + h * np.linspace(-3, 3, 12)], axis=1)
    yield rng.uniform(0, 1, (8, 2))
    yield column
    yield base[[0, 0, 1, 1]]
    yield np.stack([np.full(10, 0.5), 0.5 + 0.05 * h * np.arange(10)], axis=1)
    for gap in (1e-2, 1e-5, 1e-12):
        yield np.concatenate([base, base + gap * h * rng.normal(0, 1, base.shape)])


class TestTight:
    """sqrt(2), for values and slopes along the response at any states."""

    @pytest.mark.parametrize("h", [0.03, 0.1, 0.5])
    def test_random_and_adversarial_responses(self, h, rng, record_property):
        largest = 0.0
        for _ in range(12):
            for states in state_sets(rng, h):
                points = rng.uniform(0, 1, (int(rng.integers(10, 60)), 2))
                points[0, 0] = states[0, 0]  # a record in line with a state
                ends = (states[0, 1], states[-1, 1], 1e3, float(rng.uniform(0, 1)))
                for before, after in itertools.permutations(ends, 2):
                    points[0, 1] = before
                    largest = max(largest, change_norm(points, 0, after, states, h))
        record_property("largest share of sqrt(2)", largest / SENSITIVITY)
        assert 0.9 * SENSITIVITY < largest <= SENSITIVITY * (1 + ROUNDING)

    @pytest.mark.slow
    def test_responses_and_states_found_by_local_ascent(self, rng):
        points, h, best = rng.uniform(0, 1, (30, 2)), 0.1, 0.0
        for _ in range(4):
            begin = np.concatenate([rng.uniform(0.3, 0.7, 6), rng.uniform(0.2, 0.8, 3)])

            def loss(numbers):
                data = points.copy()
                data[0] = numbers[6:8]
                return -change_norm(data, 0, numbers[8], numbers[:6].reshape(3, 2), h)

            climbed = -minimize(loss, begin, method="Nelder-Mead", options={"maxfev": 1_500}).fun
            assert climbed >= -loss(begin)
            best = max(best, climbed)
        assert 0.95 * SENSITIVITY < best <= SENSITIVITY * (1 + ROUNDING)

    def test_a_smaller_sensitivity_would_be_caught(self, rng):
        # Two records far apart in y, a state on each: the change is sqrt(2) and no less.
        states = np.array([[0.5, 0.1], [0.5, 0.9]])
        points = rng.uniform(0, 1, (20, 2))
        points[0] = states[0]
        assert change_norm(points, 0, 0.9, states, 0.05) == pytest.approx(SENSITIVITY, rel=1e-6)


class TestExperiments:
    """2 C / m is no sensitivity of the clipped sum: why its status is "nominal"."""

    def ratio(self, points, other, states, h, clip):
        """Change of the most moved start, as a multiple of what the noise is calibrated to."""
        one, two = (clipped_shift(data, states, h, clip)[0] for data in (points, other))
        return float(np.abs(one - two).max()) / (2 * clip / len(points))

    def test_one_record_alone_moves_a_sum_by_the_batch_size(self):
        # A heavy pile at the start fixes the denominator; two records stand at one bandwidth from it.  Small C: both
        # contributions are cut to C.  One response that changes sides moves the sum by 2 C, which is m times 2 C / m.
        points = np.full((100, 2), 0.5)
        points[0, 1] = 0.6
        ratio = self.ratio(points, replaced(points, 0, 0.4), np.full((1, 2), 0.5), 0.1, 1e-6)
        assert ratio == pytest.approx(100, rel=1e-6)

    def test_the_shared_denominator_moves_all_the_other_contributions(self):
        # All records three bandwidths away, none cut; one response that comes to the start takes all the weight, and
        # the sum of the others shrinks: here by almost five times even 2 C.
        points = np.tile([0.5, 0.8], (200, 1))
        h, clip = 0.1, 0.01
        start = np.array([[0.5, 0.5]])
        other = replaced(points, 0, 0.5)
        assert clipped_shift(points, start, h, clip)[1] == 0.0
        exact = 0.3 - 0.3 * 199 * math.exp(-4.5) / (199 * math.exp(-4.5) + 1)
        ratio = self.ratio(points, other, start, h, clip)
        assert ratio == pytest.approx(exact / (2 * clip / 200), rel=1e-6)
        assert ratio > 500  # in units of 2 C / m
        lonely = np.tile([0.5, 0.8], (60, 1))
        assert self.ratio(lonely, replaced(lonely, 0, 0.5), start, h, clip) > 60  # beyond 2 C, too

    def test_ordinary_data_break_it_too(self, seed, rng, record_property):
        data = load_dataset("sinusoid", n=1200, seed=seed)
        chosen = plan(DPPMSSpec(), data)
        batch, largest = chosen.points[:: 1200 // chosen.batch_size][: chosen.batch_size], 0.0
        for _ in range(400):
            row = int(rng.integers(len(batch)))
            start = np.array([[batch[row, 0], rng.uniform(0, 1)]])
            other = replaced(batch, row, start[0, 1] + 0.05 * rng.normal())
            largest = max(largest, self.ratio(batch, other, start, chosen.h, chosen.contribution_clip))
        record_property("largest ratio to 2 C / m", largest)
        assert largest > 2


class TestTheorem:
    """Delta_corr / m for the response's coordinate: the published bound, with the gap of its joint step."""

    def ratio(self, points, other, states, h, clip, floor):
        one, two = (
            stabilised_score(KERNELS["gaussian"], data, states, h, clip, floor)[0][:, 1] for data in (points, other)
        )
        correlation = np.exp(-cdist(states, states) / h)
        norm = math.sqrt(float((one - two) @ np.linalg.solve(correlation, one - two)))
        return norm / (published_sensitivity(KERNELS["gaussian"].constants(2), h, 2, clip, floor) / len(points))

    def test_it_was_not_broken_for_one_start(self, rng):
        for _ in range(400):
            h = float(rng.choice([0.05, 0.1, 0.3]))
            points = 0.5 + h * rng.normal(0, 1.5, (30, 2))
            floor = float(rng.choice([0.02, 0.2])) / h**2
            other = replaced(points, 0, 0.5 + h * rng.normal(0, 1.5))
            assert self.ratio(points, other, np.full((1, 2), 0.5), h, floor / h, floor) <= 1

    def test_two_close_starts_break_it_in_the_response_alone(self):
        # The counterexample to lem:correlated_noise_privacy, turned so that only a response changes.
        points = np.zeros((1000, 2))
        points[-1, 1] = -1.0
        states = np.array([[0.0, 0.0], [0.0, 0.00121]])
        ratio = self.ratio(points, replaced(points, -1, 1.0), states, 1.0, 1.015e-4, 1 / (2 * math.pi))
        assert ratio > 4
