"""Smoothing kernels as products of one-dimensional profiles, with the paper's constants.

K(u) = k(u_1) ... k(u_d).  Each kernel knows its profile k, the derivative k' and the
constants of assump:kernel and eq:def-I0I1 (K_inf, G_K, I_0, I_1), ``inf`` where none exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from dpgrams_core.model.checks import one_of

Array = np.ndarray
Profile = Callable[[Array], Array]


@dataclass(frozen=True)
class KernelConstants:
    """Constants of a product kernel in d dimensions; ``inf`` where they do not exist."""

    k_inf: float
    g_k: float
    i_0: float
    i_1: float


@dataclass(frozen=True)
class Kernel:
    """A product kernel.

    ``order`` counts the vanishing moments as the paper does (def:kernel-order, moments 1..order);
    ``fourier`` lists a_0, a_1, ... with FT(k)(t) = exp(-t^2/2) * sum_i a_i t^(2i), empty if the
    kernel is not smooth.
    """

    name: str
    title: str
    order: int
    profile: Profile
    derivative: Profile
    fourier: tuple[float, ...]

    @property
    def smooth(self) -> bool:
        """Whether the kernel satisfies assump:kernel."""
        return bool(self.fourier)

    def value(self, u: Array) -> Array:
        """K(u) for u of shape (..., d)."""
        return np.prod(self.profile(u), axis=-1)

    def gradient(self, u: Array) -> Array:
        """Gradient of K at u, of shape (..., d); for a kernel with a jump, inside its support."""
        values = self.profile(u)
        result = self.derivative(u)
        for j in range(u.shape[-1]):
            others = np.prod(np.delete(values, j, axis=-1), axis=-1)
            result[..., j] *= others
        return result

    def constants(self, d: int) -> KernelConstants:
        """K_inf, G_K, I_0 and I_1 in d dimensions."""
        return _constants(self.name, d)


def _gaussian(u: Array) -> Array:
    return np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)


def _gaussian_slope(u: Array) -> Array:
    return -u * _gaussian(u)


def _gaussian4(u: Array) -> Array:
    square = u * u
    return (15 - 10 * square + square * square) / 8 * _gaussian(u)


def _gaussian4_slope(u: Array) -> Array:
    square = u * u
    return -u * (35 - 14 * square + square * square) / 8 * _gaussian(u)


def _legendre4(u: Array) -> Array:
    square = u * u
    return np.where(np.abs(u) <= 1, 15 * (15 - 70 * square + 63 * square * square) / 128, 0.0)


def _legendre4_slope(u: Array) -> Array:
    return np.where(np.abs(u) <= 1, 15 * (252 * u**3 - 140 * u) / 128, 0.0)


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("gaussian", "Gaussian", 1, _gaussian, _gaussian_slope, (1.0,)),
        Kernel("legendre4", "order-4 Legendre (jumps at the edge)", 4, _legendre4, _legendre4_slope, ()),
        Kernel("gaussian4", "order-4 Gaussian (smooth)", 4, _gaussian4, _gaussian4_slope, (1.0, 0.5, 0.125)),
    )
}


def get_kernel(name: str) -> Kernel:
    """Look a kernel up by name."""
    return KERNELS[one_of("kernel", name, KERNELS)]


@lru_cache(maxsize=64)
def _constants(name: str, d: int) -> KernelConstants:
    kernel = KERNELS[name]
    grid = np.linspace(0, 1 if not kernel.smooth else 8, 80_001)
    k_inf = float(np.abs(kernel.profile(grid)).max()) ** d
    if not kernel.smooth:
        # A jump has no bounded slope, and its Fourier transform decays like 1/t, too slowly
        # for the integrals of eq:def-I0I1.
        return KernelConstants(k_inf, math.inf, math.inf, math.inf)
    i_0, i_1 = _correlation_integrals(kernel.fourier, d)
    return KernelConstants(k_inf, _largest_gradient(kernel, d), i_0, i_1)


def _largest_gradient(kernel: Kernel, d: int) -> float:
    """sup |grad K|: coordinate ascent, since |grad K|^2 is affine in each pair (k(u_j)^2, k'(u_j)^2)."""
    grid = np.linspace(0, 6, 60_001)
    value, slope = kernel.profile(grid) ** 2, kernel.derivative(grid) ** 2
    best = 0.0
    for n_sloped in range(1, d + 1):  # start with this many coordinates on the steepest part
        a = np.full(d, value.max())
        b = np.zeros(d)
        a[:n_sloped], b[:n_sloped] = value[slope.argmax()], slope.max()
        for _ in range(20):
            for j in range(d):
                rest = np.delete(a, j)
                product = np.prod(rest)
                others = sum(b[i] * np.prod(np.delete(a, [i, j])) for i in range(d) if i != j)
                choice = int(np.argmax(others * value + product * slope))
                a[j], b[j] = value[choice], slope[choice]
        best = max(best, float(sum(b[i] * np.prod(np.delete(a, i)) for i in range(d))))
    return math.sqrt(best)


def _correlation_integrals(fourier: tuple[float, ...], d: int) -> tuple[float, float]:
    """I_0 and I_1 of eq:def-I0I1 for the exponential correlation kernel, in any dimension.

    FT(exp(-|x|))(t) = c_d (1 + |t|^2)^(-(d+1)/2), so both integrals are moments of
    (1 + r^2)^s under prod_j |FT(k)(t_j)|^2.  Whole powers come from a power series:
    E (1 + r^2)^p = p! [z^p] e^z prod_j (sum_i E t^(2i) z^i / i!).  A half power uses
    x^(-1/2) = 2/sqrt(pi) int exp(-x s^2) ds, which only rescales the Gaussian factor.
    """
    square = np.convolve(fourier, fourier)  # coefficients of |FT(k)|^2 exp(t^2) in t^2
    whole = (d + 2) // 2
    half_left = 2 * whole - (d + 1)  # 1 when (d+1)/2 is not whole

    def moments(s: float, power: int) -> float:
        """Integral of (1 + r^2)^power exp(-s^2 (1 + r^2)) prod |FT(k)(t_j)|^2 dt."""
        width = 1 + s * s
        axis = [
            sum(c * math.gamma(l + i + 0.5) * width ** -(l + i + 0.5) for l, c in enumerate(square)) / math.factorial(i)
            for i in range(power + 1)
        ]
        series = np.array([1 / math.factorial(i) for i in range(power + 1)])
        for _ in range(d):
            series = np.convolve(series, axis)[: power + 1]
        return float(math.factorial(power) * series[power] * math.exp(-s * s))

    def integral(power: int) -> float:
        if not half_left:
            return moments(0.0, power)

        value, _ = scipy.integrate.quad(lambda s: moments(s, power), 0, np.inf, epsabs=0, epsrel=1e-12, limit=200)
        return 2 / math.sqrt(math.pi) * float(value)

    c_d = 2**d * math.pi ** ((d - 1) / 2) * math.gamma((d + 1) / 2)
    i_0 = integral(whole) / c_d / (2 * math.pi) ** d
    with_radius = integral(whole + 1) / c_d / (2 * math.pi) ** d  # r^2 = (1 + r^2) - 1
    return i_0, with_radius - i_0
