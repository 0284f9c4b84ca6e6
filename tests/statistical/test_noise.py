"""The law of the noise at both doors: the right scale is accepted, two thirds and three halves of it are rejected."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

SCALE = 0.37
RUNS = 4_000
STARTS = np.array([[0.0, 0.0], [0.3, 0.1], [1.0, -0.5], [1.1, -0.4], [4.0, 4.0]])
CORRELATION = np.exp(-cdist(STARTS, STARTS) / 0.8)


@pytest.fixture(params=["simulation", "release"], scope="module")
def noise(request, seed):
    """Every law below is tested at each door; what the release door draws differs from run to run."""
    if request.param == "release":
        return ReleaseNoise()
    return SimulationNoise(zlib.crc32(f"{seed}/{request.node.nodeid}".encode()))


@pytest.fixture(scope="module")
def independent(noise, seed):
    exact = np.random.default_rng(seed).normal(0, 50, (RUNS, 5, 2))
    return noise.independent_gaussian(exact, SCALE) - exact


@pytest.fixture(scope="module")
def covered(noise, seed):
    exact = CORRELATION @ np.random.default_rng(seed).normal(0, 50, 5)
    rows = [noise.covered_gaussian([exact], CORRELATION, SCALE) - exact for _ in range(RUNS)]
    return np.stack([rows[0::2], rows[1::2]], axis=2)  # two draws side by side: independent columns


@pytest.fixture(scope="module")
def correlated(noise):
    return np.stack([noise.correlated_gaussian(CORRELATION, SCALE, 2) for _ in range(RUNS)])


def check_scale(drawn, pvalues, flake_rate, certain, correlation=CORRELATION):
    """The stated covariance passes all four tests; two thirds and three halves of its scale fail in size and law."""
    found = pvalues(drawn, correlation, SCALE)
    assert min(found.values()) > flake_rate / len(found), found
    for factor in (2 / 3, 3 / 2):
        wrong = pvalues(drawn, correlation, factor * SCALE)
        assert wrong["size"] < certain
        assert wrong["law"] < certain


class TestIndependentGaussian:
    def test_the_right_scale_is_accepted_and_a_wrong_one_rejected(self, independent, pvalues, flake_rate, certain):
        check_scale(independent, pvalues, flake_rate, certain, np.eye(5))

    def test_numbers_that_share_their_noise_are_rejected(self, independent, pvalues, certain):
        assert pvalues(independent[:, [0, 0, 1, 2, 3]], np.eye(5), SCALE)["starts"] < certain

    def test_the_noise_does_not_know_the_number_it_covers(self, noise, rng, flake_rate):
        exact = rng.normal(0, 50, 20_000)
        drawn = noise.independent_gaussian(exact, SCALE) - exact
        assert 2 * stats.norm.sf(abs(float(drawn @ exact)) / (SCALE * np.linalg.norm(exact))) > flake_rate

    @pytest.mark.parametrize("scale", [1e-6, 0.75, 1.0, 36.3, 1e6])
    def test_any_scale(self, scale, noise, flake_rate, certain):
        drawn = noise.independent_gaussian(np.zeros(2_000), scale)
        assert stats.kstest(drawn / scale, "norm").pvalue > flake_rate
        law, total = stats.chi2(2_000), float((drawn**2).sum())
        assert law.sf(total / (scale * 2 / 3) ** 2) < certain
        assert law.cdf(total / (scale * 3 / 2) ** 2) < certain


class TestCoveredGaussian:
    """Noise with a given covariance, through independent coordinates."""

    def test_the_right_covariance_is_accepted_and_a_wrong_scale_rejected(self, covered, pvalues, flake_rate, certain):
        check_scale(covered, pvalues, flake_rate, certain)

    def test_a_wrong_correlation_is_rejected(self, covered, pvalues, certain):
        assert min(pvalues(covered, np.eye(5), SCALE).values()) < certain


class TestCorrelatedGaussian:
    def test_the_right_covariance_is_accepted_and_a_wrong_scale_rejected(
        self, correlated, pvalues, flake_rate, certain
    ):
        check_scale(correlated, pvalues, flake_rate, certain)

    @pytest.mark.parametrize("wrong", [np.eye(5), np.exp(-(cdist(STARTS, STARTS) ** 2) / (2 * 0.8**2)), CORRELATION**2])
    def test_a_wrong_correlation_is_rejected(self, wrong, correlated, pvalues, certain):
        # No correlation at all; the RBF of the authors' code; the exponential kernel of half the bandwidth.
        assert min(pvalues(correlated, wrong, SCALE).values()) < certain

    def test_columns_that_share_their_noise_are_rejected(self, correlated, pvalues, certain):
        copied = correlated[:, :, [0, 0]]
        assert pvalues(copied, CORRELATION, SCALE)["columns"] < certain

    def test_coinciding_starts_get_the_same_noise(self, noise, flake_rate):
        twice = np.repeat(STARTS, 2, axis=0)
        correlation = np.exp(-cdist(twice, twice) / 0.8)  # singular
        drawn = np.stack([noise.correlated_gaussian(correlation, SCALE, 2) for _ in range(500)])
        np.testing.assert_allclose(drawn[:, 0::2], drawn[:, 1::2], atol=1e-6 * SCALE)
        total = float((drawn[:, 0] ** 2).sum()) / SCALE**2  # and its size is not halved or doubled by that
        law = stats.chi2(1000)
        assert 2 * min(law.cdf(total), law.sf(total)) > flake_rate

    def test_all_starts_in_one_place(self, noise):
        drawn = noise.correlated_gaussian(np.ones((4, 4)), SCALE, 3)
        np.testing.assert_allclose(drawn, np.tile(drawn[0], (4, 1)), atol=1e-6)
        assert np.ptp(drawn[0]) > 0  # the columns differ

    def test_draws_are_independent_from_round_to_round(self, correlated, flake_rate):
        first, later = correlated[:-1, 0, 0] / SCALE, correlated[1:, 0, 0] / SCALE
        assert 2 * stats.norm.sf(abs(float(first @ later)) / np.sqrt(len(first))) > flake_rate


class TestGumbelArgmax:
    def frequencies(self, noise, log_weights, runs=6_000):
        picks = [noise.gumbel_argmax(np.array(log_weights)) for _ in range(runs)]
        return np.bincount(picks, minlength=len(log_weights))

    def test_the_frequencies_are_those_of_the_weights(self, noise, flake_rate, certain):
        weights = np.array([1.0, 2.0, 5.0, 0.5])
        counts = self.frequencies(noise, np.log(weights))
        assert stats.chisquare(counts, counts.sum() * weights / weights.sum()).pvalue > flake_rate
        for power in (2 / 3, 3 / 2):
            wrong = weights**power
            assert stats.chisquare(counts, counts.sum() * wrong / wrong.sum()).pvalue < certain

    @pytest.mark.parametrize("base", [1e6, -1e6, 0.0])
    def test_huge_log_weights_do_not_overflow(self, base, noise, flake_rate):
        counts = self.frequencies(noise, [base, base + np.log(3.0), -np.inf, base - 2000.0], runs=2_500)
        assert counts[2] == counts[3] == 0
        assert stats.chisquare(counts[:2], counts.sum() * np.array([0.25, 0.75])).pvalue > flake_rate

    def test_a_single_open_candidate_is_always_chosen(self, noise):
        assert {noise.gumbel_argmax(np.array([-np.inf, 3.0, -np.inf])) for _ in range(50)} == {1}


class TestBatch:
    N, SIZE, RUNS = 40, 12, 5_000

    def inclusion_pvalue(self, counts):
        """Chi-square of inclusion counts under sampling without replacement (covariances are known)."""
        share = self.SIZE / self.N
        square = ((counts - self.RUNS * share) ** 2).sum() / (self.RUNS * share * (1 - share)) * (self.N - 1) / self.N
        return stats.chi2(self.N - 1).sf(float(square))

    def test_every_record_is_equally_likely(self, noise, flake_rate):
        rows = [noise.batch(self.N, self.SIZE) for _ in range(self.RUNS)]
        assert all(len(set(batch.tolist())) == self.SIZE for batch in rows)
        counts = np.bincount(np.concatenate(rows), minlength=self.N)
        assert self.inclusion_pvalue(counts) > flake_rate
        # Pairs too: neighbours in the table are together as often as any two records.
        together = sum({0, 1} <= set(batch.tolist()) for batch in rows)
        chance = self.SIZE * (self.SIZE - 1) / (self.N * (self.N - 1))
        assert stats.binomtest(together, self.RUNS, chance).pvalue > flake_rate

    def test_a_biased_draw_would_be_seen(self, rng, certain):
        weights = np.linspace(0.8, 1.2, self.N) / self.N
        rows = [rng.choice(self.N, self.SIZE, replace=False, p=weights) for _ in range(self.RUNS)]
        assert self.inclusion_pvalue(np.bincount(np.concatenate(rows), minlength=self.N)) < certain

    def test_the_whole_data_set_is_taken_as_it_is(self, noise):
        assert noise.batch(7, 7).tolist() == list(range(7))

    def test_one_seed_gives_one_stream(self, seed):
        one, two = SimulationNoise(seed), SimulationNoise(seed)
        assert one.door == "simulation"
        assert np.array_equal(one.batch(100, 10), two.batch(100, 10))
        assert one.gumbel_argmax(np.zeros(50)) == two.gumbel_argmax(np.zeros(50))
