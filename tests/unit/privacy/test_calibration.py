"""The noise scale against numbers computed apart from this code (d = 2, delta = 1e-6, Gaussian kernel)."""

from __future__ import annotations

import math

import pytest

from dpgrams_core import load_dataset, run
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.privacy.calibration import (
    gaussian_delta,
    gaussian_multiplier,
    nominal_sensitivity,
    published_sensitivity,
    published_sigma,
    round_epsilon,
)

FIVE_DIGITS = 5e-6
CLIP = 0.05  # A
CASES = [  # n, h, eps_modes, p_floor, sigma of the theorem, sigma of the experiments with clip_multiplier 1
    (1_000, 1.0, 0.9, 0.02, 20.1212, 0.374804),
    (5_000, 0.8, 0.9, 0.02, 7.84273, 0.167885),
    (100_000, 0.6, 4.5, 0.01, 0.775521, 0.00639296),
]


def sigma(sensitivity, n, epsilon):
    rounds, batch_size = math.ceil(math.log(n)), math.ceil(n / math.log(n))
    return published_sigma(sensitivity, epsilon=epsilon, delta=1e-6, n=n, batch_size=batch_size, rounds=rounds)


@pytest.mark.parametrize(("n", "h", "epsilon", "floor", "theorem", "experiments"), CASES)
def test_sigma_has_its_checked_values(n, h, epsilon, floor, theorem, experiments):
    constants = KERNELS["gaussian"].constants(2)
    published = published_sensitivity(constants, h, 2, CLIP, floor)
    assert sigma(published, n, epsilon) == pytest.approx(theorem, rel=FIVE_DIGITS)
    assert sigma(nominal_sensitivity(1.0, h, 2), n, epsilon) == pytest.approx(experiments, rel=FIVE_DIGITS)


@pytest.mark.parametrize(("n", "h", "epsilon", "floor", "theorem", "experiments"), CASES[:2])
def test_a_run_uses_the_checked_sigma(n, h, epsilon, floor, theorem, experiments, seed):
    data = load_dataset("four_corners", n=n, seed=seed)
    options = {"epsilon": 1.0, "init_fraction": 0.1, "delta": 1e-6, "bandwidth": h, "seed": seed}  # 0.9 for the ascent
    release = run("dp_grams", data, calibration="theorem", gradient_clip=CLIP, density_floor=floor, **options)
    assert release.noise_scale == pytest.approx(theorem, rel=FIVE_DIGITS)
    release = run("dp_grams", data, calibration="experiments", clip_multiplier=1.0, **options)
    assert release.noise_scale == pytest.approx(experiments, rel=FIVE_DIGITS)


def test_the_sensitivities_as_printed():
    constants = KERNELS["gaussian"].constants(2)
    h, clip, floor = 0.8, 0.05, 0.02
    by_hand = 2 * math.sqrt(2) * (math.sqrt(0.0709578) / floor / h**3 + clip * math.sqrt(0.0388618) / floor**2 / h**2)
    assert published_sensitivity(constants, h, 2, clip, floor) == pytest.approx(by_hand, rel=FIVE_DIGITS)
    assert nominal_sensitivity(3.0, h, 2) == pytest.approx(6 / h**3)


def test_each_of_the_three_terms_can_be_the_least():
    # eps_iter = min(log(1 + (e-1) m/n), eps / (2 sqrt(2 T ln(2/delta))), sqrt(eps / (4 T)))
    first = math.log1p((math.e - 1) * 0.1)
    assert round_epsilon(1e6, 1e-6, 1000, 100, 7) == pytest.approx(first)
    second = 1.0 / (2 * math.sqrt(2 * 7 * math.log(2e6)))
    assert round_epsilon(1.0, 1e-6, 1000, 1000, 7) == pytest.approx(second)
    # A delta near 1 and many rounds leave the third.
    assert round_epsilon(8.0, 0.99, 10, 10, 20) == pytest.approx(math.sqrt(8 / 80))


def test_the_default_floor_and_clip_follow_the_multiplier(corners):
    spec = run("dp_grams", corners, calibration="theorem", clip_multiplier=4.0, bandwidth=0.7, seed=0).spec
    slope = math.exp(-0.5) / (2 * math.pi)  # G_K
    assert spec.density_floor == pytest.approx(slope / 4, rel=1e-6)
    assert spec.gradient_clip == pytest.approx(slope / 4 / 0.7, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.5])
def test_the_least_noise_is_on_the_safe_side_of_its_root(epsilon, delta):
    assert gaussian_delta(epsilon, gaussian_multiplier(epsilon, delta)) <= delta
