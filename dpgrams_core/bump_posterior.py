"""Where bumps that barely stand above the noise are expected: post-processing, so free.

The best fit of a weak bump is a lottery: it sits on whichever peak of the noise is highest, maybe at the other
end of the box.  With a known number of modes the least *expected* squared error is asked for, and that is a mean
over the posterior of all places together (a uniform prior over the box, the weak priors of bumps.py on spread
and records).  It is sampled by Gibbs steps on a grid: one bump after the other is drawn anew given the rest,

    log p(place, spread | rest) = (b + a p)^2 / (2 (g + p)) - log(1 + g/p) / 2 + log prior(spread),

with b = <c - rest, phi> / sigma^2, g = |phi|^2 / sigma^2 and the records integrated out under N(a, 1/p).
The samples are matched to each other one to one, as the error is, and averaged.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dpgrams_core.progress import checkpoint
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
CHAINS = 8
SWEEPS = 40
BURN_IN = 10
SPACING = 0.5  # of the bandwidth; sums over this grid are exact to three digits for the posteriors it is used for
SPREADS = (0.3, 0.7, 1.0, 1.4)  # in units of the reference spread
MATCHING_ROUNDS = 6
LETTERS = "xyz"


class _Map:
    """What the sampler needs of a released surface: <c, phi(node, spread)> on a grid, for a few spreads."""

    def __init__(self, surface: ReleasedSurface, reference_spread: float) -> None:
        self.h, self.dimension = surface.bandwidth, surface.dimension
        self.axes = [np.linspace(a, b, int(np.ceil((b - a) / (SPACING * self.h))) + 1) for a, b in surface.box]
        self.spreads = reference_spread * np.array(SPREADS)
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
    surface: ReleasedSurface,
    centres: Array,
    spreads: Array,
    records: Array,
    weak: Array,
    *,
    reference_spread: float,
    priors: tuple[float, float],
    apart: float,
) -> tuple[Array, Array]:
    """Posterior mean (w, d) and per-coordinate standard deviation (w, d) of the places of the weak bumps.

    ``weak`` numbers them; the others stay where they are.  ``priors`` are the log-standard deviation of the
    spread and the standard deviation of the records in units of an equal share; no two bumps come closer than
    ``apart``; one that finds every place taken stays where it is.  The sampler's seed is fixed: the same release gives
    the same places.
    """
    rng = np.random.default_rng(0)
    grid = _Map(surface, reference_spread)
    share = surface.n / len(centres)
    variance, precision = surface.noise_scale**2, 1 / (priors[1] * share) ** 2
    strong = np.setdiff1d(np.arange(len(centres)), weak)

    def chains(numbers: Array) -> list[Array]:
        return [np.repeat(table[numbers][None], CHAINS, axis=0) for table in (centres, spreads, records)]

    held = chains(strong)
    fixed = grid.heights[None] - grid.of_bumps(*held)
    blocked = grid.too_near(held[0], apart)
    g = ((surface.bandwidth**2 / (surface.bandwidth**2 + 2 * grid.spreads**2)) ** (surface.dimension / 2)) / variance
    nodes = (1,) * surface.dimension
    information = g.reshape(1, -1, *nodes) + precision
    prior = -0.5 * np.log(information / precision)
    prior = prior - 0.5 * (np.log(SPREADS) / priors[0]).reshape(1, -1, *nodes) ** 2
    at, wide, mass = chains(weak)
    samples = []
    for sweep in range(SWEEPS):
        for j in rng.permutation(len(weak)):
            checkpoint()
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
    matched = _matched(np.concatenate(samples), centres[weak])
    return matched.mean(axis=0), matched.std(axis=0)


def _draw(log_weight: Array, uniform: Array) -> Array:
    """One number per row, with probability proportional to exp(log_weight)."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    total = np.cumsum(weight, axis=1)
    found = [np.searchsorted(row, u * row[-1], side="right") for row, u in zip(total, uniform, strict=True)]
    return np.array(found, dtype=int)


def _matched(samples: Array, start: Array) -> Array:
    """Samples (s, k, d) reordered to agree with their common mean, found by turns."""
    centre = start
    for _ in range(MATCHING_ROUNDS):
        order = [linear_sum_assignment(cdist(centre, sample, "sqeuclidean"))[1] for sample in samples]
        samples = np.stack([sample[numbers] for sample, numbers in zip(samples, order, strict=True)])
        moved = samples.mean(axis=0)
        if np.allclose(moved, centre, atol=1e-9):
            break
        centre = moved
    return samples
