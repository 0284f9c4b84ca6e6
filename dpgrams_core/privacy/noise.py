"""The only place where privacy randomness is drawn.

Two doors.  *Simulation*: a NumPy generator from a seed, reproducible and marked so, for synthetic and public
data.  *Release*, for data marked private: no seed is taken, kept or shown, and the noise comes from OpenDP's
vetted samplers and the operating system.  What the doors share is written once, in :class:`Noise`.

No sampler sees what is not a finite number.  OpenDP reads NaN as 0, and no proof covers that: a record that turns a sum
into NaN would show in the result whatever epsilon is.  So both doors refuse such numbers before they draw.  After a
charge a refusal that depends on a record tells of it as well.  Hence this is a guard against bugs and no part of any
guarantee: at the release door every record is in a box of bounded size (methods/door.py), where no sum can overflow,
and tests/unit/methods/test_extreme_neighbours.py looks for a record that gets here all the same.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from dpgrams_core.model.errors import DataError
from dpgrams_core.numerics.rounding import LATTICE, SOLVER, UNIT, running_sum, whitened_axes

Array = np.ndarray

# OpenDP's lattice is one part in 2^53 to 2^52 of the noise scale: the spacing of doubles of that size.
LATTICE_BITS = 53
# The price of the lattice is checked at these noises in units of the sensitivity: an ordinary one, and one beyond what
# the least epsilon that can be asked for needs (1e-6 with delta = 1e-100).
CHECKED_MULTIPLIERS = (2.0**10, 2.0**25)


def refuse_not_finite(numbers: Array) -> None:
    """Draw nothing for what is not a number; the sentence repeats none of them."""
    if not np.isfinite(numbers).all():
        raise RuntimeError("a number that is not finite reached the noise; this is a bug, and nothing was drawn")


def _open_places(log_weights: Array) -> Array:
    """The places that can be chosen: a weight of -inf closes one, and the others must be numbers."""
    places = np.flatnonzero(log_weights != -math.inf)
    refuse_not_finite(log_weights[places])
    if len(places) == 0:
        raise RuntimeError("there is nothing to choose from; this is a bug, and nothing was drawn")
    return places


class Noise(ABC):
    """A door for randomness: each one draws the same laws, each from its own source."""

    __slots__ = ()

    door: ClassVar[str]

    @abstractmethod
    def gumbel_argmax(self, log_weights: Array) -> int:
        """One index drawn with probability proportional to exp(log_weights), exactly."""

    @abstractmethod
    def independent_gaussian(self, exact: Array, scale: float) -> Array:
        """``exact`` plus independent N(0, scale^2) on every number of it."""

    @abstractmethod
    def rotated_gaussian(self, exact: Array, basis: Array, scale: float) -> Array:
        """``exact`` (r,) plus independent N(0, scale^2): coordinates in the orthonormal columns of ``basis`` (k, r)."""

    @abstractmethod
    def batch(self, n: int, size: int) -> Array:
        """``size`` of ``n`` record numbers, uniformly without replacement."""

    @abstractmethod
    def library_seed(self) -> int | None:
        """A seed for a library that draws its own noise: a number in simulations, none at the release door."""

    def correlated_gaussian(self, correlation: Array, scale: float, columns: int) -> Array:
        """(k, columns) with independent columns N(0, scale^2 * correlation).

        By the symmetric root of the matrix, which coinciding starts (a singular matrix) get identical noise from
        instead of an error.  It is one matrix, where eigenvectors are not: their signs, and their choice where
        eigenvalues nearly coincide, are up to the machine's library, and a seed must mean the same everywhere.
        """
        refuse_not_finite(correlation)
        values, vectors = np.linalg.eigh(correlation)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return scale * (root @ self.independent_gaussian(np.zeros((len(correlation), columns)), 1.0))

    def covered_gaussian(self, tables: Iterable[Array], covariance: Array, scale: float) -> Array:
        """A vector (k,) plus noise N(0, scale^2 * covariance), and nothing that this noise does not cover.

        The vector is written in the eigenvectors of the covariance, divided by the root of the eigenvalues,
        and gets *independent* N(0, scale^2) noise there.  Where the eigenvalue is zero but for rounding, an
        exact vector of the kind this is for (inner products with the functions whose Gram matrix the
        covariance is) has no component either; what rounding left there is dropped, not released bare.
        The eigenvalues are lifted by a hair, so that rounding never makes the noise too small (rounding.py).

        The vector comes as tables (m, k) whose rows add up to it: each row is divided before they are added, since
        dividing by a small root would magnify the rounding of a long sum.
        """
        refuse_not_finite(covariance)
        axes, root = whitened_axes(covariance)

        def whitened_sum(table: Array) -> Array:
            refuse_not_finite(table)
            return np.asarray((np.atleast_2d(table) @ axes / root).sum(axis=0))

        whitened = running_sum(map(whitened_sum, tables))
        return np.asarray(axes @ (root * self.rotated_gaussian(whitened, axes, scale)))

    def projected_gaussian(self, coefficients: Array, functionals: Array, covariance: Array, scale: float) -> Array:
        """The products of ``functionals`` (k, ...) with ``coefficients`` (...), plus noise N(0, scale^2 * covariance).

        For functionals whose Gram matrix the covariance is, and coefficients in an orthonormal basis.  In the
        eigenvectors of the covariance, divided by their roots, the functionals are no longer than 1 together, and
        where rounding says otherwise they are shortened: so what gets *independent* N(0, scale^2) noise moves no
        farther than the coefficients do.  The norm is computed from the product of the matrix with itself, whose
        numbers are off by at most the length of a row times u, and so is not trusted to more than that.
        """
        refuse_not_finite(coefficients)
        refuse_not_finite(functionals)
        refuse_not_finite(covariance)
        axes, root = whitened_axes(covariance)
        table = (axes / root).T @ functionals.reshape(len(functionals), -1)
        square = float(np.linalg.eigvalsh(table @ table.T)[-1])
        unsure = len(table) * (table.shape[1] + SOLVER + 2) * UNIT
        table /= max(1.0, math.sqrt(square + unsure * max(1.0, square)))
        whitened = table.reshape(-1, *coefficients.shape) * coefficients
        for _ in coefficients.shape:  # one axis after the other: short sums round less
            whitened = whitened.sum(axis=-1)
        return np.asarray(axes @ (root * self.rotated_gaussian(whitened, axes, scale)))


class SimulationNoise(Noise):
    """Seeded noise for simulations on synthetic or public data."""

    door = "simulation"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._rng = np.random.default_rng(seed)

    def gumbel_argmax(self, log_weights: Array) -> int:
        """The largest log-weight plus standard Gumbel noise; no exponential of a large number is taken."""
        _open_places(log_weights)
        return int(np.argmax(log_weights + self._rng.gumbel(size=len(log_weights))))

    def independent_gaussian(self, exact: Array, scale: float) -> Array:
        refuse_not_finite(exact)
        return exact + scale * self._rng.standard_normal(exact.shape)

    def rotated_gaussian(self, exact: Array, basis: Array, scale: float) -> Array:
        """``exact`` plus independent noise that is drawn in the outer coordinates and then written in the basis.

        The law is the same, since the columns are orthonormal; and the same seed gives the same vector, whichever
        of the possible bases the machine's library has found.
        """
        refuse_not_finite(exact)
        return exact + scale * (basis.T @ self._rng.standard_normal(len(basis)))

    def batch(self, n: int, size: int) -> Array:
        if size == n:
            return np.arange(n)
        return self._rng.choice(n, size=size, replace=False, shuffle=False)

    def library_seed(self) -> int:
        """The next number of this stream, as the ``random_state`` of a library: the same seed, the same run.

        >>> SimulationNoise(0).library_seed() == SimulationNoise(0).library_seed()
        True
        """
        return int(self._rng.integers(2**31))


class RepeatedDraws:
    """The draws of somebody else's simulation, repeated in the order in which that code made them; no privacy.

    The tables of the paper come from a plain NumPy generator: a choice by weights, a shuffled choice of records and a
    block of normals.  Other draws with the same laws, as those of :class:`SimulationNoise` are, give other tables.
    It is no :class:`Noise` and takes a simulation's: a release has none to give (``ReleaseNoise`` keeps no generator).
    """

    __slots__ = ("_rng",)

    def __init__(self, noise: SimulationNoise) -> None:
        if not isinstance(noise, SimulationNoise) or noise.door == "release":
            raise RuntimeError("repeated draws are for simulations; this is a bug, and nothing was drawn")
        self._rng = np.random.default_rng(noise.seed)

    def weighted(self, places: Array, log_weights: Array) -> int:
        """One of the places, with probability proportional to exp(log_weights)."""
        refuse_not_finite(log_weights)
        weights = np.exp(log_weights - log_weights.max())
        return int(self._rng.choice(places, p=weights / weights.sum()))

    def batch(self, n: int, size: int) -> Array:
        """``size`` of ``n`` record numbers without replacement, in the order drawn."""
        return self._rng.choice(n, size=size, replace=False)

    def normals(self, shape: tuple[int, ...]) -> Array:
        """A block of independent standard normals."""
        return self._rng.standard_normal(shape)


class ReleaseNoise(Noise):
    """Noise for private data: operating-system entropy, no seed, and no state from which a draw could be read.

    Gaussian noise and the choice of an index come from OpenDP, whose samplers are exact on a lattice and
    proven; OpenDP takes its bits from a cryptographic generator that the operating system seeds.  What is
    *not* protected is the time that a draw takes, which depends on what is drawn.

    >>> noise = ReleaseNoise()
    >>> noise, noise.door, len(noise.batch(1000, 10))
    (ReleaseNoise(), 'release', 10)
    """

    __slots__ = ()

    door = "release"

    def __init__(self) -> None:
        _opendp()  # refuse here, before anything is read or drawn

    def __repr__(self) -> str:
        return "ReleaseNoise()"

    def gumbel_argmax(self, log_weights: Array) -> int:
        """OpenDP's noisy maximum with Gumbel noise, which in OpenDP goes with the zCDP measure (its pure-DP
        measure takes exponential noise, another law).  It never forms a Gumbel number: it proposes an index
        uniformly and accepts it with probability exp(weight - largest), by exact rational arithmetic.  So the
        law is that of the exponential mechanism, and the pure guarantee that is priced for it holds.
        A weight of -inf can never win and is taken out first, since OpenDP would read it as a finite number.
        About N / sum_j exp(weight_j - largest) proposals for N candidates, some tens of microseconds each: a
        millisecond for the usual grid, some ten seconds at worst for 200,000 candidates.
        """
        domains, measurements, measures, metrics = _opendp()
        open_ = _open_places(log_weights)
        noisy_max = measurements.make_noisy_max(
            domains.vector_domain(domains.atom_domain(T=float, nan=False)),
            metrics.linf_distance(T=float),
            measures.zero_concentrated_divergence(),
            scale=1.0,
        )
        return int(open_[noisy_max(log_weights[open_].tolist())])

    def independent_gaussian(self, exact: Array, scale: float) -> Array:
        """``exact`` plus independent N(0, scale^2) on every number of it, by OpenDP's Gaussian measurement.

        OpenDP rounds each number to a lattice of spacing 2^k, adds *discrete* Gaussian noise on that lattice by
        exact sampling, and returns the nearest double.  Doubles leak through their low bits when noise is
        added in floating point; lattice points do not, and turning them back to doubles is post-processing.

        Price of the lattice.  Rounding moves each of N numbers by at most 2^(k-1) in each of two neighbouring
        worlds, so it adds at most r = sqrt(N) 2^k <= sqrt(N) 2^-52 scale to the L2 sensitivity; the sensitivities that
        noise is set for hold this (rounding.py), down to the least epsilon.  For a shift by lattice points the law of
        the noise may be exchanged for that of continuous noise rounded to the lattice, which is post-processing of
        the Gaussian mechanism that we price: the two laws differ, point by point and up to 60 standard deviations,
        by a factor within exp(+-N 450 2^-104), 1e-22 for N = 2,000,000 (assets/proof/2_functional.md).  OpenDP itself
        states the zCDP price (D + r)^2 / (2 scale^2) (Canonne, Kamath & Steinke 2020).  Every call compares that
        with D^2 / (2 scale^2) before it draws, so a change of OpenDP's meaning of ``scale`` ends in an error and not
        in a release.  About 25 microseconds a number: 0.1 s for a release of 5,000, a minute for 2,000,000.
        """
        refuse_not_finite(exact)
        measurement = gaussian_measurement(exact.size, scale)
        return np.array(measurement(np.ravel(exact).tolist()), dtype=float).reshape(exact.shape)

    def rotated_gaussian(self, exact: Array, basis: Array, scale: float) -> Array:  # noqa: ARG002 (any basis will do)
        """``exact`` plus independent noise on every coordinate; there is no seed that would have to mean the same."""
        return self.independent_gaussian(exact, scale)

    def batch(self, n: int, size: int) -> Array:
        """The records with the smallest of n independent 64-bit keys.  The keys are exchangeable, so given
        that the last one in and the first one out differ, every subset is equally likely; a tie there
        (one in 10^13 at a million records) is drawn again.
        """
        if size == n:
            return np.arange(n)
        while True:
            keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
            order = np.argpartition(keys, size)
            if keys[order[:size]].max() < keys[order[size]]:
                return order[:size]

    def library_seed(self) -> None:
        """None: the library must turn to the operating system itself.

        diffprivlib does for its noise (``secrets.SystemRandom``).  Its sampler is its own and not OpenDP's, so
        nothing drawn this way is called proven.
        """
        return


def _opendp() -> tuple[Any, Any, Any, Any]:
    """OpenDP's modules (domains, measurements, measures, metrics), loaded only where a release needs them."""
    try:
        from opendp import domains, measurements, measures, metrics
        from opendp.mod import enable_features
    except Exception as error:  # a bare Exception is what OpenDP raises when its library does not load
        raise DataError(
            "Private data need OpenDP's noise, and the package opendp could not be loaded; nothing was drawn. "
            "Install the pinned requirements and try again."
        ) from error
    enable_features("contrib")
    return domains, measurements, measures, metrics


