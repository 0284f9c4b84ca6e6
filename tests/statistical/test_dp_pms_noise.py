"""The law of DP-PMS's draws and the noise of its rounds, recovered from what runs release."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_clipped_shift, naive_density_and_gradient
from dpgrams_core import run
from dpgrams_core.methods.dp_grams.rounds import joint_covariance
from dpgrams_core.methods.dp_pms.run import linear_parts
from dpgrams_core.methods.dp_pms.starts import draw_starts, sparse_windows
from dpgrams_core.numerics.kernels import KERNELS

RECORDS, RUNS, H, STEP, HEIGHT = 60, 800, 0.7, 0.8, 4.0
BOX = [(-1.0, 1.0), (3.0, 3.0 + HEIGHT)]
GRID = (4.6, 5.4)  # two candidates only, so that every joint start comes often
K = 3


class TestDraws:
    """Weights exp(epsilon_draw c_j(z) / 2), each draw independent of the others."""

    EPSILON = 0.9
    RUNS = 6_000
    # Three windows around 0.1, 0.5, 0.9; the records at 0.5 lie in one window only, so the overlap is 1.
    X = np.repeat([0.1, 0.5, 0.9], [12, 9, 6])
    Y = np.concatenate([np.repeat([0.2, 0.8], [8, 4]), np.repeat([0.2, 0.5], [3, 6]), np.repeat([0.8], [6])])
    CANDIDATES = np.array([0.2, 0.5, 0.8])
    COUNTS = np.array([[8, 0, 4], [3, 6, 0], [0, 0, 6]])

    @pytest.fixture
    def picks(self, noise):
        windows = sparse_windows(self.X, K, 0.1)
        assert (windows.x.tolist(), windows.overlap) == ([0.1, 0.5, 0.9], 1)
        draw = lambda: draw_starts(  # noqa: E731
            self.Y, windows, self.CANDIDATES, epsilon_each=self.EPSILON, radius=0.05, noise=noise
        )
        return np.stack([np.searchsorted(self.CANDIDATES, draw().points[:, 1]) for _ in range(self.RUNS)])

    def pvalues(self, picks, factor):
        """Of each draw's law with weights exp(factor epsilon c)."""
        weights = np.exp(factor * self.EPSILON * self.COUNTS)
        expected = self.RUNS * weights / weights.sum(axis=1, keepdims=True)
        return [stats.chisquare(np.bincount(picks[:, j], minlength=3), expected[j]).pvalue for j in range(K)]

    def test_each_draw_has_its_law(self, picks, flake_rate, certain):
        assert min(self.pvalues(picks, 1 / 2)) > flake_rate / K
        for wrong in (1.0, 1 / 3, 3 / 4, 1 / (2 * K)):  # 1 / (2 K): the printed split over all k draws
            assert min(self.pvalues(picks, wrong)) < certain

    def test_the_draws_are_independent(self, picks, flake_rate):
        found = []
        for one, two in itertools.combinations(range(K), 2):
            table = np.zeros((3, 3))
            np.add.at(table, (picks[:, one], picks[:, two]), 1)
            found.append(stats.chi2_contingency(table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]).pvalue)
        assert min(found) > flake_rate / len(found)


def unit(points):
    low, high = np.array(BOX).T
    return (points - low) / (high - low)


def recovered(seed, table, exact, grid=GRID, **options):
    """States (runs, k, 2) and noise of the step (runs, k) of many one-round runs in units of the box, and a release.

    ``exact`` gives the noiseless step at the joint states.
    """
    rng = np.random.default_rng(seed)
    points = np.stack([rng.uniform(-1, 1, RECORDS), rng.normal(5, 0.5, RECORDS)], axis=1)
    data = table(points, BOX, kind="regression")
    known, states, noise = {}, [], []
    for number in range(RUNS):
        release = run(
            "dp_pms",
            data,
            seed=seed + number,
            bandwidth=H,
            step_size=STEP,
            n_steps=1,
            batch_size=RECORDS,
            start_multiplier=K / math.log(RECORDS) - 1e-9,
            response_grid=grid,
            init_fraction=1e-9,  # uniform draws: the starts come in all their combinations
            **options,
        )
        start, end = release.trajectories
        assert len(start) == K
        key = tuple(start[:, 1].round(9))
        if key not in known:
            known[key] = exact(unit(points), unit(start))
        states.append(unit(start))
        noise.append((end - start)[:, 1] / HEIGHT / STEP - known[key])
    assert len(known) == len(grid) ** K
    return np.stack(states), np.stack(noise), release


