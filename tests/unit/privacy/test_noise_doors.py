"""The two doors for privacy randomness: what the release door takes, refuses, checks and gives out."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DataError, PrivacyLeakWarning, SpecError, run
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.numerics.rounding import lift, with_rounding
from dpgrams_core.privacy import noise as noise_module
from dpgrams_core.privacy.noise import LATTICE_BITS, Noise, ReleaseNoise, SimulationNoise, gaussian_measurement
from tests.places import ROOT


@pytest.fixture(scope="module")
def private(corners):
    """The four corners, marked private."""
    return replace(corners, name="mine", true_modes=None, labels=None, private=True)


def draws(noise):
    """One draw of every kind, each of which repeats by chance less than once in 10^50 times."""
    return (
        noise.independent_gaussian(np.zeros(8), 1.0).tolist(),
        noise.correlated_gaussian(np.eye(4), 1.0, 2).tolist(),
        noise.covered_gaussian([np.zeros(8)], np.eye(8), 1.0).tolist(),
        [noise.gumbel_argmax(np.zeros(1000)) for _ in range(20)],
        noise.batch(1000, 100).tolist(),
    )


class TestWhatIsRefused:
    @pytest.mark.parametrize("number", [0, 7, 2**31, "7", -1])
    @pytest.mark.parametrize("method", ["functional", "dp_grams"])
    def test_a_seed(self, number, method, private, refused, nothing_drawn):
        refused(lambda: run(method, private, seed=number), "seed", number, "private", "has no seed")

    def test_a_method_without_privacy(self, private, nothing_drawn):
        with pytest.raises(DataError, match=r"Mean shift has no privacy.*nothing was run"):
            run("mean_shift", private)

    @pytest.mark.parametrize(
        ("method", "options", "field"),
        [
            ("functional", {"epsilon": -1.0}, "epsilon"),
            ("functional", {"calibration": "tight"}, "calibration"),
            ("dp_grams", {"calibration": "tight", "kernel": "legendre4"}, "kernel"),
            ("dp_grams", {"calibration": "tight", "batch_size": 10**6}, "batch_size"),
            ("kmedoids", {}, "method"),
        ],
    )
    def test_bad_settings_as_everywhere(self, method, options, field, private, nothing_drawn):
        with pytest.raises(SpecError) as caught:
            run(method, private, **options)
        assert caught.value.field == field

    def test_data_of_another_kind(self, private, nothing_drawn):
        with pytest.raises(SpecError, match=r"modes data.*regression data"):
            run("functional", replace(private, kind="regression"))

    @pytest.mark.parametrize("missing", ["opendp", "opendp.mod"])
    def test_a_machine_without_opendp(self, missing, private, monkeypatch, nothing_drawn):
        monkeypatch.setitem(sys.modules, missing, None)
        for call in (ReleaseNoise, lambda: run("functional", private)):
            with pytest.raises(DataError, match=r"opendp could not be loaded; nothing was drawn"):
                call()

    def test_simulations_do_without_opendp(self, corners, monkeypatch):
        monkeypatch.setitem(sys.modules, "opendp", None)
        assert run("functional", corners, seed=0).door == "simulation"


class TestWhatIsWarnedOf:
    @pytest.mark.parametrize("calibration", [name for name in CALIBRATIONS if name != "as_run"])  # that is refused
    def test_a_calibration_without_a_proof(self, calibration, private):
        def release():
            return run("dp_grams", private, calibration=calibration)

        if calibration == "tight":
            result = release()  # a warning would be an error here
            assert result.guarantee.status == "proven"
        else:
            with pytest.warns(PrivacyLeakWarning, match="tight calibration") as caught:
                result = release()
            assert len(caught) == 1
            assert f"“{result.guarantee.status}”" in str(caught[0].message)  # the status that it really has
            assert caught[0].filename == __file__  # the line of the caller
        assert result.door == "release"

    @pytest.mark.parametrize(("method", "options"), [("functional", {}), ("dp_grams", {"calibration": "tight"})])
    def test_a_bandwidth_read_off_the_records_is_refused(self, method, options, private, nothing_drawn, refused):
        # It would stand in the result as it is, and all records at one place would make it fail.
        wish = {"bandwidth": "silverman", **options}
        refused(lambda: run(method, private, **wish), "bandwidth", "silverman", "read off the private records")

    @pytest.mark.parametrize("bandwidth", ["box_rate", "rate", "h_opt", 1.5])
    def test_public_bandwidths_pass_in_silence(self, bandwidth, private):
        assert run("functional", private, bandwidth=bandwidth).guarantee.status == "proven"

    @pytest.mark.parametrize(
        ("method", "options"),
        [
            ("dp_grams", {}),
            ("dp_grams", {"calibration": "theorem"}),
        ],
    )
    def test_the_warning_comes_before_the_draw(self, method, options, private, nothing_drawn):
        # Who makes it an error keeps the budget.
        with pytest.raises(PrivacyLeakWarning):
            run(method, private, **options)

    def test_a_method_that_finds_its_status_only_in_running(self, private, restate):
        restate("functional", "bare", status="nominal")
        with pytest.warns(PrivacyLeakWarning, match="“nominal”, not proven") as caught:
            run("functional", private)
        assert len(caught) == 1

    def test_public_data_are_not_warned_of(self, corners):
        assert run("dp_grams", corners, seed=0, bandwidth="silverman").guarantee.status == "nominal"

    def test_every_calibration_is_known_as_proven_or_not(self):
        assert {name for name, item in CALIBRATIONS.items() if item.status == "proven"} == {"tight"}


OUTCOMES = {
    "functional": ("functional", {}),
    "four modes": ("functional", {"n_modes": 4}),
    "tight": ("dp_grams", {"calibration": "tight"}),
}


@pytest.fixture(scope="module", params=OUTCOMES)
def releases(request, private, corners):
    """A release of private data, and the simulation with the same settings."""
    method, options = OUTCOMES[request.param]
    return run(method, private, **options), run(method, corners, seed=424_242, **options)


class TestWhatComesOut:
    def test_door_seed_and_spec(self, releases):
        released, simulated = releases
        assert (released.door, released.seed) == ("release", None)
        assert (simulated.door, simulated.seed) == ("simulation", 424_242)
        assert released.spec == simulated.spec
        assert released.events == simulated.events
        assert released.guarantee == simulated.guarantee
        assert released.noise_scale == simulated.noise_scale

    def test_no_diagnostics(self, releases):
        released, simulated = releases
        assert simulated.diagnostics is not None
        with pytest.raises(DataError, match="not private"):
            _ = released.diagnostics

    def test_no_diagnostics_and_no_seed_in_a_saved_copy_or_in_print(self, releases):
        released, simulated = releases
        assert b"Diagnostics" in pickle.dumps(simulated)
        assert b"Diagnostics" not in pickle.dumps(released)
        copy = pickle.loads(pickle.dumps(released))
        assert (copy.door, copy.seed, copy._diagnostics) == ("release", None, None)
        np.testing.assert_array_equal(copy.modes, released.modes)
        assert "424242" in repr(simulated)
        assert "seed=None" in repr(released)
        assert "iagnostics" not in repr(released)

    def test_two_releases_differ(self, releases, private):
        released, _ = releases
        options = {"calibration": "tight"} if released.method == "dp_grams" else {}
        again = run(released.method, private, **options)
        assert not np.array_equal(again.trajectories, released.trajectories)

    def test_public_data_without_a_seed_are_still_simulated_on(self, corners):
        release = run("functional", corners)
        assert release.door == "simulation"
        np.testing.assert_array_equal(run("functional", corners, seed=release.seed).modes, release.modes)


class TestReleaseNoise:
    def test_it_is_a_door_without_seed_and_state(self):
        noise = ReleaseNoise()
        assert isinstance(noise, Noise)
        assert (noise.door, repr(noise)) == ("release", "ReleaseNoise()")
        assert not hasattr(noise, "seed")
        assert not hasattr(noise, "__dict__")
        for arguments, named in (((0,), {}), ((), {"seed": 0})):
            with pytest.raises(TypeError):
                ReleaseNoise(*arguments, **named)

    def test_a_saved_copy_holds_nothing(self):
        noise = ReleaseNoise()
        before = pickle.dumps(noise)
        draws(noise)
        assert pickle.dumps(noise) == before

    def test_draws_do_not_repeat(self):
        one, two = ReleaseNoise(), ReleaseNoise()
        for first, second in ((one, one), (one, two)):
            for a, b in zip(draws(first), draws(second), strict=True):
                assert a != b

    def test_seeds_of_other_generators_have_no_influence(self):
        found = []
        state, global_state = random.getstate(), np.random.get_state()
        try:
            for _ in range(2):
                random.seed(0)
                np.random.seed(0)
                found.append(draws(ReleaseNoise()))
        finally:
            random.setstate(state)
            np.random.set_state(global_state)
        assert all(a != b for a, b in zip(*found, strict=True))

    @pytest.mark.slow
    def test_processes_that_split_do_not_share_their_noise(self):
        code = """
