"""The joint noise of a ``tight`` round: at the door, behind it, and in the heights that a run publishes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_density_and_gradient
from dpgrams_core import run
from dpgrams_core.methods.dp_grams.plan import TIGHT
from dpgrams_core.methods.dp_grams.rounds import joint_covariance
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.surface import box_bases, coefficients, functionals

H, RUNS, HEIGHTS, RECORDS = 1.5, 1_000, 400, 60
STARTS = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.3), (2.0, 1.0)]
AT = np.array(STARTS)
COVARIANCE = joint_covariance(AT, H)


def pairs(rows):
    """(runs / 2, numbers, 2): two runs side by side, since their noise is independent and has one covariance."""
    return np.stack([rows[0::2], rows[1::2]], axis=2)


class TestAtTheDoor:
    SCALE = 0.37

    @pytest.fixture(params=["weighed", "on a grid"])
    def drawn(self, request, noise, rng):
        if request.param == "weighed":
            exact = COVARIANCE @ rng.normal(0, 50, len(COVARIANCE))
            return pairs([noise.covered_gaussian([exact], COVARIANCE, self.SCALE) - exact for _ in range(2 * RUNS)])
        bases = box_bases(np.array([[-2.0, 4.0], [-2.0, 4.0]]), H)
        sums, rows = coefficients(rng.normal(0, 1, (50, 2)), bases), functionals(AT, bases)
        exact = np.tensordot(rows, sums, axes=2)
        draws = range(2 * RUNS)
        return pairs([noise.projected_gaussian(sums, rows, COVARIANCE, self.SCALE) - exact for _ in draws])

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


@pytest.fixture(scope="module")
def rounds(seed, table, read_rounds, short_climbs):
    """(noise of the sums of one full-batch round in the order of STARTS, its stated scale)."""
    points = np.random.default_rng(seed).normal(0, 1.5, (RECORDS, 2))
    exact, data, found = naive_sums(points, AT), table(points), []
    for number in range(RUNS):
        read_rounds.clear()
        with short_climbs():
            release = run(
                "dp_grams",
                data,
                seed=seed + number,
                calibration="tight",
                bandwidth=H,
                n_steps=1,
                n_starts=4,
                candidates=STARTS,
                suppression_radius=0.5,
            )
        ((at, sums),) = read_rounds
        order = [at.tolist().index(list(point)) for point in STARTS]  # each is drawn once
        slopes = sums[4:].reshape(4, 2)[order]
        found.append(np.concatenate([sums[:4][order], slopes.ravel()]) - exact)
    return pairs(found), release.events[1].noise_scale


def naive_sums(points, at):
    """Values and h times gradients of the kernel sum, from the naive density."""
    density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, at, H)
    return 2 * np.pi * len(points) * H**2 * np.concatenate([density, H * gradient.ravel()])


class TestRounds:
    """What a round releases is the sums at its points, and noise with the stated scale and joint covariance."""

    def test_the_stated_scale_is_accepted(self, rounds, pvalues, flake_rate):
        noise, scale = rounds
        found = pvalues(noise, COVARIANCE, scale)
        assert min(found.values()) > flake_rate / len(found), found

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, rounds, pvalues, certain):
        noise, scale = rounds
        assert pvalues(noise, COVARIANCE, factor * scale)["size"] < certain

    def test_other_correlations_are_rejected(self, rounds, pvalues, certain):
        noise, scale = rounds
        apart = block_diag(COVARIANCE[:4, :4], COVARIANCE[4:, 4:])
        published = np.kron(np.exp(-cdist(AT, AT) / H), np.eye(2))  # that of alg:dpgrams
        for wrong in (np.eye(12), apart, block_diag(COVARIANCE[:4, :4], published)):
            assert min(pvalues(noise, wrong, scale).values()) < certain

    def test_a_sum_left_out_is_seen(self, rounds, pvalues, certain):
        noise, scale = rounds
        assert min(pvalues(noise + scale, COVARIANCE, scale).values()) < certain


@pytest.fixture(scope="module", params=["simulation", "release"])
def heights(request, seed, table):
    """(noise of the one released height, its stated scale): a start that cannot move, at either door."""
    private = request.param == "release"
    points = np.random.default_rng(seed).normal(0, 0.7, (RECORDS, 2))
    data, found = table(points, private=private), []
    for number in range(HEIGHTS):
        release = run(
            "dp_grams",
            data,
            seed=None if private else seed + number,
            calibration="tight",
            bandwidth=H,
            n_steps=1,
            n_starts=1,
            candidates=[(0.0, 0.0)],
            clip_multiplier=1e-12,
            n_modes=1,
            epsilon=20.0,
        )
        assert release.door == request.param
        found.append(release.heights[0])
    scale = release.events[1].noise_scale
    prior = (TIGHT.prior * RECORDS) ** 2
    kept = prior / (prior + scale**2)  # what the prior leaves of a single observation
    return np.array(found) / kept - naive_sums(points, np.zeros((1, 2)))[0], scale


class TestHeights:
    """A height that is published is the kernel sum at its place with the noise that is priced."""

    def size(self, noise, scale):
        total = float((noise**2).sum()) / scale**2
        law = stats.chi2(len(noise))
        return 2 * min(law.cdf(total), law.sf(total), 0.5)

    def test_the_stated_scale_is_accepted(self, heights, flake_rate):
        assert self.size(*heights) > flake_rate

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, heights, certain):
        noise, scale = heights
        assert self.size(noise, factor * scale) < certain
