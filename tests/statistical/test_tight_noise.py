"""The joint noise of a ``tight`` round: at the door, and recovered from what a run releases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist

from dpgrams_core import run
from dpgrams_core.density import naive_density_and_gradient
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods.linear_rounds import joint_covariance

H, STEP, RUNS, RECORDS = 1.5, 0.6, 1_000, 60
STARTS = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.3), (2.0, 1.0)]
AT = np.array(STARTS)
COVARIANCE = joint_covariance(AT, H)


def pairs(rows):
    """(runs / 2, numbers, 2): two runs side by side, since their noise is independent and has one covariance."""
    return np.stack([rows[0::2], rows[1::2]], axis=2)


class TestAtTheDoor:
    SCALE = 0.37

    @pytest.fixture
    def drawn(self, noise, rng):
        exact = COVARIANCE @ rng.normal(0, 50, len(COVARIANCE))
        return pairs([noise.covered_gaussian([exact], COVARIANCE, self.SCALE) - exact for _ in range(2 * RUNS)])

    def test_the_right_covariance_is_accepted(self, drawn, pvalues, flake_rate):
        found = pvalues(drawn, COVARIANCE, self.SCALE)
        assert min(found.values()) > flake_rate / len(found), found

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_a_wrong_scale_is_rejected(self, factor, drawn, pvalues, certain):
        assert pvalues(drawn, COVARIANCE, factor * self.SCALE)["size"] < certain

    def test_values_and_slopes_drawn_apart_are_rejected(self, drawn, pvalues, certain):
        apart = block_diag(COVARIANCE[:4, :4], COVARIANCE[4:, 4:])
        assert min(pvalues(drawn, apart, self.SCALE).values()) < certain

    def test_coinciding_starts_get_the_same_noise_of_full_size(self, noise, flake_rate):
        twice = joint_covariance(AT[[0, 0, 1]], H)
        drawn = np.stack([noise.covered_gaussian([np.zeros(9)], twice, self.SCALE) for _ in range(500)])
        np.testing.assert_allclose(drawn[:, 0], drawn[:, 1], atol=1e-9)
        np.testing.assert_allclose(drawn[:, 3:5], drawn[:, 5:7], atol=1e-9)
        law, total = stats.chi2(500), float((drawn[:, 0] ** 2).sum()) / self.SCALE**2
        assert 2 * min(law.cdf(total), law.sf(total)) > flake_rate

    def test_rounds_are_independent(self, drawn, flake_rate):
        first, later = drawn[:-1, 0, 0] / self.SCALE, drawn[1:, 0, 0] / self.SCALE
        assert 2 * stats.norm.sf(abs(float(first @ later)) / np.linalg.norm(later)) > flake_rate


def recovered(seed, table, **options):
    """(noise of the scores of one full-batch step in the order of STARTS, exact density and gradient, release)."""
    points = np.random.default_rng(seed).normal(0, 1.5, (RECORDS, 2))
    density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, AT, H)
    data, found = table(points), []
    for number in range(RUNS):
        release = run(
            "dp_grams",
            data,
            seed=seed + number,
            calibration="tight",
            bandwidth=H,
            step_size=STEP,
            n_steps=1,
            batch_size=RECORDS,
            n_starts=4,
            candidates=STARTS,
            suppression_radius=0.5,
            gradient_clip=1e9,
            **options,
        )
        start, end = release.trajectories
        order = [start.tolist().index(list(point)) for point in STARTS]  # each is drawn once
        score = (end - start)[order] / STEP
        found.append((score - gradient / np.maximum(density, release.spec.density_floor)[:, None]).ravel())
    return pairs(found), density, gradient, release


@pytest.fixture(scope="module")
def slopes(seed, table):
    noise, _, _, release = recovered(seed, table, density_floor=1e3)
    return noise, release.noise_scale


class TestSlopes:
    """A floor above every density leaves the gradient over the floor: its noise is the slopes' block."""

    def test_the_stated_scale_is_accepted(self, slopes, pvalues, flake_rate):
        noise, scale = slopes
        found = pvalues(noise, COVARIANCE[4:, 4:], scale)
        assert min(found.values()) > flake_rate / len(found), found

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, slopes, pvalues, certain):
        noise, scale = slopes
        assert pvalues(noise, COVARIANCE[4:, 4:], factor * scale)["size"] < certain

    def test_other_correlations_are_rejected(self, slopes, pvalues, certain):
        noise, scale = slopes
        published = np.kron(np.exp(-cdist(AT, AT) / H), np.eye(2))  # that of alg:dpgrams
        for wrong in (np.eye(8), published):
            assert min(pvalues(noise, wrong, scale).values()) < certain


@pytest.fixture(scope="module")
def quotients(seed, table):
    noise, density, gradient, release = recovered(seed, table, density_floor=1e-12, epsilon=1e5)
    c = 1 / (2 * np.pi * RECORDS * H**2)  # kernel sums to densities
    to_score = np.hstack([block_diag(*(-gradient / density[:, None] ** 2)[:, :, None]), np.zeros((8, 8))])
    to_score[:, 4:] = np.diag(np.repeat(1 / (density * H), 2))
    return noise, c * to_score, release.events[1].noise_scale


class TestQuotients:
    """With neither floor nor clip and little noise, a score moves by (dg - score dp) / p: both blocks together."""

    def test_the_joint_covariance_is_accepted(self, quotients, pvalues, flake_rate):
        noise, to_score, scale = quotients
        found = pvalues(noise, to_score @ COVARIANCE @ to_score.T, scale)
        assert min(found.values()) > flake_rate / len(found), found

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, quotients, pvalues, certain):
        noise, to_score, scale = quotients
        assert pvalues(noise, to_score @ COVARIANCE @ to_score.T, factor * scale)["size"] < certain

    def test_noise_on_the_slopes_alone_is_rejected(self, quotients, pvalues, certain):
        noise, to_score, scale = quotients
        alone = block_diag(np.zeros((4, 4)), COVARIANCE[4:, 4:])
        assert min(pvalues(noise, to_score @ alone @ to_score.T, scale).values()) < certain