import json, os, numpy as np
from dpgrams_core.privacy.noise import ReleaseNoise
noise = ReleaseNoise()
noise.independent_gaussian(np.zeros(3), 1.0)  # so that OpenDP's generator is running before the split
child = os.fork()
drawn = (noise.independent_gaussian(np.zeros(3), 1.0).tolist(), noise.batch(1000, 10).tolist(),
         [noise.gumbel_argmax(np.zeros(1000)) for _ in range(9)])
if child:
    os.waitpid(child, 0)
print(json.dumps(drawn), flush=True)
os._exit(0)
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        assert all(a != b for a, b in zip(first, second, strict=True))


class TestGaussian:
    @pytest.mark.parametrize("size", [0, 1, 5_000, 2_000_000])
    @pytest.mark.parametrize("scale", [1e-9, 0.37, 1.0, 5.2759, 51.3, 1e9])
    @pytest.mark.parametrize("multiplier", [0.1, 1.0, 3.7306, 36.3, 1000.0, 2.1e7])
    def test_opendp_prices_it_as_we_do(self, size, scale, multiplier):
        # The last multiplier is that of the least epsilon; there the sensitivity holds the rounding to the lattice.
        sums = {"n": 10, "chunk": 10, "each": 0.0, "numbers": size, "multiplier": multiplier}
        paid = with_rounding(1.0, **sums) / multiplier
        stated = gaussian_measurement(size, scale).map(scale / multiplier)
        assert (1 / multiplier) ** 2 / 2 <= stated * (1 + 1e-9)
        assert stated <= paid**2 / 2 * (1 + 1e-9)

    def test_a_lattice_that_costs_something_is_refused(self, monkeypatch):
        monkeypatch.setattr(noise_module, "LATTICE_BITS", 20)
        with pytest.raises(RuntimeError, match=r"another price.*nothing was drawn"):
            ReleaseNoise().independent_gaussian(np.zeros(10), 1.0)

    def test_another_meaning_of_the_scale_is_refused(self, monkeypatch):
        from opendp import measurements

        right = measurements.make_gaussian

        def variance(*space, scale, k):
            return right(*space, scale=scale**0.5, k=k)

        monkeypatch.setattr(measurements, "make_gaussian", variance)
        assert gaussian_measurement(3, 1.0).map(1.0) == pytest.approx(0.5)  # where both meanings agree
        with pytest.raises(RuntimeError, match="another price"):
            gaussian_measurement(3, 2.0)

    @pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
    def test_no_release_without_noise(self, scale):
        with pytest.raises(ValueError, match="scale above 0; nothing was drawn"):
            ReleaseNoise().independent_gaussian(np.zeros(3), scale)

    @pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (7,), (2, 3, 4)])
    def test_any_shape(self, shape, rng):
        exact = rng.normal(size=shape)
        drawn = ReleaseNoise().independent_gaussian(exact, 1e-6)
        assert drawn.shape == shape
        assert drawn.dtype == float
        np.testing.assert_allclose(drawn, exact, atol=1e-4)
        assert exact.size == 0 or (drawn != exact).all()

    def test_every_number_gets_its_own_place(self):
        exact = np.arange(12.0).reshape(3, 4).T  # not contiguous
        np.testing.assert_allclose(ReleaseNoise().independent_gaussian(exact, 1e-6), exact, atol=1e-4)

    @pytest.mark.parametrize("scale", [0.37, 4.0, 1e3])
    def test_what_leaves_lies_on_the_lattice(self, scale, rng):
        # Low bits that depend on the number under the noise are how floating-point noise leaks.
        exact = 1e-3 * scale * rng.normal(size=500)
        spacing = 2.0 ** (np.frexp(scale)[1] - LATTICE_BITS)
        drawn = ReleaseNoise().independent_gaussian(exact, scale) / spacing
        assert (drawn == np.round(drawn)).all()
        plain = SimulationNoise(0).independent_gaussian(exact, scale) / spacing
        assert (plain != np.round(plain)).any()


