"""DP-k-means by diffprivlib: the noise that it really adds, and why its ε is called nominal."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpgrams_core import Dataset, run
from dpgrams_core.methods.baselines.kmeans import library_budget


def bounded_laplace_scale(epsilon, sensitivity):
    """Scale b of the bounded Laplace mechanism on a wide domain (Holohan et al. 2020): its exact ε is

    sensitivity / b + log(2 - exp(-sensitivity / b)), the second term for what the edge of the domain cuts off.
    """
    loss = lambda t: t + math.log(2 - math.exp(-t)) - epsilon  # noqa: E731 - t is sensitivity / b
    return sensitivity / brentq(loss, 1e-12, epsilon)


def test_the_sums_get_the_noise_of_their_share(seed, flake_rate, certain):
    # One cluster of records at the middle of the box: a released centre is the noise of the last round over n.
    n, d, runs = 4000, 4, 150
    data = Dataset(name="one", kind="clusters", points=np.zeros((n, d)), box=[(-1.0, 1.0)] * d, labels=np.zeros(n))
    budget = library_budget(1.0, clusters=1, n=n, d=d)
    scale = bounded_laplace_scale(budget.column, 2.0)
    centres = np.array([run("dp_kmeans", data, seed=seed + i, epsilon=1.0).modes for i in range(runs)])
    total = float(np.abs(n * centres).sum())  # of Laplace noise: a sum of exponential sizes

    def pvalue(assumed):
        law = stats.gamma(centres.size, scale=assumed)
        return 2 * min(law.cdf(total), law.sf(total))

    assert pvalue(scale) > flake_rate
    for wrong in (2 / 3, 3 / 2):
        assert pvalue(wrong * scale) < certain


def clopper_pearson(hits, runs, error):
    low = stats.beta.ppf(error, hits, runs - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - error, hits + 1, runs - hits) if hits < runs else 1.0
    return low, high


@pytest.fixture(scope="module")
def worlds():
    """All records in one corner, and the same with one of them in the opposite corner."""
    points = np.full((2000, 2), -4.0)
    first = Dataset(name="corner", kind="clusters", points=points, box=[(-4.0, 4.0)] * 2, labels=np.zeros(2000))
    points[0] = 4.0
    return first, replace(first, points=points)


def test_an_empty_cluster_gives_one_record_away(worlds, seed, flake_rate):
    # The library leaves the centre of an empty cluster where it started, never near the edge of the box.  One record
    # there gets noise as wide as the box.  So "the centre far from the crowd lies near the edge" shows that record.
    runs, epsilon = 300, 0.5

    def near_the_edge(data, number):
        centres = run("dp_kmeans", data, seed=seed + number, epsilon=epsilon, n_clusters=2).modes
        far = centres[np.argmax(np.square(centres + 4.0).sum(axis=1))]
        return bool(np.abs(far).max() > 3.0)

    false, true = (sum(near_the_edge(world, i) for i in range(runs)) for world in worlds)
    assert false == 0
    _, false_high = clopper_pearson(false, runs, flake_rate)
    true_low, _ = clopper_pearson(true, runs, flake_rate)
    claimed = 2 * library_budget(epsilon, clusters=2, n=2000, d=2).add_or_remove
    assert math.log(true_low / false_high) > claimed > epsilon
    assert run("dp_kmeans", worlds[0], seed=seed, epsilon=epsilon, n_clusters=2).guarantee.status == "nominal"


def test_more_epsilon_is_less_noise(seed, flake_rate):
    points = np.zeros((500, 2))
    data = Dataset(name="one", kind="clusters", points=points, box=[(-1.0, 1.0)] * 2, labels=np.zeros(500))
    sizes = {
        epsilon: [np.abs(run("dp_kmeans", data, seed=seed + i, epsilon=epsilon).modes).sum() for i in range(40)]
        for epsilon in (0.5, 5.0)
    }
    assert stats.mannwhitneyu(sizes[0.5], sizes[5.0], alternative="greater").pvalue < flake_rate
