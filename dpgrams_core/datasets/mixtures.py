"""Mixtures of isotropic Gaussian and t components, with the modes of their density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

Array = np.ndarray


@dataclass(frozen=True)
class Mixture:
    """A mixture sum_k weight_k t_dof_k(mean_k, scale_k^2 I); dof = inf is a Gaussian."""

    means: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    scales: tuple[float, ...]
    dofs: tuple[float, ...]

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.means[0])

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n independent draws: points (n, d) and the component of each."""
        labels = rng.choice(len(self.means), size=n, p=self.weights)
        noise = rng.standard_normal((n, self.dimension))
        stretch = np.ones(n)
        for k, dof in enumerate(self.dofs):
            if math.isfinite(dof):
                mine = labels == k
                # One chi-square per record: a multivariate t, not a product of t's.
                stretch[mine] = np.sqrt(dof / rng.chisquare(dof, size=int(mine.sum())))
        scales = np.asarray(self.scales)[labels] * stretch
        return np.asarray(self.means)[labels] + noise * scales[:, None], labels

    def density(self, x: Array) -> Array:
        """Density at x of shape (k, d)."""
        return self._components(x).sum(axis=1)

    def _components(self, x: Array) -> Array:
        """Weighted component densities, (k, components)."""
        d = self.dimension
        columns = []
        for mean, weight, scale, dof in zip(self.means, self.weights, self.scales, self.dofs, strict=True):
            square = ((x - np.asarray(mean)) ** 2).sum(axis=1) / scale**2
            if math.isfinite(dof):
                log_gamma = scipy.special.gammaln
                log = log_gamma((dof + d) / 2) - log_gamma(dof / 2) - d / 2 * math.log(dof * math.pi)
                log = log - (dof + d) / 2 * np.log1p(square / dof)
            else:
                log = -d / 2 * math.log(2 * math.pi) - square / 2
            columns.append(weight * np.exp(log - d * math.log(scale)))
        return np.stack(columns, axis=1)

    def _pull(self, x: Array) -> Array:
        """Weight of each mean in the fixed-point equation grad p(x) = 0, (k, components)."""
        pulls = self._components(x)
        for k, (mean, scale, dof) in enumerate(zip(self.means, self.scales, self.dofs, strict=True)):
            square = ((x - np.asarray(mean)) ** 2).sum(axis=1) / scale**2
            pulls[:, k] *= (dof + self.dimension) / (dof + square) if math.isfinite(dof) else 1.0
            pulls[:, k] /= scale**2
        return pulls

    def modes(self) -> Array:
        """The modes of the density, found numerically, in the order of the nearest mean."""
        return _density_modes(self)


def seeded_points(law: Mixture | None, box: Array, n: int, seed: int) -> Array:
    """n draws of a mixture by a seed, (n, d); without one they are spread evenly over the box."""
    rng = np.random.default_rng([seed, n])
    return rng.uniform(box[:, 0], box[:, 1], (n, len(box))) if law is None else law.sample(n, rng)[0]


@lru_cache(maxsize=32)
def _density_modes(mixture: Mixture) -> Array:
    """Climb the exact density from the means and from a lattice over their bounding box.

    grad p(x) = 0 reads x = sum_k pull_k(x) mean_k / sum_k pull_k(x); iterating it is mean shift
    on the mixture itself.  Every mode therefore lies in the convex hull of the means, which the
    lattice covers, so a mode that stands at no mean is found too.
    """
    means = np.asarray(mixture.means, dtype=float)
    side = max(2, int(600 ** (1 / mixture.dimension)))
    axes = [np.linspace(low, high, side) for low, high in zip(means.min(axis=0), means.max(axis=0), strict=True)]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, mixture.dimension)
    x = np.concatenate([means, lattice])
    for _ in range(20_000):
        pulls = mixture._pull(x)
        moved = pulls @ means / pulls.sum(axis=1, keepdims=True)
        done = float(np.abs(moved - x).max()) < 1e-14
        x = moved
        if done:
            break
    modes: list[Array] = []
    for point in x[np.argsort(-mixture.density(x))]:
        new = all(np.linalg.norm(point - other) > 1e-6 for other in modes)
        if new and _is_peak(mixture, point):
            modes.append(point)
    nearest = [int(np.argmin(((means - mode) ** 2).sum(axis=1))) for mode in modes]
    result = np.array([modes[i] for i in np.argsort(nearest, kind="stable")])
    result.setflags(write=False)  # the cache hands the same array to everyone
    return result


def _is_peak(mixture: Mixture, point: Array) -> bool:
    """Whether the Hessian at a stationary point is negative definite.

    All of it is needed: a saddle that rises only along a diagonal falls along every axis.
    """
    probe = 1e-3 * min(mixture.scales)
    steps = probe * np.eye(len(point))

    def at(offset: Array) -> float:
        return float(mixture.density((point + offset)[None])[0])

    hessian = [[at(a + b) - at(a - b) - at(b - a) + at(-a - b) for b in steps] for a in steps]
    return bool(np.linalg.eigvalsh(np.array(hessian) / at(0 * steps[0]))[-1] < -1e-10)


FOUR_CORNERS = Mixture(
    means=((3, 3), (3, -3), (-3, 3), (-3, -3)),
    weights=(0.25,) * 4,
    scales=(1.0,) * 4,
    dofs=(math.inf,) * 4,
)  # sec:gaussian-example

T_MIXTURE = Mixture(
    means=((0, 0), (6, 0), (-6, 0), (0, 6), (0, -6)),
    weights=(0.2,) * 5,
    scales=(0.1, 0.9, 1.3, 1.0, 0.4),
    dofs=(15, 6, 10, 8, 20),
)  # sec:t-mixture-example
