"""Where the records are, as far as a release can tell: weights on public places (post-processing).

A functional release is the kernel sum of the records with noise that is white in the norm of the kernel.  For records
spread over public places x_j with shares p_j, the log-likelihood of what was released is, up to a constant,

    -|z - n sum_j p_j phi(x_j)|^2 / 2 sigma^2  =  (n / sigma)^2 (b'p / n - p'K p / 2),

with K the kernel between the places and b the released values at them.  The shares that fit best lie on few places,
since that is what fits the noise too, so a weak prior counts against it: a weight times the divergence KL(p, prior).
The difference is concave in p; its maximum is found by accelerated mirror ascent, which keeps the shares positive and
their sum at one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpgrams_core.model.progress import checkpoint
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import ReleasedSketch, error_scale, noise_ceiling, public_points
from dpgrams_core.numerics.surface import ReleasedSurface

Array = np.ndarray
# Chosen on data that no table shows (benchmarks/pilot_clusters.py has the numbers), apart for the two kinds of places:
# those of a sketch lie where the prior has mass, the nodes of a grid everywhere.  Far nodes have a tiny prior share,
# which noise exceeds, and k-means gave them a centre; so a node counts where the release is above so many noises.
SKETCH_WEIGHT = 30.0
GRID_WEIGHT, GRID_NOISES = 100.0, 3.0
STEPS = 100
STEP_GAIN = 5.0  # the safe step is for a kernel that is one everywhere; over a box it is far from that
# As many as the kernel between all of them fits 64 MB in single precision: then a run takes a second. In the pilot
# 1,024, 2,048 and 4,096 have a mean ARI of 0.494, 0.514, 0.511 and a log centroid error of -0.16, -0.30, -0.34.
SKETCH_PLACES = 4_096
EVEN_PLACES, MOST_SIGNIFICANT, UPHILL_STEPS = 8_192, 150, 6
PRIOR_SPREAD = 0.125  # standard deviation of the prior, as a share of each side of the box
NODES_A_BANDWIDTH = 3.0
MOST_NODES = 20_000


@dataclass(frozen=True, eq=False)
class Grounds:
    """Public places (m, d) over the box of a release, and what the likelihood of shares at them takes.

    ``values`` (m,) are the released ones over n, and ``values_of`` gives those of other coefficients; ``noise`` is
    sigma / n, and ``prior`` (m,) are the shares before anything was released.  At the nodes of a grid ``noise_there``
    (m,) is the noise of the values, and a node that surely stands above it has a larger share of the prior.
    """

    places: Array
    values: Array
    noise: float
    prior: Array
    times_kernel: Callable[[Array], Array]
    against: float
    values_of: Callable[[Array], Array]
    noise_there: Array | None = None
    ceiling: float = math.inf

    def likeliest(self, values: Array) -> tuple[Array, Array]:
        """The likeliest share of the records at each place for ``values`` (m, ...), and the prior, both (m, ...)."""
        more = (1,) * (values.ndim - 1)
        prior = self.prior.reshape(-1, *more)
        if self.noise_there is not None:
            prior = prior + (values > self.ceiling * self.noise_there.reshape(-1, *more)) / len(values)
            prior = prior / prior.sum(axis=0)
        prior = np.broadcast_to(prior, values.shape)
        return likeliest_shares(values, self.times_kernel, prior, self.noise, self.against), prior

    def shown(self, values: Array, shares: Array, prior: Array, least: int) -> Array:
        """Which places (m,) have more than their prior share and are not within the noise, unless only ``least``."""
        shown = shares >= prior
        shown[np.argmax(shares / prior)] = True  # both sum to one, so there is such a place, but for rounding
        if self.noise_there is None:
            return shown
        sure = shown & (values > GRID_NOISES * self.noise_there)
        return sure if sure.sum() >= least else shown


def likely_places(release: BareSurface, least: int = 1) -> tuple[Array, Array]:
    """Public places (m, d) where the release shows more records than the prior, and their shares (m,).

    A place with less than its prior share is one that the release speaks against; a few such places far from all
    records would draw a centre of k-means to them.  So would nodes of a grid that are within the noise: they are left
    out, unless fewer than ``least`` remain.
    """
    grounds = grounds_of(release)
    shares, prior = grounds.likeliest(grounds.values)
    shown = grounds.shown(grounds.values, shares, prior, least)
    return grounds.places[shown], shares[shown]


def grounds_of(release: BareSurface) -> Grounds:
    """The public places of a release: spread as the prior is in a sketch, nodes of a grid over a surface."""
    h, noise = release.bandwidth, release.noise_scale / release.n
    if isinstance(release, ReleasedSketch):
        places = np.concatenate([spread_places(release.box, SKETCH_PLACES), significant_places(release)])
        kernel, prior = _kernel(places, h), np.full(len(places), 1 / len(places))

        def sketched(coefficients: Array) -> Array:
            return replace(release, coefficients=coefficients).value(places) / release.n

        def product(shares: Array) -> Array:
            return kernel @ shares.astype(np.float32)

        values = release.value(places) / release.n
        return Grounds(places, values, noise, prior, product, SKETCH_WEIGHT, sketched)
    axes = _axes(release)
    factors = [np.exp(-0.5 * ((axis[:, None] - axis[None, :]) / h) ** 2) for axis in axes]

    def times_kernel(shares: Array) -> Array:
        table = shares.reshape(*(len(axis) for axis in axes), *shares.shape[1:])
        for number, factor in enumerate(factors):  # the kernel is a product over the columns
            table = np.moveaxis(np.tensordot(factor, table, axes=(1, number)), 0, number)
        return table.reshape(shares.shape)

    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    away = (places - release.box.mean(axis=1)) / (PRIOR_SPREAD * (release.box[:, 1] - release.box[:, 0]))
    prior = np.exp(-0.5 * (away**2).sum(axis=1))
    return Grounds(
        places,
        release.grid(axes).ravel() / release.n,
        noise,
        prior / prior.sum(),
        times_kernel,
        GRID_WEIGHT,
        lambda coefficients: replace(release, coefficients=coefficients).grid(axes).ravel() / release.n,
        release.noise_grid(axes).ravel() / release.n,
        noise_ceiling(release.box, h),
    )


def likeliest_shares(
    values: Array,
    times_kernel: Callable[[Array], Array],
    prior: Array,
    noise: float,
    against: float,
    steps: int = STEPS,
) -> Array:
    """Shares p (m, ...) of the highest posterior, along the first axis.

    ``values`` (m, ...) are those released at the places, divided by n; ``times_kernel`` gives K p of p; ``prior``
    are the shares before anything was released, all positive; ``noise`` is sigma / n; ``against`` is the weight of the
    prior.

    Tseng's accelerated proximal gradient with the divergence as its distance.  Near the limit of no noise the prior
    has no effect and the step none on the result, so ``noise`` is kept above 1e-6.
    """
    strength = 1 / max(noise, 1e-6) ** 2
    curvature = strength / STEP_GAIN
    log_prior = np.log(prior)
    mean, ahead, weight = prior, log_prior, 1.0
    for _ in range(steps):
        checkpoint()
        between = (1 - weight) * mean + weight * np.exp(ahead)
        slope = strength * (values - times_kernel(between))
        pull = weight * curvature
        ahead = (pull * ahead + slope + against * log_prior) / (pull + against)
        ahead = ahead - ahead.max(axis=0)
        ahead = ahead - np.log(np.exp(ahead).sum(axis=0))
        mean = (1 - weight) * mean + weight * np.exp(ahead)
        weight = (math.sqrt(weight**4 + 4 * weight**2) - weight**2) / 2
    return mean


def _kernel(places: Array, h: float) -> Array:
    """exp(-|x - y|^2 / 2h^2) between all places, in place and in single precision: it is the largest thing here."""
    small = (places / h).astype(np.float32)
    half = 0.5 * (small**2).sum(axis=1)
    kernel = small @ small.T
    kernel -= half[:, None]
    kernel -= half[None, :]
    np.minimum(kernel, 0.0, out=kernel)
    return np.asarray(np.exp(kernel, out=kernel))


def spread_places(box: Array, count: int) -> Array:
    """``count`` public places (count, d), a low-discrepancy set with the law of the prior.

    That law is normal about the middle of the box, an eighth of each side wide and cut off at the box: the law of
    standardised columns whose box reaches four standard deviations either way.
    """
    tail = scipy.special.ndtr(-0.5 / PRIOR_SPREAD)
    even = public_points(np.tile([0.0, 1.0], (len(box), 1)), count)
    shares = 0.5 + PRIOR_SPREAD * scipy.special.ndtri(tail + (1 - 2 * tail) * even)
    return np.asarray(box[:, 0] + shares * (box[:, 1] - box[:, 0]))


def significant_places(sketch: ReleasedSketch) -> Array:
    """Places (m, d) anywhere in the box where the sketch surely stands above its noise, and those on their way uphill.

    The prior looks for records about the middle of the box; these are for records that lie elsewhere.
    """
    anywhere = public_points(sketch.box, EVEN_PLACES)
    values = sketch.value(anywhere)
    scale = error_scale(values, float(sketch.noise_at(anywhere[:1])[0]), sketch.box, sketch.bandwidth, sketch.blocks)
    best = np.argsort(-values, kind="stable")[:MOST_SIGNIFICANT]
    starts = anywhere[best[values[best] > noise_ceiling(sketch.box, sketch.bandwidth) * scale]]
    floor = sketch.noise_at(starts, sketch.bandwidth)
    path = climb(sketch, starts, UPHILL_STEPS, sketch.bandwidth, floor).reshape(-1, sketch.dimension)
    return np.clip(path, sketch.box[:, 0], sketch.box[:, 1])


def _axes(surface: ReleasedSurface) -> list[Array]:
    sides = surface.box[:, 1] - surface.box[:, 0]
    each = np.ceil(sides / surface.bandwidth * NODES_A_BANDWIDTH) + 1
    each = np.maximum(2, np.floor(each * min(1.0, MOST_NODES / each.prod()) ** (1 / len(sides)))).astype(int)
    return [np.linspace(low, high, k) for (low, high), k in zip(surface.box, each, strict=True)]
