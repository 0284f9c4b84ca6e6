"""Fast kernel sums against the plain loops, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from benchmarks.naive import naive_clipped_score, naive_density_and_gradient
from dpgrams_core.numerics import density as module
from dpgrams_core.numerics.density import clipped_score, density_and_gradient, grid_density, squared_distances
from dpgrams_core.numerics.kernels import KERNELS


@pytest.fixture(params=[(1, 0.3), (1, 2.0), (2, 0.3), (2, 1.0), (3, 0.9), (5, 1.5)], ids=str)
def case(request, rng):
    d, h = request.param
    return rng.normal(0, 1.5, (60, d)), rng.normal(0, 2.0, (9, d)), h


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of a few records, so that their seams are tested too."""
    monkeypatch.setattr(module, "_CHUNK", 64)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", KERNELS)
def test_density_and_gradient(name, case):
    data, at, h = case
    slow, fast = (
        naive_density_and_gradient(KERNELS[name], data, at, h),
        density_and_gradient(KERNELS[name], data, at, h),
    )
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(fast[1], slow[1], rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("multiplier", [0.01, 0.3, 1e6])
def test_clipped_score_and_clipping_share(name, multiplier, case):
    data, at, h = case
    clip = multiplier * h ** -(data.shape[1] + 1)
    slow, fast = (score(KERNELS[name], data, at, h, clip) for score in (naive_clipped_score, clipped_score))
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-8, atol=1e-10)
    assert fast[1] == slow[1]
    assert np.linalg.norm(fast[0], axis=1).max() <= clip * (1 + 1e-9)  # a mean of vectors of at most that length


@pytest.mark.parametrize("name", KERNELS)
def test_clipped_score_where_there_is_no_density(name, rng):
    # Far away the density is exactly 0; for order 4 it can be negative.  Both paths must stay finite and agree.
    data = rng.normal(0, 0.2, (20, 2))
    at = np.array([[30.0, 0.0], [0.25, 0.25], [0.6, 0.0], [0.0, 0.1]])
    slow, fast = (score(KERNELS[name], data, at, 0.2, 3.0) for score in (naive_clipped_score, clipped_score))
    assert np.isfinite(fast[0]).all()
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-8, atol=1e-12)
    assert fast[1] == slow[1]
    np.testing.assert_array_equal(fast[0][0], 0.0)


def test_no_contribution_passes_the_clip_however_far_it_comes_from(rng):
    # At 2 bandwidths across and 28 along, the order-4 kernel is about -1e-170: the density counts as 0
    # and the squares of the gradient underflow, yet each contribution must be cut to its length.
    data, at = rng.normal(0, 0.002, (20, 2)), np.array([[0.4, 5.6]])
    kernel, clip = KERNELS["gaussian4"], 3.0
    assert density_and_gradient(kernel, data, at, 0.2)[0].item() < 0
    for score in (naive_clipped_score, clipped_score):
        found, share = score(kernel, data, at, 0.2, clip)
        assert np.linalg.norm(found) == pytest.approx(clip, rel=1e-2)  # all of them point the same way
        assert share == 1.0


def test_clipping_share_by_hand():
    # Two records at distances 1 and 2 from the start, h = 1, d = 1: q = K'(u) / p with p the mean of both.
    data, at = np.array([[1.0], [2.0]]), np.zeros((1, 1))
    height = [0.24197072, 0.05399097]
    p = sum(height) / 2
    sizes = [height[0] * 1 / p, height[1] * 2 / p]  # 1.635 and 0.730
    for clip, share in ((2.0, 0.0), (1.0, 0.5), (0.5, 1.0)):
        score, found = clipped_score(KERNELS["gaussian"], data, at, 1.0, clip)
        assert found == share
        assert score.item() == pytest.approx(sum(min(size, clip) for size in sizes) / 2, rel=1e-6)


@pytest.mark.parametrize("h", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_gaussian_density_is_that_of_scikit_learn(d, h, rng):
    data, at = rng.normal(0, 1, (200, d)), rng.normal(0, 1.5, (50, d))
    theirs = np.exp(KernelDensity(kernel="gaussian", bandwidth=h).fit(data).score_samples(at))
    np.testing.assert_allclose(density_and_gradient(KERNELS["gaussian"], data, at, h)[0], theirs, rtol=1e-8, atol=1e-14)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", KERNELS)
def test_the_density_on_a_grid_is_the_density_at_its_points(name, rng):
    data = rng.normal(0, 1, (70, 2))
    axes = [np.linspace(-3, 3, 11), np.linspace(-2, 4, 8)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    expected = density_and_gradient(KERNELS[name], data, points, 0.6)[0].reshape(11, 8)
    np.testing.assert_allclose(grid_density(KERNELS[name], data, axes, 0.6), expected, rtol=1e-9, atol=1e-13)


def test_squared_distances_far_from_the_origin_keep_their_digits(rng):
    # |a|^2 + |b|^2 - 2ab would lose everything at 1e6 without moving the origin.
    at, data = 1e6 + rng.normal(0, 1, (5, 2)), 1e6 + rng.normal(0, 1, (40, 2))
    expected = ((at[:, None] - data[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(at, data), expected, rtol=1e-8, atol=1e-9)
    assert (squared_distances(at, at) >= 0).all()