class TestChoices:
    def test_closed_candidates_are_never_chosen(self):
        weights = np.array([-np.inf, 0.0, -np.inf, 1.0, -np.inf])
        assert {ReleaseNoise().gumbel_argmax(weights) for _ in range(200)} == {1, 3}

    @pytest.mark.slow
    def test_the_choice_is_not_that_of_exponential_noise(self):
        # Permute-and-flip, OpenDP's pure-DP noisy maximum, chooses the best of two with 1 - exp(-gap)/2.
        gap, runs = 1.0, 4_000
        best = sum(ReleaseNoise().gumbel_argmax(np.array([0.0, gap])) for _ in range(runs)) / runs
        ours, theirs = 1 / (1 + np.exp(-gap)), 1 - np.exp(-gap) / 2
        assert abs(best - ours) < 5.2 * np.sqrt(ours * (1 - ours) / runs) < theirs - ours

    def test_a_tie_at_the_edge_of_a_batch_is_drawn_again(self, monkeypatch):
        keys = [np.array([5, 1, 5, 5], dtype=np.uint64), np.array([9, 2, 7, 3], dtype=np.uint64)]
        sizes = []

        def bytes_of(count):
            sizes.append(count)
            return keys[len(sizes) - 1].tobytes()

        monkeypatch.setattr(noise_module.os, "urandom", bytes_of)
        assert sorted(ReleaseNoise().batch(4, 2).tolist()) == [1, 3]
        assert sizes == [32, 32]

    def test_a_tie_elsewhere_is_none_of_its_business(self, monkeypatch):
        monkeypatch.setattr(noise_module.os, "urandom", lambda _: np.array([1, 9, 1, 9], dtype=np.uint64).tobytes())
        assert sorted(ReleaseNoise().batch(4, 2).tolist()) == [0, 2]

    @pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 5), (5, 1), (5, 4), (1_000_000, 72_383)])
    def test_batches_are_distinct_records(self, n, size):
        batch = ReleaseNoise().batch(n, size)
        assert len(batch) == len(np.unique(batch)) == size
        assert batch.min() >= 0
        assert batch.max() < n


def test_a_simulation_is_the_stream_of_its_seed(seed, rng):
    """Bit for bit what NumPy's generator gives, so that old seeds still mean what they meant."""
    exact, factor = rng.normal(size=6), rng.normal(size=(6, 6))
    covariance = factor @ factor.T
    noise, stream = SimulationNoise(seed), np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariance)
    root = np.sqrt(values)
    expected = 0.3 * (((vectors * root) @ vectors.T) @ stream.standard_normal((6, 2)))
    assert np.array_equal(noise.correlated_gaussian(covariance, 0.3, 2), expected)
    root = np.sqrt(values + lift(6) * values[-1])
    expected = vectors @ (root * ((exact @ vectors) / root + 0.3 * (vectors.T @ stream.standard_normal(6))))
    np.testing.assert_allclose(noise.covered_gaussian([exact], covariance, 0.3), expected, rtol=1e-12)
    assert np.array_equal(noise.independent_gaussian(exact, 0.3), exact + 0.3 * stream.standard_normal(6))
    assert noise.gumbel_argmax(exact) == int(np.argmax(exact + stream.gumbel(size=6)))
    assert np.array_equal(noise.batch(50, 7), stream.choice(50, size=7, replace=False, shuffle=False))
