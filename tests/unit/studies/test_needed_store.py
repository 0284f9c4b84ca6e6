"""A search for a budget that is stopped and continued."""

from __future__ import annotations

from itertools import islice

import pytest

from dpgrams_core.studies.needed_budget import stream_needed
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.store import ResultsFile

EASY = {"target": 500.0, "probability": 0.5, "low": 0.5, "high": 50.0, "runs": 8, "most_values": 3}


@pytest.mark.parametrize(
    ("sought", "change"),
    [("epsilon", {"n": 60}), ("n", {"epsilon": 1.0, "batch_size": 120, "low": 60, "high": 150})],
)
def test_a_stopped_search_makes_no_run_twice_and_ends_at_the_same_answer(sought, change, tmp_path, monkeypatch, seed):
    made = []

    def counting(cell):
        made.extend((cell.n, cell.epsilon, number) for number in cell.numbers)
        return run_cell(cell)

    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", counting)

    def stream(**more):
        return stream_needed(sought, "dp_grams", "four_corners", seed=seed, **{**EASY, **change}, **more)

    whole = list(stream())[-1]
    wanted = sorted(made)
    made.clear()
    with ResultsFile(tmp_path / "results.parquet") as store:
        for steps in (1, 2):
            stopped = stream(store=store)
            list(islice(stopped, steps))
            stopped.close()
        assert 0 < len(made) < len(wanted)
        assert list(stream(store=store))[-1] == whole
    assert sorted(made) == wanted == sorted(set(wanted))
