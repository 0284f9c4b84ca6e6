"""Ward against scikit-learn, and the matching against all permutations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from dpgrams_core.model.measures import score_modes
from dpgrams_core.numerics.merging import ward_groups, weighted_ward_groups


@pytest.mark.parametrize("count", [1, 2, 4, 7])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_ward_is_that_of_scikit_learn(count, d, rng):
    for _ in range(10):
        points = rng.normal(0, 1, (int(rng.integers(count + 1, 60)), d))
        theirs = AgglomerativeClustering(n_clusters=count, linkage="ward").fit_predict(points)
        for mine in (ward_groups(points, count), weighted_ward_groups(points, np.ones(len(points)), count)):
            assert adjusted_rand_score(theirs, mine) == 1.0
            assert len(set(mine.tolist())) == count


def brute_force(truth, estimates):
    """MMMSE by trying every one-to-one matching of the smaller set into the larger."""
    small, large = sorted((truth, estimates), key=len)
    totals = [
        sum(float(((small[i] - large[j]) ** 2).sum()) for i, j in enumerate(chosen))
        for chosen in itertools.permutations(range(len(large)), len(small))
    ]
    return min(totals) / max(len(truth), len(estimates))


@pytest.mark.parametrize(("k", "k_hat"), [(1, 1), (4, 4), (5, 3), (3, 6), (1, 5), (6, 1)])
def test_the_mse_is_the_least_over_all_matchings(k, k_hat, rng):
    for _ in range(20):
        truth, estimates = rng.normal(0, 2, (k, 2)), rng.normal(0, 2, (k_hat, 2))
        assert score_modes(truth, estimates)["mse"] == pytest.approx(brute_force(truth, estimates))
