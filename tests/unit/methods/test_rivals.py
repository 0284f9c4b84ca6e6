"""The rivals: what they release, and a search for neighbours that move it farther than their proofs allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import Dataset, SpecError, load_dataset, run, score
from dpgrams_core.methods.baselines.hash_tree import RADIUS, hashes, leaf_sums, public_depth
from dpgrams_core.methods.baselines.histogram import cell_counts, histogram_modes, persistent_peaks
from dpgrams_core.methods.baselines.noisy_kmeans import CHUNK, packed_starts, round_sums
from dpgrams_core.numerics.rounding import summing_error

EXTREMES = (0.0, 1.0, -1.0, 5e-324, 1e-300, 0.999999999, -0.3)


def records(rng, d):
    """Records in [-1, 1]^d: corners, edges, tiny numbers, and some anywhere."""
    corners = rng.choice([-1.0, 1.0], size=(6, d))
    return np.concatenate([corners, rng.choice(EXTREMES, size=(10, d)), rng.uniform(-1, 1, (10, d))])


def farthest(of, found, others):
    """The farthest that replacing the first record by another moves ``of`` the records."""
    sums = [np.ravel(of(np.concatenate([one[None], others]))) for one in found]
    return max(float(np.linalg.norm(one - other)) for one in sums for other in sums)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_neighbour_moves_a_round_of_noisy_kmeans_farther_than_twice_the_radius(d, rng):
    worst = 0.0
    for radius in (0.05, 0.4, math.sqrt(d)):
        centres = rng.uniform(-1, 1, (4, d))
        # Opposite ways from one centre, and from two: the two cases of the proof, at their worst.
        far = [centres[0] + sign * 1e-9 + sign * 0.5 for sign in (-1, 1)] + [centres[1] + 0.9]
        found = np.concatenate([records(rng, d), far])
        moved = farthest(
            lambda points, c=centres, r=radius: round_sums(points, c, r), found, rng.uniform(-1, 1, (30, d))
        )
        assert moved <= 2 * radius * (1 + 1e-12)
        worst = max(worst, moved / (2 * radius))
    assert worst > 0.95  # the bound is reached, so a smaller one would be caught


def test_the_noise_of_noisy_kmeans_covers_the_rounding_of_records_that_are_root_two_radii_long():
    release = run("noisy_kmeans", load_dataset("blobs", n=4_000, seed=0), epsilon=1.0, clip_radius=1.0, seed=0)
    radius = math.sqrt(2)  # half the diagonal of a square of half-side 1
    slack = release.events[0].sensitivity - 2 * radius
    assert slack >= math.sqrt(2) * radius * 2 * summing_error(4_000, CHUNK)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_neighbour_moves_a_histogram_farther_than_two_cells(d, rng):
    box = np.tile([-1.0, 1.0], (d, 1))
    found = np.concatenate([records(rng, d), np.full((1, d), 1e308), np.full((1, d), -np.inf)])
    moved = farthest(lambda points: cell_counts(points, box, (5,) * d), found, rng.uniform(-1, 1, (30, d)))
    assert moved == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("d", [2, 4])
def test_no_neighbour_moves_a_level_or_the_leaves_farther_than_root_two(d, rng):
    depth, leaves = 4, [(2, 0, 1.0), (2, 1, 1.0), (1, 1, 1.0)]
    found, others = records(rng, d), rng.uniform(-1, 1, (30, d))
    unit = math.sqrt(2) * RADIUS * math.sqrt(d)

    def sums(points):
        return leaf_sums(points, hashes(points, depth), depth, leaves) / unit

    moved = farthest(sums, found, others)
    assert 0.9 * math.sqrt(2) < moved <= math.sqrt(2) * (1 + 1e-12)
    for level in range(1, depth + 1):
        counts = farthest(lambda p, at=level: np.bincount(hashes(p, at), minlength=2**at), found, others)
        assert counts <= math.sqrt(2)


def test_cells_hold_every_record_once(rng):
    box = np.array([[0.0, 1.0], [-2.0, 2.0]])
    points = rng.uniform(-3, 3, (500, 2))
    counts = cell_counts(points, box, (3, 4))
    assert counts.sum() == 500
    assert cell_counts(np.array([[1.0, 2.0]]), box, (3, 4))[2, 3] == 1  # the far corner is in the last cell


def test_persistence_of_a_worked_example():
    places, persistence = persistent_peaks(np.array([1.0, 5.0, 2.0, 4.0, 3.0, 3.5, 0.0]))
    assert dict(zip(places.tolist(), persistence.tolist(), strict=True)) == {1: 5.0, 3: 2.0, 5: 0.5}


def test_modes_of_a_histogram_without_noise_are_the_peaks(rng):
    truth, box = np.array([[-2.0, 0.0], [2.0, 1.0]]), np.tile([-5.0, 5.0], (2, 1))
    points = np.concatenate([centre + 0.4 * rng.standard_normal((5_000, 2)) for centre in truth])
    counts = cell_counts(points, box, (40, 40))
    for count in (2, None):
        modes, significance = histogram_modes(counts, box, 0.4, 1.0, count)
        assert len(modes) == 2
        assert np.abs(modes[np.argsort(modes[:, 0])] - truth).max() < 0.1
        assert (significance > 5).all()


def test_no_mode_where_there_is_only_noise(rng):
    box = np.tile([-5.0, 5.0], (2, 1))
    found = [len(histogram_modes(rng.normal(0, 7, (20, 20)), box, 0.8, 7.0, None)[0]) for _ in range(40)]
    assert sum(found) <= 2


def test_starts_are_apart_and_in_the_box():
    for count, d in ((1, 1), (4, 2), (10, 6), (50, 2)):
        starts = packed_starts(count, d)
        assert starts.shape == (count, d)
        assert np.abs(starts).max() <= 1
        apart = np.linalg.norm(starts[:, None] - starts[None], axis=-1)[np.triu_indices(count, 1)]
        assert count == 1 or apart.min() > 0.5 * count ** (-1 / d)


def test_a_round_of_lloyd_without_clip_is_that_of_kmeans(rng):
    points, centres = rng.uniform(-1, 1, (3_000, 2)), rng.uniform(-1, 1, (3, 2))
    sums = round_sums(points, centres, 10.0)
    near = ((points[:, None] - centres[None]) ** 2).sum(axis=-1).argmin(axis=1)
    for number in range(3):
        mine = points[near == number]
        assert sums[number, -1] == pytest.approx(10.0 * len(mine))
        np.testing.assert_allclose(centres[number] + sums[number, :-1] / len(mine), mine.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("method", ["noisy_kmeans", "hash_tree"])
def test_rivals_find_clusters_where_the_budget_allows(method):
    data = load_dataset("blobs", n=5_000, seed=0)
    release = run(method, data, epsilon=5.0, seed=0)
    assert release.guarantee.words == "proven, given the representation"
    assert release.modes.shape == (4, 2)
    assert score(release, data)["ari"] > 0.6


def test_the_histogram_finds_the_four_corners():
    data = load_dataset("four_corners", n=5_000, seed=0)
    release = run("noisy_histogram", data, epsilon=1.0, seed=0)
    assert release.guarantee.words == "proven"
    assert score(release, data)["found"] == 4
    assert score(release, data)["spurious"] == 0


def test_deeper_trees_for_more_records_and_larger_budgets():
    assert public_depth(100, 0.1, 1e-5) == 1
    assert public_depth(1_000, 1.0, 1e-5) < public_depth(100_000, 1.0, 1e-5) < public_depth(100_000, 4.0, 1e-5)


def test_too_many_columns_or_cells_are_refused():
    four = Dataset(name="mine", kind="modes", points=np.zeros((60, 4)), box=[(-1, 1)] * 4)
    with pytest.raises(SpecError, match="at most 3 columns"):
        run("noisy_histogram", four)
    with pytest.raises(SpecError, match="at most 447 along a side"):
        run("noisy_histogram", load_dataset("four_corners", n=100), cells=1_000)
