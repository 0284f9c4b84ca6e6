"""Bumps behind a released surface, by maximum likelihood: post-processing, so free.

A Gaussian bump of A records, centre m and spread s adds A phi(m, s) to the kernel sum, where phi is the
kernel smoothed by N(0, s^2 I).  The noise of the release is white in the RKHS of k_h, so the likelihood of
a set of bumps is exp(-|c - sum_j A_j phi_j|^2 / 2 sigma^2), and in that norm

    <c, phi(m, s)>                = the surface smoothed to sqrt(h^2 + s^2), at m,
    <phi(m, s), phi(m', s')>      = (h^2/q)^(d/2) exp(-|m - m'|^2 / 2q),   q = h^2 + s^2 + s'^2.

So everything needs only values of the surface.  Bumps are found one by one (matching pursuit: the place and
spread with the largest <c, phi> / (sigma |phi|), in units of the noise) and fitted together at the end.  When the
count is known and a bump barely stands above the noise, its place is the posterior mean (``expected_places``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import pairwise

import numpy as np
import scipy

from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.merging import limited_step
from dpgrams_core.numerics.sketch import (
    ReleasedSketch,
    error_scale,
    independent_places,
    noise_ceiling,
    public_points,
)
from dpgrams_core.numerics.surface import Released, ReleasedSurface, box_bases
from dpgrams_core.numerics.threads import threads_of
from dpgrams_core.numerics.together import Surfaces, minimised

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Bumps:
    """Fitted bumps: centres (k, d), spreads (k,), records (k,), and how far each stands above the noise (k,)."""

    centres: Array
    spreads: Array
    records: Array
    significance: Array = field(default_factory=lambda: np.empty(0))

    def without(self, j: int) -> Bumps:
        return Bumps(*(np.delete(part, j, axis=0) for part in (self.centres, self.spreads, self.records)))

    def heights(self, x: Array, width: Array | float, h: float) -> tuple[Array, Array]:
        """What these bumps add to a sum of bandwidth h smoothed to ``width``: values (k,), gradients (k, d)."""
        value, slope = np.zeros(len(x)), np.zeros(x.shape)
        for centre, spread, mass in zip(self.centres, self.spreads, self.records, strict=True):
            q = np.broadcast_to(np.asarray(width, dtype=float) ** 2 + spread**2, len(x))
            gap = x - centre
            part = mass * (h**2 / q) ** (x.shape[1] / 2) * np.exp(-0.5 * (gap**2).sum(axis=1) / q)
            value += part
            slope -= (part / q)[:, None] * gap
        return value, slope


# Where bumps that barely stand above the noise are expected: post-processing, so free.
#
# The best fit of a weak bump is a lottery: it sits on whichever peak of the noise is highest, maybe at the other
# end of the box.  With a known number of modes the least *expected* squared error is asked for, and that is a mean
# over the posterior of all places together (a uniform prior over the box, the weak priors below on spread
# and records).  It is sampled by Gibbs steps on a grid: one bump after the other is drawn anew given the rest,
#
#     log p(place, spread | rest) = (b + a p)^2 / (2 (g + p)) - log(1 + g/p) / 2 + log prior(spread),
#
# with b = <c - rest, phi> / sigma^2, g = |phi|^2 / sigma^2 and the records integrated out under N(a, 1/p).
# The samples are matched to each other one to one, as the error is, and averaged.

CHAINS = 8
SWEEPS = 40
BURN_IN = 10
SPACING = 0.5  # of the bandwidth; sums over this grid are exact to three digits for the posteriors it is used for
WEAK_SPREADS = (0.3, 0.7, 1.0, 1.4)  # in units of the reference spread
MATCHING_ROUNDS = 6
LETTERS = "xyz"
MOST_KEPT = 10_000  # coefficients of a surface whose grid is kept for the next one


@dataclass(frozen=True, eq=False)
class _Nodes:
    """A grid over the box of a release, and what its basis is there for a few spreads: public, and shared by runs."""

    axes: list[Array]
    spreads: Array
    widths: Array
    factors: list[list[Array]]  # for each width and axis
    noise: Array  # of a surface whose noise is 1

    def heights(self, coefficients: Array) -> Array:
        """<c, phi(node, spread)>, (spreads, *nodes)."""
        found = []
        for factors in self.factors:
            result = coefficients
            for factor in factors:  # contracting the first remaining axis each time leaves the new one last
                result = np.tensordot(result, factor, axes=(0, 0))
            found.append(result)
        return np.stack(found)


@lru_cache(maxsize=8)
def _nodes(box: tuple[tuple[float, float], ...], h: float, spacing: float, spreads: tuple[float, ...]) -> _Nodes:
    bases, widths = box_bases(np.array(box), h), np.hypot(h, spreads)
    axes = [np.linspace(a, b, int(np.ceil((b - a) / (spacing * h))) + 1) for a, b in box]
    factors = [[basis.values(axis, float(width)) for basis, axis in zip(bases, axes, strict=True)] for width in widths]
    squares = [reduce(np.multiply.outer, [(each**2).sum(axis=0) for each in some]) for some in factors]
    noise = np.sqrt(np.stack(squares))
    noise.flags.writeable = False
    return _Nodes(axes, np.array(spreads), widths, factors, noise)


class _Map:
    """<c, phi(node, spread)> of a released surface on a grid over its box, for a few spreads."""

    def __init__(self, surface: ReleasedSurface, spacing: float, spreads: Array) -> None:
        self.h, self.dimension = surface.bandwidth, surface.dimension
        box = tuple(map(tuple, surface.box.tolist()))
        kept = surface.coefficients.size <= MOST_KEPT
        self.nodes = (_nodes if kept else _nodes.__wrapped__)(box, self.h, spacing, tuple(spreads.tolist()))
        self.axes, self.spreads, self.widths = self.nodes.axes, self.nodes.spreads, self.nodes.widths
        self.heights = self.nodes.heights(surface.coefficients)

    def of_bumps(self, centres: Array, spreads: Array, records: Array) -> Array:
        """sum_j A_j <phi_j, phi(node, spread)> for (c, k) bumps in c chains, shape (c, spreads, *nodes)."""
        q = self.h**2 + self.spreads[None, :, None] ** 2 + spreads[:, None, :] ** 2
        scaled = -0.5 / q[..., None]
        parts = [np.exp((axis - centres[:, None, :, j, None]) ** 2 * scaled) for j, axis in enumerate(self.axes)]
        parts[0] *= (records[:, None, :] * (self.h**2 / q) ** (self.dimension / 2))[..., None]
        if self.dimension == 2:
            return parts[0].swapaxes(-1, -2) @ parts[1]
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
    grid = _Map(surface, SPACING, reference_spread * np.array(WEAK_SPREADS))
    share, apart = surface.n / len(bumps.centres), APART * surface.bandwidth
    variance, precision = surface.noise_scale**2, 1 / (RECORDS_PRIOR * share) ** 2
    strong = np.setdiff1d(np.arange(len(bumps.centres)), weak)

    def chains(numbers: Array) -> list[Array]:
        tables = (bumps.centres, bumps.spreads, bumps.records)
        return [np.repeat(table[numbers][None], CHAINS, axis=0) for table in tables]

    held = chains(strong)
    g = ((surface.bandwidth**2 / (surface.bandwidth**2 + 2 * grid.spreads**2)) ** (surface.dimension / 2)) / variance
    nodes = (1,) * surface.dimension
    information = g.reshape(1, -1, *nodes) + precision
    prior = -0.5 * np.log(information / precision)
    prior = prior - 0.5 * (np.log(WEAK_SPREADS) / SPREAD_PRIOR).reshape(1, -1, *nodes) ** 2
    at, wide, mass = chains(weak)

    def added(j: int) -> Array:
        """What weak bump j adds to the pull of the others, (c, spreads, *nodes)."""
        return grid.of_bumps(at[:, [j]], wide[:, [j]], mass[:, [j]]) / variance

    free_pull = (grid.heights[None] - grid.of_bumps(*held)) / variance + share * precision
    blocked = grid.too_near(held[0], apart)
    bumps_pull = np.stack([added(j) for j in range(len(weak))])
    near = np.stack([grid.too_near(at[:, [j]], apart) for j in range(len(weak))])
    samples = []
    for sweep in range(SWEEPS):
        for j in rng.permutation(len(weak)):
            checkpoint()
            rest = np.delete(np.arange(len(weak)), j)
            pull = free_pull - bumps_pull[rest].sum(axis=0)
            log_weight = pull * pull
            log_weight *= 0.5 / information
            log_weight += prior
            taken = blocked | near[rest].any(axis=0)
            log_weight = np.where(taken[:, None], -np.inf, log_weight).reshape(CHAINS, -1)
            uniform, normal = rng.random(CHAINS), rng.standard_normal(CHAINS)
            free = np.flatnonzero(~taken.reshape(CHAINS, -1).all(axis=1))  # where the others leave it a place
            chosen = _draw(log_weight[free], uniform[free])
            number, at[free, j] = grid.place(chosen)
            wide[free, j] = grid.spreads[number]
            certain = information[0, number].reshape(len(free))
            drawn = pull.reshape(CHAINS, -1)[free, chosen] / certain + normal[free] / np.sqrt(certain)
            mass[free, j] = np.clip(drawn, 0.02 * share, 5 * share)
            bumps_pull[j], near[j] = added(j), grid.too_near(at[:, [j]], apart)
        if sweep >= BURN_IN:
            samples.append(at.copy())
    matched = _matched(np.concatenate(samples), bumps.centres[weak])
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
        squares = [scipy.spatial.distance.cdist(centre, sample, "sqeuclidean") for sample in samples]
        order = [scipy.optimize.linear_sum_assignment(square)[1] for square in squares]
        samples = np.stack([sample[numbers] for sample, numbers in zip(samples, order, strict=True)])
        moved = samples.mean(axis=0)
        if np.allclose(moved, centre, atol=1e-9):
            break
        centre = moved
    return samples


SPREADS = (0.0, 0.5, 1.0, 1.5)  # tried in the search, in units of the reference spread
SPREAD_PRIOR = 0.5  # log-standard deviations of the weak priors on spread and on records per bump
RECORDS_PRIOR = 0.5
PRIORS = np.array([SPREAD_PRIOR, RECORDS_PRIOR])
FIT_LIMITS = (60, 1e-7)  # steps, and the relative gain below which a fit ends
FALSE_ALARM = 0.05
WEAK = 5.0  # below this many standard deviations of the noise the best fit may sit on a peak of the noise
LOOSE = 0.25  # of the bandwidth: a posterior narrower than this is as well described by its best fit
APART = 1.5  # bandwidths between two bumps when each must be a mode of its own
MOST = 40


def overlap(h: float, centres: Array, spreads: Array) -> Array:
    """Gram matrix <phi_i, phi_j> of bumps, (k, k)."""
    q = h**2 + spreads[:, None] ** 2 + spreads[None, :] ** 2
    square = ((centres[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return (h**2 / q) ** (centres.shape[1] / 2) * np.exp(-0.5 * square / q)


def detection_threshold(surface: ReleasedSurface) -> float:
    """Height, in noise units, that pure noise passes anywhere in the box with at most about 5 %.

    A union bound over the places that are about independent, two per bandwidth along each side.
    """
    return float(-scipy.special.ndtri(FALSE_ALARM / independent_places(surface.box, surface.bandwidth)))


def find_bumps(surface: ReleasedSurface, count: int | None, reference_spread: float) -> Bumps:
    """``count`` bumps, or all that stand above the noise when the count is unknown (at most ``MOST``).

    There are fewer than ``count`` where the box has no place left for one more at this bandwidth.
    """
    return find_bumps_together([surface], count, reference_spread)[0]


def find_bumps_together(surfaces: Sequence[ReleasedSurface], count: int | None, reference_spread: float) -> list[Bumps]:
    """``find_bumps`` of each of some surfaces over one box, of one bandwidth: the same numbers in less time."""
    found = [_pursued(surface, count, reference_spread) for surface in surfaces]
    some = [number for number, bumps in enumerate(found) if len(bumps.centres)]
    if some:
        fitted = _fit([surfaces[number] for number in some], [found[number] for number in some], reference_spread)
        for number, bumps in zip(some, fitted, strict=True):
            found[number] = bumps
    found = [
        replace(bumps, significance=_significance(surface, bumps))
        for surface, bumps in zip(surfaces, found, strict=True)
    ]
    if count is None:
        return found
    return [_settle_weak(surface, bumps, reference_spread) for surface, bumps in zip(surfaces, found, strict=True)]


def _pursued(surface: ReleasedSurface, count: int | None, reference_spread: float) -> Bumps:
    """Bumps found one by one, each where what the others leave stands highest."""
    limit = MOST if count is None else count
    threshold = detection_threshold(surface) if count is None else -np.inf
    bumps = Bumps(np.empty((0, surface.dimension)), np.empty(0), np.empty(0))
    search = _Search(surface, reference_spread)
    if count is None and not search.above_flat(surface.n) > threshold:
        return bumps  # records spread evenly would look like this
    for _ in range(limit):
        checkpoint()
        height, place, spread = search.best(bumps, apart=count is not None)
        if not height > threshold:
            break
        centres = np.concatenate([bumps.centres, place[None]])
        spreads = np.append(bumps.spreads, max(spread, 0.25 * reference_spread))
        share = surface.n / max(len(centres), count or 0)
        bumps = Bumps(centres, spreads, fitted_records(surface, centres, spreads, share))
    return bumps


def _settle_weak(surface: ReleasedSurface, bumps: Bumps, reference: float) -> Bumps:
    """Bumps of which the weak ones stand where they are expected instead of at the highest peak of the noise."""
    weak = np.flatnonzero(bumps.significance < WEAK)
    if len(weak) == 0:
        return bumps
    mean, deviation = expected_places(surface, bumps, weak, reference)
    loose = deviation.max(axis=1) > LOOSE * surface.bandwidth
    settled = bumps.centres.copy()
    settled[weak[loose]] = mean[loose]
    return replace(bumps, centres=settled)


def fitted_records(surface: Released, centres: Array, spreads: Array, share: float) -> Array:
    """Records per bump by least squares with places and spreads held, pulled weakly to an equal share."""
    gram = overlap(surface.bandwidth, centres, spreads)
    pull = (surface.noise_scale / (RECORDS_PRIOR * share)) ** 2
    right = surface.value(centres, np.hypot(surface.bandwidth, spreads)) + pull * share
    masses = np.linalg.solve(gram + pull * np.eye(len(gram)), right)
    return np.clip(masses, 0.05 * share, 5 * share)


class _Search(_Map):
    """The same in units of the noise, to find where what is left stands highest."""

    def __init__(self, surface: ReleasedSurface, reference_spread: float) -> None:
        super().__init__(surface, 1 / 3, reference_spread * np.array(SPREADS))
        noise = surface.noise_scale * self.nodes.noise
        # Sampling noise too: the squared kernels of the records sum to at most (h/width)^d times the value.
        sampling = ((self.h / self.widths) ** self.dimension).reshape(-1, *(1,) * self.dimension)
        self.noise = np.sqrt(noise**2 + sampling * np.maximum(self.heights, 0.0))
        self._noise, self._sampling, self._box = noise, sampling, surface.box

    def above_flat(self, n: int) -> float:
        """How far the highest place stands above n records spread evenly over the box, in units of their noise.

        Bumps can tile what is flat, so without this question evenly spread records would have a mode everywhere.
        """
        found = []
        for width in self.widths:
            parts = [
                self.h
                * math.sqrt(2 * math.pi)
                / (high - low)
                * (scipy.special.ndtr((high - axis) / width) - scipy.special.ndtr((low - axis) / width))
                for axis, (low, high) in zip(self.axes, self._box, strict=True)
            ]
            found.append(n * reduce(np.multiply.outer, parts))
        flat = np.stack(found)
        return float(((self.heights - flat) / np.sqrt(self._noise**2 + self._sampling * flat)).max())

    def best(self, bumps: Bumps, apart: bool) -> tuple[float, Array, float]:
        """The highest place once the bumps found so far are taken away: height in noise units, place, spread.

        ``apart`` keeps a new bump 1.5 bandwidths from the others: with a known number of modes each bump must be
        a mode of its own, and closer ones have no two peaks at this bandwidth.  Where no place is left, the height is
        minus infinity.
        """
        known = self.of_bumps(bumps.centres[None], bumps.spreads[None], bumps.records[None])[0]
        height = (self.heights - known) / self.noise
        if apart:
            height[:, self.too_near(bumps.centres[None], APART * self.h)[0]] = -np.inf
        top = int(np.argmax(height))
        number, place = self.place(np.asarray(top))
        return float(height.flat[top]), place, float(self.spreads[number])


def _fit(
    surfaces: Sequence[ReleasedSurface], found: Sequence[Bumps], reference: float, held: bool = False
) -> list[Bumps]:
    """Joint maximum of likelihood and weak priors over all bumps of each surface, by L-BFGS with the exact gradient.

    ``held`` keeps the centres where they are.
    """
    d = surfaces[0].dimension
    shares = [surface.n / len(bumps.centres) for surface, bumps in zip(surfaces, found, strict=True)]
    starts = [
        np.column_stack([bumps.centres / reference, np.log(bumps.spreads / reference), np.log(bumps.records / share)])
        for bumps, share in zip(found, shares, strict=True)
    ]
    edges = (surfaces[0].box.T / reference).tolist()
    low, high = ([*edge, *logs] for edge, logs in zip(edges, ((-3.0, -4.0), (1.5, 2.0)), strict=True))
    lows, highs = ([np.tile(edge, len(start)) for start in starts] for edge in (low, high))
    if held:
        for start, *bounds in zip(starts, lows, highs, strict=True):
            for bound in bounds:
                bound.reshape(-1, d + 2)[:, :d] = start[:, :d]
    loss = Losses(surfaces, shares, [len(start) for start in starts], reference)
    with threads_of("scipy.linalg").limit(limits=1):
        ends = minimised(loss, [start.ravel() for start in starts], lows, highs, *FIT_LIMITS)
    fitted = []
    for end, share in zip(ends, shares, strict=True):
        table = end.reshape(-1, d + 2)
        fitted.append(Bumps(table[:, :d] * reference, np.exp(table[:, d]) * reference, np.exp(table[:, d + 1]) * share))
    return fitted


def bumps_on(surfaces: Sequence[ReleasedSurface], places: Sequence[Array], reference: float) -> list[Bumps]:
    """The likeliest bumps of each surface with one bump at each of some places to begin with."""
    begun = []
    for surface, centres in zip(surfaces, places, strict=True):
        inside, spreads = np.clip(centres, *surface.box.T), np.full(len(centres), reference)
        begun.append(Bumps(inside, spreads, fitted_records(surface, inside, spreads, surface.n / len(centres))))
    fitted = _fit(surfaces, begun, reference)
    return [replace(one, significance=_significance(of, one)) for of, one in zip(surfaces, fitted, strict=True)]


def bumps_at(surface: Released, centres: Array, reference: float) -> Bumps:
    """The likeliest spreads and records of bumps whose centres are given."""
    spreads = np.full(len(centres), reference)
    begun = Bumps(centres, spreads, fitted_records(surface, centres, spreads, surface.n / len(centres)))
    return _fit([surface], [begun], reference, held=True)[0]  # type: ignore[list-item]


class Losses:
    """Minus the log-likelihood of bumps and its slope, for many surfaces in one call (together.py).

    A run's bumps are rows (centre, log spread, log records), all in units of the usual ones; ``pairs`` are the numbers
    of the rows that belong to one run.
    """

    def __init__(
        self, surfaces: Sequence[ReleasedSurface], shares: Sequence[float], counts: Sequence[int], reference: float
    ) -> None:
        self.h, self.d, self.reference = surfaces[0].bandwidth, surfaces[0].dimension, reference
        self.surfaces, self.shares, self.counts = surfaces, shares, counts
        self.together = Surfaces(surfaces) if self.d == 2 else None
        self.who: list[int] = []

    def _arrange(self, who: list[int]) -> None:
        """Row numbers for the runs that are still on their way; they change only when one has ended."""
        if who == self.who:
            return
        counts = [self.counts[number] for number in who]
        self.who, self.ends = who, [0, *np.cumsum(counts).tolist()]
        share = np.repeat([self.shares[number] for number in who], counts)
        self.scales = np.stack([np.full(len(share), self.reference), share])
        self.variance = np.repeat([self.surfaces[number].noise_scale ** 2 for number in who], counts)
        rows = [np.arange(low, high) for low, high in pairwise(self.ends)]
        self.one = np.concatenate([np.repeat(each, len(each)) for each in rows])
        self.two = np.concatenate([np.tile(each, len(each)) for each in rows])
        self.first = np.flatnonzero(np.diff(self.one, prepend=-1))

    def _heat(self, m: Array, width: Array) -> tuple[Array, Array, Array]:
        if self.together is not None:
            return self.together.heat(m, width, self.who, self.ends)
        parts = [slice(low, high) for low, high in pairwise(self.ends)]
        heats = [self.surfaces[number].heat(m[own], width[own]) for number, own in zip(self.who, parts, strict=True)]
        values, slopes, bends = (np.concatenate(part) for part in zip(*heats, strict=True))
        return values, slopes, bends

    def __call__(self, who: list[int], thetas: list[Array]) -> tuple[list[float], list[Array]]:
        self._arrange(who)
        h, d, one, two = self.h, self.d, self.one, self.two
        table = np.concatenate(thetas).reshape(-1, d + 2)
        columns = np.ascontiguousarray(table.T)
        centres, logs = columns[:d] * self.reference, columns[d:]
        s, a = np.exp(logs) * self.scales
        square_spread = s * s
        wide = square_spread + h**2
        heights, slopes, bends = self._heat(centres.T, np.sqrt(wide))
        narrow = 1 / (wide.take(one) + square_spread.take(two))
        gaps = centres.take(one, axis=1) - centres.take(two, axis=1)
        square = np.add.reduce(gaps * gaps, axis=0) * narrow
        parts = np.empty((d + 2, len(one)))  # what each bump's partners add: mass, pulls along the columns, widening
        shared = h**2 * narrow if d == 2 else (h**2 * narrow) ** (d / 2)
        pull = narrow * np.multiply(shared * np.exp(-0.5 * square), a.take(two), out=parts[0])
        np.multiply(gaps, pull, out=parts[1:-1])
        np.multiply(square - d, pull, out=parts[-1])
        sums = np.add.reduceat(parts, self.first, axis=1)
        above, a_over, scaled = sums[0] - heights, a / self.variance, logs / PRIORS[:, None]
        losses = a_over * (above - 0.5 * sums[0]) + 0.5 * (scaled[0] * scaled[0] + scaled[1] * scaled[1])
        slope = np.empty(columns.shape)
        # Smoothing obeys the heat equation: d/d(s^2) is half the Laplacian.
        np.multiply(sums[1:-1] + slopes.T, a_over * -self.reference, out=slope[:d])
        np.multiply(sums[-1] - bends, a_over * square_spread, out=slope[d])
        np.multiply(above, a_over, out=slope[d + 1])
        slope[d:] += scaled / PRIORS[:, None]
        values = np.add.reduceat(losses, self.ends[:-1]).tolist()
        return values, [slope[:, low:high].T.ravel() for low, high in pairwise(self.ends)]


def _significance(surface: ReleasedSurface, bumps: Bumps) -> Array:
    """How far each bump stands above the noise: its own matched height once the others are taken away."""
    if len(bumps.centres) == 0:
        return np.empty(0)
    gram = overlap(surface.bandwidth, bumps.centres, bumps.spreads)
    width = np.hypot(surface.bandwidth, bumps.spreads)
    others = gram @ bumps.records - np.diag(gram) * bumps.records
    return (surface.value(bumps.centres, width) - others) / (surface.noise_scale * np.sqrt(np.diag(gram)))


# Bumps in a released sketch.
#
# The noise is white in the features and their kernel is the Gaussian one up to a known error, so bumps are found as in
# a surface: one by one where what is left stands highest above the noise, over a public set of places at two
# smoothings (broad peaks first), and then each is moved to the peak of what the others leave.

CANDIDATES = 8_192
SEARCH_SPREADS = (1.0, 2.0)  # in units of the reference spread
FIT_SPREADS = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
CLIMBED = 6  # best places of each search that are climbed
REFINEMENTS = 5


def find_sketch_bumps(sketch: ReleasedSketch, count: int | None, reference: float) -> Bumps:
    """``count`` bumps, or all that stand above the noise when the count is unknown.

    There are fewer than ``count`` where the box has no place left for one more, as on a grid.
    """
    search = _SketchSearch(sketch, reference)
    threshold = -np.inf if count is not None else noise_ceiling(sketch.box, sketch.bandwidth)
    bumps = Bumps(np.empty((0, sketch.dimension)), np.empty(0), np.empty(0))
    for number in range(1, (MOST if count is None else count) + 1):
        checkpoint()
        height, place = search.best(bumps, apart=count is not None)
        if not height > threshold:
            break
        share = sketch.n / max(number, count or 0)
        centres, spreads = np.vstack([bumps.centres, place]), np.append(bumps.spreads, reference)
        bumps = Bumps(centres, spreads, fitted_records(sketch, centres, spreads, share))
        bumps = _refined(sketch, bumps, reference, share)
    for _ in range(REFINEMENTS if len(bumps.centres) else 0):
        checkpoint()
        bumps = _refined(sketch, bumps, reference, sketch.n / len(bumps.centres))
    return replace(bumps, significance=search.significance(bumps))


def _refined(sketch: ReleasedSketch, bumps: Bumps, reference: float, share: float) -> Bumps:
    """Each bump in turn at the peak of what the others leave, with the likeliest spread tried; then all masses."""
    h, d = sketch.bandwidth, sketch.dimension
    tried = reference * np.array(FIT_SPREADS)
    widths = np.hypot(h, tried)
    norms = (h**2 / (h**2 + 2 * tried**2)) ** (d / 4)
    for j in range(len(bumps.centres)):
        others = bumps.without(j)
        place = bumps.centres[j]
        found = sketch.value(np.tile(place, (len(tried), 1)), widths)
        found = found - others.heights(np.tile(place, (len(tried), 1)), widths, h)[0]
        fit = 0.5 * (np.maximum(found, 0.0) / norms / max(sketch.noise_scale, 1e-9)) ** 2
        spread = float(tried[np.argmax(fit - 0.5 * (np.log(FIT_SPREADS) / SPREAD_PRIOR) ** 2)])
        width = math.hypot(h, spread)
        value, gradient, _ = sketch.heat(place[None], width)
        known = others.heights(place[None], width, h)
        floor = sketch.noise_at(place[None], width)
        # The peak of a bump of this spread at this smoothing has the variance width^2 + spread^2: Newton's step.
        move = limited_step(value - known[0], gradient - known[1], floor, math.hypot(width, spread))
        moved = np.clip(place + move[0], sketch.box[:, 0], sketch.box[:, 1])
        centres, spreads = bumps.centres.copy(), bumps.spreads.copy()
        centres[j], spreads[j] = moved, spread
        bumps = Bumps(centres, spreads, bumps.records)
    return replace(bumps, records=fitted_records(sketch, bumps.centres, bumps.spreads, share))


class _SketchSearch:
    """The sketch over the public places, smoothed in two ways."""

    def __init__(self, sketch: ReleasedSketch, reference: float) -> None:
        self.sketch, self.places = sketch, public_points(sketch.box, CANDIDATES)
        self.widths = [math.hypot(sketch.bandwidth, factor * reference) for factor in SEARCH_SPREADS]
        self.values = [sketch.value(self.places, width) for width in self.widths]

    def scale(self, rest: Array, width: float) -> float:
        """The noise of the release, with the error of the kernel where that is seen over the box."""
        noise = float(self.sketch.noise_at(self.places[:1], width)[0])
        return error_scale(rest, noise, self.sketch.box, self.sketch.bandwidth, self.sketch.blocks)

    def best(self, bumps: Bumps, apart: bool) -> tuple[float, Array]:
        """The highest place above the noise once the bumps found so far are taken away: height and place.

        ``apart`` keeps a new bump 1.5 bandwidths from the others, as on a grid; where no place is left, the height is
        minus infinity.
        """
        h, d = self.sketch.bandwidth, self.sketch.dimension
        found = (-np.inf, self.places[0])
        for width, values in zip(self.widths, self.values, strict=True):
            rest = values - bumps.heights(self.places, width, h)[0]
            scale = self.scale(rest, width)
            sampling = (h / width) ** d  # times the value: sum of squares of the records' kernels, at most

            def height(value: Array, left: Array, scale: float = scale, sampling: float = sampling) -> Array:
                return left / np.sqrt(scale**2 + sampling * np.maximum(value, 0.0))

            x = self.places[np.argsort(-np.where(self._free(self.places, bumps, apart), height(values, rest), -np.inf))]
            x = x[:CLIMBED]
            for _ in range(8):
                value, gradient, _ = self.sketch.heat(x, width)
                known = bumps.heights(x, width, h)
                moved = x + limited_step(value - known[0], gradient - known[1], np.full(len(x), scale), width)
                moved = np.clip(moved, self.sketch.box[:, 0], self.sketch.box[:, 1])
                x = np.where(self._free(moved, bumps, apart)[:, None], moved, x)
            value = self.sketch.value(x, width)
            heights = height(value, value - bumps.heights(x, width, h)[0])
            heights = np.where(self._free(x, bumps, apart), heights, -np.inf)
            top = int(np.argmax(heights))
            if heights[top] > found[0]:
                found = (float(heights[top]), x[top])
        return found

    def significance(self, bumps: Bumps) -> Array:
        """How far each bump stands above the noise: its own matched height once the others are taken away."""
        h, result = self.sketch.bandwidth, np.empty(len(bumps.centres))
        rest = self.values[0] - bumps.heights(self.places, self.widths[0], h)[0]
        excess = self.scale(rest, self.widths[0]) / float(self.sketch.noise_at(self.places[:1], self.widths[0])[0])
        for j, spread in enumerate(bumps.spreads):
            place, width = bumps.centres[j : j + 1], math.hypot(h, float(spread))
            left = self.sketch.value(place, width) - bumps.without(j).heights(place, width, h)[0]
            result[j] = left[0] / (excess * self.sketch.noise_at(place, width)[0])
        return result

    def _free(self, x: Array, bumps: Bumps, apart: bool) -> Array:
        if not apart or len(bumps.centres) == 0:
            return np.ones(len(x), dtype=bool)
        square = ((x[:, None, :] - bumps.centres[None]) ** 2).sum(axis=-1)
        return square.min(axis=1) >= (APART * self.sketch.bandwidth) ** 2
