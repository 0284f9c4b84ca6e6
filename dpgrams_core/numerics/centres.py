"""Cluster centres of a released surface or sketch, and how sure they are: post-processing, so free.

Centres are those of k-means over public places, each weighted by the share of the records that most likely is there
(likely_places.py), and a step on from there.

How sure they are says a parametric bootstrap.  The likeliest shares stand for the law of the records, whose centres are
known.  (They are not quite those of the release, which leaves out places that it speaks against, and a wide cluster's
rim is among them.)  From it come ``DRAWS`` releases with noise of the
known size, of the law itself or of n records drawn from it, and each is read in the same way.  The mean square of how
far a centre is then from where it was

    without noise                        gives the region of the *smoothed density*, that is of where the same reading
                                         would put the centre if there were no noise;
    in the law, for n drawn records      gives that of the *population*: noise, sampling and what smoothing and the
                                         prior of the shares move.

Of a centre's draws the farthest is left out: k-means may rarely end elsewhere, and a region of 95% need not reach
there.  What remains is widened as a normal law wants it, by what is lost with the farthest and because few draws say
the mean square only so well (Hotelling).  A record counts at a public place, not where it is: on the way to the mean of
a cluster such roundings average out over its places, and their variance is added.  ``dpgrams reproduce coverage`` shows
what all this is worth.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.likely_places import Grounds, grounds_of, likely_places
from dpgrams_core.numerics.scaling import BareSurface
from dpgrams_core.numerics.sketch import noise_ceiling
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.numerics.threads import threads_of

Array = np.ndarray
DRAWS, LEFT_OUT, LEVEL = 39, 1, 0.95  # (39 - 1) / (39 + 1) is the level
K_MEANS_STARTS = 4
# Chosen on data that no table shows (benchmarks/pilot_clusters.py): mean ARI 0.5138 for none, 0.5143 for one, 0.509,
# 0.503 and 0.496 for two to four.
PEAK_STEPS = 1
# A number that is not known: at most so many, and the largest whose parting is within this share of the best one.  In
# an earlier pilot on other data (with the former PEAK_STEPS and weight) the ARI relative to that with the true number
# was 1.04, 1.05, 1.03, 1.03 and 0.97 for 0, 0.01, 0.02, 0.03 and 0.06; of the first four the last was taken with digits
# in view.
MOST_CLUSTERS, AS_PARTED = 20, 0.03


def fitted_kmeans(
    points: Array, count: int, n_init: int, seed: int | None, weights: Array | None = None, start: Array | None = None
) -> Any:
    """k-means by scikit-learn (Lloyd, k-means++, the best of ``n_init`` seeded starts, or of one that is given)."""
    from sklearn.cluster import KMeans  # here, since it takes a second to load

    # Threads wait for each other at every step: on a machine that is not idle ten times as long as one needs.  And they
    # add up in any order, so that the last digit would not come out again.
    with warnings.catch_warnings(), threads_of("sklearn.cluster").limit(limits=1):
        # Fewer distinct records than clusters: some centres coincide, and the result is still right.
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        init = "k-means++" if start is None else start
        return KMeans(count, init=init, n_init=n_init, random_state=seed).fit(points, sample_weight=weights)


def released_centres(surface: BareSurface, count: int | None) -> Array:
    """Cluster centres (k, d) of a release: k-means over the likeliest shares of the records.

    There are ``count`` of them (``None``: as many as part the records best), or fewer where the release shows fewer
    places, as DP-GRAMS-C may find fewer. That is no error: the release is drawn and paid for by now.
    """
    places, shares = likely_places(surface, count or 1)
    if count is None and not anything_stands_out(surface, places):
        return np.empty((0, surface.dimension))  # so nothing is counted
    # A fixed seed: the same release gives the same centres.
    counts = [count] if count is not None else range(1, MOST_CLUSTERS + 1)
    fits = [
        fitted_kmeans(places, number, K_MEANS_STARTS, 0, shares).cluster_centers_
        for number in dict.fromkeys(min(number, len(places)) for number in counts)
    ]
    centres = fits[0] if len(fits) == 1 else best_parted(fits, places, shares)
    return towards_peaks(centres, places, shares, reference_spread(surface.box))


def anything_stands_out(surface: BareSurface, places: Array) -> bool:
    """Whether a release stands anywhere at these places above what noise alone reaches."""
    ceiling = noise_ceiling(surface.box, surface.bandwidth)
    return bool((surface.value(places) > ceiling * surface.noise_at(places)).any())


def best_parted(fits: Sequence[Array], places: Array, shares: Array) -> Array:
    """Of centres for several counts, those of the largest count that parts the records about as well as the best one.

    How well: the mean over the records of 1 - (distance to the nearest centre) / (distance to the second nearest),
    which is a silhouette by centres (0 for one centre).  It is flat where clusters overlap, and then a centre too few
    costs more than one too many: it joins two clusters, where one too many parts a single one.
    """
    parted = []
    for centres in fits:
        away = np.partition(scipy.spatial.distance.cdist(places, centres), min(1, len(centres) - 1), axis=1)
        nearest, second = away[:, 0], away[:, min(1, len(centres) - 1)]
        ratio = np.divide(nearest, second, out=np.ones(len(away)), where=second > 0)
        parted.append(float(shares @ (1 - ratio)))
    best = max(parted)
    return fits[max(number for number, value in enumerate(parted) if value >= (1 - AS_PARTED) * best)]


def towards_peaks(centres: Array, places: Array, shares: Array, width: float) -> Array:
    """Centres a few mean-shift steps on: records near a centre count more than those at the rim of its cluster.

    The mean of a cluster is drawn by its rim, which noise and its neighbours have a part in; its peak is not.  To the
    end the steps would let centres meet, so there are few.
    """
    for _ in range(PEAK_STEPS):
        square = ((centres[:, None, :] - places[None, :, :]) ** 2).sum(axis=-1) / width**2
        square -= square.min(axis=1, keepdims=True)  # a centre far from all places still has a nearest one
        weights = np.exp(-0.5 * square) * shares
        centres = (weights @ places) / weights.sum(axis=1, keepdims=True)
    return centres


def centre_covariances(surface: BareSurface, centres: Array) -> tuple[Array, Array]:
    """Covariances (k, d, d) of the centres (k, d) of a release: of the noise alone, and of all that moves them."""
    k, d = centres.shape
    if k == 0:
        return np.empty((0, d, d)), np.empty((0, d, d))
    grounds = grounds_of(surface)
    with threads_of("scipy.linalg").limit(limits=1 if isinstance(surface, ReleasedSurface) else None):
        *draws, rounding = _twins(surface, grounds, centres)
    noise, both = (_widening(d) * _without_farthest(each) + rounding[:, None, None] * np.eye(d) for each in draws)
    return noise, both


def _widening(d: int) -> float:
    """What the mean square of draws without the farthest is multiplied by, so that its region holds what it should."""
    kept = DRAWS - LEFT_OUT
    hotelling = d * kept / (kept - d + 1) * scipy.special.fdtri(d, kept - d + 1, LEVEL)
    # The second factor is what a normal law's mean square loses with its farthest share.
    lost = scipy.special.chdtr(d + 2, scipy.special.chdtri(d, LEFT_OUT / DRAWS)) * DRAWS / kept
    return float(hotelling / scipy.special.chdtri(d, 1 - LEVEL) / lost)


def _without_farthest(away: Array) -> Array:
    """The mean square (k, d, d) of draws (DRAWS, k, d) without the farthest of each centre, column by column alike."""
    found = []
    for draws in np.moveaxis(away, 1, 0):
        square = draws**2
        far = (square / np.maximum(np.median(square, axis=0), 1e-300)).sum(axis=1)
        near = draws[np.argsort(far, kind="stable")[: DRAWS - LEFT_OUT]]
        found.append(near.T @ near / len(near))
    return np.stack(found)


def _twins(surface: BareSurface, grounds: Grounds, centres: Array) -> tuple[Array, Array, Array]:
    """How far centres are off in the draws (DRAWS, k, d), by the noise and by all that moves them; and the variance
    (k,) along each column of what the places round."""
    rng = np.random.default_rng(0)
    law, prior = grounds.likeliest(grounds.values)
    law = law / law.sum()
    shown = np.flatnonzero(grounds.shown(grounds.values, law, prior, len(centres)))
    spacing = scipy.spatial.KDTree(grounds.places).query(grounds.places[shown], k=2)[0][:, 1]
    owner = scipy.spatial.KDTree(centres).query(grounds.places[shown])[1]
    weights = (owner == np.arange(len(centres))[:, None]) * law[shown]
    rounding = (weights**2 @ spacing**2) / 12 / np.maximum(weights.sum(axis=1), 1e-100) ** 2  # 0 where none is nearest
    numbers = rng.normal(0.0, surface.noise_scale, (DRAWS, *surface.coefficients.shape))
    noise = np.stack([grounds.values_of(one) for one in numbers], axis=1)
    records = rng.multinomial(surface.n, law, DRAWS).T / surface.n
    without = grounds.times_kernel(law)[:, None]
    still = _read_all(surface, grounds, without, centres)[0]
    by_noise = _read_all(surface, grounds, without + noise, still) - still
    means = fitted_kmeans(grounds.places, len(centres), 1, 0, law, centres).cluster_centers_
    whole = towards_peaks(means, grounds.places, law, reference_spread(surface.box))
    every = _read_all(surface, grounds, grounds.times_kernel(records) + noise, whole) - whole
    return by_noise, every, rounding


def _read_all(surface: BareSurface, grounds: Grounds, values: Array, near: Array) -> Array:
    """The centres (draws, k, d) of releases with the values (m, draws), each beside its own of ``near`` (k, d)."""
    shares, prior = grounds.likeliest(values)
    found = []
    for each, share, before in zip(values.T, shares.T, prior.T, strict=True):
        shown = grounds.shown(each, share, before, len(near))
        places, weights = grounds.places[shown], share[shown]
        means = fitted_kmeans(places, min(len(near), len(places)), K_MEANS_STARTS, 0, weights).cluster_centers_
        found.append(_beside(near, towards_peaks(means, places, weights, reference_spread(surface.box))))
    return np.stack(found)


def _beside(near: Array, centres: Array) -> Array:
    """For each place of ``near`` (k, d) the centre that it is matched to; the nearest where there are fewer."""
    square = scipy.spatial.distance.cdist(near, centres, "sqeuclidean")
    partner = square.argmin(axis=1)
    rows, columns = scipy.optimize.linear_sum_assignment(square)
    partner[rows] = columns
    return centres[partner]
