"""Settings as files: every recipe and record comes back as it was, and a mangled file is a sentence."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import DataError, Dataset, SpecError, run
from dpgrams_core.recipes import Recipe, plain, release_record, spec_from_json, spec_json

RECIPES = (
    Recipe(method="dp_grams", dataset="four_corners", n=700, data_seed=3, seed=4, options=(("epsilon", 0.1),)),
    Recipe(method="dp_grams", dataset="t_mixture", n=60, options=(("candidates", [[0.5, 1], [2, 3]]), ("n_modes", 3))),
    Recipe(method="dp_pms", dataset="sinusoid", n=300, options=(("evaluation_points", np.linspace(0, 1, 4)),)),
    Recipe(method="kmeans", dataset="iris", n=150, options=(("n_clusters", np.int64(3)),)),
    Recipe(method="mean_shift", dataset="four_corners", n=100, options=(("bandwidth", "silverman"),)),
)


@pytest.fixture(scope="module")
def record():
    points = np.random.default_rng(5).normal(size=(200, 2))
    data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 2, private=True)
    return release_record(run("functional", data, epsilon=5.0), data)


def test_recipes_come_back_as_they_were():
    assert spec_from_json(spec_json(RECIPES)) == RECIPES


def test_a_record_comes_back_as_it_was(record):
    assert spec_from_json(spec_json(record)) == record
    assert record.what in json.loads(spec_json(record))


def test_a_record_has_no_place_for_a_seed_and_a_simulation_is_no_record(record, corners):
    assert "seed" not in {*json.loads(spec_json(record)), *dict(record.settings)}
    with pytest.raises(DataError, match="simulation"):
        release_record(run("functional", corners, seed=0), corners)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"method": "magic"}, "method"),
        ({"dataset": "secret"}, "dataset"),
        ({"n": 1.5}, "n"),
        ({"seed": -1}, "seed"),
        ({"data_seed": "0"}, "data_seed"),
        ({"options": (("epsilon", -1.0),)}, "epsilon"),
        ({"options": (("password", 1),)}, "password"),
        ({"options": (("epsilon", object()),)}, "options"),
    ],
)
def test_a_recipe_is_checked_like_typed_values(change, field):
    with pytest.raises(SpecError) as caught:
        Recipe(**{"method": "functional", "dataset": "four_corners", "n": 500, **change})
    assert caught.value.field == field


def test_a_mangled_file_is_a_sentence(record):
    whole = [spec_json(RECIPES), spec_json(record)]
    for text in ("", "null", "[]", "{}", "1", '{"format": 2, "kind": "release"}', *(part[:-9] for part in whole)):
        with pytest.raises((DataError, SpecError)):
            spec_from_json(text)
    for text in whole:
        content = json.loads(text)
        for name in content:
            if name not in ("engine", "note"):  # words for the reader
                with pytest.raises((DataError, SpecError)):
                    spec_from_json(json.dumps({**content, name: ["wrong"]}))
                with pytest.raises((DataError, SpecError)):
                    spec_from_json(json.dumps({key: value for key, value in content.items() if key != name}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["method", "dataset", "n", "data_seed", "seed", "options"]), json_values)
def test_any_value_in_any_place_is_used_or_refused_in_a_sentence(name, value):
    run_ = {"method": "functional", "dataset": "four_corners", "n": 500, "data_seed": 0, "seed": 0, "options": {}}
    text = json.dumps({"format": 1, "kind": "simulation", "runs": [{**run_, name: value}]})
    with suppress(DataError, SpecError):  # any other error is a traceback for somebody
        found = spec_from_json(text)
        assert spec_from_json(spec_json(found)) == found


def test_plain_values_are_of_python():
    assert type(plain(np.float64(0.5))) is float
    assert type(plain(np.int64(5))) is int
    assert plain(np.array([[1.0]])) == ((1.0,),)