def recovered_sums(seed, table, read_rounds, **options):
    """The same for the numbers that a round of ``tight`` releases, behind its noise: (runs, 2k)."""
    read_rounds.clear()
    _, _, release = recovered(seed, table, lambda points, _: 0.0 * points[:K, 0], calibration="tight", **options)
    points = release_points(seed)
    known, noise = {}, []
    for at, sums in read_rounds:
        key = at.tobytes()
        if key not in known:
            density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, at, H)
            known[key] = 2 * np.pi * RECORDS * H**2 * np.concatenate([density, H * gradient[:, 1]])
        noise.append(sums - known[key])
    assert len(noise) == RUNS
    return np.stack([at for at, _ in read_rounds]), np.stack(noise), release


def release_points(seed):
    """The records of ``recovered``, in units of the box."""
    rng = np.random.default_rng(seed)
    return unit(np.stack([rng.uniform(-1, 1, RECORDS), rng.normal(5, 0.5, RECORDS)], axis=1))


def check(states, noise, covariance, scale, pvalues):
    """The least p-value of what is left after each run is whitened by its own covariance, for four tests."""
    different = {place.tobytes(): place for place in states}  # a few, since there are two candidates only
    roots = {key: np.linalg.cholesky(covariance(place)) for key, place in different.items()}
    factors = np.stack([roots[place.tobytes()] for place in states])
    white = np.linalg.solve(factors, noise[..., None])[..., 0]
    side_by_side = np.stack([white[0::2], white[1::2]], axis=2)  # two runs as two columns
    return min(1.0, 4 * min(pvalues(side_by_side, np.eye(noise.shape[1]), scale).values()))


CLIP_MULTIPLIER, CLIP, FLOOR = 0.002, 30.0, 1.5


def experiments(points, states):
    return naive_clipped_shift(points, states, H, CLIP_MULTIPLIER / H)[0]


def theorem(points, states):
    density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, states, H)
    factor = np.minimum(1, CLIP / np.linalg.norm(gradient, axis=1))
    return H**2 * gradient[:, 1] * factor / np.maximum(density, FLOOR)


def exponential(states):
    return np.exp(-cdist(states, states) / H)  # K_t of alg:dp-pms


def slopes(states):
    return linear_parts(states, H)[1][K:, K:]


CASES = {
    "experiments": (experiments, exponential, {"clip_multiplier": CLIP_MULTIPLIER}),
    "theorem": (theorem, exponential, {"calibration": "theorem", "gradient_clip": CLIP, "density_floor": FLOOR}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, seed, table):
    exact, covariance, options = CASES[request.param]
    states, noise, release = recovered(seed, table, exact, **options)
    return states, noise, covariance, release.noise_scale / HEIGHT


class NoiseAsStated:
    """For any ``stated`` (states, noise, covariance, scale): the noise is the stated one, and no other."""

    def test_the_stated_noise_is_accepted(self, stated, pvalues, flake_rate):
        assert check(*stated, pvalues) > flake_rate

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, stated, pvalues, certain):
        states, noise, covariance, scale = stated
        assert check(states, noise, covariance, factor * scale, pvalues) < certain


class TestRounds(NoiseAsStated):
    @pytest.fixture
    def stated(self, case):
        return case

    def test_other_correlations_are_rejected(self, case, pvalues, certain):
        states, noise, _, scale = case
        for wrong in (lambda states: np.eye(K), slopes):
            assert check(states, noise, wrong, scale, pvalues) < certain

    def test_a_step_left_out_is_seen(self, case, pvalues, certain):
        states, noise, covariance, scale = case
        assert check(states, noise + scale, covariance, scale, pvalues) < certain


@pytest.fixture(scope="module")
def sums(seed, table, read_rounds, short_climbs):
    with short_climbs():
        states, noise, release = recovered_sums(seed, table, read_rounds)

    def covariance(states):
        # Not by the code under test: the y-columns of the joint covariance, picked by hand.
        return joint_covariance(states, H)[[0, 1, 2, 4, 6, 8]][:, [0, 1, 2, 4, 6, 8]]

    return states, noise, covariance, release.events[1].noise_scale


class TestSums(NoiseAsStated):
    """What a round of ``tight`` releases: sums and their slopes along y, with the noise of their joint covariance."""

    @pytest.fixture
    def stated(self, sums):
        return sums

    def test_other_correlations_are_rejected(self, sums, pvalues, certain):
        states, noise, _, scale = sums
        published = lambda place: np.kron(np.eye(2), exponential(place))  # noqa: E731
        for wrong in (lambda place: np.eye(2 * K), published):
            assert check(states, noise, wrong, scale, pvalues) < certain

    def test_a_sum_left_out_is_seen(self, sums, pvalues, certain):
        states, noise, covariance, scale = sums
        assert check(states, noise + scale, covariance, scale, pvalues) < certain
