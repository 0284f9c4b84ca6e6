"""The registry of methods: one entry holds every fact, and a new entry is a new method everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpgrams_core import METHODS, SpecError, load_dataset, run
from dpgrams_core.methods.registry import Method, private_methods, register
from dpgrams_core.model import settings
from dpgrams_core.model.results import Guarantee, Release
from dpgrams_core.model.settings import Calibration
from dpgrams_core.model.specs import Spec, setting

DATA = {"modes": "four_corners", "regression": "sinusoid", "clusters": "blobs"}
ARMS = [(name, calibration) for name, item in METHODS.items() for calibration in item.calibrations or (None,)]


@pytest.mark.parametrize(("name", "calibration"), ARMS)
def test_the_status_that_the_registry_states_is_that_of_a_run(name, calibration):
    options = {} if calibration is None else {"calibration": calibration}
    release = run(name, load_dataset(DATA[METHODS[name].kind], n=300, seed=0), seed=0, **options)
    assert release.guarantee.status == METHODS[name].status_with(options)


def test_the_methods_that_a_page_offers():
    assert private_methods("modes") == ["dp_grams", "functional"]
    assert set(private_methods("clusters")) == {"dp_grams_c", "functional_c"}  # DP-k-means is there to compare with


@pytest.mark.parametrize("name", [name for name, item in METHODS.items() if item.kind == "clusters"])
def test_which_methods_cannot_do_without_a_count(name):
    data = replace(load_dataset("blobs", n=300, seed=0), labels=None, representation=None)
    if METHODS[name].needs_count:
        with pytest.raises(SpecError, match="n_clusters"):
            run(name, data, seed=0)
    else:
        assert len(run(name, data, seed=0).modes)


@dataclass(frozen=True, kw_only=True)
class ToySpec(Spec):
    epsilon: float = settings.epsilon()
    calibration: str = setting(
        "loud",
        label="Calibration",
        words="How loud.",
        choices={"loud": Calibration("proven", "Loud."), "soft": Calibration("nominal", "Soft.")},
    )


def middle(data, spec, noise):
    place = noise.independent_gaussian(data.box.mean(axis=1), 1.0)
    claim = Guarantee(epsilon=spec.epsilon, delta=0.0, status="proven", statement="It reads no record.")
    return Release(method="toy", modes=place[None], spec=spec, events=(), guarantee=claim, noise_scale=1.0)


def test_one_call_makes_a_method_known(monkeypatch):
    monkeypatch.setattr("dpgrams_core.methods.registry.METHODS", METHODS)
    monkeypatch.setitem(METHODS, "toy", METHODS["functional"])  # so that it is taken out again
    toy = register(Method("toy", "modes", "Toy", ToySpec, middle))
    assert METHODS["toy"] is toy
    assert private_methods("modes")[-1] == "toy"
    assert [toy.status_with({"calibration": name}) for name in toy.calibrations] == ["proven", "nominal"]
    data = load_dataset("four_corners", n=100, seed=0)
    np.testing.assert_array_equal(run("toy", data, seed=1).modes, run("toy", data, seed=1).modes)
    with pytest.warns(UserWarning, match="“nominal”"):
        run("toy", replace(data, private=True), calibration="soft")
