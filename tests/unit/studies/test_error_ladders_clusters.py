"""The ladder of clusters by the functional release: it ends at the method, each step with its own ingredient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import load_dataset, run, score, sweep
from dpgrams_core.methods.functional.clusters import bare_release
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.methods.ladder import without_noise
from dpgrams_core.model.errors import DataError
from dpgrams_core.numerics.centres import towards_peaks
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.studies.ablation import error_sources, ladder_errors, ladders, stream_error_sources

PLACE = {rung.key: place for place, rung in enumerate(ladders()["functional_c"].rungs)}


@pytest.fixture(scope="module")
def blobs(seed):
    return load_dataset("blobs", n=200, seed=seed)


def ladder(data, seed, **options):
    return ladder_errors("functional_c", data, seed, "centroid_mse", options)


@pytest.fixture(scope="module")
def four(blobs, seed):
    """The errors of the ladder for four clusters."""
    return ladder(blobs, seed, n_clusters=4)


@pytest.mark.parametrize("options", [{}, {"n_clusters": 4}, {"n_clusters": 4, "epsilon": 0.3, "bandwidth": 1.0}])
def test_the_ladder_ends_at_the_method_itself(blobs, seed, options):
    errors = ladder(blobs, seed, **options)
    assert len(errors) == len(PLACE)
    assert errors[-1] == score(run("functional_c", blobs, seed=seed, **options), blobs)["centroid_mse"]
    # The step before the last is put together in the ladder, the last is run(): with the count known they are one.
    assert (errors[PLACE["noise"]] == errors[PLACE["merge"]]) == ("n_clusters" in options)


def test_the_step_before_the_noise_is_the_method_without_its_noise(blobs, seed, four, monkeypatch):
    other = ladder(blobs, seed + 1, n_clusters=4)
    assert four[: PLACE["noise"]] == other[: PLACE["noise"]]  # it knows no noise, so no seed of it
    assert four[PLACE["noise"]] != other[PLACE["noise"]]
    monkeypatch.setattr(SimulationNoise, "independent_gaussian", lambda self, exact, scale: exact)
    assert ladder(blobs, seed, n_clusters=4)[-1] == four[PLACE["reading"]]


@pytest.mark.parametrize(
    ("first_touched", "one", "other"),
    [
        ("reading", {"bandwidth": 0.8}, {"bandwidth": 1.6}),
        ("merge", {"n_clusters": 2}, {"n_clusters": 4}),
    ],
)
def test_a_setting_first_shows_at_its_own_step(blobs, seed, first_touched, one, other, assert_first_differ_at):
    assert_first_differ_at(PLACE[first_touched], ladder(blobs, seed, **one), ladder(blobs, seed, **other))


def test_the_steps_towards_the_peaks_are_a_step_of_their_own(blobs, seed, four, monkeypatch):
    assert four[PLACE["peaks"]] != four[PLACE["sampling"]]
    means = next(ladders()["functional_c"].estimates(FunctionalCSpec(), blobs, seed))
    nearest = ((blobs.points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    own = [blobs.points[nearest == number].mean(axis=0) for number in range(4)]
    assert means == pytest.approx(np.array(own), abs=1e-6)  # k-means on the records: each centre the mean of its own
    monkeypatch.setitem(towards_peaks.__globals__, "PEAK_STEPS", 0)  # its module has the name of a function
    b = ladder(blobs, seed, n_clusters=4)
    assert b[PLACE["peaks"]] == pytest.approx(b[PLACE["sampling"]], rel=1e-9)


def test_a_sketch_in_more_columns_loses_its_noise_and_nothing_else(seed, monkeypatch):
    iris = load_dataset("iris")
    noisy = bare_release(iris, FunctionalCSpec(), SimulationNoise(seed)).surface
    exact = without_noise(noisy, iris.points, iris)
    assert (exact.noise_scale, exact.bandwidth, exact.n) == (noisy.noise_scale, noisy.bandwidth, noisy.n)
    assert not np.allclose(exact.coefficients, noisy.coefficients)
    monkeypatch.setattr(SimulationNoise, "independent_gaussian", lambda self, sums, scale: sums)
    silent = bare_release(iris, FunctionalCSpec(), SimulationNoise(seed)).surface
    assert np.array_equal(exact.coefficients, silent.coefficients)


def test_the_parts_add_up_to_what_a_sweep_reports(seed):
    how = {"runs": 3, "seed": seed, "n_clusters": 4}
    found = error_sources("functional_c", "blobs", n=150, measure="ari", epsilon=1.0, **how)
    table = sweep("functional_c", "blobs", n=[150], epsilon=[1.0], **how)
    assert found.total == pytest.approx(1 - float(table["ari"].iloc[0]), rel=1e-9, abs=1e-12)
    assert sum(step.change for step in found.steps) == pytest.approx(found.total, rel=1e-9, abs=1e-12)
    assert found.sentence.startswith("Of the mean 1 − ARI of")


def test_private_data_are_refused(blobs, nothing_drawn):
    private = replace(blobs, private=True)
    rows = lambda: ladders()["functional_c"].estimates(FunctionalCSpec(), private, 0)  # noqa: E731
    for read in (lambda: ladder(private, 0), rows, lambda: without_noise(None, blobs.points, private)):
        with pytest.raises(DataError, match="The data are private"):
            read()


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"measure": "mse"}, "measure", "mse"),
        ({"n_clusters": 0}, "n_clusters", 0),
        ({"bandwidth": 0.001}, "bandwidth", 0.001),
        ({"n_modes": 4}, "n_modes", 4),
    ],
)
def test_wrong_settings_are_refused_at_the_call(refused, nothing_drawn, options, field, value):
    refused(lambda: stream_error_sources("functional_c", "blobs", n=150, **options), field, value)
