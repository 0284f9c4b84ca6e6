"""Reading bumps off a surface as it was before it was made fast: the reference of tests and of benchmarks.immediate.

The same steps in the same order: whatever differs from numerics/bumps.py is how a sum is computed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from dpgrams_core.numerics.bumps import (
    APART,
    BURN_IN,
    CHAINS,
    LETTERS,
    LOOSE,
    MOST,
    RECORDS_PRIOR,
    SPACING,
    SPREAD_PRIOR,
    SPREADS,
    SWEEPS,
    WEAK,
    WEAK_SPREADS,
    Bumps,
    _draw,
    _matched,
    _significance,
    detection_threshold,
    fitted_records,
    overlap,
)
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray


class SlowSurface(ReleasedSurface):
    """A surface whose derivatives are contracted one by one, each from its own exponentials."""

    def heat(self, x: Array, bandwidth: float | Array | None = None) -> tuple[Array, Array, Array]:
        """Value, gradient and Laplacian."""
        width, d = self._width(bandwidth), self.dimension
        orders = [[basis.values(x[:, j], width, order) for order in range(3)] for j, basis in enumerate(self.bases)]

        def contract(wanted: list[int]) -> Array:
            return self._product([orders[j][wanted[j]] for j in range(d)])

        slopes = np.stack([contract([int(i == j) for i in range(d)]) for j in range(d)], axis=1)
        bends = sum(contract([2 * int(i == j) for i in range(d)]) for j in range(d))
        return contract([0] * d), slopes, np.asarray(bends)


def slow(surface: ReleasedSurface) -> SlowSurface:
    """The same release, read slowly."""
    facts = (surface.coefficients, surface.box, surface.bandwidth, surface.noise_scale, surface.n)
    return SlowSurface(*facts)


class Map:
    """What the sampler needs of a released surface: <c, phi(node, spread)> on a grid, for a few spreads."""

    def __init__(self, surface: ReleasedSurface, reference_spread: float) -> None:
        self.h, self.dimension = surface.bandwidth, surface.dimension
        self.axes = [np.linspace(a, b, int(np.ceil((b - a) / (SPACING * self.h))) + 1) for a, b in surface.box]
        self.spreads = reference_spread * np.array(WEAK_SPREADS)
        widths = np.hypot(self.h, self.spreads)
        self.heights = np.stack([surface.grid(self.axes, float(width)) for width in widths])
        self.spacing = max(axis[1] - axis[0] for axis in self.axes)

    def of_bumps(self, centres: Array, spreads: Array, records: Array) -> Array:
        """sum_j A_j <phi_j, phi(node, spread)> for (c, k) bumps in c chains, shape (c, spreads, *nodes)."""
        q = self.h**2 + self.spreads[None, :, None] ** 2 + spreads[:, None, :] ** 2
        parts = [
            np.exp(-0.5 * (axis - centres[:, None, :, j, None]) ** 2 / q[..., None]) for j, axis in enumerate(self.axes)
        ]
        parts[0] = parts[0] * (records[:, None, :] * (self.h**2 / q) ** (self.dimension / 2))[..., None]
        nodes = LETTERS[: self.dimension]
        inputs = ",".join(f"cso{letter}" for letter in nodes)
        return np.einsum(f"{inputs}->cs{nodes}", *parts, optimize=self.dimension == 3)

    def too_near(self, centres: Array, distance: float) -> Array:
        """Nodes closer than ``distance`` to any of (c, k) centres, shape (c, *nodes)."""
        square = np.zeros((len(centres), centres.shape[1], *(1,) * self.dimension))
        for j, axis in enumerate(self.axes):
            shape = [*centres.shape[:2], *(1,) * self.dimension]
            shape[2 + j] = len(axis)
            square = square + ((axis - centres[:, :, j, None]) ** 2).reshape(shape)
        return np.any(square < distance**2, axis=1)

    def place(self, number: Array) -> tuple[Array, Array]:
        """Spread number and coordinates of flat numbers over (spreads, *nodes)."""
        spread, *index = np.unravel_index(number, self.heights.shape)
        return spread, np.stack([axis[i] for axis, i in zip(self.axes, index, strict=True)], axis=-1)


def expected_places(
    surface: ReleasedSurface, bumps: Bumps, weak: Array, reference_spread: float
) -> tuple[Array, Array]:
    """Posterior mean (w, d) and per-coordinate standard deviation (w, d) of the places of the weak bumps.

    ``weak`` numbers them; the others stay where they are.  No two bumps come closer than ``APART`` bandwidths; one that
    finds every place taken stays where it is.  The sampler's seed is fixed: the same release gives the same places.
    """
    rng = np.random.default_rng(0)
    grid = Map(surface, reference_spread)
    share, apart = surface.n / len(bumps.centres), APART * surface.bandwidth
    variance, precision = surface.noise_scale**2, 1 / (RECORDS_PRIOR * share) ** 2
    strong = np.setdiff1d(np.arange(len(bumps.centres)), weak)

    def chains(numbers: Array) -> list[Array]:
        tables = (bumps.centres, bumps.spreads, bumps.records)
        return [np.repeat(table[numbers][None], CHAINS, axis=0) for table in tables]

    held = chains(strong)
    fixed = grid.heights[None] - grid.of_bumps(*held)
    blocked = grid.too_near(held[0], apart)
    g = ((surface.bandwidth**2 / (surface.bandwidth**2 + 2 * grid.spreads**2)) ** (surface.dimension / 2)) / variance
    nodes = (1,) * surface.dimension
    information = g.reshape(1, -1, *nodes) + precision
    prior = -0.5 * np.log(information / precision)
    prior = prior - 0.5 * (np.log(WEAK_SPREADS) / SPREAD_PRIOR).reshape(1, -1, *nodes) ** 2
    at, wide, mass = chains(weak)
    samples = []
    for sweep in range(SWEEPS):
        for j in rng.permutation(len(weak)):
            rest = np.delete(np.arange(len(weak)), j)
            pull = (fixed - grid.of_bumps(at[:, rest], wide[:, rest], mass[:, rest])) / variance + share * precision
            log_weight = 0.5 * pull**2 / information + prior
            near = blocked | grid.too_near(at[:, rest], apart)
            log_weight = np.where(near[:, None], -np.inf, log_weight).reshape(CHAINS, -1)
            uniform, normal = rng.random(CHAINS), rng.standard_normal(CHAINS)
            free = np.flatnonzero(np.isfinite(log_weight).any(axis=1))  # chains in which the others leave it a place
            chosen = _draw(log_weight[free], uniform[free])
            number, at[free, j] = grid.place(chosen)
            wide[free, j] = grid.spreads[number]
            certain = information[0, number].reshape(len(free))
            drawn = pull.reshape(CHAINS, -1)[free, chosen] / certain + normal[free] / np.sqrt(certain)
            mass[free, j] = np.clip(drawn, 0.02 * share, 5 * share)
        if sweep >= BURN_IN:
            samples.append(at.copy())
    matched = _matched(np.concatenate(samples), bumps.centres[weak])
    return matched.mean(axis=0), matched.std(axis=0)


def find_bumps(surface: ReleasedSurface, count: int | None, reference_spread: float) -> Bumps:
    """``count`` bumps, or all that stand above the noise when the count is unknown (at most ``MOST``).

    There are fewer than ``count`` where the box has no place left for one more at this bandwidth.
    """
    limit = MOST if count is None else count
    threshold = detection_threshold(surface) if count is None else -np.inf
    bumps = Bumps(np.empty((0, surface.dimension)), np.empty(0), np.empty(0))
    search = Search(surface, reference_spread)
    for _ in range(limit):
        height, place, spread = search.best(bumps, apart=count is not None)
        if not height > threshold:
            break
        centres = np.concatenate([bumps.centres, place[None]])
        spreads = np.append(bumps.spreads, max(spread, 0.25 * reference_spread))
        share = surface.n / max(len(centres), count or 0)
        bumps = Bumps(centres, spreads, fitted_records(surface, centres, spreads, share))
    if len(bumps.centres):
        bumps = fit(surface, bumps, reference_spread)
    bumps = replace(bumps, significance=_significance(surface, bumps))
    return bumps if count is None else settle_weak(surface, bumps, reference_spread)


def settle_weak(surface: ReleasedSurface, bumps: Bumps, reference: float) -> Bumps:
    """Bumps of which the weak ones stand where they are expected instead of at the highest peak of the noise."""
    weak = np.flatnonzero(bumps.significance < WEAK)
    if len(weak) == 0:
        return bumps
    mean, deviation = expected_places(surface, bumps, weak, reference)
    loose = deviation.max(axis=1) > LOOSE * surface.bandwidth
    settled = bumps.centres.copy()
    settled[weak[loose]] = mean[loose]
    return replace(bumps, centres=settled)


class Search:
    """Maps of <c, phi> / (sigma |phi|) on a grid over the box, one per spread."""

    def __init__(self, surface: ReleasedSurface, reference_spread: float) -> None:
        self.surface = surface
        self.axes = [np.linspace(a, b, int(np.ceil((b - a) / (surface.bandwidth / 3))) + 1) for a, b in surface.box]
        self.nodes = np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(-1, surface.dimension)
        self.maps = []
        for factor in SPREADS:
            spread = factor * reference_spread
            width = float(np.hypot(surface.bandwidth, spread))
            values = surface.grid(self.axes, width).ravel()
            # Sampling noise too: the squared kernels of the records sum to at most (h/width)^d times the value.
            sampling = (surface.bandwidth / width) ** surface.dimension * np.maximum(values, 0.0)
            self.maps.append((spread, values, np.sqrt(surface.noise_grid(self.axes, width).ravel() ** 2 + sampling)))

    def best(self, bumps: Bumps, apart: bool) -> tuple[float, Array, float]:
        """The highest place once the bumps found so far are taken away: height in noise units, place, spread.

        ``apart`` keeps a new bump 1.5 bandwidths from the others: with a known number of modes each bump must be
        a mode of its own, and closer ones have no two peaks at this bandwidth.  Where no place is left, the height is
        minus infinity.
        """
        found = (-np.inf, self.nodes[0], 0.0)
        h, d = self.surface.bandwidth, self.surface.dimension
        for spread, values, noise in self.maps:
            rest = values.copy()
            for centre, other, mass in zip(bumps.centres, bumps.spreads, bumps.records, strict=True):
                q = h**2 + spread**2 + other**2
                square = ((self.nodes - centre) ** 2).sum(axis=1)
                rest -= mass * (h**2 / q) ** (d / 2) * np.exp(-0.5 * square / q)
            height = rest / noise
            if apart:
                for centre in bumps.centres:
                    height[((self.nodes - centre) ** 2).sum(axis=1) < (APART * h) ** 2] = -np.inf
            top = int(np.argmax(height))
            if height[top] > found[0]:
                found = (float(height[top]), self.nodes[top], spread)
        return found


def fit(surface: ReleasedSurface, bumps: Bumps, reference: float) -> Bumps:
    """Joint maximum of likelihood and weak priors over all bumps, by L-BFGS with the exact gradient."""
    (k, d), share = bumps.centres.shape, surface.n / len(bumps.centres)
    h, variance = surface.bandwidth, surface.noise_scale**2

    def unpack(theta: Array) -> tuple[Array, Array, Array]:
        table = theta.reshape(k, d + 2)
        return table[:, :d] * reference, np.exp(table[:, d]) * reference, np.exp(table[:, d + 1]) * share

    def loss(theta: Array) -> tuple[float, Array]:
        m, s, a = unpack(theta)
        width = np.hypot(h, s)
        heights, slopes, bends = surface.heat(m, width)
        gram = overlap(h, m, s)
        q = h**2 + s[:, None] ** 2 + s[None, :] ** 2
        gap = m[:, None, :] - m[None, :, :]
        square = (gap**2).sum(axis=-1)
        both = a[:, None] * a[None, :] * gram
        value = (0.5 * both.sum() - (a * heights).sum()) / variance
        # Smoothing obeys the heat equation: d/d(s^2) is half the Laplacian.
        by_centre = (-(both[:, :, None] * gap / q[:, :, None]).sum(axis=1) - a[:, None] * slopes) / variance
        by_square = ((both * (0.5 * square / q**2 - 0.5 * d / q)).sum(axis=1) - 0.5 * a * bends) / variance
        by_mass = (gram @ a - heights) / variance
        table = theta.reshape(k, d + 2)
        value += 0.5 * ((table[:, d] / SPREAD_PRIOR) ** 2).sum() + 0.5 * ((table[:, d + 1] / RECORDS_PRIOR) ** 2).sum()
        by_log_spread = by_square * 2 * s**2 + table[:, d] / SPREAD_PRIOR**2
        by_log_mass = by_mass * a + table[:, d + 1] / RECORDS_PRIOR**2
        return float(value), np.column_stack([by_centre * reference, by_log_spread, by_log_mass]).ravel()

    logs = np.log(bumps.spreads / reference), np.log(bumps.records / share)
    start = np.column_stack([bumps.centres / reference, *logs]).ravel()
    low, high = surface.box[:, 0] / reference, surface.box[:, 1] / reference
    bounds = [*zip(low, high, strict=True), (-3.0, 1.5), (-4.0, 2.0)] * k
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60, "ftol": 1e-7})
    return Bumps(*unpack(result.x))
