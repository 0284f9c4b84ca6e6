"""What scripts outside the project rely on: the public names, their parameters, and what exported scripts import."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect

import numpy as np
import pytest

import dpgrams_core as dg
from dpgrams_core.exports.script import calls_script, command_script, release_script, simulation_script
from dpgrams_core.exports.settings import FUNCTIONS
from dpgrams_core.own_data.record import release_record
from dpgrams_core.studies.paper.experiments import GROUPS
from dpgrams_core.sweeps.plan import plan_run

NAMES = {"DATASETS", "METHODS", "load_dataset", "run", "score", "sweep", "audit", "load_table"}
DATASETS = ["four_corners", "t_mixture", "sinusoid", "three_component", "blobs", "digits", "iris", "mnist", "rnaseq"]
METHODS = {
    "modes": ["dp_grams", "functional", "mean_shift"],
    "regression": ["dp_pms", "functional_regression", "pms", "lowess"],
    "clusters": ["dp_grams_c", "functional_c", "mean_shift_c", "kmeans", "dp_kmeans"],
}
PARAMETERS = {
    "load_dataset": {"name", "n", "seed"},
    "run": {"method", "data", "seed", "options"},
    "score": {"release", "data"},
    "sweep": {"methods", "dataset", "n", "epsilon", "runs", "seed", "executor", "options"},
    "load_table": {"columns", "box", "response", "kind"},
}
FIELDS = {
    "Dataset": {"name", "kind", "points", "box", "true_modes", "labels", "x", "y", "conditional_modes", "private"},
    "Release": {"modes", "curve", "trajectories", "anchors", "surface", "spec", "events", "guarantee", "diagnostics"},
    "Guarantee": {"epsilon", "delta", "neighbours", "status", "statement", "caveats"},
}
SCORES = {
    ("functional", "four_corners"): {"mse", "mse_per_true_mode", "found", "missed", "spurious"},
    ("functional_regression", "sinusoid"): {"mse", "branch_recall"},
    ("functional_c", "iris"): {"ari", "nmi", "centroid_mse", "inertia"},
}


def test_every_public_name_is_there():
    assert set(dg.__all__) >= NAMES
    assert all(hasattr(dg, name) for name in dg.__all__)
    declared = {  # for types, beside the table of names that are loaded when asked for
        (node.module.removeprefix("dpgrams_core."), alias.name)
        for node in ast.walk(ast.parse(inspect.getsource(dg)))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("dpgrams_core")
        for alias in node.names
    }
    assert declared == {(place, name) for name, place in dg._PLACE_OF.items()}
    assert set(dg.DATASETS) >= set(DATASETS)
    assert {name: dg.METHODS[name].kind for names in METHODS.values() for name in names} == {
        name: kind for kind, names in METHODS.items() for name in names
    }


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_functions_have_their_parameters(name):
    known = set(inspect.signature(getattr(dg, name)).parameters)
    assert known >= PARAMETERS[name], known


@pytest.mark.slow
def test_an_audit_takes_its_claim_its_trials_its_seed_and_options():
    found = dg.audit("dp_grams", epsilon=1.0, delta=1e-6, trials=100, seed=3, n=50, calibration="tight")
    assert isinstance(found, dg.AuditResult)
    assert (found.epsilon_claimed, found.delta, found.trials, found.seed) == (1.0, 1e-6, 100, 3)


def test_the_options_of_the_main_method_are_settings():
    known = {item.name for item in dataclasses.fields(dg.METHODS["dp_grams"].spec)}
    assert known >= {"epsilon", "delta", "calibration", "bandwidth", "clip_multiplier", "batch_size", "n_modes"}


@pytest.mark.parametrize("name", FIELDS)
def test_the_results_have_their_fields(name):
    kind = getattr(dg, name)
    known = {item.name for item in dataclasses.fields(kind)} | set(dir(kind))
    assert known >= FIELDS[name], FIELDS[name] - known


@pytest.mark.parametrize(("method", "dataset"), SCORES)
def test_the_scores_have_their_names(method, dataset):
    data = dg.load_dataset(dataset, n=150, seed=0)
    release = dg.run(method, data, seed=0, **({"n_clusters": 3} if dataset == "iris" else {}))
    found = dg.score(release, data)
    assert set(found) >= SCORES[method, dataset]
    assert release.guarantee.status in ("proven", "as published", "nominal", "none")


def scripts():
    """Every kind of script that the exports can write."""
    kinds = {"modes": "four_corners", "regression": "sinusoid", "clusters": "iris"}
    yield simulation_script([plan_run(name, kinds[method.kind], n=150) for name, method in dg.METHODS.items()])
    for name in FUNCTIONS:
        yield calls_script([(name, {"method": "functional", "dataset": "four_corners"})])
    for group in GROUPS:
        yield command_script(f"python -m dpgrams_core reproduce {group}")
    points = np.random.default_rng(0).normal(size=(200, 2))
    data = dg.Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 2, private=True)
    for method in ("functional", "dp_grams"):
        release = dg.run(method, data, epsilon=5.0, **({"calibration": "tight"} if method == "dp_grams" else {}))
        yield release_script(release_record(release, data))


def test_all_that_exported_scripts_import_is_there():
    imported = set()
    for script in scripts():
        for node in ast.walk(ast.parse(script)):
            if isinstance(node, ast.Import):
                imported |= {(alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {(node.module, alias.name) for alias in node.names}
    assert len(imported) >= 6
    for module, name in imported:
        assert module.split(".")[0] == "dpgrams_core"
        assert not name or hasattr(importlib.import_module(module), name), (module, name)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("dpgrams_core.error_sources", ["error_sources"]),
        ("dpgrams_core.needed_budget", ["needed_epsilon", "needed_n"]),
        ("dpgrams_core.__main__", ["main"]),
        ("dpgrams_core.privacy.accounting", ["price"]),
        ("dpgrams_core.privacy.events", ["GaussianRelease"]),
    ],
)
def test_what_scripts_once_imported_stays(module, names):
    # Scripts that were exported by earlier versions are in the hands of users.
    found = importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []
