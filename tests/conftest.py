"""What all test layers share: one seed from the environment, and a stated rate of false alarms."""

from __future__ import annotations

import gc
import os
import tempfile
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from dpgrams_core import METHODS, Dataset, SpecError, load_dataset
from dpgrams_core.numerics.threads import one_thread
from dpgrams_core.own_data.reading import guarded
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

# Random inputs differ from run to run on purpose: a property must hold for all of them.
for profile, examples in (("core", 60), ("quick", 15)):
    settings.register_profile(
        profile, deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
settings.load_profile("core")
# The tests run in parallel themselves; more numerical threads only fight for the cores.  By its variable also a library
# that is loaded late, as scikit-learn is, or in a process that a test starts.
os.environ["OMP_NUM_THREADS"] = "1"
one_thread()
# High-water marks of the ledgers of tests, also in processes that tests start: nothing goes into a home folder. Each
# process has a folder of its own, which goes with it.
MARKS = tempfile.TemporaryDirectory(prefix="dpgrams-marks-")
os.environ["DPGRAMS_LEDGER_MARK"] = MARKS.name
guarded.WAIT_SECONDS = (
    240.0  # for the process of a file: a busy machine is no fault, and tests of the limit set their own
)
LONG_FIRST = ("tests/browser", "tests/statistical", "tests/unit/sweeps/test_executors.py", "tests/app", "tests/parity")


def pytest_collection_modifyitems(items):
    """Long files first, so that no worker is left alone with one of them at the end."""
    places = {place: number for number, place in enumerate(LONG_FIRST)}
    items.sort(
        key=lambda item: min((places[place] for place in places if item.nodeid.startswith(place)), default=len(places))
    )


def pytest_collection_finish():
    """What is there by now stays: the garbage collector need not walk through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config, log):
    """A file at a time, which shares its fixtures; all browser tests in one worker, since they mostly wait.

    (xdist's own groups do not work with this version of pytest.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class FileScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "browser" if nodeid.startswith("tests/browser") else nodeid.split("::")[0]

    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def seed():
    """DPGRAMS_TEST_SEED, or a fixed number; every test must hold for any value."""
    return int(os.environ.get("DPGRAMS_TEST_SEED", "20250611"))


@pytest.fixture
def rng(seed, request):
    """A generator of this test's own, so that no two tests share their draws."""
    return np.random.default_rng([seed, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def flake_rate():
    """The chance, for one statistical test and any one seed, that correct code is called wrong."""
    return 1e-6


@pytest.fixture(scope="session")
def certain():
    """A p-value below this means that a test surely sees a wrong scale: its power is not luck."""
    return 1e-12


@pytest.fixture
def noise(seed, request):
    """Simulation noise of this test's own."""
    return SimulationNoise(zlib.crc32(f"{seed}/{request.node.nodeid}".encode()))


@pytest.fixture(scope="session")
def corners(seed):
    """Three hundred records of the four corners; read-only, so one copy serves all tests."""
    return load_dataset("four_corners", n=300, seed=seed)


@pytest.fixture(scope="session")
def table():
    """A maker of small data sets: ``table(points, box)``."""

    def make(points, box=None, **more):
        points = np.asarray(points, dtype=float)
        box = [(-10.0, 10.0)] * points.shape[1] if box is None else box
        return Dataset(**{"name": "table", "kind": "modes", "points": points, "box": box, **more})

    return make


@pytest.fixture(scope="session")
def refused():
    """``refused(call, field, value, *words)``: a SpecError whose sentence holds all of these."""

    def check(call, field, value, *words):
        with pytest.raises(SpecError) as caught:
            call()
        message = str(caught.value)
        assert caught.value.field == field
        for word in (field, repr(value), *words):
            assert word in message
        return message

    return check


@pytest.fixture
def restate(monkeypatch):
    """``restate(method, part, **facts)``: what the part of a method makes states other facts in its guarantee."""

    def change(name, part, **facts):
        right = METHODS[name]

        def other(data, spec, noise):
            made = getattr(right, part)(data, spec, noise)
            return replace(made, guarantee=replace(made.guarantee, **facts))

        monkeypatch.setitem(METHODS, name, replace(right, **{part: other}))

    return change


@pytest.fixture
def nothing_drawn(monkeypatch):
    """Any privacy randomness drawn in this test is an error, at either door."""

    def drawn(*_, **__):
        raise AssertionError("privacy randomness was drawn before the refusal")

    for door in (SimulationNoise, ReleaseNoise):
        for name in (
            "gumbel_argmax",
            "correlated_gaussian",
            "covered_gaussian",
            "projected_gaussian",
            "independent_gaussian",
            "batch",
            "library_seed",
        ):
            monkeypatch.setattr(door, name, drawn)


@pytest.fixture
def without_noise(monkeypatch):
    """Replace the Gaussian noise by zeros: what is left is the exact score."""

    def zeros(self, correlation, scale, columns):
        return np.zeros((len(correlation), columns))

    monkeypatch.setattr(SimulationNoise, "correlated_gaussian", zeros)

    def bare(self, tables, covariance, scale):
        return np.vstack(list(tables)).sum(axis=0)

    monkeypatch.setattr(SimulationNoise, "covered_gaussian", bare)

    def product(self, coefficients, functionals, covariance, scale):
        return np.tensordot(functionals, coefficients, axes=coefficients.ndim)

    monkeypatch.setattr(SimulationNoise, "projected_gaussian", product)
