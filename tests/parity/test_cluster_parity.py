"""Clustering against other implementations: pairs counted one by one, scikit-learn, diffprivlib, and the paper."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from diffprivlib.models import KMeans as LibraryKMeans
from diffprivlib.models import k_means as library
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from dpgrams_core import load_dataset, run, score
from dpgrams_core.methods.baselines.kmeans import library_budget
from dpgrams_core.methods.baselines.mean_shift import bounded_climb, fast_mean_shift
from dpgrams_core.model.measures import nearest_centres
from dpgrams_core.model.representation import standardise, whitened_pca
from dpgrams_core.privacy.noise import SimulationNoise


def naive_ari(one, two):
    """The adjusted Rand index by looking at every pair."""
    pairs = list(itertools.combinations(range(len(one)), 2))
    first, second = ({(i, j) for i, j in pairs if labels[i] == labels[j]} for labels in (one, two))
    expected = len(first) * len(second) / len(pairs)
    return (len(first & second) - expected) / ((len(first) + len(second)) / 2 - expected)


def naive_nmi(one, two):
    """Mutual information over the mean of the entropies, by loops."""
    n, entropy, shared = len(one), [], 0.0
    for labels in (one, two):
        shares = [list(labels).count(a) / n for a in set(labels)]
        entropy.append(-sum(p * math.log(p) for p in shares))
    for a, b in itertools.product(set(one), set(two)):
        joint = sum(x == a and y == b for x, y in zip(one, two, strict=True)) / n
        if joint:
            shared += joint * math.log(joint / (list(one).count(a) / n * (list(two).count(b) / n)))
    return shared / (sum(entropy) / 2)


def test_the_scores_are_those_of_the_definitions(table, rng):
    points, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    data = table(points, kind="clusters", labels=labels)
    release = run("kmeans", data, seed=0, n_clusters=4)
    found = nearest_centres(points, release.modes)
    scores = score(release, data)
    assert scores["ari"] == pytest.approx(naive_ari(labels.tolist(), found.tolist()))
    assert scores["nmi"] == pytest.approx(naive_nmi(labels.tolist(), found.tolist()))
    means = np.stack([points[labels == k].mean(axis=0) for k in range(3)])
    costs = [
        sum(float(np.square(means[k] - release.modes[j]).sum()) for k, j in enumerate(chosen))
        for chosen in itertools.permutations(range(4), 3)
    ]
    assert scores["centroid_mse"] == pytest.approx(min(costs) / 4)


@pytest.mark.parametrize("shape", [(200, 12), (12, 200)])
def test_whitened_pca_is_that_of_scikit_learn(shape, rng):
    table = rng.normal(size=shape) * np.linspace(3, 1, shape[1]) + 5
    standard, mean, scale = standardise(table)
    scaler = StandardScaler().fit(table)
    np.testing.assert_allclose(standard, scaler.transform(table), atol=1e-10)
    np.testing.assert_allclose(mean, scaler.mean_)
    np.testing.assert_allclose(scale, scaler.scale_)
    ours, theirs = whitened_pca(standard, 4), PCA(4, whiten=True, svd_solver="full").fit(standard)
    signs = np.sign((ours.components * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.scores * signs, theirs.transform(standard), atol=1e-8)
    np.testing.assert_allclose(ours.scale**2, theirs.explained_variance_)
    back = ours.scores * ours.scale @ ours.components + ours.offset
    np.testing.assert_allclose(back, theirs.inverse_transform(theirs.transform(standard)), atol=1e-8)


def test_the_digits_are_scaled_and_projected_as_scikit_learn_does():
    pixels = load_digits().data
    scores = PCA(6, whiten=True, svd_solver="full").fit_transform(StandardScaler().fit_transform(pixels))
    data = load_dataset("digits")
    np.testing.assert_allclose(np.abs(data.points), np.abs(scores), atol=1e-7)


@pytest.mark.parametrize("name", ["blobs", "iris", "digits"])
def test_dp_kmeans_is_the_library_with_the_box_as_bounds(name, seed):
    data = load_dataset(name)
    number = SimulationNoise(seed).library_seed()
    expected = LibraryKMeans(data.n_clusters, epsilon=1.5, bounds=(-4.0, 4.0), random_state=number).fit(data.points)
    release = run("dp_kmeans", data, epsilon=1.5, seed=seed)
    np.testing.assert_allclose(release.modes, expected.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize(("clusters", "n", "d", "epsilon"), [(3, 150, 4, 1.0), (2, 500, 6, 30.0), (4, 4000, 2, 2.0)])
def test_the_library_spends_what_we_say_it_spends(clusters, n, d, epsilon, table, rng, monkeypatch):
    drawn = {"count": [], "column": []}

    def watched(kind, name):
        mechanism = getattr(library, name)

        class Watched(mechanism):
            def randomise(self, value):
                drawn[kind].append((self.epsilon, float(self.sensitivity)))
                return super().randomise(value)

        monkeypatch.setattr(library, name, Watched)

    watched("count", "GeometricFolded")
    watched("column", "LaplaceBoundedDomain")
    points = rng.uniform(-4, 4, (n, d))
    data = table(points, box=[(-4.0, 4.0)] * d, kind="clusters", labels=np.zeros(n))
    run("dp_kmeans", data, epsilon=epsilon, seed=0, n_clusters=clusters)
    budget = library_budget(epsilon, clusters=clusters, n=n, d=d)
    assert {round(e, 12) for e, _ in drawn["count"]} == {round(budget.count, 12)}
    assert {round(e, 12) for e, _ in drawn["column"]} == {round(budget.column, 12)}
    assert {s for _, s in drawn["count"]} == {1.0}
    assert {s for _, s in drawn["column"]} == {8.0}
    # Every round looks at every cluster that holds a record, and there is always one.
    assert budget.rounds == LibraryKMeans(clusters, epsilon=epsilon)._calc_iters(d, n)
    assert budget.rounds <= len(drawn["count"]) <= budget.rounds * clusters
    assert len(drawn["column"]) == d * len(drawn["count"])


def test_the_bounded_climb_ends_where_the_exact_one_does(rng):
    points = np.concatenate([rng.normal(-3, 0.5, (60, 3)), rng.normal(3, 0.5, (60, 3))])
    ends, labels = fast_mean_shift(points, 1.0, points)
    np.testing.assert_allclose(bounded_climb(points, 1.0, points), ends[labels], atol=0.01)


class TestThePaper:
    """tab:real_world_clustering_updated, for the methods and data that need no private noise and no download."""

    def test_k_means_on_mnist(self):
        data = load_dataset("mnist")
        scores = score(run("kmeans", data, seed=0, n_init=3), data)
        assert scores["ari"] == pytest.approx(0.295, abs=0.02)
        assert scores["nmi"] == pytest.approx(0.409, abs=0.02)
        assert scores["centroid_mse"] == pytest.approx(68.1, rel=0.05)

    def test_mean_shift_on_blobs(self):
        data = load_dataset("blobs", n=1000)
        assert score(run("mean_shift_c", data, seed=0, n_clusters=4), data)["ari"] == pytest.approx(0.760, abs=0.02)

    @pytest.mark.parametrize(("n", "ari"), [(700, 0.777), (1000, 0.772), (2000, 0.748), (5000, 0.752)])
    def test_k_means_on_blobs(self, n, ari):
        # The paper prints 0.753 for a draw that it does not give; these are of random_state 41.
        data = load_dataset("blobs", n=n)
        assert score(run("kmeans", data, seed=0), data)["ari"] == pytest.approx(ari, abs=0.01)
