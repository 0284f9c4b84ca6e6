"""A release and a file in a worker process: the ledger stays here, and a worker that dies costs nobody a charge."""

from __future__ import annotations

import json
import os
import pickle
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from dpgrams_core import DataError, SpecError, load_table
from dpgrams_core.cli.main import main
from dpgrams_core.model.environment import read_settings
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.numerics.scaling import rescaled
from dpgrams_core.own_data import release as releasing
from dpgrams_core.own_data.folder import add_up_folder
from dpgrams_core.own_data.reading.table import Limits, read_table
from dpgrams_core.own_data.release import release, release_range
from dpgrams_core.own_data.table import picked_rows, read_upload
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.sweeps.executors import Processes

SECRET = "918273.25"
pytestmark = pytest.mark.slow  # processes that start, and that die


class ByValue:
    """A function of this file for workers that cannot import it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __reduce__(self):
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return cloudpickle.loads, (cloudpickle.dumps(self.function),)


@ByValue
def dies_at(step, marks, times, function, *arguments):
    """A call that notes itself in a folder; the worker dies at one step, so many times."""
    Path(marks, f"{function.__name__} {len(os.listdir(marks)):03} {os.getpid()}").touch()
    tries = sum(name.startswith(step) for name in os.listdir(marks))
    if function.__name__ == step and tries <= times:
        os._exit(1)
    return function(*arguments)


@ByValue
def fails(what):
    raise {"refusal": DataError("no room"), "setting": SpecError("n", 0, "1 or more")}.get(what, KeyError(what))


@pytest.fixture(scope="module")
def pool():
    with Processes(1) as pool:
        yield pool


@pytest.fixture
def marks(tmp_path):
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3", marks=tmp_path)


@pytest.fixture
def frame(rng):
    return pd.DataFrame({"age": rng.normal(40, 10, 300), "pay": rng.normal(30, 8, 300)})


def steps(marks):
    """What was called, in order; each name begins with the step, then its number."""
    return [name.split()[0] for name in sorted(os.listdir(marks), key=lambda name: name.split()[1])]


@pytest.mark.parametrize("method", ["functional", "dp_grams"])
def test_a_release_by_workers_is_charged_here_once_and_a_lost_one_is_drawn_again(method, frame, ledger, pool, marks):
    data = load_table(frame, columns=["age", "pay"], box=[(0, 100), (0, 60)])
    options = {"epsilon": 0.5, "bandwidth": 0.6} | ({"calibration": "tight"} if method == "dp_grams" else {})

    def worker(function, *arguments):
        assert not any(isinstance(item, Ledger) for item in arguments)
        return pool.call(dies_at, "_drawn", str(marks), 1, function, *arguments)

    paid = release(method, data, ledger, worker=worker, **options)
    priced, read = ["_quoted"] * (method == "dp_grams"), ["read_off"] * (method == "functional")
    assert steps(marks) == [*priced, "_drawn", "_drawn", *read]
    assert [(row.epsilon, row.drawn) for row in ledger.charges()] == [(0.5, True)]
    assert paid.kept
    assert not paid.release.unread
    assert str(os.getpid()) not in {name.split()[2] for name in os.listdir(marks)}


def test_workers_that_all_die_in_the_draw_leave_the_charge_and_release_nothing(frame, ledger, pool, marks):
    data = load_table(frame, columns=["age"], box=[(0, 100)])
    with pytest.raises(RuntimeError, match="died on every try"):
        release(
            "functional",
            data,
            ledger,
            epsilon=0.5,
            worker=lambda *call: pool.call(dies_at, "_drawn", str(marks), 9, *call),
        )
    assert [(row.epsilon, row.drawn) for row in ledger.charges()] == [(0.5, False)]


def test_workers_that_die_reading_lose_nothing_that_was_drawn(frame, ledger, pool, marks):
    data = load_table(frame, columns=["age"], box=[(0, 100)])
    dying = lambda *call: pool.call(dies_at, "read_off", str(marks), 9, *call)  # noqa: E731
    paid = release("functional", data, ledger, epsilon=0.5, worker=dying)
    assert paid.kept
    assert paid.release.unread
    assert [row.drawn for row in ledger.charges()] == [True]


def test_what_was_not_priced_is_withheld_also_from_a_worker(frame, ledger, monkeypatch):
    """The worker is asked for one thing and gives another: what is compared is what came back."""
    data = load_table(frame, columns=["age"], box=[(0, 100)])

    def other(function, *arguments):
        given = function(*arguments)
        return releasing.draw("functional", data, epsilon=0.6) if function is releasing._drawn else given

    with pytest.raises(RuntimeError, match="withheld"):
        release("functional", data, ledger, epsilon=0.5, worker=other)
    assert [row.drawn for row in ledger.charges()] == [False]


def test_refusals_come_back_as_they_are_and_other_words_do_not(pool):
    with pytest.raises(DataError, match="no room"):
        pool.call(fails, "refusal")
    with pytest.raises(SpecError, match="n = 0 is not allowed"):
        pool.call(fails, "setting")
    with pytest.raises(RuntimeError) as told:
        pool.call(fails, SECRET)
    assert str(told.value) == "KeyError"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_read_by_a_worker_as_it_is_here(ending, frame, pool, tmp_path):
    path = tmp_path / f"people.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    settings = read_settings({})
    sent = read_upload(path.read_bytes(), path.name, settings, worker=pool.call)
    mine = read_upload(path.read_bytes(), path.name, settings)
    local = pool.call(read_table, path, "", Limits.of_owner())
    assert pickle.loads(pickle.dumps(local)).n_rows == 300
    for table in (sent, local):
        assert (table.identity.content, table.identity.exact) == (mine.identity.content, mine.identity.exact)
        np.testing.assert_array_equal(picked_rows(table, ["pay", "age"], pool.call), picked_rows(mine, ["pay", "age"]))
    with pytest.raises(DataError, match="file is empty"):
        read_upload(b"", "a.csv", settings, worker=pool.call)
    opened = pool.call(read_table, path, "", Limits.of_owner())
    path.write_text("age\n1\n")
    with pytest.raises(DataError, match="changed after it was opened"):
        picked_rows(opened, ["pay"], pool.call)


def test_bounds_are_bought_by_a_worker(frame, ledger, pool, tmp_path):
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    paid = release_range(read_table(path), "age", ledger, epsilon=2.0, worker=pool.call)
    assert paid.kept
    assert paid.found.low < 40 < paid.found.high
    assert [row.epsilon for row in ledger.charges()] == [2.0]


@pytest.fixture
def parts(frame, tmp_path):
    """A folder of four files."""
    place = tmp_path / "parts"
    place.mkdir()
    for number in range(4):
        frame[75 * number : 75 * (number + 1)].to_csv(place / f"part{number}.csv", index=False)
    return place


def test_a_folder_by_processes_is_what_memory_holds_also_where_a_worker_is_lost(frame, parts, ledger, pool, marks):
    asked = {"columns": ["age", "pay"], "box": [(0, 100), (0, 60)]}
    options = {"epsilon": 0.5, "bandwidth": 0.6}

    def stream(function, tasks):
        return pool.stream(partial(dies_at, "_added_up", str(marks), 1, function), tasks)

    summed = add_up_folder(parts, "functional", **asked, **options, stream=stream)
    held = load_table(frame, **asked)
    exact = summed.asked(rescaled(scaled_by_box(held).points, held.method_box, np.array(summed.asked.box)))
    assert steps(marks).count("_added_up") == 5  # four files, one of them twice
    assert np.linalg.norm(summed.sums - exact) <= 1e-12 * held.n
    assert (summed.identity.content, summed.identity.exact) == (held.identity.content, held.identity.exact)
    release("functional", summed, ledger, **options)
    release("functional", held, ledger, **options)
    assert len({row.account for row in ledger.charges()}) == 1


def test_a_file_that_kills_its_workers_is_named_and_nothing_is_charged(parts, ledger, pool, marks):
    def stream(function, tasks):
        return pool.stream(partial(dies_at, "_added_up", str(marks), 99, function), tasks)

    with pytest.raises(DataError, match=r"part\d\.csv: The worker died on every try .* Nothing was charged"):
        add_up_folder(parts, "functional", columns=["age"], box=[(0, 100)], epsilon=0.5, stream=stream)
    assert ledger.charges() == []


def test_the_command_releases_a_folder_by_processes(parts, tmp_path, capsys):
    place = tmp_path / "by_command.sqlite3"
    words = ["--columns", "age", "--box", "age=0:100", "--method", "functional", "--epsilon", "0.5", "--json"]
    main(["release", str(parts), "--executor", "processes", "--ledger", str(place), *words])
    told = json.loads(capsys.readouterr().out)
    assert (told["ledger"]["epsilon"], told["kept"]) == (0.5, True)
    (parts / "part2.csv").write_text("age,pay\n1,2\n3")
    assert main(["release", str(parts), "--executor", "processes", "--ledger", str(place), *words]) != 0
    assert "part2.csv" in capsys.readouterr().err
    assert len(Ledger(place).charges()) == 1