def gaussian_measurement(size: int, scale: float) -> Any:
    """OpenDP's Gaussian measurement on ``size`` numbers, after checking that it states what we price.

    >>> round(gaussian_measurement(100, 2.0).map(1.0), 12)  # zCDP: 1 / (2 * 2^2)
    0.125
    """
    if not 0 < scale < math.inf:
        raise ValueError("noise of a release needs a scale above 0; nothing was drawn")
    domains, measurements, _, metrics = _opendp()
    power = math.frexp(scale)[1] - LATTICE_BITS
    measurement = measurements.make_gaussian(
        domains.vector_domain(domains.atom_domain(T=float, nan=False), size=size),
        metrics.l2_distance(T=float),
        scale=float(scale),
        k=power,
    )
    spacing = math.ldexp(1 / scale, power)
    # The sensitivities pay for a lattice as fine as LATTICE, and its price is the one that OpenDP states.
    prices = [(measurement.map(scale / z), (1 / z + math.sqrt(size) * spacing) ** 2 / 2) for z in CHECKED_MULTIPLIERS]
    if spacing > LATTICE or not all(math.isclose(*pair, rel_tol=1e-6) for pair in prices):
        raise RuntimeError("OpenDP states another price for this noise than we do; nothing was drawn")
    return measurement
