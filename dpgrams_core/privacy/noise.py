"""The only place where privacy randomness is drawn.

One door so far: *simulation*, a NumPy generator from a seed, reproducible and marked so.
Private data need the release door (operating-system entropy, no seed); until that is built,
``run`` refuses data marked private.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

# Eigenvalues below this share of the largest are rounding error: nothing along them may leave.
SMALLEST_EIGENVALUE = 1e-10


class SimulationNoise:
    """Seeded noise for simulations on synthetic or public data."""

    door = "simulation"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._rng = np.random.default_rng(seed)

    def gumbel_argmax(self, log_weights: Array) -> int:
        """One index drawn with probability proportional to exp(log_weights), exactly.

        The index of the largest log-weight plus standard Gumbel noise has this law; no
        exponential of a large number is taken.
        """
        return int(np.argmax(log_weights + self._rng.gumbel(size=len(log_weights))))

    def correlated_gaussian(self, correlation: Array, scale: float, columns: int) -> Array:
        """(k, columns) with independent columns N(0, scale^2 * correlation).

        A symmetric root by eigenvalues, so that coinciding starts (a singular matrix) get
        identical noise instead of an error.
        """
        values, vectors = np.linalg.eigh(correlation)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return scale * (root @ self._rng.standard_normal((len(correlation), columns)))

    def covered_gaussian(self, exact: Array, covariance: Array, scale: float) -> Array:
        """``exact`` (k,) plus noise N(0, scale^2 * covariance), and nothing that this noise does not cover.

        The vector is written in the eigenvectors of the covariance, divided by the root of the eigenvalues,
        and gets *independent* N(0, scale^2) noise there.  Where the eigenvalue is zero but for rounding, an
        exact vector of the kind this is for (inner products with the functions whose Gram matrix the
        covariance is) has no component either; what rounding left there is dropped, not released bare.
        """
        values, vectors = np.linalg.eigh(covariance)
        kept = values > SMALLEST_EIGENVALUE * values[-1]
        root, basis = np.sqrt(values[kept]), vectors[:, kept]
        coefficients = (exact @ basis) / root
        noisy = coefficients + scale * self._rng.standard_normal(len(root))
        return basis @ (root * noisy)

    def independent_gaussian(self, exact: Array, scale: float) -> Array:
        """``exact`` plus independent N(0, scale^2) on every number of it."""
        return exact + scale * self._rng.standard_normal(exact.shape)

    def batch(self, n: int, size: int) -> Array:
        """``size`` of ``n`` record numbers, uniformly without replacement."""
        if size == n:
            return np.arange(n)
        return self._rng.choice(n, size=size, replace=False, shuffle=False)
