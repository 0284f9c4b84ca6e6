"""Private records leave through the release door alone: whatever else takes a data set refuses private ones first.

The functions are found by their annotations, so that a new one is looked at without being listed here.  A function of
bare arrays cannot know whose they are; the callers that have the data set are what is held.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

import dpgrams_core
import dpgrams_core as dg
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.results import Dataset
from dpgrams_core.own_data.table import OwnData
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise
from dpgrams_core.studies.comparison import ComparisonSettings, compare

A_DATASET = re.compile(rf"\b({'|'.join(kind.__name__ for kind in (Dataset, OwnData))})\b")
DOOR = "it is the release door itself, or prices and writes down what leaves through it"
PUBLIC_FACTS = "of the data it reads what is public: n, the columns, the box, or how the columns were made"
INSIDE = "a step of a private method, between the door and the noise; the method itself refuses any other door"
HASHED = "the account is known by keyed hashes of the records, which never leave the ledger"
ALLOWED = {
    "methods.registry.run": DOOR,
    "methods.registry.draw": DOOR,
    "methods.registry.Method.admitted": DOOR,
    "methods.door.at_the_door": DOOR,
    "model.units.scaled_by_box": "it maps each record by public numbers, and what comes out is as private",
    "methods.registry.as_asked": PUBLIC_FACTS,
    "methods.registry.asked": PUBLIC_FACTS,
    "own_data.pricing.quote": DOOR,
    "own_data.pricing.sums_asked_for": PUBLIC_FACTS,
    "own_data.release.release": DOOR,
    "own_data.release.open_budget": HASHED,
    "own_data.release.data_identity": HASHED,
    "own_data.release.overlap_words": HASHED,
    "own_data.record.release_record": PUBLIC_FACTS,
    "own_data.record.recorded": PUBLIC_FACTS,
    "figures.clusters.has_pictures": PUBLIC_FACTS,
    "methods.dp_grams.clusters.public_candidates": PUBLIC_FACTS,
    "methods.baselines.kmeans.known_clusters": PUBLIC_FACTS,
    "methods.dp_grams.clusters.modes_spec": PUBLIC_FACTS,
    "methods.dp_grams.plan.plan": INSIDE,
    "methods.dp_pms.plan.plan": INSIDE,
    "methods.dp_pms.plan.check_design": INSIDE,
    "methods.dp_pms.plan.evaluation_points": INSIDE,
    "methods.dp_pms.run.refuse_a_grid_beside_the_data": INSIDE,
    "methods.functional.modes.choose_release_bandwidth": INSIDE,
    "methods.functional.regression.on_unit_square": INSIDE,
    "methods.functional.modes.outside_box": INSIDE
    + "; the count is a diagnostic, which a release of private data has not",
    "model.results.refuse_private": "it is the refusal",
}


def takes_a_dataset(function):
    hints = {name: hint for name, hint in inspect.unwrap(function).__annotations__.items() if name != "return"}
    return any(A_DATASET.search(str(hint)) for hint in hints.values())


def public_functions():
    """Every public function of the package that takes a data set, constructors and methods of public classes too."""
    found = {}
    for info in pkgutil.walk_packages(dpgrams_core.__path__, "dpgrams_core."):
        if info.name.endswith("_child"):  # a script of its own, which limits the process that imports it
            continue
        module = importlib.import_module(info.name)
        for name, item in vars(module).items():
            if name.startswith("_") or getattr(item, "__module__", None) != info.name:
                continue
            place = f"{info.name.removeprefix('dpgrams_core.')}.{name}"
            if inspect.isclass(item):
                parts = {f"{place}.{part}": value for part, value in vars(item).items() if inspect.isfunction(value)}
                if not is_dataclass(item) and "__init__" in vars(item):  # a dataclass only holds what it is given
                    found |= {place: item} if takes_a_dataset(item.__init__) else {}
                found |= {where: part for where, part in parts.items() if "._" not in where and takes_a_dataset(part)}
            elif callable(item) and takes_a_dataset(item):
                found[place] = item
    return found


FUNCTIONS = public_functions()


class Unreadable(Dataset):
    """Private data of which nothing but the mark can be read: any other look at them is an AttributeError."""

    def __getattribute__(self, name):
        if name == "private":
            return True
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        raise AttributeError(name)


@pytest.fixture
def unreadable():
    return object.__new__(Unreadable)


def arguments(function, data):
    """The data set where one is taken, and for everything else as little as there is: the refusal comes first."""
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if A_DATASET.search(str(parameter.annotation)):
            several = re.search(r"\b(tuple|Sequence)\[", str(parameter.annotation))
            given[name] = (data, data) if several else data
        elif parameter.default is parameter.empty:
            noise = SimulationNoise(0)
            given[name] = {"noise": noise, "noises": (noise, noise), "method": "functional"}.get(name)
    return given


def test_the_functions_are_found_and_the_exceptions_are_few_and_real():
    assert {
        "model.measures.score",
        "studies.comparison.compare",
        "studies.ablation.ladder_errors",
        "figures.modes.contour_chart",
    } <= set(FUNCTIONS)
    assert "methods.ladder.SwitchedNoise" in FUNCTIONS  # a constructor
    assert {"auditing.game.plan_game", "methods.baselines.regression.lowess", "methods.dp_pms.run.dp_pms"} <= set(
        FUNCTIONS
    )
    assert set(ALLOWED) <= set(FUNCTIONS)
    assert len(ALLOWED) < len(FUNCTIONS) / 3
    for method in METHODS.values():  # each of them is held below, whatever file it is in
        assert method.function in FUNCTIONS.values()
        assert method.bare is None or method.bare in FUNCTIONS.values()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(ALLOWED)))
def test_it_refuses_private_data_before_it_reads_anything(name, unreadable):
    function = FUNCTIONS[name]
    with pytest.raises(DataError, match=r"^The data are private, .* Nothing was read\.$"):
        function(**arguments(function, unreadable))


@pytest.mark.parametrize("kind", ["modes", "regression", "clusters"])
def test_a_score_of_private_data_is_refused_whatever_is_known_of_them(kind, seed):
    name = {"modes": "four_corners", "regression": "sinusoid", "clusters": "blobs"}[kind]
    method = {"modes": "functional", "regression": "functional_regression", "clusters": "functional_c"}[kind]
    public = dg.load_dataset(name, n=200, seed=seed)
    release = dg.run(method, public, seed=seed)
    assert dg.score(release, public)
    with pytest.raises(DataError, match="private"):
        dg.score(release, replace(public, private=True))


def test_a_comparison_of_private_data_is_refused(table):
    points = np.random.default_rng(0).normal(size=(200, 2))
    settings = ComparisonSettings(n=200)
    assert compare(settings, table(points))
    with pytest.raises(DataError, match="private"):
        compare(settings, table(points, private=True))


@pytest.mark.parametrize("name", sorted(name for name, method in METHODS.items() if method.private))
def test_a_method_takes_private_data_with_the_noise_of_the_release_door_only(name, unreadable):
    method = METHODS[name]
    with pytest.raises(DataError, match="private"):
        method.function(unreadable, method.spec(), SimulationNoise(0))
    with pytest.raises(AttributeError):  # past the refusal: it goes on to read
        method.function(unreadable, method.spec(), ReleaseNoise())


def test_a_release_of_private_data_refuses_a_bandwidth_read_off_them(table, tmp_path, refused):
    from dpgrams_core.own_data.release import release
    from dpgrams_core.privacy.ledger.book import Ledger

    data, ledger = table(np.zeros((60, 2)), private=True), Ledger(tmp_path / "ledger.sqlite3")
    for method in ("functional", "dp_grams"):
        options = {"bandwidth": "silverman", "accept_unproven": True}
        refused(
            lambda method=method, o=options: release(method, data, ledger, **o), "bandwidth", "silverman", "private"
        )
    assert ledger.charges() == []
