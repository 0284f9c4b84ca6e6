"""The law of DP-PMS's draws and the noise of its rounds, recovered from what runs release."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist

from dpgrams_core import run
from dpgrams_core.density import naive_density_and_gradient
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods.dp_pms import linear_parts, naive_clipped_shift
from dpgrams_core.methods.dp_pms_starts import draw_starts, sparse_windows
from dpgrams_core.methods.linear_rounds import joint_covariance

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
            self.Y, windows, self.CANDIDATES, epsilon=self.EPSILON, radius=0.05, noise=noise
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


def check(states, noise, covariance, scale, pvalues):
    """The least p-value of what is left after each run is whitened by its own covariance, for four tests."""
    different = {place.tobytes(): place for place in states}  # a few, since there are two candidates only
    roots = {key: np.linalg.cholesky(covariance(place)) for key, place in different.items()}
    factors = np.stack([roots[place.tobytes()] for place in states])
    white = np.linalg.solve(factors, noise[..., None])[..., 0]
    side_by_side = np.stack([white[0::2], white[1::2]], axis=2)  # two runs as two columns
    return min(1.0, 4 * min(pvalues(side_by_side, np.eye(K), scale).values()))


CLIP_MULTIPLIER, CLIP, FLOOR = 0.002, 30.0, 1.5


def experiments(points, states):
    return naive_clipped_shift(points, states, H, CLIP_MULTIPLIER / H)[0]


def theorem(points, states):
    density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, states, H)
    factor = np.minimum(1, CLIP / np.linalg.norm(gradient, axis=1))
    return H**2 * gradient[:, 1] * factor / np.maximum(density, FLOOR)


def slope_over_floor(points, states):
    _, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, states, H)
    return H**2 * gradient[:, 1] / 1e6


def exponential(states):
    return np.exp(-cdist(states, states) / H)  # K_t of alg:dp-pms


def slopes(states):
    return linear_parts(states, H)[1][K:, K:]


CASES = {
    "experiments": (experiments, exponential, {"clip_multiplier": CLIP_MULTIPLIER}),
    "theorem": (theorem, exponential, {"calibration": "theorem", "gradient_clip": CLIP, "density_floor": FLOOR}),
    # A floor above every density leaves the slope over the floor, and its noise is the slopes' block.
    "tight": (slope_over_floor, slopes, {"calibration": "tight", "gradient_clip": 1e12, "density_floor": 1e6}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, seed, table):
    exact, covariance, options = CASES[request.param]
    states, noise, release = recovered(seed, table, exact, **options)
    return states, noise, covariance, release.noise_scale / HEIGHT


class TestRounds:
    def test_the_stated_noise_is_accepted(self, case, pvalues, flake_rate):
        assert check(*case, pvalues) > flake_rate

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, case, pvalues, certain):
        states, noise, covariance, scale = case
        assert check(states, noise, covariance, factor * scale, pvalues) < certain

    def test_other_correlations_are_rejected(self, case, pvalues, certain):
        states, noise, covariance, scale = case
        other = exponential if covariance is slopes else slopes
        for wrong in (lambda states: np.eye(K), other):
            assert check(states, noise, wrong, scale, pvalues) < certain

    def test_a_step_left_out_is_seen(self, case, pvalues, certain):
        states, noise, covariance, scale = case
        assert check(states, noise + scale, covariance, scale, pvalues) < certain


@pytest.fixture(scope="module")
def quotients(seed, table):
    rng = np.random.default_rng(seed)
    points = unit(np.stack([rng.uniform(-1, 1, RECORDS), rng.normal(5, 0.5, RECORDS)], axis=1))

    def exact(_, states):
        density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, states, H)
        return H**2 * gradient[:, 1] / density

    options = {"calibration": "tight", "gradient_clip": 1e12, "density_floor": 1e-12, "epsilon": 1e6}
    options["init_bandwidth"] = 0.5  # so that the grid does not miss the data
    # Candidates on the flanks, where the score is large and so the noise of the density matters.
    states, noise, release = recovered(seed, table, exact, grid=(3.2, 6.8), **options)

    def covariance(states, both=True):
        density, gradient = naive_density_and_gradient(KERNELS["gaussian"], points, states, H)
        c = 1 / (2 * np.pi * RECORDS * H**2)  # kernel sums to densities
        to_step = c * H**2 * np.hstack([np.diag(-gradient[:, 1] / density**2), np.diag(1 / (density * H))])
        # Not by the code under test: the y-columns of the joint covariance, picked by hand.
        full = joint_covariance(states, H)
        rows = [0, 1, 2, 4, 6, 8]
        inner = full[rows][:, rows] if both else block_diag(np.zeros((K, K)), full[rows][:, rows][K:, K:])
        return to_step @ inner @ to_step.T

    return states, noise, covariance, release.events[1].noise_scale


class TestQuotients:
    """With neither floor nor clip and little noise, a step moves by (dg - step dp) / p: both blocks of C together."""

    def test_the_joint_covariance_is_accepted(self, quotients, pvalues, flake_rate):
        assert check(*quotients, pvalues) > flake_rate

    @pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
    def test_another_scale_is_rejected(self, factor, quotients, pvalues, certain):
        states, noise, covariance, scale = quotients
        assert check(states, noise, covariance, factor * scale, pvalues) < certain

    def test_noise_on_the_slopes_alone_is_rejected(self, quotients, pvalues, certain):
        states, noise, covariance, scale = quotients
        assert check(states, noise, lambda place: covariance(place, both=False), scale, pvalues) < certain
