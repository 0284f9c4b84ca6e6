"""The noise of a whole run, recovered from what it releases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.naive import naive_clipped_score, naive_density_and_gradient
from dpgrams_core import run
from dpgrams_core.numerics.kernels import KERNELS

RUNS = 500
H, STEP = 1.5, 0.6
CANDIDATES = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, 1.0), (-1.0, -1.5)]
THEOREM = {"calibration": "theorem", "gradient_clip": 0.02, "density_floor": 0.01}
EXPERIMENTS = {"calibration": "experiments", "clip_multiplier": 0.7}


def exact_score(points, at, options):
    """The score of the whole data set by the naive loops."""
    kernel = KERNELS["gaussian"]
    if options["calibration"] == "experiments":
        return naive_clipped_score(kernel, points, at, H, options["clip_multiplier"] * H**-3)[0]
    density, gradient = naive_density_and_gradient(kernel, points, at, H)
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    clipped = gradient * np.minimum(1, options["gradient_clip"] / length)
    return clipped / np.maximum(density, options["density_floor"])[:, None]


@pytest.fixture(scope="module", params=[THEOREM, EXPERIMENTS], ids=["theorem", "experiments"])
def recovered(request, seed, table):
    """(noise, correlation of the starts, stated scale) of one step on the full batch, many times."""
    points = np.random.default_rng(seed).normal(0, 1.5, (60, 2))
    data = table(points)
    at = np.array(CANDIDATES)
    scores = exact_score(points, at, request.param)
    row = {point: number for number, point in enumerate(CANDIDATES)}
    noise, correlations, scales = [], [], set()
    for number in range(RUNS):
        release = run(
            "dp_grams",
            data,
            seed=seed + number,
            bandwidth=H,
            step_size=STEP,
            n_steps=1,
            batch_size=60,
            n_starts=4,
            candidates=CANDIDATES,
            suppression_radius=0.5,
            **request.param,
        )
        start, end = release.trajectories
        known = scores[[row[tuple(x)] for x in start.tolist()]]
        noise.append((end - start) / STEP - known)
        correlations.append(np.exp(-cdist(start, start) / H))
        scales.add(release.noise_scale)
    (scale,) = scales
    return np.stack(noise), np.stack(correlations), scale


def test_the_recovered_noise_has_the_stated_covariance(recovered, pvalues, flake_rate):
    found = pvalues(*recovered)
    assert min(found.values()) > flake_rate / len(found), found


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
def test_another_scale_is_rejected(factor, recovered, pvalues, certain):
    noise, correlation, scale = recovered
    assert pvalues(noise, correlation, factor * scale)["size"] < certain


def test_independent_noise_is_rejected(recovered, pvalues, certain):
    noise, _, scale = recovered
    assert min(pvalues(noise, np.eye(4), scale).values()) < certain


def test_a_score_left_out_is_seen(recovered, pvalues, certain):
    # If the score were not what it should be, the rest would not be noise: shift it by one scale.
    noise, correlation, scale = recovered
    assert min(pvalues(noise + scale, correlation, scale).values()) < certain
