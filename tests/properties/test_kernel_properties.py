"""What holds for every kernel at every point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgrams_core.numerics.density import density_and_gradient
from dpgrams_core.numerics.kernels import KERNELS

points = st.integers(1, 4).flatmap(lambda d: arrays(float, (3, d), elements=st.floats(-30, 30)))
names = st.sampled_from(sorted(KERNELS))


@given(name=names, u=points)
def test_a_kernel_is_even_and_its_gradient_odd(name, u):
    kernel = KERNELS[name]
    # To the last digits: NumPy's powers of a negative number may round the other way.
    np.testing.assert_allclose(kernel.value(u), kernel.value(-u), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(kernel.gradient(u), -kernel.gradient(-u), rtol=1e-13, atol=1e-300)


@given(name=names, u=points, data=st.data())
def test_a_kernel_does_not_know_the_order_or_the_sign_of_coordinates(name, u, data):
    kernel, d = KERNELS[name], u.shape[1]
    order = data.draw(st.permutations(range(d)))
    signs = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=d, max_size=d)))
    np.testing.assert_allclose(kernel.value(signs * u[:, order]), kernel.value(u), rtol=1e-12, atol=0)
    turned, straight = kernel.gradient(signs * u[:, order]), signs * kernel.gradient(u)[:, order]
    np.testing.assert_allclose(turned, straight, rtol=1e-12, atol=1e-300)


@given(name=names, u=points)
def test_no_value_is_above_k_inf_and_no_slope_above_g_k(name, u):
    kernel = KERNELS[name]
    constants = kernel.constants(u.shape[1])
    assert np.abs(kernel.value(u)).max() <= constants.k_inf * (1 + 1e-9)
    assert np.linalg.norm(kernel.gradient(u), axis=1).max() <= constants.g_k * (1 + 1e-9)


@given(
    records=arrays(float, (6, 2), elements=st.floats(-20, 20)), at=arrays(float, (4, 2), elements=st.floats(-20, 20))
)
def test_a_gaussian_density_is_never_negative_and_never_too_high(records, at):
    density, _ = density_and_gradient(KERNELS["gaussian"], records, at, 0.7)
    assert (density >= 0).all()
    assert (density <= KERNELS["gaussian"].constants(2).k_inf / 0.7**2 * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", sorted(KERNELS))
@given(shift=arrays(float, 2, elements=st.floats(-5, 5)), scale=st.floats(0.2, 5))
def test_a_density_moves_with_its_data_and_scales_with_its_units(name, shift, scale):
    # No record stands at exactly one bandwidth, where the Legendre kernel jumps.
    records = np.array([[0.0, 0.12], [1.03, -0.52], [0.31, 0.87]])
    at = np.array([[0.2, 0.1], [0.7, 0.3]])
    kernel = KERNELS[name]
    density, gradient = density_and_gradient(kernel, records, at, 0.8)
    moved = density_and_gradient(kernel, scale * (records + shift), scale * (at + shift), scale * 0.8)
    np.testing.assert_allclose(moved[0], density / scale**2, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(moved[1], gradient / scale**3, rtol=1e-6, atol=1e-7 / scale**3)
