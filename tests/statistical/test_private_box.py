"""The noise of a bought box, both ways; that one record moves the counts as little as is proven; and what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpgrams_core import DataError
from dpgrams_core.own_data.bounds import (
    FALSE_ALARM,
    FINE_BINS,
    LEAST_ROWS,
    SENSITIVITY,
    bin_counts,
    coarse_edges,
    plan_range,
    private_range,
    trimmed,
)
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

RUNS = 40


def p_value(noise, scale):
    law, total = stats.chi2(noise.size), float((noise**2).sum()) / scale**2
    return 2 * min(law.cdf(total), law.sf(total))


@pytest.fixture(params=["simulation", "release"])
def door(request, seed):
    return ReleaseNoise() if request.param == "release" else SimulationNoise(seed)


@pytest.fixture
def drawn(door, rng):
    """What the runs added to the exact counts, in each round."""
    values = rng.normal(3, 1, 20_000)
    plan = plan_range(len(values), 1.0, 1e-6)
    rows = []
    for _ in range(RUNS):
        found = private_range(values, plan, door)
        edges = coarse_edges()
        seen = np.flatnonzero(found.counts[0] > plan.sigma * stats.norm.isf(FALSE_ALARM / (len(edges) - 1)))
        fine = np.linspace(edges[seen[0]], edges[seen[-1] + 1], FINE_BINS + 1)
        exact = (bin_counts(values, edges), bin_counts(values, fine))
        rows.append([noisy - right for noisy, right in zip(found.counts, exact, strict=True)])
    return [np.concatenate([row[part] for row in rows]) for part in (0, 1)]


def test_the_right_scale_is_accepted_and_others_rejected(drawn, flake_rate, certain):
    scale = math.sqrt(2) * SENSITIVITY * gaussian_multiplier(1.0, 1e-6)  # two rounds
    for noise in drawn:
        assert p_value(noise, scale) > flake_rate
        assert stats.kstest(noise / scale, "norm").pvalue > flake_rate
        for factor in (2 / 3, 3 / 2):
            assert p_value(noise, factor * scale) < certain


@pytest.mark.parametrize("n", [2_000, 200_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-9), (3.0, 1e-5)])
def test_the_price_is_the_budget(n, epsilon, delta):
    plan = plan_range(n, epsilon, delta)
    cost = price(plan.events, delta)
    assert cost.epsilon <= epsilon * (1 + 1e-9)
    assert cost.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert plan.rounds == 2 or n == 2_000
    assert plan.events[0].noise_scale == plan.sigma


class TestNeighbours:
    """One record replaced by any other: the counts of a round move by at most the stated sensitivity."""

    def test_search(self, rng):
        edges = coarse_edges()
        special = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [1e300, -1e300]])
        largest = 0.0
        for _ in range(300):
            values = rng.normal(0, 10 ** rng.uniform(-6, 11), 50)
            low, high = np.sort(rng.choice(special, 2, replace=False))
            fine = np.linspace(low, high, FINE_BINS + 1) if high > low else edges
            other = values.copy()
            other[rng.integers(50)] = rng.choice(special)
            for bins in (edges, fine):
                largest = max(largest, float(np.linalg.norm(bin_counts(values, bins) - bin_counts(other, bins))))
        assert largest <= SENSITIVITY
        assert largest == SENSITIVITY  # and it is reached

    def test_every_value_is_in_one_bin_or_none(self, rng):
        edges = coarse_edges()
        values = np.concatenate([edges, rng.normal(0, 1e6, 1000), [1e15, -1e15]])
        for value in values:
            counts = bin_counts(np.array([value]), edges)
            assert counts.sum() == (edges[0] <= value < edges[-1])
            assert set(counts) <= {0.0, 1.0}


class TestWhatIsFound:
    @pytest.mark.parametrize(
        ("low", "high"), [(18, 90), (1980, 2020), (-4, 4), (0, 1), (1e-3, 2e-3), (-3e5, -1e5), (0, 2e9)]
    )
    @pytest.mark.parametrize("n", [2_000, 50_000])
    def test_the_records_are_inside_and_the_box_is_not_far_wider(self, low, high, n, rng, noise):
        values = rng.uniform(low, high, n)
        found = private_range(values, plan_range(n, 1.0, 1e-6), noise)
        inside = ((values >= found.low) & (values <= found.high)).mean()
        assert inside > 0.8
        if n == 50_000:
            assert inside > 0.98
            octaves = max(abs(low), abs(high)) * (2 if low < 0 < high else 1)
            assert found.high - found.low <= max(4 * (high - low), octaves / 4)

    def test_a_few_far_records_do_not_stretch_the_box(self, rng, noise):
        values = np.append(rng.uniform(0, 100, 20_000), [1e9, -1e9, 1e300])
        found = private_range(values, plan_range(len(values), 1.0, 1e-6), noise)
        assert found.low >= -20
        assert found.high <= 300

    def test_beyond_the_last_bin(self, noise):
        found = private_range(np.full(1_000, 1e300), plan_range(1_000, 1.0, 1e-6), noise)
        assert found.high == 2.0**39

    def test_nothing_stands_out(self, noise):
        edges = coarse_edges()
        values = np.resize(np.concatenate([edges[:-1], edges[:-1] + np.diff(edges) / 2]), 600)
        with pytest.raises(DataError, match=r"no bounds.*is spent"):
            private_range(values, plan_range(600, 1.0, 1e-6), noise)

    @pytest.mark.parametrize(("epsilon", "n"), [(0.1, 4_000), (1.0, 400), (1.0, 10)])
    def test_too_few_rows_are_refused_before_a_draw(self, epsilon, n):
        needed = math.ceil(LEAST_ROWS * SENSITIVITY * gaussian_multiplier(epsilon, 1e-6))
        with pytest.raises(DataError, match=f"at least {needed:,} rows.*Nothing was charged"):
            plan_range(n, epsilon, 1e-6)
        assert plan_range(needed, epsilon, 1e-6).rounds == 1

    def test_a_plan_is_for_its_own_number_of_records(self, noise):
        with pytest.raises(ValueError, match="nothing was drawn"):
            private_range(np.zeros(10), plan_range(1_000, 1.0, 1e-6), noise)

    def test_trimming_keeps_what_shows_together(self):
        edges = np.arange(5.0)
        assert trimmed(edges, np.array([0.0, 50.0, 50.0, 0.0]), 1.0) == (1.0, 3.0)
        assert trimmed(edges, np.array([5.0, 5.0, 50.0, 50.0]), 1.0) == (1.0, 4.0)
        assert trimmed(edges, np.zeros(4), 1.0) == (0.0, 4.0)
