"""Kernels: moments, gradients and the paper's constants, each against an independent computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from dpgrams_core.model.errors import SpecError
from dpgrams_core.numerics.kernels import KERNELS, get_kernel

SMOOTH = [name for name, kernel in KERNELS.items() if kernel.smooth]
EDGE = {"gaussian": 12.0, "gaussian4": 14.0, "legendre4": 1.0}  # no mass beyond, to 30 digits


def moment(name, power):
    kernel = KERNELS[name]
    value, _ = quad(lambda u: u**power * float(kernel.profile(np.array(u))), -EDGE[name], EDGE[name], epsabs=1e-12)
    return value


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_integrates_to_one_and_has_its_order(name):
    assert moment(name, 0) == pytest.approx(1, abs=1e-9)
    order = KERNELS[name].order
    for power in range(1, order + 1):
        assert moment(name, power) == pytest.approx(0, abs=1e-9)
    # Odd moments vanish by symmetry, so the first moment that may differ from 0 is the next even one.
    first = order + 1 + (order + 1) % 2
    assert abs(moment(name, first)) > 0.01


def test_the_orders_are_those_that_the_paper_speaks_of():
    assert {name: kernel.order for name, kernel in KERNELS.items()} == {"gaussian": 1, "legendre4": 4, "gaussian4": 4}
    assert moment("gaussian", 2) == pytest.approx(1)
    assert moment("gaussian4", 6) == pytest.approx((15 * 15 - 10 * 105 + 945) / 8)
    assert moment("legendre4", 6) == pytest.approx(15 / 64 * (15 / 7 - 70 / 9 + 63 / 11))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_value_is_the_product_of_profiles(name, d, rng):
    kernel = KERNELS[name]
    u = rng.uniform(-1.5, 1.5, size=(4, 7, d))
    expected = np.array([[math.prod(float(kernel.profile(np.array(x))) for x in point) for point in row] for row in u])
    np.testing.assert_allclose(kernel.value(u), expected, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_gradient_is_that_of_finite_differences(name, d, rng):
    kernel, step = KERNELS[name], 1e-6
    reach = 0.99 if name == "legendre4" else 2.5  # the Legendre kernel jumps at 1
    u = rng.uniform(-reach, reach, size=(50, d))
    for j in range(d):
        offset = step * np.eye(d)[j]
        slope = (kernel.value(u + offset) - kernel.value(u - offset)) / (2 * step)
        np.testing.assert_allclose(kernel.gradient(u)[:, j], slope, atol=2e-8)


def test_the_legendre_kernel_ends_at_one_and_jumps_there():
    kernel = KERNELS["legendre4"]
    outside = np.array([[1.0001, 0.0], [0.0, -1.0001], [5.0, 5.0]])
    assert not kernel.value(outside).any()
    assert not kernel.gradient(outside).any()
    assert float(kernel.profile(np.array(1.0))) == pytest.approx(15 * 8 / 128)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("d", [1, 2])
def test_k_inf_and_g_k_are_those_of_a_dense_search(name, d):
    kernel = KERNELS[name]
    axis = np.linspace(0, 6, 60_001 if d == 1 else 1_501)  # by symmetry one quadrant is enough
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    found = kernel.constants(d)
    assert found.k_inf == pytest.approx(float(np.abs(kernel.value(points)).max()), rel=1e-8)
    searched = float(np.linalg.norm(kernel.gradient(points), axis=1).max())
    assert found.g_k == pytest.approx(searched, rel=1e-5)
    assert found.g_k >= searched * (1 - 1e-9)  # too small a constant would mean too little noise


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_the_gaussian_constants_have_a_closed_form(d):
    found = KERNELS["gaussian"].constants(d)
    assert found.k_inf == pytest.approx((2 * math.pi) ** (-d / 2))
    assert found.g_k == pytest.approx((2 * math.pi) ** (-d / 2) * math.exp(-0.5), rel=1e-7)


def test_g_k_of_the_order_four_kernel_in_three_dimensions_is_not_beaten_by_a_random_search(rng):
    kernel = KERNELS["gaussian4"]
    best = max(float(np.linalg.norm(kernel.gradient(rng.normal(0, 1, (200_000, 3))), axis=1).max()) for _ in range(3))
    assert 0.95 * kernel.constants(3).g_k < best <= kernel.constants(3).g_k


def one_over_transform(d, square):
    """1 / FT(exp(-|x|)) at squared frequency ``square``."""
    c_d = 2**d * math.pi ** ((d - 1) / 2) * math.gamma((d + 1) / 2)
    return (1 + square) ** ((d + 1) / 2) / c_d


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_the_constant_of_the_transform_is_the_mass_of_the_exponential(d):
    # FT at 0 is the integral of exp(-|x|) = surface of the unit sphere times Gamma(d).
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    assert 1 / one_over_transform(d, 0.0) == pytest.approx(sphere * math.gamma(d))


def test_the_transform_of_the_exponential_is_the_stated_one_in_one_dimension():
    for t in (0.3, 1.0, 4.0):
        value, _ = quad(lambda x: 2 * math.exp(-x), 0, np.inf, weight="cos", wvar=t)
        assert value == pytest.approx(1 / one_over_transform(1, t * t), rel=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("t", [0.0, 0.7, 2.0, 4.0])
def test_the_stated_fourier_transform_is_that_of_the_profile(name, t):
    kernel, edge = KERNELS[name], EDGE[name]
    wave = lambda u: float(kernel.profile(np.array(u))) * math.cos(t * u)  # noqa: E731
    value, _ = quad(wave, -edge, edge, limit=200, epsabs=1e-12)
    stated = math.exp(-t * t / 2) * sum(a * t ** (2 * i) for i, a in enumerate(kernel.fourier))
    assert value == pytest.approx(stated, abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_i_0_and_i_1_of_the_gaussian_are_the_radial_integrals(d):
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)

    def integral(power):
        inside = lambda r: r ** (d - 1 + power) * math.exp(-r * r) * one_over_transform(d, r * r)  # noqa: E731
        value, _ = quad(inside, 0, 40, epsabs=0, epsrel=1e-11, limit=300)
        return sphere * value / (2 * math.pi) ** d

    found = KERNELS["gaussian"].constants(d)
    assert found.i_0 == pytest.approx(integral(0), rel=1e-8)
    assert found.i_1 == pytest.approx(integral(2), rel=1e-8)


@pytest.mark.parametrize(
    ("d", "i_0", "i_1"),
    [(1, 0.211571, 0.176309), (2, 0.0388618, 0.0709578), (3, 0.00692225, 0.0197619), (6, 3.58631e-05, 2.12243e-04)],
)
def test_i_0_and_i_1_of_the_gaussian_are_the_printed_ones(d, i_0, i_1):
    found = KERNELS["gaussian"].constants(d)
    assert found.i_0 == pytest.approx(i_0, rel=5e-6)
    assert found.i_1 == pytest.approx(i_1, rel=5e-6)


def power_spectrum(t):
    """|FT|^2 of the smooth order-4 profile."""
    return math.exp(-t * t) * (1 + t * t / 2 + t**4 / 8) ** 2


def test_i_0_and_i_1_of_the_order_four_kernel_in_one_dimension():
    found = KERNELS["gaussian4"].constants(1)
    for power, value in ((0, found.i_0), (2, found.i_1)):
        inside = lambda t, power=power: t**power * power_spectrum(t) * one_over_transform(1, t * t)  # noqa: E731
        assert value == pytest.approx(quad(inside, -20, 20, epsrel=1e-11)[0] / (2 * math.pi), rel=1e-8)


def test_i_0_and_i_1_of_the_order_four_kernel_in_two_dimensions():
    found = KERNELS["gaussian4"].constants(2)
    for power, value in ((0, found.i_0), (1, found.i_1)):

        def inside(s, t, power=power):
            square = s * s + t * t
            return square**power * power_spectrum(s) * power_spectrum(t) * one_over_transform(2, square)

        integral, _ = dblquad(inside, 0, 8, 0, 8, epsrel=1e-7)  # one quadrant of four
        assert value == pytest.approx(4 * integral / (2 * math.pi) ** 2, rel=1e-6)


@pytest.mark.parametrize("d", [1, 2])
def test_the_legendre_kernel_has_no_finite_constants_but_its_height(d):
    found = KERNELS["legendre4"].constants(d)
    assert found.k_inf == pytest.approx((15 * 15 / 128) ** d)
    assert (found.g_k, found.i_0, found.i_1) == (math.inf, math.inf, math.inf)
    assert not KERNELS["legendre4"].smooth


def test_an_unknown_kernel_is_refused():
    assert get_kernel("gaussian") is KERNELS["gaussian"]
    with pytest.raises(SpecError, match="kernel = 'flat'"):
        get_kernel("flat")
