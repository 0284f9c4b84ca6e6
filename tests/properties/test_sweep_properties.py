"""However a sweep is cut into pieces, stopped and put together, it is the same sweep."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgrams_core.sweeps import cell as cells
from dpgrams_core.sweeps.cell import join, run_cell, settled, split
from dpgrams_core.sweeps.run import plan_cells, stream_partial
from dpgrams_core.sweeps.store import ResultsFile, merge_files
from tests.made import changed, results_in

RUNS = 9


@pytest.fixture(autouse=True)
def some_runs_fail(monkeypatch):
    """Every third draw breaks, and some may pass, so that failures are cut and joined as well."""
    right = cells.run

    def breaking(method, data, **options):
        if options["seed"] % 3 == 0:
            raise FloatingPointError(f"overflow {options['seed']}")
        if options["seed"] % 7 == 0:
            raise MemoryError(f"for {options['seed']}")
        return right(method, data, **options)

    monkeypatch.setattr(cells, "run", breaking)


def cell_of(seed):
    return plan_cells("dp_grams", "four_corners", n=[50], epsilon=[1.0], runs=RUNS, seed=seed)[0]


@cache
def whole(seed):
    return run_cell(cell_of(seed))


def timeless(result):
    return changed(result, seconds=(0.0,) * len(result.seconds))


seeds = st.integers(0, 5)
numbers = st.sets(st.integers(0, RUNS - 1))


@given(seed=seeds, size=st.integers(1, RUNS + 2), skip=numbers)
def test_a_split_has_every_run_once_and_none_that_is_skipped(seed, size, skip):
    pieces = list(split(cell_of(seed), size, skip))
    found = [number for piece in pieces for number in piece.numbers]
    assert found == sorted(set(range(RUNS)) - skip)
    assert all(1 <= piece.runs <= size for piece in pieces)


@given(seed=seeds, size=st.integers(1, RUNS), data=st.data())
@settings(max_examples=20)
def test_pieces_in_any_order_and_twice_join_to_the_whole(seed, size, data):
    cell = cell_of(seed)
    pieces = [run_cell(piece) for piece in split(cell, size)]
    mixed = data.draw(st.permutations(pieces + data.draw(st.lists(st.sampled_from(pieces), max_size=2))))
    assert timeless(join(cell, mixed)) == timeless(whole(seed))
    gathered = join(cell, mixed[:1])
    for place, piece in enumerate(mixed[1:], 2):
        gathered = join(cell, [gathered, piece])
        assert gathered == join(cell, mixed[:place])


@given(seed=seeds, first=st.integers(0, RUNS - 1), runs=st.integers(1, RUNS))
@settings(max_examples=20)
def test_a_later_piece_is_what_the_whole_has_there(seed, first, runs):
    cell = replace(cell_of(seed), first_run=first, runs=min(runs, RUNS - first))
    assert timeless(run_cell(cell)) == timeless(join(cell, [whole(seed)]))


@given(seed=seeds, done=numbers, size=st.integers(1, 4))
@settings(max_examples=20)
def test_a_resumed_sweep_is_the_whole(seed, done, size, tmp_path_factory):
    cell = cell_of(seed)
    path = tmp_path_factory.mktemp("resume") / "results.parquet"
    with ResultsFile(path) as store:
        for number in done:
            store.add(run_cell(replace(cell, first_run=number, runs=1)))
    with ResultsFile(path) as store:
        assert store.finished(cell).ended == store.count(cell) == len(done - set(whole(seed).passing))
        *_, last = stream_partial([cell], store=store, piece_runs=size)
    assert timeless(last) == timeless(whole(seed))
    assert timeless(ResultsFile(path).finished(cell)) == timeless(settled(whole(seed)))
    assert timeless(results_in(path)[0]) == timeless(whole(seed))  # each run once


@given(seed=seeds, left=numbers, right=numbers)
@settings(max_examples=20)
def test_merged_files_hold_what_either_held(seed, left, right, tmp_path_factory):
    cell = cell_of(seed)
    folder = tmp_path_factory.mktemp("merge")
    for name, held in (("left", left), ("right", right)):
        with ResultsFile(folder / f"{name}.parquet") as store:
            for number in held:
                store.add(run_cell(replace(cell, first_run=number, runs=1)))
    total = merge_files([folder / "left.parquet", folder / "right.parquet"], folder / "both.parquet")
    found = ResultsFile(folder / "both.parquet").finished(cell)
    assert total == len(left | right)
    kept = [run_cell(replace(cell, first_run=number, runs=1)) for number in left | right]
    assert timeless(found) == timeless(settled(join(cell, kept)))
    assert set(found.outcomes) == (left | right) - set(whole(seed).passing)
