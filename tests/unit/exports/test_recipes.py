"""Settings as files: every run and record comes back as it was, and a mangled file is a sentence."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import DataError, Dataset, SpecError, run
from dpgrams_core.exports.settings import open_settings, spec_json
from dpgrams_core.model.run import plain
from dpgrams_core.own_data.record import release_record
from dpgrams_core.sweeps.plan import plan_run

RUNS = (
    plan_run("dp_grams", "four_corners", n=700, data_seed=3, seed=4, epsilon=0.1),
    plan_run("dp_grams", "t_mixture", n=60, candidates=[[0.5, 1], [2, 3]], n_modes=3),
    plan_run("dp_pms", "sinusoid", n=300, evaluation_points=np.linspace(0, 1, 4)),
    plan_run("kmeans", "iris", n=150, n_clusters=np.int64(3)),
    plan_run("mean_shift", "four_corners", n=100, bandwidth="silverman"),
)


@pytest.fixture(scope="module")
def record():
    points = np.random.default_rng(5).normal(size=(200, 2))
    data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 2, private=True)
    return release_record(run("functional", data, epsilon=5.0), data)


def test_runs_come_back_as_they_were():
    assert open_settings(spec_json(RUNS)).runs == RUNS


def test_a_record_comes_back_as_it_was(record):
    assert open_settings(spec_json(record)).record == record
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
        ({"epsilon": -1.0}, "epsilon"),
        ({"password": 1}, "password"),
        ({"epsilon": object()}, "options"),
    ],
)
def test_a_run_is_checked_like_typed_values(change, field):
    with pytest.raises(SpecError) as caught:
        plan_run(**{"method": "functional", "dataset": "four_corners", "n": 500, **change})
    assert caught.value.field == field


def test_a_mangled_file_is_a_sentence(record):
    whole = [spec_json(RUNS), spec_json(record)]
    for text in ("", "null", "[]", "{}", "1", '{"format": 2, "kind": "release"}', *(part[:-9] for part in whole)):
        with pytest.raises((DataError, SpecError)):
            open_settings(text)
    for text in whole:
        content = json.loads(text)
        for name in content:
            if name not in ("engine", "note"):  # words for the reader
                with pytest.raises((DataError, SpecError)):
                    open_settings(json.dumps({**content, name: ["wrong"]}))
                with pytest.raises((DataError, SpecError)):
                    open_settings(json.dumps({key: value for key, value in content.items() if key != name}))


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
        found = open_settings(text)
        assert open_settings(spec_json(found.record or found.runs)) == found


def test_plain_values_are_of_python():
    assert type(plain(np.float64(0.5))) is float
    assert type(plain(np.int64(5))) is int
    assert plain(np.array([[1.0]])) == ((1.0,),)
