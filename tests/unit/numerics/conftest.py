"""What tests of released sums of kernels share."""

from __future__ import annotations

import math

import numpy as np
import pytest


@pytest.fixture(scope="session")
def kernel_sum():
    """``kernel_sum(points, x, h)``: the plain double loop."""

    def loop(points, x, h):
        return np.array([sum(math.exp(-float(((a - b) ** 2).sum()) / (2 * h**2)) for b in points) for a in x])

    return loop


@pytest.fixture(scope="session")
def case_in():
    """``case_in(d, h, rng)``: records, their box, a bandwidth, and places to look at, in so many columns."""

    def make(d, h, rng):
        box = np.array([[-3.0, 3.0]] * d) + np.arange(d)[:, None]
        return rng.uniform(box[:, 0], box[:, 1], (40, d)), box, h, rng.uniform(box[:, 0], box[:, 1], (12, d))

    return make


@pytest.fixture(scope="session")
def assert_slopes():
    """``assert_slopes(released, x, width)``: derivatives are finite differences; gives the second ones."""

    def check(released, x, width):
        step, near = 1e-5, 1e-6 * released.n
        value, gradient, laplacian = released.heat(x, width)
        np.testing.assert_allclose(value, released.value(x, width))
        np.testing.assert_allclose(gradient, released.gradient(x, width))
        bends = np.zeros((*x.shape, x.shape[1]))
        for j, axis in enumerate(np.eye(x.shape[1]) * step):
            slope = (released.value(x + axis, width) - released.value(x - axis, width)) / (2 * step)
            np.testing.assert_allclose(gradient[:, j], slope, atol=near)
            bends[:, j] = (released.gradient(x + axis, width) - released.gradient(x - axis, width)) / (2 * step)
        np.testing.assert_allclose(laplacian, np.trace(bends, axis1=1, axis2=2), atol=near)
        return bends

    return check
