"""The frames of the ε handle: the engine's own results, and how they are packed for the browser."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DataError, SpecError, load_dataset, run, score
from dpgrams_core.figures import frames
from dpgrams_core.model.format import short
from dpgrams_core.model.run import Run
from dpgrams_core.numerics.bumps import WEAK
from dpgrams_core.numerics.surface import ReleasedSurface

RUN = Run(method="functional", dataset="four_corners", n=600, epsilon=1.0, options=(("delta", 1e-6),), seed=3)


@pytest.fixture(scope="module")
def data():
    return load_dataset("four_corners", n=600, seed=0)


def unpacked(message):
    """What the browser reads (assets/components/handle.js), written again in Python."""
    length = int.from_bytes(message[:4], "little")
    assert (4 + length) % 8 == 0

    def read(found):
        if "array" not in found:
            return found
        start, kind = 4 + length + found["at"], np.dtype("<" + found["array"])
        assert start % 8 == 0
        count = int(np.prod(found["shape"], dtype=int))
        return np.frombuffer(message, kind, count, start).reshape(found["shape"])

    return json.loads(message[4 : 4 + length], object_hook=read)


def test_what_is_packed_comes_back_to_the_bit():
    content = {
        "words": "ε = 0,1 – so",
        "nested": [{"places": np.array([[1 / 3, np.nan], [np.inf, -0.1]])}, np.arange(5, dtype=np.uint8)],
        "none": np.empty((0, 2)),
        "steps": np.array([[0, 65535]], dtype=np.uint16),
    }
    found = unpacked(frames.pack(content))
    assert found["words"] == content["words"]
    np.testing.assert_array_equal(found["nested"][0]["places"], content["nested"][0]["places"])
    np.testing.assert_array_equal(found["nested"][1], content["nested"][1])
    assert found["none"].shape == (0, 2)
    np.testing.assert_array_equal(found["steps"], content["steps"])


@pytest.mark.parametrize("method", ["functional", "dp_grams"])
def test_a_frame_is_the_engines_result_at_its_epsilon(data, method):
    wanted = replace(RUN, method=method, epsilon=0.7)
    release = run(method, data, seed=3, epsilon=0.7, delta=1e-6)
    made = frames.frame(data, wanted, "It")
    found = unpacked(frames.message("it", {}, [made]))["frames"][0]
    np.testing.assert_array_equal(found["places"], release.modes)
    assert (found["epsilon"], found["seed"], found["text"]) == (0.7, 3, short(0.7))
    assert found["guarantee"] == release.guarantee.statement
    assert found["status"] == release.guarantee.words
    assert f"{score(release, data)['found']:.0f} of 4" in found["sentence"]
    assert [row[1:3] for row in found["table"][1:]] == [[f"{x:.3f}", f"{y:.3f}"] for x, y in release.modes]
    if release.anchors is not None:
        np.testing.assert_array_equal(found["layers"]["anchors"], release.anchors.astype(np.float32))
    steps, starts = found["layers"]["tracks"].shape[:2]
    assert steps <= frames.MOST_STEPS
    assert starts <= frames.MOST_PATHS
    np.testing.assert_array_equal(found["layers"]["tracks"][-1, -1], release.trajectories[-1, -1].astype(np.float32))


def test_the_surface_is_the_released_density_on_the_corners_of_the_box(data):
    release = run("functional", data, seed=3, epsilon=1.0)
    surface = frames.density(release, data.box)
    assert isinstance(release.surface, ReleasedSurface)
    heights = surface["low"] + surface["steps"] / 65535 * (surface["high"] - surface["low"])
    corners = np.array([[x, y] for x in data.box[0] for y in data.box[1]])
    exact = release.surface.density(corners).reshape(2, 2)
    step = (surface["high"] - surface["low"]) / 65535
    np.testing.assert_allclose(heights[np.ix_([0, -1], [0, -1])], exact, atol=step)


def test_the_surface_of_tight_is_what_its_rounds_show_together(data):
    release = run("dp_grams", data, seed=3, epsilon=1.0, calibration="tight")
    surface, pooled = frames.density(release, data.box), release.pooled
    shown = surface["low"] + surface["steps"] / 65535 * (surface["high"] - surface["low"])
    x, y = frames.grid_axes(data.box, frames.NODES)
    heights = np.array([float(pooled.at(np.array([[x[14], y[45]]]))[0][0]), release.heights.max()])
    exact = heights / (data.n * 2 * np.pi * pooled.h**2)
    assert shown[14, 45] == pytest.approx(exact[0], abs=(surface["high"] - surface["low"]) / 65535)
    assert shown.max() == pytest.approx(exact[1], rel=0.1)  # the highest mode is the top of the picture


def test_all_frames_share_their_unit_noise():
    """With one bandwidth the surface is linear in its noise: between two ε the difference is a multiple of it."""
    data = load_dataset("four_corners", n=300, seed=0)
    releases = [run("functional", data, seed=5, epsilon=epsilon, bandwidth=1.0) for epsilon in (0.2, 1.0, 5.0)]
    low, middle, high = (release.surface.coefficients / 1.0 for release in releases)
    scales = [release.noise_scale for release in releases]
    unit = (low - high) / (scales[0] - scales[2])
    np.testing.assert_allclose(middle, high + (scales[1] - scales[2]) * unit, atol=1e-9 * np.abs(high).max())


def test_stops_are_those_of_the_slider_and_a_few_come_first():
    stops = frames.epsilon_stops("functional")
    order = frames.coarse_first(stops, 1.0)
    assert sorted(order) == sorted(stops)
    assert order[:3] == [1.0, 10.0, 0.01]
    first = sorted(stops.index(epsilon) for epsilon in order[:7])
    assert max(np.diff(first)) <= frames.COARSE
    assert frames.coarse_first(stops, 0.123)[0] == 0.123  # an ε of a link that is no stop


def test_a_frame_that_cannot_be_computed_is_a_gap_with_its_reason(data):
    wanted = replace(RUN, options=(("bandwidth", 1e-5), ("delta", 1e-6)))
    with pytest.raises(SpecError) as refused:
        run("functional", data, seed=3, **wanted.settings)
    made = frames.frame(data, wanted, "It")
    assert made.gap == str(refused.value)
    assert unpacked(frames.message("it", {}, [made]))["frames"][0]["gap"] == str(refused.value)


@pytest.mark.slow
def test_a_message_has_its_frames_in_order_and_at_most_so_many_bytes(data):
    wanted = replace(RUN, method="dp_grams", options=(("n_starts", 500), ("n_steps", 60)))
    made = frames.frame(data, wanted, "It")
    assert len(made.places) > 100
    stops = frames.epsilon_stops("dp_grams")
    surface = frames.density(run("functional", data, seed=3, epsilon=1.0), data.box)
    full = [replace(made, epsilon=epsilon, layers=made.layers | {"surface": surface}) for epsilon in stops[::-1]]
    message = frames.message("it", {}, full)
    assert len(message) <= frames.MOST_BYTES
    assert [frame["epsilon"] for frame in unpacked(message)["frames"]] == list(stops)
    assert not any(frame["gap"] for frame in unpacked(message)["frames"])
    large = [replace(one, places=np.zeros((4_000, 2))) for one in full]
    message = frames.message("it", {}, large)
    assert len(message) <= frames.MOST_BYTES
    gaps = [frame["gap"] for frame in unpacked(message)["frames"]]
    assert gaps[0] == frames.TOO_LARGE
    assert gaps[-1] == ""  # the first one given


def test_private_data_have_no_frame(data):
    private = replace(data, private=True)
    with pytest.raises(DataError, match="private"):
        frames.frame(private, RUN, "It")
    with pytest.raises(DataError, match="private"):
        frames.frame_of(private, run("functional", data, seed=3), RUN, "It")


def test_the_frames_of_regression_and_clusters_are_the_engines_too():
    data = load_dataset("sinusoid", n=300, seed=0)
    for method in ("functional_regression", "dp_pms"):
        release = run(method, data, seed=1, epsilon=2.0)
        made = frames.frame(data, Run(method=method, dataset="sinusoid", n=300, epsilon=2.0, seed=1), "It")
        np.testing.assert_array_equal(made.places, release.curve)
        assert f"{100 * score(release, data)['branch_recall']:.0f}%" in made.sentence
        assert made.table[1][1:3] == [f"{value:.3f}" for value in release.curve[0]]
        assert ("surface" in made.layers) == (release.surface is not None)
        assert ("tracks" in made.layers) == (release.trajectories is not None)
    data = load_dataset("blobs", n=300, seed=0)
    for method in ("functional_c", "dp_grams_c"):
        release = run(method, data, seed=1, epsilon=2.0)
        made = frames.frame(data, Run(method=method, dataset="blobs", n=300, epsilon=2.0, seed=1), "It")
        assert sorted(map(tuple, made.places)) == sorted(map(tuple, release.modes))
        assert f"{score(release, data)['ari']:.2f}" in made.sentence
        assert len(made.layers["tints"]) == 300
    iris = load_dataset("iris")
    made = frames.frame(iris, Run(method="functional_c", dataset="iris", n=iris.n, epsilon=2.0, seed=1), "It")
    assert made.places.shape[1] == 2  # in the plane of the picture
    assert not {"surface", "tracks"} & set(made.layers)


def test_the_scenes_hold_what_never_moves(data):
    plain = run("mean_shift", data)
    scene = unpacked(frames.message("it", frames.modes_scene(data, plain, None), []))
    np.testing.assert_array_equal(scene["still"]["truth"], data.true_modes)
    np.testing.assert_array_equal(scene["still"]["plain"], plain.modes)
    assert scene["box"] == data.box.tolist()
    curves = load_dataset("sinusoid", n=200, seed=0)
    scene = unpacked(frames.message("it", frames.regression_scene(curves, run("lowess", curves)), []))
    assert np.all(np.diff(scene["still"]["plain_line"][:, 0]) >= 0)
    assert len(scene["still"]["records"]) == 200
    blobs = load_dataset("blobs", n=300, seed=0)
    scene = unpacked(frames.message("it", frames.clusters_scene(blobs, run("kmeans", blobs, n_clusters=3)), []))
    (x, y), records = scene["box"], scene["still"]["records"]
    assert np.all((records[:, 0] > x[0]) & (records[:, 0] < x[1]) & (records[:, 1] > y[0]) & (records[:, 1] < y[1]))


def test_a_frame_says_how_sure_its_modes_are(data):
    release = run("functional", data, seed=3, epsilon=2.0, delta=1e-6)
    made = frames.frame(data, replace(RUN, epsilon=2.0), "It")
    sure = release.significance >= WEAK
    assert sure.any()
    for turn, covariance, known in zip(made.layers["regions"], release.mode_covariances, sure, strict=True):
        assert np.isfinite(turn).all() == known
        if known:  # a circle of radius 1 goes to the ellipse that holds 95 %
            np.testing.assert_allclose(turn @ turn.T, 5.991 * covariance, rtol=1e-5)
    assert "regions" not in frames.frame(data, replace(RUN, epsilon=0.02), "It").layers
    names = [name for name, _ in frames.modes_scene(data, release, None, regions=True)["legend"]]
    assert names == ["truth", "plain", "private", "records", "region"]


def test_a_frame_of_branches_has_their_band():
    curves = load_dataset("sinusoid", n=500, seed=0)
    release = run("functional_regression", curves, seed=3, epsilon=2.0, delta=1e-6)
    wanted = replace(RUN, method="functional_regression", dataset="sinusoid", epsilon=2.0)
    band = frames.frame(curves, wanted, "It").layers["band"]
    found = band["low"] + band["steps"] / 65535 * (band["high"] - band["low"])
    np.testing.assert_allclose(found, release.curve_band, atol=np.ptp(release.curve_band) / 65535)
